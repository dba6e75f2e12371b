//! Looking after protected places while something runs that can't be held back.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::policy::{is_watched_by_ending, watched};

/// Most entries that are looked at in one place.
const ENTRIES: usize = 5_000;
/// Most bytes of one place whose content is looked at; of what is beyond, size and time are.
const BYTES: u64 = 32 * 1024 * 1024;

/// The protected places of a workspace as they are, by name.
pub(super) type Fingerprints = BTreeMap<String, Vec<u8>>;

/// Looks at them, away from the threads that must not wait for a disk.
pub(super) async fn fingerprints(root: &Path) -> Fingerprints {
    let root = root.to_owned();
    let look = tokio::task::spawn_blocking(move || look(&root));
    // It fails only when the process ends.
    look.await.unwrap_or_default()
}

/// Which of them differ, or are new or gone.
pub(super) fn changed(before: &Fingerprints, after: &Fingerprints) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    names.into_iter().filter(differs).cloned().collect()
}

fn look(root: &Path) -> Fingerprints {
    let named = std::fs::read_dir(root).into_iter().flatten().flatten();
    let named = named.filter_map(|entry| entry.file_name().into_string().ok());
    let named = named.filter(|name| is_watched_by_ending(name));
    watched()
        .map(str::to_owned)
        .chain(named)
        .map(|name| {
            let print = fingerprint(&root.join(&name));
            (name, print)
        })
        .collect()
}

/// What is there: kinds, names and contents, all the way down. No link is followed.
fn fingerprint(path: &Path) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    let (mut entries, mut bytes) = (0, 0);
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(meta) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        add(path.as_os_str().as_encoded_bytes());
        add(format!("{:?}", meta.permissions()).as_bytes());
        entries += 1;
        if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap_or_default();
            add(target.as_os_str().as_encoded_bytes());
        } else if meta.is_dir() && entries < ENTRIES {
            let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).take(ENTRIES).collect();
            inside.sort();
            left.extend(inside.into_iter().rev());
        } else if meta.is_file() && bytes + meta.len() <= BYTES {
            bytes += meta.len();
            let mut content = Vec::new();
            // One that grows meanwhile is read no further.
            let read = std::fs::File::open(&path).and_then(|file| file.take(BYTES).read_to_end(&mut content));
            add(read.map_or(b"unreadable", |_| content.as_slice()));
        } else {
            add(format!("{} {:?}", meta.len(), meta.modified().ok()).as_bytes());
        }
    }
    hash.finalize().to_vec()
}
