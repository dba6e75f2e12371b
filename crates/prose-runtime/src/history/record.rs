//! Writing a mock file from a run's real answers, so that `replay` and `simulate` give the same run again.
//!
//! A rule names what people know: binding, agent, prompt, and a number only where those don't tell two questions
//! apart. In virtual time answers come by due time, then by issue order; a rule has a delay only where the recorded
//! order of answers needs one.

mod verdicts;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use prose_agents::{plain_json, plain_text};
use prose_model::{
    DecodeTarget, Effect, EffectId, ErrorKind, Failure, MemoryMode, Outcome, SessionRequest, Usage, Value,
};

use super::{History, PastEffect};
use crate::dispatch::wait_ms;
use crate::queue::SessionQueue;
use crate::request::Limits;

/// Longer replies get a file of their own beside the mock file, in bytes.
const FILE_LIMIT: usize = 8 * 1024;
/// A prompt up to this long, in characters, may stand in a rule to tell sessions apart.
const PROMPT_LIMIT: usize = 160;

/// Longest text that a pattern spells out, in characters.
const PATTERN_LIMIT: usize = 4000;
/// How long what was stopped takes when it is replayed, in milliseconds: it must not answer before it is stopped.
const NEVER: u64 = 60 * 60 * 1000;

/// A mock file and the replies beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The mock file, TOML.
    pub text: String,
    /// Long replies: path relative to the mock file, and text.
    pub files: Vec<(String, String)>,
    /// What could not be recorded, a sentence each.
    pub problems: Vec<String>,
}

impl Recording {
    /// Makes one of a run, for a file of that name.
    pub fn of(history: &History, path: &Path) -> Recording {
        Recorder {
            history,
            delays: delays(history),
            out: Recording {
                text: String::new(),
                files: Vec::new(),
                problems: history.problems.clone(),
            },
            folder: Recording::folder(path),
        }
        .all()
    }

    /// How every such file begins: one that does may be replaced by another.
    pub const BEGINNING: &'static str = "# The answers of run ";

    /// The name of the folder for the long replies of a mock file, beside it.
    pub fn folder(path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.trim_end_matches(".toml").trim_end_matches(".mock");
        format!("{stem}.replies")
    }
}

struct Recorder<'a> {
    history: &'a History,
    delays: HashMap<EffectId, u64>,
    out: Recording,
    folder: String,
}

/// A session with its task's text.
struct Asked<'a> {
    past: &'a PastEffect,
    request: &'a SessionRequest,
    task: String,
}

impl<'a> Recorder<'a> {
    fn all(mut self) -> Recording {
        let summary = &self.history.summary;
        let _ = write!(
            self.out.text,
            "{}{} of {} ({}), for `--backend replay` and `--backend simulate`.\n\
             # A delay_ms is not how long something took: it only keeps the answers in their order.\n",
            Recording::BEGINNING,
            summary.id,
            comment(&summary.program),
            comment(&summary.backend),
        );
        self.inputs();
        self.sessions();
        self.verdicts();
        self.decodes();
        self.out
    }

    /// Inputs that were given with the program or with a resume are answered by the file, too.
    fn inputs(&mut self) {
        let effects = self.answered(|effect| matches!(effect, Effect::Input(_)));
        let mut counts: HashMap<String, u64> = HashMap::new();
        let mut given: Vec<String> = Vec::new();
        if let Some(header) = &self.history.header {
            for (name, value) in &header.inputs {
                given.push(name.clone());
                let key = format!("name = {}\nnth = 1\n", quoted(name));
                // Its question was never put: the value was there first.
                let _ = write!(self.out.text, "\n[[input]]\n{key}{}\n", self.value(value));
            }
        }
        for past in effects {
            let Effect::Input(request) = &past.issued.effect else {
                continue;
            };
            let name = request.name.to_string();
            let count = counts
                .entry(name.clone())
                .or_insert_with(|| u64::from(given.contains(&name)));
            *count += 1;
            let value = match &past.answer {
                Some((_, Outcome::Input { value }, _)) => self.value(value),
                None if past.cancelled => "value = \"\"".to_owned(),
                _ => continue,
            };
            let mut rule = format!("\n[[input]]\nname = {}\nnth = {count}\n", quoted(&name));
            self.delay(&mut rule, &past.issued.id);
            let _ = writeln!(rule, "{value}");
            self.out.text.push_str(&rule);
        }
    }

    fn answered(&self, wanted: impl Fn(&Effect) -> bool) -> Vec<&'a PastEffect> {
        let history: &'a History = self.history;
        history
            .effects
            .values()
            .filter(|past| wanted(&past.issued.effect))
            .collect()
    }

    fn sessions(&mut self) {
        let history = self.history;
        let asked: Vec<Asked<'a>> = history
            .effects
            .values()
            .filter_map(|past| match &past.issued.effect {
                Effect::Session(request) => Some(Asked {
                    past,
                    request,
                    task: history.content().read(&request.task).unwrap_or_default(),
                }),
                _ => None,
            })
            .collect();
        let index = KeyIndex::new(&asked);
        let mut counts = HashMap::new();
        for (at, session) in asked.iter().enumerate() {
            let keys = index.keys(at, &mut counts);
            let mut rule = format!("\n[[session]]\n{keys}");
            let Some((_, outcome, _)) = &session.past.answer else {
                if session.past.cancelled {
                    rule.push_str("reply = \"[stopped before it answered]\"\n");
                    self.delay(&mut rule, &session.past.issued.id);
                    self.out.text.push_str(&rule);
                }
                continue;
            };
            let usage = match outcome {
                Outcome::Session(outcome) => {
                    match plain_text(&outcome.value, history.content()) {
                        Ok(text) => self.reply(&mut rule, &text, session),
                        Err(failure) => {
                            let what = format!(
                                "the reply of \"{}\" can't be read: {}",
                                session.request.label, failure.message
                            );
                            self.out.problems.push(what);
                            continue;
                        }
                    }
                    if let Some(memory) = self.memory(outcome.memory.as_ref()) {
                        let _ = writeln!(rule, "memory = {}", quoted(&memory));
                    }
                    outcome.usage
                }
                Outcome::Failed(failure) => {
                    fail(&mut rule, failure);
                    failure.usage
                }
                _ => continue,
            };
            self.delay(&mut rule, &session.past.issued.id);
            tokens(&mut rule, &usage);
            self.out.text.push_str(&rule);
        }
    }

    /// What an agent remembers after a session; simulated memory is made up again by itself.
    fn memory(&self, digest: Option<&prose_model::Digest>) -> Option<String> {
        let options = &self.history.header.as_ref()?.options;
        let made_up = matches!(options.backend.as_str(), "simulate" | "replay")
            && !options
                .mock_text
                .as_ref()
                .is_some_and(|text| text.contains("memory"));
        if made_up {
            return None;
        }
        self.history.values().get_text(digest?).ok()
    }

    fn reply(&mut self, rule: &mut String, text: &str, session: &Asked<'_>) {
        if text.len() <= FILE_LIMIT {
            let _ = writeln!(rule, "reply = {}", quoted(text));
            return;
        }
        let name = prose_state::safe_file_name(&session.request.binding.binding.name);
        let path = format!("{}/{:03}-{name}.md", self.folder, self.out.files.len() + 1);
        let _ = writeln!(rule, "file = {}", quoted(&path));
        self.out.files.push((path, text.to_owned()));
    }

    /// Only what the rules of decoding leave open.
    fn decodes(&mut self) {
        let mut seen = HashSet::new();
        for past in self.answered(|effect| matches!(effect, Effect::Decode(_))) {
            let Effect::Decode(request) = &past.issued.effect else {
                continue;
            };
            let word = match &request.target {
                DecodeTarget::List => "list",
                DecodeTarget::Record(_) => "record",
                DecodeTarget::Number => "number",
                DecodeTarget::Bool => "bool",
                DecodeTarget::Equals(_)
                | DecodeTarget::IsEmpty
                | DecodeTarget::Json
                | DecodeTarget::Memory(_) => continue,
            };
            let Ok(text) = plain_text(&request.value, self.history.content()) else {
                continue;
            };
            if prose_vm::decode::decode(&text, &request.target).is_some() {
                continue;
            }
            let Some((_, Outcome::Decoded { value }, _)) = &past.answer else {
                continue;
            };
            if !seen.insert((
                text.clone(),
                serde_json::to_string(&request.target).unwrap_or_default(),
            )) {
                continue;
            }
            let mut rule = format!(
                "\n[[decode]]\ntext = {}\nas = \"{word}\"\n",
                quoted(&exactly(&text))
            );
            self.delay(&mut rule, &past.issued.id);
            let _ = writeln!(rule, "{}", self.value(value));
            self.out.text.push_str(&rule);
        }
    }

    fn delay(&self, rule: &mut String, id: &EffectId) {
        if let Some(delay) = self.delays.get(id) {
            let _ = writeln!(rule, "delay_ms = {delay}");
        }
    }

    /// The key with a value: `value = …`, or `json = …` where TOML can't write it.
    fn value(&self, value: &Value) -> String {
        match plain_json(value, self.history.content()) {
            Ok(serde_json::Value::String(text)) => format!("value = {}", quoted(&text)),
            Ok(json) => match toml_value(&json) {
                Some(toml) => format!("value = {toml}"),
                None => format!("json = {}", quoted(&json.to_string())),
            },
            Err(_) => "value = \"\"".to_owned(),
        }
    }
}

/// The shortest keys that only one session matches.
struct KeyIndex<'a, 'b> {
    asked: &'b [Asked<'a>],
    by_binding: HashMap<&'b str, usize>,
    by_both: HashMap<(&'b str, &'b str), usize>,
    by_prompt: HashMap<&'b str, usize>,
    by_prompt_and_binding: HashMap<(&'b str, &'b str), usize>,
}

impl<'a, 'b> KeyIndex<'a, 'b> {
    fn new(asked: &'b [Asked<'a>]) -> KeyIndex<'a, 'b> {
        let mut index = KeyIndex {
            asked,
            by_binding: HashMap::new(),
            by_both: HashMap::new(),
            by_prompt: HashMap::new(),
            by_prompt_and_binding: HashMap::new(),
        };
        for session in asked {
            let binding = session.request.binding.binding.name.as_str();
            *index.by_binding.entry(binding).or_default() += 1;
            if let Some(agent) = &session.request.agent {
                *index.by_both.entry((agent.as_str(), binding)).or_default() += 1;
            }
            *index.by_prompt.entry(&session.task).or_default() += 1;
            *index
                .by_prompt_and_binding
                .entry((&session.task, binding))
                .or_default() += 1;
        }
        index
    }

    /// The keys of a session; `counts` is kept from session to session, in issue order.
    fn keys(&self, at: usize, counts: &mut HashMap<String, u64>) -> String {
        let session = &self.asked[at];
        let name = session.request.binding.binding.name.as_str();
        let agent = session.request.agent.as_deref();
        let anonymous = session.request.binding.bind_kind == prose_model::BindKind::Anonymous;
        // A number of an anonymous binding says nothing to a person, and changes with the program.
        let short = session.task.chars().count() <= PROMPT_LIMIT && !session.task.trim().is_empty();
        let prompt = || format!("prompt = {}\n", quoted(&exactly(&session.task)));
        let agent_key = agent.map_or_else(String::new, |agent| format!("agent = {}\n", quoted(agent)));
        let binding = format!("binding = {}\n", quoted(name));
        // Every rule with the same keys counts alike, so the counts of all key sets go on in any case.
        let mut nth = |keys: &str| {
            let count = counts.entry(keys.to_owned()).or_insert(0);
            *count += 1;
            *count
        };
        let by_binding = nth(&binding);
        let by_both = agent.map(|_| nth(&format!("{agent_key}{binding}")));
        let by_prompt = nth(&format!("p\0{}", session.task));
        if anonymous && short {
            return match self.by_prompt.get(session.task.as_str()) {
                Some(1) => format!("{agent_key}{}", prompt()),
                _ => format!("{}nth = {by_prompt}\n", prompt()),
            };
        }
        if self.by_binding.get(name) == Some(&1) {
            return format!("{agent_key}{binding}");
        }
        if let Some(agent) = agent
            && self.by_both.get(&(agent, name)) == Some(&1)
        {
            return format!("{agent_key}{binding}");
        }
        if short && self.by_prompt_and_binding.get(&(session.task.as_str(), name)) == Some(&1) {
            return format!("{agent_key}{binding}{}", prompt());
        }
        match by_both {
            Some(nth) => format!("{agent_key}{binding}nth = {nth}\n"),
            None => format!("{binding}nth = {by_binding}\n"),
        }
    }
}

/// The delays in virtual time that bring the answers in their recorded order, for those that need one.
///
/// Answers come by due time, then by issue order. So an answer is due with the one before it when it was asked for
/// later, else a millisecond after it.
fn delays<'a>(history: &'a History) -> HashMap<EffectId, u64> {
    let mut answers: Vec<(&EffectId, &PastEffect, usize)> = history
        .effects
        .iter()
        .filter_map(|(id, past)| Some((id, past, past.answer.as_ref()?.2)))
        .collect();
    answers.sort_unstable_by_key(|(_, _, position)| *position);
    let mut queue = SessionQueue::new(
        history
            .header
            .as_ref()
            .and_then(|header| header.options.max_parallel)
            .map_or(Limits::default().parallel_plain, |n| {
                (n as usize).max(Limits::default().parallel_plain)
            }),
    );
    let mut asked: HashMap<&EffectId, u64> = HashMap::new();
    let mut delays = HashMap::new();
    // What each answer made the program ask is asked at its time.
    let mut by_cause: HashMap<Option<&EffectId>, Vec<(&EffectId, &PastEffect)>> = HashMap::new();
    for (id, past) in &history.effects {
        by_cause.entry(past.cause.as_ref()).or_default().push((id, past));
    }
    let begin = |now: u64,
                 cause: Option<&'a EffectId>,
                 queue: &mut SessionQueue,
                 asked: &mut HashMap<&'a EffectId, u64>,
                 ended: Option<&EffectId>| {
        if let Some(id) = ended {
            queue.finish(id);
        }
        for (id, past) in by_cause.get(&cause).into_iter().flatten() {
            match &past.issued.effect {
                Effect::Session(request) => {
                    queue.push((*id).clone(), past.issued.order, memory_of(request));
                }
                Effect::CancelScope(request) => {
                    for stopped in &request.effects {
                        queue.remove(stopped);
                        queue.finish(stopped);
                    }
                    asked.insert(id, now);
                }
                _ => {
                    asked.insert(id, now);
                }
            }
        }
        while let Some(started) = queue.next() {
            if let Some((id, _)) = history.effects.get_key_value(&started) {
                asked.insert(id, now);
            }
        }
    };
    begin(0, None, &mut queue, &mut asked, None);
    let (mut now, mut last_order) = (0u64, None::<u64>);
    for (id, past, _) in answers {
        let from = asked.get(id).copied().unwrap_or(now);
        let fixed = match &past.issued.effect {
            Effect::Sleep(request) => Some(from.saturating_add(wait_ms(request))),
            // Answered at once.
            Effect::CancelScope(_) => Some(from),
            Effect::Decode(_) => match &past.answer {
                Some((_, Outcome::Decoded { .. }, _)) if !by_judge(history, past) => Some(from),
                _ => None,
            },
            _ => None,
        };
        let due = match fixed {
            Some(due) => due.max(now),
            None if last_order.is_none_or(|last| past.issued.order > last) => now.max(from),
            None => now.max(from) + 1,
        };
        if fixed.is_none() && due > from {
            delays.insert(id.clone(), due - from);
        }
        if due > now {
            last_order = None;
        }
        now = due;
        last_order = Some(last_order.map_or(past.issued.order, |last| last.max(past.issued.order)));
        begin(now, Some(id), &mut queue, &mut asked, Some(id));
    }
    for (id, past) in &history.effects {
        if past.answer.is_none() && past.cancelled {
            delays.insert(id.clone(), NEVER);
        }
    }
    delays
}

/// Whether reading the content took the judge.
fn by_judge(history: &History, past: &PastEffect) -> bool {
    let Effect::Decode(request) = &past.issued.effect else {
        return false;
    };
    match &request.target {
        DecodeTarget::Equals(_) | DecodeTarget::IsEmpty | DecodeTarget::Json | DecodeTarget::Memory(_) => {
            false
        }
        target => plain_text(&request.value, history.content())
            .is_ok_and(|text| prose_vm::decode::decode(&text, target).is_none()),
    }
}

/// Sessions with the same one go one at a time.
fn memory_of(request: &SessionRequest) -> Option<PathBuf> {
    let memory = request
        .memory
        .as_ref()
        .filter(|memory| memory.mode != MemoryMode::Read)?;
    let mut path = PathBuf::from(format!("{:?}", memory.persist));
    path.extend(&memory.program);
    path.push(&memory.namespace);
    path.push(memory.agent.as_str());
    Some(path)
}

fn fail(rule: &mut String, failure: &Failure) {
    // Kinds that no backend reports can't stand in a mock file; what the program sees of them is the message.
    let kind = match failure.kind {
        ErrorKind::Timeout => "timeout",
        ErrorKind::Permission => "permission",
        ErrorKind::Empty => "empty",
        ErrorKind::Budget => "budget",
        _ => "backend",
    };
    let _ = write!(
        rule,
        "fail = {{ kind = \"{kind}\", message = {}",
        quoted_on_one_line(&failure.message)
    );
    if let Some(ms) = failure.retry_after_ms {
        let _ = write!(rule, ", retry_after_ms = {ms}");
    }
    rule.push_str(" }\n");
}

fn tokens(rule: &mut String, usage: &Usage) {
    if *usage == Usage::default() {
        return;
    }
    let _ = write!(
        rule,
        "tokens = {{ in = {}, out = {}",
        usage.input_tokens, usage.output_tokens
    );
    if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite()) {
        let _ = write!(rule, ", cost_usd = {}", toml_number(cost));
    }
    rule.push_str(" }\n");
}

/// A regular expression that matches this text and no other; of a long text only its beginning.
fn exactly(text: &str) -> String {
    match text.char_indices().nth(PATTERN_LIMIT) {
        Some((end, _)) => format!("\\A{}", regex::escape(&text[..end])),
        None => format!("\\A{}\\z", regex::escape(text)),
    }
}

/// Text for a comment: whatever it is, it stays on the comment's line.
fn comment(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Any text as a TOML string: a literal one where it has no quote and no control character, several lines where it has
/// them, else escaped.
fn quoted(text: &str) -> String {
    let plain = |c: char| !c.is_control() || c == '\t';
    if !text.contains('\'') && text.chars().all(plain) && text.contains(['\\', '"']) {
        return format!("'{text}'");
    }
    if text.contains('\n') && text.chars().all(|c| plain(c) || c == '\n') {
        if !text.contains("'''") && !text.ends_with('\'') && text.contains(['\\', '"']) {
            return format!("'''\n{text}'''");
        }
        // A backslash or a run of quotes would mean something.
        let body = text.replace('\\', "\\\\").replace('"', "\\\"");
        return format!("\"\"\"\n{body}\"\"\"");
    }
    quoted_on_one_line(text)
}

fn quoted_on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// JSON as an inline TOML value; none where there is a null in it, which TOML can't write.
fn toml_value(json: &serde_json::Value) -> Option<String> {
    Some(match json {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(flag) => flag.to_string(),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => toml_number(value),
            _ => number.to_string(),
        },
        serde_json::Value::String(text) => quoted_on_one_line(text),
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect::<Option<_>>()?;
            format!("[{}]", items.join(", "))
        }
        serde_json::Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        serde_json::Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| Some(format!("{} = {}", quoted_on_one_line(key), toml_value(value)?)))
                .collect::<Option<_>>()?;
            format!("{{ {} }}", entries.join(", "))
        }
    })
}

/// A float keeps its point, without which TOML reads an integer.
fn toml_number(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else {
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            let line = format!("a = {}\nb = {}\n", quoted(&text), quoted_on_one_line(&text));
            let read: toml::Table = toml::from_str(&line).unwrap();
            prop_assert_eq!(read["a"].as_str(), Some(text.as_str()));
            prop_assert_eq!(read["b"].as_str(), Some(text.as_str()));
        }

        #[test]
        fn texts_of_marks_come_back(text in "[\"'\\\\\n\r a]{0,24}") {
            let line = format!("a = {}\n", quoted(&text));
            let read: toml::Table = toml::from_str(&line).unwrap();
            prop_assert_eq!(read["a"].as_str(), Some(text.as_str()));
        }
    }

    #[test]
    fn patterns_match_only_their_text() {
        let text = "a.b|c\n$^[x]#  y";
        let pattern = regex::Regex::new(&exactly(text)).unwrap();
        assert!(pattern.is_match(text));
        assert!(!pattern.is_match(&format!("{text} ")) && !pattern.is_match("aXb|c\n$^[x]#  y"));
    }
}
