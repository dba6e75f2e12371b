use lsp_types::{
    Documentation, InlayHint, InlayHintKind, InlayHintLabel, InlayHintLabelPart, InlayHintParams,
    MarkupContent, ParameterInformation, ParameterLabel, SignatureHelp, SignatureHelpParams,
    SignatureInformation,
};
use prose_ide::{Cancellable, FileId, FilePosition, FileRange, InlayKind, MarkupKind};
use tower_lsp::jsonrpc::Result;

use crate::convert::{Lines, Places};
use crate::query::Snapshot;

/// `textDocument/inlayHint`
pub(crate) fn inlay_hints(
    snapshot: &Snapshot,
    file: FileId,
    params: &InlayHintParams,
) -> Cancellable<Result<Option<Vec<InlayHint>>>> {
    let mut places = Places::new(snapshot);
    let lines = Lines::new(snapshot, file)?;
    let range = lines.text_range(params.range);
    let mut out = Vec::new();
    for hint in snapshot.analysis.inlay_hints(FileRange { file, range })? {
        let location = match &hint.target {
            Some(target) => places.location(FileRange {
                file: target.file,
                range: target.focus_range,
            })?,
            None => None,
        };
        out.push(InlayHint {
            position: lines.position(hint.offset),
            label: InlayHintLabel::LabelParts(vec![InlayHintLabelPart {
                value: hint.label,
                location,
                ..InlayHintLabelPart::default()
            }]),
            kind: match hint.kind {
                InlayKind::Session => Some(InlayHintKind::TYPE),
                InlayKind::Parameter => Some(InlayHintKind::PARAMETER),
                InlayKind::LoopLimit => None,
            },
            text_edits: None,
            tooltip: None,
            padding_left: None,
            padding_right: (hint.kind == InlayKind::Parameter).then_some(true),
            data: None,
        });
    }
    Ok(Ok(Some(out)))
}

/// `textDocument/signatureHelp`
pub(crate) fn signature_help(
    snapshot: &Snapshot,
    file: FileId,
    params: &SignatureHelpParams,
) -> Cancellable<Result<Option<SignatureHelp>>> {
    let lines = Lines::new(snapshot, file)?;
    let offset = lines.offset(params.text_document_position_params.position);
    let markup = match snapshot.session.signature_markdown {
        true => MarkupKind::Markdown,
        false => MarkupKind::PlainText,
    };
    let Some(found) = snapshot
        .analysis
        .signature_help(FilePosition { file, offset }, markup)?
    else {
        return Ok(Ok(None));
    };
    // A number past the last one is the protocol's way to say that none is written.
    let active = found.active.unwrap_or(found.parameters.len()) as u32;
    let parameters = found
        .parameters
        .iter()
        .map(|range| ParameterInformation {
            label: ParameterLabel::Simple(found.label[*range].to_owned()),
            documentation: None,
        })
        .collect();
    let kind = match markup {
        MarkupKind::Markdown => lsp_types::MarkupKind::Markdown,
        MarkupKind::PlainText => lsp_types::MarkupKind::PlainText,
    };
    let documentation = found
        .documentation
        .map(|value| Documentation::MarkupContent(MarkupContent { kind, value }));
    Ok(Ok(Some(SignatureHelp {
        signatures: vec![SignatureInformation {
            label: found.label,
            documentation,
            parameters: Some(parameters),
            active_parameter: Some(active),
        }],
        active_signature: Some(0),
        active_parameter: Some(active),
    })))
}
