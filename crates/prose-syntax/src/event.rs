//! The parser's output: a flat list of events, turned into a green tree in one pass.
//!
//! Nodes can get a parent after the fact (`a` becomes the left side of `a + b`) through forward parents. This pass
//! also puts trivia into the tree and bounds the tree's depth.

use rowan::{GreenNode, GreenNodeBuilder};

use crate::{
    MAX_TREE_DEPTH, SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    lexer::Lexed,
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
    /// A `Start` that turned out not to be needed, or that was already used as a forward parent.
    Nothing,
    /// The current node ends.
    Finish,
    /// The next token, under this kind.
    Token { kind: SyntaxKind },
    /// Trivia before this raw index goes here.
    Trivia { until: u32 },
}

/// Builds the tree.
pub(crate) fn build(
    text: &str,
    lexed: &Lexed,
    mut events: Vec<Event>,
    errors: &mut Vec<SyntaxError>,
) -> GreenNode {
    let mut sink = Sink {
        text,
        lexed,
        builder: GreenNodeBuilder::new(),
        raw: 0,
        depth: 0,
        flat: 0,
        reported: false,
        errors,
    };
    let mut chain = Vec::new();
    for index in 0..events.len() {
        match std::mem::replace(&mut events[index], Event::Nothing) {
            Event::Nothing => {}
            Event::Start { kind, block, parent } => {
                chain.push(kind);
                let (mut at, mut distance) = (index, parent as usize);
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
                if !block && sink.depth > 0 {
                    sink.trivia(lexed.len());
                }
                while let Some(kind) = chain.pop() {
                    sink.start(kind);
                }
            }
            Event::Finish => sink.finish(),
            Event::Token { kind } => sink.token(kind),
            Event::Trivia { until } => sink.trivia(until as usize),
        }
    }
    sink.builder.finish()
}

struct Sink<'a> {
    text: &'a str,
    lexed: &'a Lexed,
    builder: GreenNodeBuilder<'static>,
    /// Next raw token.
    raw: usize,
    depth: usize,
    /// Nodes left out because they are too deep.
    flat: usize,
    /// Whether the current top-level statement already has its error about depth.
    reported: bool,
    errors: &'a mut Vec<SyntaxError>,
}

impl Sink<'_> {
    fn start(&mut self, kind: SyntaxKind) {
        if self.flat > 0 || self.depth + 1 >= MAX_TREE_DEPTH {
            if self.flat == 0 {
                self.builder.start_node(ERROR.into());
                self.too_deep();
            }
            self.flat += 1;
            return;
        }
        if self.depth <= 1 {
            self.reported = false;
        }
        self.depth += 1;
        self.builder.start_node(kind.into());
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
                self.builder.finish_node();
            }
            return;
        }
        if self.depth == 1 {
            self.trivia(self.lexed.len());
        }
        self.depth -= 1;
        self.builder.finish_node();
    }

    fn trivia(&mut self, until: usize) {
        while self.raw < until && self.lexed.kind(self.raw).is_trivia() {
            self.emit(self.lexed.kind(self.raw));
        }
    }

    fn token(&mut self, kind: SyntaxKind) {
        self.trivia(self.lexed.len());
        self.emit(kind);
    }

    fn emit(&mut self, kind: SyntaxKind) {
        self.builder
            .token(kind.into(), self.lexed.text(self.text, self.raw));
        self.raw += 1;
    }
}
