//! Memory of persistent agents: `memory.md` and numbered segments, in one of four scopes (seed, "Memory Scoping").

use std::fs::{self, File, TryLockError};
use std::path::{Component, Path, PathBuf};

use prose_model::{Digest, MemoryRequest, Persist};

use crate::error::io;
use crate::fs::{
    Sync, create_dir, open_lock, read_file, read_if_present, remove_temporaries, sync_dir, write_atomic,
};
use crate::{Result, RunDir, StateError, ValueStore, failpoint, safe_file_name};

/// Where the scopes have their roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRoots {
    /// The project root; `.prose/agents/` is below it, and paths as written are relative to it.
    pub project_root: PathBuf,
    /// The user's home folder; without one, user memory is an error.
    pub home: Option<PathBuf>,
    /// Whether all memory goes into the run's folder: simulated sessions must not change what real ones know.
    pub inside_run: bool,
}

/// One agent's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMemory {
    dir: PathBuf,
    stem: String,
}

/// Keeps other sessions, also of other processes, from using a memory; ends with the value or the process.
#[derive(Debug)]
pub struct MemoryLock {
    _file: File,
}

impl MemoryRoots {
    /// Finds an agent's memory; creates nothing. `program` is the path of program calls that the session runs in, as
    /// in [`prose_model::BindingRef::program`].
    ///
    /// # Errors
    /// [`StateError::MemoryPath`] for a path that leads out of the workspace and out of `~/.prose`, be it by `..` or
    /// by a symbolic link.
    pub fn locate(&self, run: &RunDir, program: &[String], request: &MemoryRequest) -> Result<AgentMemory> {
        let stem = safe_file_name(&request.agent);
        let dir = match &request.persist {
            Persist::Execution => run.program(program)?.agents().join(&stem),
            Persist::Project | Persist::User if self.inside_run => {
                namespaced(run.path(), &request.namespace).join(&stem)
            }
            Persist::Project => {
                let root = self.project_root.join(".prose");
                let dir = namespaced(&root, &request.namespace).join(&stem);
                self.confine(request, ".prose/agents", dir, &[root])?
            }
            Persist::User => {
                let root = self.user_root(request)?;
                let dir = namespaced(&root, &request.namespace).join(&stem);
                self.confine(request, "~/.prose/agents", dir, &[root])?
            }
            Persist::Path(path) => {
                let dir = self.custom(request, path)?;
                if self.inside_run {
                    // Agents that share a path share a memory, also here. No agent's name has an `=`.
                    run.path()
                        .join("agents")
                        .join(safe_file_name(&format!("path={path}")))
                } else {
                    dir
                }
            }
        };
        Ok(AgentMemory { dir, stem })
    }

    fn custom(&self, request: &MemoryRequest, path: &str) -> Result<PathBuf> {
        let refuse = |reason| StateError::MemoryPath {
            agent: request.agent.to_string(),
            path: path.to_owned(),
            reason,
        };
        if path.trim().is_empty() || path.contains('\0') {
            return Err(refuse("is empty"));
        }
        let dir = match path.strip_prefix("~/") {
            Some(below) => self.user_home(request)?.join(below),
            None => self.project_root.join(path),
        };
        if Path::new(path)
            .components()
            .any(|part| part == Component::ParentDir)
        {
            return Err(refuse("must not contain `..`"));
        }
        let mut roots = vec![self.project_root.clone()];
        roots.extend(self.home.as_ref().map(|home| home.join(".prose")));
        let dir = self.confine(request, path, dir, &roots)?;
        if dir.is_file() {
            Err(refuse("is a file, but memory needs a folder"))
        } else {
            Ok(dir)
        }
    }

    /// Refuses a folder that lies, links followed, in none of the roots.
    fn confine(
        &self,
        request: &MemoryRequest,
        written: &str,
        dir: PathBuf,
        roots: &[PathBuf],
    ) -> Result<PathBuf> {
        let refuse = || StateError::MemoryPath {
            agent: request.agent.to_string(),
            path: written.to_owned(),
            reason: "leads out of the workspace and of ~/.prose",
        };
        if !roots.iter().any(|root| dir.starts_with(root)) {
            return Err(refuse());
        }
        // Only what exists can be a link. A link that leads nowhere exists too, and can't be followed.
        let existing = dir
            .ancestors()
            .find(|path| path.symlink_metadata().is_ok())
            .ok_or_else(refuse)?;
        let real = existing.canonicalize().map_err(|_| refuse())?;
        let inside = roots.iter().any(|root| match root.canonicalize() {
            Ok(root) => real.starts_with(root),
            // The root does not exist yet, so what exists lies above it and no link can be below.
            Err(_) => root.starts_with(existing) && root.symlink_metadata().is_err(),
        });
        if inside { Ok(dir) } else { Err(refuse()) }
    }

    fn user_home(&self, request: &MemoryRequest) -> Result<&Path> {
        self.home.as_deref().ok_or_else(|| StateError::MemoryPath {
            agent: request.agent.to_string(),
            path: "~/.prose".to_owned(),
            reason: "needs a home folder, and there is none",
        })
    }

    fn user_root(&self, request: &MemoryRequest) -> Result<PathBuf> {
        Ok(self.user_home(request)?.join(".prose"))
    }
}

impl AgentMemory {
    /// The folder. Two agents with the same folder share their memory, so their sessions run one at a time.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `memory.md`: what the agent knows now.
    pub fn memory_path(&self) -> PathBuf {
        self.dir.join("memory.md")
    }

    /// `{name}-001.md` …, four digits from 1000 on (seed, "Segment Numbering").
    pub fn segment_path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}-{number:03}.md", self.stem))
    }

    /// The memory; none before the first session. Bytes that are no UTF-8 are replaced.
    pub fn read(&self) -> Result<Option<String>> {
        let bytes = read_if_present(&self.memory_path())?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Stores the memory as a value, for [`prose_model::RecordBody::Issued`]: a resumed run shows a session the memory
    /// that it was issued with.
    pub fn snapshot(&self, values: &ValueStore) -> Result<Option<Digest>> {
        self.read()?
            .map(|memory| values.put(memory.as_bytes()))
            .transpose()
    }

    /// Replaces the memory; on disk when this returns.
    pub fn write(&self, memory: &str) -> Result<()> {
        create_dir(&self.dir)?;
        write_atomic(&self.memory_path(), memory.as_bytes(), Sync::Durable, "memory")
    }

    /// The number for the next segment: one more than the highest there is.
    pub fn next_segment(&self) -> Result<u32> {
        Ok(self
            .segments()?
            .into_iter()
            .map(|(number, _)| number)
            .max()
            .unwrap_or(0)
            .saturating_add(1))
    }

    /// Writes a segment, in place of one with the same number.
    pub fn write_segment(&self, number: u32, text: &str) -> Result<PathBuf> {
        create_dir(&self.dir)?;
        let path = self.segment_path(number);
        write_atomic(&path, text.as_bytes(), Sync::Durable, "segment")?;
        Ok(path)
    }

    /// Whether a segment is there: under this number, or under a later one where somebody else has taken the number since.
    pub fn has_segment(&self, number: u32, text: &str) -> Result<bool> {
        for (found, path) in self.segments()? {
            if found >= number && read_file(&path).map_err(io("read", &path))? == text.as_bytes() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a segment after a crash, unless [it is there](AgentMemory::has_segment).
    pub fn restore_segment(&self, number: u32, text: &str) -> Result<()> {
        if self.has_segment(number, text)? {
            return Ok(());
        }
        let taken = self.segment_path(number).exists();
        let number = if taken { self.next_segment()? } else { number };
        self.write_segment(number, text).map(drop)
    }

    /// Puts memory and segments away into `archive/{label}/`, so that the agent starts without; returns that folder,
    /// or none when there was nothing. `session:` on a persistent agent does this (language.md, "Sessions and memory").
    ///
    /// Stopped halfway and called again with the same label, it goes on: what belongs together stays together.
    pub fn archive(&self, label: &str) -> Result<Option<PathBuf>> {
        let mut files: Vec<PathBuf> = self.segments()?.into_iter().map(|(_, path)| path).collect();
        // Memory last: an agent with memory and without segments is one whose archiving goes on.
        let memory = self.memory_path();
        if memory.exists() {
            files.push(memory);
        }
        let archive = self.dir.join("archive");
        let label = safe_file_name(label);
        let moving = archive.join(format!(".moving-{label}"));
        let collides = files
            .iter()
            .filter_map(|file| file.file_name())
            .any(|name| moving.join(name).exists());
        if collides {
            // Somebody has used the memory between: these are two archives.
            self.close_archive(&archive, &moving, &label)?;
        }
        if files.is_empty() && !moving.exists() {
            return Ok(None);
        }
        failpoint::hit("archive", "begin");
        create_dir(&moving)?;
        for file in files {
            if let Some(name) = file.file_name() {
                fs::rename(&file, moving.join(name)).map_err(io("move", &file))?;
                failpoint::hit("archive", "moved");
            }
        }
        let folder = self.close_archive(&archive, &moving, &label)?;
        failpoint::hit("archive", "closed");
        sync_dir(&self.dir)?;
        Ok(Some(folder))
    }

    /// Gives a folder of archived files its name: the label, with a number when it was used before.
    fn close_archive(&self, archive: &Path, moving: &Path, label: &str) -> Result<PathBuf> {
        let numbered = |number: u64| match number {
            1 => archive.join(label),
            _ => archive.join(format!("{label}-{number}")),
        };
        let folder = numbered(first_free(|number| numbered(number).exists()));
        fs::rename(moving, &folder).map_err(io("move", moving))?;
        sync_dir(archive)?;
        Ok(folder)
    }

    /// Takes the memory if nobody has it.
    pub fn try_lock(&self) -> Result<Option<MemoryLock>> {
        let (path, file) = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => {
                // Whoever writes here has the lock, so what has such a name was left by a crash.
                remove_temporaries(&self.dir);
                Ok(Some(MemoryLock { _file: file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
        }
    }

    /// Takes the memory, waiting for whoever has it.
    pub fn lock(&self) -> Result<MemoryLock> {
        let (path, file) = self.lock_file()?;
        file.lock().map_err(io("lock", path))?;
        remove_temporaries(&self.dir);
        Ok(MemoryLock { _file: file })
    }

    fn lock_file(&self) -> Result<(PathBuf, File)> {
        create_dir(&self.dir)?;
        let path = self.dir.join(".lock");
        let file = open_lock(&path, true).map_err(io("open", &path))?;
        Ok((path, file))
    }

    fn segments(&self) -> Result<Vec<(u32, PathBuf)>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("read", &self.dir)(error)),
        };
        let mut segments = Vec::new();
        for entry in entries {
            let path = entry.map_err(io("read", &self.dir))?.path();
            let number = path
                .file_name()
                .and_then(|name| name.to_str())
                .and_then(|name| {
                    name.strip_prefix(self.stem.as_str())?
                        .strip_prefix('-')?
                        .strip_suffix(".md")
                })
                .filter(|digits| digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok());
            segments.extend(number.map(|number| (number, path)));
        }
        segments.sort();
        Ok(segments)
    }
}

/// A free number from 1 on: the first, unless there are gaps. A loop may archive thousands of times under one label, so
/// that asking for each number would take longer each time.
fn first_free(taken: impl Fn(u64) -> bool) -> u64 {
    let mut free = 1;
    while taken(free) {
        free *= 2;
    }
    let mut last_taken = free / 2;
    while free - last_taken > 1 {
        let middle = last_taken + (free - last_taken) / 2;
        if taken(middle) {
            last_taken = middle;
        } else {
            free = middle;
        }
    }
    free
}

/// `{root}/agents`, or `{root}/agents/{handle}--{slug}` for an imported program: no agent's name has a double hyphen.
fn namespaced(root: &Path, namespace: &str) -> PathBuf {
    let agents = root.join("agents");
    if namespace.is_empty() {
        agents
    } else {
        agents.join(safe_file_name(namespace))
    }
}

#[cfg(test)]
mod tests {
    use prose_model::MemoryMode;

    use super::*;

    struct World {
        _root: tempfile::TempDir,
        base: PathBuf,
        roots: MemoryRoots,
        run: RunDir,
    }

    fn world() -> World {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (project, home, run) = (
            base.join("project"),
            base.join("home"),
            base.join("project/.prose/runs/r"),
        );
        create_dir(&run).unwrap();
        create_dir(&home).unwrap();
        let roots = MemoryRoots {
            project_root: project,
            home: Some(home),
            inside_run: false,
        };
        World {
            _root: root,
            base,
            roots,
            run: RunDir::at(&run).unwrap(),
        }
    }

    fn request(persist: Persist, namespace: &str) -> MemoryRequest {
        MemoryRequest {
            agent: "captain".into(),
            persist,
            namespace: namespace.into(),
            program: Vec::new(),
            mode: MemoryMode::Resume,
        }
    }

    impl World {
        #[track_caller]
        fn check(&self, persist: Persist, namespace: &str, expected: &str) {
            let program = if namespace.is_empty() {
                vec![]
            } else {
                vec![format!("{namespace}__2")]
            };
            let memory = self
                .roots
                .locate(&self.run, &program, &request(persist, namespace))
                .unwrap();
            assert_eq!(
                memory.dir().strip_prefix(&self.base).unwrap(),
                Path::new(expected)
            );
        }
        #[track_caller]
        fn refused(&self, path: &str, reason: &str) {
            let error = self
                .roots
                .locate(&self.run, &[], &request(Persist::Path(path.into()), ""))
                .unwrap_err();
            assert!(error.to_string().contains(reason), "{path}: {error}");
        }
    }

    #[test]
    fn the_four_scopes() {
        let world = world();
        world.check(Persist::Execution, "", "project/.prose/runs/r/agents/captain");
        world.check(Persist::Project, "", "project/.prose/agents/captain");
        world.check(Persist::User, "", "home/.prose/agents/captain");
        world.check(
            Persist::Path(".prose/custom/shared/".into()),
            "",
            "project/.prose/custom/shared",
        );
        world.check(Persist::Path("~/.prose/shared".into()), "", "home/.prose/shared");
        world.check(
            Persist::Execution,
            "a--b",
            "project/.prose/runs/r/imports/a--b__2/agents/captain",
        );
        world.check(Persist::Project, "a--b", "project/.prose/agents/a--b/captain");
        world.check(Persist::User, "a--b", "home/.prose/agents/a--b/captain");
        assert!(
            !world.base.join("home/.prose").exists(),
            "finding creates nothing"
        );
    }

    #[test]
    fn inside_the_run_nothing_else_is_named() {
        let mut world = world();
        world.roots.inside_run = true;
        world.roots.home = None;
        world.check(Persist::Project, "", "project/.prose/runs/r/agents/captain");
        world.check(Persist::User, "a--b", "project/.prose/runs/r/agents/a--b/captain");
        world.check(
            Persist::Path("notes/old".into()),
            "",
            "project/.prose/runs/r/agents/path=notes%2Fold",
        );
        // What a real run refuses is refused here too.
        world.refused("../up", "must not contain `..`");
    }

    #[test]
    fn paths_stay_inside() {
        let world = world();
        world.refused("../elsewhere", "must not contain `..`");
        world.refused("a/../../b", "must not contain `..`");
        world.refused("/etc/prose", "leads out of");
        world.refused("~/other", "leads out of");
        world.refused(" ", "is empty");
        fs::write(world.base.join("project/file"), "").unwrap();
        world.refused("file", "is a file");
        let absolute = world.base.join("project/memory").to_str().unwrap().to_owned();
        world.check(Persist::Path(absolute), "", "project/memory");
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        use std::os::unix::fs::symlink;
        let world = world();
        let project = world.base.join("project");
        create_dir(&world.base.join("outside")).unwrap();
        symlink(world.base.join("outside"), project.join("out")).unwrap();
        symlink(world.base.join("nowhere"), project.join("dangling")).unwrap();
        create_dir(&project.join("real")).unwrap();
        symlink(project.join("real"), project.join("in")).unwrap();
        world.refused("out", "leads out of");
        world.refused("out/deeper/still", "leads out of");
        world.refused("dangling", "leads out of");
        world.refused("dangling/deeper", "leads out of");
        world.check(Persist::Path("in/deeper".into()), "", "project/in/deeper");
        symlink(world.base.join("outside"), project.join(".prose/agents")).unwrap();
        assert!(
            world
                .roots
                .locate(&world.run, &[], &request(Persist::Project, ""))
                .is_err()
        );
    }

    #[test]
    fn a_user_scope_needs_a_home() {
        let mut world = world();
        world.roots.home = None;
        let error = world
            .roots
            .locate(&world.run, &[], &request(Persist::User, ""))
            .unwrap_err();
        assert!(error.to_string().contains("needs a home folder"), "{error}");
    }

    #[test]
    fn memory_and_segments_are_kept_and_archived() {
        let world = world();
        let memory = world
            .roots
            .locate(&world.run, &[], &request(Persist::Project, ""))
            .unwrap();
        assert_eq!(memory.read().unwrap(), None);
        assert_eq!(memory.next_segment().unwrap(), 1);
        assert_eq!(memory.archive("r").unwrap(), None);
        memory.write("first").unwrap();
        let path = memory.write_segment(1, "one").unwrap();
        assert!(path.ends_with("agents/captain/captain-001.md"), "{path:?}");
        assert_eq!(memory.next_segment().unwrap(), 2);
        memory.write_segment(999, "many").unwrap();
        assert!(
            memory
                .segment_path(memory.next_segment().unwrap())
                .ends_with("captain-1000.md")
        );
        fs::write(memory.dir().join("captain-x.md"), "no segment").unwrap();

        let archived = memory.archive("r").unwrap().unwrap();
        assert_eq!(fs::read_to_string(archived.join("memory.md")).unwrap(), "first");
        assert!(archived.join("captain-001.md").exists() && archived.join("captain-999.md").exists());
        assert_eq!(
            (memory.read().unwrap(), memory.next_segment().unwrap()),
            (None, 1)
        );
        memory.write("second").unwrap();
        assert!(memory.archive("r").unwrap().unwrap().ends_with("archive/r-2"));
    }

    #[test]
    fn a_snapshot_outlives_the_memory() {
        let world = world();
        let values = ValueStore::open(&world.run.values()).unwrap();
        let memory = world
            .roots
            .locate(&world.run, &[], &request(Persist::Execution, ""))
            .unwrap();
        assert_eq!(memory.snapshot(&values).unwrap(), None);
        memory.write("first").unwrap();
        let digest = memory.snapshot(&values).unwrap().unwrap();
        memory.write("second").unwrap();
        assert_eq!(values.get_text(&digest).unwrap(), "first");
    }

    #[test]
    fn one_session_at_a_time() {
        let world = world();
        let memory = world
            .roots
            .locate(&world.run, &[], &request(Persist::Execution, ""))
            .unwrap();
        let held = memory.try_lock().unwrap().unwrap();
        assert!(memory.try_lock().unwrap().is_none());
        drop(held);
        drop(memory.lock().unwrap());
        assert!(memory.try_lock().unwrap().is_some());
    }

    #[test]
    fn free_numbers_are_found_with_few_questions() {
        for count in 0..300 {
            let asked = std::cell::Cell::new(0);
            let free = first_free(|number| {
                asked.set(asked.get() + 1);
                number <= count
            });
            assert_eq!(free, count + 1);
            assert!(asked.get() <= 20, "{count}: {}", asked.get());
        }
        // Where some were taken away, any that is free will do.
        let taken = [1, 2, 4, 5, 6, 7];
        assert!(!taken.contains(&first_free(|number| taken.contains(&number))));
    }
}
