//! Calls of blocks and programs: frames.

use indexmap::IndexMap;
use prose_model::arguments::{assign, input_name};
use prose_model::{BindKind, End, ErrorKind, Event, FrameKind, Name, Value};

use crate::code::{COp, NodeId};
use crate::events::below;
use crate::expr::{kind_of, record_of};
use crate::machine::Machine;
use crate::scope::{Frame, ScopeId, ScopeKind, Slot};
use crate::strand::{Control, Cx, FrameState, ProgramState, Strand, Unwind, What};

/// Arguments as given: by name or by position.
pub(crate) type Args = Vec<(Option<Name>, Value)>;

impl Machine {
    /// `do block(args)`.
    pub(crate) fn call(&mut self, s: &mut Strand, node: NodeId, block: &Name, args: Args) -> Control {
        let code = self.code.clone();
        let Some(callee) = code
            .programs
            .get(self.program_of(s))
            .and_then(|p| p.blocks.get(block))
        else {
            return self.raise(node, ErrorKind::Undefined, format!("there is no block '{block}'"));
        };
        let depth = self
            .scopes
            .frame_of(s.cx.scope)
            .map_or(0, |(_, frame)| frame.depth)
            + 1;
        if depth > callee.max_depth {
            let message = format!(
                "[Error] RecursionLimitExceeded: block '{block}' exceeded max_depth {}",
                callee.max_depth
            );
            return self.raise(node, ErrorKind::RecursionLimitExceeded, message);
        }
        let bound = self.arguments(s, node, block, &callee.params, args);
        let id = self.new_execution();
        let frame = Frame {
            kind: Some(FrameKind::Block),
            execution_id: Some(id),
            name: block.clone(),
            depth,
            call_site: Some(code.node(node).id.clone()),
            instance: s.cx.instance,
            ..Frame::default()
        };
        let scope = self.open_frame(s, node, frame, &bound, BindKind::Param);
        let place = below(&s.cx.place, code.node(node).id.as_str());
        let kind = FrameKind::Block;
        let bound = std::mem::take(&mut s.bound);
        s.push(What::Frame(Box::new(FrameState {
            scope,
            id,
            call: node,
            kind,
            bound,
        })));
        s.cx = Cx {
            scope,
            instance: s.cx.instance,
            place,
        };
        s.seq(&callee.body)
    }

    /// Matches arguments to parameters. A missing one is null, a superfluous one is dropped, each with a warning.
    fn arguments(
        &mut self,
        s: &Strand,
        node: NodeId,
        callee: &Name,
        params: &[Name],
        args: Args,
    ) -> IndexMap<Name, Value> {
        let mut given: IndexMap<Name, Value> = IndexMap::new();
        let names: Vec<Option<&str>> = args.iter().map(|(name, _)| name.as_deref()).collect();
        let known: Vec<&str> = params.iter().map(Name::as_str).collect();
        let assigned = assign(&known, &names);
        for ((name, value), at) in args.into_iter().zip(assigned) {
            match at.and_then(|at| params.get(at)) {
                Some(param) => {
                    given.insert(param.clone(), value);
                }
                None => {
                    let what =
                        name.map_or_else(|| "an argument".to_owned(), |name| format!("argument '{name}'"));
                    self.warn(
                        &s.cx,
                        node,
                        "arguments",
                        format!("'{callee}' takes no {what} here: dropped"),
                    );
                }
            }
        }
        let mut bound = IndexMap::new();
        for param in params {
            if !given.contains_key(param) {
                let message = format!("'{callee}' was called without '{param}': it is null");
                self.warn(&s.cx, node, "arguments", message);
            }
            bound.insert(param.clone(), given.shift_remove(param).unwrap_or_default());
        }
        bound
    }

    /// Opens a frame over the current scope, with its first names, and says so.
    pub(crate) fn open_frame(
        &mut self,
        s: &Strand,
        node: NodeId,
        frame: Frame,
        names: &IndexMap<Name, Value>,
        slot_kind: BindKind,
    ) -> ScopeId {
        let (execution, kind) = (
            frame.execution_id.unwrap_or_default(),
            frame.kind.unwrap_or(FrameKind::Block),
        );
        let (name, depth) = (frame.name.clone(), frame.depth);
        let scope = self.scopes.frame(Some(s.cx.scope), frame);
        if kind != FrameKind::Program
            && let Some(open) = self.scopes.get_mut(scope)
        {
            for (name, value) in names {
                open.slots.insert(
                    name.clone(),
                    Slot {
                        value: value.clone(),
                        kind: slot_kind,
                    },
                );
            }
        }
        let at = self.place(&s.cx, node);
        let arguments = names
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect();
        self.emit(Event::FrameStarted {
            at,
            frame: execution,
            kind,
            name,
            depth,
            arguments,
        });
        scope
    }

    /// Leaves a block, iteration or item; the strand is back at the call.
    pub(crate) fn leave_frame(
        &mut self,
        s: &mut Strand,
        state: FrameState,
        how: Result<Value, Unwind>,
    ) -> Control {
        let FrameState {
            scope,
            id,
            call,
            kind,
            bound,
        } = state;
        s.bound = bound;
        let closed = self.scopes.close(scope);
        let mut outputs = IndexMap::new();
        if let Some(closed) = closed
            && let ScopeKind::Frame(frame) = closed.kind
        {
            let statement = kind == FrameKind::Block && self.code.node(call).statement;
            outputs = frame.outputs;
            if let Some(caller) = self.scopes.frame_of_mut(s.cx.scope) {
                caller.finished(frame.history);
                if statement {
                    // The last resort of a caller that reads what the block has bound.
                    caller.residue.extend(frame.residue);
                    caller.residue.extend(closed.slots);
                }
            }
        }
        let end = how.as_ref().err().map_or(End::Ok, Unwind::end);
        self.emit(Event::FrameFinished { frame: id, end });
        match (kind, how) {
            (FrameKind::Block, Ok(value)) => Control::Value(match outputs.len() {
                0 => value,
                1 => outputs
                    .into_iter()
                    .next()
                    .map(|(_, value)| value)
                    .unwrap_or_default(),
                _ => record_of(outputs.into_iter().map(|(name, value)| (name.to_string(), value))),
            }),
            (FrameKind::Block | FrameKind::Item, Err(Unwind::Return(value))) => Control::Value(value),
            (FrameKind::Block, Err(Unwind::Break)) => {
                self.raise(call, ErrorKind::Type, "break outside a loop")
            }
            (_, Ok(value)) => Control::Value(value),
            (_, Err(unwind)) => Control::Unwind(unwind),
        }
    }

    /// `program(k: v)`.
    pub(crate) fn call_program(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        import: &Name,
        args: Args,
    ) -> Control {
        let code = self.code.clone();
        let caller = code.bundle.programs.get(self.program_of(s));
        let Some(target) = caller.and_then(|program| program.imports.get(import)) else {
            return self.raise(
                node,
                ErrorKind::Undefined,
                format!("there is no program '{import}'"),
            );
        };
        let Some((index, callee)) = target
            .program
            .and_then(|i| Some((i, code.bundle.programs.get(i)?)))
        else {
            let message = format!("program '{import}' ({}) was not resolved", target.target);
            return self.raise(node, ErrorKind::Import, message);
        };
        let mut callers = Vec::new();
        if let Some(instance) = self.instances.get(s.cx.instance as usize) {
            callers.clone_from(&instance.callers);
            callers.push(instance.program);
        }
        // The checker refuses cycles of `use`; a bundle from elsewhere must not run away either.
        if callers.contains(&index) {
            let message = format!("program '{import}' ({}) calls itself", target.target);
            return self.raise(node, ErrorKind::Import, message);
        }
        let id = self.new_execution();
        let folder = if callee.namespace.is_empty() {
            callee.name.to_string()
        } else {
            callee.namespace.clone()
        };
        let mut path = Vec::new();
        if let Some(instance) = self.instances.get_mut(s.cx.instance as usize) {
            path.clone_from(&instance.path);
            let calls = instance.calls.entry(folder.clone()).or_default();
            *calls += 1;
            path.push(if *calls == 1 {
                folder
            } else {
                format!("{folder}__{id}")
            });
        }
        let mut supplied: IndexMap<String, Value> = IndexMap::new();
        let inputs: Vec<&str> = callee.inputs.iter().map(|input| input.name.as_str()).collect();
        let written: &[(Option<Name>, NodeId)] = match &code.node(node).op {
            COp::CallProgram { args, .. } => &args.0,
            _ => &[],
        };
        let names: Vec<Option<&str>> = written
            .iter()
            .map(|(name, value)| {
                let variable = match &code.node(*value).op {
                    COp::Name(name) => Some(name.as_str()),
                    _ => None,
                };
                input_name(&inputs, name.as_deref(), variable)
            })
            .collect();
        let assigned = assign(&inputs, &names);
        for ((name, value), at) in args.into_iter().zip(assigned) {
            match at.and_then(|at| callee.inputs.get(at)) {
                Some(input) => {
                    supplied.insert(input.name.to_string(), value);
                }
                None => {
                    let what = name.map_or_else(|| kind_of(&value), |name| format!("'{name}'"));
                    self.warn(
                        &s.cx,
                        node,
                        "arguments",
                        format!("'{import}' has no input for {what}: dropped"),
                    );
                }
            }
        }
        let arguments = supplied
            .iter()
            .map(|(name, value)| (Name::from(name), value.clone()))
            .collect();
        let depth = self
            .scopes
            .frame_of(s.cx.scope)
            .map_or(0, |(_, frame)| frame.depth);
        let instance = self.instance(index, callers, path, supplied);
        let frame = Frame {
            kind: Some(FrameKind::Program),
            execution_id: Some(id),
            name: import.clone(),
            depth,
            call_site: Some(code.node(node).id.clone()),
            instance,
            ..Frame::default()
        };
        let scope = self.open_frame(s, node, frame, &arguments, BindKind::Input);
        let place = below(&s.cx.place, code.node(node).id.as_str());
        self.start_program(
            s,
            index,
            Cx {
                scope,
                instance,
                place,
            },
            Some(id),
        )
    }

    /// Starts a program at `inner`: its leading inputs, then its body.
    pub(crate) fn start_program(
        &mut self,
        s: &mut Strand,
        program: usize,
        inner: Cx,
        id: Option<prose_model::ExecutionId>,
    ) -> Control {
        let code = self.code.clone();
        let bound = std::mem::take(&mut s.bound);
        let state = ProgramState {
            inner: inner.clone(),
            id,
            prelude: true,
            bound,
        };
        s.push(What::Program(Box::new(state)));
        s.cx = inner;
        match code.programs.get(program) {
            Some(program) if !program.leading.is_empty() => self.start_prelude(s, &program.leading),
            _ => Control::Value(Value::Null),
        }
    }

    pub(crate) fn resume_program(
        &mut self,
        s: &mut Strand,
        mut state: Box<ProgramState>,
        value: Value,
    ) -> Control {
        if !state.prelude {
            return self.leave_program(s, *state, Ok(value));
        }
        state.prelude = false;
        let code = self.code.clone();
        let inner = state.inner.clone();
        s.push(What::Program(state));
        s.cx = inner;
        match code.programs.get(self.program_of(s)) {
            Some(program) if !program.body.is_empty() => s.seq(&program.body),
            // Nothing but inputs: the last one is the final statement.
            _ => Control::Value(value),
        }
    }

    pub(crate) fn leave_program(
        &mut self,
        s: &mut Strand,
        state: ProgramState,
        how: Result<Value, Unwind>,
    ) -> Control {
        let entry = state.id.is_none();
        s.bound = state.bound;
        let how = match how {
            Err(Unwind::Break) => {
                let code = self.code.clone();
                let program = code
                    .programs
                    .get(self.instances[state.inner.instance as usize].program);
                match program.and_then(|program| program.body.first().or(program.leading.first())) {
                    Some(node) => Err(Unwind::Error(self.error(
                        *node,
                        ErrorKind::Type,
                        "break outside a loop",
                    ))),
                    None => Ok(Value::Null),
                }
            }
            how => how,
        };
        if entry {
            return how.map_or_else(Control::Unwind, Control::Value);
        }
        let closed = self.scopes.close(state.inner.scope);
        if let Some(closed) = closed
            && let ScopeKind::Frame(frame) = closed.kind
            && let Some(caller) = self.scopes.frame_of_mut(s.cx.scope)
        {
            caller.finished(frame.history);
        }
        let end = how.as_ref().err().map_or(End::Ok, Unwind::end);
        if let Some(frame) = state.id {
            self.emit(Event::FrameFinished { frame, end });
        }
        let instance = &self.instances[state.inner.instance as usize];
        let declares = self
            .code
            .bundle
            .programs
            .get(instance.program)
            .is_some_and(|p| !p.outputs.is_empty());
        let outputs = instance.outputs.clone();
        // Nothing of a call that is over is looked up by its instance any more.
        self.free_instances.push(state.inner.instance);
        match how {
            Ok(value) if !declares && outputs.is_empty() => Control::Value(value),
            Ok(_) => Control::Value(record_of(outputs)),
            Err(Unwind::Return(value)) => Control::Value(value),
            Err(unwind) => Control::Unwind(unwind),
        }
    }
}
