use std::time::Duration;

use lsp_types::request::RegisterCapability;
use lsp_types::{
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, Registration,
    RegistrationParams,
};

use crate::outbox::Outbox;

/// How long a client may take to register.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks the client to tell when program files and configuration change on disk.
pub(crate) async fn watch_files(outbox: Outbox) {
    let watch = |glob: &str| FileSystemWatcher {
        glob_pattern: GlobPattern::String(glob.to_owned()),
        kind: None,
    };
    let watchers = vec![watch("**/*.prose"), watch("**/prose.toml")];
    let options = DidChangeWatchedFilesRegistrationOptions { watchers };
    let registration = Registration {
        id: "prose-files".to_owned(),
        method: "workspace/didChangeWatchedFiles".to_owned(),
        register_options: serde_json::to_value(options).ok(),
    };
    let params = RegistrationParams {
        registrations: vec![registration],
    };
    if let Err(error) = outbox.ask::<RegisterCapability>(params, PATIENCE).await {
        tracing::info!(%error, "files on disk are not watched");
    }
}
