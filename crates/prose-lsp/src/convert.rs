//! Plain data in byte offsets → LSP types, in the negotiated encoding and as far as the client understands them.

use std::collections::HashMap;
use std::sync::Arc;

use lsp_types as lsp;
use prose_ide::{
    Cancellable, Diagnostic, FileId, FileRange, LineIndex, NavigationTarget, SymbolKind, TextRange, TextSize,
};

use crate::positions::Encoding;
use crate::query::Snapshot;

/// A text with its lines: converts positions in one file of one snapshot.
pub(crate) struct Lines {
    text: Arc<str>,
    index: Arc<LineIndex>,
    encoding: Encoding,
}

impl Lines {
    /// The lines of a file as this snapshot has it.
    pub(crate) fn new(snapshot: &Snapshot, file: FileId) -> Cancellable<Lines> {
        let text = snapshot.analysis.file_text(file)?.unwrap_or_default();
        let index = snapshot.analysis.line_index(file)?;
        Ok(Lines {
            text,
            index,
            encoding: snapshot.session.encoding,
        })
    }

    /// Byte offset of a position.
    pub(crate) fn offset(&self, position: lsp::Position) -> TextSize {
        self.encoding.offset(&self.index, &self.text, position)
    }

    /// Byte range of an LSP range; one whose ends are swapped is put right.
    pub(crate) fn text_range(&self, range: lsp::Range) -> TextRange {
        self.encoding.text_range(&self.index, &self.text, range)
    }

    /// LSP range of a byte range.
    pub(crate) fn range(&self, range: TextRange) -> lsp::Range {
        self.encoding.range(&self.index, &self.text, range)
    }

    /// The position of a byte offset.
    pub(crate) fn position(&self, offset: TextSize) -> lsp::Position {
        self.encoding.position(&self.index, &self.text, offset)
    }

    /// LSP ranges of a byte range, one for each line that it has text in; line ends belong to none.
    pub(crate) fn by_line(&self, range: TextRange) -> Vec<lsp::Range> {
        let text = &self.text[range];
        let mut out = Vec::with_capacity(1);
        let mut start = 0;
        loop {
            let end = text[start..]
                .find(['\n', '\r'])
                .map_or(text.len(), |it| start + it);
            if start < end {
                let size = |it: usize| range.start() + TextSize::new(it as u32);
                out.push(self.range(TextRange::new(size(start), size(end))));
            }
            if end >= text.len() {
                return out;
            }
            start = end + 1;
        }
    }

    /// LSP edits of edits.
    pub(crate) fn edits(&self, edits: Vec<prose_ide::TextEdit>) -> Vec<lsp::TextEdit> {
        let convert = |it: prose_ide::TextEdit| lsp::TextEdit {
            range: self.range(it.range),
            new_text: it.insert,
        };
        edits.into_iter().map(convert).collect()
    }
}

/// Converts ranges of several files, reading each file's lines once.
pub(crate) struct Places<'a> {
    snapshot: &'a Snapshot,
    lines: HashMap<FileId, Lines>,
}

impl<'a> Places<'a> {
    /// For places in this snapshot.
    pub(crate) fn new(snapshot: &'a Snapshot) -> Places<'a> {
        Places {
            snapshot,
            lines: HashMap::new(),
        }
    }

    /// The lines of a file.
    pub(crate) fn lines(&mut self, file: FileId) -> Cancellable<&Lines> {
        use std::collections::hash_map::Entry;
        Ok(match self.lines.entry(file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Lines::new(self.snapshot, file)?),
        })
    }

    /// A place in any file; `None` for a file that has no URI.
    pub(crate) fn location(&mut self, place: FileRange) -> Cancellable<Option<lsp::Location>> {
        let Some(uri) = self.snapshot.documents.uri(place.file) else {
            return Ok(None);
        };
        let range = self.lines(place.file)?.range(place.range);
        Ok(Some(lsp::Location { uri, range }))
    }

    /// Where a name leads, seen from `origin`.
    pub(crate) fn link(
        &mut self,
        origin: lsp::Range,
        target: &NavigationTarget,
    ) -> Cancellable<Option<lsp::LocationLink>> {
        let Some(target_uri) = self.snapshot.documents.uri(target.file) else {
            return Ok(None);
        };
        let lines = self.lines(target.file)?;
        Ok(Some(lsp::LocationLink {
            origin_selection_range: Some(origin),
            target_uri,
            target_range: lines.range(target.full_range),
            target_selection_range: lines.range(target.focus_range),
        }))
    }
}

/// All diagnostics of a file, with the severities that the person wants.
pub(crate) fn diagnostics(snapshot: &Snapshot, file: FileId) -> Cancellable<Vec<lsp::Diagnostic>> {
    let found = snapshot.analysis.diagnostics(file)?;
    let mut places = Places::new(snapshot);
    let mut out = Vec::new();
    let wanted = |item: Diagnostic| item.with_level(|code, usual| snapshot.lint.severity(code, usual));
    for item in found
        .into_iter()
        .filter(|item| item.file == file)
        .filter_map(wanted)
    {
        let mut related = Vec::new();
        if snapshot.session.related_information {
            for (file, range, message) in item.related {
                let location = places.location(FileRange { file, range })?;
                related
                    .extend(location.map(|location| lsp::DiagnosticRelatedInformation { location, message }));
            }
        }
        let tags: Vec<_> = item.tags.iter().map(|tag| diagnostic_tag(*tag)).collect();
        out.push(lsp::Diagnostic {
            range: places.lines(file)?.range(item.range),
            severity: Some(diagnostic_severity(item.severity)),
            code: Some(lsp::NumberOrString::String(item.code.to_owned())),
            code_description: snapshot.session.code_pages.as_ref().and_then(|pages| {
                let href = pages.join(&format!("{}.md", item.code)).ok()?;
                Some(lsp::CodeDescription { href })
            }),
            source: Some("prose".to_owned()),
            message: item.message,
            related_information: (!related.is_empty()).then_some(related),
            tags: (!tags.is_empty() && snapshot.session.diagnostic_tags).then_some(tags),
            data: None,
        });
    }
    Ok(out)
}

fn diagnostic_severity(severity: prose_ide::Severity) -> lsp::DiagnosticSeverity {
    match severity {
        prose_ide::Severity::Error => lsp::DiagnosticSeverity::ERROR,
        prose_ide::Severity::Warning => lsp::DiagnosticSeverity::WARNING,
        prose_ide::Severity::Hint => lsp::DiagnosticSeverity::HINT,
    }
}

fn diagnostic_tag(tag: prose_ide::Tag) -> lsp::DiagnosticTag {
    match tag {
        prose_ide::Tag::Unnecessary => lsp::DiagnosticTag::UNNECESSARY,
        prose_ide::Tag::Deprecated => lsp::DiagnosticTag::DEPRECATED,
    }
}

/// The icon for a symbol in outlines.
pub(crate) fn symbol_kind(kind: SymbolKind) -> lsp::SymbolKind {
    match kind {
        SymbolKind::Agent => lsp::SymbolKind::CLASS,
        SymbolKind::Block => lsp::SymbolKind::FUNCTION,
        SymbolKind::Import => lsp::SymbolKind::MODULE,
        SymbolKind::Input => lsp::SymbolKind::PROPERTY,
        SymbolKind::Output => lsp::SymbolKind::FIELD,
        SymbolKind::Variable | SymbolKind::Parameter | SymbolKind::LoopVariable => lsp::SymbolKind::VARIABLE,
        SymbolKind::Constant => lsp::SymbolKind::CONSTANT,
        SymbolKind::File => lsp::SymbolKind::FILE,
    }
}

/// The icon for a proposal.
pub(crate) fn completion_kind(kind: prose_ide::CompletionKind) -> lsp::CompletionItemKind {
    use prose_ide::CompletionKind;
    match kind {
        CompletionKind::Keyword => lsp::CompletionItemKind::KEYWORD,
        CompletionKind::Property => lsp::CompletionItemKind::PROPERTY,
        CompletionKind::Value => lsp::CompletionItemKind::VALUE,
        CompletionKind::Field => lsp::CompletionItemKind::FIELD,
        CompletionKind::Symbol(symbol) => match symbol {
            SymbolKind::Agent => lsp::CompletionItemKind::CLASS,
            SymbolKind::Block => lsp::CompletionItemKind::FUNCTION,
            SymbolKind::Import => lsp::CompletionItemKind::MODULE,
            SymbolKind::Input
            | SymbolKind::Output
            | SymbolKind::Variable
            | SymbolKind::Parameter
            | SymbolKind::LoopVariable => lsp::CompletionItemKind::VARIABLE,
            SymbolKind::Constant => lsp::CompletionItemKind::CONSTANT,
            SymbolKind::File => lsp::CompletionItemKind::FILE,
        },
    }
}

/// What runs a file, as lenses and code actions carry it. The version is left to the client: a lens may be older than
/// the text it is shown over. `None` for a file without URI.
pub(crate) fn run_command(snapshot: &Snapshot, command: prose_ide::RunCommand) -> Option<lsp::Command> {
    let uri = snapshot.documents.uri(command.file)?;
    let mut argument = serde_json::json!({ "uri": uri });
    if command.simulated {
        argument["backend"] = crate::runs::SIMULATE.into();
    }
    Some(lsp::Command {
        title: command.title().to_owned(),
        command: "prose.run".to_owned(),
        arguments: Some(vec![argument]),
    })
}
