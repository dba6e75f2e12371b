//! Names that were probably meant.

use prose_syntax::TextRange;
use prose_syntax::near::distance;

use crate::diagnostic::Finding;
use crate::{Fix, Name};

/// Whether one insertion, deletion, replacement or swap of neighbours turns one word into the other.
pub(crate) fn one_edit(a: &str, b: &str) -> bool {
    distance(a, b, 1) == Some(1)
}

/// Whether a word is near enough to have been meant by another.
pub(crate) fn may_be(word: &str, candidate: &str) -> bool {
    nearest(word, [candidate]).is_some()
}

/// The candidate nearest to a word, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        _ => 2,
    };
    candidates
        .into_iter()
        .filter_map(|it| Some((distance(word, it, most)?, it)))
        .filter(|(edits, _)| *edits > 0)
        .min()
        .map(|(_, it)| it)
}

/// The same among names.
pub(crate) fn nearest_name<'a>(word: &str, candidates: impl Iterator<Item = &'a Name>) -> Option<Name> {
    nearest(word, candidates.map(|it| it.as_str())).map(Name::new)
}

/// Adds the sentence and fix that offer another word, if there is one.
pub(super) fn offer(mut finding: Finding, range: TextRange, word: Option<&str>) -> Finding {
    if let Some(word) = word {
        finding.message.push_str(&format!(": did you mean `{word}`?"));
        finding.fix = Some(Fix::replace(format!("Replace with `{word}`"), range, word));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits() {
        assert!(one_edit("reserch", "research"));
        assert!(one_edit("reasearch", "research"));
        assert!(one_edit("topci", "topic"));
        assert!(!one_edit("topic", "topic"));
        assert!(!one_edit("topic", "topaz"));
        assert_eq!(nearest("summry", ["summary", "summit"]), Some("summary"));
        assert_eq!(nearest("ab", ["abc"]), None);
        assert_eq!(nearest("name", ["path", "topic"]), None);
    }
}
