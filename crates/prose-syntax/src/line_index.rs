//! Byte offsets and line/column positions of a text.
//!
//! LF, CRLF and a lone CR each end a line. Lines and columns are 0-based. Conversions never fail: a line past the
//! end is the end of the text, a column past the end of its line is the end of the line (before its line end), an offset
//! inside a character is the start of that character.

use rowan::{TextRange, TextSize};

/// A position: line and column, both 0-based. The unit of `col` depends on the function that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineCol {
    /// The line.
    pub line: u32,
    /// The column in bytes (UTF-8) or in UTF-16 code units.
    pub col: u32,
}

/// Where the lines of a text begin. Keeps no text; conversions take the text the index was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    starts: Vec<u32>,
    len: u32,
    ascii: bool,
}

/// Number of line ends in a text; CRLF counts once.
pub(crate) fn count_line_breaks(text: &str) -> usize {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'\n', b'\r', bytes)
        .filter(|at| !(bytes[*at] == b'\r' && bytes.get(at + 1) == Some(&b'\n')))
        .count()
}

impl LineIndex {
    /// Indexes a text.
    pub fn new(text: &str) -> LineIndex {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                continue;
            }
            starts.push(clamp(at + 1));
        }
        LineIndex {
            starts,
            len: clamp(text.len()),
            ascii: text.is_ascii(),
        }
    }

    /// Brings the index up to date after one edit. `text` is the whole text after it; `deleted` is where in the text before
    /// something was replaced by `inserted` bytes. Costs what is inserted, and a shift of the lines behind.
    pub fn edit(&mut self, text: &str, deleted: TextRange, inserted: TextSize) {
        let (from, old_end) = (u32::from(deleted.start()), u32::from(deleted.end()));
        let new_end = from.saturating_add(inserted.into());
        let fits = old_end <= self.len && self.len - old_end + new_end == clamp(text.len());
        let added = text.get(from as usize..new_end as usize).filter(|_| fits);
        let Some(added) = added else {
            *self = LineIndex::new(text);
            return;
        };
        // Whether a line starts somewhere depends on the byte before and, for a CR, on the one behind.
        let first = self.starts.partition_point(|it| *it < from).max(1);
        let behind = self.starts.partition_point(|it| *it <= old_end).max(1);
        let bytes = text.as_bytes();
        let seen = from.saturating_sub(1) as usize..new_end as usize;
        let fresh: Vec<u32> = memchr::memchr2_iter(b'\n', b'\r', &bytes[seen.clone()])
            .map(|at| seen.start + at)
            .filter(|at| !(bytes[*at] == b'\r' && bytes.get(at + 1) == Some(&b'\n')))
            .map(|at| clamp(at + 1))
            .collect();
        for it in &mut self.starts[behind..] {
            *it = *it - old_end + new_end;
        }
        self.starts.splice(first..behind, fresh);
        self.len = clamp(text.len());
        self.ascii = match self.ascii {
            true => added.is_ascii(),
            false => text.is_ascii(),
        };
    }

    /// Number of lines; an empty text has one.
    pub fn line_count(&self) -> u32 {
        clamp(self.starts.len())
    }

    /// The line of an offset.
    pub fn line(&self, offset: TextSize) -> u32 {
        let offset = u32::from(offset).min(self.len);
        clamp(
            self.starts
                .partition_point(|start| *start <= offset)
                .saturating_sub(1),
        )
    }

    /// Offset of a line's first byte; the text's end for a line past it.
    pub fn line_start(&self, line: u32) -> TextSize {
        TextSize::from(self.starts.get(line as usize).copied().unwrap_or(self.len))
    }

    /// The range of a line without its line end.
    pub fn line_range(&self, text: &str, line: u32) -> TextRange {
        let start = self.line_start(line);
        let next = self.starts.get(line as usize + 1).copied().unwrap_or(self.len);
        let full = slice(text, u32::from(start), next);
        let trimmed = full
            .strip_suffix("\r\n")
            .or_else(|| full.strip_suffix(['\n', '\r']))
            .unwrap_or(full);
        TextRange::at(start, TextSize::from(clamp(trimmed.len())))
    }

    /// Position of an offset, column in bytes.
    pub fn utf8(&self, offset: TextSize) -> LineCol {
        let offset = u32::from(offset).min(self.len);
        let line = self.line(TextSize::from(offset));
        LineCol {
            line,
            col: offset - u32::from(self.line_start(line)),
        }
    }

    /// Position of an offset, column in UTF-16 code units.
    pub fn utf16(&self, text: &str, offset: TextSize) -> LineCol {
        let LineCol { line, col } = self.utf8(offset);
        if self.ascii {
            return LineCol { line, col };
        }
        let start = u32::from(self.line_start(line));
        let before = slice(text, start, start + col);
        LineCol {
            line,
            col: clamp(before.chars().map(char::len_utf16).sum()),
        }
    }

    /// Offset of a position with a column in bytes.
    pub fn offset_utf8(&self, text: &str, pos: LineCol) -> TextSize {
        let range = self.line_range(text, pos.line);
        if self.past_end(pos.line) {
            return TextSize::from(self.len);
        }
        let mut col = (pos.col).min(u32::from(range.len())) as usize;
        let line = slice(text, range.start().into(), range.end().into());
        while !line.is_char_boundary(col) {
            col -= 1;
        }
        range.start() + TextSize::from(clamp(col))
    }

    /// Offset of a position with a column in UTF-16 code units. Inside a surrogate pair: the start of the character.
    pub fn offset_utf16(&self, text: &str, pos: LineCol) -> TextSize {
        if self.ascii || self.past_end(pos.line) {
            return self.offset_utf8(text, pos);
        }
        let range = self.line_range(text, pos.line);
        let line = slice(text, range.start().into(), range.end().into());
        let mut units = 0u32;
        for (at, c) in line.char_indices() {
            units += clamp(c.len_utf16());
            if units > pos.col {
                return range.start() + TextSize::from(clamp(at));
            }
        }
        range.end()
    }

    fn past_end(&self, line: u32) -> bool {
        line as usize >= self.starts.len()
    }
}

fn clamp(it: usize) -> u32 {
    u32::try_from(it).unwrap_or(u32::MAX)
}

/// A part of the text, moved back to character boundaries; never panics.
fn slice(text: &str, from: u32, to: u32) -> &str {
    let floor = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (from, to) = (floor(from), floor(to));
    text.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_the_index_of_the_text() {
        let pieces = ["", "a", "\n", "\r", "\r\n", "é", "ab\ncd\r", "\n\r"];
        let texts = [
            "",
            "\r",
            "a\r\nb\n",
            "\r\r\n\n",
            "é\r\nü\rx\n\n",
            "one\ntwo\r\nthree",
        ];
        let mut tried = 0;
        for before in texts {
            let index = LineIndex::new(before);
            let places = || (0..=before.len()).filter(|it| before.is_char_boundary(*it));
            for from in places() {
                for to in places().filter(|to| *to >= from) {
                    for piece in pieces {
                        let mut after = before.to_owned();
                        after.replace_range(from..to, piece);
                        let mut edited = index.clone();
                        let deleted = TextRange::new(clamp(from).into(), clamp(to).into());
                        edited.edit(&after, deleted, TextSize::of(piece));
                        assert_eq!(
                            edited,
                            LineIndex::new(&after),
                            "{before:?} {from}..{to} {piece:?}"
                        );
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 1000);
    }
}
