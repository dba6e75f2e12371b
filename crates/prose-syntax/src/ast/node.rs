//! What the typed views are views of: nodes of a tree that know their parents, or lighter ones that only look down.

use rowan::{GreenNodeData, GreenTokenData, NodeOrToken, TextRange, TextSize};

use crate::{ProseLanguage, SyntaxKind, SyntaxNode, SyntaxToken};

/// A node that typed views can be made of.
pub trait Node: Clone {
    /// Its tokens.
    type Token: Token;
    /// Its children, tokens among them.
    type Elements: Iterator<Item = NodeOrToken<Self, Self::Token>>;
    /// Its children that are nodes.
    type Children: Iterator<Item = Self>;

    /// What it is.
    fn kind(&self) -> SyntaxKind;
    /// Where it is.
    fn text_range(&self) -> TextRange;
    /// Its text.
    fn spelling(&self) -> String;
    /// All children, in order.
    fn elements(&self) -> Self::Elements;
    /// The children that are nodes, in order.
    fn children(&self) -> Self::Children;
    /// The first child that is a node of a wanted kind.
    fn first_child_of(&self, wanted: impl Fn(SyntaxKind) -> bool) -> Option<Self>;
    /// The first direct token of a kind, unless a node of that kind comes first.
    fn first_token_of(&self, kind: SyntaxKind) -> Option<Self::Token>;
    /// The token it begins with.
    fn first_token(&self) -> Option<Self::Token>;
    /// The direct tokens, in order.
    fn tokens(&self) -> impl Iterator<Item = Self::Token> + use<Self> {
        self.elements().filter_map(NodeOrToken::into_token)
    }
}

/// A token of such a node.
pub trait Token: Clone {
    /// What it is.
    fn kind(&self) -> SyntaxKind;
    /// Where it is.
    fn text_range(&self) -> TextRange;
    /// Its text.
    fn text(&self) -> &str;
}

impl Node for SyntaxNode {
    type Token = SyntaxToken;
    type Elements = rowan::SyntaxElementChildren<ProseLanguage>;
    type Children = rowan::SyntaxNodeChildren<ProseLanguage>;

    fn kind(&self) -> SyntaxKind {
        SyntaxNode::kind(self)
    }
    fn text_range(&self) -> TextRange {
        SyntaxNode::text_range(self)
    }
    fn spelling(&self) -> String {
        self.text().to_string()
    }
    fn elements(&self) -> Self::Elements {
        self.children_with_tokens()
    }
    fn children(&self) -> Self::Children {
        SyntaxNode::children(self)
    }
    fn first_child_of(&self, wanted: impl Fn(SyntaxKind) -> bool) -> Option<Self> {
        // Looks at kinds before it makes a node of the child.
        self.first_child_by_kind(&wanted)
    }
    fn first_token_of(&self, kind: SyntaxKind) -> Option<SyntaxToken> {
        self.first_child_or_token_by_kind(&|it| it == kind)?.into_token()
    }
    fn first_token(&self) -> Option<SyntaxToken> {
        SyntaxNode::first_token(self)
    }
}

impl Token for SyntaxToken {
    fn kind(&self) -> SyntaxKind {
        SyntaxToken::kind(self)
    }
    fn text_range(&self) -> TextRange {
        SyntaxToken::text_range(self)
    }
    fn text(&self) -> &str {
        SyntaxToken::text(self)
    }
}

/// A node that doesn't know its parent: for reading a whole tree once, without making anything.
#[derive(Debug, Clone, Copy)]
pub struct Inner<'t> {
    green: &'t GreenNodeData,
    start: TextSize,
}

/// A token of an [`Inner`].
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'t> {
    green: &'t GreenTokenData,
    start: TextSize,
}

impl<'t> Inner<'t> {
    /// The root of a tree, where ranges begin.
    pub(crate) fn root(green: &'t GreenNodeData) -> Self {
        Inner {
            green,
            start: TextSize::new(0),
        }
    }
}

/// Children of an [`Inner`], tokens among them.
#[derive(Debug, Clone)]
pub struct InnerElements<'t> {
    rest: rowan::Children<'t>,
    at: TextSize,
}

impl<'t> Iterator for InnerElements<'t> {
    type Item = NodeOrToken<Inner<'t>, Leaf<'t>>;
    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        Some(match self.rest.next()? {
            NodeOrToken::Node(green) => {
                self.at += green.text_len();
                NodeOrToken::Node(Inner { green, start })
            }
            NodeOrToken::Token(green) => {
                self.at += green.text_len();
                NodeOrToken::Token(Leaf { green, start })
            }
        })
    }
}

/// Children of an [`Inner`] that are nodes.
#[derive(Debug, Clone)]
pub struct InnerChildren<'t>(InnerElements<'t>);

impl<'t> Iterator for InnerChildren<'t> {
    type Item = Inner<'t>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.find_map(NodeOrToken::into_node)
    }
}

fn kind_of(raw: rowan::SyntaxKind) -> SyntaxKind {
    <ProseLanguage as rowan::Language>::kind_from_raw(raw)
}

impl<'t> Node for Inner<'t> {
    type Token = Leaf<'t>;
    type Elements = InnerElements<'t>;
    type Children = InnerChildren<'t>;

    fn kind(&self) -> SyntaxKind {
        kind_of(self.green.kind())
    }
    fn text_range(&self) -> TextRange {
        TextRange::at(self.start, self.green.text_len())
    }
    fn spelling(&self) -> String {
        self.green.to_string()
    }
    fn elements(&self) -> InnerElements<'t> {
        InnerElements {
            rest: self.green.children(),
            at: self.start,
        }
    }
    fn children(&self) -> InnerChildren<'t> {
        InnerChildren(self.elements())
    }
    fn first_child_of(&self, wanted: impl Fn(SyntaxKind) -> bool) -> Option<Self> {
        self.children().find(|it| wanted(it.kind()))
    }
    fn first_token_of(&self, kind: SyntaxKind) -> Option<Leaf<'t>> {
        let wanted = |it: &NodeOrToken<Self, Leaf<'t>>| match it {
            NodeOrToken::Node(it) => it.kind() == kind,
            NodeOrToken::Token(it) => it.kind() == kind,
        };
        self.elements().find(wanted)?.into_token()
    }
    fn first_token(&self) -> Option<Leaf<'t>> {
        match self.elements().next()? {
            NodeOrToken::Node(it) => it.first_token(),
            NodeOrToken::Token(it) => Some(it),
        }
    }
}

impl Token for Leaf<'_> {
    fn kind(&self) -> SyntaxKind {
        kind_of(self.green.kind())
    }
    fn text_range(&self) -> TextRange {
        TextRange::at(self.start, self.green.text_len())
    }
    fn text(&self) -> &str {
        self.green.text()
    }
}
