//! `# prose: allow CODE, …`: findings that a program silences.
//!
//! At the end of a line it counts for that line, on a line of its own for the next line that is no comment. A text of several
//! lines, in which there can be no comment, is taken as a whole: what is found in it is silenced where it begins or ends. The
//! comments are found chunk by chunk; what they silence is decided for the whole file, since a comment may stand above the next chunk
//! and some findings belong to no chunk. What stops a program from running can't be silenced.

use prose_model::codes::{self, Severity};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::near;
use crate::diagnostic::{Diagnostic, Finding};
use crate::{FileId, Tag};

/// A comment that silences something, with ranges of its chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allow {
    /// The comment.
    pub range: TextRange,
    /// What it names.
    pub codes: Vec<(TextRange, String)>,
}

/// The comments of a chunk that silence something.
pub(super) fn allows(text: &str, root: impl FnOnce() -> SyntaxNode) -> Vec<Allow> {
    if !text.contains("prose:") {
        return Vec::new();
    }
    let tokens = root().descendants_with_tokens().filter_map(|it| it.into_token());
    tokens
        .filter(|it| it.kind() == SyntaxKind::COMMENT)
        .filter_map(|it| {
            let range = it.text_range();
            let codes = named(it.text())?
                .into_iter()
                .map(|(at, code)| {
                    (
                        TextRange::at(range.start() + at, TextSize::of(code)),
                        code.to_owned(),
                    )
                })
                .collect();
            Some(Allow { range, codes })
        })
        .collect()
}

/// The codes that a comment names, each with its place in it; none when the comment is of another kind. The first word that
/// follows without a comma and doesn't look like a code begins the reason.
fn named(comment: &str) -> Option<Vec<(TextSize, &str)>> {
    let rest = comment.trim_start_matches('#').trim_start();
    let rest = rest.strip_prefix("prose:")?.trim_start().strip_prefix("allow")?;
    if rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        return None;
    }
    let mut codes = Vec::new();
    let mut rest = rest.trim_start();
    loop {
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
            .unwrap_or(rest.len());
        let (code, after) = rest.split_at(length);
        if !code.is_empty() {
            codes.push((TextSize::of(comment) - TextSize::of(rest), code));
        }
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if begins_with_code(after) => rest = after,
            None => return Some(codes),
        }
    }
}

/// Whether a text begins with a word of a letter and three digits.
fn begins_with_code(text: &str) -> bool {
    let length = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    match text.as_bytes()[..length] {
        [letter, ref number @ ..] => {
            letter.is_ascii_uppercase() && number.len() == 3 && number.iter().all(u8::is_ascii_digit)
        }
        [] => false,
    }
}

/// A code that is silenced on one line.
struct Entry {
    code: &'static str,
    range: TextRange,
    used: bool,
    refused: bool,
}

/// Takes out what the comments silence and adds what is to be said about the comments. Ranges are those of the file;
/// `text_around` gives the text of a program, as a string, that an offset is in.
pub(super) fn apply(
    file: FileId,
    text: &str,
    allows: &[(TextSize, &Allow)],
    text_around: impl Fn(TextSize) -> Option<TextRange>,
    out: &mut Vec<Diagnostic>,
) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut by_line: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    let mut said: Vec<(Finding, Option<&'static str>)> = Vec::new();
    for (start, allow) in allows {
        let comment = allow.range + *start;
        let line = target(text, comment);
        if allow.codes.is_empty() {
            let text = "this silences nothing: name what, as in `# prose: allow L404`";
            said.push((Finding::new("P344", comment, text), None));
        }
        for (range, name) in &allow.codes {
            let range = *range + *start;
            let Some(info) = codes::find(name).filter(|it| !it.withdrawn) else {
                said.push((unknown(name, range), None));
                continue;
            };
            by_line.entry(line).or_default().push(entries.len());
            entries.push(Entry {
                code: info.code,
                range,
                used: false,
                refused: false,
            });
        }
    }
    out.retain(|it| {
        if !entries.iter().any(|entry| entry.code == it.code) {
            return true;
        }
        let line = line_start(text, it.range.start().into());
        let around = text_around(it.range.start()).map(|it| {
            (
                line_start(text, it.start().into()),
                line_start(text, it.end().into()),
            )
        });
        let lines = [Some(line), around.map(|it| it.0), around.map(|it| it.1)];
        let mut keep = true;
        for line in lines.into_iter().flatten() {
            for index in by_line.get(&line).into_iter().flatten() {
                let entry = &mut entries[*index];
                if entry.code != it.code {
                    continue;
                }
                if it.severity == Severity::Error {
                    entry.refused = true;
                } else {
                    entry.used = true;
                    keep = false;
                }
            }
        }
        keep
    });
    for entry in entries {
        let code = entry.code;
        if entry.refused {
            let text =
                format!("{code} stops the program from running and can't be silenced: mend what it says");
            said.push((Finding::new("P346", entry.range, text), Some(code)));
        } else if !entry.used {
            let text = format!("there is no {code} on that line: remove this");
            let finding = Finding::new("P345", entry.range, text).tag(Tag::Unnecessary);
            said.push((finding, Some(code)));
        }
    }
    out.extend(said.into_iter().map(|(it, about)| Diagnostic {
        code: it.code,
        severity: it.severity,
        message: it.message,
        file,
        range: it.range,
        related: Vec::new(),
        tags: it.tags,
        fix: it.fix,
        about,
    }));
}

fn unknown(name: &str, range: TextRange) -> Finding {
    let finding = Finding::new("P344", range, format!("there is no code `{name}`"));
    let upper = name.to_uppercase();
    let known = codes::CODES.iter().filter(|it| !it.withdrawn);
    if codes::find(name).is_some() {
        let message = format!("{name} is withdrawn and never reported: remove it");
        return Finding { message, ..finding };
    }
    match near::nearest(&upper, known.map(|it| it.code)) {
        Some(near) => near::offer(finding, range, Some(near)),
        None => Finding {
            message: format!("{}: a code looks like `L404`", finding.message),
            ..finding
        },
    }
}

/// The texts of several lines in a chunk, in order, each with where it begins and ends. A block text's end is the line behind
/// it, which is none of its own: it counts where its `|` stands.
pub(crate) fn long_texts(root: &SyntaxNode) -> Vec<(TextRange, TextRange)> {
    let tokens = root.descendants_with_tokens().filter_map(|it| it.into_token());
    tokens
        .filter(|it| it.kind() == SyntaxKind::BLOCK_TEXT || it.text().contains(['\n', '\r']))
        .filter_map(|token| {
            let lines = match token.kind() {
                SyntaxKind::TRIPLE_STRING | SyntaxKind::DISCRETION => token.text_range(),
                SyntaxKind::BLOCK_TEXT => TextRange::empty(token.parent()?.text_range().start()),
                _ => return None,
            };
            Some((token.text_range(), lines))
        })
        .collect()
}

/// Where the line begins that a comment speaks of.
fn target(text: &str, comment: TextRange) -> usize {
    let own = line_start(text, comment.start().into());
    let alone = text
        .get(own..usize::from(comment.start()))
        .is_some_and(|it| it.trim().is_empty());
    if !alone {
        return own;
    }
    let mut at = usize::from(comment.end());
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let line = rest[..length].trim_start();
        if !(line.is_empty() || line.starts_with('#')) {
            return at;
        }
        at += length + 1;
    }
    own
}

/// Where the line of an offset begins.
fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.rfind(['\n', '\r']).map_or(0, |it| it + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comments_name() {
        let names = |text| named(text).map(|it| it.into_iter().map(|it| it.1).collect::<Vec<_>>());
        assert_eq!(names("# prose: allow L404"), Some(vec!["L404"]));
        assert_eq!(
            names("#prose:allow W007,L404 , P3 because it is so, really"),
            Some(vec!["W007", "L404", "P3"])
        );
        assert_eq!(names("# prose: allow W001 P340 both"), Some(vec!["W001", "P340"]));
        assert_eq!(names("# prose: allow W001 é10 Q4"), Some(vec!["W001"]));
        assert_eq!(names("## prose: allow"), Some(Vec::new()));
        assert_eq!(names("# prose: allowed"), None);
        assert_eq!(names("# prose is allowed"), None);
        let comment = "# prose: allow A1, B2";
        let at = |it: &(TextSize, &str)| &comment[usize::from(it.0)..][..it.1.len()] == it.1;
        assert!(named(comment).unwrap().iter().all(at));
    }
}
