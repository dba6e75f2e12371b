//! Byte offsets ↔ LSP positions, in the encoding negotiated with the client.
//!
//! Lines end at LF, CRLF or a lone CR (LSP 3.17, "Text Documents"). A position that doesn't exist is moved to the
//! nearest one before it: past the end of a line to the line's end, past the last line to the end of the text, inside
//! a character to the character's start.

use lsp_types::{Position, PositionEncodingKind, Range};
use prose_ide::{LineCol, LineIndex, TextRange, TextSize};

/// How `Position::character` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// UTF-8 bytes.
    Utf8,
    /// UTF-16 code units; what every client understands.
    #[default]
    Utf16,
}

impl Encoding {
    /// UTF-8 if the client offers it, else UTF-16.
    pub(crate) fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Encoding {
        match offered {
            Some(kinds) if kinds.contains(&PositionEncodingKind::UTF8) => Encoding::Utf8,
            _ => Encoding::Utf16,
        }
    }

    /// The name of the encoding in the protocol.
    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    /// The byte offset of a position; always on a character boundary of `text`, of which `index` was made.
    pub(crate) fn offset(self, index: &LineIndex, text: &str, position: Position) -> TextSize {
        let position = LineCol {
            line: position.line,
            col: position.character,
        };
        match self {
            Encoding::Utf8 => index.offset_utf8(text, position),
            Encoding::Utf16 => index.offset_utf16(text, position),
        }
    }

    /// The position of a byte offset.
    pub(crate) fn position(self, index: &LineIndex, text: &str, offset: TextSize) -> Position {
        let LineCol { line, col } = match self {
            Encoding::Utf8 => index.utf8(offset),
            Encoding::Utf16 => index.utf16(text, offset),
        };
        Position { line, character: col }
    }

    /// The byte range of an LSP range; one whose ends are swapped is put right.
    pub(crate) fn text_range(self, index: &LineIndex, text: &str, range: Range) -> TextRange {
        let a = self.offset(index, text, range.start);
        let b = self.offset(index, text, range.end);
        TextRange::new(a.min(b), a.max(b))
    }

    /// The LSP range of a byte range.
    pub(crate) fn range(self, index: &LineIndex, text: &str, range: TextRange) -> Range {
        Range {
            start: self.position(index, text, range.start()),
            end: self.position(index, text, range.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    fn offset(text: &str, line: u32, character: u32, encoding: Encoding) -> u32 {
        encoding
            .offset(&LineIndex::new(text), text, at(line, character))
            .into()
    }

    #[test]
    fn negotiation_prefers_utf8_and_falls_back_to_utf16() {
        let (utf8, utf16, utf32) = (
            PositionEncodingKind::UTF8,
            PositionEncodingKind::UTF16,
            PositionEncodingKind::UTF32,
        );
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf32])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf16, utf8])), Encoding::Utf8);
    }

    #[test]
    fn utf16_counts_surrogate_pairs_as_two() {
        let text = "é🦀x\r\nü";
        assert_eq!(offset(text, 0, 1, Encoding::Utf16), 2);
        assert_eq!(offset(text, 0, 2, Encoding::Utf16), 2, "inside the pair");
        assert_eq!(offset(text, 0, 3, Encoding::Utf16), 6);
        assert_eq!(offset(text, 0, 4, Encoding::Utf16), 7);
        assert_eq!(offset(text, 1, 1, Encoding::Utf16), 11);
    }

    #[test]
    fn utf8_inside_a_character_moves_to_its_start() {
        let text = "é🦀x";
        assert_eq!(offset(text, 0, 1, Encoding::Utf8), 0);
        assert_eq!(offset(text, 0, 2, Encoding::Utf8), 2);
        assert_eq!(offset(text, 0, 5, Encoding::Utf8), 2);
        assert_eq!(offset(text, 0, 6, Encoding::Utf8), 6);
    }

    #[test]
    fn positions_that_do_not_exist_are_clamped() {
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for text in ["ab\r\ncd\n", "äb\ncdé\r"] {
                let end = text.len() as u32;
                let first = text.find(['\r', '\n']).unwrap() as u32;
                assert_eq!(
                    offset(text, 0, 99, encoding),
                    first,
                    "before the line end, not after it"
                );
                assert_eq!(offset(text, 1, u32::MAX, encoding), end - 1);
                assert_eq!(offset(text, 2, 0, encoding), end, "the empty last line exists");
                assert_eq!(offset(text, 2, 5, encoding), end);
                assert_eq!(offset(text, 3, 0, encoding), end);
                assert_eq!(offset(text, u32::MAX, u32::MAX, encoding), end);
            }
            assert_eq!(offset("", 0, 0, encoding), 0);
            assert_eq!(offset("", 1, 1, encoding), 0);
        }
    }

    #[test]
    fn a_swapped_range_is_put_right() {
        let text = "abcdef";
        let range = Range {
            start: at(0, 4),
            end: at(0, 1),
        };
        let range = Encoding::Utf16.text_range(&LineIndex::new(text), text, range);
        assert_eq!(range, TextRange::new(1.into(), 4.into()));
    }

    #[test]
    fn every_character_boundary_goes_there_and_back() {
        let text = "sess\u{200b}ion \"🦀 é\"\r\n\r\tü\n👩‍👩‍👧 \u{feff}x\n";
        let index = LineIndex::new(text);
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for (i, c) in text.char_indices() {
                let position = encoding.position(&index, text, TextSize::from(i as u32));
                let split = c == '\n' && text.as_bytes().get(i.wrapping_sub(1)) == Some(&b'\r');
                // Between CR and LF there is no position: it reads back as the line's end.
                let want = if split { i - 1 } else { i };
                assert_eq!(
                    usize::from(encoding.offset(&index, text, position)),
                    want,
                    "{i} {encoding:?}"
                );
            }
            assert_eq!(
                encoding.position(&index, text, TextSize::from(text.len() as u32 + 10)),
                at(4, 0)
            );
        }
    }
}
