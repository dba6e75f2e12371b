//! What a person or a program sees of diagnostics and runs.

pub mod diagnostics;
pub mod lines;
pub mod report;
pub mod text;
pub mod tree;
