//! The language server shell: tower-lsp around `prose-ide` and `prose-runtime`.
//!
//! Owns the framing of stdin/stdout, the life of the session, the main loop that owns the analysis database, open
//! documents, positions in the negotiated encoding, conversion to LSP types, and what the client is told about runs.
//!
//! Deliberately absent: analysis of programs (`prose-ide`), anything that makes a run go on (`prose-runtime`).
//!
//! Architecture invariant: the database is written by the main loop's thread only, and no LSP type leaves this crate.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod capabilities;
mod convert;
mod documents;
mod framing;
mod guard;
mod handlers;
mod main_loop;
mod outbox;
mod pages;
mod parent;
mod positions;
mod project;
mod query;
mod runs;
mod scan;
mod serve;
mod server;
mod session;
mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transport;
mod watchdog;

pub use serve::{Config, run_stdio, serve};
