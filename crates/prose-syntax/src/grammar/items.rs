//! Statements that begin with a word of their own.

use super::{PLAIN, as_name, body, colon, expr, modifier_list, name, param_list, property, skip_line, stmt};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::*,
    parser::{Marker, Parser, is_line_end},
};

/// Parses the statement whose word is current. `false` when the word begins an expression.
pub(super) fn head(p: &mut Parser<'_>) -> bool {
    match p.kw(0) {
        USE_KW => use_stmt(p),
        IMPORT_KW => import_stmt(p),
        INPUT_KW => input_stmt(p),
        OUTPUT_KW => output_stmt(p),
        AGENT_KW => agent_def(p),
        BLOCK_KW => block_def(p),
        LET_KW | CONST_KW => let_stmt(p),
        THROW_KW => throw_stmt(p),
        RETURN_KW => return_stmt(p),
        BREAK_KW if is_line_end(p.nth(1)) => {
            p.error(SyntaxErrorKind::NotInGrammar { word: "break" });
            let m = p.start();
            p.bump_kw();
            m.complete(p, BREAK_STMT);
        }
        ASSERT_KW if p.nth(1) != COLON => assert_stmt(p),
        ELIF_KW => stmt::misplaced(p, "`if`"),
        ELSE_KW if matches!(p.nth(1), COLON | IDENT) => stmt::misplaced(p, "`if`"),
        CATCH_KW if matches!(p.nth(1), COLON | IDENT) => stmt::misplaced(p, "`try`"),
        FINALLY_KW if p.nth(1) == COLON => stmt::misplaced(p, "`try`"),
        OPTION_KW if p.nth(1) == STRING => stmt::misplaced(p, "`choice`"),
        _ => return false,
    }
    true
}

/// `use "path" as name`
fn use_stmt(p: &mut Parser<'_>) {
    let m = p.start();
    p.bump_kw();
    if !stmt::string(p, "the program's path as a string", "`use`") {
        skip_line(p, m);
        return;
    }
    as_name(p);
    m.complete(p, USE_STMT);
}

/// `import "skill" from "source"`
fn import_stmt(p: &mut Parser<'_>) {
    let from = p.pos();
    let m = p.start();
    p.bump_kw();
    if !stmt::string(p, "the skill's name as a string", "`import`") {
        skip_line(p, m);
        return;
    }
    if p.at_kw(FROM_KW) {
        p.bump_kw();
        stmt::string(p, "a string", "`from`");
    } else {
        let range = p.range_since(from);
        p.error_at(SyntaxErrorKind::ImportWithoutFrom, range);
        m.complete(p, IMPORT_STMT);
        return;
    }
    m.complete(p, IMPORT_STMT);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::LegacyImport, range);
}

/// `input name: VALUE`
fn input_stmt(p: &mut Parser<'_>) {
    let m = p.start();
    p.bump_kw();
    if p.at(IDENT) {
        name(p, "a name", "`input`");
    } else {
        p.error(SyntaxErrorKind::InputWithoutName);
        if !p.at(COLON) {
            skip_line(p, m);
            return;
        }
    }
    if p.eat(COLON) {
        if p.at_line_end() && p.nth(1) != INDENT {
            p.error(SyntaxErrorKind::InputWithoutText);
        } else {
            let list = p.at(L_BRACK);
            let from = p.pos();
            input_value(p);
            if list {
                let range = p.range_since(from);
                p.error_at(SyntaxErrorKind::InputListDefault, range);
            }
            if p.at(L_PAREN) {
                let from = p.pos();
                let ignored = ignored_modifier(p);
                modifier_list(p);
                let range = p.range_since(from);
                p.error_at(ignored.unwrap_or(SyntaxErrorKind::InputModifiers), range);
            }
        }
    } else if p.at_line_end() {
        p.error(SyntaxErrorKind::InputWithoutText);
    } else {
        p.unexpected("`:`");
        skip_line(p, m);
        return;
    }
    m.complete(p, INPUT_STMT);
}

/// Text of an input; a discretion is at home here, so no warning about it.
fn input_value(p: &mut Parser<'_>) {
    let found = if p.at(NEWLINE) {
        p.bump();
        p.bump();
        let found = expr::statement_expr(p, PLAIN);
        stmt::close_value_block(p);
        found
    } else {
        expr::statement_expr(p, PLAIN)
    };
    if found.is_none() {
        expr::missing(p, "a text", "`input name:`");
    }
}

/// Whether a word before a colon begins a value, as in `output session: agent`.
fn begins_value(p: &Parser<'_>) -> bool {
    matches!(
        p.kw(0),
        SESSION_KW | RESUME_KW | DO_KW | PARALLEL_KW | LOOP_KW | TRY_KW
    )
}

/// The first modifier of an input, at the bracket of the list, that does not count.
fn ignored_modifier(p: &Parser<'_>) -> Option<SyntaxErrorKind> {
    // Longer lists than that nobody writes.
    const MOST_TOKENS: usize = 64;
    (1..MOST_TOKENS)
        .take_while(|at| !matches!(p.nth(*at), R_PAREN | NEWLINE | EOF))
        .find(|at| p.nth(*at) == IDENT && p.nth(at + 1) == COLON && p.text(*at) != "default")
        .map(|at| SyntaxErrorKind::InputModifierIgnored {
            name: p.text(at).to_owned(),
        })
}

/// `output name = EXPR`, `output EXPR`, `output name: "what it is"`
fn output_stmt(p: &mut Parser<'_>) {
    let m = p.start();
    let head = p.range();
    p.bump_kw();
    if p.at(COLON) {
        p.error_at(SyntaxErrorKind::OutputWithoutName, head);
        p.bump();
        expr::expr(p, PLAIN);
    } else if p.at(IDENT) && p.nth(1) == EQ {
        name(p, "a name", "`output`");
        p.bump();
        stmt::value(p, "`=`");
    } else if p.nth(1) == COLON && p.at(IDENT) && !begins_value(p) {
        let from = p.pos();
        let declares = matches!(p.nth(2), STRING | TRIPLE_STRING) && is_line_end(p.nth(3));
        name(p, "a name", "`output`");
        p.bump();
        let range = p.range_since(from);
        p.error_at(SyntaxErrorKind::OutputColon { declares }, range);
        if declares {
            expr::literal(p, PLAIN);
        } else {
            stmt::value(p, "`:`");
        }
    } else {
        stmt::value(p, "`output`");
    }
    m.complete(p, OUTPUT_STMT);
}

/// `agent name:` with properties
fn agent_def(p: &mut Parser<'_>) {
    let m = p.start();
    p.bump_kw();
    name(p, "a name", "`agent`");
    let colon = colon(p, "the agent's name");
    if p.at(NEWLINE) && p.nth(1) == INDENT {
        property::block(p);
    } else if colon && p.at(IDENT) && p.nth(1) == COLON {
        property::inline(p);
    } else if colon {
        p.error(SyntaxErrorKind::EmptyBody);
    }
    m.complete(p, AGENT_DEF);
}

/// `block name(params) (mods):` BODY
fn block_def(p: &mut Parser<'_>) {
    let m = p.start();
    p.bump_kw();
    block_rest(p, m);
}

/// From behind `block` on.
pub(super) fn block_rest(p: &mut Parser<'_>, m: Marker) {
    name(p, "a name", "`block`");
    if p.at(L_PAREN) {
        // Only modifiers: `block f (max_depth: 50):`
        if p.nth(1) == IDENT && p.nth(2) == COLON {
            modifier_list(p);
        } else {
            param_list(p);
        }
    }
    if p.at(L_PAREN) {
        modifier_list(p);
    }
    if colon(p, "the block's name") || (p.at(NEWLINE) && p.nth(1) == INDENT) {
        body(p, PLAIN);
    }
    m.complete(p, BLOCK_DEF);
}

/// `let name = EXPR`, `let { a, b } = EXPR`
fn let_stmt(p: &mut Parser<'_>) {
    let after = if p.at_kw(LET_KW) { "`let`" } else { "`const`" };
    let m = p.start();
    p.bump_kw();
    if p.at(L_BRACE) {
        stmt::record_pattern(p);
    } else if !name(p, "a name", after) {
        skip_line(p, m);
        return;
    }
    if p.at(EQ) && stmt::at_input(p, 1) {
        stmt::input_as_value(p);
    } else if p.eat(EQ) {
        stmt::value(p, "`=`");
    } else if p.at_line_end() {
        p.expected("`=` and a value", "the name");
    } else {
        p.unexpected("`=`");
        skip_line(p, m);
        return;
    }
    m.complete(p, LET_STMT);
}

/// `throw EXPR?`
fn throw_stmt(p: &mut Parser<'_>) {
    let m = p.start();
    p.bump_kw();
    expr::statement_expr(p, PLAIN);
    m.complete(p, THROW_STMT);
}

/// `return EXPR?`
fn return_stmt(p: &mut Parser<'_>) {
    p.error(SyntaxErrorKind::NotInGrammar { word: "return" });
    let m = p.start();
    p.bump_kw();
    if !p.at_line_end() {
        stmt::value(p, "`return`");
    }
    m.complete(p, RETURN_STMT);
}

/// `assert COND: MESSAGE?`; the message may stand on the next, deeper line.
fn assert_stmt(p: &mut Parser<'_>) {
    p.error(SyntaxErrorKind::NotInGrammar { word: "assert" });
    let m = p.start();
    p.bump_kw();
    if expr::expr(p, super::HEADER).is_none() {
        p.expected("a condition", "`assert`");
    }
    if p.eat(COLON) {
        stmt::value(p, "`:`");
    } else if p.eat(COMMA) {
        stmt::value(p, "`,`");
    }
    m.complete(p, ASSERT_STMT);
}
