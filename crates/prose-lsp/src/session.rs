//! What `initialize` settled: facts about this client that hold for the whole session.

use std::path::PathBuf;

use lsp_types::{InitializeParams, MarkupKind, Url};
use serde::Deserialize;
use serde_json::Value;

use crate::positions::Encoding;
use crate::settings::Settings;

/// `capabilities.experimental.prose`: what the client can be sent beyond the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Extensions {
    /// Wants `prose/runEvent`.
    pub(crate) run_event: bool,
    /// Answers `prose/input`.
    pub(crate) input: bool,
    /// Answers `prose/approveImports`.
    pub(crate) approve_imports: bool,
}

/// The facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Session {
    pub(crate) encoding: Encoding,
    /// Whether the person trusts this workspace. Nothing but `simulate` runs without it.
    pub(crate) trusted: bool,
    pub(crate) extensions: Extensions,
    /// Workspace folders on disk, the first is the main one.
    pub(crate) folders: Vec<PathBuf>,
    /// Completion items may be snippets.
    pub(crate) snippets: bool,
    /// Hovers may be Markdown.
    pub(crate) markdown: bool,
    /// Documentation of proposals may be Markdown.
    pub(crate) completion_markdown: bool,
    /// Definitions may be links.
    pub(crate) definition_links: bool,
    /// `window/workDoneProgress/create` may be sent.
    pub(crate) work_done_progress: bool,
    /// Document symbols may be a tree.
    pub(crate) symbol_tree: bool,
    /// Code actions may be literals rather than commands.
    pub(crate) action_literals: bool,
    /// `DiagnosticRelatedInformation` is shown.
    pub(crate) related_information: bool,
    /// The client shows where a code is described.
    pub(crate) code_descriptions: bool,
    /// The folder with the pages about codes, if they can be had.
    pub(crate) code_pages: Option<Url>,
    /// Diagnostics may be tagged.
    pub(crate) diagnostic_tags: bool,
    /// The client asks for diagnostics; it is not told of them on our own account.
    pub(crate) pulls_diagnostics: bool,
    /// Such a client can be told to ask again.
    pub(crate) refreshes_diagnostics: bool,
    /// Folds are whole lines, whatever columns are sent.
    pub(crate) folds_whole_lines: bool,
    /// The client takes no more folds than these.
    pub(crate) fold_limit: Option<u32>,
    /// Edits may name the version of the document that they are for.
    pub(crate) document_changes: bool,
    /// Documentation of signatures may be Markdown.
    pub(crate) signature_markdown: bool,
    /// `workspace/didChangeWatchedFiles` can be registered.
    pub(crate) watches_files: bool,
    /// `workspace/configuration` can be asked.
    pub(crate) configuration: bool,
}

impl Session {
    /// Reads `initialize`: the facts, and the settings that the session begins with. Malformed
    /// `initializationOptions` count as absent; the third part says what was wrong with them.
    pub(crate) fn new(params: &InitializeParams) -> (Session, Settings, Option<String>) {
        let capabilities = &params.capabilities;
        let text = capabilities.text_document.as_ref();
        let window = capabilities.window.as_ref();
        let workspace = capabilities.workspace.as_ref();
        let completion = text
            .and_then(|t| t.completion.as_ref())
            .and_then(|c| c.completion_item.as_ref());
        let hover = text.and_then(|t| t.hover.as_ref());
        let publish = text.and_then(|t| t.publish_diagnostics.as_ref());
        let folding = text.and_then(|t| t.folding_range.as_ref());
        let offered = capabilities
            .general
            .as_ref()
            .and_then(|g| g.position_encodings.as_deref());
        let markdown =
            |formats: Option<&Vec<MarkupKind>>| formats.is_some_and(|f| f.contains(&MarkupKind::Markdown));
        let options = params.initialization_options.as_ref().unwrap_or(&Value::Null);
        let (trusted, settings, problem) = match Options::read(options) {
            Ok((trusted, settings)) => (trusted, settings, None),
            Err(e) => (
                false,
                Settings::default(),
                Some(format!("initializationOptions: {e}")),
            ),
        };
        let session = Session {
            encoding: Encoding::negotiate(offered),
            trusted,
            extensions: extensions(capabilities.experimental.as_ref()),
            folders: folders(params),
            snippets: completion.and_then(|c| c.snippet_support) == Some(true),
            markdown: markdown(hover.and_then(|h| h.content_format.as_ref())),
            completion_markdown: markdown(completion.and_then(|c| c.documentation_format.as_ref())),
            work_done_progress: window.and_then(|w| w.work_done_progress) == Some(true),
            symbol_tree: text
                .and_then(|t| t.document_symbol.as_ref())
                .and_then(|s| s.hierarchical_document_symbol_support)
                == Some(true),
            action_literals: text
                .and_then(|t| t.code_action.as_ref())
                .is_some_and(|a| a.code_action_literal_support.is_some()),
            related_information: publish.and_then(|p| p.related_information) == Some(true),
            code_descriptions: publish.and_then(|p| p.code_description_support) == Some(true),
            code_pages: None,
            diagnostic_tags: publish.is_some_and(|p| p.tag_support.is_some()),
            pulls_diagnostics: text.is_some_and(|t| t.diagnostic.is_some()),
            refreshes_diagnostics: workspace
                .and_then(|w| w.diagnostic.as_ref())
                .and_then(|d| d.refresh_support)
                == Some(true),
            definition_links: text
                .and_then(|t| t.definition.as_ref())
                .and_then(|d| d.link_support)
                == Some(true),
            folds_whole_lines: folding.and_then(|f| f.line_folding_only) == Some(true),
            fold_limit: folding.and_then(|f| f.range_limit),
            document_changes: workspace
                .and_then(|w| w.workspace_edit.as_ref())
                .and_then(|e| e.document_changes)
                == Some(true),
            signature_markdown: markdown(
                text.and_then(|t| t.signature_help.as_ref())
                    .and_then(|s| s.signature_information.as_ref())
                    .and_then(|s| s.documentation_format.as_ref()),
            ),
            watches_files: workspace
                .and_then(|w| w.did_change_watched_files.as_ref())
                .and_then(|d| d.dynamic_registration)
                == Some(true),
            configuration: workspace.and_then(|w| w.configuration) == Some(true),
        };
        (session, settings, problem)
    }
}

/// `initializationOptions`: [`Settings`] and trust.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    trusted: bool,
}

impl Options {
    fn read(value: &Value) -> Result<(bool, Settings), String> {
        let Some(settings) = Settings::read(value)? else {
            return Ok((false, Settings::default()));
        };
        let options = Options::deserialize(value).map_err(|e| format!("settings ignored: {e}"))?;
        Ok((options.trusted, settings))
    }
}

fn extensions(experimental: Option<&Value>) -> Extensions {
    let prose = experimental.and_then(|e| e.get("prose"));
    let on = |name: &str| prose.and_then(|p| p.get(name)) == Some(&Value::Bool(true));
    Extensions {
        run_event: on("runEvent"),
        input: on("input"),
        approve_imports: on("approveImports"),
    }
}

#[allow(deprecated)] // `rootUri` is what clients without folders send.
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let listed = params.workspace_folders.iter().flatten().map(|f| &f.uri);
    let on_disk = |uri: &Url| {
        if uri.scheme() == "file" {
            uri.to_file_path().ok()
        } else {
            None
        }
    };
    let mut folders: Vec<PathBuf> = listed.filter_map(on_disk).collect();
    if folders.is_empty() {
        folders.extend(params.root_uri.as_ref().and_then(on_disk));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(params: Value) -> (Session, Settings, Option<String>) {
        Session::new(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn a_bare_client_gets_the_cautious_defaults() {
        let defaults = (Session::default(), Settings::default(), None);
        assert_eq!(session(json!({ "capabilities": {} })), defaults);
        assert_eq!(
            session(json!({ "capabilities": {}, "initializationOptions": null })),
            defaults
        );
        assert!(!defaults.0.trusted);
    }

    #[test]
    fn options_and_extensions_are_read() {
        let (session, settings, problem) = session(json!({
            "capabilities": { "experimental": { "prose": { "runEvent": true, "input": 1 } } },
            "initializationOptions": { "trusted": true, "backend": "claude", "maxParallel": 3, "new": {} },
            "workspaceFolders": [{ "uri": "file:///w", "name": "w" }, { "uri": "vscode-vfs:/x", "name": "x" }],
        }));
        assert_eq!(problem, None);
        assert!(session.trusted);
        assert_eq!(settings.max_parallel, Some(3));
        assert_eq!(
            session.extensions,
            Extensions {
                run_event: true,
                ..Extensions::default()
            }
        );
        assert_eq!(session.folders, [PathBuf::from("/w")]);
    }

    #[test]
    fn malformed_options_never_grant_trust() {
        for options in [
            json!({ "trusted": true, "maxParallel": "many" }),
            json!({ "trusted": 1 }),
            json!([true]),
        ] {
            let (session, settings, problem) =
                session(json!({ "capabilities": {}, "initializationOptions": options }));
            assert!(!session.trusted);
            assert_eq!(settings, Settings::default());
            assert!(problem.is_some());
        }
    }
}
