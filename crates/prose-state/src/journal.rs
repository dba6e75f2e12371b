//! `journal.jsonl`: one record a line, numbered, checksummed, only ever appended to.
//!
//! A line is `{"v":1,"seq":0,"ts":"…","crc":"xxxxxxxx","t":…}`. `crc` is the CRC-32C, in eight lower-case hexadecimal
//! digits, of the line's bytes as they are without `"crc":"xxxxxxxx",` and without the newline.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prose_model::{JOURNAL_VERSION, JournalRecord, Outcome, RecordBody, Usage, Value};
use serde::Serialize;

use crate::error::io;
use crate::fs::{read_file, sync_dir};
use crate::{Clock, Damage, Result, StateError, failpoint, format_millis};

/// The open journal of a run; shared by reference between threads.
pub struct Journal {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: Mutex<Writer>,
    /// Records known to be on disk. IMPORTANT: taken before `writer`, never while holding it.
    synced: Mutex<u64>,
    /// A second handle, so that a sync does not keep others from appending; none when nothing is kept.
    sync_handle: Option<File>,
    /// Which file it is that is open: device and number.
    identity: Option<(u64, u64)>,
}

/// While records are written without a sync, it is looked so often whether the file is where it was, in milliseconds.
const LOOK_EVERY: u64 = 100;

/// What a journal holds.
#[derive(Debug)]
pub struct JournalContent {
    /// All intact records, in order.
    pub records: Vec<JournalRecord>,
    /// What was at the end and is no whole record.
    pub torn: Option<TornTail>,
    /// Length in bytes of the intact part.
    pub intact: u64,
}

/// The remains of a record that was being written when the process or the machine stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornTail {
    /// The line, from 1.
    pub line: u64,
    /// Where it starts.
    pub offset: u64,
    /// How many bytes there are.
    pub len: u64,
}

struct Writer {
    /// None when records are only counted.
    file: Option<File>,
    /// Records written, which is also the next number.
    next: u64,
    /// Length of the file.
    bytes: u64,
    poisoned: bool,
    /// When the file was last seen where it belongs, in milliseconds since the Unix epoch.
    seen_ms: i64,
}

impl Journal {
    /// Creates an empty journal; file and folder entry are on disk when this returns.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another process has it already.
    pub fn create(path: &Path, clock: Arc<dyn Clock>) -> Result<Journal> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(io("create", path))?;
        keep_others_out(path, &file)?;
        file.sync_all().map_err(io("sync", path))?;
        if let Some(parent) = path.parent() {
            sync_dir(parent)?;
        }
        failpoint::hit("journal", "created");
        Journal::with(path, file, 0, 0, clock)
    }

    /// A journal that keeps nothing and only counts: for a run whose state is in memory.
    pub fn nowhere(clock: Arc<dyn Clock>) -> Journal {
        Journal::counting(PathBuf::new(), 0, clock)
    }

    /// The journal of a run that is only looked at: nothing is written to it, and what is appended is only counted.
    pub(crate) fn at_rest(path: &Path, content: &JournalContent, clock: Arc<dyn Clock>) -> Journal {
        Journal::counting(path.to_owned(), content.records.len() as u64, clock)
    }

    fn counting(path: PathBuf, next: u64, clock: Arc<dyn Clock>) -> Journal {
        let seen_ms = clock.now_ms();
        Journal {
            path,
            clock,
            writer: Mutex::new(Writer {
                file: None,
                next,
                bytes: 0,
                poisoned: false,
                seen_ms,
            }),
            synced: Mutex::new(next),
            sync_handle: None,
            identity: None,
        }
    }

    /// Opens a journal to go on with it: checks every record, and cuts a torn last one.
    ///
    /// # Errors
    /// [`StateError::JournalDamaged`] names line and byte when a record before the last can't be trusted; the file is
    /// left as it is.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<(Journal, JournalContent)> {
        let content = read_journal(path)?;
        let end = JournalEnd::of(&content);
        Ok((Journal::go_on(path, &end, clock)?, content))
    }

    /// Opens a journal that was read and checked, to go on with it; cuts a torn last record.
    pub(crate) fn go_on(path: &Path, end: &JournalEnd, clock: Arc<dyn Clock>) -> Result<Journal> {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(io("open", path))?;
        keep_others_out(path, &file)?;
        if let Some(torn) = end.torn {
            tracing::info!(path = %path.display(), ?torn, "cut an unfinished journal record");
            file.set_len(end.intact).map_err(io("truncate", path))?;
            failpoint::hit("journal", "cut");
        }
        // Also what an earlier process wrote without a sync counts from now on, so it has to be on disk.
        file.sync_all().map_err(io("sync", path))?;
        Journal::with(path, file, end.records, end.intact, clock)
    }

    fn with(path: &Path, file: File, next: u64, bytes: u64, clock: Arc<dyn Clock>) -> Result<Journal> {
        let sync_handle = Some(file.try_clone().map_err(io("open", path))?);
        let identity = identity(&file.metadata().map_err(io("open", path))?);
        let seen_ms = clock.now_ms();
        let writer = Writer {
            file: Some(file),
            next,
            bytes,
            poisoned: false,
            seen_ms,
        };
        Ok(Journal {
            path: path.to_owned(),
            clock,
            writer: Mutex::new(writer),
            synced: Mutex::new(next),
            sync_handle,
            identity,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records there are, on disk or not.
    pub fn len(&self) -> u64 {
        lock(&self.writer).next
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a record with one write and returns its number. It is on disk only after [`Journal::sync`].
    pub fn append(&self, body: RecordBody) -> Result<u64> {
        let mut writer = lock(&self.writer);
        self.write(&mut writer, body)
    }

    /// Appends a record and waits until it is on disk. Threads that wait at the same time share one sync.
    pub fn append_durable(&self, body: RecordBody) -> Result<u64> {
        let seq = self.append(body)?;
        self.sync_to(seq + 1)?;
        Ok(seq)
    }

    /// Appends records in order, then waits once for all of them; returns the number of the first.
    pub fn append_all_durable(&self, bodies: impl IntoIterator<Item = RecordBody>) -> Result<u64> {
        let (first, next) = {
            let mut writer = lock(&self.writer);
            let first = writer.next;
            for body in bodies {
                self.write(&mut writer, body)?;
            }
            (first, writer.next)
        };
        self.sync_to(next)?;
        Ok(first)
    }

    /// Waits until all that was appended is on disk.
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.len())
    }

    /// Waits until records below `next` are on disk.
    fn sync_to(&self, next: u64) -> Result<()> {
        let mut synced = lock(&self.synced);
        if *synced >= next {
            return Ok(());
        }
        // Everything written before the sync starts is covered by it, not only our own record.
        let covered = {
            let writer = lock(&self.writer);
            if writer.poisoned {
                return Err(self.poisoned());
            }
            writer.next
        };
        let Some(file) = &self.sync_handle else {
            *synced = covered;
            return Ok(());
        };
        failpoint::hit("journal", "unsynced");
        if let Err(error) = file.sync_data() {
            // After a failed sync the system may have dropped the pages: a later success would prove nothing.
            lock(&self.writer).poisoned = true;
            return Err(io("sync", &self.path)(error));
        }
        // A record in a file that nobody can find again is not kept, and what it is about must not be acted on.
        let mut writer = lock(&self.writer);
        if let Err(gone) = self.look(file).and_then(|()| self.measure(file, writer.bytes)) {
            writer.poisoned = true;
            return Err(gone);
        }
        drop(writer);
        *synced = covered;
        failpoint::hit("journal", "synced");
        Ok(())
    }

    fn write(&self, writer: &mut Writer, body: RecordBody) -> Result<u64> {
        if writer.poisoned {
            return Err(self.poisoned());
        }
        let seq = writer.next;
        if writer.file.is_none() {
            writer.next += 1;
            return Ok(seq);
        }
        let now_ms = self.clock.now_ms();
        let record = JournalRecord {
            v: JOURNAL_VERSION,
            seq,
            ts: format_millis(now_ms),
            body,
        };
        let line = encode(&record)?;
        failpoint::hit("journal", "begin");
        if let Some(file) = &mut writer.file {
            // Before each record: one that follows on a gap would make the rest unreadable too.
            if let Err(altered) = self.measure(file, writer.bytes) {
                writer.poisoned = true;
                return Err(altered);
            }
            if now_ms.abs_diff(writer.seen_ms) >= LOOK_EVERY {
                if let Err(gone) = self.look(file) {
                    writer.poisoned = true;
                    return Err(gone);
                }
                writer.seen_ms = now_ms;
            }
            if failpoint::due("journal", "half") {
                let _ = file.write_all(&line[..line.len() / 2]);
                failpoint::abort();
            }
            if let Err(error) = file.write_all(&line) {
                // A record may be there in part; without it the journal is as before.
                writer.poisoned = file.set_len(writer.bytes).is_err();
                return Err(io("write", &self.path)(error));
            }
        }
        writer.next += 1;
        writer.bytes += line.len() as u64;
        failpoint::hit("journal", "written");
        Ok(seq)
    }

    /// Whether the open file is still the one that the run's folder has.
    ///
    /// # Errors
    /// [`StateError::JournalGone`].
    fn look(&self, file: &File) -> Result<()> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let is_there = match std::fs::metadata(&self.path) {
            Ok(facts) => identity(&facts) == self.identity,
            // What can't be looked at may well be there.
            Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
        };
        match is_there {
            true => Ok(()),
            false => Err(StateError::JournalGone {
                path: self.path.clone(),
                now: place(file),
            }),
        }
    }

    /// Whether the file is as long as this process has made it: nobody else writes into it.
    ///
    /// # Errors
    /// [`StateError::JournalAltered`].
    fn measure(&self, file: &File, written: u64) -> Result<()> {
        let found = file.metadata().map_err(io("read", &self.path))?.len();
        match found == written {
            true => Ok(()),
            false => Err(StateError::JournalAltered {
                path: self.path.clone(),
                written,
                found,
            }),
        }
    }

    fn poisoned(&self) -> StateError {
        StateError::JournalPoisoned {
            path: self.path.clone(),
        }
    }
}

/// Where a journal that was read ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalEnd {
    records: u64,
    intact: u64,
    torn: Option<TornTail>,
}

impl JournalEnd {
    pub(crate) fn of(content: &JournalContent) -> JournalEnd {
        JournalEnd {
            records: content.records.len() as u64,
            intact: content.intact,
            torn: content.torn,
        }
    }

    /// How long the file was, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.intact + self.torn.map_or(0, |torn| torn.len)
    }
}

/// Holds the journal itself as long as it is open to be written: the run's lock file can be removed, and then another process
/// would take the run for one that nobody works on. Not on Windows, where whoever reads a locked file is kept out too.
///
/// # Errors
/// [`StateError::Locked`].
fn keep_others_out(path: &Path, file: &File) -> Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match crate::layout::try_lock(file) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StateError::Locked {
            run: path.parent().unwrap_or(path).to_owned(),
            pid: None,
        }),
        Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
    }
}

/// Which file that is; none where the system has no number for it.
fn identity(facts: &std::fs::Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((facts.dev(), facts.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = facts;
        None
    }
}

/// Where an open file is now, if it is anywhere and that can be told.
fn place(file: &File) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let (open, there) = (file.metadata().ok()?, std::fs::metadata(&place).ok()?);
        ((open.dev(), open.ino()) == (there.dev(), there.ino())).then_some(place)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

/// Reads and checks a journal without changing it; also while its owner is writing.
pub fn read_journal(path: &Path) -> Result<JournalContent> {
    let bytes = read_file(path).map_err(io("read", path))?;
    decode(path, &bytes)
}

/// Reads what can be trusted of a journal: the records before the first damaged one, and what is wrong with that. For
/// looking only; a run goes on from a whole journal.
pub fn read_intact(path: &Path) -> Result<(JournalContent, Option<StateError>)> {
    let bytes = read_file(path).map_err(io("read", path))?;
    let mut records = Vec::new();
    match decode_into(path, &bytes, &mut records) {
        Ok((torn, intact)) => Ok((
            JournalContent {
                records,
                torn,
                intact,
            },
            None,
        )),
        Err(error) => {
            let intact = match &error {
                StateError::JournalDamaged { offset, .. } => *offset,
                _ => 0,
            };
            let content = JournalContent {
                records,
                torn: None,
                intact,
            };
            Ok((content, Some(error)))
        }
    }
}

/// Reads a journal that is in memory; `path` is what errors name. Any bytes are read or refused.
///
/// # Errors
/// [`StateError::JournalDamaged`] as for [`Journal::open`].
pub fn decode_journal(path: &Path, bytes: &[u8]) -> Result<JournalContent> {
    decode(path, bytes)
}

/// The line of a record as it is in the file, newline included.
///
/// # Errors
/// [`StateError::Unserializable`] for what would not read back as it is.
pub fn encode_record(record: &JournalRecord) -> Result<Vec<u8>> {
    encode(record)
}

fn decode(path: &Path, bytes: &[u8]) -> Result<JournalContent> {
    let mut records = Vec::new();
    let (torn, intact) = decode_into(path, bytes, &mut records)?;
    Ok(JournalContent {
        records,
        torn,
        intact,
    })
}

/// Decodes records in order; also where it fails, those before are in `records`.
fn decode_into(
    path: &Path,
    bytes: &[u8],
    records: &mut Vec<JournalRecord>,
) -> Result<(Option<TornTail>, u64)> {
    let mut offset = 0;
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let newline = rest.iter().position(|byte| *byte == b'\n');
        let end = newline.map_or(rest.len(), |at| at + 1);
        let line = records.len() as u64 + 1;
        let is_last = end == rest.len();
        let record = match newline {
            Some(at) => decode_line(&rest[..at], records.len() as u64),
            None => Err(Damage::Shape),
        };
        match record {
            Ok(record) => records.push(record),
            // A checksum that fits means that the record was written whole: then it isn't torn, whatever else is wrong.
            Err(Damage::Checksum | Damage::Shape) if is_last => {
                let torn = TornTail {
                    line,
                    offset: offset as u64,
                    len: rest.len() as u64,
                };
                return Ok((Some(torn), offset as u64));
            }
            Err(damage) => {
                let (path, offset) = (path.to_owned(), offset as u64);
                return Err(StateError::JournalDamaged {
                    path,
                    line,
                    offset,
                    damage,
                });
            }
        }
        offset += end;
    }
    Ok((None, bytes.len() as u64))
}

pub(crate) fn decode_line(line: &[u8], expected: u64) -> std::result::Result<JournalRecord, Damage> {
    const MEMBER: &[u8] = b"\"crc\":\"";
    const MEMBER_LEN: usize = MEMBER.len() + 8 + 2;
    // No member before `crc` can hold a quote followed by `crc`, so the first occurrence is the member.
    let at = line
        .windows(MEMBER.len())
        .position(|window| window == MEMBER)
        .ok_or(Damage::Shape)?;
    let member = line.get(at..at + MEMBER_LEN).ok_or(Damage::Shape)?;
    let (digits, closing) = member[MEMBER.len()..].split_at(8);
    if closing != b"\"," {
        return Err(Damage::Shape);
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&line[..at]), &line[at + MEMBER_LEN..]);
    if digits != format!("{crc:08x}").as_bytes() {
        return Err(Damage::Checksum);
    }
    let head: Head = serde_json::from_slice(line).map_err(|error| Damage::Unreadable(error.to_string()))?;
    if head.v != JOURNAL_VERSION {
        return Err(Damage::Version(head.v));
    }
    if head.seq != expected {
        return Err(Damage::Sequence {
            expected,
            found: head.seq,
        });
    }
    serde_json::from_slice(line).map_err(|error| Damage::Unreadable(error.to_string()))
}

#[derive(serde::Deserialize)]
struct Head {
    v: u32,
    seq: u64,
}

/// The line of a record, newline included.
fn encode(record: &JournalRecord) -> Result<Vec<u8>> {
    /// The members before `crc`, in the order of [`JournalRecord`].
    #[derive(Serialize)]
    struct Before<'a> {
        v: u32,
        seq: u64,
        ts: &'a str,
    }
    let unserializable = |reason: String| StateError::Unserializable { reason };
    let plain = serde_json::to_string(record).map_err(|error| unserializable(error.to_string()))?;
    // What we can't read back must not get in: an infinite number or a too deep list would make the run unreadable.
    if !is_plain(&record.body) {
        match serde_json::from_str::<JournalRecord>(&plain) {
            Ok(read) if read == *record => {}
            Ok(_) => return Err(unserializable("it reads back differently".to_owned())),
            Err(error) => return Err(unserializable(error.to_string())),
        }
    }
    let before = Before {
        v: record.v,
        seq: record.seq,
        ts: &record.ts,
    };
    let mut before = serde_json::to_string(&before).map_err(|error| unserializable(error.to_string()))?;
    before.pop();
    before.push(',');
    let Some(after) = plain.strip_prefix(before.as_str()) else {
        return Err(unserializable("its members are not in order".to_owned()));
    };
    let crc = crc32c::crc32c(plain.as_bytes());
    Ok(format!("{before}\"crc\":\"{crc:08x}\",{after}\n").into_bytes())
}

/// Whether a record holds only words and whole numbers, which always read back as they were. Those are nearly all records
/// of a run, and reading each again would cost more than writing it.
fn is_plain(body: &RecordBody) -> bool {
    let is_known = |usage: &Usage| usage.cost_usd.is_none_or(f64::is_finite);
    let is_word = |value: &serde_json::Value| value.is_string() || value.is_u64() || value.is_boolean();
    match body {
        RecordBody::Lease { .. }
        | RecordBody::Issued { .. }
        | RecordBody::Child { .. }
        | RecordBody::Program { .. }
        | RecordBody::Cancel { .. }
        | RecordBody::End { .. } => true,
        RecordBody::Started { handle, .. } => match handle {
            None => true,
            Some(serde_json::Value::Object(members)) => members.values().all(is_word),
            Some(_) => false,
        },
        RecordBody::Spent { usage, .. } => is_known(usage),
        RecordBody::Outcome { outcome, .. } => match outcome {
            Outcome::Session(session) => matches!(session.value, Value::Text(_)) && is_known(&session.usage),
            Outcome::Failed(failure) => is_known(&failure.usage),
            Outcome::Slept | Outcome::Cancelled => true,
            Outcome::Verdict(_) | Outcome::Decoded { .. } | Outcome::Input { .. } => false,
        },
        RecordBody::Header(_) | RecordBody::Input { .. } | RecordBody::Budget { .. } => false,
    }
}

/// A panic while a lock is held leaves counters that are still true: each is set after its write.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
