//! What holds for every program: it parses without loss, and formatting keeps its meaning. What the formatter, the
//! canonical form and the quick fixes make of it.

use prose_hir::Fix;

use super::Report;
use super::page::Fence;

/// A rewriting of a whole program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `prose fmt`.
    Formatted,
    /// `prose compile`.
    Canonical,
}

/// What holds for every program.
pub fn check(fence: &Fence, report: &mut Report) {
    let source = fence.source();
    let parse = prose_syntax::parse(&source);
    if parse.syntax().to_string() != source {
        report.fail(fence.line, "the tree's text is not the program");
    }
}

/// Holds a rewriting against what the page says.
pub fn check_outcome(_program: &Fence, outcome: &Fence, form: Form, report: &mut Report) {
    report.fail(outcome.line, format!("{form:?} programs can't be compared yet"));
}

/// The program after the first quick fix of every diagnostic that has one. Of two that overlap, the earlier counts.
pub fn fixed(source: &str, fixes: &[Fix]) -> String {
    let mut edits: Vec<_> = Vec::new();
    let mut taken: Vec<prose_syntax::TextRange> = Vec::new();
    for fix in fixes {
        let overlaps = fix.edits.iter().any(|(range, _)| {
            taken.iter().any(|other| {
                other
                    .intersect(*range)
                    .is_some_and(|both| !both.is_empty() || other == range)
            })
        });
        if !overlaps {
            taken.extend(fix.edits.iter().map(|(range, _)| *range));
            edits.extend(fix.edits.iter().cloned());
        }
    }
    edits.sort_by_key(|(range, _)| range.start());
    let mut text = source.to_owned();
    for (range, with) in edits.iter().rev() {
        text.replace_range(usize::from(range.start())..usize::from(range.end()), with);
    }
    text
}
