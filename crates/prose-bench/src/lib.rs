//! Benchmarks. `benches/analysis.rs` measures lexing, parsing, checks and lowering on long texts, in CPU time; [`keystrokes`] drives
//! a real language server as an editor does; [`runs`] drives whole runs, [`apis`] sessions on a mock of the models' services, [`alone`] the machine without an engine. All are in one crate because they share long texts, the machine's description and
//! the table, and so that no other crate's tests wait for the harness to be built.
//!
//! Deliberately absent: limits. Timing decides no test; `cargo xtask bench` writes what it measured into a table.
//!
//! Architecture invariant: every figure comes with how noisy the machine was while it was measured.

pub mod alone;
pub mod apis;
pub mod client;
pub mod keystrokes;
pub mod machine;
pub mod report;
pub mod runs;
