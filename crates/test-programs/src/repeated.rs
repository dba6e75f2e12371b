//! Long programs that look like real ones: the examples over and over, with the names of each copy its own.

use std::collections::BTreeSet;

use prose_model::vocabulary;
use prose_syntax::{SyntaxKind, parse};

use crate::{Program, examples};

/// An example, cut where a declared name stands.
struct Template<'a> {
    /// Text, and whether a name ends it, behind which the number of the copy goes.
    parts: Vec<(&'a str, bool)>,
}

/// A program of at least `bytes` bytes, made from copies of the examples: valid, and without errors, since every name that
/// a copy declares gets the copy's number.
pub fn repeated(bytes: usize) -> String {
    let templates: Vec<Template> = examples().iter().map(Template::new).collect();
    let mut out = String::with_capacity(bytes + 8192);
    for (copy, template) in templates.iter().cycle().enumerate() {
        if out.len() >= bytes {
            break;
        }
        let number = format!("_{copy}");
        for (text, name) in &template.parts {
            out.push_str(text);
            if *name {
                out.push_str(&number);
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

impl Template<'_> {
    fn new(program: &Program) -> Template<'_> {
        let names = declared(&program.text);
        let text = program.text.as_str();
        let mut parts = Vec::new();
        let (mut from, mut at) = (0, 0);
        while let Some(word) = next_word(text, at) {
            at = word.end;
            if names.contains(&text[word.clone()]) {
                parts.push((&text[from..word.end], true));
                from = word.end;
            }
        }
        parts.push((&text[from..], false));
        Template { parts }
    }
}

/// The names that a program declares, without words that mean something to the language.
fn declared(text: &str) -> BTreeSet<String> {
    let known = |word: &str| {
        vocabulary::keyword(word).is_some()
            || vocabulary::property(word).is_some()
            || vocabulary::permission(word).is_some()
    };
    parse(text)
        .syntax()
        .descendants()
        .filter(|node| {
            let parent = node.parent().map(|it| it.kind());
            node.kind() == SyntaxKind::NAME
                && !matches!(
                    parent,
                    Some(SyntaxKind::PROPERTY | SyntaxKind::MODIFIER | SyntaxKind::OBJECT_FIELD)
                )
        })
        .map(|name| name.text().to_string())
        .chain(branches(text))
        .filter(|name| !known(name))
        .collect()
}

/// The names that are declared by assigning them: branches of `parallel`.
fn branches(text: &str) -> impl Iterator<Item = String> {
    let root = parse(text).syntax();
    root.descendants()
        .filter(|node| node.kind() == SyntaxKind::ASSIGN_STMT)
        .filter_map(|statement| statement.first_child())
        .filter(|target| target.kind() == SyntaxKind::NAME_REF)
        .map(|target| target.text().to_string())
        .collect::<Vec<_>>()
        .into_iter()
}

/// The next run of letters, digits, `_` and `-` that begins with a letter or `_`.
fn next_word(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut start = from;
    loop {
        start += bytes[start..].iter().position(|byte| part(*byte))?;
        let mut end = start + bytes[start..].iter().take_while(|byte| part(**byte)).count();
        let begins = bytes[start].is_ascii_alphabetic() || bytes[start] == b'_';
        while end > start && bytes[end - 1] == b'-' {
            end -= 1;
        }
        if begins && end > start {
            return Some(start..end);
        }
        start = end.max(start + 1);
        if start >= bytes.len() {
            return None;
        }
    }
}
