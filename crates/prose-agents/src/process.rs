//! Child processes that outlive the process that started them: telling them from others, and ending them.
//!
//! A process id alone says little, since ids are used again. With the time at which the process started, on a machine that
//! was not restarted since, it is one process and no other.

use std::time::{Duration, Instant};

use prose_model::ProcessId;

/// How often to look whether a process has ended.
const POLL: Duration = Duration::from_millis(10);

/// Names a running process; none when there is none with this id, or the system doesn't tell when it started.
pub fn identify(pid: u32) -> Option<ProcessId> {
    let started = started(pid)?;
    Some(ProcessId { pid, started })
}

/// Whether this very process still runs.
pub fn is_alive(process: &ProcessId) -> bool {
    started(process.pid).is_some_and(|started| started == process.started)
}

/// Ends processes, each with its process group if it leads one: first asked, after `grace` forced. Returns those that are
/// still there all the same.
pub fn end(processes: &[ProcessId], grace: Duration) -> Vec<ProcessId> {
    let alive = |processes: &[ProcessId]| -> Vec<ProcessId> {
        processes
            .iter()
            .filter(|process| is_alive(process))
            .cloned()
            .collect()
    };
    let mut left = alive(processes);
    for (force, time) in [(false, grace), (true, Duration::from_secs(2))] {
        for process in &left {
            signal(process, force);
        }
        let until = Instant::now() + time;
        while !left.is_empty() && Instant::now() < until {
            std::thread::sleep(POLL);
            left = alive(&left);
        }
    }
    left
}

#[cfg(unix)]
fn signal(process: &ProcessId, force: bool) {
    use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
    let signal = if force { Signal::KILL } else { Signal::TERM };
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    // Who leads a group was put there by us, with all that it starts. What can't be ended is told by the caller.
    let _ = match getpgid(Some(pid)) {
        Ok(group) if group == pid => kill_process_group(pid, signal),
        _ => kill_process(pid, signal),
    };
}

#[cfg(not(unix))]
fn signal(_: &ProcessId, _: bool) {}

/// When a process started, in words of the system that are compared only with each other.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // Dead, and only not yet collected.
    if matches!(state, "Z" | "X") {
        return None;
    }
    let ticks = fields.nth(18)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{}/{ticks}", boot.trim()))
}

/// When a process started, in words of the system that are compared only with each other.
#[cfg(all(unix, not(target_os = "linux")))]
fn started(pid: u32) -> Option<String> {
    let output = std::process::Command::new("ps")
        .args(["-o", "state=,lstart=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (state, started) = text.split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

#[cfg(not(unix))]
fn started(_: u32) -> Option<String> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_known_and_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = identify(child.id()).unwrap();
        assert!(is_alive(&process));
        let other = ProcessId {
            started: "another time".to_owned(),
            ..process.clone()
        };
        assert!(!is_alive(&other));
        assert_eq!(end(&[other], Duration::ZERO), []);
        assert!(
            is_alive(&process),
            "an id that is used again is not taken for the child"
        );
        assert_eq!(end(std::slice::from_ref(&process), Duration::from_secs(10)), []);
        assert!(!is_alive(&process));
        child.wait().unwrap();
        assert_eq!(identify(child.id()), None);
    }

    #[test]
    fn one_that_does_not_listen_is_forced_with_its_group() {
        use std::io::BufRead as _;
        use std::os::unix::process::CommandExt as _;
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; sleep 1000 & echo $!; wait; wait"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let grandchild = identify(line.trim().parse().unwrap()).unwrap();
        let process = identify(child.id()).unwrap();
        assert_eq!(end(std::slice::from_ref(&process), Duration::from_millis(50)), []);
        child.wait().unwrap();
        // Sent to both at once; whoever collects the grandchild may take a moment.
        assert_eq!(end(&[grandchild], Duration::from_secs(10)), []);
    }
}
