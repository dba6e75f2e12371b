//! The tree: lossless, bounded, and the same in chunks.

use prose_syntax::{
    ChunkMap, MAX_TREE_DEPTH, NodeOrToken, Parse, SyntaxError, SyntaxKind, SyntaxNode, TextRange, TextSize,
    WalkEvent, ast::AstNode, parse,
};

pub(crate) fn check(text: &str) {
    let whole = parse(text);
    assert!(whole.syntax().text() == text, "the tree has another text");
    bounded(&whole, text);
    in_order(whole.errors(), text);
    same_in_parts(&whole, text, ChunkMap::with_target(text, 1).ranges());
}

/// Neither depth nor number of nodes and findings grow beyond what the tokens warrant.
fn bounded(parse: &Parse, text: &str) {
    let (mut depth, mut nodes, mut tokens) = (0, 0_usize, 0_usize);
    for event in parse.syntax().preorder_with_tokens() {
        match event {
            WalkEvent::Enter(NodeOrToken::Node(_)) => {
                nodes += 1;
                depth += 1;
            }
            WalkEvent::Enter(NodeOrToken::Token(_)) => tokens += 1,
            WalkEvent::Leave(NodeOrToken::Node(_)) => depth -= 1,
            WalkEvent::Leave(NodeOrToken::Token(_)) => {}
        }
        assert!(depth <= MAX_TREE_DEPTH, "the tree is {depth} deep");
    }
    assert!(nodes <= 8 * tokens + 8, "{nodes} nodes of {tokens} tokens");
    let found = parse.errors().len();
    assert!(
        found <= 4 * tokens + text.len() / 2 + 8,
        "{found} findings in {tokens} tokens"
    );
    assert_eq!(parse.tree().syntax().kind(), SyntaxKind::SOURCE_FILE);
}

fn in_order(errors: &[SyntaxError], text: &str) {
    let mut last = TextSize::from(0);
    for error in errors {
        assert!(error.range.start() >= last, "{error:?} is out of order");
        last = error.range.start();
        assert!(
            text.get(usize::from(error.range.start())..usize::from(error.range.end()))
                .is_some(),
            "{error:?} is outside the text or inside a character"
        );
        assert!(!error.to_string().is_empty(), "{error:?} says nothing");
    }
}

/// Parts parsed alone and put side by side give what the whole gives.
pub(crate) fn same_in_parts(whole: &Parse, text: &str, parts: impl Iterator<Item = TextRange>) {
    let (mut tree, mut errors) = (Vec::new(), Vec::new());
    for range in parts {
        let part = parse(&text[range]);
        flatten(&part.syntax(), range.start(), &mut tree);
        let shift = |it: &SyntaxError| SyntaxError {
            kind: it.kind.clone(),
            range: it.range + range.start(),
        };
        errors.extend(part.errors().iter().map(shift));
    }
    let mut expected = Vec::new();
    flatten(&whole.syntax(), TextSize::from(0), &mut expected);
    if let Some(at) = (0..tree.len().max(expected.len())).find(|at| tree.get(*at) != expected.get(*at)) {
        panic!("in chunks {:?}, as a whole {:?}", tree.get(at), expected.get(at));
    }
    assert_eq!(errors, whole.errors(), "findings in chunks, and of the whole");
}

/// Everything below the root, with depth and place.
fn flatten(root: &SyntaxNode, start: TextSize, out: &mut Vec<(usize, SyntaxKind, TextRange)>) {
    let mut depth = 0;
    for event in root.preorder_with_tokens() {
        match event {
            WalkEvent::Enter(element) => {
                if depth > 0 {
                    out.push((depth, element.kind(), element.text_range() + start));
                }
                depth += 1;
            }
            WalkEvent::Leave(_) => depth -= 1,
        }
    }
}
