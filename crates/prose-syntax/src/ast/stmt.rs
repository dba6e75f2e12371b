//! Statements and their parts.

use super::{
    AstChildren, AstNode, Expr, FieldExpr, IndexExpr, Literal, Name, NameRef, StringToken, ast_enum,
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

impl UseStmt {
    /// The path, a plain string.
    pub fn path(&self) -> Option<Literal> {
        child(&self.0)
    }
    /// The name after `as`.
    pub fn alias(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl ImportStmt {
    /// The skill's name.
    pub fn skill(&self) -> Option<Literal> {
        child(&self.0)
    }
    /// The text after `from`.
    pub fn source(&self) -> Option<Literal> {
        children(&self.0).nth(1)
    }
}

impl InputStmt {
    /// The input's name.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
    /// Description or default: a string, a discretion, a list …
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
    /// The value of `(default: …)` after the description.
    pub fn default(&self) -> Option<Expr> {
        self.modifiers()
            .find(|it| it.name().is_some_and(|name| name.text() == "default"))?
            .value()
    }
}

impl OutputStmt {
    /// The keyword.
    pub fn keyword(&self) -> Option<SyntaxToken> {
        token(&self.0, OUTPUT_KW)
    }
    /// Whether it is `output name: "what it is"`, which binds nothing.
    pub fn only_declares(&self) -> bool {
        token(&self.0, COLON).is_some()
            && matches!(self.value(), Some(Expr::Literal(it)) if it.string().is_some())
    }
    /// The name in `output name = EXPR`; `None` in `output EXPR`, which leaves the block.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

/// All properties of a node: those on its line and those in the indented lists under it.
fn properties(node: &SyntaxNode) -> impl Iterator<Item = Property> + use<> {
    children::<PropertyList>(node).flat_map(|list| list.properties())
}

/// Nodes that carry properties.
pub trait HasProperties: AstNode<Language = crate::ProseLanguage> {
    /// All properties, those on the statement's line first.
    fn properties(&self) -> Box<dyn Iterator<Item = Property>> {
        Box::new(properties(self.syntax()))
    }
    /// The first property with this key.
    fn property(&self, key: &str) -> Option<Property> {
        properties(self.syntax()).find(|it| it.key().is_some_and(|name| name.text() == key))
    }
}

/// Nodes that have a body under a `:`.
pub trait HasBody: AstNode<Language = crate::ProseLanguage> {
    /// The body.
    fn body(&self) -> Option<Body> {
        child(self.syntax())
    }
}

/// Nodes that may have `(name: value)` modifiers.
pub trait HasModifiers: AstNode<Language = crate::ProseLanguage> {
    /// All modifiers.
    fn modifiers(&self) -> Box<dyn Iterator<Item = Modifier>> {
        Box::new(children::<ModifierList>(self.syntax()).flat_map(|list| list.modifiers()))
    }
    /// The value of a named modifier.
    fn modifier(&self, key: &str) -> Option<Expr> {
        self.modifiers()
            .find(|it| it.name().is_some_and(|name| name.text() == key))?
            .value()
    }
}

impl HasProperties for AgentDef {}
impl HasProperties for PropertyList {
    fn properties(&self) -> Box<dyn Iterator<Item = Property>> {
        Box::new(children(&self.0))
    }
    fn property(&self, key: &str) -> Option<Property> {
        children::<Property>(&self.0).find(|it| it.key().is_some_and(|name| name.text() == key))
    }
}
impl HasBody for BlockDef {}
impl HasModifiers for BlockDef {}
impl HasModifiers for InputStmt {}

impl AgentDef {
    /// The agent's name.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl BlockDef {
    /// The block's name.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
    /// Its parameters.
    pub fn params(&self) -> Option<ParamList> {
        child(&self.0)
    }
}

impl LetStmt {
    /// `let` or `const`.
    pub fn keyword(&self) -> Option<SyntaxToken> {
        token(&self.0, LET_KW).or_else(|| token(&self.0, CONST_KW))
    }
    /// Whether it is `const`.
    pub fn is_const(&self) -> bool {
        token(&self.0, CONST_KW).is_some()
    }
    /// The single name.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
    /// The record pattern of `let { a, b } = …`.
    pub fn pattern(&self) -> Option<RecordPattern> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr> {
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

impl AssignStmt {
    /// The left side.
    pub fn target(&self) -> Option<Target> {
        self.0.first_child().and_then(Target::cast)
    }
    /// The right side.
    pub fn value(&self) -> Option<Expr> {
        let eq = token(&self.0, EQ)?.text_range().end();
        children::<Expr>(&self.0).find(|it| it.syntax().text_range().start() >= eq)
    }
}

impl ComputedName {
    /// The fixed part before the brace: `name_`.
    pub fn base(&self) -> Option<SyntaxToken> {
        token(&self.0, IDENT)
    }
    /// The expression in braces.
    pub fn key(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl ThrowStmt {
    /// The message; `None` re-raises.
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl ReturnStmt {
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl AssertStmt {
    /// The condition.
    pub fn condition(&self) -> Option<Expr> {
        child(&self.0)
    }
    /// The message after `:`.
    pub fn message(&self) -> Option<Expr> {
        let colon = token(&self.0, COLON)?.text_range().end();
        children::<Expr>(&self.0).find(|it| it.syntax().text_range().start() >= colon)
    }
}

impl ExprStmt {
    /// The expression.
    pub fn expr(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl Body {
    /// The statements, in order.
    pub fn statements(&self) -> AstChildren<Stmt> {
        children(&self.0)
    }
}

impl RecordPattern {
    /// The names.
    pub fn names(&self) -> AstChildren<Name> {
        children(&self.0)
    }
}

impl ParamList {
    /// The parameters.
    pub fn params(&self) -> AstChildren<Param> {
        children(&self.0)
    }
}

impl Param {
    /// The parameter's name.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl ModifierList {
    /// The modifiers.
    pub fn modifiers(&self) -> AstChildren<Modifier> {
        children(&self.0)
    }
}

impl Modifier {
    /// The name before `:`; `None` for a positional one such as `"first"`.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl Property {
    /// The key.
    pub fn key(&self) -> Option<Name> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<PropertyValue> {
        child(&self.0)
    }
    /// The value, when it is an expression.
    pub fn expr(&self) -> Option<Expr> {
        child(&self.0)
    }
    /// Indented `k: v` lines under the key (`permissions:`, `context:`, unknown properties).
    pub fn nested(&self) -> Option<PropertyList> {
        child(&self.0)
    }
}

impl DashList {
    /// The items.
    pub fn items(&self) -> AstChildren<DashItem> {
        children(&self.0)
    }
}

impl DashItem {
    /// The value; `None` when the item is something else than an expression.
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl BlockString {
    /// The raw text.
    pub fn string(&self) -> Option<StringToken> {
        token(&self.0, BLOCK_TEXT).and_then(StringToken::cast)
    }
}

impl BareWord {
    /// The word as written.
    pub fn text(&self) -> String {
        self.0.text().to_string()
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
