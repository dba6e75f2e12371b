//! Diagnostics that a program's own comments announce, held against those that the checks find.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prose_hir::Diagnostic;
use prose_model::codes::Severity;
use prose_syntax::LineIndex;
use regex::Regex;

use super::page::{Fence, Role};
use super::{Failure, Report, compare};

/// A diagnostic that a comment announces: `# error: E007 "part of the message"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Line of the program that it is reported on, from 0.
    pub line: usize,
    /// Line of the comment, from 0.
    pub comment: usize,
    /// Severity.
    pub severity: String,
    /// Code.
    pub code: String,
    /// What the message has to contain.
    pub part: Option<String>,
}

/// One or more announcements at the end of a line.
static ANNOUNCED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"((?:#\s*(?:error|warning|hint):\s*[A-Z]\d{3}(?:\s+"[^"]*")?\s*)+)$"#).unwrap()
});
/// One announcement.
static ONE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"#\s*(error|warning|hint):\s*([A-Z]\d{3})(?:\s+"([^"]*)")?"#).unwrap());
/// What looks like one.
static NEARLY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#\s*(error|warning|hint)\b").unwrap());

/// Splits a line into what stands before its announcements, and those.
pub fn split_announced(line: &str) -> (&str, &str) {
    match ANNOUNCED.find(line) {
        Some(found) => line.split_at(found.start()),
        None => (line, ""),
    }
}

/// The announcements in a piece of text: severity, code, part of the message.
pub fn announcements(text: &str) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    ONE.captures_iter(text).map(|captures| {
        let group = |n| captures.get(n).map(|found| found.as_str());
        (
            group(1).unwrap_or_default(),
            group(2).unwrap_or_default(),
            group(3),
        )
    })
}

impl Expected {
    /// What a program's comments announce, and the first comment that nearly does. A comment alone on its line speaks
    /// of the next line that is not such a comment.
    pub fn read(text: &str) -> (Vec<Expected>, Option<Failure>) {
        let mut expected: Vec<Expected> = Vec::new();
        let mut waiting: Vec<usize> = Vec::new();
        let mut problem = None;
        for (number, line) in text.lines().enumerate() {
            let (code, comments) = split_announced(line);
            let alone = code.trim().is_empty() && !comments.is_empty();
            if !alone {
                for index in waiting.drain(..) {
                    expected[index].line = number;
                }
            }
            for (severity, code, part) in announcements(comments) {
                if alone {
                    waiting.push(expected.len());
                }
                expected.push(Expected {
                    line: number,
                    comment: number,
                    severity: severity.to_owned(),
                    code: code.to_owned(),
                    part: part.map(str::to_owned),
                });
            }
            if NEARLY.is_match(code) && problem.is_none() {
                problem = Some(Failure {
                    line: number,
                    message:
                        "not understood; diagnostics are announced as `# error: E007 \"part of the message\"`"
                            .to_owned(),
                });
            }
        }
        (expected, problem)
    }
}

/// Holds what the checks found in a program against its comments.
pub fn check_comments(fence: &Fence, found: &[Diagnostic], report: &mut Report) {
    let source = fence.source();
    let index = LineIndex::new(&source);
    let (mut expected, _) = Expected::read(&fence.text);
    // A program of two lines rarely deserves what it gets from lints: they count where the page speaks of them.
    let is_lint = |code: &str| code.starts_with('L');
    let lints = fence.flags.lints_on || expected.iter().any(|it| is_lint(&it.code));
    let mut unexpected: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for diagnostic in found {
        let line = index.utf8(diagnostic.range.start()).line as usize;
        let wanted = expected.iter().position(|it| {
            it.line == line
                && it.code == diagnostic.code
                && it.severity == diagnostic.severity.as_str()
                && it
                    .part
                    .as_ref()
                    .is_none_or(|part| diagnostic.message.contains(part.as_str()))
        });
        match wanted {
            Some(at) => {
                expected.remove(at);
            }
            None if diagnostic.severity == Severity::Hint && fence.flags.hints_off => {}
            None if !lints && is_lint(diagnostic.code) => {}
            None => {
                let what = format!(
                    "unexpected {} {}: {}",
                    diagnostic.severity.as_str(),
                    diagnostic.code,
                    diagnostic.message
                );
                *unexpected.entry((line, what)).or_default() += 1;
            }
        }
    }
    for ((line, what), times) in unexpected {
        let times = if times > 1 {
            format!(" ({times} times)")
        } else {
            String::new()
        };
        report.fail(fence.line + line, format!("{what}{times}"));
    }
    for missing in expected {
        let part = missing
            .part
            .map(|part| format!(" \"{part}\""))
            .unwrap_or_default();
        report.fail(
            fence.line + missing.comment,
            format!("no {} {}{part} here", missing.severity, missing.code),
        );
    }
}

/// Holds them against a list: `LINE:COLUMN-LINE:COLUMN error E007: message`, counted from 1, the end exclusive.
pub fn check_list(program: &Fence, list: &Fence, found: &[Diagnostic], report: &mut Report) {
    debug_assert_eq!(list.role, Role::Diagnostics);
    let source = program.source();
    let index = LineIndex::new(&source);
    let place = |offset| {
        let at = index.utf8(offset);
        // Columns are bytes of the line; people count characters.
        let start = usize::from(offset) - at.col as usize;
        let column = source[start..usize::from(offset)].chars().count() + 1;
        format!("{}:{column}", at.line + 1)
    };
    let lines: Vec<String> = found
        .iter()
        .map(|it| {
            let (start, end) = (it.range.start(), it.range.end());
            format!(
                "{}-{} {} {}: {}\n",
                place(start),
                place(end),
                it.severity.as_str(),
                it.code,
                it.message
            )
        })
        .collect();
    compare::outcome(list, &lines.concat(), report);
}
