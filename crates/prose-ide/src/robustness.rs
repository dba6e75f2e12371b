//! Every feature at every place of complete and broken programs: an answer or none, never a panic, and only ranges that
//! exist.

use prose_syntax::{TextRange, TextSize};

use crate::{
    Analysis, AnalysisHost, Change, CodeActionKind, CompletionConfig, FileId, FilePosition, FileRange,
    HoverConfig, SymbolNode,
};

const FILE: FileId = FileId(0);

/// Holds every construct once, close together.
const PROGRAM: &str = r#"# Notes
use "lib.prose" as lib
use "alice/research"
input topic: "What? {x}"
agent a:
  model: opus
  persist: project
  prompt: """
    be {topic}
  """
  skills: ["s"]
  permissions:
    read: ["*.md"]
    bash: deny
block f(x, y) (max_depth: 5):
  let z = session "do {x} and {y}"
    context: { x, y }
  output z
let r = session: a
  prompt: "say {topic}"
parallel ("any", count: 2, on-fail: "ignore"):
  p = session "1"
  q = resume: a
let items = [r, "ü€𝄞"] | map:
  session "x {item}"
for it, i in items:
  do f(it, i + 1)
loop until **done {r}** (max: 3) as n:
  try:
    throw "no"
  catch as err:
    session "fix {err.message}"
  finally:
    do f(n)
choice **which {topic}**:
  option "one":
    r = session "a" -> session "b"
if ***
  long
*** and r == "x":
  let { k, l } = lib(topic: r)
elif **b**:
  repeat 3 as j:
    session "{j}"
else:
  output out = r.x[0]
"#;

fn analysis(text: &str) -> (AnalysisHost, Analysis) {
    let mut change = Change::new();
    change.text(FILE, "/main.prose", text);
    change.text(
        FileId(1),
        "/lib.prose",
        "input topic: \"t\"\noutput k = session \"k\"\noutput l = session \"l\"\n",
    );
    change.resolve(FILE, vec![("lib.prose".to_owned(), Some(FileId(1)))]);
    let mut host = AnalysisHost::new();
    host.apply_change(change);
    let analysis = host.analysis();
    (host, analysis)
}

#[track_caller]
fn check_range(text: &str, range: TextRange) {
    let exists = text
        .get(usize::from(range.start())..usize::from(range.end()))
        .is_some();
    assert!(exists, "{range:?} is no range of a text of {} bytes", text.len());
}

/// Asks what needs no place.
fn check_file(text: &str, analysis: &Analysis) {
    for found in analysis.diagnostics(FILE).unwrap() {
        check_range(text, found.range);
        for fix in analysis.fixes(&found).unwrap() {
            fix.edits.iter().for_each(|it| check_range(text, it.0));
        }
    }
    fn symbols(text: &str, nodes: &[SymbolNode], outer: TextRange) {
        for node in nodes {
            check_range(text, node.full_range);
            assert!(
                outer.contains_range(node.full_range) && node.full_range.contains_range(node.focus_range),
                "{node:?}"
            );
            symbols(text, &node.children, node.full_range);
        }
    }
    symbols(
        text,
        &analysis.document_symbols(FILE).unwrap(),
        TextRange::up_to(TextSize::of(text)),
    );
    for lens in analysis.code_lenses(FILE).unwrap() {
        check_range(text, lens.range);
    }
    for fold in analysis.folds(FILE).unwrap() {
        check_range(text, fold.range);
        assert!(text[fold.range].contains(['\n', '\r']), "{fold:?} is in one line");
    }
    let mut end = TextSize::new(0);
    for token in analysis.semantic_tokens(FILE, None).unwrap() {
        check_range(text, token.range);
        assert!(
            end <= token.range.start() && !token.range.is_empty(),
            "{token:?} overlaps or is empty"
        );
        end = token.range.end();
    }
    let _ = analysis.bundle(FILE).unwrap();
    assert!(text.is_empty() || !analysis.view_tree(FILE).unwrap().is_empty());
}

/// Asks everything at one place.
fn check_place(text: &str, analysis: &Analysis, offset: usize) {
    let position = FilePosition {
        file: FILE,
        offset: TextSize::new(offset as u32),
    };
    if let Some(hover) = analysis.hover(position, HoverConfig::default()).unwrap() {
        check_range(text, hover.range);
    }
    for snippets in [false, true] {
        for item in analysis
            .completion(position, CompletionConfig { snippets })
            .unwrap()
        {
            check_range(text, item.replace);
            assert!(
                item.replace
                    .contains_inclusive(position.offset.min(TextSize::of(text)))
                    || !text.is_char_boundary(offset.min(text.len()))
            );
            assert!(snippets || item.snippet.is_none());
            assert!(!item.insert.is_empty() && !item.insert.contains("${"), "{item:?}");
        }
    }
    if let Some(found) = analysis.goto_definition(position).unwrap() {
        check_range(text, found.range);
        for target in found.info.iter().filter(|it| it.file == FILE) {
            check_range(text, target.full_range);
            assert!(target.full_range.contains_range(target.focus_range), "{target:?}");
        }
    }
    for reference in analysis.references(position, true).unwrap() {
        if reference.file == FILE {
            check_range(text, reference.range);
        }
    }
    for highlight in analysis.highlights(position).unwrap() {
        check_range(text, highlight.range);
    }
    let mut inner = None;
    for range in analysis.selection_ranges(position).unwrap() {
        check_range(text, range);
        assert!(
            inner.is_none_or(|it| range.contains_range(it) && range != it),
            "{range:?} after {inner:?}"
        );
        inner = Some(range);
    }
    check_actions(text, analysis, TextRange::empty(position.offset));
}

/// Asks what can be done with some lines from an offset on.
fn check_selection(text: &str, analysis: &Analysis, offset: usize) {
    let at = |offset: usize| TextSize::new(u32::try_from(offset).unwrap_or(u32::MAX));
    check_actions(
        text,
        analysis,
        TextRange::new(at(offset), at(offset.saturating_add(70))),
    );
}

fn check_actions(text: &str, analysis: &Analysis, range: TextRange) {
    for action in analysis.code_actions(FileRange { file: FILE, range }).unwrap() {
        if let CodeActionKind::QuickFix { edits, .. }
        | CodeActionKind::FixCode { edits, .. }
        | CodeActionKind::Refactor { edits, .. } = action.kind
        {
            edits.iter().for_each(|edit| check_range(text, edit.range));
        }
    }
}

#[test]
fn every_place_of_a_whole_program() {
    let (_host, analysis) = analysis(PROGRAM);
    check_file(PROGRAM, &analysis);
    // Inside characters and past the end, too.
    for offset in 0..PROGRAM.len() + 3 {
        check_place(PROGRAM, &analysis, offset);
        check_selection(PROGRAM, &analysis, offset);
    }
    check_place(PROGRAM, &analysis, u32::MAX as usize);
    check_selection(PROGRAM, &analysis, u32::MAX as usize);
}

#[test]
fn every_beginning_of_a_program() {
    let mut host = AnalysisHost::new();
    for end in (0..=PROGRAM.len()).filter(|end| PROGRAM.is_char_boundary(*end)) {
        let text = &PROGRAM[..end];
        let mut change = Change::new();
        change.text(FILE, "/main.prose", text);
        host.apply_change(change);
        let analysis = host.analysis();
        check_file(text, &analysis);
        // Near the cut, where everything is unfinished.
        for offset in end.saturating_sub(2)..=end {
            check_place(text, &analysis, offset);
        }
        check_selection(text, &analysis, end.saturating_sub(70));
    }
}

#[test]
fn every_line_missing() {
    let lines: Vec<&str> = PROGRAM.split_inclusive('\n').collect();
    for missing in 0..lines.len() {
        let text: String = lines
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != missing)
            .map(|(_, line)| *line)
            .collect();
        let (_host, analysis) = analysis(&text);
        check_file(&text, &analysis);
        let gap: usize = lines[..missing].iter().map(|line| line.len()).sum();
        for offset in gap.saturating_sub(8)..(gap + 12).min(text.len()) {
            check_place(&text, &analysis, offset);
        }
        check_selection(&text, &analysis, gap);
    }
}

#[test]
fn odd_texts() {
    let nested = format!("{}session \"x\"", "if **a**:\n".repeat(3));
    let brackets = format!("let x = {}", "[".repeat(3000));
    for text in [
        "",
        "\u{feff}",
        "\u{feff}session \"x\"",
        "session \"a\r\nsession \"b\"\r\n",
        "\tsession \"x\"\n\t\tprompt: \"y\"",
        "session \"x\" # c",
        "\"\"\"",
        "**",
        "***",
        "{",
        "let { ",
        "a.",
        ".",
        "..",
        "do\n",
        "session:",
        "session: \n",
        "context: [",
        "session \"x\"\n  context: [",
        "session \"x\"\n  context: {a,",
        "session \"{",
        "session \"{a.",
        "parallel (\"",
        "parallel (on-fail: \"",
        "| map:",
        "-> ",
        "äöü = **ü**",
        &nested,
        &brackets,
    ] {
        let (_host, analysis) = analysis(text);
        check_file(text, &analysis);
        let step = (text.len() / 100).max(1);
        for offset in (0..text.len() + 2).step_by(step) {
            check_place(text, &analysis, offset);
            check_selection(text, &analysis, offset);
        }
    }
}

#[test]
fn unknown_files_have_no_answers() {
    let (_host, analysis) = analysis(PROGRAM);
    let file = FileId(77);
    let position = FilePosition {
        file,
        offset: TextSize::new(5),
    };
    assert_eq!(analysis.hover(position, HoverConfig::default()).unwrap(), None);
    assert!(
        analysis
            .completion(position, CompletionConfig::default())
            .unwrap()
            .is_empty()
    );
    assert!(analysis.diagnostics(file).unwrap().is_empty());
    assert!(analysis.document_symbols(file).unwrap().is_empty());
    assert_eq!(analysis.file_text(file).unwrap(), None);
    assert!(analysis.bundle(file).unwrap().is_err());
}
