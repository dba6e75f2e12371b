//! Properties of agents and sessions.

use super::{Ctx, PLAIN, StrayBlocks, bare_name, expr, skip_line, skip_rest, slips, stmt};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::*,
    parser::{Completed, Parser, is_line_end},
};

/// Whether the current word begins a property rather than a statement: `do:`, `parallel:` … are statements.
fn at_property(p: &Parser<'_>, ahead: usize) -> bool {
    let statement = matches!(
        p.kw(ahead),
        SESSION_KW | RESUME_KW | DO_KW | PARALLEL_KW | LOOP_KW | TRY_KW | ELSE_KW | CATCH_KW | FINALLY_KW
    );
    p.nth(ahead) == IDENT && p.nth(ahead + 1) == COLON && !statement
}

/// Whether indented properties follow: NEWLINE INDENT and something like a property.
pub(super) fn at_block(p: &Parser<'_>) -> bool {
    p.at(NEWLINE)
        && p.nth(1) == INDENT
        && (at_property(p, 2)
            // A key is missing.
            || (p.nth(2) == COLON && !is_line_end(p.nth(3)))
            || (p.nth(2) == IDENT
                && prose_model::vocabulary::property(p.text(2)).is_some()
                && p.nth(3) != EQ))
}

/// Whether indented properties follow, the first of which has a name that is known.
pub(super) fn at_known_block(p: &Parser<'_>) -> bool {
    p.at(NEWLINE) && p.nth(1) == INDENT && known_at(p, 2)
}

/// Whether a property whose name is known begins at a token ahead.
pub(super) fn known_at(p: &Parser<'_>, ahead: usize) -> bool {
    at_property(p, ahead) && prose_model::vocabulary::property(p.text(ahead)).is_some()
}

/// Indented properties that belong to nothing, at INDENT; reported once.
pub(super) fn stray_block(p: &mut Parser<'_>) {
    let m = p.start_block();
    p.bump();
    p.error(SyntaxErrorKind::PropertyOutside {
        key: p.text(0).to_owned(),
    });
    super::skip_block(p);
    m.complete(p, ERROR);
}

/// Whether a property follows on the same line.
pub(super) fn at_inline(p: &Parser<'_>) -> bool {
    at_property(p, 0)
}

/// PROPERTY_LIST on a statement's line; says whether `prompt:` was among them.
pub(super) fn inline(p: &mut Parser<'_>) -> bool {
    let mut prompt = false;
    let m = p.start();
    while at_property(p, 0) {
        prompt |= p.text(0) == "prompt";
        one(p, Place::Line);
        if p.at(COMMA) && at_property(p, 1) && !p.in_brackets() {
            p.bump();
        }
    }
    m.complete(p, PROPERTY_LIST);
    prompt
}

/// PROPERTY_LIST at NEWLINE INDENT; says whether `prompt:` was among them.
pub(super) fn block(p: &mut Parser<'_>) -> bool {
    lines(p, Place::Block)
}

fn lines(p: &mut Parser<'_>, place: Place) -> bool {
    let mut prompt = false;
    p.bump();
    let m = p.start_block();
    p.bump();
    if !p.enter() {
        super::skip_block(p);
        m.complete(p, ERROR);
        return false;
    }
    let mut strays = StrayBlocks::default();
    // Of lines that are no properties only the first is reported.
    let mut reported = false;
    loop {
        match p.current() {
            EOF => break,
            _ if strays.skip(p) => {}
            DEDENT => break,
            _ => {
                let before = p.pos();
                if matches!(p.current(), IDENT | STRING) && p.nth(1) == COLON {
                    prompt |= p.text(0) == "prompt";
                    one(p, place);
                    if !p.at_line_end() {
                        p.unexpected("the end of the line");
                        let m = p.start();
                        skip_line(p, m);
                    }
                } else {
                    if p.at(IDENT) && prose_model::vocabulary::property(p.text(0)).is_some() {
                        let range = p.range();
                        p.error_at(
                            SyntaxErrorKind::Expected {
                                what: "`:`",
                                after: "the property's name",
                            },
                            rowan::TextRange::empty(range.end()),
                        );
                    } else if !reported {
                        reported = true;
                        p.unexpected("a property such as `prompt: \"…\"`");
                    }
                    let m = p.start();
                    skip_line(p, m);
                }
                if p.pos() == before {
                    break;
                }
            }
        }
    }
    p.leave();
    p.eat(DEDENT);
    m.complete(p, PROPERTY_LIST);
    prompt
}

/// PROPERTY where statements stand, at its key.
pub(super) fn misplaced(p: &mut Parser<'_>) {
    one(p, Place::Outside);
}

/// Where a property stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// On its statement's line.
    Line,
    /// On a line of its own below.
    Block,
    /// The same in a context written as lines, where any key may stand.
    Entry,
    /// Among statements, which is wrong.
    Outside,
}

fn one(p: &mut Parser<'_>, place: Place) {
    let inline = place == Place::Line;
    let key = p.text(0);
    let known = place == Place::Entry || prose_model::vocabulary::property(key).is_some();
    let m = p.start();
    bare_name(p);
    p.bump();
    if !p.enter() {
        skip_rest(p);
        m.complete(p, PROPERTY);
        return;
    }
    if !known {
        // Nobody knows what belongs there, so nothing there is wrong.
        p.mute();
    }
    let found = value(
        p,
        key,
        place,
        Ctx {
            no_pipe: inline,
            no_arrow: true,
            duration: !known,
            ..PLAIN
        },
    );
    if !known {
        if !(inline || p.at_line_end()) {
            let m = p.start();
            skip_line(p, m);
        }
        p.unmute();
    }
    if !found && known {
        p.expected("a value", "the property's name and `:`");
    }
    p.leave();
    m.complete(p, PROPERTY);
}

/// A property's value in any of its forms; `false` if there is none.
fn value(p: &mut Parser<'_>, key: &str, place: Place, ctx: Ctx) -> bool {
    match p.current() {
        NEWLINE if p.nth(1) == INDENT => nested_value(p, key, ctx),
        // YAML allows the dashes at the key's own column. IMPORTANT: only in a block, since at column 0 a line that
        // begins with a dash is a chunk of its own.
        NEWLINE if p.nth(1) == MINUS && matches!(place, Place::Block | Place::Entry) => {
            p.bump();
            dash_list(p, ctx);
            true
        }
        PIPE if p.nth(1) == BLOCK_TEXT => {
            let from = p.pos();
            let m = p.start();
            p.bump();
            let range = p.range_since(from);
            p.error_at(SyntaxErrorKind::BlockString, range);
            p.bump();
            m.complete(p, BLOCK_STRING);
            true
        }
        _ if key == "prompt" && place == Place::Block && at_prose(p) => {
            p.error(SyntaxErrorKind::TextWithoutQuotes);
            let m = p.start();
            skip_line(p, m);
            true
        }
        _ if at_bare_word(p, key) => {
            bare_word(p);
            true
        }
        _ => {
            let from = p.pos();
            match expr::statement_expr(p, ctx) {
                Some(first) => {
                    bare_list(p, first, from, ctx);
                    true
                }
                None => false,
            }
        }
    }
}

/// Whether a value is a text whose quotes are missing: words that make no expression.
fn at_prose(p: &Parser<'_>) -> bool {
    let construct = matches!(
        p.kw(0),
        SESSION_KW
            | RESUME_KW
            | DO_KW
            | PARALLEL_KW
            | FOR_KW
            | REPEAT_KW
            | LOOP_KW
            | IF_KW
            | CHOICE_KW
            | TRY_KW
            | NOT_KW
    );
    p.at(IDENT) && !construct && (p.nth(1) == UNKNOWN || p.nth(1) == IDENT && !slips::joins(p, 1))
}

/// `a, b` without brackets, when the first element was parsed.
fn bare_list(p: &mut Parser<'_>, first: Completed, from: usize, ctx: Ctx) {
    if !p.at(COMMA) || p.in_brackets() || at_property(p, 1) {
        return;
    }
    let m = first.precede(p);
    while p.at(COMMA) && !at_property(p, 1) {
        p.bump();
        if expr::expr(p, ctx).is_none() {
            break;
        }
    }
    m.complete(p, LIST_EXPR);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::BareList, range);
}

/// A value on the lines below its key.
fn nested_value(p: &mut Parser<'_>, key: &str, ctx: Ctx) -> bool {
    if p.nth(2) == MINUS {
        p.bump();
        let block = p.start_block();
        p.bump();
        dash_items(p, ctx);
        p.eat(DEDENT);
        block.complete(p, DASH_LIST);
        return true;
    }
    if p.nth(2) == COLON || matches!(p.nth(2), IDENT | STRING) && p.nth(3) == COLON {
        if key == "context" {
            let range = p.range_since(p.pos().saturating_sub(2));
            p.error_at(SyntaxErrorKind::ContextLines, range);
            lines(p, Place::Entry);
        } else {
            block(p);
        }
        return true;
    }
    p.bump();
    p.bump();
    let found = expr::statement_expr(p, ctx).is_some();
    if !p.at_line_end() {
        p.unexpected("the end of the line");
        skip_rest(p);
    }
    stmt::close_value_block(p);
    found
}

/// DASH_LIST at the first dash, at the column of its key.
fn dash_list(p: &mut Parser<'_>, ctx: Ctx) {
    let m = p.start();
    dash_items(p, ctx);
    m.complete(p, DASH_LIST);
}

/// `- a` lines. Takes the line ends between them, not the last one.
fn dash_items(p: &mut Parser<'_>, ctx: Ctx) {
    let from = p.pos();
    loop {
        let m = p.start();
        p.bump();
        if expr::expr(p, ctx).is_none() {
            p.expected("an element", "`-`");
        }
        if !p.at_line_end() {
            p.unexpected("the end of the line");
            skip_rest(p);
        }
        m.complete(p, DASH_ITEM);
        if p.at(NEWLINE) && p.nth(1) == MINUS {
            p.bump();
        } else {
            break;
        }
    }
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::DashList, range);
}

/// Whether lines with dashes follow where a value stands: the dash is no minus, since blanks are behind it.
pub(super) fn at_dash_value(p: &Parser<'_>) -> bool {
    p.at(MINUS) && p.nth(1) != NUMBER && !p.touches(1)
        || p.at(MINUS) && p.nth(2) == NEWLINE && p.nth(3) == MINUS
}

/// LIST_EXPR of `- a` lines, at the first dash. Takes the line ends between them, not the last one.
pub(super) fn dash_value(p: &mut Parser<'_>) -> Completed {
    let from = p.pos();
    let m = p.start();
    loop {
        p.bump();
        if expr::expr(p, PLAIN).is_none() {
            p.expected("an element", "`-`");
        }
        if !p.at_line_end() {
            p.unexpected("the end of the line");
            skip_rest(p);
        }
        if p.at(NEWLINE) && p.nth(1) == MINUS {
            p.bump();
        } else {
            break;
        }
    }
    let done = m.complete(p, LIST_EXPR);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::DashList, range);
    done
}

/// Whether the value is a raw word such as `gpt-4.1`, `vendor/model` or `.folder/`: pieces without blanks that make no expression.
fn at_bare_word(p: &Parser<'_>, key: &str) -> bool {
    if !matches!(key, "model" | "persist") && prose_model::vocabulary::property(key).is_some() {
        return false;
    }
    // A path may begin with a dot, a tilde or a slash; a model's name doesn't.
    let path = key == "persist" && matches!(p.current(), DOT | UNKNOWN) && !p.text(0).starts_with(QUOTES);
    if !(path || matches!(p.current(), IDENT | NUMBER | AT)) {
        return false;
    }
    let mut ahead = 1;
    let mut odd = path || p.at(AT);
    while p.touches(ahead) && ahead < 32 {
        match p.nth(ahead) {
            UNKNOWN | COLON | AT => odd = true,
            DOT if path => {}
            DOT if p.nth(ahead + 1) == NUMBER => odd = true,
            NUMBER | IDENT if matches!(p.nth(ahead - 1), NUMBER) => odd = true,
            IDENT | NUMBER | DURATION | DOT | MINUS => {}
            _ => return false,
        }
        ahead += 1;
    }
    odd
}

/// What other languages have around strings; a text in them is no path.
const QUOTES: [char; 6] = ['\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

/// BARE_WORD
fn bare_word(p: &mut Parser<'_>) {
    let from = p.pos();
    let m = p.start();
    p.bump();
    // A text that touches a long one is no part of it.
    while p.touches(0)
        && matches!(
            p.current(),
            UNKNOWN | COLON | AT | DOT | IDENT | NUMBER | DURATION | MINUS
        )
    {
        p.bump();
    }
    m.complete(p, BARE_WORD);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::BareWord, range);
}
