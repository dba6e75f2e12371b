//! `cargo xtask fuzz`: tries the fuzz targets of `fuzz/`, whose promises are in `crates/test-fuzz`.
//!
//! cargo-fuzz builds them with coverage instrumentation and no sanitizer, which the stable compiler can do. The inputs found
//! are kept in `fuzz/corpus/`, those that fail in `fuzz/artifacts/`; what `fuzz/cases/` holds is tried first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, ValueEnum, builder::PossibleValue};

use crate::session::{Kind, Session, say};
use crate::{Result, places, process, provision};

/// Longest input. Longer ones find little more and cost time.
const LONGEST: usize = 1024;
/// Seconds that one input may take. A hundredth of one is usual; only a hang, or a cost that explodes, meets this.
const HANG: u32 = 60;

/// What to try, and how long.
#[derive(Args)]
pub struct Options {
    /// Only this target
    target: Option<Target>,
    /// Stop after so many inputs for each target [default: what CI tries]
    #[arg(long, conflicts_with = "seconds")]
    runs: Option<u64>,
    /// Stop after so many seconds for each target
    #[arg(long)]
    seconds: Option<u64>,
    /// Begin with this number instead of one from the clock: the same number tries the same inputs
    #[arg(long)]
    seed: Option<u32>,
}

#[path = "../../crates/test-fuzz/src/target.rs"]
mod target;

use target::Target;

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Target] {
        &Target::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.about()))
    }
}

pub fn run(options: Options) -> Result<ExitCode> {
    let targets = options.target.map_or(Target::ALL.to_vec(), |it| vec![it]);
    let mut session = Session::default();
    let Some(cargo_fuzz) = session.prepare("fuzz: cargo-fuzz", provision::cargo_fuzz) else {
        return Ok(session.close());
    };
    for target in targets {
        let end = match (options.runs, options.seconds) {
            (_, Some(seconds)) => format!("-max_total_time={seconds}"),
            (runs, None) => format!("-runs={}", runs.unwrap_or(target.bounded_runs())),
        };
        let mut arguments = vec![end];
        arguments.extend(options.seed.map(|seed| format!("-seed={seed}")));
        // A person decides how long this takes, not a limit for hangs.
        let limit = Duration::from_secs(60 * 60 + 2 * options.seconds.unwrap_or(7 * 24 * 60 * 60));
        let command = fuzzer(&cargo_fuzz, target, &arguments)?;
        session.step_within(limit, &format!("fuzz: {}", target.name()), Kind::Check, command);
    }
    Ok(session.close())
}

/// The bounded runs of CI: the same inputs every time, as long as the code is the same.
pub fn add_steps(session: &mut Session) -> Result<()> {
    let Some(cargo_fuzz) = session.prepare("fuzz: cargo-fuzz", provision::cargo_fuzz) else {
        return Ok(());
    };
    for target in Target::ALL {
        let arguments = [
            format!("-runs={}", target.bounded_runs()),
            "-seed=1".to_owned(),
            "-verbosity=0".to_owned(),
        ];
        let command = fuzzer(&cargo_fuzz, target, &arguments)?;
        if !session.step(&format!("fuzz: {}", target.name()), Kind::Check, command) {
            let folder = artifacts(target);
            say(&format!("the input that failed is in {}", folder.display()));
            say("mend it, and keep the input, made small, in fuzz/cases");
        }
    }
    Ok(())
}

/// The command that tries a target, with arguments for libFuzzer.
fn fuzzer(cargo_fuzz: &Path, target: Target, arguments: &[String]) -> Result<Command> {
    let fuzz = places::root().join("fuzz");
    let corpus = fuzz.join("corpus").join(target.name());
    let cases = fuzz.join("cases").join(target.name());
    for folder in [&corpus, &artifacts(target)] {
        fs::create_dir_all(folder).map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    }
    let mut command = process::command(
        cargo_fuzz,
        &["run", "--sanitizer=none", "--no-trace-compares", target.name()],
        places::root(),
    );
    // The first folder is where new inputs go.
    command.arg(corpus).args(cases.is_dir().then_some(cases));
    command.arg("--").args(arguments).args([
        format!("-max_len={LONGEST}"),
        format!("-timeout={HANG}"),
        "-print_final_stats=1".to_owned(),
    ]);
    Ok(command)
}

fn artifacts(target: Target) -> PathBuf {
    places::root().join("fuzz/artifacts").join(target.name())
}
