//! The syntax of `.prose`: text in, lossless tree and typed errors out.
//!
//! Owns the lexer, the layout (indentation), the event parser, the rowan tree, its typed view ([`ast`]), what is inside
//! strings and discretions ([`text`]), words that are like others ([`near`]), positions ([`LineIndex`]) and the cutting of a
//! file into chunks ([`ChunkMap`]).
//!
//! Deliberately absent: names and scopes, meaning of properties, anything about other files (`prose-hir`); queries,
//! async, protocol types, IO.
//!
//! Architecture invariant: `the tree's text equals the source` for every text, the parser never fails, and the
//! depth of a tree is bounded by [`MAX_TREE_DEPTH`].
//!
//! # Shape of the tree
//!
//! `X?` optional, `X*` any number, `a | b` either. Tokens are in quotes or upper case. A node begins and ends with a
//! real token, so its range never includes surrounding blanks or comments; the exception are indented `BODY`,
//! `PROPERTY_LIST`, `OPTION_LIST` and `DASH_LIST`, which own everything from the end of the line that opens them, comments included.
//! Parts may be missing in broken programs. Words that act as keywords have their `*_KW` kind, all others are `IDENT`.
//!
//! ```text
//! SOURCE_FILE    STMT*
//! USE_STMT       'use' LITERAL ('as' NAME)?
//! IMPORT_STMT    'import' LITERAL 'from' LITERAL
//! INPUT_STMT     'input' NAME ':' EXPR MODIFIER_LIST?
//! OUTPUT_STMT    'output' (NAME ('=' | ':'))? EXPR
//! AGENT_DEF      'agent' NAME ':' PROPERTY_LIST
//! BLOCK_DEF      'block' NAME PARAM_LIST? MODIFIER_LIST? ':' BODY
//! LET_STMT       ('let' | 'const') (NAME | RECORD_PATTERN) '=' EXPR
//! ASSIGN_STMT    (NAME_REF | FIELD_EXPR | INDEX_EXPR | COMPUTED_NAME) '=' EXPR    (also a named parallel branch)
//! THROW_STMT     'throw' EXPR?
//! RETURN_STMT    'return' EXPR?
//! BREAK_STMT     'break'
//! ASSERT_STMT    'assert' EXPR (':' EXPR)?
//! EXPR_STMT      EXPR
//!
//! BODY           STMT*                              after ':', indented or (one statement) on the same line
//! RECORD_PATTERN '{' NAME,* '}'
//! COMPUTED_NAME  IDENT '{' EXPR '}'
//! PARAM_LIST     '(' PARAM,* ')'                    PARAM: NAME
//! MODIFIER_LIST  '(' MODIFIER,* ')'                 MODIFIER: (NAME ':')? EXPR
//! ARG_LIST       '(' ARG,* ')'                      ARG: (NAME ':')? EXPR
//! PROPERTY_LIST  PROPERTY*                          on the statement's line or indented under it, or both (two nodes)
//! PROPERTY       NAME ':' (EXPR | PROPERTY_LIST | DASH_LIST | BLOCK_STRING | BARE_WORD)
//! DASH_LIST      DASH_ITEM*                         DASH_ITEM: '-' EXPR
//! BLOCK_STRING   '|' BLOCK_TEXT
//!
//! SESSION_EXPR   'session' LITERAL ('as' NAME)? MODIFIER_LIST? ':'? PROPERTY_LIST*
//!              | 'session' NAME? ':' NAME_REF? LITERAL? ('as' NAME)? MODIFIER_LIST? ':'? PROPERTY_LIST*
//! RESUME_EXPR    as SESSION_EXPR, with 'resume'
//! DO_EXPR        'do' ':' BODY
//! DO_CALL_EXPR   'do' NAME_REF ARG_LIST?
//! PARALLEL_EXPR  'parallel' MODIFIER_LIST? ':' BODY
//! FOR_EXPR       'parallel'? 'for' NAME (',' NAME)? 'in' EXPR MODIFIER_LIST? ':' BODY
//! REPEAT_EXPR    'repeat' EXPR ('as' NAME)? MODIFIER_LIST? ':' BODY
//! LOOP_EXPR      'loop' (('until' | 'while') EXPR)? MODIFIER_LIST? ('as' NAME)? ':' BODY
//! IF_EXPR        'if' EXPR ':' BODY ELIF_CLAUSE* ELSE_CLAUSE?
//! ELIF_CLAUSE    'elif' EXPR ':' BODY               (also 'else' 'if', with a warning)
//! ELSE_CLAUSE    'else' ':' BODY
//! CHOICE_EXPR    'choice' EXPR ':' OPTION_LIST
//! OPTION_LIST    CHOICE_OPTION*                     CHOICE_OPTION: 'option' EXPR ':' BODY
//! TRY_EXPR       'try' ':' BODY CATCH_CLAUSE* FINALLY_CLAUSE?
//! CATCH_CLAUSE   'catch' ('as' NAME)? ':' BODY
//! FINALLY_CLAUSE 'finally' ':' BODY
//! ARROW_EXPR     EXPR ('->' EXPR)+
//! PIPE_EXPR      EXPR PIPE_OP+
//! PIPE_OP        '|' ('map' | 'filter' | 'pmap' | 'reduce' PARAM_LIST) ':' BODY  |  '|' 'chunks' ARG_LIST
//! BIN_EXPR       EXPR ('or' | 'and' | '==' | '!=' | '<' | '>' | '<=' | '>=' | '+' | '-') EXPR
//! PREFIX_EXPR    ('not' | '-') EXPR
//! PAREN_EXPR     '(' EXPR ')'
//! FIELD_EXPR     EXPR '.' NAME
//! INDEX_EXPR     EXPR '[' EXPR ']'
//! CALL_EXPR      EXPR ARG_LIST                      ('name(k: v)', no 'do')
//! LIST_EXPR      '[' EXPR,* ']'                     or, after 'context:', EXPR ',' EXPR,*
//! OBJECT_EXPR    '{' OBJECT_FIELD,* '}'             OBJECT_FIELD: EXPR (shorthand) | NAME ':' EXPR (NAME may hold a STRING)
//! LITERAL        STRING | TRIPLE_STRING | NUMBER | DURATION | 'true' | 'false' | 'null'
//! DISCRETION_EXPR DISCRETION
//! NAME           IDENT (declared)                   NAME_REF: IDENT (used)
//! ERROR          anything; ignore it (its error was reported)
//! ```
//!
//! Strings and discretions are single tokens; [`ast::StringToken`] and [`ast::DiscretionToken`] give their segments.

pub mod ast;
mod builder;
mod chunk_map;
mod error;
mod event;
mod grammar;
mod layout;
mod lexer;
pub mod line_index;
pub mod near;
mod parser;
mod parsing;
mod reading;
mod scan;
mod syntax_kind;
pub mod text;

pub use chunk_map::{ChunkMap, Splice};
pub use error::{SessionForm, SyntaxError, SyntaxErrorKind};
pub use line_index::{LineCol, LineIndex};
pub use parsing::{cut_and_read, parse, read};
pub use reading::Reading;
pub use rowan::{GreenNode, NodeOrToken, TextRange, TextSize, TokenAtOffset, WalkEvent};
pub use syntax_kind::{
    ProseLanguage, SyntaxElement, SyntaxKind, SyntaxNode, SyntaxNodeChildren, SyntaxNodePtr, SyntaxToken,
};

/// Deepest nesting of nodes a tree can have. What is nested deeper is kept flat, with an error.
pub const MAX_TREE_DEPTH: usize = 1024;

/// Longest text in bytes; offsets are 32 bits wide. Callers refuse longer files.
pub const MAX_TEXT_LEN: usize = u32::MAX as usize;

/// What parsing gives: always a tree, and the findings in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parse {
    green: GreenNode,
    errors: Vec<SyntaxError>,
}

impl Parse {
    /// The root node.
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }

    /// The typed root.
    pub fn tree(&self) -> ast::SourceFile {
        ast::SourceFile(self.syntax())
    }

    /// The immutable tree behind it; cheap to clone and to send. Its equality compares whole trees.
    pub fn green(&self) -> &GreenNode {
        &self.green
    }

    /// All findings, ordered by place: errors, warnings and hints.
    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.errors
            .iter()
            .any(|it| it.severity() == prose_model::codes::Severity::Error)
    }
}

/// A tree as text: one line per node and token with its range, indented by depth. For tests and bug reports.
pub fn dump(node: &SyntaxNode) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for event in node.preorder_with_tokens() {
        match event {
            WalkEvent::Enter(element) => {
                let indent = "  ".repeat(depth);
                let (kind, range) = (element.kind(), element.text_range());
                match element {
                    NodeOrToken::Node(_) => out.push_str(&format!("{indent}{kind:?}@{range:?}\n")),
                    NodeOrToken::Token(tok) => {
                        out.push_str(&format!("{indent}{kind:?}@{range:?} {:?}\n", tok.text()))
                    }
                }
                depth += 1;
            }
            WalkEvent::Leave(_) => depth -= 1,
        }
    }
    out
}
