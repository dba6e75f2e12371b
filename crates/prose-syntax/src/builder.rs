//! Builds green trees, and lets equal small parts of them be one in memory.
//!
//! Blanks, punctuation, keywords and most names come again and again, and so do the small nodes made of them. Each has one
//! place in a table of a fixed size; whatever was there goes. So a lookup costs a few instructions, and the table needs no
//! bound and no upkeep. Long texts are hardly ever equal and are not looked up at all.

use std::{cell::RefCell, ops::Range};

use rowan::{GreenNode, GreenToken, NodeOrToken};

use crate::SyntaxKind;

type GreenElement = NodeOrToken<GreenNode, GreenToken>;

/// Places in each of the two tables; a power of two.
const PLACES: usize = 1024;

/// Longest text that is looked up, in bytes; [`TokenKey`] can't hold more.
const SHORT: usize = 16;

/// Most children a node has that is looked up.
const FEW: usize = 3;

/// Small parts of the trees built last.
struct Cache {
    tokens: Vec<(TokenKey, Option<GreenToken>)>,
    /// Tokens of one byte, each at its byte: most blanks and punctuation.
    bytes: Vec<Option<GreenToken>>,
    /// Nodes all of whose children come from here themselves.
    nodes: Vec<Option<GreenNode>>,
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
        tokens: vec![(TokenKey::default(), None); PLACES],
        bytes: vec![None; 256],
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

impl Builder<'_> {
    pub(crate) fn start(&mut self, kind: SyntaxKind) {
        self.parents.push((kind, self.children.len()));
    }

    pub(crate) fn finish(&mut self) {
        let Some((kind, first)) = self.parents.pop() else {
            return;
        };
        let children = &self.children[first..];
        let mut hash = kind as u64;
        if children.len() <= FEW {
            for (child, _) in children {
                if *child == 0 {
                    hash = 0;
                    break;
                }
                hash = mix(hash, *child);
            }
        } else {
            hash = 0;
        }
        if hash == 0 {
            let node = GreenNode::new(kind.into(), self.children.drain(first..).map(|it| it.1));
            self.children.push((0, NodeOrToken::Node(node)));
            return;
        }
        let slot = &mut self.cache.nodes[slot_of(hash)];
        let node = match slot {
            Some(node) if node.kind() == kind.into() && same_children(node, children) => {
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

    /// The next token: a range of the text.
    pub(crate) fn token(&mut self, kind: SyntaxKind, text: &str, range: Range<usize>) {
        let bytes = &text.as_bytes()[range.clone()];
        if let [byte] = bytes {
            let hash = mix(kind as u64, u64::from(*byte)) | 1;
            let slot = &mut self.cache.bytes[usize::from(*byte)];
            let token = match slot {
                Some(token) if token.kind() == kind.into() => token.clone(),
                _ => slot.insert(GreenToken::new(kind.into(), &text[range])).clone(),
            };
            self.children.push((hash, NodeOrToken::Token(token)));
            return;
        }
        let Some(key) = TokenKey::new(kind, bytes) else {
            let token = GreenToken::new(kind.into(), &text[range]);
            self.children.push((0, NodeOrToken::Token(token)));
            return;
        };
        let hash = key.hash();
        let (old, slot) = &mut self.cache.tokens[slot_of(hash)];
        let token = match slot {
            Some(token) if *old == key => token.clone(),
            _ => {
                *old = key;
                slot.insert(GreenToken::new(kind.into(), &text[range])).clone()
            }
        };
        self.children.push((hash, NodeOrToken::Token(token)));
    }
}

impl TokenKey {
    /// `None` for long texts, and for those of less than two bytes.
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

/// Whether a node's children are these very elements.
fn same_children(node: &GreenNode, children: &[(u64, GreenElement)]) -> bool {
    let mut old = node.children();
    old.len() == children.len()
        && children.iter().all(|(_, new)| match (old.next(), new) {
            (Some(NodeOrToken::Node(old)), NodeOrToken::Node(new)) => std::ptr::eq(old, &**new),
            (Some(NodeOrToken::Token(old)), NodeOrToken::Token(new)) => std::ptr::eq(old, &**new),
            _ => false,
        })
}

/// The multiplication spreads every bit to the upper ones, which [`slot_of`] takes.
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn slot_of(hash: u64) -> usize {
    (hash >> 40) as usize % PLACES
}
