//! `prose check`: diagnostics of files and folders.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prose_hir::{Diagnostic, FileId};
use prose_model::codes::Severity;
use prose_project::{Config, Environment, Trust, Workspace, find_root, home};
use prose_syntax::{LineCol, TextRange};
use serde_json::{Value, json};

use super::{Exit, colour, fail, out, programs, replace, say};
use crate::args::{CheckArgs, Deny, Format};
use crate::render::diagnostics::{Related, Report, render};

/// One file's findings, severities as configured.
struct Checked {
    file: FileId,
    found: Vec<Diagnostic>,
}

/// Numbers for the last line.
#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    errors: usize,
    warnings: usize,
    hints: usize,
}

/// Checks the given paths.
pub fn check(args: &CheckArgs) -> Exit {
    let mut refused = false;
    let paths = programs(&args.paths, &mut refused);
    let (root, config) = match project(args.paths.first().map_or(Path::new("."), PathBuf::as_path)) {
        Ok(project) => project,
        Err(message) => return fail(&message),
    };
    if args.fix && !fix(&root, &paths, &config) {
        refused = true;
    }
    let mut workspace = Workspace::new(&root);
    let mut checked: Vec<Checked> = Vec::new();
    for path in &paths {
        match workspace.add(path) {
            Ok(file) if checked.iter().any(|c| c.file == file) => {}
            Ok(file) => checked.push(Checked {
                file,
                found: Vec::new(),
            }),
            Err(error) => {
                fail(&error.to_string());
                refused = true;
            }
        }
    }
    // Only now: a file's findings may rest on files that were read after it.
    for entry in &mut checked {
        entry.found = configured(workspace.diagnostics(entry.file), &config);
    }
    let summary = summary(checked.iter().flat_map(|c| &c.found));
    let written = match args.format {
        Format::Text => text(args, &workspace, &checked, summary),
        Format::Json => out(|to| writeln!(to, "{:#}", report_json(&workspace, &checked, summary))),
        Format::Github => out(|to| github(to, &workspace, &checked)),
        Format::Sarif => out(|to| writeln!(to, "{:#}", sarif(&workspace, &checked))),
    };
    let denied = args.deny == Some(Deny::Warnings) && summary.warnings > 0;
    match written {
        Exit::Ok if refused => Exit::Refused,
        Exit::Ok if summary.errors > 0 || denied => Exit::Failed,
        exit => exit,
    }
}

/// Makes the fixes that need no decision, in every file named, and says how many. `false` when a file can't be written; one
/// that can't be read is reported by the check that follows.
fn fix(root: &Path, paths: &[PathBuf], config: &Config) -> bool {
    let mut workspace = Workspace::new(root);
    let mut files: Vec<FileId> = Vec::new();
    for path in paths {
        if let Ok(file) = workspace.add(path)
            && !files.contains(&file)
        {
            files.push(file);
        }
    }
    // What is turned off is wanted as it is. The level asked about doesn't matter.
    let on = |code: &str| config.severity(code, Severity::Warning).is_some();
    let (mut changed, mut made, mut written) = (0, 0, true);
    for file in files {
        let Some((text, count)) = workspace.fixed(file, &on) else {
            continue;
        };
        match replace(workspace.path(file), &text) {
            Ok(()) => {
                changed += 1;
                made += count;
            }
            Err(error) => {
                fail(&format!("can't write {}: {error}", workspace.display(file)));
                written = false;
            }
        }
    }
    if made > 0 {
        say(&format!(
            "fixed {} in {}\n",
            count(made, "problem"),
            count(changed, "file")
        ));
    } else {
        say("nothing to fix without asking\n");
    }
    written
}

/// The root of the project that a path belongs to.
pub(crate) fn root(path: &Path) -> PathBuf {
    let start = if path.is_dir() {
        path
    } else {
        path.parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    };
    find_root(start, Path::new("."), home().as_deref())
}

/// The project root of a path, and its configuration. The user runs the command there, so it is trusted.
pub(crate) fn project(path: &Path) -> Result<(PathBuf, Config), String> {
    let root = root(path);
    let environment = Environment::load(&root)
        .map_err(|error| format!("can't read {}: {error}", root.join(".prose/.env").display()))?;
    let config = Config::load(
        &root,
        Trust::Trusted,
        Config::user_file().as_deref(),
        &environment,
    )
    .map_err(|error| error.to_string())?;
    for notice in &config.notices {
        say(&format!("note: {notice}\n"));
    }
    Ok((root, config))
}

/// Findings with configured severities; those that are off left out.
pub(crate) fn configured(found: Vec<Diagnostic>, config: &Config) -> Vec<Diagnostic> {
    found
        .into_iter()
        .filter_map(|it| it.with_level(|code, usual| config.severity(code, usual)))
        .collect()
}

/// A file's path as somebody in the current folder can open it: relative to that where it is below it, else absolute.
fn path_from_here(workspace: &Workspace, file: FileId) -> String {
    let path = workspace.path(file);
    let here = std::env::current_dir().and_then(|it| it.canonicalize());
    match here.as_deref().map(|here| path.strip_prefix(here)) {
        Ok(Ok(below)) => below.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"),
        _ if path.is_absolute() => path.to_string_lossy().into_owned(),
        _ => workspace.display(file).to_owned(),
    }
}

/// Shows findings to a person.
pub(crate) fn render_all<'a>(
    workspace: &Workspace,
    found: impl IntoIterator<Item = &'a Diagnostic>,
    colour: bool,
) -> String {
    let mut shown = String::new();
    for diagnostic in found {
        let text = workspace.text(diagnostic.file);
        let others: Vec<_> = diagnostic
            .related
            .iter()
            .map(|(file, range, message)| {
                (
                    path_from_here(workspace, *file),
                    workspace.text(*file),
                    *range,
                    message,
                )
            })
            .collect();
        let report = Report {
            severity: diagnostic.severity,
            code: diagnostic.code,
            message: &diagnostic.message,
            path: &path_from_here(workspace, diagnostic.file),
            text: &text,
            range: bytes(diagnostic.range),
            related: others
                .iter()
                .map(|(path, text, range, message)| Related {
                    path,
                    text,
                    range: bytes(*range),
                    message,
                })
                .collect(),
        };
        shown.push_str(&render(&report, colour));
    }
    shown
}

fn bytes(range: TextRange) -> std::ops::Range<usize> {
    range.start().into()..range.end().into()
}

fn summary<'a>(found: impl Iterator<Item = &'a Diagnostic>) -> Summary {
    let mut summary = Summary::default();
    for diagnostic in found {
        match diagnostic.severity {
            Severity::Error => summary.errors += 1,
            Severity::Warning => summary.warnings += 1,
            Severity::Hint => summary.hints += 1,
        }
    }
    summary
}

/// Findings on stdout, the last line on stderr, so that a pipe gets findings only.
fn text(args: &CheckArgs, workspace: &Workspace, checked: &[Checked], summary: Summary) -> Exit {
    let shown = |d: &&Diagnostic| args.hints || d.severity > Severity::Hint;
    let findings = render_all(
        workspace,
        checked.iter().flat_map(|c| &c.found).filter(shown),
        colour(&io::stdout()),
    );
    let exit = out(|to| to.write_all(findings.as_bytes()));
    let mut line = format!(
        "checked {}: {}, {}",
        count(checked.len(), "file"),
        count(summary.errors, "error"),
        count(summary.warnings, "warning")
    );
    if summary.hints > 0 {
        line.push_str(&format!(", {}", count(summary.hints, "hint")));
        if !args.hints {
            line.push_str(" (--hints shows them)");
        }
    }
    say(&format!("{line}\n"));
    exit
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The report of `--format json` (interfaces, "Command line"): lines and characters from 0, characters in UTF-16.
fn report_json(workspace: &Workspace, checked: &[Checked], summary: Summary) -> Value {
    let files: Vec<Value> = checked
        .iter()
        .map(|entry| {
            let diagnostics: Vec<Value> = entry
                .found
                .iter()
                .map(|d| {
                    let related: Vec<Value> = d
                        .related
                        .iter()
                        .map(|(file, range, message)| {
                            json!({
                                "path": path_from_here(workspace, *file),
                                "range": range_json(workspace, *file, *range),
                                "message": message,
                            })
                        })
                        .collect();
                    json!({
                        "code": d.code,
                        "severity": d.severity.as_str(),
                        "message": d.message,
                        "range": range_json(workspace, d.file, d.range),
                        "related": related,
                        "fixable": !workspace.fixes(d).is_empty(),
                    })
                })
                .collect();
            json!({"path": path_from_here(workspace, entry.file), "diagnostics": diagnostics})
        })
        .collect();
    json!({
        "files": files,
        "summary": {"errors": summary.errors, "warnings": summary.warnings, "hints": summary.hints},
    })
}

/// Where a range begins and ends.
fn ends(workspace: &Workspace, file: FileId, range: TextRange) -> (LineCol, LineCol) {
    let (text, index) = (workspace.text(file), workspace.line_index(file));
    (index.utf16(&text, range.start()), index.utf16(&text, range.end()))
}

fn range_json(workspace: &Workspace, file: FileId, range: TextRange) -> Value {
    let (start, end) = ends(workspace, file, range);
    let position = |at: LineCol| json!({"line": at.line, "character": at.col});
    json!({"start": position(start), "end": position(end)})
}

/// `::error file=…,line=…::message`, one line a finding.
fn github(to: &mut impl Write, workspace: &Workspace, checked: &[Checked]) -> io::Result<()> {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    for diagnostic in checked.iter().flat_map(|c| &c.found) {
        let (start, end) = ends(workspace, diagnostic.file, diagnostic.range);
        let level = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "notice",
        };
        let path = escape(workspace.display(diagnostic.file))
            .replace(':', "%3A")
            .replace(',', "%2C");
        writeln!(
            to,
            "::{level} file={path},line={},col={},endLine={},endColumn={},title={}::{}",
            start.line + 1,
            start.col + 1,
            end.line + 1,
            end.col + 1,
            diagnostic.code,
            escape(&diagnostic.message)
        )?;
    }
    Ok(())
}

/// SARIF 2.1.0: lines and columns from 1, columns in UTF-16.
fn sarif(workspace: &Workspace, checked: &[Checked]) -> Value {
    let results: Vec<Value> = checked
        .iter()
        .flat_map(|c| &c.found)
        .map(|d| {
            let (start, end) = ends(workspace, d.file, d.range);
            let level = match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Hint => "note",
            };
            json!({
                "ruleId": d.code,
                "level": level,
                "message": {"text": d.message},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": workspace.display(d.file)},
                    "region": {
                        "startLine": start.line + 1, "startColumn": start.col + 1,
                        "endLine": end.line + 1, "endColumn": end.col + 1,
                    },
                }}],
            })
        })
        .collect();
    let rules: Vec<Value> = prose_model::codes::CODES
        .iter()
        .map(|info| json!({"id": info.code, "shortDescription": {"text": info.title}}))
        .collect();
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": {"driver": {"name": "prose", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}
