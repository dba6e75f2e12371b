//! Offsets and positions.

use prose_syntax::{LineCol, LineIndex, TextSize};

fn pos(line: u32, col: u32) -> LineCol {
    LineCol { line, col }
}

#[test]
fn three_kinds_of_line_ends() {
    let text = "a\r\nb\rc\nd";
    let index = LineIndex::new(text);
    assert_eq!(index.line_count(), 4);
    let lines: Vec<u32> = (0..=8).map(|at| index.line(TextSize::from(at))).collect();
    assert_eq!(lines, [0, 0, 0, 1, 1, 2, 2, 3, 3]);
    let shown: Vec<&str> = (0..5).map(|line| &text[index.line_range(text, line)]).collect();
    assert_eq!(shown, ["a", "b", "c", "d", ""]);
}

#[test]
fn wide_characters() {
    let text = "é😀x\ny";
    let index = LineIndex::new(text);
    let x = TextSize::from(6);
    assert_eq!(index.utf8(x), pos(0, 6));
    assert_eq!(index.utf16(text, x), pos(0, 3));
    assert_eq!(index.offset_utf16(text, pos(0, 3)), x);
    assert_eq!(index.offset_utf8(text, pos(0, 6)), x);
    // Inside the surrogate pair, and inside the bytes: the character's start.
    assert_eq!(index.offset_utf16(text, pos(0, 2)), TextSize::from(2));
    assert_eq!(index.offset_utf8(text, pos(0, 4)), TextSize::from(2));
}

#[test]
fn beyond_lines_and_text() {
    let text = "ab\ncd\n";
    let index = LineIndex::new(text);
    assert_eq!(index.offset_utf16(text, pos(0, 99)), TextSize::from(2));
    assert_eq!(index.offset_utf8(text, pos(1, u32::MAX)), TextSize::from(5));
    assert_eq!(index.offset_utf8(text, pos(9, 9)), TextSize::from(6));
    assert_eq!(
        index.offset_utf16("é", pos(9, 9)),
        TextSize::from(6).min(TextSize::from(6))
    );
    assert_eq!(index.utf8(TextSize::from(99)), pos(2, 0));
    assert_eq!(LineIndex::new("").line_count(), 1);
}
