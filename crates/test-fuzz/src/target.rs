//! The fuzz targets. `cargo xtask fuzz` has this list by including this file, so that it need not build what is tried.

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
    /// The canonical form, formatting of parts and while typing, quick fixes.
    Rewrites,
    /// Edits: the way to a text never shows.
    Edits,
    /// The journal of a run: what is whole is read, and what isn't is named.
    Journal,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 7] = [
        Target::Lexer,
        Target::Parser,
        Target::Analysis,
        Target::Formatter,
        Target::Rewrites,
        Target::Edits,
        Target::Journal,
    ];

    /// As on the command line, the name of its program in `fuzz/fuzz_targets/` and of the folder of its cases.
    pub fn name(self) -> &'static str {
        match self {
            Target::Lexer => "lexer",
            Target::Parser => "parser",
            Target::Analysis => "analysis",
            Target::Formatter => "formatter",
            Target::Rewrites => "rewrites",
            Target::Edits => "edits",
            Target::Journal => "journal",
        }
    }

    /// What it tries, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Target::Lexer => "Tokens, what is inside strings, chunks, positions",
            Target::Parser => "The tree and its errors",
            Target::Analysis => "All checks, lowering, questions at a place",
            Target::Formatter => "The formatted text: the same program, once and for all",
            Target::Rewrites => "The canonical form, formatting of parts and while typing, quick fixes",
            Target::Edits => "Edits, one after the other, compared with fresh starts",
            Target::Journal => "Journals of runs: what is whole is read, damage has a line and a byte",
        }
    }

    /// How many inputs CI tries: what each target gets through in well under half a minute.
    pub fn bounded_runs(self) -> u64 {
        match self {
            Target::Lexer | Target::Parser | Target::Journal => 40_000,
            Target::Analysis | Target::Formatter => 15_000,
            Target::Rewrites | Target::Edits => 4_000,
        }
    }
}
