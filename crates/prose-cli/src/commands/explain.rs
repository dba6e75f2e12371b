//! `prose explain CODE`.

use std::io::Write;

use prose_model::codes;

use super::{Exit, out};

/// Prints the page of a code.
pub fn explain(code: &str) -> Exit {
    match codes::find(code) {
        Some(info) => out(|stdout| stdout.write_all(info.page.as_bytes())),
        None => {
            let near = near(code);
            if near.is_empty() {
                return super::fail(&format!(
                    "there is no code `{code}`: codes look like E001, W001, P101 or L401, as `prose check` shows them"
                ));
            }
            super::fail(&format!(
                "there is no code `{code}`: did you mean {}?",
                near.join(", ")
            ))
        }
    }
}

/// The codes that may have been meant by another word: with its letter and number first, else those one edit away.
fn near(word: &str) -> Vec<&'static str> {
    const MOST: usize = 8;
    let word = word.trim().to_ascii_uppercase();
    let same = |code: &str| {
        let split = |it: &str| Some((it.get(..1)?.to_owned(), it.get(1..)?.parse::<u32>().ok()?));
        split(code).is_some_and(|it| Some(it) == split(&word))
    };
    let all = || codes::CODES.iter().map(|info| info.code);
    let exact: Vec<_> = all().filter(|code| same(code)).collect();
    if !exact.is_empty() {
        return exact;
    }
    all()
        .filter(|code| prose_syntax::near::distance(&word, code, 1).is_some())
        .take(MOST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn codes_that_may_be_meant() {
        assert_eq!(near("W01"), ["W001"]);
        assert_eq!(near("e4"), ["E004"]);
        assert!(near("P14").contains(&"P142"));
        assert!(near("something").is_empty());
    }
}
