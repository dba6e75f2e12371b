//! The machine: a synchronous, deterministic step function. Outcomes go in, effects and events come out.
//!
//! A program runs as *strands* (concurrent branches), each with a stack of explicit continuations on the heap, so that a
//! run is a value: the same bundle with the same inputs and the same outcomes in the same order gives the same effects
//! and events. Resume, simulation, test and debugger are all that replay. Recursion of the program never becomes
//! recursion of this code.
//!
//! Deliberately absent: IO, clock, randomness, threads, async, journals, prompts' final wording, backends. What needs
//! content behind a reference is asked for as an effect.
//!
//! Architecture invariant: nothing but `Machine::start`, `resolve`, `cancel` and `deadline` can change what a machine
//! does next, and nothing it does depends on how these calls are grouped into steps.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod calls;
mod cancel;
pub mod choices;
mod code;
mod compile;
pub mod decode;
mod errors;
mod eval;
mod events;
mod expr;
mod flow;
mod inspect;
mod judge;
mod loops;
mod machine;
mod parallel;
mod pipeline;
pub mod render;
mod scope;
mod session;
mod strand;

pub use api::*;
pub use errors::kind_word;
pub use machine::Machine;
pub use prose_model::vocabulary::LOOP_LIMIT;

/// How deep blocks may call each other where a block says nothing else (seed, "Recursion Depth Limits").
pub const DEFAULT_MAX_DEPTH: u32 = 100;
/// Evaluations between two points where the machine waits, after which the program counts as stuck in itself.
pub const WORK_LIMIT: u64 = 1_000_000;
/// Evaluations of one step; then it hands back what it has.
pub const STEP_WORK: u64 = 20_000;
/// Levels of lists and records in a value: what the journal's JSON can be read back from.
pub const MAX_NESTING: usize = 50;
/// Items of a list that the program builds.
pub const MAX_ITEMS: usize = 1_000_000;
/// Bytes of a text above which an insertion into what a model or a person reads is a line about it (language.md,
/// "Values").
pub const INSERT_LIMIT: u64 = 32 << 10;
/// How many of the latest finished sessions the judge is told of.
pub const SESSIONS_TOLD: usize = 100;
/// How many of its latest verdicts a loop's test is told.
pub const VERDICTS_TOLD: usize = 20;
/// Bytes of inline text that the program builds.
pub const MAX_TEXT: usize = 16 << 20;
