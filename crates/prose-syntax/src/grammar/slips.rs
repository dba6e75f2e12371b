//! Slips of people who know other languages: what is meant is clear, so that there is one error, which says how it is written.

use super::{
    Ctx, HEADER,
    expr::{expr, is_operator_word, starts_expr},
    name_ref, named_value, session, skip_line, stmt,
};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::*,
    parser::{Completed, Parser, is_line_end},
};

/// ARG_LIST of `do greet "Bo", 3`, at the first argument.
pub(super) fn arguments_without_parentheses(p: &mut Parser<'_>) {
    let from = p.pos();
    let block = p.last_text().to_owned();
    let m = p.start();
    while named_value(p, ARG) && p.at(COMMA) && !p.in_brackets() {
        p.bump();
    }
    m.complete(p, ARG_LIST);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::ArgumentsWithoutParentheses { block }, range);
}

/// Whether a word ahead joins two values, or follows a value for another reason.
pub(super) fn joins(p: &Parser<'_>, ahead: usize) -> bool {
    is_operator_word(p.kw(ahead)) || matches!(p.kw(ahead), NOT_KW) || p.text(ahead) == "is"
}

/// How many tokens of a condition are looked at to see that it is in words.
const CONDITION: usize = 64;

/// How many tokens a condition in words has, at its first; `None` when it is none.
fn words_of_condition(p: &Parser<'_>) -> Option<usize> {
    let mut in_words = false;
    for ahead in 0..CONDITION {
        match p.nth(ahead) {
            IDENT => {}
            NUMBER | COMMA if ahead > 0 => {}
            UNKNOWN if ahead > 0 && p.text(ahead) == "'" => {}
            COLON if is_line_end(p.nth(ahead + 1)) && in_words => return Some(ahead),
            _ => return None,
        }
        // Two words in a row, neither of which belongs between two values.
        let word = |at: usize| p.nth(at) == IDENT && !joins(p, at) && !matches!(p.text(at), "then" | "do");
        in_words |= word(ahead) && word(ahead + 1);
    }
    None
}

/// A condition, or a criterion. `None` when there is none; nothing was taken then.
pub(super) fn judged(p: &mut Parser<'_>) -> Option<Completed> {
    let Some(count) = words_of_condition(p) else {
        return expr(p, HEADER);
    };
    let from = p.pos();
    let m = p.start();
    let mut words = String::new();
    for at in 0..count {
        if at > 0 && !p.touches(0) {
            words.push(' ');
        }
        words.push_str(p.text(0));
        p.bump();
    }
    let done = m.complete(p, ERROR);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::ConditionInWords { words }, range);
    Some(done)
}

/// Whether a clause follows whose word is one of another language; reports it, and takes the line end before it.
pub(super) fn foreign_clause(p: &mut Parser<'_>, words: &[&str]) -> bool {
    let ahead = usize::from(p.at(NEWLINE));
    if p.nth(ahead) != IDENT || !words.contains(&p.text(ahead)) {
        return false;
    }
    let next = p.nth(ahead + 1);
    if next != COLON && !starts_expr(next) || matches!(next, L_PAREN | L_BRACK) && p.touches(ahead + 1) {
        return false;
    }
    if ahead == 1 {
        p.bump();
    }
    stmt::wrong_word(p);
    true
}

/// A name, unless it is the word of a construct with a slip in it, as what follows shows.
pub(super) fn misspelled(p: &mut Parser<'_>, ctx: Ctx) -> Completed {
    let agent = p.nth(1) == COLON && p.nth(2) == IDENT && is_line_end(p.nth(3));
    let body = p.nth(1) == COLON && is_line_end(p.nth(2));
    let text = matches!(p.nth(1), STRING | TRIPLE_STRING | DISCRETION);
    if !(agent || body || text) || p.kw(0).is_keyword() {
        return name_ref(p);
    }
    let nearest = match stmt::closest(p.text(0)) {
        Some(it @ ("`session`" | "`resume`")) => it,
        Some(it @ ("`parallel`" | "`loop`" | "`choice`" | "`try`" | "`do`" | "`if`")) if !agent => it,
        _ => return name_ref(p),
    };
    p.error(SyntaxErrorKind::NotAStatement {
        word: p.text(0).to_owned(),
        nearest: Some(nearest),
    });
    p.mute();
    let done = if matches!(nearest, "`session`" | "`resume`") {
        session::session(p, ctx)
    } else {
        let m = p.start();
        skip_line(p, m)
    };
    p.unmute();
    done
}
