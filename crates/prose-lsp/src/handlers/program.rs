use std::path::PathBuf;
use std::sync::Arc;

use prose_ide::{Bundle, Cancellable, Diagnostic, FileId, Severity};
use tower_lsp::jsonrpc::Result;

use crate::convert::Places;
use crate::query::Snapshot;
use crate::runs::refused;

/// A program that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Runnable {
    /// Lowered from the open text.
    pub(crate) bundle: Arc<Bundle>,
    /// Its path, if it has one.
    pub(crate) path: Option<PathBuf>,
    /// What to call it.
    pub(crate) name: String,
}

/// The program of a document, for `prose.run`. Refused when the text isn't the version that the person saw, or can't
/// be run.
pub(crate) fn program(
    snapshot: &Snapshot,
    file: FileId,
    version: Option<i32>,
) -> Cancellable<Result<Runnable>> {
    let document = snapshot.documents.version(file);
    if let (Some(seen), Some((_, now))) = (version, &document)
        && *now != seen
    {
        return Ok(Err(refused(format!(
            "the program has changed: version {seen} was to be run, it is at {now} now"
        ))));
    }
    let key = snapshot.documents.key(file);
    let path = key.as_ref().and_then(|key| key.path()).map(PathBuf::from);
    let uri = snapshot.documents.uri(file);
    let name = uri
        .as_ref()
        .and_then(|uri| uri.path().rsplit('/').next())
        .map(|name| {
            percent_encoding::percent_decode_str(name)
                .decode_utf8_lossy()
                .into_owned()
        })
        .unwrap_or_default();
    let bundle = match snapshot.analysis.bundle(file)? {
        Ok(bundle) => bundle,
        Err(problems) => return Ok(Err(refused(explain(snapshot, &name, &problems)?))),
    };
    Ok(Ok(Runnable { bundle, path, name }))
}

/// Why a program can't be run: the first errors, with their places.
fn explain(snapshot: &Snapshot, name: &str, problems: &[Diagnostic]) -> Cancellable<String> {
    const SHOWN: usize = 3;
    let errors: Vec<_> = problems
        .iter()
        .filter(|p| p.severity == Severity::Error)
        .collect();
    let mut places = Places::new(snapshot);
    let mut lines = vec![format!("{name} can't be run:")];
    for error in errors.iter().take(SHOWN) {
        let line = places.lines(error.file)?.range(error.range).start.line + 1;
        let path = snapshot.analysis.file_path(error.file)?.unwrap_or_default();
        lines.push(format!("{path}:{line}: {} {}", error.code, error.message));
    }
    if errors.len() > SHOWN {
        lines.push(format!("and {} more", errors.len() - SHOWN));
    }
    Ok(lines.join("\n"))
}
