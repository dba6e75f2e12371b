//! Scope and the other checks: what is reported, exactly where.

use expect_test::{Expect, expect};
use test_fixture::Fixture;

use crate::support::{found, load, place};

/// Lints about habits have tests of their own; the programs here are too short to be without them.
fn is_lint(it: &prose_hir::Diagnostic) -> bool {
    it.code.starts_with("L4") && !matches!(it.code, "L401" | "L402" | "L403")
}

/// Every finding of every file is marked by `# ^^^ CODE`, and every mark is a finding.
#[track_caller]
fn marked(text: &str) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let mut expected: Vec<String> = fixture
        .annotations()
        .iter()
        .flat_map(|it| {
            let text = &fixture.files[it.file].text;
            let start = place(text, (it.range.start as u32).into());
            let end = place(text, (it.range.end as u32).into());
            let path = &fixture.files[it.file].path;
            it.label
                .split_whitespace()
                .map(|code| format!("{path} {start}-{end} {code}"))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut got = Vec::new();
    for (index, file) in fixture.files.iter().enumerate() {
        for it in found(&db, index).into_iter().filter(|it| !is_lint(it)) {
            let (start, end) = (
                place(&file.text, it.range.start()),
                place(&file.text, it.range.end()),
            );
            got.push(format!("{} {start}-{end} {}", file.path, it.code));
        }
    }
    expected.sort();
    got.sort();
    assert_eq!(got, expected, "\nleft: found, right: marked, in\n{text}");
}

/// Findings as text, with related places and fixes.
#[track_caller]
fn check(text: &str, expect: Expect) {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    let mut out = String::new();
    for (index, file) in fixture.files.iter().enumerate() {
        for it in found(&db, index).into_iter().filter(|it| !is_lint(it)) {
            let (start, end) = (
                place(&file.text, it.range.start()),
                place(&file.text, it.range.end()),
            );
            out.push_str(&format!(
                "{start}-{end} {} {}: {}\n",
                it.code,
                it.severity.as_str(),
                it.message
            ));
            for (file, range, text) in &it.related {
                let file = &fixture.files[file.0 as usize];
                out.push_str(&format!(
                    "  {}:{} {text}\n",
                    file.path,
                    place(&file.text, range.start())
                ));
            }
            if let Some(fix) = &it.fix {
                let mut fixed = file.text.clone();
                let mut edits = fix.edits.clone();
                edits.sort_by_key(|it| std::cmp::Reverse(it.0.start()));
                for (range, with) in edits {
                    fixed.replace_range(usize::from(range.start())..usize::from(range.end()), &with);
                }
                let changed = fixed
                    .lines()
                    .zip(file.text.lines())
                    .filter(|(a, b)| a != b)
                    .map(|(a, _)| a.trim());
                out.push_str(&format!(
                    "  fix: {} → {}\n",
                    fix.title,
                    changed.collect::<Vec<_>>().join(" / ")
                ));
            }
        }
    }
    expect.assert_eq(&out);
}

#[test]
fn frames_and_scopes() {
    // Branches are transparent: what they declare is there afterwards.
    marked(
        r#"
if **it rains**:
  let plan = session "Stay in"
else:
  let plan = session "Go out"
session "Act"
  context: plan
try:
  let data = session "Fetch"
catch as err:
  let data = session "Explain {err.message}"
choice **what next**:
  option "a":
    let step = session "A"
  option "b":
    let step = session "B"
do:
  let inner = session "Inner"
parallel:
  left = session "L"
  right = session "R"
session "Join"
  context: [data, step, inner, left, right]
"#,
    );
    // Loop and pipeline bodies hide.
    marked(
        r#"
let xs = ["a"]
for x in xs:
  let note = session "Describe {x}"
session "Use"
  context: [note, x]
#           ^^^^ P244
#                 ^ P244
let done = xs | map:
  let mapped = session "Map {item}"
session "Use"
  context: mapped
#          ^^^^^^ P244
"#,
    );
    // A new frame has its own slots and sees those around it.
    marked(
        r#"
let total = []
parallel for x in ["a", "b"]:
  let part = session "Work on {x}"
  total = total + [part]
parallel for x in ["a", "b"]:
  let part = session "Again {x}"
"#,
    );
}

#[test]
fn declared_twice() {
    marked(
        r#"
let a = 1
let a = 2
#   ^ E019
const a = 3
#     ^ E019
input b: "one"
input b: "two"
#     ^ E021
output c = 1
output c = 2
#      ^ E024
let { d, d } = {d: 1}
#        ^ E019
do:
  let e = 1
  let e = 2
#     ^ E019
parallel:
  f = session "1"
  f = session "2"
# ^ E019
block g(p, p):
#          ^ E019
  session "{p}"
do g(1, 2)
"#,
    );
    // Promotion is no second declaration.
    marked(
        r#"
let a = session "A"
output a = a
output b = 1
output a = session "B"
#      ^ E024
"#,
    );
}

#[test]
fn nested_let_and_shadowing() {
    check(
        r#"
let n = 0
repeat 3:
  let n = n + 1
input topic: "t"
block f(topic):
  let n = session "{topic}"
do f(topic)
for topic in ["x"]:
  session "{topic}"
"#,
        expect![[r#"
            3:7-3:8 P242 warning: `n` is already declared, so that this assigns it: drop `let`, or use another name
              /main.prose:1:5 declared here
              fix: Drop `let` → n = n + 1
            5:9-5:14 P341 hint: parameter `topic` hides another `topic`: another name reads more clearly
              /main.prose:4:7 the other is declared here
            6:7-6:8 P341 hint: variable `n` hides another `n`: another name reads more clearly
              /main.prose:1:5 the other is declared here
            8:5-8:10 P341 hint: loop variable `topic` hides another `topic`: another name reads more clearly
              /main.prose:4:7 the other is declared here
        "#]],
    );
}

#[test]
fn order() {
    marked(
        r#"
session "Use"
  context: late
#          ^^^^ P143
let late = 1
repeat 2:
  session "Use"
    context: next
#            ^^^^ P252
  let next = 1
block early:
  session "A block runs when it is called"
    context: [late, soon]
  session "but its own names have an order"
    context: own
#            ^^^ P143
  let own = 1
let soon = 2
do early
block again(n):
  session "A deeper call sees its caller's"
    context: mine
#            ^^^^ P245
  let mine = 1
  do again(n - 1)
do again(3)
"#,
    );
}

#[test]
fn only_in_another_block() {
    marked(
        r#"
block gather(depth):
  let notes = session "Take notes"
do gather(1)
session "Use"
  context: [notes, depth]
#           ^^^^^ P245
#                  ^^^^^ P245
block other:
  session "Use {notes}"
    context: notes
#            ^^^^^ P245
do other
"#,
    );
}

#[test]
fn assignments() {
    check(
        r#"
const limit = 3
limit = 4
x = 1
x = 2
for item in [1]:
  item = 2
try:
  session "a"
catch as err:
  err = 1
block f(p):
  p = 1
  limit = 5
  x = 3
do f(1)
y = 1
let y = 2
"#,
        expect![[r#"
            2:1-2:6 P144 error: `limit` is a constant and can't be assigned: declare it with `let`, or use another name
              /main.prose:1:7 `limit` is declared here
            3:1-3:2 P243 warning: `x` is not declared: write `let x = …`
              fix: Add `let` → let x = 1
            6:3-6:7 P145 error: `item` is a loop variable and can't be assigned: use another name
              /main.prose:5:5 `item` is declared here
            10:3-10:6 P145 error: `err` is an error variable and can't be assigned: use another name
              /main.prose:9:10 `err` is declared here
            12:3-12:4 P343 hint: `p` is a parameter: another name for the new value reads better
              /main.prose:11:9 `p` is declared here
            13:3-13:8 P144 error: `limit` is a constant and can't be assigned: declare it with `let`, or use another name
              /main.prose:1:7 `limit` is declared here
            16:1-16:2 P243 warning: `y` is assigned before it is declared
              /main.prose:17:5 declared only here
        "#]],
    );
}

#[test]
fn undefined_names_with_suggestions() {
    check(
        r#"
agent researcher:
  prompt: "You look things up."
block review(what):
  session "Review {what}"
input depth: "How deep"
session: reseacher
  prompt: "Look"
do reveiw("x")
session "Use"
  context: dept
session "Use"
  context: { a: nothing, b: depth-1 }
let r = research(topic: 1)
session: researcher
do review(depth)
session: depth
session: review
do researcher
"#,
        expect![[r#"
            6:10-6:19 E007 error: no agent `reseacher` is declared: did you mean `researcher`?
              fix: Replace with `researcher` → session: researcher
            8:4-8:10 P141 error: no block `reveiw` is declared: did you mean `review`?
              fix: Replace with `review` → do review("x")
            10:12-10:16 P142 error: no variable `dept` is declared: did you mean `depth`?
              fix: Replace with `depth` → context: depth
            12:17-12:24 P142 error: no variable `nothing` is declared: bind it with `let nothing = …`, or write text in quotes
            12:29-12:36 P142 error: `depth-1` is one name: to subtract write `depth - 1`
              fix: Write `depth - 1` → context: { a: nothing, b: depth - 1 }
            13:9-13:17 E025 error: no program or block `research` to call: bring it in with `use "…" as research`
            16:10-16:15 E007 error: `depth` is a variable, not an agent: declare `agent depth:` or name an agent
            17:10-17:16 E007 error: `review` is a block, not an agent: call it with `do review`
              /main.prose:3:7 `review` is declared here
            18:4-18:14 P141 error: `researcher` is an agent, not a block: run a session of it with `session: researcher`
              /main.prose:1:7 `researcher` is declared here
        "#]],
    );
}

#[test]
fn interpolation() {
    marked(
        r#"
input topic: "Topic, e.g. {tides}"
#                          ^^^^^ P340
session "About {topic}, {topc}, {later} and {nothing}, but {\"a\": 1}, {} and {two words}"
#                        ^^^^ P246
#                                ^^^^^ P340
#                                            ^^^^^^^ P340
let later = session """
  {topic.name} {topic[0]} {topci}
#                          ^^^^^ P246
"""
if **{topic} beats {unheard}**:
#                   ^^^^^^^ P340
  session "Go"
"#,
    );
}

#[test]
fn names_that_clash() {
    marked(
        r#"
agent writer:
  prompt: "a"
agent writer:
#     ^^^^^^ E006
  prompt: "b"
block writer:
#     ^^^^^^ P147
  session "c"
block twice:
  session: writer
block twice:
#     ^^^^^ P146
  session "d"
do twice
do writer
let writer = 1
#   ^^^^^^ P148
block f(writer):
#       ^^^^^^ P255
  session "{writer}"
do f(1)
let f = 2
#   ^ P342
output x = f
use "alice/one" as one
use "bob/one"
#    ^^^^^^^ E010
use "alice/one" as two
#<^^^^^^^^^^^^^^^^^^^^ E010
"#,
    );
}

#[test]
fn constructs() {
    marked(
        r#"
try:
#<^ P149
  session "a"
if **x is so**:
  throw
# ^^^^^ P265
try:
  session "a"
catch as e:
  if **it matters**:
    throw
parallel ("fastest", on-fail: "collect", count: 2):
#         ^^^^^^^^^ P249
#                             ^^^^^^^^^ P249
#                                        ^^^^^^^^ P249
  session "a"
  session "b"
parallel ("any", count: 2, max: 0):
#                               ^ P249
  session "a"
  session "b"
loop:
#<^^ P263
  session "a"
loop:
  break
# ^^^^^ P208
block deep(n) (max_depth: 5, other: 1):
#                            ^^^^^ P249
  output n
do deep(1)
parallel ("first", "all", on-fail: "ignore", on-fail: "continue"):
#                  ^^^^^ P249
#                                            ^^^^^^^^^^^^^^^^^^^ P249
  session "a"
  session "b"
loop (max: 2, max: 3):
#             ^^^^^^ P249
  session "a"
"#,
    );
}

#[test]
fn calls() {
    check(
        r#"
block two(a, b):
  session "{a} {b}"
do two
do two(1, 2, 3)
do two(1, c: 2)
do two(b: 1, a: 2)
"#,
        expect![[r#"
            3:4-3:7 P240 warning: block `two` takes 2 arguments and gets 0: `a` and `b` will be null, pass it
              /main.prose:1:7 declared here with (a, b)
            4:14-4:15 P240 warning: block `two` takes 2 arguments and gets 3: the rest is ignored
              /main.prose:1:7 declared here with (a, b)
            5:11-5:12 P240 warning: block `two` has no parameter `c`: it has (a, b)
              /main.prose:1:7 the block is declared here
        "#]],
    );
}

#[test]
fn properties() {
    marked(
        r#"
agent a:
  model: gpt
#        ^^^ P241
  model: sonnet
# ^^^^^ E009
  persist: maybe
#          ^^^^^ P258
  timeout: 5
# ^^^^^^^ W005
  promt: "x"
# ^^^^^ W005
  skills: ["one", 2]
#          ^^^^^ W007
#                 ^ E014
  permissions:
    read: ["*.md", 3]
#                  ^ E016
    bash: maybe
#         ^^^^^ W009
    fly: allow
#   ^^^ W008
session: a
#        ^ P262
  persist: true
# ^^^^^^^ W005
  retry: "often"
#        ^^^^^^^ P258
  backoff: quick
#          ^^^^^ P258
"#,
    );
}

#[test]
fn used_files() {
    marked(
        r#"
#- /main.prose
use "./lib.prose" as lib
use "./gone.prose" as gone
#    ^^^^^^^^^^^^ P151
do shared("x")
session: helper
session "Locals of used blocks may be there"
  context: inner
#          ^^^^^ P245
session "Their top level is not"
  context: top
#          ^^^ P142
let { out, more } = lib(topic: 1, other: 2)
#          ^^^^ E028
#                                 ^^^^^ E027
#- /lib.prose
input topic: "Topic"
input depth: [1]
#            ^^^ P217
agent helper:
  prompt: "You help with {topic}."
block shared(what):
  let inner = session "Share {what}"
let top = session "Top {depth}"
do shared(top)
session: helper
output out = top
"#,
    );
}

#[test]
fn words_where_words_are_meant() {
    // Bare words of properties, modifiers and permissions are no variables.
    marked(
        r#"
agent a:
  model: opus
  persist: project
  prompt: "x"
  permissions:
    network: [api_host, "*.example.org"]
    bash: deny
let api_host = "example.org"
session: a
  backoff: linear
  retry: 2
parallel (first):
  session "1"
  session "2"
"#,
    );
}

#[test]
fn upstream_shapes() {
    // Forms that real programs rely on get no error and no warning.
    marked(
        r#"
input items: "Items"
input goal: "Goal"

agent judge:
  model: opus
  persist: true
  prompt: "You judge {goal}."

block pairs(list):
  let result = []
  for a in list:
    for b in list:
      result = result + [{first: a, second: b}]
  output result

block analyze(xs, depth):
  if **few pairs** or depth <= 0:
    output do pairs(xs) | pmap:
      session: judge
        prompt: "Judge"
        context: item
  let batches = session "Split into batches"
    context: xs
  let results = []
  parallel for batch in batches:
    let part = do analyze(batch, depth - 1)
    results = results + part
  output results

let found = do analyze(items, 2)
resume: judge
  prompt: "Remember"
  context: { found, judge }
output map = session: judge
#                     ^^^^^ W011
  prompt: "Build the map"
  context: found
"#,
    );
}

#[test]
fn outputs_that_are_lost() {
    marked(
        r#"
if **a is so**:
  output r = 1
#        ^ P247
choice **what**:
  option "a":
    output r = 2
#          ^ P247
  option "b":
    output r = 3
#          ^ P247
if **b is so**:
  output r = 4
  throw "and out"
for x in [1]:
  output r = x
if **c is so**:
  output r = 5
else:
  output r = 6
block f:
  if **d is so**:
    output q = 1
#          ^ P247
  output q = 2
do f
"#,
    );
}

#[test]
fn forms_beyond_the_grammar() {
    marked(
        r#"
input depth: "How deep" (default: "two")
#                       ^^^^^^^^^^^^^^^^ P218
output report: "What was found"
#      ^^^^^^^ P219
agent a:
  persist: .notes/a
  #        ^^^^^^^^ P220
do:
  session "Dig {depth}" as found
# ^^^^^^^ P204
  session: a as more
# ^^^^^^^ P204
    prompt: "x"
output report = found + more
block f:
  output session: b
    prompt: "x"
block g:
  output resume: b
    prompt: "x"
block h:
  output do:
    session "x"
block i:
  output parallel:
    session "x"
block j:
  output try:
    session "x"
  finally:
    session "y"
block k:
  output loop:
    break
  # ^^^^^ P208
do f
do g
do h
do i
do j
do k
agent b:
  persist: ~/notes/
  #        ^^^^^^^^ P220
agent c:
  persist: ./notes/b.d/
  #        ^^^^^^^^^^^^ P220
session: b
#        ^ W011
  prompt: "{more}"
session: c
  prompt: "x"
repeat session "How often?" as n:
  session "Round {n}"
loop until session "Done?" as m:
  session "Round {m}"
"#,
    );
}

#[test]
fn what_newcomers_write_is_named_with_the_way_out() {
    check(
        r#"
agent writer:
  prompt: "x"
session(writer)
let a = True
let b = None
output = 3
parallel (on_fail: "continue"):
  session "a {a}"
  session "b {b}"
parallel (join: "frist"):
  session "a"
  session "b"
parallel (join: first):
  session "a"
  session "b"
parallel ("frist"):
  session "a"
  session "b"
let l =
  - "a"
  - "b"
session "x {l}"
if the draft is good:
  session "x"
let ys = l | map (x):
  session "{item}"
for item of ys:
  session "{item}"
"#,
        expect![[r#"
            3:1-3:8 E025 error: `session` takes no parentheses: name the agent behind a colon, `session: agent`
            4:9-4:13 P142 error: no variable `True` is declared: write `true`
              fix: Write `true` → let a = true
            5:9-5:13 P142 error: no variable `None` is declared: write `null`
              fix: Write `null` → let b = null
            6:1-6:7 P243 warning: this sets a variable called `output`: write `output name = …` or `output …`
            7:11-7:18 P249 warning: modifier `on_fail` is not known here and is ignored: did you mean `on-fail`?
            10:17-10:24 P249 warning: this strategy is not known and "all" is taken: did you mean ("first")?
            13:11-13:22 P249 warning: other tools know the strategy only without a name: write ("first")
              fix: Remove the name → parallel ("first"):
            16:11-16:18 P249 warning: this strategy is not known and "all" is taken: did you mean ("first")?
            20:3-21:8 P209 warning: write the list in brackets: `[a, b]`
            23:4-23:21 E004 error: a condition in words stands between stars, for the model to judge: write `**the draft is good**`
            25:18-25:21 E004 error: `map` takes no name, the item is called `item`: write `map:`
            27:10-27:12 E004 error: `of` can't stand here: write `in`
        "#]],
    );
}
