//! The grammar. Each function parses one construct and says in its first line what it looks like.
//!
//! Keywords are words with a meaning at one place. A statement word followed by an operator is a plain name, and a
//! construct word in an expression is one only if what follows fits.

mod expr;
mod items;
mod property;
mod recover;
mod session;
mod slips;
mod stmt;

use crate::{
    SyntaxErrorKind,
    SyntaxKind::{self, *},
    parser::{Completed, Marker, Parser, is_line_end},
};

/// Where an expression stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ctx {
    /// Between a construct's word and its colon: a colon there belongs to the construct.
    header: bool,
    /// In the one-line body of a pipeline operation: `|` belongs to the pipeline.
    no_pipe: bool,
    /// In a property's value: `->` belongs to the session.
    no_arrow: bool,
    /// In the value of a property nobody knows: a duration may stand there.
    duration: bool,
}

const HEADER: Ctx = Ctx {
    header: true,
    no_pipe: false,
    no_arrow: true,
    duration: false,
};
const PLAIN: Ctx = Ctx {
    header: false,
    no_pipe: false,
    no_arrow: false,
    duration: false,
};

/// What is in a SOURCE_FILE, or in a part of it: STMT*
pub(crate) fn source_file(p: &mut Parser<'_>) {
    while !p.at(EOF) {
        let before = p.pos();
        stmt::statements(p, true);
        if p.pos() == before {
            break;
        }
    }
    p.drain();
}

/// Blocks that nothing opened, met between the items of a block: what stands in them counts as the block's own.
#[derive(Default)]
struct StrayBlocks {
    open: u32,
}

impl StrayBlocks {
    /// Takes a line end, or where a stray block begins or ends. False at an item and at the end of the block itself.
    fn skip(&mut self, p: &mut Parser<'_>) -> bool {
        match p.current() {
            NEWLINE => p.bump(),
            INDENT => {
                p.bump();
                p.error(SyntaxErrorKind::UnexpectedIndent);
                self.open += 1;
            }
            DEDENT if self.open > 0 => {
                p.bump();
                self.open -= 1;
            }
            _ => return false,
        }
        true
    }

    fn none_open(&self) -> bool {
        self.open == 0
    }
}

/// NAME of something declared. `what` and `after` are for the error.
fn name(p: &mut Parser<'_>, what: &'static str, after: &'static str) -> bool {
    if !p.at(IDENT) {
        p.expected(what, after);
        return false;
    }
    let word = p.text(0);
    if is_statement_word(p.kw(0)) {
        p.error(SyntaxErrorKind::KeywordName {
            name: word.to_owned(),
        });
    }
    if !word.is_ascii() {
        p.error(SyntaxErrorKind::NonAsciiName);
    }
    bare_name(p);
    true
}

/// NAME of a key, field or argument; any word is fine.
fn bare_name(p: &mut Parser<'_>) {
    p.leaf(NAME);
}

fn name_ref(p: &mut Parser<'_>) -> Completed {
    p.leaf(NAME_REF)
}

/// Words that begin a statement of the grammar.
fn is_statement_word(kw: SyntaxKind) -> bool {
    matches!(
        kw,
        USE_KW
            | INPUT_KW
            | OUTPUT_KW
            | AGENT_KW
            | BLOCK_KW
            | SESSION_KW
            | RESUME_KW
            | LET_KW
            | CONST_KW
            | DO_KW
            | PARALLEL_KW
            | FOR_KW
            | REPEAT_KW
            | LOOP_KW
            | TRY_KW
            | THROW_KW
            | CHOICE_KW
            | IF_KW
    )
}

/// Skips to the end of the line, and a block below it, inside `m`, which becomes an ERROR. The error was reported.
fn skip_line(p: &mut Parser<'_>, m: Marker) -> Completed {
    while !p.at_line_end() {
        let before = p.pos();
        p.bump();
        if p.pos() == before {
            break;
        }
    }
    if p.at(NEWLINE) && p.nth(1) == INDENT {
        p.mute();
        body_block(p);
        skip_clauses(p);
        p.unmute();
    }
    m.complete(p, ERROR)
}

/// Takes the clauses that follow a construct that wasn't recognized: they miss the same thing.
fn skip_clauses(p: &mut Parser<'_>) {
    while expr::at_clause(p, &[ELIF_KW, ELSE_KW, CATCH_KW, FINALLY_KW]).is_some() {
        p.bump_kw();
        while !(p.at(COLON) || p.at_line_end()) {
            p.bump();
        }
        if p.eat(COLON) {
            body(p, PLAIN);
        }
    }
}

/// Skips to the end of the line inside a new ERROR.
fn skip_rest(p: &mut Parser<'_>) {
    let m = p.start();
    while !p.at_line_end() {
        let before = p.pos();
        p.bump();
        if p.pos() == before {
            break;
        }
    }
    m.complete(p, ERROR);
}

/// The `:` that ends a construct's first line. What stands before it and does not belong there is skipped.
fn colon(p: &mut Parser<'_>, after: &'static str) -> bool {
    if p.eat(COLON) {
        return true;
    }
    if p.at_line_end() {
        // What was never closed has swallowed the colon.
        if !p.last_is_unterminated() {
            p.expected("`:`", after);
        }
        return false;
    }
    p.unexpected("`:`");
    let m = p.start();
    while !(p.at_line_end() || p.at(COLON)) {
        let before = p.pos();
        p.skip_balanced();
        if p.pos() == before {
            p.bump();
        }
        if p.pos() == before {
            break;
        }
    }
    m.complete(p, ERROR);
    p.eat(COLON)
}

/// BODY after a colon: an indented block, or one statement on the same line.
fn body(p: &mut Parser<'_>, ctx: Ctx) {
    if p.at(NEWLINE) && p.nth(1) == INDENT {
        body_block(p);
        return;
    }
    if p.at_line_end() || p.at_closer() {
        p.error(SyntaxErrorKind::EmptyBody);
        let m = p.start_block();
        m.complete(p, BODY);
        return;
    }
    if !ctx.no_pipe {
        p.error(SyntaxErrorKind::InlineBody);
    }
    if !p.enter() {
        skip_rest(p);
        return;
    }
    let m = p.start();
    stmt::statement(
        p,
        Ctx {
            no_pipe: ctx.no_pipe,
            ..PLAIN
        },
    );
    m.complete(p, BODY);
    p.leave();
}

/// BODY at NEWLINE INDENT.
fn body_block(p: &mut Parser<'_>) {
    p.bump();
    let m = p.start_block();
    p.bump();
    if p.enter() {
        stmt::statements(p, false);
        p.leave();
        p.eat(DEDENT);
        m.complete(p, BODY);
    } else {
        skip_block(p);
        m.complete(p, ERROR);
    }
}

/// Takes everything up to and with the DEDENT of a block whose INDENT was taken.
fn skip_block(p: &mut Parser<'_>) {
    let mut open = 1;
    while open > 0 && !p.at(EOF) {
        match p.current() {
            INDENT => open += 1,
            DEDENT => open -= 1,
            _ => {}
        }
        p.bump();
    }
}

/// Takes a bracket with all in it: elements and commas up to the closer. `item` parses one element and says whether it
/// found any. Of what can't be an element only the first is reported.
fn comma_list(p: &mut Parser<'_>, expected: &'static str, mut item: impl FnMut(&mut Parser<'_>) -> bool) {
    let mut reported = false;
    let mut skip = |p: &mut Parser<'_>, expected: &'static str| {
        if !reported {
            p.unexpected(expected);
            reported = true;
        }
        let m = p.start();
        let before = p.pos();
        p.skip_balanced();
        if p.pos() == before {
            p.bump();
        }
        m.complete(p, ERROR);
    };
    p.open_bracket();
    while !(p.at_closer() || p.at_line_end()) {
        let before = p.pos();
        if at_header_end(p) {
            break;
        }
        if p.at(COMMA) {
            skip(p, expected);
        } else if !item(p) {
            skip(p, expected);
            p.eat(COMMA);
        } else if !(p.eat(COMMA) || p.at_closer() || p.at_line_end() || at_header_end(p)) {
            if expr::at_expr_start(p) {
                let end = p.last_range().end();
                p.error_at(SyntaxErrorKind::MissingComma, rowan::TextRange::empty(end));
            } else {
                skip(p, "`,`");
                p.eat(COMMA);
            }
        }
        if p.pos() == before {
            break;
        }
    }
    p.close_bracket();
}

/// At a colon that ends its line: inside a bracket that isn't closed it belongs to the construct.
fn at_header_end(p: &Parser<'_>) -> bool {
    p.at(COLON) && is_line_end(p.nth(1))
}

/// `(NAME ':')? EXPR` as a node of `kind`.
fn named_value(p: &mut Parser<'_>, kind: SyntaxKind) -> bool {
    let m = p.start();
    if p.at(IDENT) && p.nth(1) == COLON {
        bare_name(p);
        p.bump();
        if expr::expr(p, PLAIN).is_none() {
            p.expected("a value", "`:`");
        }
    } else if expr::expr(p, PLAIN).is_none() {
        m.abandon(p);
        return false;
    }
    m.complete(p, kind);
    true
}

/// ARG_LIST
fn arg_list(p: &mut Parser<'_>) {
    let m = p.start();
    comma_list(p, "an argument", |p| named_value(p, ARG));
    m.complete(p, ARG_LIST);
}

/// MODIFIER_LIST
fn modifier_list(p: &mut Parser<'_>) {
    let m = p.start();
    comma_list(p, "a modifier", |p| {
        let braced = p.at(IDENT) && p.nth(1) == COLON && p.nth(2) == L_BRACE;
        let from = p.pos() + 2;
        let found = named_value(p, MODIFIER);
        if braced {
            let range = p.range_since(from);
            p.error_at(SyntaxErrorKind::BracedValue, range);
        }
        found
    });
    m.complete(p, MODIFIER_LIST);
}

/// PARAM_LIST
fn param_list(p: &mut Parser<'_>) {
    let m = p.start();
    comma_list(p, "a parameter's name", |p| {
        if !p.at(IDENT) {
            return false;
        }
        let m = p.start();
        name(p, "a name", "`(`");
        if matches!(p.current(), EQ | COLON) && !at_header_end(p) {
            p.error(SyntaxErrorKind::ParameterWithMore);
            let m = p.start();
            while !(p.at_line_end() || p.at_closer() || p.at(COMMA) || at_header_end(p)) {
                let before = p.pos();
                p.skip_balanced();
                if p.pos() == before {
                    p.bump();
                }
                if p.pos() == before {
                    break;
                }
            }
            m.complete(p, ERROR);
        }
        m.complete(p, PARAM);
        true
    });
    m.complete(p, PARAM_LIST);
}

/// `'as' NAME`, if it is there.
fn as_name(p: &mut Parser<'_>) -> bool {
    if !p.at_kw(AS_KW) {
        return false;
    }
    p.bump_kw();
    name(p, "a name", "`as`");
    true
}
