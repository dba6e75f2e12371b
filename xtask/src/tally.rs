//! Reads the closing lines of test runners.

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

impl Tally {
    /// Adds what a line says, if it is a closing line of cargo test, of node's runner or the plain one.
    pub fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            // `test result: ok. 3 passed; 0 failed; 0 ignored; …`
            self.passed += number_before(counts, " passed").unwrap_or(0);
            self.failed += number_before(counts, " failed").unwrap_or(0);
        } else if let Some(count) = line.strip_prefix("# pass ") {
            self.passed += count.parse().unwrap_or(0);
        } else if let Some(count) = line.strip_prefix("# fail ") {
            self.failed += count.parse().unwrap_or(0);
        } else if let Some((passed, failed)) = plain(line) {
            self.passed += passed;
            self.failed += failed;
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// `3 passed, 0 failed`, alone on its line.
fn plain(line: &str) -> Option<(u64, u64)> {
    let (passed, failed) = line.split_once(", ")?;
    Some((
        passed.strip_suffix(" passed")?.parse().ok()?,
        failed.strip_suffix(" failed")?.parse().ok()?,
    ))
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let end = text.find(word)?;
    text[..end]
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (u64, u64) {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        (tally.passed, tally.failed)
    }

    #[test]
    fn closing_lines_of_each_runner() {
        assert_eq!(
            read(&["test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out"]),
            (12, 0)
        );
        assert_eq!(
            read(&["test result: FAILED. 7 passed; 2 failed; 0 ignored"]),
            (7, 2)
        );
        assert_eq!(read(&["# tests 9", "# pass 8", "# fail 1"]), (8, 1));
        assert_eq!(read(&["5 passed, 0 failed", "10 passed, 3 failed"]), (15, 3));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            read(&[
                "test a::b ... ok",
                "all 5 passed, 0 failed",
                "5 passed, 1 failed today",
                ", "
            ]),
            (0, 0)
        );
    }
}
