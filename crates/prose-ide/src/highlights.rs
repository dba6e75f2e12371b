//! Where else in the file the name under the cursor occurs; on a keyword, the others of its construct.

use prose_hir::{RefKind, RootDatabase};
use prose_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, SyntaxToken};

use crate::names;
use crate::tree::{self, Piece};
use crate::types::{FilePosition, Highlight, HighlightKind};

pub(crate) fn highlights(db: &RootDatabase, position: FilePosition) -> Vec<Highlight> {
    let Some(source) = tree::source(db, position.file) else {
        return Vec::new();
    };
    let offset = tree::clamp(&source.text(db), position.offset);
    if let Some(found) = names::at(db, source, offset) {
        return prose_hir::references(db, &found.definition)
            .into_iter()
            .filter(|it| it.file == position.file)
            .map(|it| Highlight {
                range: it.range,
                kind: match it.role {
                    None | Some(RefKind::Assign) => HighlightKind::Write,
                    Some(_) => HighlightKind::Read,
                },
            })
            .collect();
    }
    let Some((piece, local)) = tree::piece_at(db, source, offset) else {
        return Vec::new();
    };
    let token = tree::token_at(&piece.root, local).filter(|it| it.kind().is_keyword());
    token.map(|it| construct(&piece, &it)).unwrap_or_default()
}

/// The keywords of the construct that a keyword belongs to; nothing when it stands alone.
fn construct(piece: &Piece, keyword: &SyntaxToken) -> Vec<Highlight> {
    let mut found = Vec::new();
    let parent = match keyword.parent() {
        Some(parent) => parent,
        None => return Vec::new(),
    };
    match parent.kind() {
        SyntaxKind::BREAK_STMT => {
            let ended = parent.ancestors().find(|it| is_loop(it.kind()));
            found.extend(ended.as_ref().and_then(first_keyword));
            found.push(keyword.clone());
        }
        SyntaxKind::RETURN_STMT => {
            let left = parent.ancestors().find(|it| it.kind() == SyntaxKind::BLOCK_DEF);
            found.extend(left.as_ref().and_then(first_keyword));
            found.push(keyword.clone());
        }
        kind if is_clause(kind) => {
            if let Some(whole) = parent.ancestors().find(|it| is_whole(it.kind())) {
                clauses(&whole, &mut found);
            }
        }
        kind if is_whole(kind) => clauses(&parent, &mut found),
        kind if is_loop(kind) => {
            found.extend(first_keyword(&parent));
            breaks(&parent, &mut found);
        }
        _ => {}
    }
    if found.len() < 2 {
        return Vec::new();
    }
    found
        .into_iter()
        .map(|it| Highlight {
            range: piece.up(it.text_range()),
            kind: HighlightKind::Keyword,
        })
        .collect()
}

fn is_loop(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::FOR_EXPR | SyntaxKind::REPEAT_EXPR | SyntaxKind::LOOP_EXPR
    )
}

fn is_clause(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::ELIF_CLAUSE
            | SyntaxKind::ELSE_CLAUSE
            | SyntaxKind::CATCH_CLAUSE
            | SyntaxKind::FINALLY_CLAUSE
            | SyntaxKind::CHOICE_OPTION
    )
}

fn is_whole(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::IF_EXPR | SyntaxKind::TRY_EXPR | SyntaxKind::CHOICE_EXPR
    )
}

fn first_keyword(node: &SyntaxNode) -> Option<SyntaxToken> {
    let mut tokens = node.children_with_tokens().filter_map(NodeOrToken::into_token);
    tokens.find(|it| it.kind().is_keyword())
}

/// The keyword of a construct and those of its clauses.
fn clauses(whole: &SyntaxNode, found: &mut Vec<SyntaxToken>) {
    found.extend(first_keyword(whole));
    for child in whole.children() {
        match child.kind() {
            SyntaxKind::OPTION_LIST => {
                let options = child.children().filter(|it| is_clause(it.kind()));
                found.extend(options.filter_map(|it| first_keyword(&it)));
            }
            kind if is_clause(kind) => found.extend(first_keyword(&child)),
            _ => {}
        }
    }
}

/// The `break`s that leave a loop.
fn breaks(whole: &SyntaxNode, found: &mut Vec<SyntaxToken>) {
    let mut walk = whole.preorder();
    while let Some(event) = walk.next() {
        let prose_syntax::WalkEvent::Enter(node) = event else {
            continue;
        };
        match node.kind() {
            SyntaxKind::BREAK_STMT => found.extend(first_keyword(&node)),
            kind if is_loop(kind) && node != *whole => walk.skip_subtree(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{FileRange, HighlightKind};

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let position = setup.position();
        let found = setup.analysis.highlights(position).unwrap();
        let shown: Vec<String> = found
            .into_iter()
            .map(|it| {
                let place = setup.place(FileRange {
                    file: position.file,
                    range: it.range,
                });
                let kind = match it.kind {
                    HighlightKind::Write => "write",
                    HighlightKind::Read => "read",
                    HighlightKind::Keyword => "keyword",
                };
                format!("{place} {kind} {}", setup.slice(position.file, it.range))
            })
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn reads_and_writes() {
        check(
            "let a = 1\n$0a = a + 1\nsession \"{a}\"\n",
            expect![[r#"
                /main.prose:1:5 write a
                /main.prose:2:1 write a
                /main.prose:2:5 read a
                /main.prose:3:11 read a"#]],
        );
        check(
            "agent a:\n  model: opus\nsession: $0a\n",
            expect![[r#"
                /main.prose:1:7 write a
                /main.prose:3:10 read a"#]],
        );
    }

    #[test]
    fn of_other_files_only_what_is_here() {
        check(
            "#- /main.prose\nuse \"lib.prose\"\ndo $0f\n#- /lib.prose\nblock f:\n  session \"x\"\n",
            expect!["/main.prose:2:4 read f"],
        );
    }

    #[test]
    fn keywords_of_a_construct() {
        check(
            "if true:\n  session \"x\"\nel$0if false:\n  session \"y\"\nelse:\n  session \"z\"\n",
            expect![[r#"
                /main.prose:1:1 keyword if
                /main.prose:3:1 keyword elif
                /main.prose:5:1 keyword else"#]],
        );
        check(
            "t$0ry:\n  session \"x\"\ncatch:\n  session \"y\"\nfinally:\n  session \"z\"\n",
            expect![[r#"
                /main.prose:1:1 keyword try
                /main.prose:3:1 keyword catch
                /main.prose:5:1 keyword finally"#]],
        );
        check(
            "choice **which**:\n  opt$0ion \"a\":\n    session \"x\"\n  option \"b\":\n    session \"y\"\n",
            expect![[r#"
                /main.prose:1:1 keyword choice
                /main.prose:2:3 keyword option
                /main.prose:4:3 keyword option"#]],
        );
    }

    #[test]
    fn loops_and_what_leaves_them() {
        check(
            "for x in [1]:\n  repeat 2:\n    break\n  br$0eak\n",
            expect![[r#"
                /main.prose:1:1 keyword for
                /main.prose:4:3 keyword break"#]],
        );
        check(
            "lo$0op (max: 3):\n  repeat 2:\n    break\n  break\n",
            expect![[r#"
                /main.prose:1:1 keyword loop
                /main.prose:4:3 keyword break"#]],
        );
    }

    #[test]
    fn nothing_there() {
        check("ses$0sion \"x\"\n", expect![""]);
        check("session \"$0x\"\n", expect![""]);
    }
}
