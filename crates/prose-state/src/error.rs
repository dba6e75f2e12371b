//! What can go wrong with a run on disk.

use std::fmt;
use std::path::PathBuf;

use prose_model::Digest;

/// An error of the state on disk. The message names the file and what can be done, never a value's content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The operating system refused.
    #[error("can't {action} {}: {}", path.display(), words(source))]
    Io {
        /// What was tried: `read`, `write`, `create` …
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another process owns the run.
    #[error("run {} is in use by {}", run.display(), owner(*pid))]
    Locked {
        /// The run directory.
        run: PathBuf,
        /// The owner, when its lock file could be read.
        pid: Option<u32>,
    },
    /// There is no such run.
    #[error("there is no run at {}", path.display())]
    NoRun {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// No run of the project is meant by what was given.
    #[error("no run begins with `{wanted}`; `prose runs` lists those of {}", root.display())]
    UnknownRun {
        /// What was given.
        wanted: String,
        /// The project root.
        root: PathBuf,
    },
    /// The project has no runs.
    #[error("there are no runs below {} yet", root.display())]
    NoRuns {
        /// The project root.
        root: PathBuf,
    },
    /// Several runs begin alike.
    #[error("`{wanted}` may mean {}; give more of the id", candidates.join(", "))]
    AmbiguousRun {
        /// What was given.
        wanted: String,
        /// Some that it may mean, the newest first.
        candidates: Vec<String>,
    },
    /// The run stopped before its first record: nothing ran and nothing can be resumed.
    #[error("run {} never started: its process ended before anything ran; start it again with `prose run`", path.display())]
    NoHeader {
        /// The run directory.
        path: PathBuf,
    },
    /// Another tool's run.
    #[error("run {} was made by another tool: it has no journal, so that it can't be resumed", path.display())]
    Foreign {
        /// The run directory.
        path: PathBuf,
    },
    /// The journal is gone or empty, but other files show that the run went on: what it knew can't be had again.
    #[error("the journal of run {} is lost, so that the run can't be resumed; what its sessions wrote is in {}", path.display(), path.join("bindings").display())]
    JournalLost {
        /// The run directory.
        path: PathBuf,
    },
    /// The journal of a run that goes on is not where it was: what happens from here on could not be known again.
    #[error("the journal {} was removed or moved away while the run went on, so that the run was stopped; {}", path.display(), left(path, now.as_deref()))]
    JournalGone {
        /// Where it was.
        path: PathBuf,
        /// Where it is now, if it was moved and that can be told.
        now: Option<PathBuf>,
    },
    /// The journal of a run that goes on is not as long as this process has made it: someone else cut it or wrote into it.
    #[error("the journal {} was cut or written over by something else while the run went on, so that the run was stopped; {}", path.display(), rest(path, *written, *found))]
    JournalAltered {
        /// The journal.
        path: PathBuf,
        /// How long it should be, in bytes.
        written: u64,
        /// How long it is.
        found: u64,
    },
    /// A record that is not the last one can't be trusted.
    #[error("{}: line {line}, at byte {offset}: {damage}", path.display())]
    JournalDamaged {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// Offset of the line's first byte.
        offset: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// An earlier write or sync failed, so nothing can be said about what is on disk.
    #[error("{}: an earlier write failed; the run has to be resumed", path.display())]
    JournalPoisoned {
        /// The journal.
        path: PathBuf,
    },
    /// A record that would not read back as it is.
    #[error("a journal record can't be stored: {reason}")]
    Unserializable {
        /// Why.
        reason: String,
    },
    /// The value store lacks content that something names.
    #[error("value {digest} is missing from {}", store.display())]
    ValueMissing {
        /// Its name.
        digest: Digest,
        /// The store.
        store: PathBuf,
    },
    /// Content is not what its name says.
    #[error("value {digest} in {} is damaged", store.display())]
    ValueDamaged {
        /// Its name.
        digest: Digest,
        /// The store.
        store: PathBuf,
    },
    /// Content that the journal names is not there as it was: without it the run would go on with something else.
    #[error(
        "run {} can't be resumed: value {digest}, {what}, is {}; put values/{digest} back as it was, or start a new run",
        run.display(),
        if *damaged { "damaged" } else { "missing" }
    )]
    ValueLost {
        /// The run directory.
        run: PathBuf,
        /// The value's name.
        digest: Digest,
        /// What it is, as `the result of main/3`.
        what: String,
        /// Whether there is something else in its place.
        damaged: bool,
    },
    /// A name that is no digest.
    #[error("{name:?} is not a SHA-256 digest")]
    BadDigest {
        /// The name.
        name: String,
    },
    /// `bundle.json` is not what the journal's header names.
    #[error(
        "{}: {reason}; it holds the program as the run was started with it: put it back as it was, or go on with the program as it is now: prose resume {} --accept-changes",
        path.display(),
        run_of(path)
    )]
    BundleDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A binding file without the parts that make it one.
    #[error("{}: not a binding file: {reason}", path.display())]
    BadBinding {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// `persist: "path"` outside of what an agent's memory may be.
    #[error("agent `{agent}`: memory path {path:?} {reason}")]
    MemoryPath {
        /// The agent.
        agent: String,
        /// The path as written.
        path: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// A folder name of a called program that is not one.
    #[error("{name:?} can't be a folder under imports/")]
    BadProgramFolder {
        /// The name.
        name: String,
    },
}

impl StateError {
    /// Whether there was no room on the disk, or no more allowed.
    pub fn is_no_room(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self {
            StateError::Io { source, .. } => {
                matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            _ => false,
        }
    }
}

/// What is wrong with a journal record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The checksum does not fit the bytes.
    Checksum,
    /// The line is not even of the shape of a record.
    Shape,
    /// The numbering has a gap or a repetition.
    Sequence {
        /// The number that belongs here.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// Intact, but of a format this version does not know.
    Version(u32),
    /// Intact, but this version can't read it.
    Unreadable(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Checksum => f.write_str("the record is damaged (its checksum does not fit)"),
            Damage::Shape => f.write_str("this is no journal record"),
            Damage::Sequence { expected, found } => {
                write!(f, "record {expected} belongs here, but this is record {found}")
            }
            Damage::Version(version) => {
                write!(
                    f,
                    "journal format {version} was written by a newer version of prose"
                )
            }
            Damage::Unreadable(reason) => {
                write!(
                    f,
                    "the record is intact, but this version of prose can't read it: {reason}"
                )
            }
        }
    }
}

/// For `map_err`: names what was tried on which file.
pub(crate) fn io(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(std::io::Error) -> StateError {
    let path = path.into();
    move |source| StateError::Io { action, path, source }
}

/// An error of the operating system in words that need no manual.
fn words(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    if error.raw_os_error().is_none() {
        return error.to_string();
    }
    let words = match error.kind() {
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "no more of the disk may be used",
        ErrorKind::FileTooLarge => "a file may not become so large here",
        ErrorKind::ReadOnlyFilesystem => "the disk may only be read",
        ErrorKind::PermissionDenied => "that is not permitted",
        ErrorKind::NotFound => "it is not there",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "something on its path is no folder",
        ErrorKind::AlreadyExists => "there is something else already",
        _ => return error.to_string(),
    };
    words.to_owned()
}

/// What is left of a run whose journal has gone.
fn left(journal: &std::path::Path, now: Option<&std::path::Path>) -> String {
    if let Some(now) = now {
        return format!(
            "it is now {}: put it back with the rest of the run's folder, and resume the run",
            now.display()
        );
    }
    let bindings = journal.with_file_name("bindings");
    match std::fs::read_dir(&bindings).is_ok_and(|mut entries| entries.next().is_some()) {
        true => format!(
            "it can't be resumed, but what its sessions wrote until then is in {}",
            bindings.display()
        ),
        false => "it can't be resumed, and nothing of it is left on the disk".to_owned(),
    }
}

/// What is left of a run whose journal was changed by someone else.
fn rest(journal: &std::path::Path, written: u64, found: u64) -> String {
    match found {
        0 => left(journal, None),
        _ => format!(
            "it has {found} bytes and should have {written}; where what is left of it is whole, `prose resume` goes on from there; \
             what its sessions wrote until then is in {}",
            journal.with_file_name("bindings").display()
        ),
    }
}

/// The run that a file in its directory belongs to.
fn run_of(path: &std::path::Path) -> String {
    let folders = path.ancestors().skip(1).filter_map(std::path::Path::file_name);
    let run = folders.into_iter().find(|name| *name != "values");
    run.unwrap_or_default().to_string_lossy().into_owned()
}

fn owner(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!(
            "process {pid}; wait until that process has ended, or end it (kill {pid}), and resume then"
        ),
        None => "another process; wait until it has ended, and resume then".to_owned(),
    }
}
