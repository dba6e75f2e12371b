//! The tables of `docs/performance.md`.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::keystrokes::Outcome;
use crate::runs::RunOutcome;

/// Between these lines of the page stands what was measured.
const BEGIN: &str = "<!-- measured: written by `cargo xtask bench` -->";
const END: &str = "<!-- end of measured -->";

/// The stages in the order of the table, and the inputs in the order of its columns.
const STAGES: [(&str, &str); 5] = [
    ("lex", "lexing, layout and cutting into chunks"),
    ("parse", "lexing and parsing"),
    ("format", "formatting a tree"),
    ("check", "full check, from text to diagnostics"),
    ("lower", "lowering, after the check"),
];
const INPUTS: [&str; 4] = ["programs/0.1 MB", "programs/1 MB", "programs/10 MB", "dense/1 MB"];

/// Puts a text between the marks of a page.
///
/// # Errors
/// A sentence, when the page lacks the marks.
pub fn replace_measured(page: &str, measured: &str) -> Result<String, String> {
    let missing = || format!("the page needs the lines `{BEGIN}` and `{END}`");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", measured.trim()))
}

/// Throughput of the stages as a table, from what the harness left in its folder. Stages without results are left out.
pub fn stages(results: &Path) -> String {
    let mut out = String::from(
        "| MB/s of CPU | 0.1 MB | 1 MB | 10 MB | 1 MB without prompts | spread |\n|---|---|---|---|---|---|\n",
    );
    for (stage, what) in STAGES {
        let cells: Vec<Option<(f64, f64)>> = INPUTS
            .iter()
            .map(|input| throughput(results, stage, input))
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let shown = cells
            .iter()
            .map(|it| it.map_or_else(|| "–".to_owned(), |(speed, _)| format!("{speed:.0}")));
        let spread = cells.iter().flatten().map(|(_, it)| *it).fold(0.0, f64::max);
        // Writing to a string doesn't fail.
        let _ = writeln!(
            out,
            "| {what} | {} | ±{:.0} % |",
            shown.collect::<Vec<_>>().join(" | "),
            spread * 100.0
        );
    }
    out
}

/// Megabytes a second by the median time, and the median deviation from it as a part of it.
fn throughput(results: &Path, stage: &str, input: &str) -> Option<(f64, f64)> {
    // The harness names folders without slashes.
    let folder = results.join(stage).join(input.replace('/', "_")).join("new");
    let read = |name: &str| -> Option<Value> {
        serde_json::from_slice(&std::fs::read(folder.join(name)).ok()?).ok()
    };
    let (estimates, benchmark) = (read("estimates.json")?, read("benchmark.json")?);
    let nanos = estimates["median"]["point_estimate"].as_f64()?;
    let deviation = estimates["median_abs_dev"]["point_estimate"].as_f64()?;
    let bytes = benchmark["throughput"]["Bytes"].as_f64()?;
    Some((bytes / nanos * 1000.0, deviation / nanos))
}

/// Times of keystrokes as a table.
pub fn keystrokes(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "| lines | what | count | median | p95 | p99 | max | CPU each |\n|---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        for times in &outcome.times {
            let cpu = match times.cpu {
                Duration::ZERO => "–".to_owned(),
                it => millis(it),
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {cpu} |",
                outcome.lines,
                times.what,
                times.all.len(),
                millis(times.quantile(0.5)),
                millis(times.quantile(0.95)),
                millis(times.quantile(0.99)),
                millis(times.quantile(1.0)),
            );
        }
    }
    out
}

/// Opening and memory as a table.
pub fn memory(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "| lines | size | opened and checked | idle | opened | for each byte | edits | after them | for each byte |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for it in outcomes {
        let [idle, full, after] = it.resident;
        let each = |resident: u64| resident.saturating_sub(idle) as f64 / it.bytes.max(1) as f64;
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0);
        let _ = writeln!(
            out,
            "| {} | {:.1} MB | {} | {} | {} | {:.1} | {} | {} | {:.1} |",
            it.lines,
            it.bytes as f64 / 1e6,
            millis(it.opened),
            mib(idle),
            mib(full),
            each(full),
            it.edits,
            mib(after),
            each(after),
        );
    }
    out
}

/// Whole runs as a table.
pub fn runs(outcomes: &[RunOutcome]) -> String {
    let mut out = String::from("| run | time | CPU | CPU each | more memory |\n|---|---|---|---|---|\n");
    for it in outcomes {
        let each = it.cpu.as_secs_f64() * 1e6 / it.count.max(1) as f64;
        let each = match it.count {
            0 | 1 => "–".to_owned(),
            _ => format!("{each:.1} µs"),
        };
        let _ = writeln!(
            out,
            "| {} | {:.2} s | {:.2} s | {each} | {:.1} MiB |",
            it.what,
            it.wall.as_secs_f64(),
            it.cpu.as_secs_f64(),
            it.grown as f64 / 1024.0 / 1024.0,
        );
    }
    out
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
