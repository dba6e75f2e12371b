//! Events of an observer that can't follow, in a file.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::sync::Arc;

use prose_model::{Event, RunEvent};

use crate::bus::{Gap, StreamItem};

/// So many bytes are collected before they are written.
const PIECE: usize = 64 * 1024;

/// Where the events of a slow observer go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage {
    /// Opens a file for reading and writing.
    pub(crate) open: fn() -> Result<File>,
    /// So many bytes are kept in memory while nothing can be written: there is no file, or no space for it.
    pub(crate) without_file: usize,
}

impl Default for Storage {
    fn default() -> Self {
        Storage {
            open: tempfile::tempfile,
            without_file: 16 * 1024 * 1024,
        }
    }
}

/// A queue of events in a file without a name, which is gone when nobody has it open any more. While nothing can be
/// written, they are kept in memory, to a limit; what comes then is counted, and the last of the queue is a gap.
#[derive(Debug)]
pub(crate) struct Spill {
    storage: Storage,
    file: Option<File>,
    /// What is not in the file yet.
    unwritten: Vec<u8>,
    /// How long `unwritten` is when it is written next.
    write_at: usize,
    /// Ends of what is in the file, and of what was read of it.
    written: u64,
    read: u64,
    /// Bytes that were read, and where those begin that were not given out.
    unread: Vec<u8>,
    given: usize,
    /// The events that wait, as the gap that they are if they can't be read again.
    waiting: Gap,
    /// Those that had no place.
    lost: Option<Gap>,
    /// The run's last event always has one.
    last: Option<RunEvent>,
}

impl Spill {
    /// `before` is an empty gap at the place of the first event.
    pub(crate) fn new(storage: Storage, before: Gap) -> Spill {
        Spill {
            storage,
            file: None,
            unwritten: Vec::new(),
            write_at: PIECE,
            written: 0,
            read: 0,
            unread: Vec::new(),
            given: 0,
            waiting: before,
            lost: None,
            last: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.missed == 0 && self.lost.is_none()
    }

    /// What can't be given any more, if the file can't be read.
    pub(crate) fn into_gap(self) -> Gap {
        let mut gap = self.waiting;
        if let Some(lost) = self.lost {
            gap.missed += lost.missed;
            gap.machine += lost.machine;
        }
        gap
    }

    /// Takes an event in. `before` is an empty gap at its place.
    pub(crate) fn push(&mut self, event: &RunEvent, before: Gap) {
        if let Some(lost) = &mut self.lost {
            match event.event {
                Event::RunFinished { .. } => self.last = Some(event.clone()),
                _ => lost.add(event),
            }
            return;
        }
        let start = self.unwritten.len();
        if start >= self.write_at
            && let Err(error) = self.write()
        {
            if start >= self.storage.without_file {
                tracing::debug!(%error, "events can't be put aside for a slow observer");
                self.lost.insert(before).add(event);
                return;
            }
            tracing::debug!(%error, "events for a slow observer are kept in memory");
            self.write_at = start + PIECE;
        }
        match serde_json::to_writer(&mut self.unwritten, event) {
            Ok(()) => {
                self.unwritten.push(b'\n');
                self.waiting.add(event);
            }
            Err(error) => {
                tracing::error!(%error, "an event can't be written down");
                self.unwritten.truncate(start);
                self.lost.insert(before).add(event);
            }
        }
    }

    fn write(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((self.storage.open)()?),
        };
        file.seek(SeekFrom::Start(self.written))?;
        file.write_all(&self.unwritten)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.write_at = PIECE;
        Ok(())
    }

    /// At most so many of what waits, in order; also where an error says that the rest can't be read.
    pub(crate) fn read(&mut self, most: usize) -> (Vec<StreamItem>, Result<()>) {
        let mut items = Vec::new();
        let read = self.read_into(&mut items, most);
        (items, read)
    }

    fn read_into(&mut self, items: &mut Vec<StreamItem>, most: usize) -> Result<()> {
        while items.len() < most && self.waiting.missed > 0 {
            let rest = &self.unread[self.given..];
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let event: RunEvent = serde_json::from_slice(&rest[..end])?;
                    self.given += end + 1;
                    self.waiting.take(&event);
                    items.push(StreamItem::Event(Arc::new(event)));
                }
                None => self.read_on()?,
            }
        }
        if self.waiting.missed == 0
            && let Some(gap) = self.lost.take()
        {
            items.push(StreamItem::Gap(gap));
            items.extend(self.last.take().map(|last| StreamItem::Event(Arc::new(last))));
        }
        Ok(())
    }

    /// Adds to `unread`: from the file, then what is in none.
    fn read_on(&mut self) -> Result<()> {
        self.unread.drain(..self.given);
        self.given = 0;
        let got = match &mut self.file {
            Some(file) if self.read < self.written => {
                let most = (self.written - self.read).min(PIECE as u64);
                file.seek(SeekFrom::Start(self.read))?;
                file.take(most).read_to_end(&mut self.unread)? as u64
            }
            _ => {
                self.unread.append(&mut self.unwritten);
                self.write_at = PIECE;
                return Ok(());
            }
        };
        self.read += got;
        match got {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
