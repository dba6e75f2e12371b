//! What the checks report.

use prose_model::codes::Severity;
use prose_syntax::TextRange;

use crate::FileId;

/// A finding, with ranges in byte offsets of the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// As in [`prose_model::codes::CODES`].
    pub code: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// The file it is in.
    pub file: FileId,
    /// The smallest piece of text that is wrong.
    pub range: TextRange,
    /// Other places that matter, each with a remark.
    pub related: Vec<(FileId, TextRange, String)>,
    /// How an editor may show it.
    pub tags: Vec<Tag>,
    /// A change that settles it, if there is an obvious one.
    pub fix: Option<Fix>,
}

/// A hint on display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Shown faded.
    Unnecessary,
    /// Shown struck through.
    Deprecated,
}

/// A change to the file that settles a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fix {
    /// What it does, as an imperative: `Replace with 'researcher'`.
    pub title: String,
    /// Replacements, not overlapping.
    pub edits: Vec<(TextRange, String)>,
}

impl Fix {
    /// One replacement.
    pub fn replace(title: impl Into<String>, range: TextRange, with: impl Into<String>) -> Fix {
        Fix {
            title: title.into(),
            edits: vec![(range, with.into())],
        }
    }
}

/// A finding inside one chunk: ranges count from the chunk's start, so that it stays true when the chunk moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    pub range: TextRange,
    pub related: Vec<(Place, String)>,
    pub tags: Vec<Tag>,
    pub fix: Option<Fix>,
}

/// A place in this or another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A range in the same chunk.
    Here(TextRange),
    /// A definition in some chunk of a file, by its number there.
    Def(crate::SourceFile, usize, u32),
}

impl Finding {
    /// A finding with the code's usual severity.
    pub fn new(code: &'static str, range: TextRange, message: impl Into<String>) -> Finding {
        let severity = prose_model::codes::find(code).map_or(Severity::Warning, |info| info.severity);
        Finding {
            code,
            severity,
            message: message.into(),
            range,
            related: Vec::new(),
            tags: Vec::new(),
            fix: None,
        }
    }
    pub fn related(mut self, place: Place, text: impl Into<String>) -> Finding {
        self.related.push((place, text.into()));
        self
    }
    pub fn tag(mut self, tag: Tag) -> Finding {
        self.tags.push(tag);
        self
    }
    pub fn fix(mut self, fix: Fix) -> Finding {
        self.fix = Some(fix);
        self
    }
}
