//! The lowered form.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use prose_hir::bundle;
use prose_model::{
    Bundle, Context, Input, LoopTest, Node, Op, Permission, Program, Props, Session, Stage, Template,
    TemplatePart,
};
use test_fixture::Fixture;

use crate::support::{file, load};

#[track_caller]
fn lowered(text: &str) -> std::sync::Arc<Bundle> {
    let fixture = Fixture::parse(text);
    let db = load(&fixture);
    bundle(&db, file(&db, 0)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[track_caller]
fn check(text: &str, expect: Expect) {
    let bundle = lowered(text);
    let mut out = String::new();
    for program in &bundle.programs {
        show_program(&mut out, program, bundle.programs.len() > 1);
    }
    expect.assert_eq(&out);
}

fn show_program(out: &mut String, program: &Program, named: bool) {
    if named {
        let _ = writeln!(out, "program {} [{}]", program.name, program.namespace);
    }
    for it in &program.inputs {
        let _ = writeln!(
            out,
            "input {} {:?} leading={} default={}",
            it.name, it.prompt, it.leading, it.has_default
        );
    }
    if !program.outputs.is_empty() {
        let _ = writeln!(out, "outputs {:?}", program.outputs);
    }
    for (name, it) in &program.imports {
        let _ = writeln!(out, "import {name} {:?} → {:?}", it.target, it.program);
    }
    for (name, it) in &program.agents {
        let _ = writeln!(out, "agent {name} persist={:?}{}", it.persist, props(&it.props));
    }
    for (name, it) in &program.blocks {
        let _ = writeln!(out, "block {name}{:?} max_depth={:?}", it.params, it.max_depth);
        body(out, &it.body, 1);
    }
    body(out, &program.body, 0);
}

fn body(out: &mut String, nodes: &[Node], depth: usize) {
    for it in nodes {
        let _ = writeln!(out, "{}{}: {}", "  ".repeat(depth), it.id, op(&it.op));
        let mut inner = |title: &str, nodes: &[Node]| {
            if !title.is_empty() {
                let _ = writeln!(out, "{} {title}", "  ".repeat(depth));
            }
            body(out, nodes, depth + 1);
        };
        match &it.op {
            Op::Do(nodes) => inner("", nodes),
            Op::Parallel(it) => inner("", &it.branches),
            Op::For(it) => inner("", &it.body),
            Op::Repeat { body, .. } => inner("", body),
            Op::Loop(it) => inner("", &it.body),
            Op::If { arms, otherwise } => {
                for arm in arms {
                    inner(&format!("when {}", op(&arm.cond.op)), &arm.body);
                }
                if let Some(nodes) = otherwise {
                    inner("else", nodes);
                }
            }
            Op::Choice { options, .. } => {
                for it in options {
                    inner(&format!("option {:?}", it.label), &it.body);
                }
            }
            Op::Try(it) => {
                inner("", &it.body);
                if let Some(catch) = &it.catch {
                    inner(&format!("catch {:?}", catch.name), &catch.body);
                }
                if let Some(nodes) = &it.finally {
                    inner("finally", nodes);
                }
            }
            Op::Bind { value, .. } => match &value.op {
                Op::Pipeline { stages, .. } => {
                    for stage in stages {
                        match stage {
                            Stage::Map { body, .. } => inner("map", body),
                            Stage::Filter { body, .. } => inner("filter", body),
                            Stage::Pmap { body, .. } => inner("pmap", body),
                            Stage::Reduce { acc, item, body } => inner(&format!("reduce {acc} {item}"), body),
                            Stage::Chunks(n) => inner(&format!("chunks {}", op(&n.op)), &[]),
                        }
                    }
                }
                Op::Do(nodes) => inner("", nodes),
                _ => {}
            },
            _ => {}
        }
    }
}

fn list(nodes: &[Node]) -> String {
    nodes.iter().map(|it| op(&it.op)).collect::<Vec<_>>().join(", ")
}

fn op(it: &Op) -> String {
    match it {
        Op::Null => "null".into(),
        Op::Bool(it) => it.to_string(),
        Op::Number(it) => it.to_string(),
        Op::Text(it) => template(it),
        Op::Name(it) => it.to_string(),
        Op::AgentMemory(it) => format!("memory of {it}"),
        Op::Member { of, key } => format!("{}.{key}", op(&of.op)),
        Op::Index { of, index } => format!("{}[{}]", op(&of.op), op(&index.op)),
        Op::List(it) => format!("[{}]", list(it)),
        Op::Record(it) => {
            let fields: Vec<String> = it
                .iter()
                .map(|it| format!("{}: {}", it.key, op(&it.value.op)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Op::Not(it) => format!("not {}", op(&it.op)),
        Op::Neg(it) => format!("-{}", op(&it.op)),
        Op::Binary { op: by, lhs, rhs } => format!("({} {by:?} {})", op(&lhs.op), op(&rhs.op)),
        Op::Judge(it) => format!("judge {}", template(it)),
        Op::Session(it) => session(it),
        Op::Call { block, args } => {
            let args: Vec<String> = args
                .iter()
                .map(|it| match &it.name {
                    Some(name) => format!("{name}: {}", op(&it.value.op)),
                    None => op(&it.value.op),
                })
                .collect();
            format!("do {block}({})", args.join(", "))
        }
        Op::CallProgram { import, args } => format!("run {import} with {}", args.len()),
        Op::Arrow(it) => it.iter().map(|it| op(&it.op)).collect::<Vec<_>>().join(" -> "),
        Op::Pipeline { source, .. } => format!("{} |", op(&source.op)),
        Op::Do(_) => "do".into(),
        Op::Parallel(it) => {
            format!(
                "parallel {:?} {:?} count={} max={}",
                it.strategy,
                it.policy,
                opt(&it.count),
                opt(&it.max)
            )
        }
        Op::For(it) => {
            let index = it.index.as_deref().unwrap_or("-");
            let parallel = match &it.parallel {
                Some(p) => format!(" parallel {:?} {:?} max={}", p.strategy, p.policy, opt(&p.max)),
                None => String::new(),
            };
            format!("for {}, {index} in {}{parallel}", it.item, op(&it.source.op))
        }
        Op::Repeat { count, index, .. } => format!("repeat {} as {index:?}", op(&count.op)),
        Op::Loop(it) => {
            let test = match &it.test {
                Some(LoopTest::Until(it)) => format!("until {}", op(&it.op)),
                Some(LoopTest::While(it)) => format!("while {}", op(&it.op)),
                None => "forever".into(),
            };
            let max = it.max.as_ref().map(|it| op(&it.op)).unwrap_or("-".into());
            format!("loop {test} max={max} as {:?}", it.index)
        }
        Op::If { .. } => "if".into(),
        Op::Choice { criteria, .. } => format!("choice {}", template(criteria)),
        Op::Try(_) => "try".into(),
        Op::Input(it) => input(it),
        Op::Bind { kind, target, value } => format!("{kind:?} {target:?} = {}", op(&value.op)),
        Op::Assign { name, path, value } => {
            format!(
                "{name}{} = {}",
                if path.is_empty() {
                    String::new()
                } else {
                    format!("[{}]", list(path))
                },
                op(&value.op)
            )
        }
        Op::Return(it) => format!("return {}", opt(it)),
        Op::Break => "break".into(),
        Op::Throw(it) => format!("throw {}", opt(it)),
        Op::Assert { cond, message } => format!("assert {} else {}", op(&cond.op), opt(message)),
    }
}

fn opt(it: &Option<Box<Node>>) -> String {
    it.as_ref().map_or("-".into(), |it| op(&it.op))
}

fn template(it: &Template) -> String {
    let parts: Vec<String> = it
        .parts
        .iter()
        .map(|it| match it {
            TemplatePart::Text(it) => format!("{it:?}"),
            TemplatePart::Insert { value, verbatim } => format!("<{} or {verbatim}>", op(&value.op)),
        })
        .collect();
    format!("«{}»", parts.join(" "))
}

fn session(it: &Session) -> String {
    let mut out = String::from(if it.resume { "resume" } else { "session" });
    if let Some(name) = &it.name {
        let _ = write!(out, " as {name}");
    }
    if let Some(agent) = &it.agent {
        let _ = write!(out, " of {agent}");
    }
    if let Some(label) = &it.label {
        let _ = write!(out, " {}", op(&label.op));
    }
    out + &props(&it.props)
}

fn input(it: &Input) -> String {
    let prompt = it.prompt.as_ref().map_or("-".into(), template);
    let default = it.default.as_ref().map_or("-".into(), |it| op(&it.op));
    format!(
        "input {} {prompt} discretion={} default={default}",
        it.name, it.discretion
    )
}

fn props(it: &Props) -> String {
    let mut out = String::new();
    for (key, value) in [("model", &it.model), ("prompt", &it.prompt), ("retry", &it.retry)] {
        if let Some(value) = value {
            let _ = write!(out, " {key}={}", op(&value.op));
        }
    }
    if let Some(Context { items }) = &it.context {
        let items: Vec<String> = items
            .iter()
            .map(|it| format!("{}={}", it.label, op(&it.value.op)))
            .collect();
        let _ = write!(out, " context=({})", items.join(", "));
    }
    if let Some(it) = &it.backoff {
        let _ = write!(out, " backoff={it:?}");
    }
    if !it.skills.is_empty() {
        let skills: Vec<String> = it.skills.iter().map(|it| op(&it.op)).collect();
        let _ = write!(out, " skills={}", skills.join(", "));
    }
    for (key, rule) in &it.permissions {
        let rule = match rule {
            Permission::Patterns(it) => list(it),
            other => format!("{other:?}"),
        };
        let _ = write!(out, " {key}:{rule}");
    }
    out
}

#[test]
fn sessions_and_properties() {
    check(
        r#"
agent writer:
  model: opus
  persist: project
  prompt: "You write about {topic}."
  skills: ["style", house]
  permissions:
    read: ["docs/**", "{topic}/*"]
    network: [host]
    bash: deny
input topic: "Topic"
let host = "example.org"
session "Label"
  prompt: """
    First line.
      Indented {topic}, {unknown}, {"json": 1}.
    """
  context: { topic, memo: writer }
  retry: 2
  backoff: "exponential"
session: writer
  context: [topic, host.name, "text"]
session note: writer
  model: "vendor/x"
  context: []
resume: writer
  prompt: topic
  context:
    file: "a.md"
    file: host
session "Quick" (retry: 3)
let a = session "A" -> session "B"
"#,
        expect![[r#"
            input topic "Topic" leading=true default=false
            agent writer persist=Some(Project) model=«"opus"» prompt=«"You write about " <topic or {topic}> "."» skills=«"style"», «"house"» read:«"docs/**"», «<topic or {topic}> "/*"» network:host bash:Deny
            main/0: input topic «"Topic"» discretion=false default=-
            main/1: Let Name("host") = «"example.org"»
            main/2: session «"Label"» prompt=«"First line.\n  Indented " <topic or {topic}> ", {unknown}, {\"json\": 1}."» retry=2 context=(topic=topic, memo=memory of writer) backoff=Exponential
            main/3: session of writer context=(topic=topic, host.name=host.name, "text"=«"text"»)
            main/4: session as note of writer model=«"vendor/x"» context=()
            main/5: resume of writer prompt=topic context=(file=«"a.md"», file=host)
            main/6: session «"Quick"» retry=3
            main/7: Let Name("a") = session «"A"» -> session «"B"»
        "#]],
    );
}

#[test]
fn control_flow_and_ids() {
    check(
        r#"
input items: "Items"
const limit = 3
block work(x, depth) (max_depth: 9):
  if depth <= 0 or **{x} is trivial**:
    output x
  elif **limit**:
    do work(x, depth: depth - 1)
  else:
    let part = do work(x, depth - 1)
  output part
for x, i in items:
  do work(x, 5)
parallel ("any", count: 2, on-fail: "continue"):
  a = session "A"
  session "B"
parallel for x in items (max: 4):
  session "Do {x}"
repeat limit as i:
  items = items + [i]
loop until **done {items[0]}** (max: 5) as n:
  session "Try {n}"
try:
  throw "no {limit}"
catch as err:
  session "Fix {err.message}"
finally:
  session "Clean"
choice **how**:
  option "one":
    output result = { items, n: -1, ok: not true }
  option "two":
    do:
      session "Two"
input more: ***
  Go on with {items}?
***
let { p, q } = do work(items, 1)
let piped = items | filter: **{item} is good**
  | map:
      session "Map {item}"
  | reduce(all, one):
      session "Join"
        context: [all, one]
items.first = 1
"#,
        expect![[r#"
            input items "Items" leading=true default=false
            input more "Go on with {items}?" leading=false default=false
            outputs ["result"]
            block work["x", "depth"] max_depth=Some(9)
              block:work/0: if
               when ((depth Le 0) Or judge «<x or {x}> " is trivial"»)
                block:work/0.1.0: return x
               when limit
                block:work/0.3.0: do work(x, depth: (depth Sub 1))
               else
                block:work/0.4.0: Let Name("part") = do work(x, (depth Sub 1))
              block:work/1: return part
            main/0: input items «"Items"» discretion=false default=-
            main/1: Const Name("limit") = 3
            main/2: for x, i in items
              main/2.1.0: do work(x, 5)
            main/3: parallel Any Continue count=2 max=-
              main/3.0: Branch Name("a") = session «"A"»
              main/3.1: session «"B"»
            main/4: for x, - in items parallel All FailFast max=4
              main/4.1.0: session «"Do " <x or {x}>»
            main/5: repeat limit as Some("i")
              main/5.1.0: items = (items Add [i])
            main/6: loop until judge «"done " <items[0] or {items[0]}>» max=5 as Some("n")
              main/6.1.0: session «"Try " <n or {n}>»
            main/7: try
              main/7.0.0: throw «"no " <limit or {limit}>»
             catch Some("err")
              main/7.1.0: session «"Fix " <err.message or {err.message}>»
             finally
              main/7.2.0: session «"Clean"»
            main/8: choice «"how"»
             option "one"
              main/8.1.0: Output Name("result") = {items: items, n: -1, ok: not true}
             option "two"
              main/8.2.0: do
                main/8.2.0.0: session «"Two"»
            main/9: input more «"Go on with " <items or {items}> "?"» discretion=true default=-
            main/10: Let Record(["p", "q"]) = do work(items, 1)
            main/11: Let Name("piped") = items |
             filter
              main/11.0.1.0: judge «<item or {item}> " is good"»
             map
              main/11.0.2.0: session «"Map " <item or {item}>»
             reduce all one
              main/11.0.3.0: session «"Join"» context=(all=all, one=one)
            main/12: items[«"first"»] = 1
        "#]],
    );
}

#[test]
fn used_files_contribute_and_can_be_called() {
    check(
        r#"
#- /main.prose
use "./lib/tools.prose" as tools
use "alice/remote" as remote
agent helper:
  prompt: "Mine."
let topic = "t"
do shared(topic)
let r = tools(topic: topic)
output result = r.found
let x = remote()
#- /lib/tools.prose
use "./more.prose"
input topic: "What"
agent helper:
  prompt: "Theirs."
agent expert:
  prompt: "Expert on {topic}."
block shared(a):
  do deeper(a)
output found = session: helper
#- /lib/more.prose
block deeper(b):
  session: expert
    prompt: "Deeper {b} {topic} {nowhere}"
agent expert:
  prompt: "Other expert."
"#,
        expect![[r#"
            program main []
            outputs ["result"]
            import tools "./lib/tools.prose" → Some(1)
            import remote "alice/remote" → None
            agent helper persist=None prompt=«"Mine."»
            agent expert persist=None prompt=«"Expert on " <topic or {topic}> "."»
            block shared["a"] max_depth=None
              block:shared/0: do deeper(a)
            block deeper["b"] max_depth=None
              block:deeper/0: session of expert prompt=«"Deeper " <b or {b}> " " <topic or {topic}> " {nowhere}"»
            main/0: Let Name("topic") = «"t"»
            main/1: do shared(topic)
            main/2: Let Name("r") = run tools with 1
            main/3: Output Name("result") = r.found
            main/4: Let Name("x") = run remote with 0
            program tools [local--tools]
            input topic "What" leading=true default=false
            outputs ["found"]
            import more "./more.prose" → Some(2)
            agent helper persist=None prompt=«"Theirs."»
            agent expert persist=None prompt=«"Expert on " <topic or {topic}> "."»
            block shared["a"] max_depth=None
              local--tools::block:shared/0: do deeper(a)
            block deeper["b"] max_depth=None
              local--tools::block:deeper/0: session of expert prompt=«"Deeper " <b or {b}> " " <topic or {topic}> " {nowhere}"»
            local--tools::main/0: input topic «"What"» discretion=false default=-
            local--tools::main/1: Output Name("found") = session of helper
            program more [local--more]
            agent expert persist=None prompt=«"Other expert."»
            block deeper["b"] max_depth=None
              local--more::block:deeper/0: session of expert prompt=«"Deeper " <b or {b}> " {topic} {nowhere}"»
        "#]],
    );
}

#[test]
fn ids_are_unique_and_stay() {
    let before = lowered("agent a:\n  prompt: \"x\"\nblock f:\n  session \"1\"\nsession: a\ndo f\n");
    let after = lowered(
        "agent z:\n  prompt: \"y\"\nagent a:\n  prompt: \"longer\"\nblock g:\n  session \"0\"\nblock f:\n  session \"1\"\nsession: a\ndo f\n",
    );
    let ids = |bundle: &Bundle| {
        let json = serde_json::to_string(&bundle.programs).unwrap();
        json.split("\"id\":\"")
            .skip(1)
            .map(|it| it.split('"').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (before, after) = (ids(&before), ids(&after));
    assert!(before.iter().all(|id| after.contains(id)), "{before:?} {after:?}");
    let mut unique = after.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), after.len());
}

#[test]
fn digest_follows_the_text() {
    let one = lowered("session \"a\"\n");
    let same = lowered("session \"a\"\n");
    let other = lowered("session \"b\"\n");
    assert_eq!(one.digest, same.digest);
    assert_ne!(one.digest, other.digest);
    assert_eq!(one.files[0].digest.as_str().len(), 64);
}

#[test]
fn errors_of_used_files_prevent_a_bundle() {
    let fixture = Fixture::parse(
        "#- /main.prose\nuse \"lib.prose\"\ndo f\n#- /lib.prose\nblock f:\n  session: nobody\n",
    );
    let db = load(&fixture);
    let errors = bundle(&db, file(&db, 0)).unwrap_err();
    assert_eq!(
        errors.iter().map(|it| (it.code, it.file.0)).collect::<Vec<_>>(),
        [("E007", 1)]
    );
}

#[test]
fn deep_nesting_is_no_danger() {
    for text in [
        format!("let x = {}1{}\n", "(".repeat(5000), ")".repeat(5000)),
        format!("let x = {}1\n", "not ".repeat(5000)),
        format!("let x = {}1{}\n", "[".repeat(5000), "]".repeat(5000)),
        (0..3000)
            .map(|depth| format!("{}do:\n", " ".repeat(depth)))
            .collect::<String>(),
        format!("let x = 1{}\n", " + 1".repeat(5000)),
        format!("let x = y{}\n", "[0]".repeat(5000)),
        format!("let x = y{}\n", ".a".repeat(5000)),
    ] {
        let fixture = Fixture {
            files: vec![test_fixture::File {
                path: "/main.prose".into(),
                text,
            }],
            cursor: None,
        };
        let db = load(&fixture);
        // Either outcome is fine; what counts is that there is one on a small stack.
        let _ = bundle(&db, file(&db, 0));
    }
}

/// Forms of public programs that the grammar doesn't know and that mean something all the same.
#[test]
fn forms_beyond_the_grammar() {
    check(
        r#"
input depth: "How deep" (default: "two")
output report: "What was found"
agent a:
  persist: .notes/a
session "Dig {depth}" as found
  retry: 2
session: a as more
  prompt: "x"
output report = found + more
output other: found
"#,
        expect![[r#"
            input depth "How deep" leading=true default=true
            outputs ["report", "other"]
            agent a persist=Some(Path(".notes/a"))
            main/0: input depth «"How deep"» discretion=false default=«"two"»
            main/1: session as found «"Dig " <depth or {depth}>» retry=2
            main/2: session as more of a prompt=«"x"»
            main/3: Output Name("report") = (found Add more)
            main/4: Output Name("other") = found
        "#]],
    );
}
