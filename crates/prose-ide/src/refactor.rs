//! Refactorings: what is offered at a place to write a program differently.
//!
//! One file each. A refactoring looks at the tree and at names, and offers nothing where it is not sure; what moves names
//! about is held against the checks at the end (see [`Context::keeps`]).

mod extract_agent;
mod extract_block;
mod inline_block;
mod lines;
mod loop_limit;
mod missing_arguments;
mod parallelize;
mod texts;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use prose_hir::{FileId, NameUse, RefKind, RootDatabase, SourceFile};
use prose_model::codes::Severity;
use prose_syntax::text::{self, Segment};
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

use crate::rename::changed;
use crate::tree::{self, Piece};
use crate::types::{CodeAction, CodeActionKind, FileRange, RefactorKind, TextEdit};

/// Bytes up to which a file is checked once more to see what a refactoring does to it. Longer ones get none of those that
/// need it.
const LONG: usize = 256 * 1024;

/// What is offered at a range, whose ends are in the text.
pub(crate) fn refactorings(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<CodeAction> {
    let Some(ctx) = Context::new(db, file, range) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    if let Some(place) = ctx.place().filter(|it| ctx.is_sound(it.top)) {
        extract_agent::extract_agent(&ctx, &place, &mut out);
        inline_block::inline_block(&ctx, &place, &mut out);
        missing_arguments::missing_arguments(&ctx, &place, &mut out);
        loop_limit::loop_limit(&ctx, &place, &mut out);
        texts::texts(&ctx, &place, &mut out);
    }
    if let Some(selected) = lines::selected(&ctx) {
        extract_block::extract_block(&ctx, &selected, &mut out);
        parallelize::parallelize(&ctx, &selected, &mut out);
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

    /// The names in a range, with what they mean; those in texts too.
    fn names(&self, range: TextRange) -> Vec<NameUse> {
        let found = prose_hir::names_in(self.db, self.source, range);
        let inside = found.into_iter().filter(|it| range.contains_range(it.range));
        inside
            .filter_map(|it| {
                let name = prose_hir::name_at(self.db, self.source, it.range.start())?;
                (name.range == it.range).then_some(name)
            })
            .collect()
    }

    /// The places outside a range where a name of this spelling stands, with how it is used.
    fn spelled(&self, name: &str, outside: TextRange) -> Vec<(TextRange, Option<RefKind>)> {
        let whole = TextRange::up_to(TextSize::of(&*self.text));
        let all = prose_hir::names_in(self.db, self.source, whole);
        all.into_iter()
            .filter(|it| it.role != Some(RefKind::Label) && !it.kind.is_global())
            .filter(|it| !outside.contains_range(it.range) && self.slice(it.range) == name)
            .map(|it| (it.range, it.role))
            .collect()
    }

    /// Whether a variable may get another value while statements run, by a block that they call or by what runs at the same
    /// time.
    fn changes_meanwhile(&self, name: &str, statements: &SyntaxNode, range: TextRange) -> bool {
        let start = range.start() - statements.text_range().start();
        let calls = statements
            .descendants()
            .any(|it| matches!(it.kind(), SyntaxKind::DO_CALL_EXPR | SyntaxKind::CALL_EXPR));
        let around = |it: &SyntaxNode| it.text_range() + start;
        let parallel = statements.ancestors().filter(|it| {
            let kind = it.kind();
            let marked = |kind| it.children_with_tokens().any(|part| part.kind() == kind);
            kind == SyntaxKind::PARALLEL_EXPR
                || (kind == SyntaxKind::FOR_EXPR && marked(SyntaxKind::PARALLEL_KW))
                || (kind == SyntaxKind::PIPE_OP && marked(SyntaxKind::PMAP_KW))
        });
        let parallel: Vec<TextRange> = parallel.map(|it| around(&it)).collect();
        let own = statements
            .ancestors()
            .find(|it| it.kind() == SyntaxKind::BLOCK_DEF);
        let own = own.map(|it| around(&it));
        self.spelled(name, range).into_iter().any(|(place, role)| {
            if role != Some(RefKind::Assign) {
                return false;
            }
            let elsewhere = || {
                let inside = own.is_some_and(|it| it.contains_range(place));
                !inside && self.in_block(place)
            };
            parallel.iter().any(|it| it.contains_range(place)) || (calls && elsewhere())
        })
    }

    /// Whether a place is in a block's body.
    fn in_block(&self, place: TextRange) -> bool {
        let Some((piece, local)) = tree::piece_at(self.db, self.source, place.start()) else {
            return false;
        };
        let token = piece.root.token_at_offset(local).right_biased();
        let mut around = token.into_iter().flat_map(|it| it.parent_ancestors());
        around.any(|it| it.kind() == SyntaxKind::BLOCK_DEF)
    }

    /// A name that nothing has yet: `base`, `base_2`, ….
    fn fresh_name(&self, base: &str) -> String {
        let globals = prose_hir::scope_at(self.db, self.source, 0.into());
        let is_part = |c: char| text::is_name_continue(c) || c == '-';
        let taken = |name: &str| {
            globals.iter().any(|it| it.name.as_str() == name)
                || self.text.match_indices(name).any(|(at, _)| {
                    !self.text[..at].ends_with(is_part) && !self.text[at + name.len()..].starts_with(is_part)
                })
        };
        let mut name = base.to_owned();
        let mut number = 1u32;
        while taken(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// Whether the checks find no error or warning that they didn't find before.
    fn keeps(&self, edits: &[TextEdit]) -> bool {
        if self.text.len() > LONG {
            return false;
        }
        let mut files = vec![self.source];
        let mut at = 0;
        while let Some(file) = files.get(at).copied() {
            at += 1;
            for used in file.uses(self.db).iter().filter_map(|it| it.1) {
                if !files.contains(&used) {
                    files.push(used);
                }
            }
        }
        let edits = BTreeMap::from([(self.file, edits.to_vec())]);
        let mut after = RootDatabase::default();
        after.apply_change(changed(self.db, &edits, &|it| files.contains(&it)));
        let Some(new) = after.source(self.file) else {
            return false;
        };
        let old = findings(self.db, self.source);
        findings(&after, new)
            .iter()
            .all(|(code, count)| old.get(code).is_some_and(|it| count <= it))
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

/// How often each code is found, hints aside.
fn findings(db: &RootDatabase, file: SourceFile) -> BTreeMap<&'static str, usize> {
    let mut out = BTreeMap::new();
    for found in prose_hir::diagnostics(db, file) {
        if found.severity != Severity::Hint {
            *out.entry(found.code).or_default() += 1;
        }
    }
    out
}
