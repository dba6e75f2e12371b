//! Names for the editor.

use expect_test::{Expect, expect};
use prose_hir::{definitions, name_at, references, resolve_at, scope_at};
use prose_syntax::TextSize;
use test_fixture::Fixture;

use crate::support::{file, load, place};

/// The definition of the name at `$0` is at the place marked `def`, in any file; `none` when there is no mark.
#[track_caller]
fn defined(text: &str) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let (at, offset) = fixture.offset();
    let got = resolve_at(&db, file(&db, at), TextSize::new(offset as u32));
    let got = got.map(|it| {
        (
            it.file.0 as usize,
            usize::from(it.range.start())..usize::from(it.range.end()),
        )
    });
    let mark = fixture
        .annotations()
        .into_iter()
        .find(|it| it.label == "def")
        .map(|it| (it.file, it.range));
    assert_eq!(got, mark, "{text}");
}

/// All places of the name at `$0`, with how it is used.
#[track_caller]
fn places(text: &str, expect: Expect) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let (at, offset) = fixture.offset();
    let def = resolve_at(&db, file(&db, at), TextSize::new(offset as u32)).unwrap();
    let mut out = String::new();
    for it in references(&db, &def) {
        let file = &fixture.files[it.file.0 as usize];
        out.push_str(&format!(
            "{} {} {:?}\n",
            file.path,
            place(&file.text, it.range.start()),
            it.role
        ));
    }
    expect.assert_eq(&out);
}

#[track_caller]
fn visible(text: &str, expect: Expect) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let (at, offset) = fixture.offset();
    let names: Vec<String> = scope_at(&db, file(&db, at), TextSize::new(offset as u32))
        .into_iter()
        .map(|it| format!("{} {}", it.kind.noun(), it.name))
        .collect();
    expect.assert_eq(&names.join(", "));
}

#[test]
fn definition_in_code_and_in_texts() {
    defined("let draft = 1\n#   ^^^^^ def\nsession \"x\"\n  context: dr$0aft\n");
    defined("let draft = 1\n#   ^^^^^ def\nsession \"Improve {draft$0}\"\n");
    defined("let draft = {a: 1}\n#   ^^^^^ def\nsession \"\"\"\n  Improve {$0draft.a}\n\"\"\"\n");
    defined("let draft = 1\n#   ^^^^^ def\nif **{draft$0} is good**:\n  session \"x\"\n");
    defined("let ready = true\n#   ^^^^^ def\nif ** rea$0dy **:\n  session \"x\"\n");
    defined("session \"Plain {text$0}\"\n");
    defined("if **rea$0dy**:\n  session \"x\"\n");
}

#[test]
fn definition_of_globals_across_files() {
    defined(
        "#- /main.prose\nuse \"lib.prose\"\nsession: help$0er\n#- /lib.prose\nagent helper:\n#     ^^^^^^ def\n  prompt: \"x\"\n",
    );
    defined(
        "#- /main.prose\nuse \"lib.prose\"\ndo sha$0red\n#- /lib.prose\nblock shared:\n#     ^^^^^^ def\n  session \"x\"\n",
    );
    defined("use \"alice/research\" as res\n#                       ^^^ def\nlet x = re$0s(topic: 1)\n");
    defined("use \"alice/research\"\n#    ^^^^^^^^^^^^^^ def\nlet x = res$0earch(topic: 1)\n");
}

#[test]
fn definition_is_the_nearest_before() {
    defined("if **a is so**:\n  let x = 1\nelse:\n  let x = 2\n#     ^ def\noutput y = x$0\n");
    defined("let x = 1\n#   ^ def\nx = 2\noutput y = x$0\n");
    defined("let item = 1\nlet xs = [1] | map:\n#              ^^^ def\n  session \"{it$0em}\"\n");
    defined("for x in [1]:\n  session \"a\"\nfor x in [2]:\n#   ^ def\n  session \"{x$0}\"\n");
}

#[test]
fn references_follow_slots() {
    places(
        r#"
let dra$0ft = session "Write"
draft = session "Improve {draft}"
block f(draft):
  session "Other {draft}"
do f(draft)
if **draft**:
  output result = draft
parallel for x in [1]:
  let draft = x
"#,
        expect![[r#"
            /main.prose 1:5 None
            /main.prose 2:1 Some(Assign)
            /main.prose 2:27 Some(Insert)
            /main.prose 5:6 Some(Value)
            /main.prose 6:6 Some(Bare)
            /main.prose 7:19 Some(Value)
        "#]],
    );
    places(
        r#"
#- /main.prose
use "lib.prose"
do shared(1)
block mine:
  do shar$0ed(2)
do mine
#- /lib.prose
block shared(x):
  do shared(x - 1)
"#,
        expect![[r#"
            /main.prose 2:4 Some(Do)
            /main.prose 4:6 Some(Do)
            /lib.prose 1:7 None
            /lib.prose 2:6 Some(Do)
        "#]],
    );
    // A block writes to the variable of its caller.
    places(
        "let n$0 = 0\nblock up:\n  n = n + 1\ndo up\noutput total = n\n",
        expect![[r#"
            /main.prose 1:5 None
            /main.prose 3:3 Some(Assign)
            /main.prose 3:7 Some(Value)
            /main.prose 5:16 Some(Value)
        "#]],
    );
}

#[test]
fn visible_names() {
    visible(
        "let a = 1\nblock f(p):\n  let inner = 2\n  $0\nlet late = 3\nagent g:\n  prompt: \"x\"\n",
        expect!["variable a, block f, agent g, variable inner, variable late, parameter p"],
    );
    visible("let a = 1\nlet b = $0\nlet c = 2\n", expect!["variable a"]);
    visible(
        "for x, i in [1]:\n  let y = x\n  session \"{$0\"\n",
        expect!["loop index i, loop variable x, variable y"],
    );
    visible("for x, i in [1]:\n  let y = x\n$0", expect![""]);
    visible(
        "let r = [1] | map:\n  $0session \"x\"\n",
        expect!["pipeline variable item"],
    );
    visible(
        "use \"a/tool\" as t\nparallel:\n  x = session \"1\"\n$0",
        expect!["imported program t, branch result x"],
    );
}

#[test]
fn outline_of_definitions() {
    let fixture =
        Fixture::parse("let a = 1\na = 2\nb = 3\nblock f(p):\n  let c = p\nagent g:\n  prompt: \"x\"\n");
    let db = load(&fixture);
    let out: Vec<String> = definitions(&db, file(&db, 0))
        .iter()
        .map(|it| format!("{} {} in {:?}", it.kind.noun(), it.name, it.block))
        .collect();
    expect![[r#"
        variable a in None
        variable b in None
        block f in None
        parameter p in Some("f")
        variable c in Some("f")
        agent g in None"#]]
    .assert_eq(&out.join("\n"));
}

#[test]
fn no_place_makes_it_fail() {
    let text = "let é = \"{é}\"\nfor x in [é]:\n  session \"ü {x} {\"\n\n  \nif **é**:\n\tdo é(";
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let source = file(&db, 0);
    for offset in 0..text.len() as u32 + 5 {
        name_at(&db, source, offset.into());
        scope_at(&db, source, offset.into());
    }
}

#[test]
fn blanks_at_the_end_of_a_line_belong_to_it() {
    visible(
        "block f(p):\n  session \"x\"   $0",
        expect!["block f, parameter p"],
    );
    visible(
        "block f(p):\n  session \"x\"   $0\nsession \"y\"\n",
        expect!["block f, parameter p"],
    );
    visible(
        "block f(p):\n  if **it is so**:\n    session \"x\"\t$0\n",
        expect!["block f, parameter p"],
    );
    visible("block f(p):\n  session \"x\"\n$0", expect!["block f"]);
}
