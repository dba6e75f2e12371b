//! One file a command.

mod asking;
pub mod check;
pub mod compile;
mod destination;
pub mod doctor;
mod dry_run;
pub mod examples;
pub mod explain;
pub mod fmt;
pub mod lsp;
pub mod mcp;
pub mod run;
pub mod runs;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prose_project::find_programs;

/// How a command ends; the exit codes of `docs/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// As wanted.
    Ok,
    /// The program failed, or the check found errors.
    Failed,
    /// Nothing was done: usage, unreadable files, compile errors.
    Refused,
    /// The run waits for an input that can't be asked.
    Waiting,
    /// The user stopped it.
    Cancelled,
    /// The language server's own code.
    Server(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Refused => 2,
            Exit::Waiting => 3,
            Exit::Cancelled => 130,
            Exit::Server(code) => code,
        })
    }
}

/// Prints the completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Exit {
    use clap::CommandFactory as _;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::args::Cli::command(), "prose", &mut script);
    out(|stdout| stdout.write_all(&script))
}

/// Writes to stdout. A reader that has gone (`prose … | head`) is no error of ours.
pub(crate) fn out(write: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> Exit {
    let mut stdout = io::stdout().lock();
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Ok(()) => Exit::Ok,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
        Err(error) => fail(&format!("can't write to standard output: {error}")),
    }
}

/// Writes to stderr; nothing can be done when that fails.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Text for a terminal: its control characters are not a program's, a file's or a folder's to send, nor those that show a
/// line in another order than it is read.
pub(crate) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| !(c.is_control() || turns(*c)) || *c == '\n' || *c == '\t')
        .collect()
}

/// Says why nothing was done.
pub(crate) fn fail(message: &str) -> Exit {
    say(&plain(&format!("error: {message}\n")));
    Exit::Refused
}

/// Whether to colour what goes to a stream: on a terminal, unless `NO_COLOR` is set to something.
pub(crate) fn colour(stream: &impl io::IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The programs that paths name: files, and the `.prose` files in folders. Says what can't be read, and sets `refused` then.
fn programs(paths: &[PathBuf], refused: &mut bool) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for path in paths {
        match find_programs(path) {
            Ok(found) if found.is_empty() => {
                say(&format!("note: no `.prose` file in {}\n", path.display()));
            }
            Ok(found) => programs.extend(found),
            Err(error) => {
                fail(&error.to_string());
                *refused = true;
            }
        }
    }
    programs
}

/// Writes a file, whether it is there or not, in one step. A device or a pipe, as `/dev/stdout`, is written to: it can't be
/// replaced.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let written = match fs::metadata(path) {
        Ok(facts) if facts.is_file() => replace(path, text),
        Ok(_) => fs::write(path, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, text),
        Err(error) => Err(error),
    };
    written.map_err(without_place)
}

/// An error that does not name the temporary file, which says nothing to a person.
fn without_place(error: io::Error) -> io::Error {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" at path ")) {
        (None, Some((why, _))) => io::Error::new(error.kind(), why.to_owned()),
        _ => error,
    }
}

/// Makes a file in one step, so that nobody ever reads half of it; one that came meanwhile stays.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut new = tempfile::Builder::new();
    // As any file that is made, which others may read where the person's settings say so.
    #[cfg(unix)]
    new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut new = new.tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist_noclobber(path)?;
    Ok(())
}

/// Puts a new text in a file's place in one step, so that nobody ever reads half of it. A link stays one: the file it leads to is
/// replaced. A file that may only be read is left alone, though its folder would allow it to be replaced.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file is read-only",
        ));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(permissions)?;
    new.as_file().sync_all()?;
    new.persist(&path)?;
    Ok(())
}
