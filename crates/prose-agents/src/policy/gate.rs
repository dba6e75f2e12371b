//! Asking a person, and remembering what was granted for the rest of a session.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::{Access, Decision, Denial, Policy};
use crate::session::{PermissionAnswer, PermissionQuestion, SessionSink};

/// The longest text that a person is asked to judge, in characters.
const LONGEST_QUESTION: usize = 2_000;

/// A session's policy with the way to the person who decides what it leaves open.
///
/// Only the answers of the sink grant anything: what a session says about permissions is nothing but text.
pub struct Gate {
    policy: Policy,
    sink: Arc<dyn SessionSink>,
    granted: Mutex<HashSet<String>>,
}

impl Gate {
    /// The gate of one session.
    pub fn new(policy: Policy, sink: Arc<dyn SessionSink>) -> Gate {
        Gate {
            policy,
            sink,
            granted: Mutex::default(),
        }
    }

    /// What hides secrets from what a person or the session is told.
    pub(crate) fn redactor(&self) -> crate::Redactor {
        self.sink.redactor()
    }

    /// The policy behind it.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides, and asks where the policy leaves it to a person. `tool` is the tool's name.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn pass(&self, tool: &str, access: Access<'_>) -> Result<(), Denial> {
        self.ask(tool, access, self.policy.decide(access)).await
    }

    /// The same for a decision that was made about `access`.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn ask(&self, tool: &str, access: Access<'_>, decision: Decision) -> Result<(), Denial> {
        match decision {
            Decision::Allow => return Ok(()),
            Decision::Deny(why) => return Err(why),
            Decision::Ask => {}
        }
        let (key, detail) = match access {
            Access::Read(path) => ("read", path.to_string_lossy().into_owned()),
            Access::Write(path) => ("write", path.to_string_lossy().into_owned()),
            Access::Execute(path) => ("execute", path.to_string_lossy().into_owned()),
            Access::Bash(command) => ("bash", command.to_owned()),
            Access::Network { host, port } => ("network", format!("{host}:{port}")),
        };
        // What was granted for a session is the kind; of the network, one host.
        let grant = match access {
            Access::Network { .. } => format!("{key} {detail}"),
            _ => key.to_owned(),
        };
        if self.granted().contains(&grant) {
            return Ok(());
        }
        if detail.chars().count() > LONGEST_QUESTION {
            // Nobody should say yes to what was cut off.
            return Err(Denial::Unclear(format!(
                "too long to ask a person about ({LONGEST_QUESTION} characters at most): do it in smaller steps"
            )));
        }
        let detail = shown(&detail, usize::MAX);
        let question = PermissionQuestion {
            key: key.to_owned(),
            tool: tool.to_owned(),
            detail: detail.clone(),
        };
        match self.sink.ask_permission(question).await {
            PermissionAnswer::Allow => Ok(()),
            PermissionAnswer::AllowSession => {
                self.granted().insert(grant);
                Ok(())
            }
            PermissionAnswer::Deny => Err(Denial::Refused(format!(
                "{key} {}",
                self.redactor().shown(&detail, 200)
            ))),
        }
    }

    /// Asks a person about something that no permission speaks of. A session that may run nothing may not do that either.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn ask_other(&self, tool: &str, detail: &str) -> Result<(), Denial> {
        if !self.policy.is_possible("bash") || !self.policy.is_possible("execute") {
            return Err(Denial::Rule {
                key: "execute",
                what: tool.to_owned(),
            });
        }
        let question = PermissionQuestion {
            key: "execute".to_owned(),
            tool: tool.to_owned(),
            detail: detail.to_owned(),
        };
        match self.sink.ask_permission(question).await {
            PermissionAnswer::Allow | PermissionAnswer::AllowSession => Ok(()),
            PermissionAnswer::Deny => Err(Denial::Refused(format!("{tool} {detail}"))),
        }
    }

    fn granted(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text on one line with nothing in it that moves, hides or turns around what a person reads, cut at `longest`
/// characters. Many spaces are one, so that nothing is pushed out of sight.
pub fn shown(text: &str, longest: usize) -> String {
    let mut out = String::with_capacity(text.len().min(longest.saturating_mul(4)));
    let mut count = 0;
    let mut space = false;
    for c in text.trim().chars() {
        if count >= longest {
            out.push('…');
            break;
        }
        let is_space = c.is_whitespace() && c != '\n';
        if is_space && space {
            continue;
        }
        space = is_space;
        count += 1;
        match c {
            '\n' => out.push('⏎'),
            _ if is_space => out.push(' '),
            // Marks that turn the direction of writing, or take no room at all.
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => out.extend(c.escape_unicode()),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
