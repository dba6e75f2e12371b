//! The lists of `permissions:`: files, commands, hosts.

use std::path::{Component, Path};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Files by pattern. As in `.gitignore`, a pattern without a slash is for a name in any folder, one with a slash is for a
/// path from the workspace's root, and a folder stands for everything in it.
#[derive(Debug, Clone)]
pub(super) struct Globs {
    paths: GlobSet,
    /// Folders of which everything in them matches, though not all of them by their own name, as `src` for `src/**`.
    folders: GlobSet,
}

impl Globs {
    /// A pattern that can't be understood, or leads out of the workspace, matches nothing.
    pub(super) fn new(root: &Path, patterns: &[String]) -> Globs {
        let (mut paths, mut folders) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for path in patterns.iter().filter_map(|pattern| from_root(root, pattern)) {
            // With everything below it, should it be a folder.
            for glob in [glob(&path), glob(&format!("{path}/**"))].into_iter().flatten() {
                paths.add(glob);
            }
            if let Some(glob) = filled_folder(&path).and_then(glob) {
                folders.add(glob);
            }
        }
        let built = |set: GlobSetBuilder| set.build().unwrap_or_else(|_| GlobSet::empty());
        Globs {
            paths: built(paths),
            folders: built(folders),
        }
    }

    /// Looks at a path from the workspace's root.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.paths.is_match(path)
    }

    /// Whether everything matches that may be in this folder.
    pub(super) fn fill(&self, folder: &Path) -> bool {
        self.matches(folder) || self.folders.is_match(folder)
    }
}

fn glob(text: &str) -> Option<Glob> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .ok()
}

/// The folder all of whose content a pattern stands for, if it ends so.
fn filled_folder(path: &str) -> Option<&str> {
    if matches!(path, "*" | "**") {
        return Some("**");
    }
    ["/**/*", "/**", "/*"]
        .iter()
        .find_map(|end| path.strip_suffix(end))
}

/// A pattern as a path from the workspace's root. None when it leads out of it.
fn from_root(root: &Path, pattern: &str) -> Option<String> {
    let pattern = literal_classes(pattern.trim());
    let anchored = pattern.trim_end_matches('/').contains('/');
    let path = match Path::new(&pattern).strip_prefix(root) {
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => pattern.clone(),
    };
    let path = path.trim_start_matches("./").trim_matches('/');
    let climbs = Path::new(path)
        .components()
        .any(|part| part == Component::ParentDir);
    let foreign = pattern.starts_with('~') || climbs;
    if foreign {
        return None;
    }
    let path = if path.is_empty() || path == "." {
        "**"
    } else {
        path
    };
    Some(if anchored {
        path.to_owned()
    } else {
        format!("**/{path}")
    })
}

/// One-character classes as escapes: a text that was filled in has its special characters in brackets, `!` and `]` among
/// them, which would begin a negated class.
fn literal_classes(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match (c, chars.get(at + 1), chars.get(at + 2)) {
            ('[', Some(&inner @ ('*' | '?' | '[' | ']' | '{' | '}' | '!')), Some(']')) => {
                out.push('\\');
                out.push(inner);
                at += 3;
            }
            _ => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}

/// Shell commands by pattern: `*` stands for anything. Only of commands that are simple: one program with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Commands(GlobSet);

impl Commands {
    pub(super) fn new(patterns: &[String]) -> Commands {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            if let Ok(glob) = GlobBuilder::new(&literal_classes(pattern.trim()))
                .literal_separator(false)
                .backslash_escape(true)
                .build()
            {
                set.add(glob);
            }
        }
        Commands(set.build().unwrap_or_else(|_| GlobSet::empty()))
    }

    pub(super) fn matches(&self, command: &str) -> bool {
        self.0.is_match(command.trim())
    }
}

/// The words of a command that is one program with its arguments and nothing that the shell would make more of; none for
/// any other, and when in doubt.
pub(super) fn simple_command(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in command.trim().chars() {
        match (quote, c) {
            (_, c) if c.is_control() && c != '\t' => return None,
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (Some(_), '$' | '`' | '\\' | '!') => return None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, ';' | '&' | '|' | '<' | '>' | '$' | '`' | '\\' | '(' | ')' | '{' | '}' | '#' | '!') => {
                return None;
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return None;
    }
    words.extend(word);
    // A variable before the program could change what is started.
    (!words.first()?.contains('=')).then_some(words)
}

/// Hosts by name: `example.com`, `*.example.com` for what is below it, with a port where only that one is meant.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Vec<HostPattern>);

#[derive(Debug, Clone)]
struct HostPattern {
    /// Without the `*.` before it.
    host: String,
    below: bool,
    port: Option<u16>,
}

impl Hosts {
    pub(super) fn new(patterns: &[String]) -> Hosts {
        Hosts(
            patterns
                .iter()
                .filter_map(|pattern| host_pattern(pattern))
                .collect(),
        )
    }

    pub(super) fn matches(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|pattern| {
            let fits = if pattern.below {
                pattern.host.is_empty()
                    || host
                        .strip_suffix(&pattern.host)
                        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            } else {
                pattern.host == host
            };
            fits && pattern.port.is_none_or(|only| only == port)
        })
    }

    /// Whether one names it without a star.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|pattern| {
            !pattern.below && pattern.host == host && pattern.port.is_none_or(|only| only == port)
        })
    }
}

fn host_pattern(pattern: &str) -> Option<HostPattern> {
    let pattern = pattern.trim();
    let rest = pattern.split_once("://").map_or(pattern, |(_, rest)| rest);
    let rest = rest.split(['/', '?']).next().unwrap_or(rest);
    let (below, rest) = match rest.strip_prefix('*') {
        Some("") => (true, ""),
        Some(rest) => (true, rest.strip_prefix('.')?),
        None => (false, rest),
    };
    let (host, port) = match rest.rsplit_once(':') {
        // An address of version 6 without brackets has more than one colon.
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port.parse().ok()?)),
        _ => (rest, None),
    };
    if host.contains('*') || (host.is_empty() && !below) {
        return None;
    }
    Some(HostPattern {
        host: folded_host(host),
        below,
        port,
    })
}

/// A host's name in lower case, without the brackets of an address and the dot at its end.
pub(super) fn folded_host(host: &str) -> String {
    let host = host.trim().trim_end_matches('.');
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.to_ascii_lowercase()
}

/// Names that mean this machine or its own network, whatever they resolve to.
pub(super) fn is_local_name(host: &str) -> bool {
    host == "localhost"
        || [".localhost", ".local", ".internal", ".lan", ".home.arpa"]
            .iter()
            .any(|end| host.ends_with(end))
        // A number is an address in some resolvers: `2130706433`, `0x7f.1`.
        || host.split('.').next_back().is_some_and(|last| {
            last.starts_with("0x") || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
        })
}
