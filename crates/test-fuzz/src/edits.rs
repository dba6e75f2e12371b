//! Inputs that hold edits: a program, then each edit behind a line `#@ AT DELETED`.
//!
//! ```text
//! let a = 1
//! #@ 4 1
//! bc
//! ```
//! deletes one byte at 4 and puts `bc` there. The line break before the next edit, or at the end of the last, isn't part of it.

use std::ops::Range;

/// Longest series that is tried; the rest is left out.
const MOST: usize = 6;

/// A program and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The text before the edits.
    pub text: String,
    /// The edits, one after the other.
    pub edits: Vec<Edit>,
}

/// A replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where it begins, in bytes. What is out of range is brought into it.
    pub at: usize,
    /// How many bytes go.
    pub deleted: usize,
    /// What comes in their place.
    pub with: String,
}

impl Edited {
    /// Reads an input; every text is one.
    pub fn read(input: &str) -> Edited {
        let mut out = Edited {
            text: String::new(),
            edits: Vec::new(),
        };
        for line in input.split_inclusive('\n') {
            if let Some((at, deleted)) = header(line) {
                if out.edits.len() == MOST {
                    break;
                }
                let with = String::new();
                out.edits.push(Edit { at, deleted, with });
                continue;
            }
            match out.edits.last_mut() {
                Some(edit) => edit.with.push_str(line),
                None => out.text.push_str(line),
            }
        }
        for edit in &mut out.edits {
            if edit.with.ends_with('\n') {
                edit.with.pop();
            }
        }
        out
    }

    /// The input that [`Edited::read`] takes apart again, if no text in it looks like the line of an edit.
    pub fn write(&self) -> String {
        let mut out = self.text.clone();
        for edit in &self.edits {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&format!("#@ {} {}\n{}\n", edit.at, edit.deleted, edit.with));
        }
        out
    }
}

impl Edit {
    /// The bytes of a text that it replaces, on boundaries of characters.
    pub fn range(&self, text: &str) -> Range<usize> {
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let at = boundary(self.at % (text.len() + 1));
        let end = boundary(at.saturating_add(self.deleted).min(text.len()));
        at..end.max(at)
    }
}

fn header(line: &str) -> Option<(usize, usize)> {
    let (at, deleted) = line.strip_prefix("#@ ")?.trim_end().split_once(' ')?;
    Some((at.parse().ok()?, deleted.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let edited = Edited {
            text: "let a = 1\n".to_owned(),
            edits: vec![
                Edit {
                    at: 4,
                    deleted: 1,
                    with: "bc".to_owned(),
                },
                Edit {
                    at: 0,
                    deleted: 0,
                    with: "x\n".to_owned(),
                },
            ],
        };
        let written = edited.write();
        assert_eq!(written, "let a = 1\n#@ 4 1\nbc\n#@ 0 0\nx\n\n");
        assert_eq!(Edited::read(&written), edited);
    }

    #[test]
    fn ranges_are_brought_into_the_text() {
        let edit = |at, deleted| Edit {
            at,
            deleted,
            with: String::new(),
        };
        assert_eq!(edit(5, 9).range("aéb"), 0..4);
        assert_eq!(edit(2, 2).range("aéb"), 1..3);
        assert_eq!(edit(0, usize::MAX).range(""), 0..0);
    }
}
