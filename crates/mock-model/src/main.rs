//! `mock-model --port 0 --script FILE --log FILE`: the mock for programs that aren't written in Rust. Its address is the first
//! line of its standard output. It ends when its standard input does with `--until-eof`, otherwise when it is told to.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mock_model::{Answer, MockModel, Options, Script};

#[derive(Parser)]
#[command(about = "Answers as model APIs do, on 127.0.0.1, from a script")]
struct Cli {
    /// The port; 0 takes one that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What is answered: TOML or JSON. Without it, every text is answered with itself
    #[arg(long)]
    script: Option<PathBuf>,
    /// Gets a line of JSON for each request; what is there is overwritten
    #[arg(long)]
    log: Option<PathBuf>,
    /// End with the standard input
    #[arg(long)]
    until_eof: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("mock-model: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    let script = match &cli.script {
        Some(file) => Script::read(file).map_err(|error| error.to_string())?,
        None => Script::always(Answer::text("${user}")),
    };
    let log = match &cli.log {
        Some(file) => Some(
            std::fs::File::create(file)
                .map_err(|error| format!("can't write {}: {error}", file.display()))?,
        ),
        None => None,
    };
    let mock = MockModel::start_with(script, Options { port: cli.port, log })
        .map_err(|error| format!("can't listen on port {}: {error}", cli.port))?;
    println!("{}", mock.url());
    std::io::stdout()
        .flush()
        .map_err(|error| format!("can't write the address: {error}"))?;
    if cli.until_eof {
        // Whatever comes is of no interest, and an error is an end as well.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}
