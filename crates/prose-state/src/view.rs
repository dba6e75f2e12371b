//! Looking at a run without taking it up: nothing on disk changes, and damage is told rather than refused.

use std::path::Path;
use std::sync::Arc;

use prose_model::{Bundle, Header, JournalRecord, RecordBody, RunId};

use crate::journal::read_intact;
use crate::run::stored_bundle;
use crate::summary::never_started;
use crate::{Result, RunDir, RunSummary, StateError, ValueStore, no_header, run_summary};

/// What is on disk of a run, as far as it can be read.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// Its directory.
    pub dir: RunDir,
    /// How it stands.
    pub summary: RunSummary,
    /// Its fixed facts.
    pub header: Option<Header>,
    /// What it executes.
    pub bundle: Option<Arc<Bundle>>,
    /// How many of the records are from before the program was last changed; 0 when it never was.
    pub changed: usize,
    /// The records before the first damaged one.
    pub records: Vec<JournalRecord>,
    /// Its values.
    pub values: ValueStore,
    /// What is damaged or missing, a sentence each.
    pub problems: Vec<String>,
}

/// The run that a person means: a whole id, the beginning of one if only one run has it, or `last` for the newest.
///
/// # Errors
/// [`StateError::UnknownRun`], [`StateError::AmbiguousRun`], [`StateError::NoRuns`]; that the runs can't be listed.
pub fn find_run(project_root: &Path, wanted: &str) -> Result<RunDir> {
    let exact = RunDir::find(project_root, &RunId::from(wanted));
    if let Ok(dir) = exact
        && !wanted.is_empty()
    {
        return Ok(dir);
    }
    let mut ids = run_ids(project_root)?;
    // Ids begin with the time.
    ids.sort_unstable_by(|a, b| b.cmp(a));
    let root = project_root.to_owned();
    if ids.is_empty() {
        return Err(StateError::NoRuns { root });
    }
    if wanted == "last" {
        // Where nothing ran there is nothing to go on with or to look at, unless there is nothing else.
        let started = ids.iter().position(|id| {
            !RunDir::find(project_root, &RunId::from(id.as_str())).is_ok_and(|dir| never_started(&dir))
        });
        ids.drain(..started.unwrap_or(0));
        let second = second(&ids[0]).to_owned();
        ids.retain(|id| self::second(id) == second);
        let id = match ids.len() {
            1 => ids.swap_remove(0),
            // Within a second the order of the ids is chance.
            _ => ids
                .into_iter()
                .max_by_key(|id| (first_ts(&RunDir::runs(project_root).join(id)), id.clone()))
                .unwrap_or_default(),
        };
        return RunDir::find(project_root, &RunId::from(id));
    }
    let mut found: Vec<String> = ids
        .into_iter()
        .filter(|id| !wanted.is_empty() && id.starts_with(wanted))
        .collect();
    match found.len() {
        0 => Err(StateError::UnknownRun {
            wanted: wanted.to_owned(),
            root,
        }),
        1 => RunDir::find(project_root, &RunId::from(found.swap_remove(0))),
        _ => {
            found.truncate(5);
            Err(StateError::AmbiguousRun {
                wanted: wanted.to_owned(),
                candidates: found,
            })
        }
    }
}

/// The part of an id that says when its run was started.
pub(crate) fn second(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(second, _)| second)
}

/// When a run was started, to the millisecond; only the beginning of its journal is read.
fn first_ts(run: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct First {
        ts: String,
    }
    let journal = crate::fs::open_file(&run.join("journal.jsonl")).ok()?;
    let mut lines =
        serde_json::Deserializer::from_reader(std::io::BufReader::new(journal)).into_iter::<First>();
    lines.next()?.ok().map(|first| first.ts)
}

fn run_ids(project_root: &Path) -> Result<Vec<String>> {
    let runs = RunDir::runs(project_root);
    let entries = match std::fs::read_dir(&runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(crate::error::io("read", runs)(error)),
    };
    Ok(entries
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect())
}

/// Reads all that can be read of a run; changes nothing, also while the run goes on.
pub fn read_run(dir: &RunDir) -> StoredRun {
    let summary = run_summary(dir);
    let mut problems = Vec::new();
    let mut records = Vec::new();
    match read_intact(&dir.journal()) {
        Ok((content, damage)) => {
            if let Some(damage) = damage {
                problems.push(format!(
                    "the journal is damaged: {damage}; what follows is not shown"
                ));
            }
            // While a process writes, its last record may be there in part.
            let running = matches!(summary.state, crate::RunState::Running { .. });
            if let Some(torn) = content.torn.filter(|_| !running) {
                problems.push(format!(
                    "the journal's last record (line {}, at byte {}) was cut when the process stopped; resuming removes it",
                    torn.line, torn.offset
                ));
            }
            records = content.records;
        }
        Err(_) if summary.state == crate::RunState::NeverStarted => {}
        Err(error) => problems.push(error.to_string()),
    }
    if summary.state == crate::RunState::NeverStarted {
        problems = vec![no_header(dir).to_string()];
    }
    let header = match records.first().map(|record| &record.body) {
        Some(RecordBody::Header(header)) => Some((**header).clone()),
        _ => None,
    };
    let values = ValueStore::at(&dir.values());
    let stored = header
        .as_ref()
        .and_then(|header| match stored_bundle(dir, &values, header, &records) {
            Ok(stored) => Some(stored),
            Err(error) => {
                problems.push(format!("what the run executes can't be read: {error}"));
                None
            }
        });
    let (bundle, changed) = stored.unzip();
    StoredRun {
        dir: dir.clone(),
        values,
        summary,
        header,
        bundle,
        changed: changed.unwrap_or(0),
        records,
        problems,
    }
}
