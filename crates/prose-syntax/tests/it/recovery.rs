//! One mistake damages one statement: the others keep their names and their findings.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use prose_syntax::{
    SyntaxKind::{self, *},
    TextRange, TextSize, parse,
};

use crate::{chunks::chunks, error_codes};

/// The programs of the repository.
fn programs() -> Vec<Whole> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = Vec::new();
    for folder in ["examples", "tests/programs"] {
        let mut paths: Vec<_> = std::fs::read_dir(root.join(folder))
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "prose"))
            .collect();
        paths.sort();
        out.extend(
            paths
                .iter()
                .map(|it| Whole::new(std::fs::read_to_string(it).unwrap())),
        );
    }
    assert!(out.len() > 5);
    out
}

/// Every token but blanks and comments, and besides the delimiters of strings and discretions.
fn pieces(text: &str) -> Vec<TextRange> {
    let mut out = Vec::new();
    let tokens = parse(text).syntax().descendants_with_tokens();
    for token in tokens
        .filter_map(|it| it.into_token())
        .filter(|it| !it.kind().is_trivia())
    {
        let range = token.text_range();
        out.push(range);
        let width = match token.kind() {
            STRING => 1,
            TRIPLE_STRING => 3,
            DISCRETION if token.text().starts_with("***") => 3,
            DISCRETION => 2,
            _ => continue,
        };
        out.push(TextRange::at(range.start(), width.into()));
        out.push(TextRange::at(range.end() - TextSize::from(width), width.into()));
    }
    out
}

/// A whole program.
struct Whole {
    text: String,
    names: Vec<(TextRange, SyntaxKind)>,
    findings: Vec<(TextRange, String)>,
    statements: Vec<TextRange>,
}

impl Whole {
    fn new(text: String) -> Whole {
        Whole {
            names: names(&text),
            findings: findings(&text),
            statements: chunks(&text),
            text,
        }
    }
}

/// A change of a text inside one statement of the top level.
struct Damage<'a> {
    before: &'a Whole,
    after: String,
    /// The statement, before.
    damaged: TextRange,
    /// How much longer the text is now.
    longer: i64,
}

impl<'a> Damage<'a> {
    fn new(before: &'a Whole, range: TextRange, with: &str) -> Damage<'a> {
        let mut after = before.text.clone();
        after.replace_range(std::ops::Range::<usize>::from(range), with);
        let mut statements = before.statements.iter();
        Damage {
            before,
            damaged: *statements.find(|it| it.contains(range.start())).unwrap(),
            longer: after.len() as i64 - before.text.len() as i64,
            after,
        }
    }

    /// What lies outside the damaged statement, with places after the change.
    fn outside<T: Ord>(&self, all: Vec<(TextRange, T)>, before: bool) -> BTreeSet<(i64, i64, T)> {
        let (from, to) = (u32::from(self.damaged.start()), u32::from(self.damaged.end()));
        let to = i64::from(to) + if before { 0 } else { self.longer };
        let moved = |it: i64| if before && it >= to { it + self.longer } else { it };
        all.into_iter()
            .map(|(range, it)| {
                (
                    i64::from(u32::from(range.start())),
                    i64::from(u32::from(range.end())),
                    it,
                )
            })
            .filter(|(start, _, _)| *start < i64::from(from) || *start >= to)
            .map(|(start, end, it)| (moved(start), moved(end), it))
            .collect()
    }

    /// The others keep the names they declare and their findings. Gives the number of errors.
    #[track_caller]
    fn check(&self) -> usize {
        let what = || format!("{:?} of\n{}", self.damaged, self.after);
        assert_eq!(
            self.outside(self.before.names.clone(), true),
            self.outside(names(&self.after), false),
            "names: {}",
            what()
        );
        assert_eq!(
            self.outside(self.before.findings.clone(), true),
            self.outside(findings(&self.after), false),
            "findings: {}",
            what()
        );
        error_codes(&self.after).len()
    }
}

/// Names declared in statements, with the kind of what declares them.
fn names(text: &str) -> Vec<(TextRange, SyntaxKind)> {
    let declares = |it: SyntaxKind| {
        matches!(
            it,
            AGENT_DEF | BLOCK_DEF | LET_STMT | INPUT_STMT | OUTPUT_STMT | USE_STMT | FOR_EXPR | PARAM
        )
    };
    parse(text)
        .syntax()
        .descendants()
        .filter(|it| it.kind() == NAME)
        .filter_map(|it| Some((it.text_range(), it.parent()?.kind())))
        .filter(|(_, kind)| declares(*kind))
        .collect()
}

fn findings(text: &str) -> Vec<(TextRange, String)> {
    let parse = parse(text);
    parse
        .errors()
        .iter()
        .map(|it| (it.range, it.to_string()))
        .collect()
}

#[test]
fn deleting_a_token_damages_its_statement_only() {
    let mut counts = [0usize; 8];
    for program in programs() {
        for piece in pieces(&program.text) {
            let errors = Damage::new(&program, piece, "").check();
            counts[errors.min(7)] += 1;
        }
    }
    let all: usize = counts.iter().sum();
    assert!(all > 1000);
    // One mistake is one error, nearly always; some deletions leave a program that is right.
    assert!(counts[2..].iter().sum::<usize>() * 50 < all, "{counts:?}");
    assert_eq!(counts[4..], [0; 4], "{counts:?}");
}

#[test]
fn a_stray_token_damages_its_statement_only() {
    const STRAYS: &[&str] = &[
        ":", ",", ")", "]", "=", "->", "session", "if", "x", "?", "in", "3",
    ];
    for program in programs() {
        let text = &program.text;
        for (index, piece) in pieces(text).into_iter().enumerate().step_by(5) {
            let token = &text[piece];
            if token.contains('\n') {
                continue;
            }
            let stray = STRAYS[index / 5 % STRAYS.len()];
            Damage::new(&program, piece, &format!("{token} {stray}")).check();
            Damage::new(&program, piece, &format!("{token} {token}")).check();
        }
    }
}

#[test]
fn swapped_tokens_damage_their_statement_only() {
    for program in programs() {
        let text = &program.text;
        let tokens: Vec<TextRange> = parse(text)
            .syntax()
            .descendants_with_tokens()
            .filter_map(|it| it.into_token())
            .filter(|it| !it.kind().is_trivia())
            .map(|it| it.text_range())
            .collect();
        for pair in tokens.windows(2).step_by(3) {
            let between = &text[TextRange::new(pair[0].end(), pair[1].start())];
            if between.contains('\n') {
                continue;
            }
            let swapped = format!("{}{between}{}", &text[pair[1]], &text[pair[0]]);
            Damage::new(&program, pair[0].cover(pair[1]), &swapped).check();
        }
    }
}

#[test]
fn a_line_being_typed_damages_nothing() {
    let lines = [
        "let x = session: writer",
        "session \"Do {it} now\"",
        "session: writer",
        "resume: writer",
        "if **it is done** and x == 3:",
        "choice **which one**:",
        "parallel (on-fail: \"continue\"):",
        "parallel for a, i in [1, 2]:",
        "for a in xs:",
        "loop until **done** (max: 3) as i:",
        "repeat 3 as i:",
        "do f(a, [b, {c: 1}])",
        "agent third:",
        "block g(a, b) (max_depth: 3):",
        "input topic: \"What?\"",
        "output result = x -> session \"y\"",
        "use \"./other.prose\" as other",
        "xs | map: session \"{item}\"",
        "throw \"no\"",
        "context: [a, b]",
    ];
    for line in lines {
        for end in (1..=line.len()).filter(|it| line.is_char_boundary(*it)) {
            let typed = &line[..end];
            let text = format!(
                "agent writer:\n  model: opus\n\nlet above = session \"a\"\n  retry: 1\n\n{typed}\n\nlet below = session: writer\n  prompt: \"b\"\n\nblock f(a):\n  do:\n    output a\n"
            );
            let tree = parse(&text).tree();
            let statements: Vec<String> = tree.statements().map(|it| it.to_string()).collect();
            for whole in [
                "agent writer:\n  model: opus",
                "let above = session \"a\"\n  retry: 1",
                "let below = session: writer\n  prompt: \"b\"",
                "block f(a):\n  do:\n    output a",
            ] {
                assert!(
                    statements.iter().any(|it| it == whole),
                    "{typed:?}: {statements:#?}"
                );
            }
            let errors = error_codes(&text);
            assert!(errors.len() <= 1, "{typed:?}: {errors:?}");
        }
    }
}

#[track_caller]
fn check(text: &str, expect: Expect) {
    let parse = parse(text);
    let index = prose_syntax::LineIndex::new(text);
    let mut out = String::new();
    for statement in parse.tree().statements() {
        let statement = statement.to_string();
        out.push_str(&format!("{:?}\n", statement));
    }
    for error in parse.errors() {
        out.push_str(&format!(
            "{} {} {error}\n",
            index.utf8(error.range.start()).line + 1,
            error.code()
        ));
    }
    expect.assert_eq(&out);
}

#[test]
fn a_string_that_is_not_closed_ends_before_the_next_statement() {
    check(
        "agent a:\n  prompt: \"\"\"\n    You write.\n  model: opus\n\n# about b\nagent b:\n  prompt: \"\"\"\n    You read.\n  \"\"\"\nlet x = session: b\n",
        expect![[r#"
            "agent a:\n  prompt: \"\"\"\n    You write.\n  model: opus"
            "agent b:\n  prompt: \"\"\"\n    You read.\n  \"\"\""
            "let x = session: b"
            2 E001 string is never closed: add `"""` after its last line
        "#]],
    );
}

#[test]
fn a_string_that_is_not_opened_is_read_as_text() {
    check(
        "agent a:\n  prompt:\n    You write. Don't (ever) stop: [\n\n    let x = 5\n  \"\"\"\n  model: opus\nagent b:\n  prompt: \"\"\"\n    You read.\n  \"\"\"\n",
        expect![[r#"
            "agent a:\n  prompt:\n    You write. Don't (ever) stop: [\n\n    let x = 5\n  \"\"\"\n  model: opus"
            "agent b:\n  prompt: \"\"\"\n    You read.\n  \"\"\""
            6 E001 string is never opened: add `"""` before its first line
        "#]],
    );
}

#[test]
fn statements_in_a_text_are_text() {
    // However much a text looks like a program: as long as all strings are closed nothing ends early.
    check(
        "agent a:\n  prompt: \"\"\"\nWrite this:\nagent x:\n  prompt:\n\"\"\"\nagent b:\n  prompt: \"\"\"\nlet y = session \"z\"\n  prompt: \"\"\"\n",
        expect![[r#"
            "agent a:\n  prompt: \"\"\"\nWrite this:\nagent x:\n  prompt:\n\"\"\""
            "agent b:\n  prompt: \"\"\"\nlet y = session \"z\"\n  prompt: \"\"\""
        "#]],
    );
}

#[test]
fn stars_that_are_not_closed_end_before_the_colon() {
    check(
        "if ***\n  the text is long\n  and good\n:\n  do f\nelse:\n  do g\nlet x = 1\n",
        expect![[r#"
            "if ***\n  the text is long\n  and good\n:\n  do f\nelse:\n  do g"
            "let x = 1"
            1 P101 discretion is never closed: add `***`
        "#]],
    );
    check(
        "if ***\n  it is so\n  or not:\n  do f\nif ***\n  ever\n***:\n  do g\n",
        expect![[r#"
            "if ***\n  it is so\n  or not:\n  do f"
            "if ***\n  ever\n***:\n  do g"
            1 P101 discretion is never closed: add `***`
        "#]],
    );
}

#[test]
fn a_missing_first_word_is_named() {
    check(
        "(max: 3):\n  do f\n(\"first\"):\n  do f\n:\n  do f\ncatch as e:\n  do g\nx in xs:\n  do f\n**it is so**:\n  do f\nelse:\n  do g\n**which one**:\n  option \"a\":\n    do f\n3:\n  do f\nuntil **done**:\n  do f\nwriter:\n  model: opus\nwrite(a, b):\n  do f\n\"text\"\n  retry: 3\n= 5\n",
        expect![[r#"
            "(max: 3):\n  do f"
            "(\"first\"):\n  do f"
            ":\n  do f\ncatch as e:\n  do g"
            "x in xs:\n  do f"
            "**it is so**:\n  do f\nelse:\n  do g"
            "**which one**:\n  option \"a\":\n    do f"
            "3:\n  do f"
            "until **done**:\n  do f"
            "writer:\n  model: opus"
            "write(a, b):\n  do f"
            "\"text\"\n  retry: 3"
            "= 5"
            1 E005 a word is missing here: write `loop (…):`
            3 E005 a word is missing here: write `parallel (…):`
            5 E005 a word is missing here: write `parallel:`, `try:` or `do:`
            9 E005 a word is missing here: write `for item in items:`
            11 E005 a word is missing here: write `if **…**:`
            15 E005 a word is missing here: write `choice **…**:`
            18 E005 a word is missing here: write `repeat 3:`
            20 E004 `until` begins no statement: use `loop until **…**:`
            22 E005 a word is missing here: write `agent name:`
            24 E005 a word is missing here: write `block name(…):`
            26 E005 a word is missing here: write `session "…"`
            28 E005 a word is missing here: write `name = …`
        "#]],
    );
}
