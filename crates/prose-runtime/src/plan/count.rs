//! How often sessions run, by the shape of a program: a lower bound when nothing fails, an upper bound with every try.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use prose_model::{Bundle, Name, Node, Op, Props, SourceRange, Stage, StmtId, Strategy, Value};
use serde::Serialize;

use super::known::Known;

/// How often something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Times {
    /// At least, when nothing fails.
    pub min: u64,
    /// At most; none: without a bound.
    pub max: Option<u64>,
}

impl Times {
    /// So often and no other.
    pub fn exactly(n: u64) -> Times {
        Times { min: n, max: Some(n) }
    }

    fn up_to(max: Option<u64>) -> Times {
        Times { min: 0, max }
    }

    fn plus(self, other: Times) -> Times {
        Times {
            min: self.min.saturating_add(other.min),
            max: self.max.zip(other.max).map(|(a, b)| a.saturating_add(b)),
        }
    }

    fn times(self, other: Times) -> Times {
        let max = match (self.max, other.max) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (Some(a), Some(b)) => Some(a.saturating_mul(b)),
            _ => None,
        };
        Times {
            min: self.min.saturating_mul(other.min),
            max,
        }
    }

    /// One of both.
    fn either(self, other: Times) -> Times {
        Times {
            min: self.min.min(other.min),
            max: self.max.zip(other.max).map(|(a, b)| a.max(b)),
        }
    }

    /// Perhaps not at all.
    fn maybe(self) -> Times {
        Times { min: 0, ..self }
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "{min}"),
            (min, Some(max)) => write!(f, "{min} to {max}"),
            (min, None) => write!(f, "{min} or more, unbounded"),
        }
    }
}

/// What is counted on its own: the top level of a program, or a block of it.
pub(super) type Unit = (usize, Option<Name>);

/// A node of the bundle.
type Key = (SourceRange, StmtId);

fn key(node: &Node) -> Key {
    (node.src, node.id.clone())
}

/// What one unit does, when it runs once.
#[derive(Debug, Default)]
struct Body {
    sessions: Vec<(Key, Times)>,
    calls: Vec<(Unit, Times)>,
}

/// The counts of a bundle.
pub(super) struct Counts<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) known: Vec<Known>,
    sites: HashMap<Key, Times>,
    pub(super) totals: HashMap<Unit, Times>,
}

impl<'a> Counts<'a> {
    pub(super) fn new(bundle: &'a Bundle, given: &IndexMap<String, Value>) -> Counts<'a> {
        let known = bundle
            .programs
            .iter()
            .enumerate()
            .map(|(at, program)| Known::new(program, (at == bundle.entry).then_some(given)))
            .collect();
        let mut counts = Counts {
            bundle,
            known,
            sites: HashMap::new(),
            totals: HashMap::new(),
        };
        let mut bodies = IndexMap::new();
        for (at, program) in bundle.programs.iter().enumerate() {
            bodies.insert((at, None), counts.look(at, &program.body));
            for (name, block) in &program.blocks {
                bodies.insert((at, Some(name.clone())), counts.look(at, &block.body));
            }
        }
        counts.spread(&bodies);
        counts
    }

    /// What is known in a program.
    pub(super) fn known(&self, program: usize) -> &Known {
        &self.known[program]
    }

    /// How often a session's place runs.
    pub(super) fn of(&self, node: &Node) -> Times {
        self.sites.get(&key(node)).copied().unwrap_or(Times::exactly(0))
    }

    /// All sessions of a program.
    pub(super) fn program(&self, at: usize) -> Times {
        self.totals.get(&(at, None)).copied().unwrap_or(Times::exactly(0))
    }

    /// How many items a collection has, where that is known.
    pub(super) fn items(&self, node: &Node, known: &Known) -> Option<u64> {
        known.items(node)
    }

    fn look(&self, program: usize, body: &'a [Node]) -> Body {
        let mut look = Look {
            known: &self.known[program],
            program,
            bundle: self.bundle,
            body: Body::default(),
        };
        look.sequence(body, Times::exactly(1));
        look.body
    }

    /// From what each unit does once to what the whole does.
    fn spread(&mut self, bodies: &IndexMap<Unit, Body>) {
        let order = order(bodies, &(self.bundle.entry, None));
        let mut runs: HashMap<&Unit, Times> = HashMap::new();
        if let Some((entry, _)) = bodies.get_key_value(&(self.bundle.entry, None)) {
            runs.insert(entry, Times::exactly(1));
        }
        for (unit, is_cyclic) in &order {
            let mut times = runs.get(unit).copied().unwrap_or(Times::exactly(0));
            if *is_cyclic {
                times.max = None;
                runs.insert(unit, times);
            }
            for (callee, factor) in &bodies[*unit].calls {
                let Some((callee, _)) = bodies.get_key_value(callee) else {
                    continue;
                };
                let so_far = runs.get(callee).copied().unwrap_or(Times::exactly(0));
                runs.insert(callee, so_far.plus(times.times(*factor)));
            }
        }
        for (unit, body) in bodies {
            let times = runs.get(unit).copied().unwrap_or(Times::exactly(0));
            for (site, factor) in &body.sessions {
                let so_far = self.sites.get(site).copied().unwrap_or(Times::exactly(0));
                self.sites.insert(site.clone(), so_far.plus(times.times(*factor)));
            }
        }
        // The bounds of the whole: branches that exclude each other don't add up.
        for (unit, is_cyclic) in order.iter().rev() {
            let program = unit.0;
            let body: &[Node] = match &unit.1 {
                None => &self.bundle.programs[program].body,
                Some(name) => match self.bundle.programs[program].blocks.get(name) {
                    Some(block) => &block.body,
                    None => continue,
                },
            };
            let mut total = Total {
                counts: self,
                program,
            }
            .sequence(body);
            if *is_cyclic && total.max != Some(0) {
                total.max = None;
            }
            self.totals.insert((*unit).clone(), total);
        }
    }

    /// How many sessions can be at work at once.
    pub(super) fn width(&self, program: usize) -> Option<u64> {
        super::width::Width::new(self).unit(&(program, None))
    }
}

/// Units that can be reached, callers before callees, each with whether it can come to call itself.
fn order<'b>(bodies: &'b IndexMap<Unit, Body>, entry: &Unit) -> Vec<(&'b Unit, bool)> {
    let Some((entry, _)) = bodies.get_key_value(entry) else {
        return Vec::new();
    };
    let callees = |unit: &Unit| -> Vec<&'b Unit> {
        bodies
            .get(unit)
            .into_iter()
            .flat_map(|body| &body.calls)
            .filter_map(|(callee, _)| bodies.get_key_value(callee).map(|(unit, _)| unit))
            .collect()
    };
    let reach = |from: &'b Unit| {
        let mut seen: HashSet<&Unit> = HashSet::new();
        let mut stack = callees(from);
        while let Some(unit) = stack.pop() {
            if seen.insert(unit) {
                stack.extend(callees(unit));
            }
        }
        seen
    };
    let mut done: HashSet<&Unit> = HashSet::new();
    let mut post = Vec::new();
    let mut stack = vec![(entry, false)];
    while let Some((unit, is_left)) = stack.pop() {
        if is_left {
            post.push(unit);
        } else if done.insert(unit) {
            stack.push((unit, true));
            stack.extend(callees(unit).into_iter().map(|callee| (callee, false)));
        }
    }
    post.reverse();
    post.into_iter()
        .map(|unit| (unit, reach(unit).contains(unit)))
        .collect()
}

/// Every node directly inside another.
pub(super) fn parts(node: &Node) -> Vec<&Node> {
    let mut all: Vec<&Node> = Vec::new();
    match &node.op {
        Op::Null
        | Op::Bool(_)
        | Op::Number(_)
        | Op::Text(_)
        | Op::Name(_)
        | Op::AgentMemory(_)
        | Op::Judge(_)
        | Op::Break => {}
        Op::Member { of, .. } => all.push(of),
        Op::Index { of, index } => all.extend([&**of, &**index]),
        Op::List(items) | Op::Arrow(items) | Op::Do(items) => all.extend(items),
        Op::Record(entries) => all.extend(entries.iter().map(|entry| &entry.value)),
        Op::Not(inner) | Op::Neg(inner) => all.push(inner),
        Op::Binary { lhs, rhs, .. } => all.extend([&**lhs, &**rhs]),
        Op::Session(session) => {
            all.extend(session.label.as_deref());
            all.extend(prop_parts(&session.props));
        }
        Op::Call { args, .. } | Op::CallProgram { args, .. } => all.extend(args.iter().map(|arg| &arg.value)),
        Op::Pipeline { source, stages } => {
            all.push(source);
            for stage in stages {
                match stage {
                    Stage::Map { body, .. }
                    | Stage::Filter { body, .. }
                    | Stage::Pmap { body, .. }
                    | Stage::Reduce { body, .. } => all.extend(body),
                    Stage::Chunks(size) => all.push(size),
                }
            }
        }
        Op::Parallel(parallel) => {
            all.extend(parallel.count.as_deref());
            all.extend(parallel.max.as_deref());
            all.extend(&parallel.branches);
        }
        Op::For(each) => {
            all.push(&each.source);
            all.extend(&each.body);
        }
        Op::Repeat { count, body, .. } => {
            all.push(count);
            all.extend(body);
        }
        Op::Loop(it) => {
            all.extend(it.test.iter().map(|test| match test {
                prose_model::LoopTest::Until(cond) | prose_model::LoopTest::While(cond) => cond,
            }));
            all.extend(&it.max);
            all.extend(&it.body);
        }
        Op::If { arms, otherwise } => {
            for arm in arms {
                all.push(&arm.cond);
                all.extend(&arm.body);
            }
            all.extend(otherwise.iter().flatten());
        }
        Op::Choice { options, .. } => all.extend(options.iter().flat_map(|option| &option.body)),
        Op::Try(it) => {
            all.extend(&it.body);
            all.extend(it.catch.iter().flat_map(|catch| &catch.body));
            all.extend(it.finally.iter().flatten());
        }
        Op::Input(input) => all.extend(&input.default),
        Op::Bind { value, .. } => all.push(value),
        Op::Assign { path, value, .. } => {
            all.extend(path);
            all.push(value);
        }
        Op::Return(value) | Op::Throw(value) => all.extend(value.as_deref()),
        Op::Assert { cond, message } => {
            all.push(cond);
            all.extend(message.as_deref());
        }
    }
    all
}

fn prop_parts(props: &Props) -> Vec<&Node> {
    let mut all: Vec<&Node> = Vec::new();
    all.extend(props.model.as_deref());
    all.extend(props.prompt.as_deref());
    if let Some(context) = &props.context {
        all.extend(context.items.iter().map(|item| &item.value));
    }
    all.extend(props.retry.as_deref());
    all.extend(props.skills.iter().map(|skill| &**skill));
    all
}

/// Whether a statement can leave the body that it stands in early, other than by a failure.
fn may_leave(node: &Node) -> bool {
    let mut stack = vec![(node, false)];
    while let Some((node, in_loop)) = stack.pop() {
        match &node.op {
            Op::Return(_) => return true,
            Op::Break if !in_loop => return true,
            op => {
                let in_loop = in_loop || matches!(op, Op::For(_) | Op::Repeat { .. } | Op::Loop(_));
                stack.extend(parts(node).into_iter().map(|part| (part, in_loop)));
            }
        }
    }
    false
}

/// Whether nothing behind a statement runs.
fn leaves(node: &Node) -> bool {
    matches!(node.op, Op::Return(_) | Op::Break | Op::Throw(_))
}

fn retries(session: &prose_model::Session, agent: Option<&prose_model::Agent>, known: &Known) -> Option<u64> {
    let own = session.props.retry.as_deref();
    let retry = own.or_else(|| agent.and_then(|agent| agent.props.retry.as_deref()));
    match retry {
        None => Some(0),
        Some(node) => known.number(node),
    }
}

/// How often a body runs, and whether it may be cut short.
fn iterations(node: &Node, known: &Known) -> Times {
    let cut = |times: Times, body: &[Node]| {
        if body.iter().any(|node| leaves(node) || breaks(node)) {
            Times {
                min: times.min.min(1),
                ..times
            }
        } else {
            times
        }
    };
    match &node.op {
        Op::For(each) => {
            let times = known
                .items(&each.source)
                .map_or(Times::up_to(None), Times::exactly);
            match &each.parallel {
                Some(parallel) if parallel.strategy != Strategy::All => Times {
                    min: times.min.min(1),
                    ..times
                },
                _ => cut(times, &each.body),
            }
        }
        Op::Repeat { count, body, .. } => cut(
            known.number(count).map_or(Times::up_to(None), Times::exactly),
            body,
        ),
        Op::Loop(it) => {
            let max = it.max.as_ref().map(|max| known.number(max));
            match (&it.test, max) {
                (Some(_), max) => Times::up_to(max.flatten()),
                (None, Some(Some(max))) => cut(Times::exactly(max), &it.body),
                (None, Some(None)) => Times::up_to(None),
                (None, None) => cut(
                    Times {
                        min: 1,
                        max: Some(prose_vm::LOOP_LIMIT),
                    },
                    &it.body,
                ),
            }
        }
        _ => Times::exactly(1),
    }
}

/// Whether a statement of a loop's body can end the loop.
fn breaks(node: &Node) -> bool {
    may_leave(node)
}

/// Follows a pipeline: how often each stage's body runs.
pub(super) fn stage_times<'n>(source: &Node, stages: &'n [Stage], known: &Known) -> Vec<(&'n [Node], Times)> {
    let mut items = known.items(source).map_or(Times::up_to(None), Times::exactly);
    let mut all = Vec::new();
    for stage in stages {
        match stage {
            Stage::Map { body, .. } | Stage::Pmap { body, .. } => all.push((body.as_slice(), items)),
            Stage::Filter { body, .. } => {
                all.push((body.as_slice(), items));
                items = items.maybe();
            }
            Stage::Reduce { body, .. } => {
                let times = Times {
                    min: items.min.saturating_sub(1),
                    max: items.max.map(|max| max.saturating_sub(1)),
                };
                all.push((body.as_slice(), times));
                items = Times::up_to(None);
            }
            Stage::Chunks(size) => {
                items = match known.number(size) {
                    Some(size) if size > 0 => Times {
                        min: items.min.div_ceil(size),
                        max: items.max.map(|max| max.div_ceil(size)),
                    },
                    _ => items.maybe(),
                };
            }
        }
    }
    all
}

/// Looks at one unit for places of sessions and calls, each with how often it runs when the unit runs once.
struct Look<'a, 'k> {
    known: &'k Known,
    program: usize,
    bundle: &'a Bundle,
    body: Body,
}

impl<'a> Look<'a, '_> {
    fn sequence(&mut self, nodes: &'a [Node], times: Times) {
        let mut times = times;
        for node in nodes {
            self.node(node, times);
            if leaves(node) {
                times = Times::exactly(0);
            } else if may_leave(node) {
                times = times.maybe();
            }
        }
    }

    fn node(&mut self, node: &'a Node, times: Times) {
        match &node.op {
            Op::Session(session) => {
                let agent = session
                    .agent
                    .as_ref()
                    .and_then(|name| self.bundle.programs[self.program].agents.get(name));
                let tries = Times {
                    min: 1,
                    max: retries(session, agent, self.known).map(|retries| retries.saturating_add(1)),
                };
                self.body.sessions.push((key(node), times.times(tries)));
                self.parts(node, times);
            }
            Op::Call { block, .. } => {
                self.parts(node, times);
                self.body.calls.push(((self.program, Some(block.clone())), times));
            }
            Op::CallProgram { import, .. } => {
                self.parts(node, times);
                let import = self.bundle.programs[self.program].imports.get(import);
                if let Some(at) = import.and_then(|import| import.program) {
                    self.body.calls.push(((at, None), times));
                }
            }
            Op::If { arms, otherwise } => {
                for (at, arm) in arms.iter().enumerate() {
                    self.node(&arm.cond, if at == 0 { times } else { times.maybe() });
                    self.sequence(&arm.body, times.maybe());
                }
                self.sequence(otherwise.as_deref().unwrap_or_default(), times.maybe());
            }
            Op::Choice { options, .. } => {
                let times = if options.len() == 1 { times } else { times.maybe() };
                for option in options {
                    self.sequence(&option.body, times);
                }
            }
            Op::Try(it) => {
                self.sequence(&it.body, times);
                if let Some(catch) = &it.catch {
                    self.sequence(&catch.body, times.maybe());
                }
                self.sequence(it.finally.as_deref().unwrap_or_default(), times);
            }
            Op::Parallel(parallel) => {
                let certain = parallel.strategy == Strategy::All || parallel.branches.len() == 1;
                for branch in &parallel.branches {
                    self.node(branch, if certain { times } else { times.maybe() });
                }
            }
            Op::For(each) => {
                self.node(&each.source, times);
                let inner = times.times(iterations(node, self.known));
                self.sequence(&each.body, inner);
            }
            Op::Repeat { count, body, .. } => {
                self.node(count, times);
                let inner = times.times(iterations(node, self.known));
                self.sequence(body, inner);
            }
            Op::Loop(it) => {
                let inner = times.times(iterations(node, self.known));
                self.sequence(&it.body, inner);
            }
            Op::Pipeline { source, stages } => {
                self.node(source, times);
                for (body, each) in stage_times(source, stages, self.known) {
                    self.sequence(body, times.times(each));
                }
            }
            Op::Do(body) => self.sequence(body, times),
            _ => self.parts(node, times),
        }
    }

    fn parts(&mut self, node: &'a Node, times: Times) {
        for part in parts(node) {
            self.node(part, times);
        }
    }
}

/// Adds up what a unit does, callees included: of what excludes each other, one counts.
struct Total<'c, 'a> {
    counts: &'c Counts<'a>,
    program: usize,
}

impl Total<'_, '_> {
    fn known(&self) -> &Known {
        &self.counts.known[self.program]
    }

    fn sequence(&self, nodes: &[Node]) -> Times {
        let mut total = Times::exactly(0);
        let mut certain = true;
        for node in nodes {
            let times = self.node(node);
            total = total.plus(if certain { times } else { times.maybe() });
            if leaves(node) {
                break;
            }
            certain = certain && !may_leave(node);
        }
        total
    }

    fn node(&self, node: &Node) -> Times {
        let nothing = Times::exactly(0);
        let bodies = |all: &mut dyn Iterator<Item = &[Node]>| {
            all.map(|body| self.sequence(body))
                .reduce(Times::either)
                .unwrap_or(nothing)
        };
        match &node.op {
            Op::Session(session) => {
                let programs = &self.counts.bundle.programs;
                let agent = session
                    .agent
                    .as_ref()
                    .and_then(|name| programs[self.program].agents.get(name));
                let tries = Times {
                    min: 1,
                    max: retries(session, agent, self.known()).map(|retries| retries.saturating_add(1)),
                };
                tries.plus(self.parts(node))
            }
            Op::Call { block, .. } => {
                // A unit that comes to call itself is not known yet; it is made unbounded when it is.
                let callee = self.counts.totals.get(&(self.program, Some(block.clone())));
                self.parts(node).plus(callee.copied().unwrap_or(nothing))
            }
            Op::CallProgram { import, .. } => {
                let programs = &self.counts.bundle.programs;
                let at = programs[self.program]
                    .imports
                    .get(import)
                    .and_then(|import| import.program);
                let callee = at.and_then(|at| self.counts.totals.get(&(at, None)));
                self.parts(node).plus(callee.copied().unwrap_or(nothing))
            }
            Op::If { arms, otherwise } => {
                let conditions = arms.iter().enumerate().map(|(at, arm)| {
                    let times = self.node(&arm.cond);
                    if at == 0 { times } else { times.maybe() }
                });
                let conditions = conditions.fold(nothing, Times::plus);
                let otherwise = otherwise.as_deref().unwrap_or_default();
                let mut all = arms.iter().map(|arm| arm.body.as_slice()).chain([otherwise]);
                conditions.plus(bodies(&mut all))
            }
            Op::Choice { options, .. } => bodies(&mut options.iter().map(|option| option.body.as_slice())),
            Op::Try(it) => {
                let catch = it
                    .catch
                    .as_ref()
                    .map_or(nothing, |catch| self.sequence(&catch.body));
                self.sequence(&it.body)
                    .plus(catch.maybe())
                    .plus(self.sequence(it.finally.as_deref().unwrap_or_default()))
            }
            Op::Parallel(parallel) => {
                let branches: Vec<Times> = parallel.branches.iter().map(|branch| self.node(branch)).collect();
                let sum = branches.iter().copied().fold(nothing, Times::plus);
                match parallel.strategy {
                    Strategy::All => sum,
                    Strategy::First | Strategy::Any => Times {
                        min: branches.iter().map(|times| times.min).min().unwrap_or(0),
                        ..sum
                    },
                }
            }
            Op::For(each) => {
                let inner = self.sequence(&each.body).times(iterations(node, self.known()));
                self.node(&each.source).plus(inner)
            }
            Op::Repeat { count, body, .. } => {
                let inner = self.sequence(body).times(iterations(node, self.known()));
                self.node(count).plus(inner)
            }
            Op::Loop(it) => self.sequence(&it.body).times(iterations(node, self.known())),
            Op::Pipeline { source, stages } => {
                let stages = stage_times(source, stages, self.known());
                stages
                    .into_iter()
                    .map(|(body, times)| self.sequence(body).times(times))
                    .fold(self.node(source), Times::plus)
            }
            Op::Do(body) => self.sequence(body),
            _ => self.parts(node),
        }
    }

    fn parts(&self, node: &Node) -> Times {
        parts(node)
            .into_iter()
            .map(|part| self.node(part))
            .fold(Times::exactly(0), Times::plus)
    }
}
