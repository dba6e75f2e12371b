//! The `anthropic` and `openai` backends against a mock of both services.
#![allow(clippy::unwrap_used)]

mod faults;
mod harness;
mod judge;
mod sessions;
