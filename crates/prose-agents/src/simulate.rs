//! The `simulate` and `replay` backends: answers from a mock file, without any model.
//!
//! Which rule answers an effect is decided when the machine issues it ([`IssueObserver`]), in issue order, so that
//! `nth` counts the same way in a first run, in a resumed one and at any speed of delivery.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use prose_model::{
    Ask, Decision, DecodeTarget, Effect, EffectId, ErrorKind, Failure, InputRequest, Issued, JudgeRequest,
    SessionRequest, Usage, Value, Verdict,
};

use crate::mock::{MockFile, SessionAnswer, TokenSpec};
use crate::session::{
    Capabilities, Delivery, MemoryUpdate, SessionBackend, SessionReply, SessionSpawn, SessionUpdate,
};
use crate::{
    Content, DecodeInput, InputSource, IssueObserver, Judge, JudgeInput, MemoryContext, Reading, ReplyBody,
    failure, one_line,
};

/// The reason for what no mock file gives a reason for.
pub const SIMULATED: &str = "[simulated]";

/// Answers from a mock file.
#[derive(Debug)]
pub struct Simulate {
    name: &'static str,
    mock: MockFile,
    strict: bool,
    realtime: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many effects have matched the other keys of a session rule so far.
    session_counts: Vec<u64>,
    /// How many questions other than loop tests a verdict rule has answered so far.
    verdict_counts: Vec<usize>,
    /// How many questions have matched the condition of a verdict rule so far, loop tests included.
    question_counts: Vec<u64>,
    /// How many inputs have matched the other keys of an input rule so far.
    input_counts: Vec<u64>,
    sessions: HashMap<EffectId, SessionPlan>,
    verdicts: HashMap<EffectId, Result<Verdict, String>>,
    inputs: HashMap<EffectId, Option<Value>>,
    /// How long what is no session takes, where a rule says so.
    delays: HashMap<EffectId, u64>,
}

#[derive(Debug, Clone)]
struct SessionPlan {
    answer: Result<String, Failure>,
    delay: Duration,
    usage: Usage,
    memory: Option<String>,
}

impl Simulate {
    /// The `simulate` backend: what no rule matches is made up, and says so. Time is virtual unless `realtime`.
    pub fn new(mock: MockFile, realtime: bool) -> Simulate {
        Simulate::build("simulate", mock, false, realtime)
    }

    /// The `replay` backend: what no rule matches fails.
    pub fn replay(mock: MockFile, realtime: bool) -> Simulate {
        Simulate::build("replay", mock, true, realtime)
    }

    fn build(name: &'static str, mock: MockFile, strict: bool, realtime: bool) -> Simulate {
        let state = State {
            session_counts: vec![0; mock.sessions.len()],
            verdict_counts: vec![0; mock.verdicts.len()],
            question_counts: vec![0; mock.verdicts.len()],
            input_counts: vec![0; mock.inputs.len()],
            ..State::default()
        };
        Simulate {
            name,
            mock,
            strict,
            realtime,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing inside can be left half-done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unanswered(&self, what: &str) -> Failure {
        failure(ErrorKind::Backend, format!("no recorded answer for {what}"))
    }

    fn plan_session(&self, state: &mut State, request: &SessionRequest, task: &str) -> SessionPlan {
        let mut chosen = None;
        for (rule, count) in self.mock.sessions.iter().zip(&mut state.session_counts) {
            let matches = rule
                .agent
                .as_deref()
                .is_none_or(|agent| request.agent.as_deref() == Some(agent))
                && rule
                    .binding
                    .as_deref()
                    .is_none_or(|name| request.binding.binding.name == name)
                && rule.prompt.as_ref().is_none_or(|pattern| pattern.matches(task));
            if !matches {
                continue;
            }
            // Every matching rule counts, also behind the one that wins: the count belongs to the rule's keys.
            *count += 1;
            if chosen.is_none() && rule.nth.is_none_or(|nth| nth == *count) {
                chosen = Some(rule);
            }
        }
        let defaults = &self.mock.defaults;
        let usage = usage(chosen.and_then(|rule| rule.tokens).or(defaults.tokens));
        let delay = chosen
            .and_then(|rule| rule.delay_ms)
            .or(defaults.delay_ms)
            .unwrap_or(0);
        let answer = match chosen.map(|rule| &rule.answer) {
            Some(SessionAnswer::Reply(text)) => Ok(text.clone()),
            Some(SessionAnswer::Fail(fail)) => Err(Failure {
                kind: fail.kind,
                message: fail.message.clone(),
                retry_after_ms: fail.retry_after_ms,
                usage,
            }),
            // Only a mock parsed from bare text still names files.
            Some(SessionAnswer::File(path)) => Err(failure(
                ErrorKind::Backend,
                format!("the mock's reply file `{path}` was not loaded"),
            )),
            Some(SessionAnswer::Default) => Ok(self.default_reply(request, task)),
            None if self.strict && defaults.reply.is_none() => {
                Err(self.unanswered(&format!("the session \"{}\"", request.label)))
            }
            None => Ok(self.default_reply(request, task)),
        };
        SessionPlan {
            answer,
            delay: Duration::from_millis(delay),
            usage,
            memory: chosen.and_then(|rule| rule.memory.clone()),
        }
    }

    fn default_reply(&self, request: &SessionRequest, task: &str) -> String {
        let template = self
            .mock
            .defaults
            .reply
            .as_deref()
            .unwrap_or("[simulated] {label}");
        fill(template, |key| {
            Some(match key {
                "label" => request.label.clone(),
                "agent" => request.agent.as_deref().unwrap_or_default().to_owned(),
                "binding" => request.binding.binding.name.to_string(),
                "model" => request.model.clone().unwrap_or_default(),
                "attempt" => request.attempt.to_string(),
                "prompt" => task.to_owned(),
                _ => return None,
            })
        })
    }

    fn plan_verdict(
        &self,
        state: &mut State,
        effect: &EffectId,
        request: &JudgeRequest,
        text: &str,
    ) -> Result<Verdict, String> {
        let mut chosen = None;
        for (index, rule) in self.mock.verdicts.iter().enumerate() {
            if !rule
                .condition
                .as_ref()
                .is_none_or(|pattern| pattern.matches(text))
            {
                continue;
            }
            let count = &mut state.question_counts[index];
            *count += 1;
            if chosen.is_none() && rule.nth.is_none_or(|nth| nth == *count) {
                chosen = Some(index);
            }
        }
        let Some(index) = chosen else {
            return if self.strict {
                Err(format!("no recorded answer for **{}**", one_line(text)))
            } else {
                Ok(verdict(unmatched_verdict(&request.ask, text), None, None))
            };
        };
        let rule = &self.mock.verdicts[index];
        if let Some(delay) = rule.delay_ms {
            state.delays.insert(effect.clone(), delay);
        }
        let answers = &rule.answers;
        let at = match request.ask {
            _ if rule.nth.is_some() => 0,
            Ask::Loop { test, .. } => test as usize,
            _ => {
                let count = &mut state.verdict_counts[index];
                *count += 1;
                *count - 1
            }
        };
        let answer = nth_or_last(answers, at).cloned().unwrap_or_default();
        decision(&request.ask, &answer)
            .map(|decision| {
                verdict(
                    decision,
                    nth_or_last(&rule.reasons, at),
                    nth_or_last(&rule.confidences, at),
                )
            })
            .map_err(|why| format!("mock verdict for **{}**: {why}", one_line(text)))
    }
}

fn nth_or_last<T>(list: &[T], at: usize) -> Option<&T> {
    list.get(at).or(list.last())
}

fn verdict(decision: Decision, reason: Option<&String>, confidence: Option<&f64>) -> Verdict {
    Verdict {
        decision,
        confidence: confidence.copied().unwrap_or(1.0),
        reason: reason.map_or_else(|| SIMULATED.to_owned(), String::clone),
        usage: Usage::default(),
    }
}

/// Replaces the `{key}`s that are known; nothing inserted is looked at again.
fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        match after
            .find('}')
            .and_then(|close| Some((value(&after[..close])?, close)))
        {
            Some((text, close)) => {
                out.push_str(&text);
                rest = &after[close + 1..];
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn usage(tokens: Option<TokenSpec>) -> Usage {
    let tokens = tokens.unwrap_or_default();
    Usage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cost_usd: tokens.cost_usd,
    }
}

/// What `simulate` decides where no rule matches: `if` holds, `until` holds at its second test, `while` holds once,
/// a choice takes its first option.
fn unmatched_verdict(ask: &Ask, text: &str) -> Decision {
    match ask {
        Ask::Condition => Decision::Yes,
        Ask::Loop {
            until: true, test, ..
        } => {
            if *test >= 1 {
                Decision::Yes
            } else {
                Decision::No
            }
        }
        Ask::Loop {
            until: false, test, ..
        } => {
            if *test == 0 {
                Decision::Yes
            } else {
                Decision::No
            }
        }
        Ask::Choice { options } => options
            .first()
            .cloned()
            .map_or(Decision::Unsure, Decision::Option),
        Ask::Value => Decision::Value(Value::text(format!("[simulated] {}", text.trim()))),
        Ask::Question => Decision::Question {
            prompt: text.trim().to_owned(),
            options: Vec::new(),
        },
    }
}

/// Reads a mock's answer as a decision of the kind that is asked for.
fn decision(ask: &Ask, answer: &Value) -> Result<Decision, String> {
    let word = match answer {
        Value::Text(text) => text.as_inline().map(|text| text.trim().to_owned()),
        _ => None,
    };
    match ask {
        Ask::Value => Ok(Decision::Value(answer.clone())),
        Ask::Choice { options } => {
            let word = word.ok_or("a choice is answered by one of its labels")?;
            options
                .iter()
                .find(|label| **label == word)
                .or_else(|| options.iter().find(|label| label.eq_ignore_ascii_case(&word)))
                .map(|label| Decision::Option(label.clone()))
                .ok_or_else(|| format!("`{word}` is none of the options {}", options.join(", ")))
        }
        Ask::Question => match word {
            None if question(answer).is_some() => Ok(question(answer).unwrap_or(Decision::Unsure)),
            Some(word) => Ok(Decision::Question {
                prompt: word,
                options: Vec::new(),
            }),
            None => Err("a discretion input is answered by the text of a question".to_owned()),
        },
        Ask::Condition | Ask::Loop { .. } => match answer {
            Value::Bool(true) => Ok(Decision::Yes),
            Value::Bool(false) => Ok(Decision::No),
            _ => match word.as_deref() {
                Some("yes" | "true") => Ok(Decision::Yes),
                Some("no" | "false") => Ok(Decision::No),
                Some("unsure") => Ok(Decision::Unsure),
                Some("no-progress") if matches!(ask, Ask::Loop { .. }) => Ok(Decision::NoProgress),
                _ => Err(
                    "a condition is answered by true, false, \"unsure\" or, in a loop, \"no-progress\""
                        .into(),
                ),
            },
        },
    }
}

/// A question with its choices: `{ question = "…", options = ["…"] }`.
fn question(answer: &Value) -> Option<Decision> {
    let Value::Record(entries) = answer else {
        return None;
    };
    let text = |value: &Value| match value {
        Value::Text(text) => text.as_inline().map(|text| text.into_owned()),
        _ => None,
    };
    let options = match entries.get("options") {
        Some(Value::List(items)) => items.iter().map(text).collect::<Option<_>>()?,
        Some(_) => return None,
        None => Vec::new(),
    };
    Some(Decision::Question {
        prompt: text(entries.get("question")?)?,
        options,
    })
}

/// The word for what content is wanted as.
fn wanted(target: &DecodeTarget) -> &'static str {
    match target {
        DecodeTarget::List => "list",
        DecodeTarget::Record(_) => "record",
        DecodeTarget::Number => "number",
        DecodeTarget::Bool | DecodeTarget::Equals(_) | DecodeTarget::IsEmpty => "bool",
        DecodeTarget::Json | DecodeTarget::Memory(_) => "text",
    }
}

impl Simulate {
    /// The rule that answers an input, whatever number it is.
    fn plan_input(&self, state: &mut State, effect: &EffectId, request: &InputRequest, prompt: &str) {
        let mut chosen = None;
        for (rule, count) in self.mock.inputs.iter().zip(&mut state.input_counts) {
            let matches = rule.name.as_deref().is_none_or(|name| request.name == name)
                && rule.prompt.as_ref().is_none_or(|pattern| pattern.matches(prompt));
            if !matches {
                continue;
            }
            *count += 1;
            if chosen.is_none() && rule.nth.is_none_or(|nth| nth == *count) {
                chosen = Some(rule);
            }
        }
        if let Some(delay) = chosen.and_then(|rule| rule.delay_ms) {
            state.delays.insert(effect.clone(), delay);
        }
        let value = chosen.map(|rule| rule.value.clone());
        state.inputs.insert(effect.clone(), value);
    }

    /// The rule that reads content.
    fn decode_rule(&self, text: &str, target: &DecodeTarget) -> Option<&crate::DecodeRule> {
        self.mock.decodes.iter().find(|rule| {
            rule.text.as_ref().is_none_or(|pattern| pattern.matches(text))
                && rule.wanted.as_deref().is_none_or(|word| word == wanted(target))
        })
    }
}

impl IssueObserver for Simulate {
    fn delay_ms(&self, effect: &EffectId) -> u64 {
        self.state().delays.get(effect).copied().unwrap_or(0)
    }

    fn issued(&self, issued: &Issued, content: &dyn Content) -> Result<(), Failure> {
        match &issued.effect {
            Effect::Session(request) => {
                let task = content.read(&request.task)?;
                let mut state = self.state();
                let plan = self.plan_session(&mut state, request, &task);
                state.sessions.insert(issued.id.clone(), plan);
            }
            Effect::Judge(request) => {
                let text = content.read(&request.text)?;
                let mut state = self.state();
                let plan = self.plan_verdict(&mut state, &issued.id, request, &text);
                state.verdicts.insert(issued.id.clone(), plan);
            }
            Effect::Input(request) => {
                let prompt = content.read(&request.prompt)?;
                let mut state = self.state();
                self.plan_input(&mut state, &issued.id, request, &prompt);
            }
            Effect::Decode(request) if self.mock.decodes.iter().any(|rule| rule.delay_ms.is_some()) => {
                let text = crate::plain_text(&request.value, content)?;
                let delay = self
                    .decode_rule(&text, &request.target)
                    .and_then(|rule| rule.delay_ms);
                if let Some(delay) = delay {
                    self.state().delays.insert(issued.id.clone(), delay);
                }
            }
            Effect::Decode(_) | Effect::Sleep(_) | Effect::CancelScope(_) => {}
        }
        Ok(())
    }
}

#[async_trait]
impl SessionBackend for Simulate {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Plain,
            reattach: false,
            skills: false,
            virtual_time: !self.realtime,
        }
    }

    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        let plan = self.state().sessions.get(&session.effect).cloned();
        let plan =
            plan.ok_or_else(|| failure(ErrorKind::Backend, "simulate was not told of this session"))?;
        session.sink.started(None, session.request.model.clone()).await?;
        tokio::select! {
            () = session.clock.sleep(plan.delay) => {}
            () = session.cancel.cancelled() => return Err(failure(ErrorKind::Backend, "cancelled")),
        }
        let reply = plan.answer?;
        session.sink.update(SessionUpdate::Text(reply.clone()));
        let memory = session.memory.as_ref().map(|memory| match plan.memory {
            Some(text) => MemoryUpdate::Text {
                segment: format!(
                    "[simulated]\n\n- {}: {}\n",
                    session.request.label,
                    one_line(&reply)
                ),
                memory: text,
            },
            None => remember(memory, &session.request, &reply),
        });
        Ok(SessionReply {
            body: ReplyBody::Text(reply),
            summary: None,
            usage: plan.usage,
            memory,
        })
    }
}

/// A memory that shows which sessions fed it.
fn remember(memory: &MemoryContext, request: &SessionRequest, reply: &str) -> MemoryUpdate {
    let mut text = memory.text.clone().unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let entry = format!("- {}: {}\n", request.label, one_line(reply));
    text.push_str(&format!("## Segment {} Summary\n\n{entry}", memory.segment));
    MemoryUpdate::Text {
        memory: text,
        segment: format!("[simulated]\n\n{entry}"),
    }
}

#[async_trait]
impl Judge for Simulate {
    fn name(&self) -> &str {
        self.name
    }

    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        let plan = self.state().verdicts.get(&input.effect).cloned();
        let plan =
            plan.ok_or_else(|| failure(ErrorKind::Backend, "simulate was not told of this question"))?;
        // Not of kind `judge`, which would be asked again and then hidden as unsure: the mock file is wrong.
        plan.map_err(|message| failure(ErrorKind::Backend, message))
    }

    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        if let Some(rule) = self.decode_rule(&input.text, &input.target) {
            return Ok(rule.value.clone().into());
        }
        if self.strict {
            return Err(self.unanswered("a decoding"));
        }
        let value = match &input.target {
            DecodeTarget::List => Value::list(vec![Value::text(input.text.trim())]),
            DecodeTarget::Record(keys) => Value::record(keys.iter().map(|key| (key.clone(), Value::Null))),
            DecodeTarget::Number => Value::Number(1.0),
            DecodeTarget::Bool => Value::Bool(true),
            // All of these are decided without a judge; the deterministic decoder never passes them on.
            DecodeTarget::Equals(_) | DecodeTarget::IsEmpty => Value::Bool(false),
            DecodeTarget::Json | DecodeTarget::Memory(_) => Value::Null,
        };
        Ok(value.into())
    }
}

#[async_trait]
impl InputSource for Simulate {
    async fn answer(&self, effect: &EffectId, request: &InputRequest, prompt: &str) -> Option<Value> {
        let planned = {
            let mut state = self.state();
            match state.inputs.get(effect).cloned() {
                Some(planned) => planned,
                // Nobody told of it before: it is planned now, and counts.
                None => {
                    self.plan_input(&mut state, effect, request, prompt);
                    state.inputs.remove(effect).flatten()
                }
            }
        };
        if planned.is_some() {
            return planned;
        }
        if self.mock.defaults.ask {
            return None;
        }
        if let Some(template) = &self.mock.defaults.input {
            return Some(Value::text(fill(template, |key| {
                (key == "name").then(|| request.name.to_string())
            })));
        }
        if self.strict {
            return None;
        }
        Some(match request.options.first() {
            Some(option) => Value::text(option.as_str()),
            None => Value::text(format!("[simulated] {}", request.name)),
        })
    }
}
