//! Diagnostics for people: the source line, the place, what is wrong and how to fix it.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
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
    let (near, far): (Vec<&Related<'_>>, Vec<_>) =
        report.related.iter().partition(|it| it.path == report.path);
    let mut marks = vec![(report.range.clone(), None)];
    marks.extend(near.iter().map(|it| (it.range.clone(), Some(clean(it.message)))));
    let mut excerpts = vec![(report.path, Excerpt::new(report.text, marks))];
    for it in far {
        let mark = (it.range.clone(), Some(clean(it.message)));
        excerpts.push((it.path, Excerpt::new(it.text, vec![mark])));
    }
    let snippets = excerpts.iter().map(|(path, excerpt)| excerpt.snippet(path));
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

/// The lines of a text that are shown. A file may be long, and have many findings.
struct Excerpt {
    text: String,
    /// Number of its first line, from 1.
    line: usize,
    /// What is marked, with a label; that without one is the main thing.
    marks: Vec<(std::ops::Range<usize>, Option<String>)>,
}

impl Excerpt {
    fn new(text: &str, mut marks: Vec<(std::ops::Range<usize>, Option<String>)>) -> Excerpt {
        for (range, _) in &mut marks {
            *range = clamp(text, range.clone());
        }
        let first = marks.iter().map(|(range, _)| range.start).min().unwrap_or(0);
        let last = marks.iter().map(|(range, _)| range.end).max().unwrap_or(0);
        let from = text[..first].rfind('\n').map_or(0, |at| at + 1);
        let to = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
        for (range, _) in &mut marks {
            *range = range.start - from..range.end - from;
        }
        Excerpt {
            text: clean(&text[from..to]),
            line: 1 + text[..from].matches('\n').count(),
            marks,
        }
    }

    fn snippet<'a>(&'a self, path: &'a str) -> Snippet<'a, Annotation<'a>> {
        let annotations = self.marks.iter().map(|(range, label)| match label {
            None => AnnotationKind::Primary.span(range.clone()),
            Some(label) => AnnotationKind::Context.span(range.clone()).label(label.as_str()),
        });
        Snippet::source(self.text.as_str())
            .path(path)
            .line_start(self.line)
            .annotations(annotations)
    }
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
