//! Joins: `parallel`, `parallel for`, `pmap`, and the leading inputs of a program.

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    BindKind, ConstructKind, EffectId, End, ErrorKind, Event, FrameKind, Name, Policy, Strategy, Value,
};

use crate::code::{Body, CBranch, CJoin, COp, CStage, NodeId};
use crate::eval::values;
use crate::events::below;
use crate::expr::{Eval, Stop, record_of};
use crate::machine::Machine;
use crate::scope::Frame;
use crate::strand::{
    Cancel, Child, ChildState, Control, Cx, Decided, FrameState, Join, JoinKind, Kont, Strand, StrandId,
    Unwind, What,
};

impl CJoin {
    const ALL: CJoin = CJoin {
        strategy: Strategy::All,
        policy: Policy::FailFast,
        count: None,
        max: None,
    };

    /// How many successes are needed and how many parts run at once.
    pub fn limits(self, e: &mut Eval<'_>) -> Result<(u64, u64), Stop> {
        let count = self.count.map(|node| e.count(node)).transpose()?.unwrap_or(1);
        let max = self
            .max
            .map(|node| e.count(node))
            .transpose()?
            .unwrap_or(u64::MAX);
        Ok((count.max(1), max.max(1)))
    }
}

/// What a join is made of.
struct Parts {
    kind: JoinKind,
    construct: EffectId,
    items: Arc<Vec<Value>>,
    total: usize,
}

impl Machine {
    pub(crate) fn start_parallel(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        branches: &[CBranch],
        join: CJoin,
        need: u64,
        max: u64,
    ) -> Control {
        let total = branches.len();
        self.construct_started(s, node, ConstructKind::Parallel, Some(total as u64), None);
        let construct = self.id_at(&s.cx, node);
        let parts = Parts {
            kind: JoinKind::Branches,
            construct,
            items: Arc::default(),
            total,
        };
        self.start_join(s, node, parts, join, (need, max))
    }

    pub(crate) fn start_parallel_for(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        items: Arc<Vec<Value>>,
        join: CJoin,
        need: u64,
        max: u64,
    ) -> Control {
        let total = items.len();
        self.construct_started(s, node, ConstructKind::ParallelFor, Some(total as u64), None);
        let construct = self.id_at(&s.cx, node);
        let parts = Parts {
            kind: JoinKind::Iterations,
            construct,
            items,
            total,
        };
        self.start_join(s, node, parts, join, (need, max))
    }

    pub(crate) fn start_pmap(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        stage: usize,
        construct: EffectId,
        items: Arc<Vec<Value>>,
    ) -> Control {
        let total = items.len();
        self.construct_started_as(
            s,
            node,
            construct.clone(),
            ConstructKind::Pipeline,
            Some(total as u64),
            None,
        );
        let parts = Parts {
            kind: JoinKind::Items(stage),
            construct,
            items,
            total,
        };
        self.start_join(s, node, parts, CJoin::ALL, (1, u64::MAX))
    }

    /// Asks for all leading inputs at once.
    pub(crate) fn start_prelude(&mut self, s: &mut Strand, leading: &Body) -> Control {
        let Some(first) = leading.first().copied() else {
            return Control::Value(Value::Null);
        };
        let construct = self.id_at(&s.cx, first);
        let parts = Parts {
            kind: JoinKind::Prelude,
            construct,
            items: Arc::default(),
            total: leading.len(),
        };
        self.start_join(s, first, parts, CJoin::ALL, (1, u64::MAX))
    }

    fn start_join(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        parts: Parts,
        join: CJoin,
        (need, max): (u64, u64),
    ) -> Control {
        let Parts {
            kind,
            construct,
            items,
            total,
        } = parts;
        let waiting = || Child {
            strand: None,
            state: ChildState::Waiting,
            bound: Box::default(),
        };
        let mut join = Join {
            node,
            kind,
            construct,
            children: std::iter::repeat_with(waiting).take(total).collect(),
            next: 0,
            running: 0,
            succeeded: 0,
            lost: 0,
            max: usize::try_from(max).unwrap_or(usize::MAX),
            strategy: join.strategy,
            policy: join.policy,
            need: usize::try_from(need).unwrap_or(usize::MAX),
            decided: None,
            stopping: None,
            items,
        };
        join.decided = self
            .unreachable(&join)
            .or_else(|| (total == 0).then_some(Decided::Done));
        if join.decided.is_some() {
            return self.end_join(s, join);
        }
        self.fill(s, &mut join);
        s.push(What::Join(Box::new(join)));
        Control::Join
    }

    /// Starts children while there is room.
    fn fill(&mut self, s: &Strand, join: &mut Join) {
        while join.running < join.max && join.next < join.children.len() {
            let index = join.next;
            join.next += 1;
            join.running += 1;
            let id = self.start_child(s, join, index);
            join.children[index].strand = Some(id);
            join.children[index].state = ChildState::Running;
        }
    }

    fn start_child(&mut self, s: &Strand, join: &Join, index: usize) -> StrandId {
        let code = self.code.clone();
        let node = join.node;
        let id = self.new_strand();
        let mut child = Strand {
            id,
            parent: Some((s.id, index)),
            stack: Vec::new(),
            cx: s.cx.clone(),
            control: Control::Value(Value::Null),
            cancel: Cancel::No,
            protected: s.protected,
            bound: Vec::new(),
            last_binding: None,
        };
        let op = &code.node(node).op;
        let label = match op {
            COp::Parallel { branches, .. } if join.kind == JoinKind::Branches => {
                branches[index].name.as_ref().map(ToString::to_string)
            }
            _ => None,
        };
        if join.kind != JoinKind::Prelude {
            let construct = join.construct.clone();
            self.emit(Event::PartStarted {
                construct,
                index: index as u32,
                label,
            });
        }
        let item = || join.items.get(index).cloned().unwrap_or_default();
        let (segment, names, kind, body) = match (join.kind, op) {
            (
                JoinKind::Iterations,
                COp::For {
                    item: name,
                    index: counter,
                    body,
                    ..
                },
            ) => {
                let mut names = IndexMap::from([(name.clone(), item())]);
                if let Some(counter) = counter {
                    names.insert(counter.clone(), Value::Number(index as f64));
                }
                (
                    format!("{}[{index}]", code.node(node).id),
                    names,
                    FrameKind::Iteration,
                    body,
                )
            }
            (JoinKind::Items(stage), COp::Pipeline { stages, .. }) => {
                let CStage::Pmap { item: name, body } = &stages[stage] else {
                    return id;
                };
                let names = IndexMap::from([(name.clone(), item())]);
                (
                    format!("{}|{stage}[{index}]", code.node(node).id),
                    names,
                    FrameKind::Item,
                    body,
                )
            }
            (JoinKind::Branches, COp::Parallel { branches, .. }) => {
                child.control = child.seq(&[branches[index].node].into());
                self.wake(child);
                return id;
            }
            _ => {
                let leading = code
                    .programs
                    .get(self.program_of(s))
                    .map(|program| program.leading.clone());
                let input = leading.and_then(|leading| leading.get(index).copied());
                child.control = child.seq(&input.into_iter().collect());
                self.wake(child);
                return id;
            }
        };
        let execution = self.new_execution();
        let frame = Frame {
            kind: Some(kind),
            execution_id: Some(execution),
            name: names.keys().next().cloned().unwrap_or_default(),
            depth: self
                .scopes
                .frame_of(s.cx.scope)
                .map_or(0, |(_, frame)| frame.depth),
            call_site: Some(code.node(node).id.clone()),
            instance: s.cx.instance,
            ..Frame::default()
        };
        let scope = self.open_frame(&child, node, frame, &names, BindKind::Loop);
        let place = below(&s.cx.place, &segment);
        let state = FrameState {
            scope,
            id: execution,
            call: node,
            kind,
            bound: Vec::new(),
        };
        child.push(What::Frame(Box::new(state)));
        child.cx = Cx {
            scope,
            instance: s.cx.instance,
            place,
        };
        child.control = child.seq(body);
        self.wake(child);
        id
    }

    /// Whether a strand's joins only wait for their children to be gone.
    fn is_cancelling(s: &Strand) -> bool {
        s.cancel == Cancel::Killed || (s.cancel == Cancel::Requested && s.protected == 0)
    }

    /// A child strand is over.
    pub(crate) fn child_ended(
        &mut self,
        parent: StrandId,
        index: usize,
        bound: Vec<Name>,
        how: Result<Value, Unwind>,
    ) {
        let Some((s, mut join)) = self.take_join(parent) else {
            return;
        };
        if join.kind != JoinKind::Prelude {
            let end = how.as_ref().err().map_or(End::Ok, Unwind::end);
            let construct = join.construct.clone();
            self.emit(Event::PartFinished {
                construct,
                index: index as u32,
                end,
            });
        }
        join.running -= 1;
        let mut left = None;
        let used =
            self.code.node(join.node).used || !matches!(join.kind, JoinKind::Branches | JoinKind::Iterations);
        let child = &mut join.children[index];
        if !in_own_frame(join.kind) {
            child.bound = bound.into();
        }
        child.strand = None;
        match &how {
            Ok(_) => join.succeeded += 1,
            Err(_) => join.lost += 1,
        }
        child.state = match how {
            Ok(value) => ChildState::Ok(if used { value } else { Value::Null }),
            Err(Unwind::Error(error)) => ChildState::Failed(error),
            Err(unwind) => {
                left = Some(unwind);
                ChildState::Gone
            }
        };
        if !Self::is_cancelling(&s) && join.decided.is_none() {
            join.decided = self.decide(&join, index, left);
            if join.decided.is_some() {
                join.next = join.children.len();
                let losers: Vec<StrandId> = join.children.iter().filter_map(|child| child.strand).collect();
                if !losers.is_empty() {
                    let id = format!("{}:cancel", join.construct).into();
                    join.stopping = self.cancel_strands(&losers, Some(s.id), &s.cx, join.node, id);
                }
            } else {
                self.fill(&s, &mut join);
            }
        }
        self.continue_join(s, join);
    }

    /// Takes a strand with the join on top of its stack.
    pub(crate) fn take_join(&mut self, id: StrandId) -> Option<(Strand, Box<Join>)> {
        let mut s = self.strands.remove(&id)?;
        match s.stack.pop() {
            Some(Kont {
                cx,
                what: What::Join(join),
            }) => {
                s.cx = cx;
                Some((s, join))
            }
            other => {
                s.stack.extend(other);
                self.strands.insert(id, s);
                None
            }
        }
    }

    /// Lets a join wait on, or ends it when all its losers are gone.
    pub(crate) fn continue_join(&mut self, mut s: Strand, mut join: Box<Join>) {
        let gone = join.running == 0 && join.stopping.is_none();
        if Self::is_cancelling(&s) && gone {
            join.decided = Some(Decided::Unwind(Unwind::Cancel));
        }
        s.control = if gone && join.decided.is_some() {
            self.end_join(&mut s, *join)
        } else {
            s.push(What::Join(join));
            Control::Join
        };
        self.wake(s);
    }

    /// Decides a join by the child that just ended; `left` is set when it left early.
    fn decide(&mut self, join: &Join, index: usize, left: Option<Unwind>) -> Option<Decided> {
        match left {
            Some(Unwind::Break) if join.kind == JoinKind::Iterations => return Some(Decided::Done),
            Some(unwind) => return Some(Decided::Unwind(unwind)),
            None => {}
        }
        let error = match &join.children[index].state {
            ChildState::Failed(error) => Some(error.clone()),
            _ => None,
        };
        match (join.strategy, error) {
            (Strategy::First, None) => return Some(Decided::Done),
            (Strategy::First, Some(_)) if join.policy == Policy::Ignore => return Some(Decided::Done),
            (Strategy::All | Strategy::First, Some(error)) if join.policy == Policy::FailFast => {
                return Some(Decided::Unwind(Unwind::Error(error)));
            }
            (Strategy::Any, _) if join.is_won() => return Some(Decided::Done),
            _ => {}
        }
        let all_ended = join.running == 0 && join.next == join.children.len();
        self.unreachable(join)
            .or_else(|| all_ended.then_some(Decided::Done))
    }

    /// The error of a join that can't be met any more. Under `ignore` there is none: the rest runs to its end.
    fn unreachable(&self, join: &Join) -> Option<Decided> {
        let need = match (join.strategy, join.policy) {
            (Strategy::All, _) | (_, Policy::Ignore) => return None,
            // Under `continue` nothing is raised: when no branch succeeds, all bind their errors.
            (Strategy::First, _) => return None,
            (Strategy::Any, _) => join.need,
        };
        if join.children.len() - join.lost >= need {
            return None;
        }
        let mut message = format!("{need} of {} branches had to succeed", join.children.len());
        let failures = failures(join, &self.labels(join));
        if !failures.is_empty() {
            message = format!("{message}: {failures}");
        }
        Some(Decided::Unwind(Unwind::Error(self.error(
            join.node,
            ErrorKind::Join,
            message,
        ))))
    }

    /// How the parts are called in messages.
    fn labels(&self, join: &Join) -> Vec<String> {
        let op = &self.code.node(join.node).op;
        (0..join.children.len())
            .map(|i| match op {
                COp::Parallel { branches, .. } => match branches.get(i).and_then(|b| b.name.as_ref()) {
                    Some(name) => name.to_string(),
                    None => format!("branch {}", i + 1),
                },
                _ => format!("item {}", i + 1),
            })
            .collect()
    }

    /// Ends a join whose children are gone; the strand is at its place.
    fn end_join(&mut self, s: &mut Strand, mut join: Join) -> Control {
        let decided = join.decided.take().unwrap_or(Decided::Done);
        for child in &mut join.children {
            for name in child.bound.iter().filter(|_| !in_own_frame(join.kind)) {
                if !s.bound.contains(name) {
                    s.bound.push(name.clone());
                }
            }
        }
        let failed = matches!(decided, Decided::Done) && join.policy == Policy::Continue;
        let failed = if failed {
            failures(&join, &self.labels(&join))
        } else {
            String::new()
        };
        if matches!(decided, Decided::Done) && join.is_won() {
            // Who has lost leaves null, whether it failed before the race was decided or was cancelled then.
            for child in &mut join.children {
                if matches!(child.state, ChildState::Failed(_)) {
                    child.state = ChildState::Gone;
                }
            }
        }
        if join.kind == JoinKind::Branches {
            self.bind_missing(s, &join, &decided);
        }
        let end = match &decided {
            Decided::Done => End::Ok,
            Decided::Unwind(unwind) => unwind.end(),
        };
        if !failed.is_empty() {
            let message = format!("failed and went on: {failed}");
            self.warn(&s.cx, join.node, "branches-failed", message);
        }
        if join.kind != JoinKind::Prelude {
            self.emit(Event::ConstructFinished {
                construct: join.construct.clone(),
                end,
            });
        }
        if let Decided::Unwind(unwind) = decided {
            return Control::Unwind(unwind);
        }
        let code = self.code.clone();
        let results: Vec<Value> = join
            .children
            .into_iter()
            .map(|child| match child.state {
                ChildState::Ok(value) => value,
                ChildState::Failed(error) => Value::Error(error),
                ChildState::Waiting | ChildState::Running | ChildState::Gone => Value::Null,
            })
            .collect();
        match (join.kind, &code.node(join.node).op) {
            (JoinKind::Branches, COp::Parallel { branches, .. }) => {
                let names: Option<Vec<String>> = branches
                    .iter()
                    .map(|branch| branch.name.as_ref().map(ToString::to_string))
                    .collect();
                match names {
                    Some(names) if !names.is_empty() => {
                        Control::Value(record_of(names.into_iter().zip(results)))
                    }
                    _ => values(results),
                }
            }
            (JoinKind::Items(stage), _) => {
                self.next_stage(s, join.node, stage + 1, crate::expr::list_of(results))
            }
            (JoinKind::Prelude, _) => Control::Value(results.into_iter().next_back().unwrap_or_default()),
            _ => values(results),
        }
    }

    /// Binds what branches have not: a failed one's name to its error, all else to null. When the join raises, only
    /// what an earlier run of the same branches has left is cleared.
    fn bind_missing(&mut self, s: &mut Strand, join: &Join, decided: &Decided) {
        let code = self.code.clone();
        let COp::Parallel { branches, .. } = &code.node(join.node).op else {
            return;
        };
        let done = match decided {
            Decided::Done => true,
            Decided::Unwind(Unwind::Cancel) => return,
            Decided::Unwind(_) => false,
        };
        for (branch, child) in branches.iter().zip(&join.children) {
            let error = match &child.state {
                ChildState::Ok(_) => continue,
                ChildState::Failed(error) if done => Some(error),
                _ => None,
            };
            for name in branch.binds.iter().filter(|name| !child.bound.contains(name)) {
                // Another branch may have bound the same name: that stands.
                if join.children.iter().any(|other| other.bound.contains(name)) {
                    continue;
                }
                let own = branch.name.as_ref() == Some(name);
                let frame = self.scopes.frame_of(s.cx.scope).map(|(id, _)| id);
                let stale = self
                    .scopes
                    .find(s.cx.scope, name)
                    .is_some_and(|(id, _)| Some(id) == frame);
                if !done && !stale {
                    continue;
                }
                let value = error
                    .filter(|_| own)
                    .map_or(Value::Null, |error| Value::Error(error.clone()));
                let kind = if own { BindKind::Branch } else { BindKind::Let };
                let source = code.node(branch.node).src;
                self.bind(s, branch.node, kind, name, value, source);
            }
        }
    }
}

impl Join {
    /// Whether it is a race that was decided by success.
    fn is_won(&self) -> bool {
        match self.strategy {
            Strategy::All => false,
            Strategy::First => self.succeeded > 0,
            Strategy::Any => self.succeeded >= self.need,
        }
    }
}

/// Whether the parts bind in frames of their own.
fn in_own_frame(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Iterations | JoinKind::Items(_))
}

/// The failed parts with their messages.
fn failures(join: &Join, labels: &[String]) -> String {
    let failed = join
        .children
        .iter()
        .zip(labels)
        .filter_map(|(child, label)| match &child.state {
            ChildState::Failed(error) => Some(format!("{label} ({})", error.message)),
            _ => None,
        });
    failed.collect::<Vec<_>>().join("; ")
}
