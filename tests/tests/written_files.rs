//! Files that commands write: what a person names is not written over unless it was written that way before, and what a run
//! writes fails with plain words, or not at all.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prose_tests::{Ran, bin, only_run, prose, prose_command, workspace};

const ABORT_AT: &str = "PROSE_TEST_ABORT_AT";

fn id(run: &Path) -> String {
    run.file_name().unwrap().to_string_lossy().into_owned()
}

/// All that a test must not change: every file with its bytes, and when it was written. Links may lead nowhere.
fn seen(dir: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let facts = std::fs::symlink_metadata(&path).unwrap();
            if facts.is_dir() {
                folders.push(path.clone());
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            files.push((path, bytes, facts.modified().unwrap()));
        }
    }
    files.sort();
    files
}

/// A project with a program that uses another, a finished run, and a page and a mock file that were written before.
fn project() -> tempfile::TempDir {
    let dir = workspace(&[
        ("prose.toml", ""),
        ("lib/helper.prose", "output h = session \"Help\"\n"),
        (
            "main.prose",
            "use \"./lib/helper.prose\" as helper\nlet h = helper()\noutput x = session \"Go\"\n",
        ),
        ("main.mock.toml", "[defaults]\nreply = \"fine\"\n"),
        ("notes.md", "mine\n"),
        ("empty", ""),
    ]);
    let run = [
        "run",
        "main.prose",
        "--backend",
        "simulate",
        "-q",
        "--record",
        "rec.toml",
    ];
    let ran = prose(dir.path(), &run);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = prose(dir.path(), &["runs", "show", "last", "--report", "page.html"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    std::os::unix::fs::symlink("main.prose", dir.path().join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
    std::fs::hard_link(dir.path().join("main.prose"), dir.path().join("second-name")).unwrap();
    dir
}

#[test]
fn what_a_person_named_by_mistake_is_not_written_over() {
    let dir = project();
    let root = dir.path();
    let before = seen(root);
    let run = format!(".prose/runs/{}", id(&only_run(root)));
    let journal = format!("{run}/journal.jsonl");
    let inside = format!("{run}/page.html");
    for (place, why) in [
        ("main.prose", "that is the program"),
        ("./lib/../main.prose", "that is the program"),
        ("link", "that is the program"),
        ("second-name", "that is the program"),
        ("lib/helper.prose", "which the program uses"),
        ("main.mock.toml", "mock file"),
        ("prose.toml", "yours to write"),
        ("lib/prose.toml", "yours to write"),
        (journal.as_str(), "inside .prose/"),
        (inside.as_str(), "inside .prose/"),
        (".prose/new", "inside .prose/"),
        ("notes.md", "did not write it; move it away, or name another"),
        (".", "that is a folder; name a file, as "),
        ("new/", "that is a folder"),
        ("none/rec", "there is no folder none; make it first"),
        ("dangling", "leads nowhere"),
    ] {
        let run = ["run", "main.prose", "--backend", "simulate", "-q"];
        for (option, command) in [
            ("--record", &run[..]),
            ("--record", &["resume", "last"]),
            ("--report", &["runs", "show", "last"]),
        ] {
            if why == "mock file" && command[0] == "resume" {
                // It has its own copy, and the file is not read.
                continue;
            }
            let ran = prose(root, &[command, &[option, place]].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{place}: {ran:?}");
            assert!(
                ran.stderr.contains(&format!("error: {option} {place}: ")) && ran.stderr.contains(why),
                "{place}: {ran:?}"
            );
            assert_eq!(seen(root), before, "{option} {place}");
        }
    }
    // What was written by one option is not the other's either.
    let ran = prose(root, &["runs", "show", "last", "--report", "rec.toml"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = prose(root, &["resume", "last", "--record", "page.html"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let again = ["run", "main.prose", "--backend", "replay", "-q"];
    let ran = prose(
        root,
        &[&again[..], &["--mock", "rec.toml", "--record", "rec.toml"]].concat(),
    );
    assert!(
        ran.code == 2 && ran.stderr.contains("the mock file, which is read"),
        "{ran:?}"
    );
    assert_eq!(seen(root), before);
}

/// Here a folder in which nobody can make a file, whatever they may.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_file_is_refused_before_anything_is_paid() {
    let dir = project();
    let root = dir.path();
    let before = seen(root);
    let run = ["run", "main.prose", "--backend", "simulate", "-q"];
    for command in [
        &[&run[..], &["--record", "/proc/rec.toml"]].concat()[..],
        &["resume", "last", "--record", "/proc/rec.toml"],
        &["runs", "show", "last", "--report", "/proc/page.html"],
    ] {
        let ran = prose(root, command);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(
            ran.stderr.contains("no file can be made in /proc (") && !ran.stderr.contains("tmp"),
            "{ran:?}"
        );
        assert_eq!(seen(root), before);
    }
}

#[test]
fn runs_that_are_kept_elsewhere_are_not_written_into_either() {
    let dir = project();
    let root = dir.path();
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("kept");
    std::fs::rename(root.join(".prose"), &kept).unwrap();
    std::os::unix::fs::symlink(&kept, root.join(".prose")).unwrap();
    let direct = kept.join("page.html");
    for place in [".prose/page.html", direct.to_str().unwrap()] {
        let ran = prose(root, &["runs", "show", "last", "--report", place]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("inside .prose/"), "{ran:?}");
    }
    assert!(!direct.exists());
}

#[test]
fn what_was_written_before_is_replaced_in_one_step() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let dir = project();
    let root = dir.path();
    let number = |name: &str| std::fs::metadata(root.join(name)).unwrap().ino();
    let (record, page) = (number("rec.toml"), number("page.html"));
    let mode = |name: &str| std::fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777;
    std::fs::write(root.join("fresh"), "").unwrap();
    assert_eq!(mode("rec.toml"), mode("fresh"), "as any file that is made");
    for place in ["rec.toml", "empty", "/dev/null"] {
        let ran = prose(root, &["resume", "last", "--record", place]);
        assert!(ran.code == 0 && !ran.stderr.contains("error"), "{ran:?}");
    }
    let ran = prose(root, &["runs", "show", "last", "--report", "page.html"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_ne!((number("rec.toml"), number("page.html")), (record, page));
    let text = std::fs::read_to_string(root.join("empty")).unwrap();
    assert!(text.starts_with("# The answers of run "), "{text}");
    for (path, ..) in seen(root) {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        assert!(!name.contains(".tmp"), "{name} was left");
    }
}

#[test]
fn a_folder_in_the_place_of_long_replies_stays_as_it_is() {
    let dir = workspace(&[
        ("a.prose", "session \"Go\"\n"),
        ("rec.replies/001-anon_001.md", "mine"),
    ]);
    let run = ["run", "a.prose", "--backend", "simulate", "--record", "rec.toml"];
    let ran = prose(dir.path(), &run);
    assert!(
        ran.code == 2 && ran.stderr.contains("rec.replies, and there is something already"),
        "{ran:?}"
    );
    assert!(!dir.path().join(".prose/runs").exists());
}

/// A process that does not outlive its test.
struct Running(Option<std::process::Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run that takes long, in a process that goes on.
fn slow(dir: &Path) -> (Running, PathBuf) {
    let child = prose_command(dir)
        .args(["run", "slow.prose", "--backend", "simulate", "--realtime"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = Running(Some(child.unwrap()));
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answered = std::fs::read_dir(dir.join(".prose/runs"))
            .into_iter()
            .flatten()
            .filter_map(|run| Some(run.ok()?.path()))
            .find(|run| {
                std::fs::read_to_string(run.join("journal.jsonl"))
                    .is_ok_and(|text| text.contains("\"outcome\""))
                    && run
                        .join("bindings")
                        .read_dir()
                        .is_ok_and(|mut all| all.next().is_some())
            });
        if let Some(run) = answered {
            return (child, run);
        }
        if Instant::now() > until {
            panic!("nothing was answered");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends by itself long before all its sessions could have been asked.
fn ended(mut child: Running) -> Ran {
    child.0.take().unwrap().wait_with_output().unwrap().into()
}

const SLOW: [(&str, &str); 2] = [
    (
        "slow.prose",
        "repeat 3000 as n:\n  let x = session \"Part {n}\"\n",
    ),
    ("slow.mock.toml", "[[session]]\nreply = \"ok\"\ndelay_ms = 50\n"),
];

#[test]
fn a_run_whose_journal_is_removed_stops_and_says_what_is_left() {
    let dir = workspace(&SLOW);
    let (child, run) = slow(dir.path());
    std::fs::remove_file(run.join("journal.jsonl")).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr
            .contains("was removed or moved away while the run went on")
            && ran.stderr.contains(&format!("{}/bindings", id(&run)))
            && !ran.stderr.contains("what was answered is kept"),
        "{ran:?}"
    );
    let answered = ran.stderr.matches("session  done").count();
    assert!((1..2000).contains(&answered), "it stopped: {answered}");
}

/// Emptied, cut, or replaced in place by something longer: the file is the same one, and what is in it is not.
#[test]
fn a_run_whose_journal_is_cut_or_written_over_stops_at_its_next_record() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 3] = [
        ("emptied", |path| {
            std::fs::OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(0)
                .unwrap();
        }),
        ("cut", |path| {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() - 100).unwrap();
        }),
        ("longer", |path| {
            std::fs::write(path, "x".repeat(100_000)).unwrap()
        }),
    ];
    for (name, change) in cases {
        let dir = workspace(&SLOW);
        let (child, run) = slow(dir.path());
        change(&run.join("journal.jsonl"));
        let ran = ended(child);
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(
            ran.stderr
                .contains("was cut or written over by something else while the run went on")
                && ran.stderr.contains(&format!("{}/bindings", id(&run)))
                && !ran.stderr.contains("what was answered is kept"),
            "{name}: {ran:?}"
        );
        let answered = ran.stderr.matches("session  done").count();
        assert!((1..2000).contains(&answered), "{name}: it stopped: {answered}");
    }
}

#[test]
fn a_run_whose_lock_is_removed_is_still_its_process_s_own() {
    let dir = workspace(&SLOW);
    let (child, run) = slow(dir.path());
    std::fs::remove_file(run.join("lock")).unwrap();
    let listed = prose(dir.path(), &["runs"]);
    assert!(listed.stdout.contains("running"), "{listed:?}");
    for _ in 0..2 {
        let second = prose(dir.path(), &["resume", "last", "-q"]);
        assert_eq!(second.code, 2, "{second:?}");
        assert!(second.stderr.contains("another process"), "{second:?}");
        let listed = prose(dir.path(), &["runs"]);
        assert!(listed.stdout.contains("running"), "{listed:?}");
    }
    drop(child);
    let ran = prose(dir.path(), &["resume", "last", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_run_whose_folder_is_moved_stops_and_says_where_it_is() {
    let dir = workspace(&SLOW);
    let (child, run) = slow(dir.path());
    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&run, &elsewhere).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, 1, "{ran:?}");
    let now = elsewhere.canonicalize().unwrap().join("journal.jsonl");
    if cfg!(target_os = "linux") {
        assert!(
            ran.stderr.contains(&format!("it is now {}", now.display())),
            "{ran:?}"
        );
    }
    assert!(!run.exists(), "nothing of it comes back where it was");
    std::fs::rename(&elsewhere, &run).unwrap();
    // It goes on, here without the waits.
    let ran = prose(dir.path(), &["resume", "last", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_run_whose_folder_is_removed_stops() {
    let dir = workspace(&SLOW);
    let (child, run) = slow(dir.path());
    std::fs::remove_dir_all(&run).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("nothing of it is left"), "{ran:?}");
    assert!(!run.exists(), "nothing of it comes back");
}

#[test]
fn a_run_that_never_started_is_called_so_everywhere_and_nothing_is_written_into_it() {
    let dir = workspace(&[("a.prose", "output x = session \"Go\"\n")]);
    let root = dir.path();
    let run = ["run", "a.prose", "--backend", "simulate", "-q"];
    let ran = prose(root, &run);
    assert_eq!(ran.code, 0, "{ran:?}");
    let good = id(&only_run(root));
    for point in [
        "run.folder:1",
        "run.locked:1",
        "run.folders:1",
        "bundle.renamed:1",
        "program.renamed:1",
        "journal.created:1",
        "journal.half:1",
    ] {
        // Ids of the same second say nothing of the order, and `last` is about that.
        std::thread::sleep(Duration::from_millis(1100));
        let killed: Ran = prose_command(root)
            .args(run)
            .env(ABORT_AT, point)
            .output()
            .unwrap()
            .into();
        assert_eq!(killed.code, -1, "{point}: {killed:?}");
        let runs = root.join(".prose/runs");
        let halves = std::fs::read_dir(&runs).unwrap().map(|run| run.unwrap().path());
        let half = halves.into_iter().find(|run| id(run) != good).expect(point);
        let before = seen(&half);
        let half_id = id(&half);

        let listed = prose(root, &["runs"]);
        assert!(
            listed.stdout.contains("never started") && !listed.stdout.contains("foreign"),
            "{point}: {listed:?}"
        );
        let wording = format!("run {} never started: its process ended before", half.display());
        for command in [
            &["resume", half_id.as_str()][..],
            &["resume", &half_id, "--accept-changes"],
            &["resume", &half_id, "--backend", "simulate"],
            &["runs", "show", &half_id],
        ] {
            let ran = prose(root, command);
            let code = if command[0] == "resume" { 2 } else { 0 };
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.code, code, "{point}: {ran:?}");
            assert!(said.contains(wording.as_str()), "{point}, {command:?}: {ran:?}");
            assert_eq!(said.matches("never started: ").count(), 1, "{point}: {ran:?}");
        }
        let last = prose(root, &["runs", "show", "last"]);
        assert!(last.stdout.contains(&good), "{point}: {last:?}");
        assert_eq!(seen(&half), before, "{point}: nothing is written into it");
        std::fs::remove_dir_all(&half).unwrap();
    }
}

#[test]
fn a_run_that_is_over_is_told_again_without_a_write() {
    let dir = workspace(&[
        (
            "main.prose",
            "agent scribe:\n  persist: true\nuse \"./helper.prose\" as helper\nlet h = helper()\nlet big = session \"Big\"\nresume: scribe\n  prompt: \"Note\"\ntry:\n  throw \"no\"\ncatch as err:\n  session \"Mend\"\noutput x = session \"Go\"\n",
        ),
        ("helper.prose", "output h = session \"Help\"\n"),
        (
            "main.mock.toml",
            &format!(
                "[[session]]\nbinding = \"big\"\nreply = \"{}\"\n",
                "word ".repeat(300_000)
            ),
        ),
    ]);
    let run = prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
    assert_eq!(run.code, 0, "{run:?}");
    let before = seen(&dir.path().join(".prose"));
    // Other times are not other contents.
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..2 {
        let again = prose(dir.path(), &["resume", "last"]);
        assert_eq!((again.code, &again.stdout), (0, &run.stdout), "{again:?}");
        let now = seen(&dir.path().join(".prose"));
        for (old, new) in before.iter().zip(&now) {
            assert!(old == new, "{} was written", old.0.display());
        }
        assert_eq!(before.len(), now.len());
    }
    let shown = prose(dir.path(), &["runs", "show", "last"]);
    assert!(!shown.stdout.contains("resumed"), "{shown:?}");
}

#[test]
fn only_what_something_came_of_counts_as_resumed() {
    let dir = workspace(&[
        ("a.prose", "input q: \"Which?\"\noutput x = session \"Go {q}\"\n"),
        ("a.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let program = std::fs::read_to_string(dir.path().join("a.prose")).unwrap();
    let journal = only_run(dir.path()).join("journal.jsonl");
    let before = std::fs::read(&journal).unwrap();
    // Refused: it leaves no trace.
    std::fs::write(dir.path().join("a.prose"), "session \"Other\"\n").unwrap();
    assert_eq!(prose(dir.path(), &["resume", "last"]).code, 2);
    std::fs::write(dir.path().join("a.prose"), program).unwrap();
    assert_eq!(prose(dir.path(), &["resume", "last", "--retry-failed"]).code, 2);
    assert_eq!(std::fs::read(&journal).unwrap(), before);
    // Nothing to go on with.
    assert_eq!(prose(dir.path(), &["resume", "last", "-q"]).code, 3);
    let shown = prose(dir.path(), &["runs", "show", "last"]);
    assert!(!shown.stdout.contains("resumed"), "{shown:?}");
    assert_eq!(
        prose(dir.path(), &["resume", "last", "--input", "q=a", "-q"]).code,
        0
    );
    let shown = prose(dir.path(), &["runs", "show", "last"]);
    assert!(shown.stdout.contains("resumed once"), "{shown:?}");
}

#[test]
fn what_stands_in_the_place_of_a_run_s_file_is_named() {
    let dir = workspace(&[
        ("a.prose", "input q: \"Which?\"\noutput x = session \"Go {q}\"\n"),
        ("a.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let run = only_run(dir.path());
    let make = |path: &Path, kind: &str| match kind {
        "folder" => std::fs::create_dir_all(path.join("x")).unwrap(),
        "file" => std::fs::write(path, "mine").unwrap(),
        _ => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
    };
    for (part, kind, said) in [
        (
            "lock",
            "folder",
            "/lock: it is no regular file but a folder; move that away",
        ),
        (
            "lock",
            "pipe",
            "/lock: it is no regular file but a pipe; move that away",
        ),
        (
            "bindings",
            "file",
            "/bindings: it is no folder but a file; move that away",
        ),
        (
            "values",
            "file",
            "/values: it is no folder but a file; move that away",
        ),
        (
            "staging",
            "pipe",
            "/staging: it is no folder but a pipe; move that away",
        ),
    ] {
        let (path, aside) = (run.join(part), dir.path().join("aside"));
        std::fs::rename(&path, &aside).unwrap();
        make(&path, kind);
        let ran = prose(dir.path(), &["resume", "last", "--input", "q=a"]);
        assert_eq!(ran.code, 2, "{part}, {kind}: {ran:?}");
        assert!(
            ran.stderr.contains(said) && !ran.stderr.contains("os error"),
            "{part}, {kind}: {ran:?}"
        );
        match kind {
            "folder" => std::fs::remove_dir_all(&path).unwrap(),
            _ => std::fs::remove_file(&path).unwrap(),
        }
        std::fs::rename(&aside, &path).unwrap();
    }
    // A projection is not worth the run.
    std::fs::remove_file(run.join("state.md")).unwrap();
    make(&run.join("state.md"), "folder");
    let ran = prose(dir.path(), &["resume", "last", "--input", "q=a"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("state.md is not up to date: can't write")
            && ran.stderr.contains("state.md: it is a folder\n"),
        "{ran:?}"
    );
}

/// What happens when the disk is full, shown by a limit for the size of files, in blocks of 512 bytes or 1 KiB.
fn limited(dir: &Path, blocks: u32, args: &str) -> Ran {
    let script = format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec '{}' {args}",
        bin("prose").display()
    );
    Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir)
        .env("HOME", dir)
        .output()
        .unwrap()
        .into()
}

#[test]
fn without_room_it_says_what_is_safe_and_how_to_go_on() {
    let dir = workspace(&[("a.prose", "repeat 400:\n  session \"go\"\noutput o = \"done\"\n")]);
    let full = "a file may not become so large here";
    let none = limited(dir.path(), 0, "run a.prose --backend simulate -q");
    assert_eq!(none.code, 2, "{none:?}");
    assert!(
        none.stderr.contains(full) && none.stderr.contains("nothing was started; make room"),
        "{none:?}"
    );
    let cut = limited(dir.path(), 60, "run a.prose --backend simulate -q");
    let id = id(&only_run(dir.path()));
    assert_eq!(cut.code, 1, "{cut:?}");
    let safe = format!("safe in the run; make room, then go on: prose resume {id}\n");
    assert!(
        cut.stderr.contains(full) && cut.stderr.contains(&safe) && !cut.stderr.contains("os error"),
        "{cut:?}"
    );
    let still = limited(dir.path(), 60, &format!("resume {id} -q"));
    assert_ne!(still.code, 0, "{still:?}");
    assert!(
        still.stderr.contains(full) && still.stderr.contains(&safe),
        "{still:?}"
    );
    let resumed = prose(dir.path(), &["resume", &id, "-q"]);
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (0, "done\n"),
        "{resumed:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn outputs_that_can_not_be_written_are_safe_and_a_reader_that_has_gone_is_no_error() {
    let dir = workspace(&[("a.prose", "output x = session \"Go\"\n")]);
    let command = |stdout: Stdio| -> Ran {
        let mut run = prose_command(dir.path());
        run.args(["run", "a.prose", "--backend", "simulate", "-q"]);
        run.stdout(stdout).output().unwrap().into()
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command(full.into());
    assert_eq!(ran.code, 1, "{ran:?}");
    let again = format!(
        "the outputs are safe in the run; to print them again: prose resume {}\n",
        id(&only_run(dir.path()))
    );
    assert!(ran.stderr.contains(&again), "{ran:?}");
    let ran = prose(dir.path(), &["resume", "last"]);
    assert!(ran.code == 0 && ran.stdout.contains("Go"), "{ran:?}");

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = command(writer.into());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn a_run_in_context_names_no_files() {
    let dir = workspace(&[(
        "a.prose",
        "block b(n):\n  let y = session \"Say {n}\"\ndo b(1)\noutput z = session \"Go\"\n",
    )]);
    let ran = prose(
        dir.path(),
        &["run", "a.prose", "--backend", "simulate", "--in-context"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("bound    z\n") && ran.stderr.contains("bound    y (#"),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains(".md"), "{ran:?}");
    assert!(!dir.path().join(".prose").exists());
}

#[test]
fn state_md_counts_each_way_in_which_branches_end() {
    let dir = workspace(&[
        (
            "a.prose",
            "let all = [\"a\", \"b\", \"c\"]\nparallel for item in all (on-fail: \"continue\"):\n  session \"Do {item}\"\n",
        ),
        (
            "a.mock.toml",
            "[[session]]\nprompt = \"Do c\"\nfail = \"error\"\n",
        ),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let state = std::fs::read_to_string(only_run(dir.path()).join("state.md")).unwrap();
    assert!(
        state.contains("bindings/anon_002__2.md (complete, 2 times; failed, 1 time)"),
        "{state}"
    );
}
