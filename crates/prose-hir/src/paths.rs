//! What the target of a `use` means, without touching the disk.

use crate::Name;

/// Where a `use` target leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// `https://…`, `http://…`
    Url,
    /// `handle/slug`, `@handle/slug`: the registry, unless a file of that name exists.
    Registry,
    /// Ends in `.prose` and has no scheme.
    Local,
    /// Anything else.
    Unknown,
}

/// What kind of target it is, by its form.
pub fn target_kind(target: &str) -> TargetKind {
    let target = target.trim();
    if target.starts_with("https://") || target.starts_with("http://") {
        return TargetKind::Url;
    }
    if target.contains("://") || target.is_empty() {
        return TargetKind::Unknown;
    }
    if target.ends_with(".prose") || target.ends_with(".prose.md") {
        return TargetKind::Local;
    }
    let path = target.strip_prefix('@').unwrap_or(target);
    let parts: Vec<&str> = path.split('/').collect();
    let sound = |part: &&str| {
        !part.is_empty() && !part.chars().any(char::is_whitespace) && *part != "." && *part != ".."
    };
    if parts.len() >= 2 && parts.iter().all(sound) {
        TargetKind::Registry
    } else {
        TargetKind::Unknown
    }
}

/// The name that a `use` without `as` declares: the slug, or the file's stem.
pub fn default_name(target: &str) -> Option<Name> {
    let target = target.trim();
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let last = path.trim_end_matches('/').rsplit('/').next()?;
    let stem = last.strip_suffix(".md").unwrap_or(last);
    let stem = stem.strip_suffix(".prose").unwrap_or(stem);
    (!stem.is_empty()).then(|| Name::new(stem))
}

/// `{handle}--{slug}`: the folder of an imported program and the namespace of its memory. A URL's handle is its host, a local
/// file's is `local`.
pub fn namespace(target: &str) -> String {
    let slug = default_name(target).unwrap_or_else(|| Name::new("program"));
    let handle = match target_kind(target) {
        TargetKind::Url => target
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .unwrap_or("remote")
            .to_owned(),
        TargetKind::Registry => {
            let path = target.trim().trim_start_matches('@');
            let (handle, _) = path.rsplit_once('/').unwrap_or(("", path));
            handle.replace('/', "--")
        }
        TargetKind::Local | TargetKind::Unknown => "local".to_owned(),
    };
    let clean = |text: &str| {
        text.chars()
            .map(|c| {
                if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') {
                    c
                } else {
                    '-'
                }
            })
            .collect::<String>()
    };
    format!("{}--{}", clean(&handle), clean(&slug))
}

/// Paths at which a local target is looked for, in order: from the using file's folder upward to the root. All paths use `/`;
/// `from` and `root` are absolute or relative alike. An absolute target is its own only candidate.
pub fn candidates(target: &str, from: &str, root: &str) -> Vec<String> {
    if target.starts_with('/') {
        return vec![target.to_owned()];
    }
    let from = from.replace('\\', "/");
    let root = root.replace('\\', "/");
    let root = root.trim_end_matches('/');
    let mut out = Vec::new();
    let mut folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    loop {
        let path = match folder {
            "" if from.starts_with('/') => format!("/{target}"),
            "" => target.to_owned(),
            folder => format!("{folder}/{target}"),
        };
        out.push(normalize(&path));
        let below_root = root.is_empty()
            || folder
                .strip_prefix(root)
                .is_some_and(|rest| rest.starts_with('/'));
        match folder.rsplit_once('/') {
            Some((parent, _)) if below_root => folder = parent,
            None if below_root && !folder.is_empty() => folder = "",
            _ => return out,
        }
    }
}

/// Resolves `.` and `..` by text.
fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|it| !it.is_empty() && *it != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_names_and_namespaces() {
        let check = |target: &str, kind: TargetKind, name: &str, space: &str| {
            assert_eq!(target_kind(target), kind, "{target}");
            assert_eq!(default_name(target).unwrap_or_default(), name, "{target}");
            assert_eq!(namespace(target), space, "{target}");
        };
        check(
            "alice/research",
            TargetKind::Registry,
            "research",
            "alice--research",
        );
        check(
            "@alice/research",
            TargetKind::Registry,
            "research",
            "alice--research",
        );
        check(
            "https://example.com/a/b.prose",
            TargetKind::Url,
            "b",
            "example.com--b",
        );
        check("./lib/review.prose", TargetKind::Local, "review", "local--review");
        check("../x.prose", TargetKind::Local, "x", "local--x");
        check(
            "something odd",
            TargetKind::Unknown,
            "something odd",
            "local--something-odd",
        );
    }

    #[test]
    fn candidates_go_up_to_the_root() {
        assert_eq!(
            candidates("lib/x.prose", "/w/a/b/main.prose", "/w"),
            ["/w/a/b/lib/x.prose", "/w/a/lib/x.prose", "/w/lib/x.prose"]
        );
        assert_eq!(
            candidates("../x.prose", "a/main.prose", ""),
            ["x.prose", "../x.prose"]
        );
        assert_eq!(candidates("./x.prose", "main.prose", ""), ["x.prose"]);
        assert_eq!(candidates("./x.prose", "/main.prose", ""), ["/x.prose"]);
    }
}
