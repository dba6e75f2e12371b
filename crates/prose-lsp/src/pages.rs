//! The pages about codes as files: what the link of a diagnostic leads to.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use lsp_types::Url;
use prose_model::codes::CODES;

/// The folder with a page `CODE.md` for each code, below a folder that is ours. The pages are written when they are not
/// there yet; other pages get another folder.
///
/// # Errors
/// Whatever keeps them from being written. Diagnostics have no links then.
pub(crate) fn folder(below: &Path) -> std::io::Result<Url> {
    let mut hasher = DefaultHasher::new();
    for info in CODES {
        (info.code, info.page).hash(&mut hasher);
    }
    let folder = below.join(format!("codes-{:016x}", hasher.finish()));
    if !folder.is_dir() {
        write(below, &folder)?;
    }
    Url::from_directory_path(&folder)
        .map_err(|()| std::io::Error::other(format!("{} is no absolute path", folder.display())))
}

/// Writes all pages. Whoever finds the folder finds all of them in it, so that it gets its name when it is complete.
fn write(below: &Path, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(below)?;
    let draft: PathBuf = below.join(format!("codes-{}.draft", std::process::id()));
    let written = std::fs::create_dir(&draft)
        .and_then(|()| {
            CODES
                .iter()
                .try_for_each(|info| std::fs::write(draft.join(format!("{}.md", info.code)), info.page))
        })
        .and_then(|()| std::fs::rename(&draft, folder));
    // Another server may have been faster.
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&draft);
    }
    match written {
        Err(_) if folder.is_dir() => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page_and_they_are_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("cache");
        let url = folder(&below).unwrap();
        let path = url.join("E007.md").unwrap().to_file_path().unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(page, prose_model::codes::find("E007").unwrap().page);
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            CODES.len()
        );
        std::fs::write(&path, "kept").unwrap();
        assert_eq!(folder(&below).unwrap(), url);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&below).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn where_nothing_can_be_written_there_are_no_pages() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        folder(&file).unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
