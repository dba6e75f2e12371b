//! Branches that run at once: ordinary futures on one thread, what they ask for, and joins: language.md, "Execution".
//!
//! A branch goes on until it asks for something. What is answered goes on first; what was started goes on in the order of
//! its start.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use indexmap::IndexMap;
use prose_model::{Bundle, ErrorValue, Outcome, Policy, Strategy, Value};

/// Why a statement was left.
#[derive(Debug, Clone)]
pub enum Exit {
    Error(Arc<ErrorValue>),
    Return(Value),
    Break,
    Cancel,
}
pub type Res = Result<Value, Exit>;
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

pub struct Model {
    pub bundle: Arc<Bundle>,
    pub world: RefCell<World>,
}

#[derive(Default)]
pub struct World {
    ready: VecDeque<usize>,
    futures: HashMap<usize, Fut<'static, ()>>,
    tasks: BTreeMap<usize, Rc<Task>>,
    next_task: usize,
    /// What waits for an answer: its number and what is asked.
    pub open: Vec<(u64, String)>,
    next_effect: u64,
    answers: HashMap<u64, Outcome>,
    /// Cancellations whose effects have to stop first.
    scopes: VecDeque<Stopping>,
    /// All that was asked.
    pub log: Vec<String>,
    /// The last value of every binding that has a file.
    pub bound: IndexMap<String, String>,
    pub execution: u32,
    pub instances: Vec<Instance>,
    pub done: Option<Res>,
    cancelled: bool,
}

#[derive(Default)]
pub struct Instance {
    pub program: usize,
    pub path: Vec<String>,
    pub anonymous: u32,
    pub supplied: IndexMap<String, Value>,
    pub outputs: IndexMap<String, Value>,
    pub calls: IndexMap<String, u32>,
}

struct Stopping {
    leaves: Vec<usize>,
    join: Option<Rc<Join>>,
}

/// A branch.
#[derive(Default)]
pub struct Task {
    pub id: usize,
    pub cancelled: Cell<bool>,
    /// It is told now.
    released: Cell<bool>,
    /// `finally` bodies that it is in.
    pub protected: Cell<u32>,
    /// `finally` bodies that it has yet to run.
    pub finallies: Cell<u32>,
    waits_for: Cell<Option<u64>>,
    join: RefCell<Option<Rc<Join>>>,
    pub last_target: RefCell<String>,
}

impl Task {
    fn is_stopping(&self) -> bool {
        self.cancelled.get() && self.protected.get() == 0
    }
}

pub type Bound = Rc<RefCell<Vec<String>>>;
pub type Start = Rc<dyn Fn(usize, Rc<Task>, Bound) -> Fut<'static, Res>>;

/// Told how the parts have ended and how the join does.
pub type Ending = Box<dyn Fn(&[Part], &Result<(), Exit>)>;

pub struct Join {
    parent: Rc<Task>,
    strategy: Strategy,
    policy: Policy,
    need: usize,
    max: usize,
    start: Start,
    /// Binds the names that parts have not, once it is known how the join ends.
    end: Ending,
    /// How it is left by `break`: `parallel for` is a loop.
    is_loop: bool,
    pub error: Box<dyn Fn(String) -> Exit>,
    labels: Vec<String>,
    state: RefCell<JoinState>,
}

#[derive(Default)]
struct JoinState {
    parts: Vec<Part>,
    next: usize,
    running: usize,
    decided: Option<Result<(), Exit>>,
    stopping: bool,
    over: bool,
}

pub struct Part {
    task: Option<Rc<Task>>,
    pub how: How,
    pub bound: Bound,
}

#[derive(Debug, Clone)]
pub enum How {
    Open,
    Ok(Value),
    Failed(Arc<ErrorValue>),
    Gone,
}

/// What a join is made of.
pub struct Plan {
    pub total: usize,
    pub strategy: Strategy,
    pub policy: Policy,
    pub need: usize,
    pub max: usize,
    pub start: Start,
    pub end: Ending,
    pub is_loop: bool,
    pub error: Box<dyn Fn(String) -> Exit>,
    pub labels: Vec<String>,
}

impl Model {
    pub fn new_execution(&self) -> u32 {
        let mut world = self.world.borrow_mut();
        world.execution += 1;
        world.execution
    }

    fn new_task(&self, protected: u32) -> Rc<Task> {
        let mut world = self.world.borrow_mut();
        world.next_task += 1;
        let task = Rc::new(Task {
            id: world.next_task,
            protected: Cell::new(protected),
            ..Task::default()
        });
        world.tasks.insert(task.id, task.clone());
        task
    }

    fn spawn(&self, task: &Rc<Task>, future: Fut<'static, ()>) {
        let mut world = self.world.borrow_mut();
        world.futures.insert(task.id, future);
        world.ready.push_back(task.id);
    }

    /// Starts the first branch.
    pub fn start(self: &Rc<Self>, body: impl FnOnce(Rc<Task>) -> Fut<'static, Res>) {
        let task = self.new_task(0);
        let (model, me, body) = (self.clone(), task.clone(), body(task.clone()));
        self.spawn(
            &task,
            Box::pin(async move {
                let how = if me.released.take() {
                    Err(Exit::Cancel)
                } else {
                    body.await
                };
                let mut world = model.world.borrow_mut();
                world.tasks.remove(&me.id);
                world.done = Some(how);
            }),
        );
    }

    /// Goes on until everything waits.
    pub fn rest(self: &Rc<Self>) {
        loop {
            let next = self.world.borrow_mut().ready.pop_front();
            if let Some(id) = next {
                let future = self.world.borrow_mut().futures.remove(&id);
                let Some(mut future) = future else { continue };
                let mut context = Context::from_waker(Waker::noop());
                if future.as_mut().poll(&mut context).is_pending() {
                    self.world.borrow_mut().futures.insert(id, future);
                }
                continue;
            }
            let scope = self.world.borrow_mut().scopes.pop_front();
            let Some(Stopping { mut leaves, join }) = scope else {
                return;
            };
            leaves.sort_unstable();
            leaves.into_iter().for_each(|id| self.release(id));
            if let Some(join) = join {
                join.state.borrow_mut().stopping = false;
                self.settle(&join);
            }
        }
    }

    /// Asks for something and waits.
    pub async fn ask(&self, task: &Task, what: String) -> Result<Outcome, Exit> {
        let what = crate::without_places(what);
        let n = {
            let mut world = self.world.borrow_mut();
            world.next_effect += 1;
            let n = world.next_effect;
            world.log.push(what.clone());
            world.open.push((n, what));
            n
        };
        task.waits_for.set(Some(n));
        poll_fn(|_| {
            if task.released.take() {
                return Poll::Ready(Err(Exit::Cancel));
            }
            match self.world.borrow_mut().answers.remove(&n) {
                Some(outcome) => Poll::Ready(Ok(outcome)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Answers what stands at this place among the open ones.
    pub fn answer(&self, at: usize, outcome: Outcome) {
        let mut world = self.world.borrow_mut();
        let (n, _) = world.open.remove(at);
        world.answers.insert(n, outcome);
        let owner = world
            .tasks
            .values()
            .find(|task| task.waits_for.get() == Some(n))
            .cloned();
        let owner = owner.expect("somebody waits");
        owner.waits_for.set(None);
        world.ready.push_back(owner.id);
    }

    /// The user cancels.
    pub fn cancel(self: &Rc<Self>) {
        let root = {
            let mut world = self.world.borrow_mut();
            if std::mem::replace(&mut world.cancelled, true) {
                return;
            }
            world.tasks.values().next().cloned()
        };
        if let Some(root) = root {
            self.cancel_tasks(vec![root], None);
        }
    }

    fn release(&self, id: usize) {
        let mut world = self.world.borrow_mut();
        if let Some(task) = world.tasks.get(&id) {
            task.released.set(true);
            world.ready.push_back(id);
        }
    }

    /// Cancels branches with all below them. True when something has to stop first.
    fn cancel_tasks(self: &Rc<Self>, roots: Vec<Rc<Task>>, join: Option<&Rc<Join>>) -> bool {
        let mut leaves = Vec::new();
        let mut effects = Vec::new();
        let mut finally = false;
        let mut todo = roots;
        todo.reverse();
        while let Some(task) = todo.pop() {
            finally |= task.protected.get() > 0 || task.finallies.get() > 0;
            if task.cancelled.replace(true) || task.protected.get() > 0 {
                continue;
            }
            if let Some(n) = task.waits_for.take() {
                effects.push(n);
                leaves.push(task.id);
                continue;
            }
            let waiting = task.join.borrow().clone();
            match waiting {
                Some(join) => {
                    let mut state = join.state.borrow_mut();
                    state.next = state.parts.len();
                    let below = state.parts.iter().rev().filter_map(|part| part.task.clone());
                    todo.extend(below);
                }
                None => {
                    let mut world = self.world.borrow_mut();
                    world.ready.retain(|id| *id != task.id);
                    leaves.push(task.id);
                }
            }
        }
        if effects.is_empty() && !finally {
            leaves.into_iter().for_each(|id| self.release(id));
            return false;
        }
        let mut world = self.world.borrow_mut();
        world.open.retain(|(n, _)| !effects.contains(n));
        world.scopes.push_back(Stopping {
            leaves,
            join: join.cloned(),
        });
        true
    }

    /// Runs the parts of a join and gives them when it goes on.
    pub async fn join(self: &Rc<Self>, task: &Rc<Task>, plan: Plan) -> Result<Vec<How>, Exit> {
        let join = Rc::new(Join {
            parent: task.clone(),
            strategy: plan.strategy,
            policy: plan.policy,
            need: plan.need,
            max: plan.max,
            start: plan.start,
            end: plan.end,
            is_loop: plan.is_loop,
            error: plan.error,
            labels: plan.labels,
            state: RefCell::new(JoinState {
                parts: (0..plan.total)
                    .map(|_| Part {
                        task: None,
                        how: How::Open,
                        bound: Bound::default(),
                    })
                    .collect(),
                ..JoinState::default()
            }),
        });
        let hopeless = join.hopeless();
        if hopeless.is_some() || plan.total == 0 {
            join.state.borrow_mut().decided = Some(hopeless.map_or(Ok(()), Err));
            self.finish(&join);
        } else {
            self.fill(&join);
            *task.join.borrow_mut() = Some(join.clone());
            poll_fn(|_| {
                if task.released.take() {
                    return Poll::Ready(Err(Exit::Cancel));
                }
                match join.state.borrow().over {
                    true => Poll::Ready(Ok(())),
                    false => Poll::Pending,
                }
            })
            .await?;
        }
        let mut state = join.state.borrow_mut();
        state.decided.take().unwrap_or(Ok(()))?;
        Ok(state.parts.iter().map(|part| part.how.clone()).collect())
    }

    fn fill(self: &Rc<Self>, join: &Rc<Join>) {
        loop {
            let (index, bound) = {
                let mut state = join.state.borrow_mut();
                if state.running >= join.max || state.next >= state.parts.len() {
                    return;
                }
                state.next += 1;
                state.running += 1;
                (state.next - 1, state.parts[state.next - 1].bound.clone())
            };
            let task = self.new_task(join.parent.protected.get());
            join.state.borrow_mut().parts[index].task = Some(task.clone());
            let body = (join.start)(index, task.clone(), bound);
            let (model, join, me) = (self.clone(), join.clone(), task.clone());
            self.spawn(
                &task,
                Box::pin(async move {
                    let how = if me.released.take() {
                        Err(Exit::Cancel)
                    } else {
                        body.await
                    };
                    model.world.borrow_mut().tasks.remove(&me.id);
                    model.part_ended(&join, index, how);
                }),
            );
        }
    }

    fn part_ended(self: &Rc<Self>, join: &Rc<Join>, index: usize, how: Res) {
        let mut left = None;
        {
            let mut state = join.state.borrow_mut();
            state.running -= 1;
            let part = &mut state.parts[index];
            part.task = None;
            part.how = match how {
                Ok(value) => How::Ok(value),
                Err(Exit::Error(error)) => How::Failed(error),
                Err(exit) => {
                    left = Some(exit);
                    How::Gone
                }
            };
        }
        if !join.parent.is_stopping() && join.state.borrow().decided.is_none() {
            let decided = join.decide(index, left);
            if decided.is_some() {
                let losers: Vec<_> = {
                    let mut state = join.state.borrow_mut();
                    state.decided = decided;
                    state.next = state.parts.len();
                    state.parts.iter().filter_map(|part| part.task.clone()).collect()
                };
                if !losers.is_empty() {
                    let stopping = self.cancel_tasks(losers, Some(join));
                    join.state.borrow_mut().stopping = stopping;
                }
            } else {
                self.fill(join);
            }
        }
        self.settle(join);
    }

    /// Ends a join when nothing of it runs any more.
    fn settle(self: &Rc<Self>, join: &Rc<Join>) {
        {
            let mut state = join.state.borrow_mut();
            let gone = state.running == 0 && !state.stopping;
            if join.parent.is_stopping() && gone {
                state.decided = Some(Err(Exit::Cancel));
            }
            if !gone || state.decided.is_none() || state.over {
                return;
            }
        }
        self.finish(join);
        *join.parent.join.borrow_mut() = None;
        self.world.borrow_mut().ready.push_back(join.parent.id);
    }

    fn finish(&self, join: &Rc<Join>) {
        let mut state = join.state.borrow_mut();
        state.over = true;
        let won = join.is_won(&state.parts);
        if matches!(state.decided, Some(Ok(()))) && won {
            for part in &mut state.parts {
                if matches!(part.how, How::Failed(_)) {
                    part.how = How::Gone;
                }
            }
        }
        if let Some(decided) = &state.decided {
            (join.end)(&state.parts, decided);
        }
    }
}

impl Join {
    fn is_won(&self, parts: &[Part]) -> bool {
        let won = parts.iter().filter(|part| matches!(part.how, How::Ok(_))).count();
        match self.strategy {
            Strategy::All => false,
            Strategy::First => won > 0,
            Strategy::Any => won >= self.need,
        }
    }

    /// `any` whose number can't be reached any more.
    fn hopeless(&self) -> Option<Exit> {
        if self.strategy != Strategy::Any || self.policy == Policy::Ignore {
            return None;
        }
        let state = self.state.borrow();
        let lost = |part: &&Part| matches!(part.how, How::Failed(_) | How::Gone);
        let lost = state.parts.iter().filter(lost).count();
        if state.parts.len() - lost >= self.need {
            return None;
        }
        let mut message = format!("{} of {} branches had to succeed", self.need, state.parts.len());
        let failed = state
            .parts
            .iter()
            .zip(&self.labels)
            .filter_map(|(part, label)| match &part.how {
                How::Failed(error) => Some(format!("{label} ({})", error.message)),
                _ => None,
            });
        let failed = failed.collect::<Vec<_>>().join("; ");
        if !failed.is_empty() {
            message = format!("{message}: {failed}");
        }
        Some((self.error)(message))
    }

    /// What the end of a part decides.
    fn decide(&self, index: usize, left: Option<Exit>) -> Option<Result<(), Exit>> {
        match left {
            Some(Exit::Break) if self.is_loop => return Some(Ok(())),
            Some(exit) => return Some(Err(exit)),
            None => {}
        }
        let state = self.state.borrow();
        let how = &state.parts[index].how;
        match (self.strategy, self.policy, how) {
            // The first completion under fail-fast and ignore, the first success under continue.
            (Strategy::First, _, How::Ok(_)) => return Some(Ok(())),
            (Strategy::First, Policy::Ignore, How::Failed(_)) => return Some(Ok(())),
            (Strategy::First | Strategy::All, Policy::FailFast, How::Failed(error)) => {
                return Some(Err(Exit::Error(error.clone())));
            }
            (Strategy::Any, ..) if self.is_won(&state.parts) => return Some(Ok(())),
            _ => {}
        }
        let all = state.running == 0 && state.next == state.parts.len();
        drop(state);
        match self.hopeless() {
            Some(error) => Some(Err(error)),
            None => all.then_some(Ok(())),
        }
    }
}
