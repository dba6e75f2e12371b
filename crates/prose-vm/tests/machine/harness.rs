//! Drives a machine by hand or by a table, and checks of every run what must hold of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, Decision, Effect, EffectId, ErrorKind, Event, Failure, InputRequest, Issued, JudgeRequest,
    MachineEvent, Node, Outcome, Program, RunStatus, SessionOutcome, SessionRequest, Text, TextRef, Usage,
    Value, Verdict,
};
use prose_vm::{Completion, Machine, StepState};

use crate::build;

/// A machine with all that it has said.
pub struct Run {
    pub machine: Machine,
    /// All effects, in issue order.
    pub effects: Vec<Issued>,
    pub events: Vec<Event>,
    /// Ids that wait for an answer.
    pub open: Vec<EffectId>,
    pub done: Option<Completion>,
}

/// Runs a program of statements.
pub fn run(body: Vec<Node>) -> Run {
    run_program(build::program(body))
}
pub fn run_program(program: Program) -> Run {
    Run::start(build::bundle(vec![program]), &[])
}

impl Run {
    pub fn start(bundle: Arc<Bundle>, inputs: &[(&str, &str)]) -> Run {
        let inputs = inputs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::text(*value)));
        let machine = Machine::start(bundle, inputs.collect::<IndexMap<_, _>>());
        let mut run = Run {
            machine,
            effects: Vec::new(),
            events: Vec::new(),
            open: Vec::new(),
            done: None,
        };
        run.step();
        run
    }

    /// Steps until nothing goes on.
    pub fn step(&mut self) {
        loop {
            let step = self.machine.step();
            for issued in step.effects {
                if let Effect::CancelScope(request) = &issued.effect {
                    self.open.retain(|id| !request.effects.contains(id));
                }
                self.open.push(issued.id.clone());
                self.effects.push(issued);
            }
            for MachineEvent { seq, event } in step.events {
                assert_eq!(seq, self.events.len() as u64, "events are numbered without gaps");
                self.events.push(event);
            }
            match step.state {
                StepState::Running => {}
                StepState::Waiting => break,
                StepState::Done(completion) => {
                    assert!(
                        self.open.is_empty(),
                        "effects are open at the end: {:?}",
                        self.open
                    );
                    self.done = Some(completion);
                    break;
                }
            }
        }
        check_pairs(&self.events, self.done.is_some());
    }

    // ---- looking ----

    pub fn get(&self, id: &EffectId) -> &Issued {
        self.effects.iter().find(|issued| issued.id == *id).unwrap()
    }
    /// What waits for an answer: `kind id`, one a line.
    pub fn pending(&self) -> Vec<String> {
        self.open.iter().map(|id| self.get(id)).map(brief).collect()
    }
    /// Labels of the sessions that wait.
    pub fn sessions(&self) -> Vec<&str> {
        let open = self.open.iter().filter_map(|id| match &self.get(id).effect {
            Effect::Session(request) => Some(request.label.as_str()),
            _ => None,
        });
        open.collect()
    }
    /// The request of the last session asked for with this label.
    #[track_caller]
    pub fn session(&self, label: &str) -> &SessionRequest {
        let mut all = self
            .effects
            .iter()
            .rev()
            .filter_map(|issued| match &issued.effect {
                Effect::Session(request) => Some(&**request),
                _ => None,
            });
        all.find(|request| request.label == label)
            .unwrap_or_else(|| panic!("no session {label:?}"))
    }
    #[track_caller]
    pub fn judge(&self) -> &JudgeRequest {
        let mut all = self.open.iter().filter_map(|id| match &self.get(id).effect {
            Effect::Judge(request) => Some(&**request),
            _ => None,
        });
        all.next().expect("a question for the judge")
    }
    #[track_caller]
    pub fn input(&self, name: &str) -> &InputRequest {
        let mut all = self.open.iter().filter_map(|id| match &self.get(id).effect {
            Effect::Input(request) if request.name == name => Some(&**request),
            _ => None,
        });
        all.next().expect("an input")
    }
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning { code, message, .. } => Some(format!("{code}: {message}")),
            _ => None,
        });
        warnings.collect()
    }
    /// What was bound, in order: `name__frame = value`.
    pub fn bound(&self) -> Vec<String> {
        let bound = self.events.iter().filter_map(|event| match event {
            Event::Bound {
                binding, value, kind, ..
            } if kind.file_kind().is_some() => {
                let frame = binding
                    .execution_id
                    .map_or_else(String::new, |id| format!("__{id}"));
                let program = binding
                    .program
                    .iter()
                    .map(|p| format!("{p}/"))
                    .collect::<String>();
                Some(format!("{program}{}{frame} = {}", binding.name, show(value)))
            }
            _ => None,
        });
        bound.collect()
    }
    /// The last value bound under a name.
    #[track_caller]
    pub fn value(&self, name: &str) -> Value {
        let mut bound = self.events.iter().rev().filter_map(|event| match event {
            Event::Bound { binding, value, .. } if binding.name == name => Some(value.clone()),
            _ => None,
        });
        bound.next().unwrap_or_else(|| panic!("{name} was not bound"))
    }
    #[track_caller]
    pub fn shown(&self, name: &str) -> String {
        show(&self.value(name))
    }
    #[track_caller]
    pub fn completion(&self) -> &Completion {
        match &self.done {
            Some(done) => done,
            None => panic!("not over; pending: {:#?}", self.pending()),
        }
    }
    /// The result of a run that completed.
    #[track_caller]
    pub fn result(&self) -> String {
        let done = self.completion();
        assert_eq!(done.status, RunStatus::Completed, "{:?}", done.error);
        done.result.as_ref().map_or_else(|| "none".to_owned(), show)
    }
    /// Kind and message of the error of a run that failed.
    #[track_caller]
    pub fn error(&self) -> String {
        let done = self.completion();
        assert_eq!(done.status, RunStatus::Failed);
        let error = done.error.as_ref().unwrap();
        format!("{}: {}", prose_vm::kind_word(error.kind), error.message)
    }

    // ---- answering ----

    #[track_caller]
    pub fn resolve(&mut self, id: &EffectId, outcome: Outcome) {
        self.machine.resolve(id, outcome).unwrap();
        self.open.retain(|open| open != id);
        self.step();
    }
    #[track_caller]
    fn find(&self, what: &str, wanted: impl Fn(&Effect) -> bool) -> EffectId {
        let found = self.open.iter().find(|id| wanted(&self.get(id).effect));
        match found {
            Some(id) => id.clone(),
            None => panic!("no {what}; pending: {:#?}", self.pending()),
        }
    }
    #[track_caller]
    fn session_id(&self, label: &str) -> EffectId {
        self.find(
            label,
            |effect| matches!(effect, Effect::Session(request) if request.label == label),
        )
    }
    /// Ends the session with this label.
    #[track_caller]
    pub fn reply(&mut self, label: &str, text: &str) -> &mut Self {
        self.reply_value(label, Value::text(text))
    }
    #[track_caller]
    pub fn reply_value(&mut self, label: &str, value: Value) -> &mut Self {
        let id = self.session_id(label);
        self.resolve(&id, replied(value));
        self
    }
    /// Ends the session with this label with a long result, which the machine sees only by reference.
    #[track_caller]
    pub fn reply_long(&mut self, label: &str, summary: &str) -> &mut Self {
        self.reply_value(label, long(summary))
    }
    #[track_caller]
    pub fn fail(&mut self, label: &str, kind: ErrorKind, message: &str) -> &mut Self {
        let id = self.session_id(label);
        self.resolve(&id, failed(kind, message));
        self
    }
    #[track_caller]
    pub fn decide(&mut self, decision: Decision) -> &mut Self {
        let id = self.find("question", |effect| matches!(effect, Effect::Judge(_)));
        self.resolve(&id, verdict(decision));
        self
    }
    #[track_caller]
    pub fn yes(&mut self) -> &mut Self {
        self.decide(Decision::Yes)
    }
    #[track_caller]
    pub fn no(&mut self) -> &mut Self {
        self.decide(Decision::No)
    }
    #[track_caller]
    pub fn slept(&mut self) -> &mut Self {
        let id = self.find("wait", |effect| matches!(effect, Effect::Sleep(_)));
        self.resolve(&id, Outcome::Slept);
        self
    }
    #[track_caller]
    pub fn decoded(&mut self, value: Value) -> &mut Self {
        let id = self.find("decoding", |effect| matches!(effect, Effect::Decode(_)));
        self.resolve(&id, Outcome::Decoded { value });
        self
    }
    #[track_caller]
    pub fn answer(&mut self, name: &str, text: &str) -> &mut Self {
        let id = self.find(
            name,
            |effect| matches!(effect, Effect::Input(request) if request.name == name),
        );
        self.resolve(
            &id,
            Outcome::Input {
                value: Value::text(text),
            },
        );
        self
    }
    /// The cancelled effects have stopped.
    #[track_caller]
    pub fn stopped(&mut self) -> &mut Self {
        let id = self.find("cancel scope", |effect| matches!(effect, Effect::CancelScope(_)));
        self.resolve(&id, Outcome::Cancelled);
        self
    }
    pub fn cancel(&mut self) -> &mut Self {
        self.machine.cancel();
        self.step();
        self
    }
    /// The deadline of the given cancel scope passes.
    pub fn deadline(&mut self, scope: &str) -> &mut Self {
        self.machine.deadline(&scope.into());
        self.step();
        self
    }

    /// Answers everything, oldest first, until the end: sessions by `reply` to the label, else with `re: {label}`;
    /// conditions with yes.
    #[track_caller]
    pub fn finish(&mut self, reply: impl Fn(&str) -> Option<Value>) -> &mut Self {
        for _ in 0..200_000 {
            let Some(id) = self.open.first().cloned() else {
                break;
            };
            let outcome = match &self.get(&id).effect {
                Effect::Session(request) => {
                    let fallback = || Value::text(format!("re: {}", request.label));
                    replied(reply(&request.label).unwrap_or_else(fallback))
                }
                other => canned(other),
            };
            self.resolve(&id, outcome);
        }
        self.completion();
        self
    }
}

/// The simplest answer to an effect.
pub fn canned(effect: &Effect) -> Outcome {
    match effect {
        Effect::Session(request) => replied(Value::text(format!("re: {}", request.label))),
        Effect::Judge(request) => verdict(match &request.ask {
            prose_model::Ask::Choice { options } => Decision::Option(options[0].clone()),
            prose_model::Ask::Question => Decision::Question {
                prompt: "?".into(),
                options: Vec::new(),
            },
            prose_model::Ask::Value => Decision::Value(Value::text("judged")),
            prose_model::Ask::Loop { test, until, .. } if (*test == 0) == *until => Decision::No,
            _ => Decision::Yes,
        }),
        Effect::Decode(request) => Outcome::Decoded {
            value: match &request.target {
                prose_model::DecodeTarget::List => Value::list(vec![Value::text("one")]),
                prose_model::DecodeTarget::Record(_) => Value::record([]),
                prose_model::DecodeTarget::Number => Value::Number(1.0),
                prose_model::DecodeTarget::Json | prose_model::DecodeTarget::Memory(_) => Value::text("text"),
                _ => Value::Bool(true),
            },
        },
        Effect::Input(request) => Outcome::Input {
            value: match request.options.first() {
                Some(option) => Value::text(option.as_str()),
                None => Value::text(format!("given {}", request.name)),
            },
        },
        Effect::Sleep(_) => Outcome::Slept,
        Effect::CancelScope(_) => Outcome::Cancelled,
    }
}

pub fn replied(value: Value) -> Outcome {
    let summary = show(&value);
    Outcome::Session(Box::new(SessionOutcome {
        value,
        summary,
        usage: Usage::default(),
        memory: None,
        segment: None,
    }))
}
pub fn failed(kind: ErrorKind, message: &str) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message: message.into(),
        retry_after_ms: None,
        usage: Usage::default(),
    })
}
pub fn verdict(decision: Decision) -> Outcome {
    let reason = "because".into();
    Outcome::Verdict(Verdict {
        decision,
        confidence: 1.0,
        reason,
        usage: Usage::default(),
    })
}
/// A text of which the machine sees only the reference.
pub fn long(summary: &str) -> Value {
    let sha256 = format!("sha-{summary}").into();
    Value::Text(Text::reference(TextRef {
        sha256,
        len: 10_000,
        summary: summary.into(),
    }))
}
/// A value for comparison in tests; references as `<summary>`.
pub fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => prose_vm::render::number(*n),
        Value::Text(text) => show_text(text),
        Value::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Record(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{key}: {}", show(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Error(error) => format!("error({})", error.message),
    }
}
pub fn show_text(text: &Text) -> String {
    let parts = text.parts.iter().map(|part| match part {
        prose_model::TextPart::Inline(text) => text.to_string(),
        prose_model::TextPart::Ref(reference) => format!("<{}>", reference.summary),
    });
    parts.collect()
}
/// Kind and id of an effect.
pub fn brief(issued: &Issued) -> String {
    let kind = match &issued.effect {
        Effect::Session(_) => "session",
        Effect::Judge(_) => "judge",
        Effect::Decode(_) => "decode",
        Effect::Input(_) => "input",
        Effect::Sleep(_) => "sleep",
        Effect::CancelScope(_) => "cancel",
    };
    format!("{kind} {}", issued.id)
}

/// Every start has at most one end, after it, with the same key; when the run is over, exactly one.
#[track_caller]
pub fn check_pairs(events: &[Event], over: bool) {
    let mut open: BTreeMap<String, u32> = BTreeMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for event in events {
        let (key, start) = match event {
            Event::StatementStarted { at } => (format!("statement {}", at.path), true),
            Event::StatementFinished { at, .. } => (format!("statement {}", at.path), false),
            Event::FrameStarted { frame, .. } => (format!("frame {frame}"), true),
            Event::FrameFinished { frame, .. } => (format!("frame {frame}"), false),
            Event::ConstructStarted { construct, .. } => (format!("construct {construct}"), true),
            Event::ConstructFinished { construct, .. } => (format!("construct {construct}"), false),
            Event::PartStarted { construct, index, .. } => (format!("part {construct} {index}"), true),
            Event::PartFinished { construct, index, .. } => (format!("part {construct} {index}"), false),
            Event::SessionStarted { effect, .. } => (format!("session {effect}"), true),
            Event::SessionFinished { effect, .. } => (format!("session {effect}"), false),
            Event::JudgeStarted { effect, .. } => (format!("judge {effect}"), true),
            Event::JudgeFinished { effect, .. } => (format!("judge {effect}"), false),
            Event::DecodeStarted { effect, .. } => (format!("decode {effect}"), true),
            Event::DecodeFinished { effect, .. } => (format!("decode {effect}"), false),
            Event::InputStarted { effect, .. } => (format!("input {effect}"), true),
            Event::InputFinished { effect, .. } => (format!("input {effect}"), false),
            Event::SleepStarted { effect, .. } => (format!("sleep {effect}"), true),
            Event::SleepFinished { effect, .. } => (format!("sleep {effect}"), false),
            _ => continue,
        };
        if start {
            *open.entry(key.clone()).or_default() += 1;
            let times = seen.entry(key.clone()).or_default();
            *times += 1;
            assert_eq!(*times, 1, "{key} started twice");
        } else {
            let times = open
                .get_mut(&key)
                .unwrap_or_else(|| panic!("{key} ended without a start"));
            assert!(*times > 0, "{key} ended twice");
            *times -= 1;
        }
    }
    let left: Vec<_> = open
        .into_iter()
        .filter(|(_, times)| *times > 0)
        .map(|(key, _)| key)
        .collect();
    assert!(!over || left.is_empty(), "started and never ended: {left:#?}");
}
