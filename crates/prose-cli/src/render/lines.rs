//! One line per event, for logs and pipes.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use prose_model::{
    BindingRef, Bundle, ConstructKind, Decision, EffectId, End, Event, FrameKind, PermissionGrant, RunEvent,
    RunStatus, SourceRange, Usage,
};

/// Turns events into lines of plain text. Keeps what a later event needs to be readable on its own.
pub struct Lines {
    bundle: std::sync::Arc<Bundle>,
    /// What was said when the effect, construct or frame started, to say it again at its end.
    subjects: HashMap<String, String>,
    /// Sessions that nobody works on yet, oldest first.
    waiting: Vec<Waiting>,
    /// When the last event was, as it is shown.
    clock: String,
    /// Whether the run has no files.
    in_memory: bool,
}

/// A session that waits: for its turn, or for a memory that another has.
struct Waiting {
    effect: EffectId,
    /// What is said when it really starts.
    line: String,
    since: Instant,
    /// Whether it was said that it waits.
    said: bool,
}

/// Most sessions start at once; only of those that don't it is said that they wait.
const PATIENCE: Duration = Duration::from_secs(1);

impl Lines {
    /// For events of a run of the given bundle.
    pub fn new(bundle: std::sync::Arc<Bundle>) -> Lines {
        Lines {
            bundle,
            subjects: HashMap::new(),
            waiting: Vec::new(),
            clock: String::new(),
            in_memory: false,
        }
    }

    /// Lines for sessions that have been waiting for a while at `now`, each once.
    pub fn overdue(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        for waiting in &mut self.waiting {
            if !waiting.said && now.saturating_duration_since(waiting.since) >= PATIENCE {
                waiting.said = true;
                let subject = self.subjects.get(waiting.effect.as_str());
                let mut line = format!("{} waits    {}", self.clock, subject.map_or("", |it| it));
                line.retain(|c| !c.is_control());
                lines.push(line);
            }
        }
        lines
    }

    /// The line for an event, without line end; none for events that only make sense in a tree.
    pub fn line(&mut self, event: &RunEvent) -> Option<String> {
        // `2026-01-15T14:30:52.123Z`: the clock time is enough in a log of one run.
        let clock = event.ts.get(11..19).unwrap_or(&event.ts);
        if self.clock != clock {
            clock.clone_into(&mut self.clock);
        }
        let text = self.text(&event.event)?;
        let mut line = format!("{clock} {text}");
        // Names of files and folders can hold them, too, and an event is one line.
        line.retain(|c| !c.is_control());
        Some(line)
    }

    fn text(&mut self, event: &Event) -> Option<String> {
        let line = match event {
            Event::RunStarted {
                program,
                backend,
                simulated,
                resumed,
                dir,
                ..
            } => {
                let verb = if *resumed { "resumed" } else { "started" };
                let note = if *simulated {
                    " (simulated: no model is asked)"
                } else {
                    ""
                };
                self.in_memory = dir.is_empty();
                match self.in_memory {
                    true => format!("run      {verb} {program} on {backend}{note}"),
                    false => format!("run      {verb} {program} on {backend}{note}; {dir}"),
                }
            }
            Event::RunFinished {
                status, error, usage, ..
            } => {
                let mut line = format!("run      {}{}", status_word(*status), usage_note(usage));
                if let Some(error) = error {
                    let _ = write!(line, ": {}", error.message);
                }
                line
            }
            Event::SessionStarted {
                effect,
                agent,
                label,
                model,
                attempt,
                max_attempts,
                at,
                ..
            } => {
                let mut subject = match agent {
                    Some(agent) => format!("{agent}: {}", one_line(label, 70)),
                    None => one_line(label, 70),
                };
                if *attempt > 1 {
                    let _ = write!(subject, " (attempt {attempt}/{max_attempts})");
                }
                self.subjects.insert(effect.to_string(), subject.clone());
                let model = model.as_deref().map(|m| format!(" [{m}]")).unwrap_or_default();
                self.waiting.push(Waiting {
                    effect: effect.clone(),
                    line: format!("session  {subject}{model}  {}", self.location(at.src)),
                    since: Instant::now(),
                    said: false,
                });
                return None;
            }
            Event::SessionSpawned { effect, .. } => self.no_longer_waits(effect)?.line,
            Event::SessionFinished {
                effect,
                end,
                summary,
                usage,
            } => {
                self.no_longer_waits(effect);
                let subject = self.take(effect.as_str());
                format!(
                    "session  {} {subject}{} - {}",
                    mark(*end),
                    usage_note(usage),
                    one_line(summary, 100)
                )
            }
            Event::SessionTool { effect, tool, detail } => {
                let subject = self.subjects.get(effect.as_str()).cloned().unwrap_or_default();
                format!("tool     {tool} {} ({subject})", one_line(detail, 80))
            }
            Event::PermissionStarted {
                effect,
                permission,
                tool,
                detail,
                ..
            } => {
                let subject = self.subjects.get(effect.as_str()).cloned().unwrap_or_default();
                format!(
                    "asks     {permission}: {tool} {} ({subject})",
                    one_line(detail, 200)
                )
            }
            Event::PermissionFinished { answer, attended, .. } => {
                format!("asks     {}", grant_word(*answer, *attended))
            }
            Event::QuestionStarted { effect, text, .. } => {
                let subject = self.subjects.get(effect.as_str()).cloned().unwrap_or_default();
                format!("asks     a person: {} ({subject})", one_line(text, 200))
            }
            Event::QuestionFinished {
                answered, attended, ..
            } => {
                let how = match (answered, attended) {
                    (true, _) => "answered",
                    (false, true) => "not answered",
                    (false, false) => "not answered: there is nobody to ask",
                };
                format!("asks     {how}")
            }
            Event::JudgeStarted { effect, text, .. } => {
                self.subjects
                    .insert(effect.to_string(), format!("**{}**", one_line(text, 70)));
                return None;
            }
            Event::JudgeFinished { effect, end, verdict } => {
                let subject = self.take(effect.as_str());
                match verdict {
                    Some(verdict) => {
                        let reason = match verdict.reason.as_str() {
                            "" => String::new(),
                            reason => format!(" - {}", one_line(reason, 100)),
                        };
                        format!(
                            "judge    {subject} -> {}{reason}",
                            decision_word(&verdict.decision)
                        )
                    }
                    None => format!("judge    {} {subject}", mark(*end)),
                }
            }
            Event::InputStarted {
                effect,
                name,
                prompt,
                options,
                ..
            } => {
                self.subjects.insert(effect.to_string(), name.to_string());
                // Mostly the choices are those that the prompt ends with.
                let options = if options.iter().all(|option| prompt.contains(option.as_str())) {
                    String::new()
                } else {
                    format!(" ({})", options.join(", "))
                };
                format!("input    {name}: {}{options}", one_line(prompt, 100))
            }
            Event::InputFinished { effect, end } => {
                format!("input    {} {}", mark(*end), self.take(effect.as_str()))
            }
            Event::FrameStarted {
                frame,
                kind: FrameKind::Block,
                name,
                depth,
                ..
            } => {
                let subject = format!("{name} (#{frame}, depth {depth})");
                self.subjects.insert(format!("frame {frame}"), subject.clone());
                format!("block    {subject}")
            }
            Event::FrameStarted {
                frame,
                kind: FrameKind::Program,
                name,
                ..
            } => {
                self.subjects.insert(format!("frame {frame}"), name.to_string());
                format!("program  {name} (#{frame})")
            }
            Event::FrameFinished { frame, end } => {
                let subject = self.subjects.remove(&format!("frame {frame}"))?;
                format!("block    {} {subject}", mark(*end))
            }
            Event::ConstructStarted {
                construct,
                kind,
                total,
                condition,
                at,
            } => {
                let subject = construct_subject(*kind, *total, condition.as_deref());
                self.subjects.insert(construct.to_string(), subject.clone());
                format!(
                    "{:<8} {subject}  {}",
                    construct_word(*kind),
                    self.location(at.src)
                )
            }
            Event::PartStarted {
                construct,
                index,
                label,
            } => {
                let subject = self.subjects.get(construct.as_str())?;
                match label {
                    _ if subject.is_empty() => return None,
                    Some(label) => format!("part     {label} of {subject}"),
                    None => format!("part     {} of {subject}", index + 1),
                }
            }
            Event::Bound { binding, kind, .. } => {
                kind.file_kind()?;
                match self.in_memory {
                    true => format!("bound    {}", binding_name(binding)),
                    false => format!("bound    {}", binding_path(binding)),
                }
            }
            Event::SleepStarted { ms, .. } => format!("wait     {}", duration(*ms)),
            Event::Warning { at, code, message } => {
                format!("warning  {code}: {message}  {}", self.location(at.src))
            }
            Event::Narration { line } => line.clone(),
            Event::Notice { level, message } => format!("{level:<8} {message}"),
            Event::EventsMissed { machine, streamed } => format!("missing  {}", missed(*machine, *streamed)),
            Event::InputNeeded { .. }
            | Event::StatementStarted { .. }
            | Event::StatementFinished { .. }
            | Event::FrameStarted { .. }
            | Event::PartFinished { .. }
            | Event::ConstructFinished { .. }
            | Event::DecodeStarted { .. }
            | Event::DecodeFinished { .. }
            | Event::SleepFinished { .. }
            | Event::SessionText { .. }
            | Event::SessionUsage { .. } => return None,
        };
        Some(line)
    }

    fn no_longer_waits(&mut self, effect: &EffectId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|it| it.effect == *effect)?;
        Some(self.waiting.remove(at))
    }

    fn take(&mut self, key: &str) -> String {
        self.subjects.remove(key).unwrap_or_default()
    }

    /// `file.prose:12`.
    fn location(&self, src: SourceRange) -> String {
        location(&self.bundle, src)
    }
}

/// `file.prose:12`, lines from 1; empty when the bundle does not hold the file.
pub fn location(bundle: &Bundle, src: SourceRange) -> String {
    let Some(file) = bundle.files.get(src.file as usize) else {
        return String::new();
    };
    let end = (src.start as usize).min(file.text.len());
    let line = file.text.as_bytes()[..end]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
        + 1;
    format!("{}:{line}", file.path)
}

/// Folds white space and cuts to at most `max` characters.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max * 4 {
            break;
        }
    }
    // Control characters could drive the terminal; a session's text is not trusted to do that.
    line.retain(|c| !c.is_control());
    match line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// `name (#3)` where there is no file of it; behind the programs that it is in.
fn binding_name(binding: &BindingRef) -> String {
    let mut name: String = binding
        .program
        .iter()
        .map(|program| format!("{program}/"))
        .collect();
    name.push_str(&binding.name);
    if let Some(id) = binding.execution_id {
        let _ = write!(name, " (#{id})");
    }
    name
}

/// `bindings/name__3.md`, below its program's folder.
pub fn binding_path(binding: &BindingRef) -> String {
    let mut path = String::new();
    for folder in &binding.program {
        let _ = write!(path, "imports/{folder}/");
    }
    match binding.execution_id {
        Some(id) => {
            let _ = write!(path, "bindings/{}__{id}.md", binding.name);
        }
        None => {
            let _ = write!(path, "bindings/{}.md", binding.name);
        }
    }
    path
}

/// A short word for how a run stands.
pub fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Waiting => "waiting for input",
        RunStatus::OutOfBudget => "out of budget",
        RunStatus::Interrupted => "interrupted",
    }
}

/// How a session's question was settled, in words.
fn grant_word(answer: PermissionGrant, attended: bool) -> &'static str {
    match answer {
        PermissionGrant::Allow => "allowed",
        PermissionGrant::AllowSession => "allowed for this session",
        PermissionGrant::Deny if attended => "refused",
        PermissionGrant::Deny => "refused: there is nobody to ask",
    }
}

/// What the judge decided, in a word.
pub fn decision_word(decision: &Decision) -> String {
    match decision {
        Decision::Yes => "yes".to_owned(),
        Decision::No => "no".to_owned(),
        Decision::Unsure => "unsure".to_owned(),
        Decision::NoProgress => "no progress".to_owned(),
        Decision::Option(label) => label.clone(),
        Decision::Value(_) => "a value".to_owned(),
        Decision::Question { prompt, .. } => one_line(prompt, 60),
    }
}

/// The word a construct is written with.
pub fn construct_word(kind: ConstructKind) -> &'static str {
    match kind {
        ConstructKind::Parallel => "parallel",
        ConstructKind::ParallelFor => "parallel",
        ConstructKind::For => "for",
        ConstructKind::Repeat => "repeat",
        ConstructKind::Loop => "loop",
        ConstructKind::If => "if",
        ConstructKind::Choice => "choice",
        ConstructKind::Try => "try",
        ConstructKind::Pipeline => "pipeline",
    }
}

/// What there is to say about a construct beside its word.
pub fn construct_subject(kind: ConstructKind, total: Option<u32>, condition: Option<&str>) -> String {
    match (condition, total) {
        // A choice's criteria come without their stars, a loop's condition as it is written.
        (Some(criteria), _) if kind == ConstructKind::Choice => format!("**{}**", one_line(criteria, 60)),
        (Some(condition), _) => one_line(condition, 60),
        (None, Some(1)) => match kind {
            ConstructKind::Parallel => "1 branch".to_owned(),
            _ => "1 item".to_owned(),
        },
        (None, Some(total)) => match kind {
            ConstructKind::Parallel => format!("{total} branches"),
            _ => format!("{total} items"),
        },
        (None, None) => String::new(),
    }
}

/// A mark for how something ended.
pub fn mark(end: End) -> &'static str {
    match end {
        End::Ok => "done",
        End::Failed => "failed",
        End::Cancelled => "cancelled",
        End::Left => "left",
    }
}

/// ` (120 in, 40 out, $0.0123)`, or nothing when nothing was used.
pub fn usage_note(usage: &Usage) -> String {
    if usage.input_tokens == 0 && usage.output_tokens == 0 && usage.cost_usd.is_none() {
        return String::new();
    }
    let cost = usage
        .cost_usd
        .map(|usd| format!(", ${usd:.4}"))
        .unwrap_or_default();
    format!(" ({} in, {} out{cost})", usage.input_tokens, usage.output_tokens)
}

/// Which events are not shown.
pub fn missed(machine: u64, streamed: u64) -> String {
    match machine {
        0 => format!("{streamed} events in between came too fast to be shown"),
        _ => format!(
            "{} events came too fast to be shown, and the run's journal can't be read",
            machine + streamed
        ),
    }
}

/// `850 ms`, `1.5 s`, `2 min 5 s`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prose_model::{Order, Place};

    fn event(event: Event) -> RunEvent {
        RunEvent {
            v: 1,
            run_id: "r".into(),
            ts: "2026-01-15T14:30:52.123Z".to_owned(),
            order: Order::Machine { seq: 0 },
            event,
        }
    }

    fn started(effect: &str) -> RunEvent {
        let src = SourceRange {
            file: 0,
            start: 0,
            end: 0,
        };
        event(Event::SessionStarted {
            at: Place {
                stmt: "main/0".into(),
                src,
                execution_id: None,
                path: effect.into(),
            },
            effect: effect.into(),
            agent: Some("captain".into()),
            label: effect.to_owned(),
            model: None,
            attempt: 1,
            max_attempts: 1,
            binding: BindingRef {
                name: "x".into(),
                execution_id: None,
                program: Vec::new(),
            },
            resume: true,
        })
    }

    fn spawned(effect: &str) -> RunEvent {
        event(Event::SessionSpawned {
            effect: effect.into(),
            backend: "claude".to_owned(),
            model: None,
        })
    }

    #[test]
    fn a_session_is_told_of_when_somebody_works_on_it_and_before_only_if_it_waits_long() {
        let nothing = Bundle {
            version: 1,
            entry: 0,
            programs: Vec::new(),
            files: Vec::new(),
            digest: "".into(),
        };
        let mut lines = Lines::new(std::sync::Arc::new(nothing));
        assert_eq!(lines.line(&started("one")), None);
        assert_eq!(lines.line(&started("two")), None);
        let line = lines.line(&spawned("one"));
        assert_eq!(line.as_deref(), Some("14:30:52 session  captain: one  "));
        assert!(lines.overdue(Instant::now() - PATIENCE).is_empty());
        let later = Instant::now() + PATIENCE;
        assert_eq!(lines.overdue(later), ["14:30:52 waits    captain: two"]);
        assert!(lines.overdue(later).is_empty(), "said once");
        let line = lines.line(&spawned("two"));
        assert_eq!(line.as_deref(), Some("14:30:52 session  captain: two  "));
        assert!(lines.waiting.is_empty());
    }

    #[test]
    fn one_line_folds_cuts_and_drops_control_characters() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("äöüß", 3), "äöü…");
        assert_eq!(one_line("red \x1b[31m alert", 40), "red [31m alert");
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(duration(850), "850 ms");
        assert_eq!(duration(1500), "1.5 s");
        assert_eq!(duration(125_000), "2 min 5 s");
    }
}
