//! A run as a whole: starting one, taking one up again.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, Digest, EffectId, Header, JournalRecord, Name, Outcome, RecordBody, RunId, RunOptions, RunStatus,
    StmtId, Usage, Value,
};
use serde::Deserialize;

use crate::error::io;
use crate::fs::{
    Sync, create_dir, expect_folder, read_file, remove_temporaries, remove_temporaries_below, sync_dir,
    write_atomic, write_changed,
};
use crate::journal::JournalEnd;
use crate::layout::FOLDERS;
use crate::references::references;
use crate::{
    Bindings, Clock, Journal, JournalContent, Result, RunDir, RunIds, RunLock, StateError, TornTail,
    ValueStore, digest_of, lock_owner, no_header, read_journal,
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
    /// None when the run is in memory, or at rest without a lock file.
    lock: Option<RunLock>,
    /// What is needed to take it up, as long as it is at rest.
    rest: Option<Rest>,
}

/// What a run that is at rest is taken up with.
struct Rest {
    clock: Arc<dyn Clock>,
    end: JournalEnd,
    /// The bundle's bytes, where others may lie beside the journal.
    bundle: Option<Vec<u8>>,
    /// Whether the program as it is now takes the place of a lost bundle.
    replaced: bool,
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
            lock: None,
            rest: None,
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
            lock: Some(lock),
            rest: None,
        })
    }

    /// Takes up a run that stopped, crashed or waits: lock, checked journal, bundle, the next lease. Whether a run
    /// that ended may go on is the caller's to decide, see [`Recovered::ended`].
    pub fn open(dir: RunDir, clock: Arc<dyn Clock>) -> Result<(Run, Recovered)> {
        Run::open_or(dir, clock, None)
    }

    /// The same, with a program as for [`Run::at_rest`].
    pub fn open_or(
        dir: RunDir,
        clock: Arc<dyn Clock>,
        instead: Option<&Arc<Bundle>>,
    ) -> Result<(Run, Recovered)> {
        let (mut run, recovered) = Run::at_rest(dir, clock, instead)?;
        run.take_up()?;
        Ok((run, recovered))
    }

    /// A run as it lies there, read and checked, so that no other process takes it meanwhile. Nothing is written: what is
    /// appended to its journal is only counted, until it is [taken up](Run::take_up).
    ///
    /// The program as it is now may take the place of a bundle that is lost: by itself when it is what the run executed, else
    /// as [`Run::change_program`] does, unless the run is over.
    pub fn at_rest(
        dir: RunDir,
        clock: Arc<dyn Clock>,
        instead: Option<&Arc<Bundle>>,
    ) -> Result<(Run, Recovered)> {
        let path = dir.journal();
        if matches!(path.try_exists(), Ok(false)) {
            // Somebody may just be making it.
            return Err(match lock_owner(&dir)? {
                Some(pid) => StateError::Locked {
                    run: dir.path().to_owned(),
                    pid,
                },
                None => no_header(&dir),
            });
        }
        let lock = dir.hold()?;
        let content = read_journal(&path)?;
        let Some(RecordBody::Header(header)) = content.records.first().map(|record| &record.body) else {
            return Err(no_header(&dir));
        };
        let header = (**header).clone();
        expect_folder(&dir.values())?;
        let values = ValueStore::at(&dir.values());
        for (digest, what) in references(&content.records) {
            values.verify(&digest).map_err(|error| lost(&dir, error, &what))?;
        }
        let over = matches!(
            ended(&content.records),
            Some(RunStatus::Completed | RunStatus::Cancelled)
        );
        let mut replaced = false;
        let stored = stored_bundle(&dir, &values, &header, &content.records);
        let mut bundle_bytes = None;
        let (bundle, changed) = match (stored, instead) {
            (Err(StateError::BundleDamaged { .. }), Some(bundle)) if is_started_with(&header, bundle)? => {
                bundle_bytes = Some(encode_bundle(bundle)?);
                (bundle.clone(), 0)
            }
            (Err(StateError::BundleDamaged { .. }), Some(bundle)) if !over => {
                replaced = true;
                (bundle.clone(), content.records.len())
            }
            (stored, _) => stored?,
        };
        if let Some((_, digest)) = accepted(&content.records) {
            bundle_bytes = Some(values.get(digest)?);
        }
        let started_ms = content
            .records
            .first()
            .and_then(|record| crate::clock::parse_ms(&record.ts))
            .unwrap_or(0);
        let run = Run {
            journal: Arc::new(Journal::at_rest(&path, &content, clock.clone())),
            bindings: Bindings::new(dir.clone(), values.clone()),
            dir,
            values,
            header,
            bundle,
            lease: last_lease(&content.records),
            started_ms,
            lock,
            rest: Some(Rest {
                clock,
                end: JournalEnd::of(&content),
                bundle: bundle_bytes,
                replaced,
            }),
        };
        let mut recovered = recover(content, changed);
        if replaced {
            recovered.ended = None;
        }
        Ok((run, recovered))
    }

    /// Takes a run for this process that was [at rest](Run::at_rest): the next lease is on disk when this returns.
    pub fn take_up(&mut self) -> Result<()> {
        let Some(rest) = self.rest.take() else {
            return Ok(());
        };
        let path = self.dir.journal();
        match &mut self.lock {
            Some(lock) => lock.sign()?,
            None => {
                self.lock = Some(self.dir.lock()?);
                // There was nothing to hold it by: somebody else may have gone on with it.
                let len = std::fs::metadata(&path).map_err(io("read", &path))?.len();
                if len != rest.end.len() {
                    return Err(StateError::Locked {
                        run: self.dir.path().to_owned(),
                        pid: None,
                    });
                }
            }
        }
        self.restore(&rest)?;
        let journal = Journal::go_on(&path, &rest.end, rest.clock)?;
        let lease = self.lease + 1;
        journal.append_durable(RecordBody::Lease {
            lease,
            pid: std::process::id(),
        })?;
        self.journal = Arc::new(journal);
        self.lease = lease;
        match rest.replaced {
            true => self.change_program(self.bundle.clone(), false),
            false => Ok(()),
        }
    }

    /// Puts back what is missing of the files beside the journal. Where all is as it should be, nothing is written.
    pub fn mend(&self) -> Result<()> {
        match &self.rest {
            Some(rest) => self.restore(rest),
            None => Ok(()),
        }
    }

    fn restore(&self, rest: &Rest) -> Result<()> {
        self.dir.expect_folders()?;
        if let Some(bytes) = &rest.bundle {
            restore_bundle(&self.dir, bytes)?;
        }
        restore_program(&self.dir, &self.bundle)?;
        for folder in FOLDERS {
            create_dir(&self.dir.path().join(folder))?;
        }
        // Only who has the run may: to others they may be files that are being written. A run that is over can have some, too,
        // since its files are written once more behind the last record.
        if self.lock.is_some() {
            remove_temporaries(self.dir.path());
            for folder in FOLDERS.iter().filter(|name| **name != "staging") {
                remove_temporaries_below(&self.dir.path().join(folder));
            }
        }
        Ok(())
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
pub(crate) fn ended(records: &[JournalRecord]) -> Option<RunStatus> {
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

pub(crate) fn usage(outcome: &Outcome) -> Usage {
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
    write_changed(&dir.bundle(), bytes, Sync::Durable, "bundle")
}

/// Writes the program's text beside the journal, where it is missing or another.
fn restore_program(dir: &RunDir, bundle: &Bundle) -> Result<()> {
    let path = dir.program(&[])?.program();
    write_changed(&path, entry_text(bundle).as_bytes(), Sync::Durable, "program")
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
