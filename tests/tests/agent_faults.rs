//! Agents that break down, through the real binary: stand-ins for Claude Code and for an agent of the Agent Client Protocol do
//! what no agent should. Nothing is left of them, no process, no file and no key.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mock_model::scripted;
use prose_tests::{Ran, files_below, prose_command, workspace};
use tempfile::TempDir;

const KEY: &str = "sk-test-0123456789abcdef";

/// What a session of these programs is called, and that it is tried twice.
const PROGRAM: &str = "output x = session \"Try it\"\n  retry: 1\n";

/// How long anything may take; only a hang takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// A kind of backend that starts agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Claude,
    Acp,
}

const KINDS: [Kind; 2] = [Kind::Claude, Kind::Acp];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Claude => "claude",
            Kind::Acp => "acp",
        }
    }

    /// What an agent does until it has been told what to do.
    fn begin(self) -> &'static str {
        match self {
            Kind::Claude => "init",
            Kind::Acp => "hello; session; turn",
        }
    }

    /// What it does to end its turn well.
    fn finish(self) -> &'static str {
        match self {
            Kind::Claude => "deliver 'the result'; done_with ok",
            Kind::Acp => "deliver 'the result'; end",
        }
    }

    fn program(self, places: &[(&str, &Path)], script: &str) -> String {
        match self {
            Kind::Claude => scripted::claude(places, script),
            Kind::Acp => scripted::acp(places, script),
        }
    }
}

/// A workspace, and beside it a folder in which the agent keeps what it is told.
struct Stage {
    work: TempDir,
    log: TempDir,
    kind: Kind,
}

impl Stage {
    /// The agent does the second script from its second start on.
    fn new(kind: Kind, first: &str, then: &str) -> Stage {
        let log = tempfile::tempdir().unwrap();
        let agent = log.path().join("agent");
        let config = format!(
            "[run]\nbackend = \"mine\"\n[backends.mine]\nkind = \"{}\"\ncommand = \"{}\"\napi_key_env = \"MINE\"\n",
            kind.name(),
            agent.display()
        );
        let work = workspace(&[
            ("main.prose", PROGRAM),
            ("prose.toml", &config),
            (".prose/.env", &format!("MINE={KEY}\n")),
            ("tmp/keep", ""),
        ]);
        let script = format!(
            "MINE=${{MINE:-$ANTHROPIC_API_KEY}}\nif mkdir \"$D/started\" 2> /dev/null; then\n{first}\nelse\n{then}\nfi"
        );
        scripted::install(&agent, &kind.program(&[("D", log.path())], &script)).unwrap();
        Stage { work, log, kind }
    }

    fn command(&self, args: &[&str]) -> Command {
        let dir = self.work.path();
        let mut command = prose_command(dir);
        command
            .env("PROSE_LOG", "debug")
            .env("TMPDIR", dir.join("tmp"))
            .env("XDG_RUNTIME_DIR", dir.join("tmp"))
            .args(["run", "main.prose"])
            .args(args);
        command
    }

    /// Runs it; a session may take so long.
    fn run(&self, timeout: &str) -> Ran {
        self.command(&["--timeout", timeout]).output().unwrap().into()
    }

    /// Starts a run, and waits until its agent has come as far as to make the file `here` beside what it keeps.
    fn start(&self) -> Child {
        let mut command = self.command(&[]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the agent does not start", || {
            assert_eq!(child.try_wait().unwrap(), None);
            self.log.path().join("here").exists()
        });
        child
    }

    /// No process, no file for a while, and no key is left.
    #[track_caller]
    fn nothing_is_left(&self, ran: &Ran) {
        let dir = self.work.path();
        self.no_process();
        let left: Vec<String> = files_below(&dir.join("tmp")).into_keys().collect();
        assert_eq!(left, ["keep"], "{:?}", self.kind);
        for (name, bytes) in files_below(dir) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                name == ".prose/.env" || !text.contains(KEY),
                "{name} holds the key"
            );
        }
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
    }

    /// All that the run has started is gone: it has the run's home.
    #[track_caller]
    fn no_process(&self) {
        until("a process is left", || self.processes().is_empty());
    }

    fn processes(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.work.path().display());
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id| {
                // Those of others, and those that just ended, have none that can be read.
                let environ = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                environ.split(|byte| *byte == 0).any(|one| one == home.as_bytes())
            })
            .collect()
    }
}

#[track_caller]
fn until(what: &str, done: impl FnMut() -> bool) {
    let (begun, mut done) = (Instant::now(), done);
    while !done() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Noise in between harms nothing, and is not kept: neither a line of 100 MB nor as much of errors.
#[test]
fn noise_changes_no_result_and_takes_no_memory() {
    let noise = "head -c 300000 /dev/urandom; echo; head -c 100000000 /dev/zero | tr '\\0' x; echo; \
                 yes 'a line of noise' | head -c 100000000 >&2";
    for kind in KINDS {
        let script = format!(
            "{noise}\n{}\n{noise}\ntouch \"$D/here\"; while [ -e \"$D/here\" ]; do sleep 0.1; done\n{}",
            kind.begin(),
            kind.finish()
        );
        let stage = Stage::new(kind, &script, "exit 9");
        let mut command = stage.command(&[]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let id = child.id();
        let here = stage.log.path().join("here");
        until("the agent does not come to its end", || here.exists());
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let most = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let most: u64 = most.trim().trim_end_matches("kB").trim().parse().unwrap();
        std::fs::remove_file(here).unwrap();
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, "the result\n"),
            "{kind:?}: {}",
            ran.stderr
        );
        assert!(most < 160 * 1024, "{kind:?}: {most} kB");
        stage.nothing_is_left(&ran);
    }
}

/// It has begun something that listens to nobody, and listens to nobody itself.
const DEAF: &str =
    "trap '' INT HUP TERM; (exec sleep 1000) & touch \"$D/here\"; while :; do sleep 1000; done";

#[test]
fn a_run_that_is_stopped_takes_its_agents_along() {
    for kind in KINDS {
        for (signal, code) in [("INT", 130), ("KILL", -1)] {
            let stage = Stage::new(kind, &format!("{}\n{DEAF}", kind.begin()), "exit 9");
            let child = stage.start();
            assert!(stage.processes().len() >= 3, "{:?}", stage.processes());
            let id = child.id().to_string();
            let told = Command::new("sh")
                .args(["-c", "kill -s $1 $2", "sh", signal, &id])
                .status();
            assert!(told.unwrap().success());
            let ran: Ran = child.wait_with_output().unwrap().into();
            assert_eq!(ran.code, code, "{kind:?} {signal}: {}", ran.stderr);
            match signal {
                "INT" => stage.nothing_is_left(&ran),
                // It could clean up nothing, but nothing goes on.
                _ => stage.no_process(),
            }
        }
    }
}

/// What has left the agent's group and holds its output open can't be known of, and is not waited for.
#[test]
fn who_left_and_holds_the_output_open_is_not_waited_for() {
    for kind in KINDS {
        let script = format!("{}\nsetsid sleep 1000 & sleep 0.3; exit 5", kind.begin());
        let stage = Stage::new(kind, &script, &script);
        let ran: Ran = stage.command(&[]).stdout(Stdio::piped()).output().unwrap().into();
        assert_eq!(ran.code, 1, "{kind:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("ended with exit code 5"),
            "{kind:?}: {}",
            ran.stderr
        );
        for id in stage.processes() {
            let _ = Command::new("sh")
                .args(["-c", "kill -s KILL $1", "sh", &id.to_string()])
                .status();
        }
        stage.nothing_is_left(&ran);
    }
}

#[test]
fn a_program_that_is_too_old_is_named_with_what_is_needed() {
    let stage = Stage::new(Kind::Claude, "init; deliver x; done_with ok", "exit 9");
    let agent = stage.log.path().join("agent");
    let text = std::fs::read_to_string(&agent).unwrap();
    std::fs::write(&agent, text.replace("${VERSION:-2.1.197}", "2.0.9")).unwrap();
    let ran = stage.run("2m");
    assert_eq!(ran.code, 1, "{ran:?}");
    for text in [
        "Try it",
        "is of version 2.0.9, and has to be of version 2.1.40 or newer",
        "npm install",
    ] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    let doctor: Ran = prose_command(stage.work.path())
        .arg("doctor")
        .output()
        .unwrap()
        .into();
    assert!(
        doctor.stdout.contains("mine: `")
            && doctor
                .stdout
                .contains("is of version 2.0.9, and has to be of version 2.1.40"),
        "{doctor:?}"
    );
    stage.nothing_is_left(&ran);
}
