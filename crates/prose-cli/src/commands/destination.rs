//! Files that a person names to be written: `--record FILE`, `--report FILE`. A slip of the hand must not cost a program, a
//! run, or anything else that these options have not written themselves.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use prose_model::Bundle;
use prose_runtime::runs::{Recording, RunDir, history};

use crate::render::report;

/// Files that say what a project is and may do.
const POLICY: [&str; 2] = ["prose.toml", "prose.lock"];

/// A file that an option writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination<'a> {
    option: &'static str,
    path: &'a Path,
    /// How the files begin that the option writes.
    beginning: &'static str,
    /// A name that such a file could have.
    example: &'static str,
}

/// What a command reads or rests on, which it therefore must not write over.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    root: &'a Path,
    /// Each with what it is to the person.
    files: Vec<(PathBuf, String)>,
}

impl<'a> Kept<'a> {
    /// The runs of a project.
    pub(super) fn of(root: &'a Path) -> Kept<'a> {
        Kept {
            root,
            files: Vec::new(),
        }
    }

    /// Also a program, and all that it uses.
    #[must_use]
    pub(super) fn program(mut self, bundle: &Bundle) -> Kept<'a> {
        let entry = bundle
            .programs
            .get(bundle.entry)
            .map_or(0, |program| program.file as usize);
        for (index, file) in bundle.files.iter().enumerate() {
            let what = match index == entry {
                true => "the program".to_owned(),
                false => format!("{}, which the program uses", file.path),
            };
            self.files.push((self.root.join(&file.path), what));
        }
        self
    }

    /// Also another file.
    #[must_use]
    pub(super) fn file(mut self, path: Option<&Path>, what: &str) -> Kept<'a> {
        self.files
            .extend(path.map(|path| (path.to_owned(), what.to_owned())));
        self
    }
}

impl<'a> Destination<'a> {
    /// A mock file that `--record` writes.
    pub(super) fn record(path: &'a Path) -> Destination<'a> {
        Destination {
            option: "--record",
            path,
            beginning: Recording::BEGINNING,
            example: "answers.mock.toml",
        }
    }

    /// A page that `--report` writes.
    pub(super) fn report(path: &'a Path) -> Destination<'a> {
        Destination {
            option: "--report",
            path,
            beginning: report::BEGINNING,
            example: "report.html",
        }
    }

    /// Whether the file may be written: it is new, or empty, or this option has written it before; or it is a device or a
    /// pipe, which loses nothing.
    ///
    /// # Errors
    /// Why it may not, and what to do instead.
    pub(super) fn check(&self, kept: &Kept<'_>) -> Result<(), String> {
        let another = || format!("name another file, as {}", self.example);
        let facts = match fs::metadata(self.path) {
            Ok(facts) => Some(facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return self.refuse(&format!("it can't be looked at ({error})"), &another()),
        };
        let names_folder = self
            .path
            .as_os_str()
            .to_string_lossy()
            .ends_with(std::path::is_separator);
        if names_folder || facts.as_ref().is_some_and(fs::Metadata::is_dir) {
            let inside = self.path.join(self.example);
            return self.refuse(
                "that is a folder",
                &format!("name a file, as {}", inside.display()),
            );
        }
        if facts.as_ref().is_some_and(|facts| !facts.is_file()) {
            // Such a one may have no place that can be told, as `/dev/stdout`.
            return Ok(());
        }
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let place = match &facts {
            Some(_) => fs::canonicalize(self.path),
            None if self.path.is_symlink() => {
                return self.refuse("that is a link that leads nowhere", &another());
            }
            None => match fs::canonicalize(parent) {
                Ok(parent) => Ok(parent.join(self.path.file_name().unwrap_or_default())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let why = format!("there is no folder {}", parent.display());
                    return self.refuse(&why, "make it first, or name another");
                }
                Err(error) => Err(error),
            },
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => return self.refuse(&format!("it can't be looked at ({error})"), &another()),
        };
        let root = fs::canonicalize(kept.root).unwrap_or_else(|_| kept.root.to_owned());
        // It may be a link, to a disk with more room.
        let own = root.join(".prose");
        let own = fs::canonicalize(&own).unwrap_or(own);
        if place.starts_with(&own) {
            return self.refuse(
                "that is inside .prose/, where runs and memory are kept",
                &another(),
            );
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        if POLICY.iter().any(|policy| name.eq_ignore_ascii_case(policy)) {
            return self.refuse(
                &format!("{name} says how programs are run, and is yours to write"),
                &another(),
            );
        }
        for (file, what) in &kept.files {
            if is_same(&place, file) {
                return self.refuse(&format!("that is {what}"), &another());
            }
        }
        let Some(facts) = facts else {
            return self.check_folder(&place);
        };
        match self.is_own(&facts) {
            Ok(true) if facts.permissions().readonly() => self.refuse(
                "it may only be read",
                "allow that it is written, or name another file",
            ),
            Ok(true) => self.check_folder(&place),
            Ok(false) => self.refuse(
                &format!(
                    "there is such a file already, and {} did not write it",
                    self.option
                ),
                &format!("move it away, or {}", another()),
            ),
            Err(error) => self.refuse(&format!("it can't be read ({error})"), &another()),
        }
    }

    /// Tries whether a file can be made beside the place, as is done to write it: what is known too late has been paid for.
    fn check_folder(&self, place: &Path) -> Result<(), String> {
        let folder = place.parent().unwrap_or(Path::new("/"));
        match tempfile::tempfile_in(folder) {
            Ok(_) => Ok(()),
            Err(error) => self.refuse(
                &format!(
                    "no file can be made in {} ({})",
                    folder.display(),
                    super::without_place(error)
                ),
                "allow that, or name a file in another folder",
            ),
        }
    }

    /// The same, also for the folder in which `--record` puts long replies.
    ///
    /// # Errors
    /// As [`Destination::check`].
    pub(super) fn check_record(&self, kept: &Kept<'_>) -> Result<(), String> {
        self.check(kept)?;
        let folder = self.path.with_file_name(Recording::folder(self.path));
        let is_own = fs::metadata(self.path).is_ok_and(|facts| facts.len() > 0);
        let is_free = match fs::read_dir(&folder) {
            // What is in it belongs to the file that is replaced.
            Ok(mut entries) => is_own || entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_free && !folder.is_symlink() {
            return Ok(());
        }
        let why = format!(
            "long replies go to {}, and there is something already",
            folder.display()
        );
        self.refuse(&why, "move that away, or name another file")
    }

    fn refuse(&self, why: &str, mend: &str) -> Result<(), String> {
        Err(format!("{} {}: {why}; {mend}", self.option, self.path.display()))
    }

    /// Whether the file is empty, or begins as this option writes it.
    fn is_own(&self, facts: &fs::Metadata) -> io::Result<bool> {
        if facts.len() == 0 {
            return Ok(true);
        }
        let mut beginning = Vec::new();
        File::open(self.path)?
            .take(self.beginning.len() as u64)
            .read_to_end(&mut beginning)?;
        Ok(beginning == self.beginning.as_bytes())
    }
}

/// Writes a mock file with the answers of a run, the long replies first. Returns what it lacks, a sentence each.
///
/// # Errors
/// That the run's folder is gone, that there is something else by now where the file goes, that it can't be written.
pub(super) fn write_record(dir: &Path, path: &Path) -> Result<Vec<String>, String> {
    let dir = RunDir::at(dir).map_err(|error| error.to_string())?;
    let history = history(&dir);
    let root = dir.path().ancestors().nth(3).unwrap_or(Path::new("."));
    let kept = Kept::of(root);
    let kept = match &history.bundle {
        Some(bundle) => kept.program(bundle),
        None => kept,
    };
    Destination::record(path).check_record(&kept)?;
    let Recording {
        text,
        files,
        problems,
    } = Recording::of(&history, path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let write = |path: &Path, text: &str| {
        super::write_new(path, text).map_err(|error| format!("can't write {}: {error}", path.display()))
    };
    for (name, text) in &files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| format!("can't create {}: {error}", parent.display()))?;
        }
        write(&path, text)?;
    }
    write(path, &text)?;
    Ok(problems)
}

/// Whether two names mean one file, be it through links or a second name.
fn is_same(place: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(place), Ok(other)) = (fs::metadata(place), fs::metadata(other)) {
        use std::os::unix::fs::MetadataExt;
        return (place.dev(), place.ino()) == (other.dev(), other.ino());
    }
    fs::canonicalize(other).is_ok_and(|other| other == place)
}
