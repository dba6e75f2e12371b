//! The language guide: the pages as a reader wants them, in `docs/guide/`.
//!
//! Announced diagnostics become notes with a link to their code's page, and fences say in words what they show.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prose_model::codes;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::diagnostics::{announcements, split_announced};
use super::page::Page;

/// The folder of the rendered guide.
pub fn folder() -> PathBuf {
    crate::root().join("docs/guide")
}

/// The guide's files: name and text.
pub fn render(pages: &[Page]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    files.insert("README.md".to_owned(), index(pages));
    for (at, page) in pages.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| pages.get(at));
        files.insert(
            format!("{}.md", page.name),
            rendered(page, before, pages.get(at + 1)),
        );
    }
    files
}

/// What on disk is not as rendered: a sentence each.
pub fn stale(folder: &Path, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut stale = Vec::new();
    for (name, text) in files {
        if std::fs::read_to_string(folder.join(name)).is_ok_and(|on_disk| on_disk == *text) {
            continue;
        }
        stale.push(format!(
            "docs/guide/{name} is not what `cargo xtask guide` writes"
        ));
    }
    stale.extend(
        surplus(folder, files)
            .iter()
            .map(|name| format!("docs/guide/{name} belongs to no page of the specification")),
    );
    stale
}

/// Writes the guide and removes what is left of pages that are gone.
pub fn write(folder: &Path, files: &BTreeMap<String, String>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in surplus(folder, files) {
        std::fs::remove_file(folder.join(name))?;
    }
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn surplus(folder: &Path, files: &BTreeMap<String, String>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.ends_with(".md") && !files.contains_key(name))
        .collect();
    names.sort();
    names
}

/// How a page is to be read. The words are those of [`label`] and [`note`].
const NOTATION: &str = "\
Those who are new begin with [the first page](00-first-program.md); the others can be read in any order.

## How to read a page

`# ← error E007` at the end of a line is not part of the program: it marks what the checks report for that line, with the
severity (`error`, `warning` or `hint`) and the code. `# ↓ warning P201` on a line of its own speaks of the line below
it. The codes are linked under the program, and `prose explain E007` shows the same page. A program with an error does not
run. One without marks has neither errors nor warnings, unless a list of what the checks say follows it; hints are marked only
where they are the matter.

A program may be followed by what it is run with and by what comes out. Everything runs on the backend `simulate`, which
asks no model. Where no answers are given, it makes them up: `[simulated] ` and the session's label.

| words | what follows them |
|---|---|
| File `lib/a.prose`: | a file beside the program |
| Run with these answers: | a [mock file](../mock-files.md): what the sessions, judgements and inputs answer. In `flow.mock.toml` beside `flow.prose` it is found by itself |
| Run with these inputs: | values for the program's inputs, as `--input NAME=VALUE` gives them |
| It prints: | what `prose run` writes to its standard output |
| It fails: | why the run stops: the kind of the failure and its message |
| The sessions, in order of their start: | a line each: the agent, if it has one, and the label of the session, as a rule the beginning of its task |
| What each session is given: | everything a session gets to see (its task, the agent's role under `system`, context, permissions, memory), and what the judge is asked |
| What happens, in order: | starts, ends, judgements, waits, and how the run ends |
| What the names hold in the end: | every name that was given a value, and its last value |
| The run's `state.md`: | a file of the [run's folder](../run-directory.md) |
| The project's `notes/memory.md`:, `~/.prose/…`: | a file outside of the run's folder |
| The text that each session is given: | the very text that goes to an agent, with the run's folder as `RUN`; in a run that was taken up again, that of both processes |
| What the judge is asked to read: | a line for each text that rules alone can't read, with what it is wanted as |
| What the checks say (line:column): | everything that is reported, in full |
| With the quick fixes applied: | the program when all fixes that the tools offer are made |
| Formatted: | what `prose fmt` makes of the program |
| Canonical form: | what `prose compile` prints for it |
";

fn index(pages: &[Page]) -> String {
    let mut text = "# The language guide\n\n\
        What a `.prose` program means, rule by rule. Every program on these pages is checked, and run where an outcome is \
        shown, whenever the tools are tested: the pages are rendered from the executable specification in \
        [tests/spec](../../tests/spec).\n\n"
        .to_owned();
    text.push_str(NOTATION);
    text.push_str("\n## The pages\n\n| page | about |\n|---|---|\n");
    for page in pages {
        text.push_str(&format!(
            "| [{}]({}.md) | {} |\n",
            page.title,
            page.name,
            lead(page).replace('|', "\\|")
        ));
    }
    text.push_str("\nEach diagnostic has [a page of its own](../codes/README.md).\n");
    text
}

/// The first sentence below the title.
fn lead(page: &Page) -> String {
    let paragraph: Vec<&str> = page
        .text
        .lines()
        .skip_while(|line| line.trim().is_empty() || line.starts_with('#'))
        .take_while(|line| !line.trim().is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    match paragraph.find(". ") {
        Some(at) => paragraph[..=at].to_owned(),
        None => paragraph,
    }
}

fn rendered(page: &Page, before: Option<&Page>, after: Option<&Page>) -> String {
    let mut text = String::new();
    let mut done = 0;
    for (event, range) in Parser::new(&page.text).into_offset_iter() {
        if let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = event {
            text.push_str(&page.text[done..range.start]);
            text.push_str(&fence(&info, &page.text[range.clone()]));
            done = range.end;
        }
    }
    text.push_str(&page.text[done..]);
    let text = text.trim_end();
    let mut links = Vec::new();
    links.extend(before.map(|page| format!("Before: [{}]({}.md)", page.title, page.name)));
    links.push("[all pages](README.md)".to_owned());
    links.extend(after.map(|page| format!("next: [{}]({}.md)", page.title, page.name)));
    let mut links = links.join(" · ");
    if links.starts_with('[') {
        links = links.replacen("[all", "[All", 1);
    }
    format!("{text}\n\n---\n\n{links}\n")
}

/// A fence as the guide shows it. `block` is the whole of it, with both lines of backticks.
fn fence(info: &str, block: &str) -> String {
    let mut lines: Vec<&str> = block.trim_end().lines().collect();
    let close = lines.pop().unwrap_or_default();
    let open = lines.first().copied().unwrap_or_default();
    let ticks: String = open.chars().take_while(|c| *c == '`').collect();
    let body = lines.get(1..).unwrap_or_default();
    let language = info.split_whitespace().next().unwrap_or_default();
    if body.is_empty() {
        return match label(info) {
            Some(label) => format!("{} none.", label.trim_end_matches(':').to_owned() + ":"),
            None => block.to_owned(),
        };
    }
    let mut text = String::new();
    if let Some(label) = label(info) {
        text.push_str(&format!("{label}\n\n"));
    }
    text.push_str(&format!("{ticks}{language}\n"));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    // The quick fixes leave the comments that announce what they mend, and those speak of nothing any more.
    let mended = info.split_whitespace().nth(1) == Some("fixed");
    for line in body {
        if mended {
            let (code, comments) = split_announced(line);
            if comments.is_empty() {
                text.push_str(line);
            } else if code.trim().is_empty() {
                continue;
            } else {
                text.push_str(code.trim_end());
            }
        } else {
            text.push_str(&note(line, language, &mut found));
        }
        text.push('\n');
    }
    text.push_str(close);
    if !found.is_empty() {
        let links: Vec<String> = found
            .iter()
            .map(|(code, title)| format!("[{code}](../codes/{code}.md) {title}"))
            .collect();
        text.push_str(&format!("\n\n<sub>{}</sub>", links.join(" · ")));
    }
    text
}

/// A program's line with its announcements as notes.
fn note(line: &str, language: &str, found: &mut BTreeMap<String, String>) -> String {
    if language != "prose" {
        return line.to_owned();
    }
    let (code, comments) = split_announced(line);
    if comments.is_empty() {
        return line.to_owned();
    }
    let arrow = if code.trim().is_empty() { "↓" } else { "←" };
    let mut notes: Vec<String> = Vec::new();
    for (severity, code, _) in announcements(comments) {
        if let Some(info) = codes::find(code) {
            found.insert(info.code.to_owned(), info.title.to_owned());
        }
        let note = format!("{severity} {code}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    format!("{code}# {arrow} {}", notes.join(", "))
}

/// What a fence shows, in words.
fn label(info: &str) -> Option<String> {
    let words: Vec<&str> = info.split_whitespace().collect();
    let value = |key: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    if let Some(path) = value("file") {
        return Some(format!("File `{path}`:"));
    }
    if let Some(path) = value("run") {
        return Some(format!("The run's `{path}`:"));
    }
    if let Some(path) = value("project") {
        return Some(match path.strip_prefix("home/") {
            Some(path) => format!("`~/{path}`:"),
            None => format!("The project's `{path}`:"),
        });
    }
    let label = match words.as_slice() {
        ["prose", "formatted", ..] => "Formatted:",
        ["prose", "canonical", ..] => "Canonical form:",
        ["prose", "fixed", ..] => "With the quick fixes applied:",
        ["toml", "mock"] => "Run with these answers:",
        ["toml", "inputs"] => "Run with these inputs:",
        ["text", "diagnostics"] => "What the checks say (line:column):",
        ["text", "output"] => "It prints:",
        ["text", "error"] => "It fails:",
        ["text", "events"] => "What happens, in order:",
        ["text", "sessions"] => "The sessions, in order of their start:",
        ["text", "prompts"] => "What each session is given:",
        ["text", "bindings"] => "What the names hold in the end:",
        ["text", "given"] => "The text that each session is given:",
        ["text", "decodings"] => "What the judge is asked to read:",
        ["prose", flags @ ..] => {
            let flags: Vec<&str> = flags
                .iter()
                .filter_map(|flag| match *flag {
                    "eol=crlf" => Some("its lines end with CR LF"),
                    "eol=cr" => Some("its lines end with CR"),
                    "bom" => Some("it begins with a byte order mark"),
                    "no-newline" => Some("its last line does not end"),
                    _ => None,
                })
                .collect();
            let scene = [
                value("repeat").map(|number| format!("what stands between ‹ and › occurs {number} times")),
                value("agent").map(|_| "an agent that works on files answers the sessions".to_owned()),
                value("cancel")
                    .map(|word| format!("a person cancels the run while the session “{word}” works")),
                value("stop").map(|word| {
                    format!("the process ends while the session “{word}” works, and another takes the run up")
                }),
                value("garbled").map(|number| match number {
                    "1" => "the judge's first answer can't be read".to_owned(),
                    number => format!("the judge's first {number} answers can't be read"),
                }),
            ];
            let said: Vec<String> = flags
                .into_iter()
                .map(str::to_owned)
                .chain(scene.into_iter().flatten())
                .collect();
            if said.is_empty() {
                return None;
            }
            return Some(format!("Here {}:", said.join(", ")));
        }
        _ => return None,
    };
    Some(label.to_owned())
}
