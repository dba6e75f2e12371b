//! The executable specification: each page of `tests/spec/` is a test, found by its name. With `UPDATE_EXPECT=1`,
//! outcomes that differ are rewritten in the page, and the guide is rendered.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use prose_tests::spec::{self, Page, check_page, coverage, guide, updated};

/// Fewer expectations than this, and pages were lost.
const AT_LEAST: usize = 1350;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The pages' own runs use threads as well.
    arguments.test_threads = arguments.test_threads.or(Some(4));
    let paths = spec::page_paths(&spec::folder());
    let pages: Vec<Page> = paths.iter().map(|path| Page::open(path)).collect();
    let assertions: usize = pages.iter().map(Page::assertions).sum();
    let total = format!("spec: {} pages, {assertions} assertions", pages.len());

    let mut trials: Vec<Trial> = paths
        .iter()
        .zip(&pages)
        .map(|(path, page)| {
            let (path, page) = (path.clone(), page.clone());
            Trial::test(page.name.clone(), move || try_page(&path, &page))
        })
        .collect();
    trials.push(Trial::test("total", move || enough(assertions)));
    trials.push(Trial::test("guide_is_current", move || guide_is_current(&paths)));
    trials.push(Trial::test("coverage", move || rules_are_shown(&pages)));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!("{total}");
    }
    conclusion.exit_code()
}

fn try_page(path: &Path, page: &Page) -> Result<(), Failed> {
    let report = check_page(page);
    if report.failures.is_empty() {
        return Ok(());
    }
    if updating() && !report.updates.is_empty() {
        std::fs::write(path, updated(page, &report))?;
    }
    let shown = path.strip_prefix(prose_tests::root()).unwrap_or(path).display();
    let lines: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{shown}:{}: {}", failure.line, failure.message))
        .collect();
    Err(lines.join("\n").into())
}

fn enough(assertions: usize) -> Result<(), Failed> {
    if assertions < AT_LEAST {
        return Err(format!("only {assertions} assertions; there were at least {AT_LEAST}").into());
    }
    Ok(())
}

fn rules_are_shown(pages: &[Page]) -> Result<(), Failed> {
    let readme = std::fs::read_to_string(spec::folder().join("README.md"))?;
    let problems = coverage::problems(&readme, pages, prose_tests::root());
    if problems.is_empty() {
        return Ok(());
    }
    Err(problems.join("\n").into())
}

fn guide_is_current(paths: &[PathBuf]) -> Result<(), Failed> {
    let pages: Vec<Page> = paths.iter().map(|path| Page::open(path)).collect();
    let files = guide::render(&pages);
    if updating() {
        guide::write(&guide::folder(), &files)?;
    }
    let stale = guide::stale(&guide::folder(), &files);
    if stale.is_empty() {
        return Ok(());
    }
    Err(stale.join("\n").into())
}

fn updating() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}
