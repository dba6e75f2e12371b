//! Strings and discretions as tokens.

use rowan::{TextRange, TextSize};

use crate::{
    SyntaxKind::{self, *},
    SyntaxToken,
    ast::Token,
    text::{self, Segment},
};

/// A token with text a session or judge is going to see: `"…"`, `"""…"""` or the lines under `prompt: |`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StringToken<T = SyntaxToken>(T);

impl<T: Token> StringToken<T> {
    /// Wraps a token of one of the three kinds.
    pub fn cast(token: T) -> Option<Self> {
        matches!(token.kind(), STRING | TRIPLE_STRING | BLOCK_TEXT).then_some(StringToken(token))
    }
    /// The token.
    pub fn syntax(&self) -> &T {
        &self.0
    }
    /// The token's range, quotes included.
    pub fn text_range(&self) -> TextRange {
        self.0.text_range()
    }
    /// [`STRING`](SyntaxKind::STRING), [`TRIPLE_STRING`](SyntaxKind::TRIPLE_STRING) or
    /// [`BLOCK_TEXT`](SyntaxKind::BLOCK_TEXT).
    pub fn kind(&self) -> SyntaxKind {
        self.0.kind()
    }
    /// The range between the quotes.
    pub fn content_range(&self) -> TextRange {
        text::content_range(self.0.kind(), self.0.text()) + self.start()
    }
    /// Text and interpolations in order, escapes resolved, `"""` dedented. Ranges are positions in the file.
    pub fn segments(&self) -> Vec<Segment> {
        text::segments(self.0.kind(), self.0.text(), self.start())
    }
    /// The whole text with interpolations as written: `Hi {name}`.
    pub fn text(&self) -> String {
        if let Some(plain) = text::plain(self.0.kind(), self.0.text()) {
            return plain.to_owned();
        }
        text::joined(&self.segments(), self.0.text(), self.start())
    }
    fn start(&self) -> TextSize {
        self.0.text_range().start()
    }
}

/// A discretion token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiscretionToken<T = SyntaxToken>(T);

impl<T: Token> DiscretionToken<T> {
    /// Wraps a [`DISCRETION`](SyntaxKind::DISCRETION) token.
    pub fn cast(token: T) -> Option<Self> {
        (token.kind() == DISCRETION).then_some(DiscretionToken(token))
    }
    /// The token.
    pub fn syntax(&self) -> &T {
        &self.0
    }
    /// The token's range, stars included.
    pub fn text_range(&self) -> TextRange {
        self.0.text_range()
    }
    /// Whether it is written with three stars.
    pub fn is_block(&self) -> bool {
        text::is_star_block(self.0.text())
    }
    /// The range between the stars.
    pub fn content_range(&self) -> TextRange {
        text::content_range(DISCRETION, self.0.text()) + self.0.text_range().start()
    }
    /// The text between the stars, verbatim.
    pub fn text(&self) -> String {
        self.0.text()[text::content_range(DISCRETION, self.0.text())].to_owned()
    }
    /// Text and interpolations in order; no escapes, nothing trimmed.
    pub fn segments(&self) -> Vec<Segment> {
        text::segments(DISCRETION, self.0.text(), self.0.text_range().start())
    }
    /// The text, trimmed, when it is nothing but one name: `**approved**`. Whether that name is declared is for the
    /// caller to know; if so the discretion is that value.
    pub fn as_name(&self) -> Option<String> {
        let text = self.text();
        let word = text.trim();
        text::is_name(word).then(|| word.to_owned())
    }
}
