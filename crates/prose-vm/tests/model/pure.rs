//! Expressions that need nothing but names and content: language.md, "Values".
//!
//! What a text is, and what a value looks like, is decided in `reading`, from the words of the specification.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use prose_model::{
    BinaryOp, DecodeRequest, DecodeTarget, ErrorKind, Node, Op, Template, TemplatePart, Text, Value,
};

use crate::reading::{self, Reading, first_line, folded, number, plain, whole, written};
use crate::scope::{Scope, find, residue};

/// Why an expression has no value yet.
pub enum Stop {
    Need(Box<DecodeRequest>),
    Raise(ErrorKind, String),
}
pub type Pure<T> = Result<T, Stop>;

/// What an expression is evaluated with.
pub struct Eval<'e> {
    pub scope: &'e Rc<Scope>,
    /// Values of the constructs inside, by their ids.
    pub temps: &'e HashMap<String, Value>,
    pub memo: &'e [(DecodeRequest, Value)],
}

fn raise<T>(message: String) -> Pure<T> {
    Err(Stop::Raise(ErrorKind::Type, message))
}

impl Eval<'_> {
    pub fn value(&self, node: &Node) -> Pure<Value> {
        if let Some(value) = self.temps.get(node.id.as_str()) {
            return Ok(value.clone());
        }
        Ok(match &node.op {
            Op::Null => Value::Null,
            Op::Bool(b) => Value::Bool(*b),
            Op::Number(n) => Value::Number(*n),
            Op::Text(template) => Value::Text(self.template(template)?),
            // Every name that the programs use is declared somewhere in them: read too early, it is null.
            Op::Name(name) => match find(self.scope, name) {
                Some((_, value, _)) => value,
                None => residue(self.scope, name).unwrap_or_default(),
            },
            Op::Member { of, key } => self.member(&self.value(of)?, key)?,
            Op::Index { of, index } => {
                let (of, index) = (self.value(of)?, self.value(index)?);
                self.index(&of, &index)?
            }
            Op::List(items) => Value::list(
                items
                    .iter()
                    .map(|item| self.value(item))
                    .collect::<Pure<Vec<_>>>()?,
            ),
            Op::Record(entries) => {
                let mut record = IndexMap::new();
                for entry in entries {
                    record.insert(entry.key.clone(), self.value(&entry.value)?);
                }
                Value::record(record)
            }
            Op::Not(of) => Value::Bool(!self.truth(&self.value(of)?)?),
            Op::Neg(of) => Value::Number(-self.number(&self.value(of)?)?),
            Op::Binary { op, lhs, rhs } => {
                let left = self.value(lhs)?;
                match op {
                    BinaryOp::And => Value::Bool(self.truth(&left)? && self.truth(&self.value(rhs)?)?),
                    BinaryOp::Or => Value::Bool(self.truth(&left)? || self.truth(&self.value(rhs)?)?),
                    _ => self.apply(*op, &left, &self.value(rhs)?)?,
                }
            }
            other => panic!("a construct without a value: {other:?}"),
        })
    }

    fn apply(&self, op: BinaryOp, left: &Value, right: &Value) -> Pure<Value> {
        use BinaryOp::*;
        Ok(match op {
            Add => self.add(left, right)?,
            Sub => Value::Number(self.number(left)? - self.number(right)?),
            Eq => Value::Bool(self.equal(left, right)?),
            Ne => Value::Bool(!self.equal(left, right)?),
            Lt | Le | Gt | Ge => {
                let order = self.order(left, right)?;
                Value::Bool(match (order, op) {
                    (None, _) => false,
                    (Some(order), Lt) => order == Ordering::Less,
                    (Some(order), Le) => order != Ordering::Greater,
                    (Some(order), Gt) => order == Ordering::Greater,
                    (Some(order), _) => order != Ordering::Less,
                })
            }
            And | Or => unreachable!(),
        })
    }

    /// Numbers add; a list on either side appends; else texts join.
    fn add(&self, left: &Value, right: &Value) -> Pure<Value> {
        let items = |value: &Value| match value {
            Value::List(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        match (left, right) {
            (Value::Number(a), Value::Number(b)) => Ok(Value::Number(a + b)),
            (Value::List(_), _) | (_, Value::List(_)) => {
                Ok(Value::list([items(left), items(right)].concat()))
            }
            _ => {
                let mut text = Text::default();
                text.push(&self.text(left)?);
                text.push(&self.text(right)?);
                Ok(Value::Text(text))
            }
        }
    }

    /// Null is only null. A text is compared by what it says with whatever stands on the other side; what it says is asked
    /// for when it is not at hand, of the left side first unless that is at hand. All else is compared part by part.
    fn equal(&self, left: &Value, right: &Value) -> Pure<bool> {
        use Value::{List, Null, Record, Text};
        if *left == Null || *right == Null {
            return Ok(left == right);
        }
        let at_hand = |value: &Value| match value {
            Text(text) => whole(text),
            _ => None,
        };
        match (left, right) {
            (Text(_), Text(_)) if left == right => Ok(true),
            (Text(_), Text(_)) => {
                // The side that is asked about, and the other.
                let (asked, other) = match at_hand(left) {
                    Some(_) => (right, left),
                    None => (left, right),
                };
                let is_blank = at_hand(other).is_some_and(|text| text.trim().is_empty());
                match is_blank && at_hand(asked).is_none() {
                    true => self.says(asked, DecodeTarget::IsEmpty),
                    false => self.says(asked, DecodeTarget::Equals(other.clone())),
                }
            }
            (Text(_), other) => self.says(left, DecodeTarget::Equals(other.clone())),
            (other, Text(_)) => self.says(right, DecodeTarget::Equals(other.clone())),
            (List(a), List(b)) => {
                let mut pairs = a.iter().zip(b.iter());
                let differ = |(a, b): (&Value, &Value)| self.equal(a, b).map(|same| !same);
                Ok(a.len() == b.len() && !any(&mut pairs, differ)?)
            }
            (Record(a), Record(b)) => {
                let differ = |(key, a): (&String, &Value)| match b.get(key) {
                    Some(b) => self.equal(a, b).map(|same| !same),
                    None => Ok(true),
                };
                Ok(a.len() == b.len() && !any(&mut a.iter(), differ)?)
            }
            _ => Ok(left == right),
        }
    }

    fn order(&self, left: &Value, right: &Value) -> Pure<Option<Ordering>> {
        if *left == Value::Null || *right == Value::Null {
            return Ok(None);
        }
        // Two texts at hand are numbers when both parse, else texts.
        if let (Value::Text(a), Value::Text(b)) = (left, right)
            && let (Some(a), Some(b)) = (whole(a), whole(b))
            && !(number(&a).is_some() && number(&b).is_some())
        {
            return Ok(Some(a.trim().cmp(b.trim())));
        }
        Ok(self.number(left)?.partial_cmp(&self.number(right)?))
    }

    fn says(&self, value: &Value, target: DecodeTarget) -> Pure<bool> {
        Ok(self.decoded(value, target)? == Value::Bool(true))
    }

    pub fn truth(&self, value: &Value) -> Pure<bool> {
        Ok(match value {
            Value::Null | Value::Error(_) => false,
            Value::Bool(b) => *b,
            Value::Number(n) => *n != 0.0,
            Value::List(items) => !items.is_empty(),
            Value::Record(entries) => !entries.is_empty(),
            Value::Text(text) => !text.is_empty() && self.says(value, DecodeTarget::Bool)?,
        })
    }

    pub fn number(&self, value: &Value) -> Pure<f64> {
        match value {
            Value::Number(n) => return Ok(*n),
            Value::Text(text) if !text.is_empty() => {
                if let Value::Number(n) = self.decoded(value, DecodeTarget::Number)? {
                    return Ok(n);
                }
            }
            _ => {}
        }
        raise(format!("{} is no number", what(value)))
    }

    pub fn count(&self, node: &Node) -> Pure<u64> {
        Ok(self.number(&self.value(node)?)?.max(0.0) as u64)
    }

    pub fn items(&self, value: &Value) -> Pure<Vec<Value>> {
        Ok(match value {
            Value::List(items) => items.to_vec(),
            Value::Record(entries) => entries.values().cloned().collect(),
            Value::Null => Vec::new(),
            Value::Text(_) => match self.decoded(value, DecodeTarget::List)? {
                Value::List(items) => items.to_vec(),
                _ => Vec::new(),
            },
            Value::Error(error) => return raise(format!("the collection is an error: {}", error.message)),
            other => return raise(format!("{} is no collection", plain(other))),
        })
    }

    pub fn member(&self, of: &Value, key: &str) -> Pure<Value> {
        let counts = matches!(key, "length" | "count");
        Ok(match of {
            Value::Record(entries) => match entry(entries, key) {
                Some(value) => value,
                None if counts => Value::Number(entries.len() as f64),
                None => Value::Null,
            },
            Value::List(items) if counts => Value::Number(items.len() as f64),
            Value::Text(_) if counts => Value::Number(self.items(of)?.len() as f64),
            Value::Text(_) => match self.decoded(of, DecodeTarget::Record(vec![key.to_owned()]))? {
                Value::Record(entries) => entry(&entries, key).unwrap_or_default(),
                _ => Value::Null,
            },
            Value::Error(error) => match key {
                "message" => Value::text(error.message.as_str()),
                "kind" => Value::text(prose_vm::kind_word(error.kind)),
                "attempts" => Value::Number(f64::from(error.attempts)),
                _ => Value::Null,
            },
            Value::Null if counts => Value::Number(0.0),
            _ => Value::Null,
        })
    }

    fn index(&self, of: &Value, index: &Value) -> Pure<Value> {
        let key = plain(index);
        match (of, index) {
            (Value::Record(entries), _) => Ok(entry(entries, &key).unwrap_or_default()),
            (Value::Text(_) | Value::Error(_), Value::Text(_)) if number(&key).is_none() => {
                self.member(of, &key)
            }
            _ => {
                let at = self.number(index)?;
                let items = self.items(of)?;
                let whole = at >= 0.0 && at.fract() == 0.0;
                Ok(items
                    .get(at as usize)
                    .filter(|_| whole)
                    .cloned()
                    .unwrap_or_default())
            }
        }
    }

    /// A field below a value replaced; what is missing on the way becomes a record.
    pub fn put(&self, old: Value, path: &[Value], value: Value) -> Pure<Value> {
        let [key, rest @ ..] = path else { return Ok(value) };
        let word = plain(key);
        let old = match &old {
            Value::Text(text) if text.is_empty() => Value::Null,
            Value::Text(_) if matches!(key, Value::Number(_)) => self.decoded(&old, DecodeTarget::List)?,
            Value::Text(_) => self.decoded(&old, DecodeTarget::Record(vec![]))?,
            _ => old,
        };
        match old {
            Value::Null => Ok(Value::record([(word, self.put(Value::Null, rest, value)?)])),
            Value::Record(entries) => {
                let mut entries = (*entries).clone();
                let same = |own: &&String| folded(own) == folded(&word);
                let own = match entries.contains_key(&word) {
                    true => word,
                    false => entries.keys().find(same).cloned().unwrap_or(word),
                };
                let inner = entries.get(&own).cloned().unwrap_or_default();
                entries.insert(own, self.put(inner, rest, value)?);
                Ok(Value::record(entries))
            }
            Value::List(items) => {
                let mut items = items.to_vec();
                let at = number(&word).filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n <= items.len() as f64);
                let Some(at) = at.map(|n| n as usize) else {
                    return raise(format!("there is no item {word} in the list"));
                };
                if at == items.len() {
                    items.push(Value::Null);
                }
                items[at] = self.put(items[at].clone(), rest, value)?;
                Ok(Value::list(items))
            }
            other => raise(format!("{} has no fields to set", what(&other))),
        }
    }

    pub fn text(&self, value: &Value) -> Pure<Text> {
        Ok(match value {
            Value::Text(text) => text.clone(),
            Value::List(_) | Value::Record(_) => match written(value, &mut |text| whole(text)) {
                Some(json) => Text::inline(json),
                None => match self.decoded(value, DecodeTarget::Json)? {
                    Value::Text(text) => text,
                    other => Text::inline(plain(&other)),
                },
            },
            other => Text::inline(plain(other)),
        })
    }

    pub fn template(&self, template: &Template) -> Pure<Text> {
        let mut out = Text::default();
        for part in &template.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Insert { value, verbatim } => {
                    let base = base(value);
                    if find(self.scope, base).is_some() || residue(self.scope, base).is_some() {
                        out.push(&self.text(&self.value(value)?)?);
                    } else {
                        out.push_str(verbatim);
                    }
                }
            }
        }
        Ok(out)
    }

    pub fn decoded(&self, value: &Value, target: DecodeTarget) -> Pure<Value> {
        if let Value::Text(text) = value
            && let Some(text) = whole(text)
        {
            match reading::read(&text, &target) {
                Reading::Is(value) => return Ok(value),
                Reading::Asks => {}
                Reading::Open => {
                    if let Some(value) = prose_vm::decode::decode(&text, &target) {
                        return Ok(value);
                    }
                }
            }
        }
        let request = DecodeRequest {
            value: value.clone(),
            target,
        };
        match self.memo.iter().find(|(asked, _)| *asked == request) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(Stop::Need(Box::new(request))),
        }
    }
}

/// Whether one is so; what comes behind it is not looked at.
fn any<T>(items: &mut impl Iterator<Item = T>, is: impl Fn(T) -> Pure<bool>) -> Pure<bool> {
    for item in items {
        if is(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn base(node: &Node) -> &str {
    match &node.op {
        Op::Name(name) => name,
        Op::Member { of, .. } | Op::Index { of, .. } => base(of),
        _ => "",
    }
}

/// A record's entry; case, `-`, `_` and spaces of the key are folded when it does not occur as written.
pub fn entry(entries: &IndexMap<String, Value>, key: &str) -> Option<Value> {
    let wanted = folded(key);
    let found = entries.get(key).or_else(|| {
        let mut all = entries.iter();
        all.find(|(own, _)| folded(own) == wanted).map(|(_, value)| value)
    });
    found.cloned()
}

/// What a value is, in messages.
pub fn what(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Text(_) => format!("the text \"{}\"", first_line(&plain(value))),
        Value::List(_) => "a list".into(),
        Value::Record(_) => "a record".into(),
        Value::Error(_) => "an error".into(),
        other => plain(other),
    }
}
