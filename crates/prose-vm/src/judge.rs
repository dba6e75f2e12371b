//! Questions: to the judge (conditions, values, choices, how to put an input) and to the person.

use prose_model::{
    Ask, BindKind, ConstructKind, Decision, Effect, EffectId, End, ErrorKind, Event, Failure, InputRequest,
    JudgeRequest, Outcome, Text, Value, Verdict,
};

use crate::choices::{as_choice, choices_in};
use crate::code::{COp, COption, CTemplate, NodeId, Role, RoleKind};
use crate::expr::Stop;
use crate::machine::Machine;
use crate::render;
use crate::strand::{Control, LoopState, Strand, TaskState, What};

impl Machine {
    /// Issues a question to the judge.
    fn ask(
        &mut self,
        s: &Strand,
        node: NodeId,
        id: EffectId,
        ask: Ask,
        text: Text,
        written: String,
    ) -> EffectId {
        let names = self.scopes.visible(s.cx.scope);
        let history = self.scopes.history(s.cx.scope);
        let request = JudgeRequest {
            ask,
            text,
            names,
            history,
        };
        let at = self.place(&s.cx, node);
        let effect = self.issue(Some(s.id), &s.cx, node, id, Effect::Judge(Box::new(request)));
        self.emit(Event::JudgeStarted {
            at,
            effect: effect.clone(),
            text: written,
        });
        effect
    }

    /// The loop whose test is being evaluated.
    fn tested_loop(s: &mut Strand) -> Option<(&crate::strand::Cx, &mut LoopState)> {
        s.stack.iter_mut().rev().find_map(|kont| match &mut kont.what {
            What::Loop(state) if state.testing => Some((&kont.cx, &mut **state)),
            _ => None,
        })
    }

    /// `**…**` as a condition or a value.
    pub(crate) fn ask_judge(&mut self, s: &mut Strand, node: NodeId, text: Text, role: Role) -> Control {
        let code = self.code.clone();
        let written = match &code.node(node).op {
            COp::Judge { text, .. } => text.written(),
            _ => String::new(),
        };
        let ask = match role.kind {
            RoleKind::Value => Ask::Value,
            RoleKind::Condition => Ask::Condition,
            RoleKind::Loop { until } => match Self::tested_loop(s) {
                None => Ask::Condition,
                Some((cx, state)) => {
                    let previous = state.verdicts.iter().filter(|(n, _)| *n == node);
                    Ask::Loop {
                        until,
                        test: u32::try_from(state.iteration).unwrap_or(u32::MAX),
                        frame: format!("{}{}", cx.place, code.node(state.node).id).into(),
                        previous: previous.map(|(_, verdict)| verdict.clone()).collect(),
                    }
                }
            },
        };
        let id = self.id_at(&s.cx, node);
        let effect = self.ask(s, node, id, ask, text, written);
        s.push(What::Judge { node });
        Control::Effect(effect)
    }

    /// The judge's verdict, or the error to raise.
    fn verdict(&mut self, node: NodeId, id: &EffectId, outcome: Outcome) -> Result<Verdict, Control> {
        match outcome {
            Outcome::Verdict(verdict) => {
                let event = Event::JudgeFinished {
                    effect: id.clone(),
                    end: End::Ok,
                    verdict: Some(verdict.clone()),
                };
                self.emit(event);
                Ok(verdict)
            }
            outcome => {
                self.emit(Event::JudgeFinished {
                    effect: id.clone(),
                    end: End::Failed,
                    verdict: None,
                });
                let (kind, message) = match outcome {
                    Outcome::Failed(Failure { kind, message, .. }) => (kind, message),
                    _ => (ErrorKind::Judge, "the judge gave no verdict".to_owned()),
                };
                Err(self.raise(node, kind, message))
            }
        }
    }

    pub(crate) fn judge_answered(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        id: &EffectId,
        outcome: Outcome,
    ) -> Control {
        let verdict = match self.verdict(node, id, outcome) {
            Ok(verdict) => verdict,
            Err(control) => return control,
        };
        let code = self.code.clone();
        let COp::Judge { role, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        if matches!(role.kind, RoleKind::Loop { .. })
            && let Some((_, state)) = Self::tested_loop(s)
        {
            state.no_progress |= verdict.decision == Decision::NoProgress;
            state.verdicts.push((node, verdict.clone()));
            let own = state.verdicts.iter().filter(|(n, _)| *n == node).count();
            if own > crate::VERDICTS_TOLD
                && let Some(oldest) = state.verdicts.iter().position(|(n, _)| *n == node)
            {
                state.verdicts.remove(oldest);
            }
        }
        Control::Value(match (verdict.decision, role.kind) {
            (Decision::Yes, _) => Value::Bool(true),
            (Decision::No, _) => Value::Bool(false),
            (Decision::Value(value), _) => value,
            (Decision::Option(label), RoleKind::Value) => Value::text(label),
            (Decision::Question { prompt, .. }, RoleKind::Value) => Value::text(prompt),
            (Decision::Unsure | Decision::NoProgress, RoleKind::Value) => {
                self.warn(
                    &s.cx,
                    node,
                    "unsure",
                    "the judge could not tell: the value is null",
                );
                Value::Null
            }
            // Loops go on, `if` is false; under `not` the other way round.
            (
                Decision::Unsure | Decision::NoProgress | Decision::Option(_) | Decision::Question { .. },
                _,
            ) => Value::Bool(role.unsure),
        })
    }

    pub(crate) fn ask_choice(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        text: Text,
        labels: Vec<String>,
    ) -> Control {
        let code = self.code.clone();
        let COp::Choice { criteria, options } = &code.node(node).op else {
            return self.broken(node);
        };
        let written = criteria.written();
        let total = Some(options.len() as u64);
        self.construct_started(s, node, ConstructKind::Choice, total, Some(written.clone()));
        let ask = Ask::Choice {
            options: labels.clone(),
        };
        // The choice itself has the place as its key; what is asked for it needs one of its own.
        let id = format!("{}:which", self.id_at(&s.cx, node)).into();
        let effect = self.ask(s, node, id, ask, text, written);
        s.push(What::Choice { node, labels });
        Control::Effect(effect)
    }

    pub(crate) fn choice_answered(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        labels: &[String],
        id: &EffectId,
        outcome: Outcome,
    ) -> Control {
        let code = self.code.clone();
        let COp::Choice { options, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        let decided = self.verdict(node, id, outcome).and_then(|verdict| {
            let label = match &verdict.decision {
                Decision::Option(label) => label.trim(),
                _ => {
                    let message = format!("the judge could not choose: {}", verdict.reason);
                    return Err(self.raise(node, ErrorKind::Judge, message));
                }
            };
            let exact = labels.iter().position(|own| own == label);
            exact
                .or_else(|| {
                    labels
                        .iter()
                        .position(|own| own.trim().to_lowercase() == label.to_lowercase())
                })
                .ok_or_else(|| {
                    let message = format!("the judge chose \"{label}\", which is no option");
                    self.raise(node, ErrorKind::Judge, message)
                })
        });
        let option = match decided {
            Ok(option) => option,
            Err(control) => {
                self.construct_finished(s, node, End::Failed);
                return control;
            }
        };
        let Some(COption { body, .. }) = options.get(option) else {
            return self.broken(node);
        };
        self.part_started(s, node, option as u64, labels.get(option).cloned());
        s.push(What::ChoiceBody { node, option });
        s.seq(body)
    }

    /// `input`: a supplied value, the default, or a question to the person.
    pub(crate) fn start_input(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        state: &TaskState,
    ) -> Result<Control, Stop> {
        let code = self.code.clone();
        let COp::Input {
            name,
            prompt,
            discretion,
            default,
        } = &code.node(node).op
        else {
            return Ok(self.broken(node));
        };
        let instance = self.instances.get(s.cx.instance as usize);
        let given = instance.is_some_and(|instance| instance.supplied.contains_key(name.as_str()));
        if let Some(default) = default.filter(|_| !given) {
            let value = self.with(s, state, |e| e.value(default))?;
            self.bind(s, node, BindKind::Input, name, value.clone(), code.node(node).src);
            return Ok(Control::Value(value));
        }
        // What a program is called with was chosen by its caller, whom nobody can ask again. The judge, who would put a
        // discretion and its choices into words, is not asked when there is a value already.
        let free = given
            && (s.cx.instance != 0
                || *discretion
                || !prompt.as_ref().is_some_and(CTemplate::has_parenthesis));
        let text = match prompt {
            Some(_) if free => Text::default(),
            Some(prompt) => self.with(s, state, |e| e.insertions(prompt, node))?,
            None => Text::inline(name.as_str()),
        };
        // IMPORTANT: only behind what may have to wait, and is evaluated again then. A supplied value serves the first
        // execution only.
        let instance = self.instances.get_mut(s.cx.instance as usize);
        let supplied = instance.and_then(|instance| instance.supplied.shift_remove(name.as_str()));
        if let Some(value) = supplied {
            let options = choices_in(&render::plain_text(&text));
            if let Some(value) = as_choice(&options, &value) {
                self.bind(s, node, BindKind::Input, name, value.clone(), code.node(node).src);
                return Ok(Control::Value(value));
            }
            let message = format!(
                "the value given for `{name}` is none of its choices ({}), so that it is asked for",
                options.join(", ")
            );
            self.warn(&s.cx, node, "input", message);
        }
        if !*discretion {
            let options = choices_in(&render::plain_text(&text));
            return Ok(self.ask_person(s, node, text, options));
        }
        let id = format!("{}:question", self.id_at(&s.cx, node)).into();
        let written = prompt.as_ref().map(CTemplate::written).unwrap_or_default();
        let effect = self.ask(s, node, id, Ask::Question, text.clone(), written);
        s.push(What::Input {
            node,
            prompt: text,
            options: None,
        });
        Ok(Control::Effect(effect))
    }

    fn ask_person(&mut self, s: &mut Strand, node: NodeId, prompt: Text, options: Vec<String>) -> Control {
        let code = self.code.clone();
        let COp::Input { name, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        let shown = render::plain_text(&prompt);
        let request = InputRequest {
            name: name.clone(),
            prompt: prompt.clone(),
            options: options.clone(),
        };
        let at = self.place(&s.cx, node);
        let id = self.id_at(&s.cx, node);
        let effect = self.issue(Some(s.id), &s.cx, node, id, Effect::Input(Box::new(request)));
        self.emit(Event::InputStarted {
            at,
            effect: effect.clone(),
            name: name.clone(),
            prompt: shown,
            options: options.clone(),
        });
        s.push(What::Input {
            node,
            prompt,
            options: Some(options),
        });
        Control::Effect(effect)
    }

    pub(crate) fn input_answered(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        (prompt, options): (Text, Option<Vec<String>>),
        id: &EffectId,
        outcome: Outcome,
    ) -> Control {
        let code = self.code.clone();
        let COp::Input { name, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        let Some(options) = options else {
            let (prompt, options) = match self.verdict(node, id, outcome) {
                Ok(Verdict {
                    decision: Decision::Question { prompt, options },
                    ..
                }) => (Text::inline(prompt), options),
                // However the judge fares, the person can be asked in the program's own words.
                _ => {
                    let options = choices_in(&render::plain_text(&prompt));
                    (prompt, options)
                }
            };
            return self.ask_person(s, node, prompt, options);
        };
        let effect = id.clone();
        match outcome {
            Outcome::Input { value } => {
                let Some(value) = as_choice(&options, &value) else {
                    self.emit(Event::InputFinished {
                        effect,
                        end: End::Failed,
                    });
                    let message = format!("'{name}' has to be one of: {}", options.join(", "));
                    return self.raise(node, ErrorKind::Input, message);
                };
                self.emit(Event::InputFinished { effect, end: End::Ok });
                self.bind(s, node, BindKind::Input, name, value.clone(), code.node(node).src);
                Control::Value(value)
            }
            outcome => {
                self.emit(Event::InputFinished {
                    effect,
                    end: End::Failed,
                });
                match outcome {
                    Outcome::Failed(Failure { kind, message, .. }) => self.raise(node, kind, message),
                    _ => self.raise(node, ErrorKind::Input, "the input was not answered"),
                }
            }
        }
    }
}
