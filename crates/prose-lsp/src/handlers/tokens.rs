use std::sync::atomic::{AtomicU32, Ordering};

use dashmap::DashMap;
use lsp_types::{
    SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensDelta,
    SemanticTokensDeltaParams, SemanticTokensEdit, SemanticTokensFullDeltaResult, SemanticTokensLegend,
    SemanticTokensRangeParams, SemanticTokensRangeResult, SemanticTokensResult, Url,
};
use prose_ide::{Cancellable, FileId, SymbolKind, TextRange, TokenKind};
use tower_lsp::jsonrpc::Result;

use crate::convert::Lines;
use crate::query::Snapshot;

/// More tokens than these are not kept for the next answer: they are as large as the text.
const MOST_KEPT: usize = 200_000;

/// Types by their numbers in answers.
const TYPES: [SemanticTokenType; 13] = [
    SemanticTokenType::KEYWORD,
    SemanticTokenType::COMMENT,
    SemanticTokenType::STRING,
    SemanticTokenType::NUMBER,
    SemanticTokenType::OPERATOR,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::ENUM_MEMBER,
    SemanticTokenType::CLASS,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::VARIABLE,
    // Escapes have no type of their own in the protocol; themes know this one in strings.
    SemanticTokenType::REGEXP,
];

/// A text that a model judges.
const JUDGED: SemanticTokenModifier = SemanticTokenModifier::new("judged");

/// What the numbers in answers mean.
pub(crate) fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: TYPES.to_vec(),
        token_modifiers: vec![
            SemanticTokenModifier::DECLARATION,
            SemanticTokenModifier::READONLY,
            JUDGED,
        ],
    }
}

/// The last answer for each file, to which the next one is compared.
#[derive(Debug, Default)]
pub(crate) struct TokenResults {
    last: DashMap<Url, (u32, Vec<SemanticToken>)>,
    next: AtomicU32,
}

impl TokenResults {
    /// Keeps an answer; the id that the client names it by, unless it is too large.
    fn keep(&self, snapshot: &Snapshot, file: FileId, tokens: &[SemanticToken]) -> Option<String> {
        let uri = snapshot.documents.uri(file)?;
        if tokens.len() > MOST_KEPT {
            self.forget(&uri);
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.last.insert(uri, (id, tokens.to_vec()));
        Some(id.to_string())
    }

    /// The document is closed, so that nobody asks about it any more.
    pub(crate) fn forget(&self, uri: &Url) {
        self.last.remove(uri);
    }
}

/// `textDocument/semanticTokens/full`
pub(crate) fn tokens_full(
    snapshot: &Snapshot,
    file: FileId,
    results: &TokenResults,
) -> Cancellable<Result<Option<SemanticTokensResult>>> {
    let data = tokens(snapshot, file, None)?;
    let result_id = results.keep(snapshot, file, &data);
    Ok(Ok(Some(SemanticTokens { result_id, data }.into())))
}

/// `textDocument/semanticTokens/full/delta`. An id that isn't the last one's is answered in full.
pub(crate) fn tokens_delta(
    snapshot: &Snapshot,
    file: FileId,
    params: &SemanticTokensDeltaParams,
    results: &TokenResults,
) -> Cancellable<Result<Option<SemanticTokensFullDeltaResult>>> {
    let data = tokens(snapshot, file, None)?;
    let old = snapshot.documents.uri(file).and_then(|uri| {
        let last = results.last.get(&uri)?;
        let (id, tokens) = last.value();
        (id.to_string() == params.previous_result_id).then(|| tokens.clone())
    });
    let result_id = results.keep(snapshot, file, &data);
    let Some(old) = old else {
        return Ok(Ok(Some(SemanticTokens { result_id, data }.into())));
    };
    let edits = difference(&old, &data);
    Ok(Ok(Some(SemanticTokensDelta { result_id, edits }.into())))
}

/// `textDocument/semanticTokens/range`
pub(crate) fn tokens_range(
    snapshot: &Snapshot,
    file: FileId,
    params: &SemanticTokensRangeParams,
) -> Cancellable<Result<Option<SemanticTokensRangeResult>>> {
    let range = Lines::new(snapshot, file)?.text_range(params.range);
    let data = tokens(snapshot, file, Some(range))?;
    let result_id = None;
    Ok(Ok(Some(SemanticTokens { result_id, data }.into())))
}

/// One edit that makes one list out of another; the numbers count five for a token.
fn difference(old: &[SemanticToken], new: &[SemanticToken]) -> Vec<SemanticTokensEdit> {
    if old == new {
        return Vec::new();
    }
    let same = |it: &(&SemanticToken, &SemanticToken)| it.0 == it.1;
    let front = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[front..], &new[front..]);
    let back = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let numbers = |tokens: usize| u32::try_from(tokens * 5).unwrap_or(u32::MAX);
    vec![SemanticTokensEdit {
        start: numbers(front),
        delete_count: numbers(old.len() - back),
        data: Some(new[..new.len() - back].to_vec()),
    }]
}

fn tokens(snapshot: &Snapshot, file: FileId, range: Option<TextRange>) -> Cancellable<Vec<SemanticToken>> {
    let lines = Lines::new(snapshot, file)?;
    let mut out = Vec::new();
    let mut last = lsp_types::Position::default();
    for token in snapshot.analysis.semantic_tokens(file, range)? {
        let token_type = number(token.kind);
        let token_modifiers_bitset =
            u32::from(token.declaration) | u32::from(token.readonly) << 1 | u32::from(token.judged) << 2;
        // No client has to understand tokens of several lines.
        for part in lines.by_line(token.range) {
            let delta_line = part.start.line - last.line;
            out.push(SemanticToken {
                delta_line,
                delta_start: match delta_line {
                    0 => part.start.character - last.character,
                    _ => part.start.character,
                },
                length: part.end.character - part.start.character,
                token_type,
                token_modifiers_bitset,
            });
            last = part.start;
        }
    }
    Ok(out)
}

fn number(kind: TokenKind) -> u32 {
    let kind = match kind {
        TokenKind::Keyword => SemanticTokenType::KEYWORD,
        TokenKind::Comment => SemanticTokenType::COMMENT,
        TokenKind::String => SemanticTokenType::STRING,
        TokenKind::Escape => SemanticTokenType::REGEXP,
        TokenKind::Number => SemanticTokenType::NUMBER,
        TokenKind::Operator => SemanticTokenType::OPERATOR,
        TokenKind::Property => SemanticTokenType::PROPERTY,
        TokenKind::Value => SemanticTokenType::ENUM_MEMBER,
        TokenKind::Name(kind) => match kind {
            SymbolKind::Agent => SemanticTokenType::CLASS,
            SymbolKind::Block => SemanticTokenType::FUNCTION,
            SymbolKind::Import | SymbolKind::File => SemanticTokenType::NAMESPACE,
            SymbolKind::Input | SymbolKind::Parameter => SemanticTokenType::PARAMETER,
            SymbolKind::Output | SymbolKind::Variable | SymbolKind::Constant | SymbolKind::LoopVariable => {
                SemanticTokenType::VARIABLE
            }
        },
    };
    TYPES.iter().position(|it| *it == kind).unwrap_or_default() as u32
}
