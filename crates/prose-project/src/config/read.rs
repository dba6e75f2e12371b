//! From TOML to settings, with the line of everything that is wrong.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use indexmap::IndexMap;
use prose_model::backend::{Price, Waits};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    BUDGET, BackendConfig, BackendKind, Config, ConfigError, DURATION, LintLevel, MAX_PARALLEL, Notice,
    StateKind, TOKENS, Trust, one_of, parse_duration,
};

const TEXT: &str = "a text";

pub(super) fn parse(path: &Path, text: &str, trust: Trust) -> Result<Config, ConfigError> {
    let mut reader = Reader {
        path,
        text,
        trust,
        config: Config::default(),
    };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: reader.line(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    for (key, value) in entries(table.get_ref()) {
        match key.get_ref().as_ref() {
            "run" => reader.run(value)?,
            "models" => reader.models(value)?,
            "backends" => reader.backends(value)?,
            "lint" => reader.lint(value)?,
            "imports" => reader.imports(value)?,
            _ => reader.unknown("", key),
        }
    }
    Ok(reader.config)
}

type Key<'a> = Spanned<Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
    trust: Trust,
    config: Config,
}

impl Reader<'_> {
    fn run(&mut self, value: &Value<'_>) -> Result<(), ConfigError> {
        for (key, value) in entries(self.table("run", value)?) {
            match key.get_ref().as_ref() {
                "backend" => {
                    self.config.run.backend = Some(self.string("run.backend", value, TEXT)?);
                    self.config.run.backend_origin = Some(self.place(key.span().start));
                }
                "state" => {
                    self.config.run.state =
                        Some(self.word("run.state", value, StateKind::WORDS, StateKind::from_word)?);
                }
                "max_parallel" => {
                    let number = match value.get_ref() {
                        DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
                        _ => None,
                    };
                    let number = number.filter(|number| *number > 0);
                    self.config.run.max_parallel =
                        Some(number.ok_or_else(|| self.bad("run.max_parallel", value, MAX_PARALLEL))?);
                }
                "timeout" => self.config.run.timeout = Some(self.duration("run.timeout", value)?),
                "idle_timeout" => {
                    self.config.run.idle_timeout = Some(self.duration("run.idle_timeout", value)?);
                }
                "budget_tokens" => {
                    let number = match value.get_ref() {
                        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
                        _ => None,
                    };
                    self.config.run.budget_tokens =
                        Some(number.ok_or_else(|| self.bad("run.budget_tokens", value, TOKENS))?);
                }
                "budget_usd" => {
                    self.config.run.budget_usd = Some(self.dollars("run.budget_usd", value)?);
                }
                _ => self.unknown("run.", key),
            }
        }
        Ok(())
    }

    fn models(&mut self, value: &Value<'_>) -> Result<(), ConfigError> {
        for (key, value) in entries(self.table("models", value)?) {
            let name = key.get_ref().as_ref();
            let path = format!("models.{name}");
            match value.get_ref() {
                DeValue::String(id) => {
                    self.config.models.any.insert(name.to_owned(), id.to_string());
                }
                DeValue::Table(models) => {
                    let mut own = IndexMap::new();
                    for (model, id) in entries(models) {
                        let id = self.string(&format!("{path}.{}", model.get_ref()), id, TEXT)?;
                        own.insert(model.get_ref().to_string(), id);
                    }
                    self.config.models.by_backend.insert(name.to_owned(), own);
                }
                _ => return Err(self.bad(&path, value, "a text, or a table of one backend's models")),
            }
        }
        Ok(())
    }

    fn backends(&mut self, value: &Value<'_>) -> Result<(), ConfigError> {
        for (key, value) in entries(self.table("backends", value)?) {
            self.backend(key, value)?;
        }
        Ok(())
    }

    fn backend(&mut self, key: &Key<'_>, value: &Value<'_>) -> Result<(), ConfigError> {
        let name = key.get_ref().as_ref();
        let path = format!("backends.{name}");
        let mut kind = BackendKind::from_word(name);
        let mut backend = BackendConfig {
            kind: BackendKind::Simulate,
            origin: self.place(key.span().start),
            command: None,
            args: None,
            base_url: None,
            api_key_env: None,
            waits: Waits::default(),
            prices: IndexMap::new(),
        };
        let mut forbidden = Vec::new();
        for (key, value) in entries(self.table(&path, value)?) {
            let field = key.get_ref().as_ref();
            let path = format!("{path}.{field}");
            match field {
                "kind" => kind = Some(self.word(&path, value, BackendKind::WORDS, BackendKind::from_word)?),
                "command" => backend.command = Some(self.string(&path, value, TEXT)?),
                "args" => backend.args = Some(self.strings(&path, value)?),
                "base_url" => backend.base_url = Some(self.string(&path, value, TEXT)?),
                "api_key_env" => backend.api_key_env = Some(self.string(&path, value, TEXT)?),
                "connect_timeout" => backend.waits.connect = Some(self.duration(&path, value)?),
                "first_token_timeout" => backend.waits.first_token = Some(self.duration(&path, value)?),
                "idle_timeout" => backend.waits.idle = Some(self.duration(&path, value)?),
                "prices" => {
                    for (key, value) in entries(self.table(&path, value)?) {
                        let price = self.price(&format!("{path}.{}", key.get_ref()), key, value)?;
                        backend.prices.insert(key.get_ref().as_ref().to_owned(), price);
                    }
                }
                _ => self.unknown(&format!("backends.{name}."), key),
            }
            // A key's name, too: any variable of the person who opens it could be sent to a service that way.
            if matches!(field, "command" | "args" | "base_url" | "api_key_env") {
                forbidden.push(format!("`{field}`"));
            }
        }
        if self.trust == Trust::Untrusted && !forbidden.is_empty() {
            // The whole table goes: without these settings the name would mean something else than was written.
            let forbidden = forbidden.join(", ");
            self.notice(
                key.span().start,
                format!("`{path}` is ignored: a workspace that isn't trusted can't set {forbidden}"),
            );
            return Ok(());
        }
        backend.kind = kind.ok_or_else(|| ConfigError::Value {
            path: self.path.to_owned(),
            line: self.line(key.span().start),
            key: format!("{path}.kind"),
            expected: one_of(BackendKind::WORDS),
            found: "left out".to_owned(),
        })?;
        self.config.backends.insert(name.to_owned(), backend);
        Ok(())
    }

    fn price(&mut self, path: &str, key: &Key<'_>, value: &Value<'_>) -> Result<Price, ConfigError> {
        let (mut input, mut output, mut cached_input) = (None, None, None);
        for (key, value) in entries(self.table(path, value)?) {
            let field = key.get_ref().as_ref();
            let place = match field {
                "input" => &mut input,
                "output" => &mut output,
                "cached_input" => &mut cached_input,
                _ => {
                    self.unknown(&format!("{path}."), key);
                    continue;
                }
            };
            *place = Some(self.dollars(&format!("{path}.{field}"), value)?);
        }
        let missing = |field: &str| ConfigError::Value {
            path: self.path.to_owned(),
            line: self.line(key.span().start),
            key: format!("{path}.{field}"),
            expected: BUDGET.to_owned(),
            found: "left out".to_owned(),
        };
        Ok(Price {
            input: input.ok_or_else(|| missing("input"))?,
            output: output.ok_or_else(|| missing("output"))?,
            cached_input,
        })
    }

    fn lint(&mut self, value: &Value<'_>) -> Result<(), ConfigError> {
        for (key, value) in entries(self.table("lint", value)?) {
            let path = format!("lint.{}", key.get_ref());
            let level = self.word(&path, value, LintLevel::WORDS, LintLevel::from_word)?;
            if prose_model::codes::find(key.get_ref()).is_none() {
                self.notice(key.span().start, format!("`{path}`: there is no such code"));
            }
            self.config.lint.insert(key.get_ref().to_uppercase(), level);
        }
        Ok(())
    }

    fn imports(&mut self, value: &Value<'_>) -> Result<(), ConfigError> {
        for (key, value) in entries(self.table("imports", value)?) {
            match key.get_ref().as_ref() {
                "frozen" => {
                    let frozen = value.get_ref().as_bool();
                    self.config.imports.frozen =
                        Some(frozen.ok_or_else(|| self.bad("imports.frozen", value, "true or false"))?);
                }
                "registry" => {
                    self.config.imports.registry = Some(self.string("imports.registry", value, TEXT)?);
                }
                _ => self.unknown("imports.", key),
            }
        }
        Ok(())
    }

    fn table<'v, 't>(&self, key: &str, value: &'v Value<'t>) -> Result<&'v DeTable<'t>, ConfigError> {
        value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.bad(key, value, "a table"))
    }

    fn string(&self, key: &str, value: &Value<'_>, expected: &str) -> Result<String, ConfigError> {
        value
            .get_ref()
            .as_str()
            .map(ToOwned::to_owned)
            .ok_or_else(|| self.bad(key, value, expected))
    }

    fn duration(&self, key: &str, value: &Value<'_>) -> Result<Duration, ConfigError> {
        let duration = value.get_ref().as_str().and_then(parse_duration);
        duration.ok_or_else(|| self.bad(key, value, DURATION))
    }

    fn dollars(&self, key: &str, value: &Value<'_>) -> Result<f64, ConfigError> {
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| self.bad(key, value, BUDGET))
    }

    fn strings(&self, key: &str, value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
        const EXPECTED: &str = "a list of texts";
        let items = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.bad(key, value, EXPECTED))?;
        items
            .iter()
            .map(|item| self.string(key, item, EXPECTED))
            .collect()
    }

    fn word<T>(
        &self,
        key: &str,
        value: &Value<'_>,
        words: &[&str],
        from: fn(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        value
            .get_ref()
            .as_str()
            .and_then(from)
            .ok_or_else(|| self.bad(key, value, &one_of(words)))
    }

    fn bad(&self, key: &str, value: &Value<'_>, expected: &str) -> ConfigError {
        let found = self.text.get(value.span()).unwrap_or_default();
        // A long value would hide what is wrong with it; a table's span is only its header.
        let found: String = found.chars().take_while(|c| *c != '\n').take(60).collect();
        ConfigError::Value {
            path: self.path.to_owned(),
            line: self.line(value.span().start),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found,
        }
    }

    fn unknown(&mut self, prefix: &str, key: &Key<'_>) {
        self.notice(
            key.span().start,
            format!("unknown setting `{prefix}{}`", key.get_ref()),
        );
    }

    fn notice(&mut self, offset: usize, message: String) {
        let notice = Notice {
            path: Some(self.path.to_owned()),
            line: self.line(offset),
            message,
        };
        self.config.notices.push(notice);
    }

    /// File and line, for people.
    fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path.display(), self.line(offset))
    }

    fn line(&self, offset: usize) -> u32 {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1
    }
}

/// In the order of the file, so that the first of several errors is reported.
fn entries<'v, 't>(table: &'v DeTable<'t>) -> Vec<(&'v Key<'t>, &'v Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
