//! The executable specification: pages of `tests/spec/` whose programs are checked, formatted and run.
//!
//! `tests/spec/README.md` says how a page is written. [`Page::read`] takes one apart, [`check_page`] tries it, and
//! [`guide`] renders the pages as the language guide of `docs/`.

mod case;
mod compare;
pub mod coverage;
mod diagnostics;
mod format;
pub mod guide;
mod page;
mod run;
mod scene;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use page::{Case, Fence, Page, Role};

/// Something that a page says and that is not so, or a page that can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// Line of the page, from 1.
    pub line: usize,
    /// What was expected and what is there.
    pub message: String,
}

/// A fence of a page whose content is what the tools say now, not what the page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The bytes of the page's text between the fence's first and last line.
    pub range: std::ops::Range<usize>,
    /// What to put there.
    pub text: String,
}

/// What became of a page.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is wrong, in the order of lines.
    pub failures: Vec<Failure>,
    /// Expectations that were wrong and can be rewritten.
    pub updates: Vec<Update>,
}

/// Tries every case of a page.
pub fn check_page(page: &Page) -> Report {
    let mut report = Report {
        failures: page.problems.clone(),
        updates: Vec::new(),
    };
    if page.assertions() == 0 {
        report.fail(1, "the page asserts nothing");
    }
    for case in &page.cases {
        case::check(case, &mut report);
    }
    report.failures.sort();
    report
}

/// The page's text with its rewritable expectations as they are now.
pub fn updated(page: &Page, report: &Report) -> String {
    let mut updates = report.updates.clone();
    updates.sort_by_key(|update| update.range.start);
    let mut text = page.text.clone();
    for update in updates.iter().rev() {
        text.replace_range(update.range.clone(), &update.text);
    }
    text
}

impl Report {
    fn fail(&mut self, line: usize, message: impl Into<String>) {
        self.failures.push(Failure {
            line,
            message: message.into(),
        });
    }
}

/// The folder of the pages.
pub fn folder() -> PathBuf {
    crate::root().join("tests/spec")
}

/// The pages in reading order.
pub fn page_paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
        .filter(|path| path.file_name().is_none_or(|name| name != "README.md"))
        .collect();
    paths.sort();
    paths
}
