//! Opening files below a folder so that no link leads out of it, also when somebody swaps one in at that moment.
//!
//! The path to open has been resolved and judged before. It is then walked part by part from a handle of the folder, and no
//! part may be a link: what is opened is what was judged, or nothing.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    Other,
}

#[cfg(unix)]
mod system {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::path::Component;

    use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

    use super::*;

    /// A folder that is held open.
    pub(crate) struct Folder(OwnedFd);

    impl Folder {
        /// Opens the folder that everything is below of.
        pub(crate) fn open(base: &Path) -> io::Result<Folder> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            Ok(Folder(rustix::fs::openat(CWD, base, flags, Mode::empty())?))
        }

        fn child(&self, name: &std::ffi::OsStr) -> io::Result<Folder> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            Ok(Folder(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
        }

        /// Opens a folder below; with `make`, those that are missing are made.
        pub(crate) fn folder(&self, path: &Path, make: bool) -> io::Result<Folder> {
            let mut at = Folder(self.0.try_clone()?);
            for part in path.components() {
                let Component::Normal(name) = part else {
                    return Err(io::Error::from(io::ErrorKind::InvalidInput));
                };
                at = match at.child(name) {
                    Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                        match rustix::fs::mkdirat(&at.0, name, Mode::from(0o777)) {
                            Ok(()) | Err(rustix::io::Errno::EXIST) => at.child(name)?,
                            Err(error) => return Err(error.into()),
                        }
                    }
                    other => other?,
                };
            }
            Ok(at)
        }

        /// Opens a file below to read. Nothing but a plain file: opening a pipe or a device could wait or do something.
        pub(crate) fn read(&self, path: &Path) -> io::Result<File> {
            let (folder, name) = split(path)?;
            let folder = self.folder(folder, false)?;
            let flags =
                OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file = File::from(rustix::fs::openat(&folder.0, name, flags, Mode::empty())?);
            let meta = file.metadata()?;
            if meta.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            if !meta.is_file() {
                return Err(io::Error::other("not a plain file"));
            }
            Ok(file)
        }

        /// Replaces a file below, or makes it: at every moment there is the old one or the new one, whole. It is on disk when
        /// this returns. What `is_wanted` says just before the file takes its place decides whether it does.
        pub(crate) fn replace(
            &self,
            path: &Path,
            content: &[u8],
            is_wanted: impl FnOnce() -> bool,
        ) -> io::Result<()> {
            let (folder, name) = split(path)?;
            let folder = self.folder(folder, true)?;
            let old = rustix::fs::statat(&folder.0, name, AtFlags::SYMLINK_NOFOLLOW).ok();
            let old_mode = match old {
                Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                    Some(Mode::from_raw_mode(stat.st_mode) & Mode::from(0o777))
                }
                Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                Some(_) => return Err(io::Error::other("not a plain file")),
                None => None,
            };
            if let Some(mode) = old_mode {
                // A file that its owner can't write to is meant to stay as it is.
                if !mode.contains(Mode::WUSR) {
                    return Err(io::Error::from(io::ErrorKind::PermissionDenied));
                }
            }
            let temporary = temporary_name();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::openat(&folder.0, &temporary, flags, Mode::from(0o666))?;
            let mut file = File::from(file);
            let done = (|| {
                file.write_all(content)?;
                if let Some(mode) = old_mode {
                    rustix::fs::fchmod(&file, mode)?;
                }
                // IMPORTANT: a session's outcome rests on it, and must not be on record before it.
                file.sync_all()?;
                if !is_wanted() {
                    return Err(unwanted());
                }
                rustix::fs::renameat(&folder.0, &temporary, &folder.0, name)?;
                // Not every file system can do this for a folder.
                let _ = rustix::fs::fsync(&folder.0);
                Ok(())
            })();
            if done.is_err() {
                let _ = rustix::fs::unlinkat(&folder.0, &temporary, AtFlags::empty());
            }
            done
        }

        /// What is in it, by name: at most so many, and whether there are more.
        pub(crate) fn entries(&self, most: usize) -> io::Result<(Vec<Entry>, bool)> {
            let (mut entries, mut more) = (Vec::new(), false);
            for entry in Dir::read_from(&self.0)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name == "." || name == ".." {
                    continue;
                }
                if entries.len() == most {
                    more = true;
                    break;
                }
                let mut kind = entry.file_type();
                if kind == FileType::Unknown {
                    // Some file systems don't say.
                    kind = rustix::fs::statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
                }
                entries.push(Entry {
                    name,
                    kind: match kind {
                        FileType::Directory => Kind::Folder,
                        FileType::RegularFile => Kind::File,
                        FileType::Symlink => Kind::Link,
                        _ => Kind::Other,
                    },
                });
            }
            entries.sort();
            Ok((entries, more))
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::*;

    /// A folder, by its path: here links are looked for before and after a file is opened.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        /// Opens the folder that everything is below of.
        pub(crate) fn open(base: &Path) -> io::Result<Folder> {
            Ok(Folder(base.to_owned()))
        }

        fn checked(&self, path: &Path) -> io::Result<PathBuf> {
            let whole = self.0.join(path);
            let mut at = self.0.clone();
            for part in path.components() {
                at.push(part);
                if std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.file_type().is_symlink()) {
                    return Err(io::Error::other("a link is in the way"));
                }
            }
            Ok(whole)
        }

        /// Opens a folder below; with `make`, those that are missing are made.
        pub(crate) fn folder(&self, path: &Path, make: bool) -> io::Result<Folder> {
            let whole = self.checked(path)?;
            if make {
                std::fs::create_dir_all(&whole)?;
            }
            Ok(Folder(whole))
        }

        /// Opens a file below to read.
        pub(crate) fn read(&self, path: &Path) -> io::Result<File> {
            let file = File::open(self.checked(path)?)?;
            self.checked(path)?;
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("not a plain file")),
            }
        }

        /// Replaces a file below, or makes it.
        pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
            let (folder, name) = split(path)?;
            let folder = self.folder(folder, true)?;
            let temporary = folder.0.join(temporary_name());
            let done = std::fs::write(&temporary, content)
                .and_then(|()| self.checked(path))
                .and_then(|_| std::fs::rename(&temporary, folder.0.join(name)));
            if done.is_err() {
                let _ = std::fs::remove_file(&temporary);
            }
            done
        }

        /// What is in it, by name: at most so many, and whether there are more.
        pub(crate) fn entries(&self, most: usize) -> io::Result<(Vec<Entry>, bool)> {
            let (mut entries, mut more) = (Vec::new(), false);
            for entry in std::fs::read_dir(&self.0)? {
                let entry = entry?;
                if entries.len() == most {
                    more = true;
                    break;
                }
                let kind = entry.file_type()?;
                entries.push(Entry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    kind: match () {
                        () if kind.is_symlink() => Kind::Link,
                        () if kind.is_dir() => Kind::Folder,
                        () if kind.is_file() => Kind::File,
                        () => Kind::Other,
                    },
                });
            }
            entries.sort();
            Ok((entries, more))
        }
    }
}

pub(super) use system::Folder;

/// The folder of a path, and the name in it.
fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    Ok((path.parent().unwrap_or(Path::new("")), name))
}

/// A name for a file that is not there yet. It is one that no other process takes, nor one that was killed has left.
fn temporary_name() -> PathBuf {
    PathBuf::from(format!(".prose-{}.tmp", uuid::Uuid::new_v4().simple()))
}

fn unwanted() -> io::Error {
    io::Error::other("nothing was written: the session was stopped")
}
