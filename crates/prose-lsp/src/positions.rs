//! Byte offsets ↔ LSP positions, in the encoding negotiated with the client.
//!
//! Lines end at LF, CRLF or a lone CR (LSP 3.17, "Text Documents"). A position that doesn't exist is moved to the
//! nearest one before it: past the end of a line to the line's end, past the last line to the end of the text, inside
//! a character to the character's start.

use lsp_types::{Position, PositionEncodingKind, Range};

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
}

/// Where the lines of one text start. Valid only together with the very text it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineStarts {
    /// Byte offsets; the first is 0.
    starts: Vec<usize>,
}

impl LineStarts {
    /// Finds all line starts of `text`.
    pub(crate) fn new(text: &str) -> LineStarts {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(i, &b)| match b {
            b'\n' => true,
            b'\r' => bytes.get(i + 1) != Some(&b'\n'),
            _ => false,
        });
        LineStarts { starts: std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect() }
    }

    /// The byte offset of a position; always on a character boundary of `text`.
    pub(crate) fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text[start..end].trim_end_matches(['\r', '\n']);
        let wanted = position.character as usize;
        match encoding {
            Encoding::Utf8 => start + floor_char_boundary(content, wanted),
            Encoding::Utf16 => {
                let mut units = 0;
                for (i, c) in content.char_indices() {
                    units += c.len_utf16();
                    if units > wanted {
                        return start + i;
                    }
                }
                start + content.len()
            }
        }
    }

    /// The position of a byte offset. One past the end counts as the end, one inside a character as its start.
    pub(crate) fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = floor_char_boundary(text, offset);
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let before = &text[self.starts[line]..offset];
        let character = match encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        Position { line: line as u32, character: character as u32 }
    }

    /// The byte range of an LSP range; one whose ends are swapped is put right.
    pub(crate) fn byte_range(&self, text: &str, range: Range, encoding: Encoding) -> std::ops::Range<usize> {
        let a = self.offset(text, range.start, encoding);
        let b = self.offset(text, range.end, encoding);
        a.min(b)..a.max(b)
    }

    /// The LSP range of a byte range.
    pub(crate) fn range(&self, text: &str, range: std::ops::Range<usize>, encoding: Encoding) -> Range {
        Range {
            start: self.position(text, range.start, encoding),
            end: self.position(text, range.end, encoding),
        }
    }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    fn offset(text: &str, line: u32, character: u32, encoding: Encoding) -> usize {
        LineStarts::new(text).offset(text, at(line, character), encoding)
    }

    #[test]
    fn negotiation_prefers_utf8_and_falls_back_to_utf16() {
        let (utf8, utf16, utf32) =
            (PositionEncodingKind::UTF8, PositionEncodingKind::UTF16, PositionEncodingKind::UTF32);
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf32])), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[utf16, utf8])), Encoding::Utf8);
    }

    #[test]
    fn every_line_end_counts_once() {
        let text = "a\nb\r\nc\rd\n\r\n\re";
        assert_eq!(LineStarts::new(text).starts, [0, 2, 5, 7, 9, 11, 12]);
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
            let text = "ab\r\ncd\n";
            assert_eq!(offset(text, 0, 99, encoding), 2, "before the line end, not after it");
            assert_eq!(offset(text, 1, u32::MAX, encoding), 6);
            assert_eq!(offset(text, 2, 0, encoding), 7, "the empty last line exists");
            assert_eq!(offset(text, 2, 5, encoding), 7);
            assert_eq!(offset(text, 3, 0, encoding), 7);
            assert_eq!(offset(text, u32::MAX, u32::MAX, encoding), 7);
            assert_eq!(offset("", 0, 0, encoding), 0);
            assert_eq!(offset("", 1, 1, encoding), 0);
        }
    }

    #[test]
    fn a_swapped_range_is_put_right() {
        let text = "abcdef";
        let range = Range { start: at(0, 4), end: at(0, 1) };
        assert_eq!(LineStarts::new(text).byte_range(text, range, Encoding::Utf16), 1..4);
    }

    #[test]
    fn every_character_boundary_goes_there_and_back() {
        let text = "sess\u{200b}ion \"🦀 é\"\r\n\r\tü\n👩‍👩‍👧 \u{feff}x\n";
        let lines = LineStarts::new(text);
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for (i, c) in text.char_indices() {
                let position = lines.position(text, i, encoding);
                let line_end = c == '\n' && text.as_bytes().get(i.wrapping_sub(1)) == Some(&b'\r');
                // Between CR and LF there is no position: it reads back as the line's end.
                let want = if line_end { i - 1 } else { i };
                assert_eq!(lines.offset(text, position, encoding), want, "offset {i} {encoding:?}");
            }
            assert_eq!(lines.position(text, text.len() + 10, encoding), at(4, 0));
        }
    }
}
