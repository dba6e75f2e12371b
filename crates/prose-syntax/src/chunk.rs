//! Cutting a file into pieces that can be parsed alone.
//!
//! A cut is made only at a token: one that begins a line at column 0, with no bracket open, outside any string, and that can't
//! continue the statement above (`elif`, `else`, `catch`, `finally`, `option`, `as`, `|`, `->`, a closing bracket). Comments above it at
//! column 0 go with it. Lines of text are never looked at, since prompts hold lines that look like statements. Parsing
//! the chunks one by one and putting the results side by side gives what parsing the whole text gives.

use rowan::TextRange;

use crate::ChunkMap;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// Its place. Chunks are in order, without gaps, and cover the whole text.
    pub range: TextRange,
}

/// Cuts a text; there is at least one chunk.
pub fn chunks(text: &str) -> Vec<Chunk> {
    ChunkMap::with_target(text, 1)
        .ranges()
        .map(|range| Chunk { range })
        .collect()
}
