//! Expressions, and the constructs that are expressions too.

use super::{
    Ctx, HEADER, PLAIN, StrayBlocks, arg_list, as_name, bare_name, body, colon, comma_list, modifier_list,
    name, name_ref, param_list, session, skip_line, slips, stmt,
};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::{self, *},
    parser::{Completed, Marker, Parser, is_line_end},
};

/// Whether a token can begin an expression; any word can.
pub(super) fn starts_expr(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        IDENT | NUMBER | DURATION | STRING | TRIPLE_STRING | DISCRETION | L_PAREN | L_BRACK | L_BRACE | MINUS
    )
}

/// Whether an expression begins at the current token.
pub(super) fn at_expr_start(p: &Parser<'_>) -> bool {
    starts_expr(p.current())
}

/// Reports a missing expression: at a wrong token says so, at a line's end says what is missing.
pub(super) fn missing(p: &mut Parser<'_>, what: &'static str, after: &'static str) {
    if p.at_line_end() {
        p.expected(what, after);
    } else {
        p.unexpected(what);
    }
}

/// An expression inside something else. `None` when there is none; nothing was taken and nothing reported then.
pub(super) fn expr(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    if !p.enter() {
        let m = p.start();
        let before = p.pos();
        p.skip_balanced();
        if p.pos() == before {
            m.abandon(p);
            return None;
        }
        return Some(m.complete(p, ERROR));
    }
    let done = statement_expr(p, ctx);
    p.leave();
    done
}

/// An expression directly in a statement. Pipelines bind weakest, then arrows, then operators.
pub(super) fn statement_expr(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    let mut lhs = arrow(p, ctx)?;
    if p.at(PIPE) && !ctx.no_pipe {
        let m = lhs.precede(p);
        while p.at(PIPE) {
            pipe_op(p, ctx);
        }
        lhs = m.complete(p, PIPE_EXPR);
    }
    Some(lhs)
}

/// ARROW_EXPR: `a -> b -> c`
fn arrow(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    let lhs = binary(p, 0, ctx)?;
    if !p.at(ARROW) || ctx.no_arrow {
        return Some(lhs);
    }
    let m = lhs.precede(p);
    while p.eat(ARROW) {
        if binary(p, 0, ctx).is_none() {
            missing(p, "a session", "`->`");
            break;
        }
    }
    Some(m.complete(p, ARROW_EXPR))
}

/// Left binding power of comparisons.
const COMPARE: u8 = 4;

/// Whether the words between two values are `is` or `is not`, which people write for `==` and `!=`.
fn compares_in_words(p: &Parser<'_>) -> bool {
    let value = if p.kw(1) == NOT_KW { 2 } else { 1 };
    // `is equal to 3`, `is greater than 3`: other words than these two, and more of them.
    let longer = p.nth(value) == IDENT
        && matches!(p.text(value), "equal" | "greater" | "less" | "more")
        && matches!(p.text(value + 1), "to" | "than");
    p.at(IDENT) && p.text(0) == "is" && !longer && !is_line_end(p.nth(value)) && starts_expr(p.nth(value))
}

/// Takes `is` as `==` and `is not` as `!=`.
fn compare_in_words(p: &mut Parser<'_>) {
    let not = p.kw(1) == NOT_KW;
    p.error(SyntaxErrorKind::ComparisonInWords { not });
    p.bump_as(if not { NEQ } else { EQ2 });
    if not {
        p.bump_kw();
    }
}

/// Left binding power of an operator.
fn power(kw: SyntaxKind) -> Option<u8> {
    Some(match kw {
        OR_KW => 1,
        AND_KW => 2,
        EQ2 | NEQ | LT | GT | LTEQ | GTEQ => COMPARE,
        PLUS | MINUS => 5,
        _ => return None,
    })
}

/// BIN_EXPR with operators that bind tighter than `min`.
fn binary(p: &mut Parser<'_>, min: u8, ctx: Ctx) -> Option<Completed> {
    let mut lhs = unary(p, ctx)?;
    loop {
        let words = min < COMPARE && compares_in_words(p);
        let kw = if words { EQ2 } else { p.kw(0) };
        let Some(power) = power(kw).filter(|it| *it > min) else {
            return Some(lhs);
        };
        let m = lhs.precede(p);
        if words {
            compare_in_words(p);
        } else {
            p.bump_kw();
        }
        if binary(p, power, ctx).is_none() {
            missing(p, "an operand", "the operator");
        }
        lhs = m.complete(p, BIN_EXPR);
    }
}

/// PREFIX_EXPR, or a value with what follows it.
fn unary(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    let not = p.at_kw(NOT_KW) && (starts_expr(p.nth(1)) || is_line_end(p.nth(1)));
    if !not && !p.at(MINUS) {
        return postfix(p, ctx);
    }
    if !p.enter() {
        let m = p.start();
        while !(p.at_line_end() || p.at_closer() || p.at(COMMA)) {
            p.skip_balanced();
        }
        return Some(m.complete(p, ERROR));
    }
    let m = p.start();
    if p.at(MINUS) && matches!(p.nth(1), STRING | TRIPLE_STRING) {
        p.error(SyntaxErrorKind::MinusText);
    }
    p.bump_kw();
    // `not a == b` negates the comparison, `-a + b` only `a`.
    if binary(p, if not { 3 } else { 5 }, ctx).is_none() {
        missing(p, "an operand", "the operator");
    }
    p.leave();
    Some(m.complete(p, PREFIX_EXPR))
}

/// A value followed by `.field`, `[index]`, `(args)`; these touch what they belong to.
fn postfix(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    let mut lhs = primary(p, ctx)?;
    let mut field = None;
    loop {
        let touches = p.touches(0);
        match p.current() {
            DOT if touches => {
                let m = lhs.precede(p);
                p.bump();
                if p.at(IDENT) {
                    field = Some((p.text(0), p.range()));
                    bare_name(p);
                } else {
                    field = None;
                    p.expected("a field's name", "`.`");
                    if p.at(NUMBER) {
                        let m = p.start();
                        p.bump();
                        m.complete(p, ERROR);
                    }
                }
                lhs = m.complete(p, FIELD_EXPR);
            }
            L_BRACK if touches => {
                let m = lhs.precede(p);
                p.open_bracket();
                if expr(p, PLAIN).is_none() {
                    missing(p, "an index", "`[`");
                }
                skip_to_closer(p);
                p.close_bracket();
                lhs = m.complete(p, INDEX_EXPR);
            }
            L_PAREN
                if matches!(lhs.kind, NAME_REF | FIELD_EXPR)
                    && (touches || (!ctx.header && p.nth(1) == IDENT && p.nth(2) == COLON)) =>
            {
                if let Some((name, range)) = field.take().filter(|_| lhs.kind == FIELD_EXPR) {
                    let name = name.to_owned();
                    p.error_at(SyntaxErrorKind::CallOfField { name }, range);
                }
                let m = lhs.precede(p);
                arg_list(p);
                lhs = m.complete(p, CALL_EXPR);
            }
            _ => return Some(lhs),
        }
    }
}

/// Skips what does not belong into a bracket that holds one expression.
fn skip_to_closer(p: &mut Parser<'_>) {
    if p.at_closer() || p.at_line_end() {
        return;
    }
    p.unexpected("the closing bracket");
    let m = p.start();
    while !(p.at_closer() || p.at_line_end()) {
        p.skip_balanced();
    }
    m.complete(p, ERROR);
}

/// LITERAL, at its token.
pub(super) fn literal(p: &mut Parser<'_>, ctx: Ctx) -> Completed {
    if p.at(DURATION) && !ctx.duration {
        p.error(SyntaxErrorKind::MisplacedDuration);
    }
    p.leaf_kw(LITERAL)
}

fn primary(p: &mut Parser<'_>, ctx: Ctx) -> Option<Completed> {
    Some(match p.current() {
        NUMBER | DURATION | STRING | TRIPLE_STRING => literal(p, ctx),
        DISCRETION => p.leaf(DISCRETION_EXPR),
        L_BRACK => {
            let m = p.start();
            comma_list(p, "an element", |p| expr(p, PLAIN).is_some());
            m.complete(p, LIST_EXPR)
        }
        L_BRACE => {
            let m = p.start();
            comma_list(p, "a field", object_field);
            m.complete(p, OBJECT_EXPR)
        }
        L_PAREN => {
            let m = p.start();
            p.open_bracket();
            if expr(p, PLAIN).is_none() {
                missing(p, "an expression", "`(`");
            }
            skip_to_closer(p);
            p.close_bracket();
            m.complete(p, PAREN_EXPR)
        }
        IDENT => return Some(word(p, ctx)),
        _ => return None,
    })
}

/// OBJECT_FIELD: `name`, `name: value`, `"name": value`
fn object_field(p: &mut Parser<'_>) -> bool {
    let m = p.start();
    if matches!(p.current(), IDENT | STRING | NUMBER) && p.nth(1) == COLON {
        bare_name(p);
        p.bump();
        if expr(p, PLAIN).is_none() {
            missing(p, "a value", "`:`");
        }
    } else if expr(p, PLAIN).is_none() {
        m.abandon(p);
        return false;
    }
    m.complete(p, OBJECT_FIELD);
    true
}

/// A word: a construct if what follows fits, else a name.
fn word(p: &mut Parser<'_>, ctx: Ctx) -> Completed {
    let next = p.nth(1);
    // In a header the colon belongs to the header: `for x in loop:` iterates a variable named `loop`.
    let colon = next == COLON && !ctx.header;
    let operand = starts_expr(next) && !is_operator_word(p.kw(1));
    // The colon is missing, but a block follows: clearly the construct.
    let block = next == NEWLINE && p.nth(2) == INDENT && !ctx.header;
    // What stands between the word and its colon is missing.
    let colon_block = colon && p.nth(2) == NEWLINE && p.nth(3) == INDENT;
    match p.kw(0) {
        TRUE_KW | FALSE_KW | NULL_KW => literal(p, ctx),
        SESSION_KW | RESUME_KW if colon || at_session(p, ctx) => session::session(p, ctx),
        DO_KW if colon || block || next == IDENT && !is_operator_word(p.kw(1)) => do_expr(p, ctx),
        PARALLEL_KW if p.kw(1) == FOR_KW && p.nth(2) == IDENT => for_expr(p),
        PARALLEL_KW if colon || block || next == L_PAREN || (next == L_BRACE && !ctx.header) => {
            parallel_expr(p)
        }
        FOR_KW if next == IDENT && (!is_operator_word(p.kw(1)) || p.at_statement_start()) => for_expr(p),
        REPEAT_KW if operand && !matches!(next, MINUS | L_BRACK) => repeat_expr(p),
        LOOP_KW
            if colon
                || block
                || matches!(next, L_PAREN | DISCRETION)
                || matches!(p.kw(1), UNTIL_KW | WHILE_KW | AS_KW) =>
        {
            loop_expr(p)
        }
        IF_KW
            if operand && next != L_BRACE
                || colon_block
                || next == UNKNOWN
                    && !ctx.header
                    && p.text(1).starts_with(['!', '\'', '\u{201c}', '\u{201d}']) =>
        {
            if_expr(p)
        }
        CHOICE_KW if colon_block => choice_expr(p),
        REPEAT_KW if colon_block => repeat_expr(p),
        CHOICE_KW if matches!(next, DISCRETION | STRING | TRIPLE_STRING) || next == IDENT && operand => {
            choice_expr(p)
        }
        TRY_KW if colon || block => try_expr(p),
        _ if !ctx.header && !p.at_statement_start() && !p.in_brackets() => slips::misspelled(p, ctx),
        _ => name_ref(p),
    }
}

pub(super) fn is_operator_word(kw: SyntaxKind) -> bool {
    matches!(kw, AND_KW | OR_KW | IN_KW | AS_KW)
}

/// Whether `session`/`resume` at the current word is the construct. At a statement's start it always is one, else
/// `session` may be a variable.
fn at_session(p: &Parser<'_>, ctx: Ctx) -> bool {
    match p.nth(1) {
        // What begins no token stands where the prompt should: quotes of another kind.
        STRING | TRIPLE_STRING | DISCRETION | UNKNOWN => true,
        IDENT if is_operator_word(p.kw(1)) => false,
        IDENT => !ctx.header && (matches!(p.nth(2), COLON | STRING | TRIPLE_STRING) || is_line_end(p.nth(2))),
        next if is_line_end(next) => p.at_statement_start(),
        _ => false,
    }
}

/// DO_EXPR `do: BODY` or DO_CALL_EXPR `do name(args)`
fn do_expr(p: &mut Parser<'_>, _ctx: Ctx) -> Completed {
    let m = p.start();
    p.bump_kw();
    if !p.at(IDENT) {
        construct_body(p, "`do`");
        return m.complete(p, DO_EXPR);
    }
    name_ref(p);
    if p.at(L_PAREN) {
        arg_list(p);
    } else if matches!(p.current(), STRING | TRIPLE_STRING | NUMBER | DISCRETION)
        || p.at(IDENT)
            && !slips::joins(p, 0)
            && !p.kw(0).is_keyword()
            && (p.nth(1) == COMMA && !p.in_brackets() || is_line_end(p.nth(1)))
    {
        slips::arguments_without_parentheses(p);
    }
    m.complete(p, DO_CALL_EXPR)
}

/// The colon and body of a construct.
fn construct_body(p: &mut Parser<'_>, after: &'static str) {
    if colon(p, after) || (p.at(NEWLINE) && p.nth(1) == INDENT) {
        body(p, PLAIN);
    }
}

/// PARALLEL_EXPR
fn parallel_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    p.bump_kw();
    if p.at(L_PAREN) {
        modifier_list(p);
        if p.at_kw(FOR_KW) && p.nth(1) == IDENT {
            return for_rest(p, m);
        }
    }
    construct_body(p, "`parallel`");
    m.complete(p, PARALLEL_EXPR)
}

/// FOR_EXPR
fn for_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    if p.at_kw(PARALLEL_KW) {
        p.bump_kw();
    }
    for_rest(p, m)
}

/// From `for` on.
fn for_rest(p: &mut Parser<'_>, m: Marker) -> Completed {
    p.bump_kw();
    for_names(p, m)
}

/// From behind `for` on.
pub(super) fn for_names(p: &mut Parser<'_>, m: Marker) -> Completed {
    if p.text(0) == "each" && p.nth(1) == IDENT && p.kw(1) != IN_KW {
        p.error(SyntaxErrorKind::ExtraWord {
            word: p.text(0).to_owned(),
        });
        let m = p.start();
        p.bump();
        m.complete(p, ERROR);
    }
    if p.at_kw(IN_KW) && p.kw(1) != IN_KW && p.nth(1) != COMMA {
        p.expected("the item's name", "`for`");
    } else {
        name(p, "the item's name", "`for`");
    }
    if p.eat(COMMA) {
        name(p, "the index's name", "`,`");
    }
    if p.at_kw(IN_KW) {
        p.bump_kw();
        if expr(p, HEADER).is_none() {
            missing(p, "a collection", "`in`");
        }
    } else if matches!(p.text(0), "of" | "from" | "over") && starts_expr(p.nth(1)) {
        p.error(SyntaxErrorKind::WrongOperator {
            found: p.text(0).to_owned(),
            instead: "in",
        });
        let m = p.start();
        p.bump();
        m.complete(p, ERROR);
        expr(p, HEADER);
    } else {
        p.expected("`in` and a collection", "the name");
    }
    if p.at(L_PAREN) {
        modifier_list(p);
    }
    construct_body(p, "`for … in …`");
    m.complete(p, FOR_EXPR)
}

/// REPEAT_EXPR
fn repeat_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    p.bump_kw();
    if expr(p, HEADER).is_none() {
        missing(p, "a count", "`repeat`");
    }
    loop_parts(p, true);
    construct_body(p, "`repeat`");
    m.complete(p, REPEAT_EXPR)
}

/// LOOP_EXPR
fn loop_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    p.bump_kw();
    loop_rest(p, m)
}

/// From behind `loop` on.
pub(super) fn loop_rest(p: &mut Parser<'_>, m: Marker) -> Completed {
    loop_parts(p, false);
    construct_body(p, "`loop`");
    m.complete(p, LOOP_EXPR)
}

/// Condition, modifiers and `as name` in any order; another than the usual one gets a hint.
fn loop_parts(p: &mut Parser<'_>, conditioned: bool) {
    let mut last = 0;
    let mut seen_condition = conditioned;
    loop {
        let from = p.pos();
        let place = match p.kw(0) {
            UNTIL_KW | WHILE_KW if !seen_condition => {
                seen_condition = true;
                p.bump_kw();
                if slips::judged(p).is_none() {
                    missing(p, "a condition", "`until`/`while`");
                }
                1
            }
            DISCRETION if !seen_condition => {
                seen_condition = true;
                p.expected("`until` or `while`", "`loop`");
                expr(p, HEADER);
                1
            }
            L_PAREN => {
                modifier_list(p);
                2
            }
            AS_KW => {
                as_name(p);
                3
            }
            _ => return,
        };
        if place < last {
            let range = p.range_since(from);
            p.error_at(SyntaxErrorKind::LoopOrder, range);
        }
        last = place.max(last);
    }
}

/// Whether a clause with one of these words follows, on the next line of the same block. Takes the line end before it.
pub(super) fn at_clause(p: &mut Parser<'_>, words: &[SyntaxKind]) -> Option<SyntaxKind> {
    let ahead = usize::from(p.at(NEWLINE));
    let kw = p.kw(ahead);
    if !words.contains(&kw) {
        return None;
    }
    let fits = match (kw, p.nth(ahead + 1)) {
        (ELSE_KW, next) => next == COLON || p.kw(ahead + 1) == IF_KW || is_line_end(next),
        (FINALLY_KW, next) => next == COLON || is_line_end(next),
        (CATCH_KW, next) => matches!(next, COLON | IDENT) || is_line_end(next),
        (_, next) => next != EQ && next != DOT,
    };
    if !fits {
        return None;
    }
    if ahead == 1 {
        p.bump();
    }
    Some(kw)
}

/// IF_EXPR
fn if_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    condition(p, "`if`");
    if_rest(p, m)
}

/// From behind the condition of `if` on.
pub(super) fn if_rest(p: &mut Parser<'_>, m: Marker) -> Completed {
    construct_body(p, "the condition");
    let mut seen_else = false;
    loop {
        if slips::foreign_clause(p, &["elseif", "elsif"]) {
            let clause = p.start();
            condition(p, "`elif`");
            construct_body(p, "the condition");
            clause.complete(p, ELIF_CLAUSE);
            continue;
        }
        let Some(kw) = at_clause(p, &[ELIF_KW, ELSE_KW]) else {
            break;
        };
        if seen_else {
            p.error(SyntaxErrorKind::MisplacedClause {
                word: p.text(0).to_owned(),
                after: "`if` or `elif`",
            });
        }
        let clause = p.start();
        if kw == ELSE_KW && p.kw(1) == IF_KW {
            p.error(SyntaxErrorKind::ElseIf);
            p.bump_kw();
            condition(p, "`else if`");
            construct_body(p, "the condition");
            clause.complete(p, ELIF_CLAUSE);
        } else if kw == ELIF_KW {
            condition(p, "`elif`");
            construct_body(p, "the condition");
            clause.complete(p, ELIF_CLAUSE);
        } else {
            seen_else = true;
            p.bump_kw();
            construct_body(p, "`else`");
            clause.complete(p, ELSE_CLAUSE);
        }
    }
    m.complete(p, IF_EXPR)
}

/// A construct's word and its condition.
fn condition(p: &mut Parser<'_>, after: &'static str) {
    p.bump_kw();
    if slips::judged(p).is_none() {
        missing(p, "a condition such as `**…**`", after);
    }
}

/// CHOICE_EXPR
fn choice_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    condition(p, "`choice`");
    choice_rest(p, m)
}

/// From behind the criterion of `choice` on.
pub(super) fn choice_rest(p: &mut Parser<'_>, m: Marker) -> Completed {
    colon(p, "the criterion");
    if p.at(NEWLINE) && p.nth(1) == INDENT {
        p.bump();
        let list = p.start_block();
        p.bump();
        if p.enter() {
            options(p);
            p.leave();
            p.eat(DEDENT);
            list.complete(p, OPTION_LIST);
        } else {
            super::skip_block(p);
            list.complete(p, ERROR);
        }
    } else if p.at(NEWLINE) && p.kw(1) == OPTION_KW && p.nth(2) == STRING {
        p.bump();
        p.error(SyntaxErrorKind::OptionNotIndented);
        let list = p.start();
        loop {
            option(p);
            if at_clause(p, &[OPTION_KW]).is_none() {
                break;
            }
        }
        list.complete(p, OPTION_LIST);
    }
    // That there is no option is said by the checks.
    m.complete(p, CHOICE_EXPR)
}

/// CHOICE_OPTION* up to the end of the block; statements between them are an error, reported once.
fn options(p: &mut Parser<'_>) {
    let mut reported = false;
    let mut strays = StrayBlocks::default();
    loop {
        let before = p.pos();
        match p.current() {
            EOF => return,
            _ if strays.skip(p) => {}
            DEDENT => return,
            IDENT | STRING if p.at_kw(OPTION_KW) && p.nth(1) != EQ || p.at(STRING) && p.nth(1) == COLON => {
                option(p);
                if !p.at_line_end() {
                    p.unexpected("the end of the line");
                    let m = p.start();
                    skip_line(p, m);
                }
            }
            _ => {
                if !reported {
                    p.error(SyntaxErrorKind::OptionExpected);
                    reported = true;
                }
                let m = p.start();
                stmt::statement(p, PLAIN);
                if p.at_line_end() {
                    m.complete(p, ERROR);
                } else {
                    skip_line(p, m);
                }
            }
        }
        if p.pos() == before {
            return;
        }
    }
}

/// CHOICE_OPTION
fn option(p: &mut Parser<'_>) {
    let m = p.start();
    if p.at(STRING) {
        p.error(SyntaxErrorKind::MissingWord {
            form: "`option \"…\":`",
        });
    } else {
        p.bump_kw();
    }
    if expr(p, HEADER).is_none() {
        missing(p, "a label such as `\"…\"`", "`option`");
    }
    construct_body(p, "the label");
    m.complete(p, CHOICE_OPTION);
}

/// TRY_EXPR
fn try_expr(p: &mut Parser<'_>) -> Completed {
    let m = p.start();
    p.bump_kw();
    construct_body(p, "`try`");
    try_clauses(p);
    m.complete(p, TRY_EXPR)
}

/// CATCH_CLAUSE* FINALLY_CLAUSE*; says whether there was any.
pub(super) fn try_clauses(p: &mut Parser<'_>) -> bool {
    let from = p.pos();
    loop {
        // `as err:` can only be a clause without its word.
        let wordless = p.at(NEWLINE) && p.kw(1) == AS_KW && p.nth(2) == IDENT && p.nth(3) == COLON;
        if wordless {
            p.bump();
            p.error(SyntaxErrorKind::MissingWord {
                form: "`catch as err:`",
            });
        } else if slips::foreign_clause(p, &["except", "rescue"]) {
            let clause = p.start();
            p.bump();
            // What kind of error it is can't be said.
            p.mute();
            while !(p.at(COLON) || p.at_kw(AS_KW) || p.at_line_end()) {
                p.bump();
            }
            p.unmute();
            as_name(p);
            construct_body(p, "`catch`");
            clause.complete(p, CATCH_CLAUSE);
            continue;
        } else if at_clause(p, &[CATCH_KW]).is_none() {
            break;
        }
        let clause = p.start();
        if !wordless {
            p.bump_kw();
        }
        if !as_name(p) && p.at(IDENT) {
            p.error(SyntaxErrorKind::CatchWithoutAs);
            name(p, "a name", "`catch`");
        }
        construct_body(p, "`catch`");
        clause.complete(p, CATCH_CLAUSE);
    }
    while at_clause(p, &[FINALLY_KW]).is_some() {
        let clause = p.start();
        p.bump_kw();
        construct_body(p, "`finally`");
        clause.complete(p, FINALLY_CLAUSE);
    }
    p.pos() > from
}

/// PIPE_OP, at `|`
fn pipe_op(p: &mut Parser<'_>, ctx: Ctx) {
    let m = p.start();
    p.bump();
    let op = p.kw(0);
    if !p.at(IDENT) {
        missing(p, "map, filter, pmap, reduce or chunks", "`|`");
        m.complete(p, PIPE_OP);
        return;
    }
    let known = matches!(op, MAP_KW | FILTER_KW | PMAP_KW | REDUCE_KW | CHUNKS_KW);
    if known {
        p.bump_kw();
    } else {
        p.error(SyntaxErrorKind::UnknownPipeOp(p.text(0).to_owned()));
        p.bump();
    }
    if p.at(L_PAREN) {
        if matches!(op, MAP_KW | FILTER_KW | PMAP_KW) {
            let op = p.last_text().to_owned();
            let from = p.pos();
            p.mute();
            param_list(p);
            p.unmute();
            let range = p.range_since(from);
            p.error_at(SyntaxErrorKind::StageWithVariable { op }, range);
        } else if op == REDUCE_KW {
            param_list(p);
        } else {
            arg_list(p);
        }
    } else if op == REDUCE_KW {
        p.error(SyntaxErrorKind::ReduceWithoutVariables);
    } else if op == CHUNKS_KW {
        p.expected("`(n)`", "`chunks`");
    }
    let takes_body = op != CHUNKS_KW && (known || p.at(COLON));
    if takes_body && !ctx.header {
        let colon = p.eat(COLON);
        if !colon {
            p.expected("`:` and what to do with each item", "the operation");
        }
        if colon || p.at(NEWLINE) && p.nth(1) == INDENT {
            body(
                p,
                Ctx {
                    no_pipe: true,
                    ..PLAIN
                },
            );
        }
    }
    m.complete(p, PIPE_OP);
}
