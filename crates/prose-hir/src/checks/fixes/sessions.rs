//! Fixes of unusual ways to write a session.

use prose_syntax::SyntaxKind::{
    AS_KW, BODY, COLON, EXPR_STMT, LITERAL, MODIFIER, MODIFIER_LIST, NAME, PARALLEL_EXPR, PROPERTY,
    PROPERTY_LIST, RESUME_EXPR, SESSION_EXPR, SESSION_KW,
};
use prose_syntax::{NodeOrToken, SessionForm, SyntaxNode, SyntaxToken, TextRange, TextSize};

use super::{At, child, has_comment, in_brackets, token};
use crate::Fix;

pub(super) fn odd(at: &At<'_>, form: SessionForm, head: TextSize) -> Option<Fix> {
    let node = at.node(head, &[SESSION_EXPR, RESUME_EXPR])?;
    let children = || node.children_with_tokens();
    let colon = |it: &NodeOrToken<_, SyntaxToken>| it.as_token().filter(|it| it.kind() == COLON).cloned();
    match form {
        SessionForm::ColonText => {
            let range = children().find_map(|it| colon(&it))?.text_range();
            let blank = at.behind(range.end()).starts_with([' ', '\t']);
            let with = if blank { "" } else { " " };
            Some(Fix::replace("Remove `:`", range, with).automatic())
        }
        SessionForm::TrailingColon => {
            let colon = children().filter_map(|it| colon(&it)).last()?;
            // Doubled ones go together; the first or the last of them is the child.
            let range = colon.text_range();
            let before = TextSize::of(at.before(range.start()).trim_end_matches(':'));
            let behind = at.behind(range.end());
            let more = TextSize::of(&behind[..behind.len() - behind.trim_start_matches(':').len()]);
            let range = TextRange::new(before, range.end() + more);
            Some(Fix::replace("Remove `:`", range, "").automatic())
        }
        SessionForm::AgentText => {
            let text = child(&node, LITERAL)?;
            let property = format!("prompt: {text}");
            let title = "Write the text as `prompt:`";
            as_lines(at, &node, text.text_range(), &[property], title)
        }
        SessionForm::Modifiers => {
            let list = child(&node, MODIFIER_LIST)?;
            let lines: Vec<String> = list
                .children()
                .filter(|it| it.kind() == MODIFIER)
                .map(|it| it.to_string())
                .collect();
            let plain = lines.iter().all(|it| it.contains(':') && !it.contains('\n'));
            if lines.is_empty() || !plain || has_comment(&list) {
                return None;
            }
            let title = "Write the properties on lines of their own";
            let fix = as_lines(at, &node, list.text_range(), &lines, title)?;
            // In parentheses only `retry:` counts.
            let same = lines.iter().all(|it| it.starts_with("retry"));
            Some(if same { fix.automatic() } else { fix })
        }
        SessionForm::AsName => {
            // As a value it has a name in front of it already.
            let binder = binder(&node)?;
            let name = child(&node, NAME)?;
            let word = token(&node, AS_KW)?.text_range();
            let before = at.before(word.start()).trim_end_matches([' ', '\t']);
            let start = TextRange::empty(node.text_range().start());
            let range = TextRange::new(TextSize::of(before), name.text_range().end());
            Some(Fix::new(
                format!("Write `{binder}{name} = …`"),
                vec![(start, format!("{binder}{name} = ")), (range, String::new())],
            ))
        }
        SessionForm::NoAgent => {
            let (text, removed) = prompt(at, &node)?;
            let word = token(&node, SESSION_KW)?.text_range();
            let colon = token(&node, COLON)?.text_range();
            Some(Fix::new(
                "Write the prompt on the session's line",
                vec![
                    (TextRange::new(word.end(), colon.end()), format!(" {text}")),
                    removed,
                ],
            ))
        }
    }
}

/// `session name:` with a text or a prompt: the name goes in front.
pub(super) fn anonymous(at: &At<'_>, head: TextSize) -> Option<Fix> {
    let node = at.node(head, &[SESSION_EXPR])?;
    let binder = binder(&node)?;
    let name = child(&node, NAME)?;
    let word = token(&node, SESSION_KW)?.text_range();
    let colon = token(&node, COLON)?.text_range();
    let mut edits = vec![(
        TextRange::empty(node.text_range().start()),
        format!("{binder}{name} = "),
    )];
    match child(&node, LITERAL) {
        Some(text) => {
            let between = TextRange::new(word.end(), text.text_range().start());
            edits.push((between, " ".into()));
        }
        None => {
            let (text, removed) = prompt(at, &node)?;
            edits.push((TextRange::new(word.end(), colon.end()), format!(" {text}")));
            edits.push(removed);
        }
    }
    Some(Fix::new(format!("Write `{binder}{name} = session …`"), edits))
}

/// What binds a session's result in front of it, where it is a statement: `let `, or nothing for a branch.
fn binder(session: &SyntaxNode) -> Option<&'static str> {
    let stmt = session.parent().filter(|it| it.kind() == EXPR_STMT)?;
    let branch = stmt
        .parent()
        .filter(|it| it.kind() == BODY)
        .and_then(|it| it.parent())
        .is_some_and(|it| it.kind() == PARALLEL_EXPR);
    Some(if branch { "" } else { "let " })
}

/// The text of a session's `prompt:` line, and the edit that takes the line out.
fn prompt(at: &At<'_>, session: &SyntaxNode) -> Option<(String, (TextRange, String))> {
    let lists = session.children().filter(|it| it.kind() == PROPERTY_LIST);
    let mut found = lists
        .flat_map(|it| it.children())
        .filter(|it| it.kind() == PROPERTY)
        .filter(|it| child(it, NAME).is_some_and(|it| it.text() == "prompt"));
    let property = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let text = child(&property, LITERAL)?.to_string();
    let removed = at.remove(property.text_range())?;
    text.starts_with('"').then_some((text, removed))
}

/// Moves what stands last on a session's line to property lines below it.
fn as_lines(
    at: &At<'_>,
    session: &SyntaxNode,
    range: TextRange,
    lines: &[String],
    title: &str,
) -> Option<Fix> {
    if !at.ends_line(range.end()) || in_brackets(session) {
        return None;
    }
    let indent = match child(session, PROPERTY_LIST) {
        // Properties that are there set the column.
        Some(list) => at.indent(list.first_child()?.text_range().start()),
        None => at.below(session.text_range().start()),
    };
    let start = TextSize::of(at.before(range.start()).trim_end_matches([' ', '\t']));
    let newline = at.newline();
    let lines: String = lines.iter().map(|it| format!("{newline}{indent}{it}")).collect();
    Some(Fix::replace(title, TextRange::new(start, range.end()), lines))
}
