//! What the agent wants to do, by the kinds of the protocol, and the permissions that it needs.
//!
//! What is decided here is what the agent itself says that it is about to do. The names of the options that it offers are
//! texts: only their kinds count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome,
};
use serde_json::Value as Json;

use crate::Redactor;
use crate::claude::permit::{climbs, host_of};
use crate::policy::{Access, Decision, Denial, Gate};

/// The parts of a tool call that are looked at.
const PARTS: &[&str] = &["title", "name", "kind", "rawInput", "locations", "content"];
/// Under which names tools are given a file or folder.
const PATH_KEYS: &[&str] = &[
    "file_path",
    "filePath",
    "filepath",
    "path",
    "absolute_path",
    "notebook_path",
    "dir_path",
    "source",
    "destination",
    "old_path",
    "new_path",
    "move_path",
];
/// Who is talked to by a tool that looks in the web without naming an address.
const WEB_SEARCH: &str = "web-search";

/// The tool calls of a session, by id, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: BTreeMap<String, Json>,
    redactor: Redactor,
}

impl Calls {
    /// None yet; what a person sees of them is without secrets.
    pub(super) fn new(redactor: Redactor) -> Calls {
        Calls {
            known: BTreeMap::new(),
            redactor,
        }
    }

    /// Takes in what an update or a question says about a call.
    pub(super) fn note(&mut self, said: &Json) -> ToolCall {
        let id = said["toolCallId"].as_str().unwrap_or_default();
        let known = self
            .known
            .entry(id.to_owned())
            .or_insert_with(|| Json::Object(Default::default()));
        for part in PARTS {
            // An empty one says nothing: some agents tell the call first and its arguments later.
            let says = |value: &&Json| match value {
                Json::Null => false,
                Json::Array(items) => !items.is_empty(),
                Json::Object(entries) => !entries.is_empty(),
                _ => true,
            };
            if let Some(value) = said.get(*part).filter(says) {
                known[*part] = value.clone();
            }
        }
        if let Some(name) = said["_meta"]["claudeCode"]["toolName"].as_str() {
            known["name"] = name.into();
            known["claudeName"] = name.into();
        }
        if said["_meta"]["is_mcp_tool_call"] == true {
            known["codexCall"] = true.into();
        }
        ToolCall(known.clone(), self.redactor.clone())
    }

    /// Forgets a call that has ended.
    pub(super) fn forget(&mut self, said: &Json) {
        if let Some(id) = said["toolCallId"].as_str() {
            self.known.remove(id);
        }
    }
}

/// What is known about a tool call.
#[derive(Debug, Clone)]
pub(super) struct ToolCall(Json, Redactor);

impl ToolCall {
    /// What the agent has said under a name; null where it has not.
    pub(super) fn said(&self, part: &str) -> &Json {
        &self.0[part]
    }

    fn text(&self, part: &str) -> &str {
        self.0[part].as_str().unwrap_or_default()
    }

    fn input(&self, key: &str) -> Option<&str> {
        self.0["rawInput"][key].as_str()
    }

    /// What a person sees as the tool's name.
    pub(super) fn name(&self) -> String {
        let kind = match self.text("kind") {
            "" => "tool",
            kind => kind,
        };
        let name = self.text("name");
        self.1.shown(if name.is_empty() { kind } else { name }, 60)
    }

    /// One line about what it does.
    pub(super) fn detail(&self) -> String {
        self.1.shown(self.text("title"), 200)
    }

    /// The files and folders that it is about.
    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |path: Option<&str>| {
            if let Some(path) = path.filter(|path| !path.is_empty()).map(PathBuf::from)
                && !paths.contains(&path)
            {
                paths.push(path);
            }
        };
        for part in ["locations", "content"] {
            for entry in self.0[part].as_array().into_iter().flatten() {
                add(entry["path"].as_str());
            }
        }
        let input = &self.0["rawInput"];
        for key in PATH_KEYS {
            add(input[*key].as_str());
        }
        // A patch names its files as keys.
        for path in input["changes"]
            .as_object()
            .into_iter()
            .flat_map(|changes| changes.keys())
        {
            add(Some(path));
        }
        paths
    }

    /// The shell command that it runs.
    fn command(&self) -> Option<String> {
        let input = &self.0["rawInput"];
        let given = ["command", "cmd"].iter().find_map(|key| input.get(*key));
        match given {
            Some(Json::String(command)) => Some(command.clone()),
            Some(Json::Array(words)) => {
                let words: Vec<&str> = words.iter().map(Json::as_str).collect::<Option<_>>()?;
                match words[..] {
                    // A shell that is given a whole command.
                    [shell, "-c" | "-lc", script] if is_shell(shell) => Some(script.to_owned()),
                    _ => Some(
                        words
                            .iter()
                            .map(|word| quoted_word(word))
                            .collect::<Vec<_>>()
                            .join(" "),
                    ),
                }
            }
            _ => Some(self.text("title").trim_matches('`').to_owned()).filter(|title| !title.is_empty()),
        }
    }

    /// The addresses that it fetches.
    fn addresses(&self) -> Vec<(String, u16)> {
        let mut texts: Vec<&str> = ["url", "uri"].iter().filter_map(|key| self.input(key)).collect();
        if texts.is_empty() {
            let words = |text: &'static str| self.input(text).unwrap_or_default().split_whitespace();
            texts.extend(words("prompt").filter(|word| word.starts_with("http")));
            texts.extend(
                self.text("title")
                    .split_whitespace()
                    .filter(|word| word.starts_with("http")),
            );
        }
        texts.into_iter().filter_map(host_of).collect()
    }
}

fn is_shell(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    ["sh", "bash", "zsh"].iter().any(|shell| name == *shell)
}

fn quoted_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-./:@_=,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Decides whether a tool may be used; the text says why not. Without a gate nothing is permitted.
pub(super) async fn permit(gate: Option<&Gate>, dir: &Path, call: &ToolCall) -> Result<(), String> {
    let Some(gate) = gate else {
        return Err("this session has no tools".to_owned());
    };
    let name = call.name();
    let refused = |why: Denial| why.to_string();
    let paths = call.paths();
    match call.text("kind") {
        "read" if !paths.is_empty() => {
            for path in &paths {
                gate.pass(&name, Access::Read(path)).await.map_err(refused)?;
            }
            Ok(())
        }
        "search" => {
            if call.input("pattern").is_some_and(climbs) && !name.eq_ignore_ascii_case("grep") {
                return Err("a pattern is relative to its folder and does not climb out of it".to_owned());
            }
            let folders = if paths.is_empty() {
                vec![dir.to_owned()]
            } else {
                paths
            };
            for folder in &folders {
                gate.pass(&name, Access::Read(folder)).await.map_err(refused)?;
            }
            Ok(())
        }
        "edit" | "delete" | "move" | "think" if !paths.is_empty() => {
            for path in &paths {
                gate.pass(&name, Access::Write(path)).await.map_err(refused)?;
            }
            Ok(())
        }
        "read" | "edit" | "delete" | "move" => Err(format!("`{name}` does not say which file it is about")),
        "execute" => {
            let command = call
                .command()
                .ok_or_else(|| format!("`{name}` does not say what it runs"))?;
            gate.pass(&name, Access::Bash(&command)).await.map_err(refused)
        }
        "fetch" => {
            let mut hosts = call.addresses();
            if hosts.is_empty() {
                hosts.push((WEB_SEARCH.to_owned(), 443));
            }
            for (host, port) in hosts {
                let access = Access::Network { host: &host, port };
                gate.pass(&name, access).await.map_err(refused)?;
            }
            Ok(())
        }
        // Only the agent itself thinks; what comes of it is asked again.
        "think" => Ok(()),
        "switch_mode" => Err("the mode of a session stays as it was chosen".to_owned()),
        _ => ask(gate, call).await,
    }
}

/// Asks a person about something that no permission speaks of.
async fn ask(gate: &Gate, call: &ToolCall) -> Result<(), String> {
    // What it names must at least be there to be read.
    for path in call.paths() {
        if let Decision::Deny(why) = gate.policy().decide(Access::Read(&path)) {
            return Err(why.to_string());
        }
    }
    let (name, detail) = (call.name(), call.detail());
    let asked = gate.ask_other(&name, &detail);
    asked.await.map_err(|why| why.to_string())
}

/// The answer to a question, of the options that the agent offers.
pub(super) fn outcome(options: &[PermissionOption], allowed: bool) -> RequestPermissionOutcome {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    // Once before always: what is permitted for good is not asked again, and some agents remember it beyond the session.
    let kinds = match allowed {
        true => [AllowOnce, AllowAlways],
        false => [RejectOnce, RejectAlways],
    };
    let of_kind = |kind| options.iter().find(|option| option.kind == kind);
    match kinds.into_iter().find_map(of_kind) {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_about_a_call_adds_up() {
        let mut calls = Calls::default();
        calls.note(
            &json!({"toolCallId": "1", "title": "Write", "kind": "edit", "rawInput": {}, "locations": []}),
        );
        calls.note(
            &json!({"toolCallId": "1", "title": "Write a.md", "locations": [{"path": "/w/a.md"}],
            "_meta": {"claudeCode": {"toolName": "Write"}}}),
        );
        let call =
            calls.note(&json!({"toolCallId": "1", "rawInput": {"file_path": "/w/b.md"}, "kind": null}));
        assert_eq!(call.name(), "Write");
        assert_eq!(call.detail(), "Write a.md");
        assert_eq!(call.paths(), [PathBuf::from("/w/a.md"), PathBuf::from("/w/b.md")]);
        calls.forget(&json!({"toolCallId": "1"}));
        assert_eq!(
            calls.note(&json!({"toolCallId": "1"})).paths(),
            [] as [PathBuf; 0]
        );
    }

    #[test]
    fn commands_and_addresses_are_read() {
        let call = |value: Json| ToolCall(value, Redactor::default());
        let command = |value: Json| call(value).command();
        assert_eq!(
            command(json!({"rawInput": {"command": "ls -l"}})).as_deref(),
            Some("ls -l")
        );
        assert_eq!(
            command(json!({"rawInput": {"command": ["/bin/bash", "-lc", "git status"]}})).as_deref(),
            Some("git status")
        );
        assert_eq!(
            command(json!({"rawInput": {"command": ["echo", "it's; rm", "-r"]}})).as_deref(),
            Some(r"echo 'it'\''s; rm' -r")
        );
        assert_eq!(command(json!({"title": "`ls`"})).as_deref(), Some("ls"));
        assert_eq!(
            command(json!({"rawInput": {"command": [1]}, "title": "ls"})),
            None
        );
        let fetch = call(
            json!({"title": "Fetch https://a.example/x", "rawInput": {"prompt": "sum up http://b.example:81"}}),
        );
        assert_eq!(
            fetch.addresses(),
            [("b.example".to_owned(), 81), ("a.example".to_owned(), 443)]
        );
    }

    #[test]
    fn options_are_chosen_by_kind_whatever_they_are_called() {
        let option = |id: &'static str, name: &'static str, kind| PermissionOption::new(id, name, kind);
        let chosen = |options: &[PermissionOption], allowed| match outcome(options, allowed) {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".to_owned(),
        };
        let all = [
            option("1", "No", PermissionOptionKind::AllowAlways),
            option("2", "Reject", PermissionOptionKind::AllowOnce),
            option("3", "Approve", PermissionOptionKind::RejectAlways),
            option("4", "Yes, proceed", PermissionOptionKind::RejectOnce),
        ];
        assert_eq!(chosen(&all, true), "2");
        assert_eq!(chosen(&all, false), "4");
        assert_eq!(chosen(&all[..1], true), "1");
        assert_eq!(chosen(&all[..2], false), "cancelled");
        assert_eq!(chosen(&all[2..3], false), "3");
        assert_eq!(chosen(&[], true), "cancelled");
    }
}
