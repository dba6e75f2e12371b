//! Tests of the mock by a client that shows every byte.
#![allow(clippy::unwrap_used, missing_docs)]

mod client;
mod faults;
mod files;
mod rules;
mod shapes;
