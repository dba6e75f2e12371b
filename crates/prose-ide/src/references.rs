//! Where a name is used, in `{…}` of texts too.

use prose_hir::{RefKind, RootDatabase};

use crate::types::{FilePosition, FileRange};
use crate::{names, tree};

pub(crate) fn references(db: &RootDatabase, position: FilePosition, include_declaration: bool) -> Vec<FileRange> {
    let Some(source) = tree::source(db, position.file) else { return Vec::new() };
    let offset = tree::clamp(&source.text(db), position.offset);
    let Some(found) = names::at(db, source, offset) else { return Vec::new() };
    prose_hir::references(db, &found.definition)
        .into_iter()
        // The assignment that declares is the declaration.
        .filter(|it| {
            let declares = it.role.is_none()
                || (it.role == Some(RefKind::Assign)
                    && it.file == found.definition.file
                    && it.range == found.definition.range);
            include_declaration || !declares
        })
        .map(|it| FileRange { file: it.file, range: it.range })
        .collect()
}
