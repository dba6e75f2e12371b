//! What settles a finding: worked out from the tree when somebody asks, so that checking costs nothing for it.
//!
//! A fix settles its finding, brings up no other, and keeps every comment unless its title says otherwise. What can't be
//! settled by halves is not offered.

mod all;
mod layout;
mod names;
mod parser;
mod parts;
mod sessions;

use std::sync::Arc;

use prose_syntax::SyntaxKind::{CALL_EXPR, COMMENT, LIST_EXPR, OBJECT_EXPR, PAREN_EXPR};
use prose_syntax::{SyntaxError, SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

use crate::diagnostic::apply;
use crate::symbols::ProgramScope;
use crate::{Chunk, Db, Diagnostic, FileState, Fix, SourceFile, queries};

pub use all::{fix_all, fix_code};

/// The changes that settle a finding of a file, the best first. Ranges are those of the file.
pub fn fixes(db: &dyn Db, file: SourceFile, found: &Diagnostic) -> Vec<Fix> {
    if file.id(db) != found.file || file.state(db) != FileState::Text {
        return Vec::new();
    }
    let mut out: Vec<Fix> = Vec::new();
    for at in At::around(db, file, found.range) {
        // The message tells two findings of one code and place apart.
        let said = |it: &&SyntaxError| {
            it.code() == found.code && it.range + at.start == found.range && it.to_string() == found.message
        };
        let here = found.range - at.start;
        let fixes = match at.errors.iter().find(said) {
            Some(error) => parser::fixes(&at, error),
            None if prose_syntax::SyntaxErrorKind::CODES
                .iter()
                .any(|it| it.0 == found.code) =>
            {
                continue;
            }
            None => {
                let mut fixes: Vec<Fix> = found.fix.iter().filter_map(|fix| at.down(fix)).collect();
                fixes.extend(names::fixes(&at, found, here));
                fixes.extend(parts::fixes(&at, found, here));
                fixes.retain(|fix| at.stays_sound(fix));
                fixes
            }
        };
        out.extend(fixes.into_iter().map(|fix| at.up(fix)));
        out.extend(elsewhere(&at, found));
        break;
    }
    let mut unique: Vec<Fix> = Vec::new();
    for fix in out {
        if !unique.iter().any(|it| it.edits == fix.edits) {
            unique.push(fix);
        }
    }
    unique
}

/// Fixes that change another chunk than that of the finding, with ranges of the file.
fn elsewhere(at: &At<'_>, found: &Diagnostic) -> Option<Fix> {
    if found.code == "E005" {
        // What a property belongs to ends where the chunk begins.
        let index = at.index.checked_sub(1)?;
        let both = At::joined(at.db, at.file, index)?;
        let fix = layout::property_of(&both, found.range - both.start)?;
        return both.settles(&fix).then(|| both.up(fix));
    }
    names::fixes_elsewhere(at, found)
}

/// A chunk as fixes look at it. Ranges count from its start.
struct At<'a> {
    db: &'a dyn Db,
    file: SourceFile,
    program: &'a ProgramScope,
    index: usize,
    start: TextSize,
    text: Arc<str>,
    errors: Vec<SyntaxError>,
    root: SyntaxNode,
}

impl<'a> At<'a> {
    fn new(db: &'a dyn Db, file: SourceFile, index: usize) -> Option<At<'a>> {
        let chunk: Chunk = *file.chunks(db).get(index)?;
        let parse = queries::parse(db, chunk);
        Some(At {
            db,
            file,
            program: queries::program_scope(db, file),
            index,
            start: *file.starts(db).get(index)?,
            text: (**chunk.text(db)).into(),
            errors: parse.errors().to_vec(),
            root: parse.root(),
        })
    }

    /// A chunk and the next as one.
    fn joined(db: &'a dyn Db, file: SourceFile, index: usize) -> Option<At<'a>> {
        let first = At::new(db, file, index)?;
        let second: Chunk = *file.chunks(db).get(index + 1)?;
        let text = format!("{}{}", first.text, &**second.text(db));
        let parse = prose_syntax::parse(&text);
        Some(At {
            text: text.into(),
            errors: parse.errors().to_vec(),
            root: parse.syntax(),
            ..first
        })
    }

    /// The chunks that a range of the file may belong to: that of its start, and, for an empty one between two chunks, the
    /// one before.
    fn around(db: &'a dyn Db, file: SourceFile, range: TextRange) -> Vec<At<'a>> {
        let Some((index, _, start)) = crate::chunk_at(db, file, range.start()) else {
            return Vec::new();
        };
        let before = (range.is_empty() && range.start() == start && index > 0).then(|| index - 1);
        let fits = |at: &At<'_>| range.end() <= at.start + TextSize::of(&*at.text);
        [Some(index), before]
            .into_iter()
            .flatten()
            .filter_map(|index| At::new(db, file, index))
            .filter(fits)
            .collect()
    }

    /// From the chunk's to the file's offsets.
    fn up(&self, mut fix: Fix) -> Fix {
        fix.edits.iter_mut().for_each(|(range, _)| *range += self.start);
        fix
    }

    /// From the file's to the chunk's offsets; none when the fix reaches beyond the chunk.
    fn down(&self, fix: &Fix) -> Option<Fix> {
        let mut fix = fix.clone();
        for (range, _) in &mut fix.edits {
            *range = range
                .checked_sub(self.start)
                .filter(|it| it.end() <= TextSize::of(&*self.text))?;
        }
        Some(fix)
    }

    fn slice(&self, range: TextRange) -> &str {
        self.text
            .get(usize::from(range.start())..usize::from(range.end()))
            .unwrap_or_default()
    }

    fn before(&self, offset: TextSize) -> &str {
        self.text.get(..usize::from(offset)).unwrap_or_default()
    }

    fn behind(&self, offset: TextSize) -> &str {
        self.text.get(usize::from(offset)..).unwrap_or_default()
    }

    /// Where the line begins that holds an offset, and its indentation.
    fn line(&self, offset: TextSize) -> (TextSize, &str) {
        let start = self.before(offset).rfind(['\n', '\r']).map_or(0, |it| it + 1);
        let line = &self.text[start..];
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        (size(start), &line[..blank])
    }

    /// Where the line ends that holds an offset, before its line break.
    fn line_end(&self, offset: TextSize) -> TextSize {
        let rest = self.behind(offset);
        offset + size(rest.find(['\n', '\r']).unwrap_or(rest.len()))
    }

    /// Where the next line begins, or the end of the text.
    fn next_line(&self, offset: TextSize) -> TextSize {
        let end = self.line_end(offset);
        let rest = self.behind(end);
        end + size(match rest.as_bytes() {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        })
    }

    /// The line break that the text uses.
    fn newline(&self) -> &'static str {
        match self.text.find(['\n', '\r']) {
            Some(at) if self.text[at..].starts_with("\r\n") => "\r\n",
            Some(at) if self.text[at..].starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// Spaces to the column of the line of an offset. Tabs are not repeated.
    fn indent(&self, offset: TextSize) -> String {
        " ".repeat(width(self.line(offset).1))
    }

    /// Indentation of what belongs below the line of an offset.
    fn below(&self, offset: TextSize) -> String {
        " ".repeat(width(self.line(offset).1) + 2)
    }

    /// Whether only blanks stand before an offset on its line.
    fn begins_line(&self, offset: TextSize) -> bool {
        let (start, indent) = self.line(offset);
        start + TextSize::of(indent) >= offset
    }

    /// Whether only blanks follow an offset on its line.
    fn ends_line(&self, offset: TextSize) -> bool {
        self.slice(TextRange::new(offset, self.line_end(offset)))
            .trim()
            .is_empty()
    }

    /// Tokens from an offset on.
    fn after(&self, offset: TextSize) -> impl Iterator<Item = SyntaxToken> + use<> {
        let first = (offset < self.root.text_range().end())
            .then(|| self.root.token_at_offset(offset).right_biased())
            .flatten();
        std::iter::successors(first, SyntaxToken::next_token)
    }

    /// The token before an offset, or the one around it.
    fn token_before(&self, offset: TextSize) -> Option<SyntaxToken> {
        (offset <= self.root.text_range().end())
            .then(|| self.root.token_at_offset(offset).left_biased())
            .flatten()
    }

    /// The innermost node of one of some kinds around the token at an offset.
    fn node(&self, offset: TextSize, kinds: &[SyntaxKind]) -> Option<SyntaxNode> {
        self.after(offset)
            .next()?
            .parent_ancestors()
            .find(|it| kinds.contains(&it.kind()))
    }

    /// Takes out what stands alone on its lines, with these. A comment behind it stays on a line of its own.
    fn remove(&self, range: TextRange) -> Option<(TextRange, String)> {
        let range = self.trimmed(range);
        if range.is_empty() || !self.begins_line(range.start()) || self.has_comment(range) {
            return None;
        }
        if self.ends_line(range.end()) {
            let mut whole = TextRange::new(self.line(range.start()).0, self.next_line(range.end()));
            if whole.end() == TextSize::of(&*self.text) && self.line_end(range.end()) == whole.end() {
                // The last line has no line break; the one before loses its own.
                let before = self.before(whole.start());
                let kept = before
                    .strip_suffix("\r\n")
                    .or_else(|| before.strip_suffix(['\n', '\r']));
                whole = TextRange::new(TextSize::of(kept.unwrap_or(before)), whole.end());
            }
            return Some((whole, String::new()));
        }
        let rest = self.behind(range.end());
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest[blank..].starts_with('#').then(|| {
            (
                TextRange::new(range.start(), range.end() + size(blank)),
                String::new(),
            )
        })
    }

    /// A range without the blanks it ends with.
    fn trimmed(&self, range: TextRange) -> TextRange {
        let text = self.slice(range).trim_end();
        TextRange::at(range.start(), TextSize::of(text))
    }

    fn has_comment(&self, range: TextRange) -> bool {
        self.after(range.start())
            .take_while(|it| it.text_range().start() < range.end())
            .any(|it| it.kind() == COMMENT)
    }

    /// A word with a blank on each side where there is none.
    fn padded(&self, range: TextRange, word: &str) -> String {
        let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let left = match blank(self.before(range.start()).chars().next_back()) {
            true => "",
            false => " ",
        };
        let right = match blank(self.behind(range.end()).chars().next()) {
            true => "",
            false => " ",
        };
        format!("{left}{word}{right}")
    }

    /// Whether the parser finds less after a fix, and nothing new.
    fn settles(&self, fix: &Fix) -> bool {
        let after = self.errors_after(fix);
        after.is_some_and(|after| after < self.errors.len())
    }

    /// Whether the parser finds nothing new after a fix.
    fn stays_sound(&self, fix: &Fix) -> bool {
        self.errors_after(fix).is_some()
    }

    /// How many errors the parser has after a fix; none if any of them is of a kind it had less of.
    fn errors_after(&self, fix: &Fix) -> Option<usize> {
        let parse = prose_syntax::parse(&apply(&self.text, &fix.edits));
        let mut before: Vec<&str> = self.errors.iter().map(|it| it.code()).collect();
        for error in parse.errors() {
            let at = before.iter().position(|it| *it == error.code())?;
            before.swap_remove(at);
        }
        Some(parse.errors().len())
    }
}

fn size(bytes: usize) -> TextSize {
    // Texts end before this: the tree holds no more.
    TextSize::try_from(bytes).unwrap_or(TextSize::new(u32::MAX))
}

fn quote(range: TextRange, text: &str) -> Fix {
    Fix::replace("Put it into quotes", range, format!("\"{text}\""))
}

fn has_comment(node: &SyntaxNode) -> bool {
    node.descendants_with_tokens().any(|it| it.kind() == COMMENT)
}

/// Whether layout is suspended around a node, so that line ends mean nothing there.
fn in_brackets(node: &SyntaxNode) -> bool {
    let suspends = |kind: SyntaxKind| matches!(kind, LIST_EXPR | OBJECT_EXPR | PAREN_EXPR | CALL_EXPR);
    node.ancestors().skip(1).any(|it| suspends(it.kind()))
}

/// The first token of a kind directly in a node.
fn token(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxToken> {
    node.children_with_tokens()
        .filter_map(prose_syntax::NodeOrToken::into_token)
        .find(|it| it.kind() == kind)
}

/// The first node of a kind directly in a node.
fn child(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxNode> {
    node.children().find(|it| it.kind() == kind)
}

/// Columns of an indentation, as in the parser's layout.
fn width(blank: &str) -> usize {
    prose_syntax::text::indent_width(blank) as usize
}
