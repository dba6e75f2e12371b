//! Where the name under the cursor is declared; also from inside `{…}` of texts, and from a `use` to its file.

use prose_hir::{DefKind, RefKind, RootDatabase, SourceFile};
use prose_syntax::TextRange;
use prose_syntax::ast::{AstNode, Expr};

use crate::types::{FilePosition, FileRange, NavigationTarget, RangeInfo, SymbolKind};
use crate::{describe, names, tree};

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
        return Some(RangeInfo {
            range,
            info: vec![target],
        });
    }
    let found = names::at(db, source, offset)?;
    Some(RangeInfo {
        range: found.range,
        info: vec![names::target(&found.definition)],
    })
}

/// The agents of the sessions that a name is bound to.
pub(crate) fn type_definition(
    db: &RootDatabase,
    position: FilePosition,
) -> Option<RangeInfo<Vec<NavigationTarget>>> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let found = names::at(db, source, offset)?;
    if found.definition.kind == DefKind::Agent {
        return Some(RangeInfo {
            range: found.range,
            info: vec![names::target(&found.definition)],
        });
    }
    let mut info: Vec<NavigationTarget> = Vec::new();
    for place in prose_hir::references(db, &found.definition) {
        if !matches!(place.role, None | Some(RefKind::Assign)) {
            continue;
        }
        let bound = db
            .source(place.file)
            .and_then(|it| bound_agent(db, it, place.range));
        info.extend(bound.filter(|it| !info.contains(it)));
    }
    (!info.is_empty()).then_some(RangeInfo {
        range: found.range,
        info,
    })
}

/// The agent of the session that a declared name is bound to.
fn bound_agent(db: &RootDatabase, source: SourceFile, name: TextRange) -> Option<NavigationTarget> {
    let (piece, local) = tree::piece_at(db, source, name.start())?;
    let token = tree::token_at(&piece.root, local)?;
    let session = token.parent_ancestors().find_map(|node| {
        let value = describe::value_of(&node).or_else(|| Expr::cast(node))?;
        match value {
            Expr::Session(it) => Some(it.agent()),
            Expr::Resume(it) => Some(it.agent()),
            _ => None,
        }
    })?;
    let place = piece.up(session?.syntax().text_range()).start();
    let agent = prose_hir::resolve_at(db, source, place)?;
    (agent.kind == DefKind::Agent).then(|| names::target(&agent))
}

/// The sessions of an agent, the calls of a block or program.
pub(crate) fn implementations(db: &RootDatabase, position: FilePosition) -> Vec<FileRange> {
    let Some(source) = tree::source(db, position.file) else {
        return Vec::new();
    };
    let offset = tree::clamp(&source.text(db), position.offset);
    let Some(found) = names::at(db, source, offset) else {
        return Vec::new();
    };
    let runs = |role: Option<RefKind>| {
        matches!(
            role,
            Some(RefKind::Agent | RefKind::Resume | RefKind::Do | RefKind::Call)
        )
    };
    prose_hir::references(db, &found.definition)
        .into_iter()
        .filter(|it| runs(it.role))
        .map(|it| FileRange {
            file: it.file,
            range: it.range,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::FileRange;
    use crate::fixture::setup;

    #[test]
    fn from_a_name_to_the_agent_behind_it() {
        let agents = "agent a:\n  model: opus\nagent b:\n  model: opus\n";
        let show = |program: &str| {
            let setup = setup(&format!("{agents}{program}"));
            let found = setup.analysis.type_definition(setup.position()).unwrap();
            let names: Vec<String> = found
                .into_iter()
                .flat_map(|it| it.info)
                .map(|it| format!("{} {}", it.kind.as_str(), it.name))
                .collect();
            names.join(", ")
        };
        assert_eq!(show("let x = session: a\nsession \"{$0x}\"\n"), "agent a");
        assert_eq!(
            show("let x = session: a\nx = resume: b\nsession \"{$0x}\"\n"),
            "agent a, agent b"
        );
        assert_eq!(show("parallel:\n  $0p = session: b\n"), "agent b");
        assert_eq!(show("session $0n: b\n"), "agent b");
        assert_eq!(show("session: $0b\n"), "agent b");
        assert_eq!(show("let $0x = session \"y\"\n"), "");
        assert_eq!(show("let $0x = 1\n"), "");
    }

    #[test]
    fn from_an_agent_to_its_sessions() {
        let setup =
            setup("agent $0a:\n  model: opus\nsession: a\nlet x = resume: a\nsession \"y\"\n  context: a\n");
        let found = setup.analysis.implementations(setup.position()).unwrap();
        let places: Vec<String> = found.into_iter().map(|it| setup.place(it)).collect();
        assert_eq!(places, ["/main.prose:3:10", "/main.prose:4:17"]);
    }

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let position = setup.position();
        let Some(found) = setup.analysis.goto_definition(position).unwrap() else {
            return expect.assert_eq("nothing");
        };
        let mut out = format!("[{}]", setup.slice(position.file, found.range));
        for target in found.info {
            let place = setup.place(FileRange {
                file: target.file,
                range: target.focus_range,
            });
            out.push_str(&format!(" {} {} {place}", target.kind.as_str(), target.name));
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn agents_blocks_and_programs() {
        check(
            "agent a:\n  model: opus\nsession: $0a\n",
            expect!["[a] agent a /main.prose:1:7"],
        );
        check(
            "do $0f\nblock f:\n  session \"x\"\n",
            expect!["[f] block f /main.prose:2:7"],
        );
        check(
            "use \"alice/x\" as $0y\nlet r = y()\n",
            expect!["[y] program y /main.prose:1:18"],
        );
        check(
            "use \"alice/x\" as y\nlet r = $0y()\n",
            expect!["[y] program y /main.prose:1:18"],
        );
        check(
            "use \"alice/x\"\nlet r = $0x()\n",
            expect!["[x] program x /main.prose:1:6"],
        );
    }

    #[test]
    fn variables() {
        check(
            "let a = 1\nlet b = $0a\n",
            expect!["[a] variable a /main.prose:1:5"],
        );
        check("let a = 1\n$0a = 2\n", expect!["[a] variable a /main.prose:1:5"]);
        check(
            "block f(p):\n  session \"x\"\n    context: p$0\n",
            expect!["[p] parameter p /main.prose:1:9"],
        );
        check(
            "for x, i in [1]:\n  do f(i$0)\n",
            expect!["[i] loop variable i /main.prose:1:8"],
        );
        check(
            "parallel:\n  p = session \"x\"\nsession \"y\"\n  context: { $0p }\n",
            expect!["[p] variable p /main.prose:2:3"],
        );
        check(
            "let { k, l } = f()\nlet m = $0l\n",
            expect!["[l] variable l /main.prose:1:10"],
        );
        check(
            "session draft: a\nsession \"{dr$0aft}\"\n",
            expect!["[draft] variable draft /main.prose:1:9"],
        );
        check(
            "try:\n  session \"x\"\ncatch as e:\n  session \"{$0e.message}\"\n",
            expect!["[e] loop variable e /main.prose:3:10"],
        );
    }

    #[test]
    fn inside_texts() {
        check(
            "let topic = 1\nsession \"on {top$0ic}\"\n",
            expect!["[topic] variable topic /main.prose:1:5"],
        );
        check(
            "let topic = 1\nif **good {topic$0}**:\n  session \"x\"\n",
            expect!["[topic] variable topic /main.prose:1:5"],
        );
        check(
            "let done = 1\nif **do$0ne**:\n  session \"x\"\n",
            expect!["[done] variable done /main.prose:1:5"],
        );
        check("let topic = 1\nsession \"to$0pic\"\n", expect!["nothing"]);
    }

    #[test]
    fn other_files() {
        check(
            "#- /main.prose\nuse \"lib.prose\"\ndo f$0\n#- /lib.prose\nblock f:\n  session \"x\"\n",
            expect!["[f] block f /lib.prose:1:7"],
        );
        check(
            "#- /main.prose\nuse \"li$0b.prose\"\n#- /lib.prose\nblock f:\n  session \"x\"\n",
            expect!["[lib.prose] file /lib.prose /lib.prose:1:1"],
        );
        check(
            "#- /main.prose\nuse \"mis$0sing.prose\"\n",
            expect!["[missing.prose] program missing /main.prose:1:6"],
        );
    }

    #[test]
    fn nothing_there() {
        check("session: $0nobody\n", expect!["nothing"]);
        check("ses$0sion \"x\"\n", expect!["nothing"]);
        check("# a$0\nlet a = 1\n", expect!["nothing"]);
    }
}
