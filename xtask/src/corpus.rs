//! `cargo xtask corpus DIR`: tries public programs. The work is done by a program of its own, which needs most of the
//! workspace; this one has to start without it.

use std::path::Path;
use std::process::ExitCode;

use crate::{Result, places, process};

pub fn run(dir: &Path) -> Result<ExitCode> {
    let dir = std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let arguments = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "prose-tests",
        "--bin",
        "corpus",
        "--",
    ];
    let mut command = process::command("cargo", &arguments, places::root());
    command.arg(dir);
    Ok(if process::tee(command, |_| {})? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
