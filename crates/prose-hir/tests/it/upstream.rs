//! Every check of upstream's compiler.md: each row of `docs/compiler-checks.md` has a program here, which shows what the row says.

use std::collections::BTreeSet;

use prose_model::codes;
use test_fixture::Fixture;

use crate::support::{found, load};

/// Section, condition, program.
const CASES: &[(&str, &str, &str)] = &[
    (
        "Strings",
        "a string has no closing quotes",
        r#"session "Take notes
"#,
    ),
    (
        "Strings",
        "a backslash before a character that needs none",
        r#"session "a \q b"
"#,
    ),
    (
        "Strings",
        "the text of a session is empty",
        r#"session ""
"#,
    ),
    (
        "Strings",
        "`{name}` in a text, and nothing has that name",
        r#"session "About {topic}"
"#,
    ),
    (
        "Strings",
        "`{name}` in a text, one letter away from a name in sight",
        r#"input topic: "What about"
session "About {topci} and {topic}"
"#,
    ),
    (
        "Use",
        "the path is empty",
        r#"use "" as x
"#,
    ),
    (
        "Use",
        "the path has no known form",
        r#"use "some program" as x
x()
"#,
    ),
    (
        "Use",
        "the same program twice",
        r#"use "alice/x"
use "alice/x" as y
x()
y()
"#,
    ),
    (
        "Use",
        "two programs of one name, neither renamed",
        r#"use "alice/x"
use "bob/x"
x()
"#,
    ),
    (
        "Inputs",
        "no name",
        r#"input : "What"
"#,
    ),
    (
        "Inputs",
        "no description",
        r#"input topic: ""
session "{topic}"
"#,
    ),
    (
        "Inputs",
        "the same name twice",
        r#"input a: "A"
input a: "B"
session "{a}"
"#,
    ),
    (
        "Inputs",
        "an input after something that runs",
        r#"session "Take notes"
input next: "What now"
session "{next}"
"#,
    ),
    (
        "Outputs",
        "no name",
        r#"output: session "Take notes"
"#,
    ),
    (
        "Outputs",
        "the same name twice",
        r#"output a = 1
output a = 2
"#,
    ),
    (
        "Outputs",
        "the name of a variable",
        r#"let a = session "A"
output a = session "B"
session "{a}"
"#,
    ),
    (
        "Calls of programs",
        "a name that no `use` declares",
        r#"let x = research(topic: "tides")
output x = x
"#,
    ),
    (
        "Calls of programs",
        "an input without a default is not given",
        r#"#- /main.prose
use "./lib.prose" as lib
lib()
#- /lib.prose
input topic: "T"
output found = session "Find {topic}"
"#,
    ),
    (
        "Calls of programs",
        "a name that is no input of the program",
        r#"#- /main.prose
use "./lib.prose" as lib
lib(topic: "a", depth: 1)
#- /lib.prose
input topic: "T"
output found = session "Find {topic}"
"#,
    ),
    (
        "Calls of programs",
        "a name that is no output of the program",
        r#"#- /main.prose
use "./lib.prose" as lib
let r = lib(topic: "a")
session "Use {r.result}"
#- /lib.prose
input topic: "T"
output found = session "Find {topic}"
"#,
    ),
    (
        "Agents",
        "two agents of one name",
        r#"agent a:
  prompt: "A"
agent a:
  prompt: "B"
session: a
"#,
    ),
    (
        "Agents",
        "a model that is no name",
        r#"agent a:
  model: 3
  prompt: "A"
session: a
"#,
    ),
    (
        "Agents",
        "a model by an unknown name",
        r#"agent a:
  model: gpt
  prompt: "A"
session: a
"#,
    ),
    (
        "Agents",
        "an empty `prompt:`",
        r#"agent a:
  prompt: ""
session: a
  prompt: "Do it"
"#,
    ),
    (
        "Agents",
        "the same property twice",
        r#"agent a:
  prompt: "A"
  prompt: "B"
session: a
"#,
    ),
    (
        "Sessions",
        "neither text nor agent",
        r#"session
"#,
    ),
    (
        "Sessions",
        "an agent that is not declared",
        r#"session: writer
  prompt: "Write"
"#,
    ),
    (
        "Sessions",
        "an empty text",
        r#"session ""
"#,
    ),
    (
        "Sessions",
        "a text of blanks only",
        r#"session "   "
"#,
    ),
    ("Sessions", "a text of more than 10,000 characters", r#"LONG"#),
    (
        "Sessions",
        "the same property twice",
        r#"session "Write"
  retry: 1
  retry: 2
"#,
    ),
    (
        "Resume",
        "an agent without `persist:`",
        r#"agent a:
  prompt: "A"
session: a
resume: a
  prompt: "Go on"
"#,
    ),
    (
        "Resume",
        "no memory yet",
        r#"agent a:
  persist: true
  prompt: "A"
resume: a
  prompt: "Go on"
"#,
    ),
    (
        "Resume",
        "`session:` where there is a memory to go on with",
        r#"agent a:
  persist: true
  prompt: "A"
session: a
session: a
"#,
    ),
    (
        "Resume",
        "an agent that is not declared",
        r#"resume: writer
  prompt: "Go on"
"#,
    ),
    (
        "Variables and context",
        "the same name twice",
        r#"let a = 1
let a = 2
session "{a}"
"#,
    ),
    (
        "Variables and context",
        "a constant is assigned",
        r#"const a = 1
a = 2
session "{a}"
"#,
    ),
    (
        "Variables and context",
        "a name that nothing declares",
        r#"let a = b
output a = a
"#,
    ),
    (
        "Variables and context",
        "a variable is read before its declaration",
        r#"let a = b
let b = 1
output a = a
"#,
    ),
    (
        "Variables and context",
        "a variable named like an agent",
        r#"agent a:
  prompt: "A"
let a = session: a
"#,
    ),
    (
        "Variables and context",
        "a name in `context:` that nothing declares",
        r#"session "Write"
  context: notes
"#,
    ),
    (
        "Variables and context",
        "an element of a context list that is no name",
        r#"session "Write"
  context: ["Be brief"]
"#,
    ),
    (
        "One name, one variable",
        "a body declares a variable that is there already",
        r#"let a = session "A"
for x in [1, 2]:
  let a = session "B {x}"
session "{a}"
"#,
    ),
    (
        "One name, one variable",
        "two branches of one `if` declare the same name",
        r#"if **it rains**:
  let a = session "A"
else:
  let a = session "B"
session "{a}"
"#,
    ),
    (
        "One name, one variable",
        "a parameter hides a variable",
        r#"let a = session "A"
block f(a):
  session "{a}"
do f(a)
"#,
    ),
    (
        "One name, one variable",
        "two branches of one `parallel:` have the same name",
        r#"parallel:
  a = session "A"
  a = session "B"
session "{a}"
"#,
    ),
    (
        "Blocks with parameters",
        "another number of arguments than parameters",
        r#"block f(a, b):
  session "{a} {b}"
do f(1)
"#,
    ),
    (
        "Blocks with parameters",
        "a parameter hides a variable",
        r#"let a = session "A"
block f(a):
  session "{a}"
do f(a)
"#,
    ),
    (
        "Blocks",
        "a block that is not declared",
        r#"do gather
"#,
    ),
    (
        "Blocks",
        "two blocks of one name",
        r#"block f:
  session "A"
block f:
  session "B"
do f
"#,
    ),
    (
        "Blocks",
        "a block and an agent of one name",
        r#"agent f:
  prompt: "F"
block f:
  session: f
do f
"#,
    ),
    (
        "Blocks",
        "no name",
        r#"block:
  session "A"
"#,
    ),
    (
        "Parallel",
        "a strategy that is not known",
        r#"parallel ("most"):
  session "A"
  session "B"
"#,
    ),
    (
        "Parallel",
        "a policy that is not known",
        r#"parallel (on-fail: "retry"):
  session "A"
  session "B"
"#,
    ),
    (
        "Parallel",
        r#"`count:` without the strategy "any""#,
        r#"parallel (count: 1):
  session "A"
  session "B"
"#,
    ),
    (
        "Parallel",
        "a `count:` below 1",
        r#"parallel ("any", count: 0):
  session "A"
  session "B"
"#,
    ),
    (
        "Parallel",
        "a `count:` above the number of branches",
        r#"parallel ("any", count: 3):
  session "A"
  session "B"
"#,
    ),
    (
        "Parallel",
        "two branches of one name",
        r#"parallel:
  a = session "A"
  a = session "B"
session "{a}"
"#,
    ),
    (
        "Parallel",
        "a branch named like an agent",
        r#"agent a:
  prompt: "A"
parallel:
  a = session: a
  b = session "B"
session "{b}"
"#,
    ),
    (
        "Parallel",
        "a name in a record of `context:` that nothing declares",
        r#"session "Write"
  context: {notes}
"#,
    ),
    (
        "Loops with a number",
        "a number of rounds below 1",
        r#"repeat 0:
  session "A"
"#,
    ),
    (
        "Loops with a number",
        "a number of rounds with a fraction",
        r#"repeat 2.5:
  session "A"
"#,
    ),
    (
        "Loops with a number",
        "a list that nothing declares",
        r#"for x in items:
  session "{x}"
"#,
    ),
    (
        "Loops with a number",
        "the variable hides another",
        r#"let x = session "X"
for x in [1, 2]:
  session "{x}"
session "{x}"
"#,
    ),
    (
        "Loops without a number",
        "neither a condition nor `max:`",
        r#"loop:
  session "A"
"#,
    ),
    (
        "Loops without a number",
        "a `max:` below 1",
        r#"loop until **it is done** (max: 0):
  session "A"
"#,
    ),
    (
        "Loops without a number",
        "a `max:` with a fraction",
        r#"loop until **it is done** (max: 1.5):
  session "A"
"#,
    ),
    (
        "Loops without a number",
        "an empty condition",
        r#"loop until ****:
  session "A"
"#,
    ),
    (
        "Loops without a number",
        "a condition of one or two characters",
        r#"loop until **ok** (max: 3):
  session "A"
"#,
    ),
    (
        "Loops without a number",
        "the variable hides another",
        r#"let i = session "I"
loop until **it is done** (max: 3) as i:
  session "{i}"
session "{i}"
"#,
    ),
    (
        "Pipelines",
        "a list that nothing declares",
        r#"let a = items | map:
  session "{item}"
output a = a
"#,
    ),
    (
        "Pipelines",
        "an operation that is not known",
        r#"let xs = [1]
let a = xs | sort:
  session "{item}"
output a = a
"#,
    ),
    (
        "Pipelines",
        "`reduce` without its two names",
        r#"let xs = [1]
let a = xs | reduce:
  session "{xs}"
output a = a
"#,
    ),
    (
        "Pipelines",
        "a name of `reduce` hides another",
        r#"let xs = [1]
let acc = session "A"
let a = xs | reduce(acc, x):
  session "{acc} {x}"
output a = a
session "{acc}"
"#,
    ),
    (
        "Pipelines",
        "the `item` of an operation hides a variable `item`",
        r#"let item = session "A"
let a = [1] | map:
  session "{item}"
output a = a
session "{item}"
"#,
    ),
    (
        "Errors",
        "`try:` with neither `catch:` nor `finally:`",
        r#"try:
  session "A"
"#,
    ),
    (
        "Errors",
        "the error variable hides another",
        r#"let err = session "E"
try:
  session "A"
catch as err:
  session "{err}"
session "{err}"
"#,
    ),
    (
        "Errors",
        "`throw` with an empty message",
        r#"throw ""
"#,
    ),
    (
        "Errors",
        "a negative `retry:`",
        r#"session "A"
  retry: -1
"#,
    ),
    (
        "Errors",
        "a `retry:` with a fraction",
        r#"session "A"
  retry: 1.5
"#,
    ),
    (
        "Errors",
        "a `retry:` above 10",
        r#"session "A"
  retry: 11
"#,
    ),
    (
        "Errors",
        "a `backoff:` that is not known",
        r#"session "A"
  retry: 2
  backoff: "slowly"
"#,
    ),
    (
        "Errors",
        "`retry:` on an agent",
        r#"agent a:
  prompt: "A"
  retry: 2
session: a
"#,
    ),
    (
        "Choices",
        "no option",
        r#"choice **which one is best**:
"#,
    ),
    (
        "Choices",
        "empty criteria",
        r#"choice ****:
  option "a":
    session "A"
"#,
    ),
    (
        "Choices",
        "two options of one label",
        r#"choice **which one is best**:
  option "a":
    session "A"
  option "a":
    session "B"
"#,
    ),
    (
        "Choices",
        "an option with nothing in it",
        r#"choice **which one is best**:
  option "a":
  option "b":
    session "B"
"#,
    ),
    (
        "Conditions",
        "an empty condition",
        r#"if ****:
  session "A"
"#,
    ),
    (
        "Conditions",
        "`elif` without `if`",
        r#"elif **so it is**:
  session "A"
"#,
    ),
    (
        "Conditions",
        "`else` without `if`",
        r#"else:
  session "A"
"#,
    ),
    (
        "Conditions",
        "a second `else`",
        r#"if **so it is**:
  session "A"
else:
  session "B"
else:
  session "C"
"#,
    ),
    (
        "Conditions",
        "a branch with nothing in it",
        r#"if **so it is**:
else:
  session "B"
"#,
    ),
    (
        "Numbered, in no table",
        "a token that can't stand there",
        r#"session "A" ]
"#,
    ),
    (
        "Numbered, in no table",
        "something is missing",
        r#"agent:
  prompt: "A"
"#,
    ),
    (
        "Numbered, in no table",
        "`skills:` is no list",
        r#"agent a:
  prompt: "A"
  skills: 3
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a skill that is no text",
        r#"agent a:
  prompt: "A"
  skills: [3]
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "`permissions:` is no block",
        r#"agent a:
  prompt: "A"
  permissions: "all"
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a pattern of a permission that is no text",
        r#"agent a:
  prompt: "A"
  permissions:
    read: [3]
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a property that is not known",
        r#"session "A"
  colour: "red"
"#,
    ),
    (
        "Numbered, in no table",
        "an `import` from a source of no known kind",
        r#"import "search" from "somewhere"
agent a:
  prompt: "A"
  skills: ["search"]
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a skill that the file does not bring in",
        r#"agent a:
  prompt: "A"
  skills: ["search"]
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a permission that is not known",
        r#"agent a:
  prompt: "A"
  permissions:
    fly: allow
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "a value of a permission that is not known",
        r#"agent a:
  prompt: "A"
  permissions:
    bash: maybe
session: a
"#,
    ),
    (
        "Numbered, in no table",
        "an empty list of skills",
        r#"agent a:
  prompt: "A"
  skills: []
session: a
"#,
    ),
];

/// A row: section, condition, upstream, here.
fn rows(page: &str) -> Vec<[String; 4]> {
    let mut section = "";
    let mut out = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        if let [condition, upstream, here, _] = cells.as_slice()
            && let Some(condition) = condition.strip_prefix("| ")
            && condition != "condition"
        {
            out.push([section, condition, upstream, here].map(str::to_owned));
        }
    }
    out
}

#[test]
fn each_row_is_shown_by_a_program() {
    let page = include_str!("../../../../docs/compiler-checks.md");
    let rows = rows(page);
    let mut wrong = Vec::new();
    for [section, condition, _, here] in &rows {
        let case = CASES.iter().find(|it| it.0 == section && it.1 == condition);
        let Some((_, _, program)) = case else {
            wrong.push(format!("{section}, {condition}: no program"));
            continue;
        };
        let long = format!("session \"{}\"\n", "word ".repeat(2001));
        let program = if *program == "LONG" { &long } else { *program };
        let db = load(&Fixture::parse(program));
        // Lints about habits are not what these programs are about.
        let got: BTreeSet<&str> = found(&db, 0)
            .iter()
            .map(|it| it.code)
            .filter(|it| !it.starts_with('L'))
            .collect();
        match here.strip_prefix('`').and_then(|it| it.split_once("` ")) {
            Some((code, severity)) => {
                let info = codes::find(code).unwrap_or_else(|| panic!("there is no {code}"));
                if info.severity.as_str() != severity {
                    wrong.push(format!("{section}, {condition}: {code} is no {severity}"));
                }
                if !got.contains(code) {
                    wrong.push(format!("{section}, {condition}: {got:?} instead of {code}"));
                }
            }
            None if got.is_empty() && here == "–" => {}
            None => wrong.push(format!("{section}, {condition}: {got:?} instead of nothing")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows.len(), CASES.len());
}
