//! A text stretch by stretch: each is lexed and laid out from a legal cut to another, far enough on.
//!
//! So what lies between the text and its tree stays small and in the processor's cache, however long the text is.

use rowan::TextSize;

use crate::{
    layout::{self, Layout},
    lexer::{self, Lexed, Looked, Outlook},
};

/// A place at which a text may be cut: between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Index of the first raw token behind it.
    pub(crate) raw: usize,
    /// Index of the first token of the parser's input behind it.
    pub(crate) tok: usize,
}

/// The tokens of a text from a legal cut on. The buffers are used again for the next stretch.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where it begins in the whole text. Everything in it counts from there.
    from: usize,
    /// Whether the text ends with it.
    whole: bool,
    /// Behind how many bytes cuts are no longer known.
    limit: usize,
    pub(crate) lexed: Lexed,
    pub(crate) layout: Layout,
    outlook: Outlook,
}

impl Scan {
    /// Scans from a legal cut on. Cuts are known up to `limit`, and there too.
    pub(crate) fn run(&mut self, text: &str, from: usize, limit: usize) {
        let rest = &text[from..];
        self.outlook.from = from;
        lexer::lex_until(
            rest,
            limit.saturating_sub(from),
            &mut self.lexed,
            &mut self.outlook,
        );
        layout::layout(rest, &self.lexed, &mut self.layout);
        self.from = from;
        self.whole = self.lexed.start(self.lexed.len()) == rest.len();
        self.limit = limit.saturating_sub(from);
    }

    /// Scans from a legal cut on as far as it takes to find another one, but at least about `len` bytes.
    pub(crate) fn run_some(&mut self, text: &str, from: usize, len: usize) {
        let mut len = len;
        loop {
            self.run(text, from, from.saturating_add(len));
            if self.whole || self.cuts().next().is_some() {
                return;
            }
            // Twice as much each time, so that starting again stays cheap.
            len = len.saturating_mul(2);
        }
    }

    /// Where it begins in the whole text.
    pub(crate) fn from(&self) -> usize {
        self.from
    }

    /// Where it begins, as a cut.
    pub(crate) fn start(&self) -> Cut {
        Cut { raw: 0, tok: 0 }
    }

    /// Where the text ends, if that is within.
    pub(crate) fn text_end(&self) -> Option<Cut> {
        self.whole.then(|| Cut {
            raw: self.lexed.len(),
            // Without EOF.
            tok: self.layout.toks.len().saturating_sub(1),
        })
    }

    /// The legal cuts within, in order, without the begin and the end of the text.
    pub(crate) fn cuts(&self) -> impl DoubleEndedIterator<Item = Cut> + '_ {
        let limit = if self.whole { usize::MAX } else { self.limit };
        let known = self
            .layout
            .cuts
            .partition_point(|cut| self.lexed.start(cut.raw) <= limit);
        self.layout.cuts[..known].iter().copied()
    }

    /// The cuts at which a part must end, see [`Lexed::ended`].
    pub(crate) fn forced(&self) -> impl Iterator<Item = Cut> + '_ {
        let cuts = &self.layout.cuts;
        self.lexed.ended.iter().filter_map(|start| {
            let next = cuts.partition_point(|cut| self.lexed.start(cut.raw) <= *start as usize);
            cuts.get(next).copied()
        })
    }

    /// Where a cut is in the whole text.
    pub(crate) fn offset(&self, cut: Cut) -> usize {
        self.from + self.lexed.start(cut.raw)
    }

    /// Tokens and brackets whose end was sought further on: start in the whole text, and how far the scan looked, counted from
    /// where this begins.
    pub(crate) fn looked(&self) -> impl Iterator<Item = (usize, Looked)> + '_ {
        self.lexed
            .looked
            .iter()
            .chain(&self.layout.looked)
            .map(|(at, to)| (self.from + *at as usize, *to))
    }
}

/// An offset as a [`TextSize`]; texts are at most [`crate::MAX_TEXT_LEN`] long.
pub(crate) fn size(offset: usize) -> TextSize {
    TextSize::from(u32::try_from(offset).unwrap_or(u32::MAX))
}
