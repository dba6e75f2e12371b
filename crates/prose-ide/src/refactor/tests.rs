//! What every refactoring is held to: nothing new is wrong, comments stay, lines end as they did.

use expect_test::Expect;
use prose_syntax::SyntaxKind;

use crate::fixture::{Setup, setup};
use crate::rename::applied;
use crate::{CodeActionKind, Severity};

/// What a refactoring claims.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// The program is the same but for places.
    Program,
    /// The same things are said to sessions and judges, in other places of the program.
    Texts,
    /// More is said than before.
    Nothing,
}

/// Makes the refactoring whose title begins so; once with each sort of line end.
#[track_caller]
pub(super) fn check(title: &str, keeps: Keeps, fixture: &str, expect: Expect) {
    let new = made(title, keeps, &setup(fixture));
    let windows = setup(&fixture.replace('\n', "\r\n"));
    // Headers of a fixture end with a plain line break.
    if !fixture.contains("#- ") {
        assert_eq!(made(title, keeps, &windows), new.replace('\n', "\r\n"));
    }
    expect.assert_eq(&new);
}

/// Nothing whose title begins so is offered.
#[track_caller]
pub(super) fn refused(title: &str, fixture: &str) {
    let setup = setup(fixture);
    let actions = setup.analysis.code_actions(setup.selection()).unwrap();
    let offered = actions
        .iter()
        .find(|it| matches!(it.kind, CodeActionKind::Refactor { .. }) && it.title.starts_with(title));
    assert_eq!(offered, None);
}

#[track_caller]
fn made(title: &str, keeps: Keeps, before: &Setup) -> String {
    let actions = before.analysis.code_actions(before.selection()).unwrap();
    let titles: Vec<_> = actions.iter().map(|it| it.title.clone()).collect();
    let found = actions.into_iter().find_map(|it| match it.kind {
        CodeActionKind::Refactor { edits, file, .. } if it.title.starts_with(title) => Some((edits, file)),
        _ => None,
    });
    let Some((edits, file)) = found else {
        panic!("{title} is not offered: {titles:?}")
    };
    for pair in edits.windows(2) {
        let (one, other) = (pair[0].range, pair[1].range);
        assert!(
            one.end() <= other.start() && one.start() < other.start(),
            "edits touch: {edits:?}"
        );
    }
    let old = before.text(file);
    let new = applied(old, &edits);
    // Other files stay as they are.
    let mut files = format!("#- /main.prose\n{new}");
    for other in before.analysis.files().into_iter().filter(|it| *it != file) {
        let path = before.analysis.file_path(other).unwrap().unwrap();
        if !files.ends_with('\n') {
            files.push('\n');
        }
        files.push_str(&format!("#- {path}\n{}", before.text(other)));
    }
    let after = setup(&files);
    assert!(
        errors(&after) <= errors(before),
        "{:?}\n{new}",
        after.analysis.diagnostics(after.main())
    );
    assert_eq!(comments(old), comments(&new), "{new}");
    match keeps {
        Keeps::Program => assert_eq!(lowered(before), lowered(&after), "{new}"),
        Keeps::Texts => assert_eq!(said(old), said(&new), "{new}"),
        Keeps::Nothing => {}
    }
    new
}

fn errors(setup: &Setup) -> usize {
    let found = setup.analysis.diagnostics(setup.main()).unwrap();
    found.iter().filter(|it| it.severity == Severity::Error).count()
}

fn tokens(text: &str, kinds: &[SyntaxKind]) -> Vec<(SyntaxKind, String)> {
    let tree = prose_syntax::parse(text).syntax();
    let tokens = tree.descendants_with_tokens().filter_map(|it| it.into_token());
    tokens
        .filter(|it| kinds.contains(&it.kind()))
        .map(|it| (it.kind(), it.text().to_owned()))
        .collect()
}

fn comments(text: &str) -> Vec<String> {
    let mut all: Vec<_> = tokens(text, &[SyntaxKind::COMMENT])
        .into_iter()
        .map(|it| it.1.trim_end().to_owned())
        .collect();
    all.sort();
    all
}

/// All that texts and discretions say, in no order.
fn said(text: &str) -> Vec<Vec<(bool, String)>> {
    const TEXTS: &[SyntaxKind] = &[
        SyntaxKind::STRING,
        SyntaxKind::TRIPLE_STRING,
        SyntaxKind::BLOCK_TEXT,
        SyntaxKind::DISCRETION,
    ];
    let mut all: Vec<_> = tokens(text, TEXTS)
        .into_iter()
        .map(|(kind, token)| super::said(kind, &token))
        .collect();
    all.sort();
    all
}

/// The lowered program without places.
fn lowered(setup: &Setup) -> String {
    let bundle = setup.analysis.bundle(setup.main()).unwrap().unwrap();
    let shown = format!("{:?}", bundle.programs);
    let mut out = String::new();
    let mut rest = shown.as_str();
    while let Some(at) = rest.find("SourceRange {") {
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').unwrap().1;
    }
    out + rest
}
