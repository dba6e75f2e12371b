//! The disk as the main loop sees it: configuration, texts of files that are not open, and where `use` targets lead.
//!
//! Nothing here goes to the network: a remote target stays unapproved.

use std::path::{Path, PathBuf};

use lsp_types::Url;
use prose_ide::FileContent;
use prose_project::{
    Config, Environment, REGISTRY, Target, Trust, find_root, home, read_program, resolve_use, would_find,
};

use crate::documents::FileKey;
use crate::session::Session;

/// The workspace of a session.
#[derive(Debug, Default, Clone)]
pub(crate) struct Project {
    /// The client's workspace folders, the first is the main one.
    folders: Vec<PathBuf>,
    home: Option<PathBuf>,
    config: Config,
}

impl Project {
    /// The workspace of this client; its configuration is not read yet.
    pub(crate) fn new(session: &Session) -> Project {
        Project {
            folders: session.folders.clone(),
            home: home(),
            config: Config::default(),
        }
    }

    /// Reads the configuration anew. Returns what was wrong with it; one that can't be read leaves the old in force.
    pub(crate) fn reload(&mut self) -> Vec<String> {
        let Some(folder) = self.folders.first() else {
            return Vec::new();
        };
        let root = find_root(folder, folder, self.home.as_deref());
        // Only severities and the registry are used here, so what is trusted makes no difference.
        let loaded = Environment::load(&root)
            .map_err(|e| e.to_string())
            .and_then(|environment| {
                let user = Config::user_file();
                Config::load(&root, Trust::Untrusted, user.as_deref(), &environment)
                    .map_err(|e| e.to_string())
            });
        match loaded {
            Ok(config) => {
                self.config = config;
                Vec::new()
            }
            Err(problem) => vec![problem],
        }
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The workspace folders.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Whether a file of this path is one of the workspace's programs.
    pub(crate) fn has_program(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| would_find(folder, path))
    }

    /// A file's text on disk, or why there is none.
    pub(crate) fn read(&self, key: &FileKey) -> FileContent {
        match key {
            FileKey::Path(path) => match read_program(path) {
                Ok(text) => FileContent::Text(text.into()),
                Err(problem) => {
                    tracing::debug!(%problem, "no text");
                    FileContent::Missing
                }
            },
            FileKey::Other(uri) if matches!(uri.scheme(), "http" | "https") => FileContent::Unapproved,
            FileKey::Other(_) => FileContent::Missing,
        }
    }

    /// The path of a file as shown to a person: relative to its project root where possible, with `/`.
    pub(crate) fn display(&self, key: &FileKey) -> String {
        match key {
            FileKey::Path(path) => self.display_path(path),
            FileKey::Other(uri) => uri.to_string(),
        }
    }

    /// The same for a file on disk.
    pub(crate) fn display_path(&self, path: &Path) -> String {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match real.strip_prefix(self.root(path)) {
            Ok(relative) => relative.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    /// The workspace folder that a file lies in, the innermost; else the main one.
    fn folder_of(&self, path: &Path) -> Option<&Path> {
        let around = self.folders.iter().filter(|folder| path.starts_with(folder));
        let innermost = around.max_by_key(|folder| folder.as_os_str().len());
        innermost.or(self.folders.first()).map(PathBuf::as_path)
    }

    /// The project root of a file.
    pub(crate) fn root(&self, path: &Path) -> PathBuf {
        let folder = path.parent().unwrap_or(path);
        find_root(
            folder,
            self.folder_of(path).unwrap_or(folder),
            self.home.as_deref(),
        )
    }

    /// Where a `use` target of the file leads. `is_open`: whether the client has a file of this path open, which counts
    /// even when it is not saved yet.
    pub(crate) fn resolve(
        &self,
        target: &str,
        from: &FileKey,
        is_open: &dyn Fn(&Path) -> bool,
    ) -> Option<FileKey> {
        let (from, root) = match (from, self.folders.first()) {
            // Links are followed, as the root's are; else the one would not seem to be inside the other.
            (FileKey::Path(path), _) => (
                path.canonicalize().unwrap_or_else(|_| path.clone()),
                self.root(path),
            ),
            (FileKey::Other(_), Some(folder)) => (folder.join("untitled.prose"), folder.clone()),
            (FileKey::Other(_), None) => return None,
        };
        let registry = self.config.imports.registry.as_deref().unwrap_or(REGISTRY);
        match resolve_use(target, &from, &root, registry, &|path| {
            is_open(path) || path.is_file()
        }) {
            Target::Local(path) => Some(FileKey::Path(path)),
            Target::Remote(address) => Url::parse(&address).ok().map(FileKey::Other),
            Target::NotFound => None,
        }
    }
}
