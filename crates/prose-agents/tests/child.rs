//! Children: what they see, and that nothing is left of them.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use prose_agents::child::{
    Child, ChildCommand, ChildError, Environment, Line, Lines, describe, find_program,
};
use prose_agents::process;
use prose_model::ProcessId;
use prose_model::backend::Variables;
use tokio::io::AsyncWriteExt as _;

/// Long enough for any machine; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(30);

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let mut values: BTreeMap<String, String> = std::env::vars().collect();
    values.extend(
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    Variables::new(values, BTreeMap::new())
}

fn script(text: &str) -> ChildCommand {
    ChildCommand {
        program: "sh".into(),
        args: vec!["-c".into(), text.into()],
        dir: std::env::temp_dir(),
        environment: Environment::basic(&variables(&[])),
    }
}

async fn lines(child: &mut Child) -> Lines<tokio::process::ChildStdout> {
    Lines::new(child.stdout.take().unwrap(), 1000)
}

async fn text(lines: &mut Lines<tokio::process::ChildStdout>) -> String {
    match lines.next().await.unwrap() {
        Some(Line::Text(text)) => text,
        other => panic!("no line but {other:?}"),
    }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn gone(process: &ProcessId) {
    wait_until("the process is still there", || !process::is_alive(process));
}

#[tokio::test]
async fn what_is_written_is_read_and_the_end_of_stderr_kept() {
    let mut command = script(
        "cat; i=0; while [ $i -lt 3000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; printf '\\033[31mlast\\033[0m' >&2; exit 3",
    );
    command.environment.set("X", "1");
    let mut child = Child::start(command).await.unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\r\ntwo\xff\nthree").await.unwrap();
    drop(stdin);
    let mut lines = lines(&mut child).await;
    assert_eq!(text(&mut lines).await, "one");
    assert_eq!(text(&mut lines).await, "two\u{fffd}");
    assert_eq!(text(&mut lines).await, "three");
    assert_eq!(lines.next().await.unwrap(), None);
    let status = child.wait().await.unwrap();
    assert_eq!(describe(status), "ended with exit code 3");
    let stderr = child.stderr();
    assert!(stderr.len() <= 8 * 1024, "{}", stderr.len());
    assert!(stderr.starts_with("line "), "{stderr}");
    assert!(stderr.ends_with("line 2999\nlast"), "{stderr}");
}

#[tokio::test]
async fn a_line_without_end_takes_no_memory_and_the_next_one_is_read() {
    let bytes = [vec![b'a'; 200_000], b"\nshort\n".to_vec(), vec![b'b'; 1001]].concat();
    let mut lines = Lines::new(bytes.as_slice(), 1000);
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong(200_000)));
    assert_eq!(lines.next().await.unwrap(), Some(Line::Text("short".to_owned())));
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong(1001)));
    assert_eq!(lines.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_child_sees_only_what_it_is_given() {
    let variables = variables(&[
        ("OPENAI_API_KEY", "sk-other"),
        ("MINE", "yes"),
        ("LD_PRELOAD", ""),
        ("TERM", "xterm"),
    ]);
    let mut command = script("env");
    command.environment = Environment::basic(&variables);
    command.environment.take(&variables, &["MINE", "NOT_SET"]);
    assert!(!format!("{:?}", command.environment).contains("yes"));
    let mut child = Child::start(command).await.unwrap();
    let mut lines = lines(&mut child).await;
    let mut seen = Vec::new();
    while let Some(Line::Text(line)) = lines.next().await.unwrap() {
        seen.push(line);
    }
    assert!(seen.contains(&"MINE=yes".to_owned()), "{seen:?}");
    assert!(seen.contains(&"TERM=dumb".to_owned()), "{seen:?}");
    assert!(seen.iter().any(|line| line.starts_with("PATH=")), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("sk-other")), "{seen:?}");
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let mut command = script("true");
    command.program = "no-such-program-here".into();
    let error = Child::start(command).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`no-such-program-here` was not found on the PATH"
    );
    let mut command = script("true");
    command.dir = "/no/such/folder".into();
    assert!(matches!(
        Child::start(command).await,
        Err(ChildError::NoFolder { .. })
    ));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tool"), "").unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(
        find_program(Path::new("tool"), Some(path)),
        None,
        "it is no program"
    );
    assert_eq!(
        find_program(Path::new("sh"), Some(".")),
        None,
        "a relative folder is not looked into"
    );
}

#[tokio::test]
async fn stopping_ends_grandchildren_that_do_not_listen() {
    // The grandchild ignores being asked; the child ends at once.
    let mut child = Child::start(script("(trap '' TERM; echo ready; sleep 1000) & echo $!; wait"))
        .await
        .unwrap();
    let mut lines = lines(&mut child).await;
    let both = [text(&mut lines).await, text(&mut lines).await];
    let pid = both.iter().find_map(|line| line.parse().ok()).unwrap();
    let (grandchild, own) = (
        process::identify(pid).unwrap(),
        process::identify(child.pid()).unwrap(),
    );
    let status = child.stop(LONG).await.unwrap();
    assert_eq!(describe(status), "was ended by signal 15");
    gone(&own);
    gone(&grandchild);
}

#[tokio::test]
async fn a_child_that_does_not_listen_is_forced() {
    let mut child = Child::start(script(
        "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done",
    ))
    .await
    .unwrap();
    let mut lines = lines(&mut child).await;
    let grandchild = process::identify(text(&mut lines).await.parse().unwrap()).unwrap();
    let status = child.stop(Duration::from_millis(50)).await.unwrap();
    assert_eq!(describe(status), "was ended by signal 9");
    gone(&grandchild);
}

#[tokio::test]
async fn what_a_child_left_running_ends_with_it() {
    let mut child = Child::start(script("sleep 1000 & echo $!; read -r line; exit 0"))
        .await
        .unwrap();
    let mut lines = lines(&mut child).await;
    let grandchild = process::identify(text(&mut lines).await.parse().unwrap()).unwrap();
    // Only now may it end, when the one that it leaves running is known.
    child.stdin = None;
    assert!(child.wait().await.unwrap().success());
    gone(&grandchild);
}

#[tokio::test]
async fn a_child_that_is_dropped_is_killed() {
    let mut child = Child::start(script("sleep 1000 & echo $!; wait")).await.unwrap();
    let mut lines = lines(&mut child).await;
    let grandchild = process::identify(text(&mut lines).await.parse().unwrap()).unwrap();
    let own = process::identify(child.pid()).unwrap();
    drop(child);
    gone(&own);
    gone(&grandchild);
}

#[test]
fn a_child_outlives_the_runtime_thread_that_asked_for_it() {
    let first = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let second = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let handle = second.handle().clone();
    let asked = std::thread::spawn(move || {
        let _ = first;
        handle.block_on(Child::start(script("cat")))
    });
    let mut child = asked.join().unwrap().unwrap();
    let own = process::identify(child.pid()).unwrap();
    assert!(process::is_alive(&own));
    let status = second.block_on(async {
        drop(child.stdin.take());
        child.wait().await.unwrap()
    });
    assert!(status.success(), "it was left alone and ended by itself");
}

/// Kills a process that has children and grandchildren, none of which listens to being asked.
#[test]
fn nothing_outlives_a_process_that_is_killed() {
    const NAME: &str = "PROSE_TEST_CHILDREN_FILE";
    if let Ok(file) = std::env::var(NAME) {
        return be_killed(Path::new(&file));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_outlives_a_process_that_is_killed"])
        .env(NAME, &file)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the children did not start", || file.exists());
    let pids = std::fs::read_to_string(&file).unwrap();
    let processes: Vec<_> = pids
        .split_whitespace()
        .map(|pid| process::identify(pid.parse().unwrap()).unwrap())
        .collect();
    assert_eq!(processes.len(), 4);
    parent.kill().unwrap();
    parent.wait().unwrap();
    processes.iter().for_each(gone);
}

fn be_killed(file: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut pids = Vec::new();
        let mut children = Vec::new();
        for _ in 0..2 {
            let mut child = Child::start(script(
                "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done",
            ))
            .await
            .unwrap();
            let mut lines = lines(&mut child).await;
            pids.push(child.pid().to_string());
            pids.push(text(&mut lines).await);
            children.push((child, lines));
        }
        let unfinished = file.with_extension("tmp");
        std::fs::write(&unfinished, pids.join(" ")).unwrap();
        std::fs::rename(unfinished, file).unwrap();
        std::future::pending::<()>().await;
    });
}
