//! What the checks report.

use crate::Name;
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
    /// A change that the check itself knows of; [`crate::fixes`] gives it with all others.
    pub fix: Option<Fix>,
    /// The code that a comment silences without need, for whoever turns codes off: then the comment is no news either.
    pub about: Option<&'static str>,
}

impl Diagnostic {
    /// The finding as a person wants it, who may have changed the severity of its code: none when that is off. `level` gives the
    /// severity of a code, from the one it usually has.
    pub fn with_level(self, level: impl Fn(&str, Severity) -> Option<Severity>) -> Option<Diagnostic> {
        let severity = level(self.code, self.severity)?;
        // A comment that silences what is off anyway is no news.
        if let Some(about) = self.about {
            level(about, severity)?;
        }
        Some(Diagnostic { severity, ..self })
    }
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
    /// Whether it may be made unseen, together with others: it guesses nothing, and the program means the same after it.
    pub automatic: bool,
}

impl Fix {
    /// Several replacements, for the author to decide on.
    pub fn new(title: impl Into<String>, edits: Vec<(TextRange, String)>) -> Fix {
        Fix {
            title: title.into(),
            edits,
            automatic: false,
        }
    }
    /// One replacement, for the author to decide on.
    pub fn replace(title: impl Into<String>, range: TextRange, with: impl Into<String>) -> Fix {
        Fix::new(title, vec![(range, with.into())])
    }
    /// The same fix, to be made unseen as well.
    pub fn automatic(mut self) -> Fix {
        self.automatic = true;
        self
    }
    /// The text with the replacements made.
    pub fn apply(&self, text: &str) -> String {
        apply(text, &self.edits)
    }
}

/// A text with disjoint replacements made. What does not fit the text is left out.
pub(crate) fn apply(text: &str, edits: &[(TextRange, String)]) -> String {
    let mut sorted: Vec<&(TextRange, String)> = edits.iter().collect();
    sorted.sort_by_key(|it| (it.0.start(), it.0.end()));
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (range, with) in sorted {
        let (start, end) = (usize::from(range.start()), usize::from(range.end()));
        let Some(before) = text.get(at..start).filter(|_| text.is_char_boundary(end)) else {
            continue;
        };
        out.push_str(before);
        out.push_str(with);
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A range in the same chunk.
    Here(TextRange),
    /// A definition in another chunk: which of those of a name.
    Def(crate::Chunk, Name, u32),
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
