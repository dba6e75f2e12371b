//! Names that were probably meant.

use crate::Name;
use prose_syntax::near::distance;

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
