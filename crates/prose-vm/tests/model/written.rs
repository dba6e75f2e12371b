//! Texts made from what they are to be read as, so that what is expected never comes from reading; and texts put together
//! at random, on which machine and model have to agree wherever the specification's words decide.

use proptest::prelude::*;
use prose_model::{DecodeTarget, Value};
use prose_vm::decode::decode;

use crate::reading::{Reading, read};

/// A text and what it is as a list, if the rules decide that.
#[derive(Debug, Clone)]
struct Written {
    text: String,
    list: Option<Vec<Value>>,
}

fn word() -> BoxedStrategy<String> {
    // No word of these begins a list, a fence, a heading or JSON, or is followed by a colon.
    "[A-Za-z][a-z]{1,6}( [a-z]{2,5}){0,2}".boxed()
}

fn prose_line() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        word().prop_map(|words| format!("{words}.\n\n"))
    ]
    .boxed()
}

fn texts(items: &[String]) -> Vec<Value> {
    items.iter().map(|item| Value::text(item.as_str())).collect()
}

fn json_list(items: &[String]) -> String {
    serde_json::to_string(items).unwrap()
}

fn a_list() -> BoxedStrategy<Written> {
    let items = || prop::collection::vec(word(), 1..5);
    let fence = || prop::sample::select(vec!["```", "```json", "~~~"]);
    let markers = prop::sample::select(vec!["-", "*", "+", "1.", "1)"]);
    let marked = |marker: &str, i: usize, item: &str| match marker {
        "1." => format!("{}. {item}", i + 1),
        "1)" => format!("{}) {item}", i + 1),
        _ => format!("{marker} {item}"),
    };
    prop_oneof![
        // A bare array, with space around it.
        (items(), "[ \n]{0,2}").prop_map(|(items, space)| Written {
            text: format!("{space}{}{space}", json_list(&items)),
            list: Some(texts(&items)),
        }),
        // An array as the only fenced block, between words.
        (prose_line(), fence(), items(), prose_line()).prop_map(|(before, fence, items, after)| {
            let close = &fence[..3];
            Written {
                text: format!("{before}{fence}\n{}\n{close}\n{after}", json_list(&items)),
                list: Some(texts(&items)),
            }
        }),
        // Two fenced blocks.
        (items(), items()).prop_map(|(a, b)| Written {
            text: format!("```\n{}\n```\n\n```\n{}\n```\n", json_list(&a), json_list(&b)),
            list: None,
        }),
        // An object with arrays in it: one decides, none and several don't.
        (items(), 0..3_usize).prop_map(|(items, arrays)| {
            let mut members = vec!["\"n\": 1".to_owned()];
            members.extend((0..arrays).map(|i| format!("\"a{i}\": {}", json_list(&items))));
            Written {
                text: format!("{{{}}}", members.join(", ")),
                list: (arrays == 1).then(|| texts(&items)),
            }
        }),
        // A list of Markdown, with words before it and a list of its own below an item.
        (prose_line(), markers, items(), any::<bool>(), any::<bool>()).prop_map(
            move |(before, marker, items, deeper, spaced)| {
                let gap = if spaced { "\n\n" } else { "\n" };
                let mut lines: Vec<String> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| marked(marker, i, item))
                    .collect();
                let mut list = items.clone();
                if deeper {
                    lines[0].push_str("\n    - below");
                    list[0].push_str("\n- below");
                }
                Written {
                    text: format!("{before}{}\n", lines.join(gap)),
                    list: Some(texts(&list)),
                }
            }
        ),
        // Words alone.
        word().prop_map(|text| Written { text, list: None }),
        // Torn JSON.
        items().prop_map(|items| Written {
            text: json_list(&items).trim_end_matches(']').to_owned(),
            list: None,
        }),
    ]
    .boxed()
}

/// A key as it is asked for, and one of the ways to write it.
fn key() -> BoxedStrategy<(String, String)> {
    let parts = prop::collection::vec("[a-z]{2,5}", 1..3);
    let between = prop::sample::select(vec!["-", "_", " "]);
    (parts, between, any::<bool>())
        .prop_map(|(parts, between, upper)| {
            let written = parts.join(between);
            let written = if upper { written.to_uppercase() } else { written };
            (parts.join("_"), written)
        })
        .boxed()
}

/// A text with a value under a key, which is asked for by another spelling.
fn a_record() -> BoxedStrategy<(String, String, String)> {
    let pair = || (key(), word());
    (pair(), pair(), 0..4_u8)
        .prop_filter("two keys", |(a, b, _)| {
            a.0.0.replace('_', "") != b.0.0.replace('_', "")
        })
        .prop_map(|(((asked, a), value), ((_, b), other), form)| {
            let json = || format!("{{\"{b}\": \"{other}\", \"{a}\": \"{value}\"}}");
            let text = match form {
                0 => json(),
                1 => format!("So it is.\n```json\n{}\n```", json()),
                2 => format!("{b}: {other}\n{a}: {value}\n"),
                _ => format!("# {b}\n\n{other}\n\n# {a}\n\n{value}\n"),
            };
            (text, asked, value)
        })
        .boxed()
}

fn fragments() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "- ", "* ", "1. ", "12) ", "  - ", "    ", "```", "```json", "~~~", "[", "]", "{", "}", "\"a\"", "\"b\": ",
            ", ", "# ", "## Key", "Key: ", "Other key: ", "**Key:** ", "http://x", "yes", "No", "drop", "keep-sake", "no-one", "7",
            "-1.5", "1e3", "+.5", "1e999", "0x1", ".", ",", "!", "\n", "\n", "\n", "\n\n", " ", "é", "•",
        ]).prop_map(str::to_owned),
        1 => word(),
    ];
    prop::collection::vec(piece, 0..14)
        .prop_map(|parts| parts.concat())
        .boxed()
}

fn targets() -> Vec<DecodeTarget> {
    vec![
        DecodeTarget::List,
        DecodeTarget::Record(vec!["key".into()]),
        DecodeTarget::Record(vec!["other_key".into(), "key".into()]),
        DecodeTarget::Record(vec![]),
        DecodeTarget::Number,
        DecodeTarget::Bool,
        DecodeTarget::IsEmpty,
        DecodeTarget::Equals(Value::Number(7.0)),
        DecodeTarget::Equals(Value::Bool(true)),
        DecodeTarget::Equals(Value::text("No")),
        DecodeTarget::Equals(Value::text("7.0 ")),
        DecodeTarget::Equals(Value::Null),
        DecodeTarget::Equals(Value::list(vec![Value::text("a")])),
    ]
}

/// Where the words decide, machine and model say the same.
fn agree(text: &str) -> Result<(), TestCaseError> {
    for target in targets() {
        let own = match read(text, &target) {
            Reading::Is(value) => Some(value),
            Reading::Asks => None,
            Reading::Open => continue,
        };
        prop_assert_eq!(decode(text, &target), own, "{:?} as {:?}", text, target);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::config().cases * 10,
        ..crate::config()
    })]

    #[test]
    fn lists_are_read_as_they_were_meant(it in a_list()) {
        let expected = it.list.map(Value::list);
        prop_assert_eq!(decode(&it.text, &DecodeTarget::List), expected.clone());
        let own = match read(&it.text, &DecodeTarget::List) {
            Reading::Is(value) => Some(value),
            Reading::Asks => None,
            // Words of the list may look like another one.
            Reading::Open => expected.clone(),
        };
        prop_assert_eq!(own, expected);
    }

    #[test]
    fn records_are_read_as_they_were_meant((text, key, value) in a_record()) {
        let found = decode(&text, &DecodeTarget::Record(vec![key.clone()]));
        let Some(Value::Record(found)) = found else {
            return Err(TestCaseError::fail(format!("{text:?} gives {found:?}")));
        };
        prop_assert_eq!(found.get(&key), Some(&Value::text(value)), "{:?}", text);
    }

    #[test]
    fn texts_put_together_at_random_are_read_alike(text in fragments()) {
        agree(&text)?;
    }
}

#[test]
fn what_the_specification_names_is_not_left_open() {
    let key = DecodeTarget::Record(vec!["key".into()]);
    for (text, target) in [
        ("- a\n- b", &DecodeTarget::List),
        ("Found:\n\n1. a\n2. b\n", &DecodeTarget::List),
        ("[\"a\"]", &DecodeTarget::List),
        ("So:\n```json\n[1]\n```\n", &DecodeTarget::List),
        ("{\"a\": [1], \"n\": 2}", &DecodeTarget::List),
        ("{\"Key\": 1}", &key),
        ("Key: one\nOther: two", &key),
    ] {
        assert!(matches!(read(text, target), Reading::Is(_)), "{text}");
    }
    for (text, target) in [
        ("Only words", &DecodeTarget::List),
        ("{\"a\": [1], \"b\": [2]}", &DecodeTarget::List),
        ("Only words", &key),
        ("about 7", &DecodeTarget::Number),
        ("Nobody knows", &DecodeTarget::Bool),
    ] {
        assert_eq!(read(text, target), Reading::Asks, "{text}");
    }
}
