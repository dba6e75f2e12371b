//! Where a project begins.

use std::path::{Path, PathBuf};

/// The project root of a file or folder: the nearest folder, itself or above, that holds `prose.toml` or `.prose`; else
/// the workspace's folder, else the current one (interfaces, "Command line"). The home folder's `.prose` is the user's
/// own state and makes no project of all that lies in it.
pub fn find_root(start: &Path, fallback: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.and_then(|home| home.canonicalize().ok());
    // Links are followed first: `..` of a linked folder is not where it seems.
    let start = start
        .canonicalize()
        .or_else(|_| std::path::absolute(start))
        .unwrap_or_else(|_| start.to_owned());
    let is_root = |folder: &&Path| {
        folder.join("prose.toml").is_file()
            || (folder.join(".prose").is_dir() && home.as_deref() != Some(*folder))
    };
    match start.ancestors().find(is_root) {
        Some(folder) => folder.to_owned(),
        None => fallback.canonicalize().unwrap_or_else(|_| fallback.to_owned()),
    }
}

/// The user's home folder, if there is one.
pub fn home() -> Option<PathBuf> {
    directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned())
}

/// Where what can be made again may be kept for this user, if there is such a place. It need not exist.
pub fn cache() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "prose").map(|dirs| dirs.cache_dir().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_marked_folder_is_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let deep = base.join("home/work/project/flows/daily");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(base.join("home/.prose")).unwrap();
        let program = deep.join("main.prose");
        fs::write(&program, "").unwrap();
        let home = base.join("home");
        let root = |start: &Path| find_root(start, &base.join("home/work"), Some(&home));
        assert_eq!(
            root(&program),
            base.join("home/work"),
            "not the home folder, though it has a .prose"
        );
        fs::create_dir(base.join("home/work/project/.prose")).unwrap();
        assert_eq!(root(&program), base.join("home/work/project"));
        fs::write(base.join("home/work/project/flows/prose.toml"), "").unwrap();
        assert_eq!(root(&program), base.join("home/work/project/flows"));
        assert_eq!(root(&deep), base.join("home/work/project/flows"));
        fs::write(base.join("home/prose.toml"), "").unwrap();
        assert_eq!(
            root(&base.join("home/other.prose")),
            home,
            "the file need not be there"
        );
    }
}
