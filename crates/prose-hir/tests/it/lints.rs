//! What is never used or reached, comments that silence, and contracts of programs: what is reported, exactly where.

use prose_hir::{Change, FileContent, FileId, Tag, diagnostics};
use test_fixture::Fixture;

use crate::support::{file, found, load, place};

/// Findings of every file whose code is wanted are those marked by `# ^^^ CODE`.
#[track_caller]
fn marked(text: &str, wanted: impl Fn(&str) -> bool) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let mut expected: Vec<String> = Vec::new();
    for it in fixture.annotations() {
        let file = &fixture.files[it.file];
        let start = place(&file.text, (it.range.start as u32).into());
        for code in it.label.split_whitespace() {
            expected.push(format!("{} {start} {code}", file.path));
        }
    }
    let mut got = Vec::new();
    for (index, file) in fixture.files.iter().enumerate() {
        for it in found(&db, index).into_iter().filter(|it| wanted(it.code)) {
            let start = place(&file.text, it.range.start());
            got.push(format!("{} {start} {}", file.path, it.code));
        }
    }
    expected.sort();
    got.sort();
    assert_eq!(got, expected, "\nleft: found, right: marked, in\n{text}");
}

#[track_caller]
fn lints(text: &str) {
    marked(text, |code| code.starts_with("L4"));
}

#[track_caller]
fn everything(text: &str) {
    marked(text, |_| true);
}

#[test]
fn variables_that_nothing_reads() {
    lints(
        r#"
let notes = session "Take notes"
#   ^^^^^ L404
let used = session "Take more notes"
let _meant = session "Do something"
const limit = 3
#     ^^^^^ L404
for x in [1, 2]:
#   ^ L404
  session "Do it again"
for y, i in [1, 2]:
#      ^ L404
  session "Do {y}"
try:
  session "Try"
catch as err:
#        ^^^ L404
  session "Give up"
parallel:
  a = session "Named for the reader"
  b = session "This too"
session "Use"
  context: used
"#,
    );
    // The last statement's value is the program's.
    lints("let result = session \"Make it\"\n");
    lints("if false:\n  let result = session \"Make it\"\nelse:\n  let other = session \"Or this\"\n");
    // A block's last value is its result.
    lints(
        "block f:\n  let a = session \"A\"\n#     ^ L404\n  let b = session \"B\"\nlet c = do f\nsession \"{c}\"\n",
    );
    // Read by what is called.
    lints("block f:\n  session \"{a}\"\nlet a = session \"A\"\ndo f\n");
    // An assignment is no use.
    lints("let a = 1\n#   ^ L404\na = 2\nsession \"B\"\n");
    lints("let a = 1\na = a + 2\nsession \"B\"\n");
    // A library's names are for others.
    lints("block f(a):\n  let b = 1\n  session \"C\"\n");
}

#[test]
fn the_judge_knows_every_name() {
    lints("let a = session \"A\"\nif **the result is good**:\n  session \"B\"\nsession \"C\"\n");
    lints("let a = session \"A\"\nblock f:\n  if **it is good**:\n    session \"B\"\ndo f\nsession \"C\"\n");
    lints("if **it is good**:\n  session \"B\"\nlet a = session \"A\"\n#   ^ L404\nsession \"C\"\n");
    lints(
        "repeat 3:\n  if **it is good**:\n    session \"B\"\n  let a = session \"A\"\n  session \"C\"\nsession \"D\"\n",
    );
}

#[test]
fn the_judge_knows_no_name_of_what_comes_later_or_is_over() {
    lints(
        "if **it is good**:\n  session \"B\"\nrepeat 3 as n:\n#           ^ L404\n  session \"A\"\nsession \"C\"\n",
    );
    lints(
        "parallel for x in [1, 2]:\n  let y = session \"{x}\"\n#     ^ L404\n  session \"A\"\nif **it is good**:\n  session \"B\"\n",
    );
    lints(
        "parallel for x in [1, 2]:\n  let y = session \"{x}\"\n  if **it is good**:\n    session \"B\"\nsession \"C\"\n",
    );
}

#[test]
fn parameters_inputs_and_programs_that_nothing_uses() {
    lints(
        r#"
input topic: "T"
#     ^^^^^ L406
input other: "O"
block f(a, b):
#          ^ L405
  session "{a} {other}"
do f(1, 2)
input wait: "Go on?"
session "Go on"
"#,
    );
    lints(
        r#"
#- /main.prose
use "./agents.prose"
use "./lib.prose" as lib
#                    ^^^ L407
use "alice/search"
use "bob/never"
#    ^^^^^^^^^ L407
use "./missing.prose" as missing
agent a:
  prompt: "A"
  skills: ["search"]
session: helper
  prompt: "Help"
session: a
  prompt: "Do"
#- /agents.prose
agent helper:
  prompt: "H"
#- /lib.prose
output x = session "X"
"#,
    );
}

#[test]
fn a_damaged_statement_costs_no_other_its_uses() {
    lints("let a = session \"A\"\nsession \"B\n  context: a\nsession \"C\"\n");
    lints("let topic = session \"a\"\nsession \"b\"\n  context: topci\nsession \"C\"\n");
    lints("agent writer:\n  prompt: \"W\"\nsession: (writer\nsession \"C\"\n");
}

#[test]
fn statements_that_are_never_reached() {
    lints(
        r#"
block f(x):
  if **it is so**:
    throw "no"
    session "{x}"
#   ^^^^^^^^^^^^^ L408
  choice **which way**:
    option "a":
      output 1
    option "b":
      output 2
  session "never"
# ^^^^^^^^^^^^^^^ L408
let a = do f(1)
throw "end: {a}"
block g:
  session "G"
session "never"
#<^^^ L408
session "neither"
do g
"#,
    );
    lints("if **it is so**:\n  throw \"no\"\nsession \"yes\"\n");
    lints("do g\nthrow \"the end\"\nblock g:\n  session \"G\"\n");
}

#[test]
fn constructs_that_say_nothing() {
    lints(
        r#"
parallel:
#<^^^ L409
  session "A"
parallel:
  session "A"
  parallel:
# ^^^^^^^^ L412
    session "B"
    session "C"
parallel:
  session "A"
  parallel ("first"):
    session "B"
    session "C"
repeat 1:
#      ^ L410
  session "A"
loop until **done now** (max: 1):
#                             ^ L410
  session "A"
try:
  session "A"
catch:
  throw
# ^^^^^ L411
try:
  session "A"
catch:
  throw
finally:
  session "B"
let a = 1
session "A"
  context: [a, a]
#              ^ L413
agent root:
  prompt: "R"
  permissions:
# ^^^^^^^^^^^ L414
    write: ["**"]
    bash: allow
    network: allow
session: root
"#,
    );
}

#[test]
fn tags() {
    let db = load(&Fixture::parse(
        "import \"a\" from \"github:x/a\"\nagent b:\n  prompt: \"B\"\n  skills: [\"a\"]\nlet c = 1\nsession \"D\"\n",
    ));
    let tags: Vec<_> = found(&db, 0).into_iter().map(|it| (it.code, it.tags)).collect();
    assert_eq!(
        tags,
        [
            ("P304", vec![Tag::Deprecated]),
            ("L401", vec![Tag::Unnecessary]),
            ("L404", vec![Tag::Unnecessary]),
        ]
    );
}

#[test]
fn comments_silence() {
    everything(
        r#"
session "" # prose: allow W001
# prose: allow W001 because the agent knows
# and a comment between

session ""
  colour: "red"
# ^^^^^^ W005
session "B" # prose: allow W001
#                          ^^^^ P345
session """
# prose: allow W001
"""
block f:
    # prose: allow W001
    session ""
    session ""
#           ^^ W001
do f # prose: allow
#    ^^^^^^^^^^^^^^ P344
session "" # prose: allow W001 L402
#                              ^^^^ P345
do f # prose: allow W0O1, E022, W001
#                   ^^^^ P344
#                         ^^^^ P344
#                               ^^^^ P345
# prose: allowance is something else
do f
"#,
    );
}

#[test]
fn comments_reach_the_next_statement_wherever_it_stands() {
    // An indented comment stands at the end of what is above; what it speaks of is below.
    everything("block f:\n  session \"A\"\n  # prose: allow W001\nsession \"\"\ndo f\n");
    // The last line of a file.
    everything("session \"\" # prose: allow W001");
    everything("session \"A\"\n# prose: allow W001\n#              ^^^^ P345\n");
    everything("session \"\" # prose: allow W001\r\n");
    // What the whole file shows.
    everything("let a = 1 # prose: allow L404\nsession \"A\"\n");
}

#[test]
fn a_text_of_several_lines_is_silenced_as_a_whole() {
    everything(
        r#"
# prose: allow P340
session """
  Dear {customer},
  your {order} {left}
"""
session """
  Dear {customer}
""" # prose: allow P340
agent w:
  # prose: allow P340, P210
  prompt: |
    Dear {customer},
    your {order}
  model: opus # prose: allow P340
#                            ^^^^ P345
if ***
  the {thing}
***: # prose: allow P340
  session: w
session """
  Dear {customer}
#       ^^^^^^^^ P340
  # prose: allow P340
  your {order}
#       ^^^^^ P340
"""
"#,
    );
}

#[test]
fn errors_can_not_be_silenced() {
    everything("# prose: allow E007\n#              ^^^^ P346\nsession: nobody\n#        ^^^^^^ E007\n");
    // A wrong value at a code that is an error elsewhere.
    let db = load(&Fixture::parse("# prose: allow E007\nsession: nobody\n"));
    let about: Vec<_> = found(&db, 0).into_iter().map(|it| (it.code, it.about)).collect();
    assert_eq!(about, [("P346", Some("E007")), ("E007", None)]);
}

const LIB: &str = r#"
#- /lib.prose
input topic: "T"
input depth: [1] # prose: allow P217
output summary = session "Summarize {topic} {depth}"
output sources = session "List sources"
"#;

#[test]
fn results_are_checked_where_they_are_kept() {
    everything(&format!(
        r#"
#- /main.prose
use "./lib.prose" as research
let r = research(topic: "a")
let same = r
session "Use {{r.summary}} {{r.sumary}} {{same.other}}"
#                           ^^^^^^ E028
#                                         ^^^^^ E028
session "Use"
  context: [r.sources, same.length, r.nothing]
#                                     ^^^^^^^ E028
let {{ summary, missing }} = r
#              ^^^^^^^ E028
output a = summary
output b = missing
output d = research("b", 2, 3).summary
#                           ^ P240
output c = research(topic: "b", depht: 2).gone
#                               ^^^^^ E027
#                                         ^^^^ E028
parallel:
  left = research(topic: "c")
  right = research()
#         ^^^^^^^^ E026
session "Join {{left.sources}} {{right.source}}"
#                                   ^^^^^^ E028
{LIB}"#
    ));
    // What may be something else by then is left alone.
    everything(&format!(
        r#"
#- /main.prose
use "./lib.prose" as research
let r = research(topic: "a")
r = {{other: 1}}
session "Use {{r.other}}"
block f(x):
  session "{{x.anything}}"
do f(r)
{LIB}"#
    ));
}

#[test]
fn an_import_that_can_not_be_read_is_said_once() {
    everything(
        r#"
#- /main.prose
use "./missing.prose" as lib
#    ^^^^^^^^^^^^^^^ P151
let r = lib(anything: 1)
session: helper
  prompt: "{r.x}"
do gather(1, 2)
"#,
    );
    everything(
        r#"
#- /main.prose
use "https://example.com/x.prose" as lib
#    ^^^^^^^^^^^^^^^^^^^^^^^^^^^ P347
let r = lib(anything: 1)
session "{r.x}"
#- https://example.com/x.prose
"#,
    );
    // Also when a used file lacks one.
    everything(
        r#"
#- /main.prose
use "./lib.prose" as lib
let r = lib()
session: helper
  prompt: "{r}"
#- /lib.prose
use "./missing.prose"
#    ^^^^^^^^^^^^^^^ P151
session "Do it"
"#,
    );
}

#[test]
fn files_that_use_each_other() {
    everything(
        r#"
#- /main.prose
use "./b.prose" as b
#    ^^^^^^^^^ P152
let x = b(topic: "t")
session "{x}"
#- /b.prose
use "./main.prose" as main
#    ^^^^^^^^^^^^ P152
input topic: "T"
let y = main()
output z = "{topic} {y}"
"#,
    );
    let db = load(&Fixture::parse(
        "#- /main.prose\nuse \"./main.prose\" as again\ndo again()\n",
    ));
    let messages: Vec<_> = found(&db, 0)
        .into_iter()
        .filter(|it| it.code == "P152")
        .map(|it| it.message)
        .collect();
    assert_eq!(
        messages,
        ["this file uses itself: remove this; what is to run again belongs into a block"]
    );
}

#[test]
fn an_output_that_lost_its_name_ends_nothing() {
    everything("output 😀: 1\n#      ^^ E004\nsession \"A\"\n");
}

#[test]
fn longer_comparisons_in_words_are_none_of_two_words() {
    everything("let x = 1\nif x is equal to 1:\n#  ^^^^^^^^^^^^^^^ E004\n  session \"A\"\n");
}

#[test]
fn a_skill_is_brought_in_by_the_last_part_of_what_is_used() {
    everything(
        r#"
use "@org/style-guide" as style
agent ed:
  prompt: "Edit"
  skills: ["style-guide", "style", "guide"]
#                                  ^^^^^^^ W007
session: ed
"#,
    );
}

#[test]
fn a_change_of_the_used_file_is_seen_by_its_user() {
    let fixture = Fixture::parse(&format!(
        "#- /main.prose\nuse \"./lib.prose\" as research\nlet r = research(topic: \"a\")\nsession \"{{r.summary}}\"\n{LIB}"
    ));
    let mut db = load(&fixture);
    let codes = |db: &prose_hir::RootDatabase| {
        let all = diagnostics(db, file(db, 0));
        all.into_iter().map(|it| it.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&db), [] as [&str; 0]);
    let text = &fixture.files[1].text;
    let mut set = |content: FileContent| {
        let mut change = Change::new();
        change.files.push((FileId(1), "/lib.prose".into(), content));
        db.apply_change(change);
        codes(&db)
    };
    let text_of = |text: String| FileContent::Text(text.into());
    assert_eq!(set(text_of(text.replace("summary", "abstract"))), ["E028"]);
    assert_eq!(set(text_of(text.replace("topic", "subject"))), ["E026", "E027"]);
    assert_eq!(set(FileContent::Missing), ["P151"]);
    assert_eq!(set(text_of(text.clone())), [] as [&str; 0]);
}

#[test]
fn slips_in_words_are_said_once() {
    everything("let a = sesion \"x\"\n#       ^^^^^^ E004\nsession \"{a}\"\n");
    everything(
        "agent foo:\n  prompt: \"F\"\nlet b = sesion: foo\n#       ^^^^^^ E004\n  prompt: \"do it\"\nsession \"{b}\"\n",
    );
    everything(
        "output c = paralel:\n#          ^^^^^^^ E004\n  a = session \"A\"\n  b = session \"B\"\nsession \"C\"\n",
    );
    everything("sesion \"x\"\n#<^^^ E004\n");
    // One finding for one sum, however long it is.
    let sum = format!("let x = {}\nsession \"{{x}}\"\n", vec!["1"; 30_000].join(" + "));
    let db = load(&Fixture::parse(&sum));
    let codes: Vec<_> = found(&db, 0).into_iter().map(|it| it.code).collect();
    assert_eq!(codes, ["P106"]);
}
