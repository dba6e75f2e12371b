use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_types::{RenameFilesParams, Url, WorkspaceEdit};
use prose_ide::{Cancellable, FileId};
use tower_lsp::jsonrpc::Result;

use super::rename::workspace_edit;
use crate::query::Snapshot;

/// `workspace/willRenameFiles`: files and folders are about to move, and paths in `use` follow them.
pub(crate) fn will_rename_files(
    snapshot: &Snapshot,
    params: &RenameFilesParams,
) -> Cancellable<Result<Option<WorkspaceEdit>>> {
    let moved: Vec<(PathBuf, PathBuf)> = params
        .files
        .iter()
        .filter_map(|it| Some((path(&it.old_uri)?, path(&it.new_uri)?)))
        .collect();
    let place = |file: FileId| snapshot.documents.key(file)?.path().map(Path::to_owned);
    let mut moves = BTreeMap::new();
    for file in snapshot.analysis.files() {
        let Some(old) = place(file) else { continue };
        // Of a folder and a file in it that both move, the file's own move counts.
        let new = moved
            .iter()
            .filter_map(|(from, to)| Some((from, to, old.strip_prefix(from).ok()?)))
            .max_by_key(|(from, ..)| from.components().count());
        if let Some((_, to, rest)) = new {
            let new = match rest.as_os_str().is_empty() {
                true => to.clone(),
                false => to.join(rest),
            };
            moves.insert(file, slashed(&new));
        }
    }
    if moves.is_empty() {
        return Ok(Ok(None));
    }
    let place = |file: FileId| place(file).map(|path| slashed(&path));
    let change = snapshot.analysis.move_files(&place, &moves)?;
    if change.edits.is_empty() {
        return Ok(Ok(None));
    }
    Ok(Ok(Some(workspace_edit(snapshot, change)?)))
}

fn path(uri: &str) -> Option<PathBuf> {
    let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
    uri.to_file_path().ok()
}

/// With `/` between its parts, as `use` has it.
fn slashed(path: &Path) -> String {
    let path = path.to_string_lossy();
    match cfg!(windows) {
        true => path.replace('\\', "/"),
        false => path.into_owned(),
    }
}
