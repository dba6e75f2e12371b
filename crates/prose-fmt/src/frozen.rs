//! What must stay as it is: the smallest statements, properties and options with an error in them.

use prose_model::codes::Severity;
use prose_syntax::{
    Parse, SyntaxErrorKind,
    SyntaxKind::{self, *},
};

use crate::source::{Kid, Source};

/// A mark for each node; empty when there is nothing to mark.
pub(crate) fn frozen(parse: &Parse, source: &Source<'_>) -> Vec<bool> {
    let mut marks = Vec::new();
    for error in parse.errors() {
        if error.severity() != Severity::Error || error.kind == SyntaxErrorKind::TabIndent {
            continue;
        }
        let (start, end) = (u32::from(error.range.start()), u32::from(error.range.end()));
        if let Some(unit) = unit_at(source, start, end) {
            marks.resize(source.nodes.len(), false);
            marks[unit as usize] = true;
        }
    }
    marks
}

/// The innermost unit that an error touches.
fn unit_at(source: &Source<'_>, start: u32, end: u32) -> Option<u32> {
    let (mut node, mut found) = (0, None);
    loop {
        let kids = source.kids(node);
        let at = kids.partition_point(|kid| span(source, *kid).1 < start);
        let mut begun = kids[at..]
            .iter()
            .map(|kid| (kid, span(source, *kid)))
            .take_while(|(_, (from, _))| *from <= start);
        let next = begun.find_map(|(kid, (_, to))| match *kid {
            Kid::Node(it) if end <= to => Some(it),
            _ => None,
        });
        let Some(next) = next.filter(|it| !source.node(*it).tokens.is_empty()) else {
            return found;
        };
        if is_unit(source.node(next).kind) {
            found = Some(next);
        }
        node = next;
    }
}

/// Where the text of a part begins and ends.
fn span(source: &Source<'_>, kid: Kid) -> (u32, u32) {
    match kid {
        Kid::Token(it) => (source.token(it).start, source.token(it).end),
        Kid::Node(it) => {
            let tokens = &source.node(it).tokens;
            match tokens.is_empty() {
                // Nothing is there: where the next token begins.
                true => {
                    let at = source
                        .tokens
                        .get(tokens.start as usize)
                        .map_or(source.text.len(), |it| it.start as usize);
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    (at, at)
                }
                false => (source.token(tokens.start).start, source.token(tokens.end - 1).end),
            }
        }
    }
}

fn is_unit(kind: SyntaxKind) -> bool {
    (USE_STMT..=EXPR_STMT).contains(&kind) || matches!(kind, PROPERTY | CHOICE_OPTION | DASH_ITEM)
}
