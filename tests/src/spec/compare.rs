//! Expected text held against actual text.

use super::page::Fence;
use super::{Report, Update};

/// Holds an outcome against what came out. White space at line ends and at the end doesn't count, since it can't be
/// seen in a page.
pub fn outcome(fence: &Fence, actual: &str, report: &mut Report) {
    let expected: Vec<&str> = lines(&fence.text);
    let got: Vec<&str> = lines(actual);
    if expected == got {
        return;
    }
    let first = (0..)
        .find(|&at| expected.get(at) != got.get(at))
        .unwrap_or_default();
    let show = |line: Option<&&str>| line.map_or("nothing more".to_owned(), |line| format!("`{line}`"));
    report.fail(
        fence.line + first,
        format!(
            "expected {}, got {}\n{}",
            show(expected.get(first)),
            show(got.get(first)),
            indented("all of it", &got)
        ),
    );
    let mut text = got.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    report.updates.push(Update {
        range: fence.range.clone(),
        text,
    });
}

/// Holds an outcome against what came out, byte for byte.
pub fn exact(fence: &Fence, actual: &str, report: &mut Report) {
    let before = report.failures.len();
    outcome(fence, actual, report);
    if fence.text != actual && report.failures.len() == before {
        report.fail(
            fence.line,
            "only white space at the end of lines or of the text differs",
        );
        report.updates.push(Update {
            range: fence.range.clone(),
            text: actual.to_owned(),
        });
    }
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

fn indented(title: &str, lines: &[&str]) -> String {
    let mut text = format!("    {title}:");
    for line in lines {
        text.push_str("\n    | ");
        text.push_str(line);
    }
    text
}
