//! Tests of the public surface, one module per concern.
#![allow(missing_docs, clippy::unwrap_used)]

mod checks;
mod codes;
mod fix_cases;
mod fixes;
mod incremental;
mod lints;
mod lowering;
mod names;
mod random;
mod recovery;
mod support;
mod upstream;
