//! Declarations in words: what hover, completion details and the outline say about them.

use prose_hir::{DefKind, Definition, ProgramContract, RootDatabase, VisibleName};
use prose_model::vocabulary;
use prose_syntax::ast::{self, AstNode, Expr, HasModifiers, HasProperties, PropertyValue};
use prose_syntax::{SyntaxKind, SyntaxNode};

use crate::types::MarkupKind;
use crate::{markdown, names};

/// Lines of a prompt or statement that are shown.
const EXCERPT_LINES: usize = 8;
/// Characters of a prompt or statement that are shown.
const EXCERPT_CHARS: usize = 480;

/// A piece of documentation; what comes from the program is kept apart from what we say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Source text.
    Code(String),
    /// A text for people or agents from the program.
    Quote(String),
    /// A comment of the program, as running text.
    Comment(String),
    /// Our own words, Markdown.
    Words(String),
}

/// Puts the parts below each other.
pub(crate) fn render(parts: &[Part], markup: MarkupKind) -> String {
    let rendered: Vec<String> = parts
        .iter()
        .map(|part| match (part, markup) {
            (Part::Code(text), MarkupKind::Markdown) => markdown::fence("prose", text),
            (Part::Quote(text), MarkupKind::Markdown) => markdown::fence("text", text),
            (Part::Comment(text), MarkupKind::Markdown) => markdown::escape(text),
            (Part::Words(text), _) => text.clone(),
            (Part::Code(text) | Part::Quote(text) | Part::Comment(text), MarkupKind::PlainText) => {
                text.clone()
            }
        })
        .collect();
    rendered.join("\n\n")
}

/// All about a declaration.
pub(crate) fn definition(db: &RootDatabase, def: &Definition) -> Vec<Part> {
    let Some(node) = names::node(db, def) else {
        return vec![Part::Words(format!(
            "{} {}",
            def.kind.noun(),
            markdown::code(&def.name)
        ))];
    };
    let mut parts = match def.kind {
        DefKind::Agent => ast::AgentDef::cast(node.clone()).map(|it| agent(&it)),
        DefKind::Block => ast::BlockDef::cast(node.clone()).map(|it| block(&it)),
        DefKind::Import => ast::UseStmt::cast(node.clone()).map(|it| import(db, def, &it)),
        DefKind::Input => ast::InputStmt::cast(node.clone()).map(|it| input(&it)),
        DefKind::Param => ast::BlockDef::cast(node.clone()).map(|it| {
            let mut parts = vec![Part::Code(signature(&it))];
            parts.push(Part::Words(format!("Parameter {}.", markdown::code(&def.name))));
            parts
        }),
        _ => None,
    }
    .unwrap_or_else(|| binding(db, def, &node));
    // A parameter's block has its comment, not the parameter.
    if !def.kind.is_scoped()
        && let Some(comment) = comment(&node)
    {
        parts.insert(1.min(parts.len()), Part::Comment(comment));
    }
    parts
}

/// One line about a declaration, for lists.
pub(crate) fn detail(db: &RootDatabase, name: &VisibleName) -> String {
    let known = match (
        name.kind,
        name.definition.as_ref().and_then(|def| names::node(db, def)),
    ) {
        (DefKind::Agent, Some(node)) => ast::AgentDef::cast(node).map(|it| {
            let model = it.property("model").and_then(|it| property_value(&it));
            model.map_or_else(|| "agent".to_owned(), |model| format!("agent · {model}"))
        }),
        (DefKind::Block, Some(node)) => ast::BlockDef::cast(node)
            .map(|it| format!("block{}", it.params().map(|it| params(&it)).unwrap_or_default())),
        (DefKind::Import, Some(node)) => ast::UseStmt::cast(node)
            .and_then(|it| it.path()?.string())
            .map(|it| format!("program · {}", it.text())),
        (
            DefKind::Let | DefKind::Const | DefKind::Output | DefKind::Branch | DefKind::Assigned,
            Some(node),
        ) => value_of(&node).map(|it| format!("{} · {}", name.kind.noun(), maker(&it).replace('`', ""))),
        _ => None,
    };
    markdown::excerpt(&known.unwrap_or_else(|| name.kind.noun().to_owned()), 1, 80)
}

fn agent(agent: &ast::AgentDef) -> Vec<Part> {
    let name = agent.name().map(|it| it.text()).unwrap_or_default();
    let mut parts = vec![Part::Code(with_properties(
        &format!("agent {name}:"),
        agent.properties(),
    ))];
    parts.extend(permissions(Some(agent), &[]));
    if let Some(persist) = agent.property("persist").and_then(|it| property_value(&it)) {
        let scope = vocabulary::property("persist")
            .and_then(|it| it.values.iter().find(|value| value.word == persist))
            .map(|it| it.doc);
        if let Some(scope) = scope {
            parts.push(Part::Words(format!("Persistent: {}", lower_first(scope))));
        } else if persist != "false" {
            parts.push(Part::Words("Persistent: memory in the folder given.".to_owned()));
        }
    }
    parts
}

/// A header with its properties below, the prompt cut short.
fn with_properties(header: &str, properties: impl Iterator<Item = ast::Property>) -> String {
    let mut code = header.to_owned();
    for property in properties {
        let Some(key) = property.key() else { continue };
        let cut = markdown::excerpt(&source_text(property.syntax()), EXCERPT_LINES, EXCERPT_CHARS);
        let cut = if cut.is_empty() {
            format!("{}:", key.text())
        } else {
            cut
        };
        for line in cut.lines() {
            code.push_str("\n  ");
            code.push_str(line);
        }
    }
    code
}

/// A node's source text, its lines shifted left as if it stood at column 0.
fn source_text(node: &SyntaxNode) -> String {
    let before = node
        .first_token()
        .and_then(|it| it.prev_token())
        .map(|it| it.text().to_owned())
        .unwrap_or_default();
    let column = before.rsplit(['\n', '\r']).next().map_or(0, str::len);
    let text = node.text().to_string();
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if number > 0 {
            out.push('\n');
        }
        out.push_str(if number > 0 {
            &line[indent.min(column)..]
        } else {
            line
        });
    }
    out
}

/// `block name(params) (max_depth: 50)`
pub(crate) fn signature(block: &ast::BlockDef) -> String {
    let mut out = format!("block {}", block.name().map(|it| it.text()).unwrap_or_default());
    out.push_str(&block.params().map(|it| params(&it)).unwrap_or_default());
    let modifiers: Vec<String> = block
        .modifiers()
        .map(|it| it.syntax().text().to_string())
        .collect();
    if !modifiers.is_empty() {
        out.push_str(&format!(" ({})", modifiers.join(", ")));
    }
    out
}

fn block(block: &ast::BlockDef) -> Vec<Part> {
    let mut parts = vec![Part::Code(signature(block))];
    let mut outputs: Vec<String> = block
        .syntax()
        .descendants()
        .filter_map(ast::OutputStmt::cast)
        .filter_map(|it| it.name())
        .map(|it| markdown::code(&it.text()))
        .collect();
    outputs.dedup();
    match outputs.as_slice() {
        [] => {}
        [one] => parts.push(Part::Words(format!("Gives {one}."))),
        several => parts.push(Part::Words(format!("Gives a record of {}.", several.join(", ")))),
    }
    parts
}

fn import(db: &RootDatabase, def: &Definition, used: &ast::UseStmt) -> Vec<Part> {
    let mut parts = vec![Part::Code(used.syntax().text().to_string())];
    let target = used
        .path()
        .and_then(|it| it.string())
        .map(|it| it.text())
        .unwrap_or_default();
    match contract(db, def) {
        Some(ProgramContract { inputs, outputs }) => {
            let list = |names: Vec<String>| names.join(", ");
            if !inputs.is_empty() {
                let inputs = inputs.iter().map(|(name, default)| {
                    format!(
                        "{}{}",
                        markdown::code(name),
                        if *default { " (has a default)" } else { "" }
                    )
                });
                parts.push(Part::Words(format!("Inputs: {}", list(inputs.collect()))));
            }
            if !outputs.is_empty() {
                let outputs = outputs.iter().map(|it| markdown::code(it));
                parts.push(Part::Words(format!("Outputs: {}", list(outputs.collect()))));
            }
        }
        None => match prose_hir::paths::target_kind(&target) {
            prose_hir::paths::TargetKind::Url | prose_hir::paths::TargetKind::Registry => {
                parts.push(Part::Words(
                    "A remote program: each run that reaches it asks for approval.".to_owned(),
                ));
            }
            _ => {}
        },
    }
    parts
}

/// Inputs and outputs of the program that an import leads to, if that is known.
pub(crate) fn contract(db: &RootDatabase, import: &Definition) -> Option<ProgramContract> {
    let used = prose_hir::program_file(db, import.source(), &import.name)?;
    Some(prose_hir::contract(db, used))
}

fn input(input: &ast::InputStmt) -> Vec<Part> {
    let name = input.name().map(|it| it.text()).unwrap_or_default();
    let mut parts = vec![Part::Code(format!("input {name}"))];
    match input.value() {
        Some(Expr::Literal(literal)) if literal.string().is_some() => {
            let text = literal.string().map(|it| it.text()).unwrap_or_default();
            parts.push(Part::Quote(markdown::excerpt(
                &text,
                EXCERPT_LINES,
                EXCERPT_CHARS,
            )));
        }
        Some(Expr::Discretion(discretion)) => {
            let text = discretion.token().map(|it| it.text()).unwrap_or_default();
            parts.push(Part::Words("The judge puts this into a question:".to_owned()));
            parts.push(Part::Quote(markdown::excerpt(
                &text,
                EXCERPT_LINES,
                EXCERPT_CHARS,
            )));
        }
        Some(other) => {
            parts.push(Part::Words("With a default:".to_owned()));
            let text = other.syntax().text().to_string();
            parts.push(Part::Code(markdown::excerpt(&text, EXCERPT_LINES, EXCERPT_CHARS)));
        }
        None => {}
    }
    parts
}

/// A variable: the statement that made it, and by what.
fn binding(db: &RootDatabase, def: &Definition, node: &SyntaxNode) -> Vec<Part> {
    // What `catch` names is declared for its body; shown is the clause.
    let clause = node
        .parent()
        .filter(|it| def.kind == DefKind::Catch && it.kind() == SyntaxKind::CATCH_CLAUSE);
    let text = source_text(clause.as_ref().unwrap_or(node));
    let shown = match def.kind {
        // Of a construct only the head: its body may be long.
        DefKind::Item | DefKind::Index | DefKind::Catch | DefKind::Implicit | DefKind::Reduce => {
            text.lines().next().unwrap_or_default().to_owned()
        }
        _ => text,
    };
    let mut parts = vec![Part::Code(markdown::excerpt(
        &shown,
        EXCERPT_LINES,
        EXCERPT_CHARS,
    ))];
    let name = markdown::code(&def.name);
    let noun = def.kind.noun();
    let made_by =
        value_of(node).or_else(|| Expr::cast(node.clone()).filter(|_| def.kind == DefKind::Session));
    let words = match (def.kind, made_by) {
        (DefKind::Catch, _) => {
            format!("The caught error {name}: `.message`, `.kind`, `.statement`, `.attempts`.")
        }
        (DefKind::Index, _) => format!("Loop index {name}, counting from 0."),
        (DefKind::Implicit, _) => format!("{name}: the item that the stage works on."),
        (_, Some(Expr::Literal(_) | Expr::List(_) | Expr::Object(_))) => {
            format!("{} {name}.", upper_first(noun))
        }
        (_, Some(value)) => {
            let model = session_model(db, def, node, &value)
                .map(|it| format!(" ({it})"))
                .unwrap_or_default();
            format!("{} {name}, bound by {}{model}.", upper_first(noun), maker(&value))
        }
        (_, None) => format!("{} {name}.", upper_first(noun)),
    };
    parts.push(Part::Words(words));
    parts
}

/// The right side of a binding.
pub(crate) fn value_of(node: &SyntaxNode) -> Option<Expr> {
    match node.kind() {
        SyntaxKind::LET_STMT => ast::LetStmt::cast(node.clone())?.value(),
        SyntaxKind::OUTPUT_STMT => ast::OutputStmt::cast(node.clone())?.value(),
        SyntaxKind::ASSIGN_STMT => ast::AssignStmt::cast(node.clone())?.value(),
        _ => None,
    }
}

/// What makes a value, in words.
pub(crate) fn maker(value: &Expr) -> String {
    let of = |name: Option<ast::NameRef>| name.map(|it| it.text()).filter(|it| !it.is_empty());
    match value {
        Expr::Session(it) => match of(it.agent()) {
            Some(agent) => format!("a session of agent {}", markdown::code(&agent)),
            None => "a session".to_owned(),
        },
        Expr::Resume(it) => match of(it.agent()) {
            Some(agent) => format!("a resumed session of agent {}", markdown::code(&agent)),
            None => "a resumed session".to_owned(),
        },
        Expr::DoCall(it) => match of(it.callee()) {
            Some(block) => format!("block {}", markdown::code(&block)),
            None => "a block".to_owned(),
        },
        Expr::Call(it) => match it.callee() {
            Some(Expr::Name(name)) => format!("program {}", markdown::code(&name.text())),
            _ => "a call".to_owned(),
        },
        Expr::Do(_) => "a `do:` sequence".to_owned(),
        Expr::Parallel(_) => "`parallel`: the list or record of its branches".to_owned(),
        Expr::For(it) if it.parallel_token().is_some() => {
            "`parallel for`: the list of its iterations".to_owned()
        }
        Expr::For(_) | Expr::Repeat(_) | Expr::Loop(_) => "a loop: the list of its iterations".to_owned(),
        Expr::If(_) => "`if`: the last value of the body that ran".to_owned(),
        Expr::Choice(_) => "`choice`: the last value of the option taken".to_owned(),
        Expr::Try(_) => "`try`: the last value of the body that ran".to_owned(),
        Expr::Arrow(_) => "a sequence: the value of its last session".to_owned(),
        Expr::Pipe(_) => "a pipeline".to_owned(),
        Expr::Discretion(_) => "a judgement".to_owned(),
        Expr::List(_) => "a list".to_owned(),
        Expr::Object(_) => "a record".to_owned(),
        Expr::Literal(it) if it.string().is_some() => "a text".to_owned(),
        Expr::Literal(_) => "a literal".to_owned(),
        Expr::Name(_) | Expr::Field(_) | Expr::Index(_) => "another value".to_owned(),
        Expr::Paren(it) => it
            .inner()
            .map_or_else(|| "an expression".to_owned(), |it| maker(&it.unparen())),
        Expr::Bin(_) | Expr::Prefix(_) => "an expression".to_owned(),
    }
}

/// The model of the session that makes a value: its own, else its agent's. `node` is the declaration's.
fn session_model(db: &RootDatabase, def: &Definition, node: &SyntaxNode, value: &Expr) -> Option<String> {
    let (own, agent) = match value {
        Expr::Session(it) => (it.property("model"), it.agent()),
        Expr::Resume(it) => (it.property("model"), it.agent()),
        _ => return None,
    };
    let model = own.and_then(|it| property_value(&it)).or_else(|| {
        let chunk_start = def.full_range.start().checked_sub(node.text_range().start())?;
        let place = agent?.syntax().text_range().start() + chunk_start;
        let agent = prose_hir::resolve_at(db, def.source(), place).filter(|it| it.kind == DefKind::Agent)?;
        property_value(&ast::AgentDef::cast(names::node(db, &agent)?)?.property("model")?)
    })?;
    Some(markdown::code(&markdown::excerpt(&model, 1, 60)))
}

/// The properties that hold for a session: its own, and those of its agent that it doesn't replace.
pub(crate) fn effective(
    agent: &ast::AgentDef,
    own: impl Iterator<Item = ast::Property>,
) -> Option<Vec<Part>> {
    let line = |property: &ast::Property, origin: &str| {
        let key = property.key()?.text();
        let value = match property.value() {
            Some(PropertyValue::Nested(_) | PropertyValue::Dashes(_) | PropertyValue::Block(_)) => {
                "…".to_owned()
            }
            Some(value) => {
                let text = value.syntax().text().to_string();
                markdown::excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), 1, 80)
            }
            None => String::new(),
        };
        Some(format!("{key}: {value}  # {origin}"))
    };
    let own: Vec<ast::Property> = own.collect();
    if own.is_empty() {
        return None;
    }
    let replaced = |key: &str| own.iter().any(|it| it.key().is_some_and(|it| it.text() == key));
    let mut lines: Vec<String> = own.iter().filter_map(|it| line(it, "session")).collect();
    for property in agent.properties() {
        let Some(key) = property.key().map(|it| it.text()) else {
            continue;
        };
        if key == "prompt" && replaced("prompt") {
            lines.extend(line(&property, "agent, as system part"));
        } else if !replaced(&key) {
            lines.extend(line(&property, "agent"));
        }
    }
    let mut parts = vec![
        Part::Words("In this session:".to_owned()),
        Part::Code(lines.join("\n")),
    ];
    // Without rules of its own, those of the agent were told with it.
    if replaced("permissions") {
        parts.extend(permissions(Some(agent), &own));
    }
    Some(parts)
}

/// What the permissions of an agent and a session come to, a line for each kind of access, and where it is from. None
/// when neither says anything: then the defaults are no news.
pub(crate) fn permissions(agent: Option<&ast::AgentDef>, own: &[ast::Property]) -> Option<Part> {
    let rules = |property: Option<ast::Property>| -> Vec<(String, String)> {
        let Some(PropertyValue::Nested(list)) = property.and_then(|it| it.value()) else {
            return Vec::new();
        };
        list.properties()
            .filter_map(|rule| Some((rule.key()?.text(), property_value(&rule)?)))
            .collect()
    };
    let is_permissions = |it: &&ast::Property| it.key().is_some_and(|key| key.text() == "permissions");
    let own = rules(own.iter().find(is_permissions).cloned());
    let of_agent = rules(agent.and_then(|it| it.property("permissions")));
    if own.is_empty() && of_agent.is_empty() {
        return None;
    }
    let find = |rules: &[(String, String)], key: &str| {
        let rule = rules.iter().rev().find(|(name, _)| name == key);
        rule.map(|(_, value)| markdown::code(value))
    };
    let mut lines = vec!["Permissions:\n".to_owned()];
    for default in vocabulary::PERMISSION_DEFAULTS {
        let key = default.word;
        let said = find(&own, key)
            .map(|value| format!("{value} (session)"))
            .or_else(|| find(&of_agent, key).map(|value| format!("{value} (agent)")))
            .unwrap_or_else(|| format!("{} (default)", default.doc));
        lines.push(format!("- `{key}`: {said}"));
    }
    // Said once: where a session has rules besides its agent's, it was told with the agent.
    if own.is_empty() || agent.is_none() {
        lines.push(format!("\nNever: {}.", prose_model::protected::never()));
    }
    Some(Part::Words(lines.join("\n")))
}

/// A property's value on one line, as written; a string without its quotes.
pub(crate) fn property_value(property: &ast::Property) -> Option<String> {
    let value = property.value()?;
    let text = match &value {
        PropertyValue::Expr(Expr::Literal(literal)) if literal.string().is_some() => {
            literal.string().map(|it| it.text()).unwrap_or_default()
        }
        PropertyValue::Block(block) => block.string().map(|it| it.text()).unwrap_or_default(),
        _ => value.syntax().text().to_string(),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| markdown::excerpt(&text, 1, 80))
}

/// `(a, b)`
pub(crate) fn params(list: &ast::ParamList) -> String {
    let names: Vec<String> = list
        .params()
        .filter_map(|it| it.name())
        .map(|it| it.text())
        .collect();
    format!("({})", names.join(", "))
}

/// The comment lines directly above a declaration, without `#`.
pub(crate) fn comment(node: &SyntaxNode) -> Option<String> {
    let lines: Vec<String> = ast::leading_comments(node)
        .iter()
        .map(|it| it.text().trim_start_matches('#').trim().to_owned())
        // Rulers such as `# -----` say nothing.
        .filter(|line| line.is_empty() || line.chars().any(char::is_alphanumeric))
        .collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then(|| markdown::excerpt(&text, 20, 2000))
}

pub(crate) fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
