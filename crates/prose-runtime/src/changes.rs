//! How a program differs from what a run was started with.

use std::path::Path;

use prose_model::Bundle;
use similar::TextDiff;

/// The files that differ, and how.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) files: Vec<String>,
    /// A unified diff of all of them.
    pub(crate) diff: String,
}

/// A longer file is no program that a run could have been started with. In bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Compares the bundle's files with those on disk. One that is gone can't be edited any more, and the run has its text.
pub(crate) fn changes(project_root: &Path, bundle: &Bundle) -> Changes {
    use std::io::ErrorKind::{FileTooLarge, InvalidInput};
    let mut changes = Changes::default();
    for file in &bundle.files {
        let bytes = match prose_state::read_at_most(&project_root.join(&file.path), LONGEST) {
            Ok(bytes) => bytes,
            // Something else lies there now, and may have no end, or nobody who writes to it.
            Err(error) if matches!(error.kind(), InvalidInput | FileTooLarge) => {
                changes.diff.push_str(&format!(
                    "--- {0} (as started)\n+++ {0} (now): {error}\n",
                    file.path
                ));
                changes.files.push(file.path.clone());
                continue;
            }
            Err(_) => continue,
        };
        let now = String::from_utf8_lossy(&bytes);
        let now = now.strip_prefix('\u{feff}').unwrap_or(&now);
        let then = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
        if now != then {
            let (before, after) = (
                format!("{} (as started)", file.path),
                format!("{} (now)", file.path),
            );
            let diff = TextDiff::from_lines(then, now);
            let mut unified = diff.unified_diff();
            changes
                .diff
                .push_str(&unified.header(&before, &after).to_string());
            changes.files.push(file.path.clone());
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use prose_model::BundleFile;

    use super::*;

    #[test]
    fn changes_read_as_a_unified_diff() {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| BundleFile {
            path: path.into(),
            text: text.into(),
            digest: "".into(),
        };
        std::fs::write(
            dir.path().join("a.prose"),
            "let x = 1\nsession \"two\"\noutput x = x",
        )
        .unwrap();
        std::fs::write(dir.path().join("same.prose"), "\u{feff}same\n").unwrap();
        let bundle = Bundle {
            version: 1,
            entry: 0,
            programs: vec![],
            files: vec![
                file("a.prose", "let x = 1\nsession \"one\"\noutput x = x\n"),
                file("same.prose", "same\n"),
                file("gone.prose", "gone\n"),
            ],
            digest: "".into(),
        };
        let changes = changes(dir.path(), &bundle);
        assert_eq!(changes.files, ["a.prose"]);
        expect_test::expect![[r#"
            --- a.prose (as started)
            +++ a.prose (now)
            @@ -1,3 +1,3 @@
             let x = 1
            -session "one"
            -output x = x
            +session "two"
            +output x = x
            \ No newline at end of file
        "#]]
        .assert_eq(&changes.diff);
    }
}
