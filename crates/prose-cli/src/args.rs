//! The command line's grammar.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use prose_project::StateKind;

/// Runs, checks and explains OpenProse programs.
#[derive(Debug, Parser)]
#[command(name = "prose", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program
    Run(RunArgs),
    /// Continue a stopped or crashed run
    Resume(ResumeArgs),
    /// List runs, or show one
    Runs(RunsArgs),
    /// Report what is wrong with programs
    Check(CheckArgs),
    /// Print a program's canonical form
    Compile {
        /// The program
        file: PathBuf,
    },
    /// Format programs in place
    Fmt(FmtArgs),
    /// Explain a diagnostic code
    Explain {
        /// The code, as in `E007`
        code: String,
    },
    /// List the example programs, or print, copy or run one
    Examples(ExamplesArgs),
    /// Tell which backends can be used, and why others can't
    Doctor(DoctorArgs),
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Speak the language server protocol
    Lsp(LspArgs),
    /// Connect an agent with its session: started by agents, not by hand
    #[command(hide = true)]
    Mcp,
}

/// `prose run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program: a local file
    pub target: String,
    /// Show what would run, with every prompt, and run nothing
    #[arg(long, conflicts_with_all = ["record", "quiet"])]
    pub dry_run: bool,
    /// Where the run keeps its state
    #[arg(long, value_name = "KIND", value_parser = state)]
    pub state: Option<StateKind>,
    /// Keep state in memory only: nothing is written, and nothing can be resumed (short for `--state in-context`)
    #[arg(long, conflicts_with = "state")]
    pub in_context: bool,
    /// Options shared with `resume`
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `prose resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run, as `20260115-143052-a7b3c9`; the beginning of its id, or `last` for the newest
    #[arg(value_name = "ID")]
    pub run_id: String,
    /// Go on with the program as it is now, although it has changed since the run was started
    #[arg(long)]
    pub accept_changes: bool,
    /// Try again what failed for a reason that passes: the backend, time, the budget; also in a run that failed of it
    #[arg(long)]
    pub retry_failed: bool,
    /// The program as it is now, where the file has another name than when the run was started
    #[arg(long, value_name = "FILE", requires = "accept_changes")]
    pub program: Option<PathBuf>,
    /// Options shared with `run`
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `run` and `resume`.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// What runs the sessions; `simulate` needs no model
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Answers for the backends `simulate` and `replay`
    #[arg(long, value_name = "FILE")]
    pub mock: Option<PathBuf>,
    /// A value for an input; may be repeated
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = assignment)]
    pub input: Vec<(String, String)>,
    /// Values for inputs: a JSON object
    #[arg(long, value_name = "FILE.json")]
    pub inputs: Option<PathBuf>,
    /// One event a line on stdout, and nothing else
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// No progress, only the program's outputs
    #[arg(long, short)]
    pub quiet: bool,
    /// Answer yes where a session asks for a permission that the program leaves to a person
    #[arg(long, short)]
    pub yes: bool,
    /// At most so many sessions at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_parallel: Option<u32>,
    /// Limit for one session, as 90s, 10m, 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// A session that reports nothing for so long has failed, as 5m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// Begin no session once the run has cost so much, earlier processes included
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub budget: Option<f64>,
    /// Begin no session once the run has used so many tokens, in and out
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<u64>,
    /// Simulated waits take real time
    #[arg(long)]
    pub realtime: bool,
    /// Write the answers to a mock file, which `replay` and `simulate` give again
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// `prose runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// One run
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// How to list them
    #[arg(long, value_enum, default_value_t = RunsFormat::Text)]
    pub format: RunsFormat,
    /// At most so many, the newest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

/// What `prose runs` does with one run.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Show one run: what ran, how long, what it cost, what it came to
    Show(ShowArgs),
}

/// `prose runs show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run's id, its beginning, or `last` for the newest
    #[arg(value_name = "ID")]
    pub run_id: String,
    /// How to show it
    #[arg(long, value_enum, default_value_t = RunsFormat::Text)]
    pub format: RunsFormat,
    /// Write a page about it that any browser shows, and that needs no other file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// `prose examples`.
#[derive(Debug, Args)]
pub struct ExamplesArgs {
    /// The example; without one they are listed
    pub name: Option<String>,
    /// Copy it with its mock file into a folder, the current one if none is named
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".", requires = "name")]
    pub copy: Option<PathBuf>,
    /// Run it with the answers of its mock file; no model is asked
    #[arg(long, conflicts_with = "copy", requires = "name")]
    pub run: bool,
}

/// `prose doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Have a backend answer one word: this one, or the one that a run takes
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub test: Option<Option<String>>,
    /// Agree that the test may cost money
    #[arg(long, short, requires = "test")]
    pub yes: bool,
}

/// Formats of `prose runs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunsFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `prose check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files, or folders with `.prose` files
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Exit with 1 for these, too
    #[arg(long, value_enum, value_name = "WHAT")]
    pub deny: Option<Deny>,
    /// Also show hints in text form
    #[arg(long)]
    pub hints: bool,
    /// First make every fix that needs no decision, in place
    #[arg(long)]
    pub fix: bool,
}

/// `prose fmt`.
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files, or folders with `.prose` files
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    pub paths: Vec<PathBuf>,
    /// Change nothing: list the files that are not formatted, and exit with 1 if there are any
    #[arg(long)]
    pub check: bool,
    /// Format standard input to standard output
    #[arg(long)]
    pub stdin: bool,
}

/// Report formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// Annotations of GitHub's workflow runner
    Github,
    /// Static Analysis Results Interchange Format 2.1.0
    Sarif,
}

/// What `--deny` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings
    Warnings,
}

/// `prose lsp`, `prose-lsp`.
#[derive(Debug, Args)]
pub struct LspArgs {
    /// Speak over standard input and output (the only transport; may be left out)
    #[arg(long)]
    pub stdio: bool,
    /// Accepted for clients that pass their process id this way
    #[arg(long = "clientProcessId", value_name = "PID", hide = true)]
    pub client_process_id: Option<u32>,
}

/// `name=value`; the value may hold further equals signs.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "write a number of US dollars, as 2.50".to_owned())
}

fn state(text: &str) -> Result<StateKind, String> {
    StateKind::from_word(text).ok_or_else(|| format!("write one of {}", StateKind::WORDS.join(", ")))
}

/// `90s`, `10m`, `2h`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    prose_project::parse_duration(text).ok_or_else(|| "write it as 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "s", "0s", "-1s", "inf", "1e999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn assignments() {
        assert_eq!(assignment("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(assignment("a").is_err() && assignment("=b").is_err());
    }
}
