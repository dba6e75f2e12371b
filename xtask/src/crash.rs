//! `cargo xtask crash`: the whole crash matrix, of which CI runs a part: a run is ended after every journal record, at every
//! step of every write, at random moments and several times in a row. Takes some minutes.

use std::process::ExitCode;
use std::time::Duration;

use crate::{Result, places, process};

/// The slowest machine that is worth waiting for.
const LIMIT: Duration = Duration::from_secs(60 * 60);

pub fn run() -> Result<ExitCode> {
    let arguments = [
        "test",
        "--package",
        "prose-tests",
        "--test",
        "crash",
        "--",
        "--nocapture",
        "--test-threads",
        "1",
    ];
    let mut command = process::command("cargo", &arguments, places::root());
    command.env("PROSE_CRASH", "full");
    Ok(if process::tee_within(LIMIT, command, |_| {})? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
