//! What is under the cursor: a name with its declaration, a property or keyword with its explanation, and the codes of
//! diagnostics there.

use prose_hir::{Binding, DefKind, Definition, Diagnostic, RootDatabase, SourceFile};
use prose_model::codes;
use prose_model::vocabulary::{self, ModifierOwner};
use prose_syntax::ast::{self, AstNode, HasProperties};
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

use crate::describe::{self, Part};
use crate::types::{FilePosition, HoverConfig, HoverResult};
use crate::{diagnostics, markdown, names, tree};

pub(crate) fn hover(db: &RootDatabase, position: FilePosition, config: HoverConfig) -> Option<HoverResult> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let (mut parts, mut range) = match subject(db, source, offset) {
        Some((parts, range)) => (parts, Some(range)),
        None => (Vec::new(), None),
    };
    for found in diagnostics::diagnostics(db, position.file) {
        if found.range.contains_inclusive(offset) {
            parts.extend(code(&found));
            range = range.or(Some(found.range));
        }
    }
    let range = range?;
    (!parts.is_empty()).then(|| HoverResult { markdown: describe::render(&parts, config.markup), range })
}

/// The name or word at the offset.
fn subject(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Option<(Vec<Part>, TextRange)> {
    if let Some(found) = names::at(db, source, offset) {
        let mut parts = describe::definition(db, &found.definition);
        if found.definition.kind == DefKind::Agent {
            parts.extend(in_session(db, source, &found.definition, found.range));
        }
        parts.extend(doubt(found.binding).map(|it| Part::Words(it.to_owned())));
        return Some((parts, found.range));
    }
    let (piece, local) = tree::piece_at(db, source, offset)?;
    let token = tree::token_at(&piece.root, local)?;
    let parts = word(&token)?;
    Some((parts, piece.up(token.text_range())))
}

/// What holds for the session that names the agent here.
fn in_session(
    db: &RootDatabase,
    source: SourceFile,
    def: &Definition,
    place: TextRange,
) -> Option<Part> {
    let agent = ast::AgentDef::cast(names::node(db, def)?)?;
    let (piece, local) = tree::piece_at(db, source, place.start())?;
    let token = tree::token_at(&piece.root, local)?;
    let user = token.parent()?.parent()?;
    match user.kind() {
        SyntaxKind::SESSION_EXPR => describe::effective(&agent, ast::SessionExpr::cast(user)?.properties()),
        SyntaxKind::RESUME_EXPR => describe::effective(&agent, ast::ResumeExpr::cast(user)?.properties()),
        _ => None,
    }
}

/// What is to be said about a name that may have no value where it is read.
fn doubt(binding: Binding) -> Option<&'static str> {
    match binding {
        Binding::Sure | Binding::Global | Binding::Unbound => None,
        Binding::AfterLoop => Some("Declared in a body that is over here: the value of its last round, if there was one."),
        Binding::NextRound => Some("Declared further down in the same loop: has no value in the first round."),
        Binding::OtherBlock => Some("Declared in a block only: has a value while that block is calling, or after it was called."),
        Binding::Later => Some("Declared only below this place."),
    }
}

/// A keyword, property, modifier, or one of their values.
fn word(token: &SyntaxToken) -> Option<Vec<Part>> {
    let parent = token.parent()?;
    if token.kind().is_keyword() {
        let keyword = vocabulary::keyword(token.text())?;
        return Some(vec![Part::Code(keyword.usage.to_owned()), Part::Words(keyword.doc.to_owned())]);
    }
    // The key of a property or modifier is the NAME directly in it.
    if parent.kind() == SyntaxKind::NAME {
        let owner = parent.parent()?;
        return match owner.kind() {
            SyntaxKind::PROPERTY => property_key(&owner, token.text()),
            SyntaxKind::MODIFIER => {
                let modifier = vocabulary::modifier(modified(&owner)?, Some(token.text()))?;
                Some(vec![Part::Code(modifier.usage.to_owned()), Part::Words(modifier.doc.to_owned())])
            }
            _ => None,
        };
    }
    value(token)
}

/// The key that a property's list belongs to: `permissions` for what is nested in it.
fn outer_key(property: &SyntaxNode) -> Option<String> {
    let outer = property.parent()?.parent()?;
    Some(ast::Property::cast(outer)?.key()?.text())
}

fn property_key(property: &SyntaxNode, key: &str) -> Option<Vec<Part>> {
    match outer_key(property).as_deref() {
        Some("permissions") => {
            let permission = vocabulary::permission(key)?;
            Some(vec![Part::Words(format!("Permission `{}`: {}", permission.word, permission.doc))])
        }
        Some(_) => None,
        None => {
            let property = vocabulary::property(key)?;
            Some(vec![Part::Code(property.usage.to_owned()), Part::Words(property.doc.to_owned())])
        }
    }
}

/// A value that a property or modifier has from a list: `model: opus`, `parallel ("any")`.
fn value(token: &SyntaxToken) -> Option<Vec<Part>> {
    let word = token.text().trim_matches('"');
    let owner = token
        .parent_ancestors()
        .take(4)
        .find(|it| matches!(it.kind(), SyntaxKind::PROPERTY | SyntaxKind::MODIFIER))?;
    let values = match owner.kind() {
        SyntaxKind::PROPERTY => {
            let key = ast::Property::cast(owner.clone())?.key()?.text();
            match outer_key(&owner).as_deref() {
                Some("permissions") => vocabulary::PERMISSION_VALUES,
                Some(_) => return None,
                None => vocabulary::property(&key)?.values,
            }
        }
        _ => {
            let key = ast::Modifier::cast(owner.clone())?.name().map(|it| it.text());
            vocabulary::modifier(modified(&owner)?, key.as_deref())?.values
        }
    };
    let found = values.iter().find(|it| it.word == word)?;
    Some(vec![Part::Words(format!("`{}`: {}", found.word, found.doc))])
}

/// What a modifier belongs to.
fn modified(modifier: &SyntaxNode) -> Option<ModifierOwner> {
    let owner = modifier.parent()?.parent()?;
    Some(match owner.kind() {
        SyntaxKind::PARALLEL_EXPR => ModifierOwner::Parallel,
        SyntaxKind::FOR_EXPR => ModifierOwner::ParallelFor,
        SyntaxKind::LOOP_EXPR => ModifierOwner::Loop,
        SyntaxKind::BLOCK_DEF => ModifierOwner::Block,
        SyntaxKind::SESSION_EXPR | SyntaxKind::RESUME_EXPR => ModifierOwner::Session,
        _ => return None,
    })
}

/// A diagnostic's code with the beginning of its page. Clients show the message themselves.
fn code(found: &Diagnostic) -> Option<Part> {
    let info = codes::find(found.code)?;
    let first = info
        .page
        .split("\n\n")
        .map(str::trim)
        .find(|paragraph| !paragraph.is_empty() && !paragraph.starts_with('#'))
        .unwrap_or_default();
    let mut words = format!("**{}** ({}): {}", info.code, found.severity.as_str(), markdown::escape(info.title));
    if !first.is_empty() {
        words.push_str("\n\n");
        words.push_str(first);
    }
    words.push_str(&format!("\n\n`prose explain {}` tells more.", info.code));
    Some(Part::Words(words))
}
