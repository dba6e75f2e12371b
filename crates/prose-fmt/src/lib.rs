//! The formatter: [`format`](fn@format) gives the edits that bring a program into the project's style, [`format_text`] the text.
//!
//! A program's tokens and comments stay as they are and in their order; only the blanks between them change, and the
//! comma before a closing bracket. The walk of the tree ([`layout`]) says where lines begin, [`wrap`] which bracketed
//! lists are broken, [`edits`] what differs from the text. [`same`] then holds the result against the source: what would
//! be another program is not changed.
//!
//! Deliberately absent: names, meaning, IO, protocol types.
//!
//! Architecture invariant: formatting is total and idempotent, and the result is the same program: equal but for ranges
//! when lowered.

mod canonical;
mod edits;
mod frozen;
mod layout;
mod on_type;
mod range;
mod same;
mod source;
mod wrap;

use prose_syntax::{Parse, SyntaxKind, TextRange};

pub use canonical::canonical;
pub use edits::apply;
use edits::range_of;
pub use on_type::on_type;
pub use range::format_range;
use source::Source;

/// Columns a line should not exceed.
pub const MAX_WIDTH: u32 = 100;

/// How to format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns that lists are broken to keep within.
    pub width: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { width: MAX_WIDTH }
    }
}

/// A replacement of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextEdit {
    /// What is replaced, in bytes.
    pub range: TextRange,
    /// What comes in its place.
    pub insert: String,
}

/// The edits that format a text, in order and apart from each other; none when it is formatted. Statements with errors
/// in them stay as they are.
pub fn format(parse: &Parse, text: &str, options: &Options) -> Vec<TextEdit> {
    let source = Source::new(parse, text);
    let edits = once(parse, &source, options);
    if edits.is_empty() || !is_broken(parse, &source) {
        return edits;
    }
    // What errors leave in its place may change what is put around it the next time. Then nothing moves at all.
    let formatted = apply(text, &edits);
    let again = prose_syntax::parse(&formatted);
    match once(&again, &Source::new(&again, &formatted), options).is_empty() {
        true => edits,
        false => Vec::new(),
    }
}

/// The edits of one go.
fn once(parse: &Parse, source: &Source<'_>, options: &Options) -> Vec<TextEdit> {
    let edits = plan(parse, source, options);
    if edits.is_empty() {
        return edits;
    }
    if !is_broken(parse, source) {
        return safe(source, edits);
    }
    // Errors may reach beyond their statement, so here the whole file has to stay the same.
    if is_same(parse, source, &apply(source.text, &edits)) {
        return edits;
    }
    let edits = safe(source, edits);
    match is_same(parse, source, &apply(source.text, &edits)) {
        true => edits,
        false => Vec::new(),
    }
}

/// Formats a text.
pub fn format_text(text: &str) -> String {
    let parse = prose_syntax::parse(text);
    apply(text, &format(&parse, text, &Options::default()))
}

fn plan(parse: &Parse, source: &Source<'_>, options: &Options) -> Vec<TextEdit> {
    let frozen = frozen::frozen(parse, source);
    let plan = layout::layout(source, &frozen, is_broken(parse, source), options);
    edits::edits(source, &wrap::wrap(source, plan, options))
}

/// Whether anything in a tree is not in its place. What belongs to a property that nobody knows is in an error's node
/// without an error.
fn is_broken(parse: &Parse, source: &Source<'_>) -> bool {
    parse.has_errors() || source.nodes.iter().any(|it| it.kind == SyntaxKind::ERROR)
}

fn is_same(parse: &Parse, source: &Source<'_>, formatted: &str) -> bool {
    let again = prose_syntax::parse(formatted);
    same::same((parse, source), (&again, &Source::new(&again, formatted)))
}

/// Edits without those inside top-level statements that would become others. A statement is parsed alone, which gives
/// what parsing it within its file gives.
fn safe(source: &Source<'_>, edits: Vec<TextEdit>) -> Vec<TextEdit> {
    let mut out = Vec::new();
    let mut edits = edits.into_iter().peekable();
    for kid in source.kids(0) {
        let (Some(first), source::Kid::Node(node)) = (source.first(*kid), *kid) else {
            continue;
        };
        let start = source.token(first).start as usize;
        let end = source.token(source.node(node).tokens.end - 1).end as usize;
        // Blanks between statements.
        while let Some(edit) = edits.next_if(|it| usize::from(it.range.end()) <= start) {
            out.push(edit);
        }
        let mut inside = Vec::new();
        while let Some(edit) = edits.next_if(|it| usize::from(it.range.start()) < end) {
            inside.push(edit);
        }
        if inside.is_empty() {
            continue;
        }
        let old = &source.text[start..end];
        let moved: Vec<TextEdit> = inside
            .iter()
            .map(|edit| TextEdit {
                range: edit.range - range_of(0, start).len(),
                insert: edit.insert.clone(),
            })
            .collect();
        if same::same_statement(source, node, &apply(old, &moved)) {
            out.append(&mut inside);
        }
    }
    out.extend(edits);
    out
}
