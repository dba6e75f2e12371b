//! From the tree to [`crate::hir`].

use prose_model::BinaryOp;

use crate::Name;
use prose_syntax::ast::{
    self, DiscretionToken, HasBody, HasModifiers, HasProperties, Inner, Leaf, LiteralKind, Node, PipeOpKind,
    PropertyValue, StringToken, Target, Token, View,
};
use prose_syntax::text::{self, Interpolation, NamePart, PathStep, Segment};
use prose_syntax::{NodeOrToken, TextRange, TextSize};

use crate::hir::*;

/// Reads the statements of a chunk's tree.
pub(crate) fn chunk_body(read: &prose_syntax::Reading<'_>) -> ChunkBody {
    let mut cx = Build {
        depth: 0,
        too_deep: Vec::new(),
    };
    let stmts = stmts(&mut cx, read.root().statements());
    ChunkBody {
        stmts,
        too_deep: cx.too_deep,
        errors: read.errors().into(),
    }
}

/// Deepest nesting of expressions. Everything that follows recurses over them: checks, lowering, the machine, the stored
/// bundle; people write less than twenty.
const MAX_DEPTH: usize = 100;

struct Build {
    depth: usize,
    too_deep: Vec<TextRange>,
}

impl Build {
    /// Goes one level down, unless that is too deep.
    fn deeper<T>(&mut self, range: TextRange, read: impl FnOnce(&mut Build) -> T) -> Option<T> {
        if self.depth == MAX_DEPTH {
            self.too_deep.push(range);
            return None;
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        Some(out)
    }
}

fn range(view: &impl View) -> TextRange {
    view.node().text_range()
}

fn ident(token: &Leaf<'_>) -> Ident {
    Ident {
        name: Name::new(token.text()),
        range: token.text_range(),
    }
}

fn name(node: Option<ast::Name<Inner<'_>>>) -> Option<Ident> {
    let token = node?.token()?;
    Some(match StringToken::cast(token) {
        Some(string) => Ident {
            name: string.text().into(),
            range: token.text_range(),
        },
        None => ident(&token),
    })
}

fn name_ref(node: Option<ast::NameRef<Inner<'_>>>) -> Option<Ident> {
    node?.token().as_ref().map(ident)
}

/// Reads one after the other into a list without room for more: what is read stays in memory for as long as its file is known, and
/// most lists are short. Nodes are counted first, which costs less than growing.
fn list<N, T>(nodes: impl Iterator<Item = N> + Clone, mut read: impl FnMut(N) -> Option<T>) -> Vec<T> {
    let count = nodes.clone().count();
    let mut out = Vec::with_capacity(count);
    nodes.for_each(|it| out.extend(read(it)));
    if out.len() < count {
        out.shrink_to_fit();
    }
    out
}

fn stmts<'a>(cx: &mut Build, nodes: impl Iterator<Item = ast::Stmt<Inner<'a>>> + Clone) -> Vec<Stmt> {
    list(nodes, |it| match &it {
        // `output name: "what it is"` only tells the reader something.
        ast::Stmt::Output(it) if it.only_declares() => None,
        it => Some(stmt(cx, it)),
    })
}

fn stmt(cx: &mut Build, node: &ast::Stmt<Inner<'_>>) -> Stmt {
    let kind = match node {
        ast::Stmt::Use(it) => StmtKind::Use(UseDef {
            target: it
                .path()
                .and_then(|it| it.string())
                .map(|it| (it.text(), it.content_range())),
            alias: name(it.alias()),
        }),
        ast::Stmt::Import(it) => StmtKind::SkillImport {
            skill: it
                .skill()
                .and_then(|it| it.string())
                .map(|it| (it.text(), it.text_range())),
            source: it
                .source()
                .and_then(|it| it.string())
                .map(|it| (it.text(), it.content_range())),
        },
        ast::Stmt::Agent(it) => StmtKind::Agent(AgentDef {
            name: name(it.name()),
            props: props(cx, it.properties()),
        }),
        ast::Stmt::Block(it) => StmtKind::Block(Box::new(BlockDef {
            name: name(it.name()),
            params: params(it.params()),
            mods: mods(cx, it.modifiers()),
            body: body(cx, it.body(), it.node()),
        })),
        executable => StmtKind::Expr(Expr {
            range: range(node),
            kind: executable_kind(cx, executable),
        }),
    };
    Stmt {
        range: range(node),
        kind,
    }
}

fn executable_kind(cx: &mut Build, node: &ast::Stmt<Inner<'_>>) -> ExprKind {
    match node {
        ast::Stmt::Input(it) => ExprKind::Input {
            name: name(it.name()),
            value: it.value().map(|it| Box::new(expr(cx, &it))),
            default: it.default().map(|it| Box::new(expr(cx, &it))),
        },
        ast::Stmt::Output(it) => match name(it.name()) {
            Some(name) => ExprKind::Output {
                name,
                value: boxed(cx, it.value(), it.node()),
            },
            None => ExprKind::Return {
                is_return: false,
                value: it.value().map(|it| Box::new(expr(cx, &it))),
            },
        },
        ast::Stmt::Let(it) => {
            let target = match (name(it.name()), it.pattern()) {
                (_, Some(pattern)) => LetTarget::Record(list(pattern.names(), |it| name(Some(it)))),
                (Some(name), None) => LetTarget::Name(name),
                (None, None) => LetTarget::Missing,
            };
            ExprKind::Let {
                constant: it.is_const(),
                target,
                value: boxed(cx, it.value(), it.node()),
            }
        }
        ast::Stmt::Assign(it) => match it.target().and_then(|it| assign_target(cx, &it)) {
            Some((name, path, computed)) => ExprKind::Assign {
                name,
                path,
                computed,
                value: boxed(cx, it.value(), it.node()),
            },
            // Something that can't be assigned to was reported by the parser; its value still runs.
            None => opt_expr(cx, it.value(), it.node()).kind,
        },
        ast::Stmt::Throw(it) => ExprKind::Throw(it.value().map(|it| Box::new(expr(cx, &it)))),
        ast::Stmt::Return(it) => ExprKind::Return {
            is_return: true,
            value: it.value().map(|it| Box::new(expr(cx, &it))),
        },
        ast::Stmt::Break(_) => ExprKind::Break,
        ast::Stmt::Assert(it) => ExprKind::Assert {
            cond: boxed(cx, it.condition(), it.node()),
            message: it.message().map(|it| Box::new(expr(cx, &it))),
        },
        ast::Stmt::Expr(it) => opt_expr(cx, it.expr(), it.node()).kind,
        ast::Stmt::Use(_) | ast::Stmt::Import(_) | ast::Stmt::Agent(_) | ast::Stmt::Block(_) => {
            ExprKind::Missing
        }
    }
}

/// The variable, the path below it, and whether it is written `name_{v}`.
fn assign_target(cx: &mut Build, target: &Target<Inner<'_>>) -> Option<(Ident, Vec<Expr>, bool)> {
    match target {
        Target::Name(it) => Some((name_ref(Some(it.clone()))?, Vec::new(), false)),
        Target::Computed(it) => {
            let base = ident(&it.base()?);
            Some((base, it.key().iter().map(|it| expr(cx, it)).collect(), true))
        }
        Target::Field(it) => {
            let (root, mut path) = place(cx, &it.base()?)?;
            path.push(key_text(&name(it.field())?));
            Some((root, path, false))
        }
        Target::Index(it) => {
            let (root, mut path) = place(cx, &it.base()?)?;
            path.push(opt_expr(cx, it.index(), it.node()));
            Some((root, path, false))
        }
    }
}

fn place(cx: &mut Build, node: &ast::Expr<Inner<'_>>) -> Option<(Ident, Vec<Expr>)> {
    match node {
        ast::Expr::Name(it) => Some((name_ref(Some(it.clone()))?, Vec::new())),
        ast::Expr::Field(it) => {
            let (root, mut path) = place(cx, &it.base()?)?;
            path.push(key_text(&name(it.field())?));
            Some((root, path))
        }
        ast::Expr::Index(it) => {
            let (root, mut path) = place(cx, &it.base()?)?;
            path.push(opt_expr(cx, it.index(), it.node()));
            Some((root, path))
        }
        ast::Expr::Paren(it) => place(cx, &it.inner()?),
        _ => None,
    }
}

/// A field's name as the text that selects it.
fn key_text(key: &Ident) -> Expr {
    let text = Template {
        range: key.range,
        content: key.range,
        parts: Box::new([Part::Text(key.name.as_str().into())]),
    };
    Expr {
        range: key.range,
        kind: ExprKind::Text(text),
    }
}

/// The statements below a header; without any, an empty place behind it.
fn body(cx: &mut Build, node: Option<ast::Body<Inner<'_>>>, header: &Inner<'_>) -> Body {
    match node {
        Some(node) => {
            let range = range(&node);
            let stmts = cx.deeper(range, |cx| stmts(cx, node.statements()));
            Body {
                range,
                stmts: stmts.unwrap_or_default(),
            }
        }
        None => Body {
            range: TextRange::empty(header.text_range().end()),
            ..Body::default()
        },
    }
}

fn params(node: Option<ast::ParamList<Inner<'_>>>) -> Vec<Ident> {
    node.map(|it| list(it.params(), |it| name(it.name())))
        .unwrap_or_default()
}

fn mods<'a>(cx: &mut Build, nodes: impl Iterator<Item = ast::Modifier<Inner<'a>>> + Clone) -> Vec<Modifier> {
    list(nodes, |it| {
        Some(Modifier {
            name: name(it.name()),
            value: it.value().map(|it| expr(cx, &it)),
            range: range(&it),
        })
    })
}

fn args(cx: &mut Build, node: Option<ast::ArgList<Inner<'_>>>) -> Vec<Argument> {
    let Some(args) = node else { return Vec::new() };
    list(args.args(), |it| {
        Some(Argument {
            name: name(it.name()),
            value: opt_expr(cx, it.value(), it.node()),
        })
    })
}

fn props<'a>(cx: &mut Build, nodes: impl Iterator<Item = ast::Property<Inner<'a>>> + Clone) -> Vec<Property> {
    list(nodes, |it| {
        let key = name(it.key())?;
        let value = match it.value() {
            None => PropValue::Missing,
            Some(PropertyValue::Expr(it)) => PropValue::Expr(expr(cx, &it)),
            Some(PropertyValue::Nested(it)) => PropValue::Nested(props(cx, it.properties()), range(&it)),
            Some(PropertyValue::Dashes(it)) => {
                PropValue::Dashes(list(it.items(), |it| Some(expr(cx, &it.value()?))), range(&it))
            }
            Some(PropertyValue::Block(it)) => match it.string() {
                Some(string) => PropValue::Block(template(&string)),
                None => PropValue::Missing,
            },
            Some(PropertyValue::Word(it)) => PropValue::Word(Ident {
                name: it.text().trim().into(),
                range: range(&it),
            }),
        };
        Some(Property {
            key,
            range: range(&it),
            value,
        })
    })
}

fn boxed(cx: &mut Build, node: Option<ast::Expr<Inner<'_>>>, parent: &Inner<'_>) -> Box<Expr> {
    Box::new(opt_expr(cx, node, parent))
}

fn opt_expr(cx: &mut Build, node: Option<ast::Expr<Inner<'_>>>, parent: &Inner<'_>) -> Expr {
    match node {
        Some(node) => expr(cx, &node),
        None => Expr {
            range: TextRange::empty(parent.text_range().end()),
            kind: ExprKind::Missing,
        },
    }
}

/// Reads an expression.
fn expr(cx: &mut Build, node: &ast::Expr<Inner<'_>>) -> Expr {
    let range = range(node);
    Expr {
        range,
        kind: cx
            .deeper(range, |cx| expr_kind(cx, node))
            .unwrap_or(ExprKind::Missing),
    }
}

fn expr_kind(cx: &mut Build, node: &ast::Expr<Inner<'_>>) -> ExprKind {
    let syntax = node.node();
    match node {
        ast::Expr::Session(it) => ExprKind::Session(Box::new(Session {
            resume: false,
            keyword: it.keyword().map_or(range(it), |it| it.text_range()),
            name: name(it.name()),
            agent: name_ref(it.agent()),
            text: it.text().and_then(|it| it.string()).map(|it| template(&it)),
            props: props(cx, it.properties()),
            mods: mods(cx, it.modifiers()),
        })),
        ast::Expr::Resume(it) => ExprKind::Session(Box::new(Session {
            resume: true,
            keyword: it.keyword().map_or(range(it), |it| it.text_range()),
            name: name(it.name()),
            agent: name_ref(it.agent()),
            text: it.text().and_then(|it| it.string()).map(|it| template(&it)),
            props: props(cx, it.properties()),
            mods: Vec::new(),
        })),
        ast::Expr::Do(it) => ExprKind::Do(body(cx, it.body(), it.node())),
        ast::Expr::DoCall(it) => ExprKind::DoCall {
            callee: name_ref(it.callee()),
            args: args(cx, it.args()),
        },
        ast::Expr::Parallel(it) => ExprKind::Parallel {
            mods: mods(cx, it.modifiers()),
            body: Box::new(body(cx, it.body(), it.node())),
        },
        ast::Expr::For(it) => ExprKind::For(Box::new(For {
            parallel: it.parallel_token().is_some(),
            item: name(it.item()),
            index: name(it.index()),
            source: opt_expr(cx, it.collection(), syntax),
            mods: mods(cx, it.modifiers()),
            body: body(cx, it.body(), it.node()),
        })),
        ast::Expr::Repeat(it) => ExprKind::Repeat {
            count: boxed(cx, it.count(), syntax),
            index: name(it.index()),
            mods: mods(cx, it.modifiers()),
            body: Box::new(body(cx, it.body(), it.node())),
        },
        ast::Expr::Loop(it) => ExprKind::Loop(Box::new(Loop {
            until: it.while_token().is_none(),
            cond: it.condition().map(|it| expr(cx, &it)),
            mods: mods(cx, it.modifiers()),
            index: name(it.index()),
            body: body(cx, it.body(), it.node()),
        })),
        ast::Expr::If(it) => {
            let mut arms = Vec::with_capacity(1 + it.elifs().count());
            arms.push((
                opt_expr(cx, it.condition(), syntax),
                body(cx, it.body(), it.node()),
            ));
            arms.extend(it.elifs().map(|it| {
                (
                    opt_expr(cx, it.condition(), it.node()),
                    body(cx, it.body(), it.node()),
                )
            }));
            ExprKind::If {
                arms,
                otherwise: it
                    .else_clause()
                    .map(|it| Box::new(body(cx, it.body(), it.node()))),
            }
        }
        ast::Expr::Choice(it) => ExprKind::Choice {
            criteria: boxed(cx, it.condition(), syntax),
            options: it.options().iter().map(|it| choice_option(cx, it)).collect(),
        },
        ast::Expr::Try(it) => ExprKind::Try {
            body: Box::new(body(cx, it.body(), it.node())),
            catches: list(it.catches(), |it| {
                Some((name(it.name()), body(cx, it.body(), it.node())))
            }),
            finally: it
                .finally_clause()
                .map(|it| Box::new(body(cx, it.body(), it.node()))),
        },
        ast::Expr::Arrow(it) => ExprKind::Arrow(list(it.steps(), |it| Some(expr(cx, &it)))),
        ast::Expr::Pipe(it) => ExprKind::Pipeline {
            source: boxed(cx, it.input(), syntax),
            stages: list(it.ops(), |it| Some(stage(cx, &it))),
        },
        ast::Expr::Bin(it) => {
            let (lhs, rhs) = (boxed(cx, it.lhs(), syntax), boxed(cx, it.rhs(), syntax));
            match it.op() {
                Some(op) => ExprKind::Binary {
                    op: binary_op(op),
                    lhs,
                    rhs,
                },
                None => lhs.kind,
            }
        }
        ast::Expr::Prefix(it) => {
            let operand = boxed(cx, it.operand(), syntax);
            if it.is_not() {
                ExprKind::Not(operand)
            } else {
                ExprKind::Neg(operand)
            }
        }
        ast::Expr::Paren(it) => opt_expr(cx, it.inner(), syntax).kind,
        ast::Expr::Field(it) => match name(it.field()) {
            Some(key) => ExprKind::Member {
                of: boxed(cx, it.base(), syntax),
                key,
            },
            None => opt_expr(cx, it.base(), syntax).kind,
        },
        ast::Expr::Index(it) => ExprKind::Index {
            of: boxed(cx, it.base(), syntax),
            index: boxed(cx, it.index(), syntax),
        },
        ast::Expr::Call(it) => {
            let callee = match it.callee().map(ast::Expr::unparen) {
                Some(ast::Expr::Name(it)) => name_ref(Some(it)),
                _ => None,
            };
            ExprKind::Call {
                callee,
                args: args(cx, it.args()),
            }
        }
        ast::Expr::List(it) => ExprKind::List {
            items: list(it.elements(), |it| Some(expr(cx, &it))),
            bracketed: it.is_bracketed(),
        },
        ast::Expr::Object(it) => ExprKind::Record(list(it.fields(), |it| field(cx, &it))),
        ast::Expr::Literal(it) => match it.kind() {
            Some(LiteralKind::String(string)) => ExprKind::Text(template(&string)),
            Some(LiteralKind::Number(number)) => ExprKind::Number(number),
            Some(LiteralKind::Duration(text)) => ExprKind::Duration(text),
            Some(LiteralKind::Bool(value)) => ExprKind::Bool(value),
            Some(LiteralKind::Null) => ExprKind::Null,
            None => ExprKind::Missing,
        },
        ast::Expr::Discretion(it) => match it.token() {
            Some(token) => discretion(&token),
            None => ExprKind::Missing,
        },
        ast::Expr::Name(it) => match it.token() {
            Some(token) => ExprKind::Name(Name::new(token.text())),
            None => ExprKind::Missing,
        },
    }
}

fn field(cx: &mut Build, node: &ast::ObjectField<Inner<'_>>) -> Option<Field> {
    let value = node.value();
    let key = match name(node.key()) {
        Some(key) => key,
        None => {
            let text = node.key_text().unwrap_or_else(|| spelled(node.node()));
            Ident {
                name: text.trim().into(),
                range: range(node),
            }
        }
    };
    Some(Field {
        key,
        value: opt_expr(cx, value, node.node()),
    })
}

/// The tokens of a field without a name, or of a label that is no text, which they name: neither blanks and comments, nor the comma that may end a list, so
/// that formatting renames nothing. Words stay apart.
fn spelled(node: &Inner<'_>) -> String {
    let mut out = String::new();
    spell(node, &mut out);
    out
}

fn spell(node: &Inner<'_>, out: &mut String) {
    for element in node.elements() {
        let token = match element {
            NodeOrToken::Node(it) => {
                spell(&it, out);
                continue;
            }
            NodeOrToken::Token(it) => it,
        };
        if token.kind().is_trivia() {
            continue;
        }
        let text = token.text();
        if text.starts_with([']', '}', ')']) && out.ends_with(',') {
            out.pop();
        }
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '"';
        if out.ends_with(word) && text.starts_with(word) {
            out.push(' ');
        }
        out.push_str(text);
    }
}

fn choice_option(cx: &mut Build, node: &ast::ChoiceOption<Inner<'_>>) -> ChoiceOption {
    let label = node.label();
    let text = match &label {
        Some(ast::Expr::Literal(it)) => it.string().map(|it| it.text()),
        Some(ast::Expr::Discretion(it)) => it.token().map(|it| it.text().trim().to_owned()),
        _ => None,
    };
    let template = match &label {
        Some(ast::Expr::Literal(it)) => it.string().map(|it| template(&it)),
        _ => None,
    };
    ChoiceOption {
        text: template,
        label: text
            .or_else(|| label.as_ref().map(|it| spelled(it.node())))
            .unwrap_or_default(),
        range: label.map_or_else(|| range(node), |it| range(&it)),
        body: body(cx, node.body(), node.node()),
    }
}

fn stage(cx: &mut Build, node: &ast::PipeOp<Inner<'_>>) -> Stage {
    let kind = match node.kind() {
        Some(PipeOpKind::Map) => StageKind::Map(body(cx, node.body(), node.node())),
        Some(PipeOpKind::Filter) => StageKind::Filter(body(cx, node.body(), node.node())),
        Some(PipeOpKind::Pmap) => StageKind::Pmap(body(cx, node.body(), node.node())),
        Some(PipeOpKind::Reduce) => StageKind::Reduce {
            params: params(node.params()),
            body: body(cx, node.body(), node.node()),
        },
        Some(PipeOpKind::Chunks) => StageKind::Chunks(
            args(cx, node.args())
                .into_iter()
                .next()
                .map(|it| Box::new(it.value)),
        ),
        None => StageKind::Missing,
    };
    let word = node.op_token().map_or(range(node), |it| it.text_range());
    Stage {
        range: range(node),
        word,
        kind,
    }
}

fn binary_op(op: ast::BinOp) -> BinaryOp {
    match op {
        ast::BinOp::Or => BinaryOp::Or,
        ast::BinOp::And => BinaryOp::And,
        ast::BinOp::Eq => BinaryOp::Eq,
        ast::BinOp::Ne => BinaryOp::Ne,
        ast::BinOp::Lt => BinaryOp::Lt,
        ast::BinOp::Gt => BinaryOp::Gt,
        ast::BinOp::Le => BinaryOp::Le,
        ast::BinOp::Ge => BinaryOp::Ge,
        ast::BinOp::Add => BinaryOp::Add,
        ast::BinOp::Sub => BinaryOp::Sub,
    }
}

fn template(string: &StringToken<Leaf<'_>>) -> Template {
    Template {
        range: string.text_range(),
        content: string.content_range(),
        parts: parts(string.syntax()).into(),
    }
}

fn discretion(token: &DiscretionToken<Leaf<'_>>) -> ExprKind {
    let text = token.text();
    let bare = token.as_name().map(|name| {
        let lead = TextSize::of(&text[..text.len() - text.trim_start().len()]);
        let start = token.content_range().start() + lead;
        Ident {
            range: TextRange::at(start, TextSize::of(name.as_str())),
            name: name.into(),
        }
    });
    let mut parts = parts(token.syntax());
    trim(&mut parts);
    ExprKind::Judge {
        text: Template {
            range: token.text_range(),
            content: token.content_range(),
            parts: parts.into(),
        },
        bare,
    }
}

/// A discretion's outer whitespace is layout, not part of what is asked.
fn trim(parts: &mut Vec<Part>) {
    if let Some(Part::Text(text)) = parts.first_mut() {
        *text = text.trim_start().into();
    }
    if let Some(Part::Text(text)) = parts.last_mut() {
        *text = text.trim_end().into();
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
}

fn parts(token: &Leaf<'_>) -> Vec<Part> {
    match text::plain(token.kind(), token.text()) {
        Some("") => return Vec::new(),
        Some(plain) => return vec![Part::Text(plain.into())],
        None => {}
    }
    text::segments(token.kind(), token.text(), token.text_range().start())
        .into_iter()
        .map(|segment| match segment {
            Segment::Text { text, .. } => Part::Text(text.into()),
            Segment::Interpolation(it) => {
                let local = it.range - token.text_range().start();
                Part::Insert(Box::new(Insert {
                    range: it.range,
                    verbatim: token.text()[local].into(),
                    value: insert(it),
                }))
            }
        })
        .collect()
}

fn insert(it: Interpolation) -> Expr {
    /// The `]` right behind an index.
    const BRACKET: TextSize = TextSize::new(1);
    let word = |part: NamePart| Ident {
        name: part.name.into(),
        range: part.range,
    };
    let root = word(it.root);
    let start = root.range.start();
    let mut value = Expr {
        range: root.range,
        kind: ExprKind::Name(root.name),
    };
    for step in it.path {
        let (end, kind) = match step {
            PathStep::Field(part) => {
                let key = word(part);
                (
                    key.range.end(),
                    ExprKind::Member {
                        of: Box::new(value),
                        key,
                    },
                )
            }
            PathStep::Index { index, range } => {
                let index = Expr {
                    range,
                    kind: ExprKind::Number(index as f64),
                };
                (
                    range.end() + BRACKET,
                    ExprKind::Index {
                        of: Box::new(value),
                        index: Box::new(index),
                    },
                )
            }
            PathStep::IndexName(part) => {
                let part = word(part);
                let index = Expr {
                    range: part.range,
                    kind: ExprKind::Name(part.name),
                };
                (
                    part.range.end() + BRACKET,
                    ExprKind::Index {
                        of: Box::new(value),
                        index: Box::new(index),
                    },
                )
            }
        };
        value = Expr {
            range: TextRange::new(start, end),
            kind,
        };
    }
    value
}
