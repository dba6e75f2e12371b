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
mod journal;
mod lexer;
mod mutate;
mod parser;
mod program;
mod replay;
mod rewrites;
mod target;

pub use edits::{Edit, Edited};
pub use mutate::change;
pub use target::Target;

impl Target {
    /// Checks an input. Bytes that aren't text are replaced, as when a file is read.
    ///
    /// # Panics
    /// When something that must hold doesn't.
    pub fn check(self, input: &[u8]) {
        if self == Target::Journal {
            // Not every damage is text.
            return journal::check(input);
        }
        let text = String::from_utf8_lossy(input);
        match self {
            Target::Lexer => lexer::check(&text),
            Target::Parser => parser::check(&text),
            Target::Analysis => analysis::check(&text),
            Target::Formatter => formatter::check(&text),
            Target::Rewrites => rewrites::check(&text),
            Target::Edits => replay::check(&text),
            Target::Journal => {}
        }
    }
}
