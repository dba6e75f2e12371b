//! Events of an observer that can't follow, in a file.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::sync::Arc;

use prose_model::{Order, RunEvent};

use crate::bus::StreamItem;

/// So many bytes are collected before they are written.
const PIECE: usize = 64 * 1024;

/// A queue of events in a file without a name, which is gone when nobody has it open any more.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    /// What is not in the file yet.
    unwritten: Vec<u8>,
    /// Ends of what is in the file, and of what was read of it.
    written: u64,
    read: u64,
    /// Bytes that were read and not given out.
    unread: Vec<u8>,
    waiting: u64,
    /// How many of those that wait are the machine's.
    pub(crate) waiting_machine: u64,
    /// The machine's last event before those that wait.
    pub(crate) first_seq: Option<u64>,
}

impl Spill {
    /// `after` is the machine's last event before.
    pub(crate) fn new(after: Option<u64>) -> Result<Spill> {
        Ok(Spill {
            file: tempfile::tempfile()?,
            unwritten: Vec::new(),
            written: 0,
            read: 0,
            unread: Vec::new(),
            waiting: 0,
            waiting_machine: 0,
            first_seq: after,
        })
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(crate) fn write(&mut self, event: &RunEvent) -> Result<()> {
        let before = self.unwritten.len();
        let done = serde_json::to_writer(&mut self.unwritten, event).map_err(std::io::Error::from);
        if done.is_err() {
            self.unwritten.truncate(before);
            return done;
        }
        self.unwritten.push(b'\n');
        self.waiting += 1;
        self.waiting_machine += u64::from(matches!(event.order, Order::Machine { .. }));
        if self.unwritten.len() >= PIECE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(&self.unwritten)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// At most so many of the events that wait, in order.
    pub(crate) fn read(&mut self, most: usize) -> Result<Vec<StreamItem>> {
        self.flush()?;
        let mut events = Vec::new();
        let mut given = 0;
        while events.len() < most && self.waiting > 0 {
            match self.unread[given..].iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let event: RunEvent = serde_json::from_slice(&self.unread[given..given + end])?;
                    given += end + 1;
                    self.waiting -= 1;
                    if let Order::Machine { seq } = event.order {
                        self.waiting_machine -= 1;
                        self.first_seq = Some(seq);
                    }
                    events.push(StreamItem::Event(Arc::new(event)));
                }
                None => {
                    self.unread.drain(..given);
                    given = 0;
                    self.file.seek(SeekFrom::Start(self.read))?;
                    let got = (&mut self.file)
                        .take(PIECE as u64)
                        .read_to_end(&mut self.unread)?;
                    if got == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    self.read += got as u64;
                }
            }
        }
        self.unread.drain(..given);
        Ok(events)
    }
}
