//! How runs stand, seen from outside: nothing on disk changes, also while a run goes on.

use std::path::{Path, PathBuf};

use prose_model::{EffectId, JournalRecord, RecordBody, RunId, RunStatus, Usage};
use serde::Serialize;

use crate::error::io;
use crate::run::{ended, usage};
use crate::{Result, RunDir, StateError, lock_owner, read_journal};

/// One line about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// The program's path when it was started; empty when that can't be told.
    pub program: String,
    /// The backend; empty when that can't be told.
    pub backend: String,
    /// When it was started, RFC 3339.
    pub started: Option<String>,
    /// Time of the last record, RFC 3339.
    pub updated: Option<String>,
    /// How it stands.
    pub state: RunState,
    /// Sessions that have an outcome.
    pub sessions_done: u32,
    /// Sessions asked for.
    pub sessions: u32,
    /// What all outcomes cost.
    pub usage: Usage,
    /// How long processes worked on it, in milliseconds: the time between them doesn't count.
    pub active_ms: u64,
}

/// How a run stands, seen from outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// A process owns it.
    Running {
        /// Which, if that can be told.
        pid: Option<u32>,
    },
    /// Its last owner ended it; [`RunStatus::Interrupted`] when no owner did and none is there.
    Ended {
        /// How.
        status: RunStatus,
    },
    /// Its journal can't be used.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// Its process ended before anything ran: it can only be started again.
    NeverStarted,
    /// It has no journal: another OpenProse tool made it.
    Foreign,
}

/// What orders runs by their start: the second that the id begins with, and the exact time where the journal tells it.
fn age(run: &RunSummary) -> (&str, Option<&str>, &str) {
    let id = run.id.as_str();
    (crate::view::second(id), run.started.as_deref(), id)
}

/// Says how every run of a project stands, the newest first. Runs that can't be read are among them.
pub fn list_runs(project_root: &Path) -> Result<Vec<RunSummary>> {
    let runs = RunDir::runs(project_root);
    let entries = match std::fs::read_dir(&runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", runs)(error)),
    };
    let mut summaries = Vec::new();
    for entry in entries {
        let path = entry.map_err(io("read", &runs))?.path();
        if path.is_dir() {
            summaries.push(match RunDir::at(&path) {
                Ok(dir) => run_summary(&dir),
                // One that is not to be trusted hides none of the others.
                Err(error) => RunSummary {
                    state: RunState::Unreadable {
                        reason: error.to_string(),
                    },
                    ..unknown(&path)
                },
            });
        }
    }
    summaries.sort_by(|a, b| age(b).cmp(&age(a)));
    Ok(summaries)
}

/// A run of which only the folder's name is known.
fn unknown(path: &Path) -> RunSummary {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    RunSummary {
        id: RunId::from(name),
        dir: path.to_owned(),
        program: String::new(),
        backend: String::new(),
        started: None,
        updated: None,
        state: RunState::Foreign,
        sessions_done: 0,
        sessions: 0,
        usage: Usage::default(),
        active_ms: 0,
    }
}

/// Says how a run stands; changes nothing, also while the run goes on.
pub fn run_summary(dir: &RunDir) -> RunSummary {
    let mut summary = unknown(dir.path());
    let journal = dir.journal();
    // IMPORTANT: the lock is looked at first. The other way round, a run that ends in between seems interrupted.
    let owner = lock_owner(dir).unwrap_or_default();
    let content = match read_journal(&journal) {
        Ok(content) if !content.records.is_empty() => content,
        Err(error) if !is_missing(&error) => {
            if let Ok((content, _)) = crate::journal::read_intact(&journal) {
                tally(&mut summary, &content.records);
            }
            summary.state = RunState::Unreadable {
                reason: error.to_string(),
            };
            return summary;
        }
        Ok(_) | Err(_) => {
            summary.state = match (owner, left(dir)) {
                // Being made at this moment.
                (Some(pid), _) => RunState::Running { pid },
                (None, Left::Nothing) => RunState::NeverStarted,
                (None, Left::Files) => RunState::Unreadable {
                    reason: no_header(dir).to_string(),
                },
                (None, Left::Foreign) => RunState::Foreign,
            };
            return summary;
        }
    };
    tally(&mut summary, &content.records);
    summary.state = match (owner, ended(&content.records)) {
        (_, Some(status)) => RunState::Ended { status },
        (Some(pid), None) => RunState::Running { pid },
        (None, None) => RunState::Ended {
            status: RunStatus::Interrupted,
        },
    };
    summary
}

/// Whether an error says that a file is not there; that it may not be read, for one, does not.
fn is_missing(error: &StateError) -> bool {
    matches!(error, StateError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

/// What there is of a run whose journal has no header.
enum Left {
    /// What is made before anything runs, or less.
    Nothing,
    /// What is written while it runs: it had a journal, and that is lost.
    Files,
    /// What another tool makes.
    Foreign,
}

fn left(dir: &RunDir) -> Left {
    let path = dir.path();
    let is_bound = std::fs::read_dir(path.join("bindings")).is_ok_and(|mut entries| entries.next().is_some());
    let ran = is_bound || path.join("state.md").exists();
    let own = dir.journal().exists() || dir.bundle().exists() || dir.values().exists();
    match (ran, own) {
        (true, true) => Left::Files,
        (true, false) => Left::Foreign,
        // Before it writes the program, this one has made a bundle.
        (false, false) if path.join("program.prose").exists() => Left::Foreign,
        (false, _) => Left::Nothing,
    }
}

/// Why a run has no header: it stopped before one could be written, or it had one and its journal is lost, which the files
/// show that are written later, or it has none at all.
pub fn no_header(dir: &RunDir) -> StateError {
    let path = dir.path().to_owned();
    match left(dir) {
        Left::Nothing => StateError::NoHeader { path },
        Left::Files => StateError::JournalLost { path },
        Left::Foreign => StateError::Foreign { path },
    }
}

/// Whether nothing ran in a run, and nobody is about to. Of the journal only the first line is read.
pub(crate) fn never_started(dir: &RunDir) -> bool {
    use std::io::BufRead as _;
    let mut line = Vec::new();
    let read = crate::fs::open_file(&dir.journal())
        .and_then(|file| std::io::BufReader::new(file).read_until(b'\n', &mut line));
    let has_record = match read {
        Ok(_) => line.ends_with(b"\n"),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    !has_record && matches!(left(dir), Left::Nothing) && matches!(lock_owner(dir), Ok(None))
}

/// Counts what the records tell.
fn tally(summary: &mut RunSummary, records: &[JournalRecord]) {
    let mut sessions = std::collections::HashSet::new();
    let mut done = std::collections::HashSet::new();
    for record in records {
        summary.updated = Some(record.ts.clone());
        match &record.body {
            RecordBody::Header(header) => {
                summary.started = Some(record.ts.clone());
                summary.program = header.program.clone();
                summary.backend = header.options.backend.clone();
            }
            RecordBody::Issued { id, kind, .. } if kind == "session" => {
                sessions.insert(id);
                // A changed program may ask it again.
                done.remove(id);
            }
            RecordBody::Outcome { id, outcome, .. } => {
                summary.usage.add(&usage(outcome));
                if sessions.contains(id) {
                    done.insert(id);
                }
            }
            RecordBody::Spent { usage, .. } => summary.usage.add(usage),
            _ => {}
        }
    }
    let count = |set: &std::collections::HashSet<&EffectId>| u32::try_from(set.len()).unwrap_or(u32::MAX);
    summary.sessions = count(&sessions);
    summary.sessions_done = count(&done);
    summary.active_ms = active_ms(records);
}

/// The time from each lease to the last record under it, in milliseconds. One under which nothing was done doesn't count: the
/// run was only looked at, and waits on or is over as before.
pub(crate) fn active_ms(records: &[JournalRecord]) -> u64 {
    struct Span {
        from: i64,
        to: i64,
        counts: bool,
    }
    let mut spans: Vec<Span> = Vec::new();
    for record in records {
        let Some(at) = crate::clock::parse_ms(&record.ts) else {
            continue;
        };
        let begins = matches!(record.body, RecordBody::Lease { lease, .. } if lease > 1);
        match spans.last_mut() {
            Some(span) if !begins => {
                span.to = at.max(span.to);
                span.counts |= is_work(&record.body);
            }
            last => {
                let counts = last.is_none();
                spans.push(Span {
                    from: at,
                    to: at,
                    counts,
                });
            }
        }
    }
    let counted = spans.iter().filter(|span| span.counts);
    let total: i64 = counted.map(|span| span.to.saturating_sub(span.from)).sum();
    u64::try_from(total).unwrap_or(0)
}

/// Whether a record tells of something that was done, rather than who has the run and how it stands.
pub fn is_work(record: &RecordBody) -> bool {
    !matches!(
        record,
        RecordBody::Header(_) | RecordBody::Lease { .. } | RecordBody::End { .. }
    )
}
