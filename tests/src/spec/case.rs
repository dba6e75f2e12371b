//! One case: its files on disk, checked, formatted, run.

use std::path::Path;

use prose_hir::{Diagnostic, FileId};
use prose_model::codes::Severity;
use prose_project::{Config, Environment, Loaded, Trust};

use super::page::{Case, Fence, Role};
use super::{Report, compare, diagnostics, format, run};

/// The program's file name in its folder.
pub const MAIN: &str = "main.prose";

/// Tries a case.
pub fn check(case: &Case, report: &mut Report) {
    let dir = tempfile::tempdir().unwrap();
    // The folder is a project, whatever is above it.
    std::fs::create_dir(dir.path().join(".prose")).unwrap();
    for file in &case.files {
        if let Role::File(name) = &file.role {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file.source()).unwrap();
        }
    }
    let main = dir.path().join(MAIN);
    std::fs::write(&main, case.main.source()).unwrap();

    let config = match config(dir.path()) {
        Ok(config) => config,
        Err(problem) => return report.fail(case.main.line, problem),
    };
    let mut loaded = match prose_project::load(&main, dir.path()) {
        Ok(loaded) => loaded,
        Err(error) => return report.fail(case.main.line, error.to_string()),
    };
    // Files that nothing uses are checked as well.
    for fence in case.programs() {
        if let Role::File(name) = &fence.role
            && let Err(error) = loaded.workspace.add(&dir.path().join(name))
        {
            report.fail(fence.line, error.to_string());
        }
    }
    let mut errors = false;
    for fence in case.programs() {
        let found = found(&loaded, fence, &config);
        let has_errors = found.iter().any(|it| it.severity == Severity::Error);
        errors |= has_errors;
        match case.other(&Role::Diagnostics) {
            Some(list) if fence.role == Role::Program => {
                diagnostics::check_list(fence, list, &found, report);
            }
            _ => diagnostics::check_comments(fence, &found, report),
        }
        format::check_lossless(fence, report);
        if !has_errors {
            format::check_formatting(fence, dir.path(), name(fence), report);
            format::check_canonical(fence, dir.path(), name(fence), report);
        }
    }
    if let Some(fixed) = case.other(&Role::Fixed) {
        let fixes: Vec<_> = found(&loaded, &case.main, &config)
            .iter()
            .filter_map(|it| loaded.workspace.fixes(it).into_iter().next())
            .collect();
        compare::exact(fixed, &format::fixed(&case.main.source(), &fixes), report);
    }
    for (role, how) in [
        (Role::Formatted, format::Form::Formatted),
        (Role::Canonical, format::Form::Canonical),
    ] {
        if let Some(fence) = case.other(&role) {
            format::check_outcome(&case.main, fence, how, report);
        }
    }
    match (case.runs(), case.other(&Role::Mock).or(case.other(&Role::Inputs))) {
        (true, _) if errors => report.fail(case.main.line, "the program is to be run, but has errors"),
        (true, _) => run::check(case, &loaded, dir.path(), report),
        (false, Some(fence)) => report.fail(
            fence.line - 1,
            "answers for a run of which nothing is said; add an outcome, such as `text output`",
        ),
        (false, None) => {}
    }
}

fn config(root: &Path) -> Result<Config, String> {
    let environment = Environment::load(root).map_err(|error| error.to_string())?;
    Config::load(root, Trust::Trusted, None, &environment).map_err(|error| error.to_string())
}

/// A program's path in its folder.
fn name(fence: &Fence) -> &str {
    match &fence.role {
        Role::File(name) => name.as_str(),
        _ => MAIN,
    }
}

/// What the checks say about one program, with the severities that the project configures.
fn found(loaded: &Loaded, fence: &Fence, config: &Config) -> Vec<Diagnostic> {
    let name = name(fence);
    let file: Option<FileId> = loaded
        .workspace
        .files()
        .find(|file| loaded.workspace.display(*file) == name);
    let found = file
        .map(|file| loaded.workspace.diagnostics(file))
        .unwrap_or_default();
    found
        .into_iter()
        .filter_map(|it| it.with_level(|code, usual| config.severity(code, usual)))
        .collect()
}
