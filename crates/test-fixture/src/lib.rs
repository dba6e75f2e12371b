//! Fixtures for tests: files, cursors and annotations in one string.
//!
//! ```text
//! #- /main.prose
//! use "lib.prose"
//! do revi$0ew
//! #  ^^^^^^ label of the text above the carets
//! #- /lib.prose
//! block review:
//! ```
//!
//! A line `#- PATH` begins a file; text before the first such line is `/main.prose`. `$0` is the cursor and is taken out. A
//! comment line that holds `^` annotates the last line above it that holds none; it stays in the text. `#^` stands for column 0.
//!
//! Deliberately absent: everything about the language; this crate sees lines.
//!
//! Architecture invariant: only dev-dependencies name this crate.

use std::ops::Range;

/// What a fixture holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fixture {
    /// The files, in order.
    pub files: Vec<FixtureFile>,
}

/// One file of a fixture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FixtureFile {
    /// The path after `#-`.
    pub path: String,
    /// The text without cursors.
    pub text: String,
    /// Where `$0` stood, in bytes.
    pub cursors: Vec<usize>,
    /// What the comments with carets say, in order.
    pub annotations: Vec<Annotation>,
}

/// A labelled range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// What the carets point at, in bytes of the text.
    pub range: Range<usize>,
    /// What stands behind the carets.
    pub label: String,
}

const MARK: &str = "$0";

impl Fixture {
    /// Reads a fixture.
    pub fn parse(text: &str) -> Fixture {
        let mut files: Vec<FixtureFile> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(path) = line.strip_prefix("#- ") {
                files.push(FixtureFile { path: path.trim().to_owned(), ..FixtureFile::default() });
                continue;
            }
            if files.is_empty() {
                files.push(FixtureFile { path: "/main.prose".to_owned(), ..FixtureFile::default() });
            }
            if let Some(file) = files.last_mut() {
                let mut rest = line;
                while let Some((before, after)) = rest.split_once(MARK) {
                    file.text.push_str(before);
                    file.cursors.push(file.text.len());
                    rest = after;
                }
                file.text.push_str(rest);
            }
        }
        for file in &mut files {
            file.annotations = annotations(&file.text);
        }
        Fixture { files }
    }

    /// The file and offset of the only cursor.
    ///
    /// # Panics
    /// When there is none or more than one.
    #[track_caller]
    pub fn cursor(&self) -> (&FixtureFile, usize) {
        let mut all = self.files.iter().flat_map(|file| file.cursors.iter().map(move |at| (file, *at)));
        match (all.next(), all.next()) {
            (Some(cursor), None) => cursor,
            (None, _) => panic!("the fixture has no $0"),
            (Some(_), Some(_)) => panic!("the fixture has more than one $0"),
        }
    }
}

fn annotations(text: &str) -> Vec<Annotation> {
    let mut out = Vec::new();
    let mut line_start = 0;
    // The line that annotations below it are about.
    let mut above = 0..0;
    for line in text.split_inclusive('\n') {
        let carets = line.trim_start().starts_with('#').then(|| line.find('^')).flatten();
        match carets {
            Some(first) => {
                let length = line[first..].bytes().take_while(|byte| *byte == b'^').count();
                // The comment sign itself stands where column 0 would be.
                let column = if line[..first].trim_end() == "#" && first == 1 { 0 } else { first };
                let start = (above.start + column).min(above.end);
                let end = (start + length).min(above.end);
                out.push(Annotation { range: start..end, label: line[first + length..].trim().to_owned() });
            }
            None => above = line_start..line_start + line.trim_end_matches(['\n', '\r']).len(),
        }
        line_start += line.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_cursors_and_annotations() {
        let fixture = Fixture::parse("let a = b$0\n#   ^ first\n#       ^ second\n#- /x.prose\ndo f\n#^^ zero\n");
        assert_eq!(fixture.files.len(), 2);
        let (main, at) = fixture.cursor();
        assert_eq!((main.path.as_str(), at), ("/main.prose", 9));
        assert_eq!(
            main.annotations,
            [
                Annotation { range: 4..5, label: "first".into() },
                Annotation { range: 8..9, label: "second".into() },
            ]
        );
        assert_eq!(fixture.files[1].path, "/x.prose");
        assert_eq!(fixture.files[1].annotations, [Annotation { range: 0..2, label: "zero".into() }]);
    }
}
