//! The table of places that no permission grants. The agents crate keeps to it; hover, `--dry-run` and the documentation
//! say it in words.

use std::fmt::Write as _;

use ProtectedKind::{Agent, Container, Editor, Git, Shell, Workspace};

/// A place that no permission lets a session write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedPlace {
    /// A file or folder, wherever it is in a path, in small letters.
    pub name: &'static str,
    /// Whether `name` is only the end of the place's name.
    pub is_ending: bool,
    /// What it is.
    pub kind: ProtectedKind,
}

/// What a protected place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedKind {
    /// A place of the workspace itself, and what it holds.
    Workspace(&'static str),
    /// An editor reads it.
    Editor,
    /// An agent reads it.
    Agent,
    /// A container for development runs it.
    Container,
    /// A shell runs it.
    Shell,
    /// Git runs it, or is told by it.
    Git,
}

impl ProtectedKind {
    /// What such a place holds, for a message about one.
    pub fn why(self) -> &'static str {
        match self {
            ProtectedKind::Workspace(what) => what,
            ProtectedKind::Editor => "settings of an editor",
            ProtectedKind::Agent => "settings of an agent",
            ProtectedKind::Container => "what a container for development runs",
            ProtectedKind::Shell => "what a shell runs in this folder",
            ProtectedKind::Git => "what Git is told by and runs",
        }
    }
}

const fn place(name: &'static str, kind: ProtectedKind) -> ProtectedPlace {
    ProtectedPlace {
        name,
        is_ending: false,
        kind,
    }
}

/// The folder of runs, keys and approvals. It is too large, and changes too much, to be looked after as a whole.
pub const OWN_FOLDER: &str = ".prose";

/// The file in [`OWN_FOLDER`] that can't be read either; and those that are called so with another ending.
pub const KEYS_FILE: &str = ".env";

/// Places wherever they are in a path: a folder below the workspace can be opened as one of its own.
pub static PLACES: &[ProtectedPlace] = &[
    place(
        OWN_FOLDER,
        Workspace("the runs, keys and approvals of this workspace"),
    ),
    place("prose.toml", Workspace("the configuration of this workspace")),
    place("prose.lock", Workspace("the lock file of this workspace")),
    place(".vscode", Editor),
    place(".zed", Editor),
    place(".helix", Editor),
    place(".idea", Editor),
    place(".nvim.lua", Editor),
    place(".nvimrc", Editor),
    place(".exrc", Editor),
    place(".dir-locals.el", Editor),
    place(".dir-locals-2.el", Editor),
    place(".vimrc", Editor),
    ProtectedPlace {
        name: ".code-workspace",
        is_ending: true,
        kind: Editor,
    },
    place(".claude", Agent),
    place(".mcp.json", Agent),
    place(".cursor", Agent),
    place(".codex", Agent),
    place(".gemini", Agent),
    place(".opencode", Agent),
    place("opencode.json", Agent),
    place(".devcontainer", Container),
    place(".devcontainer.json", Container),
    place(".envrc", Shell),
    place(".husky", Git),
];

/// What Git runs or is told by, anywhere below `.git`: in `.git/modules/NAME` and `.git/worktrees/NAME`, too.
pub static GIT_PLACES: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info",
];

/// What no permission grants, as the end of the sentence `Never: ….`
pub fn never() -> String {
    let mut text = "files outside of the workspace, the keys in `.prose/.env`, and writing to ".to_owned();
    for place in PLACES {
        if let Workspace(_) = place.kind {
            let slash = if place.name == OWN_FOLDER { "/" } else { "" };
            // Writing to a string doesn't fail.
            let _ = write!(text, "`{}{slash}`, ", place.name);
        }
    }
    text.push_str("settings of editors and agents, and what Git, shells and containers are told by and run");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_name_every_place_of_the_workspace() {
        assert_eq!(
            never(),
            "files outside of the workspace, the keys in `.prose/.env`, and writing to `.prose/`, `prose.toml`, \
             `prose.lock`, settings of editors and agents, and what Git, shells and containers are told by and run"
        );
    }

    #[test]
    fn names_are_as_they_are_compared() {
        for place in PLACES {
            assert_eq!(place.name, place.name.to_lowercase());
        }
    }

    #[test]
    fn the_page_about_permissions_names_every_place() {
        let page = include_str!("../../../docs/permissions.md");
        for place in PLACES {
            let star = if place.is_ending { "*" } else { "" };
            let slash = if place.name == OWN_FOLDER { "/" } else { "" };
            let name = format!("`{star}{}{slash}`", place.name);
            assert!(page.contains(&name), "{name} is missing");
        }
    }
}
