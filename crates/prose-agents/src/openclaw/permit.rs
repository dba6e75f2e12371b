//! What a session may do, as a gateway can be told: the mode it runs in, what it asks before it does it, and what its tools
//! did without asking.

use std::path::PathBuf;

use prose_model::{PermissionRule, PermissionValue};
use serde_json::Value as Json;

use crate::Redactor;
use crate::claude::permit::host_of;
use crate::policy::{Access, Gate};

/// Under which names tools are given a file or folder.
const PATH_KEYS: [&str; 4] = ["path", "file_path", "filePath", "file"];
/// Who is talked to by a tool that looks in the web without naming an address.
const WEB_SEARCH: &str = "web-search";

/// How far the gateway lets a session go by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Files of the session's folder are read and written; commands are asked for.
    Guarded,
    /// Files are read; nothing is written and no command is run.
    ReadOnly,
}

impl Mode {
    /// The protocol's word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Mode::Guarded => "guarded",
            Mode::ReadOnly => "read-only",
        }
    }

    /// The mode that lets nothing happen unasked that the rules do not grant.
    pub(super) fn of(rules: &[PermissionRule]) -> Mode {
        // Of two the later counts, as where the rules are merged.
        let write = rules.iter().rev().find(|rule| rule.key == "write");
        match write.map(|rule| &rule.rule) {
            None | Some(PermissionValue::Allow | PermissionValue::Patterns(_)) => Mode::Guarded,
            Some(PermissionValue::Deny | PermissionValue::Prompt) => Mode::ReadOnly,
        }
    }
}

/// What a tool does, as far as permissions speak of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Want {
    Read(PathBuf),
    Write(PathBuf),
    Network(String, u16),
}

impl Want {
    /// What a tool does by its name and what it is given.
    pub(super) fn of(tool: &str, args: &Json) -> Vec<Want> {
        let text = |key: &str| args[key].as_str().filter(|text| !text.is_empty());
        let path = || PATH_KEYS.iter().find_map(|key| text(key)).map(PathBuf::from);
        match tool {
            "read" | "ls" | "find" | "grep" => path().map(Want::Read).into_iter().collect(),
            "write" | "edit" => path().map(Want::Write).into_iter().collect(),
            "apply_patch" => {
                let patch = text("input").or_else(|| text("patch")).unwrap_or_default();
                patched(patch).map(Want::Write).collect()
            }
            "web_fetch" => {
                let host = text("url").and_then(host_of);
                let (host, port) = host.unwrap_or((WEB_SEARCH.to_owned(), 443));
                vec![Want::Network(host, port)]
            }
            "web_search" | "x_search" => vec![Want::Network(WEB_SEARCH.to_owned(), 443)],
            _ => Vec::new(),
        }
    }

    fn access(&self) -> Access<'_> {
        match self {
            Want::Read(path) => Access::Read(path),
            Want::Write(path) => Access::Write(path),
            Want::Network(host, port) => Access::Network { host, port: *port },
        }
    }
}

/// The files that a patch is about.
fn patched(patch: &str) -> impl Iterator<Item = PathBuf> {
    let heads = [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    patch
        .lines()
        .filter_map(move |line| heads.iter().find_map(|head| line.strip_prefix(head)))
        .map(|path| PathBuf::from(path.trim()))
}

/// Whether a tool may do what it does; the text says why not.
pub(super) async fn pass(gate: &Gate, tool: &str, wants: &[Want]) -> Result<(), String> {
    for want in wants {
        gate.pass(tool, want.access())
            .await
            .map_err(|why| why.to_string())?;
    }
    Ok(())
}

/// Whether a command that the gateway asks for may be run; the text says why not. Without a gate nothing may.
pub(super) async fn command(gate: Option<&Gate>, request: &Json) -> Result<(), String> {
    let gate = gate.ok_or("this session has no tools")?;
    let command = request["command"]
        .as_str()
        .filter(|command| !command.trim().is_empty());
    let command = command.ok_or("it is not said what is to be run")?;
    let access = Access::Bash(command);
    gate.pass("exec", access).await.map_err(|why| why.to_string())
}

/// The same for what a plugin asks for, which no permission speaks of.
pub(super) async fn plugin(gate: Option<&Gate>, request: &Json, redactor: &Redactor) -> Result<(), String> {
    let gate = gate.ok_or("this session has no tools")?;
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let tool = match text("toolName") {
        "" => "plugin".to_owned(),
        tool => redactor.shown(tool, 60),
    };
    let detail = [text("title"), text("description")]
        .map(|part| redactor.shown(part, 200))
        .join(": ");
    let asked = gate.ask_other(&tool, detail.trim_matches([':', ' ']));
    asked.await.map_err(|why| why.to_string())
}

/// One line about what a tool is used for.
pub(super) fn detail(args: &Json, redactor: &Redactor) -> String {
    let keys = ["command", "path", "file_path", "url", "query", "pattern"];
    let found = keys.iter().find_map(|key| args[*key].as_str());
    found.map_or_else(String::new, |text| redactor.shown(text, 200))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_mode_lets_nothing_be_written_that_is_not_granted() {
        let mode = |write: Option<PermissionValue>| {
            let rules: Vec<PermissionRule> = write
                .map(|rule| PermissionRule {
                    key: "write".into(),
                    rule,
                })
                .into_iter()
                .collect();
            Mode::of(&rules).word()
        };
        assert_eq!(mode(None), "guarded");
        assert_eq!(mode(Some(PermissionValue::Allow)), "guarded");
        assert_eq!(
            mode(Some(PermissionValue::Patterns(vec!["a".to_owned()]))),
            "guarded"
        );
        assert_eq!(mode(Some(PermissionValue::Deny)), "read-only");
        assert_eq!(mode(Some(PermissionValue::Prompt)), "read-only");
    }

    #[test]
    fn what_tools_do_is_told_by_what_they_are_given() {
        let path = |path: &str| PathBuf::from(path);
        assert_eq!(
            Want::of("read", &json!({"path": "a.md"})),
            [Want::Read(path("a.md"))]
        );
        assert_eq!(
            Want::of("edit", &json!({"file_path": "/b"})),
            [Want::Write(path("/b"))]
        );
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** End Patch";
        assert_eq!(
            Want::of("apply_patch", &json!({"input": patch})),
            [
                Want::Write(path("a")),
                Want::Write(path("b")),
                Want::Write(path("c"))
            ]
        );
        assert_eq!(
            Want::of("web_fetch", &json!({"url": "https://a.example/x"})),
            [Want::Network("a.example".to_owned(), 443)]
        );
        assert_eq!(Want::of("session_status", &json!({})), []);
    }
}
