//! Files that are moved or renamed: the paths in `use` follow them, on both sides.

use std::collections::BTreeMap;

use prose_hir::paths::{TargetKind, candidates, default_name, target_kind};
use prose_hir::{FileId, FileState, RootDatabase};
use prose_syntax::ast::{self, AstNode};
use prose_syntax::{SyntaxKind, TextRange};
use rustc_hash::FxHashSet;

use crate::tree;
use crate::types::{SourceChange, TextEdit};

/// The edits, for the files where they are before the move. `place` is a file's absolute path with `/` between its parts, if
/// it has one; `moves` has the new ones.
pub(crate) fn move_files(
    db: &RootDatabase,
    place: &dyn Fn(FileId) -> Option<String>,
    moves: &BTreeMap<FileId, String>,
) -> SourceChange {
    let after = |file: FileId| moves.get(&file).cloned().or_else(|| place(file));
    let known: FxHashSet<String> = db.files().filter_map(|(id, _)| after(id)).collect();
    let mut change = SourceChange::default();
    for (id, source) in db.files() {
        if source.state(db) != FileState::Text || source.uses(db).is_empty() {
            continue;
        }
        let (Some(from), Some(from_after)) = (place(id), after(id)) else {
            continue;
        };
        let leads = |target: &str, to: &str| {
            let paths = candidates(target, &from_after, "");
            paths
                .iter()
                .find(|path| known.contains(*path))
                .is_some_and(|path| path == to)
        };
        let mut edits = Vec::new();
        for piece in tree::pieces(db, source) {
            let all = piece
                .root
                .descendants()
                .filter(|it| it.kind() == SyntaxKind::USE_STMT);
            for used in all.filter_map(ast::UseStmt::cast) {
                let Some(path) = used.path().and_then(|it| it.string()) else {
                    continue;
                };
                let target = path.text();
                let Some(file) = prose_hir::used_file(db, source, &target).map(|it| it.id(db)) else {
                    continue;
                };
                if !moves.contains_key(&id) && !moves.contains_key(&file) {
                    continue;
                }
                let (Some(to), Some(to_after)) = (place(file), after(file)) else {
                    continue;
                };
                if leads(&target, &to_after) {
                    continue;
                }
                let forms = [
                    from_the_same_folder(&target, &from, &to, &to_after),
                    relative(&from_after, &to_after, target.starts_with("./")),
                ];
                let new = forms
                    .into_iter()
                    .flatten()
                    .find(|new| target_kind(new) == TargetKind::Local && leads(new, &to_after));
                let Some(new) = new else { continue };
                edits.push(TextEdit {
                    range: piece.up(path.content_range()),
                    insert: new.clone(),
                });
                // It is known by the end of its path where nothing else is said.
                if let Some(name) = default_name(&target)
                    && used.alias().is_none()
                    && default_name(&new).is_none_or(|now| now != name)
                {
                    edits.push(TextEdit {
                        range: TextRange::empty(piece.up(path.text_range()).end()),
                        insert: format!(" as {name}"),
                    });
                }
            }
        }
        if !edits.is_empty() {
            change.edits.insert(id, edits);
        }
    }
    change
}

/// The new target, looked for from the folder that the old one was found in.
fn from_the_same_folder(target: &str, from: &str, to: &str, to_after: &str) -> Option<String> {
    if target.starts_with('/') {
        return Some(to_after.to_owned());
    }
    let plain = target.strip_prefix("./").unwrap_or(target);
    let folder = to.strip_suffix(plain)?;
    if plain.starts_with("..") || !folder.ends_with('/') || !from.starts_with(folder) {
        return None;
    }
    let rest = to_after.strip_prefix(folder)?;
    Some(format!("{}{rest}", &target[..target.len() - plain.len()]))
}

/// The way from one file to another; `dotted`: it begins with a dot in any case.
fn relative(from: &str, to: &str, dotted: bool) -> Option<String> {
    let folder = from.rsplit_once('/')?.0;
    let from: Vec<&str> = folder.split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from.len() - common;
    let mut parts = vec![".."; up];
    parts.extend(to.get(common..)?);
    let path = parts.join("/");
    Some(match dotted && up == 0 {
        true => format!("./{path}"),
        false => path,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::fixture::setup;

    /// Moves files of the fixture; shows the texts that change.
    #[track_caller]
    fn check(fixture: &str, moved: &[(&str, &str)], expect: Expect) {
        let setup = setup(fixture);
        let files = setup.analysis.files();
        let paths: BTreeMap<FileId, String> = files
            .iter()
            .map(|id| (*id, setup.analysis.file_path(*id).unwrap().unwrap().to_string()))
            .collect();
        let moves = paths
            .iter()
            .filter_map(|(id, path)| {
                let to = moved.iter().find(|it| it.0 == path)?.1;
                Some((*id, to.to_owned()))
            })
            .collect();
        let change = setup
            .analysis
            .move_files(&|id| paths.get(&id).cloned(), &moves)
            .unwrap();
        let mut out = String::new();
        for (file, edits) in change.edits {
            let mut text = setup.text(file).to_owned();
            for edit in edits.iter().rev() {
                text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.insert);
            }
            out.push_str(&format!("{}\n{text}", paths[&file]));
        }
        expect.assert_eq(&out);
    }

    const FIXTURE: &str = "\
#- /main.prose
use \"lib/a.prose\"
use \"./lib/b.prose\" as bee

let x = a()
let y = bee()
#- /lib/a.prose
use \"lib/b.prose\"
#- /lib/b.prose
session \"b\"
";

    #[test]
    fn a_used_file_is_renamed_and_keeps_the_name_it_is_known_by() {
        check(
            FIXTURE,
            &[("/lib/a.prose", "/lib/first.prose")],
            expect![[r#"
                /main.prose
                use "lib/first.prose" as a
                use "./lib/b.prose" as bee

                let x = a()
                let y = bee()
            "#]],
        );
    }

    #[test]
    fn a_using_file_moves_away() {
        check(
            FIXTURE,
            &[("/main.prose", "/jobs/daily/main.prose")],
            // A path is looked for upwards, so that it still leads there.
            expect![""],
        );
    }

    #[test]
    fn a_folder_moves() {
        check(
            FIXTURE,
            &[
                ("/lib/a.prose", "/parts/a.prose"),
                ("/lib/b.prose", "/parts/b.prose"),
            ],
            expect![[r#"
                /main.prose
                use "parts/a.prose"
                use "./parts/b.prose" as bee

                let x = a()
                let y = bee()
                /lib/a.prose
                use "parts/b.prose"
            "#]],
        );
    }

    #[test]
    fn files_that_nobody_uses_change_nothing() {
        check(FIXTURE, &[("/lib/nobody.prose", "/x.prose")], expect![""]);
    }

    #[test]
    fn the_way_from_file_to_file() {
        let way = |from, to, dotted| relative(from, to, dotted).unwrap();
        assert_eq!(way("/a/b/x.prose", "/a/b/y.prose", false), "y.prose");
        assert_eq!(way("/a/b/x.prose", "/a/b/y.prose", true), "./y.prose");
        assert_eq!(way("/a/b/x.prose", "/a/c/y.prose", true), "../c/y.prose");
        assert_eq!(way("/x.prose", "/a/c/y.prose", false), "a/c/y.prose");
    }
}
