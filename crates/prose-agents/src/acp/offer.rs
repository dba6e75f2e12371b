//! What an agent offers for a session: modes and models. Newer agents offer both as options of the session, older ones
//! by themselves.

use serde_json::{Value as Json, json};

/// How many models a message names.
const NAMED: usize = 12;

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    id: String,
    name: String,
}

/// What there is to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Choices(Vec<Choice>);

impl Choices {
    /// Of ids and names.
    pub(crate) fn new(choices: impl IntoIterator<Item = (String, String)>) -> Choices {
        let choice = |(id, name)| Choice { id, name };
        Choices(choices.into_iter().map(choice).collect())
    }

    /// The one that is meant by a name: by its id, then by its name, then the one that has the name as a word in it.
    pub(crate) fn find(&self, wanted: &str) -> Option<&str> {
        let wanted = wanted.trim().to_lowercase();
        if wanted.is_empty() {
            return None;
        }
        let lower = |text: &str| text.to_lowercase();
        let by = |is: &dyn Fn(&Choice) -> bool| self.0.iter().find(|choice| is(choice));
        by(&|choice| lower(&choice.id) == wanted)
            .or_else(|| by(&|choice| lower(&choice.name) == wanted))
            // `sonnet` is `anthropic/claude-sonnet-4-5` and not `sonnetto`.
            .or_else(|| by(&|choice| has_word(&lower(&choice.id), &wanted)))
            .or_else(|| by(&|choice| has_word(&lower(&choice.name), &wanted)))
            .map(|choice| choice.id.as_str())
    }

    /// Their ids, for a message.
    pub(crate) fn in_words(&self) -> String {
        let mut ids: Vec<&str> = self.0.iter().map(|choice| choice.id.as_str()).collect();
        let left = ids.len().saturating_sub(NAMED);
        ids.truncate(NAMED);
        let mut text = ids.join(", ");
        if left > 0 {
            text.push_str(&format!(" and {left} more"));
        }
        text
    }
}

/// How the agent is told what was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// `session/set_config_option` for the option of this id.
    Option(String),
    Mode,
    Model,
}

/// The things of one kind that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    way: Way,
    choices: Choices,
    /// What counts if nothing is chosen.
    pub(super) current: Option<String>,
}

/// A request that chooses: method and parameters.
pub(super) type Request = (&'static str, Json);

impl Offer {
    /// The modes that the answer to `session/new` offers.
    pub(super) fn modes(session: &Json) -> Option<Offer> {
        Offer::by_itself(
            &session["modes"],
            "availableModes",
            "id",
            "currentModeId",
            Way::Mode,
        )
        .or_else(|| Offer::option(session, "mode"))
    }

    /// The models that it offers.
    pub(super) fn models(session: &Json) -> Option<Offer> {
        let older = &session["models"];
        Offer::option(session, "model")
            .or_else(|| Offer::by_itself(older, "availableModels", "modelId", "currentModelId", Way::Model))
    }

    fn by_itself(state: &Json, list: &str, id: &str, current: &str, way: Way) -> Option<Offer> {
        let choices = Choices(choices(state.get(list)?, id));
        Some(Offer {
            way,
            choices,
            current: state[current].as_str().map(ToOwned::to_owned),
        })
    }

    fn option(session: &Json, category: &str) -> Option<Offer> {
        let options = session["configOptions"].as_array()?;
        let is_select = |option: &&Json| option["type"] == "select";
        let option = options
            .iter()
            .filter(is_select)
            .find(|option| option["category"] == category)
            .or_else(|| {
                options
                    .iter()
                    .filter(is_select)
                    .find(|option| option["id"] == category)
            })?;
        Some(Offer {
            way: Way::Option(option["id"].as_str()?.to_owned()),
            choices: Choices(choices(&option["options"], "value")),
            current: option["currentValue"].as_str().map(ToOwned::to_owned),
        })
    }

    /// The first of these ids that is offered.
    pub(super) fn first_of(&self, ids: &[&'static str]) -> Option<&'static str> {
        let offered = |id: &&&str| self.choices.0.iter().any(|choice| choice.id == **id);
        ids.iter().find(offered).copied()
    }

    /// The one that is meant by a name.
    pub(super) fn find(&self, wanted: &str) -> Option<&str> {
        self.choices.find(wanted)
    }

    /// The request that chooses.
    pub(super) fn choose(&self, session: &str, id: &str) -> Request {
        match &self.way {
            Way::Option(option) => (
                "session/set_config_option",
                json!({"sessionId": session, "configId": option, "value": id}),
            ),
            Way::Mode => ("session/set_mode", json!({"sessionId": session, "modeId": id})),
            Way::Model => ("session/set_model", json!({"sessionId": session, "modelId": id})),
        }
    }

    /// What is offered, for a message.
    pub(super) fn in_words(&self) -> String {
        self.choices.in_words()
    }
}

/// The entries of a list, those of its groups included.
fn choices(list: &Json, id: &str) -> Vec<Choice> {
    let mut found = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        if let Some(group) = entry.get("options") {
            found.extend(choices(group, id));
        } else if let Some(value) = entry[id].as_str() {
            let name = entry["name"].as_str().unwrap_or(value);
            found.push(Choice {
                id: value.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    found
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric();
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_in_options_and_by_themselves() {
        let newer = json!({"configOptions": [
            {"id": "m", "category": "mode", "type": "select", "currentValue": "build", "options": [{"value": "build", "name": "Build"}]},
            {"id": "which", "category": "model", "type": "select", "currentValue": "a", "options": [
                {"group": "one", "name": "One", "options": [{"value": "x/claude-sonnet-4-5", "name": "Claude Sonnet"}]},
                {"group": "two", "name": "Two", "options": [{"value": "sonnetto", "name": "Other"}, {"value": "b", "name": "Haiku"}]},
            ]},
        ]});
        let models = Offer::models(&newer).unwrap();
        assert_eq!(models.find("sonnet"), Some("x/claude-sonnet-4-5"));
        assert_eq!(models.find("Haiku"), Some("b"));
        assert_eq!(models.find("opus"), None);
        assert_eq!(models.in_words(), "x/claude-sonnet-4-5, sonnetto, b");
        assert_eq!(
            models.choose("s", "b"),
            (
                "session/set_config_option",
                json!({"sessionId": "s", "configId": "which", "value": "b"})
            )
        );
        let modes = Offer::modes(&newer).unwrap();
        assert_eq!(modes.first_of(&["default", "build"]), Some("build"));

        let older = json!({
            "models": {"currentModelId": "auto", "availableModels": [{"modelId": "auto", "name": "Auto"}]},
            "modes": {"currentModeId": "yolo", "availableModes": [{"id": "default", "name": "Default"}]},
        });
        let models = Offer::models(&older).unwrap();
        assert_eq!(
            models.choose("s", "auto"),
            ("session/set_model", json!({"sessionId": "s", "modelId": "auto"}))
        );
        assert_eq!(models.current.as_deref(), Some("auto"));
        let modes = Offer::modes(&older).unwrap();
        assert_eq!(
            modes.choose("s", "default"),
            ("session/set_mode", json!({"sessionId": "s", "modeId": "default"}))
        );
        assert_eq!(Offer::models(&json!({})), None);
    }
}
