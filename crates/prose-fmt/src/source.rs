//! A flat view of a tree: tokens with the blanks before them, nodes with their parts. Everything the layout asks is an
//! index away.

use std::ops::{Deref, Range};

use prose_syntax::{
    GreenNode, NodeOrToken, Parse,
    SyntaxKind::{self, *},
    text::indent_width,
};

/// The immutable node type behind [`GreenNode`].
type Green = <GreenNode as Deref>::Target;

/// A token that is not blank: comments are among them, the byte order mark is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: SyntaxKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Line ends between this token and the one before it.
    pub(crate) breaks: u32,
    /// Whether a blank stands before it when all is on one line.
    pub(crate) space: bool,
    /// Whether the text has a line end in it.
    pub(crate) multi: bool,
    /// A comma before a closing bracket.
    pub(crate) trailing_comma: bool,
}

/// A node. Comments are not among its parts, but within its range of tokens.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) kind: SyntaxKind,
    /// Its tokens, comments that belong to it included.
    pub(crate) tokens: Range<u32>,
    kids: Range<u32>,
}

/// A part of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kid {
    Node(u32),
    Token(u32),
}

#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: Vec<Token>,
    /// In the order in which they begin; the root is the first.
    pub(crate) nodes: Vec<Node>,
    kids: Vec<Kid>,
    /// Column of each token if the whole file stood on one line, blanks as on one line.
    flat: Vec<u32>,
    /// Where the text begins: behind the byte order mark.
    pub(crate) start: u32,
}

impl<'a> Source<'a> {
    pub(crate) fn new(parse: &Parse, text: &'a str) -> Self {
        let mut builder = Builder {
            offset: 0,
            breaks: 0,
            start: 0,
            tokens: Vec::with_capacity(text.len() / 8 + 8),
            nodes: Vec::with_capacity(text.len() / 12 + 8),
            kids: Vec::with_capacity(text.len() / 6 + 8),
            stack: Vec::new(),
        };
        builder.node(parse.green());
        let mut source = Source {
            text,
            tokens: builder.tokens,
            nodes: builder.nodes,
            kids: builder.kids,
            flat: Vec::new(),
            start: builder.start,
        };
        source.measure();
        source
    }

    fn measure(&mut self) {
        let mut at = 0u32;
        self.flat.reserve(self.tokens.len());
        for token in &self.tokens {
            at += u32::from(token.space && !token.trailing_comma);
            self.flat.push(at);
            at += self.width_of(token);
        }
    }

    fn width_of(&self, token: &Token) -> u32 {
        if token.trailing_comma || token.kind == COMMENT {
            return 0;
        }
        let text = self.text.as_bytes().get(token.start as usize..token.end as usize);
        let text = text.unwrap_or_default();
        let line = match token.multi {
            true => &text[..memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())],
            false => text,
        };
        chars(line)
    }

    pub(crate) fn kids(&self, node: u32) -> &[Kid] {
        match self.nodes.get(node as usize) {
            Some(it) => &self.kids[it.kids.start as usize..it.kids.end as usize],
            None => &[],
        }
    }

    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// The number behind the last node inside a node.
    pub(crate) fn end_of(&self, node: u32) -> usize {
        let mut last = node;
        while let Some(inner) = self.kids(last).iter().rev().find_map(|kid| match *kid {
            Kid::Node(it) => Some(it),
            Kid::Token(_) => None,
        }) {
            last = inner;
        }
        last as usize + 1
    }

    pub(crate) fn token(&self, token: u32) -> &Token {
        &self.tokens[token as usize]
    }

    pub(crate) fn kind(&self, kid: Kid) -> SyntaxKind {
        match kid {
            Kid::Node(it) => self.node(it).kind,
            Kid::Token(it) => self.token(it).kind,
        }
    }

    /// The first token of a part that is no comment; `None` when there is none.
    pub(crate) fn first(&self, kid: Kid) -> Option<u32> {
        match kid {
            Kid::Token(it) => Some(it),
            Kid::Node(it) => {
                let mut tokens = self.node(it).tokens.clone();
                tokens.find(|it| self.token(*it).kind != COMMENT)
            }
        }
    }

    /// The last token of a node that is no comment.
    pub(crate) fn last(&self, node: u32) -> Option<u32> {
        let mut tokens = self.node(node).tokens.clone().rev();
        tokens.find(|it| self.token(*it).kind != COMMENT)
    }

    pub(crate) fn is_comment(&self, token: u32) -> bool {
        self.token(token).kind == COMMENT
    }

    /// Whether a line end, or a comment, stands before a token.
    pub(crate) fn breaks_before(&self, token: u32) -> bool {
        self.token(token).breaks > 0 || (token > 0 && self.is_comment(token - 1))
    }

    /// Whether a node's text begins on a line of its own.
    pub(crate) fn is_indented(&self, node: u32) -> bool {
        let tokens = &self.node(node).tokens;
        !tokens.is_empty() && self.breaks_before(tokens.start)
    }

    /// Blanks between a token and the one before it; for the number of tokens, what stands behind the last.
    pub(crate) fn gap(&self, token: usize) -> Range<usize> {
        let from = match token.checked_sub(1).and_then(|it| self.tokens.get(it)) {
            Some(before) => before.end,
            None => self.start,
        };
        let to = self
            .tokens
            .get(token)
            .map_or(self.text.len(), |it| it.start as usize);
        from as usize..to
    }

    /// Column of the first token of a line, by the layout's rule for tabs; `None` when it begins no line.
    pub(crate) fn column(&self, token: u32) -> Option<u32> {
        let gap = &self.text[self.gap(token as usize)];
        let blanks = match gap.rfind(['\n', '\r']) {
            Some(at) => &gap[at + 1..],
            None if token == 0 => gap,
            None => return None,
        };
        Some(indent_width(blanks))
    }

    /// Width of a token, up to the first line end in it.
    pub(crate) fn width(&self, token: u32) -> u32 {
        self.width_of(self.token(token))
    }

    /// Width of the last line of a token with several lines.
    pub(crate) fn last_line_width(&self, token: u32) -> u32 {
        let it = self.token(token);
        let text = &self.text.as_bytes()[it.start as usize..it.end as usize];
        let line = memchr::memrchr2(b'\n', b'\r', text).map_or(0, |at| at + 1);
        chars(&text[line..])
    }

    /// Width from the start of one token to the start of a later one, on one line.
    pub(crate) fn distance(&self, from: u32, to: u32) -> u32 {
        self.flat[to as usize].saturating_sub(self.flat[from as usize])
    }
}

fn chars(text: &[u8]) -> u32 {
    let count = text.iter().filter(|it| (**it & 0xc0) != 0x80).count();
    u32::try_from(count).unwrap_or(u32::MAX / 4)
}

struct Builder {
    offset: u32,
    breaks: u32,
    start: u32,
    tokens: Vec<Token>,
    nodes: Vec<Node>,
    kids: Vec<Kid>,
    /// Parts of the nodes that are being built.
    stack: Vec<Kid>,
}

impl Builder {
    fn count(&self) -> u32 {
        u32::try_from(self.tokens.len()).unwrap_or(u32::MAX)
    }

    fn node(&mut self, green: &Green) -> u32 {
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let kind = SyntaxKind::from_raw(green.kind().0).unwrap_or(ERROR);
        let first = self.count();
        self.nodes.push(Node {
            kind,
            tokens: first..first,
            kids: 0..0,
        });
        let from = self.stack.len();
        for child in green.children() {
            match child {
                NodeOrToken::Node(child) => {
                    let kid = self.node(child);
                    self.stack.push(Kid::Node(kid));
                }
                NodeOrToken::Token(token) => {
                    let kind = SyntaxKind::from_raw(token.kind().0).unwrap_or(UNKNOWN);
                    self.token(kind, token.text());
                }
            }
        }
        let end = self.count();
        self.blanks(kind, from);
        let kids = u32::try_from(self.kids.len()).unwrap_or(u32::MAX);
        self.kids.extend_from_slice(&self.stack[from..]);
        self.stack.truncate(from);
        let kids = kids..u32::try_from(self.kids.len()).unwrap_or(u32::MAX);
        self.nodes[id as usize].tokens = first..end;
        self.nodes[id as usize].kids = kids;
        id
    }

    fn token(&mut self, kind: SyntaxKind, text: &str) {
        let start = self.offset;
        self.offset += u32::try_from(text.len()).unwrap_or(0);
        match kind {
            BOM => self.start = self.offset,
            WHITESPACE => self.breaks += line_breaks(text),
            _ => {
                let index = self.count();
                // Blanks at the end of a comment's line count as behind it.
                let end = match kind {
                    COMMENT => start + u32::try_from(text.trim_ascii_end().len()).unwrap_or(0),
                    _ => self.offset,
                };
                let multi = matches!(kind, TRIPLE_STRING | DISCRETION | BLOCK_TEXT)
                    && memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some();
                self.tokens.push(Token {
                    kind,
                    start,
                    end,
                    breaks: self.breaks,
                    space: false,
                    multi,
                    trailing_comma: false,
                });
                self.breaks = 0;
                if kind != COMMENT {
                    self.stack.push(Kid::Token(index));
                }
            }
        }
    }

    /// Whether there are blanks between the parts of a node when all of it is on one line.
    fn blanks(&mut self, kind: SyntaxKind, from: usize) {
        for at in from + 1..self.stack.len() {
            let (before, kid) = (self.stack[at - 1], self.stack[at]);
            let first = match kid {
                Kid::Token(it) => it,
                Kid::Node(it) => {
                    let mut tokens = self.nodes[it as usize].tokens.clone();
                    match tokens.find(|it| self.tokens[*it as usize].kind != COMMENT) {
                        Some(it) => it,
                        None => continue,
                    }
                }
            };
            let (before, next) = (self.kid_kind(before), self.kid_kind(kid));
            self.tokens[first as usize].space = space(kind, before, next);
            if before == COMMA && is_closer(next) && takes_trailing_comma(kind) {
                if let Kid::Token(comma) = self.stack[at - 1] {
                    self.tokens[comma as usize].trailing_comma = true;
                }
                self.tokens[first as usize].space = kind == OBJECT_EXPR || kind == RECORD_PATTERN;
            }
        }
    }

    fn kid_kind(&self, kid: Kid) -> SyntaxKind {
        match kid {
            Kid::Node(it) => self.nodes[it as usize].kind,
            Kid::Token(it) => self.tokens[it as usize].kind,
        }
    }
}

/// Whether a blank stands between two neighbours in a node.
fn space(parent: SyntaxKind, before: SyntaxKind, next: SyntaxKind) -> bool {
    match (before, next) {
        (_, COLON | COMMA | DOT | ARG_LIST | PARAM_LIST | BLOCK_TEXT) | (DOT | L_PAREN | L_BRACK, _) => false,
        (_, R_PAREN | R_BRACK) => false,
        (L_BRACE, R_BRACE) => false,
        (_, L_BRACK) if parent == INDEX_EXPR => false,
        (MINUS, _) if parent == PREFIX_EXPR => false,
        _ => !matches!(parent, BARE_WORD | COMPUTED_NAME),
    }
}

pub(crate) fn is_closer(kind: SyntaxKind) -> bool {
    matches!(kind, R_PAREN | R_BRACK | R_BRACE)
}

/// Bracketed lists of elements; a comma may stand behind the last one.
pub(crate) fn takes_trailing_comma(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        LIST_EXPR | OBJECT_EXPR | ARG_LIST | PARAM_LIST | MODIFIER_LIST | RECORD_PATTERN
    )
}

/// Line ends in a text; CR LF is one.
pub(crate) fn line_breaks(text: &str) -> u32 {
    let mut count = 0;
    let mut before = 0;
    for byte in text.bytes() {
        count += u32::from(byte == b'\r' || (byte == b'\n' && before != b'\r'));
        before = byte;
    }
    count
}
