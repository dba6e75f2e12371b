//! Refactorings: what is offered at a place to write a program differently.
//!
//! One file each. A refactoring looks at the tree and at names, and offers nothing where it is not sure.

mod texts;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use prose_hir::{FileId, RootDatabase, SourceFile};
use prose_model::codes::Severity;
use prose_syntax::text::{self, Segment};
use prose_syntax::{SyntaxKind, SyntaxToken, TextRange, TextSize};

use crate::tree::{self, Piece};
use crate::types::{CodeAction, CodeActionKind, FileRange, RefactorKind, TextEdit};

/// What is offered at a range, whose ends are in the text.
pub(crate) fn refactorings(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<CodeAction> {
    let Some(ctx) = Context::new(db, file, range) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    if let Some(place) = ctx.place().filter(|it| ctx.is_sound(it.top)) {
        texts::texts(&ctx, &place, &mut out);
    }
    out
}

/// The file and the range in it.
pub(crate) struct Context<'a> {
    db: &'a RootDatabase,
    source: SourceFile,
    file: FileId,
    text: Arc<str>,
    /// Without blanks at its ends.
    range: TextRange,
}

/// What is at the beginning of the range.
struct Place {
    piece: Piece,
    token: SyntaxToken,
    /// The statement of the top level that it is in.
    top: TextRange,
}

impl<'a> Context<'a> {
    fn new(db: &'a RootDatabase, file: FileId, range: TextRange) -> Option<Self> {
        let source = tree::source(db, file)?;
        let text = source.text(db);
        let selected = text.get(std::ops::Range::<usize>::from(range))?;
        let blanks = TextSize::of(selected) - TextSize::of(selected.trim_start());
        let rest = TextSize::of(selected.trim());
        Some(Context {
            db,
            source,
            file,
            range: match rest == 0.into() {
                true => TextRange::empty(range.start()),
                false => TextRange::at(range.start() + blanks, rest),
            },
            text,
        })
    }

    /// The token at the range's start, unless it is a comment or between statements.
    fn place(&self) -> Option<Place> {
        let (piece, local) = tree::piece_at(self.db, self.source, self.range.start())?;
        let token = tree::token_at(&piece.root, local).filter(|it| !it.kind().is_trivia())?;
        let top = token
            .parent_ancestors()
            .filter(|it| it.kind() != SyntaxKind::SOURCE_FILE)
            .last()?;
        Some(Place {
            top: piece.up(top.text_range()),
            token,
            piece,
        })
    }

    /// Whether no syntax error touches the lines of a range.
    fn is_sound(&self, range: TextRange) -> bool {
        let range = TextRange::new(self.line_start(range.start()), self.line_end(range.end()));
        let starts = self.source.starts(self.db);
        let chunks = self.source.chunks(self.db);
        let first = starts
            .partition_point(|it| *it <= range.start())
            .saturating_sub(1);
        let end = starts.partition_point(|it| *it <= range.end()).min(chunks.len());
        (first.min(end)..end).all(|at| {
            let parse = prose_hir::parse(self.db, chunks[at]);
            let touches = |it: &prose_syntax::SyntaxError| {
                it.severity() == Severity::Error && (it.range + starts[at]).intersect(range).is_some()
            };
            !parse.errors().iter().any(touches)
        })
    }

    fn slice(&self, range: TextRange) -> &str {
        self.text
            .get(std::ops::Range::<usize>::from(range))
            .unwrap_or_default()
    }

    /// How lines end in this file.
    fn newline(&self) -> &'static str {
        match self.text.find(['\n', '\r']) {
            Some(at) if self.text[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.text[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// Where the line of an offset begins.
    fn line_start(&self, at: TextSize) -> TextSize {
        let before = &self.text[..usize::from(at)];
        match before.rfind(['\n', '\r']) {
            Some(found) => TextSize::new(found as u32 + 1),
            None if before.starts_with('\u{feff}') => TextSize::of('\u{feff}'),
            None => 0.into(),
        }
    }

    /// Where the line of an offset ends, without its line break.
    fn line_end(&self, at: TextSize) -> TextSize {
        let rest = &self.text[usize::from(at)..];
        at + rest
            .find(['\n', '\r'])
            .map_or(TextSize::of(rest), |it| TextSize::new(it as u32))
    }

    /// The blanks that the line of an offset begins with.
    fn indent(&self, at: TextSize) -> &str {
        let start = self.line_start(at);
        let line = self.slice(TextRange::new(start, self.line_end(at)));
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn action(&self, title: impl Into<String>, kind: RefactorKind, edits: Vec<TextEdit>) -> CodeAction {
        CodeAction {
            title: title.into(),
            kind: CodeActionKind::Refactor {
                kind,
                edits,
                file: self.file,
            },
        }
    }
}

/// What a text or discretion says: pieces of text and interpolations as they are written. Two tokens that say the same are the
/// same to whoever reads them.
fn said(kind: SyntaxKind, token: &str) -> Vec<(bool, String)> {
    let mut out: Vec<(bool, String)> = Vec::new();
    for segment in text::segments(kind, token, 0.into()) {
        match segment {
            Segment::Text { text, .. } => match out.last_mut() {
                Some((false, so_far)) => so_far.push_str(&text),
                _ => out.push((false, text)),
            },
            Segment::Interpolation(it) => out.push((
                true,
                token
                    .get(std::ops::Range::<usize>::from(it.range))
                    .unwrap_or_default()
                    .to_owned(),
            )),
        }
    }
    out
}
