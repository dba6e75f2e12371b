//! Text of a user's program inside Markdown: it must not form links, images, commands or HTML, and must not break out
//! of the place where it is put. Prompts may come from files that the reader has not looked at.

/// Makes `text` stand for itself in running Markdown. Every ASCII punctuation character is escaped (CommonMark 0.31,
/// "Backslash escapes", allows that for all of them), so that extensions such as bare links find nothing either.
/// Line breaks stay, runs of blank lines stay one paragraph break.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for line in text.lines() {
        if !out.is_empty() {
            out.push('\n');
        }
        // Four leading spaces would make a code block.
        for ch in line.trim().chars() {
            if ch.is_ascii_punctuation() {
                out.push('\\');
            }
            push_visible(&mut out, ch);
        }
    }
    out
}

/// A code span; line breaks become spaces.
pub(crate) fn code(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for ch in text.chars() {
        push_visible(&mut clean, if ch == '\n' || ch == '\r' { ' ' } else { ch });
    }
    let ticks = "`".repeat(longest_run(&clean) + 1);
    // A span that starts or ends with a backtick needs the padding that CommonMark then strips; an empty one can't be written.
    if clean.trim().is_empty() {
        return "` `".to_owned();
    }
    if clean.starts_with('`') || clean.ends_with('`') {
        format!("{ticks} {clean} {ticks}")
    } else {
        format!("{ticks}{clean}{ticks}")
    }
}

/// A fenced block whose fence is longer than any run of backticks inside.
pub(crate) fn fence(language: &str, text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for ch in text.trim_matches(['\n', '\r']).chars() {
        push_visible(&mut clean, ch);
    }
    let ticks = "`".repeat(longest_run(&clean).max(2) + 1);
    format!("{ticks}{language}\n{clean}\n{ticks}")
}

/// The first lines of a text, with an ellipsis where something was cut.
pub(crate) fn excerpt(text: &str, max_lines: usize, max_chars: usize) -> String {
    let text = text.trim();
    let mut out = String::new();
    let mut chars = 0;
    for (number, line) in text.lines().enumerate() {
        if number == max_lines {
            out.push_str("\n…");
            return out;
        }
        if number > 0 {
            out.push('\n');
        }
        for ch in line.trim_end().chars() {
            if chars == max_chars {
                out.push('…');
                return out;
            }
            out.push(ch);
            chars += 1;
        }
    }
    out
}

/// Control characters and the marks that reorder text could show something else than what is there.
fn push_visible(out: &mut String, ch: char) {
    let hidden = (ch.is_control() && ch != '\n' && ch != '\t')
        || matches!(ch, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    out.push(if hidden { '\u{fffd}' } else { ch });
}

fn longest_run(text: &str) -> usize {
    text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_forms_nothing() {
        assert_eq!(
            escape("[x](command:run) <b> http://e.x"),
            r"\[x\]\(command\:run\) \<b\> http\:\/\/e\.x"
        );
        assert_eq!(escape("    indented\n# head"), "indented\n\\# head");
    }

    #[test]
    fn fences_and_spans_cannot_be_closed_from_inside() {
        assert_eq!(
            fence("prose", "a\n```\n[x](y)"),
            "````prose\na\n```\n[x](y)\n````"
        );
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code(""), "` `");
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(code("a\u{202e}b\u{7}"), "`a\u{fffd}b\u{fffd}`");
    }

    #[test]
    fn excerpts_say_that_they_are_cut() {
        assert_eq!(excerpt("a\nb\nc", 2, 80), "a\nb\n…");
        assert_eq!(excerpt("abcdef", 2, 3), "abc…");
        assert_eq!(excerpt(" ab \n", 2, 3), "ab");
    }
}
