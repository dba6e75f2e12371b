//! Which model a program's name means, and what models cost.
//!
//! Ids and list prices as of [`PRICES_OF`]. Both change: `[models]` in `prose.toml` names other models, and a model
//! that is not in the table has no price, so that its runs show tokens only.

use indexmap::IndexMap;
use prose_model::backend::Price as Configured;

use super::wire::{Tokens, Wire};

/// The month in which the tables below were true, as `2025-12`.
pub(crate) const PRICES_OF: &str = "2025-12";

/// The program's name for the model of a session that names none.
const USUAL: &str = "sonnet";

/// What a program's names mean where nothing else is configured.
const DEFAULTS: &[(&str, &str, &str)] = &[
    // name, Anthropic, OpenAI
    ("opus", "claude-opus-4-5", "gpt-5.1"),
    ("sonnet", "claude-sonnet-4-5", "gpt-5-mini"),
    ("haiku", "claude-haiku-4-5", "gpt-5-nano"),
];

/// What a model costs, in US dollars a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

impl From<&Configured> for Price {
    fn from(price: &Configured) -> Price {
        Price {
            input: price.input,
            output: price.output,
            cache_read: price.cached_input.unwrap_or(price.input),
            cache_write: price.input,
        }
    }
}

/// Most tokens of an answer that is asked for, where the model is not known.
const MOST_UNKNOWN: u64 = 8_192;
/// The same where it is one of Claude that is newer than the table: all since version 4 can have as many.
const MOST_NEWER: u64 = 32_000;

/// Family, input, output, cached input; most tokens of an answer that is asked for.
const FAMILIES: &[(&str, f64, f64, f64, u64)] = &[
    ("claude-opus-4-5", 5.0, 25.0, 0.5, 32_000),
    ("claude-opus-4-1", 15.0, 75.0, 1.5, 32_000),
    ("claude-opus-4-0", 15.0, 75.0, 1.5, 32_000),
    ("claude-opus-4", 15.0, 75.0, 1.5, 32_000),
    ("claude-sonnet-4-5", 3.0, 15.0, 0.3, 32_000),
    ("claude-sonnet-4-0", 3.0, 15.0, 0.3, 32_000),
    ("claude-sonnet-4", 3.0, 15.0, 0.3, 32_000),
    ("claude-haiku-4-5", 1.0, 5.0, 0.1, 32_000),
    ("claude-3-7-sonnet", 3.0, 15.0, 0.3, 32_000),
    ("claude-3-5-sonnet", 3.0, 15.0, 0.3, 8_192),
    ("claude-3-5-haiku", 0.8, 4.0, 0.08, 8_192),
    ("claude-3-opus", 15.0, 75.0, 1.5, 4_096),
    ("claude-3-haiku", 0.25, 1.25, 0.03, 4_096),
    ("gpt-5.1", 1.25, 10.0, 0.125, 32_000),
    ("gpt-5", 1.25, 10.0, 0.125, 32_000),
    ("gpt-5-mini", 0.25, 2.0, 0.025, 32_000),
    ("gpt-5-nano", 0.05, 0.4, 0.005, 32_000),
    ("gpt-4.1", 2.0, 8.0, 0.5, 32_000),
    ("gpt-4.1-mini", 0.4, 1.6, 0.1, 32_000),
    ("gpt-4.1-nano", 0.1, 0.4, 0.025, 32_000),
    ("gpt-4o", 2.5, 10.0, 1.25, 16_384),
    ("gpt-4o-mini", 0.15, 0.6, 0.075, 16_384),
    ("o3", 2.0, 8.0, 0.5, 32_000),
    ("o4-mini", 1.1, 4.4, 0.275, 32_000),
];

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The service's id.
    Id(String),
    /// One of the program's usual names, for which this service has no model that is known.
    Unmapped(String),
}

/// What a program's name for a model means: what configuration says, else what is usual, else itself. `own` is whether
/// the service is the one whose models are known.
pub(crate) fn meaning(
    wire: Wire,
    own: bool,
    models: &IndexMap<String, String>,
    name: Option<&str>,
) -> Meaning {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    if let Some(id) = models.get(name.unwrap_or("default")) {
        return Meaning::Id(id.clone());
    }
    let name = name.unwrap_or(USUAL);
    if let Some(id) = models.get(name) {
        return Meaning::Id(id.clone());
    }
    let is_usual = DEFAULTS.iter().any(|(usual, ..)| *usual == name);
    match usual(wire, own, name) {
        Some(id) => Meaning::Id(id),
        None if is_usual => Meaning::Unmapped(name.to_owned()),
        None => Meaning::Id(name.to_owned()),
    }
}

/// The model that one of the program's usual names means where nothing is configured, if the service is known to have it.
pub(crate) fn usual(wire: Wire, own: bool, name: &str) -> Option<String> {
    let (_, anthropic, openai) = DEFAULTS.iter().find(|(usual, ..)| *usual == name)?;
    match wire {
        Wire::Anthropic => Some((*anthropic).to_owned()),
        Wire::OpenAi => own.then(|| (*openai).to_owned()),
    }
}

/// The family of an id: `claude-haiku-4-5-20251001` and `claude-haiku-4-5` are one.
fn family(id: &str) -> Option<&'static (&'static str, f64, f64, f64, u64)> {
    let found = FAMILIES.iter().filter(|(family, ..)| {
        id.strip_prefix(family).is_some_and(|rest| {
            let digits = rest.bytes().filter(u8::is_ascii_digit).count();
            let dashes = rest.bytes().filter(|byte| *byte == b'-').count();
            // The date of a version, as 20251001 or 2025-10-01.
            let dated = rest.starts_with('-')
                && digits == 8
                && rest.len() == digits + dashes
                && matches!(dashes, 1 | 3);
            rest.is_empty() || rest == "-latest" || dated
        })
    });
    found.max_by_key(|(family, ..)| family.len())
}

/// The list price of a model; none where it is not known.
pub(crate) fn price(id: &str) -> Option<Price> {
    let (name, input, output, cache_read, _) = *family(id)?;
    // Only Anthropic asks more for what goes to its cache.
    let cache_write = if name.starts_with("claude") {
        input * 1.25
    } else {
        input
    };
    Some(Price {
        input,
        output,
        cache_read,
        cache_write,
    })
}

/// The most tokens that an answer of that model may have.
pub(crate) fn most_tokens(id: &str) -> u64 {
    let claude = id.strip_prefix("claude-");
    let newer = claude.is_some_and(|rest| !rest.starts_with(['1', '2', '3']) && !rest.starts_with("instant"));
    let unknown = if newer { MOST_NEWER } else { MOST_UNKNOWN };
    family(id).map_or(unknown, |(.., most)| *most)
}

impl Price {
    /// What so many tokens cost, in US dollars.
    pub(crate) fn of(&self, tokens: Tokens) -> f64 {
        let cost = |count: u64, price: f64| count as f64 * price / 1e6;
        cost(tokens.input, self.input)
            + cost(tokens.output, self.output)
            + cost(tokens.cache_read, self.cache_read)
            + cost(tokens.cache_write, self.cache_write)
    }

    /// How many tokens of an answer so many dollars pay for.
    pub(crate) fn affords(&self, dollars: f64) -> u64 {
        // What costs nothing can be had without end; too little money is none.
        (dollars.max(0.0) / self.output * 1e6) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_is_configured_then_what_is_usual_then_themselves() {
        let models = IndexMap::from([("opus".to_owned(), "big".to_owned())]);
        let none = IndexMap::new();
        let id = |id: &str| Meaning::Id(id.to_owned());
        let (a, o) = (Wire::Anthropic, Wire::OpenAi);
        assert_eq!(meaning(a, true, &models, Some("opus")), id("big"));
        assert_eq!(meaning(a, false, &none, Some("opus")), id("claude-opus-4-5"));
        assert_eq!(meaning(o, true, &none, Some("haiku")), id("gpt-5-nano"));
        assert_eq!(
            meaning(o, false, &none, Some("haiku")),
            Meaning::Unmapped("haiku".to_owned())
        );
        assert_eq!(meaning(o, false, &none, Some("qwen3:8b")), id("qwen3:8b"));
        assert_eq!(meaning(a, true, &none, None), id("claude-sonnet-4-5"));
        let models = IndexMap::from([
            ("default".to_owned(), "d".to_owned()),
            ("sonnet".to_owned(), "s".to_owned()),
        ]);
        assert_eq!(meaning(o, false, &models, None), id("d"));
        assert_eq!(meaning(o, false, &models, Some("sonnet")), id("s"));
    }

    #[test]
    fn only_models_of_the_table_have_a_price() {
        let of = |id: &str| price(id).map(|price| (price.input, price.output));
        assert_eq!(of("claude-haiku-4-5-20251001"), Some((1.0, 5.0)));
        assert_eq!(of("claude-opus-4-5"), Some((5.0, 25.0)));
        assert_eq!(of("claude-opus-4-20250514"), Some((15.0, 75.0)));
        assert_eq!(of("claude-3-5-haiku-latest"), Some((0.8, 4.0)));
        assert_eq!(of("gpt-5-mini-2025-08-07"), Some((0.25, 2.0)));
        for unknown in [
            "gpt-5-pro",
            "claude-opus-4-9",
            "claude-opus-4-9-20270101",
            "claude-opus-5",
            "gpt-5.2",
            "llama3",
            "",
            "gpt-4o-audio-preview",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_newer_model_is_not_cut_short() {
        let most = [
            "claude-opus-9",
            "claude-3-opus-20240229",
            "claude-3-6-x",
            "qwen3:8b",
        ]
        .map(most_tokens);
        assert_eq!(most, [32_000, 4_096, 8_192, 8_192]);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let tokens = Tokens {
            input: 1_000_000,
            output: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 1_000_000,
        };
        let cost = price("claude-sonnet-4-5").map(|price| price.of(tokens));
        assert_eq!(cost, Some(3.0 + 15.0 + 0.3 + 3.75));
    }
}
