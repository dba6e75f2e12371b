//! Builds green trees, and lets equal small parts of them be one in memory.
//!
//! Blanks, punctuation, keywords and most names come again and again, and so do the small nodes made of them. Each has one
//! place in a table of a fixed size; whatever was there goes. So a lookup costs a few instructions, and the table needs no
//! bound and no upkeep. Long texts are hardly ever equal and are not looked up at all.

use std::{cell::RefCell, ops::Range};

use rowan::{GreenNode, GreenToken, NodeOrToken};

use crate::{SyntaxKind, event::TreeSink};

type GreenElement = NodeOrToken<GreenNode, GreenToken>;

/// Places in each of the two tables; a power of two.
const PLACES: usize = 1024;

/// Longest text that is looked up, in bytes; [`TokenKey`] can't hold more.
const SHORT: usize = 16;

/// Small parts of the trees built last.
struct Cache {
    tokens: Tokens,
    /// Nodes with one child, which comes from here itself.
    nodes: Vec<Option<GreenNode>>,
}

struct Tokens {
    table: Vec<(TokenKey, Option<GreenToken>)>,
    /// Tokens of one byte, each at its byte: most blanks and punctuation.
    bytes: Vec<Option<GreenToken>>,
}

/// Kind and text of a short token.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct TokenKey {
    kind: u16,
    len: u16,
    /// The text's begin and its end, which overlap.
    text: [u64; 2],
}

thread_local! {
    /// One for all trees of a thread: the parts of a file are parsed one by one, and they are much alike.
    static CACHE: RefCell<Cache> = RefCell::new(Cache {
        tokens: Tokens {
            table: vec![(TokenKey::default(), None); PLACES],
            bytes: vec![None; 256],
        },
        nodes: vec![None; PLACES],
    });
}

/// A tree under construction.
pub(crate) struct Builder<'a> {
    cache: &'a mut Cache,
    /// Open nodes: kind, and how many children there were before it.
    parents: Vec<(SyntaxKind, usize)>,
    /// Children of all open nodes, each with a hash; 0 for those that were not looked up.
    children: Vec<(u64, GreenElement)>,
}

/// Builds one tree. The calls of `fill` must open exactly one outermost node and close what they open.
pub(crate) fn build(fill: impl FnOnce(&mut Builder<'_>)) -> GreenNode {
    CACHE.with_borrow_mut(|cache| {
        let mut builder = Builder {
            cache,
            parents: Vec::with_capacity(32),
            children: Vec::with_capacity(64),
        };
        fill(&mut builder);
        match builder.children.pop() {
            Some((_, NodeOrToken::Node(root))) => root,
            other => GreenNode::new(SyntaxKind::SOURCE_FILE.into(), other.map(|it| it.1)),
        }
    })
}

impl TreeSink for Builder<'_> {
    fn start(&mut self, kind: SyntaxKind) {
        self.parents.push((kind, self.children.len()));
    }

    fn finish(&mut self) {
        let Some((kind, first)) = self.parents.pop() else {
            return;
        };
        let children = &self.children[first..];
        // A lookup is worth it where an equal node is likely.
        let hash = match children {
            [(child, _)] if *child != 0 => mix(kind as u64, *child) | 1,
            _ => 0,
        };
        if hash == 0 {
            let node = GreenNode::new(kind.into(), self.children.drain(first..).map(|it| it.1));
            self.children.push((0, NodeOrToken::Node(node)));
            return;
        }
        let slot = &mut self.cache.nodes[slot_of(hash)];
        let node = match slot {
            Some(node) if node.kind() == kind.into() && same_child(node, children) => {
                let node = node.clone();
                self.children.truncate(first);
                node
            }
            _ => {
                let children = self.children.drain(first..).map(|it| it.1);
                slot.insert(GreenNode::new(kind.into(), children)).clone()
            }
        };
        self.children.push((hash, NodeOrToken::Node(node)));
    }

    fn token(&mut self, kind: SyntaxKind, text: &str, range: Range<usize>) {
        let (hash, token) = match self.cache.tokens.get(kind, text, range.clone()) {
            Some((hash, token)) => (hash, token.clone()),
            None => (0, GreenToken::new(kind.into(), &text[range])),
        };
        self.children.push((hash, NodeOrToken::Token(token)));
    }

    fn leaf(&mut self, kind: SyntaxKind, token: SyntaxKind, text: &str, range: Range<usize>) {
        let Some((hash, token)) = self.cache.tokens.get(token, text, range.clone()) else {
            let token = NodeOrToken::Token(GreenToken::new(token.into(), &text[range]));
            let node = GreenNode::new(kind.into(), std::iter::once(token));
            self.children.push((0, NodeOrToken::Node(node)));
            return;
        };
        let hash = mix(kind as u64, hash) | 1;
        let slot = &mut self.cache.nodes[slot_of(hash)];
        let node = match slot {
            Some(node) if node.kind() == kind.into() && is_child(node, token) => node.clone(),
            _ => {
                let child = std::iter::once(NodeOrToken::Token(token.clone()));
                slot.insert(GreenNode::new(kind.into(), child)).clone()
            }
        };
        self.children.push((hash, NodeOrToken::Node(node)));
    }
}

impl Tokens {
    /// A short token and its hash, which is never 0; `None` for a long one.
    #[inline]
    fn get(&mut self, kind: SyntaxKind, text: &str, range: Range<usize>) -> Option<(u64, &GreenToken)> {
        let bytes = &text.as_bytes()[range.clone()];
        if let [byte] = bytes {
            let hash = mix(kind as u64, u64::from(*byte)) | 1;
            let slot = &mut self.bytes[usize::from(*byte)];
            if !matches!(slot, Some(token) if token.kind() == kind.into()) {
                *slot = None;
            }
            let token = slot.get_or_insert_with(|| GreenToken::new(kind.into(), &text[range]));
            return Some((hash, token));
        }
        let key = TokenKey::new(kind, bytes)?;
        let hash = key.hash();
        let (old, slot) = &mut self.table[slot_of(hash)];
        if *old != key {
            *old = key;
            *slot = None;
        }
        let token = slot.get_or_insert_with(|| GreenToken::new(kind.into(), &text[range]));
        Some((hash, token))
    }
}

impl TokenKey {
    /// `None` for long texts, and for those of less than two bytes.
    #[inline]
    fn new(kind: SyntaxKind, text: &[u8]) -> Option<TokenKey> {
        let word = |it: &[u8; 4]| u64::from(u32::from_le_bytes(*it));
        let text_words = match (text.first_chunk(), text.last_chunk()) {
            (Some(begin), Some(end)) if text.len() <= SHORT => {
                [u64::from_le_bytes(*begin), u64::from_le_bytes(*end)]
            }
            (Some(_), _) => return None,
            _ => match (text.first_chunk(), text.last_chunk(), text) {
                (Some(begin), Some(end), _) => [word(begin), word(end)],
                (.., [first, .., last]) => [u64::from(*first) | u64::from(*last) << 8, u64::from(text[1])],
                _ => return None,
            },
        };
        Some(TokenKey {
            kind: kind as u16,
            len: text.len() as u16,
            text: text_words,
        })
    }

    /// Never 0.
    fn hash(&self) -> u64 {
        let head = u64::from(self.kind) << 16 | u64::from(self.len);
        mix(mix(head, self.text[0]), self.text[1]) | 1
    }
}

/// Whether a node's only child is this very element.
fn same_child(node: &GreenNode, children: &[(u64, GreenElement)]) -> bool {
    match (node.children().next(), children) {
        (Some(NodeOrToken::Node(old)), [(_, NodeOrToken::Node(new))]) => std::ptr::eq(old, &**new),
        (_, [(_, NodeOrToken::Token(new))]) => is_child(node, new),
        _ => false,
    }
}

/// Whether a node's only child is this very token. Nodes that are looked up have one child.
fn is_child(node: &GreenNode, token: &GreenToken) -> bool {
    matches!(node.children().next(), Some(NodeOrToken::Token(old)) if std::ptr::eq(old, &**token))
}

/// The multiplication spreads every bit to the upper ones, which [`slot_of`] takes.
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn slot_of(hash: u64) -> usize {
    (hash >> 40) as usize % PLACES
}
