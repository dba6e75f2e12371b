//! Keys go where the person who has them says. `.prose/.env` comes with a project: where an address in it leads, only keys of
//! the same file are sent, and no key or login of the person who runs the project.

use prose_model::backend::Variables;

/// The first of these variables by which `.prose/.env` leads requests to another address; none: it leads nowhere.
pub(crate) fn led_by_project<'a>(variables: &Variables, leads: &[&'a str]) -> Option<&'a str> {
    leads.iter().find(|name| variables.is_of_project(name)).copied()
}

/// Which of a service's keys go along to where `lead` leads.
///
/// # Errors
/// A sentence, when there is a key, and none of the same file.
pub(crate) fn keys_for<'a>(
    variables: &Variables,
    lead: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'a str>, String> {
    let set = names.into_iter().filter(|name| variables.get(name).is_some());
    let (ours, others): (Vec<&str>, Vec<&str>) = set.partition(|name| variables.is_of_project(name));
    match others.first() {
        Some(key) if ours.is_empty() => Err(stays(key, lead)),
        _ => Ok(ours),
    }
}

/// Why a key is not sent to where `lead` leads.
pub(crate) fn stays(key: &str, lead: &str) -> String {
    format!(
        "{lead} in .prose/.env leads to another address, to which {key} of the environment is not sent: put a key into \
         .prose/.env as well, or {lead} into the environment"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn variables(process: &[(&str, &str)], file: &[(&str, &str)]) -> Variables {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        Variables::new(map(process), map(file))
    }

    #[test]
    fn what_is_empty_leads_nowhere() {
        let led = |process: &[(&str, &str)], file: &[(&str, &str)]| {
            led_by_project(&variables(process, file), &["URL", "OTHER"])
        };
        assert_eq!(led(&[("URL", "x")], &[("URL", "")]), None);
        assert_eq!(led(&[("URL", "x")], &[("KEY", "x")]), None);
        assert_eq!(led(&[], &[("OTHER", "x")]), Some("OTHER"));
    }

    #[test]
    fn keys_of_the_same_file_go_along_and_no_others() {
        let keys = |process: &[(&str, &str)], file: &[(&str, &str)]| {
            keys_for(&variables(process, file), "URL", ["A", "B"])
        };
        assert_eq!(keys(&[], &[]), Ok(vec![]));
        assert_eq!(keys(&[("A", "1")], &[("B", "2")]), Ok(vec!["B"]));
        assert_eq!(keys(&[("A", "1")], &[("A", "2")]), Ok(vec!["A"]));
        assert_eq!(keys(&[("A", "1")], &[("A", "")]), Err(stays("A", "URL")));
    }
}
