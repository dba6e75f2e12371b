//! A run's past as a table that a person, a page or a program can be shown: the tree of what ran, the values of its
//! names, what it cost.

use std::collections::HashMap;

use indexmap::IndexMap;
use prose_agents::{plain_json, plain_text};
use prose_model::{
    BindKind, BindingRef, ConstructKind, Decision, Effect, EffectId, End, ErrorValue, Event, FrameKind,
    Outcome, Place, RunStatus, SourceRange, Usage, Value,
};
use prose_state::RunState;

use super::shape::{
    Attempt, BindingLine, ErrorLine, Flow, InputLine, Line, LineKind, LineState, RunReport, Shown,
    VerdictLine,
};
use super::{History, PastEffect};
use crate::nesting::Nesting;

/// The word for how a run stands.
pub const fn state_word(state: &RunState) -> &'static str {
    match state {
        RunState::Running { .. } => "running",
        RunState::Ended { status } => match status {
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Waiting => "waiting",
            RunStatus::OutOfBudget => "out of budget",
            RunStatus::Interrupted => "interrupted",
        },
        RunState::Unreadable { .. } => "unreadable",
        RunState::NeverStarted => "never started",
        RunState::Foreign => "foreign",
    }
}

impl RunReport {
    /// Puts a run's past together. Values are shown up to `longest` bytes each.
    pub fn new(history: &History, longest: usize) -> RunReport {
        let summary = &history.summary;
        let builder = Builder::over(history, longest);
        let shown = |value: &Value| shown(history, value, longest);
        let mut problems = history.problems.clone();
        if let RunState::Unreadable { reason } = &summary.state
            && problems.is_empty()
        {
            problems.push(reason.clone());
        }
        let completion = history.completion.as_ref();
        RunReport {
            id: summary.id.to_string(),
            program: summary.program.clone(),
            dir: summary.dir.display().to_string(),
            backend: summary.backend.clone(),
            status: state_word(&summary.state).to_owned(),
            started: summary.started.clone(),
            updated: summary.updated.clone(),
            duration_ms: if history.virtual_time {
                history.end_ms
            } else {
                summary.active_ms
            },
            virtual_time: history.virtual_time,
            resumed_ms: history.resumed.clone(),
            sessions: summary.sessions,
            sessions_done: summary.sessions_done,
            usage: summary.usage,
            inputs: inputs(history, &shown),
            bindings: bindings(history, &shown),
            flow: builder.flow(),
            tree: builder.lines,
            outputs: completion
                .map(|completion| {
                    let outputs = completion.outputs.iter();
                    outputs
                        .map(|(name, value)| (name.clone(), shown(value)))
                        .collect()
                })
                .unwrap_or_default(),
            result: completion
                .filter(|completion| completion.outputs.is_empty())
                .and_then(|completion| completion.result.as_ref())
                .map(&shown),
            error: completion
                .and_then(|completion| completion.error.as_ref())
                .map(error_line),
            warnings: history
                .events
                .iter()
                .filter_map(|event| match &event.event {
                    Event::Warning { code, message, .. } => Some(format!("{code}: {message}")),
                    _ => None,
                })
                .collect(),
            problems,
        }
    }
}

fn error_line(error: &ErrorValue) -> ErrorLine {
    ErrorLine {
        kind: prose_vm::kind_word(error.kind).to_owned(),
        message: error.message.clone(),
        statement: error.statement.to_string(),
    }
}

/// A value's text, or what keeps it from being read.
fn shown(history: &History, value: &Value, longest: usize) -> Shown {
    let text = match value {
        Value::Text(text) if text.len() > READ_LIMIT => {
            let summary = text.parts.iter().map(|part| match part {
                prose_model::TextPart::Inline(text) => text.chars().take(200).collect(),
                prose_model::TextPart::Ref(reference) => reference.summary.clone(),
            });
            return Shown {
                bytes: text.len(),
                text: summary.collect::<Vec<String>>().join(" "),
                cut: true,
            };
        }
        Value::Text(_) => plain_text(value, history.content()),
        Value::Error(error) => Ok(error.message.clone()),
        Value::Null => Ok("null".to_owned()),
        _ => plain_json(value, history.content())
            .map(|json| serde_json::to_string_pretty(&json).unwrap_or_default()),
    };
    let text = match text {
        Ok(text) => text,
        Err(failure) => format!("[can't be read: {}]", failure.message),
    };
    let bytes = text.len() as u64;
    match text
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= longest)
        .last()
    {
        Some(end) if text.len() > longest => Shown {
            bytes,
            text: text[..end].to_owned(),
            cut: true,
        },
        None if text.len() > longest => Shown {
            bytes,
            text: String::new(),
            cut: true,
        },
        _ => Shown {
            bytes,
            text,
            cut: false,
        },
    }
}

/// Longer texts are not read to be shown, in bytes.
const READ_LIMIT: u64 = 4 << 20;

fn inputs(history: &History, shown: &impl Fn(&Value) -> Shown) -> Vec<InputLine> {
    let mut lines = Vec::new();
    for (name, value) in history.header.iter().flat_map(|header| &header.inputs) {
        lines.push(InputLine {
            name: name.clone(),
            prompt: String::new(),
            options: Vec::new(),
            value: Some(shown(value)),
            from: "start",
        });
    }
    for effect in history.effects.values() {
        let Effect::Input(request) = &effect.issued.effect else {
            continue;
        };
        let value = match &effect.answer {
            Some((_, Outcome::Input { value }, _)) => Some(value),
            _ => None,
        };
        let supplied = history
            .supplied
            .iter()
            .any(|(name, given)| *name == request.name && Some(given) == value);
        lines.push(InputLine {
            name: request.name.to_string(),
            prompt: history.content().read(&request.prompt).unwrap_or_default(),
            options: request.options.clone(),
            value: value.map(shown),
            from: if supplied { "resume" } else { "run" },
        });
    }
    lines
}

fn bindings(history: &History, shown: &impl Fn(&Value) -> Shown) -> Vec<BindingLine> {
    let mut latest: IndexMap<&BindingRef, (BindKind, SourceRange, &Value, u64, u32)> = IndexMap::new();
    for past in &history.events {
        if let Event::Bound {
            binding,
            kind,
            source,
            value,
            ..
        } = &past.event
        {
            let entry = latest
                .entry(binding)
                .or_insert((*kind, *source, value, past.at_ms, 0));
            *entry = (*kind, *source, value, past.at_ms, entry.4 + 1);
        }
    }
    latest
        .into_iter()
        .map(|(binding, (kind, source, value, at_ms, times))| BindingLine {
            name: binding.name.to_string(),
            execution_id: binding.execution_id,
            program: binding.program.clone(),
            kind: match kind {
                BindKind::Param => "parameter",
                BindKind::Loop => "loop",
                _ => kind.file_kind().unwrap_or("let"),
            },
            at_ms,
            times,
            place: history.location(source).map(|place| place.to_string()),
            value: shown(value),
        })
        .collect()
}

/// Makes the tree of events.
struct Builder<'a> {
    history: &'a History,
    lines: Vec<Line>,
    /// Lines in order of their start, by what ends them.
    by_key: HashMap<String, usize>,
    /// The line of each session, by its place and by the effects of its tries.
    sessions: HashMap<String, usize>,
    nesting: Nesting<usize>,
    /// The state of what is not over.
    open: LineState,
    /// Texts are shown up to so many bytes.
    longest: usize,
}

impl<'a> Builder<'a> {
    fn over(history: &'a History, longest: usize) -> Builder<'a> {
        let open = match &history.summary.state {
            RunState::Running { .. } => LineState::Running,
            RunState::Ended {
                status: RunStatus::Cancelled,
            } => LineState::Cancelled,
            _ => LineState::Unfinished,
        };
        let mut builder = Builder {
            history,
            lines: Vec::new(),
            by_key: HashMap::new(),
            sessions: HashMap::new(),
            nesting: Nesting::default(),
            open,
            longest,
        };
        for past in &history.events {
            builder.event(&past.event, past.at_ms);
        }
        builder.in_order();
        builder
    }

    fn effect(&self, id: &EffectId) -> Option<&'a PastEffect> {
        self.history.effects.get(id)
    }

    fn event(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::SessionStarted {
                at,
                effect,
                agent,
                label,
                model,
                attempt,
                binding,
                ..
            } => {
                let earlier = (*attempt > 1)
                    .then(|| self.sessions.get(at.path.as_str()).copied())
                    .flatten();
                let line = match earlier {
                    Some(line) => line,
                    None => {
                        let line = self.start(at, LineKind::Session, label.clone(), at_ms);
                        self.sessions.insert(at.path.to_string(), line);
                        line
                    }
                };
                self.by_key.insert(effect.to_string(), line);
                let attempt = self.attempt(effect, at_ms);
                self.texts(line, effect);
                let line = &mut self.lines[line];
                line.agent = agent.as_ref().map(ToString::to_string);
                line.model.clone_from(model);
                line.binding = Some(binding_text(binding));
                line.effect = Some(effect.clone());
                line.end_ms = None;
                line.state = attempt.state;
                line.attempts.push(attempt);
            }
            Event::SessionFinished {
                effect,
                end,
                summary,
                usage,
            } => {
                if let Some(&at) = self.by_key.get(effect.as_str()) {
                    let line = &mut self.lines[at];
                    line.state = end_state(*end);
                    line.end_ms = Some(at_ms);
                    line.summary.clone_from(summary);
                    line.usage.add(usage);
                    if let Some(attempt) = line.attempts.last_mut() {
                        attempt.state = end_state(*end);
                        attempt.end_ms = Some(at_ms);
                        attempt.usage = *usage;
                        attempt.error = (*end == End::Failed).then(|| summary.clone());
                    }
                }
            }
            Event::JudgeStarted { at, effect, text } => {
                let line = self.start(at, LineKind::Judge, text.clone(), at_ms);
                self.lines[line].effect = Some(effect.clone());
                self.by_key.insert(effect.to_string(), line);
            }
            Event::JudgeFinished { effect, end, verdict } => {
                self.end(effect.as_str(), *end, at_ms);
                let reason = self.effect(effect).and_then(failure);
                if let Some(&at) = self.by_key.get(effect.as_str()) {
                    let line = &mut self.lines[at];
                    line.summary = reason.unwrap_or_default();
                    if let Some(verdict) = verdict {
                        line.usage = verdict.usage;
                        line.verdict = Some(VerdictLine {
                            decision: decision_word(&verdict.decision),
                            confidence: verdict.confidence,
                            reason: verdict.reason.clone(),
                        });
                    }
                }
            }
            Event::InputStarted {
                at,
                effect,
                name,
                prompt,
                ..
            } => {
                let line = self.start(
                    at,
                    LineKind::Input,
                    format!("{name}: {}", prompt.trim_end()),
                    at_ms,
                );
                self.lines[line].effect = Some(effect.clone());
                if self.open != LineState::Cancelled {
                    self.lines[line].state = LineState::Waiting;
                }
                self.by_key.insert(effect.to_string(), line);
            }
            Event::InputFinished { effect, end } => self.end(effect.as_str(), *end, at_ms),
            Event::SleepStarted { at, effect, ms } => {
                // The wait before another try belongs to the session.
                if !self.sessions.contains_key(at.path.as_str()) {
                    let line = self.start(at, LineKind::Wait, format!("{ms} ms"), at_ms);
                    self.by_key.insert(effect.to_string(), line);
                }
            }
            Event::SleepFinished { effect, end } => self.end(effect.as_str(), *end, at_ms),
            Event::FrameStarted {
                at,
                frame,
                kind,
                name,
                arguments,
                ..
            } => {
                let (kind, title) = match kind {
                    FrameKind::Block => (LineKind::Block, name.to_string()),
                    FrameKind::Program => (LineKind::Program, name.to_string()),
                    FrameKind::Iteration | FrameKind::Item => {
                        let item = arguments.values().next();
                        let item = item
                            .map(|item| shown(self.history, item, 60).text)
                            .unwrap_or_default();
                        (LineKind::Item, format!("{name} = {item}"))
                    }
                };
                let line = self.start(at, kind, title, at_ms);
                let depth = self.lines[line].depth;
                self.nesting.open_frame(*frame, line, depth);
                self.by_key.insert(format!("frame {frame}"), line);
            }
            Event::FrameFinished { frame, end } => {
                self.nesting.close_frame(*frame);
                self.end(&format!("frame {frame}"), *end, at_ms);
            }
            Event::ConstructStarted {
                at,
                construct,
                kind,
                total,
                condition,
            } => {
                // An `if` or `try` alone says nothing that what is in it doesn't.
                if matches!(kind, ConstructKind::If | ConstructKind::Try) {
                    return;
                }
                let title = match (condition, total) {
                    (Some(condition), _) => condition.clone(),
                    (None, Some(total)) => format!("{total}"),
                    (None, None) => String::new(),
                };
                let line = self.start(at, LineKind::Construct(*kind), title, at_ms);
                let depth = self.lines[line].depth;
                self.nesting
                    .open_construct(construct.as_str(), at.path.as_str(), line, depth);
                // A choice and its question are at the same place.
                self.by_key.insert(format!("construct {construct}"), line);
            }
            Event::ConstructFinished { construct, end } => {
                self.nesting.close_construct(construct.as_str());
                self.end(&format!("construct {construct}"), *end, at_ms);
            }
            Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::StatementStarted { .. }
            | Event::StatementFinished { .. }
            | Event::PartStarted { .. }
            | Event::PartFinished { .. }
            | Event::DecodeStarted { .. }
            | Event::DecodeFinished { .. }
            | Event::Bound { .. }
            | Event::Warning { .. }
            | Event::SessionSpawned { .. }
            | Event::SessionText { .. }
            | Event::SessionTool { .. }
            | Event::PermissionStarted { .. }
            | Event::PermissionFinished { .. }
            | Event::QuestionStarted { .. }
            | Event::QuestionFinished { .. }
            | Event::SessionUsage { .. }
            | Event::InputNeeded { .. }
            | Event::Narration { .. }
            | Event::Notice { .. }
            | Event::EventsMissed { .. } => {}
        }
    }

    fn attempt(&self, effect: &EffectId, at_ms: u64) -> Attempt {
        Attempt {
            asked_ms: at_ms,
            started_ms: self.effect(effect).and_then(|past| past.started_ms),
            end_ms: None,
            state: self.open,
            usage: Usage::default(),
            error: None,
        }
    }

    fn start(&mut self, at: &Place, kind: LineKind, title: String, at_ms: u64) -> usize {
        let around = self.nesting.around(at.execution_id, at.path.as_str());
        let line = self.lines.len();
        self.lines.push(Line {
            parent: around.map(|(parent, _)| parent),
            depth: around.map_or(0, |(_, depth)| depth + 1),
            kind,
            title,
            agent: None,
            model: None,
            place: self.history.location(at.src).map(|place| place.to_string()),
            begin_ms: at_ms,
            end_ms: None,
            state: self.open,
            usage: Usage::default(),
            attempts: Vec::new(),
            verdict: None,
            summary: String::new(),
            binding: None,
            task: None,
            reply: None,
            effect: None,
        });
        line
    }

    /// What a session was asked, and what it answered.
    fn texts(&mut self, line: usize, effect: &EffectId) {
        let Some(past) = self.effect(effect) else { return };
        if let Effect::Session(request) = &past.issued.effect {
            let task = Value::Text(request.task.clone());
            self.lines[line].task = Some(shown(self.history, &task, self.longest));
        }
        if let Some((_, Outcome::Session(outcome), _)) = &past.answer {
            self.lines[line].reply = Some(shown(self.history, &outcome.value, self.longest));
        }
    }

    fn end(&mut self, key: &str, end: End, at_ms: u64) {
        if let Some(&at) = self.by_key.get(key) {
            self.lines[at].state = end_state(end);
            self.lines[at].end_ms = Some(at_ms);
        }
    }

    /// Puts each line before those under it, and adds what those used to it.
    fn in_order(&mut self) {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.lines.len()];
        let mut roots = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            match line.parent {
                Some(parent) => children[parent].push(at),
                None => roots.push(at),
            }
        }
        // A line starts after the one that it lies under, so sums flow upwards from the last to the first.
        for at in (0..self.lines.len()).rev() {
            if let Some(parent) = self.lines[at].parent {
                let usage = self.lines[at].usage;
                self.lines[parent].usage.add(&usage);
            }
        }
        let mut order = Vec::with_capacity(self.lines.len());
        let mut stack: Vec<usize> = roots.into_iter().rev().collect();
        while let Some(at) = stack.pop() {
            order.push(at);
            stack.extend(children[at].iter().rev());
        }
        let mut place = vec![0; self.lines.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let mut taken: Vec<Option<Line>> = std::mem::take(&mut self.lines).into_iter().map(Some).collect();
        for old in order {
            if let Some(mut line) = taken[old].take() {
                line.parent = line.parent.map(|parent| place[parent]);
                self.lines.push(line);
            }
        }
        for line in self.by_key.values_mut() {
            *line = place[*line];
        }
    }

    /// Edges between sessions.
    fn flow(&self) -> Vec<Flow> {
        let mut flow: Vec<Flow> = Vec::new();
        // Who made the present value of a binding, and who used a memory last; both grow in issue order, which is
        // the order in which they are looked up.
        let mut made: HashMap<&BindingRef, usize> = HashMap::new();
        let mut remembered: HashMap<(&str, &[String]), usize> = HashMap::new();
        let mut known: std::collections::HashSet<(usize, usize, &str)> = std::collections::HashSet::new();
        let mut add = |from: usize, to: usize, kind| {
            if from != to && known.insert((from, to, kind)) {
                flow.push(Flow { from, to, kind });
            }
        };
        let mut seen: std::collections::HashSet<usize> = std::collections::HashSet::new();
        for effect in self.history.effects.values() {
            let Effect::Session(request) = &effect.issued.effect else {
                continue;
            };
            let Some(&to) = self.by_key.get(effect.issued.id.as_str()) else {
                continue;
            };
            for item in &request.context {
                let maker = item.binding.as_ref().and_then(|binding| made.get(binding));
                if let Some(&from) = maker {
                    add(from, to, "context");
                }
            }
            if let Some(memory) = &request.memory {
                let key = (memory.agent.as_str(), memory.program.as_slice());
                if let Some(from) = remembered.insert(key, to) {
                    add(from, to, "memory");
                }
            }
            if seen.insert(to)
                && let Some(from) = self.cause(effect)
            {
                add(from, to, "then");
            }
            made.insert(&request.binding.binding, to);
        }
        // Where data goes, that the one follows the other is plain.
        let data: std::collections::HashSet<(usize, usize)> = flow
            .iter()
            .filter(|edge| edge.kind != "then")
            .map(|edge| (edge.from, edge.to))
            .collect();
        flow.retain(|edge| edge.kind != "then" || !data.contains(&(edge.from, edge.to)));
        flow
    }

    /// The session whose answer led to an effect, through questions and waits.
    fn cause(&self, effect: &PastEffect) -> Option<usize> {
        let mut cause = effect.cause.as_ref();
        while let Some(id) = cause {
            let past = self.effect(id)?;
            if matches!(past.issued.effect, Effect::Session(_)) {
                return self.by_key.get(id.as_str()).copied();
            }
            cause = past.cause.as_ref();
        }
        None
    }
}

fn failure(effect: &PastEffect) -> Option<String> {
    match &effect.answer {
        Some((_, Outcome::Failed(failure), _)) => Some(failure.message.clone()),
        _ => None,
    }
}

fn end_state(end: End) -> LineState {
    match end {
        End::Ok | End::Left => LineState::Ok,
        End::Failed => LineState::Failed,
        End::Cancelled => LineState::Cancelled,
    }
}

/// `name`, `name #3`, below the folders of its program.
fn binding_text(binding: &BindingRef) -> String {
    let mut text = String::new();
    for folder in &binding.program {
        text.push_str(folder);
        text.push('/');
    }
    text.push_str(&binding.name);
    if let Some(id) = binding.execution_id {
        text.push_str(&format!(" #{id}"));
    }
    text
}

/// What the judge decided, in a few words.
fn decision_word(decision: &Decision) -> String {
    match decision {
        Decision::Yes => "yes".to_owned(),
        Decision::No => "no".to_owned(),
        Decision::Unsure => "unsure".to_owned(),
        Decision::NoProgress => "no progress".to_owned(),
        Decision::Option(label) => label.clone(),
        Decision::Value(_) => "a value".to_owned(),
        Decision::Question { prompt, .. } => prompt.clone(),
    }
}
