//! `session` and `resume` in all their forms.

use super::{Ctx, as_name, bare_name, colon, expr, modifier_list, name, name_ref, property, skip_rest};
use crate::{
    SessionForm, SyntaxErrorKind,
    SyntaxKind::*,
    parser::{Completed, Parser, is_line_end},
};

/// SESSION_EXPR or RESUME_EXPR, at its word.
pub(super) fn session(p: &mut Parser<'_>, ctx: Ctx) -> Completed {
    let resume = p.at_kw(RESUME_KW);
    let word = if resume { "resume" } else { "session" };
    let head = p.range();
    let m = p.start();
    p.bump_kw();
    let mut named = false;
    let mut agent = false;
    let mut text = false;
    let mut reported = false;
    let mut form = None;
    match p.current() {
        STRING | TRIPLE_STRING => {
            expr::literal(p, ctx);
            text = true;
        }
        COLON => {
            p.bump();
            (agent, text, form) = target(p, ctx);
        }
        // `session prompt: "…"`: a property on the line, not a session named `prompt`.
        IDENT
            if p.nth(1) == COLON
                && matches!(p.text(0), "prompt" | "context" | "model")
                && p.nth(2) != IDENT => {}
        IDENT if p.nth(1) == COLON && !ctx.header => {
            name(p, "a name", "`session`");
            p.bump();
            named = true;
            (agent, text, form) = target(p, ctx);
        }
        IDENT => {
            let found = p.text(0).to_owned();
            let range = head.cover(p.range());
            p.error_at(
                SyntaxErrorKind::SessionWithoutPrompt {
                    word,
                    name: Some(found),
                },
                range,
            );
            reported = true;
            let m = p.start();
            bare_name(p);
            if matches!(p.current(), STRING | TRIPLE_STRING) {
                p.bump();
            }
            m.complete(p, ERROR);
        }
        UNKNOWN => {
            p.unexpected("the prompt as a string");
            reported = true;
            skip_rest(p);
        }
        kind if super::expr::starts_expr(kind) => {
            p.unexpected("the prompt as a string");
            reported = true;
            let m = p.start();
            p.mute();
            expr::expr(p, ctx);
            p.unmute();
            m.complete(p, ERROR);
        }
        _ => {}
    }
    if !ctx.header && !named && (text || agent) && as_name(p) {
        form = form.or(Some(SessionForm::AsName));
    }
    if p.at(L_PAREN) && !ctx.header {
        modifier_list(p);
        form = form.or(Some(SessionForm::Modifiers));
    }
    if p.at(COLON) && !ctx.header && (text || agent) {
        form = form.or(Some(SessionForm::TrailingColon));
        colon(p, word);
    }
    let mut prompt = false;
    if !ctx.header && property::at_inline(p) {
        prompt |= property::inline(p);
    }
    if !ctx.header && property::at_block(p) {
        prompt |= property::block(p);
    }
    let done = m.complete(p, if resume { RESUME_EXPR } else { SESSION_EXPR });
    if reported {
        return done;
    }
    if resume && !agent || !(text || agent || prompt) {
        p.error_at(SyntaxErrorKind::SessionWithoutPrompt { word, name: None }, head);
    } else if named && !agent {
        p.error_at(SyntaxErrorKind::AnonymousSession, head);
    } else if let Some(form) = form {
        p.error_at(SyntaxErrorKind::OddSession(form), head);
    } else if !text && !agent {
        p.error_at(SyntaxErrorKind::OddSession(SessionForm::NoAgent), head);
    }
    done
}

/// What follows the colon: `agent`, `"text"`, `agent "text"` or nothing. Gives (agent, text, unusual form).
fn target(p: &mut Parser<'_>, ctx: Ctx) -> (bool, bool, Option<SessionForm>) {
    let agent = p.at(IDENT) && (ctx.header || p.nth(1) != COLON || is_line_end(p.nth(2)));
    if agent {
        name_ref(p);
    }
    let text = matches!(p.current(), STRING | TRIPLE_STRING);
    if text {
        expr::literal(p, ctx);
    }
    let form = match (agent, text) {
        (true, true) => Some(SessionForm::AgentText),
        (false, true) => Some(SessionForm::ColonText),
        _ => None,
    };
    (agent, text, form)
}
