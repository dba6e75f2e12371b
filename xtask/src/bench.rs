//! `cargo xtask bench`: measures, and writes the tables of `docs/performance.md`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::session::say;
use crate::{Result, places, process};

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// A short run whose figures are only printed: one document, fewer repetitions
    #[arg(long)]
    quick: bool,
    /// Leave out lexing, parsing, checks and lowering; the page keeps the last figures that are there
    #[arg(long)]
    only_keystrokes: bool,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let cargo = |arguments: &[&str]| process::command("cargo", arguments, places::root());
    if !options.only_keystrokes {
        let mut bench = cargo(&["bench", "--package", "prose-bench", "--bench", "analysis", "--"]);
        if options.quick {
            bench.args(["--quick", "1 MB"]);
        }
        succeed(bench)?;
    }
    succeed(cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "prose-cli",
        "--package",
        "prose-bench",
        "--bins",
    ]))?;
    let target = target()?;
    let release = target.join("release");
    let mut report = Command::new(release.join(format!("bench-report{}", env::consts::EXE_SUFFIX)));
    report
        .current_dir(places::root())
        .arg("--server")
        .arg(release.join(format!("prose-lsp{}", env::consts::EXE_SUFFIX)))
        .arg("--results")
        .arg(target.join("criterion/analysis"))
        .arg("--compiler")
        .arg(compiler());
    if options.quick {
        report.args(["--lines=10000", "--keystrokes=100", "--edits=1000"]);
    } else {
        report
            .arg("--page")
            .arg(places::root().join("docs/performance.md"));
    }
    succeed(report)?;
    if !options.quick {
        say("docs/performance.md has the new figures; see that its words still fit them");
    }
    Ok(ExitCode::SUCCESS)
}

fn succeed(command: Command) -> Result<()> {
    match process::tee(command, |_| {})? {
        true => Ok(()),
        false => Err("measuring failed".to_owned()),
    }
}

/// The folder of build results, which this program lies in.
fn target() -> Result<PathBuf> {
    let binary = places::binary("xtask")?;
    let profile = binary.parent().and_then(|it| it.parent());
    Ok(profile.ok_or("this program is in no folder")?.to_owned())
}

/// The compiler's name and version.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(
        |_| "unknown compiler".to_owned(),
        |it| {
            let text = String::from_utf8_lossy(&it.stdout).into_owned();
            text.split(" (").next().unwrap_or_default().trim().to_owned()
        },
    )
}
