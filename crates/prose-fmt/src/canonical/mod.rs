//! The canonical form: every construct in the one spelling of the grammar, without comments. It means what the program
//! means.

mod expr;
mod session;

use std::collections::BTreeMap;

use prose_syntax::{
    Parse, SyntaxToken,
    ast::{self, HasBody, HasModifiers, HasProperties},
};

use self::session::Session;
use crate::layout::INDENT;

/// The canonical form of a program without syntax errors. What a broken tree lacks is missing in the form, too.
///
/// Meaning is kept but for two things that change nothing that happens: `session name: agent` becomes
/// `let name = session: agent`, unless the name is declared again beside it; and an expression that is handed on as context
/// is labelled as the form writes it.
pub fn canonical(parse: &Parse) -> String {
    let mut writer = Writer {
        out: String::new(),
        brackets: 0,
    };
    writer.stmts(parse.tree().statements(), Columns::top(), Named::Bound);
    if !writer.out.is_empty() {
        writer.push("\n");
    }
    crate::format_text(&writer.out)
}

/// Columns at a place, see [`crate::layout`].
#[derive(Clone, Copy)]
struct Columns {
    /// Of the block that a statement stands in.
    block: u32,
    /// Of what is under it.
    deeper: u32,
}

impl Columns {
    fn top() -> Columns {
        Columns {
            block: 0,
            deeper: INDENT,
        }
    }

    /// Those of a block under this place.
    fn inside(self) -> Columns {
        Columns {
            block: self.deeper,
            deeper: self.deeper + INDENT,
        }
    }

    /// The same block; what is under it a level deeper, since it is part of a chain of several lines.
    fn in_chain(self) -> Columns {
        Columns {
            block: self.block,
            deeper: self.deeper + INDENT,
        }
    }
}

/// What becomes of the statement `session name: agent`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// `let name = session: agent`
    Bound,
    /// It stays: it is a branch, or its name is declared again beside it, which `let` may not do.
    Kept,
}

struct Writer {
    out: String,
    /// Open brackets. Inside of them all is on one line.
    brackets: u32,
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn token(&mut self, token: Option<SyntaxToken>) {
        if let Some(token) = token {
            self.push(token.text());
        }
    }

    fn name(&mut self, name: Option<ast::Name>) {
        self.token(name.and_then(|it| it.token()));
    }

    fn line(&mut self, column: u32) {
        if !self.out.is_empty() {
            self.push("\n");
        }
        self.out.extend(std::iter::repeat_n(' ', column as usize));
    }

    /// Statements, each on a line of its own.
    fn stmts(&mut self, stmts: impl Iterator<Item = ast::Stmt>, at: Columns, named: Named) {
        let stmts: Vec<ast::Stmt> = stmts.collect();
        let mut declared: BTreeMap<String, usize> = BTreeMap::new();
        if stmts.iter().any(|it| named_session(it).is_some()) {
            for name in stmts.iter().flat_map(declared_by) {
                *declared.entry(name.text()).or_default() += 1;
            }
        }
        for stmt in &stmts {
            let again = named_session(stmt)
                .and_then(|it| it.binds())
                .and_then(|it| declared.get(&it.text()).copied())
                .is_some_and(|times| times > 1);
            if self.brackets == 0 {
                self.line(at.block);
            } else {
                self.push(" ");
            }
            self.stmt(stmt, at, if again { Named::Kept } else { named });
        }
    }

    fn body(&mut self, body: Option<ast::Body>, at: Columns) {
        self.body_of(body, at, Named::Bound);
    }

    fn body_of(&mut self, body: Option<ast::Body>, at: Columns, named: Named) {
        let Some(body) = body else { return };
        let at = if self.brackets == 0 { at.inside() } else { at };
        self.stmts(body.statements(), at, named);
    }

    fn stmt(&mut self, stmt: &ast::Stmt, at: Columns, named: Named) {
        match stmt {
            ast::Stmt::Use(it) => {
                self.push("use ");
                self.token(it.path().and_then(|it| it.token()));
                if it.alias().is_some() {
                    self.push(" as ");
                    self.name(it.alias());
                }
            }
            ast::Stmt::Import(it) => {
                self.push("import ");
                self.token(it.skill().and_then(|it| it.token()));
                self.push(" from ");
                self.token(it.source().and_then(|it| it.token()));
            }
            ast::Stmt::Input(it) => {
                self.push("input ");
                self.name(it.name());
                if let Some(value) = it.value() {
                    self.push(": ");
                    self.expr(&value, at);
                }
                self.modifiers(it.modifiers(), at);
            }
            ast::Stmt::Output(it) => {
                self.push("output ");
                if it.name().is_some() {
                    self.name(it.name());
                    self.push(if it.only_declares() { ": " } else { " = " });
                }
                self.value(it.value(), at);
            }
            ast::Stmt::Agent(it) => {
                self.push("agent ");
                self.name(it.name());
                self.push(":");
                self.properties(it.properties(), at.inside());
            }
            ast::Stmt::Block(it) => {
                self.push("block ");
                self.name(it.name());
                self.parameters(it.params());
                self.modifiers(it.modifiers(), at);
                self.push(":");
                self.body(it.body(), at);
            }
            ast::Stmt::Let(it) => {
                self.push(if it.is_const() { "const " } else { "let " });
                if let Some(pattern) = it.pattern() {
                    self.push("{ ");
                    for (index, name) in pattern.names().enumerate() {
                        self.push(if index > 0 { ", " } else { "" });
                        self.name(Some(name));
                    }
                    self.push(" }");
                } else {
                    self.name(it.name());
                }
                self.push(" = ");
                self.value(it.value(), at);
            }
            ast::Stmt::Assign(it) => {
                match it.target() {
                    Some(ast::Target::Name(it)) => self.token(it.token()),
                    Some(ast::Target::Field(it)) => self.expr(&it.into(), at),
                    Some(ast::Target::Index(it)) => self.expr(&it.into(), at),
                    Some(ast::Target::Computed(it)) => {
                        self.token(it.base());
                        self.push("{");
                        self.bracketed(|writer| writer.value(it.key(), at));
                        self.push("}");
                    }
                    None => {}
                }
                self.push(" = ");
                self.value(it.value(), at);
            }
            ast::Stmt::Throw(it) => self.leave("throw", it.value(), at),
            ast::Stmt::Return(it) if it.value().is_some() => self.leave("output", it.value(), at),
            ast::Stmt::Return(_) => self.push("return"),
            ast::Stmt::Break(_) => self.push("break"),
            ast::Stmt::Assert(it) => {
                self.push("assert ");
                self.value(it.condition(), at);
                if it.message().is_some() {
                    self.push(": ");
                    self.value(it.message(), at);
                }
            }
            ast::Stmt::Expr(it) => {
                if let Some(expr) = it.expr() {
                    self.expr_stmt(&expr, at, named);
                }
            }
        }
    }

    fn leave(&mut self, word: &str, value: Option<ast::Expr>, at: Columns) {
        self.push(word);
        if let Some(value) = value {
            self.push(" ");
            self.expr(&value, at);
        }
    }

    fn expr_stmt(&mut self, expr: &ast::Expr, at: Columns, named: Named) {
        let session = Session::read(expr).filter(|_| named == Named::Bound);
        match session.and_then(|it| Some((it.binds()?, it))) {
            Some((name, session)) => {
                self.push("let ");
                self.name(Some(name));
                self.push(" = ");
                self.session(&session.without_name(), at);
            }
            None => self.expr(expr, at),
        }
    }

    fn parameters(&mut self, list: Option<ast::ParamList>) {
        let Some(list) = list.filter(|it| it.params().next().is_some()) else {
            return;
        };
        self.push("(");
        for (index, param) in list.params().enumerate() {
            self.push(if index > 0 { ", " } else { "" });
            self.name(param.name());
        }
        self.push(")");
    }

    /// ` (name: value, …)`, if there are any.
    fn modifiers(&mut self, modifiers: impl Iterator<Item = ast::Modifier>, at: Columns) {
        let mut open = false;
        for it in modifiers {
            self.push(if open { ", " } else { " (" });
            open = true;
            self.bracketed(|writer| {
                if it.name().is_some() {
                    writer.name(it.name());
                    writer.push(": ");
                }
                match it.value() {
                    Some(ast::Expr::Object(object)) => match only_value(&object) {
                        Some(value) => writer.expr(&value, at),
                        None => writer.expr(&object.into(), at),
                    },
                    value => writer.value(value, at),
                }
            });
        }
        if open {
            self.push(")");
        }
    }

    fn bracketed(&mut self, write: impl FnOnce(&mut Writer)) {
        self.brackets += 1;
        write(self);
        self.brackets -= 1;
    }
}

/// A statement that is nothing but a session with a name.
fn named_session(stmt: &ast::Stmt) -> Option<Session> {
    let ast::Stmt::Expr(it) = stmt else { return None };
    Session::read(&it.expr()?).filter(|it| it.binds().is_some())
}

/// The names that a statement itself declares.
fn declared_by(stmt: &ast::Stmt) -> Vec<ast::Name> {
    match stmt {
        ast::Stmt::Input(it) => it.name().into_iter().collect(),
        ast::Stmt::Output(it) => it.name().into_iter().collect(),
        ast::Stmt::Let(it) => match it.pattern() {
            Some(pattern) => pattern.names().collect(),
            None => it.name().into_iter().collect(),
        },
        _ => named_session(stmt)
            .and_then(|it| it.binds())
            .into_iter()
            .collect(),
    }
}

/// The value in `{n}`.
fn only_value(object: &ast::ObjectExpr) -> Option<ast::Expr> {
    let mut fields = object.fields();
    let field = fields.next().filter(|it| it.key().is_none())?;
    match fields.next() {
        None => field.value(),
        Some(_) => None,
    }
}
