//! Which answer a request gets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::api::{Counted, Reply, ToolCall};
use crate::asked::Asked;
use crate::script::{Answer, Fault, Pattern, Rule, Script, Stop};

/// A tool that a harness offers for its own forced schema.
const STRUCTURED: &str = "StructuredOutput";

/// A script, and how often its rules have been used.
pub(crate) struct Chooser {
    script: Script,
    /// How many requests each rule has fitted, `nth` aside.
    fitted: Vec<u64>,
    /// How often the answer of a rule and turn has been given. The answer to everything else is that of the rule behind the
    /// last one.
    used: HashMap<(usize, usize), u64>,
}

/// What is answered.
pub(crate) struct Chosen {
    /// The rule's index.
    pub rule: Option<usize>,
    /// What the model says.
    pub reply: Reply,
    /// How fast.
    pub answer: Answer,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

impl Chooser {
    pub fn new(script: Script) -> Chooser {
        Chooser {
            fitted: vec![0; script.rules.len()],
            used: HashMap::new(),
            script,
        }
    }

    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The answer of the first rule that fits; counts its use. `number` is the request's place in the log, from 1.
    pub fn choose(&mut self, asked: &Asked, number: u64) -> Option<Chosen> {
        let body = asked.body.to_string();
        let mut found = None;
        for (index, rule) in self.script.rules.iter().enumerate() {
            let Some(groups) = fits(rule, asked, &body) else {
                continue;
            };
            self.fitted[index] += 1;
            if rule.nth.is_none_or(|nth| nth == self.fitted[index]) {
                found = Some((index, groups));
                break;
            }
        }
        let (rule, mut groups) = match found {
            Some((index, groups)) => (Some(index), groups),
            None => (None, BTreeMap::new()),
        };
        let (turn, mut answer) = match rule.and_then(|index| self.script.rules.get(index)) {
            Some(Rule { made: Some(made), .. }) => (0, (made.0)(asked)),
            Some(Rule { turns, .. }) if !turns.is_empty() => {
                let turn = asked.turn.min(turns.len() - 1);
                (turn, turns[turn].clone())
            }
            Some(rule) => (0, rule.answer.clone().unwrap_or_else(|| Answer::text("ok"))),
            None => (0, self.script.otherwise.clone()?),
        };
        let used = self
            .used
            .entry((rule.unwrap_or(self.script.rules.len()), turn))
            .or_default();
        let fault = usize::try_from(*used)
            .ok()
            .and_then(|used| answer.faults.get(used))
            .or(answer.fault.as_ref())
            .cloned();
        *used += 1;
        groups.extend([
            ("user".to_owned(), asked.user.clone()),
            ("model".to_owned(), asked.model.clone()),
            ("result".to_owned(), asked.result.clone().unwrap_or_default()),
            ("n".to_owned(), used.to_string()),
        ]);
        fill(&mut answer, &groups);
        Some(Chosen {
            rule,
            reply: reply(asked, &answer, body.len(), number),
            answer,
            fault,
        })
    }
}

/// What the named groups of the rule's patterns have matched, if the rule fits, `nth` aside.
fn fits(rule: &Rule, asked: &Asked, body: &str) -> Option<BTreeMap<String, String>> {
    let mut groups = BTreeMap::new();
    let mut holds = |pattern: &Option<Pattern>, text: &str| match pattern {
        None => true,
        Some(pattern) => find(pattern, text, &mut groups),
    };
    let fits = rule.api.is_none_or(|api| api == asked.api)
        && rule.forced.is_none_or(|forced| forced == asked.is_forced())
        && holds(&rule.model, &asked.model)
        && holds(&rule.user, &asked.user)
        && holds(&rule.system, &asked.system)
        && (rule.result.is_none() || asked.result.is_some())
        && holds(&rule.result, asked.result.as_deref().unwrap_or_default())
        && holds(&rule.body, body)
        && (rule.tool.is_none() || asked.tools.iter().any(|tool| holds(&rule.tool, tool)))
        && rule.header.iter().all(|(name, pattern)| {
            asked
                .headers
                .get(name)
                .is_some_and(|value| find(pattern, value, &mut groups))
        });
    fits.then_some(groups)
}

fn find(pattern: &Pattern, text: &str, groups: &mut BTreeMap<String, String>) -> bool {
    let Some(found) = pattern.regex().captures(text) else {
        return false;
    };
    for name in pattern.regex().capture_names().flatten() {
        if let Some(group) = found.name(name) {
            groups.insert(name.to_owned(), group.as_str().to_owned());
        }
    }
    true
}

/// Puts the groups where the answer names them.
fn fill(answer: &mut Answer, groups: &BTreeMap<String, String>) {
    for text in answer.text.iter_mut().chain(&mut answer.thinking) {
        *text = filled(text, groups);
    }
    if let Some(json) = &mut answer.json {
        fill_value(json, groups);
    }
    for call in &mut answer.calls {
        fill_value(&mut call.input, groups);
    }
}

fn fill_value(value: &mut Value, groups: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => *text = filled(text, groups),
        Value::Array(all) => all.iter_mut().for_each(|each| fill_value(each, groups)),
        Value::Object(all) => all.values_mut().for_each(|each| fill_value(each, groups)),
        _ => {}
    }
}

/// `text` with each `${name}` replaced. A name that no group has stays as it is.
fn filled(text: &str, groups: &BTreeMap<String, String>) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        made.push_str(before);
        match behind.split_once('}') {
            Some((name, after)) if groups.contains_key(name) => {
                made.push_str(&groups[name]);
                rest = after;
            }
            _ => {
                made.push_str("${");
                rest = behind;
            }
        }
    }
    made + rest
}

fn reply(asked: &Asked, answer: &Answer, body_bytes: usize, number: u64) -> Reply {
    let mut text = answer.text.clone();
    let mut calls = answer.calls.clone();
    if let Some(json) = &answer.json {
        let structured = || {
            let offered = asked.result.is_none() && asked.schema.is_none();
            (offered && asked.tools.iter().any(|tool| tool == STRUCTURED)).then(|| STRUCTURED.to_owned())
        };
        match asked.forced_tool.clone().or_else(structured) {
            Some(name) => calls.push(crate::script::Call {
                name,
                input: json.clone(),
            }),
            None => text = Some(json.to_string()),
        }
    }
    let calls: Vec<ToolCall> = calls
        .into_iter()
        .enumerate()
        .map(|(index, call)| ToolCall {
            id: format!("call_mock_{number}_{index}"),
            name: call.name,
            input: call.input,
        })
        .collect();
    let said: usize = text
        .iter()
        .chain(&answer.thinking)
        .map(String::len)
        .sum::<usize>()
        + calls
            .iter()
            .map(|call| call.input.to_string().len())
            .sum::<usize>();
    let quarter = |bytes: usize| u64::try_from(bytes / 4 + 1).unwrap_or(u64::MAX);
    Reply {
        number,
        thinking: answer.thinking.clone(),
        text,
        calls,
        stop: answer.stop.unwrap_or(Stop::End),
        usage: Counted {
            input: answer.usage.input.unwrap_or_else(|| quarter(body_bytes)),
            output: answer.usage.output.unwrap_or_else(|| quarter(said)),
            cache_read: answer.usage.cache_read,
            cache_write: answer.usage.cache_write,
            reasoning: answer.usage.reasoning,
        },
        chunk: answer.chunk.unwrap_or(12),
    }
}
