//! Types in a real language server, reads what the harness measured, and writes both into the page. Called by `cargo xtask bench`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use prose_bench::keystrokes::{Options, measure};
use prose_bench::{alone, apis, machine, report, runs};

#[derive(Parser)]
struct Cli {
    /// The server's binary
    #[arg(long, required_unless_present_any = ["only_runs", "only_apis", "serve"])]
    server: Option<PathBuf>,
    /// The harness's folder of results
    #[arg(long, required_unless_present_any = ["only_runs", "only_apis", "serve"])]
    results: Option<PathBuf>,
    /// The page to write into; without it, the tables are only printed
    #[arg(long)]
    page: Option<PathBuf>,
    /// What built it, for the page
    #[arg(long, default_value = "")]
    compiler: String,
    /// Keystrokes of each kind
    #[arg(long, default_value_t = 500)]
    keystrokes: usize,
    /// Edits after which memory is measured again
    #[arg(long, default_value_t = 10_000)]
    edits: usize,
    /// Lines of each document
    #[arg(long, value_delimiter = ',', default_value = "10000,32000,314000")]
    lines: Vec<usize>,
    /// Only measure runs, and print their table
    #[arg(long)]
    only_runs: bool,
    /// Only measure sessions through APIs, and print their table
    #[arg(long)]
    only_apis: bool,
    /// Rounds of 200 sessions through each API
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Be the mock of a model's service
    #[arg(long, hide = true)]
    serve: bool,
    /// Sessions, and ten times as many iterations, of a run
    #[arg(long, default_value_t = 10_000)]
    sessions: u64,
    /// Bytes of the long value
    #[arg(long, default_value_t = 1_000_000_000)]
    long: u64,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    if cli.serve {
        return apis::serve().map_err(|error| error.to_string());
    }
    if cli.only_apis {
        println!("{}", report::runs(&through_apis(cli)?));
        return Ok(());
    }
    // First the one whose memory counts, before the others have used any.
    let branches = usize::try_from(cli.sessions).map_err(|error| error.to_string())?;
    let mut runs = vec![
        runs::long_value(cli.long)?,
        runs::sessions(cli.sessions)?,
        runs::iterations(cli.sessions * 10)?,
        alone::parallel_for(branches)?.measure()?,
        alone::repeat(branches * 10)?.measure()?,
        alone::loop_while(branches * 10)?.measure()?,
    ];
    runs.extend(through_apis(cli)?);
    let runs = report::runs(&runs);
    let (Some(server), Some(results)) = (&cli.server, &cli.results) else {
        println!("{runs}");
        return Ok(());
    };
    let before = machine::load();
    let mut outcomes = Vec::new();
    for lines in &cli.lines {
        eprintln!("typing in a document of {lines} lines");
        let options = Options {
            lines: *lines,
            keystrokes: cli.keystrokes,
            edits: cli.edits,
        };
        outcomes.push(measure(server, options).map_err(|error| error.to_string())?);
    }
    let measured = format!(
        "Machine: {}; {}. Load while typing: {before:.1} to {:.1} (1 is one busy core).\n\n{}\n{}\n{}\n{runs}",
        machine::describe(),
        cli.compiler,
        machine::load(),
        report::stages(results),
        report::keystrokes(&outcomes),
        report::memory(&outcomes),
    );
    println!("{measured}");
    if let Some(page) = &cli.page {
        let failed = |error: std::io::Error| format!("{}: {error}", page.display());
        let text = std::fs::read_to_string(page).map_err(failed)?;
        std::fs::write(page, report::replace_measured(&text, &measured)?).map_err(failed)?;
    }
    Ok(())
}

fn through_apis(cli: &Cli) -> Result<Vec<runs::RunOutcome>, String> {
    let measure = |kind: &&str| apis::measure(kind, cli.rounds);
    apis::KINDS.iter().map(measure).collect()
}
