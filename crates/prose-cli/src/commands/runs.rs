//! `prose runs` and `prose runs show`: looking at runs, which changes nothing on disk.

use std::io::{self, Write};
use std::path::Path;

use prose_runtime::runs::{
    Line, LineKind, LineState, RunReport, RunState, RunSummary, find_run, history, list_runs, parse_ms,
    state_word,
};
use serde::Serialize;

use super::check::project;
use super::destination::{Destination, Kept};
use super::{Exit, colour, fail, out, say};
use crate::args::{RunsArgs, RunsCommand, RunsFormat, ShowArgs};
use crate::render::lines::{duration, one_line};
use crate::render::report;
use crate::render::text::{Columns, Paint, size, when};

/// Longest value in `--format json`, in bytes.
const JSON_VALUE: usize = 64 * 1024;
/// Longest value on a page, in bytes.
const PAGE_VALUE: usize = 32 * 1024;
/// Longest value in the text form, in bytes.
const TEXT_VALUE: usize = 200;

/// The word for a run that has nothing to show.
const NEVER_STARTED: &str = state_word(&RunState::NeverStarted);

/// Lists runs, or shows one.
pub fn runs(args: &RunsArgs) -> Exit {
    match &args.command {
        Some(RunsCommand::Show(args)) => show(args),
        None => list(args),
    }
}

/// A run in `--format json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    id: &'a str,
    program: &'a str,
    backend: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    started: Option<&'a str>,
    updated: Option<&'a str>,
    duration_ms: u64,
    sessions: u32,
    sessions_done: u32,
    usage: prose_model::Usage,
    dir: String,
}

fn list(args: &RunsArgs) -> Exit {
    let (root, _config) = match project(Path::new(".")) {
        Ok(project) => project,
        Err(message) => return fail(&message),
    };
    let mut runs = match list_runs(&root) {
        Ok(runs) => runs,
        Err(error) => return fail(&error.to_string()),
    };
    let all = runs.len();
    runs.truncate(args.limit.map_or(usize::MAX, |limit| limit as usize));
    if args.format == RunsFormat::Json {
        let listed: Vec<Listed<'_>> = runs.iter().map(listed).collect();
        return json(&serde_json::json!({ "runs": listed }));
    }
    if runs.is_empty() {
        say(&format!("there are no runs below {} yet\n", root.display()));
        return Exit::Ok;
    }
    let paint = Paint::new(colour(&io::stdout()));
    let now = prose_runtime::runs::now_ms();
    let mut columns = Columns::new([
        "ID", "PROGRAM", "STATUS", "STARTED", "DURATION", "SESSIONS", "TOKENS", "COST",
    ]);
    for run in &runs {
        let sessions = if run.sessions_done == run.sessions {
            run.sessions.to_string()
        } else {
            format!("{}/{}", run.sessions_done, run.sessions)
        };
        let tokens = run.usage.tokens();
        columns.row([
            run.id.to_string(),
            one_line(&run.program, 40),
            status(run),
            run.started
                .as_deref()
                .and_then(parse_ms)
                .map_or_else(|| "-".to_owned(), |at| when(at, now)),
            match run.started {
                Some(_) => duration(run.active_ms),
                None => "-".to_owned(),
            },
            sessions,
            if tokens == 0 {
                "-".to_owned()
            } else {
                tokens.to_string()
            },
            run.usage
                .cost_usd
                .map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}")),
        ]);
    }
    let text = columns.render(&paint, 2, |word| paint.status(word));
    let exit = out(|stdout| stdout.write_all(text.as_bytes()));
    if runs.len() < all {
        say(&format!("{} older runs are not shown\n", all - runs.len()));
    }
    exit
}

fn listed(run: &RunSummary) -> Listed<'_> {
    Listed {
        id: run.id.as_str(),
        program: &run.program,
        backend: &run.backend,
        status: state_word(&run.state),
        reason: match &run.state {
            RunState::Unreadable { reason } => Some(reason),
            _ => None,
        },
        pid: match run.state {
            RunState::Running { pid } => pid,
            _ => None,
        },
        started: run.started.as_deref(),
        updated: run.updated.as_deref(),
        duration_ms: run.active_ms,
        sessions: run.sessions,
        sessions_done: run.sessions_done,
        usage: run.usage,
        dir: run.dir.display().to_string(),
    }
}

/// How a run stands, in a few words.
fn status(run: &RunSummary) -> String {
    match run.state {
        RunState::Running { pid: Some(pid) } => format!("running ({pid})"),
        _ => state_word(&run.state).to_owned(),
    }
}

fn json(value: &impl Serialize) -> Exit {
    out(|stdout| {
        serde_json::to_writer_pretty(&mut *stdout, value)?;
        stdout.write_all(b"\n")
    })
}

fn show(args: &ShowArgs) -> Exit {
    let (root, _config) = match project(Path::new(".")) {
        Ok(project) => project,
        Err(message) => return fail(&message),
    };
    let dir = match find_run(&root, &args.run_id) {
        Ok(dir) => dir,
        Err(error) => return fail(&error.to_string()),
    };
    let past = history(&dir);
    if let Some(path) = &args.report {
        let mock = past
            .header
            .as_ref()
            .and_then(|header| header.options.mock.as_deref());
        let kept = Kept::of(&root).file(mock.map(Path::new), "the run's mock file");
        let kept = match &past.bundle {
            Some(bundle) => kept.program(bundle),
            None => kept,
        };
        if let Err(message) = Destination::report(path).check(&kept) {
            return fail(&message);
        }
        let page = report::page(&RunReport::new(&past, PAGE_VALUE));
        if let Err(error) = super::write_new(path, &page) {
            return fail(&format!("can't write {}: {error}", path.display()));
        }
        say(&format!("wrote {}\n", path.display()));
        if args.format == RunsFormat::Text {
            return Exit::Ok;
        }
    }
    match args.format {
        RunsFormat::Json => json(&RunReport::new(&past, JSON_VALUE)),
        RunsFormat::Text => {
            let text = text(
                &RunReport::new(&past, TEXT_VALUE),
                &Paint::new(colour(&io::stdout())),
            );
            out(|stdout| stdout.write_all(text.as_bytes()))
        }
    }
}

/// The text form.
fn text(run: &RunReport, paint: &Paint) -> String {
    if run.status == NEVER_STARTED {
        let why: String = run
            .problems
            .iter()
            .map(|why| format!("{}\n", one_line(why, 400)))
            .collect();
        return format!("{}  {}\n{why}", paint.bold(&run.id), paint.status(&run.status));
    }
    let mut text = format!("{}  {}\n", paint.bold(&run.id), one_line(&run.program, 200));
    let mut facts = vec![paint.status(&run.status), format!("on {}", run.backend)];
    if let Some(started) = &run.started {
        facts.push(format!(
            "started {}",
            started.get(..19).unwrap_or(started).replace('T', " ")
        ));
    }
    facts.push(format!(
        "took {}{}",
        duration(run.duration_ms),
        if run.virtual_time { " (simulated)" } else { "" }
    ));
    facts.push(format!("{}/{} sessions", run.sessions_done, run.sessions));
    let usage = usage(&run.usage);
    if !usage.is_empty() {
        facts.push(usage);
    }
    if !run.resumed_ms.is_empty() {
        facts.push(format!("resumed {} times", run.resumed_ms.len()).replace(" 1 times", " once"));
    }
    text.push_str(&format!(
        "{}\n{}\n",
        facts.join(", "),
        paint.dim(&one_line(&run.dir, usize::MAX / 8))
    ));
    for problem in &run.problems {
        text.push_str(&format!("{} {}\n", paint.red("damaged:"), one_line(problem, 400)));
    }
    if let Some(error) = &run.error {
        text.push_str(&format!(
            "{} {} ({}, at {})\n",
            paint.red("error:"),
            one_line(&error.message, 400),
            error.kind,
            one_line(&error.statement, 200)
        ));
    }
    if run.status == "interrupted" {
        text.push_str(&format!(
            "its process is gone without an end; to go on: prose resume {}\n",
            run.id
        ));
    }
    if run.status == "waiting" {
        let mut command = format!("prose resume {}", run.id);
        for input in run.inputs.iter().filter(|input| input.value.is_none()) {
            command.push_str(&format!(" --input {}=…", input.name));
        }
        text.push_str(&format!("it waits for input; to answer: {command}\n"));
    }
    section(
        &mut text,
        paint,
        "What ran",
        run.tree.iter().flat_map(|line| tree_lines(line, paint)),
    );
    section(
        &mut text,
        paint,
        "Inputs",
        run.inputs.iter().map(|input| match &input.value {
            Some(value) => format!("  {} = {}", input.name, one_line(&value.text, 100)),
            None => format!(
                "  {} {}: {}",
                input.name,
                paint.yellow("waits"),
                one_line(&input.prompt, 100)
            ),
        }),
    );
    section(
        &mut text,
        paint,
        "Bindings",
        run.bindings
            .iter()
            .filter(|binding| binding.kind != "loop")
            .map(|binding| {
                let frame = binding
                    .execution_id
                    .map(|id| format!(" #{id}"))
                    .unwrap_or_default();
                let program = binding
                    .program
                    .iter()
                    .map(|folder| format!("{folder}/"))
                    .collect::<String>();
                format!(
                    "  {program}{}{frame}  {}  {}",
                    binding.name,
                    paint.dim(&format!("{}, {}", binding.kind, size(binding.value.bytes))),
                    one_line(&binding.value.text, 80)
                )
            }),
    );
    section(
        &mut text,
        paint,
        "Warnings",
        run.warnings
            .iter()
            .map(|warning| format!("  {}", one_line(warning, 200))),
    );
    let outputs = run.outputs.iter().map(|(name, value)| (name.as_str(), value));
    let outputs = outputs.chain(run.result.iter().map(|value| ("result", value)));
    section(
        &mut text,
        paint,
        "Outputs",
        outputs.map(|(name, value)| {
            format!(
                "  {name}  {}  {}",
                paint.dim(&size(value.bytes)),
                one_line(&value.text, 100)
            )
        }),
    );
    text
}

fn section(text: &mut String, paint: &Paint, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    text.push_str(&format!("\n{}\n", paint.bold(title)));
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
}

fn usage(usage: &prose_model::Usage) -> String {
    crate::render::lines::usage_note(usage)
        .trim_matches([' ', '(', ')'])
        .to_owned()
}

/// A line of the tree, with its tries and reasons below it.
fn tree_lines(line: &Line, paint: &Paint) -> Vec<String> {
    let indent = "  ".repeat(line.depth.min(20) + 1);
    let mark = match line.state {
        LineState::Ok => paint.green("✓"),
        LineState::Failed => paint.red("✗"),
        LineState::Cancelled => paint.dim("⊘"),
        LineState::Running => paint.cyan("●"),
        LineState::Waiting => paint.yellow("?"),
        LineState::Unfinished => paint.yellow("…"),
    };
    let title = match (line.kind, &line.agent) {
        (LineKind::Session, Some(agent)) => format!("{agent}  {}", one_line(&line.title, 70)),
        (LineKind::Session, None) => one_line(&line.title, 80),
        (LineKind::Judge, _) => format!("judge  **{}**", one_line(&line.title, 70)),
        (LineKind::Item, _) => one_line(&line.title, 70),
        (kind, _) => format!("{}  {}", kind.word(), one_line(&line.title, 70)),
    };
    let mut notes = Vec::new();
    if let Some(model) = &line.model {
        notes.push(model.clone());
    }
    if let Some(end) = line.end_ms
        && end > line.begin_ms
    {
        notes.push(duration(end - line.begin_ms));
    }
    let used = usage(&line.usage);
    if !used.is_empty() {
        notes.push(used);
    }
    if line.attempts.len() > 1 {
        notes.push(format!("{} tries", line.attempts.len()));
    }
    if !matches!(line.state, LineState::Ok | LineState::Failed) {
        notes.push(line.state.word().to_owned());
    }
    if let Some(place) = &line.place {
        notes.push(one_line(place, 200));
    }
    let mut rest = String::new();
    if let Some(verdict) = &line.verdict {
        rest = format!("  → {}", paint.bold(&one_line(&verdict.decision, 60)));
        if !verdict.reason.is_empty() {
            rest.push_str(&format!(": {}", one_line(&verdict.reason, 120)));
        }
    }
    let mut lines = vec![format!(
        "{indent}{mark} {title}{rest}  {}",
        paint.dim(&notes.join(", "))
    )];
    if line.attempts.len() > 1 {
        for (number, attempt) in line.attempts.iter().enumerate() {
            let what = attempt.error.as_deref().unwrap_or(attempt.state.word());
            lines.push(format!(
                "{indent}    {}",
                paint.dim(&format!("try {}: {}", number + 1, one_line(what, 100)))
            ));
        }
    } else if line.state == LineState::Failed && !line.summary.is_empty() {
        lines.push(format!(
            "{indent}    {}",
            paint.red(&one_line(&line.summary, 120))
        ));
    }
    lines
}
