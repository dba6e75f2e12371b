//! A file cut into chunks of a convenient size, kept up to date through edits.
//!
//! A chunk is one statement of the top level or several neighbours. Each can be parsed alone, and what parsing it gives depends on its
//! text alone; the results side by side are what parsing the whole text gives. So an edit makes work only where a boundary moves or
//! the text between two boundaries changes.
//!
//! A cut is made only at a token: one that begins a line at column 0, with no bracket open, outside any string, and that can't
//! continue the statement above (`elif`, `else`, `catch`, `finally`, `option`, `as`, `|`, `->`, a closing bracket). Comments above it
//! at column 0 go with it. Lines of text are never looked at, since prompts hold lines that look like statements.
//!
//! Lexing looks ahead in one case: a discretion that is not closed was sought through later lines, and `***` through the
//! rest of the file. Each chunk remembers how far behind its end that went, and an edit there cuts it again too.

use std::ops::Range;

use rowan::{TextRange, TextSize};

use crate::{
    lexer::{self, Looked, range},
    parsing::STRETCH,
    scan::{Cut, Scan, size},
};

/// Where a file is cut. There is at least one chunk; they are in order, without gaps, and cover the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMap {
    starts: Vec<TextSize>,
    /// For each chunk how far behind its end its lexing has looked.
    reach: Vec<Looked>,
    text_len: TextSize,
    sizes: Sizes,
}

/// How large chunks are, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    /// What is wanted.
    target: usize,
    /// What is larger is split, if it holds a legal cut.
    large: usize,
    /// What is smaller is joined with a neighbour.
    tiny: usize,
}

/// Which chunks an edit replaced: the `old` ones by the `new` ones. Indexes before the edit and after it.
///
/// The chunks outside keep their text; those behind may have moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The chunks that are gone.
    pub old: Range<usize>,
    /// The chunks in their place; begins where `old` begins.
    pub new: Range<usize>,
}

impl ChunkMap {
    /// About how many bytes a chunk has. Everything kept for each chunk costs time and memory, and a chunk is lexed, parsed and
    /// checked anew on each edit inside it: a hundred lines are a good deal less than what anybody notices.
    pub const TARGET: usize = 4096;

    /// Cuts a text into chunks of about [`ChunkMap::TARGET`] bytes.
    pub fn new(text: &str) -> Self {
        ChunkMap::with_target(text, ChunkMap::TARGET)
    }

    /// Cuts a text into chunks of about `target` bytes; 1 cuts at every legal place.
    pub fn with_target(text: &str, target: usize) -> Self {
        ChunkMap::visit(text, target, |_, _| ())
    }

    /// Cuts a text and shows each chunk on the way, so that it need not be scanned once more.
    pub(crate) fn visit(text: &str, target: usize, visitor: impl FnMut(&Scan, Range<Cut>)) -> Self {
        let mut map = ChunkMap {
            starts: Vec::with_capacity(text.len() / target.max(64) + 1),
            reach: Vec::new(),
            text_len: size(text.len()),
            sizes: Sizes {
                target,
                large: target.saturating_mul(2),
                tiny: target / 4,
            },
        };
        map.cut(text, visitor);
        map
    }

    fn cut(&mut self, text: &str, mut visitor: impl FnMut(&Scan, Range<Cut>)) {
        let mut scan = Scan::default();
        let mut from = 0;
        let usual = STRETCH.max(self.sizes.large.saturating_mul(2));
        let mut len = usual;
        loop {
            scan.run_some(text, from, len);
            let stretch = Stretch::new(&scan);
            let last = scan.text_end();
            let end = last.or(scan.cuts().next_back()).unwrap_or(scan.start());
            let mut bounds = stretch.group(from, scan.offset(end), self.sizes);
            if last.is_some() {
                bounds.push(text.len());
            }
            let mut begin = scan.start();
            let mut cuts = scan.cuts().chain(last);
            for bound in bounds {
                let Some(cut) = cuts.find(|it| scan.offset(*it) == bound) else {
                    continue;
                };
                self.starts.push(size(from));
                self.reach.push(stretch.reach(range(from, bound)));
                visitor(&scan, begin..cut);
                (begin, from) = (cut, bound);
            }
            if last.is_some() {
                return;
            }
            // Nothing to cut in so much text: look at more of it.
            len = if begin == scan.start() {
                len.saturating_mul(2)
            } else {
                usual
            };
        }
    }

    /// Number of chunks, at least 1.
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Where the chunks start, in order; the first starts at 0.
    pub fn starts(&self) -> &[TextSize] {
        &self.starts
    }

    /// Length of the whole text.
    pub fn text_len(&self) -> TextSize {
        self.text_len
    }

    /// Where the chunks are, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = TextRange> + '_ {
        (0..self.len()).map(|index| self.range(index))
    }

    /// Where a chunk is. One that doesn't exist is empty, at the end.
    pub fn range(&self, index: usize) -> TextRange {
        let start = |index: usize| self.starts.get(index).copied().unwrap_or(self.text_len);
        TextRange::new(start(index), start(index + 1))
    }

    /// The chunk at an offset. One between two chunks belongs to the later, the end of the text to the last.
    pub fn at(&self, offset: TextSize) -> usize {
        self.starts.partition_point(|it| *it <= offset).saturating_sub(1)
    }

    /// Cuts again after one edit. `text` is the whole text after it; `deleted` is where in the text before it something was
    /// replaced by `inserted` bytes.
    ///
    /// Looks at the touched chunk, at those whose lexing saw the edited place, and at as many behind as it takes until
    /// an old boundary is legal again. An edit that doesn't fit the text before cuts everything anew.
    pub fn edit(&mut self, text: &str, deleted: TextRange, inserted: TextSize) -> Splice {
        let count = self.len();
        let edit = Edit {
            start: deleted.start().into(),
            old_end: deleted.end().into(),
            new_end: usize::from(deleted.start()) + usize::from(inserted),
        };
        if deleted.end() > self.text_len || edit.moved(self.text_len) != text.len() {
            *self = ChunkMap::with_target(text, self.sizes.target);
            return Splice {
                old: 0..count,
                new: 0..self.len(),
            };
        }
        self.text_len = size(text.len());
        if deleted.is_empty() && edit.start == edit.new_end {
            return Splice { old: 0..0, new: 0..0 };
        }

        let first = self.first_affected(text, &edit);
        let (stretch, behind) = self.lex_stretch(text, &edit, first);
        // In front of the edit everything stays as far as its boundaries are still legal.
        let mut from = first;
        while from + 1 < behind
            && usize::from(self.starts[from + 1]) <= edit.start
            && stretch.is_cut(self.starts[from + 1].into())
            && !stretch.splits(self.starts[from].into(), self.starts[from + 1].into())
        {
            self.reach[from] = stretch.reach(TextRange::new(self.starts[from], self.starts[from + 1]));
            from += 1;
        }

        let start = usize::from(self.starts[from]);
        let end = match self.starts.get(behind) {
            Some(it) => edit.moved(*it),
            None => text.len(),
        };
        let mut new_starts = Vec::new();
        if start < end || (from == 0 && behind == count) {
            new_starts.push(start);
            new_starts.extend(stretch.group(start, end, self.sizes));
        }
        let mut reach: Vec<Looked> = (0..new_starts.len())
            .map(|i| {
                let end = new_starts.get(i + 1).copied().unwrap_or(end);
                stretch.reach(range(new_starts[i], end))
            })
            .collect();

        for it in &mut self.starts[behind..] {
            *it = size(edit.moved(*it));
        }
        let mut old = from..behind;
        if new_starts.len() == 1 && end - start < self.sizes.tiny {
            self.join_neighbour(&mut old, &mut new_starts, &mut reach, end);
        }
        let new = old.start..old.start + new_starts.len();
        self.starts.splice(old.clone(), new_starts.into_iter().map(size));
        self.reach.splice(old.clone(), reach);
        Splice { old, new }
    }

    /// The first chunk that an edit can cut differently, though some of those behind it may come out the same.
    fn first_affected(&self, text: &str, edit: &Edit) -> usize {
        let touched = self.at(size(edit.start));
        let head = &text[usize::from(self.starts[touched])..];
        let known = edit.start - usize::from(self.starts[touched]);
        // Whether a chunk may begin where it does depends on its first token and on what follows that on its line.
        let mut first = match head_len(head) {
            Some(len) if len <= known => touched,
            _ => touched.saturating_sub(1),
        };
        let closes = edit.closes_triple_stars(text);
        for (index, reach) in self.reach[..first].iter().enumerate() {
            let affected = match *reach {
                Looked::To(0) => false,
                Looked::To(reach) => edit.start <= usize::from(self.range(index).end()) + reach as usize,
                Looked::ForStars => closes,
                Looked::AtAll(_) => true,
            };
            if affected {
                first = index;
                break;
            }
        }
        first
    }

    /// Lexes from a chunk's start until behind an old boundary that is legal again, and gives the index of the old chunk that
    /// begins there, or the number of chunks if there is none.
    fn lex_stretch(&self, text: &str, edit: &Edit, first: usize) -> (Stretch, usize) {
        let count = self.len();
        let from = usize::from(self.starts[first]);
        let nearest = self
            .starts
            .partition_point(|it| usize::from(*it) < edit.old_end)
            .max(first + 1);
        let mut furthest = nearest;
        loop {
            let limit = match self.starts.get(furthest) {
                Some(it) => edit.moved(*it),
                None => text.len(),
            };
            let stretch = Stretch::lex(text, from, limit);
            // What stands before a statement that ends a token in front of it was read with that in mind, then and now.
            let mut ended = 0;
            for index in first..nearest.saturating_sub(1) {
                ended = ended.max(self.ended_at(index));
            }
            let legal = (nearest..(furthest + 1).min(count)).find(|index| {
                ended = ended.max(self.ended_at(index - 1));
                let place = edit.moved(self.starts[*index]);
                ended <= usize::from(self.starts[*index])
                    && stretch.is_cut(place)
                    && stretch.ended_before(place) <= place
            });
            if let Some(index) = legal {
                return (stretch, index);
            }
            if furthest >= count {
                return (stretch, count);
            }
            // Twice as far each time, so that lexing from the start again stays cheap.
            let further = limit + (limit - from);
            furthest += 1;
            while furthest < count && edit.moved(self.starts[furthest]) < further {
                furthest += 1;
            }
        }
    }

    /// The last statement before which a token of a chunk was ended; 0 if there is none.
    fn ended_at(&self, index: usize) -> usize {
        match self.reach[index] {
            Looked::AtAll(0) | Looked::To(_) | Looked::ForStars => 0,
            Looked::AtAll(further) => usize::from(self.range(index).end()) + further as usize,
        }
    }

    /// Joins the only new chunk, which is tiny and ends at `end`, with the smaller neighbour if that isn't large itself.
    /// The starts behind `old` have been moved already.
    fn join_neighbour(&self, old: &mut Range<usize>, starts: &mut [usize], reach: &mut [Looked], end: usize) {
        let size_of = |index: Option<usize>| {
            let index = index.filter(|it| *it < self.len())?;
            let len = match index < old.start {
                true => starts[0] - usize::from(self.starts[index]),
                false => self.range(index).len().into(),
            };
            (len <= self.sizes.target + self.sizes.tiny).then_some((len, index))
        };
        let at_all = |looked: Looked| matches!(looked, Looked::AtAll(_));
        // Behind a token that was ended because of what comes further on the cut has to stay.
        let before = size_of(old.start.checked_sub(1)).filter(|(_, index)| !at_all(self.reach[*index]));
        let after = size_of(Some(old.end)).filter(|_| !at_all(reach[0]));
        match (before, after) {
            (Some((len, index)), other) if other.is_none_or(|(after, _)| len <= after) => {
                // What the chunk in front looked at behind its end is now partly inside.
                reach[0] = reach[0].max(self.reach[index].counted_from(end - starts[0]));
                starts[0] = self.starts[index].into();
                old.start = index;
            }
            (_, Some((len, index))) => {
                reach[0] = reach[0].counted_from(len).max(self.reach[index]);
                old.end = index + 1;
            }
            _ => {}
        }
    }
}

/// An edit in bytes.
struct Edit {
    start: usize,
    old_end: usize,
    new_end: usize,
}

impl Edit {
    /// Where an old offset behind the edit is in the new text.
    fn moved(&self, offset: TextSize) -> usize {
        usize::from(offset).saturating_sub(self.old_end) + self.new_end
    }

    /// Whether there are three stars in a row where the edit was made.
    fn closes_triple_stars(&self, text: &str) -> bool {
        let near = self.start.saturating_sub(2)..(self.new_end + 2).min(text.len());
        text.as_bytes()[near].windows(3).any(|it| it == b"***")
    }
}

/// A part of a text that was lexed from a chunk's start on.
struct Stretch {
    /// Where the part begins in the whole text.
    from: usize,
    /// Offsets in the whole text where it may be cut; the part's begin isn't among them.
    cuts: Vec<usize>,
    /// [`Scan::looked`]
    looked: Vec<(usize, Looked)>,
    /// Cuts that have to be made, see [`Scan::forced`].
    forced: Vec<usize>,
}

impl Stretch {
    /// Lexes from a legal cut on. Cuts are known up to `limit`, and there too.
    fn lex(text: &str, from: usize, limit: usize) -> Stretch {
        let mut scan = Scan::default();
        scan.run(text, from, limit);
        Stretch::new(&scan)
    }

    fn new(scan: &Scan) -> Stretch {
        let mut looked: Vec<(usize, Looked)> = scan.looked().collect();
        looked.sort_unstable_by_key(|it| it.0);
        Stretch {
            from: scan.from(),
            cuts: scan.cuts().map(|it| scan.offset(it)).collect(),
            looked,
            forced: scan.forced().map(|it| scan.offset(it)).collect(),
        }
    }

    /// Whether a cut has to be made strictly within.
    fn splits(&self, from: usize, to: usize) -> bool {
        let next = self.forced.partition_point(|it| *it <= from);
        self.forced.get(next).is_some_and(|it| *it < to)
    }

    fn is_cut(&self, offset: usize) -> bool {
        offset == self.from || self.cuts.binary_search(&offset).is_ok()
    }

    /// The last statement before which a token in front of a place was ended; 0 if there is none.
    fn ended_before(&self, place: usize) -> usize {
        let tokens = self.looked.iter().take_while(|(at, _)| *at < place);
        let ended = tokens.filter_map(|(_, looked)| match looked {
            Looked::AtAll(ended) if *ended > 0 => Some(self.from + *ended as usize),
            _ => None,
        });
        ended.max().unwrap_or(0)
    }

    /// How far behind a range the lexer looked for the ends of the tokens in it.
    fn reach(&self, within: TextRange) -> Looked {
        let (start, end) = (usize::from(within.start()), usize::from(within.end()));
        let first = self.looked.partition_point(|(at, _)| *at < start);
        let tokens = self.looked[first..].iter().take_while(|(at, _)| *at < end);
        tokens
            .map(|(_, looked)| looked.counted_from(end - self.from))
            .max()
            .unwrap_or(Looked::To(0))
    }

    /// Where to cut a range that begins and ends at legal cuts, so that the parts are of about the wanted size.
    fn group(&self, start: usize, end: usize, sizes: Sizes) -> Vec<usize> {
        let mut out = Vec::new();
        if end - start <= sizes.large && !self.splits(start, end) {
            return out;
        }
        let first = self.cuts.partition_point(|it| *it <= start);
        let mut from = start;
        for (index, cut) in self.cuts.iter().copied().enumerate().skip(first) {
            if cut >= end {
                break;
            }
            let next = self.cuts.get(index + 1).copied().unwrap_or(end).min(end);
            // Enough, or what comes next is a long statement that had better stand alone.
            let full = cut - from >= sizes.target || (cut - from >= sizes.tiny && next - from > sizes.large);
            let forced = self.forced.binary_search(&cut).is_ok();
            if forced || full && end - cut >= sizes.tiny {
                out.push(cut);
                from = cut;
            }
        }
        out
    }
}

/// Length of the blank and comment lines at a text's start, together with the first line that holds more, line end included.
fn head_len(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let len = memchr::memchr2(b'\n', b'\r', &text.as_bytes()[at..])? + 1;
        let line = text[at..at + len].trim_start_matches(lexer::is_blank);
        at += len;
        if !(line.is_empty() || line.starts_with('#')) {
            return Some(at);
        }
    }
}
