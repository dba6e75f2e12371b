//! Writing files so that a reader, or the next process after a crash, sees the old or the new content and nothing
//! between.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::io;
use crate::{Result, failpoint};

/// How the names of files that are being written begin.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Whether a write waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Content and folder entry are on disk when the call returns.
    Durable,
    /// Left to the system: for what can be rebuilt.
    Lazy,
}

/// Replaces a file's content in one step. `part` names the kind of file to [`failpoint`].
pub(crate) fn write_atomic(path: &Path, content: &[u8], sync: Sync, part: &'static str) -> Result<()> {
    let write = |file: &mut File, tmp: &Path| {
        if failpoint::due(part, "half") {
            let _ = file.write_all(&content[..content.len() / 2]);
            failpoint::abort();
        }
        file.write_all(content).map_err(io("write", tmp))
    };
    write_atomic_with(path, sync, part, write)
}

/// Replaces a file's content in one step by what `write` puts into it.
pub(crate) fn write_atomic_with(
    path: &Path,
    sync: Sync,
    part: &'static str,
    write: impl FnOnce(&mut File, &Path) -> Result<()>,
) -> Result<()> {
    failpoint::hit(part, "begin");
    let tmp = temporary(path);
    let done =
        write_new(&tmp, write, sync, part).and_then(|()| fs::rename(&tmp, path).map_err(io("write", path)));
    if done.is_err() {
        // Best effort: what is left over has a name that nothing reads.
        let _ = fs::remove_file(&tmp);
        return done;
    }
    failpoint::hit(part, "renamed");
    if sync == Sync::Durable
        && let Some(parent) = path.parent()
    {
        sync_dir(parent)?;
        failpoint::hit(part, "folder-synced");
    }
    Ok(())
}

/// Makes a folder's entries durable. Only Unix can and needs to.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|dir| dir.sync_all())
            .map_err(io("sync", path))?;
    }
    Ok(())
}

/// Removes what writes that a crash cut short have left in a folder. Only for the one who alone may write there.
pub(crate) fn remove_temporaries(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            // Nothing reads it, so that it stays does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The same for all folders below one; links are not followed.
pub(crate) fn remove_temporaries_below(dir: &Path) {
    remove_temporaries(dir);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_temporaries_below(&entry.path());
        }
    }
}

/// Creates a folder and what lies above it.
pub(crate) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(io("create", path))
}

/// Opens a file to read it. A device or a pipe may have no end, or nobody who writes to it, and is refused; a link to a file
/// is as good as the file.
pub(crate) fn open_file(path: &Path) -> std::io::Result<File> {
    // What was opened is looked at, not the name, which may mean something else meanwhile.
    let file = open_at_once(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(refused("it is no regular file"))
    }
}

/// Opens without waiting for whoever writes to a pipe.
#[cfg(unix)]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// Opens a file to lock it and to write into it, and makes it where that is wanted. Something else in its place is refused, and
/// not waited for.
pub(crate) fn open_lock(path: &Path, create: bool) -> std::io::Result<File> {
    let file = match open_to_lock(path, create) {
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => return Err(misplaced("a folder")),
        opened => opened?,
    };
    let facts = file.metadata()?;
    match facts.is_file() {
        true => Ok(file),
        false => Err(misplaced(kind_of(&facts))),
    }
}

fn misplaced(kind: &str) -> std::io::Error {
    refused(format!("it is no regular file but {kind}; move that away"))
}

#[cfg(unix)]
fn open_to_lock(path: &Path, create: bool) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if create {
        flags |= OFlags::CREATE;
    }
    Ok(File::from(rustix::fs::open(
        path,
        flags,
        Mode::from_raw_mode(0o666),
    )?))
}

#[cfg(not(unix))]
fn open_to_lock(path: &Path, create: bool) -> std::io::Result<File> {
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .open(path)
}

/// What lies at a place, for a person.
fn kind_of(facts: &fs::Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = facts.file_type();
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    match (facts.is_dir(), facts.is_file()) {
        (true, _) => "a folder",
        (_, true) => "a file",
        _ => "something else",
    }
}

/// Refuses what stands in the place of a folder; that there is nothing is fine.
pub(crate) fn expect_folder(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(facts) if !facts.is_dir() => Err(io("use", path)(refused(format!(
            "it is no folder but {}; move that away",
            kind_of(&facts)
        )))),
        _ => Ok(()),
    }
}

/// Writes a file where it is missing or another.
pub(crate) fn write_changed(path: &Path, content: &[u8], sync: Sync, part: &'static str) -> Result<()> {
    if read_file(path).ok().as_deref() == Some(content) {
        return Ok(());
    }
    write_atomic(path, content, sync, part)
}

/// Opens a file that a session left, to read it; none when there is no such file. The session decides what lies there, and
/// must not be able to pass another file off as its own: only a regular file without a second name is taken, and neither it
/// nor its folder may be a link.
pub(crate) fn open_own(path: &Path) -> std::io::Result<Option<File>> {
    let file = match open_unlinked(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(refused("it is no regular file"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&facts) > 1 {
        return Err(refused(LINK));
    }
    Ok(Some(file))
}

const LINK: &str = "it is a link; a session has to write the text itself";

#[cfg(unix)]
fn open_unlinked(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags};
    use rustix::io::Errno;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened =
        rustix::fs::openat(CWD, folder, flags | OFlags::DIRECTORY, Mode::empty()).and_then(|folder| {
            let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
            rustix::fs::openat(folder, name, flags, Mode::empty())
        });
    match opened {
        Ok(file) => Ok(File::from(file)),
        // A link where a folder is wanted is no folder.
        Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => Err(refused(LINK)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn open_unlinked(path: &Path) -> std::io::Result<File> {
    let is_link = |path: &Path| fs::symlink_metadata(path).map(|facts| facts.is_symlink());
    if is_link(path)?
        || path
            .parent()
            .is_some_and(|folder| is_link(folder).unwrap_or(true))
    {
        return Err(refused(LINK));
    }
    File::open(path)
}

pub(crate) fn refused(why: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidInput, why.into())
}

/// Reads a file, as [`open_file`] opens it.
pub(crate) fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that a person wrote.
///
/// # Errors
/// Of the kind `InvalidInput` for what is no regular file, such as a pipe, which is not waited for; `FileTooLarge` for one of
/// more than `most` bytes.
pub fn read_at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it has more than {most} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads text, or none when there is no file.
pub(crate) fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", path)(error)),
    }
}

fn write_new(
    tmp: &Path,
    write: impl FnOnce(&mut File, &Path) -> Result<()>,
    sync: Sync,
    part: &'static str,
) -> Result<()> {
    let mut file = File::create_new(tmp).map_err(io("create", tmp))?;
    write(&mut file, tmp)?;
    failpoint::hit(part, "written");
    if sync == Sync::Durable {
        file.sync_all().map_err(io("sync", tmp))?;
        failpoint::hit(part, "synced");
    }
    Ok(())
}

/// A name beside the target that no other write of any process uses, and that no reader takes for a binding or a value.
///
/// A crash leaves one behind, and the process after it may have the same id: the name also holds the time.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    path.with_file_name(format!("{TEMPORARY}{}-{now:x}-{n}", std::process::id()))
}
