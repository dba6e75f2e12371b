//! Markers that say where a run stands whose state is in memory: short lines in place of `state.md`.

use std::collections::HashMap;

use prose_model::{ConstructKind, EffectId, End, Event, ExecutionId, FrameKind, RunStatus, StmtId};

/// So many branches are named one by one.
const NAMED: usize = 12;

/// Makes markers of events.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    /// Statements that were numbered, in the order in which they first ran.
    numbers: HashMap<StmtId, usize>,
    /// The number and name of what runs.
    sessions: HashMap<EffectId, (usize, String)>,
    constructs: HashMap<EffectId, Construct>,
    frames: HashMap<ExecutionId, String>,
}

#[derive(Debug)]
struct Construct {
    kind: ConstructKind,
    total: Option<u32>,
    condition: Option<String>,
    begun: u32,
    parts: Vec<(String, Option<End>)>,
}

impl Narrator {
    /// The markers of an event, none for most.
    pub(crate) fn lines(&mut self, event: &Event) -> Vec<String> {
        self.line(event).into_iter().collect()
    }

    fn number(&mut self, stmt: &StmtId) -> usize {
        let next = self.numbers.len() + 1;
        *self.numbers.entry(stmt.clone()).or_insert(next)
    }

    fn line(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::RunStarted { program, .. } => Some(format!(
                "{program} begins; state mode: in-context (nothing is written, nothing can be resumed)"
            )),
            Event::RunFinished { status, error, .. } => Some(match (status, error) {
                (RunStatus::Completed, _) => "---end".to_owned(),
                (_, Some(error)) => format!("---end ✗ {}", one_line(&error.message)),
                (RunStatus::Cancelled, None) => "---end ✗ cancelled".to_owned(),
                (_, None) => "---end ✗ stopped".to_owned(),
            }),
            Event::SessionStarted {
                at, effect, binding, ..
            } => {
                let number = self.number(&at.stmt);
                let name = binding.name.to_string();
                let name = if name.starts_with("anon_") {
                    String::new()
                } else {
                    format!("{name} ")
                };
                self.sessions.insert(effect.clone(), (number, name));
                None
            }
            Event::SessionFinished {
                effect, end, summary, ..
            } => {
                let (number, name) = self.sessions.remove(effect)?;
                Some(match end {
                    End::Ok | End::Left => format!("{number}→ {name}✓"),
                    End::Cancelled => format!("{number}→ {name}✗ cancelled"),
                    End::Failed => format!("{number}→ {name}✗ {}", one_line(summary)),
                })
            }
            Event::InputStarted { name, .. } => Some(format!("input {name}?")),
            Event::ConstructStarted {
                construct,
                kind,
                total,
                condition,
                ..
            } => {
                let started = Construct {
                    kind: *kind,
                    total: *total,
                    condition: condition.clone(),
                    begun: 0,
                    parts: Vec::new(),
                };
                self.constructs.insert(construct.clone(), started);
                (*kind == ConstructKind::Try).then(|| "try→".to_owned())
            }
            Event::PartStarted {
                construct,
                index,
                label,
            } => self.constructs.get_mut(construct)?.part(*index, label.as_deref()),
            Event::PartFinished {
                construct,
                index,
                end,
            } => {
                let construct = self.constructs.get_mut(construct)?;
                let part = construct.parts.get_mut(*index as usize)?;
                part.1 = Some(*end);
                construct.is_parallel().then(|| construct.progress())
            }
            Event::ConstructFinished { construct, .. } => self.constructs.remove(construct)?.over(),
            Event::FrameStarted {
                frame,
                kind: FrameKind::Block | FrameKind::Program,
                name,
                ..
            } => {
                self.frames.insert(*frame, name.to_string());
                Some(format!("[Frame+] #{frame} {name}"))
            }
            Event::FrameFinished { frame, .. } => {
                let name = self.frames.remove(frame)?;
                Some(format!("[Frame-] #{frame} {name} done"))
            }
            _ => None,
        }
    }
}

impl Construct {
    fn is_parallel(&self) -> bool {
        matches!(self.kind, ConstructKind::Parallel | ConstructKind::ParallelFor)
    }

    fn part(&mut self, index: u32, label: Option<&str>) -> Option<String> {
        self.begun = index + 1;
        match self.kind {
            ConstructKind::Parallel | ConstructKind::ParallelFor => {
                let label = label.map_or_else(|| (index + 1).to_string(), ToOwned::to_owned);
                let at = index as usize;
                if self.parts.len() <= at {
                    self.parts.resize(at + 1, (String::new(), None));
                }
                self.parts[at].0 = label;
                // All of them begin at once; said when the last has.
                (self.total == Some(self.begun)).then(|| format!("∥ [{}]", self.names(false)))
            }
            ConstructKind::Loop | ConstructKind::For | ConstructKind::Repeat => {
                Some(format!("loop:{}", self.at()))
            }
            ConstructKind::Try | ConstructKind::Choice => label.map(|label| format!("{}→", one_line(label))),
            ConstructKind::If | ConstructKind::Pipeline => None,
        }
    }

    fn progress(&self) -> String {
        format!("∥ [{}]", self.names(true))
    }

    fn names(&self, ends: bool) -> String {
        if self.parts.len() > NAMED {
            let done = self.parts.iter().filter(|(_, end)| end.is_some()).count();
            return format!("{done}/{}", self.parts.len());
        }
        let mark = |end: &Option<End>| match end {
            _ if !ends => "",
            None => "→",
            Some(End::Ok | End::Left) => "✓",
            Some(End::Failed | End::Cancelled) => "✗",
        };
        let names: Vec<String> = self
            .parts
            .iter()
            .map(|(name, end)| format!("{}{}", one_line(name), mark(end)))
            .collect();
        names.join(" ")
    }

    fn at(&self) -> String {
        match self.total {
            Some(total) => format!("{}/{total}", self.begun),
            None => self.begun.to_string(),
        }
    }

    fn over(&self) -> Option<String> {
        match self.kind {
            ConstructKind::Parallel | ConstructKind::ParallelFor => Some("∥ done".to_owned()),
            ConstructKind::Loop | ConstructKind::For | ConstructKind::Repeat => Some(match &self.condition {
                Some(condition) => format!("loop:{} exit({})", self.at(), one_line(condition)),
                None => format!("loop:{} exit", self.at()),
            }),
            _ => None,
        }
    }
}

/// Text on one line, not too long, without what a terminal would act on.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
