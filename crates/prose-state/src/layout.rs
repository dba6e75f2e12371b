//! Where things lie: the run directory, the same tree for each called program, the lock.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use prose_model::{EffectId, RunId};

use crate::error::io;
use crate::fs::{create_dir, expect_folder, open_file, open_lock, sync_dir};
use crate::values::digest_of;
use crate::{Clock, Result, RunIds, StateError, clock, failpoint};

/// A run's directory, `.prose/runs/{id}/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// The tree of one program: the run directory itself, or a folder below `imports/` with the same structure (seed,
/// "Imports Recursive Structure").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDir {
    path: PathBuf,
    relative: String,
}

/// The folders of every run directory.
pub(crate) const FOLDERS: [&str; 6] = [
    "values",
    "staging",
    "attachments",
    "bindings",
    "agents",
    "imports",
];

/// Exclusive ownership of a run; ends with the value or the process.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    path: PathBuf,
    /// Where the file may only be read, it can be locked all the same.
    writable: bool,
}

impl RunDir {
    /// Creates the directory of a new run with all its folders below `project_root`, and takes its lock. The id is
    /// made of the time and of `ids`.
    pub fn create(
        project_root: &Path,
        clock: &dyn Clock,
        ids: &dyn RunIds,
    ) -> Result<(RunDir, RunId, RunLock)> {
        let runs = RunDir::runs(project_root);
        create_dir(&runs)?;
        let now = clock.now_ms();
        // A taken id is unlikely; that a hundred are means that the generator is broken, and the last error says so.
        let mut tries = 0;
        let (path, id) = loop {
            let id = clock::run_id(now, &ids.random6());
            let path = runs.join(id.as_str());
            match std::fs::create_dir(&path) {
                Ok(()) => break (path, id),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
                Err(error) => return Err(io("create", path)(error)),
            }
        };
        let dir = RunDir { path };
        failpoint::hit("run", "folder");
        match dir.begin(&runs) {
            Ok(lock) => Ok((dir, id, lock)),
            Err(error) => {
                // Nothing is in it that anyone needs.
                let _ = std::fs::remove_dir_all(&dir.path);
                Err(error)
            }
        }
    }

    fn begin(&self, runs: &Path) -> Result<RunLock> {
        // IMPORTANT: locked before anything else, so that nobody takes the half-made run for a crashed one.
        let lock = self.lock()?;
        failpoint::hit("run", "locked");
        for folder in FOLDERS {
            create_dir(&self.path.join(folder))?;
        }
        sync_dir(&self.path)?;
        sync_dir(runs)?;
        failpoint::hit("run", "folders");
        Ok(lock)
    }

    /// The directory of a run that has none, because its state is in memory: an empty path, never to be used.
    pub(crate) fn nowhere() -> RunDir {
        RunDir { path: PathBuf::new() }
    }

    /// A run's directory that exists. One of whose folders is a symbolic link is refused: resuming rewrites the
    /// projections, which would put files where the link leads.
    pub fn at(path: &Path) -> Result<RunDir> {
        if path.is_dir() {
            refuse_links(path)?;
            Ok(RunDir {
                path: path.to_owned(),
            })
        } else {
            Err(StateError::NoRun {
                path: path.to_owned(),
            })
        }
    }

    /// The directory of a run by its id.
    pub fn find(project_root: &Path, id: &RunId) -> Result<RunDir> {
        let path = RunDir::runs(project_root).join(safe_file_name(id.as_str()));
        RunDir::at(&path)
    }

    /// The folder of all runs of a project.
    pub fn runs(project_root: &Path) -> PathBuf {
        project_root.join(".prose").join("runs")
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The bundle that the run executes.
    pub fn bundle(&self) -> PathBuf {
        self.path.join("bundle.json")
    }

    /// The value store.
    pub fn values(&self) -> PathBuf {
        self.path.join("values")
    }

    /// Folder for large values of database states.
    pub fn attachments(&self) -> PathBuf {
        self.path.join("attachments")
    }

    /// The tree of a called program, by its path as in [`prose_model::BindingRef::program`]; the entry's for an empty
    /// path. Nothing is created.
    pub fn program(&self, path: &[String]) -> Result<ProgramDir> {
        let mut dir = self.path.clone();
        let mut relative = String::new();
        for name in path {
            let name = name.strip_prefix("imports/").unwrap_or(name);
            if name.is_empty() || name.starts_with('.') || safe_file_name(name) != name {
                return Err(StateError::BadProgramFolder {
                    name: name.to_owned(),
                });
            }
            dir.extend(["imports", name]);
            relative.push_str("imports/");
            relative.push_str(name);
            relative.push('/');
        }
        Ok(ProgramDir { path: dir, relative })
    }

    /// Creates and returns the folder that a session under a lease writes into. A session that still writes after its
    /// lease has passed on does so into a folder that nobody reads any more.
    pub fn staging(&self, lease: u64, effect: &EffectId) -> Result<PathBuf> {
        let dir = self.staging_path(lease, effect);
        self.create_below(&dir)?;
        failpoint::hit("staging", "folder");
        Ok(dir)
    }

    /// Where [`RunDir::staging`] is or was: to find what a session wrote under an earlier lease.
    pub fn staging_path(&self, lease: u64, effect: &EffectId) -> PathBuf {
        // Effect ids hold slashes and can be long.
        let name = &digest_of(effect.as_str().as_bytes()).as_str()[..16].to_owned();
        self.path.join("staging").join(lease.to_string()).join(name)
    }

    /// Removes what sessions staged; for the end of a run.
    pub fn clear_staging(&self) -> Result<()> {
        let staging = self.path.join("staging");
        let is_empty = std::fs::read_dir(&staging).is_ok_and(|mut entries| entries.next().is_none());
        if is_empty {
            return Ok(());
        }
        failpoint::hit("staging", "clear");
        match std::fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io("remove", staging)(error)),
            _ => create_dir(&staging),
        }
    }

    /// Takes the run for this process.
    ///
    /// # Errors
    /// [`StateError::Locked`] with the owner's process id when it is taken.
    pub fn lock(&self) -> Result<RunLock> {
        let path = self.path.join("lock");
        let file = open_lock(&path, true).map_err(io("open", &path))?;
        let mut lock = self.take(file, path, true)?;
        lock.sign()?;
        Ok(lock)
    }

    /// Keeps others from taking the run while it is looked at, and writes nothing. None when there is no lock file.
    ///
    /// # Errors
    /// As [`RunDir::lock`].
    pub(crate) fn hold(&self) -> Result<Option<RunLock>> {
        use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
        let path = self.path.join("lock");
        let (file, writable) = match open_lock(&path, false) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == NotFound => return self.expect_free_journal().map(|()| None),
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                (open_file(&path).map_err(io("open", &path))?, false)
            }
            Err(error) => return Err(io("open", path)(error)),
        };
        self.take(file, path, writable).map(Some)
    }

    fn take(&self, mut file: File, path: PathBuf, writable: bool) -> Result<RunLock> {
        match try_lock(&file) {
            Ok(()) => {
                self.expect_free_journal()?;
                Ok(RunLock { file, path, writable })
            }
            Err(TryLockError::WouldBlock) => Err(StateError::Locked {
                run: self.path.clone(),
                pid: read_pid(&mut file),
            }),
            Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
        }
    }

    /// Refuses a run whose lock file was removed, or replaced, while its process goes on: that one has the journal still.
    fn expect_free_journal(&self) -> Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        // What else may be wrong with it is said when it is read.
        let Ok(file) = open_file(&self.journal()) else {
            return Ok(());
        };
        match patiently(|| file.try_lock_shared()) {
            Err(TryLockError::WouldBlock) => Err(StateError::Locked {
                run: self.path.clone(),
                pid: None,
            }),
            _ => Ok(()),
        }
    }

    /// Creates a folder of the run and what lies between, but not the run's own: where that is gone, nothing is to come back.
    pub(crate) fn create_below(&self, folder: &Path) -> Result<()> {
        if !folder.is_dir() && !self.path.is_dir() {
            return Err(StateError::NoRun {
                path: self.path.clone(),
            });
        }
        create_dir(folder)
    }

    /// Refuses something else in the place of one of the run's folders.
    pub(crate) fn expect_folders(&self) -> Result<()> {
        FOLDERS
            .iter()
            .try_for_each(|folder| expect_folder(&self.path.join(folder)))
    }
}

impl RunLock {
    /// Says in the lock file which process has the run.
    pub(crate) fn sign(&mut self) -> Result<()> {
        let path = &self.path;
        if !self.writable {
            // Says why not.
            open_lock(path, false).map_err(io("write", path))?;
        }
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| writeln!(self.file, "{}", std::process::id()))
            .map_err(io("write", path))
    }
}

/// Takes a lock. Whoever only looks at a run holds it for a moment, and so does a child process between fork and exec, which
/// is no reason to say that somebody else works on it.
pub(crate) fn try_lock(file: &File) -> std::result::Result<(), TryLockError> {
    patiently(|| file.try_lock())
}

fn patiently(
    take: impl Fn() -> std::result::Result<(), TryLockError>,
) -> std::result::Result<(), TryLockError> {
    for _ in 0..20 {
        match take() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(5)),
            taken => return taken,
        }
    }
    take()
}

/// The process that owns the run at this moment: none when nobody does, `Some(None)` when it can't be told who.
pub fn lock_owner(dir: &RunDir) -> Result<Option<Option<u32>>> {
    if let Some(owner) = holder(&dir.path().join("lock"))? {
        return Ok(Some(owner));
    }
    // Who lost the lock file has the journal still.
    let has_journal = cfg!(unix) && holder(&dir.journal()).is_ok_and(|holder| holder.is_some());
    Ok(has_journal.then_some(None))
}

/// Who has locked a file, as in [`lock_owner`]. A file that is not there is nobody's.
fn holder(path: &Path) -> Result<Option<Option<u32>>> {
    let mut file = match open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("open", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut file))),
        Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
    }
}

impl ProgramDir {
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path from the run directory with `/`, ending in one; empty for the entry program.
    pub fn relative(&self) -> &str {
        &self.relative
    }

    /// The program's text.
    pub fn program(&self) -> PathBuf {
        self.path.join("program.prose")
    }

    /// The projection for people and other tools.
    pub fn state(&self) -> PathBuf {
        self.path.join("state.md")
    }

    /// The folder of binding files.
    pub fn bindings(&self) -> PathBuf {
        self.path.join("bindings")
    }

    /// The folder of agents whose memory dies with the run.
    pub fn agents(&self) -> PathBuf {
        self.path.join("agents")
    }

    /// Creates the folders.
    pub fn create(&self) -> Result<()> {
        for folder in ["bindings", "agents", "imports"] {
            create_dir(&self.path.join(folder))?;
        }
        Ok(())
    }
}

/// Refuses a run in which a folder that projections are written to is a symbolic link: a top folder, an agent's, an
/// imported program's or one inside it. Links in place of files do no harm, since files are replaced as a whole.
fn refuse_links(run: &Path) -> Result<()> {
    let mut waiting: Vec<PathBuf> = FOLDERS.map(|name| run.join(name)).to_vec();
    while let Some(folder) = waiting.pop() {
        if folder.is_symlink() {
            let why = std::io::Error::other("it is a symbolic link, which could lead out of the run");
            return Err(io("use", folder)(why));
        }
        // The others hold files only, and may hold many.
        let nested = ["agents", "imports"].map(|name| run.join(name));
        if nested.iter().any(|top| folder.starts_with(top))
            && let Ok(entries) = std::fs::read_dir(&folder)
        {
            let folders = entries.flatten().filter(|entry| entry.path().is_dir());
            waiting.extend(folders.map(|entry| entry.path()));
        }
    }
    Ok(())
}

/// A file name for any text: letters, digits, `_`, `-`, `.`, `=` and everything outside ASCII stay, the rest is
/// percent-encoded. A leading dot, a name that Windows reserves, and what is too long for a file system are changed
/// too, so that different texts keep different names.
pub fn safe_file_name(text: &str) -> String {
    const LONGEST: usize = 180;
    let mut name = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let keep = match c {
            '_' | '-' | '=' => true,
            '.' => at > 0 && at + 1 < text.len(),
            _ => c.is_alphanumeric(),
        };
        if keep {
            name.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                name.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    if is_reserved(&name) || name.is_empty() {
        name.push('%');
    }
    if name.len() > LONGEST {
        let mut cut = LONGEST;
        while !name.is_char_boundary(cut) {
            cut -= 1;
        }
        name.truncate(cut);
        name.push('%');
        name.push_str(&digest_of(text.as_bytes()).as_str()[..16]);
    }
    name
}

/// Names that Windows takes for devices, with any extension.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match stem.as_str() {
        "con" | "prn" | "aux" | "nul" => true,
        _ => {
            stem.len() == 4
                && (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.as_bytes()[3].is_ascii_digit()
        }
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FixedIds, ManualClock};

    #[cfg(unix)]
    #[test]
    fn a_run_whose_folder_is_a_link_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(1_768_487_452_345);
        let (dir, id, _lock) = RunDir::create(root.path(), &clock, &FixedIds::from(1)).unwrap();
        for folder in FOLDERS {
            let folder = dir.path().join(folder);
            std::fs::remove_dir(&folder).unwrap();
            std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
            let error = RunDir::find(root.path(), &id).unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{error}");
            std::fs::remove_file(&folder).unwrap();
            std::fs::create_dir(&folder).unwrap();
        }
        assert_eq!(RunDir::find(root.path(), &id).unwrap(), dir);
        for folder in [
            "agents/captain",
            "imports/a--b",
            "imports/a--b/bindings",
            "imports/a--b/imports/c--d",
        ] {
            let folder = dir.path().join(folder);
            std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
            let error = RunDir::find(root.path(), &id).unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{error}");
            std::fs::remove_file(&folder).unwrap();
        }
        assert_eq!(RunDir::find(root.path(), &id).unwrap(), dir);
    }

    #[test]
    fn a_new_run_has_the_layout_of_the_seed() {
        let root = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(1_768_487_452_345);
        let (dir, id, _lock) = RunDir::create(root.path(), &clock, &FixedIds::from(1)).unwrap();
        assert_eq!(id.as_str(), "20260115-143052-000001");
        assert_eq!(dir.path(), root.path().join(".prose/runs/20260115-143052-000001"));
        let mut names: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "agents",
                "attachments",
                "bindings",
                "imports",
                "lock",
                "staging",
                "values"
            ]
        );
        assert_eq!(RunDir::find(root.path(), &id).unwrap(), dir);
        assert!(matches!(
            RunDir::find(root.path(), &"20260115-143052-000002".into()),
            Err(StateError::NoRun { .. })
        ));
    }

    #[test]
    fn a_taken_id_is_not_used_again() {
        let root = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(0);
        let _first = RunDir::create(root.path(), &clock, &FixedIds::from(5)).unwrap();
        let (_, id, _lock) = RunDir::create(root.path(), &clock, &FixedIds::from(5)).unwrap();
        assert_eq!(id.as_str(), "19700101-000000-000006");
    }

    #[test]
    fn a_held_lock_names_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let (dir, _, lock) = RunDir::create(root.path(), &ManualClock::at(0), &FixedIds::from(1)).unwrap();
        let pid = std::process::id();
        assert_eq!(lock_owner(&dir).unwrap(), Some(Some(pid)));
        let error = dir.lock().unwrap_err();
        assert!(
            error.to_string().contains(&format!("is in use by process {pid}")),
            "{error}"
        );
        drop(lock);
        assert_eq!(lock_owner(&dir).unwrap(), None);
        dir.lock().unwrap();
    }

    #[test]
    fn program_folders_stay_inside() {
        let root = tempfile::tempdir().unwrap();
        let dir = RunDir::at(root.path()).unwrap();
        let nested = dir
            .program(&["imports/alice--research".into(), "bob--critique__7".into()])
            .unwrap();
        assert_eq!(
            nested.relative(),
            "imports/alice--research/imports/bob--critique__7/"
        );
        assert_eq!(
            nested.state(),
            root.path()
                .join("imports/alice--research/imports/bob--critique__7/state.md")
        );
        for name in ["", "..", "a/b", ".hidden", "a\\b"] {
            assert!(dir.program(&[name.to_owned()]).is_err(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn file_names_are_safe_and_distinct(a in ".{0,80}", b in ".{0,80}") {
            let name = safe_file_name(&a);
            prop_assert!(!name.is_empty() && !name.starts_with('.') && name.len() < 255);
            prop_assert!(!name.contains(['/', '\\', ':', '\0', '\n']));
            prop_assert_eq!(a == b, name == safe_file_name(&b));
        }
        #[test]
        fn identifiers_are_their_own_file_names(name in "[A-Za-z_][A-Za-z0-9_]{4,60}") {
            prop_assert_eq!(safe_file_name(&name), name);
        }
    }
}
