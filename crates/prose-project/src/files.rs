//! Files on disk: finding programs, reading them with errors that say what is wrong.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Longest program, in bytes. The largest seen in the wild is a hundredth of this; what is longer is not a program.
pub const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Why a file can't be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    #[error("there is no file {}", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A folder, device or the like.
    #[error("{} is {what}, not a file", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Longer than [`MAX_FILE`].
    #[error("{} is too large for a program: {len} bytes, and at most {MAX_FILE} are read", path.display())]
    TooLarge {
        /// The path as given.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    /// Not UTF-8.
    #[error("{}:{line}: not UTF-8 text (byte {offset})", path.display())]
    NotUtf8 {
        /// The path as given.
        path: PathBuf,
        /// Offset of the first byte that is wrong.
        offset: u64,
        /// The line that byte is in, from 1.
        line: u32,
    },
    /// The system refuses.
    #[error("can't read {}: {source}", path.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The target is remote.
    #[error("{target} is a remote program; running programs from the network is not supported yet")]
    Remote {
        /// The target as given.
        target: String,
    },
}

impl LoadError {
    /// The file, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            LoadError::NotFound { path }
            | LoadError::NotAFile { path, .. }
            | LoadError::TooLarge { path, .. }
            | LoadError::NotUtf8 { path, .. }
            | LoadError::Io { path, .. } => Some(path),
            LoadError::Remote { .. } => None,
        }
    }
}

/// Reads a program's text.
pub fn read_program(path: &Path) -> Result<String, LoadError> {
    let io = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => LoadError::NotFound {
            path: path.to_owned(),
        },
        _ => LoadError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        // Opening a pipe or a device might wait forever.
        let what = if metadata.is_dir() {
            "a folder"
        } else {
            "a device or a pipe"
        };
        return Err(LoadError::NotAFile {
            path: path.to_owned(),
            what,
        });
    }
    if metadata.len() > MAX_FILE {
        return Err(LoadError::TooLarge {
            path: path.to_owned(),
            len: metadata.len(),
        });
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(io)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(LoadError::TooLarge {
            path: path.to_owned(),
            len: bytes.len() as u64,
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u32
            + 1;
        LoadError::NotUtf8 {
            path: path.to_owned(),
            offset: valid as u64,
            line,
        }
    })
}

/// Every `*.prose` file in a folder, at any depth, sorted. Hidden folders (among them `.prose`, with its copies of
/// programs that ran), `node_modules` and `target` are left out, links to folders are not followed. A file is
/// returned as it is, whatever its name.
pub fn find_programs(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut programs = Vec::new();
    let keep = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !(entry.file_type().is_dir() && is_skipped(entry.file_name()))
    };
    for entry in WalkDir::new(path)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(keep)
    {
        match entry {
            Ok(entry) => {
                let is_program = entry
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == "prose");
                if (is_program || entry.depth() == 0) && !entry.path().is_dir() {
                    programs.push(entry.into_path());
                }
            }
            Err(error) if error.depth() == 0 => {
                let path = path.to_owned();
                return Err(match error.into_io_error() {
                    Some(source) if source.kind() == std::io::ErrorKind::NotFound => {
                        LoadError::NotFound { path }
                    }
                    Some(source) => LoadError::Io { path, source },
                    None => LoadError::NotFound { path },
                });
            }
            // One folder that can't be read must not hide all others.
            Err(error) => tracing::warn!(%error, "a folder was left out"),
        }
    }
    Ok(programs)
}

/// Whether [`find_programs`] in `folder` would come upon a file of this path, if it is one.
pub fn would_find(folder: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else {
        return false;
    };
    let mut folders = inside.parent().into_iter().flat_map(Path::iter);
    inside.extension().is_some_and(|extension| extension == "prose") && !folders.any(is_skipped)
}

fn is_skipped(folder: &OsStr) -> bool {
    let name = folder.to_string_lossy();
    name.starts_with('.') || name == "node_modules" || name == "target"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for file in [
            "b.prose",
            "a/x.prose",
            "a/notes.md",
            ".prose/runs/r/program.prose",
            "node_modules/m.prose",
            "target/t.prose",
            ".hidden.prose",
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir(dir.path().join("folder.prose")).unwrap();
        let found = find_programs(dir.path()).unwrap();
        let found: Vec<&Path> = found
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap())
            .collect();
        assert_eq!(found, [".hidden.prose", "a/x.prose", "b.prose"].map(Path::new));
        let would = |file: &str| would_find(dir.path(), &dir.path().join(file));
        assert!(
            ["b.prose", "a/x.prose", ".hidden.prose", "new/y.prose"]
                .map(would)
                .iter()
                .all(|it| *it)
        );
        let others = [
            "a/notes.md",
            ".prose/runs/r/program.prose",
            "node_modules/m.prose",
            "a/target/t.prose",
        ];
        assert!(!others.map(would).iter().any(|it| *it));
        assert!(!would_find(&dir.path().join("a"), &dir.path().join("b.prose")));
        let hidden = dir.path().join(".prose");
        assert_eq!(
            find_programs(&hidden).unwrap().len(),
            1,
            "what is asked for by name is not hidden"
        );
        let notes = dir.path().join("a/notes.md");
        assert_eq!(find_programs(&notes).unwrap(), [notes]);
        assert!(matches!(
            find_programs(&dir.path().join("none")),
            Err(LoadError::NotFound { .. })
        ));
    }

    #[test]
    fn what_is_no_program_is_said_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, content: Option<&[u8]>, message: &str| {
            let path = dir.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            let error = read_program(&path).unwrap_err().to_string();
            assert_eq!(error.replace(&format!("{}/", dir.path().display()), ""), message);
        };
        check("none.prose", None, "there is no file none.prose");
        check(
            "latin.prose",
            Some(b"# a\nsession \"\xe9t\xe9\"\n"),
            "latin.prose:2: not UTF-8 text (byte 13)",
        );
        check(
            "latin.prose/x.prose",
            None,
            "there is no file latin.prose/x.prose",
        );
        fs::create_dir(dir.path().join("folder")).unwrap();
        check("folder", None, "folder is a folder, not a file");
        let large = dir.path().join("large.prose");
        File::create(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
        check(
            "large.prose",
            None,
            "large.prose is too large for a program: 16777217 bytes, and at most 16777216 are read",
        );
        #[cfg(unix)]
        {
            let error = read_program(Path::new("/dev/null")).unwrap_err().to_string();
            assert_eq!(error, "/dev/null is a device or a pipe, not a file");
        }
        fs::write(dir.path().join("ok.prose"), "\u{feff}session \"a\"\r\n").unwrap();
        assert_eq!(
            read_program(&dir.path().join("ok.prose")).unwrap(),
            "\u{feff}session \"a\"\r\n"
        );
    }
}
