//! Every kind of token and node in the tree.

macro_rules! syntax_kinds {
    ($( $(#[$meta:meta])* $name:ident, )*) => {
        /// The kind of a token or node. Tokens come first, then nodes; see [`SyntaxKind::is_token`].
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum SyntaxKind { $( $(#[$meta])* $name, )* }

        /// All kinds in the order of their numbers; turns a raw number back without unsafe code.
        static ALL: &[SyntaxKind] = &[ $( SyntaxKind::$name, )* ];
    };
}

syntax_kinds! {
    // ---- trivia -------------------------------------------------------------------------------
    /// Spaces, tabs and line ends; one token for a whole run.
    WHITESPACE,
    /// `# …` up to, not including, the line end.
    COMMENT,
    /// The byte order mark, only at the very start.
    BOM,

    // ---- literals and names -------------------------------------------------------------------
    /// A name, or a word that is a keyword elsewhere. Hyphens inside belong to it.
    IDENT,
    /// `12` or `1.5`.
    NUMBER,
    /// `120s`: digits directly followed by a unit.
    DURATION,
    /// `"…"`, quotes included. An unterminated one ends at its line end.
    STRING,
    /// `"""…"""`, quotes included.
    TRIPLE_STRING,
    /// `**…**` or `***…***`, stars included.
    DISCRETION,
    /// The indented raw lines below `prompt: |`, from the line break after `|` to the end of the last line.
    BLOCK_TEXT,
    /// Characters that begin no token. Always inside an [`ERROR`](Self::ERROR) node.
    UNKNOWN,

    // ---- punctuation --------------------------------------------------------------------------
    /// `->`
    ARROW,
    /// `|`
    PIPE,
    /// `+`
    PLUS,
    /// `-`
    MINUS,
    /// `==`
    EQ2,
    /// `!=`
    NEQ,
    /// `<`
    LT,
    /// `>`
    GT,
    /// `<=`
    LTEQ,
    /// `>=`
    GTEQ,
    /// `=`
    EQ,
    /// `:`
    COLON,
    /// `,`
    COMMA,
    /// `.`
    DOT,
    /// `(`
    L_PAREN,
    /// `)`
    R_PAREN,
    /// `[`
    L_BRACK,
    /// `]`
    R_BRACK,
    /// `{`
    L_BRACE,
    /// `}`
    R_BRACE,
    /// `@`
    AT,

    // ---- keywords -----------------------------------------------------------------------------
    // The lexer only knows IDENT; the parser gives a word one of these kinds where it acts as a keyword.
    /// `use`
    USE_KW,
    /// `as`
    AS_KW,
    /// `import` (legacy)
    IMPORT_KW,
    /// `from`
    FROM_KW,
    /// `input`
    INPUT_KW,
    /// `output`
    OUTPUT_KW,
    /// `agent`
    AGENT_KW,
    /// `block`
    BLOCK_KW,
    /// `session`
    SESSION_KW,
    /// `resume`
    RESUME_KW,
    /// `let`
    LET_KW,
    /// `const`
    CONST_KW,
    /// `do`
    DO_KW,
    /// `parallel`
    PARALLEL_KW,
    /// `for`
    FOR_KW,
    /// `in`
    IN_KW,
    /// `repeat`
    REPEAT_KW,
    /// `loop`
    LOOP_KW,
    /// `until`
    UNTIL_KW,
    /// `while`
    WHILE_KW,
    /// `try`
    TRY_KW,
    /// `catch`
    CATCH_KW,
    /// `finally`
    FINALLY_KW,
    /// `throw`
    THROW_KW,
    /// `choice`
    CHOICE_KW,
    /// `option`
    OPTION_KW,
    /// `if`
    IF_KW,
    /// `elif`
    ELIF_KW,
    /// `else`
    ELSE_KW,
    /// `return`
    RETURN_KW,
    /// `break`
    BREAK_KW,
    /// `assert`
    ASSERT_KW,
    /// `and`
    AND_KW,
    /// `or`
    OR_KW,
    /// `not`
    NOT_KW,
    /// `true`
    TRUE_KW,
    /// `false`
    FALSE_KW,
    /// `null`
    NULL_KW,
    /// `map` after `|`
    MAP_KW,
    /// `filter` after `|`
    FILTER_KW,
    /// `pmap` after `|`
    PMAP_KW,
    /// `reduce` after `|`
    REDUCE_KW,
    /// `chunks` after `|`
    CHUNKS_KW,

    // ---- only in the parser's input, never in the tree ------------------------------------------
    /// End of a logical line.
    NEWLINE,
    /// A deeper line opens a block.
    INDENT,
    /// A block closes.
    DEDENT,
    /// End of the file.
    EOF,

    // ---- nodes: file and statements -------------------------------------------------------------
    /// The root.
    SOURCE_FILE,
    /// Tokens, and sometimes nodes, that the parser could not place.
    ERROR,
    /// `use "path" as name`
    USE_STMT,
    /// `import "x" from "y"`
    IMPORT_STMT,
    /// `input name: "…"`
    INPUT_STMT,
    /// `output name = EXPR` or `output EXPR`
    OUTPUT_STMT,
    /// `agent name:` with properties
    AGENT_DEF,
    /// `block name(params) (mods):` with a body
    BLOCK_DEF,
    /// `let`/`const` with a name or a record pattern
    LET_STMT,
    /// `x = …`, `x.y = …`, `name_{v} = …`; also a named branch of `parallel:`
    ASSIGN_STMT,
    /// `throw EXPR?`
    THROW_STMT,
    /// `return EXPR?`
    RETURN_STMT,
    /// `break`
    BREAK_STMT,
    /// `assert COND: EXPR?`
    ASSERT_STMT,
    /// An expression as a statement, which is what sessions, loops, calls … are.
    EXPR_STMT,

    // ---- nodes: parts of statements ----------------------------------------------------------------
    /// Statements under a `:`; indented, or one on the same line.
    BODY,
    /// A name being declared: variable, agent, block, parameter, property key, field, argument.
    NAME,
    /// A name being used.
    NAME_REF,
    /// `{ a, b }` after `let`
    RECORD_PATTERN,
    /// `name_{v}` on the left of `=`
    COMPUTED_NAME,
    /// `(a, b)` after a block's name or `reduce`
    PARAM_LIST,
    /// One parameter.
    PARAM,
    /// `(x, k: v)` of a call
    ARG_LIST,
    /// One argument, with or without name.
    ARG,
    /// `("first", on-fail: "continue")`, `(max: 5)`, `(max_depth: 50)`, `(retry: 3)`
    MODIFIER_LIST,
    /// One modifier, with or without name.
    MODIFIER,
    /// Properties of an agent, session or `resume`; nested properties of `permissions:` and others.
    PROPERTY_LIST,
    /// `key: value`
    PROPERTY,
    /// `- a` lines as a property's value
    DASH_LIST,
    /// One `- a`.
    DASH_ITEM,
    /// `|` and [`BLOCK_TEXT`](Self::BLOCK_TEXT) as a property's value
    BLOCK_STRING,
    /// A word that is no expression, as a property's value: `gpt-4.1`, `vendor/model`.
    BARE_WORD,
    /// The options of `choice`
    OPTION_LIST,
    /// `option "label":` with a body
    CHOICE_OPTION,
    /// `elif COND:` with a body
    ELIF_CLAUSE,
    /// `else:` with a body
    ELSE_CLAUSE,
    /// `catch as err:` with a body
    CATCH_CLAUSE,
    /// `finally:` with a body
    FINALLY_CLAUSE,
    /// `| map:`, `| filter:`, `| pmap:`, `| reduce(a, b):`, `| chunks(n)`
    PIPE_OP,

    // ---- nodes: expressions --------------------------------------------------------------------------
    /// `session …` in all its forms
    SESSION_EXPR,
    /// `resume: agent` with properties
    RESUME_EXPR,
    /// `do:` with a body
    DO_EXPR,
    /// `do name(args)`
    DO_CALL_EXPR,
    /// `parallel (mods):` with branches
    PARALLEL_EXPR,
    /// `for x, i in xs:` and `parallel for …`
    FOR_EXPR,
    /// `repeat N as i:`
    REPEAT_EXPR,
    /// `loop until COND (max: n) as i:`
    LOOP_EXPR,
    /// `if COND:` with clauses
    IF_EXPR,
    /// `choice COND:` with options
    CHOICE_EXPR,
    /// `try:` with clauses
    TRY_EXPR,
    /// `a -> b -> c`, flat
    ARROW_EXPR,
    /// `xs | map: …`, flat
    PIPE_EXPR,
    /// `a + b`, `a and b`, `a == b`
    BIN_EXPR,
    /// `not a`, `-a`
    PREFIX_EXPR,
    /// `(a)`
    PAREN_EXPR,
    /// `a.b`
    FIELD_EXPR,
    /// `a[i]`
    INDEX_EXPR,
    /// `name(k: v)`
    CALL_EXPR,
    /// `[a, b]`; also the unbracketed `a, b` after `context:`
    LIST_EXPR,
    /// `{a, b}`, `{k: v}`, `{"k": v}`
    OBJECT_EXPR,
    /// One field of an object.
    OBJECT_FIELD,
    /// A string, number, duration, `true`, `false` or `null`
    LITERAL,
    /// A discretion as an expression
    DISCRETION_EXPR,
}

use SyntaxKind::*;

impl SyntaxKind {
    /// The kind with this number, if there is one.
    pub fn from_raw(raw: u16) -> Option<SyntaxKind> {
        ALL.get(usize::from(raw)).copied()
    }

    /// Whitespace, comment or byte order mark.
    pub fn is_trivia(self) -> bool {
        matches!(self, WHITESPACE | COMMENT | BOM)
    }

    /// A token rather than a node.
    pub fn is_token(self) -> bool {
        self < SOURCE_FILE
    }

    /// A word acting as a keyword.
    pub fn is_keyword(self) -> bool {
        (USE_KW..=CHUNKS_KW).contains(&self)
    }

    /// The keyword kind of a word, wherever it stands; `None` for any other word.
    pub fn from_keyword(word: &str) -> Option<SyntaxKind> {
        SyntaxKind::from_keyword_bytes(word.as_bytes())
    }

    /// [`SyntaxKind::from_keyword`] for a part of a text of which nothing else is needed.
    pub(crate) fn from_keyword_bytes(word: &[u8]) -> Option<SyntaxKind> {
        Some(match word {
            b"use" => USE_KW,
            b"as" => AS_KW,
            b"import" => IMPORT_KW,
            b"from" => FROM_KW,
            b"input" => INPUT_KW,
            b"output" => OUTPUT_KW,
            b"agent" => AGENT_KW,
            b"block" => BLOCK_KW,
            b"session" => SESSION_KW,
            b"resume" => RESUME_KW,
            b"let" => LET_KW,
            b"const" => CONST_KW,
            b"do" => DO_KW,
            b"parallel" => PARALLEL_KW,
            b"for" => FOR_KW,
            b"in" => IN_KW,
            b"repeat" => REPEAT_KW,
            b"loop" => LOOP_KW,
            b"until" => UNTIL_KW,
            b"while" => WHILE_KW,
            b"try" => TRY_KW,
            b"catch" => CATCH_KW,
            b"finally" => FINALLY_KW,
            b"throw" => THROW_KW,
            b"choice" => CHOICE_KW,
            b"option" => OPTION_KW,
            b"if" => IF_KW,
            b"elif" => ELIF_KW,
            b"else" => ELSE_KW,
            b"return" => RETURN_KW,
            b"break" => BREAK_KW,
            b"assert" => ASSERT_KW,
            b"and" => AND_KW,
            b"or" => OR_KW,
            b"not" => NOT_KW,
            b"true" => TRUE_KW,
            b"false" => FALSE_KW,
            b"null" => NULL_KW,
            b"map" => MAP_KW,
            b"filter" => FILTER_KW,
            b"pmap" => PMAP_KW,
            b"reduce" => REDUCE_KW,
            b"chunks" => CHUNKS_KW,
            _ => return None,
        })
    }
}

impl From<SyntaxKind> for rowan::SyntaxKind {
    fn from(kind: SyntaxKind) -> Self {
        rowan::SyntaxKind(kind as u16)
    }
}

/// The language tag of our rowan trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProseLanguage {}

impl rowan::Language for ProseLanguage {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        // Trees are built only by this crate's parser, so every number is known.
        SyntaxKind::from_raw(raw.0).unwrap_or(ERROR)
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        kind.into()
    }
}

/// A node of a tree.
pub type SyntaxNode = rowan::SyntaxNode<ProseLanguage>;
/// A token of a tree.
pub type SyntaxToken = rowan::SyntaxToken<ProseLanguage>;
/// A node or a token.
pub type SyntaxElement = rowan::SyntaxElement<ProseLanguage>;
/// Children nodes of a node.
pub type SyntaxNodeChildren = rowan::SyntaxNodeChildren<ProseLanguage>;
/// The place and kind of a node, without keeping the tree alive.
pub type SyntaxNodePtr = rowan::ast::SyntaxNodePtr<ProseLanguage>;
