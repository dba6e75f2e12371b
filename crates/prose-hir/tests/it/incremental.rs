//! What a keystroke costs, as the queries that ran.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use prose_hir::{Change, FileContent, FileId, RootDatabase, bundle, diagnostics};

use crate::support::file;

struct Counted {
    db: RootDatabase,
    log: Arc<Mutex<Vec<String>>>,
}

impl Counted {
    fn new() -> Counted {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = log.clone();
        let db = RootDatabase::new(Some(Box::new(move |event: salsa::Event| {
            if let salsa::EventKind::WillExecute { database_key } = event.kind {
                // `check_chunk(Id(3))` → `check_chunk`
                let name = format!("{database_key:?}");
                sink.lock()
                    .unwrap()
                    .push(name.split('(').next().unwrap().to_owned());
            }
        })));
        Counted { db, log }
    }

    fn set(&mut self, text: &str) {
        let mut change = Change::new();
        change.text(FileId(0), "/main.prose", text);
        self.db.apply_change(change);
    }

    fn diagnose(&self) -> usize {
        diagnostics(&self.db, file(&self.db, 0)).len()
    }

    /// How often each query ran since the last call.
    fn ran(&self) -> BTreeMap<String, usize> {
        let mut out = BTreeMap::new();
        for name in self.log.lock().unwrap().drain(..) {
            *out.entry(name).or_default() += 1;
        }
        out
    }
}

fn map(entries: &[(&str, usize)]) -> BTreeMap<String, usize> {
    entries
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

/// A program of about so many lines.
fn long(lines: usize) -> String {
    let mut out = String::from("input topic: \"Topic\"\nagent writer:\n  prompt: \"You write.\"\n");
    for index in 0..lines / 5 {
        let before = match index {
            0 => "topic".to_owned(),
            _ => format!("part{}", index - 1),
        };
        out.push_str(&format!(
            "let part{index} = session: writer\n  prompt: \"\"\"\n    Write part {index} about {{topic}}.\n  \"\"\"\n  context: {before}\n"
        ));
    }
    out
}

/// The queries of one chunk whose text changed and whose signature did not.
const ONE_CHUNK: &[(&str, usize)] = &[
    ("body", 1),
    ("check_chunk", 1),
    ("declarations", 1),
    ("scopes", 1),
    ("usages", 1),
];

#[test]
fn a_keystroke_in_a_prompt_costs_one_chunk() {
    let text = long(10_000);
    let mut it = Counted::new();
    it.set(&text);
    assert_eq!(it.diagnose(), 0);
    // A chunk has 4 KiB or a little more: about thirty statements.
    assert_eq!(it.ran()["check_chunk"], 50);

    it.set(&text.replace("Write part 1000 about", "Write part 1000, all about"));
    assert_eq!(it.diagnose(), 0);
    assert_eq!(it.ran(), map(ONE_CHUNK));

    // A new line in the prompt moves everything below; nothing of it runs again.
    it.set(&text.replace("Write part 1000 about", "Write part 1000\n    and more, about"));
    assert_eq!(it.diagnose(), 0);
    assert_eq!(it.ran(), map(ONE_CHUNK));
}

#[test]
fn a_snapshot_held_by_a_bundle_does_not_matter() {
    let text = long(1000);
    let mut it = Counted::new();
    it.set(&text);
    let running = bundle(&it.db, file(&it.db, 0)).unwrap();
    it.diagnose();
    it.ran();
    it.set(&text.replace("Write part 100 about", "Write part 100, all about"));
    it.diagnose();
    assert_eq!(it.ran(), map(ONE_CHUNK));
    assert_eq!(running.programs[0].body.len(), 201);
}

#[test]
fn an_equal_text_changes_nothing() {
    let text = long(500);
    let mut it = Counted::new();
    it.set(&text);
    it.diagnose();
    it.ran();
    it.set(&text);
    it.diagnose();
    assert_eq!(it.ran(), map(&[]));
}

#[test]
fn a_use_of_a_new_name_leaves_other_chunks_alone() {
    let text = long(500);
    let mut it = Counted::new();
    it.set(&text);
    it.diagnose();
    it.ran();
    it.set(&text.replace("Write part 50 about", "Write part 50 after {part48} about"));
    assert_eq!(it.diagnose(), 0);
    // The names used changed, so that unused declarations are looked for again; nobody's names are resolved again.
    let mut expected = map(ONE_CHUNK);
    expected.insert("unused".into(), 1);
    expected.insert("names".into(), 1);
    assert_eq!(it.ran(), expected);
}

/// How many chunks were checked after an edit, and how many there are.
fn rechecked(text: &str, edited: &str) -> (usize, usize) {
    let mut it = Counted::new();
    it.set(text);
    it.diagnose();
    let all = it.ran()["check_chunk"];
    it.set(edited);
    let found = diagnostics(&it.db, file(&it.db, 0));
    let ran = it.ran();
    let mut fresh = Counted::new();
    fresh.set(edited);
    assert_eq!(found, diagnostics(&fresh.db, file(&fresh.db, 0)));
    (ran.get("check_chunk").copied().unwrap_or_default(), all)
}

#[test]
fn a_name_is_checked_where_it_is_declared_and_used() {
    let text = long(10_000);
    // `part1000` and the next statement, which uses it, stand in one chunk.
    let (checked, all) = rechecked(&text, &text.replace("let part1000 =", "let part1000x ="));
    assert_eq!((checked, all), (1, 50));
    let text = format!("{text}session \"Sum up\"\n  context: [part10, part1000, missing, part9999]\n");
    let (checked, _) = rechecked(&text, &text.replace("let part1000 =", "let part1000x ="));
    assert_eq!(checked, 2);
    let (checked, _) = rechecked(&text, &text.replace("let part1500 =", "let missing ="));
    assert_eq!(checked, 2);
}

#[test]
fn a_new_statement_is_checked_alone() {
    let text = long(10_000);
    let head = "let zero = session \"Begin\"\n";
    assert_eq!(rechecked(&text, &format!("{head}{text}")).0, 1);
    assert_eq!(rechecked(&format!("{head}{text}"), &text).0, 1);
    // Chunks come: what was one is two, and those behind it are left alone.
    let many = (0..150).fold(String::new(), |out, it| {
        format!("{out}let many{it} = session \"Begin\"\n")
    });
    let (checked, all) = rechecked(&text, &format!("{many}{text}"));
    assert!(checked <= 3, "{checked} of {all}");
    let (checked, all) = rechecked(&format!("{many}{text}"), &text);
    assert!(checked <= 3, "{checked} of {all}");
}

#[test]
fn an_agent_is_checked_where_it_is_used() {
    let agents = "agent reader:\n  prompt: \"You read.\"\nsession: reader\n  prompt: \"Read\"\n";
    let text = format!("{agents}{}session: reader\n  prompt: \"Read\"\n", long(10_000));
    let (checked, all) = rechecked(&text, &text.replace("agent reader:", "agent reeder:"));
    assert_eq!((checked, all), (2, 50));
    let (checked, _) = rechecked(&text, &text.replace("agent writer:", "agent vriter:"));
    assert_eq!(checked, all);
}

#[test]
fn what_is_never_reached_is_found_without_reading_it() {
    let text = long(10_000);
    let text = text.replacen("let part5 =", "throw \"Stop\"\nlet part5 =", 1);
    let mut it = Counted::new();
    it.set(&text);
    assert_eq!(it.diagnose(), 1);
    it.ran();
    it.set(&text.replace("Write part 1000 about", "Write part 1000, all about"));
    assert_eq!(it.diagnose(), 1);
    assert_eq!(it.ran(), map(ONE_CHUNK));
}

#[test]
fn a_new_declaration_is_seen_by_all() {
    let text = long(50);
    let mut it = Counted::new();
    it.set(&format!("{text}session \"Use\"\n  context: [extra, part9]\n"));
    assert_eq!(it.diagnose(), 1);
    it.set(&format!(
        "let extra = 1\n{text}session \"Use\"\n  context: [extra, part9]\n"
    ));
    assert_eq!(it.diagnose(), 0);
    it.set(&format!("{text}session \"Use\"\n  context: [extra, part9]\n"));
    assert_eq!(it.diagnose(), 1);
}

#[test]
fn files_may_come_and_go() {
    let mut it = Counted::new();
    it.set("session \"Hello\n");
    assert_eq!(it.diagnose(), 1);
    let mut change = Change::new();
    change
        .files
        .push((FileId(0), "/main.prose".into(), FileContent::Missing));
    it.db.apply_change(change);
    assert_eq!(it.diagnose(), 0);
    it.set("session \"Hello\"\n");
    assert_eq!(it.diagnose(), 0);
}

/// Whatever edits lead to a text, the findings are those of the text.
#[test]
fn the_way_to_a_text_does_not_matter() {
    let steps = [
        "",
        "agent a:\n  prompt: \"x\"\n",
        "agent a:\n  prompt: \"x\"\nsession: b\n",
        "agent a:\n  prompt: \"\"\"x\"\nsession: b\n",
        "agent a:\n  prompt: \"\"\"x\"\nsession: b\n\"\"\"\nlet x = y\n",
        "let y = 1\nagent a:\n  prompt: \"x\"\nsession: a\nlet x = y\n",
        "let x = y\nlet y = 1\nagent a:\n  prompt: \"x\"\nsession: a\n",
        "let y = 1\nlet y = 1\nlet y = 1\n",
        "let y = 1\n",
        "if **so it is**:\n  let y = 1\nelse:\n  let z = y\noutput y = y\n",
    ];
    let mut walked = Counted::new();
    for forth in [true, false] {
        for index in 0..steps.len() {
            let text = steps[if forth { index } else { steps.len() - 1 - index }];
            walked.set(text);
            let mut fresh = Counted::new();
            fresh.set(text);
            assert_eq!(
                diagnostics(&walked.db, file(&walked.db, 0)),
                diagnostics(&fresh.db, file(&fresh.db, 0)),
                "{text}"
            );
        }
    }
}

#[test]
fn what_was_read_of_a_long_file_does_not_stay() {
    let mut counted = Counted::new();
    counted.set(&long(20_000));
    assert_eq!(counted.diagnose(), 0);
    counted.db.rest();
    counted.ran();
    assert_eq!(counted.diagnose(), 0);
    assert_eq!(counted.ran(), map(&[]), "what was found stays");
    let file = file(&counted.db, 0);
    let chunks = file.chunks(&counted.db);
    for chunk in chunks.iter() {
        prose_hir::body(&counted.db, *chunk);
    }
    let again = counted.ran().get("body").copied().unwrap_or_default();
    assert!(
        chunks.len() > 80 && again + 4 >= chunks.len(),
        "{again} of {} chunks are read again",
        chunks.len()
    );
}
