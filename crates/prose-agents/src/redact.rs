//! Secrets, and keeping them out of whatever is shown or stored.
//!
//! What is secret is known by its value: a key that an agent prints is hidden wherever it turns up, however it got there.
//! Values that say little by themselves (a number, `true`, a short word) are not looked for, since every text would lose
//! such words.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use prose_model::backend::{BackendCatalog, Variables};
use prose_model::{TextPart, Value};

/// Shorter values are not looked for: they turn up by chance.
const SHORTEST: usize = 6;

/// A value that is never shown: `Debug` and `Display` give a placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a value in.
    pub fn new(value: impl Into<Arc<str>>) -> Secret {
        Secret(value.into())
    }

    /// The value itself, for the one place that has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Replaces secret values by their names. Cheap to clone; without secrets it does nothing.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Matcher>>);

struct Matcher {
    find: AhoCorasick,
    /// What stands in the place of each pattern.
    instead: Vec<String>,
    patterns: Vec<String>,
}

/// Shows how many it knows.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |matcher| matcher.patterns.len());
        write!(f, "Redactor({count})")
    }
}

impl Redactor {
    /// Hides these values, each under its name.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Redactor {
        // By value, so that a value with two names has one place; the longest is preferred where two begin together.
        let mut patterns: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in secrets {
            for form in forms(value) {
                patterns
                    .entry(form)
                    .or_insert_with(|| format!("[redacted {name}]"));
            }
        }
        if patterns.is_empty() {
            return Redactor(None);
        }
        let (patterns, instead): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns);
        // It fails only where there are more patterns than a state can be numbered by.
        Redactor(built.ok().map(|find| {
            Arc::new(Matcher {
                find,
                instead,
                patterns,
            })
        }))
    }

    /// Hides what `.prose/.env` holds, the keys of all backends, and whatever the environment holds under a name that says
    /// it is secret.
    pub fn for_catalog(catalog: &BackendCatalog) -> Redactor {
        let variables = &catalog.variables;
        let keys = catalog.specs.values().filter_map(|spec| {
            let name = spec.api_key_env.as_deref()?;
            Some((name, variables.get(name)?))
        });
        Redactor::new(keys.chain(secrets_of(variables)))
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text without secrets; borrowed where there are none in it.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(matcher) = self.0.as_deref() else {
            return Cow::Borrowed(text);
        };
        if !matcher.find.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        matcher.find.replace_all_with(text, &mut out, |found, _, out| {
            out.push_str(&matcher.instead[found.pattern().as_usize()]);
            true
        });
        Cow::Owned(out)
    }

    /// The same in place; nothing is copied where there is nothing to hide.
    pub fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(new) = self.redact(text) {
            *text = new;
        }
    }

    /// Hides secrets in every string of a JSON value.
    pub fn redact_json(&self, json: &mut serde_json::Value) {
        if self.is_empty() {
            return;
        }
        match json {
            serde_json::Value::String(text) => self.redact_in(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            serde_json::Value::Object(entries) => {
                entries.values_mut().for_each(|value| self.redact_json(value));
            }
            _ => {}
        }
    }

    /// The value without secrets in its texts, at any depth. Content behind references was looked through when it was
    /// stored.
    pub fn redact_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::Text(mut text) => {
                for part in &mut text.parts {
                    if let TextPart::Inline(inline) = part
                        && let Cow::Owned(new) = self.redact(inline)
                    {
                        *inline = new.into();
                    }
                }
                Value::Text(text)
            }
            Value::List(items) => {
                Value::list(items.iter().map(|item| self.redact_value(item.clone())).collect())
            }
            Value::Record(entries) => Value::record(
                entries
                    .iter()
                    .map(|(key, item)| (key.clone(), self.redact_value(item.clone()))),
            ),
            other => other,
        }
    }

    /// For a text that comes in pieces: a secret may lie across two of them.
    pub fn stream(&self) -> RedactStream {
        RedactStream {
            redactor: self.clone(),
            held: String::new(),
        }
    }
}

/// A text in pieces, without secrets. What may be the beginning of one is held back until more is known.
#[derive(Debug, Clone)]
pub struct RedactStream {
    redactor: Redactor,
    held: String,
}

impl RedactStream {
    /// Takes a piece and gives what can be shown now, possibly nothing.
    pub fn push(&mut self, piece: &str) -> String {
        let Some(matcher) = self.redactor.0.as_deref() else {
            return piece.to_owned();
        };
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let open = matcher.open_from(&text);
        self.held = text.split_off(open);
        self.redactor.redact_in(&mut text);
        text
    }

    /// The rest, when no piece follows.
    pub fn finish(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.held);
        self.redactor.redact_in(&mut rest);
        rest
    }
}

impl Matcher {
    /// Where the part of the text begins that more text could still make a secret of; its length when there is none.
    fn open_from(&self, text: &str) -> usize {
        let longest = self.patterns.iter().map(String::len).max().unwrap_or(0);
        let earliest = text.len().saturating_sub(longest.saturating_sub(1));
        let mut from = (earliest..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .find(|at| {
                self.patterns
                    .iter()
                    .any(|pattern| pattern.len() > text.len() - at && pattern.starts_with(&text[*at..]))
            })
            .unwrap_or(text.len());
        // A secret that is whole and reaches into that part must not be cut.
        for found in self.find.find_iter(text) {
            if found.start() < from && found.end() > from {
                from = found.start();
            }
        }
        from
    }
}

/// Variables whose values are secret: those of `.prose/.env` unless they say nothing, those of the process by their names.
fn secrets_of(variables: &Variables) -> impl Iterator<Item = (&str, &str)> {
    let named = variables.iter().filter(|(name, _)| is_secret_name(name));
    variables
        .secret()
        .filter(|(_, value)| !is_plain(value))
        .chain(named)
}

/// Whether a variable's name says that its value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let secret = [
        "KEY",
        "APIKEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "COOKIE",
        "PGPASSWORD",
    ];
    // `SSH_AUTH_SOCK` and the like name places.
    let place = matches!(words.last(), Some(&("SOCK" | "FILE" | "PATH" | "DIR" | "ID")));
    (!place && words.iter().any(|word| secret.contains(word)))
        || name.ends_with("DATABASE_URL")
        || name.ends_with("POSTGRES_URL")
}

/// Whether a value says nothing by itself: truth values, numbers, addresses and paths without a password.
fn is_plain(value: &str) -> bool {
    let word = value.to_ascii_lowercase();
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let address =
        (value.starts_with("http://") || value.starts_with("https://")) && !value.contains(['@', '?']);
    number
        || address
        || matches!(
            word.as_str(),
            "filesystem"
                | "in-context"
                | "sqlite"
                | "postgres"
                | "enabled"
                | "disabled"
                | "development"
                | "production"
        )
        || (value.starts_with(['/', '~', '.']) && std::path::Path::new(value).exists())
}

/// A value as it is and as it may be written inside of JSON and addresses; a password that it holds by itself, too.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    if value.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![value.to_owned()];
    let json = serde_json::Value::from(value).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    forms.push(percent_encoded(value));
    if let Some(password) = password(value).filter(|password| password.len() >= SHORTEST) {
        forms.push(password.to_owned());
        forms.push(percent_encoded(password));
    }
    forms
}

/// The password of `scheme://user:password@host`.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn percent_encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("sk-abcdef");
        assert_eq!(format!("{secret} {secret:?}"), "[secret] Secret");
        assert_eq!(secret.expose(), "sk-abcdef");
    }

    #[test]
    fn values_are_found_wherever_they_are() {
        let redactor = Redactor::new([
            ("A_KEY", "sk-abc\"def"),
            ("URL", "postgres://u:p@ss-word@host/db"),
        ]);
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("key sk-abc\"def!", "key [redacted A_KEY]!"),
            (r#"{"key":"sk-abc\"def"}"#, r#"{"key":"[redacted A_KEY]"}"#),
            ("?key=sk-abc%22def&x", "?key=[redacted A_KEY]&x"),
            ("postgres://u:p@ss-word@host/db", "[redacted URL]"),
            ("password p@ss-word", "password [redacted URL]"),
        ] {
            assert_eq!(redactor.redact(text), expected);
        }
        assert!(matches!(redactor.redact("nothing here"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("sk-abc"));
        let mut json = serde_json::json!({ "a": ["sk-abc\"def", 1] });
        redactor.redact_json(&mut json);
        assert_eq!(json, serde_json::json!({ "a": ["[redacted A_KEY]", 1] }));
    }

    #[test]
    fn what_says_nothing_is_left() {
        let file = [
            ("PORT", "8080000"),
            ("DEBUG", "true"),
            ("STATE", "filesystem"),
            ("WORD", "swordfish"),
        ];
        let process = [
            ("HOME", "/home/someone"),
            ("GITHUB_TOKEN", "ghp_0123456789"),
            ("SSH_AUTH_SOCK", "/tmp/agent.sock"),
            ("KEYBOARD", "qwertz-layout"),
        ];
        let catalog = BackendCatalog {
            variables: Variables::new(map(&process), map(&file)),
            ..BackendCatalog::default()
        };
        let redactor = Redactor::for_catalog(&catalog);
        assert_eq!(
            redactor.redact(
                "8080000 true filesystem swordfish /home/someone ghp_0123456789 /tmp/agent.sock qwertz-layout"
            ),
            "8080000 true filesystem [redacted WORD] /home/someone [redacted GITHUB_TOKEN] /tmp/agent.sock qwertz-layout"
        );
        assert!(Redactor::for_catalog(&BackendCatalog::default()).is_empty());
    }

    #[test]
    fn a_secret_in_pieces_is_found() {
        let redactor = Redactor::new([("K", "abcabd-é-1"), ("L", "abcabd")]);
        let text = "x abcabc abcabd-é-1 y abcabd-é abcabc";
        let whole = redactor.redact(text).into_owned();
        assert_eq!(whole, "x abcabc [redacted K] y [redacted L]-é abcabc");
        let chars: Vec<char> = text.chars().collect();
        for size in 1..chars.len() {
            let mut stream = redactor.stream();
            let mut out = String::new();
            for piece in chars.chunks(size) {
                out.push_str(&stream.push(&piece.iter().collect::<String>()));
            }
            out.push_str(&stream.finish());
            assert_eq!(out, whole, "in pieces of {size}");
        }
    }
}
