//! The mock file: answers written down beforehand, for `simulate` and `replay`. TOML or JSON.
//!
//! First rule that matches wins; each key of a rule is optional and narrows it. Unknown keys and bad
//! patterns are errors with the line where they stand.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use prose_model::{ErrorKind, Value};
use serde::{Deserialize, Deserializer};

/// A parsed mock file.
#[derive(Debug, Clone, Default)]
pub struct MockFile {
    /// Answers for what no rule matches.
    pub defaults: Defaults,
    /// Sessions.
    pub sessions: Vec<SessionRule>,
    /// Discretion and choice.
    pub verdicts: Vec<VerdictRule>,
    /// Inputs.
    pub inputs: Vec<InputRule>,
    /// Decodings that the deterministic decoder can't do.
    pub decodes: Vec<DecodeRule>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMockFile {
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    session: Vec<RawSessionRule>,
    #[serde(default)]
    verdict: Vec<RawVerdictRule>,
    #[serde(default)]
    input: Vec<InputRule>,
    #[serde(default)]
    decode: Vec<DecodeRule>,
}

/// `[defaults]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// What an unmatched session answers; `[simulated] {label}` where absent. Placeholders: `{label}`, `{agent}`,
    /// `{binding}`, `{model}`, `{attempt}`, `{prompt}`; anything else in braces stays.
    pub reply: Option<String>,
    /// What an unmatched input is answered with; the first of its choices, else `[simulated] {name}`, where absent.
    /// Placeholder: `{name}`.
    pub input: Option<String>,
    /// Leaves an unmatched input to the person who runs the program, in place of making an answer up.
    #[serde(default)]
    pub ask: bool,
    /// How long an unmatched session takes, in milliseconds.
    pub delay_ms: Option<u64>,
    /// What an unmatched session uses.
    pub tokens: Option<TokenSpec>,
}

/// `[[session]]`.
#[derive(Debug, Clone)]
pub struct SessionRule {
    /// Matches the agent's name.
    pub agent: Option<String>,
    /// Matches the name that the result is bound to.
    pub binding: Option<String>,
    /// Searched in the task's text.
    pub prompt: Option<Pattern>,
    /// Matches only the n-th effect, from 1, of those that match the other keys, in the machine's issue order.
    pub nth: Option<u64>,
    /// What happens.
    pub answer: SessionAnswer,
    /// How long it takes, in milliseconds.
    pub delay_ms: Option<u64>,
    /// What it uses.
    pub tokens: Option<TokenSpec>,
    /// What a persistent agent remembers after it; made up where absent.
    pub memory: Option<String>,
}

/// What a matched session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAnswer {
    /// As an unmatched one.
    Default,
    /// Answers with this text.
    Reply(String),
    /// Answers with a file's text, path relative to the mock file. Replaced by `Reply` on load.
    File(String),
    /// Fails.
    Fail(FailSpec),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSessionRule {
    agent: Option<String>,
    binding: Option<String>,
    prompt: Option<Pattern>,
    nth: Option<u64>,
    reply: Option<String>,
    file: Option<String>,
    fail: Option<FailSpec>,
    delay_ms: Option<u64>,
    tokens: Option<TokenSpec>,
    memory: Option<String>,
}

impl TryFrom<RawSessionRule> for SessionRule {
    type Error = String;
    fn try_from(raw: RawSessionRule) -> Result<Self, String> {
        if raw.nth == Some(0) {
            return Err("`nth` counts from 1".to_owned());
        }
        let answer = match (raw.reply, raw.file, raw.fail) {
            (None, None, None) => SessionAnswer::Default,
            (Some(text), None, None) => SessionAnswer::Reply(text),
            (None, Some(path), None) => SessionAnswer::File(path),
            (None, None, Some(fail)) => SessionAnswer::Fail(fail),
            _ => return Err("only one of `reply`, `file` and `fail` is possible".to_owned()),
        };
        Ok(SessionRule {
            agent: raw.agent,
            binding: raw.binding,
            prompt: raw.prompt,
            nth: raw.nth,
            answer,
            delay_ms: raw.delay_ms,
            tokens: raw.tokens,
            memory: raw.memory,
        })
    }
}

/// `fail = "timeout"`, `fail = "some message"`, or `fail = { kind = "backend", message = "…", retry_after_ms = 500 }`.
/// A word that is no kind is the message of a `backend` failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawFail")]
pub struct FailSpec {
    /// The kind.
    pub kind: ErrorKind,
    /// The message.
    pub message: String,
    /// When to come back, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or a table of `kind`, `message`, `retry_after_ms`"
)]
enum RawFail {
    Text(String),
    Table(FailTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailTable {
    kind: Option<String>,
    message: Option<String>,
    retry_after_ms: Option<u64>,
}

/// The kinds that a session can fail with, by their word.
const FAIL_KINDS: &[(&str, ErrorKind)] = &[
    ("backend", ErrorKind::Backend),
    ("timeout", ErrorKind::Timeout),
    ("permission", ErrorKind::Permission),
    ("empty", ErrorKind::Empty),
    ("budget", ErrorKind::Budget),
];

fn fail_kind(word: &str) -> Option<ErrorKind> {
    FAIL_KINDS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, kind)| *kind)
}

impl TryFrom<RawFail> for FailSpec {
    type Error = String;
    fn try_from(raw: RawFail) -> Result<Self, String> {
        match raw {
            RawFail::Text(text) => Ok(match fail_kind(&text) {
                Some(kind) => FailSpec {
                    kind,
                    message: format!("[simulated] failure: {text}"),
                    retry_after_ms: None,
                },
                None => FailSpec {
                    kind: ErrorKind::Backend,
                    message: text,
                    retry_after_ms: None,
                },
            }),
            RawFail::Table(table) => {
                let word = table.kind.as_deref().unwrap_or("backend");
                let kind = fail_kind(word).ok_or_else(|| {
                    let known: Vec<_> = FAIL_KINDS.iter().map(|(name, _)| *name).collect();
                    format!("unknown kind of failure `{word}`; one of {}", known.join(", "))
                })?;
                let message = table
                    .message
                    .unwrap_or_else(|| format!("[simulated] failure: {word}"));
                Ok(FailSpec {
                    kind,
                    message,
                    retry_after_ms: table.retry_after_ms,
                })
            }
        }
    }
}

/// `tokens = { in = 10, out = 20 }`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSpec {
    /// Input tokens.
    #[serde(default, rename = "in")]
    pub input: u64,
    /// Output tokens.
    #[serde(default, rename = "out")]
    pub output: u64,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// `[[verdict]]`.
#[derive(Debug, Clone)]
pub struct VerdictRule {
    /// Searched in the text between the asterisks.
    pub condition: Option<Pattern>,
    /// In order; the last one repeats. For loops the position is the number of the test in its loop, else the
    /// number of the question among those that match, in issue order. Truth values; the words `yes`, `no`, `unsure`,
    /// `no-progress`; labels for a choice; any value for a judged one.
    pub answers: Vec<Value>,
    /// Why, for a person; by the same positions, and the last one repeats. None: `[simulated]`.
    pub reasons: Vec<String>,
    /// From 0 to 1, by the same positions. None: 1.
    pub confidences: Vec<f64>,
    /// Matches only the n-th question, from 1, of those that match the condition, in issue order. The position in
    /// `answers` then counts for nothing: the first is given.
    pub nth: Option<u64>,
    /// How long the judge takes, in milliseconds of virtual time.
    pub delay_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVerdictRule {
    condition: Option<Pattern>,
    answers: Vec<Plain>,
    #[serde(default)]
    reasons: Vec<String>,
    #[serde(default)]
    confidences: Vec<f64>,
    nth: Option<u64>,
    delay_ms: Option<u64>,
}

impl TryFrom<RawVerdictRule> for VerdictRule {
    type Error = String;
    fn try_from(raw: RawVerdictRule) -> Result<Self, String> {
        if raw.answers.is_empty() {
            return Err("`answers` needs at least one answer".to_owned());
        }
        if raw.nth == Some(0) {
            return Err("`nth` counts from 1".to_owned());
        }
        if raw.reasons.len().max(raw.confidences.len()) > raw.answers.len() {
            return Err("`reasons` and `confidences` can't be more than `answers`".to_owned());
        }
        if raw.confidences.iter().any(|c| !(0.0..=1.0).contains(c)) {
            return Err("`confidences` are from 0 to 1".to_owned());
        }
        Ok(VerdictRule {
            condition: raw.condition,
            answers: raw.answers.into_iter().map(|a| a.0).collect(),
            reasons: raw.reasons,
            confidences: raw.confidences,
            nth: raw.nth,
            delay_ms: raw.delay_ms,
        })
    }
}

/// `[[input]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawInputRule")]
pub struct InputRule {
    /// Matches the input's name.
    pub name: Option<String>,
    /// Searched in the prompt.
    pub prompt: Option<Pattern>,
    /// Matches only the n-th input, from 1, of those that match the other keys, in issue order.
    pub nth: Option<u64>,
    /// How long the answer takes, in milliseconds of virtual time.
    pub delay_ms: Option<u64>,
    /// The answer.
    pub value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInputRule {
    name: Option<String>,
    prompt: Option<Pattern>,
    nth: Option<u64>,
    delay_ms: Option<u64>,
    value: Option<Plain>,
    json: Option<String>,
}

impl TryFrom<RawInputRule> for InputRule {
    type Error = String;
    fn try_from(raw: RawInputRule) -> Result<Self, String> {
        if raw.nth == Some(0) {
            return Err("`nth` counts from 1".to_owned());
        }
        Ok(InputRule {
            name: raw.name,
            prompt: raw.prompt,
            nth: raw.nth,
            delay_ms: raw.delay_ms,
            value: written_value(raw.value, raw.json)?,
        })
    }
}

/// `[[decode]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawDecodeRule")]
pub struct DecodeRule {
    /// Searched in the content.
    pub text: Option<Pattern>,
    /// Matches only what is wanted as `list`, `record`, `number` or `bool`.
    pub wanted: Option<String>,
    /// How long it takes, in milliseconds of virtual time.
    pub delay_ms: Option<u64>,
    /// What it decodes to.
    pub value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDecodeRule {
    text: Option<Pattern>,
    #[serde(rename = "as")]
    wanted: Option<String>,
    delay_ms: Option<u64>,
    value: Option<Plain>,
    json: Option<String>,
}

impl TryFrom<RawDecodeRule> for DecodeRule {
    type Error = String;
    fn try_from(raw: RawDecodeRule) -> Result<Self, String> {
        const WORDS: [&str; 4] = ["list", "record", "number", "bool"];
        if let Some(word) = &raw.wanted
            && !WORDS.contains(&word.as_str())
        {
            return Err(format!("`as` is one of {}", WORDS.join(", ")));
        }
        Ok(DecodeRule {
            text: raw.text,
            wanted: raw.wanted,
            delay_ms: raw.delay_ms,
            value: written_value(raw.value, raw.json)?,
        })
    }
}

/// `value`, or `json` for what TOML can't write: a null.
fn written_value(value: Option<Plain>, json: Option<String>) -> Result<Value, String> {
    match (value, json) {
        (Some(Plain(value)), None) => Ok(value),
        (None, Some(json)) => serde_json::from_str::<Plain>(&json)
            .map(|plain| plain.0)
            .map_err(|error| format!("`json` is no JSON: {error}")),
        (None, None) => Err("missing field `value`".to_owned()),
        (Some(_), Some(_)) => Err("only one of `value` and `json` is possible".to_owned()),
    }
}

/// A regular expression, compiled on load.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(regex::Regex);

impl Pattern {
    /// Whether it occurs in the text.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        regex::Regex::new(&text).map(Pattern).map_err(|error| {
            // The crate's message draws the pattern over several lines; the last one says what is wrong.
            let detail = error.to_string();
            let detail = detail.lines().last().unwrap_or_default().trim();
            format!(
                "bad regular expression `{text}`: {}",
                detail.trim_start_matches("error: ")
            )
        })
    }
}

/// A value written as plain TOML or JSON, read without going through serde's tagged form of [`Value`].
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        plain_value(deserializer).map(Plain)
    }
}

/// A value from plain TOML or JSON.
pub(crate) fn plain_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Value;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, number, truth value, list or table")
        }
        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }
        fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
            Ok(Value::Bool(v))
        }
        fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
            Ok(Value::Number(v as f64))
        }
        fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
            Ok(Value::Number(v as f64))
        }
        fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
            Ok(Value::Number(v))
        }
        fn visit_str<E>(self, v: &str) -> Result<Value, E> {
            Ok(Value::text(v))
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
            let mut items = Vec::new();
            while let Some(Plain(item)) = seq.next_element()? {
                items.push(item);
            }
            Ok(Value::list(items))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
            let mut entries = IndexMap::new();
            while let Some((key, Plain(value))) = map.next_entry::<String, Plain>()? {
                entries.insert(key, value);
            }
            Ok(Value::record(entries))
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// What is wrong with a mock file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {kind}", path.as_ref().map_or("mock".into(), |p| p.display().to_string()), line.map_or(String::new(), |l| format!(":{l}")))]
pub struct MockError {
    /// The file, when it was read from one.
    pub path: Option<PathBuf>,
    /// The line, from 1, when it is known.
    pub line: Option<usize>,
    /// What.
    pub kind: MockErrorKind,
}

/// Kinds of [`MockError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MockErrorKind {
    /// The file can't be read.
    #[error("can't be read: {0}")]
    Unreadable(String),
    /// Syntax, an unknown key, a value of the wrong kind.
    #[error("{0}")]
    Invalid(String),
    /// The file named by `file =` can't be read.
    #[error("the reply file `{path}` can't be read: {reason}")]
    Reply {
        /// As written.
        path: String,
        /// Why.
        reason: String,
    },
}

impl MockFile {
    /// Parses TOML, or JSON when the first character is `{`.
    pub fn parse(text: &str) -> Result<MockFile, MockError> {
        let invalid = |line, message| MockError {
            path: None,
            line,
            kind: MockErrorKind::Invalid(message),
        };
        let is_json = text.trim_start().starts_with('{');
        let raw: RawMockFile = if is_json {
            serde_json::from_str(text).map_err(|error| {
                let message = error.to_string();
                let message = message
                    .rsplit_once(" at line ")
                    .map_or(message.as_str(), |(head, _)| head);
                invalid((error.line() > 0).then_some(error.line()), message.to_owned())
            })?
        } else {
            toml::from_str(text).map_err(|error: toml::de::Error| {
                let line = error.span().map(|span| line_of(text, span.start));
                invalid(line, error.message().trim_end().to_owned())
            })?
        };
        // What a rule says as a whole has no span of its own, so its place is looked up by its number.
        let bad_rule = |section: &str, index: usize, message: String| {
            let line = if is_json {
                None
            } else {
                rule_line(text, section, index)
            };
            invalid(line, format!("{section} rule {}: {message}", index + 1))
        };
        let sessions = raw.session.into_iter().enumerate().map(|(index, rule)| {
            SessionRule::try_from(rule).map_err(|message| bad_rule("session", index, message))
        });
        let verdicts = raw.verdict.into_iter().enumerate().map(|(index, rule)| {
            VerdictRule::try_from(rule).map_err(|message| bad_rule("verdict", index, message))
        });
        Ok(MockFile {
            defaults: raw.defaults,
            sessions: sessions.collect::<Result<_, _>>()?,
            verdicts: verdicts.collect::<Result<_, _>>()?,
            inputs: raw.input,
            decodes: raw.decode,
            source: text.to_owned(),
        })
    }

    /// Reads and parses a file, and the reply files that it names.
    pub fn load(path: &Path) -> Result<MockFile, MockError> {
        let text = std::fs::read_to_string(path).map_err(|error| MockError {
            path: Some(path.to_owned()),
            line: None,
            kind: MockErrorKind::Unreadable(error.to_string()),
        })?;
        let mut file = MockFile::parse(&text).map_err(|error| MockError {
            path: Some(path.to_owned()),
            ..error
        })?;
        file.read_replies(path)?;
        Ok(file)
    }

    fn read_replies(&mut self, path: &Path) -> Result<(), MockError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut inlined = false;
        for rule in &mut self.sessions {
            if let SessionAnswer::File(name) = &rule.answer {
                let text = std::fs::read_to_string(folder.join(name)).map_err(|error| MockError {
                    path: Some(path.to_owned()),
                    line: None,
                    kind: MockErrorKind::Reply {
                        path: name.clone(),
                        reason: error.to_string(),
                    },
                })?;
                rule.answer = SessionAnswer::Reply(text);
                inlined = true;
            }
        }
        if inlined {
            self.source = self.with_replies_inlined();
        }
        Ok(())
    }

    /// The file's text with `file =` replaced by what was read, as JSON.
    fn with_replies_inlined(&self) -> String {
        let json = if self.source.trim_start().starts_with('{') {
            serde_json::from_str::<serde_json::Value>(&self.source).ok()
        } else {
            toml::from_str::<serde_json::Value>(&self.source).ok()
        };
        // The text parsed before, so it parses again.
        let Some(mut json) = json else {
            return self.source.clone();
        };
        if let Some(rules) = json.get_mut("session").and_then(serde_json::Value::as_array_mut) {
            for (rule, parsed) in rules.iter_mut().zip(&self.sessions) {
                if let (Some(rule), SessionAnswer::Reply(text)) = (rule.as_object_mut(), &parsed.answer)
                    && rule.remove("file").is_some()
                {
                    rule.insert("reply".to_owned(), text.clone().into());
                }
            }
        }
        json.to_string()
    }

    /// A text from which [`MockFile::parse`] makes the same file without reading any other: what a run keeps so
    /// that it can be resumed.
    pub fn portable_text(&self) -> &str {
        &self.source
    }

    /// The mock file that lies beside a program: `X.mock.toml` or `X.mock.json` beside `X.prose`.
    pub fn beside(program: &Path) -> Option<PathBuf> {
        ["mock.toml", "mock.json"]
            .iter()
            .map(|ext| program.with_extension(ext))
            .find(|path| path.is_file())
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

/// The line of the `index`-th table of an array of tables in TOML.
fn rule_line(text: &str, section: &str, index: usize) -> Option<usize> {
    #[derive(Deserialize)]
    struct Spans {
        #[serde(default)]
        session: Vec<toml::Spanned<toml::Value>>,
        #[serde(default)]
        verdict: Vec<toml::Spanned<toml::Value>>,
    }
    let spans: Spans = toml::from_str(text).ok()?;
    let rules = if section == "session" {
        spans.session
    } else {
        spans.verdict
    };
    Some(line_of(text, rules.get(index)?.span().start))
}
