//! Findings of the parser.

use crate::Tag;
use crate::diagnostic::Finding;
use crate::hir::ChunkBody;
use prose_syntax::SyntaxErrorKind;

/// The parser's findings about a chunk. What settles them is worked out when it is asked for.
pub(super) fn findings(body: &ChunkBody) -> Vec<Finding> {
    body.errors
        .iter()
        .map(|error| Finding {
            code: error.code(),
            severity: error.severity(),
            message: error.to_string(),
            range: error.range,
            related: Vec::new(),
            tags: match error.kind {
                SyntaxErrorKind::LegacyImport => vec![Tag::Deprecated],
                _ => Vec::new(),
            },
            fix: None,
        })
        .collect()
}
