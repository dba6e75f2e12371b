//! Random programs: every construct meets every other, names are few so that they collide.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use prose_model::{
    Backoff, BinaryOp, BindKind, Block, Bundle, Node, Op, ParallelFor, Persist, Policy, Program, Stage,
    Strategy, Template, TemplatePart,
};

use crate::build::*;

/// A program and how what it asks for is answered.
#[derive(Clone)]
pub struct Case {
    pub bundle: Arc<Bundle>,
    pub picks: Vec<u16>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}picks: {:?}",
            crate::source::bundle(&self.bundle),
            self.picks
        )
    }
}

fn name() -> impl proptest::strategy::Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d"])
}
fn read() -> impl proptest::strategy::Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "a", "b", "b", "c", "d", "item", "acc", "i", "n", "err", "p", "q", "out",
    ])
}
fn literal(text: &str) -> Node {
    let parts = vec![TemplatePart::Text(text.into())];
    node(Op::Text(Template { parts }))
}
fn words() -> BoxedStrategy<String> {
    prop_oneof![
        Just("plain".to_owned()),
        read().prop_map(|n| format!("{{{n}}}")),
        (read(), read()).prop_map(|(a, b)| format!("{{{a}}} and {{{b}}}")),
        read().prop_map(|n| format!("k {{{n}.k}}")),
    ]
    .boxed()
}

/// Strategies that others are made of, each built once.
#[derive(Clone)]
struct Parts {
    expr: [BoxedStrategy<Node>; 3],
    condition: BoxedStrategy<Node>,
    collection: BoxedStrategy<Node>,
    session: BoxedStrategy<Node>,
}

impl Parts {
    fn new() -> Parts {
        let leaf = expr(None);
        let small = expr(Some(leaf.clone()));
        let large = expr(Some(small.clone()));
        Parts {
            condition: condition(&small),
            collection: collection(&leaf),
            session: a_session(&leaf),
            expr: [leaf, small, large],
        }
    }
    fn expr(&self, depth: usize) -> BoxedStrategy<Node> {
        self.expr[depth].clone()
    }
}

fn expr(sub: Option<BoxedStrategy<Node>>) -> BoxedStrategy<Node> {
    let leaf = prop_oneof![
        4 => read().prop_map(var),
        2 => (0..4_u8).prop_map(|n| num(f64::from(n))),
        2 => words().prop_map(|t| text(&t)),
        1 => prop::sample::select(vec!["3", "yes", "No.", "", "[\"x\", \"y\"]", "{\"k\": 1, \"m\": [2]}", "k: v"])
            .prop_map(literal),
        1 => Just(list(vec![])),
        1 => prop::sample::select(vec![null(), yes(), no()]),
    ];
    let Some(sub) = sub else { return leaf.boxed() };
    let sub = move || sub.clone();
    let op = prop::sample::select(vec![
        BinaryOp::Add,
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::And,
        BinaryOp::Or,
    ]);
    let key = prop::sample::select(vec!["k", "m", "length", "message", "kind"]);
    prop_oneof![
        6 => leaf,
        4 => (op, sub(), sub()).prop_map(|(op, a, b)| bin(op, a, b)),
        1 => sub().prop_map(not),
        2 => (sub(), key).prop_map(|(of, key)| member(of, key)),
        1 => (sub(), sub()).prop_map(|(of, index)| at(of, index)),
        2 => prop::collection::vec(sub(), 1..3).prop_map(list),
        1 => (sub(), sub()).prop_map(|(k, m)| rec(vec![("k", k), ("m", m)])),
        2 => Just(session("In")),
        1 => words().prop_map(|t| judge(&t)),
        1 => sub().prop_map(|arg| call("f", vec![arg, session("Arg")])),
    ]
    .boxed()
}

fn condition(expr: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    let op = prop::sample::select(vec![BinaryOp::And, BinaryOp::Or]);
    prop_oneof![
        3 => expr.clone(),
        3 => words().prop_map(|t| judge(&t)),
        2 => (op, expr.clone(), words(), any::<bool>()).prop_map(|(op, plain, t, left)| {
            if left { bin(op, judge(&t), plain) } else { bin(op, plain, not(judge(&t))) }
        }),
        1 => words().prop_map(|t| not(judge(&t))),
    ]
    .boxed()
}

fn collection(expr: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    prop_oneof![
        2 => Just(list(vec![num(1.0), text("two")])),
        1 => Just(list(vec![])),
        2 => prop::collection::vec(expr.clone(), 1..4).prop_map(list),
        2 => read().prop_map(var),
        1 => Just(literal("- x\n- y")),
        1 => Just(session("List")),
    ]
    .boxed()
}

fn a_session(expr: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    let backoff = prop::sample::select(vec![
        Backoff::None,
        Backoff::Linear,
        Backoff::Exponential,
        Backoff::Millis(5),
    ]);
    let kind = prop::sample::select(vec!["plain", "plain", "agent", "keeper", "resume", "named"]);
    (
        kind,
        words(),
        prop::option::of(words()),
        prop::option::of(expr.clone()),
        prop::option::of((0..3_u32, backoff)),
        name(),
    )
        .prop_map(|(kind, label, prompt, context, retry, own)| {
            let mut it = match kind {
                "agent" => session_of("helper"),
                "keeper" => session_of("keeper"),
                "resume" => resume("keeper"),
                "named" => session_of("helper").edit(|s| s.name = Some(own.into())),
                _ => session(&format!("S {label}")),
            };
            if let Some(prompt) = prompt {
                it = it.prompt(&prompt);
            }
            if let Some(context) = context {
                it = it.context(vec![("ctx", context)]);
            }
            if let Some((times, backoff)) = retry {
                it = it.retry(times, backoff);
            }
            it
        })
        .boxed()
}

type Bodies = BoxedStrategy<Vec<Node>>;

fn body(statement: &BoxedStrategy<Node>) -> Bodies {
    prop::collection::vec(statement.clone(), 1..4).boxed()
}

fn policy() -> impl proptest::strategy::Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::FailFast, Policy::Continue, Policy::Ignore])
}
fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop::sample::select(vec![Strategy::All, Strategy::First, Strategy::Any])
}

fn a_parallel(all: &Parts, body: &Bodies) -> BoxedStrategy<Node> {
    let branch_of =
        (0..4_u8, name(), body.clone(), all.expr(1)).prop_map(|(kind, n, nodes, value)| match kind {
            0 => branch(n, do_(nodes)),
            1 => branch(n, session("B")),
            2 => branch(n, value),
            _ => do_(nodes),
        });
    (
        strategy(),
        policy(),
        prop::option::of(1..4_u8),
        prop::option::of(1..3_u8),
        prop::collection::vec(branch_of, 1..4),
    )
        .prop_map(|(strategy, policy, count, max, branches)| {
            let mut it = joined(strategy, policy, branches);
            if let Op::Parallel(it) = &mut it.op {
                it.count = count
                    .filter(|_| strategy == Strategy::Any)
                    .map(|n| Box::new(num(f64::from(n))));
                it.max = max.map(|n| Box::new(num(f64::from(n))));
            }
            it
        })
        .boxed()
}

fn a_parallel_for(all: &Parts, body: &Bodies) -> BoxedStrategy<Node> {
    let modifiers = (
        strategy(),
        policy(),
        prop::option::of(1..3_u8),
        prop::option::of(1..3_u8),
    );
    (all.collection.clone(), modifiers, body.clone())
        .prop_map(|(items, (strategy, policy, count, max), nodes)| {
            let modifiers = ParallelFor {
                strategy,
                policy,
                count: count
                    .filter(|_| strategy == Strategy::Any)
                    .map(|n| Box::new(num(f64::from(n)))),
                max: max.map(|n| Box::new(num(f64::from(n)))),
            };
            parallel_for_with("item", items, modifiers, nodes)
        })
        .boxed()
}

fn a_pipeline(all: &Parts, body: &Bodies) -> BoxedStrategy<Node> {
    let stage = (0..6_u8, body.clone(), all.condition.clone(), all.expr(1)).prop_map(
        |(kind, mut nodes, cond, value)| match kind {
            0 => {
                nodes.push(value);
                map(nodes)
            }
            1 => {
                nodes.push(cond);
                filter(nodes)
            }
            2 => {
                nodes.push(value);
                pmap(nodes)
            }
            3 => {
                nodes.push(session("R {acc} {item}"));
                reduce(nodes)
            }
            4 => reduce(vec![add(var("acc"), var("item"))]),
            _ => Stage::Chunks(Box::new(num(2.0))),
        },
    );
    (all.collection.clone(), prop::collection::vec(stage, 1..3))
        .prop_map(|(items, stages)| pipe(items, stages))
        .boxed()
}

fn a_loop(all: &Parts, body: &Bodies) -> BoxedStrategy<Node> {
    (all.condition.clone(), any::<bool>(), 0..4_u32, body.clone())
        .prop_map(|(cond, is_until, max, nodes)| {
            let test = if is_until { until(cond) } else { while_(cond) };
            loop_(test, Some(max), nodes)
        })
        .boxed()
}

fn statement(all: &Parts, body: Option<Bodies>) -> BoxedStrategy<Node> {
    let leaf = prop_oneof![
        40 => (name(), all.session.clone()).prop_map(|(n, it)| let_(n, it)),
        25 => (name(), all.expr(2)).prop_map(|(n, value)| let_(n, value)),
        25 => (name(), all.expr(2)).prop_map(|(n, value)| assign(n, value)),
        20 => (name(), all.session.clone()).prop_map(|(n, it)| assign(n, add(list(vec![var(n)]), list(vec![it])))),
        8 => (name(), all.expr(1)).prop_map(|(n, value)| assign_field(n, "k", value)),
        1 => name().prop_map(|n| bind(BindKind::Const, n, text("fixed"))),
        8 => all.expr(1).prop_map(|value| destructure(&["k", "m"], value)),
        4 => Just(let_("a", add(var("k"), var("m")))),
        20 => all.session.clone(),
        8 => all.expr(1).prop_map(|value| output("out", value)),
        6 => name().prop_map(|n| output(n, var(n))),
        3 => all.expr(1).prop_map(ret),
        3 => Just(break_()),
        4 => prop::option::of(words()).prop_map(|t| throw(t.as_deref())),
        1 => Just(node(Op::Throw(boxed(var("err"))))),
        2 => (all.condition.clone(), prop::option::of(words())).prop_map(|(c, t)| assert_(c, t.as_deref())),
        6 => name().prop_map(|n| input(n, "Q {b}?")),
        8 => prop::collection::vec(all.session.clone(), 1..4).prop_map(arrow),
        20 => (all.expr(1), all.expr(1)).prop_map(|(a, b)| call("f", vec![a, b])),
        10 => Just(call("g", vec![num(2.0)])),
        12 => all.expr(1).prop_map(|a| call("h", vec![a])),
        2 => Just(call("deep", vec![])),
        10 => (name(), all.expr(0)).prop_map(|(n, t)| let_(n, call_program("other", vec![named("topic", t)]))),
        6 => Just(call_program("other", vec![])),
    ];
    let Some(body) = body else { return leaf.boxed() };
    let sub = || body.clone();
    let inner = prop_oneof![
        3 => a_parallel(all, &body),
        2 => a_parallel_for(all, &body),
        2 => a_pipeline(all, &body),
        2 => a_loop(all, &body),
        1 => (all.collection.clone(), any::<bool>(), sub()).prop_map(|(items, index, nodes)| {
            let mut it = for_("item", items, nodes);
            if let Op::For(it) = &mut it.op && index {
                it.index = Some("i".into());
            }
            it
        }),
        1 => (0..3_u8, any::<bool>(), sub()).prop_map(|(n, index, nodes)| {
            repeat(num(f64::from(n)), index.then_some("i"), nodes)
        }),
        2 => (all.condition.clone(), sub(), all.condition.clone(), sub(), prop::option::of(sub()))
            .prop_map(|(c, a, d, b, e)| if_else(vec![(c, a), (d, b)], e)),
        1 => (words(), sub(), sub()).prop_map(|(t, a, b)| choice(&t, vec![("A {a}", a), ("B", b)])),
        4 => (sub(), prop::option::of(sub()), prop::option::of(sub()))
            .prop_map(|(a, b, c)| try_(a, b, c)),
        1 => sub().prop_map(do_),
    ];
    prop_oneof![
        2 => leaf,
        1 => (name(), inner.clone()).prop_map(|(n, it)| let_(n, it)),
        3 => inner,
    ]
    .boxed()
}

fn calls(nodes: Vec<Node>) -> Vec<Node> {
    let plain = |node: &Node| !format!("{node:?}").contains("Call");
    nodes.into_iter().filter(plain).collect()
}

/// Declares every name that programs read, and calls nothing.
fn declarations() -> Block {
    let names = [
        "a", "b", "c", "d", "k", "m", "item", "acc", "i", "n", "err", "p", "q", "out",
    ];
    block(
        "unused",
        &[],
        names.iter().map(|name| let_(name, null())).collect(),
    )
}

fn assemble(entry: Vec<Node>, f: Vec<Node>, g: Vec<Node>, h: Vec<Node>, other: Vec<Node>) -> Arc<Bundle> {
    let f = block("f", &["p", "q"], calls(f));
    let mut again = calls(g.clone());
    again.push(call("g", vec![bin(BinaryOp::Sub, var("n"), num(1.0))]));
    let g = block(
        "g",
        &["n"],
        vec![if_(bin(BinaryOp::Gt, var("n"), num(0.0)), again, Some(calls(g)))],
    );
    let mut calling = calls(h);
    calling.push(call("f", vec![var("p")]));
    let h = block("h", &["p"], calling);
    let mut deep = block("deep", &[], vec![session("Deep"), call("deep", vec![])]);
    deep.max_depth = Some(3);
    let whole = |program: Program| {
        let helper = agent("helper", Some("You help {a}"));
        let mut keeper = persistent("keeper", Persist::Execution);
        keeper.props.retry = boxed(num(1.0));
        program.block(declarations()).agent(helper).agent(keeper)
    };
    let entry = whole(program(entry))
        .block(f)
        .block(g)
        .block(h)
        .block(deep)
        .import("other", Some(1));
    let mut called = calls(other);
    called.insert(0, input("topic", "T?"));
    bundle(vec![entry, whole(program(called)).namespace("o--ther")])
}

pub fn case() -> BoxedStrategy<Case> {
    let all = Parts::new();
    let leaf = statement(&all, None);
    let small = statement(&all, Some(body(&leaf)));
    let middle = statement(&all, Some(body(&small)));
    let large = statement(&all, Some(body(&middle)));
    let some = |of: &BoxedStrategy<Node>, n: usize| prop::collection::vec(of.clone(), 0..n);
    (
        prop::collection::vec(large, 1..6),
        some(&small, 3),
        some(&small, 2),
        some(&leaf, 2),
        some(&small, 3),
        prop::collection::vec(any::<u16>(), 0..120),
    )
        .prop_map(|(mut entry, f, g, h, other, picks)| {
            entry.splice(
                0..0,
                [
                    let_("a", list(vec![num(1.0)])),
                    let_("b", text("b0")),
                    let_("c", num(5.0)),
                    let_("d", rec(vec![("k", text("dk"))])),
                ],
            );
            Case {
                bundle: assemble(entry, f, g, h, other),
                picks,
            }
        })
        .boxed()
}
