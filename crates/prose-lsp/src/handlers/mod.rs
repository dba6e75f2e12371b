//! One function per request: reads a snapshot, converts, nothing else.

mod program;
mod view_text;
mod watch;

pub(crate) use program::program;
pub(crate) use view_text::{ViewText, ViewTextParams, view_text};
pub(crate) use watch::watch_files;
