//! Statements and their parts.

use super::{
    Expr, FieldExpr, IndexExpr, Literal, Name, NameRef, Node, StringToken, Token, View, Views, ast_enum,
    ast_node, child, children, token,
};
use crate::{SyntaxKind, SyntaxKind::*, SyntaxNode, SyntaxToken};

ast_node! {
    /// `use "path" as name`
    UseStmt = USE_STMT;
    /// `import "skill" from "source"` (legacy)
    ImportStmt = IMPORT_STMT;
    /// `input name: VALUE`
    InputStmt = INPUT_STMT;
    /// `output name = EXPR` or `output EXPR`
    OutputStmt = OUTPUT_STMT;
    /// `agent name:` PROPERTY_LIST
    AgentDef = AGENT_DEF;
    /// `block name(params) (mods):` BODY
    BlockDef = BLOCK_DEF;
    /// `let`/`const` (NAME | RECORD_PATTERN) `=` EXPR
    LetStmt = LET_STMT;
    /// TARGET `=` EXPR
    AssignStmt = ASSIGN_STMT;
    /// `throw EXPR?`
    ThrowStmt = THROW_STMT;
    /// `return EXPR?`
    ReturnStmt = RETURN_STMT;
    /// `break`
    BreakStmt = BREAK_STMT;
    /// `assert COND: MESSAGE?`
    AssertStmt = ASSERT_STMT;
    /// An expression as a statement
    ExprStmt = EXPR_STMT;
    /// Statements under a `:`
    Body = BODY;
    /// `{ a, b }` after `let`
    RecordPattern = RECORD_PATTERN;
    /// `name_{v}` as a target
    ComputedName = COMPUTED_NAME;
    /// Parameters of a block or of `reduce`
    ParamList = PARAM_LIST;
    /// One parameter
    Param = PARAM;
    /// Modifiers of `parallel`, `loop`, `for`, `repeat`, `block`, `session`
    ModifierList = MODIFIER_LIST;
    /// One modifier
    Modifier = MODIFIER;
    /// Properties
    PropertyList = PROPERTY_LIST;
    /// `key: value`
    Property = PROPERTY;
    /// `- a` lines
    DashList = DASH_LIST;
    /// One `- a`
    DashItem = DASH_ITEM;
    /// `|` and indented raw lines
    BlockString = BLOCK_STRING;
    /// A raw word such as `gpt-4.1`
    BareWord = BARE_WORD;
}

ast_enum! {
    /// A statement.
    Stmt {
        /// `use`
        Use(UseStmt),
        /// `import` (legacy)
        Import(ImportStmt),
        /// `input`
        Input(InputStmt),
        /// `output`
        Output(OutputStmt),
        /// `agent`
        Agent(AgentDef),
        /// `block`
        Block(BlockDef),
        /// `let`, `const`
        Let(LetStmt),
        /// assignment
        Assign(AssignStmt),
        /// `throw`
        Throw(ThrowStmt),
        /// `return`
        Return(ReturnStmt),
        /// `break`
        Break(BreakStmt),
        /// `assert`
        Assert(AssertStmt),
        /// everything that has a value: sessions, loops, calls, names …
        Expr(ExprStmt),
    }
}

ast_enum! {
    /// What a property may have after its colon.
    PropertyValue {
        /// an expression
        Expr(Expr),
        /// indented `k: v` lines
        Nested(PropertyList),
        /// `- a` lines
        Dashes(DashList),
        /// `|` and raw lines
        Block(BlockString),
        /// a raw word
        Word(BareWord),
    }
}

impl<N: Node> UseStmt<N> {
    /// The path, a plain string.
    pub fn path(&self) -> Option<Literal<N>> {
        child(&self.0)
    }
    /// The name after `as`.
    pub fn alias(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> ImportStmt<N> {
    /// The skill's name.
    pub fn skill(&self) -> Option<Literal<N>> {
        child(&self.0)
    }
    /// The text after `from`.
    pub fn source(&self) -> Option<Literal<N>> {
        children(&self.0).nth(1)
    }
}

impl<N: Node> InputStmt<N> {
    /// The input's name.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// Description or default: a string, a discretion, a list …
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The value of `(default: …)` after the description.
    pub fn default(&self) -> Option<Expr<N>> {
        self.modifiers()
            .find(|it| it.name().is_some_and(|name| name.is("default")))?
            .value()
    }
}

impl<N: Node> OutputStmt<N> {
    /// The keyword.
    pub fn keyword(&self) -> Option<N::Token> {
        token(&self.0, OUTPUT_KW)
    }
    /// Whether it is `output name: "what it is"`, which binds nothing.
    pub fn only_declares(&self) -> bool {
        token(&self.0, COLON).is_some()
            && matches!(self.value(), Some(Expr::Literal(it)) if it.string().is_some())
    }
    /// The name in `output name = EXPR`; `None` in `output EXPR`, which leaves the block.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

/// All properties of a node: those on its line and those in the indented lists under it.
fn properties<N: Node>(node: &N) -> impl Iterator<Item = Property<N>> + Clone + use<N> {
    children::<N, PropertyList<N>>(node).flat_map(|list| list.properties())
}

/// Nodes that carry properties.
pub trait HasProperties: View {
    /// All properties, those on the statement's line first.
    fn properties(&self) -> impl Iterator<Item = Property<Self::Node>> + Clone + use<Self> {
        properties(self.node())
    }
    /// The first property with this key.
    fn property(&self, key: &str) -> Option<Property<Self::Node>> {
        self.properties()
            .find(|it| it.key().is_some_and(|name| name.is(key)))
    }
}

/// Nodes that have a body under a `:`.
pub trait HasBody: View {
    /// The body.
    fn body(&self) -> Option<Body<Self::Node>> {
        child(self.node())
    }
}

/// Nodes that may have `(name: value)` modifiers.
pub trait HasModifiers: View {
    /// All modifiers.
    fn modifiers(&self) -> impl Iterator<Item = Modifier<Self::Node>> + Clone + use<Self> {
        children::<Self::Node, ModifierList<Self::Node>>(self.node()).flat_map(|list| list.modifiers())
    }
    /// The value of a named modifier.
    fn modifier(&self, key: &str) -> Option<Expr<Self::Node>> {
        self.modifiers()
            .find(|it| it.name().is_some_and(|name| name.is(key)))?
            .value()
    }
}

impl<N: Node> HasProperties for AgentDef<N> {}
impl<N: Node> HasProperties for PropertyList<N> {
    fn properties(&self) -> impl Iterator<Item = Property<N>> + Clone + use<N> {
        children(&self.0)
    }
}
impl<N: Node> HasBody for BlockDef<N> {}
impl<N: Node> HasModifiers for BlockDef<N> {}
impl<N: Node> HasModifiers for InputStmt<N> {}

impl<N: Node> AgentDef<N> {
    /// The agent's name.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> BlockDef<N> {
    /// The block's name.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// Its parameters.
    pub fn params(&self) -> Option<ParamList<N>> {
        child(&self.0)
    }
}

impl<N: Node> LetStmt<N> {
    /// `let` or `const`.
    pub fn keyword(&self) -> Option<N::Token> {
        token(&self.0, LET_KW).or_else(|| token(&self.0, CONST_KW))
    }
    /// Whether it is `const`.
    pub fn is_const(&self) -> bool {
        token(&self.0, CONST_KW).is_some()
    }
    /// The single name.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The record pattern of `let { a, b } = …`.
    pub fn pattern(&self) -> Option<RecordPattern<N>> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

ast_enum! {
    /// What may stand on the left of `=`.
    Target {
        /// `x`
        Name(NameRef),
        /// `x.y`
        Field(FieldExpr),
        /// `x[i]`
        Index(IndexExpr),
        /// `name_{v}`
        Computed(ComputedName),
    }
}

impl<N: Node> AssignStmt<N> {
    /// The left side.
    pub fn target(&self) -> Option<Target<N>> {
        self.0.children().next().and_then(Target::of)
    }
    /// The right side.
    pub fn value(&self) -> Option<Expr<N>> {
        let eq = token(&self.0, EQ)?.text_range().end();
        children::<N, Expr<N>>(&self.0).find(|it| it.node().text_range().start() >= eq)
    }
}

impl<N: Node> ComputedName<N> {
    /// The fixed part before the brace: `name_`.
    pub fn base(&self) -> Option<N::Token> {
        token(&self.0, IDENT)
    }
    /// The expression in braces.
    pub fn key(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> ThrowStmt<N> {
    /// The message; `None` re-raises.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> ReturnStmt<N> {
    /// The value.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> AssertStmt<N> {
    /// The condition.
    pub fn condition(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The message after `:`.
    pub fn message(&self) -> Option<Expr<N>> {
        let colon = token(&self.0, COLON)?.text_range().end();
        children::<N, Expr<N>>(&self.0).find(|it| it.node().text_range().start() >= colon)
    }
}

impl<N: Node> ExprStmt<N> {
    /// The expression.
    pub fn expr(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> Body<N> {
    /// The statements, in order.
    pub fn statements(&self) -> Views<N, Stmt<N>> {
        children(&self.0)
    }
}

impl<N: Node> RecordPattern<N> {
    /// The names.
    pub fn names(&self) -> Views<N, Name<N>> {
        children(&self.0)
    }
}

impl<N: Node> ParamList<N> {
    /// The parameters.
    pub fn params(&self) -> Views<N, Param<N>> {
        children(&self.0)
    }
}

impl<N: Node> Param<N> {
    /// The parameter's name.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> ModifierList<N> {
    /// The modifiers.
    pub fn modifiers(&self) -> Views<N, Modifier<N>> {
        children(&self.0)
    }
}

impl<N: Node> Modifier<N> {
    /// The name before `:`; `None` for a positional one such as `"first"`.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> Property<N> {
    /// The key.
    pub fn key(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<PropertyValue<N>> {
        child(&self.0)
    }
    /// The value, when it is an expression.
    pub fn expr(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// Indented `k: v` lines under the key (`permissions:`, `context:`, unknown properties).
    pub fn nested(&self) -> Option<PropertyList<N>> {
        child(&self.0)
    }
}

impl<N: Node> DashList<N> {
    /// The items.
    pub fn items(&self) -> Views<N, DashItem<N>> {
        children(&self.0)
    }
}

impl<N: Node> DashItem<N> {
    /// The value; `None` when the item is something else than an expression.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> BlockString<N> {
    /// The raw text.
    pub fn string(&self) -> Option<StringToken<N::Token>> {
        token(&self.0, BLOCK_TEXT).and_then(StringToken::cast)
    }
}

impl<N: Node> BareWord<N> {
    /// The word as written.
    pub fn text(&self) -> String {
        self.0.spelling()
    }
}

/// Comment tokens directly above a statement (no blank line between), top to bottom.
pub fn leading_comments(node: &SyntaxNode) -> Vec<SyntaxToken> {
    let mut out = Vec::new();
    let mut at = node.first_token().and_then(|it| it.prev_token());
    while let Some(tok) = at {
        match tok.kind() {
            SyntaxKind::WHITESPACE => {
                let breaks = crate::line_index::count_line_breaks(tok.text());
                if breaks > 1 || (breaks == 0 && !out.is_empty()) {
                    break;
                }
            }
            SyntaxKind::COMMENT => {
                // A comment behind code on its own line belongs to that code.
                let alone = tok.prev_token().is_none_or(|it| {
                    it.kind() == SyntaxKind::BOM
                        || (it.kind() == SyntaxKind::WHITESPACE
                            && (it.prev_token().is_none()
                                || crate::line_index::count_line_breaks(it.text()) > 0))
                });
                if !alone {
                    break;
                }
                out.push(tok.clone());
            }
            _ => break,
        }
        at = tok.prev_token();
    }
    out.reverse();
    out
}
