//! A machine that computes for long, and a user who wants an end of it meanwhile.

use crate::driver::Driver;
use crate::perform::Msg;

/// So many more steps a machine that computes is given to come to a place where it can be cancelled.
const STEPS_TO_CANCEL: u32 = 3;

/// What is known while the machine goes from one answer to the next wait.
#[derive(Default)]
pub(crate) struct Computing {
    /// Steps since the run is to be cancelled.
    since: Option<u32>,
}

impl Driver {
    /// The machine has more to do before it waits: `state.md` follows, and messages are looked at.
    pub(crate) fn goes_on(&mut self, computing: &mut Computing) {
        if self.replaying {
            return;
        }
        self.publisher.flush(false);
        if let Some(steps) = &mut computing.since {
            *steps += 1;
        }
        while let Ok(msg) = self.rx.try_recv() {
            match msg {
                Msg::Stop => self.stop = true,
                Msg::Cancel if computing.since.is_some() => self.stop = true,
                Msg::Cancel => computing.since = Some(0),
                msg => self.deferred.push_back(msg),
            }
        }
        self.stop |= computing.since.is_some_and(|steps| steps >= STEPS_TO_CANCEL);
    }

    /// Whether the run is let go of in the middle of what it computes. A cancellation has its place in the journal between
    /// two answers, and the machine may not get there for long: what it did since the last answer is not kept, and a resume
    /// does it again.
    pub(crate) fn lets_go(&self) -> bool {
        self.stop && !self.replaying
    }

    /// The machine came to rest: now it can be cancelled as ever.
    pub(crate) fn rests(&mut self, computing: Computing) {
        if computing.since.is_some() {
            self.deferred.push_front(Msg::Cancel);
        }
    }
}
