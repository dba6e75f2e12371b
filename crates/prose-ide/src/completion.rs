//! What could be written at the cursor.

mod context;
mod keywords;
mod members;
mod names;
mod properties;
#[cfg(test)]
mod tests;

use prose_hir::{RootDatabase, SourceFile};
use prose_syntax::{SyntaxKind, TextRange};

use crate::tree;
use crate::types::{CompletionConfig, CompletionItem, CompletionKind, FilePosition};
use context::{Context, Place};

/// How proposals are ordered; the earlier comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// What this place is for.
    First,
    /// What is declared nearby.
    Near,
    /// What is declared for the whole program.
    Far,
    /// Keywords.
    Keyword,
    /// What is possible, but seldom meant.
    Last,
}

/// Collects proposals for one cursor.
struct Completions<'a> {
    db: &'a RootDatabase,
    source: SourceFile,
    text: &'a str,
    context: Context,
    config: CompletionConfig,
    items: Vec<CompletionItem>,
}

/// A proposal to be completed by [`Completions::add`].
struct Proposal {
    label: String,
    kind: CompletionKind,
    rank: Rank,
    detail: Option<String>,
    documentation: Option<String>,
    /// Inserted instead of the label.
    insert: Option<String>,
    /// Inserted where the client knows snippets.
    snippet: Option<String>,
}

impl Proposal {
    fn new(label: impl Into<String>, kind: CompletionKind, rank: Rank) -> Proposal {
        Proposal {
            label: label.into(),
            kind,
            rank,
            detail: None,
            documentation: None,
            insert: None,
            snippet: None,
        }
    }
    fn detail(mut self, text: impl Into<String>) -> Proposal {
        self.detail = Some(text.into());
        self
    }
    fn doc(mut self, text: impl Into<String>) -> Proposal {
        self.documentation = Some(text.into());
        self
    }
    fn insert(mut self, text: impl Into<String>) -> Proposal {
        self.insert = Some(text.into());
        self
    }
    fn snippet(mut self, text: impl Into<String>) -> Proposal {
        self.snippet = Some(text.into());
        self
    }
}

pub(crate) fn completion(
    db: &RootDatabase,
    position: FilePosition,
    config: CompletionConfig,
) -> Vec<CompletionItem> {
    let Some(source) = tree::source(db, position.file) else {
        return Vec::new();
    };
    let text = source.text(db);
    let offset = tree::clamp(&text, position.offset);
    let pieces = tree::pieces_around(db, source, offset);
    let mut tokens = Vec::new();
    let mut in_comment = false;
    for piece in &pieces {
        context::collect_tokens(&piece.root, piece.start, &mut tokens);
        if let Some(local) = offset.checked_sub(piece.start)
            && local <= piece.root.text_range().end()
        {
            // A comment reaches to the end of its line, the cursor behind it included.
            in_comment |= piece
                .root
                .token_at_offset(local)
                .any(|token| token.kind() == SyntaxKind::COMMENT && token.text_range().start() < local);
        }
    }
    if in_comment {
        return Vec::new();
    }
    let context = Context::new(&text, &tokens, offset);
    let mut out = Completions {
        db,
        source,
        text: &text,
        context,
        config,
        items: Vec::new(),
    };
    out.complete();
    out.items
        .sort_by(|a, b| (&a.sort_text, &a.label).cmp(&(&b.sort_text, &b.label)));
    out.items
}

impl Completions<'_> {
    fn complete(&mut self) {
        match self.context.place.clone() {
            Place::Nothing => {}
            Place::Statement {
                top_level,
                branches,
                continuations,
            } => {
                self.statement(top_level, branches, &continuations);
            }
            Place::Options => self.option(),
            Place::Properties(owner, present) => self.property_keys(owner, &present),
            Place::Permissions(present) => self.permission_keys(&present),
            Place::PermissionValue => self.permission_values(),
            Place::PropertyValue(key) => self.property_values(&key, false),
            Place::QuotedValue(key) => self.property_values(&key, true),
            Place::Context => self.context_values(),
            Place::Agents => self.agents(),
            Place::Blocks => self.blocks(true),
            Place::Expression { heads } => self.expression(heads),
            Place::Keywords(words) => self.keywords(words),
            Place::Modifiers(of, present) => self.modifiers(of, &present),
            Place::ModifierValue { of, name, quoted } => self.modifier_values(of, name.as_deref(), quoted),
            Place::Arguments(callee, present) => self.arguments(&callee, &present),
            Place::Variables => self.variables(Rank::First),
            Place::Member { path, at } => self.members(&path, at),
            Place::PatternKey(line) => self.pattern_keys(line),
        }
    }

    fn add(&mut self, proposal: Proposal) {
        let insert = proposal.insert.unwrap_or_else(|| proposal.label.clone());
        let snippet = proposal
            .snippet
            .filter(|snippet| self.config.snippets && *snippet != insert);
        let rank = proposal.rank as u8;
        self.items.push(CompletionItem {
            sort_text: format!("{rank}{}", proposal.label.to_lowercase()),
            label: proposal.label,
            kind: proposal.kind,
            detail: proposal.detail,
            documentation: proposal.documentation,
            insert,
            snippet,
            replace: self.context.word,
            filter_text: None,
        });
    }

    /// The text of a range of the file.
    fn slice(&self, range: TextRange) -> &str {
        self.text
            .get(usize::from(range.start())..usize::from(range.end()))
            .unwrap_or_default()
    }

    /// Whether the line goes on with this character after the word.
    fn followed_by(&self, ch: char) -> bool {
        self.context.followed_by == Some(ch)
    }
}

/// Text that stands for itself in a snippet.
fn snippet_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        if matches!(ch, '$' | '}' | '\\') {
            out.push('\\');
        }
        out.push(ch);
    }
    out
}
