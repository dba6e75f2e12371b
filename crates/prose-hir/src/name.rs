//! Names as numbers.
//!
//! A name is compared and looked up far more often than it is read: each has a number of its own for as long as the process
//! lives, and equal names have the same one. A text that was a name once is never freed. That is little: people type few
//! different names, and each takes less than a hundred bytes.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

/// An identifier of a program: agent, block, variable, parameter, import, property. Ordered as its text is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(NonZeroU32);

/// The texts by their numbers, read without waiting for anybody.
static TEXTS: boxcar::Vec<&'static str> = boxcar::Vec::new();
static KNOWN: Mutex<Known> = Mutex::new(Known {
    names: FxHashMap::with_hasher(FxBuildHasher),
    room: &mut [],
});

/// Bytes of text for which memory is asked at once.
const BLOCK: usize = 4096;

struct Known {
    names: FxHashMap<&'static str, Name>,
    /// What is left of a block.
    room: &'static mut [u8],
}

/// Places for names met last; a power of two.
const RECENT: usize = 512;

thread_local! {
    /// Most names come again soon. Whatever was in a name's place goes.
    static MET: RefCell<[Option<(&'static str, Name)>; RECENT]> = const { RefCell::new([None; RECENT]) };
}

impl Name {
    /// The name with this text.
    pub fn new(text: &str) -> Name {
        MET.with_borrow_mut(|met| {
            let place = &mut met[place_of(text.as_bytes())];
            match place {
                Some((old, name)) if *old == text => *name,
                _ => place.insert(intern(text)).1,
            }
        })
    }

    /// The name with this text, unless nothing has it.
    pub fn find(text: &str) -> Option<Name> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.names.get(text).copied()
    }

    /// Its number: gives names an order in which they are found fast, and which means nothing.
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    /// Its text.
    pub fn as_str(self) -> &'static str {
        let index = self.0.get() as usize - 1;
        TEXTS.get(index).copied().unwrap_or_default()
    }
}

fn intern(text: &str) -> (&'static str, Name) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, name)) = known.names.get_key_value(text) {
        return (text, *name);
    }
    let text = known.store(text);
    // Memory ends before the numbers do.
    let number = u32::try_from(TEXTS.push(text) + 1).unwrap_or(u32::MAX);
    let name = Name(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX));
    known.names.insert(text, name);
    (text, name)
}

impl Known {
    fn store(&mut self, text: &str) -> &'static str {
        if text.len() > BLOCK / 8 {
            return Box::leak(text.into());
        }
        if text.len() > self.room.len() {
            self.room = Box::leak(vec![0; BLOCK].into());
        }
        let (place, rest) = std::mem::take(&mut self.room).split_at_mut(text.len());
        self.room = rest;
        place.copy_from_slice(text.as_bytes());
        std::str::from_utf8(place).unwrap_or_default()
    }
}

/// Some names, numbered from 0 in the order in which they are met: a table from names to what is kept of them in lists, as long
/// as something is put together.
pub(crate) struct Numbering {
    /// For each name one more than its number here, or 0.
    numbers: Vec<u32>,
    names: Vec<Name>,
}

thread_local! {
    /// The last one on this thread, empty: no memory has to be asked for and cleared for the next.
    static SPARE: Cell<(Vec<u32>, Vec<Name>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

impl Numbering {
    pub fn new() -> Numbering {
        let (numbers, names) = SPARE.take();
        Numbering { numbers, names }
    }

    /// The number of a name, which is met if it was not before.
    pub fn meet(&mut self, name: Name) -> u32 {
        let at = name.number() as usize;
        if at >= self.numbers.len() {
            self.numbers.resize((at + 1).next_power_of_two(), 0);
        }
        let number = &mut self.numbers[at];
        if *number == 0 {
            self.names.push(name);
            *number = self.names.len() as u32;
        }
        *number - 1
    }

    /// Whether a name was met.
    pub fn has(&self, name: Name) -> bool {
        self.numbers
            .get(name.number() as usize)
            .is_some_and(|it| *it != 0)
    }

    /// The names in the order of their numbers.
    pub fn names(&self) -> &[Name] {
        &self.names
    }
}

impl Drop for Numbering {
    fn drop(&mut self) {
        for name in self.names.drain(..) {
            if let Some(number) = self.numbers.get_mut(name.number() as usize) {
                *number = 0;
            }
        }
        SPARE.set((std::mem::take(&mut self.numbers), std::mem::take(&mut self.names)));
    }
}

/// Made of the length and both ends, in which names differ.
fn place_of(text: &[u8]) -> usize {
    let word = |it: &[u8; 8]| u64::from_le_bytes(*it);
    let half = |it: &[u8; 4]| u64::from(u32::from_le_bytes(*it));
    let (begin, end) = match (text.first_chunk(), text.last_chunk()) {
        (Some(begin), Some(end)) => (word(begin), word(end)),
        _ => match (text.first_chunk(), text.last_chunk()) {
            (Some(begin), Some(end)) => (half(begin), half(end)),
            _ => text
                .iter()
                .fold((0, 0), |(a, b), it| (a << 8 | u64::from(*it), b + 1)),
        },
    };
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (begin.wrapping_mul(SPREAD).rotate_left(23) ^ end ^ text.len() as u64).wrapping_mul(SPREAD);
    (hash >> 40) as usize % RECENT
}

impl Default for Name {
    fn default() -> Self {
        Name::new("")
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.0 == other.0 {
            true => Ordering::Equal,
            false => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::new(&text)
    }
}

impl From<Name> for prose_model::Name {
    fn from(name: Name) -> Self {
        prose_model::Name::new(name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_name() {
        let long = "x".repeat(BLOCK);
        let words = [
            "",
            "a",
            "ab",
            "abc",
            "abcd",
            "abcdefg",
            "abcdefgh",
            "abcdefghi",
            "größe",
            &long,
        ];
        let names = words.map(Name::new);
        // From other threads too, which have met none of them.
        let others = std::thread::scope(|scope| scope.spawn(|| words.map(Name::new)).join().unwrap());
        assert_eq!(names, others);
        assert_eq!(names.map(|it| it.as_str()), words);
        for (index, name) in names.iter().enumerate() {
            assert!(names[index + 1..].iter().all(|it| it != name));
            assert_eq!(Name::find(words[index]), Some(*name));
        }
        assert_eq!(Name::find("nothing is named so"), None);
        let mut sorted = names.to_vec();
        sorted.sort();
        assert!(sorted.is_sorted_by_key(|it| it.as_str()));
    }

    #[test]
    fn numbers_in_the_order_of_meeting() {
        for _ in 0..2 {
            let [a, b] = ["a", "b"].map(Name::new);
            let mut outer = Numbering::new();
            assert_eq!((outer.meet(b), outer.meet(a), outer.meet(b)), (0, 1, 0));
            let mut inner = Numbering::new();
            assert!(!inner.has(b));
            assert_eq!(inner.meet(a), 0);
            assert_eq!(outer.names(), [b, a]);
        }
    }

    #[test]
    fn many_names_stay_apart() {
        let text = |it: u32| format!("name_{it}");
        let names: Vec<Name> = (0..5000).map(|it| Name::new(&text(it))).collect();
        for (number, name) in (0..).zip(&names) {
            assert_eq!(*name, text(number).as_str());
            assert_eq!(*name, Name::new(&text(number)));
        }
    }
}
