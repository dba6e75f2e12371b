//! The canonical form of each sugar.

use expect_test::{Expect, expect};

#[track_caller]
fn check(text: &str, expect: Expect) {
    let form = prose_fmt::canonical(&prose_syntax::parse(text));
    let parse = prose_syntax::parse(&form);
    assert!(!parse.has_errors(), "{:?}\n{form}", parse.errors());
    assert_eq!(
        prose_fmt::canonical(&parse),
        form,
        "the canonical form is its own"
    );
    assert_eq!(prose_fmt::format_text(&form), form, "and is formatted");
    expect.assert_eq(&form);
}

#[test]
fn sessions() {
    check(
        r#"# comments go
session "a" context: x retry: 2   # behind, too
session draft: writer
  prompt: "b"
parallel:
  session one: writer
  two = session "two":
session "c" (retry: 3)
session: "d"
session "label"
  prompt: |
    some
      "text" """
  context: a, b
session: writer
  context:
    one: 1
    two: x
  skills:
    - "s"
  model: gpt-4.1
  permissions:
    read:
    - "**"
session "x" -> session article: writer
"#,
        expect![[r#"
            session "a"
              context: x
              retry: 2
            let draft = session: writer
              prompt: "b"
            parallel:
              session one: writer
              two = session "two"
            session "c"
              retry: 3
            session "d"
            session "label"
              prompt: """
                some
                  "text" \"\"\"
                """
              context: [a, b]
            session: writer
              context: { one: 1, two: x }
              skills: ["s"]
              model: "gpt-4.1"
              permissions:
                read: ["**"]
            session "x" -> session article: writer
        "#]],
    );
}

#[test]
fn a_name_that_is_declared_again_keeps_its_form() {
    check(
        r#"session a: clerk
session a: clerk
session b: clerk
let { b } = x
session c: clerk
do:
  session c: clerk
"#,
        expect![[r#"
            session a: clerk
            session a: clerk
            session b: clerk
            let { b } = x
            let c = session: clerk
            do:
              let c = session: clerk
        "#]],
    );
}

#[test]
fn constructs() {
    check(
        r#"if **a b c**: do f
else if x: session "y"
else:
  return 1
try: do f
catch e: throw
loop as i until **done it** (max: {n}):
  break
repeat 3 as i (max: 2): do f()
for x in xs: session "x {x}"
choice **which one**:
option "a": do g(1, k: 2)
option "b":
  let { p, q } = {"a": 1, "b c": 2,}
output y: 3
block f(): session "z"
let r = xs | filter: **good one** | map: session "m"
let s = session "a"
    context: x
  -> session "b"
if **over
  lines**:
  x.y = [a b]
"#,
        expect![[r#"
            if **a b c**:
              do f()
            elif x:
              session "y"
            else:
              output 1
            try:
              do f()
            catch as e:
              throw
            loop until **done it** (max: n) as i:
              break
            repeat 3 (max: 2) as i:
              do f()
            for x in xs:
              session "x {x}"
            choice **which one**:
              option "a":
                do g(1, k: 2)
              option "b":
                let { p, q } = { a: 1, "b c": 2 }
            output y = 3

            block f:
              session "z"

            let r = xs
              | filter:
                **good one**
              | map:
                session "m"
            let s = session "a"
                context: x
              -> session "b"
            if ***over
              lines***:
              x.y = [a, b]
        "#]],
    );
}

#[test]
fn inside_brackets_all_stays_on_the_line() {
    check(
        r#"let a = [session "x" context: y, session: b prompt: "z", (if c: do f else: do g)]
"#,
        expect![[r#"
            let a = [session "x" context: y, session: b prompt: "z", (if c: do f() else: do g())]
        "#]],
    );
}

#[test]
fn the_form_of_nested_chains_is_written_once() {
    // Were a level written twice, this would take longer than anybody waits.
    let mut text = String::new();
    let depth = 60;
    for level in 0..depth {
        text.push_str(&format!("{}do:\n", "  ".repeat(2 * level)));
        text.push_str(&format!("{}do:\n", "  ".repeat(2 * level + 1)));
    }
    text.push_str(&format!("{}session \"a\"\n", "  ".repeat(2 * depth)));
    for level in (0..depth).rev() {
        text.push_str(&format!("{}| chunks(2)\n", "  ".repeat(2 * level + 1)));
        text.push_str(&format!("{}-> session \"b\"\n", "  ".repeat(2 * level)));
    }
    let parse = prose_syntax::parse(&text);
    assert!(!parse.has_errors(), "{:?}", parse.errors());
    let form = prose_fmt::canonical(&parse);
    assert_eq!(form.matches("session \"b\"").count(), depth);
    assert_eq!(prose_fmt::canonical(&prose_syntax::parse(&form)), form);
}
