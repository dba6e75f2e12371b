//! Looks for the programs of the workspace, on a thread of its own, so that features across files know those that nobody
//! has opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use prose_ide::FileContent;
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
    let sender = events.clone();
    let look = move || {
        scan(&folders, &project, &sender);
        // Fails only when the main loop is gone.
        let _ = sender.send(Event::Scanned);
    };
    let thread = std::thread::Builder::new().name("prose-scan".into());
    if let Err(error) = thread.spawn(look) {
        tracing::error!(%error, "the workspace was not looked through");
        let _ = events.send(Event::Scanned);
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
