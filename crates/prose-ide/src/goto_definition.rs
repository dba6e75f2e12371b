//! Where the name under the cursor is declared; also from inside `{…}` of texts, and from a `use` to its file.

use prose_hir::RootDatabase;
use prose_syntax::TextRange;

use crate::types::{FilePosition, NavigationTarget, RangeInfo, SymbolKind};
use crate::{names, tree};

pub(crate) fn goto_definition(
    db: &RootDatabase,
    position: FilePosition,
) -> Option<RangeInfo<Vec<NavigationTarget>>> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    if let Some((range, used)) = names::used_file(db, source, offset) {
        let target = NavigationTarget {
            file: used.id(db),
            full_range: TextRange::default(),
            focus_range: TextRange::default(),
            name: used.path(db).to_string(),
            kind: SymbolKind::File,
        };
        return Some(RangeInfo { range, info: vec![target] });
    }
    let found = names::at(db, source, offset)?;
    Some(RangeInfo { range: found.range, info: vec![names::target(&found.definition)] })
}
