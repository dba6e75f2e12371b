//! The choices that an input offers to whoever answers it.

use prose_model::{Input, TemplatePart, Value};

use crate::render;

/// Longest text of a choice that is taken from a prompt's parenthesis.
const LONGEST_CHOICE: usize = 40;

/// The choice that an answer means, in the program's spelling; none when it is no choice. Without choices every answer
/// stands as it is.
pub fn as_choice(options: &[String], answer: &Value) -> Option<Value> {
    if options.is_empty() {
        return Some(answer.clone());
    }
    let said = match answer {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        answer => render::plain(answer).trim().to_lowercase(),
    };
    let mut matching = options.iter().filter(|own| own.trim().to_lowercase() == said);
    matching.next().map(|own| Value::text(own.as_str()))
}

/// The choices in a prompt's last parenthesis: `(yes/no)`, `(a, b, c)`. A parenthesis that explains offers none.
pub(crate) fn choices_in(prompt: &str) -> Vec<String> {
    let inner = prompt.rfind('(').and_then(|open| {
        let rest = &prompt[open + 1..];
        rest.find(')').map(|close| &rest[..close])
    });
    let Some(inner) = inner else { return Vec::new() };
    let lower = inner.trim_start().to_lowercase();
    if ["e.g", "i.e", "for example", "such as", "default", "optional"]
        .iter()
        .any(|p| lower.starts_with(p))
    {
        return Vec::new();
    }
    let separator = if inner.contains('/') { '/' } else { ',' };
    let mut choices: Vec<&str> = inner.split(separator).map(str::trim).collect();
    // The last one may be put as people put it: "a, b or c", "a, b, or c", "a or b".
    if let Some(last) = choices.pop() {
        let last = last.strip_prefix("or ").unwrap_or(last);
        choices.extend(last.splitn(2, " or ").map(str::trim));
    }
    let choices: Vec<String> = choices
        .into_iter()
        .map(|choice| choice.trim_matches(['\'', '"', '`']).to_owned())
        .collect();
    let offered = |choice: &String| {
        !choice.is_empty()
            && choice.chars().count() <= LONGEST_CHOICE
            && !choice.starts_with("etc")
            && choice != "..."
            && choice != "…"
    };
    if choices.len() > 1 && choices.iter().all(offered) {
        choices
    } else {
        Vec::new()
    }
}

/// The choices that an input offers, as far as they are known before the program runs: those of a prompt without
/// insertions. A discretion is put into words, with its choices, by the judge.
pub fn fixed_choices(input: &Input) -> Vec<String> {
    let Some(prompt) = input.prompt.as_ref().filter(|_| !input.discretion) else {
        return Vec::new();
    };
    let literal = prompt.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => Some(text.as_str()),
        TemplatePart::Insert { .. } => None,
    });
    literal
        .collect::<Option<String>>()
        .map_or_else(Vec::new, |prompt| choices_in(&prompt))
}

#[cfg(test)]
mod tests {
    use super::choices_in;

    #[test]
    fn choices_are_those_of_the_last_parenthesis() {
        assert_eq!(choices_in("Go on? (yes/no)"), ["yes", "no"]);
        assert_eq!(
            choices_in("Depth (for now) (shallow, medium, or deep):"),
            ["shallow", "medium", "deep"]
        );
        for said in [
            "(red, green or blue)",
            "(red, green, or blue)",
            "(red/green/blue)",
        ] {
            assert_eq!(choices_in(said), ["red", "green", "blue"], "{said}");
        }
        assert_eq!(choices_in("Say (go or stop)"), ["go", "stop"]);
        assert!(choices_in("The topic (e.g., cats, dogs)").is_empty());
        assert!(choices_in("The topic (required)").is_empty());
        assert!(choices_in("The topic (a, b").is_empty());
        assert!(choices_in("No parenthesis").is_empty());
    }
}
