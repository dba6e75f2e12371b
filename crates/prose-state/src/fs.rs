//! Writing files so that a reader, or the next process after a crash, sees the old or the new content and nothing
//! between.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;
use crate::error::io;

/// Whether a write waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Content and folder entry are on disk when the call returns.
    Durable,
    /// Left to the system: for what can be rebuilt.
    Lazy,
}

/// Replaces a file's content in one step.
pub(crate) fn write_atomic(path: &Path, content: &[u8], sync: Sync) -> Result<()> {
    let tmp = temporary(path);
    let done =
        write_new(&tmp, content, sync).and_then(|()| fs::rename(&tmp, path).map_err(io("write", path)));
    if done.is_err() {
        // Best effort: what is left over has a name that nothing reads.
        let _ = fs::remove_file(&tmp);
        return done;
    }
    if sync == Sync::Durable
        && let Some(parent) = path.parent()
    {
        sync_dir(parent)?;
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

/// Creates a folder and what lies above it.
pub(crate) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(io("create", path))
}

/// Reads text, or none when there is no file.
pub(crate) fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", path)(error)),
    }
}

fn write_new(tmp: &Path, content: &[u8], sync: Sync) -> Result<()> {
    let mut file = File::create_new(tmp).map_err(io("create", tmp))?;
    file.write_all(content).map_err(io("write", tmp))?;
    if sync == Sync::Durable {
        file.sync_all().map_err(io("sync", tmp))?;
    }
    Ok(())
}

/// A name beside the target that no other write of any process uses, and that no reader takes for a binding or a value.
fn temporary(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".tmp-{}-{n}", std::process::id()))
}
