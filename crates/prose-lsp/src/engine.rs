//! Stand-in for the analysis engine while its crate is being written: it echoes texts.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Cancelled;
pub(crate) type Cancellable<T> = Result<T, Cancelled>;

#[derive(Debug, Default)]
pub(crate) struct AnalysisHost {
    files: Arc<BTreeMap<FileId, Arc<str>>>,
}

impl AnalysisHost {
    pub(crate) fn set_file(&mut self, file: FileId, text: Option<Arc<str>>) {
        let files = Arc::make_mut(&mut self.files);
        match text {
            Some(text) => files.insert(file, text),
            None => files.remove(&file),
        };
    }
    pub(crate) fn analysis(&self) -> Analysis {
        Analysis { files: Arc::clone(&self.files) }
    }
}

#[derive(Debug)]
pub(crate) struct Analysis {
    files: Arc<BTreeMap<FileId, Arc<str>>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Diagnostic {
    pub(crate) range: std::ops::Range<usize>,
    pub(crate) message: String,
}

impl Analysis {
    pub(crate) fn file_text(&self, file: FileId) -> Cancellable<Arc<str>> {
        Ok(self.files.get(&file).cloned().unwrap_or_default())
    }
    pub(crate) fn diagnostics(&self, file: FileId) -> Cancellable<Vec<Diagnostic>> {
        let text = self.file_text(file)?;
        Ok(text
            .match_indices("error")
            .map(|(i, s)| Diagnostic { range: i..i + s.len(), message: "an error".into() })
            .collect())
    }
}

impl Analysis {
    pub(crate) fn bundle(&self, file: FileId) -> Cancellable<Result<Arc<prose_model::Bundle>, Vec<String>>> {
        let text = self.file_text(file)?;
        let errors: Vec<String> = self.diagnostics(file)?.into_iter().map(|d| d.message).collect();
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        let digest = prose_model::Digest::from("0");
        Ok(Ok(Arc::new(prose_model::Bundle {
            version: prose_model::BUNDLE_VERSION,
            entry: 0,
            programs: Vec::new(),
            files: vec![prose_model::BundleFile { path: "a.prose".into(), text, digest: digest.clone() }],
            digest,
        })))
    }
}
