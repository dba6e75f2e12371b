//! One function per request: reads a snapshot, converts, nothing else.

mod actions;
mod calls;
mod completion;
mod formatting;
mod hints;
mod hover;
mod moves;
mod navigation;
mod program;
mod pull;
mod reading;
mod rename;
mod tokens;
mod view_text;
mod watch;

pub(crate) use actions::{FIX_ALL, RUN, code_actions, code_lenses};
pub(crate) use calls::{incoming_calls, outgoing_calls, prepare_calls};
pub(crate) use completion::completion;
pub(crate) use formatting::{formatting, on_type_formatting, range_formatting};
pub(crate) use hints::{inlay_hints, signature_help};
pub(crate) use hover::hover;
pub(crate) use moves::will_rename_files;
pub(crate) use navigation::{
    definition, document_symbols, implementations, references, type_definition, workspace_symbols,
};
pub(crate) use program::program;
pub(crate) use pull::{PullResults, document_diagnostics, workspace_diagnostics};
pub(crate) use reading::{document_links, folding, highlights, selection_ranges};
pub(crate) use rename::{prepare_rename, rename};
pub(crate) use tokens::{TokenResults, legend, tokens_delta, tokens_full, tokens_range};
pub(crate) use view_text::{ViewText, ViewTextParams, view_text};
pub(crate) use watch::watch_files;
