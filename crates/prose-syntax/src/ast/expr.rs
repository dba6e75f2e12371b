//! Expressions and their parts.

use super::{
    Body, DiscretionToken, HasBody, HasModifiers, HasProperties, Name, NameRef, Node, ParamList, StringToken,
    Token, View, Views, ast_enum, ast_node, child, children, token,
};
use crate::{SyntaxKind, SyntaxKind::*};

ast_node! {
    /// `session …`
    SessionExpr = SESSION_EXPR;
    /// `resume: agent`
    ResumeExpr = RESUME_EXPR;
    /// `do:` BODY
    DoExpr = DO_EXPR;
    /// `do name(args)`
    DoCallExpr = DO_CALL_EXPR;
    /// `parallel (mods):` BODY
    ParallelExpr = PARALLEL_EXPR;
    /// `for x, i in xs:` and `parallel for …`
    ForExpr = FOR_EXPR;
    /// `repeat N as i:` BODY
    RepeatExpr = REPEAT_EXPR;
    /// `loop until COND (max: n) as i:` BODY
    LoopExpr = LOOP_EXPR;
    /// `if COND:` with clauses
    IfExpr = IF_EXPR;
    /// `elif COND:` BODY
    ElifClause = ELIF_CLAUSE;
    /// `else:` BODY
    ElseClause = ELSE_CLAUSE;
    /// `choice COND:` options
    ChoiceExpr = CHOICE_EXPR;
    /// The options of a choice
    OptionList = OPTION_LIST;
    /// `option "label":` BODY
    ChoiceOption = CHOICE_OPTION;
    /// `try:` with clauses
    TryExpr = TRY_EXPR;
    /// `catch as err:` BODY
    CatchClause = CATCH_CLAUSE;
    /// `finally:` BODY
    FinallyClause = FINALLY_CLAUSE;
    /// `a -> b -> c`
    ArrowExpr = ARROW_EXPR;
    /// `xs | map: …`
    PipeExpr = PIPE_EXPR;
    /// One `| op`
    PipeOp = PIPE_OP;
    /// `a + b`
    BinExpr = BIN_EXPR;
    /// `not a`, `-a`
    PrefixExpr = PREFIX_EXPR;
    /// `(a)`
    ParenExpr = PAREN_EXPR;
    /// `a.b`
    FieldExpr = FIELD_EXPR;
    /// `a[i]`
    IndexExpr = INDEX_EXPR;
    /// `name(k: v)`
    CallExpr = CALL_EXPR;
    /// Arguments of a call
    ArgList = ARG_LIST;
    /// One argument
    Arg = ARG;
    /// `[a, b]`
    ListExpr = LIST_EXPR;
    /// `{a, k: v}`
    ObjectExpr = OBJECT_EXPR;
    /// One field of an object
    ObjectField = OBJECT_FIELD;
    /// A string, number, duration or constant
    Literal = LITERAL;
    /// A discretion
    DiscretionExpr = DISCRETION_EXPR;
}

ast_enum! {
    /// An expression.
    Expr {
        /// `session …`
        Session(SessionExpr),
        /// `resume: …`
        Resume(ResumeExpr),
        /// `do:`
        Do(DoExpr),
        /// `do name`
        DoCall(DoCallExpr),
        /// `parallel:`
        Parallel(ParallelExpr),
        /// `for`, `parallel for`
        For(ForExpr),
        /// `repeat`
        Repeat(RepeatExpr),
        /// `loop`
        Loop(LoopExpr),
        /// `if`
        If(IfExpr),
        /// `choice`
        Choice(ChoiceExpr),
        /// `try`
        Try(TryExpr),
        /// `a -> b`
        Arrow(ArrowExpr),
        /// `xs | op`
        Pipe(PipeExpr),
        /// binary operator
        Bin(BinExpr),
        /// `not`, `-`
        Prefix(PrefixExpr),
        /// parentheses
        Paren(ParenExpr),
        /// `a.b`
        Field(FieldExpr),
        /// `a[i]`
        Index(IndexExpr),
        /// `f(k: v)`
        Call(CallExpr),
        /// list
        List(ListExpr),
        /// object
        Object(ObjectExpr),
        /// literal
        Literal(Literal),
        /// discretion
        Discretion(DiscretionExpr),
        /// name
        Name(NameRef),
    }
}

impl<N: Node> HasProperties for SessionExpr<N> {}
impl<N: Node> HasProperties for ResumeExpr<N> {}
impl<N: Node> HasModifiers for SessionExpr<N> {}
impl<N: Node> HasModifiers for ParallelExpr<N> {}
impl<N: Node> HasModifiers for ForExpr<N> {}
impl<N: Node> HasModifiers for RepeatExpr<N> {}
impl<N: Node> HasModifiers for LoopExpr<N> {}
impl<N: Node> HasBody for DoExpr<N> {}
impl<N: Node> HasBody for ParallelExpr<N> {}
impl<N: Node> HasBody for ForExpr<N> {}
impl<N: Node> HasBody for RepeatExpr<N> {}
impl<N: Node> HasBody for LoopExpr<N> {}
impl<N: Node> HasBody for IfExpr<N> {}
impl<N: Node> HasBody for ElifClause<N> {}
impl<N: Node> HasBody for ElseClause<N> {}
impl<N: Node> HasBody for ChoiceOption<N> {}
impl<N: Node> HasBody for TryExpr<N> {}
impl<N: Node> HasBody for CatchClause<N> {}
impl<N: Node> HasBody for FinallyClause<N> {}
impl<N: Node> HasBody for PipeOp<N> {}

impl<N: Node> SessionExpr<N> {
    /// The keyword.
    pub fn keyword(&self) -> Option<N::Token> {
        token(&self.0, SESSION_KW)
    }
    /// The text on the line: `session "text"`, `session: "text"`, `session: agent "text"`.
    pub fn text(&self) -> Option<Literal<N>> {
        child(&self.0)
    }
    /// The name the result is bound to: `session name: agent`.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The agent: `session: agent`.
    pub fn agent(&self) -> Option<NameRef<N>> {
        child(&self.0)
    }
}

impl<N: Node> ResumeExpr<N> {
    /// The keyword.
    pub fn keyword(&self) -> Option<N::Token> {
        token(&self.0, RESUME_KW)
    }
    /// The text on the line: `resume: agent "text"`.
    pub fn text(&self) -> Option<Literal<N>> {
        child(&self.0)
    }
    /// The name the result is bound to: `resume name: agent`.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The agent.
    pub fn agent(&self) -> Option<NameRef<N>> {
        child(&self.0)
    }
}

impl<N: Node> DoCallExpr<N> {
    /// The block, or program, that is called.
    pub fn callee(&self) -> Option<NameRef<N>> {
        child(&self.0)
    }
    /// The arguments; `None` in `do f`.
    pub fn args(&self) -> Option<ArgList<N>> {
        child(&self.0)
    }
}

impl<N: Node> ForExpr<N> {
    /// The token of `parallel for`.
    pub fn parallel_token(&self) -> Option<N::Token> {
        token(&self.0, PARALLEL_KW)
    }
    /// The item variable.
    pub fn item(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The index variable.
    pub fn index(&self) -> Option<Name<N>> {
        children(&self.0).nth(1)
    }
    /// What is iterated.
    pub fn collection(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> RepeatExpr<N> {
    /// How often.
    pub fn count(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The index variable.
    pub fn index(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> LoopExpr<N> {
    /// The token `until`.
    pub fn until_token(&self) -> Option<N::Token> {
        token(&self.0, UNTIL_KW)
    }
    /// The token `while`.
    pub fn while_token(&self) -> Option<N::Token> {
        token(&self.0, WHILE_KW)
    }
    /// The condition.
    pub fn condition(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The index variable.
    pub fn index(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> IfExpr<N> {
    /// The condition.
    pub fn condition(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The `elif` clauses.
    pub fn elifs(&self) -> Views<N, ElifClause<N>> {
        children(&self.0)
    }
    /// The `else` clause (the first, if a broken program has several).
    pub fn else_clause(&self) -> Option<ElseClause<N>> {
        child(&self.0)
    }
}

impl<N: Node> ElifClause<N> {
    /// The condition.
    pub fn condition(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> ChoiceExpr<N> {
    /// The criterion.
    pub fn condition(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The options, in order.
    pub fn options(&self) -> Vec<ChoiceOption<N>> {
        children::<N, OptionList<N>>(&self.0)
            .flat_map(|list| list.options())
            .collect()
    }
}

impl<N: Node> OptionList<N> {
    /// The options.
    pub fn options(&self) -> Views<N, ChoiceOption<N>> {
        children(&self.0)
    }
}

impl<N: Node> ChoiceOption<N> {
    /// The label, normally a string.
    pub fn label(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> TryExpr<N> {
    /// The `catch` clauses (the grammar has at most one).
    pub fn catches(&self) -> Views<N, CatchClause<N>> {
        children(&self.0)
    }
    /// The `catch` clause.
    pub fn catch_clause(&self) -> Option<CatchClause<N>> {
        child(&self.0)
    }
    /// The `finally` clause.
    pub fn finally_clause(&self) -> Option<FinallyClause<N>> {
        child(&self.0)
    }
}

impl<N: Node> CatchClause<N> {
    /// The error variable.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> ArrowExpr<N> {
    /// The steps, at least one.
    pub fn steps(&self) -> Views<N, Expr<N>> {
        children(&self.0)
    }
}

impl<N: Node> PipeExpr<N> {
    /// The input.
    pub fn input(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The operations, in order.
    pub fn ops(&self) -> Views<N, PipeOp<N>> {
        children(&self.0)
    }
}

/// Which operation a [`PipeOp`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PipeOpKind {
    /// `map`
    Map,
    /// `filter`
    Filter,
    /// `pmap`
    Pmap,
    /// `reduce(acc, item)`
    Reduce,
    /// `chunks(n)`
    Chunks,
}

impl<N: Node> PipeOp<N> {
    /// The word after `|`, known or not.
    pub fn op_token(&self) -> Option<N::Token> {
        let bar = token(&self.0, PIPE)?;
        self.0
            .tokens()
            .find(|it| it.text_range().start() >= bar.text_range().end() && !it.kind().is_trivia())
    }
    /// Which operation it is; `None` for an unknown word (an error was reported).
    pub fn kind(&self) -> Option<PipeOpKind> {
        Some(match self.op_token()?.kind() {
            MAP_KW => PipeOpKind::Map,
            FILTER_KW => PipeOpKind::Filter,
            PMAP_KW => PipeOpKind::Pmap,
            REDUCE_KW => PipeOpKind::Reduce,
            CHUNKS_KW => PipeOpKind::Chunks,
            _ => return None,
        })
    }
    /// Variables of `reduce(acc, item)`.
    pub fn params(&self) -> Option<ParamList<N>> {
        child(&self.0)
    }
    /// Arguments of `chunks(n)`.
    pub fn args(&self) -> Option<ArgList<N>> {
        child(&self.0)
    }
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// `or`
    Or,
    /// `and`
    And,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `+`
    Add,
    /// `-`
    Sub,
}

impl<N: Node> BinExpr<N> {
    /// The left operand.
    pub fn lhs(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The right operand.
    pub fn rhs(&self) -> Option<Expr<N>> {
        let op = self.op_token()?.text_range().end();
        children::<N, Expr<N>>(&self.0).find(|it| it.node().text_range().start() >= op)
    }
    /// The operator's token.
    pub fn op_token(&self) -> Option<N::Token> {
        self.0.tokens().find(|it| bin_op(it.kind()).is_some())
    }
    /// The operator.
    pub fn op(&self) -> Option<BinOp> {
        bin_op(self.op_token()?.kind())
    }
}

fn bin_op(kind: SyntaxKind) -> Option<BinOp> {
    Some(match kind {
        OR_KW => BinOp::Or,
        AND_KW => BinOp::And,
        EQ2 => BinOp::Eq,
        NEQ => BinOp::Ne,
        LT => BinOp::Lt,
        GT => BinOp::Gt,
        LTEQ => BinOp::Le,
        GTEQ => BinOp::Ge,
        PLUS => BinOp::Add,
        MINUS => BinOp::Sub,
        _ => return None,
    })
}

impl<N: Node> PrefixExpr<N> {
    /// Whether it is `not`; else it is `-`.
    pub fn is_not(&self) -> bool {
        token(&self.0, NOT_KW).is_some()
    }
    /// The operand.
    pub fn operand(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> ParenExpr<N> {
    /// What is inside.
    pub fn inner(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> FieldExpr<N> {
    /// What the field is taken from.
    pub fn base(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The field.
    pub fn field(&self) -> Option<Name<N>> {
        child(&self.0)
    }
}

impl<N: Node> IndexExpr<N> {
    /// What is indexed.
    pub fn base(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The index.
    pub fn index(&self) -> Option<Expr<N>> {
        let bracket = token(&self.0, L_BRACK)?.text_range().end();
        children::<N, Expr<N>>(&self.0).find(|it| it.node().text_range().start() >= bracket)
    }
}

impl<N: Node> CallExpr<N> {
    /// What is called, normally a name.
    pub fn callee(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
    /// The arguments.
    pub fn args(&self) -> Option<ArgList<N>> {
        child(&self.0)
    }
}

impl<N: Node> ArgList<N> {
    /// The arguments.
    pub fn args(&self) -> Views<N, Arg<N>> {
        children(&self.0)
    }
}

impl<N: Node> Arg<N> {
    /// The name in `k: v`.
    pub fn name(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The value.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

impl<N: Node> ListExpr<N> {
    /// The elements.
    pub fn elements(&self) -> Views<N, Expr<N>> {
        children(&self.0)
    }
    /// `false` for the unbracketed `a, b` after `context:`.
    pub fn is_bracketed(&self) -> bool {
        token(&self.0, L_BRACK).is_some()
    }
}

impl<N: Node> ObjectExpr<N> {
    /// The fields.
    pub fn fields(&self) -> Views<N, ObjectField<N>> {
        children(&self.0)
    }
}

impl<N: Node> ObjectField<N> {
    /// The key in `k: v` or `"k": v`; `None` in the shorthand `{a}`.
    pub fn key(&self) -> Option<Name<N>> {
        child(&self.0)
    }
    /// The key's text, without quotes; for the shorthand the name itself.
    pub fn key_text(&self) -> Option<String> {
        match self.key() {
            Some(key) => {
                let tok = key.token()?;
                Some(match StringToken::cast(tok.clone()) {
                    Some(string) => string.text(),
                    None => tok.text().to_owned(),
                })
            }
            None => match self.value()? {
                Expr::Name(name) => Some(name.text()),
                Expr::Field(field) => field.field().map(|it| it.text()),
                _ => None,
            },
        }
    }
    /// The value; for the shorthand `{a}` the name `a` as an expression.
    pub fn value(&self) -> Option<Expr<N>> {
        child(&self.0)
    }
}

/// What a [`Literal`] is.
#[derive(Debug, Clone, PartialEq)]
pub enum LiteralKind<T = crate::SyntaxToken> {
    /// `"…"` or `"""…"""`
    String(StringToken<T>),
    /// `12`, `1.5`
    Number(f64),
    /// `120s`, as written
    Duration(String),
    /// `true`, `false`
    Bool(bool),
    /// `null`
    Null,
}

impl<N: Node> Literal<N> {
    /// The token.
    pub fn token(&self) -> Option<N::Token> {
        self.0.tokens().find(|it| !it.kind().is_trivia())
    }
    /// The string, when it is one.
    pub fn string(&self) -> Option<StringToken<N::Token>> {
        self.token().and_then(StringToken::cast)
    }
    /// What it is.
    pub fn kind(&self) -> Option<LiteralKind<N::Token>> {
        let tok = self.token()?;
        Some(match tok.kind() {
            STRING | TRIPLE_STRING => LiteralKind::String(StringToken::cast(tok)?),
            NUMBER => LiteralKind::Number(tok.text().parse().ok()?),
            DURATION => LiteralKind::Duration(tok.text().to_owned()),
            TRUE_KW => LiteralKind::Bool(true),
            FALSE_KW => LiteralKind::Bool(false),
            NULL_KW => LiteralKind::Null,
            _ => return None,
        })
    }
}

impl<N: Node> DiscretionExpr<N> {
    /// The token.
    pub fn token(&self) -> Option<DiscretionToken<N::Token>> {
        token(&self.0, DISCRETION).and_then(DiscretionToken::cast)
    }
}

impl<N: Node> Expr<N> {
    /// The expression without any parentheses around it.
    pub fn unparen(self) -> Self {
        let mut expr = self;
        while let Expr::Paren(paren) = &expr {
            match paren.inner() {
                Some(inner) => expr = inner,
                None => break,
            }
        }
        expr
    }

    /// The body, when the expression is a construct with exactly one.
    pub fn body(&self) -> Option<Body<N>> {
        match self {
            Expr::Do(it) => it.body(),
            Expr::Parallel(it) => it.body(),
            Expr::For(it) => it.body(),
            Expr::Repeat(it) => it.body(),
            Expr::Loop(it) => it.body(),
            _ => None,
        }
    }
}
