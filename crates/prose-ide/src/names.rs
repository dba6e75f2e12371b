//! What a name stands for, in the terms of the features.

use prose_hir::{Binding, DefKind, Definition, RootDatabase, SourceFile, VisibleName};
use prose_syntax::ast::{self, AstNode};
use prose_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, TextRange, TextSize};

use crate::tree::{self, Piece};
use crate::types::{NavigationTarget, SymbolKind};

/// A name in the text and what it may mean.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) range: TextRange,
    pub(crate) binding: Binding,
    pub(crate) definition: Definition,
}

/// The name at an offset, if anything declares it. Of two names that touch, the one that begins there counts.
pub(crate) fn at(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Option<Found> {
    let found = prose_hir::name_at(db, source, offset)?;
    Some(Found {
        range: found.range,
        binding: found.binding,
        definition: found.definition?,
    })
}

/// The path of a `use` or `import` at an offset, and the file it leads to.
pub(crate) fn used_file(
    db: &RootDatabase,
    source: SourceFile,
    offset: TextSize,
) -> Option<(TextRange, SourceFile)> {
    let (piece, local) = tree::piece_at(db, source, offset)?;
    let token = tree::token_at(&piece.root, local).filter(|it| it.kind() == SyntaxKind::STRING)?;
    let used = token.parent_ancestors().find_map(ast::UseStmt::cast)?;
    let path = used.path()?.string()?;
    let file = prose_hir::used_file(db, source, &path.text())?;
    Some((piece.up(path.content_range()), file))
}

/// Variables in sight at an offset, by name.
pub(crate) fn variables(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Vec<VisibleName> {
    let mut names = prose_hir::scope_at(db, source, offset);
    names.retain(|it| !it.kind.is_global());
    names
}

/// Agents, blocks or programs in sight, by name.
pub(crate) fn globals(db: &RootDatabase, source: SourceFile, kind: DefKind) -> Vec<VisibleName> {
    let mut names = prose_hir::scope_at(db, source, TextSize::new(0));
    names.retain(|it| it.kind == kind);
    names
}

/// The statement or construct that declares. Its ranges count from its chunk's start.
pub(crate) fn node(db: &RootDatabase, def: &Definition) -> Option<SyntaxNode> {
    let (piece, _) = tree::piece_at(db, def.source(), def.full_range.start())?;
    node_in(&piece, def.full_range)
}

fn node_in(piece: &Piece, range: TextRange) -> Option<SyntaxNode> {
    let local = range.checked_sub(piece.start)?;
    if !piece.root.text_range().contains_range(local) {
        return None;
    }
    let mut node = match piece.root.covering_element(local) {
        NodeOrToken::Node(node) => node,
        NodeOrToken::Token(token) => token.parent()?,
    };
    // Of several nodes with the same range the outermost below the root is the statement.
    while let Some(parent) = node
        .parent()
        .filter(|it| it.text_range() == node.text_range() && it.kind() != SyntaxKind::SOURCE_FILE)
    {
        node = parent;
    }
    Some(node)
}

pub(crate) fn target(def: &Definition) -> NavigationTarget {
    NavigationTarget {
        file: def.file,
        // Clients require that the whole contains the name.
        full_range: def.full_range.cover(def.range),
        focus_range: def.range,
        name: def.name.to_string(),
        kind: symbol_kind(def.kind),
    }
}

pub(crate) fn symbol_kind(kind: DefKind) -> SymbolKind {
    match kind {
        DefKind::Agent => SymbolKind::Agent,
        DefKind::Block => SymbolKind::Block,
        DefKind::Import => SymbolKind::Import,
        DefKind::Input => SymbolKind::Input,
        DefKind::Output => SymbolKind::Output,
        DefKind::Let | DefKind::Session | DefKind::Branch | DefKind::Assigned => SymbolKind::Variable,
        DefKind::Const => SymbolKind::Constant,
        DefKind::Param => SymbolKind::Parameter,
        DefKind::Item | DefKind::Index | DefKind::Catch | DefKind::Implicit | DefKind::Reduce => {
            SymbolKind::LoopVariable
        }
    }
}
