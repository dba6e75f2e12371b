//! Claude Code's tools and the permissions that they need.

use std::path::Path;

use serde_json::Value as Json;

use crate::Redactor;
use crate::mcp;
use crate::policy::{Access, Gate, Policy};

/// Permission key → the tools that need it.
const TOOLS: &[(&str, &[&str])] = &[
    ("read", &["Read", "Glob", "Grep"]),
    ("write", &["Write", "Edit", "NotebookEdit"]),
    ("bash", &["Bash"]),
    ("network", &["WebFetch", "WebSearch"]),
];

/// What its own search must not look into, in its notation.
pub(crate) const REFUSED: &[&str] = &["Read(**/.prose/.env)", "Read(**/.prose/.env.*)"];

/// The tool by which it gives an answer of a given form.
const ANSWER: &str = "StructuredOutput";
/// Who searches when it searches the web.
const SEARCH_HOST: &str = "api.anthropic.com";

/// The tools that the policy may let through.
pub(crate) fn tools(policy: &Policy) -> Vec<&'static str> {
    // A shell is also what the permission to start programs is used through.
    let possible = |key: &str| policy.is_possible(key);
    let allowed = TOOLS.iter().filter(|(key, _)| possible(key));
    allowed.flat_map(|(_, tools)| tools.iter().copied()).collect()
}

/// Decides whether a tool may be used; the text says why not. Without a gate only answering is permitted.
pub(super) async fn permit(gate: Option<&Gate>, dir: &Path, tool: &str, input: &Json) -> Result<(), String> {
    if tool == ANSWER {
        return Ok(());
    }
    let refused = || format!("`{tool}` is no tool of this session");
    let gate = gate.ok_or_else(refused)?;
    if mcp::is_own_tool(tool) {
        // It hands over what is the session's own, and reads what it was given.
        return Ok(());
    }
    let text = |key: &str| input.get(key).and_then(Json::as_str);
    let needed = |key: &str| text(key).ok_or_else(|| format!("`{tool}` needs `{key}`"));
    let access = match tool {
        "Read" => Access::Read(Path::new(needed("file_path")?)),
        "Grep" => Access::Read(text("path").map_or(dir, Path::new)),
        "Glob" => {
            let pattern = needed("pattern")?;
            if climbs(pattern) {
                return Err("a pattern is relative to `path` and does not climb out of it".to_owned());
            }
            Access::Read(text("path").map_or(dir, Path::new))
        }
        "Write" | "Edit" => Access::Write(Path::new(needed("file_path")?)),
        "NotebookEdit" => Access::Write(Path::new(needed("notebook_path")?)),
        "Bash" => Access::Bash(needed("command")?),
        "WebFetch" => {
            let url = needed("url")?;
            let (host, port) = host_of(url)
                .ok_or_else(|| format!("`{}` is no address on the web", gate.redactor().shown(url, 200)))?;
            let access = Access::Network { host: &host, port };
            return gate.pass(tool, access).await.map_err(|why| why.to_string());
        }
        "WebSearch" => {
            let query = needed("query")?;
            let tool = format!("WebSearch for \"{}\" by", gate.redactor().shown(query, 200));
            let access = Access::Network {
                host: SEARCH_HOST,
                port: 443,
            };
            return gate.pass(&tool, access).await.map_err(|why| why.to_string());
        }
        _ => return Err(refused()),
    };
    gate.pass(tool, access).await.map_err(|why| why.to_string())
}

/// Whether a file pattern leads elsewhere than below the folder that it is looked for in.
pub(crate) fn climbs(pattern: &str) -> bool {
    let braced = |c| matches!(c, '/' | '\\' | '{' | '}' | ',');
    Path::new(pattern).is_absolute()
        || pattern.starts_with('~')
        || pattern.split(braced).any(|part| part == "..")
        // `{/etc,x}` begins with a root, too.
        || pattern.contains("{/")
        || pattern.contains(",/")
}

/// Host and port of an http or https address.
pub(crate) fn host_of(url: &str) -> Option<(String, u16)> {
    let url = reqwest::Url::parse(url).ok()?;
    let port = url
        .port_or_known_default()
        .filter(|_| matches!(url.scheme(), "http" | "https"))?;
    Some((url.host_str()?.to_owned(), port))
}

/// One line about what a tool is used for.
pub(super) fn detail(tool: &str, input: &Json, redactor: &Redactor) -> String {
    let keys = [
        "command",
        "file_path",
        "notebook_path",
        "url",
        "query",
        "pattern",
        "path",
    ];
    let found = keys.iter().find_map(|key| input.get(key).and_then(Json::as_str));
    match (tool, found) {
        (ANSWER, _) | (_, None) => String::new(),
        (_, Some(text)) => redactor.shown(text, 200),
    }
}
