//! Files that are cut, and parsed, anew after each edit.

use std::fmt::Write;

use proptest::prelude::*;
use prose_syntax::{ChunkMap, Splice, SyntaxError, TextRange, TextSize, parse};

/// Texts that programs are edited with: what opens, closes and continues things, and what looks like a statement inside
/// a string.
const SNIPPETS: &[&str] = &[
    "",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    " ",
    "  ",
    "\t",
    "\u{feff}",
    "\u{200b}",
    "x",
    "e",
    "let a = 1\n",
    "let b = [\n",
    "]\n",
    ")",
    "{",
    "}",
    "(\n  a,\n",
    "\"",
    "\"\"\"",
    "\"\"\"\nlet x = 1\nsession \"y\"\n\"\"\"\n",
    "*",
    "**",
    "***",
    "****",
    "**\n\n",
    "if **a\nlet b = 1\nlet c = 2\nif **d e\n",
    "if ***a\nsession \"x\"\nb***:\n  do f\n",
    "if ***a b\n",
    "let c = **\n  one\n\n  two\n**\n",
    "let c = **\n  one\n\n",
    "session \"a\"\n",
    "session: a\n  prompt: |\n    let x\n\n    session\n",
    "  prompt: |\n\n\n",
    "agent a:\n  model: opus\n",
    "do:\n  do f\n",
    "# note\n",
    "  # deeper note\n",
    "#",
    "elif b:\n  do f\n",
    "else:\n",
    "else",
    "catch as e:\n  do g\n",
    "finally:\n",
    "option \"a\":\n",
    "| map:\n  do f\n",
    "-> session \"b\"\n",
    "|",
    "-",
    ">",
    "=",
    ":",
    ",",
    "é",
    "    deep:\n      er\n",
    " odd\n",
];

fn own_programs() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    ["examples", "tests/programs"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(format!("{root}{folder}")).unwrap())
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "prose"))
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect()
}

/// Programs and snippets in any order.
fn texts() -> impl Strategy<Value = String> {
    let programs = own_programs();
    assert!(programs.len() > 5);
    let piece = prop_oneof![
        1 => prop::sample::select(programs),
        4 => prop::sample::select(SNIPPETS).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|it| it.concat())
}

/// Where to delete, as a part of the text, how much, and what to put there.
fn edits() -> impl Strategy<Value = Vec<(f64, usize, String)>> {
    let deleted = prop_oneof![3 => Just(0), 3 => 1usize..4, 2 => 4usize..200];
    let inserted = prop::collection::vec(prop::sample::select(SNIPPETS), 0..3).prop_map(|it| it.concat());
    prop::collection::vec((0.0..=1.0f64, deleted, inserted), 1..8)
}

/// Makes an edit and gives what was deleted and how much was inserted.
fn apply(text: &mut String, (at, deleted, inserted): &(f64, usize, String)) -> (TextRange, TextSize) {
    let start = text.floor_char_boundary((text.len() as f64 * at) as usize);
    let end = text.ceil_char_boundary((start + deleted).min(text.len()));
    text.replace_range(start..end, inserted);
    let size = |it: usize| TextSize::try_from(it).unwrap();
    (TextRange::new(size(start), size(end)), size(inserted.len()))
}

fn slices<'a>(map: &ChunkMap, text: &'a str) -> Vec<&'a str> {
    map.ranges().map(|it| &text[it]).collect()
}

/// Boundaries are legal, and the parts side by side are the whole.
fn check_map(map: &ChunkMap, text: &str) {
    let legal: Vec<TextSize> = ChunkMap::with_target(text, 1).starts().to_vec();
    for start in map.starts() {
        assert!(legal.contains(start), "{start:?} is no cut of {text:?}");
    }
    assert_eq!(slices(map, text).concat(), text);

    let whole = parse(text);
    let mut children = whole.green().children();
    let mut errors = Vec::new();
    for range in map.ranges() {
        let part = parse(&text[range]);
        for child in part.green().children() {
            assert_eq!(Some(child), children.next(), "{text:?}");
        }
        errors.extend(part.errors().iter().map(|it| SyntaxError {
            kind: it.kind.clone(),
            range: it.range + range.start(),
        }));
    }
    assert_eq!(children.next(), None, "{text:?}");
    assert_eq!(errors, whole.errors(), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn edited_files_are_cut_at_legal_places(
        text in texts(),
        edits in edits(),
        target in prop::sample::select(&[1usize, 16, 64, 512, 4096]),
    ) {
        let mut text = text;
        let mut map = ChunkMap::with_target(&text, target);
        check_map(&map, &text);
        for edit in &edits {
            let old_text = text.clone();
            let old_map = map.clone();
            let (deleted, inserted) = apply(&mut text, edit);
            let splice = map.edit(&text, deleted, inserted);
            check_map(&map, &text);
            // What is outside of the splice is as it was.
            let (old, new) = (slices(&old_map, &old_text), slices(&map, &text));
            prop_assert_eq!(&old[..splice.old.start], &new[..splice.new.start]);
            prop_assert_eq!(&old[splice.old.end..], &new[splice.new.end..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn long_files_are_edited_likewise(text in texts(), edits in edits(), copies in 2usize..5) {
        let mut text = text.repeat(copies);
        let mut map = ChunkMap::new(&text);
        check_map(&map, &text);
        for edit in &edits {
            let (deleted, inserted) = apply(&mut text, edit);
            map.edit(&text, deleted, inserted);
            check_map(&map, &text);
        }
    }
}

/// A file of many statements.
fn long_text() -> String {
    let mut text = String::new();
    for i in 0..2000 {
        writeln!(text, "# Step {i}\nsession \"Write about {i}.\"\n").unwrap();
    }
    text
}

#[track_caller]
fn edit(map: &mut ChunkMap, text: &mut String, at: usize, deleted: usize, inserted: &str) -> Splice {
    text.replace_range(at..at + deleted, inserted);
    let size = |it: usize| TextSize::try_from(it).unwrap();
    let splice = map.edit(
        text,
        TextRange::new(size(at), size(at + deleted)),
        size(inserted.len()),
    );
    check_map(map, text);
    splice
}

#[test]
fn neighbours_share_a_chunk() {
    let text = long_text();
    let map = ChunkMap::new(&text);
    for range in map.ranges() {
        let len = usize::from(range.len());
        assert!((1024..8192).contains(&len), "{len}");
    }
    assert_eq!(map.len(), text.len().div_ceil(4128));
}

#[test]
fn typing_replaces_one_chunk() {
    let mut text = long_text();
    let mut map = ChunkMap::new(&text);
    let before = map.len();
    for (i, at) in text
        .clone()
        .match_indices("about")
        .map(|it| it.0)
        .step_by(71)
        .enumerate()
    {
        let splice = edit(&mut map, &mut text, at + i, 0, "x");
        assert_eq!((splice.old.len(), &splice.new), (1, &splice.old));
    }
    // The first word of a chunk too.
    for index in 0..map.len() {
        let at = map.range(index).start().into();
        let splice = edit(&mut map, &mut text, at, 0, "#");
        assert_eq!((splice.old, splice.new), (index..index + 1, index..index + 1));
    }
    assert_eq!(map.len(), before);
}

#[test]
fn long_files_are_parsed_as_they_are_cut() {
    let mut text = long_text();
    // A statement longer than what is scanned at once.
    text.push_str(&format!("let x = [\n{}]\n", "  \"item\",\n".repeat(10_000)));
    text.push_str(&long_text());
    text.push_str("let y = (\nlet z = \"\n)\n");
    let mut map = ChunkMap::new(&text);
    check_map(&map, &text);
    assert!(parse(&text).errors().len() > 2);
    let at = text.find("item").unwrap();
    let splice = edit(&mut map, &mut text, at, 0, "\"");
    assert_eq!(splice.new.len(), 1);
}

#[test]
fn chunks_split_and_join() {
    let mut text = long_text();
    let mut map = ChunkMap::new(&text);
    let before = map.len();
    let at = text.find("# Step 500\n").unwrap();
    let more = long_text();
    let splice = edit(&mut map, &mut text, at, 0, &more);
    assert_eq!(splice.old.len(), 1);
    assert!(map.ranges().all(|it| usize::from(it.len()) < 8192));
    assert!(map.len() > 2 * before - 2);
    let splice = edit(&mut map, &mut text, at, more.len(), "");
    assert_eq!(splice.new.len(), 1);
    assert_eq!(map.len(), before);
    // Statement by statement until nothing is left.
    while !text.is_empty() {
        let len = text.find("\n\n").map_or(text.len(), |it| it + 2);
        text.replace_range(..len, "");
        map.edit(
            &text,
            TextRange::new(0.into(), TextSize::try_from(len).unwrap()),
            0.into(),
        );
        assert!(map.len() == 1 || map.ranges().all(|it| usize::from(it.len()) >= 1024));
    }
    assert_eq!(map, ChunkMap::new(""));
}

#[test]
fn a_string_opened_and_closed() {
    let mut text = long_text();
    let mut map = ChunkMap::new(&text);
    let before = map.clone();
    let at = text.find("# Step 500\n").unwrap();
    let splice = edit(&mut map, &mut text, at, 0, "x = \"\"\"\n");
    // It ends before the next statement.
    assert!(splice.old.len() <= 2);
    let splice = edit(&mut map, &mut text, at, 8, "");
    assert!(splice.new.len() <= 2);
    assert!(map.len() + 2 > before.len());
}

#[test]
fn what_looked_ahead_is_cut_again() {
    // `***` sought its end through the whole file.
    let mut text = format!("if ***a:\n  do f\n{}", long_text());
    let mut map = ChunkMap::new(&text);
    let end = text.len();
    let splice = edit(&mut map, &mut text, end, 0, "x");
    assert!(splice.old.start > 0);
    edit(&mut map, &mut text, end, 1, "**");
    let splice = edit(&mut map, &mut text, end + 2, 0, "*");
    assert_eq!((splice.old.start, map.len()), (0, 1));
    edit(&mut map, &mut text, end, 1, "");
    assert!(map.len() > 1);

    // `**` goes through the lines below up to a blank one.
    let mut text = "if **a\nlet b = 1\nlet c = 2\nlet d = 3\n\nlet e = 4\n".to_owned();
    let mut map = ChunkMap::with_target(&text, 1);
    assert_eq!(map.len(), 5);
    let at = text.find("2").unwrap();
    let splice = edit(&mut map, &mut text, at, 0, "**");
    assert_eq!((splice.old, splice.new), (0..3, 0..1));
    let splice = edit(&mut map, &mut text, at, 2, "");
    assert_eq!((splice.old, splice.new), (0..1, 0..3));
    let at = text.find("4").unwrap();
    let splice = edit(&mut map, &mut text, at, 0, "**");
    assert_eq!((splice.old, splice.new), (4..5, 4..5));
}

#[test]
fn an_edit_that_does_not_fit_cuts_anew() {
    let mut map = ChunkMap::new("a\n");
    let splice = map.edit("b", TextRange::new(0.into(), 100.into()), 7.into());
    assert_eq!((splice.old, splice.new), (0..1, 0..1));
    assert_eq!(map, ChunkMap::new("b"));
}
