//! What must hold for every text and every series of edits, one function for each [`Target`], and [`change`], which makes texts
//! that try it. The fuzzer (`fuzz/`) and the ordinary tests call the same functions.
//!
//! Deliberately absent: the fuzzer itself, so that this builds like everything else; expectations about single programs.
//!
//! Architecture invariant: an input is a text that a person can read and edit, and a violation is a panic that says what is
//! wrong. Only tests use this crate.

mod analysis;
mod edits;
mod formatter;
mod lexer;
mod mutate;
mod parser;
mod replay;

pub use edits::{Edit, Edited};
pub use mutate::change;

/// A part of the toolchain with its promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Tokens, pieces of strings, chunks and positions.
    Lexer,
    /// The tree and its errors.
    Parser,
    /// All checks, lowering, and what the editor asks at a place.
    Analysis,
    /// The formatted text: the same program, once and for all.
    Formatter,
    /// Edits: the way to a text never shows.
    Edits,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 5] = [
        Target::Lexer,
        Target::Parser,
        Target::Analysis,
        Target::Formatter,
        Target::Edits,
    ];

    /// As on the command line, and the name of the folder of its cases.
    pub fn name(self) -> &'static str {
        match self {
            Target::Lexer => "lexer",
            Target::Parser => "parser",
            Target::Analysis => "analysis",
            Target::Formatter => "formatter",
            Target::Edits => "edits",
        }
    }

    /// Checks an input. Bytes that aren't text are replaced, as when a file is read.
    ///
    /// # Panics
    /// When something that must hold doesn't.
    pub fn check(self, input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        match self {
            Target::Lexer => lexer::check(&text),
            Target::Parser => parser::check(&text),
            Target::Analysis => analysis::check(&text),
            Target::Formatter => formatter::check(&text),
            Target::Edits => replay::check(&text),
        }
    }
}
