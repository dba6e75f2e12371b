//! Looking things up in a bundle's sources: lines and snippets.

use prose_model::{Bundle, SourceRange};

/// The text of a statement as it would stand at the left margin, with LF line ends and without trailing blanks; empty
/// for a range outside the bundle's sources.
pub fn snippet(bundle: &Bundle, range: SourceRange) -> String {
    let Some(file) = bundle.files.get(range.file as usize) else {
        return String::new();
    };
    let Some(text) = file.text.get(range.start as usize..range.end as usize) else {
        return String::new();
    };
    let before = &file.text[..range.start as usize];
    let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let margin = before[line_start..].chars().take_while(|c| *c == ' ').count();
    let mut result = String::with_capacity(text.len());
    for (index, line) in lines(text).enumerate() {
        if index > 0 {
            result.push('\n');
            let indent = line.len() - line.trim_start_matches(' ').len();
            result.push_str(&line[indent.min(margin)..]);
        } else {
            result.push_str(line);
        }
    }
    result.truncate(result.trim_end().len());
    result
}

/// The lines of a text without their ends, which are LF, CRLF or a lone CR (language.md, "Lexical rules").
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.find(['\n', '\r']) {
            Some(at) => {
                let end = if text[at..].starts_with("\r\n") {
                    at + 2
                } else {
                    at + 1
                };
                rest = Some(&text[end..]);
                Some(&text[..at])
            }
            None => {
                rest = None;
                Some(text)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use prose_model::BundleFile;

    use super::*;

    fn check(text: &str, start: usize, end: usize, expected: &str) {
        let file = BundleFile {
            path: "x.prose".into(),
            text: text.into(),
            digest: "".into(),
        };
        let bundle = Bundle {
            version: 1,
            entry: 0,
            programs: vec![],
            files: vec![file],
            digest: "".into(),
        };
        let range = SourceRange {
            file: 0,
            start: start as u32,
            end: end as u32,
        };
        assert_eq!(snippet(&bundle, range), expected);
    }

    #[test]
    fn snippets_stand_at_the_margin() {
        let text = "do:\r\n    let a = session \"x\"\r\n      context: b\r\n  # note\r\n";
        check(text, 9, text.len(), "let a = session \"x\"\n  context: b\n# note");
        check(text, 9, 20, "let a = ses");
        check(text, 9, 1000, "");
        check("é", 1, 2, "");
    }

    #[test]
    fn every_line_end_counts() {
        let all: Vec<&str> = lines("a\nb\r\nc\rd\r\r\n").collect();
        assert_eq!(all, ["a", "b", "c", "d", "", ""]);
        assert_eq!(lines("").count(), 1);
    }
}
