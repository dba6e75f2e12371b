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

    /// Hides the secrets among the variables, as [`Redactor::for_catalog`] does, and these keys of a backend.
    pub(crate) fn for_backend<'a>(
        variables: &'a Variables,
        keys: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Redactor {
        Redactor::new(keys.into_iter().chain(secrets_of(variables)))
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

    /// The text without secrets, cut. In this order: the cut would leave a half of a secret, which nobody recognizes.
    pub fn cut<T>(&self, text: &str, cut: impl FnOnce(&str) -> T) -> T {
        cut(&self.redact(text))
    }

    /// The first line that says something, without secrets, cut at 120 characters.
    pub fn one_line(&self, text: &str) -> String {
        self.cut(text, crate::one_line)
    }

    /// The text without secrets as [`crate::policy::shown`] shows it.
    pub fn shown(&self, text: &str, longest: usize) -> String {
        self.cut(text, |text| crate::policy::shown(text, longest))
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

    /// For bytes that come in pieces.
    pub(crate) fn bytes(&self) -> RedactBytes {
        RedactBytes {
            stream: self.stream(),
            partial: Vec::new(),
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

/// Bytes in pieces as text without secrets; bytes that are no UTF-8 are replaced.
#[derive(Debug, Clone)]
pub(crate) struct RedactBytes {
    stream: RedactStream,
    /// The beginning of a character.
    partial: Vec<u8>,
}

impl RedactBytes {
    /// Takes a piece and gives what can be shown now, possibly nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        self.partial.extend_from_slice(piece);
        let (mut text, mut at) = (String::new(), 0);
        while at < self.partial.len() {
            let rest = &self.partial[at..];
            match std::str::from_utf8(rest) {
                Ok(whole) => {
                    text.push_str(whole);
                    at += whole.len();
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&rest[..valid]));
                    at += valid;
                    match error.error_len() {
                        Some(wrong) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            at += wrong;
                        }
                        None => break,
                    }
                }
            }
        }
        self.partial.drain(..at);
        self.stream.push(&text)
    }

    /// The rest, when no piece follows. Where the text was cut instead, what is held back is better not shown.
    pub(crate) fn finish(&mut self) -> String {
        let last = match std::mem::take(&mut self.partial).is_empty() {
            true => String::new(),
            false => self.stream.push("\u{fffd}"),
        };
        last + &self.stream.finish()
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

/// Variables whose values are secret: those of `.prose/.env`, those of the process by their names, and whatever has a
/// password in it; none that say nothing.
fn secrets_of(variables: &Variables) -> impl Iterator<Item = (&str, &str)> {
    let named = variables.iter().filter(|(name, value)| {
        // A `KEY` opens a lock or finds an entry; what finds an entry is a word.
        (is_secret_name(name) && !(is_vague_name(name) && is_word(value)))
            || value.contains("://") && password(value).is_some()
            || name.to_ascii_uppercase().ends_with("_PROXY") && password(value).is_some()
    });
    variables
        .secret()
        .chain(named)
        .filter(|(_, value)| !is_plain(value))
}

/// Words of names whose values are secret; each may be plural.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PAT",
    "COOKIE",
    "PGPASSWORD",
    "DSN",
];

/// Whether a variable's name says that its value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let is_secret =
        |word: &&str| SECRET_WORDS.contains(word) || SECRET_WORDS.contains(&word.trim_end_matches('S'));
    // `SSH_AUTH_SOCK` and the like name places.
    let place = matches!(words.last(), Some(&("SOCK" | "FILE" | "PATH" | "DIR" | "ID")));
    // `PWD` by itself is the folder.
    let short = words.len() > 1 && matches!(words.last(), Some(&("PASS" | "PWD")));
    (!place && (short || words.iter().any(is_secret)))
        || name.ends_with("DATABASE_URL")
        || name.ends_with("POSTGRES_URL")
}

/// Whether nothing but `KEY` in a name says that it is secret, and not what of.
fn is_vague_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let clear = [
        "API",
        "ACCESS",
        "PRIVATE",
        "SIGNING",
        "ENCRYPTION",
        "MASTER",
        "AUTH",
    ];
    words.iter().any(|word| matches!(*word, "KEY" | "KEYS"))
        && !words.iter().any(|word| clear.contains(word))
        && !is_secret_name(&words.join("_").replace("KEY", "X"))
}

/// Whether a value is one that a person would write in lower case: a name of something.
fn is_word(value: &str) -> bool {
    value.len() < 24
        && value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/'))
}

/// Whether a value says nothing by itself: truth values, numbers, addresses and paths without a password.
fn is_plain(value: &str) -> bool {
    let word = value.to_ascii_lowercase();
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let address = value.contains("://") && !value.contains(['@', '?']);
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
                | "default"
                | "required"
                | "development"
                | "production"
                | "staging"
                | "testing"
                | "localhost"
                | "password"
                | "secret"
        )
        || (value.starts_with(['/', '~', '.']) && std::path::Path::new(value).exists())
}

/// A value as it is and as it may be written inside of JSON and addresses; a password that it holds, and the items where it
/// is a list, by themselves, too.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut forms = Vec::new();
    let items = value.split([',', ';']).map(str::trim);
    let items = items.filter(|_| !value.contains("://") && !value.contains(char::is_whitespace));
    for part in [value].into_iter().chain(password(value)).chain(items) {
        if part.len() < SHORTEST || is_plain(part) && part != value {
            continue;
        }
        let json = serde_json::Value::from(part).to_string();
        for form in [
            part.to_owned(),
            json[1..json.len() - 1].to_owned(),
            percent_encoded(part),
        ] {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// The password of `scheme://user:password@host`; the scheme may be left out.
fn password(value: &str) -> Option<&str> {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !user.contains(char::is_whitespace)).then_some(password)
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
            ("CACHE_KEY", "production"),
            ("SORT_KEY", "created_at"),
            ("KEY_COUNT", "1000000"),
            ("PWD", "/home/someone"),
            ("SHARED_DATABASE_URL", "postgres://localhost/notes"),
        ];
        let catalog = BackendCatalog {
            variables: Variables::new(map(&process), map(&file)),
            ..BackendCatalog::default()
        };
        let redactor = Redactor::for_catalog(&catalog);
        assert_eq!(
            redactor.redact(
                "8080000 true filesystem swordfish /home/someone ghp_0123456789 /tmp/agent.sock qwertz-layout \
                 production created_at 1000000 postgres://localhost/notes"
            ),
            "8080000 true filesystem [redacted WORD] /home/someone [redacted GITHUB_TOKEN] /tmp/agent.sock qwertz-layout \
             production created_at 1000000 postgres://localhost/notes"
        );
        assert!(Redactor::for_catalog(&BackendCatalog::default()).is_empty());
    }

    #[test]
    fn names_and_addresses_say_what_is_secret() {
        for (name, value, text) in [
            (
                "HTTPS_PROXY",
                "http://me:let-me-through@proxy:3128",
                "a let-me-through b",
            ),
            ("ALL_PROXY", "me:let-me-through@proxy:3128", "a let-me-through b"),
            (
                "REDIS_URL",
                "redis://:hare-and-hedgehog@cache",
                "hare-and-hedgehog",
            ),
            (
                "ANY",
                "amqp://u:hare-and-hedgehog@queue/x",
                "amqp://u:hare-and-hedgehog@queue/x",
            ),
            ("DEPLOY_TOKENS", "first-token,other-token", "x other-token"),
            ("API_KEYS", "k-000001", "k-000001"),
            ("SMTP_PASS", "open sesame", "open sesame"),
            ("MYSQL_PWD", "opensesame", "opensesame"),
            (
                "SENTRY_DSN",
                "https://0a1b2c@sentry.example/1",
                "https://0a1b2c@sentry.example/1",
            ),
            ("APP_KEY", "base64:Zm9v", "base64:Zm9v"),
            ("SIGNING_KEY", "swordfish", "swordfish"),
        ] {
            let catalog = BackendCatalog {
                variables: Variables::new(map(&[(name, value)]), map(&[])),
                ..BackendCatalog::default()
            };
            let hidden = Redactor::for_catalog(&catalog).redact(text).into_owned();
            assert!(hidden.contains(&format!("[redacted {name}]")), "{name}: {hidden}");
        }
        for (name, value) in [("MAIL", "mailto:someone@host"), ("REMOTE", "git@host:notes.git")] {
            let catalog = BackendCatalog {
                variables: Variables::new(map(&[(name, value)]), map(&[])),
                ..BackendCatalog::default()
            };
            assert!(Redactor::for_catalog(&catalog).is_empty(), "{name}");
        }
    }

    #[test]
    fn bytes_in_pieces_are_read_as_one_text() {
        let redactor = Redactor::new([("K", "abc-é-def")]);
        let bytes = b"\xff abc-\xc3\xa9-def \xe2\x82".as_slice();
        for size in 1..bytes.len() {
            let mut stream = redactor.bytes();
            let mut out: String = bytes.chunks(size).map(|piece| stream.push(piece)).collect();
            out.push_str(&stream.finish());
            assert_eq!(out, "\u{fffd} [redacted K] \u{fffd}", "in pieces of {size}");
        }
        // Half of a secret is not shown.
        assert_eq!(redactor.bytes().push(b"x abc-"), "x ");
        assert_eq!(
            redactor.one_line(&format!("{}abc-é-def", "x".repeat(115))).len(),
            119 + 3
        );
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
