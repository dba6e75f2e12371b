//! What the typed views are views of: nodes of a tree that know their parents, or lighter ones that only look down.

use rowan::{NodeOrToken, TextRange};

use crate::{
    ProseLanguage, SyntaxKind, SyntaxNode, SyntaxToken,
    reading::{Entry, Reading},
};

/// A node that typed views can be made of.
pub trait Node: Clone {
    /// Its tokens.
    type Token: Token;
    /// Its children, tokens among them.
    type Elements: Iterator<Item = NodeOrToken<Self, Self::Token>>;
    /// Its children that are nodes.
    type Children: Iterator<Item = Self> + Clone;

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

/// A node of a [`Reading`], which doesn't know its parent: for reading a whole text once, without making anything.
#[derive(Debug, Clone, Copy)]
pub struct Inner<'t> {
    tree: &'t Reading<'t>,
    index: u32,
}

/// A token of a [`Reading`].
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'t>(Inner<'t>);

impl<'t> Inner<'t> {
    /// The root of a tree.
    pub(crate) fn root(tree: &'t Reading<'t>) -> Self {
        Inner { tree, index: 0 }
    }

    fn entry(self) -> &'t Entry {
        &self.tree.entries[self.index as usize]
    }

    fn text(self) -> &'t str {
        // The end of a range is that of a token, so that it is in the text.
        self.tree
            .text
            .get(std::ops::Range::from(self.entry().range()))
            .unwrap_or_default()
    }

    fn element(self) -> NodeOrToken<Inner<'t>, Leaf<'t>> {
        match self.entry().kind.is_token() {
            true => NodeOrToken::Token(Leaf(self)),
            false => NodeOrToken::Node(self),
        }
    }
}

/// Children of an [`Inner`], tokens among them.
#[derive(Debug, Clone)]
pub struct InnerElements<'t> {
    next: Inner<'t>,
    end: u32,
}

impl<'t> InnerElements<'t> {
    /// The next that is wanted.
    fn next_of(&mut self, wanted: impl Fn(SyntaxKind) -> bool) -> Option<Inner<'t>> {
        while self.next.index < self.end {
            let it = self.next;
            let entry = it.entry();
            self.next.index = entry.next;
            if wanted(entry.kind) {
                return Some(it);
            }
        }
        None
    }
}

impl<'t> Iterator for InnerElements<'t> {
    type Item = NodeOrToken<Inner<'t>, Leaf<'t>>;
    fn next(&mut self) -> Option<Self::Item> {
        self.next_of(|_| true).map(Inner::element)
    }
}

/// Children of an [`Inner`] that are nodes.
#[derive(Debug, Clone)]
pub struct InnerChildren<'t>(InnerElements<'t>);

impl<'t> Iterator for InnerChildren<'t> {
    type Item = Inner<'t>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_of(|it| !it.is_token())
    }
}

impl<'t> Node for Inner<'t> {
    type Token = Leaf<'t>;
    type Elements = InnerElements<'t>;
    type Children = InnerChildren<'t>;

    fn kind(&self) -> SyntaxKind {
        self.entry().kind
    }
    fn text_range(&self) -> TextRange {
        self.entry().range()
    }
    fn spelling(&self) -> String {
        self.text().to_owned()
    }
    fn elements(&self) -> InnerElements<'t> {
        let next = Inner {
            index: self.index + 1,
            ..*self
        };
        InnerElements {
            next,
            end: self.entry().next,
        }
    }
    fn children(&self) -> InnerChildren<'t> {
        InnerChildren(self.elements())
    }
    fn first_child_of(&self, wanted: impl Fn(SyntaxKind) -> bool) -> Option<Self> {
        self.elements().next_of(|it| !it.is_token() && wanted(it))
    }
    fn first_token_of(&self, kind: SyntaxKind) -> Option<Leaf<'t>> {
        self.elements().next_of(|it| it == kind)?.element().into_token()
    }
    fn first_token(&self) -> Option<Leaf<'t>> {
        let mut first = self.elements().next_of(|_| true)?;
        while !first.kind().is_token() {
            first = first.elements().next_of(|_| true)?;
        }
        Some(Leaf(first))
    }
}

impl Token for Leaf<'_> {
    fn kind(&self) -> SyntaxKind {
        self.0.kind()
    }
    fn text_range(&self) -> TextRange {
        self.0.text_range()
    }
    fn text(&self) -> &str {
        self.0.text()
    }
}
