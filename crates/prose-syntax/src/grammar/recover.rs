//! Statements whose first word is missing: what follows it, and the block below, tell which construct is meant. So the
//! block's statements stay alive, and there is one error, which names the word.

use super::{bare_name, body, expr, items, modifier_list, property, stmt};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::*,
    parser::{Completed, Marker, Parser},
};

/// How many tokens of a line are looked at to find its end.
const LINE: usize = 128;

/// Whether a colon stands at a token ahead and opens an indented block.
fn opens_block(p: &Parser<'_>, ahead: usize) -> bool {
    p.nth(ahead) == COLON && p.nth(ahead + 1) == NEWLINE && p.nth(ahead + 2) == INDENT
}

/// Whether the current line ends with a colon that opens an indented block.
fn line_opens_block(p: &Parser<'_>) -> bool {
    (0..LINE)
        .take_while(|ahead| !crate::parser::is_line_end(p.nth(*ahead)))
        .any(|ahead| opens_block(p, ahead))
}

/// The token behind a bracketed group on the current line.
fn behind_group(p: &Parser<'_>, open: usize) -> Option<usize> {
    let mut depth = 0;
    for ahead in open..open + LINE {
        match p.nth(ahead) {
            L_PAREN | L_BRACK | L_BRACE => depth += 1,
            R_PAREN | R_BRACK | R_BRACE => {
                depth -= 1;
                if depth == 0 {
                    return Some(ahead + 1);
                }
            }
            kind if crate::parser::is_line_end(kind) => return None,
            _ => {}
        }
    }
    None
}

fn missing_word(p: &mut Parser<'_>, form: &'static str) {
    let start = p.range().start();
    p.error_at(
        SyntaxErrorKind::MissingWord { form },
        rowan::TextRange::empty(start),
    );
}

/// A statement that begins with what should follow its word. `false` when it is none; nothing was taken then.
pub(super) fn headless(p: &mut Parser<'_>) -> bool {
    match p.current() {
        COLON if opens_block(p, 0) => {
            let statement = p.start();
            headless_value(p);
            statement.complete(p, EXPR_STMT);
        }
        L_PAREN if is_modifiers(p, 0) && behind_group(p, 0).is_some_and(|it| opens_block(p, it)) => {
            let looping = p.text(1) == "max";
            missing_word(
                p,
                if looping {
                    "`loop (…):`"
                } else {
                    "`parallel (…):`"
                },
            );
            let statement = p.start();
            let m = p.start();
            modifier_list(p);
            // Broken modifiers may have taken the colon, and the block.
            if p.eat(COLON) {
                body(p, super::PLAIN);
            }
            m.complete(p, if looping { LOOP_EXPR } else { PARALLEL_EXPR });
            statement.complete(p, EXPR_STMT);
        }
        IDENT => return headless_word(p),
        _ => return false,
    }
    true
}

/// A colon that opens a block where a value should stand; `false` when there is none.
pub(super) fn headless_value(p: &mut Parser<'_>) -> bool {
    if !opens_block(p, 0) {
        return false;
    }
    missing_word(p, "`parallel:`, `try:` or `do:`");
    let m = p.start();
    p.bump();
    let caught = body_then_clauses(p);
    m.complete(p, if caught { TRY_EXPR } else { DO_EXPR });
    true
}

/// `(name: value`, `("first"`
fn is_modifiers(p: &Parser<'_>, open: usize) -> bool {
    match p.nth(open + 1) {
        IDENT => p.nth(open + 2) == COLON,
        STRING => matches!(p.nth(open + 2), R_PAREN | COMMA),
        _ => false,
    }
}

fn body_then_clauses(p: &mut Parser<'_>) -> bool {
    body(p, super::PLAIN);
    expr::try_clauses(p)
}

fn headless_word(p: &mut Parser<'_>) -> bool {
    match p.nth(1) {
        COLON if opens_block(p, 1) => headless_definition(p),
        L_PAREN => {
            let behind = behind_group(p, 1).map(|it| match p.nth(it) {
                L_PAREN => behind_group(p, it).unwrap_or(it),
                _ => it,
            });
            if p.kw(0).is_keyword() || !behind.is_some_and(|it| opens_block(p, it)) {
                return false;
            }
            missing_word(p, "`block name(…):`");
            let m = p.start();
            items::block_rest(p, m);
            true
        }
        _ if matches!(p.kw(0), UNTIL_KW | WHILE_KW) && expr::starts_expr(p.nth(1)) && line_opens_block(p) => {
            stmt::wrong_word(p);
            let statement = p.start();
            let m = p.start();
            expr::loop_rest(p, m);
            statement.complete(p, EXPR_STMT);
            true
        }
        _ => {
            let one = p.kw(1) == IN_KW;
            let two = p.nth(1) == COMMA && p.nth(2) == IDENT && p.kw(3) == IN_KW;
            if !(one || two) || !line_opens_block(p) {
                return false;
            }
            missing_word(p, "`for item in items:`");
            let statement = p.start();
            let m = p.start();
            expr::for_names(p, m);
            statement.complete(p, EXPR_STMT);
            true
        }
    }
}

/// `name:` above properties or statements.
fn headless_definition(p: &mut Parser<'_>) -> bool {
    let known = |word| prose_model::vocabulary::property(word).is_some();
    if known(p.text(0)) || p.kw(0).is_keyword() {
        return false;
    }
    if p.nth(4) == IDENT && p.nth(5) == COLON && known(p.text(4)) {
        missing_word(p, "`agent name:`");
        let m = p.start();
        bare_name(p);
        p.bump();
        property::block(p);
        m.complete(p, AGENT_DEF);
        return true;
    }
    if stmt::closest(p.text(0)).is_some() || matches!(p.text(0), "except" | "rescue") || !p.kw(4).is_keyword()
    {
        return false;
    }
    missing_word(p, "`block name:`");
    let m = p.start();
    items::block_rest(p, m);
    true
}

/// The rest of a statement whose first part turned out to be a condition, a criterion or a count, at the colon of its block.
/// `None` when it is neither.
pub(super) fn headless_rest(
    p: &mut Parser<'_>,
    first: Completed,
    start: rowan::TextSize,
) -> Option<Completed> {
    if first.kind == LITERAL && matches!(p.current(), NEWLINE) {
        return headless_session(p, first, start);
    }
    if !opens_block(p, 0) {
        return None;
    }
    let options = p.kw(3) == OPTION_KW && matches!(p.nth(4), STRING | TRIPLE_STRING);
    let form = match first.kind {
        DISCRETION_EXPR | LITERAL if options => "`choice **…**:`",
        DISCRETION_EXPR | BIN_EXPR | PREFIX_EXPR | PAREN_EXPR => "`if **…**:`",
        LITERAL if p.last_kind() == NUMBER => "`repeat 3:`",
        _ => return None,
    };
    p.error_at(
        SyntaxErrorKind::MissingWord { form },
        rowan::TextRange::empty(start),
    );
    let m: Marker = first.precede(p);
    Some(match (options, first.kind) {
        (true, _) => expr::choice_rest(p, m),
        (_, LITERAL) => {
            p.bump();
            body(p, super::PLAIN);
            m.complete(p, REPEAT_EXPR)
        }
        _ => expr::if_rest(p, m),
    })
}

/// A text above properties.
fn headless_session(p: &mut Parser<'_>, text: Completed, start: rowan::TextSize) -> Option<Completed> {
    if !(matches!(p.last_kind(), STRING | TRIPLE_STRING) && property::at_known_block(p)) {
        return None;
    }
    p.error_at(
        SyntaxErrorKind::MissingWord {
            form: "`session \"…\"`",
        },
        rowan::TextRange::empty(start),
    );
    let m = text.precede(p);
    property::block(p);
    Some(m.complete(p, SESSION_EXPR))
}
