//! Evaluation: what a node starts, what a continuation does with a value, what it does when it is left.

use prose_model::{BindKind, BindTarget, ConstructKind, DecodeTarget, End, ErrorKind, Value};

use crate::code::{Body, COp, NodeId, is_construct};
use crate::expr::{Caution, Eval, Stop, kind_of, list_of, lookup};
use crate::machine::Machine;
use crate::scope::Slot;
use crate::strand::{Control, Cx, Kont, Strand, Task, TaskState, Unwind, What};

/// Keeps an evaluation's control or asks for what it needs.
type Outcome = Result<Control, Stop>;

impl Strand {
    /// Puts a continuation on the stack; its place to come back to is the present one.
    pub(crate) fn push(&mut self, what: What) {
        self.stack.push(Kont {
            cx: self.cx.clone(),
            what,
        });
    }

    /// Starts statements; the control of an empty body is null.
    pub(crate) fn seq(&mut self, nodes: &Body) -> Control {
        if nodes.is_empty() {
            return Control::Value(Value::Null);
        }
        self.push(What::Seq {
            nodes: nodes.clone(),
            next: 0,
        });
        // The value is thrown away: the sequence takes it as the sign to start.
        Control::Value(Value::Null)
    }
}

impl Machine {
    /// Starts a node.
    pub(crate) fn eval(&mut self, s: &mut Strand, node: NodeId) -> Control {
        let code = self.code.clone();
        let n = code.node(node);
        match &n.op {
            COp::Logic { first, .. } => {
                s.push(What::Logic { node, second: false });
                self.start_task(s, Task::Truth(*first), code.node(*first).lifts.clone())
            }
            COp::Session(session) => {
                let agent = session.agent.as_ref();
                let agent = agent.and_then(|name| code.programs.get(self.program_of(s))?.agents.get(name));
                let lifts = match agent {
                    Some(agent) if !agent.operands.is_empty() => {
                        n.operands.iter().chain(agent.operands.iter()).copied().collect()
                    }
                    _ => n.operands.clone(),
                };
                self.start_task(s, Task::Construct(node), lifts)
            }
            COp::Arrow(parts) => match parts.first() {
                Some(first) => {
                    s.push(What::Arrow {
                        node,
                        next: 1,
                        previous: None,
                    });
                    s.last_binding = None;
                    Control::Eval(*first)
                }
                None => Control::Value(Value::Null),
            },
            COp::Do(body) => s.seq(body),
            COp::If { arms, .. } => match arms.first() {
                Some((cond, _)) => {
                    self.construct_started(s, node, ConstructKind::If, None, None);
                    s.push(What::If {
                        node,
                        arm: 0,
                        body: false,
                    });
                    self.start_task(s, Task::Truth(*cond), code.node(*cond).lifts.clone())
                }
                None => Control::Value(Value::Null),
            },
            COp::Try { .. } => self.start_try(s, node),
            COp::Break => Control::Unwind(Unwind::Break),
            // Everything else has operands and does one thing with them.
            op if !is_construct(op) => self.start_task(s, Task::Value(node), n.lifts.clone()),
            _ => self.start_task(s, Task::Construct(node), n.operands.clone()),
        }
    }

    /// The index of the program that a strand runs.
    pub(crate) fn program_of(&self, s: &Strand) -> usize {
        self.instances
            .get(s.cx.instance as usize)
            .map_or(0, |instance| instance.program)
    }

    /// Runs a task's constructs, then its pure part.
    pub(crate) fn start_task(&mut self, s: &mut Strand, task: Task, lifts: Body) -> Control {
        let first = lifts.first().copied();
        let mut state = TaskState {
            task,
            lifts,
            next: 0,
            temps: Vec::new(),
            memo: Vec::new(),
            asked: None,
        };
        match first {
            Some(first) => {
                state.next = 1;
                s.push(What::Task(Box::new(state)));
                Control::Eval(first)
            }
            None => self.perform_task(s, Box::new(state)),
        }
    }

    fn resume_task(&mut self, s: &mut Strand, mut state: Box<TaskState>, value: Value) -> Control {
        if let Some(done) = state.next.checked_sub(1).and_then(|i| state.lifts.get(i)) {
            state.temps.push((*done, value));
        }
        match state.lifts.get(state.next).copied() {
            Some(next) => {
                state.next += 1;
                s.push(What::Task(state));
                Control::Eval(next)
            }
            None => self.perform_task(s, state),
        }
    }

    /// Evaluates a task's pure part and does what follows; starts over after each decoding.
    pub(crate) fn perform_task(&mut self, s: &mut Strand, state: Box<TaskState>) -> Control {
        match self.perform(s, &state) {
            Ok(control) => control,
            Err(stop) => self.ask_content(s, state, stop),
        }
    }

    /// An evaluation at the strand's place.
    pub(crate) fn pure<'m>(&'m self, cx: &Cx, state: &'m TaskState) -> Eval<'m> {
        Eval {
            code: &self.code,
            scopes: &self.scopes,
            instance: &self.instances[cx.instance as usize],
            scope: cx.scope,
            temps: &state.temps,
            memo: &state.memo,
            cautions: Vec::new(),
            brief: false,
            mentioned: Vec::new(),
        }
    }

    /// Runs one evaluation and emits its warnings when it succeeds.
    pub(crate) fn with<T>(
        &mut self,
        s: &Strand,
        state: &TaskState,
        f: impl FnOnce(&mut Eval<'_>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut eval = self.pure(&s.cx, state);
        let value = f(&mut eval)?;
        let cautions = std::mem::take(&mut eval.cautions);
        self.caution(&s.cx, cautions);
        Ok(value)
    }

    fn caution(&mut self, cx: &Cx, cautions: Vec<Caution>) {
        for Caution { node, code, message } in cautions {
            self.warn(cx, node, code, message);
        }
    }

    fn perform(&mut self, s: &mut Strand, state: &TaskState) -> Outcome {
        let node = match &state.task {
            Task::Value(node) => return Ok(Control::Value(self.with(s, state, |e| e.value(*node))?)),
            Task::Truth(node) => {
                return Ok(Control::Value(Value::Bool(
                    self.with(s, state, |e| e.truth(*node))?,
                )));
            }
            Task::AsTruth(_, value) => {
                return Ok(Control::Value(Value::Bool(
                    self.with(s, state, |e| e.truth_of(value))?,
                )));
            }
            Task::StageItems(node, stage, value) => {
                let items = self.with(s, state, |e| e.items(value, *node))?;
                return Ok(self.start_stage(s, *node, *stage, items));
            }
            Task::Chunks(node, stage, size, items) => {
                let size = self.with(s, state, |e| e.count(*size))?;
                return Ok(self.chunks(s, *node, *stage, size, items));
            }
            Task::Construct(node) => *node,
        };
        let code = self.code.clone();
        let n = code.node(node);
        Ok(match &n.op {
            COp::Session(session) => self.spawn(s, node, session, state)?,
            COp::Judge { text, role } => {
                let text = self.with(s, state, |e| e.insertions(text, node))?;
                self.ask_judge(s, node, text, *role)
            }
            COp::Choice { criteria, options } => {
                let (text, labels) = self.with(s, state, |e| {
                    let labels = options.iter().map(|option| {
                        let label = e.insertions(&option.label, node)?;
                        Ok(crate::render::plain_text(&label))
                    });
                    let labels = labels.collect::<Result<Vec<_>, Stop>>()?;
                    Ok((e.insertions(criteria, node)?, labels))
                })?;
                self.ask_choice(s, node, text, labels)
            }
            COp::Input { .. } => self.start_input(s, node, state)?,
            COp::Call { block, args } => {
                let args = self.with(s, state, |e| {
                    args.0
                        .iter()
                        .map(|(name, arg)| Ok((name.clone(), e.value(*arg)?)))
                        .collect()
                })?;
                self.call(s, node, block, args)
            }
            COp::CallProgram { import, args } => {
                let args = self.with(s, state, |e| {
                    args.0
                        .iter()
                        .map(|(name, arg)| Ok((name.clone(), e.value(*arg)?)))
                        .collect()
                })?;
                self.call_program(s, node, import, args)
            }
            COp::Pipeline { source, .. } => {
                let source = self.with(s, state, |e| e.value(*source))?;
                self.next_stage(s, node, 0, source)
            }
            COp::Parallel { branches, join } => {
                let (count, max) = self.with(s, state, |e| join.limits(e))?;
                self.start_parallel(s, node, branches, *join, count, max)
            }
            COp::For { source, parallel, .. } => {
                let (items, limits) = self.with(s, state, |e| {
                    let value = e.value(*source)?;
                    let items = e.items(&value, *source)?;
                    let limits = parallel.map(|join| join.limits(e)).transpose()?;
                    Ok((items, limits))
                })?;
                match (parallel, limits) {
                    (Some(join), Some((count, max))) => {
                        self.start_parallel_for(s, node, items, *join, count, max)
                    }
                    _ => self.start_for(s, node, items),
                }
            }
            COp::Repeat { count, .. } => {
                let count = self.with(s, state, |e| e.count(*count))?;
                self.start_repeat(s, node, count)
            }
            COp::Loop { max, .. } => {
                let max = self.with(s, state, |e| max.map(|max| e.count(max)).transpose())?;
                self.start_loop(s, node, max)
            }
            COp::Bind { kind, target, value } => self.perform_bind(s, node, *kind, target, *value, state)?,
            COp::Assign { .. } => self.perform_assign(s, node, state)?,
            COp::Return(value) => {
                let value = value
                    .map(|value| self.with(s, state, |e| e.value(value)))
                    .transpose()?;
                Control::Unwind(Unwind::Return(value.unwrap_or_default()))
            }
            COp::Throw(value) => {
                let value = value
                    .map(|value| self.with(s, state, |e| e.value(value)))
                    .transpose()?;
                self.throw(s, node, value)
            }
            COp::Assert { cond, message } => {
                let failed = self.with(s, state, |e| {
                    if e.truth(*cond)? {
                        return Ok(None);
                    }
                    Ok(Some(match message {
                        Some(message) => crate::render::plain(&e.value(*message)?),
                        None => format!(
                            "assertion failed: {}",
                            crate::render::one_line(&code.source(*cond))
                        ),
                    }))
                })?;
                match failed {
                    None => Control::Value(Value::Null),
                    Some(message) => self.raise(node, ErrorKind::Assertion, message),
                }
            }
            _ => Control::Value(Value::Null),
        })
    }

    fn perform_bind(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        kind: BindKind,
        target: &BindTarget,
        value: NodeId,
        state: &TaskState,
    ) -> Outcome {
        let source = self.code.node(node).src;
        match target {
            BindTarget::Name(name) => {
                let value = self.with(s, state, |e| e.value(value))?;
                self.bind(s, node, kind, name, value.clone(), source);
                Ok(Control::Value(value))
            }
            BindTarget::Record(names) => {
                let (value, fields) = self.with(s, state, |e| {
                    let whole = e.value(value)?;
                    let keys = names.iter().map(|name| name.to_string()).collect();
                    let entries = match &whole {
                        Value::Text(_) => e.decoded(&whole, DecodeTarget::Record(keys))?,
                        other => other.clone(),
                    };
                    let mut fields = Vec::new();
                    for name in names {
                        let field = match &entries {
                            Value::Record(entries) => lookup(entries, name).cloned(),
                            _ => None,
                        };
                        if field.is_none() {
                            let message = format!("{} holds no '{name}': it is null", kind_of(&whole));
                            e.caution(node, "missing-key", message);
                        }
                        fields.push((name, field.unwrap_or_default()));
                    }
                    Ok((whole, fields))
                })?;
                for (name, field) in fields {
                    self.bind(s, node, kind, name, field, source);
                }
                Ok(Control::Value(value))
            }
        }
    }

    fn perform_assign(&mut self, s: &mut Strand, node: NodeId, state: &TaskState) -> Outcome {
        let code = self.code.clone();
        let COp::Assign { name, path, value } = &code.node(node).op else {
            return Ok(self.broken(node));
        };
        let (value, whole) = self.with(s, state, |e| {
            let value = e.value(*value)?;
            let path = path
                .iter()
                .map(|key| e.value(*key))
                .collect::<Result<Vec<_>, _>>()?;
            let whole = if path.is_empty() {
                value.clone()
            } else {
                let old = e.scopes.find(e.scope, name).map(|(_, slot)| slot.value.clone());
                e.put(old.unwrap_or_default(), &path, value.clone(), node)?
            };
            Ok((value, whole))
        })?;
        let held = self
            .scopes
            .assignable(s.cx.scope, name)
            .map(|(id, slot)| (id, slot.clone()));
        self.with(s, state, |e| e.nested(std::slice::from_ref(&whole), node))?;
        let source = code.node(node).src;
        match held {
            Some((_, slot)) if slot.kind == BindKind::Const => {
                let message = format!("'{name}' is a constant");
                return Err(Stop::Raise(ErrorKind::Type, message, node));
            }
            Some((holder, slot)) => {
                if let Some(scope) = self.scopes.get_mut(holder) {
                    scope.slots.insert(
                        name.clone(),
                        Slot {
                            value: whole.clone(),
                            kind: slot.kind,
                        },
                    );
                }
                if slot.kind == BindKind::Output {
                    self.register_output(s, name, whole.clone());
                }
                let at = self.place(&s.cx, node);
                let binding = self.binding_ref(holder, name);
                let kind = slot.kind;
                self.emit(prose_model::Event::Bound {
                    at,
                    binding,
                    kind,
                    source,
                    value: whole,
                });
            }
            None => self.bind(s, node, BindKind::Let, name, whole, source),
        }
        Ok(Control::Value(value))
    }

    /// Gives a value to the continuation that was on top.
    pub(crate) fn resume(&mut self, s: &mut Strand, what: What, value: Value) -> Control {
        match what {
            What::Seq { nodes, next } => {
                if next > 0 {
                    self.statement_finished(s, nodes[next - 1], End::Ok);
                }
                match nodes.get(next).copied() {
                    Some(node) => {
                        s.push(What::Seq {
                            nodes,
                            next: next + 1,
                        });
                        self.statement_started(s, node);
                        Control::Eval(node)
                    }
                    None => Control::Value(value),
                }
            }
            What::Task(state) => self.resume_task(s, state, value),
            What::Logic { node, second } => self.resume_logic(s, node, second, &value),
            What::If { node, arm, body } => self.resume_if(s, node, arm, body, value),
            What::Arrow {
                node,
                next,
                previous: _,
            } => self.resume_arrow(s, node, next, value),
            What::ChoiceBody { node, option } => {
                self.part_finished(s, node, option as u64, End::Ok);
                self.construct_finished(s, node, End::Ok);
                Control::Value(value)
            }
            What::Try { node, phase } => self.resume_try(s, node, phase, value),
            What::For(state) => self.resume_for(s, state, value),
            What::Loop(state) => self.resume_loop(s, state, value),
            What::Stage(state) => self.resume_stage(s, state, value),
            What::Frame(frame) => self.leave_frame(s, *frame, Ok(value)),
            What::Program(program) => self.resume_program(s, program, value),
            // These wait for outcomes or strands, never for values.
            What::Session(_)
            | What::Judge { .. }
            | What::Choice { .. }
            | What::Input { .. }
            | What::Join(_) => Control::Value(value),
        }
    }

    /// Leaves the continuation that was on top.
    pub(crate) fn unwind(&mut self, s: &mut Strand, what: What, unwind: Unwind) -> Control {
        match what {
            What::Seq { nodes, next } => {
                if next > 0 {
                    self.statement_finished(s, nodes[next - 1], unwind.end());
                }
            }
            What::If { node, arm, body } => {
                if body {
                    self.part_finished(s, node, arm as u64, unwind.end());
                }
                self.construct_finished(s, node, unwind.end());
            }
            What::ChoiceBody { node, option } => {
                self.part_finished(s, node, option as u64, unwind.end());
                self.construct_finished(s, node, unwind.end());
            }
            What::Choice { node, .. } => self.construct_finished(s, node, unwind.end()),
            What::Try { node, phase } => return self.unwind_try(s, node, phase, unwind),
            What::For(state) => return self.unwind_for(s, *state, unwind),
            What::Loop(state) => return self.unwind_loop(s, *state, unwind),
            What::Stage(state) => return self.unwind_stage(s, state, unwind),
            What::Frame(frame) => return self.leave_frame(s, *frame, Err(unwind)),
            What::Program(program) => return self.leave_program(s, *program, Err(unwind)),
            What::Task(_)
            | What::Logic { .. }
            | What::Session(_)
            | What::Judge { .. }
            | What::Input { .. }
            | What::Arrow { .. } => {}
            // Left only when all its strands are gone, which then ends its events.
            What::Join(_) => {}
        }
        Control::Unwind(unwind)
    }

    fn resume_logic(&mut self, s: &mut Strand, node: NodeId, second: bool, value: &Value) -> Control {
        let code = self.code.clone();
        let COp::Logic {
            or, second: other, ..
        } = &code.node(node).op
        else {
            return Control::Value(Value::Null);
        };
        let holds = matches!(value, Value::Bool(true));
        if second || holds == *or {
            return Control::Value(Value::Bool(holds));
        }
        s.push(What::Logic { node, second: true });
        self.start_task(s, Task::Truth(*other), code.node(*other).lifts.clone())
    }
}

/// The value of a construct from the values of its parts.
pub(crate) fn values(values: Vec<Value>) -> Control {
    Control::Value(list_of(values))
}
