//! The "Execution Trace" of `state.md`: the program's text with what happened noted beside each statement.

use std::collections::{BTreeMap, BTreeSet};

use prose_model::{End, ExecutionId};

use crate::binding::fence_for;
use crate::program::lines;

/// Column at which notes begin, as in the seed's example.
const NOTE_COLUMN: usize = 45;
/// So many lines after the last note are shown ("what's coming next").
const AHEAD: usize = 10;
/// So many frames are named in one note.
const FRAMES_NAMED: usize = 3;

/// What happened at one line.
#[derive(Debug, Default)]
pub(crate) struct LineNote {
    /// How often a statement that begins here came to an end, and how.
    pub(crate) ended: Ends,
    /// Binding files written here: the last path of each name.
    pub(crate) bindings: BTreeMap<String, String>,
    /// Try and allowed tries of a session that is being tried again.
    pub(crate) retry: Option<(u32, u32)>,
}

/// How often something ended in each way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    complete: u32,
    failed: u32,
    cancelled: u32,
}

impl Ends {
    /// Counts one more.
    pub(crate) fn add(&mut self, end: End) {
        *match end {
            End::Ok | End::Left => &mut self.complete,
            End::Failed => &mut self.failed,
            End::Cancelled => &mut self.cancelled,
        } += 1;
    }

    /// Whether nothing has ended.
    pub(crate) fn is_none(self) -> bool {
        self == Ends::default()
    }

    /// `complete`, `failed, 3 times`; where the ends differ, each with its number: the last must not speak for all.
    fn text(self) -> String {
        let ends = [
            ("complete", self.complete),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
        ];
        let ended: Vec<(&str, u32)> = ends.into_iter().filter(|(_, times)| *times > 0).collect();
        match ended.as_slice() {
            [] => "complete".to_owned(),
            [(word, 1)] => (*word).to_owned(),
            _ => {
                let each = ended.iter().map(|(word, times)| match times {
                    1 => format!("{word}, 1 time"),
                    times => format!("{word}, {times} times"),
                });
                each.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// What is written beside a line.
#[derive(Debug, PartialEq)]
pub(crate) enum Annotation {
    Executing {
        frames: BTreeSet<ExecutionId>,
        detail: Option<String>,
        retry: Option<(u32, u32)>,
    },
    /// A statement that has ended; `inside` is set while something around it goes on.
    Ended {
        note: EndedNote,
        inside: bool,
    },
    NotYetEntered,
    Next,
}

#[derive(Debug, PartialEq)]
pub(crate) struct EndedNote {
    pub(crate) ends: Ends,
    pub(crate) bindings: Vec<String>,
}

impl Annotation {
    fn text(&self) -> String {
        match self {
            Annotation::Executing {
                frames,
                detail,
                retry,
            } => {
                let mut details: Vec<String> = Vec::new();
                let state = match retry {
                    Some((attempt, of)) => {
                        details.push(format!("attempt {attempt}/{of}"));
                        "RETRYING"
                    }
                    None => "EXECUTING",
                };
                details.extend(detail.clone());
                if !frames.is_empty() {
                    let mut named: Vec<String> = frames
                        .iter()
                        .take(FRAMES_NAMED)
                        .map(ToString::to_string)
                        .collect();
                    if frames.len() > FRAMES_NAMED {
                        named.push("…".to_owned());
                    }
                    details.push(format!("execution_id {}", named.join(", ")));
                }
                let details = if details.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", details.join(", "))
                };
                format!("# <-- {state}{details}")
            }
            Annotation::Ended { note, inside } => {
                let ends = note.ends.text();
                // What failed or was cancelled every time has left nothing.
                if note.bindings.is_empty() || (note.ends.complete == 0 && !note.ends.is_none()) {
                    return format!("# ({ends})");
                }
                let paths = note.bindings.join(", ");
                if *inside || ends != "complete" {
                    format!("# --> {paths} ({ends})")
                } else {
                    format!("# --> {paths}")
                }
            }
            Annotation::NotYetEntered => "# [not yet entered]".to_owned(),
            Annotation::Next => "# [...next...]".to_owned(),
        }
    }
}

/// The fenced text with its notes, by line from 0. What lies far behind the last note is left out, and said to be.
pub(crate) fn render(text: &str, notes: &BTreeMap<u32, Annotation>) -> String {
    let all: Vec<&str> = lines(text.strip_suffix('\n').unwrap_or(text)).collect();
    let last = notes.keys().next_back().map_or(0, |line| *line as usize);
    let shown = if all.len() <= last + 1 + AHEAD + 1 {
        all.len()
    } else {
        last + 1 + AHEAD
    };
    let mut body = String::new();
    for (index, line) in all[..shown].iter().enumerate() {
        let line = line.trim_end();
        match notes.get(&(index as u32)) {
            None => body.push_str(line),
            // Beside the start of a text that spans lines, a note would become a part of it.
            Some(note) if opens_text(line) => {
                let indent = &line[..line.len() - line.trim_start().len()];
                body.push_str(&format!("{indent}{}\n{line}", note.text()));
            }
            Some(note) => {
                let width = line.chars().count();
                let gap = if width + 2 <= NOTE_COLUMN {
                    NOTE_COLUMN - width
                } else {
                    2
                };
                body.push_str(line);
                body.push_str(&" ".repeat(gap));
                body.push_str(&note.text());
            }
        }
        body.push('\n');
    }
    if shown < all.len() {
        body.push_str(&format!("# ... {} more lines\n", all.len() - shown));
    }
    let fence = fence_for(&body);
    format!("{fence}prose\n{body}{fence}\n")
}

/// Whether a string or a discretion begins on the line and doesn't end on it. A guess that errs on the safe side.
fn opens_text(line: &str) -> bool {
    let odd = |marks: &str| line.matches(marks).count() % 2 == 1;
    odd("\"\"\"") || odd("**")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End, times: u32, bindings: &[&str]) -> EndedNote {
        let mut ends = Ends::default();
        (0..times).for_each(|_| ends.add(end));
        EndedNote {
            ends,
            bindings: bindings.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn notes_are_the_seed_s() {
        let check = |annotation: Annotation, text: &str| assert_eq!(annotation.text(), text);
        let executing = |frames: &[u32], retry| Annotation::Executing {
            frames: frames.iter().copied().collect(),
            detail: None,
            retry,
        };
        check(executing(&[], None), "# <-- EXECUTING");
        check(executing(&[], Some((2, 3))), "# <-- RETRYING (attempt 2/3)");
        check(
            executing(&[4, 2, 7, 9], None),
            "# <-- EXECUTING (execution_id 2, 4, 7, …)",
        );
        check(
            Annotation::Ended {
                note: ended(End::Ok, 1, &[]),
                inside: false,
            },
            "# (complete)",
        );
        check(
            Annotation::Ended {
                note: ended(End::Ok, 1, &["bindings/a.md"]),
                inside: false,
            },
            "# --> bindings/a.md",
        );
        check(
            Annotation::Ended {
                note: ended(End::Ok, 1, &["bindings/a.md"]),
                inside: true,
            },
            "# --> bindings/a.md (complete)",
        );
        check(
            Annotation::Ended {
                note: ended(End::Ok, 3, &["bindings/a.md"]),
                inside: false,
            },
            "# --> bindings/a.md (complete, 3 times)",
        );
        check(
            Annotation::Ended {
                note: ended(End::Failed, 1, &["x"]),
                inside: true,
            },
            "# (failed)",
        );
        for (bindings, text) in [
            (&[][..], "# (complete, 2 times; failed, 1 time)"),
            (
                &["bindings/a.md"],
                "# --> bindings/a.md (complete, 2 times; failed, 1 time)",
            ),
        ] {
            let mut note = ended(End::Ok, 2, bindings);
            note.ends.add(End::Failed);
            check(Annotation::Ended { note, inside: false }, text);
        }
        check(
            Annotation::Ended {
                note: ended(End::Failed, 3, &[]),
                inside: false,
            },
            "# (failed, 3 times)",
        );
        check(Annotation::NotYetEntered, "# [not yet entered]");
        check(Annotation::Next, "# [...next...]");
    }

    #[test]
    fn long_programs_are_cut_behind_the_last_note() {
        let text: String = (0..40).map(|n| format!("session \"{n}\"\n")).collect();
        let shown = render(&text, &BTreeMap::from([(4, Annotation::Next)]));
        assert!(
            shown.contains("session \"14\"\n# ... 25 more lines\n```\n"),
            "{shown}"
        );
        let shown = render(&text, &BTreeMap::from([(28, Annotation::Next)]));
        assert!(shown.contains("session \"39\"\n```\n"), "{shown}");
    }

    #[test]
    fn notes_never_get_into_a_text() {
        let text = "do:\n  session \"\"\"\n```\n\"\"\"\nif ***\n***:\n";
        let notes = BTreeMap::from([(1, Annotation::Next), (4, Annotation::NotYetEntered)]);
        expect_test::expect![[r#"
            ````prose
            do:
              # [...next...]
              session """
            ```
            """
            # [not yet entered]
            if ***
            ***:
            ````
        "#]]
        .assert_eq(&render(text, &notes));
    }
}
