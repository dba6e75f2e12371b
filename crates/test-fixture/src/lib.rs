//! Fixtures for tests: several files, a cursor or selection and expected places, all in one string.
//!
//! ```text
//! #- /main.prose
//! use "./lib.prose"
//! do gre$0et("you")
//! #  ^^^^^ the call
//! #- /lib.prose
//! block greet(name):
//! #<^^^ keyword
//!   session "Greet {name}"
//! ```
//!
//! - `#- PATH` begins a file. Text without any header is `/main.prose`.
//! - `$0` is the cursor; two of them are a selection. They are removed.
//! - A comment line with carets annotates the columns above them, in the nearest line above that is no annotation.
//!   `#<^^^` begins at the `#` itself, for places at its column. Annotations stay in the text: they are comments.
//! - Indentation common to all lines, and a line break at the start, go.
//!
//! Deliberately absent: anything about the language. Works on any text with `#` comments.
//!
//! Architecture invariant: depends on nothing but the standard library, so that every crate's tests can use it. Broken
//! fixtures panic: they are mistakes in a test.

use std::ops::Range;

/// A parsed fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// The files, in order.
    pub files: Vec<File>,
    /// The cursor or selection, if the fixture has one.
    pub cursor: Option<Cursor>,
}

/// A file of a fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As in the header: `/main.prose`.
    pub path: String,
    /// Its text, without cursor marks.
    pub text: String,
}

/// Where `$0` stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the file.
    pub file: usize,
    /// Bytes in the file's text; empty for a cursor.
    pub range: Range<usize>,
}

/// An annotated place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Index of the file.
    pub file: usize,
    /// Bytes in the file's text.
    pub range: Range<usize>,
    /// What stands after the carets, trimmed.
    pub label: String,
}

impl Fixture {
    /// Parses a fixture.
    ///
    /// # Panics
    /// On text before the first header, two files of one path, or more than two cursor marks.
    #[track_caller]
    pub fn parse(fixture: &str) -> Fixture {
        let text = dedent(fixture);
        let mut raw: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(path) = line.strip_prefix("#- ") {
                let path = path.trim().to_owned();
                assert!(raw.iter().all(|(it, _)| *it != path), "two files named {path}");
                raw.push((path, String::new()));
                continue;
            }
            if raw.is_empty() {
                raw.push(("/main.prose".to_owned(), String::new()));
            }
            if let Some((_, text)) = raw.last_mut() {
                text.push_str(line);
            }
        }
        let headers = text.lines().filter(|it| it.starts_with("#- ")).count();
        assert!(
            headers == 0 || headers == raw.len(),
            "text before the first `#- ` header"
        );
        if raw.is_empty() {
            raw.push(("/main.prose".to_owned(), String::new()));
        }
        let mut files = Vec::new();
        let mut cursor = None;
        for (index, (path, text)) in raw.into_iter().enumerate() {
            let (range, text) = extract_cursor(&text);
            if let Some(range) = range {
                assert!(cursor.is_none(), "cursor marks in two files");
                cursor = Some(Cursor { file: index, range });
            }
            files.push(File { path, text });
        }
        Fixture { files, cursor }
    }

    /// The annotations of all files, in order.
    pub fn annotations(&self) -> Vec<Annotation> {
        let all = self.files.iter().enumerate();
        all.flat_map(|(file, it)| {
            extract_annotations(&it.text)
                .into_iter()
                .map(move |(range, label)| Annotation { file, range, label })
        })
        .collect()
    }

    /// Index of the file with this path.
    pub fn file(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|it| it.path == path)
    }

    /// The cursor as (file, offset).
    ///
    /// # Panics
    /// When there is none, or a selection.
    #[track_caller]
    pub fn offset(&self) -> (usize, usize) {
        match &self.cursor {
            Some(Cursor { file, range }) if range.is_empty() => (*file, range.start),
            Some(_) => panic!("the fixture has a selection, not a cursor"),
            None => panic!("the fixture has no `$0`"),
        }
    }

    /// The selection as (file, range); a cursor is an empty one.
    ///
    /// # Panics
    /// When there is neither.
    #[track_caller]
    pub fn selection(&self) -> (usize, Range<usize>) {
        match &self.cursor {
            Some(Cursor { file, range }) => (*file, range.clone()),
            None => panic!("the fixture has no `$0`"),
        }
    }
}

/// Takes the one `$0` out of a text and gives its offset.
///
/// # Panics
/// When there is not exactly one.
#[track_caller]
pub fn extract_offset(text: &str) -> (usize, String) {
    match extract_cursor(text) {
        (Some(range), text) if range.is_empty() => (range.start, text),
        _ => panic!("exactly one `$0` is needed"),
    }
}

/// Takes `$0` or `$0…$0` out of a text.
///
/// # Panics
/// When there are more than two marks.
#[track_caller]
pub fn extract_cursor(text: &str) -> (Option<Range<usize>>, String) {
    let parts: Vec<&str> = text.split("$0").collect();
    match parts[..] {
        [_] => (None, text.to_owned()),
        [a, b] => (Some(a.len()..a.len()), format!("{a}{b}")),
        [a, b, c] => (Some(a.len()..a.len() + b.len()), format!("{a}{b}{c}")),
        _ => panic!("at most two `$0` are possible"),
    }
}

/// The annotated ranges of a text, in the order of the annotation lines.
///
/// # Panics
/// When the carets reach beyond the annotated line, or nothing stands above them.
#[track_caller]
pub fn extract_annotations(text: &str) -> Vec<(Range<usize>, String)> {
    let mut out = Vec::new();
    let mut above: Option<(usize, &str)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        match annotation(content) {
            Some((from, to, label)) => {
                let Some((line_start, line)) = above else {
                    panic!("nothing to annotate above {content:?}")
                };
                out.push((
                    line_start + byte_of(line, from)..line_start + byte_of(line, to),
                    label.to_owned(),
                ));
            }
            None => above = Some((start, content)),
        }
        start += line.len();
    }
    out
}

/// Columns (in characters) and label of an annotation line.
fn annotation(line: &str) -> Option<(usize, usize, &str)> {
    let trimmed = line.trim_start_matches(' ');
    let hash = line.len() - trimmed.len();
    let rest = trimmed.strip_prefix('#')?;
    let at_hash = rest.starts_with("<^");
    let rest = rest.strip_prefix('<').filter(|_| at_hash).unwrap_or(rest);
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    let carets = rest[blanks..].len() - rest[blanks..].trim_start_matches('^').len();
    if carets == 0 {
        return None;
    }
    let first = hash + 1 + usize::from(at_hash) + blanks;
    let label = rest[blanks + carets..].trim();
    Some((if at_hash { hash } else { first }, first + carets, label))
}

#[track_caller]
fn byte_of(line: &str, column: usize) -> usize {
    let mut at = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    match at.nth(column) {
        Some(at) => at,
        None => panic!("carets reach beyond {line:?}"),
    }
}

/// Removes a leading line break and the indentation all non-blank lines share.
fn dedent(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let common = text
        .lines()
        .filter(|it| !it.trim().is_empty())
        .map(indent)
        .min()
        .unwrap_or(0);
    text.split_inclusive('\n')
        .map(|line| {
            if line.trim().is_empty() {
                line.trim_start_matches(' ')
            } else {
                &line[common..]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_cursor_and_annotations() {
        let fixture = Fixture::parse(
            r#"
            #- /main.prose
            use "./lib.prose"
            do gre$0et("you")
            #  ^^^^^ the call
            #- /lib.prose
            block greet(name):
            #<^^^ keyword
              session "é{name}" # not an annotation: ^^^
              #         ^^^^^^ inserted
            "#,
        );
        assert_eq!(fixture.files.len(), 2);
        let (file, offset) = fixture.offset();
        assert_eq!(&fixture.files[file].text[..offset], "use \"./lib.prose\"\ndo gre");
        let shown: Vec<(usize, &str, String)> = fixture
            .annotations()
            .into_iter()
            .map(|it| (it.file, &fixture.files[it.file].text[it.range.clone()], it.label))
            .collect();
        assert_eq!(
            shown,
            [
                (0, "greet", "the call".to_owned()),
                (1, "block", "keyword".to_owned()),
                (1, "{name}", "inserted".to_owned())
            ]
        );
        assert_eq!(fixture.file("/lib.prose"), Some(1));
    }

    #[test]
    fn one_file_needs_no_header_and_selections_work() {
        let fixture = Fixture::parse("  session $0\"a\"$0\n    retry: 1\n");
        assert_eq!(fixture.files[0].path, "/main.prose");
        assert_eq!(fixture.files[0].text, "session \"a\"\n  retry: 1\n");
        assert_eq!(fixture.selection(), (0, 8..11));
        assert_eq!(extract_offset("a$0b"), (1, "ab".to_owned()));
    }

    #[test]
    #[should_panic(expected = "beyond")]
    fn carets_must_have_something_above() {
        extract_annotations("ab\n#  ^^^ x\n");
    }
}
