//! Fixes of what the parser finds.

use prose_syntax::SyntaxKind::{
    AS_KW, ASSERT_STMT, BLOCK_STRING, BLOCK_TEXT, BODY, CALL_EXPR, COLON, COMMENT, DASH_ITEM, DASH_LIST,
    DISCRETION_EXPR, FIELD_EXPR, IF_KW, INPUT_STMT, LIST_EXPR, LITERAL, LOOP_EXPR, MODIFIER_LIST, NAME,
    NAME_REF, PAREN_EXPR, PIPE, PROPERTY, PROPERTY_LIST, REPEAT_EXPR, RETURN_KW, RETURN_STMT, UNTIL_KW,
    WHILE_KW,
};
use prose_syntax::{SyntaxError, SyntaxErrorKind, SyntaxKind, SyntaxNode, TextRange, TextSize};

use super::{At, child, has_comment, in_brackets, layout, quote, sessions, token, width};
use crate::Fix;
use crate::view::Names;

/// The changes after which the parser no longer reports an error, and none besides.
pub(super) fn fixes(at: &At<'_>, error: &SyntaxError) -> Vec<Fix> {
    let mut out: Vec<Fix> = one(at, error).into_iter().collect();
    match &error.kind {
        SyntaxErrorKind::UnclosedBracket { open } => {
            out.extend(layout::close_bracket(at, error.range, *open))
        }
        SyntaxErrorKind::UnknownEscape(c) if !c.is_alphanumeric() => {
            let backslash = TextRange::at(error.range.start(), TextSize::of('\\'));
            out.push(Fix::replace("Remove the backslash", backslash, ""));
        }
        SyntaxErrorKind::UnexpectedIndent => out.extend(layout::indented(at, error.range)),
        SyntaxErrorKind::PropertyOutside { key } => {
            out.extend(layout::property_of(at, error.range));
            out.extend(layout::property_as_variable(at, error.range, key));
        }
        _ => {}
    }
    out.retain(|fix| at.settles(fix));
    out
}

fn one(at: &At<'_>, error: &SyntaxError) -> Option<Fix> {
    let range = error.range;
    let found = at.slice(range);
    let start = TextRange::empty(range.start());
    let end = TextRange::empty(range.end());
    match &error.kind {
        SyntaxErrorKind::TabIndent => Some(layout::spaces(at, range.start()).automatic()),
        SyntaxErrorKind::BadDedent { first: true } => layout::first_of_block(at, range),
        SyntaxErrorKind::BadDedent { first: false } => layout::dedented(at, range),
        SyntaxErrorKind::OptionNotIndented => layout::options(at, range.start()),
        SyntaxErrorKind::BraceBlock => layout::braces(at, range),
        SyntaxErrorKind::UnknownEscape(c) => {
            let fix = Fix::replace("Double the backslash", start, "\\");
            // A sign may have been escaped without need; a letter or digit can only belong to a pattern or path.
            Some(match c.is_alphanumeric() {
                true => fix.automatic(),
                false => fix,
            })
        }
        SyntaxErrorKind::UnterminatedString { triple: false } if !found.ends_with('\\') => {
            let end = range.start() + TextSize::of(found.trim_end());
            Some(Fix::replace("Add `\"`", TextRange::empty(end), "\""))
        }
        SyntaxErrorKind::UnterminatedDiscretion { block } => {
            let stars = if *block { "***" } else { "**" };
            // A comment behind the colon was taken for a part of it.
            let before = found
                .rmatch_indices(':')
                .find(|(at, _)| found[at + 1..].trim_start().starts_with('#'));
            let end = match before {
                Some((at, _)) => TextRange::empty(range.start() + super::size(at)),
                None => end,
            };
            Some(Fix::replace(format!("Add `{stars}`"), end, stars))
        }
        SyntaxErrorKind::SessionWithoutPrompt {
            word,
            name: Some(name),
        } if crate::Name::find(name).is_some_and(|it| at.program.agent(&it).is_some()) => {
            let colon = TextRange::empty(range.start() + TextSize::of(*word));
            Some(Fix::replace(format!("Write `{word}: {name}`"), colon, ":"))
        }
        SyntaxErrorKind::Expected { what: "`:`", .. } => colon(at, range.start()),
        SyntaxErrorKind::Expected { after: "`use`", .. } => {
            let rest = at.behind(range.start());
            let path = rest.split([' ', '\t', '\n', '\r', '#', '"', '\\']).next()?;
            let range = TextRange::at(range.start(), TextSize::of(path));
            (!path.is_empty()).then(|| quote(range, path))
        }
        SyntaxErrorKind::WrongOperator { found, instead } => match found.as_str() {
            "&&" | "||" | "!" | "//" | "=" | "===" | "!==" | "of" | "from" | "over"
                if !instead.contains(' ') =>
            {
                let fix = Fix::replace(format!("Write `{instead}`"), range, at.padded(range, instead));
                // Assignment and comparison are easily confused; the others can't mean anything else.
                Some(if found == "=" { fix } else { fix.automatic() })
            }
            _ => None,
        },
        SyntaxErrorKind::ConditionInWords { words } => Some(Fix::replace(
            "Put it between stars",
            range,
            format!("**{words}**"),
        )),
        SyntaxErrorKind::StageWithVariable { .. } => {
            let before = TextSize::of(at.before(range.start()).trim_end());
            Some(Fix::replace(
                "Remove the name",
                TextRange::new(before, range.end()),
                "",
            ))
        }
        SyntaxErrorKind::NotAStatement {
            nearest: Some(nearest),
            ..
        } => {
            let word = nearest.strip_prefix('`')?.strip_suffix('`')?;
            let one = word.bytes().all(|it| it.is_ascii_alphabetic());
            // With a meaning of its own only in front of what may follow it, which the rest of the line shows.
            let head = one && word != found;
            head.then(|| Fix::replace(format!("Replace with `{word}`"), range, word))
        }
        SyntaxErrorKind::MisplacedDuration => {
            let number = found.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            Some(Fix::replace(format!("Write `{number}`"), range, number))
        }
        SyntaxErrorKind::DiscretionAsValue => {
            let text = found.trim_matches('*').trim();
            let plain = !text.is_empty() && !text.contains(['"', '\\', '\n', '\r', '*']);
            plain.then(|| Fix::replace("Ask a session instead", range, format!("session \"{text}\"")))
        }
        SyntaxErrorKind::AnonymousSession => sessions::anonymous(at, range.start()),
        SyntaxErrorKind::OddSession(form) => sessions::odd(at, *form, range.start()),
        SyntaxErrorKind::BareList => Some(
            Fix::new(
                "Put the list into brackets",
                vec![(start, "[".into()), (end, "]".into())],
            )
            .automatic(),
        ),
        SyntaxErrorKind::NotInGrammar { word: "return" } => {
            let node = at.node(range.start(), &[RETURN_STMT])?;
            node.first_child()?;
            let word = token(&node, RETURN_KW)?.text_range();
            Some(Fix::replace("Write `output`", word, "output").automatic())
        }
        SyntaxErrorKind::NotInGrammar { word: "assert" } => assert(at, range.start()),
        SyntaxErrorKind::DashList => dash_list(at, range).map(Fix::automatic),
        SyntaxErrorKind::BlockString => block_string(at, range).map(Fix::automatic),
        SyntaxErrorKind::MissingComma => Some(Fix::replace("Add a comma", range, ",").automatic()),
        SyntaxErrorKind::ElseIf => {
            let word = at
                .after(range.end())
                .find(|it| !it.kind().is_trivia())
                .filter(|it| it.kind() == IF_KW)?;
            let range = range.cover(word.text_range());
            Some(Fix::replace("Write `elif`", range, "elif").automatic())
        }
        SyntaxErrorKind::ComparisonInWords { not: false } => {
            Some(Fix::replace("Write `==`", range, "==").automatic())
        }
        SyntaxErrorKind::ComparisonInWords { not: true } => {
            let word = at
                .after(range.end())
                .find(|it| !it.kind().is_trivia())
                .filter(|it| it.kind() == SyntaxKind::NOT_KW)?;
            let range = range.cover(word.text_range());
            Some(Fix::replace("Write `!=`", range, "!=").automatic())
        }
        SyntaxErrorKind::CatchWithoutAs => Some(Fix::replace("Add `as`", start, "as ").automatic()),
        SyntaxErrorKind::InputWithoutText => input_text(at, range.start()),
        SyntaxErrorKind::OutputColon { declares: false } => {
            let colon = TextRange::new(range.end().checked_sub(TextSize::of(':'))?, range.end());
            Some(Fix::replace("Write `=`", colon, at.padded(colon, "=")).automatic())
        }
        SyntaxErrorKind::BareWord if !found.contains(['"', '\\', '{', '\n']) => {
            Some(quote(range, found).automatic())
        }
        SyntaxErrorKind::InvisibleCharacter(_) => {
            let spaces = " ".repeat(found.chars().count());
            Some(Fix::replace("Replace with a space", range, spaces).automatic())
        }
        SyntaxErrorKind::MultiLineDiscretion if !found.contains("***") => {
            Some(Fix::new("Write `***`", vec![(start, "*".into()), (end, "*".into())]).automatic())
        }
        SyntaxErrorKind::InlineBody => inline_body(at, range.start()).map(Fix::automatic),
        SyntaxErrorKind::ContextLines => context_lines(at, range).map(Fix::automatic),
        SyntaxErrorKind::LoopOrder => loop_order(at, range.start()).map(Fix::automatic),
        SyntaxErrorKind::BracedValue => {
            let inner = found.strip_prefix('{')?.strip_suffix('}')?.trim();
            // The braces may be all that keeps words apart.
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let joined = at.before(range.start()).ends_with(word) || at.behind(range.end()).starts_with(word);
            (!joined).then(|| Fix::replace("Remove the braces", range, inner).automatic())
        }
        _ => None,
    }
}

/// A missing colon, when something is indented below or a value follows.
fn colon(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let fix = || Fix::replace("Add `:`", TextRange::empty(offset), ":");
    let mut rest = at.behind(offset).lines();
    let first = rest.next()?.trim();
    if !(first.is_empty() || first.starts_with('#')) {
        return Some(fix());
    }
    let (_, indent) = at.line(offset);
    let next = rest.find(|it| !(it.trim().is_empty() || it.trim().starts_with('#')))?;
    let deeper = next.len() - next.trim_start_matches([' ', '\t']).len();
    (width(&next[..deeper]) > width(indent)).then(fix)
}

/// `assert COND: TEXT` as the `if` that does the same.
fn assert(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let node = at.node(offset, &[ASSERT_STMT])?;
    if in_brackets(&node) || has_comment(&node) || !at.begins_line(node.text_range().start()) {
        return None;
    }
    let mut parts = node.children();
    let condition = parts.next()?;
    let message = match parts.next() {
        Some(text) => text.to_string(),
        None => "\"the assertion failed\"".to_owned(),
    };
    let simple = matches!(
        condition.kind(),
        NAME_REF | FIELD_EXPR | CALL_EXPR | PAREN_EXPR | DISCRETION_EXPR | LITERAL
    );
    let condition = match simple {
        true => format!("not {condition}"),
        false => format!("not ({condition})"),
    };
    let (newline, indent) = (at.newline(), at.below(offset));
    Some(Fix::replace(
        "Write `if not …` and `throw`",
        node.text_range(),
        format!("if {condition}:{newline}{indent}throw {message}"),
    ))
}

/// A description made of the input's name.
fn input_text(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let node = at
        .token_before(offset)
        .into_iter()
        .flat_map(|it| it.parent_ancestors())
        .find(|it| it.kind() == INPUT_STMT)?;
    let name = child(&node, NAME)?;
    let text = name.to_string().replace(['_', '-'], " ");
    let with = match token(&node, COLON) {
        Some(_) => format!(" \"{text}\""),
        None => format!(": \"{text}\""),
    };
    let end = TextRange::empty(at.trimmed(node.text_range()).end());
    Some(Fix::replace("Describe it by its name", end, with))
}

fn dash_list(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let list = at.node(range.start(), &[DASH_LIST, LIST_EXPR])?;
    let items: Vec<SyntaxNode> = list.children().collect();
    let values: Option<Vec<String>> = items
        .iter()
        .map(|it| match it.kind() {
            DASH_ITEM => Some(it.first_child()?.to_string()),
            SyntaxKind::ERROR => None,
            _ => Some(it.to_string()),
        })
        .collect();
    let values = values?;
    if has_comment(&list) || values.iter().any(|it| it.contains('\n')) {
        return None;
    }
    let before = at.before(range.start()).trim_end();
    let start = TextSize::of(before);
    let end = items.last()?.text_range().end();
    // A comment after the key would swallow the list.
    if !before.ends_with([':', '=']) {
        return None;
    }
    let list = format!(" [{}]", values.join(", "));
    Some(Fix::replace(
        "Write the list in brackets",
        TextRange::new(start, end),
        list,
    ))
}

fn block_string(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[BLOCK_STRING])?;
    let pipe = token(&node, PIPE)?.text_range();
    let text = token(&node, BLOCK_TEXT)?;
    if text.text().contains("\"\"\"") || text.text().contains('\\') {
        return None;
    }
    let indent = at.indent(pipe.start());
    let end = text.text_range().start() + TextSize::of(text.text().trim_end_matches([' ', '\t', '\n', '\r']));
    // What may follow the bar, as in `|-`, goes with it.
    let line = TextRange::new(pipe.start(), at.line_end(pipe.start()));
    if at.slice(line).contains('#') {
        return None;
    }
    Some(Fix::new(
        "Write `\"\"\"`",
        vec![
            (line, "\"\"\"".into()),
            (TextRange::empty(end), format!("{}{indent}\"\"\"", at.newline())),
        ],
    ))
}

fn inline_body(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let body = at.node(offset, &[BODY])?;
    if in_brackets(&body) || body.to_string().contains('\n') {
        return None;
    }
    let before = at.before(offset).trim_end_matches([' ', '\t']);
    let range = TextRange::new(TextSize::of(before), offset);
    let indent = at.below(offset);
    Some(Fix::replace(
        "Put it on a line of its own",
        range,
        format!("{}{indent}", at.newline()),
    ))
}

/// Indented `k: v` lines below `context:` as an object.
fn context_lines(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let property = at.node(range.start(), &[PROPERTY])?;
    let list = child(&property, PROPERTY_LIST)?;
    let colon = token(&property, COLON)?.text_range();
    let mut fields = Vec::new();
    let mut end = colon.end();
    for field in list.children() {
        let key = child(&field, NAME)?;
        let value = field.children().nth(1)?;
        if field.kind() != PROPERTY || !value_in_line(&value) {
            return None;
        }
        fields.push(format!("{key}: {value}"));
        end = field.text_range().end();
    }
    let range = TextRange::new(colon.end(), end);
    if fields.is_empty() || has_comment(&list) || at.has_comment(range) {
        return None;
    }
    Some(Fix::replace(
        "Write it as an object",
        range,
        format!(" {{ {} }}", fields.join(", ")),
    ))
}

fn value_in_line(value: &SyntaxNode) -> bool {
    let odd = matches!(
        value.kind(),
        PROPERTY_LIST | DASH_LIST | BLOCK_STRING | SyntaxKind::BARE_WORD | SyntaxKind::ERROR
    );
    !odd && !value.to_string().contains(['\n', '\r'])
}

/// Condition, modifiers and name of a loop in the usual order.
fn loop_order(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let node = at.node(offset, &[LOOP_EXPR, REPEAT_EXPR])?;
    let mut parts: Vec<(u8, TextRange)> = Vec::new();
    let mut children = node.children_with_tokens().peekable();
    while let Some(it) = children.next() {
        let start = it.text_range().start();
        let place = match it.kind() {
            UNTIL_KW | WHILE_KW => 1,
            MODIFIER_LIST => 2,
            AS_KW => 3,
            COMMENT => return None,
            COLON | BODY => break,
            _ => continue,
        };
        let mut end = it.text_range().end();
        if place != 2 {
            // The word and the node behind it.
            let behind = children.find(|it| !it.kind().is_trivia())?;
            end = behind.as_node()?.text_range().end();
        }
        parts.push((place, TextRange::new(start, end)));
    }
    let whole = TextRange::new(parts.first()?.1.start(), parts.last()?.1.end());
    let mut sorted = parts.clone();
    sorted.sort_by_key(|it| it.0);
    let twice = sorted.windows(2).any(|it| it[0].0 == it[1].0);
    if twice || at.has_comment(whole) {
        return None;
    }
    let text: Vec<&str> = sorted.iter().map(|it| at.slice(it.1)).collect();
    Some(Fix::replace("Put the parts in order", whole, text.join(" ")))
}
