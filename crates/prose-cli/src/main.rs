//! `prose`: run, check and explain OpenProse programs.
fn main() {}
