//! `cargo xtask test`: what CI checks.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::session::{Kind, Session};
use crate::{Result, agents, editors, fuzz, places, process};

/// Which checks to make.
#[derive(Args)]
pub struct Options {
    /// Leave the tests in real editors out: they download editors and a browser
    #[arg(long)]
    no_editors: bool,
    /// Leave the tests of real agents out: they download the agents
    #[arg(long)]
    no_agents: bool,
    /// Make only these checks
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// `cargo fmt --check`
    Fmt,
    /// `cargo clippy`, warnings are errors
    Clippy,
    /// `cargo test` of the workspace
    Cargo,
    /// A bounded run of each fuzz target
    Fuzz,
    /// Real agents against the mock model
    Agents,
    /// The tests in real editors
    Editors,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    let cargo = |arguments: &[&str]| process::command("cargo", arguments, places::root());
    let mut session = Session::default();
    if wanted(Part::Fmt) {
        session.step("format", Kind::Check, cargo(&["fmt", "--all", "--check"]));
        let fuzz = cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]);
        session.step("format of the fuzz targets", Kind::Check, fuzz);
    }
    if wanted(Part::Clippy) {
        let clippy = cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
        session.step("lints", Kind::Check, clippy);
    }
    if wanted(Part::Cargo) {
        session.step(
            "tests of the workspace",
            Kind::Runner,
            cargo(&["test", "--workspace", "--no-fail-fast"]),
        );
    }
    if wanted(Part::Fuzz) {
        fuzz::add_steps(&mut session)?;
    }
    if wanted(Part::Agents) && !options.no_agents {
        agents::add_steps(&mut session, &agents::Agent::ALWAYS);
    }
    if wanted(Part::Editors) && !options.no_editors {
        editors::add_steps(&mut session, &editors::Editor::ALL);
    }
    Ok(session.close())
}
