//! How near two words are to each other.

/// Longest part in which two words may differ, in characters.
const LONGEST: usize = 18;

/// Edits between two words, when there are at most so many: insertions, deletions, replacements, and swaps of neighbours. Words
/// that differ in a long part are far from each other.
pub fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b) = differing(a, b);
    let mut chars = [['\0'; LONGEST]; 2];
    let mut lens = [0; 2];
    for (word, (chars, len)) in [a, b].into_iter().zip(chars.iter_mut().zip(&mut lens)) {
        for c in word.chars() {
            *chars.get_mut(*len)? = c;
            *len += 1;
        }
    }
    let [a, b] = [&chars[0][..lens[0]], &chars[1][..lens[1]]];
    // Most pairs of words differ too much to be looked at closely. An edit adds a letter, takes one away, or both.
    let letters = |word: &[char]| word.iter().fold(0u32, |set, it| set | 1 << (*it as u32 % 32));
    if a.len().abs_diff(b.len()) > most || (letters(a) ^ letters(b)).count_ones() as usize > 2 * most {
        return None;
    }
    // The last three rows of the table.
    let (mut before, mut above) = ([0; LONGEST + 1], [0; LONGEST + 1]);
    let mut row: [usize; LONGEST + 1] = std::array::from_fn(|it| it);
    for i in 1..=a.len() {
        (before, above, row) = (above, row, before);
        row[0] = i;
        for j in 1..=b.len() {
            let mut best = (above[j] + 1)
                .min(row[j - 1] + 1)
                .min(above[j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    Some(row[b.len()]).filter(|it| *it <= most)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_between_words() {
        assert_eq!(distance("topic", "topic", 1), Some(0));
        assert_eq!(distance("topci", "topic", 1), Some(1));
        assert_eq!(distance("reserch", "research", 1), Some(1));
        assert_eq!(distance("topic", "topaz", 1), None);
        assert_eq!(distance("topic", "topaz", 2), Some(2));
        assert_eq!(distance("sesion", "session", 2), Some(1));
        assert_eq!(distance("größe", "grösse", 2), Some(2));
        let long = "x".repeat(50);
        assert_eq!(distance(&format!("a{long}"), &format!("b{long}"), 1), Some(1));
        assert_eq!(distance(&format!("a{long}a"), &format!("b{long}b"), 2), None);
    }
}
