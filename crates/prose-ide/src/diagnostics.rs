//! What the checks found, and the lowered program.

use std::sync::Arc;

use prose_hir::{Diagnostic, FileId, RootDatabase};
use prose_model::Bundle;

use crate::tree;

pub(crate) fn diagnostics(db: &RootDatabase, file: FileId) -> Vec<Diagnostic> {
    let Some(source) = tree::source(db, file) else { return Vec::new() };
    let mut found = prose_hir::diagnostics(db, source);
    found.sort_by_key(|it| (it.range.start(), it.range.end(), it.code));
    found
}

pub(crate) fn bundle(db: &RootDatabase, file: FileId) -> Result<Arc<Bundle>, Vec<Diagnostic>> {
    match db.source(file) {
        Some(source) => prose_hir::bundle(db, source),
        None => Err(Vec::new()),
    }
}
