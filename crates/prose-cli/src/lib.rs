//! The command line: arguments, output and exit codes of `prose` and `prose-lsp`.
//!
//! Deliberately absent: analysis, execution and storage; each command calls the crate that owns its logic.
//!
//! Architecture invariant: only this crate writes to the standard streams of `prose`, and only this crate decides exit codes.

pub mod args;
pub mod commands;
mod logging;
mod memory;
pub mod render;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, LspArgs};

/// The binary `prose`.
pub fn prose() -> ExitCode {
    let cli = Cli::parse();
    logging::start();
    match cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Resume(args) => commands::run::resume(args),
        Command::Runs(args) => commands::runs::runs(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Compile { file } => commands::compile::compile(&file),
        Command::Fmt(args) => commands::fmt::fmt(&args),
        Command::Explain { code } => commands::explain::explain(&code),
        Command::Examples(args) => commands::examples::examples(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::Completions { shell } => commands::completions(shell),
        Command::Lsp(args) => commands::lsp::lsp(&args),
        Command::Mcp => commands::mcp::mcp(),
    }
    .into()
}

/// Arguments of the binary `prose-lsp`.
#[derive(Debug, Parser)]
#[command(name = "prose-lsp", version, about = "The language server of OpenProse")]
struct Server {
    #[command(flatten)]
    args: LspArgs,
}

/// The binary `prose-lsp`.
pub fn prose_lsp() -> ExitCode {
    let server = Server::parse();
    logging::start();
    commands::lsp::lsp(&server.args).into()
}
