//! Sessions and properties.

use prose_syntax::{
    SyntaxKind::{BLOCK_TEXT, TRIPLE_STRING},
    TextSize,
    ast::{self, AstNode, HasModifiers, HasProperties, PropertyValue},
    text,
};

use super::{Columns, Writer};

/// `session` or `resume`, read.
pub(super) struct Session {
    word: &'static str,
    name: Option<ast::Name>,
    agent: Option<ast::NameRef>,
    text: Option<ast::Literal>,
    properties: Vec<ast::Property>,
    modifiers: Vec<ast::Modifier>,
}

impl From<&ast::SessionExpr> for Session {
    fn from(it: &ast::SessionExpr) -> Self {
        Session {
            word: "session",
            name: it.name(),
            agent: it.agent(),
            text: it.text(),
            properties: it.properties().collect(),
            modifiers: it.modifiers().collect(),
        }
    }
}

impl From<&ast::ResumeExpr> for Session {
    fn from(it: &ast::ResumeExpr) -> Self {
        Session {
            word: "resume",
            name: it.name(),
            agent: it.agent(),
            text: it.text(),
            properties: it.properties().collect(),
            modifiers: Vec::new(),
        }
    }
}

impl Session {
    /// A session or resumption; `None` for other expressions.
    pub(super) fn read(expr: &ast::Expr) -> Option<Session> {
        match expr {
            ast::Expr::Session(it) => Some(it.into()),
            ast::Expr::Resume(it) => Some(it.into()),
            _ => None,
        }
    }

    pub(super) fn without_name(self) -> Session {
        Session { name: None, ..self }
    }

    /// The name in `session name: agent`, which a statement binds to the result.
    pub(super) fn binds(&self) -> Option<ast::Name> {
        self.name.clone().filter(|_| self.agent.is_some())
    }
}

impl Writer {
    pub(super) fn session(&mut self, it: &Session, at: Columns) {
        self.push(it.word);
        if it.name.is_some() {
            self.push(" ");
            self.name(it.name.clone());
        }
        if it.agent.is_some() || it.text.is_none() || it.name.is_some() {
            self.push(":");
        }
        if let Some(agent) = &it.agent {
            self.push(" ");
            self.token(agent.token());
        }
        if let Some(text) = &it.text {
            self.push(" ");
            self.token(text.token());
        }
        // Of modifiers, only `retry:` means anything.
        let has_retry = it.properties.iter().any(|it| is_key(it, "retry"));
        let retry = it
            .modifiers
            .iter()
            .find(|it| it.name().is_some_and(|name| name.text() == "retry"))
            .filter(|_| !has_retry);
        self.properties(it.properties.iter().cloned(), at.inside());
        if let Some(value) = retry.and_then(|it| it.value()) {
            self.start_property(at.inside());
            self.push("retry: ");
            self.expr(&value, at.inside());
        }
    }

    /// Properties, each on a line of its own; in brackets on the line.
    pub(super) fn properties(&mut self, properties: impl Iterator<Item = ast::Property>, at: Columns) {
        for property in properties {
            self.start_property(at);
            self.property(&property, at);
        }
    }

    fn start_property(&mut self, at: Columns) {
        match self.brackets {
            0 => self.line(at.block),
            _ => self.push(" "),
        }
    }

    fn property(&mut self, property: &ast::Property, at: Columns) {
        if let Some(key) = property.key() {
            self.key(&key);
        }
        self.push(":");
        match property.value() {
            Some(PropertyValue::Expr(it)) => {
                self.push(" ");
                self.expr(&it, at);
            }
            Some(PropertyValue::Dashes(it)) => {
                self.push(" ");
                self.list(it.items().filter_map(|it| it.value()), at);
            }
            Some(PropertyValue::Nested(it)) if is_key(property, "context") && is_record(&it) => {
                self.push(" { ");
                self.bracketed(|writer| {
                    for (index, entry) in it.properties().enumerate() {
                        writer.push(if index > 0 { ", " } else { "" });
                        writer.property(&entry, at);
                    }
                });
                self.push(" }");
            }
            Some(PropertyValue::Nested(it)) => self.properties(it.properties(), at.inside()),
            Some(PropertyValue::Block(it)) => self.block_string(&it, at),
            Some(PropertyValue::Word(it)) if is_key(property, "model") || is_key(property, "persist") => {
                self.push(" \"");
                self.push(it.text().trim());
                self.push("\"");
            }
            Some(PropertyValue::Word(it)) => {
                self.push(" ");
                self.push(it.text().trim());
            }
            None => {}
        }
    }

    /// `|` and lines as a `"""` string that reads the same.
    fn block_string(&mut self, it: &ast::BlockString, at: Columns) {
        let Some(string) = it.string() else { return };
        let raw = string.syntax().text();
        let lines: Vec<&str> = raw
            .split('\n')
            .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
            .skip(1)
            .collect();
        let indent = lines
            .iter()
            .filter(|it| !it.trim().is_empty())
            .map(|it| it.len() - it.trim_start_matches([' ', '\t']).len())
            .min()
            .unwrap_or(0);
        let mut new = String::from("\"\"\"");
        for line in lines {
            new.push('\n');
            let line = line.get(indent..).unwrap_or_default();
            if !line.trim().is_empty() {
                new.extend(std::iter::repeat_n(' ', at.deeper as usize));
                new.push_str(&line.replace("\"\"\"", "\\\"\\\"\\\""));
            }
        }
        new.push('\n');
        new.extend(std::iter::repeat_n(' ', at.deeper as usize));
        new.push_str("\"\"\"");
        let zero = TextSize::from(0);
        let read = |kind, token: &str| text::joined(&text::segments(kind, token, zero), token, zero);
        let same = read(TRIPLE_STRING, &new) == read(BLOCK_TEXT, raw);
        self.push(" ");
        if same {
            self.push(&new);
        } else {
            self.push(it.syntax().text().to_string().as_str());
        }
    }
}

fn is_key(property: &ast::Property, key: &str) -> bool {
    property.key().is_some_and(|it| it.text() == key)
}

/// Whether lines of `k: v` can be written as a record.
fn is_record(list: &ast::PropertyList) -> bool {
    list.properties()
        .all(|it| matches!(it.value(), Some(PropertyValue::Expr(value)) if plain(&value)))
}

/// Whether a value means the same inside a record: a bare list would be several fields.
fn plain(value: &ast::Expr) -> bool {
    !matches!(value, ast::Expr::List(it) if !it.is_bracketed())
}
