//! Child processes: always without standard input, so that nothing waits for a person.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Result, session::say};

/// A command that runs in `folder`.
pub fn command(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs a command, passes its output on line by line and shows each line of its standard output to `see`.
/// Whether it succeeded.
pub fn tee(mut command: Command, mut see: impl FnMut(&str)) -> Result<bool> {
    let name = describe(&command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("can't start `{name}`: {error}"))?;
    if let Some(output) = child.stdout.take() {
        let mut shown = std::io::stdout();
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("reading from `{name}`: {error}"))?
            > 0
        {
            // A closed standard output is no reason to stop what runs.
            let _ = shown.write_all(&line).and_then(|()| shown.flush());
            see(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("waiting for `{name}`: {error}"))?;
    if !status.success() {
        say(&format!("`{name}` ended with {status}"));
    }
    Ok(status.success())
}

/// Runs a command silently; its output is shown only when it fails.
pub fn quiet(mut command: Command) -> Result<()> {
    let name = describe(&command);
    let output = command
        .output()
        .map_err(|error| format!("can't start `{name}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!(
        "`{name}` ended with {}:\n{}",
        output.status,
        String::from_utf8_lossy(&text).trim_end()
    ))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
