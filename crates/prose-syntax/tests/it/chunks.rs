//! Cutting files.

use prose_syntax::{
    ChunkMap, NodeOrToken, SyntaxElement, SyntaxError, SyntaxNode, TextRange, TextSize,
    ast::{Node, Token, View},
    cut_and_read, parse, read,
};

/// The smallest chunks.
pub(crate) fn chunks(text: &str) -> Vec<TextRange> {
    ChunkMap::with_target(text, 1).ranges().collect()
}

fn texts(text: &str) -> Vec<&str> {
    chunks(text).into_iter().map(|it| &text[it]).collect()
}

#[test]
fn cut_at_statements() {
    assert_eq!(
        texts("# head\nlet a = 1\n\n# about b\n# more\nlet b = [\nc\n]\nif a:\n  do f\nelse:\n  do g\n"),
        [
            "# head\nlet a = 1\n\n",
            "# about b\n# more\nlet b = [\nc\n]\n",
            "if a:\n  do f\nelse:\n  do g\n"
        ]
    );
}

#[test]
fn never_inside_text() {
    let one = "session \"\"\"\nsession \"x\"\nlet a = 1\n\"\"\"\n";
    assert_eq!(texts(one), [one]);
    let one = "session: a\n  prompt: |\n    let x\n\n    session\n";
    assert_eq!(texts(one), [one]);
    let one = "if ***\nlet a = 1\n***:\n  do f\n";
    assert_eq!(texts(one), [one]);
}

#[test]
fn continued_statements_stay_whole() {
    let one = "session \"a\"\n-> session \"b\"\n| map:\n  do f\n";
    assert_eq!(texts(one), [one]);
    let one = "try:\n  do f\ncatch:\n  do g\nfinally:\n  do h\n";
    assert_eq!(texts(one), [one]);
    assert_eq!(texts(""), [""]);
}

/// Parses a text whole and in chunks and compares everything.
#[track_caller]
pub(crate) fn check_concatenation(text: &str) {
    for target in [1, 64, ChunkMap::TARGET] {
        let mut read = Vec::new();
        let map = cut_and_read(text, target, |it| read.push(seen(it.root().node(), it.errors())));
        assert_eq!(map, ChunkMap::with_target(text, target));
        let parses = map.ranges().map(|it| parse(&text[it]));
        let alone: Vec<_> = parses.map(|it| seen(&it.syntax(), it.errors())).collect();
        assert_eq!(read, alone, "{text:?}, chunks of {target}");
    }
    let whole = parse(text);
    let once = read(text);
    assert_eq!(
        seen(once.root().node(), once.errors()),
        seen(&whole.syntax(), whole.errors()),
        "{text:?}"
    );
    let (mut tree, mut errors, mut joined) = (Vec::new(), Vec::new(), String::new());
    for range in chunks(text) {
        let text = &text[range];
        let part = parse(text);
        joined.push_str(text);
        tree.extend(flatten(&part.syntax(), range.start()));
        let shift = |it: &SyntaxError| SyntaxError {
            kind: it.kind.clone(),
            range: it.range + range.start(),
        };
        errors.extend(part.errors().iter().map(shift));
    }
    assert_eq!(joined, text);
    assert_eq!(tree, flatten(&whole.syntax(), TextSize::from(0)), "{text:?}");
    assert_eq!(errors, whole.errors(), "{text:?}");
}

/// Everything but blanks and comments with its depth, place and text, then what was found.
fn seen<N: Node>(root: &N, errors: &[SyntaxError]) -> Vec<String> {
    fn node<N: Node>(it: &N, depth: usize, out: &mut Vec<String>) {
        out.push(format!("{depth} {:?} {:?}", it.kind(), it.text_range()));
        for element in it.elements() {
            match element {
                NodeOrToken::Node(it) => node(&it, depth + 1, out),
                NodeOrToken::Token(it) if it.kind().is_trivia() => {}
                NodeOrToken::Token(it) => {
                    out.push(format!("{:?} {:?} {:?}", it.kind(), it.text_range(), it.text()));
                }
            }
        }
    }
    let mut out = Vec::new();
    node(root, 0, &mut out);
    out.extend(errors.iter().map(|it| format!("{it:?}")));
    out
}

/// Everything below the root with depth and place.
fn flatten(root: &SyntaxNode, offset: TextSize) -> Vec<String> {
    let show = |element: SyntaxElement| {
        let depth = match &element {
            NodeOrToken::Node(it) => it.ancestors().count(),
            NodeOrToken::Token(it) => it.parent_ancestors().count() + 1,
        };
        format!("{depth} {:?} {:?}", element.kind(), element.text_range() + offset)
    };
    root.descendants_with_tokens().skip(1).map(show).collect()
}

#[test]
fn side_by_side_is_the_whole() {
    for text in [
        "session \"a\nsession b\n  x: [\nlet c = (\nlet d = 1\n",
        "do:\n    a\n  # in\n # out\n# next\nb\n",
        "\u{feff}# c\n  do f\ndo g\n",
        "]\n)\nx = {\n}\n-> a\n",
        "if ***a\nlet b = 1\nif ***c\n",
        "skills:\n- a\n",
        "session: a skills:\n- a\n",
        "repeat repeat a, b\n c\n=if x:\n",
        "a\r\rb\r\n\tc\nd",
        "} -\n= 1\n",
    ] {
        check_concatenation(text);
    }
}

/// Where a text that is left open ends is known also to what is scanned from a cut in front of that place.
#[test]
fn a_statement_far_on_that_ends_a_text() {
    let rest = format!("\n{}\"\"\"\nchoice***\"\"\"\n", "x\n".repeat(20_000));
    let (before, after) = (format!("a\nc {rest}"), format!("a\nc ***{rest}"));
    check_concatenation(&after);
    let place = TextRange::empty(TextSize::from(4));
    let mut map = ChunkMap::with_target(&before, 1);
    map.edit(&after, place, TextSize::from(3));
    assert!(map.starts() == ChunkMap::with_target(&after, 1).starts());
    map.edit(
        &before,
        TextRange::at(place.start(), TextSize::from(3)),
        TextSize::from(0),
    );
    assert!(map.starts() == ChunkMap::with_target(&before, 1).starts());
}
