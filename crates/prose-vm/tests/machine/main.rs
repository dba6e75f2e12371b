//! The machine's semantics, sentence by sentence, on hand-built bundles with scripted outcomes.
#![allow(clippy::unwrap_used, missing_docs)]

mod build;
mod harness;
mod sessions;
