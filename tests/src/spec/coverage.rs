//! The table of `tests/spec/README.md` that says where each rule is shown: what it names has to be there.

use std::path::Path;

use super::page::Page;

/// What is wrong with the table, a sentence each.
///
/// A place is a page's number, a page's number with the title of a section, or a crate with the name of a test.
pub fn problems(readme: &str, pages: &[Page], root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut rows = 0;
    let table = readme
        .split_once("## Where each rule is shown")
        .map_or("", |(_, table)| table);
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, places] = cells[..] else {
            problems.push(format!("not two cells: {line}"));
            continue;
        };
        if rule == "rule" {
            continue;
        }
        rows += 1;
        for place in places.split(" · ").map(str::trim) {
            if !exists(place, pages, root) {
                problems.push(format!("“{rule}” is shown at `{place}`, which is not there"));
            }
        }
    }
    if rows == 0 {
        problems.push("the table has no rows".to_owned());
    }
    problems
}

fn exists(place: &str, pages: &[Page], root: &Path) -> bool {
    if place.starts_with(|c: char| c.is_ascii_digit()) {
        let (number, section) = match place.split_once(": ") {
            Some((number, section)) => (number, Some(section)),
            None => (place, None),
        };
        let page = pages
            .iter()
            .find(|page| page.name.split('-').next() == Some(number));
        return page.is_some_and(|page| section.is_none_or(|section| page.sections().contains(&section)));
    }
    let Some((name, test)) = place.split_once(' ') else {
        return false;
    };
    let folder = match name {
        "prose-tests" => root.join("tests"),
        name => root.join("crates").join(name),
    };
    let head = format!("fn {test}(");
    ["src", "tests"]
        .iter()
        .any(|part| holds(&folder.join(part), &head))
}

/// Whether a file below the folder holds the text.
fn holds(folder: &Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    entries.filter_map(Result::ok).any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let is_code = path.extension().is_some_and(|ext| ext == "rs");
        is_code && std::fs::read_to_string(&path).is_ok_and(|code| code.contains(text))
    })
}
