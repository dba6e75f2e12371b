//! What the person can change during a session: `initializationOptions`, then the client's section `prose`.

use std::collections::BTreeMap;

use prose_ide::Severity;
use prose_project::{Config, LintLevel};
use serde::Deserialize;
use serde_json::Value;

/// The section `prose` of the client's configuration. Every key is optional, unknown keys are ignored. Trust is not
/// among them: a workspace may bring its own settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Settings {
    /// Backend for runs that name none.
    #[serde(deserialize_with = "text_or_none")]
    pub(crate) backend: Option<String>,
    /// Severities by code: `error`, `warning`, `hint`, `off`.
    pub(crate) lint: BTreeMap<String, String>,
    /// Sessions at a time in one run.
    pub(crate) max_parallel: Option<u32>,
    /// US dollars for one run.
    pub(crate) budget_usd: Option<f64>,
    /// Tokens for one run.
    pub(crate) budget_tokens: Option<u64>,
}

/// An editor's empty text field means that nothing is set.
fn text_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

impl Settings {
    /// Reads `initializationOptions` or the section `prose`. `Ok(None)` when there is nothing to read.
    pub(crate) fn read(value: &Value) -> Result<Option<Settings>, String> {
        if value.is_null() {
            return Ok(None);
        }
        Settings::deserialize(value)
            .map(Some)
            .map_err(|e| format!("settings ignored: {e}"))
    }
}

/// Severities as the person wants them: the client's settings, then `prose.toml`, then the table of codes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Lint {
    client: BTreeMap<String, LintLevel>,
    config: Config,
}

impl Lint {
    /// Combines both sources; codes are compared without regard to case. The second part names levels that don't exist.
    pub(crate) fn new(settings: &Settings, config: Config) -> (Lint, Vec<String>) {
        let (mut client, mut problems) = (BTreeMap::new(), Vec::new());
        for (code, level) in &settings.lint {
            match LintLevel::from_word(level) {
                Some(level) => drop(client.insert(code.to_uppercase(), level)),
                None => problems.push(format!(
                    "`{level}` for {code} is none of {}",
                    LintLevel::WORDS.join(", ")
                )),
            }
        }
        (Lint { client, config }, problems)
    }

    /// The severity of a code; `None` when it is off.
    pub(crate) fn severity(&self, code: &str, default: Severity) -> Option<Severity> {
        match self.client.get(code) {
            None => self.config.severity(code, default),
            Some(level) => level.severity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_read_and_blank_fields_are_unset() {
        let read = |value| Settings::read(&value);
        assert_eq!(read(json!(null)), Ok(None));
        assert_eq!(
            read(json!({ "backend": "", "server": { "path": "x" } })),
            Ok(Some(Settings::default()))
        );
        let settings = read(json!({ "backend": "claude", "maxParallel": 2 }))
            .unwrap()
            .unwrap();
        assert_eq!(
            (settings.backend.as_deref(), settings.max_parallel),
            (Some("claude"), Some(2))
        );
        assert!(read(json!({ "maxParallel": -1 })).is_err());
    }

    #[test]
    fn the_client_comes_before_the_configuration_file() {
        let settings = Settings::read(&json!({ "lint": { "p101": "off", "P102": "hint", "P103": "loud" } }));
        let path = std::path::Path::new("prose.toml");
        let text = "[lint]\nP101 = \"error\"\nP104 = \"warning\"\n";
        let config = Config::parse(path, text, prose_project::Trust::Untrusted).unwrap();
        let (lint, problems) = Lint::new(&settings.unwrap().unwrap(), config);
        assert_eq!(lint.severity("P101", Severity::Error), None);
        assert_eq!(lint.severity("P102", Severity::Error), Some(Severity::Hint));
        assert_eq!(lint.severity("P103", Severity::Error), Some(Severity::Error));
        assert_eq!(lint.severity("P104", Severity::Error), Some(Severity::Warning));
        assert_eq!(problems, ["`loud` for P103 is none of error, warning, hint, off"]);
    }
}
