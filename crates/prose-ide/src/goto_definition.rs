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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::FileRange;
    use crate::fixture::setup;

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
