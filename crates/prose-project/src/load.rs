//! From a path to a bundle: the file, and every file that its local `use` statements reach.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prose_hir::paths::{TargetKind, candidates, target_kind};
use prose_hir::{Change, Diagnostic, FileContent, FileId, LineIndex, RootDatabase};
use prose_model::Bundle;

use crate::files::{LoadError, read_program};

/// Address of the registry that `handle/slug` means (seed, "Remote Programs").
pub const REGISTRY: &str = "https://p.prose.md";

/// Where a `use` target, or the target of `prose run`, leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file on disk.
    Local(PathBuf),
    /// A program on the network, by its address. Nothing here fetches it.
    Remote(String),
    /// It was looked for on disk and is not there.
    NotFound,
}

/// Programs read from one project's disk, checked and lowered together.
pub struct Workspace {
    root: PathBuf,
    db: RootDatabase,
    files: Vec<File>,
    by_path: HashMap<PathBuf, FileId>,
    by_address: HashMap<String, FileId>,
    remote: Vec<RemoteUse>,
    unreadable: Vec<LoadError>,
}

struct File {
    path: PathBuf,
    display: String,
    text: Arc<str>,
}

/// A `use` of a program on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUse {
    /// The file that uses it.
    pub file: FileId,
    /// The target as written.
    pub target: String,
    /// The address that it means.
    pub address: String,
}

/// A program with all that it can call, as far as it is on disk.
pub struct Loaded {
    /// The program's file.
    pub file: FileId,
    /// What the checks found in it and in the local files that it uses, by file, worst first.
    pub diagnostics: Vec<(FileId, Vec<Diagnostic>)>,
    /// What a run executes, or the errors that keep it from running.
    pub bundle: Result<Arc<Bundle>, Vec<Diagnostic>>,
    /// The files and their texts.
    pub workspace: Workspace,
}

/// Loads a program for a run.
///
/// # Errors
/// The file itself can't be read. A used file that can't be is in [`Workspace::unreadable`], and missing to the
/// checks.
pub fn load(path: &Path, root: &Path) -> Result<Loaded, LoadError> {
    let mut workspace = Workspace::new(root);
    let file = workspace.add(path)?;
    let diagnostics = workspace.all_diagnostics();
    let bundle = workspace.bundle(file);
    Ok(Loaded {
        file,
        diagnostics,
        bundle,
        workspace,
    })
}

/// Says where the target of `prose run` leads: an existing path and a name ending in `.prose` are local, an address is
/// itself, and what else has a slash is in the registry (interfaces, "Command line"; seed, "Remote Programs").
pub fn resolve_target(target: &str) -> Target {
    let path = Path::new(target);
    if path.exists() {
        return Target::Local(path.to_owned());
    }
    match remote_address(target, REGISTRY) {
        Some(address) => Target::Remote(address),
        None => Target::Local(path.to_owned()),
    }
}

/// Says where a `use` target leads. `from` is the using file's path; a local target is looked for in that file's
/// folder and upward to the root (language.md, "Forms beyond the condensed grammar"). `is_file` says whether there is
/// a file, so that an editor's unsaved files count too.
pub fn resolve_use(
    target: &str,
    from: &Path,
    root: &Path,
    registry: &str,
    is_file: &dyn Fn(&Path) -> bool,
) -> Target {
    if target_kind(target) != TargetKind::Url && !target.trim().is_empty() {
        let from = from.to_string_lossy();
        let found = candidates(target, &from, &root.to_string_lossy())
            .into_iter()
            .map(PathBuf::from)
            .find(|path| is_file(path));
        if let Some(path) = found {
            return Target::Local(path);
        }
    }
    remote_address(target, registry).map_or(Target::NotFound, Target::Remote)
}

/// The address that a target means; none when its form is that of a local file, or none at all.
fn remote_address(target: &str, registry: &str) -> Option<String> {
    let target = target.trim();
    match target_kind(target) {
        TargetKind::Url => Some(target.to_owned()),
        TargetKind::Registry => Some(format!(
            "{}/{}",
            registry.trim_end_matches('/'),
            target.trim_start_matches('@')
        )),
        TargetKind::Local | TargetKind::Unknown => None,
    }
}

impl Workspace {
    /// A workspace without files. The root bounds the search for used files and is left out of the paths shown.
    pub fn new(root: &Path) -> Workspace {
        Workspace {
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            db: RootDatabase::default(),
            files: Vec::new(),
            by_path: HashMap::new(),
            by_address: HashMap::new(),
            remote: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// Reads a program and every local file that it uses, at any depth. A file that was read before is not read
    /// again.
    pub fn add(&mut self, path: &Path) -> Result<FileId, LoadError> {
        let text = read_program(path)?;
        let canonical = path.canonicalize().map_err(|source| LoadError::Io {
            path: path.to_owned(),
            source,
        })?;
        if let Some(file) = self.by_path.get(&canonical) {
            return Ok(*file);
        }
        let first = self.enter(canonical, path, text);
        let mut waiting = vec![first];
        while let Some(file) = waiting.pop() {
            self.resolve_uses(file, &mut waiting);
        }
        Ok(first)
    }

    /// Reads a program from a text that is on no disk, such as standard input; `name` is shown as its path. Its uses
    /// are looked for from the root.
    pub fn add_text(&mut self, name: &str, text: &str) -> FileId {
        let path = self.root.join(name);
        let first = self.enter(path.clone(), &path, text.to_owned());
        let mut waiting = vec![first];
        while let Some(file) = waiting.pop() {
            self.resolve_uses(file, &mut waiting);
        }
        first
    }

    /// The project root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every local file, in the order of reading.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        (0..self.files.len())
            .map(|index| FileId(index as u32))
            .filter(|file| !self.is_remote(*file))
    }

    /// The file's path on disk, links followed.
    pub fn path(&self, file: FileId) -> &Path {
        self.file(file).map_or(Path::new(""), |file| &file.path)
    }

    /// The file's path as shown to a person: relative to the root where possible, with `/`.
    pub fn display(&self, file: FileId) -> &str {
        self.file(file).map_or("", |file| &file.display)
    }

    /// The file's text.
    pub fn text(&self, file: FileId) -> Arc<str> {
        self.file(file)
            .map_or_else(|| Arc::from(""), |file| file.text.clone())
    }

    /// The file's lines.
    pub fn line_index(&self, file: FileId) -> Arc<LineIndex> {
        match self.db.source(file) {
            Some(source) => prose_hir::line_index(&self.db, source).clone(),
            None => Arc::new(LineIndex::new("")),
        }
    }

    /// What the checks found in a file, in the order of the text.
    pub fn diagnostics(&self, file: FileId) -> Vec<Diagnostic> {
        self.db
            .source(file)
            .map(|source| prose_hir::diagnostics(&self.db, source))
            .unwrap_or_default()
    }

    /// What settles a finding, the best first.
    pub fn fixes(&self, found: &Diagnostic) -> Vec<prose_hir::Fix> {
        self.db
            .source(found.file)
            .map(|source| prose_hir::fixes(&self.db, source, found))
            .unwrap_or_default()
    }

    /// The file's text with every automatic fix made, of the codes that are wanted, and how many they are; none when
    /// nothing is to be fixed.
    pub fn fixed(&self, file: FileId, wanted: &dyn Fn(&str) -> bool) -> Option<(String, usize)> {
        let source = self.db.source(file)?;
        let (edits, count) = prose_hir::fix_all(&self.db, source, wanted);
        let fix = prose_hir::Fix::new("", edits);
        (!fix.edits.is_empty()).then(|| (fix.apply(&self.text(file)), count))
    }

    /// What the checks found, in every local file.
    pub fn all_diagnostics(&self) -> Vec<(FileId, Vec<Diagnostic>)> {
        self.files().map(|file| (file, self.diagnostics(file))).collect()
    }

    /// The lowered program of a file, or the errors that prevent it.
    pub fn bundle(&self, file: FileId) -> Result<Arc<Bundle>, Vec<Diagnostic>> {
        match self.db.source(file) {
            Some(source) => prose_hir::bundle(&self.db, source),
            None => Err(Vec::new()),
        }
    }

    /// Uses of programs on the network, in any file, in the order of reading. None was fetched.
    pub fn remote(&self) -> &[RemoteUse] {
        &self.remote
    }

    /// Used files that exist and can't be read.
    pub fn unreadable(&self) -> &[LoadError] {
        &self.unreadable
    }

    fn file(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0 as usize)
    }

    fn is_remote(&self, file: FileId) -> bool {
        self.file(file)
            .is_none_or(|file| file.path.as_os_str().is_empty())
    }

    fn enter(&mut self, canonical: PathBuf, given: &Path, text: String) -> FileId {
        let display = match canonical.strip_prefix(&self.root) {
            Ok(relative) => relative.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"),
            Err(_) => given.to_string_lossy().into_owned(),
        };
        let text: Arc<str> = text.into();
        let file = self.next_id();
        let mut change = Change::new();
        change.text(file, display.clone(), text.clone());
        self.db.apply_change(change);
        self.by_path.insert(canonical.clone(), file);
        self.files.push(File {
            path: canonical,
            display,
            text,
        });
        file
    }

    fn next_id(&self) -> FileId {
        FileId(self.files.len() as u32)
    }

    fn resolve_uses(&mut self, file: FileId, waiting: &mut Vec<FileId>) {
        let mut resolutions: Vec<(String, Option<FileId>)> = Vec::new();
        let targets = self
            .db
            .source(file)
            .map(|source| prose_hir::use_targets(&self.db, source));
        for target in targets.unwrap_or_default() {
            let from = self.path(file).to_owned();
            let found = resolve_use(&target, &from, &self.root, REGISTRY, &|path| path.is_file());
            let resolved = match found {
                Target::Local(path) => self.enter_used(&path, waiting),
                Target::Remote(address) => {
                    self.remote.push(RemoteUse {
                        file,
                        target: target.clone(),
                        address: address.clone(),
                    });
                    Some(self.enter_remote(address))
                }
                Target::NotFound => None,
            };
            resolutions.push((target, resolved));
        }
        let mut change = Change::new();
        change.resolve(file, resolutions);
        self.db.apply_change(change);
    }

    fn enter_used(&mut self, path: &Path, waiting: &mut Vec<FileId>) -> Option<FileId> {
        let canonical = path.canonicalize().ok()?;
        if let Some(file) = self.by_path.get(&canonical) {
            return Some(*file);
        }
        match read_program(path) {
            Ok(text) => {
                let file = self.enter(canonical, path, text);
                waiting.push(file);
                Some(file)
            }
            Err(error) => {
                self.unreadable.push(error);
                None
            }
        }
    }

    fn enter_remote(&mut self, address: String) -> FileId {
        if let Some(file) = self.by_address.get(&address) {
            return *file;
        }
        let file = self.next_id();
        let mut change = Change::new();
        change
            .files
            .push((file, address.clone(), FileContent::Unapproved));
        self.db.apply_change(change);
        self.files.push(File {
            path: PathBuf::new(),
            display: address.clone(),
            text: Arc::from(""),
        });
        self.by_address.insert(address, file);
        file
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (dir, root)
    }

    fn shown(loaded: &Loaded) -> Vec<&str> {
        loaded
            .workspace
            .files()
            .map(|file| loaded.workspace.display(file))
            .collect()
    }

    #[test]
    fn targets_of_use_are_found_upward_to_the_root() {
        let (_dir, root) = project(&[
            ("lib/a.prose", ""),
            ("flows/lib/b.prose", ""),
            ("alice/research", ""),
        ]);
        let from = root.join("flows/daily/main.prose");
        let check = |target: &str, expected: Target| {
            let found = resolve_use(target, &from, &root, "https://r.example/", &|path| path.is_file());
            assert_eq!(found, expected, "{target}");
        };
        check("lib/a.prose", Target::Local(root.join("lib/a.prose")));
        check("./lib/b.prose", Target::Local(root.join("flows/lib/b.prose")));
        check("../lib/b.prose", Target::Local(root.join("flows/lib/b.prose")));
        check("c.prose", Target::NotFound);
        check("alice/research", Target::Local(root.join("alice/research")));
        check(
            "alice/other",
            Target::Remote("https://r.example/alice/other".into()),
        );
        check(
            "@alice/other",
            Target::Remote("https://r.example/alice/other".into()),
        );
        check(
            "https://h.example/lib/a.prose",
            Target::Remote("https://h.example/lib/a.prose".into()),
        );
        check("", Target::NotFound);
        check("ftp://h.example/x.prose", Target::NotFound);
    }

    #[test]
    fn targets_of_run_are_told_apart() {
        let (_dir, root) = project(&[("alice/x", "")]);
        let there = root.join("alice/x").to_str().unwrap().to_owned();
        assert_eq!(resolve_target(&there), Target::Local(there.clone().into()));
        assert_eq!(
            resolve_target("none/here.prose"),
            Target::Local("none/here.prose".into())
        );
        assert_eq!(resolve_target("here"), Target::Local("here".into()));
        assert_eq!(
            resolve_target("some-handle/some-slug"),
            Target::Remote("https://p.prose.md/some-handle/some-slug".into())
        );
        assert_eq!(
            resolve_target("https://h.example/x"),
            Target::Remote("https://h.example/x".into())
        );
    }

    #[test]
    fn the_closure_of_local_uses_is_read_once() {
        let (_dir, root) = project(&[
            (
                "flows/main.prose",
                "use \"lib/a.prose\"\nuse \"./b.prose\"\ndo hello\n",
            ),
            (
                "lib/a.prose",
                "use \"c.prose\"\nblock hello:\n  session \"Say hello\"\n",
            ),
            ("flows/b.prose", "use \"lib/a.prose\"\nblock other:\n  do hello\n"),
            ("lib/c.prose", "agent helper:\n  model: sonnet\n"),
            ("lib/unused.prose", "session \"x\"\n"),
        ]);
        let loaded = load(&root.join("flows/main.prose"), &root).unwrap();
        let mut files = shown(&loaded);
        assert_eq!(files.remove(0), "flows/main.prose");
        files.sort_unstable();
        assert_eq!(files, ["flows/b.prose", "lib/a.prose", "lib/c.prose"]);
        assert_eq!(loaded.workspace.remote(), []);
        let bundle = loaded.bundle.unwrap();
        assert!(bundle.programs[bundle.entry].blocks.contains_key("hello"));
        assert!(bundle.files.iter().any(|file| file.path == "lib/a.prose"));
    }

    #[test]
    fn a_missing_or_unreadable_use_does_not_hide_the_rest() {
        let (_dir, root) = project(&[(
            "main.prose",
            "use \"none.prose\"\nuse \"latin.prose\"\nsession \"x\"\n",
        )]);
        fs::write(root.join("latin.prose"), b"\xff").unwrap();
        let loaded = load(&root.join("main.prose"), &root).unwrap();
        assert_eq!(shown(&loaded), ["main.prose"]);
        let unreadable: Vec<String> = loaded
            .workspace
            .unreadable()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            unreadable,
            [format!(
                "{}:1: not UTF-8 text (byte 0)",
                root.join("latin.prose").display()
            )]
        );
        assert!(load(&root.join("latin.prose"), &root).is_err());
    }

    #[test]
    fn remote_uses_are_listed_and_not_fetched() {
        let (_dir, root) = project(&[
            (
                "main.prose",
                "use \"a.prose\"\nuse \"alice/research\"\nsession \"x\"\n",
            ),
            (
                "a.prose",
                "use \"https://h.example/x.prose\" as x\nuse \"alice/research\"\nblock b:\n  session \"y\"\n",
            ),
        ]);
        let loaded = load(&root.join("main.prose"), &root).unwrap();
        let remote: Vec<(&str, &str)> = loaded
            .workspace
            .remote()
            .iter()
            .map(|used| (loaded.workspace.display(used.file), used.address.as_str()))
            .collect();
        assert_eq!(
            remote,
            [
                ("main.prose", "https://p.prose.md/alice/research"),
                ("a.prose", "https://h.example/x.prose"),
                ("a.prose", "https://p.prose.md/alice/research"),
            ]
        );
        assert_eq!(shown(&loaded), ["main.prose", "a.prose"]);
    }

    #[test]
    fn files_that_use_each_other_are_loaded_and_reported() {
        let (_dir, root) = project(&[
            ("a.prose", "use \"b.prose\"\nsession \"a\"\n"),
            ("b.prose", "use \"a.prose\"\nblock b:\n  session \"b\"\n"),
        ]);
        let loaded = load(&root.join("a.prose"), &root).unwrap();
        assert_eq!(shown(&loaded), ["a.prose", "b.prose"]);
    }

    #[test]
    fn a_program_need_not_be_on_disk() {
        let (_dir, root) = project(&[("lib/a.prose", "block hello:\n  session \"Say hello\"\n")]);
        let mut workspace = Workspace::new(&root);
        let file = workspace.add_text("<stdin>", "use \"lib/a.prose\"\ndo hello\n");
        assert_eq!(workspace.display(file), "<stdin>");
        assert!(workspace.bundle(file).is_ok());
    }

    #[test]
    fn errors_keep_a_program_from_running() {
        let (_dir, root) = project(&[("main.prose", "session: nobody\n")]);
        let loaded = load(&root.join("main.prose"), &root).unwrap();
        let errors = loaded.bundle.unwrap_err();
        assert!(!errors.is_empty());
        assert_eq!(
            loaded.diagnostics[0].1.len(),
            loaded.workspace.diagnostics(loaded.file).len()
        );
    }
}
