//! Plain data in byte offsets → LSP types, in the negotiated encoding.

use lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString, Position, Range};

use crate::engine::{Cancellable, FileId};
use crate::main_loop::Snapshot;
use crate::positions::{Encoding, LineStarts};

/// A text with its lines: what converts positions in one file of one snapshot.
pub(crate) struct Lines {
    text: std::sync::Arc<str>,
    starts: LineStarts,
    encoding: Encoding,
}

impl Lines {
    /// The lines of a file as this snapshot has it.
    pub(crate) fn new(snapshot: &Snapshot, file: FileId) -> Cancellable<Lines> {
        let text = snapshot.analysis.file_text(file)?;
        Ok(Lines { starts: LineStarts::new(&text), text, encoding: snapshot.session.encoding })
    }

    /// Byte offset of a position.
    pub(crate) fn offset(&self, position: Position) -> usize {
        self.starts.offset(&self.text, position, self.encoding)
    }

    /// LSP range of a byte range.
    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> Range {
        self.starts.range(&self.text, range, self.encoding)
    }
}

/// All diagnostics of a file.
pub(crate) fn diagnostics(snapshot: &Snapshot, file: FileId) -> Cancellable<Vec<Diagnostic>> {
    let lines = Lines::new(snapshot, file)?;
    let items = snapshot.analysis.diagnostics(file)?;
    Ok(items
        .into_iter()
        .map(|d| Diagnostic {
            range: lines.range(d.range),
            severity: Some(DiagnosticSeverity::ERROR),
            code: Some(NumberOrString::String("E000".into())),
            source: Some("prose".into()),
            message: d.message,
            ..Diagnostic::default()
        })
        .collect())
}
