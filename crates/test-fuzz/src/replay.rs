//! Edits: whatever led to a text, everything said of it is what is said of a fresh one.

use prose_syntax::{ChunkMap, TextRange, TextSize, parse};

use crate::{analysis, edits::Edited, parser};

/// Sizes of chunks that are tried: a cut at every legal place, and chunks of a few lines, which edits split and join.
const CHUNK_SIZES: [usize; 2] = [1, 48];

pub(crate) fn check(input: &str) {
    let Edited { mut text, edits } = Edited::read(input);
    let mut db = analysis::database_of_small_chunks();
    analysis::set(&mut db, &text);
    analysis::found(&db);
    let mut maps = CHUNK_SIZES.map(|size| ChunkMap::with_target(&text, size));
    for edit in &edits {
        let range = edit.range(&text);
        text.replace_range(range.clone(), &edit.with);
        let deleted = TextRange::new(size(range.start), size(range.end));
        let whole = parse(&text);
        for map in &mut maps {
            let before = map.clone();
            let splice = map.edit(&text, deleted, TextSize::of(&edit.with));
            let kept = before.len() - splice.old.len();
            assert_eq!(kept + splice.new.len(), map.len(), "{splice:?} of {before:?}");
            legal(map, &text);
            parser::same_in_parts(&whole, &text, map.ranges());
        }

        analysis::set(&mut db, &text);
        let mut fresh = analysis::database();
        analysis::set(&mut fresh, &text);
        assert_eq!(
            analysis::found(&db),
            analysis::found(&fresh),
            "findings after the edit {edit:?}, and of a fresh database"
        );
    }
}

/// Every chunk begins where a fresh look at the text cuts, and they cover it.
fn legal(map: &ChunkMap, text: &str) {
    let cuts = ChunkMap::with_target(text, 1);
    let mut end = TextSize::from(0);
    for range in map.ranges() {
        assert_eq!(range.start(), end, "a gap or an overlap between chunks");
        assert!(
            cuts.starts().binary_search(&range.start()).is_ok(),
            "a chunk begins at {:?}, which is no cut",
            range.start()
        );
        end = range.end();
    }
    assert_eq!(end, TextSize::of(text), "the chunks end before the text");
}

fn size(at: usize) -> TextSize {
    TextSize::from(u32::try_from(at).unwrap_or(u32::MAX))
}
