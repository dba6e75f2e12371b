//! The harness can fail: pages that say what is not so are reported, at the right line.

use expect_test::{Expect, expect};

use super::page::Page;
use super::{check_page, guide, updated};

/// Reports a page. `~~~` stands for the backticks, so that this file can be read.
#[track_caller]
fn check(page: &str, expected: Expect) {
    let page = Page::read("00-test", &format!("# Test\n\n{}", page.replace("~~~", "```")));
    let report = check_page(&page);
    let lines: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{}: {}\n", failure.line, failure.message))
        .collect();
    // The wording of messages is tested elsewhere.
    let wording = regex::Regex::new(r"((?:error|warning|hint) [A-Z]\d{3}): .*").unwrap();
    expected.assert_eq(&wording.replace_all(&lines.concat(), "$1: …"));
}

#[test]
fn true_pages_are_silent() {
    check(
        r#"
~~~prose
session: nobody  # error: E007 "nobody"
~~~

~~~prose
# error: E007
session: nobody
~~~
"#,
        expect![""],
    );
    check(
        r#"
~~~prose
output x = session "Go"
~~~

~~~toml mock
[[session]]
reply = "gone"
~~~

~~~text output
gone
~~~

~~~text sessions
Go
~~~

~~~text events
start Go
done Go
run completed
~~~

~~~text bindings
output x = "gone"
~~~

~~~text prompts
session
  task: Go
~~~
"#,
        expect![""],
    );
}

#[test]
fn a_diagnostic_that_is_not_there_is_missed() {
    check(
        "~~~prose\nsession \"Go\"\nsession \"On\"  # error: E007\n~~~\n",
        expect![[r#"
            5: no error E007 here
        "#]],
    );
}

#[test]
fn a_diagnostic_that_is_not_announced_is_reported() {
    check(
        "~~~prose\nsession \"Go\"\nsession: nobody\n~~~\n",
        expect![[r#"
            5: unexpected error E007: …
        "#]],
    );
}

#[test]
fn severity_and_message_have_to_match() {
    check(
        "~~~prose\nsession: nobody  # warning: E007\n~~~\n~~~prose\nsession: nobody  # error: E007 \"somebody\"\n~~~\n",
        expect![[r#"
            4: no warning E007 here
            4: unexpected error E007: …
            7: no error E007 "somebody" here
            7: unexpected error E007: …
        "#]],
    );
}

#[test]
fn hints_count_unless_they_are_off() {
    check(
        "~~~prose\nsession \"{nothing}\"\n~~~\n~~~prose hints=off\nsession \"{nothing}\"\n~~~\n",
        expect![[r#"
            4: unexpected hint P340: …
        "#]],
    );
}

#[test]
fn lints_count_where_one_is_announced_or_asked_for() {
    let unused = "agent a:\n  model: opus\nagent b:\n  model: opus\nsession \"x\"\n";
    check(&format!("~~~prose\n{unused}~~~\n"), expect![""]);
    let announced = unused.replacen("agent a:", "agent a:  # hint: L401", 1);
    check(
        &format!("~~~prose\n{announced}~~~\n~~~prose lints=on\n{unused}~~~\n"),
        expect![[r#"
            6: unexpected hint L401: …
            11: unexpected hint L401: …
            13: unexpected hint L401: …
        "#]],
    );
}

#[test]
fn files_beside_a_program_are_checked_too() {
    check(
        "~~~prose file=lib/a.prose\nsession: nobody\n~~~\n~~~prose\nuse \"lib/a.prose\"\na()\n~~~\n",
        expect![[r#"
            4: unexpected error E007: …
        "#]],
    );
}

#[test]
fn wrong_outcomes_are_reported_and_rewritten() {
    let text = "# Test\n\n```prose\noutput x = session \"Go\"\n```\n\n```text output\nno\n```\n\n```text error\n```\n";
    let page = Page::read("00-test", text);
    let report = check_page(&page);
    let lines: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{}: {}\n", failure.line, failure.message))
        .collect();
    expect![[r#"
        8: expected `no`, got `[simulated] Go`
            all of it:
            | [simulated] Go
        12: expected nothing more, got `none: the run completed`
            all of it:
            | none: the run completed
    "#]]
    .assert_eq(&lines.concat());
    expect![[r#"
        # Test

        ```prose
        output x = session "Go"
        ```

        ```text output
        [simulated] Go
        ```

        ```text error
        none: the run completed
        ```
    "#]]
    .assert_eq(&updated(&page, &report));
}

#[test]
fn a_failed_run_is_a_failure_of_the_page() {
    check(
        "~~~prose\nthrow \"no\"\n~~~\n~~~text events\nrun failed\n~~~\n",
        expect![[r#"
            4: the run failed: no
        "#]],
    );
}

#[test]
fn a_list_of_diagnostics_is_complete() {
    check(
        "~~~prose\nsession: nobody\n~~~\n~~~text diagnostics\n~~~\n",
        expect![[r#"
            7: expected nothing more, got `1:10-1:16 error E007: …
                all of it:
                | 1:10-1:16 error E007: …
        "#]],
    );
}

#[test]
fn formatted_programs_are_compared_byte_for_byte() {
    check(
        "~~~prose\ndo:\n     session   \"a\"\n~~~\n~~~prose formatted\ndo:\n   session \"a\"\n~~~\n\n\
         ~~~prose\nsession \"a\"\n~~~\n~~~prose formatted\nsession \"a\"   \n~~~\n",
        expect![[r#"
            9: expected `   session "a"`, got `  session "a"`
                all of it:
                | do:
                |   session "a"
            16: only white space at the end of lines or of the text differs
        "#]],
    );
}

#[test]
fn quick_fixes_are_applied() {
    check(
        "~~~prose\nif **it is so**:\n  session \"a\"\nelse if **it is not so**:  # warning: P213\n  session \"b\"\n~~~\n~~~prose fixed\nno\n~~~\n",
        expect![[r#"
            10: expected `no`, got `if **it is so**:`
                all of it:
                | if **it is so**:
                |   session "a"
                | elif **it is not so**:  # warning: P213
                |   session "b"
        "#]],
    );
}

#[test]
fn pages_that_can_t_be_understood_are_reported() {
    check(
        "Nothing.\n",
        expect![[r#"
        1: the page asserts nothing
    "#]],
    );
    check(
        r#"
~~~text output
before a program
~~~

~~~prose file=a.prose
session "a"
~~~

## Next

~~~pros
session "a"
~~~

~~~prose
session "a"  # error E001
~~~

~~~toml mock
~~~

~~~toml mock
~~~
"#,
        expect![[r#"
            4: there is no program above this
            8: no program follows that this file stands beside; files come before their program
            14: unknown kind of fence `pros`; tests/spec/README.md lists them
            19: not understood; diagnostics are announced as `# error: E007 "part of the message"`
            22: answers for a run of which nothing is said; add an outcome, such as `text output`
            25: the program above has such a fence already
        "#]],
    );
}

#[test]
fn a_program_with_errors_is_not_run() {
    check(
        "~~~prose\nsession: nobody  # error: E007\n~~~\n~~~text output\n~~~\n",
        expect![[r#"
            4: the program is to be run, but has errors
        "#]],
    );
}

#[test]
fn expectations_are_counted() {
    let text = "# T\n```prose\nsession \"a\"\n```\n```text output\n```\n```prose\n# error: E007\n\
        session: nobody\nsession: x  # error: E007\n```\n";
    assert_eq!(Page::read("t", text).assertions(), 4);
}

#[test]
fn the_guide_leaves_no_notes_on_what_is_mended() {
    let page = Page::read(
        "01-one",
        "# One\n\n```prose\nlet a = 1 && 2  # error: E004 \"and\"\n```\n\n```prose fixed\n# warning: P201\n\
         let a = 1 and 2  # error: E004 \"and\"\n# mine\nlet b = 3  # mine\n```\n",
    );
    let files = guide::render(&[page]);
    let text = &files["01-one.md"];
    assert!(
        text.contains("let a = 1 && 2  # ← error E004\n```\n\n<sub>[E004]"),
        "{text}"
    );
    let fixed =
        "With the quick fixes applied:\n\n```prose\nlet a = 1 and 2\n# mine\nlet b = 3  # mine\n```\n\n---\n";
    assert!(text.contains(fixed), "{text}");
}

#[test]
fn the_guide_has_notes_labels_and_links() {
    let first = Page::read(
        "01-one",
        "# One\n\nAbout one. And more.\n\n```prose file=lib/a.prose\nsession \"a\"\n```\n\n```prose hints=off\n\
         session: nobody  # error: E007 \"nobody\"\n# warning: P201\nif **a**:\n  session \"x\"\n```\n\n\
         ```toml mock\n```\n\n```text output\nx\n```\n",
    );
    let second = Page::read("02-two", "# Two\n\nAbout two.\n");
    let files = guide::render(&[first, second]);
    expect![[r#"
        # One

        About one. And more.

        File `lib/a.prose`:

        ```prose
        session "a"
        ```

        ```prose
        session: nobody  # ← error E007
        # ↓ warning P201
        if **a**:
          session "x"
        ```

        <sub>[E007](../codes/E007.md) Undefined agent reference · [P201](../codes/P201.md) Very short discretion</sub>

        Run with these answers: none.

        It prints:

        ```text
        x
        ```

        ---

        [All pages](README.md) · next: [Two](02-two.md)
    "#]]
    .assert_eq(&files["01-one.md"]);
    assert!(
        files["README.md"].contains("| [One](01-one.md) | About one. |\n| [Two](02-two.md) | About two. |\n"),
        "{}",
        files["README.md"]
    );
    let dir = crate::workspace(&[("README.md", "old"), ("09-gone.md", "")]);
    guide::write(dir.path(), &files).unwrap();
    assert!(guide::stale(dir.path(), &files).is_empty());
    assert!(!dir.path().join("09-gone.md").exists());
    std::fs::write(dir.path().join("01-one.md"), "edited").unwrap();
    std::fs::write(dir.path().join("03-three.md"), "").unwrap();
    assert_eq!(
        guide::stale(dir.path(), &files),
        [
            "docs/guide/01-one.md is not what `cargo xtask guide` writes",
            "docs/guide/03-three.md belongs to no page of the specification"
        ]
    );
}

#[test]
fn who_takes_part_in_a_run_is_what_the_flags_say() {
    check(
        r#"
~~~prose garbled=1
if **so**:
  session "Yes"
else:
  session "No"
~~~

~~~text sessions
No
~~~

~~~prose cancel=One
session "One"
session "Two"
~~~

~~~text events
start One
done One
~~~

~~~prose agent=files stop=Two
let one = session "One"
output two = session "Two"
~~~

~~~text output
written too late
~~~

~~~text project=home/none.md
text
~~~

~~~prose agent=paper
session "One"
~~~
"#,
        expect![[r#"
            5: unexpected warning P201: …
            12: expected `No`, got `Yes`
                all of it:
                | Yes
            22: expected `done One`, got `cancelled One`
                all of it:
                | start One
                | cancelled One
                | run cancelled
            31: expected `written too late`, got `[simulated] Two`
                all of it:
                | [simulated] Two
            35: expected `text`, got `there is no such file`
                all of it:
                | there is no such file
            38: unknown kind of fence `prose agent=paper`; tests/spec/README.md lists them
        "#]],
    );
}

#[test]
fn what_is_marked_is_repeated() {
    check(
        r#"
~~~prose repeat=3
output x = "‹ab›-‹c›"
~~~

~~~text output
ababab-cc
~~~

~~~prose repeat=many
session "One"
~~~
"#,
        expect![[r#"
            9: expected `ababab-cc`, got `ababab-ccc`
                all of it:
                | ababab-ccc
            12: `many` is no number
        "#]],
    );
}

#[test]
fn the_table_of_rules_names_what_is_there() {
    let pages = [Page::read("07-agents", "# Agents\n\n## `if`, or not\n")];
    let root = tempfile::tempdir().unwrap();
    let code = root.path().join("crates/a/src/deep");
    std::fs::create_dir_all(&code).unwrap();
    std::fs::write(code.join("b.rs"), "fn it_holds() {}").unwrap();
    let table = "## Where each rule is shown\n\n| rule | shown |\n|---|---|\n\
        | so | 07 · 07: `if`, or not · a it_holds |\n\
        | not | 08 · 07: if · a it_hold · b it_holds · nothing |\n";
    let problems = super::coverage::problems(table, &pages, root.path());
    assert_eq!(problems.len(), 5, "{problems:#?}");
    assert_eq!(problems[0], "“not” is shown at `08`, which is not there");
    assert_eq!(super::coverage::problems("", &pages, root.path()).len(), 1);
}
