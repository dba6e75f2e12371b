//! Keeps what test runners say about failed tests, so that it can be said again at the end, where it is read.

/// So many lines of a step are kept.
const LIMIT: usize = 400;
/// So many of them about one test.
const LIMIT_EACH: usize = 25;

/// The failures of one step.
#[derive(Debug, Default)]
pub struct Failures {
    lines: Vec<String>,
    /// How many are about the test that is being told of.
    about: usize,
    /// Inside a `---- name stdout ----` part of cargo's runner.
    inside: bool,
    /// Lines left out.
    more: usize,
}

impl Failures {
    /// Takes a line that a runner printed.
    pub fn read(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.inside = true;
            self.about = 0;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.inside = false;
        }
        let told = (line.starts_with("test ") && line.ends_with("... FAILED"))
            || line.starts_with("not ok ")
            || line.starts_with("FAIL ")
            || (line.starts_with("error: ") && !line.starts_with("error: test failed"));
        if !(self.inside || told) {
            return;
        }
        // A text that is not as expected may be long, and must not hide what else failed.
        let room = told || self.about < LIMIT_EACH;
        self.about += usize::from(self.inside);
        if room && self.lines.len() < LIMIT {
            self.lines.push(line.to_owned());
        } else {
            self.more += 1;
        }
    }

    /// What was kept.
    pub fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("({} more lines above)", self.more));
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::Failures;

    #[test]
    fn the_failed_test_and_its_words_are_kept() {
        let mut failures = Failures::default();
        for line in [
            "running 2 tests",
            "test good ... ok",
            "test bad ... FAILED",
            "",
            "failures:",
            "",
            "---- bad stdout ----",
            "thread 'bad' panicked at tests/x.rs:1:2:",
            "left: 1",
            "",
            "failures:",
            "    bad",
            "",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored",
            "not ok 3 - a page opens",
            "ok 4 - a page closes",
        ] {
            failures.read(line);
        }
        assert_eq!(
            failures.into_lines(),
            [
                "test bad ... FAILED",
                "---- bad stdout ----",
                "thread 'bad' panicked at tests/x.rs:1:2:",
                "left: 1",
                "",
                "not ok 3 - a page opens",
            ]
        );
    }

    #[test]
    fn a_flood_is_cut() {
        let mut failures = Failures::default();
        (0..1_000).for_each(|n| failures.read(&format!("not ok {n}")));
        let lines = failures.into_lines();
        assert_eq!(lines.len(), super::LIMIT + 1);
        assert_eq!(lines[super::LIMIT], "(600 more lines above)");
        let mut failures = Failures::default();
        failures.read("---- long stdout ----");
        (0..1_000).for_each(|n| failures.read(&format!("line {n}")));
        failures.read("---- short stdout ----");
        failures.read("why");
        let lines = failures.into_lines();
        assert_eq!(lines.len(), super::LIMIT_EACH + 2 + 1);
        assert_eq!(lines[super::LIMIT_EACH..][..2], ["---- short stdout ----", "why"]);
    }
}
