//! Sessions: building the request at spawn, tries, results.

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Backoff, BindKind, BindingTarget, ContextItem, Effect, EffectId, End, ErrorKind, ErrorValue, Event,
    ExecutionScope, Failure, MemoryMode, MemoryRequest, Name, Outcome, PermissionRule, PermissionValue,
    SessionOutcome, SessionRequest, SessionSummary, SleepRequest, Text, Usage, Value,
};

use crate::code::{COp, CPermission, CProps, CSession, NodeId, Target};
use crate::expr::{Builder, Eval, Stop};
use crate::machine::Machine;
use crate::render;
use crate::scope::ScopeId;
use crate::strand::{Control, SessionState, Strand, TaskState, Unwind, What};

/// Longest wait that `backoff: exponential` reaches.
const LONGEST_BACKOFF_MS: u64 = 60_000;

/// What the pure part of a spawn gives.
struct Plan {
    label: String,
    model: Option<String>,
    system: Option<Text>,
    task: Text,
    context: Vec<(ContextItem, Option<(ScopeId, Name)>)>,
    context_given: bool,
    skills: Vec<String>,
    permissions: Vec<PermissionRule>,
    memory: Option<MemoryRequest>,
    retries: u32,
    backoff: Backoff,
}

impl Machine {
    /// Evaluates all that a session needs and asks for it.
    pub(crate) fn spawn(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        session: &CSession,
        state: &TaskState,
    ) -> Result<Control, Stop> {
        let plan = self.with(s, state, |e| plan(e, node, session))?;
        let previous = if session.chained {
            self.arrow_previous(s)
        } else {
            None
        };
        let mut context: Vec<ContextItem> = previous.into_iter().collect();
        for (mut item, held) in plan.context {
            item.binding = held.and_then(|(holder, name)| {
                let kind = self.scopes.get(holder)?.slots.get(&name)?.kind;
                kind.file_kind().map(|_| self.binding_ref(holder, &name))
            });
            context.push(item);
        }
        let (binding, anonymous) = self.target(s, node, session);
        let scope = self.scopes.block_of(s.cx.scope).map(|(_, frame)| ExecutionScope {
            execution_id: frame.execution_id.unwrap_or_default(),
            block: frame.name.clone(),
            depth: frame.depth,
        });
        let request = SessionRequest {
            agent: session.agent.clone(),
            label: plan.label,
            model: plan.model,
            system: plan.system,
            task: plan.task,
            context,
            context_given: plan.context_given,
            skills: plan.skills,
            permissions: plan.permissions,
            memory: plan.memory,
            binding,
            scope,
            attempt: 1,
            max_attempts: plan.retries.saturating_add(1),
        };
        let state = SessionState {
            node,
            request: Arc::new(request),
            backoff: plan.backoff,
            sleeping: false,
            anonymous,
        };
        Ok(self.try_session(s, Box::new(state)))
    }

    /// What the part before gave, for a later part of an arrow.
    fn arrow_previous(&self, s: &Strand) -> Option<ContextItem> {
        s.stack.iter().rev().find_map(|kont| match &kont.what {
            What::Arrow { previous, .. } => Some(previous.clone()),
            _ => None,
        })?
    }

    /// Where the result goes: the session's own name, what stands around it, or the next anonymous binding.
    fn target(&mut self, s: &Strand, node: NodeId, session: &CSession) -> (BindingTarget, bool) {
        let code = self.code.clone();
        let n = code.node(node);
        let own = session.name.as_ref().map(|name| Target {
            name: name.clone(),
            kind: Some(BindKind::Let),
            source: n.src,
        });
        if let Some(target) = own.as_ref().or(n.target.as_ref()) {
            let held = match target.kind {
                Some(kind) => Some((s.cx.scope, kind)),
                None => match self.scopes.assignable(s.cx.scope, &target.name) {
                    Some((holder, slot)) => slot.kind.file_kind().map(|_| (holder, slot.kind)),
                    None => Some((s.cx.scope, BindKind::Let)),
                },
            };
            if let Some((holder, bind_kind)) = held {
                let binding = self.binding_ref(holder, &target.name);
                return (
                    BindingTarget {
                        binding,
                        bind_kind,
                        source: target.source,
                    },
                    false,
                );
            }
        }
        let mut number = 0;
        if let Some(instance) = self.instances.get_mut(s.cx.instance as usize) {
            instance.anonymous += 1;
            number = instance.anonymous;
        }
        let name: Name = format!("anon_{number:03}").into();
        let binding = self.binding_ref(s.cx.scope, &name);
        (
            BindingTarget {
                binding,
                bind_kind: BindKind::Anonymous,
                source: n.src,
            },
            true,
        )
    }

    /// Asks for a try.
    pub(crate) fn try_session(&mut self, s: &mut Strand, mut state: Box<SessionState>) -> Control {
        state.sleeping = false;
        let node = state.node;
        let request = state.request.clone();
        let mut id = self.id_at(&s.cx, node);
        if request.attempt > 1 {
            id = format!("{id}~{}", request.attempt).into();
        }
        let resume = matches!(&self.code.node(node).op, COp::Session(session) if session.resume);
        let at = self.place(&s.cx, node);
        let (agent, label, model) = (
            request.agent.clone(),
            request.label.clone(),
            request.model.clone(),
        );
        let (attempt, max_attempts) = (request.attempt, request.max_attempts);
        let binding = request.binding.binding.clone();
        let effect = self.issue(Some(s.id), &s.cx, node, id, Effect::Session(request));
        self.emit(Event::SessionStarted {
            at,
            effect: effect.clone(),
            agent,
            label,
            model,
            attempt,
            max_attempts,
            binding,
            resume,
        });
        s.push(What::Session(state));
        Control::Effect(effect)
    }

    pub(crate) fn session_answered(
        &mut self,
        s: &mut Strand,
        state: Box<SessionState>,
        id: &EffectId,
        outcome: Outcome,
    ) -> Control {
        let failure = match outcome {
            Outcome::Session(outcome) => match *outcome {
                SessionOutcome { value, usage, .. } if is_empty(&value) => Failure {
                    kind: ErrorKind::Empty,
                    message: "the session returned nothing".into(),
                    retry_after_ms: None,
                    usage,
                },
                outcome => return self.session_done(s, *state, id, outcome),
            },
            Outcome::Failed(failure) => failure,
            other => Failure {
                kind: ErrorKind::Backend,
                message: format!("the session was answered by {other:?}"),
                retry_after_ms: None,
                usage: Usage::default(),
            },
        };
        self.session_failed(s, state, id, failure)
    }

    fn session_done(
        &mut self,
        s: &mut Strand,
        state: SessionState,
        id: &EffectId,
        outcome: SessionOutcome,
    ) -> Control {
        let SessionOutcome {
            value,
            summary,
            usage,
            ..
        } = outcome;
        self.emit(Event::SessionFinished {
            effect: id.clone(),
            end: End::Ok,
            summary: render::one_line(&summary),
            usage,
        });
        if let Some(frame) = self.scopes.frame_of_mut(s.cx.scope) {
            frame.finished([SessionSummary {
                label: state.request.label.clone(),
                summary,
            }]);
        }
        let BindingTarget { binding, source, .. } = state.request.binding.clone();
        s.last_binding = Some(binding.clone());
        let code = self.code.clone();
        match &code.node(state.node).op {
            COp::Session(session) if session.name.is_some() => {
                if let Some(name) = &session.name {
                    self.bind(s, state.node, BindKind::Let, name, value.clone(), source);
                }
            }
            _ if state.anonymous => {
                let at = self.place(&s.cx, state.node);
                let kind = BindKind::Anonymous;
                self.emit(Event::Bound {
                    at,
                    binding,
                    kind,
                    source,
                    value: value.clone(),
                });
            }
            _ => {}
        }
        Control::Value(value)
    }

    fn session_failed(
        &mut self,
        s: &mut Strand,
        mut state: Box<SessionState>,
        id: &EffectId,
        failure: Failure,
    ) -> Control {
        self.emit(Event::SessionFinished {
            effect: id.clone(),
            end: End::Failed,
            summary: render::one_line(&failure.message),
            usage: failure.usage,
        });
        let attempt = state.request.attempt;
        // A spent budget does not come back by trying again.
        if attempt >= state.request.max_attempts || failure.kind == ErrorKind::Budget {
            return Control::Unwind(Unwind::Error(Arc::new(ErrorValue {
                kind: failure.kind,
                message: failure.message,
                statement: self.code.node(state.node).id.clone(),
                place: self.code.place(state.node),
                attempts: attempt,
            })));
        }
        Arc::make_mut(&mut state.request).attempt = attempt + 1;
        let ms = wait_ms(state.backoff, attempt);
        if ms == 0 && failure.retry_after_ms.is_none() {
            return self.try_session(s, state);
        }
        let node = state.node;
        let sleep_id = format!("{}~{}:sleep", self.id_at(&s.cx, node), attempt + 1);
        let request = SleepRequest {
            ms,
            retry_after_ms: failure.retry_after_ms,
        };
        let at = self.place(&s.cx, node);
        let effect = self.issue(Some(s.id), &s.cx, node, sleep_id.into(), Effect::Sleep(request));
        self.emit(Event::SleepStarted {
            at,
            effect: effect.clone(),
            ms: ms.max(failure.retry_after_ms.unwrap_or(0)),
        });
        state.sleeping = true;
        s.push(What::Session(state));
        Control::Effect(effect)
    }
}

/// The wait after a failed try (1 for the first).
fn wait_ms(backoff: Backoff, attempt: u32) -> u64 {
    match backoff {
        Backoff::None => 0,
        Backoff::Linear => 1_000,
        Backoff::Exponential => (1_000_u64 << (attempt - 1).min(16)).min(LONGEST_BACKOFF_MS),
        Backoff::Millis(ms) => ms,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.as_inline().is_some_and(|text| text.trim().is_empty()),
        _ => false,
    }
}

/// The pure part of a spawn: session keys replace the agent's.
fn plan(e: &mut Eval<'_>, node: NodeId, session: &CSession) -> Result<Plan, Stop> {
    let code = e.code;
    let own = &session.props;
    let agent = match &session.agent {
        None => None,
        Some(name) => match code
            .programs
            .get(e.instance.program)
            .and_then(|p| p.agents.get(name))
        {
            Some(agent) => Some((name, agent)),
            None => {
                let message = format!("there is no agent '{name}'");
                return Err(Stop::Raise(ErrorKind::Undefined, message, node));
            }
        },
    };
    let defaults: Option<&CProps> = agent.map(|(_, agent)| &agent.props);
    let pick = |key: fn(&CProps) -> Option<NodeId>| key(own).or_else(|| defaults.and_then(key));

    e.brief = true;
    let label = session.label.map(|label| e.text(label)).transpose()?;
    let prompt = own.prompt.map(|prompt| e.text(prompt)).transpose()?;
    let agent_prompt = match defaults.and_then(|props| props.prompt) {
        Some(prompt) => Some(e.text(prompt)?),
        None => None,
    };
    e.brief = false;
    let mut task = Builder::default();
    for paragraph in [&label, &prompt].into_iter().flatten() {
        if !task.is_empty() {
            task.push_str("\n\n");
        }
        task.push(paragraph);
    }
    // Without words of its own the session's task is what the agent is told to do.
    let has_own = label.is_some() || prompt.is_some();
    let (task, system) = match (has_own, agent_prompt) {
        (true, system) => (task.finish(node)?, system),
        (false, Some(task)) => (task, None),
        (false, None) => {
            e.caution(
                node,
                "no-prompt",
                "the session has nothing to do: neither prompt nor label".into(),
            );
            (Text::default(), None)
        }
    };
    let short = label
        .as_ref()
        .or(prompt.as_ref())
        .map(|text| render::one_line(&render::plain_text(text)));
    let short = short.filter(|line| !line.is_empty());
    let label = short.unwrap_or_else(|| match agent {
        Some((name, _)) if session.resume => format!("resume: {name}"),
        Some((name, _)) => format!("session: {name}"),
        None => "session".to_owned(),
    });

    let model = match pick(|props| props.model) {
        Some(model) => Some(render::plain_text(&e.text(model)?)),
        None => None,
    };
    let retries = match pick(|props| props.retry) {
        Some(retry) => u32::try_from(e.count(retry)?).unwrap_or(u32::MAX - 1),
        None => 0,
    };
    let backoff = own
        .backoff
        .or_else(|| defaults.and_then(|props| props.backoff))
        .unwrap_or(Backoff::None);
    let entries = own
        .context
        .as_ref()
        .or_else(|| defaults.and_then(|props| props.context.as_ref()));
    let mut context = Vec::new();
    for (label, entry) in entries.into_iter().flatten() {
        context.push(context_item(e, label, *entry)?);
    }
    // What the prompt only mentions has to be at hand.
    for (label, entry) in std::mem::take(&mut e.mentioned) {
        if !context
            .iter()
            .any(|(item, _): &(ContextItem, _)| item.label == label)
        {
            context.push(context_item(e, &label, entry)?);
        }
    }
    let mut skills: Vec<String> = Vec::new();
    for skill in defaults
        .into_iter()
        .flat_map(|props| &props.skills)
        .chain(&own.skills)
    {
        let skill = render::plain_text(&e.text(*skill)?);
        if !skills.contains(&skill) {
            skills.push(skill);
        }
    }
    let mut rules: IndexMap<&Name, &CPermission> = IndexMap::new();
    for (key, rule) in defaults
        .into_iter()
        .flat_map(|props| &props.permissions)
        .chain(&own.permissions)
    {
        rules.insert(key, rule);
    }
    let mut permissions = Vec::new();
    for (key, rule) in rules {
        let rule = match rule {
            CPermission::Allow => PermissionValue::Allow,
            CPermission::Deny => PermissionValue::Deny,
            CPermission::Prompt => PermissionValue::Prompt,
            CPermission::Patterns(nodes) => {
                let mut patterns = Vec::new();
                for pattern in nodes {
                    patterns.extend(e.patterns(*pattern)?);
                }
                PermissionValue::Patterns(patterns)
            }
        };
        permissions.push(PermissionRule {
            key: key.clone(),
            rule,
        });
    }
    let memory = match agent {
        Some((name, agent)) if agent.persist.is_some() => {
            let mode = if session.resume {
                MemoryMode::Resume
            } else {
                MemoryMode::Fresh
            };
            e.memory_request(name, node)?
                .map(|request| MemoryRequest { mode, ..request })
        }
        Some((name, _)) if session.resume => {
            e.caution(
                node,
                "no-memory",
                format!("agent '{name}' keeps no memory to resume"),
            );
            None
        }
        _ => None,
    };
    Ok(Plan {
        label,
        model,
        system,
        task,
        context,
        context_given: entries.is_some(),
        skills,
        permissions,
        memory,
        retries,
        backoff,
    })
}

/// An entry of a context: a value, with the slot that it came from when it is a plain name, or an agent's memory.
fn context_item(
    e: &mut Eval<'_>,
    label: &str,
    node: NodeId,
) -> Result<(ContextItem, Option<(ScopeId, Name)>), Stop> {
    let code = e.code;
    let mut item = ContextItem {
        label: label.to_owned(),
        value: Value::Null,
        binding: None,
        memory_of: None,
    };
    match &code.node(node).op {
        COp::AgentMemory(name) => item.memory_of = e.memory_request(name, node)?,
        COp::Name(name) => match e.scopes.find(e.scope, name) {
            Some((holder, slot)) => {
                item.value = slot.value.clone();
                return Ok((item, Some((holder, name.clone()))));
            }
            None if e.agent(name).is_some() => item.memory_of = e.memory_request(name, node)?,
            None => item.value = e.value(node)?,
        },
        _ => item.value = e.value(node)?,
    }
    Ok((item, None))
}
