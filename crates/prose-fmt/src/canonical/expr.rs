//! Expressions, constructs among them.

use prose_syntax::{
    SyntaxKind::STRING,
    ast::{self, AstNode, HasBody, HasModifiers, PipeOpKind},
    text,
};

use super::{Columns, Named, Writer};

impl Writer {
    pub(super) fn value(&mut self, value: Option<ast::Expr>, at: Columns) {
        if let Some(value) = value {
            self.expr(&value, at);
        }
    }

    pub(super) fn expr(&mut self, expr: &ast::Expr, at: Columns) {
        match expr {
            ast::Expr::Session(it) => self.session(&it.into(), at),
            ast::Expr::Resume(it) => self.session(&it.into(), at),
            ast::Expr::Do(it) => {
                self.push("do:");
                self.body(it.body(), at);
            }
            ast::Expr::DoCall(it) => {
                self.push("do ");
                self.token(it.callee().and_then(|it| it.token()));
                self.arguments(it.args(), at);
            }
            ast::Expr::Parallel(it) => {
                self.push("parallel");
                self.modifiers(it.modifiers(), at);
                self.push(":");
                self.body_of(it.body(), at, Named::Kept);
            }
            ast::Expr::For(it) => self.for_(it, at),
            ast::Expr::Repeat(it) => {
                self.push("repeat ");
                self.value(it.count(), at);
                self.modifiers(it.modifiers(), at);
                self.as_name(it.index());
                self.push(":");
                self.body(it.body(), at);
            }
            ast::Expr::Loop(it) => {
                self.push("loop");
                if let Some(condition) = it.condition() {
                    self.push(if it.while_token().is_some() {
                        " while "
                    } else {
                        " until "
                    });
                    self.expr(&condition, at);
                }
                self.modifiers(it.modifiers(), at);
                self.as_name(it.index());
                self.push(":");
                self.body(it.body(), at);
            }
            ast::Expr::If(it) => self.if_(it, at),
            ast::Expr::Choice(it) => {
                self.push("choice ");
                self.value(it.condition(), at);
                self.push(":");
                let inside = at.inside();
                for option in it.options() {
                    self.clause(inside.block);
                    self.push("option ");
                    self.value(option.label(), inside);
                    self.push(":");
                    self.body(option.body(), inside);
                }
            }
            ast::Expr::Try(it) => self.try_(it, at),
            ast::Expr::Arrow(it) => self.arrow(it, at),
            ast::Expr::Pipe(it) => self.pipe(it, at),
            ast::Expr::Bin(it) => {
                self.value(it.lhs(), at);
                self.push(" ");
                match it.op() {
                    // They may be written as words.
                    Some(ast::BinOp::Eq) => self.push("=="),
                    Some(ast::BinOp::Ne) => self.push("!="),
                    _ => self.token(it.op_token()),
                }
                self.push(" ");
                self.value(it.rhs(), at);
            }
            ast::Expr::Prefix(it) => {
                self.push(if it.is_not() { "not " } else { "-" });
                self.value(it.operand(), at);
            }
            ast::Expr::Paren(it) => {
                self.push("(");
                self.bracketed(|writer| writer.value(it.inner(), at));
                self.push(")");
            }
            ast::Expr::Field(it) => {
                self.value(it.base(), at);
                self.push(".");
                self.name(it.field());
            }
            ast::Expr::Index(it) => {
                self.value(it.base(), at);
                self.push("[");
                self.bracketed(|writer| writer.value(it.index(), at));
                self.push("]");
            }
            ast::Expr::Call(it) => {
                self.value(it.callee(), at);
                self.push("(");
                self.elements(it.args().iter().flat_map(|it| it.args()), at);
                self.push(")");
            }
            ast::Expr::List(it) => self.list(it.elements(), at),
            ast::Expr::Object(it) => self.object(it, at),
            ast::Expr::Literal(it) => self.token(it.token()),
            ast::Expr::Discretion(it) => self.discretion(it),
            ast::Expr::Name(it) => self.token(it.token()),
        }
    }

    fn as_name(&mut self, name: Option<ast::Name>) {
        if name.is_some() {
            self.push(" as ");
            self.name(name);
        }
    }

    /// Where a clause begins: on a line of its own, if lines count.
    fn clause(&mut self, column: u32) {
        match self.brackets {
            0 => self.line(column),
            _ => self.push(" "),
        }
    }

    fn for_(&mut self, it: &ast::ForExpr, at: Columns) {
        self.push(if it.parallel_token().is_some() {
            "parallel for "
        } else {
            "for "
        });
        self.name(it.item());
        if it.index().is_some() {
            self.push(", ");
            self.name(it.index());
        }
        self.push(" in ");
        self.value(it.collection(), at);
        self.modifiers(it.modifiers(), at);
        self.push(":");
        self.body(it.body(), at);
    }

    fn if_(&mut self, it: &ast::IfExpr, at: Columns) {
        self.push("if ");
        self.value(it.condition(), at);
        self.push(":");
        self.body(it.body(), at);
        for elif in it.elifs() {
            self.clause(at.block);
            self.push("elif ");
            self.value(elif.condition(), at);
            self.push(":");
            self.body(elif.body(), at);
        }
        if let Some(clause) = it.else_clause() {
            self.clause(at.block);
            self.push("else:");
            self.body(clause.body(), at);
        }
    }

    fn try_(&mut self, it: &ast::TryExpr, at: Columns) {
        self.push("try:");
        self.body(it.body(), at);
        for catch in it.catches() {
            self.clause(at.block);
            self.push("catch");
            self.as_name(catch.name());
            self.push(":");
            self.body(catch.body(), at);
        }
        if let Some(clause) = it.finally_clause() {
            self.clause(at.block);
            self.push("finally:");
            self.body(clause.body(), at);
        }
    }

    /// Each step on a line of its own if one before the last has lines under it.
    fn arrow(&mut self, it: &ast::ArrowExpr, at: Columns) {
        let mut steps: Vec<ast::Expr> = it.steps().collect();
        let last = steps.pop();
        let written: Vec<String> = steps.iter().map(|step| self.first_part(step, at)).collect();
        let broken = self.brackets == 0 && written.iter().any(|it| it.contains('\n'));
        for (index, step) in written.iter().enumerate() {
            if index > 0 {
                self.arrow_sign(broken, at);
            }
            self.push(step);
        }
        if let Some(last) = last {
            if !written.is_empty() {
                self.arrow_sign(broken, at);
            }
            self.expr(&last, if broken { at.in_chain() } else { at });
        }
    }

    fn arrow_sign(&mut self, broken: bool, at: Columns) {
        if broken {
            self.line(at.deeper);
            self.push("-> ");
        } else {
            self.push(" -> ");
        }
    }

    /// One operation stays on its line; several get a line each, since their bodies are below them.
    fn pipe(&mut self, it: &ast::PipeExpr, at: Columns) {
        let ops: Vec<ast::PipeOp> = it.ops().collect();
        let input = it.input().map(|input| self.first_part(&input, at));
        let input = input.unwrap_or_default();
        self.push(&input);
        if self.brackets > 0 || (ops.len() == 1 && !input.contains('\n')) {
            for op in &ops {
                self.push(" ");
                self.pipe_op(op, at);
            }
            return;
        }
        for op in &ops {
            self.line(at.deeper);
            self.pipe_op(op, at.in_chain());
        }
    }

    /// What stands in a chain before its last part, by itself. If it has lines under it, the chain has several lines; if not, its
    /// columns don't matter. So it is written once: twice at each level would be without end in nested chains.
    fn first_part(&mut self, expr: &ast::Expr, at: Columns) -> String {
        let from = self.out.len();
        self.expr(expr, if self.brackets > 0 { at } else { at.in_chain() });
        self.out.split_off(from)
    }

    fn pipe_op(&mut self, op: &ast::PipeOp, at: Columns) {
        self.push("| ");
        self.token(op.op_token());
        if op.kind() == Some(PipeOpKind::Chunks) {
            self.arguments(op.args(), at);
            return;
        }
        self.parameters(op.params());
        self.push(":");
        self.body(op.body(), at);
    }

    fn arguments(&mut self, list: Option<ast::ArgList>, at: Columns) {
        self.push("(");
        self.elements(list.iter().flat_map(|it| it.args()), at);
        self.push(")");
    }

    fn elements(&mut self, args: impl Iterator<Item = ast::Arg>, at: Columns) {
        self.bracketed(|writer| {
            for (index, arg) in args.enumerate() {
                writer.push(if index > 0 { ", " } else { "" });
                if arg.name().is_some() {
                    writer.name(arg.name());
                    writer.push(": ");
                }
                writer.value(arg.value(), at);
            }
        });
    }

    pub(super) fn list(&mut self, elements: impl Iterator<Item = ast::Expr>, at: Columns) {
        self.push("[");
        self.bracketed(|writer| {
            for (index, element) in elements.enumerate() {
                writer.push(if index > 0 { ", " } else { "" });
                writer.expr(&element, at);
            }
        });
        self.push("]");
    }

    fn object(&mut self, it: &ast::ObjectExpr, at: Columns) {
        self.push("{");
        self.bracketed(|writer| {
            for (index, field) in it.fields().enumerate() {
                writer.push(if index > 0 { ", " } else { " " });
                if let Some(key) = field.key() {
                    writer.key(&key);
                    writer.push(": ");
                }
                writer.value(field.value(), at);
            }
        });
        self.push(if it.fields().next().is_some() { " }" } else { "}" });
    }

    /// A key, without quotes where it needs none.
    pub(super) fn key(&mut self, key: &ast::Name) {
        let Some(token) = key.token() else { return };
        let bare = match token.kind() {
            STRING => token.text().trim_matches('"'),
            _ => token.text(),
        };
        self.push(if text::is_name(bare) { bare } else { token.text() });
    }

    /// Over several lines with three stars.
    fn discretion(&mut self, it: &ast::DiscretionExpr) {
        let Some(token) = it.token() else { return };
        let text = token.text();
        if !token.is_block() && text.contains(['\n', '\r']) && !text.contains('*') {
            self.push("***");
            self.push(&text);
            self.push("***");
        } else {
            self.push(it.syntax().text().to_string().as_str());
        }
    }
}
