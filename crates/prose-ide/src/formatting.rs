//! Formatting of a file, of a part of it, and while typing. How is `prose-fmt`'s matter.

use prose_fmt::Options;
use prose_hir::{FileId, RootDatabase};

use crate::tree;
use crate::types::{FilePosition, FileRange, TextEdit};

/// Edits that format a file.
pub(crate) fn format(db: &RootDatabase, file: FileId) -> Vec<TextEdit> {
    let Some(text) = tree::text(db, file) else {
        return Vec::new();
    };
    let parse = prose_syntax::parse(&text);
    edits(prose_fmt::format(&parse, &text, &Options::default()))
}

/// Edits that format the statements a range touches.
pub(crate) fn format_range(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<TextEdit> {
    let Some(text) = tree::text(db, file) else {
        return Vec::new();
    };
    let parse = prose_syntax::parse(&text);
    edits(prose_fmt::format_range(&parse, &text, range, &Options::default()))
}

/// Edits after a character was typed before the position.
pub(crate) fn format_on_type(db: &RootDatabase, position: FilePosition, typed: char) -> Vec<TextEdit> {
    let Some(text) = tree::text(db, position.file) else {
        return Vec::new();
    };
    edits(prose_fmt::on_type(
        &text,
        tree::clamp(&text, position.offset),
        typed,
    ))
}

fn edits(edits: Vec<prose_fmt::TextEdit>) -> Vec<TextEdit> {
    edits
        .into_iter()
        .map(|it| TextEdit {
            range: it.range,
            insert: it.insert,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::fixture::setup;
    use crate::types::FileRange;

    #[test]
    fn edits_of_the_file_and_of_a_part() {
        let setup = setup("let a=1\nif a:\n    do f\nlet b=2\n");
        let file = setup.main();
        let all = setup.analysis.format(file).unwrap();
        assert_eq!(all.len(), 5);
        let text = setup.text(file);
        let at = text.find("do f").unwrap() as u32;
        let range = prose_syntax::TextRange::new(at.into(), (at + 2).into());
        let some = setup.analysis.format_range(FileRange { file, range }).unwrap();
        assert_eq!(some.len(), 1);
        assert_eq!(setup.slice(file, some[0].range), "  ");
    }

    #[test]
    fn a_new_line_gets_its_indentation() {
        let setup = setup("if a:\n$0");
        let edits = setup.analysis.format_on_type(setup.position(), '\n').unwrap();
        assert_eq!(edits.len(), 1);
        assert_eq!(edits[0].insert, "  ");
    }
}
