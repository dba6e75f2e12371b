use lsp_types::{
    CompletionItem, CompletionList, CompletionParams, CompletionResponse, CompletionTextEdit, Documentation,
    InsertTextFormat, MarkupContent, MarkupKind, TextEdit,
};
use prose_ide::{Cancellable, CompletionConfig, CompletionKind, FileId, FilePosition};
use tower_lsp::jsonrpc::Result;

use crate::convert::{Lines, completion_kind};
use crate::query::Snapshot;

/// `textDocument/completion`
pub(crate) fn completion(
    snapshot: &Snapshot,
    file: FileId,
    params: &CompletionParams,
) -> Cancellable<Result<Option<CompletionResponse>>> {
    let lines = Lines::new(snapshot, file)?;
    let offset = lines.offset(params.text_document_position.position);
    let config = CompletionConfig {
        snippets: snapshot.session.snippets,
    };
    let found = snapshot
        .analysis
        .completion(FilePosition { file, offset }, config)?;
    // A space is typed after almost every word: it proposes names and values, never the whole list of statements.
    let context = params.context.as_ref();
    let by_space = context.and_then(|c| c.trigger_character.as_deref()) == Some(" ");
    let items = found
        .into_iter()
        .filter(|item| !by_space || item.kind != CompletionKind::Keyword)
        .map(|item| convert(snapshot, &lines, item))
        .collect();
    Ok(Ok(Some(CompletionResponse::List(CompletionList {
        is_incomplete: false,
        items,
    }))))
}

fn convert(snapshot: &Snapshot, lines: &Lines, item: prose_ide::CompletionItem) -> CompletionItem {
    let (new_text, format) = match item.snippet {
        Some(snippet) => (snippet, InsertTextFormat::SNIPPET),
        None => (item.insert, InsertTextFormat::PLAIN_TEXT),
    };
    let documentation = item.documentation.map(|value| {
        if snapshot.session.completion_markdown {
            Documentation::MarkupContent(MarkupContent {
                kind: MarkupKind::Markdown,
                value,
            })
        } else {
            Documentation::String(value)
        }
    });
    CompletionItem {
        label: item.label,
        kind: Some(completion_kind(item.kind)),
        detail: item.detail,
        documentation,
        sort_text: Some(item.sort_text),
        filter_text: item.filter_text,
        insert_text_format: Some(format),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit {
            range: lines.range(item.replace),
            new_text,
        })),
        ..CompletionItem::default()
    }
}
