//! `cargo xtask guide`: the language guide from the pages of the specification. The work is done by a program of its
//! own, which needs the table of codes.

use std::process::ExitCode;

use crate::{Result, places, process};

pub fn run() -> Result<ExitCode> {
    let arguments = ["run", "--quiet", "--package", "prose-tests", "--bin", "guide"];
    let command = process::command("cargo", &arguments, places::root());
    Ok(if process::tee(command, |_| {})? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
