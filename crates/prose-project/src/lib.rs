//! A workspace on disk: its root, its files, its configuration, and the bundle for a target with everything that its
//! local `use` statements reach.
//!
//! Deliberately absent: parsing and checking (prose-hir), editor features, the network, anything about runs.
//!
//! Architecture invariant: this is the only crate that reads programs and configuration from disk, and all that it
//! reads of a program enters the database through one `Change`.

mod config;
mod env;
mod files;
mod load;
mod root;

pub use config::{
    BackendConfig, BackendKind, Config, ConfigError, ImportsConfig, LintLevel, Models, Notice, RunConfig,
    StateKind, Trust, parse_duration,
};
pub use env::Environment;
pub use files::{LoadError, MAX_FILE, find_programs, read_program, would_find};
pub use load::{Loaded, REGISTRY, RemoteUse, Target, Workspace, load, resolve_target, resolve_use};
pub use root::{cache, find_root, home};
