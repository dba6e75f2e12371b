//! All automatic fixes of a file at once.

use prose_model::codes::Severity;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashSet;

use super::fixes;
use crate::diagnostic::apply;
use crate::{Change, Db, FileContent, FileId, FileState, Fix, RootDatabase, SourceFile, diagnostics};

/// Rounds after which it is enough: a fix may uncover what another settles, but never many times over.
const ROUNDS: usize = 12;

/// Makes every automatic fix of the codes that are wanted, and those that these make possible, and gives the edits that
/// lead from the file's text to what comes out, in order, with the number of fixes.
pub fn fix_all(
    db: &dyn Db,
    file: SourceFile,
    wanted: &dyn Fn(&str) -> bool,
) -> (Vec<(TextRange, String)>, usize) {
    let mut made = 0;
    if file.state(db) != FileState::Text {
        return (Vec::new(), made);
    }
    let first = round(db, file, wanted);
    if first.is_empty() {
        return (Vec::new(), made);
    }
    let text = file.text(db);
    let mut now = text.to_string();
    let mut pieces = Pieces::of(&text);
    let mut scratch = Scratch::of(db, file);
    let mut edits = first;
    let mut errors = errors_of(db, file);
    for _ in 0..ROUNDS {
        let next = apply(&now, &edits.concat());
        let Some(source) = scratch.set(&next) else { break };
        let after = errors_of(&scratch.db, source);
        // Fixes that are right alone may be wrong together; then what was there before stays.
        if after > errors {
            break;
        }
        errors = after;
        made += edits.len();
        pieces.apply(&edits.concat());
        now = next;
        edits = round(&scratch.db, source, wanted);
        if edits.is_empty() {
            break;
        }
    }
    (pieces.edits(), made)
}

fn errors_of(db: &dyn Db, file: SourceFile) -> usize {
    let found = diagnostics(db, file);
    found.iter().filter(|it| it.severity == Severity::Error).count()
}

/// The automatic fixes of one code in a file, as edits that don't touch each other, with their number. One round only:
/// cheap enough to be offered unasked, when there are not too many.
pub fn fix_code(db: &dyn Db, file: SourceFile, code: &str) -> (Vec<(TextRange, String)>, usize) {
    let fixes = round(db, file, &|it| it == code);
    (fixes.concat(), fixes.len())
}

type Edits = Vec<(TextRange, String)>;

/// The edits of the automatic fixes of a file that don't touch each other.
fn round(db: &dyn Db, file: SourceFile, wanted: &dyn Fn(&str) -> bool) -> Vec<Edits> {
    let mut taken: Vec<TextRange> = Vec::new();
    let mut out = Vec::new();
    for found in diagnostics(db, file) {
        if !wanted(found.code) {
            continue;
        }
        let fix = fixes(db, file, &found).into_iter().find(|it| it.automatic);
        let Some(Fix { edits, .. }) = fix else { continue };
        let free = |range: &TextRange| taken.iter().rev().all(|it| it.intersect(*range).is_none());
        if edits.iter().all(|(range, _)| free(range)) {
            taken.extend(edits.iter().map(|it| it.0));
            out.push(edits);
        }
    }
    out
}

/// A database in which the file can be changed: it holds the file and what it uses.
struct Scratch {
    db: RootDatabase,
    file: FileId,
    path: String,
}

impl Scratch {
    fn of(db: &dyn Db, file: SourceFile) -> Scratch {
        let mut change = Change::new();
        let mut seen: FxHashSet<SourceFile> = FxHashSet::default();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            if !seen.insert(file) {
                continue;
            }
            let content = match file.state(db) {
                FileState::Text => FileContent::Text(file.text(db)),
                FileState::Missing => FileContent::Missing,
                FileState::Unapproved => FileContent::Unapproved,
            };
            let uses = file.uses(db);
            change
                .files
                .push((file.id(db), file.path(db).to_string(), content));
            let targets = uses
                .iter()
                .map(|(target, found)| (target.clone(), found.map(|it| it.id(db))));
            change.resolve(file.id(db), targets.collect());
            open.extend(uses.iter().filter_map(|it| it.1));
        }
        let mut scratch = RootDatabase::default();
        scratch.apply_change(change);
        Scratch {
            db: scratch,
            file: file.id(db),
            path: file.path(db).to_string(),
        }
    }

    fn set(&mut self, text: &str) -> Option<SourceFile> {
        let mut change = Change::new();
        change.text(self.file, self.path.clone(), text);
        self.db.apply_change(change);
        self.db.source(self.file)
    }
}

/// A text as pieces of an older one and new ones, so that edits made one after the other can be told as one.
struct Pieces {
    end: TextSize,
    pieces: Vec<Piece>,
}

enum Piece {
    Old(TextRange),
    New(String),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Old(range) => range.len().into(),
            Piece::New(text) => text.len(),
        }
    }
    /// The first bytes, and the rest.
    fn split(self, at: usize) -> (Piece, Piece) {
        match self {
            Piece::Old(range) => {
                let middle = range.start() + super::size(at).min(range.len());
                (
                    Piece::Old(TextRange::new(range.start(), middle)),
                    Piece::Old(TextRange::new(middle, range.end())),
                )
            }
            Piece::New(mut text) => {
                let rest = match text.is_char_boundary(at) {
                    true => text.split_off(at),
                    false => String::new(),
                };
                (Piece::New(text), Piece::New(rest))
            }
        }
    }
}

impl Pieces {
    fn of(text: &str) -> Pieces {
        let end = TextSize::of(text);
        Pieces {
            end,
            pieces: vec![Piece::Old(TextRange::up_to(end))],
        }
    }

    /// Makes disjoint edits of the text that the pieces stand for.
    fn apply(&mut self, edits: &[(TextRange, String)]) {
        let mut sorted: Vec<&(TextRange, String)> = edits.iter().collect();
        sorted.sort_by_key(|it| (it.0.start(), it.0.end()));
        let mut rest = std::mem::take(&mut self.pieces).into_iter();
        let mut current = rest.next();
        let mut at = 0;
        for (range, with) in sorted {
            let (start, end) = (usize::from(range.start()), usize::from(range.end()));
            // What stands before the edit stays, what is in it goes.
            for (to, keep) in [(start, true), (end, false)] {
                while at < to {
                    let Some(piece) = current.take() else { break };
                    let (taken, left) = match at + piece.len() <= to {
                        true => (piece, None),
                        false => {
                            let (taken, left) = piece.split(to - at);
                            (taken, Some(left))
                        }
                    };
                    at += taken.len();
                    if keep {
                        self.pieces.push(taken);
                    }
                    current = left.or_else(|| rest.next());
                }
            }
            if !with.is_empty() {
                self.pieces.push(Piece::New(with.clone()));
            }
        }
        self.pieces.extend(current);
        self.pieces.extend(rest);
    }

    /// The edits that make the pieces out of the old text.
    fn edits(self) -> Vec<(TextRange, String)> {
        let mut out: Vec<(TextRange, String)> = Vec::new();
        let mut at = TextSize::new(0);
        let mut new = String::new();
        let mut put = |from: TextSize, to: TextSize, new: &mut String| {
            if from < to || !new.is_empty() {
                out.push((TextRange::new(from, to), std::mem::take(new)));
            }
        };
        for piece in self.pieces {
            match piece {
                Piece::New(text) => new.push_str(&text),
                Piece::Old(range) if range.is_empty() => {}
                Piece::Old(range) => {
                    put(at, range.start(), &mut new);
                    at = range.end();
                }
            }
        }
        put(at, self.end, &mut new);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: u32, end: u32, with: &str) -> (TextRange, String) {
        (TextRange::new(start.into(), end.into()), with.to_owned())
    }

    #[test]
    fn edits_after_edits_are_told_as_one() {
        let text = "abcdefghij";
        let mut pieces = Pieces::of(text);
        let mut now = text.to_owned();
        let rounds: &[&[(TextRange, String)]] = &[
            &[edit(2, 4, "XYZ"), edit(6, 6, "!")],
            &[edit(0, 3, ""), edit(4, 5, "--"), edit(9, 12, "é")],
            &[edit(0, 1, ""), edit(5, 5, "end")],
        ];
        for edits in rounds {
            now = apply(&now, edits);
            pieces.apply(edits);
        }
        assert_eq!(apply(text, &pieces.edits()), now);
    }
}
