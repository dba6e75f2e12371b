//! The trees of a file. A file is cut into chunks with a tree each; features work on one chunk where they can, so that
//! their cost doesn't grow with the file.

use std::sync::Arc;

use prose_hir::{Chunk, FileId, FileState, RootDatabase, SourceFile};
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

/// The tree of a chunk. Ranges in it count from the chunk's start.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) root: SyntaxNode,
    pub(crate) start: TextSize,
}

impl Piece {
    /// From the chunk's to the file's offsets.
    pub(crate) fn up(&self, range: TextRange) -> TextRange {
        range + self.start
    }
}

/// The file, when it has a text.
pub(crate) fn source(db: &RootDatabase, file: FileId) -> Option<SourceFile> {
    db.source(file)
        .filter(|source| source.state(db) == FileState::Text)
}

pub(crate) fn text(db: &RootDatabase, file: FileId) -> Option<Arc<str>> {
    source(db, file).map(|source| source.text(db))
}

/// The offset, or the nearest before it that is in the text and on a character boundary.
pub(crate) fn clamp(text: &str, offset: TextSize) -> TextSize {
    let mut at = usize::from(offset).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    TextSize::new(at as u32)
}

/// All trees of a file, in order.
pub(crate) fn pieces(db: &RootDatabase, source: SourceFile) -> Vec<Piece> {
    let starts = source.starts(db);
    let chunks = source.chunks(db);
    chunks
        .iter()
        .zip(starts.iter())
        .map(|(&chunk, &start)| piece(db, chunk, start))
        .collect()
}

/// The trees that a range touches, in order.
pub(crate) fn pieces_in(
    db: &RootDatabase,
    source: SourceFile,
    range: TextRange,
) -> impl Iterator<Item = Piece> + '_ {
    let starts = source.starts(db);
    let chunks = source.chunks(db);
    let first = starts
        .partition_point(|it| *it <= range.start())
        .saturating_sub(1);
    let end = starts.partition_point(|it| *it < range.end()).min(chunks.len());
    (first.min(end)..end).map(move |at| piece(db, chunks[at], starts[at]))
}

fn piece(db: &RootDatabase, chunk: Chunk, start: TextSize) -> Piece {
    Piece {
        root: prose_hir::parse(db, chunk).root(),
        start,
    }
}

/// The trees around an offset: that of its chunk, the next, and those before until one has a token.
pub(crate) fn pieces_around(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Vec<Piece> {
    let starts = source.starts(db);
    let chunks = source.chunks(db);
    let Some(at) = starts.partition_point(|start| *start <= offset).checked_sub(1) else {
        return Vec::new();
    };
    let mut pieces: Vec<Piece> = (at..chunks.len().min(at + 2))
        .map(|i| piece(db, chunks[i], starts[i]))
        .collect();
    for i in (0..at).rev() {
        let before = piece(db, chunks[i], starts[i]);
        let empty = before.root.first_child().is_none();
        pieces.insert(0, before);
        if !empty {
            break;
        }
    }
    pieces
}

/// The tree at an offset and the offset in it.
pub(crate) fn piece_at(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Option<(Piece, TextSize)> {
    let (_, chunk, start) = prose_hir::chunk_at(db, source, offset)?;
    let piece = piece(db, chunk, start);
    let local = (offset - start).min(piece.root.text_range().end());
    Some((piece, local))
}

/// The token at an offset; between two tokens the one that carries more meaning, words first.
pub(crate) fn token_at(root: &SyntaxNode, offset: TextSize) -> Option<SyntaxToken> {
    root.token_at_offset(offset)
        .max_by_key(|token| match token.kind() {
            SyntaxKind::IDENT => 4,
            kind if kind.is_keyword() => 3,
            kind if kind.is_trivia() => 0,
            SyntaxKind::COMMENT => 0,
            _ => 1,
        })
}

/// The whole tree as text.
pub(crate) fn view(db: &RootDatabase, file: FileId) -> String {
    let Some(text) = text(db, file) else {
        return String::new();
    };
    format!("{:#?}", prose_syntax::parse(&text).syntax())
}
