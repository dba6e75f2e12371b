//! A tree for reading a text once: a flat list of its nodes and tokens, in order, without blanks and comments.
//!
//! Each entry knows where it ends in the text and where its next sibling stands in the list. Nothing is allocated for a node,
//! and nothing has to be freed, so that this costs a fraction of a lossless tree. Kinds and places are the same in both.

use std::ops::Range;

use rowan::{TextRange, TextSize};

use crate::{SyntaxError, SyntaxKind, ast, event::TreeSink, scan::size};

/// What reading a text gives: its tree and the findings, in the order of the text.
#[derive(Debug, Clone)]
pub struct Reading<'t> {
    pub(crate) text: &'t str,
    pub(crate) entries: Vec<Entry>,
    pub(crate) errors: Vec<SyntaxError>,
}

/// A node or token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) kind: SyntaxKind,
    start: TextSize,
    end: TextSize,
    /// Number of the entry behind it and all that is in it.
    pub(crate) next: u32,
}

impl Entry {
    pub(crate) fn range(&self) -> TextRange {
        TextRange::new(self.start, self.end)
    }
}

impl Reading<'_> {
    /// The root.
    pub fn root(&self) -> ast::SourceFile<ast::Inner<'_>> {
        ast::SourceFile(ast::Inner::root(self))
    }

    /// All findings, ordered by place: errors, warnings and hints.
    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }
}

/// Fills the list.
pub(crate) struct Reader {
    entries: Vec<Entry>,
    /// Open nodes.
    parents: Vec<u32>,
    /// Where the last token ends.
    at: TextSize,
    /// How far behind the begin of what is read the ranges of tokens begin to count. They may begin in front of it.
    offset: isize,
}

impl Reader {
    /// Begins a list in a buffer.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Reader {
        entries.clear();
        Reader {
            entries,
            parents: Vec::with_capacity(32),
            at: TextSize::new(0),
            offset: 0,
        }
    }

    /// Says where ranges of tokens count from, seen from the begin of what is read.
    pub(crate) fn count_from(&mut self, offset: isize) {
        self.offset = offset;
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn next(&self) -> u32 {
        self.entries.len() as u32
    }
}

impl TreeSink for Reader {
    #[inline]
    fn start(&mut self, kind: SyntaxKind) {
        self.parents.push(self.next());
        self.entries.push(Entry {
            kind,
            start: self.at,
            end: self.at,
            next: 0,
        });
    }

    #[inline]
    fn finish(&mut self) {
        let (next, at) = (self.next(), self.at);
        if let Some(node) = self
            .parents
            .pop()
            .and_then(|it| self.entries.get_mut(it as usize))
        {
            (node.next, node.end) = (next, at);
        }
    }

    #[inline]
    fn token(&mut self, kind: SyntaxKind, _: &str, range: Range<usize>) {
        let place = |at: usize| size(at.saturating_add_signed(self.offset));
        let (start, end) = (place(range.start), place(range.end));
        self.at = end;
        if !kind.is_trivia() {
            let next = self.next() + 1;
            self.entries.push(Entry {
                kind,
                start,
                end,
                next,
            });
        }
    }

    #[inline]
    fn leaf(&mut self, kind: SyntaxKind, token: SyntaxKind, text: &str, range: Range<usize>) {
        self.start(kind);
        self.token(token, text, range);
        self.finish();
    }
}
