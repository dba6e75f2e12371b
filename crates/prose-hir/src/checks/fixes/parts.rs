//! Fixes of properties, modifiers, arguments and clauses.

use prose_model::vocabulary;
use prose_syntax::SyntaxKind::{
    AGENT_DEF, ARG, ARG_LIST, BARE_WORD, BLOCK_DEF, CALL_EXPR, COLON, DO_CALL_EXPR, FOR_EXPR, LIST_EXPR,
    LITERAL, LOOP_EXPR, LOOP_KW, MODIFIER, MODIFIER_LIST, NAME, NAME_REF, PARALLEL_EXPR, PIPE_OP, PROPERTY,
    RESUME_EXPR, SESSION_EXPR, STRING, THROW_STMT, TRIPLE_STRING, TRY_EXPR,
};
use prose_syntax::{SyntaxNode, TextRange, TextSize};

use super::{At, child, has_comment, in_brackets, quote, token};
use crate::checks::near;
use crate::view::Names;
use crate::{Diagnostic, Fix};

pub(super) fn fixes(at: &At<'_>, found: &Diagnostic, range: TextRange) -> Vec<Fix> {
    let mut out = Vec::new();
    match found.code {
        "E008" | "E014" | "E016" => out.extend(quote_value(at, range)),
        "E009" => {
            out.extend(remove_first(at, found));
            out.extend(remove_property(at, range, "Remove this one"));
        }
        "W004" => out.extend(empty_prompt(at, range)),
        "W005" => out.extend(remove_property(at, range, "Remove what is ignored")),
        "W009" => out.extend(permission(at, range)),
        "W010" => out.extend(remove_property(at, range, "Remove the empty list").map(Fix::automatic)),
        "L413" => out.extend(remove_element(at, range)),
        "P149" => out.extend(add_catch(at, range)),
        "P240" => out.extend(arguments(at, range)),
        "P241" => out.extend(quote_model(at, range)),
        "P249" => match found.related.first() {
            Some((_, first, _)) => out.extend(repeated_modifier(at, *first, range)),
            None => out.extend(modifier(at, range)),
        },
        "P258" => out.extend(property_value(at, range)),
        "P263" => out.extend(limit(at, range)),
        "P265" => out.extend(message(at, range)),
        _ => {}
    }
    out
}

/// A number or truth value where a text belongs.
fn quote_value(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let value = at.node(range.start(), &[LITERAL])?;
    let text = token(&value, STRING).or_else(|| token(&value, TRIPLE_STRING));
    (text.is_none() && value.text_range() == range).then(|| quote(range, at.slice(range)))
}

/// A model's name that a backend may know.
fn quote_model(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let value = at.node(range.start(), &[NAME_REF, BARE_WORD])?;
    (value.text_range() == range).then(|| quote(range, at.slice(range)))
}

fn remove_property(at: &At<'_>, range: TextRange, title: &str) -> Option<Fix> {
    let property = at.node(range.start(), &[PROPERTY])?;
    let list = property.parent()?;
    let owner = list.parent()?;
    // An agent or a property must keep something below it.
    if list.children().count() < 2 && !matches!(owner.kind(), SESSION_EXPR | RESUME_EXPR) {
        return None;
    }
    Some(Fix::new(title, vec![at.remove(property.text_range())?]))
}

/// Of two values the later counts.
fn remove_first(at: &At<'_>, found: &Diagnostic) -> Option<Fix> {
    let (_, first, _) = found.related.first()?;
    let here = first.checked_sub(at.start)?;
    remove_property(at, here, "Remove the other one")
}

/// An empty prompt beside a text does nothing.
fn empty_prompt(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let session = at.node(range.start(), &[SESSION_EXPR, AGENT_DEF])?;
    child(&session, LITERAL)?;
    remove_property(at, range, "Remove the empty prompt")
}

fn near_word<'a>(word: &str, words: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = word.to_lowercase();
    words
        .clone()
        .into_iter()
        .find(|it| *it == lower && *it != word)
        .or_else(|| near::nearest(&lower, words))
}

fn permission(at: &At<'_>, range: TextRange) -> Vec<Fix> {
    let values = vocabulary::PERMISSION_VALUES.iter().map(|it| it.word);
    let word = at.slice(range);
    let mut out = Vec::new();
    let near = near_word(word, values);
    out.extend(near.map(|it| Fix::replace(format!("Replace with `{it}`"), range, it)));
    if near.is_none() && !word.contains(['\n', '#']) {
        out.push(Fix::replace(
            "Write `prompt`, which is taken anyway",
            range,
            "prompt",
        ));
    }
    out
}

fn property_value(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let property = at.node(range.start(), &[PROPERTY])?;
    let value = at.slice(range).trim_matches('"');
    if at.has_comment(range) || value.contains(['\n', '\r']) {
        return None;
    }
    match child(&property, NAME)?.to_string().as_str() {
        "persist" => Some(Fix::replace("Write `true`, which is taken anyway", range, "true").automatic()),
        "backoff" => {
            let near = near_word(value, ["none", "linear", "exponential"])?;
            Some(Fix::replace(
                format!("Replace with \"{near}\""),
                range,
                format!("\"{near}\""),
            ))
        }
        _ => None,
    }
}

/// `catch:` that raises again what was caught changes nothing, and is the place to do better.
fn add_catch(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[TRY_EXPR])?;
    let start = node.text_range().start();
    if in_brackets(&node) || node.ancestors().skip(1).any(|it| it.kind() == PIPE_OP) {
        return None;
    }
    let end = at.line_end(at.trimmed(node.text_range()).end());
    let (newline, indent, below) = (at.newline(), at.indent(start), at.below(start));
    let text = format!("{newline}{indent}catch:{newline}{below}throw");
    Some(Fix::replace("Add `catch:`", TextRange::empty(end), text))
}

fn arguments(at: &At<'_>, range: TextRange) -> Vec<Fix> {
    let Some(call) = at.node(range.start(), &[DO_CALL_EXPR, CALL_EXPR]) else {
        return Vec::new();
    };
    let name = child(&call, NAME_REF).and_then(|it| crate::Name::find(&it.text().to_string()));
    let block = name.as_ref().and_then(|it| at.program.block(it));
    let Some(block) = block else {
        return Vec::new();
    };
    let params: Vec<&str> = block.params.iter().map(|it| it.as_str()).collect();
    let list = child(&call, ARG_LIST);
    let args: Vec<SyntaxNode> = list
        .iter()
        .flat_map(|it| it.children())
        .filter(|it| it.kind() == ARG)
        .collect();
    let name = |arg: &SyntaxNode| token(arg, COLON).and(child(arg, NAME)).map(|it| it.to_string());
    let positional = args.iter().take_while(|it| name(it).is_none()).count();
    if args.iter().skip(positional).any(|it| name(it).is_none()) {
        return Vec::new();
    }
    let wrong = args
        .iter()
        .filter_map(|it| Some((name(it)?, child(it, NAME)?)))
        .find(|it| it.1.text_range() == range);
    if let Some((wrong, node)) = wrong {
        let given: Vec<String> = args.iter().filter_map(&name).collect();
        let open: Vec<&str> = params
            .iter()
            .skip(positional)
            .copied()
            .filter(|it| !given.iter().any(|given| given == it))
            .collect();
        let near = near::nearest(&wrong, open.iter().copied());
        let only = (open.len() == 1 && given.len() == 1).then(|| open[0]);
        return near
            .or(only)
            .map(|it| Fix::replace(format!("Replace with `{it}`"), node.text_range(), it))
            .into_iter()
            .collect();
    }
    if positional > params.len() {
        return extra(at, &args, positional, params.len()).into_iter().collect();
    }
    nulls(at, &call, &args, &params, positional).into_iter().collect()
}

/// Arguments that no parameter takes.
fn extra(at: &At<'_>, args: &[SyntaxNode], given: usize, taken: usize) -> Option<Fix> {
    let first = args.get(taken)?.text_range();
    let last = args.get(given.checked_sub(1)?)?.text_range();
    let range = match (taken.checked_sub(1).and_then(|it| args.get(it)), args.get(given)) {
        // With the comma before them, or the one behind.
        (Some(before), _) => TextRange::new(before.text_range().end(), last.end()),
        (None, Some(next)) => TextRange::new(first.start(), next.text_range().start()),
        (None, None) => TextRange::new(first.start(), last.end()),
    };
    (!at.has_comment(range)).then(|| Fix::replace("Remove what is ignored", range, ""))
}

/// `null` for every parameter that gets nothing.
fn nulls(
    at: &At<'_>,
    call: &SyntaxNode,
    args: &[SyntaxNode],
    params: &[&str],
    positional: usize,
) -> Option<Fix> {
    let given: Vec<String> = args
        .iter()
        .skip(positional)
        .filter_map(|it| child(it, NAME))
        .map(|it| it.to_string())
        .collect();
    let missing: Vec<String> = params
        .iter()
        .skip(positional)
        .filter(|it| !given.iter().any(|given| given == *it))
        .map(|it| match given.is_empty() {
            true => "null".to_owned(),
            false => format!("{it}: null"),
        })
        .collect();
    if missing.is_empty() {
        return None;
    }
    let text = missing.join(", ");
    let title = "Pass `null`, which is taken anyway";
    let (offset, text) = match (args.last(), child(call, ARG_LIST)) {
        (Some(last), _) => (last.text_range().end(), format!(", {text}")),
        (None, Some(list)) => (list.text_range().start() + TextSize::of('('), text),
        (None, None) => (at.trimmed(call.text_range()).end(), format!("({text})")),
    };
    Some(Fix::replace(title, TextRange::empty(offset), text))
}

/// A modifier that is given twice.
fn repeated_modifier(at: &At<'_>, first: TextRange, range: TextRange) -> Vec<Fix> {
    let both = [
        (first.checked_sub(at.start), "Remove the other one"),
        (Some(range), "Remove this one"),
    ];
    let remove = |(range, title): (Option<TextRange>, &str)| {
        remove_modifier(at, &at.node(range?.start(), &[MODIFIER])?, title)
    };
    both.into_iter().filter_map(remove).collect()
}

/// A modifier that is ignored, or its value.
fn modifier(at: &At<'_>, range: TextRange) -> Vec<Fix> {
    let mut out = Vec::new();
    let Some(node) = at.node(range.start(), &[MODIFIER]) else {
        return out;
    };
    let Some(owner) = node.parent().and_then(|it| it.parent()) else {
        return out;
    };
    let name = token(&node, COLON).and(child(&node, NAME));
    let names: &[&str] = match owner.kind() {
        PARALLEL_EXPR | FOR_EXPR => &["on-fail", "count", "max"],
        LOOP_EXPR => &["max"],
        BLOCK_DEF => &["max_depth"],
        _ => &[],
    };
    let replace = |near: &str, range| Fix::replace(format!("Replace with `{near}`"), range, near);
    match &name {
        Some(name) if name.text_range() == range => {
            let word = name.to_string();
            let folded = word.to_lowercase().replace('_', "-");
            let near = match names.iter().find(|it| it.replace('_', "-") == folded) {
                Some(same) if *same != word => Some(*same),
                _ => near_word(&word, names.iter().copied()),
            };
            out.extend(near.map(|it| replace(it, range)));
        }
        Some(name) if name.text() == "on-fail" => {
            let word = at.slice(range).trim_matches('"').to_owned();
            let near = near_word(&word, ["fail-fast", "continue", "ignore"]);
            let (title, value) = match near {
                Some(near) => (format!("Replace with \"{near}\""), near),
                None => (
                    "Write \"fail-fast\", which is taken anyway".to_owned(),
                    "fail-fast",
                ),
            };
            let known = ["fail-fast", "continue", "ignore", "collect"].contains(&word.as_str());
            if !known && !word.contains(['\n', '#']) {
                out.push(Fix::replace(title, range, format!("\"{value}\"")));
            }
            return out;
        }
        // The check itself offers to remove the name of a strategy that is known.
        Some(name)
            if matches!(name.to_string().as_str(), "strategy" | "join") && node.text_range() == range =>
        {
            return out;
        }
        Some(name) if matches!(name.to_string().as_str(), "strategy" | "join") => {
            out.extend(strategy(at, range, node.text_range()))
        }
        // A number out of range: only the author knows the right one.
        Some(_) if node.text_range() != range => return out,
        Some(_) => {}
        None => {
            let word = at.slice(range).trim_matches('"').to_owned();
            if word == "race" || owner.kind() == SESSION_EXPR {
                return out;
            }
            out.extend(strategy(at, range, node.text_range()));
        }
    }
    if owner.kind() != SESSION_EXPR {
        out.extend(remove_modifier(at, &node, "Remove what is ignored"));
    }
    out
}

/// The strategy that a word may have meant, in place of the modifier, whose name it doesn't need.
fn strategy(at: &At<'_>, range: TextRange, modifier: TextRange) -> Option<Fix> {
    let near = near_word(at.slice(range).trim_matches('"'), ["all", "first", "any"])?;
    let title = format!("Replace with \"{near}\"");
    Some(Fix::replace(title, modifier, format!("\"{near}\"")))
}

fn remove_modifier(at: &At<'_>, node: &SyntaxNode, title: &str) -> Option<Fix> {
    let list = node.parent().filter(|it| it.kind() == MODIFIER_LIST)?;
    let all: Vec<SyntaxNode> = list.children().filter(|it| it.kind() == MODIFIER).collect();
    let index = all.iter().position(|it| it == node)?;
    let this = node.text_range();
    let range = if let Some(next) = all.get(index + 1) {
        TextRange::new(this.start(), next.text_range().start())
    } else if let Some(before) = index.checked_sub(1).and_then(|it| all.get(it)) {
        TextRange::new(before.text_range().end(), this.end())
    } else {
        let whole = list.text_range();
        let before = at.before(whole.start()).trim_end_matches([' ', '\t']);
        TextRange::new(TextSize::of(before), whole.end())
    };
    (!at.has_comment(range)).then(|| Fix::replace(title, range, ""))
}

fn limit(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[LOOP_EXPR])?;
    if child(&node, MODIFIER_LIST).is_some() {
        return None;
    }
    let end = token(&node, LOOP_KW)?.text_range().end();
    Some(Fix::replace(
        "Add `(max: 10)`",
        TextRange::empty(end),
        " (max: 10)",
    ))
}

fn message(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[THROW_STMT])?;
    let end = TextRange::empty(at.trimmed(node.text_range()).end());
    (!has_comment(&node)).then(|| Fix::replace("Add a message", end, " \"failed\""))
}

/// An element of a list, with a comma.
fn remove_element(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let list = at.node(range.start(), &[LIST_EXPR])?;
    let all: Vec<SyntaxNode> = list.children().collect();
    let index = all.iter().position(|it| it.text_range() == range)?;
    let before = all.get(index.checked_sub(1)?)?.text_range();
    let range = TextRange::new(before.end(), range.end());
    (!at.has_comment(range)).then(|| Fix::replace("Remove the second", range, ""))
}
