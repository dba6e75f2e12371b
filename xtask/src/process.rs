//! Child processes. None has a standard input, so that nothing waits for a person; each has a time limit, which only a hang
//! meets; and none outlives its step: what it left behind is found and ended.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Result, session::say};

/// How long a step of checks or tests may take. A cold build on two slow cores needs a third of it.
pub const STEP_LIMIT: Duration = Duration::from_secs(40 * 60);
/// How long bringing or packaging something may take.
const QUIET_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How long a process may take to end after it was asked to, and its output to close after it ended.
const GRACE: Duration = Duration::from_secs(5);
/// How often a process without output is looked at.
const TICK: Duration = Duration::from_millis(50);
/// The variable that every descendant of a child inherits, whoever becomes its parent.
const MARK: &str = "PROSE_XTASK_CHILD";

/// A command that runs in `folder`.
pub fn command(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command
}

/// Runs a command, passes its output on line by line and shows each line of its standard output to `see`.
/// Whether it succeeded. Processes that it left behind are ended, and count as a failure of their own.
pub fn tee(command: Command, see: impl FnMut(&str)) -> Result<bool> {
    tee_within(STEP_LIMIT, command, see)
}

/// As [`tee`], with another time limit than that of a step.
pub fn tee_within(limit: Duration, command: Command, mut see: impl FnMut(&str)) -> Result<bool> {
    let name = describe(&command);
    let mut shown = std::io::stdout();
    let (status, mark) = follow(command, Errors::Shown, limit, |line| {
        // A closed standard output is no reason to stop what runs.
        let _ = shown.write_all(line).and_then(|()| shown.flush());
        see(String::from_utf8_lossy(line).trim_end());
    })?;
    // A server notices that its client is gone a moment after its client's end.
    let left = wait_for_end(&mark, GRACE);
    end_marked(&mark);
    if !status.success() {
        say(&format!("`{name}` ended with {status}"));
    }
    if !left.is_empty() {
        return Err(format!("`{name}` left processes behind: {}", left.join(", ")));
    }
    Ok(status.success())
}

/// Runs a command silently; its output is shown only when it fails.
pub fn quiet(command: Command) -> Result<()> {
    let name = describe(&command);
    let mut text = Vec::new();
    let (status, _) = follow(command, Errors::WithOutput, QUIET_LIMIT, |line| {
        text.extend_from_slice(line);
    })
    .map_err(|problem| with_output(&problem, &text))?;
    if status.success() {
        return Ok(());
    }
    Err(with_output(&format!("`{name}` ended with {status}"), &text))
}

/// Where a command's standard error goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    /// To ours.
    Shown,
    /// Where its standard output goes, in the order of writing.
    WithOutput,
}

/// Runs a command to its end, or ends it at `limit`. Gives its status and the mark of what it started.
fn follow(
    mut command: Command,
    errors: Errors,
    limit: Duration,
    mut see: impl FnMut(&[u8]),
) -> Result<(ExitStatus, String)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = describe(&command);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let problem = |error: std::io::Error| format!("can't start `{name}`: {error}");
    let (output, input) = pipe().map_err(problem)?;
    if errors == Errors::WithOutput {
        command.stderr(input.try_clone().map_err(problem)?);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(input)
        .env(MARK, &mark)
        .spawn()
        .map_err(problem)?;
    // It holds the writing end, without whose end the reading end has none.
    drop(command);
    let lines = lines_of(output);
    let begun = Instant::now();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut open = true;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => see(&line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                if ended.is_none() {
                    thread::sleep(TICK);
                }
            }
        }
        if ended.is_none() {
            let status = child
                .try_wait()
                .map_err(|error| format!("waiting for `{name}`: {error}"))?;
            ended = status.map(|status| (status, Instant::now()));
        }
        match ended {
            // Whoever was left behind may hold the output open for ever.
            Some((status, at)) if !open || at.elapsed() > GRACE => return Ok((status, mark)),
            None if begun.elapsed() > limit => {
                end_marked(&mark);
                // Elsewhere than on Linux, only the child itself is known.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{name}` took over {} s and was ended", limit.as_secs()));
            }
            _ => {}
        }
    }
}

/// Reads lines, ends included, until the last writer is gone.
fn lines_of(output: PipeReader) -> mpsc::Receiver<Vec<u8>> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            match reader.read_until(b'\n', &mut line) {
                Ok(1..) if send.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    lines
}

/// Asks every process with the mark to end, and makes those end that don't.
fn end_marked(mark: &str) {
    signal("TERM", &marked(mark));
    wait_for_end(mark, GRACE);
    signal("KILL", &marked(mark));
}

/// Waits until no process has the mark. Those that still have it, as `id (name)`.
fn wait_for_end(mark: &str, patience: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() || begun.elapsed() > patience {
            let name = |id: &String| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            return left
                .iter()
                .map(|id| format!("{id} ({})", name(id).trim()))
                .collect();
        }
        thread::sleep(TICK);
    }
}

/// The ids of processes that inherited the mark. Linux tells; elsewhere there are none.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        // Processes of others can't be read, and those that just ended are empty.
        .filter(|id| {
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|each| each == wanted.as_bytes()))
        })
        .collect()
}

fn signal(signal: &str, ids: &[String]) {
    if !ids.is_empty() {
        // A process may end between being found and being told; that is no error.
        let _ = Command::new("sh")
            .args(["-c", "kill -s \"$@\"", "sh", signal])
            .args(ids)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

fn with_output(problem: &str, output: &[u8]) -> String {
    format!("{problem}:\n{}", String::from_utf8_lossy(output).trim_end())
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command("sh", &["-c", script], Path::new("/"))
    }

    #[test]
    fn lines_are_seen_and_the_status_is_told() {
        let mut seen = Vec::new();
        assert_eq!(
            tee(shell("echo a; printf b"), |line| seen.push(line.to_owned())),
            Ok(true)
        );
        assert_eq!(seen, ["a", "b"]);
        assert_eq!(tee(shell("exit 3"), |_| {}), Ok(false));
    }

    #[test]
    fn a_failure_shows_both_outputs() {
        let problem = quiet(shell("echo out; echo err >&2; exit 1")).unwrap_err();
        assert!(problem.ends_with(":\nout\nerr"), "{problem}");
        assert_eq!(quiet(shell("echo out")), Ok(()));
    }

    #[test]
    fn a_hang_is_ended_with_all_it_started() {
        let limit = Duration::from_millis(200);
        let problem = follow(
            shell("setsid sleep 1000 & sleep 1000"),
            Errors::Shown,
            limit,
            |_| {},
        )
        .unwrap_err();
        assert!(problem.contains("was ended"), "{problem}");
        let ours = format!("{MARK}={}-", std::process::id());
        let left = marked_like(&ours, "sleep 1000");
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn what_a_command_leaves_behind_is_a_failure_and_ended() {
        let script = "setsid sleep 2000 >/dev/null 2>&1 & exit 0";
        let problem = tee(shell(script), |_| {}).unwrap_err();
        assert!(
            problem.contains("left processes behind") && problem.contains("(sleep)"),
            "{problem}"
        );
        let ours = format!("{MARK}={}-", std::process::id());
        assert!(marked_like(&ours, "sleep 2000").is_empty());
    }

    /// Live processes whose environment has `prefix` and whose command line is `line`.
    fn marked_like(prefix: &str, line: &str) -> Vec<String> {
        let read = |file: String| std::fs::read(file).unwrap_or_default();
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path().display().to_string())
            .filter(|path| String::from_utf8_lossy(&read(format!("{path}/environ"))).contains(prefix))
            .filter(|path| {
                let words = read(format!("{path}/cmdline"));
                String::from_utf8_lossy(&words)
                    .trim_end_matches('\0')
                    .replace('\0', " ")
                    == line
            })
            .collect()
    }
}
