//! Where a name is used, in `{…}` of texts too.

use prose_hir::{RefKind, RootDatabase};

use crate::types::{FilePosition, FileRange};
use crate::{names, tree};

pub(crate) fn references(
    db: &RootDatabase,
    position: FilePosition,
    include_declaration: bool,
) -> Vec<FileRange> {
    let Some(source) = tree::source(db, position.file) else {
        return Vec::new();
    };
    let offset = tree::clamp(&source.text(db), position.offset);
    let Some(found) = names::at(db, source, offset) else {
        return Vec::new();
    };
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
        .map(|it| FileRange {
            file: it.file,
            range: it.range,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, include_declaration: bool, expect: Expect) {
        let setup = setup(fixture);
        let found = setup
            .analysis
            .references(setup.position(), include_declaration)
            .unwrap();
        let places: Vec<String> = found.into_iter().map(|it| setup.place(it)).collect();
        expect.assert_eq(&places.join("\n"));
    }

    #[test]
    fn agents() {
        let fixture = "agent a:\n  model: opus\nsession: $0a\nlet x = resume: a\nsession n: a\n";
        check(
            fixture,
            true,
            expect![[r#"
            /main.prose:1:7
            /main.prose:3:10
            /main.prose:4:17
            /main.prose:5:12"#]],
        );
        check(
            fixture,
            false,
            expect![[r#"
            /main.prose:3:10
            /main.prose:4:17
            /main.prose:5:12"#]],
        );
    }

    #[test]
    fn variables_with_texts() {
        check(
            "let a = 1\na = a + 1\nsession \"{a} of {a.b}\"\n  context: [$0a]\nif **{a}**:\n  session \"a\"\n",
            true,
            expect![[r#"
                /main.prose:1:5
                /main.prose:2:1
                /main.prose:2:5
                /main.prose:3:11
                /main.prose:3:18
                /main.prose:4:13
                /main.prose:5:7"#]],
        );
    }

    #[test]
    fn only_the_same_variable() {
        check(
            "block f(x):\n  session \"{$0x}\"\nblock g(x):\n  session \"{x}\"\nlet x = 1\n",
            true,
            expect![[r#"
            /main.prose:1:9
            /main.prose:2:13"#]],
        );
    }

    #[test]
    fn across_files() {
        check(
            "#- /main.prose\nuse \"lib.prose\"\ndo f\n#- /lib.prose\nblock $0f:\n  do f\n",
            true,
            expect![[r#"
                /main.prose:2:4
                /lib.prose:1:7
                /lib.prose:2:6"#]],
        );
    }

    #[test]
    fn parameters_by_name() {
        check(
            "block f(topic):\n  session \"{topic}\"\ndo f(to$0pic: 1)\nblock g(topic):\n  do f(topic: topic)\n",
            true,
            expect![[r#"
                /main.prose:1:9
                /main.prose:2:13
                /main.prose:3:6
                /main.prose:5:8"#]],
        );
        check(
            "#- /main.prose\nuse \"lib.prose\"\ndo f(x: 1)\ndo g(x: 1)\n#- /lib.prose\nblock f($0x):\n  do f(x: x)\nblock g(x):\n  session \"{x}\"\n",
            true,
            expect![[r#"
                /main.prose:2:6
                /lib.prose:1:9
                /lib.prose:2:8
                /lib.prose:2:11"#]],
        );
    }

    #[test]
    fn inputs_and_outputs_of_programs() {
        let fixture = "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = lib(topic: 1)\nsession \"{r.found}\"\nlet { found } = r\nlet direct = lib(topic: 2).found\nlet other = { topic: 3, found: 4 }.found\n#- /lib.prose\ninput topic: \"?\"\nlet x = session \"{topic}\"\noutput found = x\n";
        check(
            &fixture.replacen("topic: 1", "$0topic: 1", 1),
            true,
            expect![[r#"
            /main.prose:2:13
            /main.prose:5:18
            /lib.prose:1:7
            /lib.prose:2:19"#]],
        );
        check(
            &fixture.replacen("{r.found", "{r.$0found", 1),
            true,
            expect![[r#"
            /main.prose:3:13
            /main.prose:4:7
            /main.prose:5:28
            /lib.prose:3:8"#]],
        );
        check(
            &fixture.replace("output found", "output f$0ound"),
            false,
            expect![[r#"
            /main.prose:3:13
            /main.prose:4:7
            /main.prose:5:28"#]],
        );
    }

    #[test]
    fn nothing_there() {
        check("session \"$0x\"\n", true, expect![""]);
    }
}
