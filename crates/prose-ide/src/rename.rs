//! Renames what the name under the cursor stands for, in every file that uses it, in texts and discretions too. Refused
//! with a reason where the program would mean something else afterwards.

use std::collections::BTreeMap;
use std::fmt;

use prose_hir::{
    Change, DefKind, Definition, FileContent, FileId, FileState, RefKind, Reference, RootDatabase, SourceFile,
};
use prose_model::codes::Severity;
use prose_syntax::ast::{self, AstNode};
use prose_syntax::text;
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};
use rustc_hash::FxHashSet;

use crate::types::{FilePosition, FileRange, RangeInfo, SourceChange, TextEdit};
use crate::{names, tree};

/// Why something can't be renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenameError {
    /// There is no name, or one that nothing declares.
    NoName,
    /// The variable of a pipeline stage has a fixed name.
    FixedName(String),
    /// What was typed is no name.
    Invalid(String),
    /// The variable is bound by `let { key } = …`, where its name selects the key.
    Key(String),
    /// The name is the beginning of names that are put together: `part_{n}`.
    Beginning(String),
    /// The new name stands for something else there.
    Taken(String, FileRange),
    /// The program would no longer mean the same.
    ChangesMeaning(String),
}

impl fmt::Display for RenameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RenameError::NoName => f.write_str("there is no name here that the program declares"),
            RenameError::FixedName(name) => {
                write!(
                    f,
                    "`{name}` is what the language calls the item of a pipeline: it can't be renamed"
                )
            }
            RenameError::Invalid(name) => write!(
                f,
                "`{name}` is no name: use letters, digits, `_` and, inside, `-`; a digit can't be first"
            ),
            RenameError::Key(name) => write!(
                f,
                "`{name}` selects the key of the record that it is taken from: write `let new = record.{name}` instead"
            ),
            RenameError::Beginning(name) => write!(
                f,
                "`{name}` is the beginning of names that are put together, so that the new name has to end with `_`"
            ),
            RenameError::Taken(name, _) => {
                write!(f, "`{name}` already stands for something else where this is used")
            }
            RenameError::ChangesMeaning(name) => {
                write!(f, "with the name `{name}` the program would not mean the same")
            }
        }
    }
}

impl std::error::Error for RenameError {}

/// What would be renamed: where its name stands under the cursor, and the name.
pub(crate) fn prepare(db: &RootDatabase, position: FilePosition) -> Result<RangeInfo<String>, RenameError> {
    let (range, definition) = definition(db, position)?;
    Ok(RangeInfo {
        range,
        info: definition.name.to_string(),
    })
}

/// The edits that give it another name.
pub(crate) fn rename(
    db: &RootDatabase,
    position: FilePosition,
    new_name: &str,
) -> Result<SourceChange, RenameError> {
    let (_, definition) = definition(db, position)?;
    if !text::is_name(new_name) {
        return Err(RenameError::Invalid(new_name.to_owned()));
    }
    if definition.name.as_str() == new_name {
        return Ok(SourceChange::default());
    }
    let places = places(db, &definition)?;
    let mut edits: BTreeMap<FileId, Vec<TextEdit>> = BTreeMap::new();
    for (place, definition) in &places {
        let edit = edit(db, place, definition, new_name)?;
        edits.entry(place.file).or_default().push(edit);
    }
    for list in edits.values_mut() {
        list.sort_by_key(|it| (it.range.start(), it.range.end()));
        list.dedup();
    }
    verify(db, &definition, new_name, &edits)?;
    Ok(SourceChange { edits })
}

fn definition(db: &RootDatabase, position: FilePosition) -> Result<(TextRange, Definition), RenameError> {
    let source = tree::source(db, position.file).ok_or(RenameError::NoName)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let found = names::at(db, source, offset).ok_or(RenameError::NoName)?;
    let definition = found.definition;
    if definition.kind == DefKind::Implicit {
        return Err(RenameError::FixedName(definition.name.to_string()));
    }
    if let Some(key) = pattern_key(db, definition.file, definition.range) {
        return Err(RenameError::Key(key));
    }
    Ok((found.range, definition))
}

/// The name at a range, when it stands in the braces of `let { a, b }`.
fn pattern_key(db: &RootDatabase, file: FileId, range: TextRange) -> Option<String> {
    let (_, token) = token_over(db, file, range)?;
    let inside = token
        .parent_ancestors()
        .take(2)
        .any(|it| it.kind() == SyntaxKind::RECORD_PATTERN);
    inside.then(|| token.text().to_owned())
}

/// The token that a range of a file lies in.
fn token_over(db: &RootDatabase, file: FileId, range: TextRange) -> Option<(tree::Piece, SyntaxToken)> {
    let source = tree::source(db, file)?;
    let (piece, _) = tree::piece_at(db, source, range.start())?;
    let local = range.checked_sub(piece.start)?;
    if !piece.root.text_range().contains_range(local) {
        return None;
    }
    let token = piece.root.covering_element(local).into_token()?;
    Some((piece, token))
}

/// Every place of the name, with what it stands for there: a variable that takes an output by `let { found } = …` is
/// renamed with the output.
fn places(db: &RootDatabase, definition: &Definition) -> Result<Vec<(Reference, Definition)>, RenameError> {
    let mut found = Vec::new();
    let mut seen: FxHashSet<(FileId, TextRange)> = FxHashSet::default();
    let mut todo = vec![definition.clone()];
    while let Some(definition) = todo.pop() {
        for place in prose_hir::references(db, &definition) {
            if !seen.insert((place.file, place.range)) {
                continue;
            }
            if place.role == Some(RefKind::Label)
                && pattern_key(db, place.file, place.range).is_some()
                && let Some(source) = tree::source(db, place.file)
                && let Some(bound) = names::at(db, source, place.range.start())
            {
                todo.push(bound.definition);
            }
            found.push((place, definition.clone()));
        }
    }
    Ok(found)
}

/// What is written at one place.
fn edit(
    db: &RootDatabase,
    place: &Reference,
    definition: &Definition,
    new_name: &str,
) -> Result<TextEdit, RenameError> {
    let plain = TextEdit {
        range: place.range,
        insert: new_name.to_owned(),
    };
    let Some((piece, token)) = token_over(db, place.file, place.range) else {
        return Ok(plain);
    };
    let Some(parent) = token.parent() else {
        return Ok(plain);
    };
    // A program without `as` is known by the end of its path.
    if definition.kind == DefKind::Import && place.role.is_none() && token.kind() == SyntaxKind::STRING {
        return Ok(TextEdit {
            range: TextRange::empty(piece.up(token.text_range()).end()),
            insert: format!(" as {new_name}"),
        });
    }
    if parent.kind() == SyntaxKind::COMPUTED_NAME
        && token.text() == definition.name.as_str()
        && !new_name.ends_with('_')
    {
        return Err(RenameError::Beginning(definition.name.to_string()));
    }
    // In `{ draft }` the name is the key as well, and the key stays.
    if place.role != Some(RefKind::Label) && is_shorthand(&parent) {
        return Ok(TextEdit {
            range: place.range,
            insert: format!("{}: {new_name}", definition.name),
        });
    }
    Ok(plain)
}

/// Whether a name is a whole field of an object: key and value.
fn is_shorthand(name: &SyntaxNode) -> bool {
    let field = name.parent().and_then(ast::ObjectField::cast);
    name.kind() == SyntaxKind::NAME_REF && field.is_some_and(|it| it.key().is_none())
}

/// Whether afterwards every name means what it meant.
fn verify(
    db: &RootDatabase,
    definition: &Definition,
    new_name: &str,
    edits: &BTreeMap<FileId, Vec<TextEdit>>,
) -> Result<(), RenameError> {
    let own = definition.source();
    let mut files: Vec<(FileId, SourceFile)> = db
        .files()
        .filter(|(id, file)| {
            edits.contains_key(id) || prose_hir::sees(db, *file, own) || prose_hir::sees(db, own, *file)
        })
        .filter(|it| it.1.state(db) == FileState::Text)
        .collect();
    files.sort_by_key(|it| it.0);
    // Where the new name stands nowhere and is no word of the language, nothing can take it for something else.
    let is_word = SyntaxKind::from_keyword(new_name).is_some();
    if !is_word && !files.iter().any(|(_, file)| file.text(db).contains(new_name)) {
        return Ok(());
    }
    let mut after = RootDatabase::default();
    after.apply_change(changed(db, edits, &|_| true));

    let renamed = |range: FileRange| FileRange {
        file: range.file,
        range: moved(range.range, edits.get(&range.file)),
    };
    let mut expected: FxHashSet<FileRange> = FxHashSet::default();
    for (file, list) in edits {
        let mut shift = 0i64;
        for edit in list {
            let at = i64::from(u32::from(edit.range.start())) + shift;
            let end = at + edit.insert.len() as i64;
            let start = end - new_name.len() as i64;
            expected.extend(range(start, end).map(|range| FileRange { file: *file, range }));
            shift += edit.insert.len() as i64 - i64::from(u32::from(edit.range.len()));
        }
    }
    let place = renamed(FileRange {
        file: definition.file,
        range: definition.range,
    });
    let taken = |place| Err(RenameError::Taken(new_name.to_owned(), place));
    let start = match definition.kind {
        // Its name stands behind `as` now.
        DefKind::Import => expected
            .iter()
            .filter(|it| it.file == place.file)
            .min_by_key(|it| it.range.start())
            .copied(),
        _ => Some(place),
    };
    let Some(start) = start else {
        return Err(RenameError::ChangesMeaning(new_name.to_owned()));
    };
    let source = tree::source(&after, start.file);
    let Some(found) = source.and_then(|it| names::at(&after, it, start.range.start())) else {
        return Err(RenameError::ChangesMeaning(new_name.to_owned()));
    };
    let mut places = FxHashSet::default();
    for (place, _) in self::places(&after, &found.definition)? {
        places.insert(FileRange {
            file: place.file,
            range: place.range,
        });
    }
    let mut wrong: Vec<FileRange> = places.symmetric_difference(&expected).copied().collect();
    wrong.sort_by_key(|it| (it.file, it.range.start()));
    if let Some(first) = wrong.first() {
        return taken(*first);
    }
    for (id, file) in &files {
        let Some(new) = after.source(*id) else { continue };
        if errors(&after, new) > errors(db, *file) {
            return Err(RenameError::ChangesMeaning(new_name.to_owned()));
        }
    }
    Ok(())
}

fn errors(db: &RootDatabase, file: SourceFile) -> usize {
    let found = prose_hir::diagnostics(db, file);
    found.iter().filter(|it| it.severity == Severity::Error).count()
}

fn range(start: i64, end: i64) -> Option<TextRange> {
    let size = |it: i64| u32::try_from(it).ok().map(TextSize::new);
    Some(TextRange::new(size(start)?, size(end)?))
}

/// The wanted files as they are after the edits.
pub(crate) fn changed(
    db: &RootDatabase,
    edits: &BTreeMap<FileId, Vec<TextEdit>>,
    wanted: &dyn Fn(SourceFile) -> bool,
) -> Change {
    let mut change = Change::new();
    let ids: Vec<(SourceFile, FileId)> = db.files().map(|(id, file)| (file, id)).collect();
    let id_of = |file: SourceFile| ids.iter().find(|it| it.0 == file).map(|it| it.1);
    for (id, file) in db.files().filter(|it| wanted(it.1)) {
        let content = match file.state(db) {
            FileState::Missing => FileContent::Missing,
            FileState::Unapproved => FileContent::Unapproved,
            FileState::Text => {
                let text = file.text(db);
                match edits.get(&id) {
                    None => FileContent::Text(text),
                    Some(edits) => FileContent::Text(applied(&text, edits).into()),
                }
            }
        };
        change.files.push((id, file.path(db).to_string(), content));
        let uses = file.uses(db);
        let targets = uses
            .iter()
            .map(|(target, used)| (target.clone(), used.and_then(id_of)))
            .collect();
        change.resolve(id, targets);
    }
    change
}

/// The text after disjoint edits in order.
pub(crate) fn applied(text: &str, edits: &[TextEdit]) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for edit in edits {
        out.push_str(&text[at..usize::from(edit.range.start())]);
        out.push_str(&edit.insert);
        at = usize::from(edit.range.end());
    }
    out.push_str(&text[at..]);
    out
}

/// Where a range that was itself replaced is afterwards.
fn moved(place: TextRange, edits: Option<&Vec<TextEdit>>) -> TextRange {
    let mut shift = 0i64;
    for edit in edits.into_iter().flatten() {
        if edit.range.start() >= place.start() {
            break;
        }
        shift += edit.insert.len() as i64 - i64::from(u32::from(edit.range.len()));
    }
    let start = i64::from(u32::from(place.start())) + shift;
    range(start, start).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::{Setup, setup};
    use crate::rename::applied;

    fn renamed(setup: &Setup, new_name: &str) -> String {
        let position = setup.position();
        let change = match setup.analysis.rename(position, new_name).unwrap() {
            Ok(change) => change,
            Err(error) => return format!("refused: {error}"),
        };
        let mut out = String::new();
        for (file, edits) in &change.edits {
            let path = setup.analysis.file_path(*file).unwrap().unwrap_or_default();
            if change.edits.len() > 1 || *file != setup.main() {
                out.push_str(&format!("#- {path}\n"));
            }
            out.push_str(&applied(setup.text(*file), edits));
        }
        out
    }

    #[track_caller]
    fn check(fixture: &str, new_name: &str, expect: Expect) {
        expect.assert_eq(&renamed(&setup(fixture), new_name));
    }

    #[test]
    fn variables_in_code_texts_and_discretions() {
        check(
            "let a = 1\na = a + 1\nsession \"{a} of {a.b} not a or {aa}\"\n  prompt: \"\"\"{a}\"\"\"\nif **{a}**:\n  session \"a\"\nloop until **a** (max: 2):\n  a$0.b = 2\n",
            "total",
            expect![[r#"
                let total = 1
                total = total + 1
                session "{total} of {total.b} not a or {aa}"
                  prompt: """{total}"""
                if **{total}**:
                  session "a"
                loop until **total** (max: 2):
                  total.b = 2
            "#]],
        );
    }

    #[test]
    fn agents_and_blocks_across_files() {
        check(
            "#- /main.prose\nuse \"lib.prose\"\ndo $0f\nsession: helper\n#- /lib.prose\nagent helper:\n  model: opus\nblock f:\n  do f\n",
            "review",
            expect![[r##"
                #- /main.prose
                use "lib.prose"
                do review
                session: helper
                #- /lib.prose
                agent helper:
                  model: opus
                block review:
                  do review
            "##]],
        );
        check(
            "#- /main.prose\nuse \"lib.prose\"\nsession: helper\n#- /lib.prose\nagent $0helper:\n  model: opus\nsession \"helper\"\n  context: helper\n",
            "aide",
            expect![[r##"
                #- /main.prose
                use "lib.prose"
                session: aide
                #- /lib.prose
                agent aide:
                  model: opus
                session "helper"
                  context: aide
            "##]],
        );
    }

    #[test]
    fn parameters_inputs_and_outputs() {
        check(
            "block f(topic):\n  session \"{topic}\"\ndo f(topic: 1)\nlet topic = 1\ndo f($0topic: topic)\n",
            "subject",
            expect![[r#"
                block f(subject):
                  session "{subject}"
                do f(subject: 1)
                let topic = 1
                do f(subject: topic)
            "#]],
        );
        check(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = lib(topic: 1)\nsession \"{r.found}\"\nlet { found } = r\noutput x = found\n#- /lib.prose\ninput topic: \"?\"\nlet x = session \"{topic}\"\noutput $0found = x\n",
            "verdict",
            expect![[r##"
                #- /main.prose
                use "lib.prose" as lib
                let r = lib(topic: 1)
                session "{r.verdict}"
                let { verdict } = r
                output x = verdict
                #- /lib.prose
                input topic: "?"
                let x = session "{topic}"
                output verdict = x
            "##]],
        );
        check(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = lib(topic: 1)\n#- /lib.prose\ninput $0topic: \"?\"\nsession \"{topic}\"\n",
            "subject",
            expect![[r##"
                #- /main.prose
                use "lib.prose" as lib
                let r = lib(subject: 1)
                #- /lib.prose
                input subject: "?"
                session "{subject}"
            "##]],
        );
    }

    #[test]
    fn keys_of_objects_stay() {
        check(
            "let $0draft = session \"x\"\nsession \"y\"\n  context: { draft, other: draft, draft: draft }\n",
            "text",
            expect![[r#"
                let text = session "x"
                session "y"
                  context: { draft: text, other: text, draft: text }
            "#]],
        );
        check(
            "let { $0a } = f()\nsession \"{a}\"\n",
            "b",
            expect![
                "refused: `a` selects the key of the record that it is taken from: write `let new = record.a` instead"
            ],
        );
    }

    #[test]
    fn programs_get_an_alias() {
        check(
            "use \"alice/research\"\nlet r = $0research(topic: 1)\n",
            "study",
            expect![[r#"
            use "alice/research" as study
            let r = study(topic: 1)
        "#]],
        );
        check(
            "use \"alice/research\" as x\nlet r = $0x(topic: 1)\n",
            "study",
            expect![[r#"
            use "alice/research" as study
            let r = study(topic: 1)
        "#]],
        );
    }

    #[test]
    fn refused() {
        check(
            "let $0a = 1\n",
            "1b",
            expect![
                "refused: `1b` is no name: use letters, digits, `_` and, inside, `-`; a digit can't be first"
            ],
        );
        check(
            "let $0a = 1\n",
            "a b",
            expect![
                "refused: `a b` is no name: use letters, digits, `_` and, inside, `-`; a digit can't be first"
            ],
        );
        check(
            "let $0a = 1\n",
            "",
            expect![
                "refused: `` is no name: use letters, digits, `_` and, inside, `-`; a digit can't be first"
            ],
        );
        check(
            "session \"$0x\"\n",
            "b",
            expect!["refused: there is no name here that the program declares"],
        );
        check(
            "let x = [1] | map: $0item\n",
            "b",
            expect!["refused: `item` is what the language calls the item of a pipeline: it can't be renamed"],
        );
        check(
            "part_{n$0} = 1\n",
            "b",
            expect!["refused: there is no name here that the program declares"],
        );
    }

    #[test]
    fn conflicts() {
        // Two variables would become one.
        check(
            "let $0a = 1\nlet b = 2\nsession \"{a} {b}\"\n",
            "b",
            expect!["refused: `b` already stands for something else where this is used"],
        );
        // Text would become an interpolation.
        check(
            "let $0a = 1\nsession \"{a} {b}\"\n",
            "b",
            expect!["refused: `b` already stands for something else where this is used"],
        );
        // An agent and a block of one name.
        check(
            "agent $0a:\n  model: opus\nblock b:\n  session: a\ndo b\n",
            "b",
            expect!["refused: with the name `b` the program would not mean the same"],
        );
        // A parameter would hide the variable.
        check(
            "let $0a = 1\nblock f(b):\n  session \"{a} {b}\"\ndo f(1)\n",
            "b",
            expect!["refused: `b` already stands for something else where this is used"],
        );
        // A discretion would become the variable's value.
        check(
            "let $0a = 1\nif **ready**:\n  session \"{a}\"\n",
            "ready",
            expect!["refused: `ready` already stands for something else where this is used"],
        );
        // The same name elsewhere is no conflict.
        check(
            "block f(a):\n  session \"{$0a}\"\nblock g(b):\n  session \"{b}\"\ndo f(1)\ndo g(1)\n",
            "b",
            expect![[r#"
                block f(b):
                  session "{b}"
                block g(b):
                  session "{b}"
                do f(1)
                do g(1)
            "#]],
        );
    }

    #[test]
    fn words_of_the_language() {
        check(
            "let $0a = 1\na = a + 1\n",
            "filter",
            expect![[r#"
            let filter = 1
            filter = filter + 1
        "#]],
        );
        check(
            "let $0a = 1\nlet b = a\n",
            "session",
            expect![[r#"
            let session = 1
            let b = session
        "#]],
        );
    }

    #[test]
    fn what_is_under_the_cursor() {
        let setup = setup("let total = 1\nsession \"{to$0tal.x}\"\n");
        let found = setup.analysis.prepare_rename(setup.position()).unwrap().unwrap();
        assert_eq!(found.info, "total");
        assert_eq!(setup.slice(setup.main(), found.range), "total");
    }

    #[test]
    fn there_and_back_again() {
        for name in ["a", "topic"] {
            let text = format!(
                "block f({name}):\n  session \"{{{name}}}\"\n    context: {{ x: {name} }}\ndo f({name}: 1)\n"
            );
            let first = setup(&text.replacen(name, &format!("$0{name}"), 1));
            let there = renamed(&first, "other-name");
            let second = setup(&there.replacen("other-name", "$0other-name", 1));
            assert_eq!(renamed(&second, name), text);
        }
    }
}
