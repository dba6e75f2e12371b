//! Where things are.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::Result;

/// The repository's root.
pub fn root() -> &'static Path {
    // The manifest's folder is `xtask`, whose parent always exists.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Where downloaded tools are kept: `PROSE_CACHE`, else `.cache` in the root. Safe to delete at any time.
pub fn cache() -> Result<PathBuf> {
    let folder = env::var_os("PROSE_CACHE").map_or_else(|| root().join(".cache"), PathBuf::from);
    fs::create_dir_all(&folder).map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    folder
        .canonicalize()
        .map_err(|error| format!("can't read {}: {error}", folder.display()))
}

/// A binary of the workspace, of the profile this task was built with.
pub fn binary(name: &str) -> Result<PathBuf> {
    let here = env::current_exe().map_err(|error| format!("can't tell where this program is: {error}"))?;
    let folder = here.parent().ok_or("this program is in no folder")?;
    Ok(folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

/// The first of `names` on `PATH`.
pub fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    names.iter().find_map(|name| {
        env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    })
}
