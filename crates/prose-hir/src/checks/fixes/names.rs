//! Fixes of declarations and uses.

use prose_syntax::SyntaxKind::{
    AGENT_DEF, ARG_LIST, BLOCK_DEF, BODY, CONST_KW, DO_CALL_EXPR, EQ, FIELD_EXPR, INDEX_EXPR, INPUT_STMT,
    LET_KW, LET_STMT, LITERAL, NAME, NAME_REF, OUTPUT_KW, OUTPUT_STMT, PARALLEL_EXPR, PROPERTY_LIST,
    RESUME_EXPR, RESUME_KW, RETURN_KW, RETURN_STMT, SESSION_EXPR, SESSION_KW, SOURCE_FILE, STRING,
    TRIPLE_STRING, USE_STMT,
};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize};

use super::{At, child, has_comment, token};
use crate::view::Names;
use crate::{Diagnostic, Fix, queries};

/// Fixes in the chunk of a finding, whose range counts from the chunk's start.
pub(super) fn fixes(at: &At<'_>, found: &Diagnostic, range: TextRange) -> Vec<Fix> {
    let mut out = Vec::new();
    match found.code {
        "E006" | "P146" => out.extend(same_definition(at, found, range)),
        "E007" => {
            out.extend(call_block(at, range));
            out.extend(declare(at, range, "agent", "prompt: \"…\""));
        }
        "P141" => {
            out.extend(run_agent(at, range));
            out.extend(declare(at, range, "block", "session \"…\""));
        }
        "P142" => out.extend(as_text(at, range)),
        "E010" => out.extend(same_use(at, found, range)),
        "E011" => out.extend(remove(at, range, USE_STMT, "Remove the `use`")),
        "E017" | "E018" => out.extend(other_word(at, range, RESUME_KW, "session")),
        "W011" => out.extend(other_word(at, range, SESSION_KW, "resume")),
        "E019" => out.extend(drop_let(at, found, range)),
        "E021" => out.extend(remove(at, range, INPUT_STMT, "Remove this input")),
        "E024" => out.extend(second_output(at, range)),
        "P153" => out.extend(only_with_others(at, range)),
        "P248" => out.extend(name_output(at, range)),
        "P251" => out.extend(call_for_value(at, range)),
        "P340" => out.extend(escape_braces(at, range)),
        "P345" => out.extend(remove_allow(at, range)),
        "L404" => out.extend(drop_variable(at, range)),
        "L407" => out.extend(remove(at, range, USE_STMT, "Remove the `use`")),
        "L401" => out.extend(remove_definition(at, range, AGENT_DEF)),
        "L402" => out.extend(remove_definition(at, range, BLOCK_DEF)),
        _ => {}
    }
    out
}

/// Fixes at a place that the finding names, with ranges of the file.
pub(super) fn fixes_elsewhere(at: &At<'_>, found: &Diagnostic) -> Option<Fix> {
    let (file, range, _) = found.related.first()?;
    if *file != found.file || !matches!(found.code, "E017" | "P144") {
        return None;
    }
    let there = At::around(at.db, at.file, *range).into_iter().next()?;
    let here = *range - there.start;
    let fix = match found.code {
        "E017" => {
            let agent = there.node(here.start(), &[AGENT_DEF])?;
            let list = child(&agent, PROPERTY_LIST)?;
            let keeps = |it: SyntaxNode| child(&it, NAME).is_some_and(|it| it.text() == "persist");
            let first = list.first_child()?.text_range().start();
            if list.children().any(keeps) || !there.begins_line(first) {
                return None;
            }
            let indent = there.indent(first);
            Fix::replace(
                "Add `persist: true` to the agent",
                TextRange::empty(first),
                format!("persist: true{}{indent}", there.newline()),
            )
        }
        _ => {
            let stmt = there.node(here.start(), &[LET_STMT])?;
            let word = token(&stmt, CONST_KW)?.text_range();
            Fix::replace("Declare it with `let`", word, "let")
        }
    };
    there.stays_sound(&fix).then(|| there.up(fix))
}

fn remove(at: &At<'_>, range: TextRange, kind: SyntaxKind, title: &str) -> Option<Fix> {
    let node = at.node(range.start(), &[kind])?;
    let alone = node.parent().filter(|it| it.kind() == BODY);
    if alone.is_some_and(|it| it.children().count() < 2) {
        return None;
    }
    Some(Fix::new(title, vec![at.remove(node.text_range())?]))
}

/// The words of a node, whatever stands between them.
fn words(node: &SyntaxNode) -> Vec<String> {
    node.descendants_with_tokens()
        .filter_map(prose_syntax::NodeOrToken::into_token)
        .filter(|it| !it.kind().is_trivia())
        .map(|it| it.text().to_owned())
        .collect()
}

/// The same node around the place that a finding names first, in this file.
fn first_of(at: &At<'_>, found: &Diagnostic, kinds: &[SyntaxKind]) -> Option<SyntaxNode> {
    let (file, range, _) = found.related.first()?;
    if *file != found.file {
        return None;
    }
    let there = At::around(at.db, at.file, *range).into_iter().next()?;
    there.node(range.start() - there.start, kinds)
}

/// A definition that repeats the first word for word.
fn same_definition(at: &At<'_>, found: &Diagnostic, range: TextRange) -> Option<Fix> {
    let kinds = [AGENT_DEF, BLOCK_DEF];
    let node = at.node(range.start(), &kinds)?;
    let first = first_of(at, found, &kinds)?;
    if words(&node) != words(&first) {
        return None;
    }
    Some(Fix::new(
        "Remove the repeated definition",
        vec![at.remove(node.text_range())?],
    ))
}

/// A `use` of the same program under the same name.
fn same_use(at: &At<'_>, found: &Diagnostic, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[USE_STMT])?;
    let first = first_of(at, found, &[USE_STMT])?;
    let name = |node: &SyntaxNode| {
        let target = child(node, LITERAL)?.to_string();
        let target = target.trim_matches('"').to_owned();
        let name = match child(node, NAME) {
            Some(it) => it.to_string(),
            None => crate::paths::default_name(&target)?.to_string(),
        };
        Some((target, name))
    };
    (name(&node)? == name(&first)?)
        .then(|| remove(at, range, USE_STMT, "Remove the repeated `use`"))
        .flatten()
}

/// `session: f` of a block is `do f`.
fn call_block(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[SESSION_EXPR])?;
    let name = at.slice(range);
    let block = at.program.block(&crate::Name::find(name)?)?;
    let bare = node.children().count() == 1 && node.first_child()?.kind() == NAME_REF;
    (bare && block.params.is_empty() && !has_comment(&node)).then(|| {
        Fix::replace(
            format!("Write `do {name}`"),
            node.text_range(),
            format!("do {name}"),
        )
    })
}

/// `do a` of an agent is `session: a`.
fn run_agent(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[DO_CALL_EXPR])?;
    let name = at.slice(range);
    let agent = at.program.agent(&crate::Name::find(name)?)?;
    let args = child(&node, ARG_LIST).is_some_and(|it| it.children().next().is_some());
    (agent.prompted && !args && !has_comment(&node)).then(|| {
        Fix::replace(
            format!("Write `session: {name}`"),
            node.text_range(),
            format!("session: {name}"),
        )
    })
}

/// A declaration above the statement of the top level, and above its comment.
fn declare(at: &At<'_>, range: TextRange, word: &str, line: &str) -> Option<Fix> {
    let name = at.slice(range);
    let taken = at.program.is_taken(name);
    let used = at.after(range.start()).next()?;
    let stmt = used
        .parent_ancestors()
        .find(|it| it.parent().is_some_and(|it| it.kind() == SOURCE_FILE))?;
    if taken || name.is_empty() {
        return None;
    }
    // A block takes what the call gives; an agent that is gone on with would have to keep something.
    let user = used
        .parent_ancestors()
        .find(|it| matches!(it.kind(), DO_CALL_EXPR | SESSION_EXPR | RESUME_EXPR))?;
    if user.kind() == RESUME_EXPR {
        return None;
    }
    let args = child(&user, ARG_LIST).map_or(0, |it| it.children().count());
    let params: Vec<String> = (1..=args).map(|it| format!("value{it}")).collect();
    let params = match params.is_empty() {
        true => String::new(),
        false => format!("({})", params.join(", ")),
    };
    let named = child(&user, ARG_LIST).is_some_and(|it| it.children().any(|it| child(&it, NAME).is_some()));
    if named || (args > 0 && word != "block") {
        return None;
    }
    let start = above(at, stmt.text_range().start());
    let newline = at.newline();
    Some(Fix::replace(
        format!("Declare {word} `{name}`"),
        TextRange::empty(start),
        format!("{word} {name}{params}:{newline}  {line}{newline}{newline}"),
    ))
}

/// Where the comment lines begin that stand directly above a statement; else its own line.
fn above(at: &At<'_>, offset: TextSize) -> TextSize {
    let mut start = at.line(offset).0;
    loop {
        let text = at.before(start);
        let text = text
            .strip_suffix("\r\n")
            .or_else(|| text.strip_suffix(['\n', '\r']));
        let Some(text) = text else { return start };
        let line = at.line(TextSize::of(text)).0;
        if !at
            .slice(TextRange::new(line, TextSize::of(text)))
            .starts_with('#')
        {
            return start;
        }
        start = line;
    }
}

/// An unknown name as a value may be a text that lacks its quotes.
fn as_text(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let name = at.node(range.start(), &[NAME_REF])?;
    let part = name
        .parent()
        .is_some_and(|it| matches!(it.kind(), FIELD_EXPR | INDEX_EXPR));
    (name.text_range() == range && !part).then(|| super::quote(range, at.slice(range)))
}

/// `session` instead of `resume`, or the other way round.
fn other_word(at: &At<'_>, range: TextRange, word: SyntaxKind, other: &str) -> Option<Fix> {
    let node = at.node(range.start(), &[SESSION_EXPR, RESUME_EXPR])?;
    let word = token(&node, word)?.text_range();
    Some(Fix::replace(format!("Write `{other}`"), word, other))
}

/// A second `let` as an assignment.
fn drop_let(at: &At<'_>, found: &Diagnostic, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[LET_STMT])?;
    let word = token(&node, LET_KW)?.text_range();
    let name = child(&node, NAME)?.text_range();
    let constant = first_of(at, found, &[LET_STMT]).is_some_and(|it| token(&it, CONST_KW).is_some());
    if name != range || constant || in_parallel(&node) {
        return None;
    }
    Some(Fix::replace(
        "Drop `let`",
        TextRange::new(word.start(), name.start()),
        "",
    ))
}

/// Whether a statement is a branch, where `name = …` names the branch.
fn in_parallel(stmt: &SyntaxNode) -> bool {
    stmt.parent()
        .and_then(|it| it.parent())
        .is_some_and(|it| it.kind() == PARALLEL_EXPR)
}

/// A second `output` of a name as an assignment to it.
fn second_output(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[OUTPUT_STMT])?;
    let word = token(&node, OUTPUT_KW)?.text_range();
    let name = child(&node, NAME)?.text_range();
    token(&node, EQ)?;
    (!in_parallel(&node)).then(|| {
        let range = TextRange::new(word.start(), name.start());
        Fix::replace("Drop `output`", range, "")
    })
}

/// A statement that can go, as long as another stays in its body.
fn only_with_others(at: &At<'_>, range: TextRange) -> Option<Fix> {
    remove(at, range, SyntaxKind::BREAK_STMT, "Remove `break`")
}

/// `output EXPR` of the top level with a name.
fn name_output(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[OUTPUT_STMT, RETURN_STMT])?;
    node.first_child()?;
    let word = token(&node, OUTPUT_KW).or_else(|| token(&node, RETURN_KW))?;
    let free = |name: &&str| !at.program.is_taken(name);
    let name = ["result", "answer", "final_result"].into_iter().find(free)?;
    Some(Fix::replace(
        format!("Write `output {name} = …`"),
        word.text_range(),
        format!("output {name} ="),
    ))
}

/// The result of a block that needs nothing.
fn call_for_value(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let name = at.slice(range);
    let block = at.program.block(&crate::Name::find(name)?)?;
    at.node(range.start(), &[NAME_REF])
        .filter(|it| it.text_range() == range && block.params.is_empty())?;
    Some(Fix::replace(
        format!("Write `do {name}`"),
        TextRange::empty(range.start()),
        "do ",
    ))
}

/// Braces that mean themselves.
fn escape_braces(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let text = at.after(range.start()).next()?;
    if !matches!(text.kind(), STRING | TRIPLE_STRING) || !at.before(range.start()).ends_with('{') {
        return None;
    }
    let rest = at.slice(TextRange::new(range.start(), text.text_range().end()));
    let close = range.start() + super::size(rest.find('}')?);
    let open = range.start() - TextSize::of('{');
    let name = at.slice(TextRange::new(range.start(), close));
    Some(Fix::new(
        format!("Write `\\{{{name}\\}}`"),
        vec![
            (TextRange::empty(open), "\\".into()),
            (TextRange::empty(close), "\\".into()),
        ],
    ))
}

/// An unused definition, with the comments that are in it and directly above it.
fn remove_definition(at: &At<'_>, range: TextRange, kind: SyntaxKind) -> Option<Fix> {
    let node = at.node(range.start(), &[kind])?;
    let name = child(&node, NAME)?;
    // Used in a way that it can't be used in: that is to be settled first.
    if node.parent()?.kind() != SOURCE_FILE || mentioned(at, &name) {
        return None;
    }
    let whole = node.text_range();
    let start = above(at, whole.start());
    let end = at.trimmed(whole).end();
    let mut end = at.next_line(end);
    // One blank line goes with it.
    let blank = at.line_end(end);
    if blank < TextSize::of(&*at.text) && at.slice(TextRange::new(end, blank)).trim().is_empty() {
        end = at.next_line(end);
    }
    let range = TextRange::new(start, end);
    let noun = if kind == AGENT_DEF { "agent" } else { "block" };
    let comments = if at.has_comment(range) {
        " with its comments"
    } else {
        ""
    };
    Some(Fix::replace(
        format!("Remove {noun} `{name}`{comments}"),
        range,
        "",
    ))
}

/// Whether anything in the file names it, but for declarations.
fn mentioned(at: &At<'_>, name: &SyntaxNode) -> bool {
    let chunks = at.file.chunks(at.db);
    chunks
        .iter()
        .flat_map(|it| queries::usages(at.db, *it).iter())
        .any(|it| name.text() == it.name.as_str())
}

/// `let x = …` of a name that nothing reads: what it runs stays, a mere value goes.
fn drop_variable(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let node = at.node(range.start(), &[LET_STMT])?;
    let name = child(&node, NAME).filter(|it| it.text_range() == range)?;
    let value = node.last_child()?;
    if in_parallel(&node) || mentioned(at, &name) {
        return None;
    }
    match value.kind() {
        SESSION_EXPR | RESUME_EXPR | DO_CALL_EXPR => {
            let head = TextRange::new(node.text_range().start(), value.text_range().start());
            let plain = !at.slice(head).contains(['\n', '\r', '#']);
            plain.then(|| Fix::replace(format!("Drop `let {name} =`"), head, ""))
        }
        LITERAL | NAME_REF => remove(at, range, LET_STMT, "Remove the variable"),
        _ => None,
    }
}

/// A code that an `allow` comment names for nothing, or the comment when it names no other.
fn remove_allow(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let comment = at.after(range.start()).next()?;
    if comment.kind() != SyntaxKind::COMMENT {
        return None;
    }
    let code = at.slice(range);
    let behind = at.slice(TextRange::new(range.end(), comment.text_range().end()));
    let before = at.slice(TextRange::new(comment.text_range().start(), range.start()));
    let title = format!("Remove `{code}` from the comment");
    if let Some(rest) = behind.trim_start().strip_prefix(',') {
        let end = comment.text_range().end() - TextSize::of(rest.trim_start());
        return Some(Fix::replace(title, TextRange::new(range.start(), end), ""));
    }
    if let Some(rest) = before.trim_end().strip_suffix(',') {
        let start = comment.text_range().start() + TextSize::of(rest);
        return Some(Fix::replace(title, TextRange::new(start, range.end()), ""));
    }
    let whole = comment.text_range();
    let range = match at.begins_line(whole.start()) {
        true => TextRange::new(at.line(whole.start()).0, at.next_line(whole.end())),
        false => {
            let before = at.before(whole.start()).trim_end_matches([' ', '\t']);
            TextRange::new(TextSize::of(before), whole.end())
        }
    };
    Some(Fix::replace("Remove the comment", range, ""))
}
