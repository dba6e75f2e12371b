//! Statements.

use super::{
    Ctx, PLAIN, StrayBlocks, body, colon, expr, items, name, name_ref, property, recover, skip_clauses,
    skip_line, skip_rest,
};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::*,
    near,
    parser::{Completed, Parser},
};

/// STMT* up to the end of the block (or of the file). One bad statement never damages its neighbours.
pub(super) fn statements(p: &mut Parser<'_>, root: bool) {
    let mut strays = StrayBlocks::default();
    loop {
        match p.current() {
            EOF => return,
            INDENT if property::known_at(p, 1) => property::stray_block(p),
            _ if strays.skip(p) => {}
            DEDENT if root => p.bump(),
            DEDENT => return,
            _ => {
                if root && strays.none_open() {
                    p.reset_depth_error();
                }
                let before = p.pos();
                statement(p, PLAIN);
                end_of_statement(p);
                if p.pos() == before {
                    skip_rest(p);
                    if p.pos() == before {
                        return;
                    }
                }
            }
        }
    }
}

/// Nothing may follow a statement on its line.
fn end_of_statement(p: &mut Parser<'_>) {
    if p.at_line_end() {
        return;
    }
    p.unexpected("the end of the line");
    let m = p.start();
    skip_line(p, m);
}

/// One statement.
pub(super) fn statement(p: &mut Parser<'_>, ctx: Ctx) {
    if p.at(IDENT) {
        if p.nth(1) == EQ {
            let m = p.start();
            name_ref(p);
            assign(p, m);
            return;
        }
        if at_computed_target(p) {
            let m = p.start();
            computed_name(p);
            assign(p, m);
            return;
        }
        if is_head(p) {
            if items::head(p) {
                return;
            }
        } else if p.nth(1) == COLON {
            if !recover::headless(p) {
                misspelled_or_property(p);
            }
            return;
        }
        if !p.kw(0).is_keyword() || matches!(p.kw(0), UNTIL_KW | WHILE_KW) {
            let may = matches!(p.nth(1), L_PAREN | COMMA | DISCRETION) || p.kw(1) == IN_KW;
            if may && recover::headless(p) {
                return;
            }
        }
    } else if matches!(p.current(), COLON | L_PAREN) && recover::headless(p) {
        return;
    }
    let before = p.pos();
    let start = p.range().start();
    let m = p.start();
    match expr::statement_expr(p, ctx) {
        Some(target) if p.at(EQ) && is_target(target) => assign(p, m),
        Some(first) => {
            if matches!(p.current(), COLON | NEWLINE) && recover::headless_rest(p, first, start).is_some() {
                m.complete(p, EXPR_STMT);
                return;
            }
            // Two values in a row: the first is a word we don't know.
            if first.kind == NAME_REF
                && p.pos() == before + 1
                && !p.at_line_end()
                && not_a_statement(p, before)
            {
                skip_line(p, m);
            } else {
                m.complete(p, EXPR_STMT);
            }
        }
        None if p.at(EQ) => {
            p.error(SyntaxErrorKind::MissingWord { form: "`name = …`" });
            assign(p, m);
        }
        None => {
            if p.at(ARROW) || p.at(PIPE) {
                p.expected("a statement", "the start of the line");
            } else {
                p.unexpected("a statement");
            }
            skip_line(p, m);
        }
    }
}

/// Whether the keyword at a statement's start acts as one: no operator follows that would make it a plain name.
fn is_head(p: &Parser<'_>) -> bool {
    let kw = p.kw(0);
    match p.nth(1) {
        DOT | ARROW | PIPE | PLUS | EQ2 | NEQ | LT | GT | LTEQ | GTEQ | COMMA | AT => false,
        MINUS => matches!(kw, OUTPUT_KW | RETURN_KW | THROW_KW | IF_KW | ASSERT_KW),
        L_PAREN => match kw {
            PARALLEL_KW | LOOP_KW | IF_KW | ELIF_KW | RETURN_KW | THROW_KW | OUTPUT_KW | ASSERT_KW
            | REPEAT_KW => true,
            _ => !p.touches(1) && kw.is_keyword(),
        },
        L_BRACK => match kw {
            OUTPUT_KW | RETURN_KW | THROW_KW => true,
            _ => !p.touches(1) && kw.is_keyword(),
        },
        _ => kw.is_keyword(),
    }
}

/// `x`, `x.y`, `x[i]`
fn is_target(target: Completed) -> bool {
    matches!(target.kind, NAME_REF | FIELD_EXPR | INDEX_EXPR)
}

/// ASSIGN_STMT, at `=`; the target is in `m`.
fn assign(p: &mut Parser<'_>, m: crate::parser::Marker) {
    // A broken target, `name_{if x} = y`, may have taken it, and everything else on the line.
    if p.at(EQ) && at_input(p, 1) {
        input_as_value(p);
    } else if p.eat(EQ) {
        value(p, "`=`");
    }
    m.complete(p, ASSIGN_STMT);
}

/// Whether an input begins at a token ahead, where a value is wanted.
pub(super) fn at_input(p: &Parser<'_>, ahead: usize) -> bool {
    p.kw(ahead) == INPUT_KW
        && (matches!(p.nth(ahead + 1), STRING | TRIPLE_STRING | DISCRETION)
            || p.nth(ahead + 1) == COLON
            || p.nth(ahead + 1) == IDENT && p.nth(ahead + 2) == COLON)
}

/// `= input "…"`, at `=`, behind the name that is to take the value.
pub(super) fn input_as_value(p: &mut Parser<'_>) {
    let name = match p.last_kind() {
        IDENT => p.last_text().to_owned(),
        _ => "name".to_owned(),
    };
    p.bump();
    p.error(SyntaxErrorKind::InputAsValue { name });
    let m = p.start();
    skip_line(p, m);
}

/// The right side of `=`, and others like it. It may begin on the next, deeper line.
pub(super) fn value(p: &mut Parser<'_>, after: &'static str) {
    let from = p.pos();
    let found = if p.at(NEWLINE) && p.nth(1) == INDENT && !(p.nth(2) == IDENT && p.nth(3) == EQ) {
        p.bump();
        p.bump();
        let found = if property::at_dash_value(p) {
            Some(property::dash_value(p))
        } else {
            expr::statement_expr(p, PLAIN)
        };
        if found.is_some() && !p.at_line_end() {
            p.unexpected("the end of the line");
            skip_rest(p);
        }
        close_value_block(p);
        found
    } else {
        expr::statement_expr(p, PLAIN)
    };
    match found {
        None if recover::headless_value(p) => {}
        None => expr::missing(p, "a value", after),
        Some(value) if value.kind == DISCRETION_EXPR => {
            let range = p.range_since(from);
            p.error_at(SyntaxErrorKind::DiscretionAsValue, range);
        }
        Some(_) => {}
    }
}

/// Ends the block a value stood in alone; further lines there are an error.
pub(super) fn close_value_block(p: &mut Parser<'_>) {
    p.eat(NEWLINE);
    if !(p.at(DEDENT) || p.at(EOF)) {
        p.error(SyntaxErrorKind::UnexpectedIndent);
        let m = p.start();
        p.mute();
        statements(p, false);
        p.unmute();
        m.complete(p, ERROR);
    }
    p.eat(DEDENT);
}

/// Whether `name_{v} =` follows.
fn at_computed_target(p: &Parser<'_>) -> bool {
    if p.nth(1) != L_BRACE || !p.touches(1) {
        return false;
    }
    for ahead in 2..16 {
        match p.nth(ahead) {
            R_BRACE => return p.nth(ahead + 1) == EQ,
            IDENT | DOT | L_BRACK | R_BRACK | NUMBER | PLUS | MINUS => {}
            _ => return false,
        }
    }
    false
}

/// COMPUTED_NAME: `name_{v}`
fn computed_name(p: &mut Parser<'_>) {
    let from = p.pos();
    let m = p.start();
    p.bump();
    p.open_bracket();
    expr::expr(p, PLAIN);
    // At a line's end the layout has reported the unclosed bracket.
    if !(p.at_closer() || p.at_line_end()) {
        p.unexpected("`}`");
        let m = p.start();
        while !(p.at_closer() || p.at_line_end()) {
            p.bump();
        }
        m.complete(p, ERROR);
    }
    p.close_bracket();
    m.complete(p, COMPUTED_NAME);
    let range = p.range_since(from);
    p.error_at(SyntaxErrorKind::ComputedName, range);
}

/// `word:` at a statement's start: a statement word with a slip in it, or a property.
fn misspelled_or_property(p: &mut Parser<'_>) {
    let word = p.text(0);
    let slip = match word {
        "except" | "rescue" => nearest(word),
        _ => closest(word),
    };
    match slip.filter(|_| prose_model::vocabulary::property(word).is_none()) {
        Some(nearest) => {
            let m = p.start();
            p.error(SyntaxErrorKind::NotAStatement {
                word: word.to_owned(),
                nearest: Some(nearest),
            });
            skip_line(p, m);
        }
        None => property_outside(p),
    }
}

/// `key: value` where statements stand.
fn property_outside(p: &mut Parser<'_>) {
    let m = p.start();
    p.error(SyntaxErrorKind::PropertyOutside {
        key: p.text(0).to_owned(),
    });
    p.mute();
    property::misplaced(p);
    p.unmute();
    if p.at_line_end() {
        m.complete(p, ERROR);
    } else {
        skip_line(p, m);
    }
}

/// Reports a word that begins no statement, at `word` + 1; `false` when what follows is no operand.
fn not_a_statement(p: &mut Parser<'_>, word: usize) -> bool {
    let range = p.last_range();
    debug_assert!(p.pos() == word + 1, "only the word was taken");
    let follows = matches!(
        p.current(),
        IDENT | STRING | TRIPLE_STRING | NUMBER | DURATION | DISCRETION | COLON | L_BRACE | L_BRACK | L_PAREN
    );
    if !follows {
        return false;
    }
    let word = p.last_text();
    let nearest = nearest(word);
    if nearest.is_none() && p.at(L_BRACE) {
        p.error(SyntaxErrorKind::BraceBlock);
    } else {
        p.error_at(
            SyntaxErrorKind::NotAStatement {
                word: word.to_owned(),
                nearest,
            },
            range,
        );
    }
    true
}

/// Reports the current word as one that begins no statement.
pub(super) fn wrong_word(p: &mut Parser<'_>) {
    let word = p.text(0);
    p.error(SyntaxErrorKind::NotAStatement {
        word: word.to_owned(),
        nearest: nearest(word),
    });
}

/// What to write instead of a word that begins no statement.
fn nearest(word: &str) -> Option<&'static str> {
    Some(match word {
        "save" | "store" | "write" => "`output name = …` to return a value or `let name = …` to keep it",
        "ask" | "prompt" => "`input name: \"…\"` to ask a person or `session \"…\"` to ask an agent",
        "enable" => "`use \"handle/slug\"` for programs, or an agent's `skills:` and `permissions:`",
        "gate" | "approve" => "`input approval: \"…\"` to wait for a person and `if **…**:` to decide",
        "exec" | "shell" | "bash" => "`session \"…\"` with `permissions:` that allow `bash`",
        "while" => "`loop while **…**:`",
        "until" => "`loop until **…**:`",
        "foreach" | "each" => "`for item in items:`",
        "function" | "def" | "fn" | "func" | "define" => "`block name(params):`",
        "call" | "run" | "invoke" => "`do name(…)` for a block, `session \"…\"` for an agent",
        "var" | "set" | "val" => "`let name = …`",
        "print" | "echo" | "log" | "emit" => "`output name = …`",
        "switch" | "match" | "case" => "`choice **…**:` with `option \"…\":`",
        "when" | "unless" => "`if **…**:`",
        "spawn" | "task" | "delegate" => "`session: agent` with a `prompt:`",
        "except" | "rescue" => "`catch:` or `catch as err:`",
        "elseif" | "elsif" => "`elif`",
        "raise" | "fail" | "error" => "`throw \"…\"`",
        "include" | "require" => "`use \"handle/slug\"`",
        // Statement words followed by something that can't follow them.
        "loop" => "`loop until **…**:`, or `repeat 3:` for a fixed number",
        "repeat" => "`repeat 3:`",
        "for" => "`for item in items:`",
        "parallel" => "`parallel:` or `parallel for item in items:`",
        "do" => "`do name(…)` or `do:`",
        "choice" => "`choice **…**:`",
        "if" => "`if **…**:`",
        "try" => "`try:`",
        "resume" => "`resume: agent`",
        "break" => "`break` alone",
        _ => return closest(word),
    })
}

/// A statement word one or two letters away.
pub(super) fn closest(word: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 24] = [
        ("session", "`session`"),
        ("resume", "`resume`"),
        ("agent", "`agent`"),
        ("block", "`block`"),
        ("let", "`let`"),
        ("const", "`const`"),
        ("input", "`input`"),
        ("output", "`output`"),
        ("use", "`use`"),
        ("import", "`import`"),
        ("parallel", "`parallel`"),
        ("repeat", "`repeat`"),
        ("for", "`for`"),
        ("loop", "`loop`"),
        ("try", "`try`"),
        ("do", "`do`"),
        ("if", "`if`"),
        ("elif", "`elif`"),
        ("choice", "`choice`"),
        ("option", "`option`"),
        ("throw", "`throw`"),
        ("catch", "`catch`"),
        ("finally", "`finally`"),
        ("return", "`return`"),
    ];
    let lower = word.to_ascii_lowercase();
    WORDS
        .iter()
        // Three letters have too many neighbours: only the same letters in another order, or one too many, count.
        .filter(|(it, _)| it.len() > 3 || it.chars().all(|c| lower.contains(c)))
        .filter_map(|(it, shown)| {
            Some((
                near::distance(&lower, it, if it.len() > 5 { 2 } else { 1 })?,
                *shown,
            ))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, shown)| shown)
}

/// A clause word away from its construct; the clause itself is kept inside an ERROR.
pub(super) fn misplaced(p: &mut Parser<'_>, after: &'static str) {
    let m = p.start();
    p.error(SyntaxErrorKind::MisplacedClause {
        word: p.text(0).to_owned(),
        after,
    });
    p.mute();
    p.bump_kw();
    while !(p.at(COLON) || p.at_line_end()) {
        p.bump();
    }
    if colon(p, "the clause") {
        body(p, PLAIN);
    }
    skip_clauses(p);
    p.unmute();
    if p.at_line_end() {
        m.complete(p, ERROR);
    } else {
        skip_line(p, m);
    }
}

/// RECORD_PATTERN: `{ a, b }`
pub(super) fn record_pattern(p: &mut Parser<'_>) {
    let m = p.start();
    super::comma_list(p, "a name", |p| {
        if p.at(IDENT) {
            name(p, "a name", "`{`");
            return true;
        }
        false
    });
    m.complete(p, RECORD_PATTERN);
}

/// A plain string, or an error.
pub(super) fn string(p: &mut Parser<'_>, what: &'static str, after: &'static str) -> bool {
    if matches!(p.current(), STRING | TRIPLE_STRING) {
        expr::literal(p, PLAIN);
        return true;
    }
    p.expected(what, after);
    false
}
