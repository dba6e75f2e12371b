//! What happens to the indentation while a person types.

use prose_syntax::{
    SyntaxKind::{self, *},
    SyntaxNode, SyntaxToken, TextRange, TextSize,
    ast::{self, AstNode},
    text::{indent_width, is_terminated},
};

use crate::{TextEdit, edits::range_of, layout::INDENT, range::line_start};

/// Edits after a character was typed; `offset` is behind it. After a line end the new line gets its indentation; after the
/// colon of `elif`, `else`, `catch` or `finally` the line goes below its construct. None for other characters.
pub fn on_type(text: &str, offset: TextSize, typed: char) -> Vec<TextEdit> {
    let offset = usize::from(offset).min(text.len());
    if !text.is_char_boundary(offset) {
        return Vec::new();
    }
    let edit = match typed {
        '\n' => after_line_end(text, offset),
        ':' => after_colon(text, offset),
        _ => None,
    };
    edit.into_iter().collect()
}

/// Gives the line at an offset an indentation.
fn indent_line(text: &str, start: usize, column: u32) -> Option<TextEdit> {
    let rest = &text[start..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let insert = " ".repeat(column as usize);
    (rest[..blanks] != insert).then(|| TextEdit {
        range: range_of(start, start + blanks),
        insert,
    })
}

/// Column of the line that an offset is in.
fn column(text: &str, at: TextSize) -> u32 {
    let line = &text[line_start(text, at.into()) as usize..];
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    indent_width(&line[..blanks])
}

fn after_line_end(text: &str, offset: usize) -> Option<TextEdit> {
    let start = line_start(text, u32::try_from(offset).ok()?) as usize;
    if start == 0 || !text[start..offset].trim().is_empty() {
        return None;
    }
    let root = prose_syntax::parse(text).syntax();
    let at = TextSize::from(u32::try_from(start).ok()?);
    let mut token = token_before(&root, at)?;
    // In the middle of a text.
    if is_text(token.kind()) && token.text_range().end() > at {
        return None;
    }
    while token.kind().is_trivia() {
        token = token_before(&root, token.text_range().start())?;
        if token.kind() == COMMENT && token.text_range().end() > at {
            return None;
        }
    }
    let line = column(text, token.text_range().start());
    let column = match token.kind() {
        // At the end of a text that has no end yet.
        BLOCK_TEXT => return None,
        TRIPLE_STRING | DISCRETION if !is_terminated(token.kind(), token.text()) => return None,
        L_BRACK | L_PAREN | L_BRACE => line + INDENT,
        PIPE => line + INDENT,
        COLON if opens_block(&token) => line + INDENT,
        _ => match ended_body(&token) {
            Some(construct) => column(text, construct.start()),
            None => line,
        },
    };
    indent_line(text, start, column)
}

/// The token that ends at an offset, or spans it. Asking a token for the one before it stops at nodes without tokens.
fn token_before(root: &SyntaxNode, at: TextSize) -> Option<SyntaxToken> {
    root.token_at_offset(at)
        .left_biased()
        .filter(|it| it.text_range().start() < at)
}

fn is_text(kind: SyntaxKind) -> bool {
    matches!(kind, STRING | TRIPLE_STRING | DISCRETION | BLOCK_TEXT)
}

/// Whether a colon ends the first line of something.
fn opens_block(colon: &SyntaxToken) -> bool {
    !matches!(
        colon.parent().map(|it| it.kind()),
        Some(OBJECT_FIELD | ARG | MODIFIER) | None
    )
}

/// The construct whose body a token ends, because nothing can run behind its statement.
fn ended_body(token: &SyntaxToken) -> Option<TextRange> {
    let stmt = token.parent_ancestors().find_map(ast::Stmt::cast)?;
    let ends = match &stmt {
        ast::Stmt::Break(_) | ast::Stmt::Throw(_) => true,
        // Properties may follow below a session.
        ast::Stmt::Return(it) => !is_session(it.value()),
        ast::Stmt::Output(it) => it.name().is_none() && !is_session(it.value()),
        _ => false,
    };
    let body = stmt.syntax().parent().filter(|it| it.kind() == BODY)?;
    ends.then(|| body.parent().map(|it| it.text_range())).flatten()
}

fn is_session(value: Option<ast::Expr>) -> bool {
    matches!(value, None | Some(ast::Expr::Session(_) | ast::Expr::Resume(_)))
}

fn after_colon(text: &str, offset: usize) -> Option<TextEdit> {
    let start = line_start(text, u32::try_from(offset).ok()?) as usize;
    let line = text[start..offset].trim();
    let word = line.strip_suffix(':')?.split(' ').next()?;
    let construct = match word {
        "else" | "elif" => IF_EXPR,
        "catch" | "finally" => TRY_EXPR,
        _ => return None,
    };
    // The colon must be the line's own, which is so if nothing but a condition or a name stands before it.
    let own = column(text, TextSize::from(u32::try_from(start).ok()?));
    let above = prose_syntax::parse(&text[..start]).syntax();
    let columns = open_constructs(&above, construct)
        .into_iter()
        .map(|it| column(text, it));
    let best = columns.filter(|it| *it <= own).max()?;
    (best < own).then(|| indent_line(text, start, best)).flatten()
}

/// Where the constructs begin that the next line could go on with.
fn open_constructs(root: &SyntaxNode, kind: SyntaxKind) -> Vec<TextSize> {
    let mut at = root.text_range().end();
    let token = loop {
        match token_before(root, at) {
            Some(token) if token.kind().is_trivia() => at = token.text_range().start(),
            Some(token) => break token,
            None => return Vec::new(),
        }
    };
    token
        .parent_ancestors()
        .filter(|it| it.kind() == kind)
        .map(|it| it.text_range().start())
        .collect()
}
