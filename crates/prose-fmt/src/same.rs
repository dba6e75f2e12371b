//! Whether two texts are the same program: the same tree, the same tokens, the same comments at the same places. Only
//! blanks and the comma before a closing bracket may differ.

use std::ops::Range;

use prose_model::codes::Severity;
use prose_syntax::{Parse, SyntaxErrorKind, SyntaxKind};

use crate::source::{Kid, Source};

/// Compares two parsed texts.
pub(crate) fn same(old: (&Parse, &Source<'_>), new: (&Parse, &Source<'_>)) -> bool {
    same_errors(old.0, new.0)
        && same_nodes((old.1, 0..old.1.nodes.len()), (new.1, 0..new.1.nodes.len()))
        && same_tokens((old.1, 0..old.1.tokens.len()), (new.1, 0..new.1.tokens.len()))
}

/// Errors that blanks can't mend or make must be the same ones.
fn same_errors(old: &Parse, new: &Parse) -> bool {
    let errors = |parse: &Parse| {
        parse
            .errors()
            .iter()
            .filter(|it| it.severity() == Severity::Error && it.kind != SyntaxErrorKind::TabIndent)
            .map(|it| it.kind.clone())
            .collect::<Vec<_>>()
    };
    !(old.has_errors() || new.has_errors()) || errors(old) == errors(new)
}

/// Whether a text is one statement of a file again.
pub(crate) fn same_statement(source: &Source<'_>, node: u32, text: &str) -> bool {
    let parse = prose_syntax::parse(text);
    let new = Source::new(&parse, text);
    let tokens = &source.node(node).tokens;
    let Some(first) = source.first(Kid::Node(node)) else {
        return false;
    };
    new.kids(0).len() == 1
        && same_nodes(
            (source, node as usize..source.end_of(node)),
            (&new, 1..new.nodes.len()),
        )
        && same_tokens(
            (source, first as usize..tokens.end as usize),
            (&new, 0..new.tokens.len()),
        )
}

fn same_nodes(old: (&Source<'_>, Range<usize>), new: (&Source<'_>, Range<usize>)) -> bool {
    let count = |source: &Source<'_>, node: usize| {
        let kids = source.kids(u32::try_from(node).unwrap_or(0));
        let commas = |kid: &&Kid| matches!(kid, Kid::Token(it) if source.token(*it).trailing_comma);
        kids.len() - kids.iter().rev().take(2).filter(commas).count()
    };
    old.1.len() == new.1.len()
        && old
            .1
            .zip(new.1)
            .all(|(a, b)| old.0.nodes[a].kind == new.0.nodes[b].kind && count(old.0, a) == count(new.0, b))
}

fn same_tokens(old: (&Source<'_>, Range<usize>), new: (&Source<'_>, Range<usize>)) -> bool {
    texts(old.0, old.1).eq(texts(new.0, new.1))
}

/// Tokens that must stay, comments included.
fn texts<'a>(source: &'a Source<'_>, range: Range<usize>) -> impl Iterator<Item = (SyntaxKind, &'a str)> {
    source.tokens[range]
        .iter()
        .filter(|it| !it.trailing_comma)
        .map(|it| (it.kind, &source.text[it.start as usize..it.end as usize]))
}
