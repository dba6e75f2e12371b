//! The program as checks and lowering read it: one step away from the tree, with nothing decided yet about names.
//!
//! Every range counts from the start of the chunk.

use prose_model::BinaryOp;

use crate::Name;
use prose_syntax::TextRange;

/// A word with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// The word.
    pub name: Name,
    /// Its range.
    pub range: TextRange,
}

/// The statements of a chunk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChunkBody {
    /// In order.
    pub stmts: Vec<Stmt>,
    /// What was left out because it is nested too deeply.
    pub too_deep: Vec<TextRange>,
    /// What the parser found, in the order of the text.
    pub errors: Box<[prose_syntax::SyntaxError]>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// From its first to its last token.
    pub range: TextRange,
    /// What it is.
    pub kind: StmtKind,
}

/// Kinds of statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// `use`
    Use(UseDef),
    /// `import "skill" from "source"` (legacy): declares a skill.
    SkillImport {
        /// The skill's name.
        skill: Option<(String, TextRange)>,
        /// Where it comes from, and the range between its quotes.
        source: Option<(String, TextRange)>,
    },
    /// `agent`
    Agent(AgentDef),
    /// `block`
    Block(Box<BlockDef>),
    /// Anything that is executed.
    Expr(Expr),
}

/// `use "target" as alias`
#[derive(Debug, Clone, PartialEq)]
pub struct UseDef {
    /// The target as written, and the range between its quotes.
    pub target: Option<(String, TextRange)>,
    /// The name after `as`.
    pub alias: Option<Ident>,
}

/// `agent name:`
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDef {
    /// Its name.
    pub name: Option<Ident>,
    /// Its properties.
    pub props: Vec<Property>,
}

/// `block name(params) (mods):`
#[derive(Debug, Clone, PartialEq)]
pub struct BlockDef {
    /// Its name.
    pub name: Option<Ident>,
    /// Its parameters.
    pub params: Vec<Ident>,
    /// `(max_depth: 50)`
    pub mods: Vec<Modifier>,
    /// The statements.
    pub body: Body,
}

/// Statements under a `:`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// The whole body; empty when it is missing.
    pub range: TextRange,
    /// In order.
    pub stmts: Vec<Stmt>,
}

/// `key: value`
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The key.
    pub key: Ident,
    /// The whole property.
    pub range: TextRange,
    /// The value.
    pub value: PropValue,
}

/// What stands after a property's colon.
#[derive(Debug, Clone, PartialEq)]
pub enum PropValue {
    /// Nothing.
    Missing,
    /// An expression.
    Expr(Expr),
    /// Indented `k: v` lines.
    Nested(Vec<Property>, TextRange),
    /// `- a` lines.
    Dashes(Vec<Expr>, TextRange),
    /// `|` and indented lines.
    Block(Template),
    /// A raw word such as `gpt-4.1`.
    Word(Ident),
}

/// `name: value` or a bare value in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub struct Modifier {
    /// The name.
    pub name: Option<Ident>,
    /// The value.
    pub value: Option<Expr>,
    /// The whole modifier.
    pub range: TextRange,
}

/// Text with interpolations.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The token, delimiters included.
    pub range: TextRange,
    /// Between the delimiters.
    pub content: TextRange,
    /// In order; escapes resolved, dedented.
    pub parts: Box<[Part]>,
}

/// A piece of a [`Template`].
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(Box<str>),
    /// `{name.field[0]}`
    Insert(Box<Insert>),
}

/// A value that is put into a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// With both braces.
    pub range: TextRange,
    /// As written, with both braces.
    pub verbatim: Box<str>,
    /// A name, member or index expression.
    pub value: Expr,
}

impl Template {
    /// The text with its interpolations as written.
    pub fn source(&self) -> String {
        self.pieces().collect()
    }
    /// The same in pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| match part {
            Part::Text(text) => &**text,
            Part::Insert(it) => &it.verbatim,
        })
    }
    /// The text, when nothing is interpolated.
    pub fn plain(&self) -> Option<String> {
        self.parts
            .iter()
            .all(|part| matches!(part, Part::Text(_)))
            .then(|| self.source())
    }
}

/// An expression; every executable statement is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// From its first to its last token.
    pub range: TextRange,
    /// What it is.
    pub kind: ExprKind,
}

// A long file has very many of them, and most hold little: what is larger is boxed.
const _: () = assert!(size_of::<Expr>() <= 64 && size_of::<Stmt>() <= 80);

/// Kinds of expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A part that a broken program lacks; the parser reported it.
    Missing,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// `120s`, as written.
    Duration(String),
    /// A string.
    Text(Template),
    /// A name.
    Name(Name),
    /// `of.key`
    Member {
        /// What the field is taken from.
        of: Box<Expr>,
        /// The field.
        key: Ident,
    },
    /// `of[index]`
    Index {
        /// What is indexed.
        of: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// A list; `bracketed` is false for `a, b` after `context:`.
    List {
        /// The elements.
        items: Vec<Expr>,
        /// Whether it stands in brackets.
        bracketed: bool,
    },
    /// An object.
    Record(Vec<Field>),
    /// `not x`
    Not(Box<Expr>),
    /// `-x`
    Neg(Box<Expr>),
    /// A binary operator.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left side.
        lhs: Box<Expr>,
        /// Right side.
        rhs: Box<Expr>,
    },
    /// A discretion.
    Judge {
        /// Its text.
        text: Template,
        /// The text, when it is nothing but a name.
        bare: Option<Ident>,
    },
    /// `session …`, `resume: …`
    Session(Box<Session>),
    /// `do name(args)`
    DoCall {
        /// The block or program.
        callee: Option<Ident>,
        /// The arguments.
        args: Vec<Argument>,
    },
    /// `name(args)`
    Call {
        /// What is called.
        callee: Option<Ident>,
        /// The arguments.
        args: Vec<Argument>,
    },
    /// `a -> b`
    Arrow(Vec<Expr>),
    /// `xs | map: …`
    Pipeline {
        /// The input.
        source: Box<Expr>,
        /// The stages.
        stages: Vec<Stage>,
    },
    /// `do:`
    Do(Body),
    /// `parallel:`
    Parallel {
        /// Join, policy, limits.
        mods: Vec<Modifier>,
        /// The branches.
        body: Box<Body>,
    },
    /// `for`, `parallel for`
    For(Box<For>),
    /// `repeat`
    Repeat {
        /// How often.
        count: Box<Expr>,
        /// The index variable.
        index: Option<Ident>,
        /// Not in the grammar, kept for the checks.
        mods: Vec<Modifier>,
        /// The statements.
        body: Box<Body>,
    },
    /// `loop`
    Loop(Box<Loop>),
    /// `if`
    If {
        /// `if` and `elif` arms.
        arms: Vec<(Expr, Body)>,
        /// `else`
        otherwise: Option<Box<Body>>,
    },
    /// `choice`
    Choice {
        /// What is decided.
        criteria: Box<Expr>,
        /// The options.
        options: Vec<ChoiceOption>,
    },
    /// `try`
    Try {
        /// The guarded statements.
        body: Box<Body>,
        /// Handlers; the grammar has at most one.
        catches: Vec<(Option<Ident>, Body)>,
        /// `finally`
        finally: Option<Box<Body>>,
    },
    /// `input name: value`
    Input {
        /// The name.
        name: Option<Ident>,
        /// Prompt or default.
        value: Option<Box<Expr>>,
        /// `(default: …)` after the prompt.
        default: Option<Box<Expr>>,
    },
    /// `let`, `const`
    Let {
        /// Whether it is `const`.
        constant: bool,
        /// What it binds.
        target: LetTarget,
        /// The value.
        value: Box<Expr>,
    },
    /// `output name = value`
    Output {
        /// The name.
        name: Ident,
        /// The value.
        value: Box<Expr>,
    },
    /// `name = value`, `name.field = value`; in `parallel:` a named branch.
    Assign {
        /// The variable.
        name: Ident,
        /// Fields below it.
        path: Vec<Expr>,
        /// Written as `name_{v}`.
        computed: bool,
        /// The value.
        value: Box<Expr>,
    },
    /// `output value`, `return value`
    Return {
        /// Whether it is written `return`.
        is_return: bool,
        /// The value.
        value: Option<Box<Expr>>,
    },
    /// `break`
    Break,
    /// `throw`
    Throw(Option<Box<Expr>>),
    /// `assert`
    Assert {
        /// The condition.
        cond: Box<Expr>,
        /// The message.
        message: Option<Box<Expr>>,
    },
}

/// What `let` binds.
#[derive(Debug, Clone, PartialEq)]
pub enum LetTarget {
    /// Nothing the parser understood.
    Missing,
    /// One name.
    Name(Ident),
    /// `{ a, b }`
    Record(Vec<Ident>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: Ident,
    /// Its value; for `{a}` the name `a`.
    pub value: Expr,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The name in `k: v`.
    pub name: Option<Ident>,
    /// The value.
    pub value: Expr,
}

/// `session …`, `resume: …`
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Written `resume`.
    pub resume: bool,
    /// The keyword.
    pub keyword: TextRange,
    /// The name it binds.
    pub name: Option<Ident>,
    /// The agent.
    pub agent: Option<Ident>,
    /// The text on the line.
    pub text: Option<Template>,
    /// Its properties.
    pub props: Vec<Property>,
    /// `(retry: 3)`
    pub mods: Vec<Modifier>,
}

/// `for x, i in xs`
#[derive(Debug, Clone, PartialEq)]
pub struct For {
    /// Written `parallel for`.
    pub parallel: bool,
    /// The item variable.
    pub item: Option<Ident>,
    /// The index variable.
    pub index: Option<Ident>,
    /// What is iterated.
    pub source: Expr,
    /// Join, policy, limits.
    pub mods: Vec<Modifier>,
    /// The statements.
    pub body: Body,
}

/// `loop`
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// Written `until`; else `while`. Means nothing without a condition.
    pub until: bool,
    /// The condition.
    pub cond: Option<Expr>,
    /// `(max: 5)`
    pub mods: Vec<Modifier>,
    /// The index variable.
    pub index: Option<Ident>,
    /// The statements.
    pub body: Body,
}

/// `option "label":`
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceOption {
    /// The label as written.
    pub label: String,
    /// The label as a string, which may interpolate.
    pub text: Option<Template>,
    /// Its range, or the keyword's.
    pub range: TextRange,
    /// The statements.
    pub body: Body,
}

/// `| op`
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The whole stage.
    pub range: TextRange,
    /// The word after the bar.
    pub word: TextRange,
    /// What it does.
    pub kind: StageKind,
}

/// Kinds of stage.
#[derive(Debug, Clone, PartialEq)]
pub enum StageKind {
    /// Not one the parser knows.
    Missing,
    /// `map`
    Map(Body),
    /// `filter`
    Filter(Body),
    /// `pmap`
    Pmap(Body),
    /// `reduce(acc, item)`
    Reduce {
        /// The accumulator and the item.
        params: Vec<Ident>,
        /// The statements.
        body: Body,
    },
    /// `chunks(n)`
    Chunks(Option<Box<Expr>>),
}

/// The modifier with this name.
pub fn modifier<'a>(mods: &'a [Modifier], name: &str) -> Option<&'a Expr> {
    mods.iter()
        .find(|it| it.name.as_ref().is_some_and(|it| it.name == name))?
        .value
        .as_ref()
}

/// The property with this key that counts: the last one.
pub fn property<'a>(props: &'a [Property], key: &str) -> Option<&'a Property> {
    props.iter().rev().find(|it| it.key.name == key)
}

/// A direct part of an expression.
pub(crate) enum Child<'a> {
    Expr(&'a Expr),
    Body(&'a Body),
}

/// Visits the direct parts of an expression that can hold statements or run something; properties are visited too.
pub(crate) fn each_child<'a>(expr: &'a Expr, visit: &mut dyn FnMut(Child<'a>)) {
    fn props<'a>(list: &'a [Property], visit: &mut dyn FnMut(Child<'a>)) {
        for prop in list {
            match &prop.value {
                PropValue::Expr(it) => visit(Child::Expr(it)),
                PropValue::Nested(list, _) => props(list, visit),
                PropValue::Dashes(items, _) => items.iter().for_each(|it| visit(Child::Expr(it))),
                _ => {}
            }
        }
    }
    fn mods<'a>(list: &'a [Modifier], visit: &mut dyn FnMut(Child<'a>)) {
        list.iter()
            .filter_map(|it| it.value.as_ref())
            .for_each(|it| visit(Child::Expr(it)));
    }
    match &expr.kind {
        ExprKind::Missing
        | ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::Duration(_)
        | ExprKind::Text(_)
        | ExprKind::Name(_)
        | ExprKind::Judge { .. }
        | ExprKind::Break => {}
        ExprKind::Member { of, .. } | ExprKind::Not(of) | ExprKind::Neg(of) => visit(Child::Expr(of)),
        ExprKind::Index { of, index } => {
            visit(Child::Expr(of));
            visit(Child::Expr(index));
        }
        ExprKind::List { items, .. } | ExprKind::Arrow(items) => {
            items.iter().for_each(|it| visit(Child::Expr(it)))
        }
        ExprKind::Record(fields) => fields.iter().for_each(|it| visit(Child::Expr(&it.value))),
        ExprKind::Binary { lhs, rhs, .. } => {
            visit(Child::Expr(lhs));
            visit(Child::Expr(rhs));
        }
        ExprKind::Session(it) => {
            mods(&it.mods, visit);
            props(&it.props, visit);
        }
        ExprKind::DoCall { args, .. } | ExprKind::Call { args, .. } => {
            args.iter().for_each(|it| visit(Child::Expr(&it.value)));
        }
        ExprKind::Pipeline { source, stages } => {
            visit(Child::Expr(source));
            for stage in stages {
                match &stage.kind {
                    StageKind::Map(body)
                    | StageKind::Filter(body)
                    | StageKind::Pmap(body)
                    | StageKind::Reduce { body, .. } => visit(Child::Body(body)),
                    StageKind::Chunks(Some(count)) => visit(Child::Expr(count)),
                    StageKind::Chunks(None) | StageKind::Missing => {}
                }
            }
        }
        ExprKind::Do(body) => visit(Child::Body(body)),
        ExprKind::Parallel { mods: list, body } => {
            mods(list, visit);
            visit(Child::Body(body));
        }
        ExprKind::For(it) => {
            visit(Child::Expr(&it.source));
            mods(&it.mods, visit);
            visit(Child::Body(&it.body));
        }
        ExprKind::Repeat {
            count,
            mods: list,
            body,
            ..
        } => {
            visit(Child::Expr(count));
            mods(list, visit);
            visit(Child::Body(body));
        }
        ExprKind::Loop(it) => {
            it.cond.iter().for_each(|it| visit(Child::Expr(it)));
            mods(&it.mods, visit);
            visit(Child::Body(&it.body));
        }
        ExprKind::If { arms, otherwise } => {
            for (cond, body) in arms {
                visit(Child::Expr(cond));
                visit(Child::Body(body));
            }
            otherwise.iter().for_each(|it| visit(Child::Body(it)));
        }
        ExprKind::Choice { criteria, options } => {
            visit(Child::Expr(criteria));
            options.iter().for_each(|it| visit(Child::Body(&it.body)));
        }
        ExprKind::Try {
            body,
            catches,
            finally,
        } => {
            visit(Child::Body(body));
            catches.iter().for_each(|it| visit(Child::Body(&it.1)));
            finally.iter().for_each(|it| visit(Child::Body(it)));
        }
        ExprKind::Input { value, default, .. } => {
            value.iter().chain(default).for_each(|it| visit(Child::Expr(it)));
        }
        ExprKind::Let { value, .. } | ExprKind::Output { value, .. } => visit(Child::Expr(value)),
        ExprKind::Assign { path, value, .. } => {
            path.iter().for_each(|it| visit(Child::Expr(it)));
            visit(Child::Expr(value));
        }
        ExprKind::Return { value, .. } | ExprKind::Throw(value) => {
            value.iter().for_each(|it| visit(Child::Expr(it)))
        }
        ExprKind::Assert { cond, message } => {
            visit(Child::Expr(cond));
            message.iter().for_each(|it| visit(Child::Expr(it)));
        }
    }
}
