//! Reading a journal record by record, also while its owner goes on writing.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use prose_model::JournalRecord;

use crate::error::io;
use crate::fs::open_file;
use crate::journal::decode_line;
use crate::{Result, StateError};

/// So many bytes are read at a time.
const PIECE: u64 = 256 * 1024;

/// A place in a journal.
#[derive(Debug)]
pub struct JournalTail {
    path: PathBuf,
    /// How much of the file was read.
    at: u64,
    unread: Vec<u8>,
    /// How much of `unread` was given out.
    given: usize,
    next: u64,
}

impl JournalTail {
    /// At the beginning.
    pub fn open(path: &Path) -> JournalTail {
        JournalTail {
            path: path.to_owned(),
            at: 0,
            unread: Vec::new(),
            given: 0,
            next: 0,
        }
    }

    /// The next record; none at the end, where more may come. A record that is being written counts as not there.
    ///
    /// # Errors
    /// [`StateError::JournalDamaged`] when a whole line is no record.
    pub fn read(&mut self) -> Result<Option<JournalRecord>> {
        loop {
            let rest = &self.unread[self.given..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let record =
                    decode_line(&rest[..end], self.next).map_err(|damage| StateError::JournalDamaged {
                        path: self.path.clone(),
                        line: self.next + 1,
                        offset: self.at - rest.len() as u64,
                        damage,
                    })?;
                self.given += end + 1;
                self.next += 1;
                return Ok(Some(record));
            }
            self.unread.drain(..self.given);
            self.given = 0;
            let failed = |error| io("read", &self.path)(error);
            let mut file = open_file(&self.path).map_err(failed)?;
            file.seek(SeekFrom::Start(self.at)).map_err(failed)?;
            let got = file.take(PIECE).read_to_end(&mut self.unread).map_err(failed)?;
            if got == 0 {
                return Ok(None);
            }
            self.at += got as u64;
        }
    }
}
