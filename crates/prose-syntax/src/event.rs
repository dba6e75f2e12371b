//! The parser's output: a flat list of events, turned into a green tree in one pass.
//!
//! Nodes can get a parent after the fact (`a` becomes the left side of `a + b`) through forward parents. This pass
//! also puts trivia into the tree and bounds the tree's depth.

use std::ops::Range;

use crate::{
    MAX_TREE_DEPTH, SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    lexer::Lexed,
    scan::Cut,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A node begins. `parent` is the distance to a later `Start` that becomes this node's parent, 0 if there is none.
    /// A `block` begins before the trivia in front of it, other nodes after it.
    Start {
        kind: SyntaxKind,
        block: bool,
        parent: u32,
    },
    /// A node with nothing in it but the next token, which is most nodes. `token` is the number of that token's kind; tokens
    /// have the lowest numbers, and one byte for it keeps events at eight.
    Leaf {
        token: u8,
        kind: SyntaxKind,
        parent: u32,
    },
    /// A `Start` that turned out not to be needed, or that was already used as a forward parent.
    Nothing,
    /// The current node ends.
    Finish,
    /// The next token, under this kind.
    Token { kind: SyntaxKind },
    /// Trivia before this raw index goes here.
    Trivia { until: u32 },
}

/// What makes a tree of nodes and tokens that come in the order of the text. Every token comes, blanks and comments among them.
pub(crate) trait TreeSink {
    /// A node begins.
    fn start(&mut self, kind: SyntaxKind);
    /// The node that began last ends.
    fn finish(&mut self);
    /// The next token: a range of the text.
    fn token(&mut self, kind: SyntaxKind, text: &str, range: Range<usize>);
    /// A node that holds the next token and nothing else.
    fn leaf(&mut self, kind: SyntaxKind, token: SyntaxKind, text: &str, range: Range<usize>);
}

/// Puts what the parser made of a part of the text into the tree, whose root is open.
pub(crate) fn build(
    text: &str,
    lexed: &Lexed,
    part: Range<Cut>,
    events: &mut [Event],
    builder: &mut impl TreeSink,
    errors: &mut Vec<SyntaxError>,
) {
    let sink = Sink {
        text,
        lexed,
        builder,
        raw: part.start.raw,
        end: part.end.raw,
        depth: 1,
        flat: 0,
        reported: false,
        errors,
        chain: Vec::new(),
    };
    sink.run(events);
}

struct Sink<'a, B> {
    text: &'a str,
    lexed: &'a Lexed,
    builder: &'a mut B,
    /// Next raw token.
    raw: usize,
    /// Raw tokens up to here are put into the tree.
    end: usize,
    /// Open nodes, the root included.
    depth: usize,
    /// Nodes left out because they are too deep.
    flat: usize,
    /// Whether the current top-level statement already has its error about depth.
    reported: bool,
    errors: &'a mut Vec<SyntaxError>,
    /// A buffer.
    chain: Vec<SyntaxKind>,
}

impl<B: TreeSink> Sink<'_, B> {
    fn run(mut self, events: &mut [Event]) {
        for index in 0..events.len() {
            match events[index] {
                Event::Nothing => {}
                Event::Start { kind, block, parent } => {
                    if !block {
                        self.trivia(self.end);
                    }
                    if parent > 0 {
                        self.parents(events, index, parent as usize);
                    }
                    self.start(kind);
                }
                Event::Leaf { token, kind, parent } => {
                    self.trivia(self.end);
                    if parent > 0 {
                        self.parents(events, index, parent as usize);
                    }
                    self.leaf(kind, SyntaxKind::from_raw(token.into()).unwrap_or(ERROR));
                }
                Event::Finish => self.finish(),
                Event::Token { kind } => self.token(kind),
                Event::Trivia { until } => self.trivia(until as usize),
            }
        }
        self.trivia(self.end);
    }

    /// Starts the nodes that came to surround the one at `index` later, outermost first.
    fn parents(&mut self, events: &mut [Event], index: usize, distance: usize) {
        let mut chain = std::mem::take(&mut self.chain);
        let (mut at, mut distance) = (index, distance);
        while distance > 0 {
            at += distance;
            match std::mem::replace(&mut events[at], Event::Nothing) {
                Event::Start { kind, parent, .. } => {
                    chain.push(kind);
                    distance = parent as usize;
                }
                _ => break,
            }
        }
        while let Some(kind) = chain.pop() {
            self.start(kind);
        }
        self.chain = chain;
    }

    fn start(&mut self, kind: SyntaxKind) {
        if self.flat > 0 || self.depth + 1 >= MAX_TREE_DEPTH {
            if self.flat == 0 {
                self.builder.start(ERROR);
                self.too_deep();
            }
            self.flat += 1;
            return;
        }
        if self.depth <= 1 {
            self.reported = false;
        }
        self.depth += 1;
        self.builder.start(kind);
    }

    fn leaf(&mut self, kind: SyntaxKind, token: SyntaxKind) {
        if self.flat > 0 || self.depth + 1 >= MAX_TREE_DEPTH {
            self.start(kind);
            self.emit(token);
            self.finish();
            return;
        }
        if self.depth <= 1 {
            self.reported = false;
        }
        self.builder
            .leaf(kind, token, self.text, self.lexed.span(self.raw));
        self.raw += 1;
    }

    fn too_deep(&mut self) {
        if !self.reported {
            self.reported = true;
            let range = self.lexed.range(self.raw);
            self.errors.push(SyntaxError {
                kind: SyntaxErrorKind::TooDeep,
                range,
            });
        }
    }

    fn finish(&mut self) {
        if self.flat > 0 {
            self.flat -= 1;
            if self.flat == 0 {
                self.builder.finish();
            }
            return;
        }
        self.depth -= 1;
        self.builder.finish();
    }

    fn trivia(&mut self, until: usize) {
        while self.raw < until {
            match self.lexed.kinds().get(self.raw) {
                Some(kind) if kind.is_trivia() => self.emit(*kind),
                _ => return,
            }
        }
    }

    fn token(&mut self, kind: SyntaxKind) {
        self.trivia(self.end);
        self.emit(kind);
    }

    fn emit(&mut self, kind: SyntaxKind) {
        self.builder.token(kind, self.text, self.lexed.span(self.raw));
        self.raw += 1;
    }
}
