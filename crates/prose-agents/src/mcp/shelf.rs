//! What was handed over, in files of the session's staging folder, until the session is over.

use std::io;
use std::path::PathBuf;

use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};

use super::{Handed, LONGEST_VALUE};
use crate::prompt::{STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT};

/// What can be put down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Binding,
    Memory,
    Segment,
}

/// Why it can't.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShelfError {
    /// It would be too long.
    #[error("the value would be longer than {LONGEST_VALUE} bytes")]
    TooLong,
    /// The system refuses; what was there before is still there.
    #[error("it could not be written: {0}")]
    Io(#[from] io::Error),
}

/// Keeps the last value of each place.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    /// Numbers the files.
    count: u64,
    places: [Option<Kept>; 3],
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Held open: what is added goes to this file and no other, whatever lies under its name meanwhile.
    file: File,
    /// Bytes before the value.
    head: u64,
    /// Bytes of the value.
    len: u64,
}

impl Shelf {
    /// A shelf in a folder that exists.
    pub(super) fn new(folder: PathBuf) -> Shelf {
        Shelf {
            folder,
            count: 0,
            places: [None, None, None],
        }
    }

    /// Puts a value in the place of what was there, below a head. How many bytes it has.
    pub(super) async fn put(&mut self, place: Place, head: &str, value: &str) -> Result<u64, ShelfError> {
        if value.len() as u64 > LONGEST_VALUE {
            return Err(ShelfError::TooLong);
        }
        self.count += 1;
        // A name of its own that nobody can know before: what an agent put there is not written through.
        let name = format!(".handed-over-{}-{}", self.count, uuid::Uuid::new_v4().simple());
        let path = self.folder.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .await?;
        let written = async {
            file.write_all(head.as_bytes()).await?;
            file.write_all(value.as_bytes()).await?;
            file.flush().await
        };
        if let Err(error) = written.await {
            let _ = fs::remove_file(&path).await;
            return Err(error.into());
        }
        let kept = Kept {
            path,
            file,
            head: head.len() as u64,
            len: value.len() as u64,
        };
        if let Some(old) = self.places[place as usize].replace(kept) {
            let _ = fs::remove_file(&old.path).await;
        }
        Ok(value.len() as u64)
    }

    /// Adds to what is there. How many bytes it has then.
    pub(super) async fn add(&mut self, place: Place, head: &str, value: &str) -> Result<u64, ShelfError> {
        let Some(kept) = &mut self.places[place as usize] else {
            return self.put(place, head, value).await;
        };
        let len = kept.len + value.len() as u64;
        if len > LONGEST_VALUE {
            return Err(ShelfError::TooLong);
        }
        let written = async {
            kept.file.write_all(value.as_bytes()).await?;
            kept.file.flush().await
        };
        if let Err(error) = written.await {
            // Nothing of half a piece.
            let whole = kept.head + kept.len;
            kept.file.set_len(whole).await?;
            kept.file.seek(io::SeekFrom::Start(whole)).await?;
            return Err(error.into());
        }
        kept.len = len;
        Ok(len)
    }

    /// Puts all of it where the prompt told the agent to write.
    pub(super) async fn take(&mut self) -> io::Result<Handed> {
        let mut handed = Handed::default();
        for (place, name, here) in [
            (Place::Binding, STAGED_BINDING, &mut handed.binding),
            (Place::Memory, STAGED_MEMORY, &mut handed.memory),
            (Place::Segment, STAGED_SEGMENT, &mut handed.segment),
        ] {
            if let Some(kept) = self.places[place as usize].take() {
                let target = self.folder.join(name);
                // A folder in its place is none that a file can replace.
                if fs::symlink_metadata(&target)
                    .await
                    .is_ok_and(|data| data.is_dir())
                {
                    fs::remove_dir_all(&target).await?;
                }
                fs::rename(&kept.path, &target).await?;
                *here = true;
            }
        }
        Ok(handed)
    }
}
