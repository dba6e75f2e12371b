//! One function per request: reads a snapshot, converts, nothing else.

mod actions;
mod completion;
mod formatting;
mod hover;
mod navigation;
mod program;
mod view_text;
mod watch;

pub(crate) use actions::{FIX_ALL, RUN, code_actions, code_lenses};
pub(crate) use completion::completion;
pub(crate) use formatting::{formatting, on_type_formatting, range_formatting};
pub(crate) use hover::hover;
pub(crate) use navigation::{definition, document_symbols, references};
pub(crate) use program::program;
pub(crate) use view_text::{ViewText, ViewTextParams, view_text};
pub(crate) use watch::watch_files;
