//! Keys and values of properties, permissions and modifiers.

use prose_hir::DefKind;
use prose_model::vocabulary::{self, Modifier, ModifierOwner, Word};

use super::context::{Modified, Owner};
use super::{Completions, Proposal, Rank};
use crate::types::CompletionKind;

impl Completions<'_> {
    /// Keys that may stand here and don't yet.
    pub(super) fn property_keys(&mut self, owner: Owner, present: &[String]) {
        for property in vocabulary::PROPERTIES {
            let fits = if owner == Owner::Agent {
                property.agent
            } else {
                property.session
            };
            if !fits || present.iter().any(|key| key == property.key) {
                continue;
            }
            let snippet = match property.key {
                "prompt" => Some("prompt: \"$1\"$0".to_owned()),
                "skills" => Some("skills: [\"$1\"]$0".to_owned()),
                "permissions" => Some("permissions:\n  $0".to_owned()),
                _ => None,
            };
            let mut proposal = Proposal::new(property.key, CompletionKind::Property, Rank::First)
                .detail(property.usage)
                .doc(property.doc);
            // The nested lines of permissions are below.
            let colon = if property.key == "permissions" { ":" } else { ": " };
            if !self.followed_by(':') {
                proposal = proposal.insert(format!("{}{colon}", property.key));
                if let Some(snippet) = snippet {
                    proposal = proposal.snippet(snippet);
                }
            }
            self.add(proposal);
        }
    }

    pub(super) fn permission_keys(&mut self, present: &[String]) {
        for permission in vocabulary::PERMISSIONS {
            if present.iter().any(|key| key == permission.word) {
                continue;
            }
            let mut proposal =
                Proposal::new(permission.word, CompletionKind::Property, Rank::First).doc(permission.doc);
            if !self.followed_by(':') {
                proposal = proposal.insert(format!("{}: ", permission.word));
            }
            self.add(proposal);
        }
    }

    pub(super) fn permission_values(&mut self) {
        self.words(vocabulary::PERMISSION_VALUES, false);
    }

    /// Values of a property; `quoted`: inside quotes that are there.
    pub(super) fn property_values(&mut self, key: &str, quoted: bool) {
        let Some(property) = vocabulary::property(key) else {
            return;
        };
        match key {
            // A path is no word from the list.
            "persist" if quoted => {}
            "prompt" | "retry" if !quoted => self.variables(Rank::First),
            "context" if !quoted => self.context_values(),
            _ => self.words(property.values, false),
        }
    }

    fn words(&mut self, words: &'static [Word], quotes: bool) {
        // In the order of the table, which goes from usual to unusual.
        for word in words {
            let mut proposal = Proposal::new(word.word, CompletionKind::Value, Rank::First).doc(word.doc);
            if quotes {
                proposal = proposal.insert(format!("\"{}\"", word.word));
            }
            self.add(proposal);
        }
    }

    /// Modifiers that may stand here and don't yet; also the join strategies, which are written without a key.
    pub(super) fn modifiers(&mut self, of: Modified, present: &[String]) {
        let owner = owner(of);
        for modifier in modifiers_of(owner) {
            match modifier.key {
                None => self.words(modifier.values, true),
                Some(key) if present.iter().any(|it| it == key) => {}
                Some(key) => {
                    let mut proposal = Proposal::new(key, CompletionKind::Property, Rank::First)
                        .detail(modifier.usage)
                        .doc(modifier.doc);
                    if !self.followed_by(':') {
                        proposal = proposal.insert(format!("{key}: "));
                    }
                    self.add(proposal);
                }
            }
        }
    }

    pub(super) fn modifier_values(&mut self, of: Modified, name: Option<&str>, quoted: bool) {
        if let Some(modifier) = vocabulary::modifier(owner(of), name) {
            if modifier.values.is_empty() && !quoted {
                // A number: it may have a name.
                self.variables(Rank::Near);
            } else {
                self.words(modifier.values, !quoted);
            }
        }
    }

    /// Keys of the record on the right of `let { … } =`.
    pub(super) fn pattern_keys(&mut self, line: prose_syntax::TextRange) {
        let text = self.slice(line).to_owned();
        let Some((pattern, right)) = text.split_once('=') else {
            return;
        };
        let Some((callee, _)) = right.trim().split_once('(') else {
            return;
        };
        let callee = callee.trim();
        let outputs = crate::names::globals(self.db, self.source, DefKind::Import)
            .into_iter()
            .find(|it| it.name == callee)
            .and_then(|it| crate::describe::contract(self.db, &it.definition?))
            .map(|it| it.outputs);
        let taken: Vec<&str> = pattern
            .split(|ch: char| !(ch.is_alphanumeric() || ch == '_' || ch == '-'))
            .collect();
        for output in outputs.into_iter().flatten() {
            if !taken.contains(&output.as_str()) {
                self.add(Proposal::new(output.as_str(), CompletionKind::Field, Rank::First).detail("output"));
            }
        }
    }
}

fn owner(of: Modified) -> ModifierOwner {
    match of {
        Modified::Parallel => ModifierOwner::Parallel,
        Modified::ParallelFor => ModifierOwner::ParallelFor,
        Modified::Loop => ModifierOwner::Loop,
        Modified::Block => ModifierOwner::Block,
        Modified::Session => ModifierOwner::Session,
    }
}

fn modifiers_of(owner: ModifierOwner) -> impl Iterator<Item = &'static Modifier> {
    vocabulary::MODIFIERS
        .iter()
        .filter(move |it| it.owners.contains(&owner))
}
