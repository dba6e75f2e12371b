//! A web page as plain text, without what is there for browsers only.

/// Elements whose content is not for readers.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "head", "iframe"];
/// Elements that begin a line of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

/// The text of a page: headings with `#`, list entries with `-`, the title first, blank lines between blocks. Made for
/// reading, not for fidelity; any input gives some text.
pub(super) fn as_text(html: &str) -> String {
    let mut out = Out::default();
    if let Some(title) = title(html) {
        out.word(&title);
        out.block();
    }
    let mut rest = html;
    while !rest.is_empty() {
        let Some(open) = rest.find('<') else {
            out.text(rest);
            break;
        };
        out.text(&rest[..open]);
        rest = &rest[open..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let Some((tag, after)) = tag(rest) else {
            out.text("<");
            rest = &rest[1..];
            continue;
        };
        rest = after;
        let closes = tag.starts_with('/');
        let name = tag.trim_start_matches('/').to_ascii_lowercase();
        if !closes && SKIPPED.contains(&name.as_str()) {
            rest = behind_end(rest, &name);
            continue;
        }
        if BLOCKS.contains(&name.as_str()) {
            out.block();
            match name.as_str() {
                "li" if !closes => out.word("- "),
                "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !closes => {
                    out.word(&"#".repeat(usize::from(name.as_bytes()[1] - b'0')));
                    out.word(" ");
                }
                _ => {}
            }
        } else if matches!(name.as_str(), "td" | "th") && !closes {
            out.text(" | ");
        }
    }
    out.finish()
}

/// The name of the tag that the text begins with, and what is behind it; none where `<` begins none.
fn tag(text: &str) -> Option<(&str, &str)> {
    let inner = &text[1..];
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
        return None;
    }
    let mut quote = None;
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (None, '>') => {
                let name = inner[..at]
                    .split(|c: char| c.is_whitespace())
                    .next()
                    .unwrap_or_default();
                return Some((name.trim_end_matches('/'), &inner[at + 1..]));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    // Without an end, it is the rest of the page.
    Some(("", ""))
}

/// What is behind `</name>`; nothing where that is missing.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at + 2;
        let is_it = bytes
            .get(at..at + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        if is_it {
            return text[at..].split_once('>').map_or("", |(_, rest)| rest);
        }
        from = at;
    }
    ""
}

fn title(html: &str) -> Option<String> {
    let at = html.to_ascii_lowercase().find("<title")?;
    let (_, inner) = html[at..].split_once('>')?;
    let (title, _) = inner.split_once('<')?;
    let title = entities(title.trim());
    (!title.is_empty()).then_some(title)
}

/// Text that is put together: white space counts once, and blocks stand on lines of their own.
#[derive(Default)]
struct Out {
    text: String,
    space: bool,
}

impl Out {
    fn text(&mut self, text: &str) {
        for c in entities(text).chars() {
            if c.is_whitespace() {
                self.space = true;
            } else {
                if std::mem::take(&mut self.space)
                    && !self.text.is_empty()
                    && !self.text.ends_with(['\n', ' '])
                {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
        }
    }

    fn word(&mut self, text: &str) {
        self.text.push_str(text);
        self.space = false;
    }

    fn block(&mut self) {
        self.space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

/// Replaces the usual named and all numbered characters.
fn entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .char_indices()
            .take(12)
            .find(|(_, c)| *c == ';')
            .map(|(end, _)| end);
        let c = end.and_then(|end| character(&rest[1..end]));
        match (c, end) {
            (Some(c), Some(end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "copy" => '©',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_text() {
        let html = "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>\
            <script>if (a < b) { alert('</p>') }</script><h2>One</h2>\n<p>Some  <b>bold</b>\ntext &#8211; 1 < 2.</p>\
            <!-- hidden --><ul><li>first<li class='x>y'>second</ul><table><tr><td>a<td>b</table></body>";
        assert_eq!(
            as_text(html),
            "A & B\n## One\nSome bold text – 1 < 2.\n- first\n- second\n| a | b"
        );
    }

    #[test]
    fn broken_pages_give_some_text() {
        for html in [
            "<",
            "<p",
            "a<script>b",
            "&#xffffffff; &; &é",
            "</",
            "<!--",
            "<title>x",
            "<a href=\"x>y",
        ] {
            as_text(html);
        }
        assert_eq!(as_text("a < b & c"), "a < b & c");
    }
}
