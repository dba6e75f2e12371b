//! What a session may do: the program's `permissions:`, the defaults where it says nothing, and what no rule can grant.
//!
//! The rules come evaluated and merged ([`prose_model::SessionRequest::permissions`]); here they become decisions. Refusing
//! beats asking, and asking beats granting. Nothing that a session reads, writes or says changes its policy: it is made
//! once, from the request.

mod gate;
mod pattern;
mod protected;

use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use prose_model::{PermissionRule, PermissionValue};

use crate::Redactor;
use crate::session::SessionSpawn;
use pattern::{Commands, Globs, Hosts};
use protected::Protection;

pub use gate::{Gate, shown};
pub(crate) use protected::{is_watched_by_ending, watched};

/// What a session wants to do. Paths are absolute, or relative to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// Read a file, or whatever is in a folder.
    Read(&'a Path),
    /// Write, make, move or remove a file or folder.
    Write(&'a Path),
    /// Start a program file.
    Execute(&'a Path),
    /// Run a shell command.
    Bash(&'a str),
    /// Talk to a host.
    Network {
        /// Its name or address.
        host: &'a str,
        /// The port.
        port: u16,
    },
}

/// What the policy says to an [`Access`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
    /// A person has to be asked.
    Ask,
    /// It may not.
    Deny(Denial),
}

/// Why something is refused, in words for the agent and its user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// A rule of the program.
    #[error("`{key}` is not permitted here: {what}")]
    Rule {
        /// The permission key.
        key: &'static str,
        /// What was wanted.
        what: String,
    },
    /// A path that leads out of the workspace.
    #[error("{0} is outside of the workspace")]
    Outside(String),
    /// A place that no session may read or write, whatever its permissions.
    #[error("{path} is protected: {why}")]
    Protected {
        /// The path.
        path: String,
        /// What it is.
        why: &'static str,
    },
    /// An address of this machine or its network that no rule names.
    #[error(
        "{0} is an address of this machine or of its own network, which only a permission that names it grants: `network: [\"{0}\"]`"
    )]
    PrivateAddress(String),
    /// A person said no, or none could be asked.
    #[error("nobody permitted it: {0}")]
    Refused(String),
    /// It can't be told what it is.
    #[error("{0}")]
    Unclear(String),
}

/// A rule, ready to be applied.
#[derive(Debug, Clone)]
enum Rule<T> {
    Allow,
    Deny,
    Ask,
    /// Granted for what matches.
    Only(T),
}

impl<T> Rule<T> {
    /// `only` makes the matcher of a list of patterns; one that can't be understood grants nothing.
    fn of(rules: &[PermissionRule], key: &str, only: impl Fn(&[String]) -> T) -> Option<Rule<T>> {
        // Of two the later counts, as where the rules are merged.
        let rule = rules.iter().rev().find(|rule| rule.key == key)?;
        Some(match &rule.rule {
            PermissionValue::Allow => Rule::Allow,
            PermissionValue::Deny => Rule::Deny,
            PermissionValue::Prompt => Rule::Ask,
            PermissionValue::Patterns(patterns) => Rule::Only(only(patterns)),
        })
    }

    fn decide(&self, key: &'static str, what: &str, matches: impl Fn(&T) -> bool) -> Decision {
        let allowed = match self {
            Rule::Allow => true,
            Rule::Ask => return Decision::Ask,
            Rule::Deny => false,
            Rule::Only(only) => matches(only),
        };
        if allowed {
            Decision::Allow
        } else {
            Decision::Deny(Denial::Rule {
                key,
                what: what.to_owned(),
            })
        }
    }
}

impl Decision {
    /// Both have to permit it: the stricter of the two.
    #[must_use]
    pub fn and(self, other: Decision) -> Decision {
        match (self, other) {
            (Decision::Deny(why), _) | (_, Decision::Deny(why)) => Decision::Deny(why),
            (Decision::Ask, _) | (_, Decision::Ask) => Decision::Ask,
            (Decision::Allow, Decision::Allow) => Decision::Allow,
        }
    }
}

/// The policy of one session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Policy(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    /// The workspace as it was given.
    named_root: PathBuf,
    /// The same as the file system knows it.
    root: PathBuf,
    /// The session's own folder, which it may read and write whatever its rules; the same.
    staging: Option<(PathBuf, PathBuf)>,
    /// Files that the prompt refers to, which it may read whatever its rules.
    given: Vec<PathBuf>,
    read: Rule<Globs>,
    write: Rule<Globs>,
    execute: Option<Rule<Globs>>,
    /// Hides secrets in what a refusal names.
    redactor: Redactor,
    /// None: not mentioned, then a person is asked.
    bash: Option<Rule<Commands>>,
    network: Rule<Hosts>,
}

/// A path inside of what the policy knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder that it is in, as the file system knows it.
    pub(crate) base: PathBuf,
    /// The path from there, without `.`, `..` and links; empty for the folder itself.
    pub(crate) relative: PathBuf,
}

impl Policy {
    /// The policy of a session that works in `workspace` under these rules.
    pub fn new(workspace: &Path, rules: &[PermissionRule]) -> Policy {
        Policy::with(workspace, None, &[], rules, Redactor::default())
    }

    /// The policy of a session as it is spawned: its staging folder is its own, and the files that its prompt refers to
    /// are there to be read.
    pub fn for_session(session: &SessionSpawn) -> Policy {
        let files = session.prompt.files.iter();
        let given: Vec<PathBuf> = files.map(|file| file.path.clone()).collect();
        Policy::with(
            &session.work_dir,
            Some(&session.staging),
            &given,
            &session.request.permissions,
            session.sink.redactor(),
        )
    }

    fn with(
        workspace: &Path,
        staging: Option<&Path>,
        given: &[PathBuf],
        rules: &[PermissionRule],
        redactor: Redactor,
    ) -> Policy {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| normal(path));
        let named_root = normal(workspace);
        let globs = |patterns: &[String]| Globs::new(&named_root, patterns);
        Policy(Arc::new(Rules {
            root: real(&named_root),
            staging: staging
                .filter(|path| path.is_absolute())
                .map(|path| (normal(path), real(path))),
            given: given.iter().map(|path| real(path)).collect(),
            read: Rule::of(rules, "read", globs).unwrap_or(Rule::Allow),
            write: Rule::of(rules, "write", globs).unwrap_or(Rule::Allow),
            execute: Rule::of(rules, "execute", globs),
            bash: Rule::of(rules, "bash", Commands::new),
            network: Rule::of(rules, "network", Hosts::new).unwrap_or(Rule::Ask),
            redactor,
            named_root,
        }))
    }

    /// The workspace, as the file system knows it.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Decides. For a path the answer holds for where it leads at this moment; whoever opens it goes through the tools,
    /// which decide about what they hold open.
    pub fn decide(&self, access: Access<'_>) -> Decision {
        match access {
            Access::Read(path) | Access::Write(path) | Access::Execute(path) => {
                let named = match self.named(path) {
                    Ok(named) => named,
                    Err(why) => return Decision::Deny(why),
                };
                match resolve(&named) {
                    Ok(real) => self
                        .decide_place(access, &named)
                        .and(self.decide_place(access, &real)),
                    Err(why) => Decision::Deny(why),
                }
            }
            Access::Bash(command) => self.bash(command),
            Access::Network { host, port } => self.network(host, port),
        }
    }

    /// Whether there is anything of the kind that could be permitted.
    pub fn is_possible(&self, key: &str) -> bool {
        let rules = &*self.0;
        match key {
            "read" => !matches!(rules.read, Rule::Deny) || !rules.given.is_empty() || rules.staging.is_some(),
            "write" => !matches!(rules.write, Rule::Deny) || rules.staging.is_some(),
            "bash" => !matches!(rules.bash, Some(Rule::Deny)),
            "network" => !matches!(rules.network, Rule::Deny),
            "execute" => !matches!(rules.execute, Some(Rule::Deny)),
            _ => false,
        }
    }

    /// Where a path that an agent names leads, before links are looked at.
    pub(crate) fn named(&self, path: &Path) -> Result<Place, Denial> {
        let rules = &*self.0;
        let text = path.to_string_lossy();
        if text.contains('\0') {
            return Err(Denial::Unclear("a path has no zero byte in it".to_owned()));
        }
        if text.starts_with('~') {
            return Err(Denial::Outside(text.into_owned()));
        }
        let whole = if path.is_absolute() {
            normal(path)
        } else {
            // IMPORTANT: `..` must not climb above the workspace and come back by its name.
            let mut depth = 0usize;
            for part in path.components() {
                match part {
                    Component::Normal(_) => depth += 1,
                    Component::ParentDir if depth == 0 => return Err(Denial::Outside(text.into_owned())),
                    Component::ParentDir => depth -= 1,
                    Component::CurDir => {}
                    Component::RootDir | Component::Prefix(_) => {
                        return Err(Denial::Outside(text.into_owned()));
                    }
                }
            }
            normal(&rules.named_root.join(path))
        };
        let staging = rules.staging.iter().flat_map(|(a, b)| [(a, b), (b, b)]);
        let bases = staging.chain([(&rules.named_root, &rules.root), (&rules.root, &rules.root)]);
        for (as_named, base) in bases {
            if let Ok(relative) = whole.strip_prefix(as_named) {
                return Ok(Place {
                    base: base.clone(),
                    relative: relative.to_owned(),
                });
            }
        }
        // A file that the prompt refers to may lie elsewhere.
        if let (true, Some(folder), Some(name)) =
            (rules.given.contains(&whole), whole.parent(), whole.file_name())
        {
            return Ok(Place {
                base: folder.to_owned(),
                relative: PathBuf::from(name),
            });
        }
        Err(Denial::Outside(text.into_owned()))
    }

    /// The same place by another way to write it: one in the staging folder is one of the workspace, too.
    fn in_staging(&self, whole: &Path) -> bool {
        self.0
            .staging
            .as_ref()
            .is_some_and(|(_, real)| whole.starts_with(real))
    }

    /// Decides about a place, of which the caller knows that no link is in its way.
    pub(crate) fn decide_place(&self, access: Access<'_>, place: &Place) -> Decision {
        let rules = &*self.0;
        let whole = place.base.join(&place.relative);
        let (key, rule) = match access {
            Access::Read(_) => ("read", Some(&rules.read)),
            Access::Write(_) => ("write", Some(&rules.write)),
            Access::Execute(_) => ("execute", rules.execute.as_ref()),
            Access::Bash(_) | Access::Network { .. } => return Decision::Ask,
        };
        if self.in_staging(&whole) && key != "execute" {
            return Decision::Allow;
        }
        if key == "read" && rules.given.contains(&whole) {
            return Decision::Allow;
        }
        let Ok(relative) = whole.strip_prefix(&rules.root) else {
            return Decision::Deny(Denial::Outside(whole.display().to_string()));
        };
        let shown = relative.display().to_string();
        let protection = Protection::of(relative);
        let why = match key {
            "read" => protection.unreadable,
            "write" => protection.unwritable,
            _ => None,
        };
        if let Some(why) = why {
            return Decision::Deny(Denial::Protected { path: shown, why });
        }
        let is_file = || std::fs::metadata(&whole).is_ok_and(|data| !data.is_dir());
        let matches =
            |globs: &Globs| globs.matches(relative) || key == "read" && globs.fill(relative) && !is_file();
        match rule {
            Some(rule) => rule.decide(key, &shown, matches),
            None => Decision::Ask,
        }
    }

    /// Whether a folder may hold something that may be read: to be looked into, its entries are judged one by one.
    pub(crate) fn decide_folder(&self, place: &Place) -> Decision {
        match self.0.read {
            Rule::Only(_) if !self.in_staging(&place.base.join(&place.relative)) => {
                let protection = Protection::of(&place.relative);
                match protection.unreadable {
                    Some(why) => Decision::Deny(Denial::Protected {
                        path: place.relative.display().to_string(),
                        why,
                    }),
                    None => Decision::Allow,
                }
            }
            _ => self.decide_place(Access::Read(&place.relative), place),
        }
    }

    fn bash(&self, command: &str) -> Decision {
        let rules = &*self.0;
        let words = pattern::simple_command(command);
        let base = match &rules.bash {
            Some(rule) => rule.decide("bash", &rules.redactor.shown(command, 200), |commands| {
                words.is_some() && commands.matches(command)
            }),
            None => Decision::Ask,
        };
        // A command that does nothing but start a program of the workspace.
        let program = words
            .as_ref()
            .and_then(|words| words.first())
            .filter(|word| word.contains('/'))
            .filter(|word| self.named(Path::new(word)).is_ok());
        let (Some(program), Some(_)) = (program, &rules.execute) else {
            return base;
        };
        let execute = self.decide(Access::Execute(Path::new(program)));
        match (&rules.bash, execute) {
            // Nothing is said about the shell as such, so that what is said about programs counts.
            (None, Decision::Allow) => Decision::Allow,
            (_, execute) => base.and(execute),
        }
    }

    fn network(&self, host: &str, port: u16) -> Decision {
        let host = pattern::folded_host(host);
        if host.is_empty() {
            return Decision::Deny(Denial::Unclear("an address without a host".to_owned()));
        }
        let decision = self
            .0
            .network
            .decide("network", &host, |hosts| hosts.matches(&host, port));
        let private = match host.parse::<IpAddr>() {
            Ok(address) => is_private(address),
            Err(_) => pattern::is_local_name(&host),
        };
        if private && !self.names_host(&host, port) {
            return decision.and(Decision::Deny(Denial::PrivateAddress(host)));
        }
        decision
    }

    /// Whether a rule grants this very host by its name, so that it may be one of this machine's own network.
    pub(crate) fn names_host(&self, host: &str, port: u16) -> bool {
        match &self.0.network {
            Rule::Only(hosts) => hosts.names(&pattern::folded_host(host), port),
            _ => false,
        }
    }
}

/// Whether an address is none of the public internet: this machine, its own networks, and what is reserved.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                // Shared by providers, protocol assignments, benchmarks.
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (b == 18 || b == 19))
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4() {
                // Mapped and compatible addresses reach the same host; `::` and `::1` are among these.
                return is_private(IpAddr::V4(v4)) || v6.is_loopback();
            }
            let parts = v6.segments();
            v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || (parts[0] & 0xffc0) == 0xfec0
                || (parts[0] == 0x2001 && parts[1] == 0xdb8)
                // Addresses that carry an IPv4 address inside: translated and tunnelled.
                || (parts[0] == 0x64 && parts[1] == 0xff9b)
                || parts[0] == 0x2002
                || (parts[0] == 0x2001 && parts[1] == 0)
        }
    }
}

/// A path without `.` and `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Follows the links in a place. What does not exist yet stays as it is named, below what exists.
pub(crate) fn resolve(place: &Place) -> Result<Place, Denial> {
    let shown = || place.relative.display().to_string();
    let mut existing = place.base.join(&place.relative);
    let mut rest: Vec<std::ffi::OsString> = Vec::new();
    let real = loop {
        match std::fs::canonicalize(&existing) {
            Ok(real) => break real,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                // A link to nowhere: what is made through it would be made elsewhere.
                if std::fs::symlink_metadata(&existing).is_ok_and(|meta| meta.file_type().is_symlink()) {
                    return Err(Denial::Unclear(format!(
                        "{} is a link that leads nowhere",
                        shown()
                    )));
                }
                let Some(name) = existing.file_name().map(ToOwned::to_owned) else {
                    return Err(Denial::Outside(shown()));
                };
                rest.push(name);
                existing.pop();
            }
            Err(error) => return Err(Denial::Unclear(format!("{}: {error}", shown()))),
        }
    };
    let whole = rest.iter().rev().fold(real, |path, name| path.join(name));
    match whole.strip_prefix(&place.base) {
        Ok(relative) => Ok(Place {
            base: place.base.clone(),
            relative: relative.to_owned(),
        }),
        Err(_) => Err(Denial::Outside(format!("{} (where it leads)", shown()))),
    }
}

#[cfg(test)]
mod tests;
