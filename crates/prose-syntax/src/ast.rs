//! Typed views of the tree. See the crate's documentation for the shape of each node.
//!
//! Every accessor may answer `None`: a tree of a broken program misses parts.

mod expr;
mod node;
mod stmt;
mod string;

use crate::SyntaxKind;

pub use expr::*;
pub use node::*;
pub use rowan::ast::{AstNode, AstPtr};
pub use stmt::*;
pub use string::*;

/// A typed view of some kind of node. Those of a [`SyntaxNode`] are an [`AstNode`] as well.
pub trait View: Sized {
    /// What is looked at.
    type Node: Node;
    /// Whether nodes of a kind are looked at in this way.
    fn is(kind: SyntaxKind) -> bool;
    /// The view of a node, if it is of the kind.
    fn of(node: Self::Node) -> Option<Self>;
    /// The node.
    fn node(&self) -> &Self::Node;
}

/// Children that have a view.
#[derive(Debug, Clone)]
pub struct Views<N: Node, V> {
    children: N::Children,
    views: std::marker::PhantomData<V>,
}

impl<N: Node, V: View<Node = N>> Iterator for Views<N, V> {
    type Item = V;
    fn next(&mut self) -> Option<V> {
        self.children.find_map(V::of)
    }
}

/// First child of a type.
pub(crate) fn child<N: Node, V: View<Node = N>>(node: &N) -> Option<V> {
    node.first_child_of(V::is).and_then(V::of)
}

/// All children of a type.
pub(crate) fn children<N: Node, V: View<Node = N>>(node: &N) -> Views<N, V> {
    Views {
        children: node.children(),
        views: std::marker::PhantomData,
    }
}

/// First direct token of a kind.
pub(crate) fn token<N: Node>(node: &N, kind: SyntaxKind) -> Option<N::Token> {
    node.first_token_of(kind)
}

/// Declares a node type.
macro_rules! ast_node {
    ($( $(#[$meta:meta])* $name:ident = $kind:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name<N = $crate::SyntaxNode>(pub(crate) N);

        impl<N: $crate::ast::Node> $crate::ast::View for $name<N> {
            type Node = N;
            fn is(kind: $crate::SyntaxKind) -> bool {
                kind == $crate::SyntaxKind::$kind
            }
            fn of(node: N) -> Option<Self> {
                (node.kind() == $crate::SyntaxKind::$kind).then_some($name(node))
            }
            fn node(&self) -> &N {
                &self.0
            }
        }

        $crate::ast::ast_common!($name);
    )* };
}

/// What all views of a [`SyntaxNode`] have.
macro_rules! ast_common {
    ($name:ident) => {
        impl rowan::ast::AstNode for $name {
            type Language = $crate::ProseLanguage;
            fn can_cast(kind: $crate::SyntaxKind) -> bool {
                <Self as $crate::ast::View>::is(kind)
            }
            fn cast(node: $crate::SyntaxNode) -> Option<Self> {
                <Self as $crate::ast::View>::of(node)
            }
            fn syntax(&self) -> &$crate::SyntaxNode {
                <Self as $crate::ast::View>::node(self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(rowan::ast::AstNode::syntax(self), f)
            }
        }
    };
}

/// Declares a closed choice between node types.
macro_rules! ast_enum {
    ($( #[$meta:meta] )* $name:ident { $( $(#[$vmeta:meta])* $variant:ident($ty:ident), )* }) => {
        $( #[$meta] )*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name<N = $crate::SyntaxNode> { $( $(#[$vmeta])* $variant($ty<N>), )* }

        impl<N: $crate::ast::Node> $crate::ast::View for $name<N> {
            type Node = N;
            fn is(kind: $crate::SyntaxKind) -> bool {
                $( <$ty<N> as $crate::ast::View>::is(kind) )||*
            }
            fn of(node: N) -> Option<Self> {
                let kind = node.kind();
                $( if <$ty<N> as $crate::ast::View>::is(kind) {
                    return <$ty<N> as $crate::ast::View>::of(node).map($name::$variant);
                } )*
                None
            }
            fn node(&self) -> &N {
                match self { $( $name::$variant(it) => $crate::ast::View::node(it), )* }
            }
        }

        $crate::ast::ast_common!($name);

        $( impl<N> From<$ty<N>> for $name<N> {
            fn from(node: $ty<N>) -> Self {
                $name::$variant(node)
            }
        } )*
    };
}

pub(crate) use ast_common;
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

impl<N: Node> SourceFile<N> {
    /// Top-level statements, in order.
    pub fn statements(&self) -> Views<N, Stmt<N>> {
        children(&self.0)
    }
}

impl SourceFile {
    /// Parses a text; the findings are in the result.
    pub fn parse(text: &str) -> crate::Parse {
        crate::parse(text)
    }
}

impl<N: Node> Name<N> {
    /// The word's token. In a property key or field name it may also be a [`SyntaxKind::STRING`].
    pub fn token(&self) -> Option<N::Token> {
        self.0.first_token().filter(|it| !it.kind().is_trivia())
    }

    /// The name itself (empty only in a broken tree).
    pub fn text(&self) -> String {
        self.token().map(|it| it.text().to_owned()).unwrap_or_default()
    }
}

impl<N: Node> Name<N> {
    /// Whether it is this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.token().is_some_and(|it| it.text() == name)
    }
}

impl<N: Node> NameRef<N> {
    /// The word's token.
    pub fn token(&self) -> Option<N::Token> {
        self.0.first_token().filter(|it| !it.kind().is_trivia())
    }

    /// The name itself (empty only in a broken tree).
    pub fn text(&self) -> String {
        self.token().map(|it| it.text().to_owned()).unwrap_or_default()
    }
}
