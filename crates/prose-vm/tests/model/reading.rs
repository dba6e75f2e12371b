//! How text is read and how values are written: language.md, "Values", and the pages of the specification, from their words.
//!
//! Shares nothing with the machine. Where the words leave open what a text is, [`Reading::Open`] says so, and only then the
//! machine's own rules are asked.

use indexmap::IndexMap;
use prose_model::{DecodeTarget, Text, TextPart, Value};

/// What a text is by the rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Is(Value),
    /// The rules can't tell: the judge is asked.
    Asks,
    /// The words of the specification don't say.
    Open,
}
use Reading::{Asks, Is, Open};

pub fn read(text: &str, target: &DecodeTarget) -> Reading {
    match target {
        DecodeTarget::List => list(text),
        DecodeTarget::Record(keys) => record(text, keys),
        DecodeTarget::Number => number(text).map_or(Asks, |n| Is(Value::Number(n))),
        DecodeTarget::Bool => truth(text).map_or(Asks, |b| Is(Value::Bool(b))),
        DecodeTarget::IsEmpty => Is(Value::Bool(text.trim().is_empty())),
        DecodeTarget::Equals(other) => same(text, other),
        DecodeTarget::Json | DecodeTarget::Memory(_) => Asks,
    }
}

/// A number is the whole trimmed text: digits with a sign, a fraction, an exponent.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let unsigned = |text: &str| text.strip_prefix(['+', '-']).unwrap_or(text).to_owned();
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa = unsigned(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let exponent = exponent.map(unsigned);
    let fits = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(&exponent));
    let n: f64 = if fits { text.parse().ok()? } else { return None };
    n.is_finite().then_some(n)
}

/// The first word decides, whatever emphasis or quotes stand around it. A hyphen or an apostrophe inside it belongs to it.
fn truth(text: &str) -> Option<bool> {
    let inner = ['-', '_', '\'', '’'];
    let text = text
        .trim()
        .trim_start_matches(['*', '_', '"', '\'', '`', '(', '[']);
    let word: String = text
        .chars()
        .take_while(|c| c.is_alphanumeric() || inner.contains(c))
        .collect();
    match word.trim_end_matches(inner).to_lowercase().as_str() {
        "yes" | "true" | "keep" => Some(true),
        "no" | "false" | "drop" => Some(false),
        _ => None,
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// JSON that is the whole text, or the only fenced block.
fn json(text: &str) -> Option<serde_json::Value> {
    let trimmed = text.trim();
    if trimmed.starts_with(['{', '[']) {
        return serde_json::from_str(trimmed).ok();
    }
    let lines: Vec<&str> = text.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|at| is_fence(lines[*at])).collect();
    let [open, close] = fences[..] else { return None };
    let block = lines[open + 1..close].join("\n");
    let block = block.trim();
    block
        .starts_with(['{', '['])
        .then(|| serde_json::from_str(block).ok())?
}

fn of_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(*b),
        serde_json::Value::Number(n) => Value::Number(n.as_f64().unwrap()),
        serde_json::Value::String(text) => Value::text(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(of_json).collect::<Vec<_>>()),
        serde_json::Value::Object(members) => {
            Value::record(members.iter().map(|(key, value)| (key.clone(), of_json(value))))
        }
    }
}

/// The text of an entry of a Markdown list, and whether it is numbered.
fn entry(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix(['-', '*', '+', '•']) {
        return rest.starts_with(' ').then(|| (false, rest.trim()));
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() || line.len() - rest.len() > 4 {
        return None;
    }
    let rest = rest.strip_prefix(['.', ')'])?;
    rest.starts_with(' ').then(|| (true, rest.trim()))
}

fn list(text: &str) -> Reading {
    match json(text) {
        Some(serde_json::Value::Array(items)) => {
            return Is(Value::list(items.iter().map(of_json).collect::<Vec<_>>()));
        }
        Some(serde_json::Value::Object(members)) => {
            let arrays: Vec<_> = members.values().filter(|it| it.is_array()).collect();
            return match arrays[..] {
                [only] => Is(of_json(only)),
                _ => Asks,
            };
        }
        Some(_) => return Asks,
        None => {}
    }
    let lines: Vec<&str> = text.lines().collect();
    let Some(first) = lines.iter().position(|line| entry(line).is_some()) else {
        return Asks;
    };
    if lines.iter().any(|line| is_fence(line)) {
        return Open;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let numbered = entry(lines[first]).unwrap().0;
    let mut items: Vec<String> = Vec::new();
    for line in lines[first..].iter().filter(|line| !line.trim().is_empty()) {
        match entry(line) {
            _ if indent(line) > indent(lines[first]) => {
                let last = items.last_mut().unwrap();
                *last = format!("{last}\n{}", line.trim());
            }
            Some((kind, item)) if kind == numbered => items.push(item.to_owned()),
            // Text goes on, or another kind of list begins.
            _ => return Open,
        }
    }
    Is(Value::list(
        items.into_iter().map(Value::text).collect::<Vec<_>>(),
    ))
}

/// Case, `-`, `_` and spaces of a key don't count.
pub fn folded(key: &str) -> String {
    key.to_lowercase()
        .split(|c: char| c == '-' || c == '_' || c.is_whitespace())
        .collect()
}

fn record(text: &str, keys: &[String]) -> Reading {
    let found: IndexMap<String, Value> = match json(text) {
        Some(serde_json::Value::Object(members)) => members
            .iter()
            .map(|(key, value)| (key.clone(), of_json(value)))
            .collect(),
        Some(_) => return Asks,
        None => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            if lines.iter().any(|line| is_fence(line)) {
                return Open;
            }
            let plain = |key: &str| {
                let letters = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
                let starts = key.starts_with(|c: char| c.is_alphanumeric());
                starts && key.chars().all(letters) && key.split_whitespace().count() <= 4
            };
            let pair = |line: &&str| {
                let (key, value) = line.split_once(':')?;
                let value = value.trim();
                let plain = plain(key) && !value.starts_with("//") && !value.contains('*');
                plain.then(|| (key.trim().to_owned(), Value::text(value)))
            };
            let pairs: Option<Vec<_>> = lines.iter().map(pair).collect();
            let has_colon = lines.iter().any(|line| line.contains(':'));
            let has_heading = lines.iter().any(|line| line.starts_with('#'));
            match pairs {
                _ if lines.is_empty() || (!has_colon && !has_heading) => return Asks,
                // A key twice: which counts isn't said.
                Some(pairs) if (0..pairs.len()).any(|i| pairs[..i].iter().any(|it| it.0 == pairs[i].0)) => {
                    return Open;
                }
                Some(pairs) => pairs.into_iter().collect(),
                None => return Open,
            }
        }
    };
    let is_json = json(text).is_some();
    let wanted = |key: &String| keys.iter().any(|wanted| folded(wanted) == folded(key));
    if !is_json && !keys.is_empty() && !found.keys().any(wanted) {
        return Asks;
    }
    // What was asked for has the name by which it was asked for.
    let mut named = IndexMap::new();
    for (key, value) in &found {
        let asked = keys
            .iter()
            .find(|wanted| folded(wanted) == folded(key) && !found.contains_key(*wanted));
        let name = asked.unwrap_or(key).clone();
        if named.contains_key(&name) {
            return Open;
        }
        named.insert(name, value.clone());
    }
    Is(Value::record(named))
}

/// `==` of a text and something else.
fn same(text: &str, other: &Value) -> Reading {
    let known = |value: Option<bool>| value.map_or(Asks, |same| Is(Value::Bool(same)));
    match other {
        Value::Null => known(Some(false)),
        Value::Number(n) => known(Some(number(text) == Some(*n))),
        Value::Bool(b) => known(Some(truth(text) == Some(*b))),
        Value::Text(other) => match whole(other) {
            None => Asks,
            Some(other) => known(Some(match (number(text), number(&other)) {
                (Some(a), Some(b)) => a == b,
                _ => text.trim() == other.trim(),
            })),
        },
        Value::List(_) => match list(text) {
            Is(own) => known(Some(own == *other)),
            other => other,
        },
        Value::Record(entries) => match record(text, &entries.keys().cloned().collect::<Vec<_>>()) {
            Is(own) => known(Some(own == *other)),
            other => other,
        },
        Value::Error(error) => known(Some(text.trim() == error.message.trim())),
    }
}

/// The text, when all of it is at hand.
pub fn whole(text: &Text) -> Option<String> {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Inline(text) => Some(text.to_string()),
        TextPart::Ref(_) => None,
    });
    parts.collect()
}

/// A number as a person writes it.
pub fn digits(n: f64) -> String {
    if n == 0.0 { "0".into() } else { n.to_string() }
}

/// A value as text in messages and keys: references by their summaries.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => digits(*n),
        Value::Text(text) => plain_text(text),
        Value::List(_) | Value::Record(_) => written(value, &mut |text| Some(plain_text(text))).unwrap(),
        Value::Error(error) => error.message.clone(),
    }
}

pub fn plain_text(text: &Text) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Inline(text) => text.to_string(),
        TextPart::Ref(reference) => reference.summary.clone(),
    });
    parts.collect()
}

/// A value as JSON; none when `text` has none for a text in it.
pub fn written(value: &Value, text: &mut dyn FnMut(&Text) -> Option<String>) -> Option<String> {
    let string = |text: &str| serde_json::to_string(text).unwrap();
    Some(match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => digits(*n),
        Value::Text(own) => string(&text(own)?),
        Value::List(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| written(item, text)).collect();
            format!("[{}]", items?.join(","))
        }
        Value::Record(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| Some(format!("{}:{}", string(key), written(value, text)?)));
            format!("{{{}}}", entries.collect::<Option<Vec<_>>>()?.join(","))
        }
        Value::Error(error) => {
            let kind = serde_json::to_string(&error.kind).unwrap();
            let (message, statement) = (string(&error.message), string(error.place()));
            format!(
                "{{\"kind\":{kind},\"message\":{message},\"statement\":{statement},\"attempts\":{}}}",
                error.attempts
            )
        }
    })
}

/// The first line that says something, at most 80 characters of it.
pub fn first_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match line.chars().count() {
        0..=80 => line.to_owned(),
        _ => line.chars().take(80).collect::<String>() + "…",
    }
}
