//! Diagnostics for people: the source line, the place, what is wrong and how to fix it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use prose_model::codes::Severity;

/// A diagnostic with the texts it points into, ready to be shown.
pub struct Report<'a> {
    /// Severity after configuration.
    pub severity: Severity,
    /// The code.
    pub code: &'a str,
    /// The message.
    pub message: &'a str,
    /// Path shown to the person.
    pub path: &'a str,
    /// The file's text.
    pub text: &'a str,
    /// Byte range in `text`.
    pub range: std::ops::Range<usize>,
    /// Other places, with why they matter.
    pub related: Vec<Related<'a>>,
}

/// Another place involved in a diagnostic.
pub struct Related<'a> {
    /// Path shown to the person.
    pub path: &'a str,
    /// The file's text.
    pub text: &'a str,
    /// Byte range in `text`.
    pub range: std::ops::Range<usize>,
    /// Why it matters.
    pub message: &'a str,
}

/// Renders one report, with or without colours, ending in a line end.
pub fn render(report: &Report<'_>, colour: bool) -> String {
    let level = match report.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::HELP.with_name("hint"),
    };
    let message = clean(report.message);
    let text = clean(report.text);
    let others: Vec<(String, &Related<'_>, String)> = report
        .related
        .iter()
        .map(|r| (clean(r.text), r, clean(r.message)))
        .collect();
    let mut primary = Snippet::source(text.as_str())
        .path(report.path)
        .annotation(AnnotationKind::Primary.span(clamp(&text, report.range.clone())));
    let mut elsewhere = Vec::new();
    for (text, related, label) in &others {
        let annotation = AnnotationKind::Context
            .span(clamp(text, related.range.clone()))
            .label(label.as_str());
        if related.path == report.path {
            primary = primary.annotation(annotation);
        } else {
            elsewhere.push(
                Snippet::source(text.as_str())
                    .path(related.path)
                    .annotation(annotation),
            );
        }
    }
    let mut snippets = vec![primary];
    snippets.extend(elsewhere);
    let group: Group<'_> = level
        .primary_title(message.as_str())
        .id(report.code)
        .elements(snippets);
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut shown = renderer.render(&[group]);
    shown.push_str("\n\n");
    shown
}

/// A range inside the text and on character boundaries, whatever the caller says.
fn clamp(text: &str, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(range.start);
    start..floor(range.end).max(start)
}

/// Replaces control characters (which could drive the terminal) by a blank of the same length in bytes, so that ranges hold.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t') {
                ' '
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn shows_the_place_and_related_places() {
        let text = "agent a:\n  model: opus\nagent a:\n  model: haiku\n";
        let report = Report {
            severity: Severity::Error,
            code: "E006",
            message: "agent `a` is defined twice; rename one of them",
            path: "x.prose",
            text,
            range: 29..30,
            related: vec![Related {
                path: "x.prose",
                text,
                range: 6..7,
                message: "first defined here",
            }],
        };
        expect![[r#"
            error[E006]: agent `a` is defined twice; rename one of them
             --> x.prose:3:7
              |
            1 | agent a:
              |       - first defined here
            2 |   model: opus
            3 | agent a:
              |       ^

        "#]]
        .assert_eq(&render(&report, false));
    }

    #[test]
    fn ranges_outside_the_text_do_no_harm() {
        let report = Report {
            severity: Severity::Hint,
            code: "P301",
            message: "m\x1b[2J",
            path: "x.prose",
            text: "ä",
            range: 1..99,
            related: Vec::new(),
        };
        assert!(!render(&report, false).contains('\x1b'));
    }
}
