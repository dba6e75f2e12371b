//! Looks for the programs of the workspace, on a thread of its own, so that features across files know those that nobody
//! has opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use prose_ide::{FileContent, FileId};
use prose_project::{find_programs, read_program};

use crate::main_loop::Event;
use crate::project::Project;

/// So many files are handed over at a time.
const BATCH: usize = 256;
/// More files than these are no workspace of programs; the rest is known when it is opened or used.
const MOST_FILES: usize = 20_000;
/// Nor is more text than this, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Tells whether a file on disk may be another than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
}

impl Stamp {
    /// Of the file as it is now; none when there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        let data = std::fs::metadata(path).ok()?;
        Some(Stamp {
            modified: data.modified().ok(),
            len: data.len(),
        })
    }
}

/// A program on disk.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Its name as shown to a person.
    pub(crate) shown: String,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) content: FileContent,
}

/// Looks through folders and reports with [`Event::Found`], at the end with [`Event::Scanned`]. Without a thread the
/// workspace counts as empty.
pub(crate) fn spawn(folders: Vec<PathBuf>, project: Project, events: Sender<Event>) {
    let over = Over(events);
    let look = move || scan(&folders, &project, &over.0);
    in_background("prose-scan", look);
}

/// Looks which of these files have changed on disk since they were read, and reports with [`Event::Outdated`], at the end
/// with [`Event::Scanned`]. A network's disk may take long to say so.
pub(crate) fn find_changed(files: Vec<(FileId, PathBuf, Option<Stamp>)>, events: Sender<Event>) {
    let over = Over(events);
    in_background("prose-stamps", move || {
        let changed = files
            .into_iter()
            .filter(|(_, path, stamp)| Stamp::of(path) != *stamp);
        let changed = changed.map(|(file, ..)| file).collect();
        // Fails only when the main loop is gone.
        let _ = over.0.send(Event::Outdated(changed));
    });
}

/// Tells the end of a scan, also of one that panicked or never began.
struct Over(Sender<Event>);

impl Drop for Over {
    fn drop(&mut self) {
        // Fails only when the main loop is gone.
        let _ = self.0.send(Event::Scanned);
    }
}

fn in_background(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(work) {
        tracing::error!(%error, name, "the workspace was not looked through");
    }
}

fn scan(folders: &[PathBuf], project: &Project, events: &Sender<Event>) {
    let (mut files, mut bytes) = (0, 0);
    for folder in folders {
        let programs = match find_programs(folder) {
            Ok(programs) => programs,
            Err(problem) => {
                tracing::warn!(%problem, "a workspace folder was not looked through");
                continue;
            }
        };
        for batch in programs.chunks(BATCH) {
            let mut found = Vec::with_capacity(batch.len());
            for path in batch {
                files += 1;
                if files > MOST_FILES || bytes > MOST_BYTES {
                    tracing::warn!(files, bytes, "the workspace is too large to be known whole");
                    let _ = events.send(Event::Found(found));
                    return;
                }
                let stamp = Stamp::of(path);
                let content = match read_program(path) {
                    Ok(text) => {
                        bytes += text.len();
                        FileContent::Text(Arc::from(text))
                    }
                    Err(problem) => {
                        tracing::debug!(%problem, "no text");
                        FileContent::Missing
                    }
                };
                found.push(Found {
                    shown: project.display_path(path),
                    path: path.clone(),
                    stamp,
                    content,
                });
            }
            if events.send(Event::Found(found)).is_err() {
                return;
            }
        }
    }
}
