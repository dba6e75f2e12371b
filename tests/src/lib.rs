//! Helpers for the tests that cross crates or drive the real binaries; the tests themselves are in `tests/tests/`.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
pub mod agents;
#[cfg(unix)]
pub mod crash;
pub mod lowered;
pub mod lsp;
pub mod schema;
pub mod spec;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Path of one of the project's binaries (`prose`, `prose-lsp`), built on first use with the profile of this test.
pub fn bin(name: &str) -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        // The test itself runs from `<target>/<profile>/deps/`.
        let exe = std::env::current_exe().unwrap();
        let profile_dir = exe.parent().unwrap().parent().unwrap().to_owned();
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(root()).args([
            "build",
            "--quiet",
            "--package",
            "prose-cli",
            "--bins",
            "--target-dir",
        ]);
        build.arg(profile_dir.parent().unwrap());
        if profile_dir.ends_with("release") {
            build.arg("--release");
        }
        let status = build.status().unwrap();
        assert!(status.success(), "building the binaries failed");
        profile_dir
    });
    dir.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The workspace root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What a run of `prose` printed, as text.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A command for `prose` in a folder, with no configuration of the person who runs the tests.
pub fn prose_command(dir: &Path) -> Command {
    let mut command = Command::new(bin("prose"));
    command
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_CONFIG_HOME", dir.join(".config"))
        .env("NO_COLOR", "1")
        .env_remove("PROSE_BACKEND")
        .stdin(std::process::Stdio::null());
    command
}

/// Runs `prose` in a folder.
pub fn prose(dir: &Path, args: &[&str]) -> Ran {
    prose_command(dir).args(args).output().unwrap().into()
}

/// A folder for one test, with files in it.
pub fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// Answers for `everything.prose`.
pub const EVERYTHING_MOCK: &str = include_str!("../programs/everything.mock.toml");

/// A folder with `everything.prose`, which uses every construct, what it uses, and its mock file.
pub fn everything() -> tempfile::TempDir {
    workspace(&[
        ("everything.prose", include_str!("../programs/everything.prose")),
        ("helper.prose", include_str!("../programs/helper.prose")),
        ("deeper.prose", include_str!("../programs/deeper.prose")),
        ("everything.mock.toml", EVERYTHING_MOCK),
    ])
}

/// The single run directory of a workspace.
pub fn only_run(dir: &Path) -> PathBuf {
    let mut runs: Vec<PathBuf> = std::fs::read_dir(dir.join(".prose/runs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// All files below a folder with their bytes, by path relative to it.
pub fn files_below(dir: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}
