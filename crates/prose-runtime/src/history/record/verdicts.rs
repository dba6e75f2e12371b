//! What the judge has decided, as rules.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use prose_agents::{SIMULATED, plain_json};
use prose_model::{Ask, Decision, Effect, EffectId, JudgeRequest, Outcome};

use super::{Recorder, exactly, quoted, toml_value};
use crate::history::PastEffect;

/// A question to the judge with its answer.
type Judged<'a> = (&'a PastEffect, &'a JudgeRequest, Answer);

/// What the judge answered.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    /// In TOML; empty where there is none.
    toml: String,
    reason: String,
    confidence: f64,
}

impl Answer {
    /// Without a judge's reason.
    fn plain(toml: String) -> Answer {
        Answer {
            toml,
            reason: SIMULATED.to_owned(),
            confidence: 1.0,
        }
    }
}

impl<'a> Recorder<'a> {
    /// One rule for all answers to a question where a position in a list tells them apart, else one for each.
    pub(super) fn verdicts(&mut self) {
        let mut groups: BTreeMap<(usize, String), Vec<Judged<'a>>> = BTreeMap::new();
        let mut first: HashMap<String, usize> = HashMap::new();
        for past in self.answered(|effect| matches!(effect, Effect::Judge(_))) {
            let Effect::Judge(request) = &past.issued.effect else {
                continue;
            };
            let text = self.history.content().read(&request.text).unwrap_or_default();
            let next = first.len();
            let number = *first.entry(text.clone()).or_insert(next);
            let answer = match &past.answer {
                Some((_, Outcome::Verdict(verdict), _)) => Answer {
                    toml: self.decision(&verdict.decision),
                    reason: verdict.reason.clone(),
                    confidence: verdict.confidence,
                },
                Some((_, Outcome::Failed(failure), _)) => {
                    self.out.problems.push(format!(
                        "the judge failed on **{}** ({}), which a mock file can't say",
                        prose_agents::one_line(&text),
                        failure.message
                    ));
                    Answer::plain(String::new())
                }
                _ if past.cancelled => Answer::plain(match &request.ask {
                    Ask::Choice { options } => {
                        options.first().map_or_else(String::new, |label| quoted(label))
                    }
                    _ => "\"unsure\"".to_owned(),
                }),
                _ => Answer::plain(String::new()),
            };
            groups
                .entry((number, text))
                .or_default()
                .push((past, request, answer));
        }
        for ((_, text), asked) in groups {
            let condition = exactly(&text);
            let delayed = asked
                .iter()
                .any(|(past, ..)| self.delays.contains_key(&past.issued.id));
            let mut rule = String::new();
            match one_list(&asked) {
                Some(answers) if !delayed => {
                    if !answers.is_empty() {
                        let _ = write!(rule, "\n[[verdict]]\ncondition = {}\n", quoted(&condition));
                        write_answers(&mut rule, &answers);
                    }
                }
                _ => {
                    for (at, (past, _, answer)) in asked.iter().enumerate() {
                        if answer.toml.is_empty() {
                            continue;
                        }
                        let _ = write!(
                            rule,
                            "\n[[verdict]]\ncondition = {}\nnth = {}\n",
                            quoted(&condition),
                            at + 1,
                        );
                        write_answers(&mut rule, std::slice::from_ref(answer));
                        self.delay(&mut rule, &past.issued.id);
                    }
                }
            }
            self.out.text.push_str(&rule);
        }
    }

    /// What the judge decided, in TOML.
    fn decision(&self, decision: &Decision) -> String {
        match decision {
            Decision::Yes => "true".to_owned(),
            Decision::No => "false".to_owned(),
            Decision::Unsure => "\"unsure\"".to_owned(),
            Decision::NoProgress => "\"no-progress\"".to_owned(),
            Decision::Option(label) => quoted(label),
            Decision::Value(value) => plain_json(value, self.history.content())
                .ok()
                .and_then(|json| toml_value(&json))
                .unwrap_or_else(|| "\"\"".to_owned()),
            Decision::Question { prompt, options } if options.is_empty() => quoted(prompt),
            Decision::Question { prompt, options } => format!(
                "{{ question = {}, options = [{}] }}",
                quoted(prompt),
                options
                    .iter()
                    .map(|option| quoted(option))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }
}

/// The keys with answers, and with why, where the judge has said that.
fn write_answers(rule: &mut String, answers: &[Answer]) {
    let list = |items: Vec<String>| items.join(", ");
    let toml = answers.iter().map(|answer| answer.toml.clone()).collect();
    let _ = writeln!(rule, "answers = [{}]", list(toml));
    if answers.iter().any(|answer| answer.reason != SIMULATED) {
        let reasons = answers.iter().map(|answer| quoted(&answer.reason)).collect();
        let _ = writeln!(rule, "reasons = [{}]", list(reasons));
    }
    if answers.iter().any(|answer| answer.confidence != 1.0) {
        let confidence = |answer: &Answer| format!("{:?}", answer.confidence.clamp(0.0, 1.0));
        let confidences = answers.iter().map(confidence).collect();
        let _ = writeln!(rule, "confidences = [{}]", list(confidences));
    }
}

/// The answers as one list, when the position in it finds each: the number of the test in a loop, else the number of
/// the question. None when two loops answered differently, or a question in between has no answer.
fn one_list(asked: &[Judged<'_>]) -> Option<Vec<Answer>> {
    let mut answers: BTreeMap<usize, &Answer> = BTreeMap::new();
    let loops = asked
        .iter()
        .filter(|(_, request, _)| matches!(request.ask, Ask::Loop { .. }))
        .count();
    if loops != 0 && loops != asked.len() {
        return None;
    }
    let mut ends: HashMap<&EffectId, usize> = HashMap::new();
    for (number, (_, request, answer)) in asked.iter().enumerate() {
        let at = match &request.ask {
            Ask::Loop { test, frame, .. } => {
                ends.insert(frame, *test as usize);
                *test as usize
            }
            _ => number,
        };
        if answer.toml.is_empty() {
            continue;
        }
        if *answers.entry(at).or_insert(answer) != answer {
            return None;
        }
    }
    let complete = answers.keys().enumerate().all(|(expected, at)| expected == *at);
    let mut list: Vec<Answer> = answers.into_values().cloned().collect();
    // The last one repeats, also where it is not written.
    while list.len() > 1 && list[list.len() - 1] == list[list.len() - 2] {
        list.pop();
    }
    complete.then_some(list)
}
