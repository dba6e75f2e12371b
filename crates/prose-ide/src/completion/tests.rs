//! Completion at every place that has any, and at those that must have none.

mod words;

use expect_test::{Expect, expect};

use crate::fixture::setup;
use crate::{CompletionConfig, CompletionItem, CompletionKind};

fn items(fixture: &str, snippets: bool) -> Vec<CompletionItem> {
    let setup = setup(fixture);
    setup
        .analysis
        .completion(setup.position(), CompletionConfig { snippets })
        .unwrap()
}

#[track_caller]
fn check(fixture: &str, expect: Expect) {
    expect.assert_eq(&shown(fixture));
}

/// Checks several places with the same answer.
#[track_caller]
fn check_each<const N: usize>(fixtures: [&str; N], expect: Expect) {
    for fixture in fixtures {
        assert_eq!(shown(fixture), shown(fixtures[0]), "{fixture}");
    }
    expect.assert_eq(&shown(fixtures[0]));
}

/// The labels by kind, in the order in which they are proposed.
fn shown(fixture: &str) -> String {
    let mut out = String::new();
    let mut last = None;
    for item in items(fixture, false) {
        let kind = match item.kind {
            CompletionKind::Symbol(kind) => kind.as_str(),
            CompletionKind::Keyword => "keyword",
            CompletionKind::Property => "property",
            CompletionKind::Value => "value",
            CompletionKind::Field => "field",
        };
        if last != Some(kind) {
            if last.is_some() {
                out.push('\n');
            }
            out.push_str(kind);
            out.push(':');
            last = Some(kind);
        }
        out.push(' ');
        out.push_str(&item.label);
    }
    out
}

#[track_caller]
fn check_none(fixture: &str) {
    let labels: Vec<String> = items(fixture, true).into_iter().map(|it| it.label).collect();
    assert!(labels.is_empty(), "{labels:?}");
}

/// Applies the proposal with this label.
#[track_caller]
fn check_apply(fixture: &str, label: &str, snippets: bool, expect: Expect) {
    let setup = setup(fixture);
    let position = setup.position();
    let items = setup
        .analysis
        .completion(position, CompletionConfig { snippets })
        .unwrap();
    let item = items.iter().find(|it| it.label == label).unwrap_or_else(|| {
        panic!(
            "no {label} in {:?}",
            items.iter().map(|it| &it.label).collect::<Vec<_>>()
        )
    });
    let mut text = setup.text(position.file).to_owned();
    let range = usize::from(item.replace.start())..usize::from(item.replace.end());
    text.replace_range(range, item.snippet.as_deref().unwrap_or(&item.insert));
    expect.assert_eq(&text);
}

const AGENTS: &str = "agent writer:\n  model: opus\nagent critic:\n  persist: true\n";

fn with_agents(rest: &str) -> String {
    format!("{AGENTS}{rest}")
}

const LIB: &str = "#- /lib.prose\ninput topic: \"t\"\ninput depth: \"d\"\noutput findings = session \"f\"\noutput sources = session \"s\"\n";

fn with_lib(rest: &str) -> String {
    format!("#- /main.prose\nuse \"lib.prose\" as lib\n{rest}{LIB}")
}

// ---- agents --------------------------------------------------------------------------------------

#[test]
fn agents_after_session_and_resume() {
    check(&with_agents("session: $0"), expect!["agent: critic writer"]);
    check(&with_agents("session:$0"), expect!["agent: critic writer"]);
    check(&with_agents("resume: $0"), expect!["agent: critic writer"]);
    check(
        &with_agents("let x = session: $0\n"),
        expect!["agent: critic writer"],
    );
    check(
        &with_agents("output x = resume: wr$0\n"),
        expect!["agent: critic writer"],
    );
    check(
        &with_agents("session: wr$0iter\n  prompt: \"x\"\n"),
        expect!["agent: critic writer"],
    );
    check(
        &with_agents("session \"a\" -> session: $0\n"),
        expect!["agent: critic writer"],
    );
    check(
        &with_agents("parallel:\n  a = session: $0\n"),
        expect!["agent: critic writer"],
    );
}

#[test]
fn agents_after_a_named_session() {
    check(&with_agents("session draft: $0"), expect!["agent: critic writer"]);
    check(
        &with_agents("block b:\n  session draft: $0\nsession \"x\"\n"),
        expect!["agent: critic writer"],
    );
}

#[test]
fn agents_of_used_files() {
    check(
        "#- /main.prose\nuse \"lib.prose\"\nsession: $0\n#- /lib.prose\nagent helper:\n  model: opus\n",
        expect!["agent: helper"],
    );
}

#[test]
fn agents_replace_the_whole_word() {
    check_apply(
        &with_agents("session: cr$0itt\n"),
        "critic",
        true,
        expect![[r#"
            agent writer:
              model: opus
            agent critic:
              persist: true
            session: critic
        "#]],
    );
}

#[test]
fn no_agents_behind_an_agent() {
    check_none(&with_agents("session: writer $0"));
    check_none(&with_agents("session $0"));
}

// ---- blocks --------------------------------------------------------------------------------------

const BLOCKS: &str = "block review(text, depth):\n  session \"x\"\nblock plain:\n  session \"y\"\n";

#[test]
fn blocks_after_do() {
    check(&format!("{BLOCKS}do $0"), expect!["block: plain review"]);
    check(&format!("{BLOCKS}do re$0\n"), expect!["block: plain review"]);
    check(
        &format!("{BLOCKS}let x = do $0\n"),
        expect!["block: plain review"],
    );
    check(
        &format!("{BLOCKS}if **a**:\n  do $0\n"),
        expect!["block: plain review"],
    );
    check(
        &format!("{BLOCKS}session \"a\" -> do $0\n"),
        expect!["block: plain review"],
    );
    // Hoisted.
    check("do $0\nblock later:\n  session \"x\"\n", expect!["block: later"]);
    check(&with_lib("do $0\n"), expect!["program: lib"]);
}

#[test]
fn blocks_bring_their_arguments() {
    check_apply(
        "block f(a, b):\n  session \"x\"\ndo $0\n",
        "f",
        true,
        expect![[r#"
        block f(a, b):
          session "x"
        do f(${1:a}, ${2:b})
    "#]],
    );
    check_apply(
        "block f(a, b):\n  session \"x\"\ndo $0\n",
        "f",
        false,
        expect![[r#"
        block f(a, b):
          session "x"
        do f
    "#]],
    );
    check_apply(
        "block f(a, b):\n  session \"x\"\ndo $0(1)\n",
        "f",
        true,
        expect![[r#"
        block f(a, b):
          session "x"
        do f(1)
    "#]],
    );
}

#[test]
fn programs_bring_their_inputs() {
    check_apply(
        &with_lib("let x = li$0\n"),
        "lib",
        true,
        expect![[r#"
        use "lib.prose" as lib
        let x = lib(topic: ${1:topic}, depth: ${2:depth})
    "#]],
    );
    check(
        &with_lib("let a = \"1\"\nlet x = lib(topic: a, $0)\n"),
        expect![[r#"
        field: depth
        variable: a
        keyword: false null true"#]],
    );
    check_apply(
        &with_lib("let x = lib($0)\n"),
        "topic",
        false,
        expect![[r#"
        use "lib.prose" as lib
        let x = lib(topic: )
    "#]],
    );
    check(
        &with_lib("let a = \"1\"\nlet x = lib(topic: $0)\n"),
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
}

// ---- expressions -----------------------------------------------------------------------------------

#[test]
fn values() {
    check(
        "let a = \"1\"\nconst b = 2\nlet c = $0\n",
        expect![[r#"
        variable: a
        constant: b
        keyword: choice do for if loop parallel repeat resume session try false null true"#]],
    );
    check(
        "let a = \"1\"\nlet c = a + $0\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = \"1\"\noutput $0\n",
        expect![[r#"
        variable: a
        keyword: choice do for if loop parallel repeat resume session try false null true"#]],
    );
    check(
        "let a = [1]\nfor x in $0\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 1\nif $0\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 1\nif a == 1 and $0:\n  session \"x\"\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 1\nloop until $0\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 3\nrepeat $0\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 3\nblock f(x):\n  session \"x\"\ndo f($0)\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 3\nblock f(x, y):\n  session \"x\"\ndo f(a, $0)\n",
        expect![[r#"
        variable: a
        keyword: false null true"#]],
    );
    check(
        "let a = 3\nlet b = [a, $0]\n",
        expect![[r#"
        variable: a
        keyword: choice do for if loop parallel repeat resume session try false null true"#]],
    );
}

#[test]
fn names_follow_scope() {
    check(
        "block f(p):\n  let inner = session \"x\"\n  let c = 1 + $0\nlet outer = 1\n",
        expect![[r#"
        variable: inner outer
        parameter: p
        keyword: false null true"#]],
    );
    check(
        "for x, i in [1]:\n  let c = 1 + $0\n",
        expect![[r#"
        loop variable: i x
        keyword: false null true"#]],
    );
    check(
        "for x in [1]:\n  session \"y\"\nlet later = 1 + $0\n",
        expect!["keyword: false null true"],
    );
    check(
        "try:\n  session \"x\"\ncatch as err:\n  throw $0\n",
        expect![[r#"
        loop variable: err
        keyword: false null true"#]],
    );
    check(
        "let xs = [1]\nlet ys = xs | map:\n  session \"y\"\n    context: $0\n",
        expect![[r#"
        loop variable: item
        variable: xs"#]],
    );
}

#[test]
fn declared_names_have_no_proposals() {
    check_none("let a$0 = 1\n");
    check_none("let $0\n");
    check_none("const a$0\n");
    check_none("agent $0\n");
    check_none("block $0\n");
    check_none("block f($0)\n");
    check_none("input $0\n");
    check_none("input topic: $0\n");
    check_none("for $0\n");
    check_none("for x, $0\n");
    check_none("repeat 3 as $0:\n");
    check_none("use $0\n");
    check_none("let xs = [1]\nlet y = xs | reduce($0\n");
}

// ---- context ---------------------------------------------------------------------------------------

#[test]
fn context() {
    let program = "agent mind:\n  persist: true\nagent plain:\n  model: opus\nlet a = \"1\"\nlet b = \"2\"\nsession \"x\"\n";
    check_each(
        [
            &format!("{program}  context: $0"),
            &format!("{program}  context: $0\n  prompt: \"y\"\n"),
            &format!("{program}  context: [$0"),
            &format!("{program}  context: [a, $0"),
            &format!("{program}  context: [a, $0]\n"),
            &format!("{program}  context: {{$0"),
            &format!("{program}  context: {{ a, $0 }}\n"),
            &format!("{program}  context: {{\n    a,\n    $0\n  }}\n"),
            &format!("{program}  context: [$0\nsession \"z\"\n"),
            &format!("{program}  context: a, $0\n"),
            &program.replace("session \"x\"\n", "session \"x\" context: $0\n"),
            &program.replace("session \"x\"\n", "let r = session \"x\"\n  context: [$0\n"),
        ],
        expect![[r#"
            variable: a b
            agent: mind"#]],
    );
    check_none(&format!("{program}  context: a $0\n"));
}

// ---- texts -----------------------------------------------------------------------------------------

#[test]
fn interpolations() {
    check_each(
        [
            "let topic = \"x\"\nsession \"about {$0",
            "let topic = \"x\"\nsession \"about {$0}\"\n",
            "let topic = \"x\"\nsession \"about {to$0pic} now\"\n",
            "let topic = \"x\"\nsession \"\"\"\n  about {to$0\n\"\"\"\n",
            "let topic = \"x\"\nsession \"x\"\n  prompt: \"about {$0\"\n",
            "let topic = \"x\"\nif **good {$0**:\n  session \"x\"\n",
            "let topic = \"x\"\nloop until ***\n  done with {t$0}\n***:\n  session \"x\"\n",
            "let topic = \"x\"\ninput go: \"on with {$0}?\"\n",
        ],
        expect!["variable: topic"],
    );
    // Not closed yet, its lines at column 0.
    check(
        "block f(topic):\n  session \"x\"\n    prompt: \"\"\"\nabout\n{to$0",
        expect!["parameter: topic"],
    );
    check_apply(
        "let topic = \"x\"\nsession \"about {to$0} now\"\n",
        "topic",
        true,
        expect![[r#"
        let topic = "x"
        session "about {topic} now"
    "#]],
    );
}

#[test]
fn plain_text_has_no_proposals() {
    let start = "let topic = \"x\"\n";
    check_none(&format!("{start}session \"about to$0\""));
    check_none(&format!("{start}session \"about to$0"));
    check_none(&format!("{start}session $0\"about\""));
    check_none(&format!("{start}session \"about\"$0"));
    check_none(&format!("{start}session \"\"\"\nsess$0\n\"\"\"\n"));
    check_none(&format!("{start}session \"\"\"\n  agent $0"));
    check_none(&format!("{start}session \"x\"\n  prompt: \"to$0\"\n"));
    check_none(&format!(
        "{start}session \"x\"\n  prompt: \"\"\"\n    model: $0\n  \"\"\"\n"
    ));
    check_none(&format!("{start}if **to$0**:\n"));
    check_none(&format!("{start}session \"a {{x}} b$0\"\n"));
    check_none(&format!("{start}session \"{{ \\\"a\\\": $0 }}\"\n"));
    check_none(&format!("{start}session \"${{t$0}}\"\n"));
    check_none(&format!("{start}session \"{{{{t$0}}}}\"\n"));
    check_none("use \"al$0\"\n");
    check_none("use \"{$0\"\n");
    check_none("agent a:\n  skills: [\"$0\"]\n");
    check_none("agent a:\n  skills: [$0]\n");
    check_none("choice **x**:\n  option \"{$0\":\n");
}

#[test]
fn comments_have_no_proposals() {
    check_none("# ses$0");
    check_none("session \"x\" # $0\nsession \"y\"\n");
    check_none("agent a:\n  # mo$0\n  model: opus\n");
    check_none("let a = \"1\"\n  # {$0\n");
}

// ---- members ---------------------------------------------------------------------------------------

#[test]
fn members() {
    check(
        &with_lib("let r = lib(topic: \"a\")\nsession \"x\"\n  context: r.$0\n"),
        expect!["field: findings sources"],
    );
    check(
        &with_lib("let r = lib(topic: \"a\")\nlet s = r.f$0\n"),
        expect!["field: findings sources"],
    );
    check(
        &with_lib("let r = lib(topic: \"a\")\nsession \"see {r.$0}\"\n"),
        expect!["field: findings sources"],
    );
    check(
        "try:\n  session \"x\"\ncatch as err:\n  session \"fix {err.$0\"\n",
        expect!["field: attempts kind message statement"],
    );
    check(
        "try:\n  session \"x\"\ncatch as err:\n  throw err.$0\n",
        expect!["field: attempts kind message statement"],
    );
    check(
        "let r = { a: 1, b: { c: 2 } }\nlet s = r.$0\n",
        expect!["field: a b"],
    );
    check(
        "let r = { a: 1, b: { c: 2 } }\nlet s = r.b.$0\n",
        expect!["field: c"],
    );
    check("let r = { a: 1 }\nlet q = r\nlet s = q.$0\n", expect!["field: a"]);
    check("let r = [1]\nif r.$0\n", expect!["field: count length"]);
    check(
        "let r = parallel:\n  a = session \"x\"\n  b = session \"y\"\nlet s = r.$0\n",
        expect!["field: a b"],
    );
    check(
        "let r = parallel:\n  a = session \"x\"\n  session \"y\"\nlet s = r.$0\n",
        expect!["field: count length"],
    );
    check(
        "block f:\n  output a = session \"x\"\n  output b = session \"y\"\nlet r = do f\nlet s = r.$0\n",
        expect!["field: a b"],
    );
    check_none("let r = session \"x\"\nlet s = r.$0\n");
    check_none("let s = nothing.$0\n");
    check_none("let a = a\nlet s = a.$0\n");
}

#[test]
fn keys_of_a_pattern() {
    check(
        &with_lib("let { $0 } = lib(topic: \"a\")\n"),
        expect!["field: findings sources"],
    );
    check(
        &with_lib("let { findings, $0 } = lib(topic: \"a\")\n"),
        expect!["field: sources"],
    );
}
