//! What every refactoring is held to: nothing new is wrong, comments stay, lines end as they did.

use expect_test::Expect;
use prose_syntax::SyntaxKind;

use crate::fixture::{Setup, setup};
use crate::rename::applied;
use crate::{CodeActionKind, FileRange, RefactorKind, Severity, TextRange};

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

/// Holds every construct, and what the refactorings have to look at.
const PROGRAM: &str = r#"# Notes
use "lib.prose" as lib
input topic: "What? {x}"

# The writer
agent a:
  model: opus
  prompt: """
    be {topic}
  """
agent p:
  persist: true
  prompt: "p" # why

# Works
block f(x, y): # head
  let z = session "do {x} and {y}"
    context: { x, y }
  output z # out
block g(n):
  # in g
  session "g {n} {topic}"
  if n > 0:
    do f(n, "n")
let r = session: a
  prompt: "say {topic}"
let s = session """
  over {topic}
    lines
""" # s
  # cheap
  model: haiku
  skills: ["one"]
session "t"
  prompt: |
    raw {r}
      text
parallel:
  p1 = session "1"
  p2 = session "2"
let items = [r, "ü€𝄞"] | map:
  session "x {item}"
for it, i in items:
  # each
  do f(it, i + 1)
  let w = session "w {it}"
  session "v {w}"
loop until **done {r}** as n:
  try:
    do g(n)
    throw "no"
  catch as err:
    session "fix {err.message}"
    throw
  finally:
    do g(1)
choice **which {topic}**:
  option "one":
    r = session "a" -> session "b"
  # two
  option "two":
    session "c"
if ***
  long
*** and r == "x":
  let v = lib()
  session "{v}"
elif **b**:
  repeat 3 as j:
    session "{j}"
    break
else:
  session "{s}{p1}{p2}"
# end
do g(2)
output out = r
"#;

/// Every refactoring at every place and selection of lines.
#[test]
fn whatever_is_offered_holds() {
    let text = format!(
        "#- /main.prose\n{PROGRAM}#- /lib.prose\ninput topic: \"t\"\noutput k = session \"{{topic}}\"\n"
    );
    let titles = hold(&text);
    let kinds = [
        "Extract to block",
        "Extract to agent",
        "Inline block",
        "Run these",
        "Add ",
        "Write ",
    ];
    for kind in kinds {
        assert!(titles.iter().any(|it| it.starts_with(kind)), "no {kind}");
    }
}

/// Makes everything that is offered in the main file and checks what comes of it; gives the titles.
fn hold(files: &str) -> Vec<String> {
    let before = setup(files);
    let file = before.main();
    let text = before.text(file).to_owned();
    let mut places = Vec::new();
    let tree = prose_syntax::parse(&text).syntax();
    let tokens = tree.descendants_with_tokens().filter_map(|it| it.into_token());
    for token in tokens.filter(|it| !it.kind().is_trivia()) {
        places.push(TextRange::empty(token.text_range().start()));
    }
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|it| it.0 + 1));
    for (at, from) in starts.iter().enumerate() {
        for to in starts.iter().skip(at + 1).take(12) {
            places.push(TextRange::new((*from as u32).into(), (*to as u32).into()));
        }
    }
    let (old_errors, old_comments, old_said) = (errors(&before), comments(&text), said(&text));
    let mut titles: Vec<String> = Vec::new();
    let mut done: Vec<String> = Vec::new();
    for range in places {
        for action in before.analysis.code_actions(FileRange { file, range }).unwrap() {
            let CodeActionKind::Refactor { edits, kind, .. } = action.kind else {
                continue;
            };
            let new = applied(&text, &edits);
            if done.contains(&new) {
                continue;
            }
            let title = action.title;
            let after = setup(&files.replacen(&text, &new, 1));
            assert!(errors(&after) <= old_errors, "{title}\n{new}");
            let (new_comments, new_said) = (comments(&new), said(&new));
            if kind == RefactorKind::Inline {
                assert!(
                    old_comments.iter().all(|it| new_comments.contains(it)),
                    "{title}\n{new}"
                );
                assert!(old_said.iter().all(|it| new_said.contains(it)), "{title}\n{new}");
            } else {
                assert_eq!(old_comments, new_comments, "{title}\n{new}");
                if !title.starts_with("Add the") {
                    assert_eq!(old_said, new_said, "{title}\n{new}");
                }
            }
            if title.starts_with("Write ") && old_errors == 0 {
                assert_eq!(lowered(&before), lowered(&after), "{title}\n{new}");
            }
            titles.push(title);
            done.push(new);
        }
    }
    titles
}
