//! Edits: whatever led to a text, everything said of it is what is said of a fresh one.

use prose_syntax::parse;

use crate::{analysis, edits::Edited, parser};

pub(crate) fn check(input: &str) {
    let Edited { mut text, edits } = Edited::read(input);
    let mut db = analysis::database();
    analysis::set(&mut db, &text);
    analysis::found(&db);
    for edit in &edits {
        text.replace_range(edit.range(&text), &edit.with);
        analysis::set(&mut db, &text);
        parser::same_in_chunks(&parse(&text), &text);

        let mut fresh = analysis::database();
        analysis::set(&mut fresh, &text);
        assert_eq!(
            analysis::found(&db),
            analysis::found(&fresh),
            "findings after the edit {edit:?}, and of a fresh database"
        );
    }
}
