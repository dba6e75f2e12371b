//! The pure part of evaluation: names, members, operators, text. It reads the machine and changes nothing, so that it
//! can start over when content that it needs has been decoded, and then sees every name as it is at that moment.

mod operators;

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{DecodeRequest, DecodeTarget, ErrorKind, MemoryMode, MemoryRequest, Text, TextPart, Value};

use crate::code::{CAgent, COp, CPart, CTemplate, Code, NodeId};
use crate::decode;
use crate::machine::Instance;
use crate::render;
use crate::scope::{ScopeId, Scopes};
use crate::{INSERT_LIMIT, MAX_ITEMS, MAX_NESTING, MAX_TEXT};

/// Why an evaluation did not give a value.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Content is needed; the evaluation starts over when it is there.
    Need(Box<DecodeRequest>),
    /// An error of the language, raised by the node.
    Raise(ErrorKind, String, NodeId),
}

pub(crate) type Pure<T> = Result<T, Stop>;

/// A warning to be emitted once the evaluation has succeeded.
#[derive(Debug)]
pub(crate) struct Caution {
    pub node: NodeId,
    pub code: &'static str,
    pub message: String,
}

/// One evaluation.
pub(crate) struct Eval<'m> {
    pub code: &'m Code,
    pub scopes: &'m Scopes,
    pub instance: &'m Instance,
    pub scope: ScopeId,
    /// Values of the constructs that have run.
    pub temps: &'m [(NodeId, Value)],
    /// Content that was asked for.
    pub memo: &'m [(DecodeRequest, Value)],
    pub cautions: Vec<Caution>,
    /// Whether a text over [`INSERT_LIMIT`] is inserted as a line about it, as it is where a model or a person reads.
    pub brief: bool,
    /// What was inserted as a line: the name as written, and its node.
    pub mentioned: Vec<(String, NodeId)>,
}

impl Eval<'_> {
    /// The value of a node.
    pub fn value(&mut self, node: NodeId) -> Pure<Value> {
        let code = self.code;
        Ok(match &code.node(node).op {
            COp::Null => Value::Null,
            COp::Bool(value) => Value::Bool(*value),
            COp::Number(value) => self.finite(*value, node)?,
            COp::Text(template) => Value::Text(self.template(template, node)?),
            COp::Name(name) => self.name(name, node)?,
            COp::AgentMemory(name) => self.memory(name, node)?,
            COp::Member { of, key } => {
                let of = self.value(*of)?;
                self.member(&of, key, node)?
            }
            COp::Index { of, index } => {
                let of = self.value(*of)?;
                let index = self.value(*index)?;
                self.index(&of, &index, node)?
            }
            COp::List(items) => {
                let items = items
                    .iter()
                    .map(|item| self.value(*item))
                    .collect::<Pure<Vec<_>>>()?;
                self.nested(&items, node)?;
                Value::list(items)
            }
            COp::Record(entries) => {
                let mut record = IndexMap::new();
                for (key, value) in entries {
                    let value = self.value(*value)?;
                    self.nested(std::slice::from_ref(&value), node)?;
                    record.insert(key.clone(), value);
                }
                Value::Record(record.into())
            }
            COp::Not(of) => Value::Bool(!self.truth(*of)?),
            COp::Neg(of) => {
                let value = self.value(*of)?;
                Value::Number(-self.number(&value, node)?)
            }
            COp::Binary { .. } => self.binary(node)?,
            _ => match self.temps.iter().find(|(id, _)| *id == node) {
                Some((_, value)) => value.clone(),
                None => {
                    return Err(Stop::Raise(
                        ErrorKind::Type,
                        "can't be evaluated here".into(),
                        node,
                    ));
                }
            },
        })
    }

    /// The value of a node as a truth value.
    pub fn truth(&mut self, node: NodeId) -> Pure<bool> {
        let value = self.value(node)?;
        self.truth_of(&value)
    }

    /// A value as a truth value: nothing, errors, zero and empty lists are false; text is decoded.
    pub fn truth_of(&mut self, value: &Value) -> Pure<bool> {
        Ok(match value {
            Value::Null | Value::Error(_) => false,
            Value::Bool(b) => *b,
            Value::Number(n) => *n != 0.0,
            Value::List(items) => !items.is_empty(),
            Value::Record(entries) => !entries.is_empty(),
            Value::Text(text) if text.is_empty() => false,
            Value::Text(_) => matches!(self.decoded(value, DecodeTarget::Bool)?, Value::Bool(true)),
        })
    }

    /// The items of a collection: those of a list, the values of a record, what text lists.
    pub fn items(&mut self, value: &Value, node: NodeId) -> Pure<Arc<Vec<Value>>> {
        Ok(match value {
            Value::List(items) => items.clone(),
            Value::Record(entries) => Arc::new(entries.values().cloned().collect()),
            Value::Null => {
                self.caution(
                    node,
                    "null-collection",
                    "the collection is null: nothing to go through".into(),
                );
                Arc::default()
            }
            Value::Text(_) => match self.decoded(value, DecodeTarget::List)? {
                Value::List(items) => items,
                _ => Arc::default(),
            },
            Value::Error(error) => {
                let message = format!("the collection is an error: {}", error.message);
                return Err(Stop::Raise(ErrorKind::Type, message, node));
            }
            Value::Bool(_) | Value::Number(_) => {
                let message = format!("{} is no collection", render::plain(value));
                return Err(Stop::Raise(ErrorKind::Type, message, node));
            }
        })
    }

    /// A value as a number.
    pub fn number(&mut self, value: &Value, node: NodeId) -> Pure<f64> {
        match value {
            Value::Number(n) => return Ok(*n),
            Value::Text(text) if !text.is_empty() => {
                if let Value::Number(n) = self.decoded(value, DecodeTarget::Number)? {
                    return Ok(n);
                }
            }
            _ => {}
        }
        Err(Stop::Raise(
            ErrorKind::Type,
            format!("{} is no number", kind_of(value)),
            node,
        ))
    }

    /// A number that can be stored: JSON knows neither infinity nor NaN.
    fn finite(&self, n: f64, node: NodeId) -> Pure<Value> {
        if n.is_finite() {
            return Ok(Value::Number(n));
        }
        Err(Stop::Raise(
            ErrorKind::Type,
            "the number is too large".into(),
            node,
        ))
    }

    /// The value of a node as a number of times: whole, at least 0.
    pub fn count(&mut self, node: NodeId) -> Pure<u64> {
        let value = self.value(node)?;
        Ok(self.number(&value, node)?.max(0.0).floor() as u64)
    }

    /// The value of a node as text, as interpolation inserts it.
    pub fn text(&mut self, node: NodeId) -> Pure<Text> {
        let value = self.value(node)?;
        self.text_of(&value, node)
    }

    /// A value as text: null is empty, lists and records are JSON.
    pub fn text_of(&mut self, value: &Value, node: NodeId) -> Pure<Text> {
        Ok(match value {
            Value::Text(text) => text.clone(),
            Value::Null => {
                let what = self.code.source(node);
                let message = if what.is_empty() {
                    "null became empty text".to_owned()
                } else {
                    format!("{} is null: it became empty text", render::one_line(&what))
                };
                self.caution(node, "null-text", message);
                Text::default()
            }
            Value::List(_) | Value::Record(_) => match render::inline_json(value) {
                Some(json) => Text::inline(json),
                None => match self.decoded(value, DecodeTarget::Json)? {
                    Value::Text(text) => text,
                    other => Text::inline(render::plain(&other)),
                },
            },
            other => Text::inline(render::plain(other)),
        })
    }

    /// Text with its interpolations for a model or a person: long texts are mentioned.
    pub fn insertions(&mut self, template: &CTemplate, node: NodeId) -> Pure<Text> {
        let before = std::mem::replace(&mut self.brief, true);
        let text = self.template(template, node);
        self.brief = before;
        text
    }

    /// The line that stands for a long text.
    fn mention(&mut self, text: &Text, verbatim: &str, value: NodeId) -> String {
        let name = verbatim.trim_matches(['{', '}']);
        let summary = text.parts.iter().map(|part| match part {
            TextPart::Inline(text) => render::one_line(text),
            TextPart::Ref(reference) => render::one_line(&reference.summary),
        });
        let summary = summary.collect::<Vec<_>>().join(" ");
        if !self.mentioned.iter().any(|(other, _)| other == name) {
            self.mentioned.push((name.to_owned(), value));
        }
        format!("[{name}: {} ({} bytes)]", render::one_line(&summary), text.len())
    }

    /// Text with its interpolations. Inserted text is never looked at again.
    pub fn template(&mut self, template: &CTemplate, node: NodeId) -> Pure<Text> {
        let mut out = Builder::default();
        for part in template.0.iter() {
            match part {
                CPart::Text(text) => out.push_str(text),
                CPart::Insert {
                    value,
                    verbatim,
                    base,
                } => match base {
                    Some(base) if !self.is_bound(base) => out.push_str(verbatim),
                    _ => {
                        let text = self.text(*value)?;
                        if self.brief && text.len() > INSERT_LIMIT {
                            out.push_str(&self.mention(&text, verbatim, *value));
                        } else {
                            out.push(&text);
                        }
                    }
                },
            }
        }
        out.finish(node)
    }

    /// A permission pattern: inserted text means itself, whatever it holds. A list gives several patterns.
    pub fn patterns(&mut self, node: NodeId) -> Pure<Vec<String>> {
        let code = self.code;
        if let COp::Text(template) = &code.node(node).op {
            let mut pattern = String::new();
            for part in template.0.iter() {
                match part {
                    CPart::Text(text) => pattern.push_str(text),
                    CPart::Insert {
                        base: Some(base),
                        verbatim,
                        ..
                    } if !self.is_bound(base) => {
                        pattern.push_str(&render::escape_glob(verbatim));
                    }
                    CPart::Insert { value, .. } => {
                        let text = self.text(*value)?;
                        pattern.push_str(&escaped(&text, node)?);
                    }
                }
            }
            return Ok(vec![pattern]);
        }
        let values = match self.value(node)? {
            Value::List(items) => items.to_vec(),
            Value::Null => Vec::new(),
            value => vec![value],
        };
        values
            .iter()
            .map(|value| escaped(&self.text_of(value, node)?, node))
            .collect()
    }

    /// Whether a name has a value now. An agent's name has one when it keeps a memory.
    fn is_bound(&self, name: &str) -> bool {
        self.scopes.find(self.scope, name).is_some()
            || self.scopes.residue(self.scope, name).is_some()
            || self.agent(name).is_some_and(|agent| agent.persist.is_some())
    }

    /// An agent of the running program.
    pub fn agent(&self, name: &str) -> Option<&CAgent> {
        self.code.programs.get(self.instance.program)?.agents.get(name)
    }

    fn name(&mut self, name: &str, node: NodeId) -> Pure<Value> {
        if let Some((_, slot)) = self.scopes.find(self.scope, name) {
            return Ok(slot.value.clone());
        }
        if self.agent(name).is_some() {
            return self.memory(name, node);
        }
        if let Some(value) = self.scopes.residue(self.scope, name) {
            return Ok(value.clone());
        }
        let declared = self
            .code
            .programs
            .get(self.instance.program)
            .is_some_and(|p| p.declared.contains(name));
        if !declared {
            return Err(Stop::Raise(
                ErrorKind::Undefined,
                format!("'{name}' has no value"),
                node,
            ));
        }
        self.caution(
            node,
            "unbound",
            format!("'{name}' was not bound on the way here: it is null"),
        );
        Ok(Value::Null)
    }

    /// The memory request for reading an agent's memory; none when it keeps none.
    pub fn memory_request(&mut self, name: &str, node: NodeId) -> Pure<Option<MemoryRequest>> {
        let namespace = self.code.bundle.programs.get(self.instance.program);
        let namespace = namespace.map_or_else(String::new, |program| program.namespace.clone());
        let Some(agent) = self.agent(name) else {
            return Err(Stop::Raise(
                ErrorKind::Undefined,
                format!("there is no agent '{name}'"),
                node,
            ));
        };
        let Some(persist) = agent.persist.clone() else {
            self.caution(node, "no-memory", format!("agent '{name}' keeps no memory"));
            return Ok(None);
        };
        Ok(Some(MemoryRequest {
            agent: name.into(),
            persist,
            namespace,
            program: self.instance.path.clone(),
            mode: MemoryMode::Read,
        }))
    }

    fn memory(&mut self, name: &str, node: NodeId) -> Pure<Value> {
        match self.memory_request(name, node)? {
            Some(request) => self.decoded(&Value::Null, DecodeTarget::Memory(request)),
            None => Ok(Value::Null),
        }
    }

    /// `of.key`.
    pub fn member(&mut self, of: &Value, key: &str, node: NodeId) -> Pure<Value> {
        let counts = matches!(key, "length" | "count");
        Ok(match of {
            Value::Record(entries) => match lookup(entries, key) {
                Some(value) => value.clone(),
                None if counts => Value::Number(entries.len() as f64),
                None => self.missing(key, node),
            },
            Value::List(items) if counts => Value::Number(items.len() as f64),
            Value::Text(_) if counts => {
                let items = self.items(of, node)?;
                Value::Number(items.len() as f64)
            }
            Value::Text(_) => {
                let target = DecodeTarget::Record(vec![key.to_owned()]);
                match self.decoded(of, target)? {
                    Value::Record(entries) => match lookup(&entries, key) {
                        Some(value) => value.clone(),
                        None => self.missing(key, node),
                    },
                    _ => self.missing(key, node),
                }
            }
            Value::Error(error) => match key {
                "message" => Value::text(error.message.as_str()),
                "kind" => Value::text(crate::errors::kind_word(error.kind)),
                "statement" => Value::text(error.place()),
                "attempts" => Value::Number(f64::from(error.attempts)),
                _ => self.missing(key, node),
            },
            Value::Null if counts => {
                self.caution(node, "null-collection", format!("'{key}' of null is 0"));
                Value::Number(0.0)
            }
            _ => self.missing(key, node),
        })
    }

    /// A value with a field below it replaced. What is missing on the way becomes a record; text is read as the record
    /// or list that it holds.
    pub fn put(&mut self, old: Value, path: &[Value], value: Value, node: NodeId) -> Pure<Value> {
        let Some((key, rest)) = path.split_first() else {
            return Ok(value);
        };
        let old = match &old {
            Value::Text(text) if text.is_empty() => Value::Null,
            Value::Text(_) => {
                let target = match key {
                    Value::Number(_) => DecodeTarget::List,
                    _ => DecodeTarget::Record(Vec::new()),
                };
                self.decoded(&old, target)?
            }
            _ => old,
        };
        match old {
            Value::Null => {
                let inner = self.put(Value::Null, rest, value, node)?;
                Ok(Value::record([(render::plain(key), inner)]))
            }
            Value::Record(mut entries) => {
                let key = render::plain(key);
                // A field that is read under another spelling is written under the one it has.
                let key = match lookup_key(&entries, &key) {
                    Some(own) => own.to_owned(),
                    None => key,
                };
                let inner = entries.get(&key).cloned().unwrap_or_default();
                let inner = self.put(inner, rest, value, node)?;
                Arc::make_mut(&mut entries).insert(key, inner);
                Ok(Value::Record(entries))
            }
            Value::List(mut items) => {
                let at = match key {
                    Value::Number(n) => Some(*n),
                    other => decode::number(&render::plain(other)),
                };
                let at = at.filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as usize);
                let Some(at) = at.filter(|at| *at <= items.len()) else {
                    let message = format!("there is no item {} in the list", render::plain(key));
                    return Err(Stop::Raise(ErrorKind::Type, message, node));
                };
                let inner = self.put(items.get(at).cloned().unwrap_or_default(), rest, value, node)?;
                let list = Arc::make_mut(&mut items);
                if at == list.len() {
                    list.push(inner)
                } else {
                    list[at] = inner
                }
                Ok(Value::List(items))
            }
            other => {
                let message = format!("{} has no fields to set", kind_of(&other));
                Err(Stop::Raise(ErrorKind::Type, message, node))
            }
        }
    }

    fn missing(&mut self, key: &str, node: NodeId) -> Value {
        self.caution(node, "missing-key", format!("there is no '{key}': it is null"));
        Value::Null
    }

    /// `of[index]`.
    fn index(&mut self, of: &Value, index: &Value, node: NodeId) -> Pure<Value> {
        if let (Value::Record(_) | Value::Text(_) | Value::Error(_), Value::Text(key)) = (of, index)
            && decode::number(&render::plain_text(key)).is_none()
        {
            return self.member(of, &render::plain_text(key), node);
        }
        if let Value::Record(entries) = of {
            let key = render::plain(index);
            return Ok(match lookup(entries, &key) {
                Some(value) => value.clone(),
                None => self.missing(&key, node),
            });
        }
        let at = self.number(index, node)?;
        let items = self.items(of, node)?;
        let item = (at >= 0.0 && at.fract() == 0.0)
            .then(|| items.get(at as usize))
            .flatten();
        Ok(match item {
            Some(item) => item.clone(),
            None => self.missing(&render::number(at), node),
        })
    }

    /// Reads content: by rules when it is at hand, else by the answer to a decoding.
    pub fn decoded(&mut self, value: &Value, target: DecodeTarget) -> Pure<Value> {
        if let Value::Text(text) = value
            && let Some(text) = text.as_inline()
            && let Some(value) = decode::decode(&text, &target)
        {
            return Ok(value);
        }
        let request = DecodeRequest {
            value: value.clone(),
            target,
        };
        match self.memo.iter().find(|(asked, _)| *asked == request) {
            Some((_, answer)) => Ok(answer.clone()),
            None => Err(Stop::Need(Box::new(request))),
        }
    }

    /// Refuses to nest values deeper than can be stored and read back.
    pub fn nested(&self, inner: &[Value], node: NodeId) -> Pure<()> {
        if inner.iter().any(|value| nesting(value) >= MAX_NESTING) {
            let message = format!("a value nested over {MAX_NESTING} levels deep");
            return Err(Stop::Raise(ErrorKind::Type, message, node));
        }
        Ok(())
    }

    pub fn caution(&mut self, node: NodeId, code: &'static str, message: String) {
        self.cautions.push(Caution { node, code, message });
    }
}

/// Levels of lists and records in a value. Values share their parts, so that a small program can build one whose tree
/// is astronomically large: one with over [`MAX_ITEMS`] parts counts as too deep.
pub(crate) fn nesting(value: &Value) -> usize {
    fn measure(value: &Value, budget: &mut usize) -> usize {
        let Some(left) = budget.checked_sub(1) else {
            return MAX_NESTING;
        };
        *budget = left;
        let mut deepest = 0;
        let mut each = |inner: &Value, budget: &mut usize| {
            deepest = deepest.max(measure(inner, budget));
            deepest < MAX_NESTING
        };
        let _ = match value {
            Value::List(items) => items.iter().all(|item| each(item, budget)),
            Value::Record(entries) => entries.values().all(|item| each(item, budget)),
            _ => return 0,
        };
        1 + deepest
    }
    measure(value, &mut MAX_ITEMS.clone())
}

/// The list of values that a construct gives. A value too deep to be nested once more is dropped: through recursion
/// such lists grow without anyone having asked for them.
pub(crate) fn list_of(mut values: Vec<Value>) -> Value {
    for value in &mut values {
        if nesting(value) >= MAX_NESTING {
            *value = Value::Null;
        }
    }
    Value::list(values)
}

/// The record that a construct gives; too deep values are dropped likewise.
pub(crate) fn record_of(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::record(entries.into_iter().map(|(key, value)| {
        let value = if nesting(&value) >= MAX_NESTING {
            Value::Null
        } else {
            value
        };
        (key, value)
    }))
}

/// A record's entry: by the very key, else by one that folds to it.
pub(crate) fn lookup<'r>(entries: &'r IndexMap<String, Value>, key: &str) -> Option<&'r Value> {
    entries.get(lookup_key(entries, key)?)
}

/// The key under which a record has an entry.
fn lookup_key<'r>(entries: &'r IndexMap<String, Value>, key: &str) -> Option<&'r str> {
    if let Some((own, _)) = entries.get_key_value(key) {
        return Some(own);
    }
    let folded = decode::fold(key);
    entries
        .keys()
        .find(|own| decode::fold(own) == folded)
        .map(String::as_str)
}

/// What a value is, for messages.
pub(crate) fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Text(_) => format!("the text \"{}\"", render::one_line(&render::plain(value))),
        Value::List(_) => "a list".to_owned(),
        Value::Record(_) => "a record".to_owned(),
        Value::Error(_) => "an error".to_owned(),
        Value::Bool(_) | Value::Number(_) => render::plain(value),
    }
}

fn escaped(text: &Text, node: NodeId) -> Pure<String> {
    match text.as_inline() {
        Some(text) => Ok(render::escape_glob(&text)),
        None => Err(Stop::Raise(
            ErrorKind::Type,
            "the text is too long for a permission pattern".into(),
            node,
        )),
    }
}

/// Builds a rope; its inline text is joined only once.
#[derive(Default)]
pub(crate) struct Builder {
    parts: Vec<TextPart>,
    tail: String,
    inline: usize,
}

impl Builder {
    pub fn push_str(&mut self, text: &str) {
        self.inline += text.len();
        // What is over the limit is refused by `finish`; no need to hold it.
        if self.inline <= MAX_TEXT {
            self.tail.push_str(text);
        }
    }

    pub fn push(&mut self, text: &Text) {
        for part in &text.parts {
            match part {
                TextPart::Inline(text) => self.push_str(text),
                TextPart::Ref(_) => {
                    self.flush();
                    self.parts.push(part.clone());
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.tail.is_empty()
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.parts
                .push(TextPart::Inline(std::mem::take(&mut self.tail).into()));
        }
    }

    pub fn finish(mut self, node: NodeId) -> Pure<Text> {
        self.flush();
        if self.inline > MAX_TEXT || self.parts.len() > MAX_ITEMS {
            return Err(Stop::Raise(
                ErrorKind::Type,
                format!("a text of over {MAX_TEXT} bytes"),
                node,
            ));
        }
        Ok(Text { parts: self.parts })
    }
}
