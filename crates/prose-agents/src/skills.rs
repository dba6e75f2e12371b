//! Skills that the workspace has: folders with a `SKILL.md`, as agents keep them.
//!
//! A session is told where the files of its skills are, and may read them whatever its permissions. Nothing of them is carried
//! out by itself, and what a skill says about permissions grants none.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Where skills are looked for, in this order, from the workspace's root.
const FOLDERS: &[&str] = &[".claude/skills", ".agents/skills", "skills"];
/// The file of a skill.
const FILE: &str = "SKILL.md";
/// So much of it is looked at for what it is for, in bytes.
const HEAD: u64 = 16 * 1024;

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// As the program names it.
    pub name: String,
    /// One line about what it is for; empty where its file does not say.
    pub purpose: String,
    /// Its file.
    pub path: PathBuf,
}

/// Those of these skills that the workspace has.
pub fn find(workspace: &Path, names: &[String]) -> Vec<Skill> {
    names
        .iter()
        .filter_map(|name| find_one(workspace, name))
        .collect()
}

fn find_one(workspace: &Path, name: &str) -> Option<Skill> {
    let folder = Path::new(name.trim().trim_start_matches('@'));
    let plain = folder
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || folder.as_os_str().is_empty() {
        return None;
    }
    let root = workspace.canonicalize().ok()?;
    let path = FOLDERS
        .iter()
        .map(|place| root.join(place).join(folder).join(FILE))
        // A link must not lead out of the workspace.
        .find(|path| path.is_file() && path.canonicalize().is_ok_and(|real| real == **path))?;
    let mut head = Vec::new();
    std::fs::File::open(&path)
        .ok()?
        .take(HEAD)
        .read_to_end(&mut head)
        .ok()?;
    Some(Skill {
        name: name.to_owned(),
        purpose: purpose(&String::from_utf8_lossy(&head)),
        path,
    })
}

/// What the head of a skill's file gives as its description.
fn purpose(text: &str) -> String {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if lines.next().is_none_or(|first| first.trim_end() != "---") {
        return String::new();
    }
    let head = lines.take_while(|line| line.trim_end() != "---");
    let found = head.filter_map(|line| line.strip_prefix("description:")).next();
    let found = found.unwrap_or_default().trim().trim_matches(['"', '\'']);
    // A text that begins on the next line is read in the file.
    match found {
        "|" | ">" | "|-" | ">-" => String::new(),
        found => crate::policy::shown(found, 300),
    }
}
