//! `cargo xtask corpus DIR`: what every `.prose` file below a folder comes to, as a table. For trying public programs.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use prose_model::RunStatus;
use prose_model::codes::Severity;
use prose_project::Workspace;
use prose_runtime::backends::BackendSettings;
use prose_runtime::{Attach, Engine, RunRequest};

/// A program that takes longer than this under `simulate` counts as not ending.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of one file.
struct Row {
    path: PathBuf,
    lossless: bool,
    errors: BTreeMap<&'static str, usize>,
    warnings: BTreeMap<&'static str, usize>,
    hints: usize,
    run: String,
    checked: Duration,
    ran: Duration,
}

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: cargo xtask corpus DIR");
        return ExitCode::from(2);
    };
    let files = match prose_project::find_programs(&dir) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let rows: Vec<Row> = files.iter().map(|file| row(file, &runtime)).collect();
    print(&dir, &rows);
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

fn row(path: &Path, runtime: &tokio::runtime::Runtime) -> Row {
    let mut row = Row {
        path: path.to_owned(),
        lossless: false,
        errors: BTreeMap::new(),
        warnings: BTreeMap::new(),
        hints: 0,
        run: String::new(),
        checked: Duration::ZERO,
        ran: Duration::ZERO,
    };
    let start = Instant::now();
    let root = path.parent().unwrap_or(Path::new("."));
    let mut workspace = Workspace::new(root);
    let file = match workspace.add(path) {
        Ok(file) => file,
        Err(error) => {
            row.run = error.to_string();
            return row;
        }
    };
    let text = workspace.text(file);
    row.lossless = prose_syntax::parse(&text).syntax().text() == *text;
    for diagnostic in workspace.diagnostics(file) {
        match diagnostic.severity {
            Severity::Error => *row.errors.entry(diagnostic.code).or_default() += 1,
            Severity::Warning => *row.warnings.entry(diagnostic.code).or_default() += 1,
            Severity::Hint => row.hints += 1,
        }
    }
    let bundle = workspace.bundle(file);
    row.checked = start.elapsed();
    let start = Instant::now();
    row.run = match bundle {
        Err(_) => "not run: errors".to_owned(),
        Ok(bundle) => runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, simulate(bundle)).await {
                Ok(word) => word,
                Err(_) => format!("no end in {} s", PATIENCE.as_secs()),
            }
        }),
    };
    row.ran = start.elapsed();
    row
}

/// Runs in a folder of its own, with made-up answers, and says how it ended.
async fn simulate(bundle: std::sync::Arc<prose_model::Bundle>) -> String {
    let Ok(dir) = tempfile::tempdir() else {
        return "no temporary folder".to_owned();
    };
    let engine = Engine::new(dir.path());
    let settings = BackendSettings {
        name: Some("simulate".to_owned()),
        ..BackendSettings::default()
    };
    let backend = match engine.backend(&settings) {
        Ok(backend) => backend,
        Err(error) => return error.to_string(),
    };
    let request = RunRequest {
        bundle,
        program: "program.prose".to_owned(),
        inputs: Default::default(),
        options: Default::default(),
        backend,
        attach: Attach::default(),
    };
    let mut handle = match engine.start(request).await {
        Ok(handle) => handle,
        Err(error) => return error.to_string(),
    };
    // Nobody reads the events of this run; dropping the stream keeps them from piling up.
    drop(handle.take_events());
    /// Lets go of a run that takes too long, so that it doesn't go on behind our back.
    struct Stop(prose_runtime::RunControl);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    let _stop = Stop(handle.control());
    match handle.join().await {
        Ok(result) => match result.status {
            RunStatus::Completed => "completed".to_owned(),
            status => {
                let message = result.error.map(|error| error.message).unwrap_or_default();
                format!("{status:?}: {message}").replace('\n', " ")
            }
        },
        Err(error) => error.to_string(),
    }
}

fn codes(counts: &BTreeMap<&'static str, usize>) -> String {
    match counts.len() {
        0 => "-".to_owned(),
        _ => counts
            .iter()
            .map(|(code, n)| format!("{code}×{n}"))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn print(dir: &Path, rows: &[Row]) {
    println!("| file | lossless | errors | warnings | hints | under simulate | check ms | run ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for row in rows {
        let path = row.path.strip_prefix(dir).unwrap_or(&row.path).display();
        let run: String = row.run.chars().take(80).collect();
        println!(
            "| {path} | {} | {} | {} | {} | {run} | {:.1} | {:.0} |",
            if row.lossless { "yes" } else { "NO" },
            codes(&row.errors),
            codes(&row.warnings),
            row.hints,
            row.checked.as_secs_f64() * 1000.0,
            row.ran.as_secs_f64() * 1000.0,
        );
    }
    let count = |fits: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| fits(row)).count();
    println!();
    println!(
        "{} files, {} lossless, {} without errors, {} completed under simulate",
        rows.len(),
        count(&|row| row.lossless),
        count(&|row| row.errors.is_empty()),
        count(&|row| row.run == "completed"),
    );
}
