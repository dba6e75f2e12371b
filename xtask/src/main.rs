//! The project's own tasks, called as `cargo xtask …`: the checks CI makes, the editors' tests, packages and pictures.
//! Deliberately absent: anything a user needs, and any dependency that would delay the start of every other task.
//!
//! Architecture invariant: a task says what failed and where to look, and its exit code is not 0 then.

mod agents;
mod bench;
mod corpus;
mod crash;
mod editors;
mod failures;
mod fuzz;
mod guide;
mod places;
mod process;
mod provision;
mod session;
mod tally;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A failure, told in a sentence for a person.
type Result<T> = std::result::Result<T, String>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

// A new task is a module with a `run`, and a line here and in `main`.
#[derive(Subcommand)]
enum Task {
    /// Everything CI checks: format, lints, tests of the workspace, tests in the real editors
    Test(test::Options),
    /// Only the tests in the real editors
    Editors(editors::Options),
    /// The real agents (Claude Code, Codex, Gemini CLI, OpenCode) against the mock model; downloads them
    Agents(agents::Options),
    /// Package the VS Code extension with a release build of the server
    Vsix,
    /// What every `.prose` file below a folder comes to: lossless, errors, run under simulate, time
    Corpus {
        /// The folder
        dir: std::path::PathBuf,
    },
    /// End a run at every record, at every step of every write and at random moments, and resume it each time
    Crash,
    /// Render the pages of tests/spec as the language guide in docs/guide
    Guide,
    /// Try texts and edits made at random on lexer, parser, checks, formatter, fixes and database
    Fuzz(fuzz::Options),
    /// Measure, and write the tables of docs/performance.md
    Bench(bench::Options),
    /// Take the picture of VS Code that the README shows
    Screenshot,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test(options) => test::run(options),
        Task::Editors(options) => editors::run(options),
        Task::Agents(options) => agents::run(options),
        Task::Vsix => editors::package(),
        Task::Corpus { dir } => corpus::run(&dir),
        Task::Crash => crash::run(),
        Task::Guide => guide::run(),
        Task::Fuzz(options) => fuzz::run(options),
        Task::Bench(options) => bench::run(options),
        Task::Screenshot => editors::screenshot(),
    };
    match result {
        Ok(code) => code,
        Err(problem) => {
            session::say(&format!("xtask: {problem}"));
            ExitCode::FAILURE
        }
    }
}
