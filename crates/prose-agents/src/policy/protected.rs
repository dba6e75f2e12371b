//! Places that no permission grants: what governs the sessions themselves, and what other programs would run. Which they
//! are says [`prose_model::protected`].

use std::path::{Component, Path};

use prose_model::protected::{GIT_PLACES, KEYS_FILE, OWN_FOLDER, PLACES, ProtectedKind};

/// Why a place can't be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Protection {
    /// Why it can't be read.
    pub(super) unreadable: Option<&'static str>,
    /// Why it can't be written.
    pub(super) unwritable: Option<&'static str>,
}

/// The protected places in the workspace's root, to be looked after while something runs that can't be held back.
pub(crate) fn watched() -> impl Iterator<Item = &'static str> {
    let named = PLACES.iter().filter(|place| !place.is_ending);
    named
        .map(|place| match place.name {
            // Sessions write below it as they should.
            OWN_FOLDER => ".prose/.env",
            name => name,
        })
        .chain([".git/config", ".git/hooks"])
}

/// Whether a name in the workspace's root is protected by its end.
pub(crate) fn is_watched_by_ending(name: &str) -> bool {
    PLACES
        .iter()
        .any(|place| place.is_ending && name.ends_with(place.name))
}

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
            let known = PLACES.iter().find(|place| match place.is_ending {
                false => place.name == part,
                true => part.ends_with(place.name),
            });
            if let Some(place) = known {
                protection.unwritable = Some(place.kind.why());
            }
            let is_keys = |next: &str| {
                let rest = next.strip_prefix(KEYS_FILE);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if part == OWN_FOLDER && next.is_some_and(is_keys) {
                protection.unreadable = Some("the keys of this workspace");
            }
            if part == ".git" {
                // The folder itself, and a file in its place, which says where it is.
                let governs = next.is_none()
                    || parts[at + 1..]
                        .iter()
                        .any(|part| GIT_PLACES.contains(&part.as_str()));
                if governs {
                    protection.unwritable = Some(ProtectedKind::Git.why());
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
