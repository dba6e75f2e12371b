//! Places that no permission grants: what governs the sessions themselves, and what other programs would run.

use std::path::{Component, Path};

/// Why a place can't be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Protection {
    /// Why it can't be read.
    pub(super) unreadable: Option<&'static str>,
    /// Why it can't be written.
    pub(super) unwritable: Option<&'static str>,
}

/// Files and folders, wherever they are in a path: a folder below the workspace can be opened as one of its own.
const UNWRITABLE: &[(&str, &str)] = &[
    (".prose", "the runs, keys and approvals of this workspace"),
    ("prose.toml", "the configuration of this workspace"),
    ("prose.lock", "the lock file of this workspace"),
    (".vscode", "settings of an editor"),
    (".zed", "settings of an editor"),
    (".helix", "settings of an editor"),
    (".idea", "settings of an editor"),
    (".nvim.lua", "settings of an editor"),
    (".nvimrc", "settings of an editor"),
    (".exrc", "settings of an editor"),
    (".dir-locals.el", "settings of an editor"),
    (".dir-locals-2.el", "settings of an editor"),
    (".vimrc", "settings of an editor"),
    (".devcontainer", "what a container for development runs"),
    (".devcontainer.json", "what a container for development runs"),
    (".envrc", "what a shell runs in this folder"),
    (".husky", "what Git is told by and runs"),
    (".claude", "settings of an agent"),
    (".mcp.json", "settings of an agent"),
    (".cursor", "settings of an agent"),
    (".codex", "settings of an agent"),
    (".gemini", "settings of an agent"),
    (".opencode", "settings of an agent"),
    ("opencode.json", "settings of an agent"),
];

/// The same by the ends of their names.
const UNWRITABLE_ENDINGS: &[(&str, &str)] = &[(".code-workspace", "settings of an editor")];

/// What Git runs or is told by, below `.git`; in `.git/modules/NAME` and `.git/worktrees/NAME`, too.
const GIT: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info",
];

/// The files among these, from the workspace's root, to be looked after while something runs that can't be held back.
pub(crate) const WATCHED: &[&str] = &[
    "prose.toml",
    "prose.lock",
    ".prose/.env",
    ".vscode",
    ".zed",
    ".helix",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".vimrc",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".husky",
    ".claude",
    ".mcp.json",
    ".cursor",
    ".codex",
    ".gemini",
    ".opencode",
    "opencode.json",
    ".git/config",
    ".git/hooks",
];

/// And those in the workspace's root whose names end so.
pub(crate) const WATCHED_ENDINGS: &[&str] = &[".code-workspace"];

impl Protection {
    /// Looks at a path from the workspace's root, without links in it.
    pub(super) fn of(path: &Path) -> Protection {
        let parts: Vec<String> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(folded(&name.to_string_lossy())),
                _ => None,
            })
            .collect();
        let mut protection = Protection::default();
        for (at, part) in parts.iter().enumerate() {
            let next = parts.get(at + 1).map(String::as_str);
            let ends = |(end, _): &&(&str, &str)| part.ends_with(end);
            let known = UNWRITABLE.iter().find(|(name, _)| name == part);
            if let Some((_, why)) = known.or_else(|| UNWRITABLE_ENDINGS.iter().find(ends)) {
                protection.unwritable = Some(why);
            }
            if part == ".prose" && next.is_some_and(|next| next == ".env" || next.starts_with(".env.")) {
                protection.unreadable = Some("the keys of this workspace");
            }
            if part == ".git" {
                // The folder itself, and a file in its place, which says where it is.
                let governs =
                    next.is_none() || parts[at + 1..].iter().any(|part| GIT.contains(&part.as_str()));
                if governs {
                    protection.unwritable = Some("what Git is told by and runs");
                }
            }
        }
        protection
    }
}

/// A name as file systems that don't tell apart upper and lower case, or drop what is at a name's end, would find it.
fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or(name);
    name.trim_end_matches(['.', ' ']).to_lowercase()
}
