//! From text to tree: scan, parse, build, stretch by stretch.

use std::ops::Range;

use crate::{
    ChunkMap, Parse, SyntaxError,
    SyntaxKind::SOURCE_FILE,
    builder,
    event::{self, Event, TreeSink},
    grammar,
    parser::Parser,
    reading::{Reader, Reading},
    scan::{Cut, Scan, size},
};

/// About how much of a text is scanned at once, in bytes.
pub(crate) const STRETCH: usize = 32 * 1024;

/// Parses a text of at most [`crate::MAX_TEXT_LEN`] bytes.
pub fn parse(text: &str) -> Parse {
    let mut errors = Vec::new();
    let green = builder::build(|builder| whole(text, builder, &mut errors, |_, _| ()));
    Parse { green, errors }
}

/// Parses a text of at most [`crate::MAX_TEXT_LEN`] bytes for reading it once. Kinds, places and findings are those of [`parse`].
pub fn read(text: &str) -> Reading<'_> {
    let mut errors = Vec::new();
    let mut reader = Reader::new(Vec::new());
    whole(text, &mut reader, &mut errors, |reader, from| {
        reader.count_from(from as isize);
    });
    Reading {
        text,
        entries: reader.into_entries(),
        errors,
    }
}

/// Parses a whole text into an empty tree. `begin` is told where in the text the ranges of the tokens that follow begin to count.
fn whole<B: TreeSink>(
    text: &str,
    builder: &mut B,
    errors: &mut Vec<SyntaxError>,
    begin: impl Fn(&mut B, usize),
) {
    builder.start(SOURCE_FILE);
    let mut scan = Scan::default();
    let mut events = Vec::new();
    let mut from = 0;
    loop {
        scan.run_some(text, from, STRETCH);
        begin(builder, scan.from());
        let (end, last) = match scan.text_end() {
            Some(end) => (end, true),
            None => (scan.cuts().next_back().unwrap_or(scan.start()), false),
        };
        part(text, &scan, scan.start()..end, &mut events, builder, errors);
        if last || scan.offset(end) == from {
            break;
        }
        from = scan.offset(end);
    }
    builder.finish();
}

/// Cuts a text of at most [`crate::MAX_TEXT_LEN`] bytes into chunks of about `target` bytes, as [`ChunkMap::with_target`], and reads
/// each on the way, so that it is scanned only once. Gives what reading each chunk gives, in order.
pub fn cut_and_read(text: &str, target: usize, mut each: impl FnMut(&Reading<'_>)) -> ChunkMap {
    let mut events = Vec::new();
    let mut entries = Vec::new();
    ChunkMap::visit(text, target, |scan, cuts| {
        let mut errors = Vec::new();
        let range = scan.offset(cuts.start)..scan.offset(cuts.end);
        let mut reader = Reader::new(std::mem::take(&mut entries));
        reader.count_from(scan.from() as isize - range.start as isize);
        reader.start(SOURCE_FILE);
        part(text, scan, cuts, &mut events, &mut reader, &mut errors);
        reader.finish();
        for error in &mut errors {
            error.range -= size(range.start);
        }
        let reading = Reading {
            text: &text[range],
            entries: reader.into_entries(),
            errors,
        };
        each(&reading);
        entries = reading.entries;
    })
}

/// Parses what is between two cuts of a stretch into the open root, and gives the findings in it, in order, with their places
/// in the whole text. `events` is a buffer.
fn part(
    text: &str,
    scan: &Scan,
    part: Range<Cut>,
    events: &mut Vec<Event>,
    builder: &mut impl TreeSink,
    errors: &mut Vec<SyntaxError>,
) {
    let text = &text[scan.from()..];
    events.clear();
    let mut parser = Parser::new(
        text,
        &scan.lexed,
        &scan.layout,
        part.clone(),
        std::mem::take(events),
    );
    grammar::source_file(&mut parser);
    let (made, mut found) = parser.finish();
    *events = made;
    event::build(text, &scan.lexed, part.clone(), events, builder, &mut found);

    let place = |cut: Cut| size(scan.lexed.start(cut.raw));
    let (begin, end) = (place(part.start), place(part.end));
    let to_the_end = scan.text_end() == Some(part.end);
    for list in [&scan.layout.errors, &scan.lexed.errors] {
        if !list.is_empty() {
            let within = |it: &&SyntaxError| {
                let at = it.range.start();
                begin <= at && (at < end || to_the_end)
            };
            found.extend(list.iter().filter(within).cloned());
        }
    }
    found.sort_by_key(|it| (it.range.start(), it.range.end()));
    one_error_a_line(text, &mut found);
    let offset = size(scan.from());
    errors.extend(found.into_iter().map(|it| SyntaxError {
        range: it.range + offset,
        ..it
    }));
}

/// Of the errors of one line that can follow from each other keeps the one that says most: a string, discretion or bracket
/// that isn't closed, else the first.
fn one_error_a_line(text: &str, errors: &mut Vec<SyntaxError>) {
    let mut line_end = 0;
    let mut kept: Option<usize> = None;
    let mut drop = Vec::new();
    for (index, error) in errors.iter().enumerate() {
        let Some(weight) = error.kind.weight() else {
            continue;
        };
        let start = usize::from(error.range.start());
        match kept {
            Some(best) if start <= line_end => {
                let better = errors[best].kind.weight() < Some(weight);
                drop.push(if better { best } else { index });
                if better {
                    kept = Some(index);
                }
            }
            _ => {
                line_end = memchr::memchr2(b'\n', b'\r', &text.as_bytes()[start..])
                    .map_or(text.len(), |it| start + it);
                kept = Some(index);
            }
        }
    }
    if drop.is_empty() {
        return;
    }
    drop.sort_unstable();
    let (mut index, mut next) = (0, 0);
    errors.retain(|_| {
        let dropped = drop.get(next) == Some(&index);
        next += usize::from(dropped);
        index += 1;
        !dropped
    });
}
