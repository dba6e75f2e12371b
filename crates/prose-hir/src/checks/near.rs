//! Names that were probably meant.

/// Whether one insertion, deletion, replacement or swap of neighbours turns one word into the other.
pub(crate) fn one_edit(a: &str, b: &str) -> bool {
    let (a, b) = differing(a, b);
    let mut a = a.chars();
    let mut b = b.chars();
    match [a.next(), a.next(), a.next(), b.next(), b.next(), b.next()] {
        [Some(_), None, _, None, ..]
        | [None, _, _, Some(_), None, _]
        | [Some(_), None, _, Some(_), None, _] => true,
        [Some(a1), Some(a2), None, Some(b1), Some(b2), None] => a1 == b2 && a2 == b1,
        _ => false,
    }
}

/// What is left of two words without what they begin and end with alike.
fn differing<'a, 'b>(a: &'a str, b: &'b str) -> (&'a str, &'b str) {
    let common: usize = a
        .chars()
        .zip(b.chars())
        .take_while(|(x, y)| x == y)
        .map(|(x, _)| x.len_utf8())
        .sum();
    let (a, b) = (&a[common..], &b[common..]);
    let common: usize = a
        .chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(x, y)| x == y)
        .map(|(x, _)| x.len_utf8())
        .sum();
    (&a[..a.len() - common], &b[..b.len() - common])
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

/// Edits between two words, when there are at most so many.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b) = differing(a, b);
    // Most pairs of words differ too much to be looked at closely; one character has at most four bytes.
    if a.len().abs_diff(b.len()) > 4 * most || a.len().min(b.len()) > 8 * most {
        return None;
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|it| *it <= most)
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
