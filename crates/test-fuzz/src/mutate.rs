//! Texts that are nearly programs. A fuzzer that only turns bits around spends its time on words that nobody knows.

use std::ops::Range;

use test_programs::{Numbers, originals, pieces};

use crate::{Edit, Edited, Target, journal};

/// An input of at most about `most` bytes, made from another by one to four changes that know what programs are made of. The
/// same seed makes the same change.
pub fn change(target: Target, input: &str, seed: u64, most: usize) -> String {
    let mut numbers = Numbers::new(seed);
    match target {
        Target::Edits => return change_edits(input, &mut numbers, most),
        Target::Journal => return journal::change(input, &mut numbers, most),
        _ => {}
    }
    change_text(input, &mut numbers, most)
}

fn change_text(input: &str, numbers: &mut Numbers, most: usize) -> String {
    let mut text = input.to_owned();
    for _ in 0..1 + numbers.below(4) {
        one_change(&mut text, numbers);
    }
    truncate(&mut text, most);
    text
}

fn change_edits(input: &str, numbers: &mut Numbers, most: usize) -> String {
    let mut edited = Edited::read(input);
    match numbers.below(4) {
        // A change of the program that is edited; most inputs that matter differ in their edits.
        0 => edited.text = change_text(&edited.text, numbers, most / 2),
        1 if !edited.edits.is_empty() => {
            let at = numbers.below(edited.edits.len());
            let edit = &mut edited.edits[at];
            match numbers.below(4) {
                0 => edit.at = numbers.below(edited.text.len() + 64),
                1 => edit.deleted = deleted(numbers),
                2 => edit.with = piece(numbers).to_owned(),
                _ => {
                    edited.edits.remove(at);
                }
            }
        }
        _ => {
            let edit = Edit {
                at: numbers.below(edited.text.len() + 64),
                deleted: deleted(numbers),
                with: match numbers.below(4) {
                    0 => String::new(),
                    1 => piece(numbers).to_owned() + piece(numbers),
                    _ => piece(numbers).to_owned(),
                },
            };
            let at = numbers.below(edited.edits.len() + 1);
            edited.edits.insert(at, edit);
        }
    }
    let mut out = edited.write();
    truncate(&mut out, most);
    out
}

fn piece(numbers: &mut Numbers) -> &'static str {
    numbers.pick::<String>(pieces())
}

/// How much an edit deletes: often nothing, mostly little, sometimes much.
fn deleted(numbers: &mut Numbers) -> usize {
    match numbers.below(8) {
        0..3 => 0,
        3..6 => 1 + numbers.below(4),
        6 => numbers.below(40),
        _ => numbers.below(1000),
    }
}

fn one_change(text: &mut String, numbers: &mut Numbers) {
    let at = boundary(text, numbers.below(text.len() + 1));
    match numbers.below(14) {
        // A whole program, so that the search begins somewhere and comes back to where it is interesting.
        0 => text.clone_from(&numbers.pick(originals()).text),
        1..4 => text.insert_str(at, piece(numbers)),
        4 => {
            let range = word(text, at);
            text.replace_range(range, piece(numbers));
        }
        5 => text.replace_range(word(text, at), ""),
        6 => {
            let to = boundary(text, (at + 1 + numbers.below(12)).min(text.len()));
            text.replace_range(at..to.max(at), "");
        }
        // Lines of another program, as they stand there.
        7 => {
            let other = &numbers.pick(originals()).text;
            let from = line(other, boundary(other, numbers.below(other.len() + 1))).start;
            let mut to = from;
            for _ in 0..1 + numbers.below(6) {
                to = line(other, to).end;
            }
            text.insert_str(line(text, at).start, &other[from..to]);
        }
        8 => text.replace_range(line(text, at), ""),
        // A line again, or in another place.
        9 => {
            let copied = text[line(text, at)].to_owned();
            let to = boundary(text, numbers.below(text.len() + 1));
            text.insert_str(line(text, to).start, &copied);
        }
        10 => indent(text, at, numbers),
        // As other systems write files.
        12 => match numbers.below(4) {
            0 => text.insert(0, '\u{feff}'),
            1 => *text = text.replace('\r', "").replace('\n', "\r\n"),
            2 => *text = text.replace("\r\n", "\n").replace('\n', "\r"),
            _ => *text = text.replace("\r\n", "\n").replace('\r', "\n"),
        },
        11 => {
            let lines = 1 + numbers.below(4);
            let copied = text[word(text, at)].repeat(lines);
            text.insert_str(at, &copied);
        }
        _ => {
            let copied = text[word(text, at)].to_owned();
            let to = boundary(text, numbers.below(text.len() + 1));
            text.replace_range(word(text, to), &copied);
        }
    }
}

/// Moves a few lines right or left.
fn indent(text: &mut String, at: usize, numbers: &mut Numbers) {
    let (columns, right) = (1 + numbers.below(4), numbers.below(2) == 0);
    let mut from = line(text, at).start;
    for _ in 0..1 + numbers.below(4) {
        if from >= text.len() {
            return;
        }
        if right {
            text.insert_str(from, &"    "[..columns]);
        } else {
            let blanks = text[from..].bytes().take_while(|byte| *byte == b' ').count();
            text.replace_range(from..from + blanks.min(columns), "");
        }
        from = line(text, from).end;
    }
}

/// The run of letters, blanks or signs around a place.
fn word(text: &str, at: usize) -> Range<usize> {
    let class = |c: char| (c.is_alphanumeric() || c == '_', c.is_whitespace());
    let Some(here) = text[at..].chars().next().map(class) else {
        return at..at;
    };
    let len = |chars: &mut dyn Iterator<Item = char>| -> usize {
        chars
            .take_while(|c| class(*c) == here)
            .take(40)
            .map(char::len_utf8)
            .sum()
    };
    at - len(&mut text[..at].chars().rev())..at + len(&mut text[at..].chars())
}

/// The line around a place, with its end.
fn line(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let end = text[at..].find('\n').map_or(text.len(), |it| at + it + 1);
    start..end
}

fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|it| text.is_char_boundary(*it))
        .unwrap_or(0)
}

fn truncate(text: &mut String, most: usize) {
    text.truncate(boundary(text, most));
}
