//! A run as a whole: starting one, taking one up again, looking at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, Digest, EffectId, Header, JournalRecord, Name, Outcome, RecordBody, RunId, RunOptions, RunStatus,
    StmtId, Usage, Value,
};
use serde::{Deserialize, Serialize};

use crate::error::io;
use crate::fs::{
    Sync, create_dir, read_file, remove_temporaries, remove_temporaries_below, sync_dir, write_atomic,
};
use crate::layout::FOLDERS;
use crate::references::references;
use crate::{
    Bindings, Clock, Journal, JournalContent, Result, RunDir, RunIds, RunLock, StateError, TornTail,
    ValueStore, digest_of, lock_owner, read_journal,
};

/// What a new run is started with.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The program's path, as shown to a person.
    pub program: String,
    /// What is executed.
    pub bundle: Arc<Bundle>,
    /// Values supplied for inputs; those over the inline limit are stored.
    pub inputs: IndexMap<String, Value>,
    /// Options that a resume keeps.
    pub options: RunOptions,
    /// Version of the engine.
    pub engine: String,
}

/// A run that this process owns.
pub struct Run {
    /// Its directory.
    pub dir: RunDir,
    /// Its journal.
    pub journal: Arc<Journal>,
    /// Its values.
    pub values: ValueStore,
    /// Its binding files.
    pub bindings: Bindings,
    /// Its fixed facts.
    pub header: Header,
    /// What it executes.
    pub bundle: Arc<Bundle>,
    /// Number of this ownership, from 1; an outcome under another lease comes from an earlier owner.
    pub lease: u64,
    /// When the run was first started, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// None when the run is in memory.
    _lock: Option<RunLock>,
}

/// What an earlier process left of a run.
#[derive(Debug)]
pub struct Recovered {
    /// All records, header included, without this process's lease.
    pub records: Vec<JournalRecord>,
    /// How many of them are from before the program was last changed; 0 when it never was.
    pub changed: usize,
    /// A last record that was cut because it was unfinished.
    pub torn: Option<TornTail>,
    /// Values supplied for inputs after the start, the latest of each name.
    pub inputs: IndexMap<Name, Value>,
    /// Effects without an outcome, in issue order; among them such as a cancelled scope has made irrelevant, which
    /// the replayed machine tells.
    pub pending: Vec<PendingEffect>,
    /// How the run ended, when its last owner ended it.
    pub ended: Option<RunStatus>,
}

/// An effect that was asked for and has no outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingEffect {
    /// The effect.
    pub id: EffectId,
    /// Where.
    pub stmt: StmtId,
    /// `session`, `judge` …
    pub kind: String,
    /// Position in the issue order.
    pub order: u64,
    /// Digest of what is asked.
    pub hash: Digest,
    /// Digest of the memory the session reads.
    pub memory: Option<Digest>,
    /// The backend that took it up last, with its lease and what it needs to find it again.
    pub started: Option<(u64, String, Option<serde_json::Value>)>,
}

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
    /// It has no journal: another OpenProse tool made it.
    Foreign,
}

impl Run {
    /// A run in memory: nothing of it is on disk, now or later, and it has no directory.
    pub fn in_memory(new: NewRun, clock: Arc<dyn Clock>, ids: &dyn RunIds) -> Result<Run> {
        let started_ms = clock.now_ms();
        let dir = RunDir::nowhere();
        let values = ValueStore::in_memory();
        let inputs = new
            .inputs
            .iter()
            .map(|(name, value)| Ok((name.clone(), values.externalize(value)?)))
            .collect::<Result<_>>()?;
        let header = Header {
            run_id: crate::clock::run_id(started_ms, &ids.random6()),
            program: new.program,
            bundle: new.bundle.digest.clone(),
            bundle_bytes: None,
            sources: sources(&new.bundle),
            engine: new.engine,
            inputs,
            options: new.options,
        };
        Ok(Run {
            bindings: Bindings::new(dir.clone(), values.clone()),
            dir,
            journal: Arc::new(Journal::nowhere(clock)),
            values,
            header,
            bundle: new.bundle,
            lease: 1,
            started_ms,
            _lock: None,
        })
    }

    /// Creates a run below `project_root`: directory, lock, bundle, program text, header and first lease, all on disk
    /// when this returns.
    pub fn create(project_root: &Path, new: NewRun, clock: Arc<dyn Clock>, ids: &dyn RunIds) -> Result<Run> {
        let (dir, run_id, lock) = RunDir::create(project_root, &*clock, ids)?;
        let path = dir.path().to_owned();
        Run::fill(dir, run_id, lock, new, clock).inspect_err(|_| {
            // Nothing ran: what would stay is a folder that looks like a run. That it goes is not promised.
            let _ = std::fs::remove_dir_all(path);
        })
    }

    /// Puts into a new run's directory what has to be there before anything runs.
    fn fill(dir: RunDir, run_id: RunId, lock: RunLock, new: NewRun, clock: Arc<dyn Clock>) -> Result<Run> {
        let values = ValueStore::open(&dir.values())?;
        let bundle = encode_bundle(&new.bundle)?;
        let bundle_bytes = Some(digest_of(&bundle));
        write_atomic(&dir.bundle(), &bundle, Sync::Durable, "bundle")?;
        write_atomic(
            &dir.program(&[])?.program(),
            entry_text(&new.bundle).as_bytes(),
            Sync::Durable,
            "program",
        )?;
        let inputs = new
            .inputs
            .iter()
            .map(|(name, value)| Ok((name.clone(), values.externalize(value)?)))
            .collect::<Result<_>>()?;
        let header = Header {
            run_id,
            program: new.program,
            bundle: new.bundle.digest.clone(),
            bundle_bytes,
            sources: sources(&new.bundle),
            engine: new.engine,
            inputs,
            options: new.options,
        };
        let started_ms = clock.now_ms();
        let journal = Journal::create(&dir.journal(), clock)?;
        // IMPORTANT: bundle and values are on disk before the header that names them.
        journal.append_all_durable([
            RecordBody::Header(Box::new(header.clone())),
            RecordBody::Lease {
                lease: 1,
                pid: std::process::id(),
            },
        ])?;
        sync_dir(dir.path())?;
        let bindings = Bindings::new(dir.clone(), values.clone());
        let (journal, bundle) = (Arc::new(journal), new.bundle);
        Ok(Run {
            dir,
            journal,
            values,
            bindings,
            header,
            bundle,
            lease: 1,
            started_ms,
            _lock: Some(lock),
        })
    }

    /// Takes up a run that stopped, crashed or waits: lock, checked journal, bundle, the next lease. Whether a run
    /// that ended may go on is the caller's to decide, see [`Recovered::ended`].
    pub fn open(dir: RunDir, clock: Arc<dyn Clock>) -> Result<(Run, Recovered)> {
        Run::open_or(dir, clock, None)
    }

    /// The same, where the program as it is now may take the place of a bundle that is lost: by itself when it is what the
    /// run executed, else as [`Run::change_program`] does, unless the run is over.
    pub fn open_or(
        dir: RunDir,
        clock: Arc<dyn Clock>,
        instead: Option<&Arc<Bundle>>,
    ) -> Result<(Run, Recovered)> {
        let lock = dir.lock()?;
        let path = dir.journal();
        if !path.exists() {
            return Err(no_header(&dir));
        }
        let (journal, content) = Journal::open(&path, clock)?;
        let Some(RecordBody::Header(header)) = content.records.first().map(|record| &record.body) else {
            return Err(no_header(&dir));
        };
        let header = (**header).clone();
        let values = ValueStore::open(&dir.values())?;
        for (digest, what) in references(&content.records) {
            values.verify(&digest).map_err(|error| lost(&dir, error, &what))?;
        }
        let over = matches!(
            ended(&content.records),
            Some(RunStatus::Completed | RunStatus::Cancelled)
        );
        let mut replaced = None;
        let (bundle, changed) = match (stored_bundle(&dir, &values, &header, &content.records), instead) {
            (Err(StateError::BundleDamaged { .. }), Some(bundle)) if is_started_with(&header, bundle)? => {
                restore_bundle(&dir, &encode_bundle(bundle)?)?;
                (bundle.clone(), 0)
            }
            (Err(StateError::BundleDamaged { .. }), Some(bundle)) if !over => {
                replaced = Some(bundle.clone());
                (bundle.clone(), content.records.len())
            }
            (stored, _) => stored?,
        };
        if let Some((_, digest)) = accepted(&content.records) {
            restore_bundle(&dir, &values.get(digest)?)?;
        }
        restore_program(&dir, &bundle)?;
        for folder in FOLDERS {
            create_dir(&dir.path().join(folder))?;
        }
        remove_temporaries(dir.path());
        for folder in FOLDERS.iter().filter(|name| **name != "staging") {
            remove_temporaries_below(&dir.path().join(folder));
        }
        let started_ms = content
            .records
            .first()
            .and_then(|record| crate::clock::parse_ms(&record.ts))
            .unwrap_or(0);
        let lease = last_lease(&content.records) + 1;
        journal.append_durable(RecordBody::Lease {
            lease,
            pid: std::process::id(),
        })?;
        let bindings = Bindings::new(dir.clone(), values.clone());
        let mut run = Run {
            dir,
            journal: Arc::new(journal),
            values,
            bindings,
            header,
            bundle,
            lease,
            started_ms,
            _lock: Some(lock),
        };
        let mut recovered = recover(content, changed);
        if let Some(bundle) = replaced {
            run.change_program(bundle, false)?;
            recovered.ended = None;
        }
        Ok((run, recovered))
    }

    /// Goes on with a changed program, which is on disk with its record when this returns. With `retry_failed`, what failed
    /// so far for a reason that passes is no answer any more; the program may be the same then.
    pub fn change_program(&mut self, bundle: Arc<Bundle>, retry_failed: bool) -> Result<()> {
        let bytes = encode_bundle(&bundle)?;
        // IMPORTANT: among the values before the record that names it; the files outside are copies.
        let bundle_bytes = self.values.put(&bytes)?;
        self.journal.append_durable(RecordBody::Program {
            bundle: bundle.digest.clone(),
            bundle_bytes,
            retry_failed,
        })?;
        restore_bundle(&self.dir, &bytes)?;
        restore_program(&self.dir, &bundle)?;
        self.bundle = bundle;
        Ok(())
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.header.run_id
    }
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
            summaries.push(run_summary(&RunDir::at(&path)?));
        }
    }
    summaries.sort_by(|a, b| age(b).cmp(&age(a)));
    Ok(summaries)
}

/// Says how a run stands; changes nothing, also while the run goes on.
pub fn run_summary(dir: &RunDir) -> RunSummary {
    let name = dir
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut summary = RunSummary {
        id: RunId::from(name),
        dir: dir.path().to_owned(),
        program: String::new(),
        backend: String::new(),
        started: None,
        updated: None,
        state: RunState::Foreign,
        sessions_done: 0,
        sessions: 0,
        usage: Usage::default(),
        active_ms: 0,
    };
    let journal = dir.journal();
    if !journal.exists() && !dir.values().exists() {
        return summary;
    }
    // IMPORTANT: the lock is looked at first. The other way round, a run that ends in between seems interrupted.
    let owner = lock_owner(dir).unwrap_or_default();
    let content = match read_journal(&journal) {
        Ok(content) if !content.records.is_empty() => content,
        Err(error) if journal.exists() => {
            if let Ok((content, _)) = crate::journal::read_intact(&journal) {
                tally(&mut summary, &content.records);
            }
            summary.state = RunState::Unreadable {
                reason: error.to_string(),
            };
            return summary;
        }
        // Being made at this moment, or left half made.
        Ok(_) | Err(_) => {
            summary.state = match owner {
                Some(pid) => RunState::Running { pid },
                None => RunState::Unreadable {
                    reason: no_header(dir).to_string(),
                },
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

/// Why a run has no header: it stopped before it could be written, or it had one and its journal is lost, which the files
/// show that are written later.
pub fn no_header(dir: &RunDir) -> StateError {
    let path = dir.path().to_owned();
    let bindings = path.join("bindings");
    let is_bound = std::fs::read_dir(&bindings).is_ok_and(|mut entries| entries.next().is_some());
    if is_bound || path.join("state.md").exists() {
        StateError::JournalLost { path }
    } else {
        StateError::NoHeader { path }
    }
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

/// The time from each lease to the last record under it, in milliseconds.
pub(crate) fn active_ms(records: &[JournalRecord]) -> u64 {
    let mut total = 0;
    let mut span: Option<(i64, i64)> = None;
    for record in records {
        let Some(at) = crate::clock::parse_ms(&record.ts) else {
            continue;
        };
        match (&record.body, &mut span) {
            (RecordBody::Header(_), None) => span = Some((at, at)),
            (RecordBody::Lease { lease, .. }, Some((from, to))) if *lease > 1 => {
                total += to.saturating_sub(*from);
                span = Some((at, at));
            }
            (_, Some((_, to))) => *to = at.max(*to),
            (_, None) => span = Some((at, at)),
        }
    }
    let last = span.map_or(0, |(from, to)| to.saturating_sub(from));
    u64::try_from(total + last).unwrap_or(0)
}

/// Says which value is lost, where it was needed.
fn lost(dir: &RunDir, error: StateError, what: &str) -> StateError {
    let (digest, damaged) = match error {
        StateError::ValueMissing { digest, .. } => (digest, false),
        StateError::ValueDamaged { digest, .. } => (digest, true),
        error => return error,
    };
    StateError::ValueLost {
        run: dir.path().to_owned(),
        digest,
        what: what.to_owned(),
        damaged,
    }
}

fn recover(content: JournalContent, changed: usize) -> Recovered {
    let mut inputs = IndexMap::new();
    let mut pending: IndexMap<EffectId, PendingEffect> = IndexMap::new();
    for record in &content.records {
        match &record.body {
            RecordBody::Input { name, value } => {
                inputs.insert(name.clone(), value.clone());
            }
            RecordBody::Issued {
                id,
                stmt,
                kind,
                order,
                hash,
                memory,
            } => {
                let effect = PendingEffect {
                    id: id.clone(),
                    stmt: stmt.clone(),
                    kind: kind.clone(),
                    order: *order,
                    hash: hash.clone(),
                    memory: memory.clone(),
                    started: None,
                };
                pending.insert(id.clone(), effect);
            }
            RecordBody::Started {
                id,
                lease,
                backend,
                handle,
            } => {
                if let Some(effect) = pending.get_mut(id) {
                    effect.started = Some((*lease, backend.clone(), handle.clone()));
                }
            }
            RecordBody::Outcome { id, .. } => {
                pending.shift_remove(id);
            }
            RecordBody::Header(_)
            | RecordBody::Lease { .. }
            | RecordBody::Program { .. }
            | RecordBody::Spent { .. }
            | RecordBody::Budget { .. }
            | RecordBody::Child { .. }
            | RecordBody::Cancel { .. }
            | RecordBody::End { .. } => {}
        }
    }
    let mut pending: Vec<PendingEffect> = pending.into_values().collect();
    pending.sort_by_key(|effect| effect.order);
    let ended = ended(&content.records);
    Recovered {
        changed,
        ended,
        inputs,
        pending,
        torn: content.torn,
        records: content.records,
    }
}

/// How the last owner ended the run.
fn ended(records: &[JournalRecord]) -> Option<RunStatus> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::End { status } => Some(Some(*status)),
        RecordBody::Lease { .. } => Some(None),
        _ => None,
    })?
}

fn last_lease(records: &[JournalRecord]) -> u64 {
    let leases = records.iter().map(|record| match &record.body {
        RecordBody::Lease { lease, .. }
        | RecordBody::Started { lease, .. }
        | RecordBody::Child { lease, .. }
        | RecordBody::Outcome { lease, .. } => *lease,
        _ => 0,
    });
    leases.max().unwrap_or(0)
}

fn usage(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Session(session) => session.usage,
        Outcome::Failed(failure) => failure.usage,
        Outcome::Verdict(verdict) => verdict.usage,
        Outcome::Decoded { .. } | Outcome::Input { .. } | Outcome::Slept | Outcome::Cancelled => {
            Usage::default()
        }
    }
}

/// The bundle's bytes. What we can't read back must not be run: the run could never be taken up again.
fn encode_bundle(bundle: &Bundle) -> Result<Vec<u8>> {
    let unserializable = |reason: String| StateError::Unserializable { reason };
    let bytes = serde_json::to_vec(bundle).map_err(|error| unserializable(error.to_string()))?;
    match parse_bundle(&bytes) {
        Ok(read) if read == *bundle => Ok(bytes),
        Ok(_) => Err(unserializable("the bundle reads back differently".to_owned())),
        Err(reason) => Err(unserializable(reason)),
    }
}

/// Digests of all texts, the entry's first.
fn sources(bundle: &Bundle) -> IndexMap<String, Digest> {
    let entry = bundle
        .programs
        .get(bundle.entry)
        .map_or(0, |program| program.file as usize);
    let (first, others): (Vec<_>, Vec<_>) = bundle
        .files
        .iter()
        .enumerate()
        .partition(|(index, _)| *index == entry);
    let all = first.into_iter().chain(others);
    all.map(|(_, file)| (file.path.clone(), file.digest.clone()))
        .collect()
}

/// What a run executes, and how many of its records are from before that was changed.
pub(crate) fn stored_bundle(
    dir: &RunDir,
    values: &ValueStore,
    header: &Header,
    records: &[JournalRecord],
) -> Result<(Arc<Bundle>, usize)> {
    match accepted(records) {
        Some((changed, digest)) => {
            let bundle = parse_bundle(&values.get(digest)?).map_err(|reason| StateError::BundleDamaged {
                path: dir.values().join(digest.as_str()),
                reason,
            })?;
            Ok((Arc::new(bundle), changed))
        }
        None => Ok((read_bundle(dir, header)?, 0)),
    }
}

/// The last change of the program: how many records are from before it, and the new bundle among the values.
fn accepted(records: &[JournalRecord]) -> Option<(usize, &Digest)> {
    let mut records = records.iter().enumerate().rev();
    records.find_map(|(at, record)| match &record.body {
        RecordBody::Program { bundle_bytes, .. } => Some((at + 1, bundle_bytes)),
        _ => None,
    })
}

/// Whether that is the very bundle that the run was started with.
fn is_started_with(header: &Header, bundle: &Bundle) -> Result<bool> {
    let digest = Some(digest_of(&encode_bundle(bundle)?));
    Ok(header.bundle == bundle.digest
        && header
            .bundle_bytes
            .as_ref()
            .is_none_or(|bytes| Some(bytes) == digest.as_ref()))
}

/// Writes a bundle beside the journal, where it is missing or another.
fn restore_bundle(dir: &RunDir, bytes: &[u8]) -> Result<()> {
    let path = dir.bundle();
    if read_file(&path).ok().as_deref() != Some(bytes) {
        write_atomic(&path, bytes, Sync::Durable, "bundle")?;
    }
    Ok(())
}

/// Writes the program's text beside the journal, where it is missing or another.
fn restore_program(dir: &RunDir, bundle: &Bundle) -> Result<()> {
    let path = dir.program(&[])?.program();
    let text = entry_text(bundle).as_bytes();
    if read_file(&path).ok().as_deref() != Some(text) {
        write_atomic(&path, text, Sync::Durable, "program")?;
    }
    Ok(())
}

fn read_bundle(dir: &RunDir, header: &Header) -> Result<Arc<Bundle>> {
    let path = dir.bundle();
    let bad = |reason: String| StateError::BundleDamaged {
        path: path.clone(),
        reason,
    };
    let bytes = read_file(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => bad("the file is missing".to_owned()),
        _ => bad(format!("it can't be read: {error}")),
    })?;
    let bundle = parse_bundle(&bytes).map_err(bad)?;
    if bundle.digest != header.bundle {
        return Err(bad(format!(
            "this is bundle {}, but the run was started with {}",
            bundle.digest, header.bundle
        )));
    }
    if header
        .bundle_bytes
        .as_ref()
        .is_some_and(|digest| *digest != digest_of(&bytes))
    {
        return Err(bad("it was changed since the run was started".to_owned()));
    }
    Ok(Arc::new(bundle))
}

/// Deepest nesting of brackets in a bundle. An expression may nest 100 levels, each of which takes up to seven of
/// JSON; the rest is for statements around it.
const BUNDLE_NESTING: usize = 1500;

/// Stack for reading that: a level takes less than 8 KiB, also without optimisation.
const BUNDLE_STACK: usize = 32 << 20;

/// Reads a bundle, however deep its expressions are; says why it can't be read.
fn parse_bundle(bytes: &[u8]) -> std::result::Result<Bundle, String> {
    if nesting(bytes) > BUNDLE_NESTING {
        return Err(format!("nested deeper than {BUNDLE_NESTING} levels"));
    }
    let parse = || {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        json.disable_recursion_limit();
        let bundle = Bundle::deserialize(&mut json).map_err(|error| error.to_string())?;
        json.end().map_err(|error| error.to_string())?;
        Ok(bundle)
    };
    // The caller's stack may be a small one, and reading recurses.
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new()
            .name("read bundle".to_owned())
            .stack_size(BUNDLE_STACK)
            .spawn_scoped(scope, parse)
            .map_err(|error| error.to_string())?;
        reader
            .join()
            .unwrap_or_else(|_| Err("its reader stopped".to_owned()))
    })
}

/// How deep brackets nest in a JSON text. Of a text that is no JSON the answer is at least as deep as a reader gets.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => _ = bytes.next(),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

fn entry_text(bundle: &Bundle) -> &str {
    let file = bundle
        .programs
        .get(bundle.entry)
        .map_or(0, |program| program.file as usize);
    bundle.files.get(file).map_or("", |file| &file.text)
}
