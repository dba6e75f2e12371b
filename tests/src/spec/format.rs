//! What holds for every program: it parses without loss, and formatting keeps its meaning. What the formatter, the
//! canonical form and the quick fixes make of it.

use std::path::Path;

use prose_hir::Fix;
use prose_syntax::SyntaxKind;

use super::page::Fence;
use super::{Report, compare};
use crate::lowered::{lowered, without_ids};

/// A rewriting of a whole program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `prose fmt`.
    Formatted,
    /// `prose compile`.
    Canonical,
}

/// What holds for every program: nothing is lost by parsing it.
pub fn check_lossless(fence: &Fence, report: &mut Report) {
    let source = fence.source();
    let parse = prose_syntax::parse(&source);
    if parse.syntax().to_string() != source {
        report.fail(fence.line, "the tree's text is not the program");
    }
}

/// What holds for every program without errors: formatted, it is the same program, and formatted again the same text.
/// `name` is its file in the folder `root`.
pub fn check_formatting(fence: &Fence, root: &Path, name: &str, report: &mut Report) {
    let source = fence.source();
    let formatted = prose_fmt::format_text(&source);
    if prose_fmt::format_text(&formatted) != formatted {
        report.fail(
            fence.line,
            format!("formatting twice is not formatting once:\n{formatted}"),
        );
    }
    if lowered(root, name, &formatted) != lowered(root, name, &source) {
        report.fail(
            fence.line,
            format!("formatted, it is another program:\n{formatted}"),
        );
    }
}

/// What holds for every program without errors: its canonical form is that of itself, and the same program. Ids of nodes
/// may differ, since they count what stands before a node, as written.
pub fn check_canonical(fence: &Fence, root: &Path, name: &str, report: &mut Report) {
    let source = fence.source();
    let form = canonical(&source);
    if canonical(&form) != form {
        report.fail(fence.line, format!("the canonical form has another:\n{form}"));
    }
    // `session name: agent` becomes `let name = session: agent`, which is another statement of the same effect.
    let named = prose_syntax::parse(&source).syntax().descendants().any(|node| {
        node.kind() == SyntaxKind::SESSION_EXPR && node.children().any(|it| it.kind() == SyntaxKind::NAME)
    });
    let program = |text: &str| lowered(root, name, text).map(without_ids);
    if !named && program(&form) != program(&source) {
        report.fail(
            fence.line,
            format!("the canonical form is another program:\n{form}"),
        );
    }
}

fn canonical(source: &str) -> String {
    prose_fmt::canonical(&prose_syntax::parse(source))
}

/// Holds a rewriting against what the page says.
pub fn check_outcome(program: &Fence, outcome: &Fence, form: Form, report: &mut Report) {
    match form {
        Form::Formatted => {
            compare::exact(outcome, &prose_fmt::format_text(&program.source()), report);
        }
        Form::Canonical => compare::exact(outcome, &canonical(&program.source()), report),
    }
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
