//! The machine's semantics, sentence by sentence, on hand-built bundles with scripted outcomes.
#![allow(clippy::unwrap_used, missing_docs)]

mod build;
mod calls;
mod cancelling;
mod determinism;
mod errors;
mod harness;
mod inputs;
mod judging;
mod loops;
mod parallel;
mod pipelines;
mod scope;
mod sessions;
mod spike;
mod values;
