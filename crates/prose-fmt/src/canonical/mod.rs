//! The canonical form: every construct in the one spelling of the grammar, without comments. It means what the program
//! means.

mod expr;
mod session;

use prose_syntax::{
    Parse, SyntaxToken,
    ast::{self, HasBody, HasModifiers, HasProperties},
};

use self::session::Session;
use crate::layout::INDENT;

/// The canonical form of a program without syntax errors. What a broken tree lacks is missing in the form, too.
///
/// Meaning is kept but for one thing that can't be seen in a run: `session name: agent` becomes
/// `let name = session: agent`.
pub fn canonical(parse: &Parse) -> String {
    let mut writer = Writer {
        out: String::new(),
        brackets: 0,
    };
    writer.stmts(parse.tree().statements(), Columns::top(), false);
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

    /// Statements, each on a line of its own. `branches`: those of `parallel:`.
    fn stmts(&mut self, stmts: impl Iterator<Item = ast::Stmt>, at: Columns, branches: bool) {
        for stmt in stmts {
            self.line(at.block);
            self.stmt(&stmt, at, branches);
        }
    }

    fn body(&mut self, body: Option<ast::Body>, at: Columns) {
        self.body_of(body, at, false);
    }

    fn body_of(&mut self, body: Option<ast::Body>, at: Columns, branches: bool) {
        let Some(body) = body else { return };
        if self.brackets == 0 {
            self.stmts(body.statements(), at.inside(), branches);
            return;
        }
        for stmt in body.statements() {
            self.push(" ");
            self.stmt(&stmt, at, branches);
        }
    }

    fn stmt(&mut self, stmt: &ast::Stmt, at: Columns, branch: bool) {
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
                    self.expr_stmt(&expr, at, branch);
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

    /// A session that names its result binds it as `let` does. A branch of `parallel:` keeps its form.
    fn expr_stmt(&mut self, expr: &ast::Expr, at: Columns, branch: bool) {
        let session: Session = match expr {
            ast::Expr::Session(it) if !branch => it.into(),
            ast::Expr::Resume(it) if !branch => it.into(),
            _ => return self.expr(expr, at),
        };
        match session.binds() {
            Some(name) => {
                self.push("let ");
                self.name(Some(name));
                self.push(" = ");
                self.session(&session, false, at);
            }
            None => self.session(&session, true, at),
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

/// The value in `{n}`.
fn only_value(object: &ast::ObjectExpr) -> Option<ast::Expr> {
    let mut fields = object.fields();
    let field = fields.next().filter(|it| it.key().is_none())?;
    match fields.next() {
        None => field.value(),
        Some(_) => None,
    }
}
