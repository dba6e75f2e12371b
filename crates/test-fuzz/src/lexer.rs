//! Tokens, what is inside them, chunks and positions.

use prose_syntax::{ChunkMap, LineIndex, NodeOrToken, TextSize, parse, text::joined, text::segments};

pub(crate) fn check(text: &str) {
    let mut at = TextSize::from(0);
    let mut starts = vec![at];
    for token in parse(text)
        .syntax()
        .descendants_with_tokens()
        .filter_map(NodeOrToken::into_token)
    {
        let range = token.text_range();
        assert_eq!(range.start(), at, "a gap or an overlap before {token:?}");
        assert!(!range.is_empty(), "{token:?} is empty");
        assert_eq!(token.text(), &text[range], "{token:?} has another text");
        at = range.end();
        starts.push(at);
        // Inside strings and discretions, segments are in order and within the token.
        let parts = segments(token.kind(), token.text(), range.start());
        joined(&parts, token.text(), range.start());
    }
    assert_eq!(at, TextSize::of(text), "the tokens end before the text");

    let mut end = TextSize::from(0);
    for range in ChunkMap::with_target(text, 1).ranges() {
        assert_eq!(range.start(), end, "a gap or an overlap between chunks");
        assert!(
            starts.binary_search(&range.start()).is_ok(),
            "a chunk begins inside a token, at {:?}",
            range.start()
        );
        assert!(!range.is_empty() || text.is_empty(), "an empty chunk");
        end = range.end();
    }
    assert_eq!(end, TextSize::of(text), "the chunks end before the text");

    positions(text);
}

/// Offsets become lines and columns and come back.
fn positions(text: &str) {
    let index = LineIndex::new(text);
    // Every place of a long text would take a time that grows with its square.
    let step = text.len() / 32 + 1;
    for (at, _) in text.char_indices().step_by(step) {
        if at > 0 && text.as_bytes()[at] == b'\n' && text.as_bytes()[at - 1] == b'\r' {
            continue; // Between CR and LF is no position of its own.
        }
        let offset = TextSize::of(&text[..at]);
        assert_eq!(index.offset_utf8(text, index.utf8(offset)), offset);
        assert_eq!(index.offset_utf16(text, index.utf16(text, offset)), offset);
    }
}
