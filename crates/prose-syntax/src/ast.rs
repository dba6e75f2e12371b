//! Typed views of the tree. See the crate's documentation for the shape of each node.
//!
//! Every accessor may answer `None`: a tree of a broken program misses parts.

mod expr;
mod stmt;
mod string;

use crate::{ProseLanguage, SyntaxKind, SyntaxNode, SyntaxToken};

pub use expr::*;
pub use rowan::ast::{AstChildren, AstNode, AstPtr};
pub use stmt::*;
pub use string::*;

/// First child of a type.
pub(crate) fn child<N: AstNode<Language = ProseLanguage>>(node: &SyntaxNode) -> Option<N> {
    // Looks at kinds before it makes a node of the child.
    node.first_child_by_kind(&N::can_cast).and_then(N::cast)
}

/// All children of a type.
pub(crate) fn children<N: AstNode<Language = ProseLanguage>>(node: &SyntaxNode) -> AstChildren<N> {
    rowan::ast::support::children(node)
}

/// First direct token of a kind.
pub(crate) fn token(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxToken> {
    node.first_child_or_token_by_kind(&|it| it == kind)?.into_token()
}

/// Declares a node type.
macro_rules! ast_node {
    ($( $(#[$meta:meta])* $name:ident = $kind:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(pub(crate) $crate::SyntaxNode);

        impl rowan::ast::AstNode for $name {
            type Language = $crate::ProseLanguage;
            fn can_cast(kind: $crate::SyntaxKind) -> bool {
                kind == $crate::SyntaxKind::$kind
            }
            fn cast(node: $crate::SyntaxNode) -> Option<Self> {
                (node.kind() == $crate::SyntaxKind::$kind).then_some($name(node))
            }
            fn syntax(&self) -> &$crate::SyntaxNode {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    )* };
}

/// Declares a closed choice between node types.
macro_rules! ast_enum {
    ($( #[$meta:meta] )* $name:ident { $( $(#[$vmeta:meta])* $variant:ident($ty:ident), )* }) => {
        $( #[$meta] )*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$vmeta])* $variant($ty), )* }

        impl rowan::ast::AstNode for $name {
            type Language = $crate::ProseLanguage;
            fn can_cast(kind: $crate::SyntaxKind) -> bool {
                $( <$ty as rowan::ast::AstNode>::can_cast(kind) )||*
            }
            fn cast(node: $crate::SyntaxNode) -> Option<Self> {
                $( if <$ty as rowan::ast::AstNode>::can_cast(node.kind()) {
                    return <$ty as rowan::ast::AstNode>::cast(node).map($name::$variant);
                } )*
                None
            }
            fn syntax(&self) -> &$crate::SyntaxNode {
                match self { $( $name::$variant(it) => rowan::ast::AstNode::syntax(it), )* }
            }
        }

        $( impl From<$ty> for $name {
            fn from(node: $ty) -> Self {
                $name::$variant(node)
            }
        } )*

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(rowan::ast::AstNode::syntax(self), f)
            }
        }
    };
}

pub(crate) use ast_enum;
pub(crate) use ast_node;

ast_node! {
    /// A whole file, or one chunk of it.
    SourceFile = SOURCE_FILE;
    /// A name being declared. Also property keys, field names and argument names.
    Name = NAME;
    /// A name being used.
    NameRef = NAME_REF;
    /// What the parser could not place.
    Error = ERROR;
}

impl SourceFile {
    /// Top-level statements, in order.
    pub fn statements(&self) -> AstChildren<Stmt> {
        children(&self.0)
    }

    /// Parses a text; the findings are in the result.
    pub fn parse(text: &str) -> crate::Parse {
        crate::parse(text)
    }
}

impl Name {
    /// The word's token. In a property key or field name it may also be a [`SyntaxKind::STRING`].
    pub fn token(&self) -> Option<SyntaxToken> {
        self.0.first_token().filter(|it| !it.kind().is_trivia())
    }

    /// The name itself (empty only in a broken tree).
    pub fn text(&self) -> String {
        self.token().map(|it| it.text().to_owned()).unwrap_or_default()
    }
}

impl NameRef {
    /// The word's token.
    pub fn token(&self) -> Option<SyntaxToken> {
        self.0.first_token().filter(|it| !it.kind().is_trivia())
    }

    /// The name itself (empty only in a broken tree).
    pub fn text(&self) -> String {
        self.token().map(|it| it.text().to_owned()).unwrap_or_default()
    }
}
