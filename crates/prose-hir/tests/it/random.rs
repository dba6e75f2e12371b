//! Edits at random: nothing panics, and the way to a text never shows.

use prose_hir::{
    Change, FileId, RootDatabase, bundle, definitions, diagnostics, name_at, references, scope_at,
};

use crate::support::file;

/// A small generator of numbers; the same seed gives the same test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

const PIECES: &[&str] = &[
    "\n",
    "  ",
    "\"",
    "\"\"\"",
    "**",
    "***",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ".",
    "|",
    "->",
    "=",
    "#",
    "\t",
    "é",
    "let ",
    "const ",
    "session ",
    "session: ",
    "resume: ",
    "agent ",
    "block ",
    "do ",
    "do:",
    "parallel:",
    "for x in ",
    "loop ",
    "until ",
    "if ",
    "else:",
    "try:",
    "catch as e:",
    "choice ",
    "option ",
    "use ",
    "input ",
    "output ",
    "prompt: ",
    "context: ",
    "item",
    "x",
    "x[0]",
    "{x}",
    "| map:",
    "throw",
    "break",
    "return ",
    "persist: true",
    "# prose: allow L404, W001\n",
    "throw \"x\"\n",
];

pub fn programs() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut out: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "prose"))
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect();
    out.sort();
    assert!(!out.is_empty());
    out
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn set(db: &mut RootDatabase, text: &str) {
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
}

/// How large chunks are in the databases that are compared: a statement each, the usual size, all in one.
const SIZES: [usize; 3] = [1, 4096, 1 << 30];

/// Every example alone, and some of them put together, so that a text has more than one chunk of the usual size.
fn texts() -> Vec<String> {
    let programs = programs();
    let mut out: Vec<String> = programs.chunks(5).map(<[String]>::concat).collect();
    out.extend(programs);
    // The same names in scopes of all kinds, in an order that a chunk may break anywhere.
    out.push(SAME_NAMES.to_owned());
    out
}

/// Edits of each text.
const STEPS: usize = 30;

const SAME_NAMES: &str = r#"agent x:
  persist: true
  prompt: "{y} {item}"
const y = 1
for item in [1, 2]:
  let y = item
  z = y
session "{y} {z} {item}"
y = 2
y = 3
parallel for item in [1]:
  let inner = item
  w = inner
session "{inner} {w} {v}"
loop:
  session "{v}"
  let v = 1
  break
if **so it is**:
  output out = v
  let u = 1
else:
  session: x
output out = u
let u = 2
if **again**:
  let u = 3
  output out = u
repeat 2:
  session "{later}"
  output out = y
let later = 1
later = 2
session: x
block b(u):
  session "{u} {v} {w} {later} {item} {inner} {t}"
  for later in u:
    let t = later
    t = 1
  session "{t} {later}"
block c:
  t = item
  let t = 1
  do b(t)
  resume: x
do c
let z = [1] | map:
  session "{item} {z}"
session "{z} {t}"
session: y
session: b
do x
do y
c()
agent y:
  persist: execution
  prompt: "{ y } {u}"
resume: y
session: inner
  skills: ["t", u]
session "{latr} {itme}"
  context: [latr, inne, u-1, out-z]
parallel:
  t = session: x
  t = session: x
block d(t, t):
  d = t
  do d(out)
session: y
output out = session "{d}"
"#;

#[test]
fn edits_at_random() {
    let mut numbers = Numbers(7);
    for text in texts() {
        let mut text = text;
        let mut walked = SIZES.map(|size| RootDatabase::with_chunk_size(None, size));
        for _ in 0..STEPS {
            let from = boundary(&text, numbers.below(text.len() + 1));
            let to = boundary(&text, (from + numbers.below(12)).min(text.len()));
            let with = match numbers.below(3) {
                0 => String::new(),
                1 => PIECES[numbers.below(PIECES.len())].to_owned(),
                _ => format!(
                    "{}{}",
                    PIECES[numbers.below(PIECES.len())],
                    PIECES[numbers.below(PIECES.len())]
                ),
            };
            text.replace_range(from..to.max(from), &with);
            let mut fresh = RootDatabase::default();
            set(&mut fresh, &text);
            let source = file(&fresh, 0);
            let found = diagnostics(&fresh, source);
            for it in &found {
                assert!(
                    text.get(usize::from(it.range.start())..usize::from(it.range.end()))
                        .is_some(),
                    "{it:?}\n{text}"
                );
            }
            let errors = found
                .iter()
                .any(|it| it.severity == prose_model::codes::Severity::Error);
            assert_eq!(bundle(&fresh, source).is_err(), errors, "{text}");

            let at = numbers.below(text.len() + 2) as u32;
            let seen = scope_at(&fresh, source, at.into());
            let named = name_at(&fresh, source, at.into());
            let places = |db: &RootDatabase| {
                let definition = name_at(db, file(db, 0), at.into())?.definition?;
                Some((definition.range, references(db, &definition)))
            };
            let used = places(&fresh);
            if let Some((_, used)) = &used {
                assert!(
                    used.iter().all(|it| usize::from(it.range.end()) <= text.len()),
                    "{text}"
                );
            }
            for (db, size) in walked.iter_mut().zip(SIZES) {
                set(db, &text);
                let source = file(db, 0);
                assert_eq!(found, diagnostics(db, source), "chunks of {size}\n{text}");
                let names = |list: &[prose_hir::VisibleName]| -> Vec<_> {
                    list.iter()
                        .map(|it| (it.name, it.kind, it.definition.as_ref().map(|it| it.range)))
                        .collect()
                };
                assert_eq!(
                    names(&seen),
                    names(&scope_at(db, source, at.into())),
                    "chunks of {size}, {at}\n{text}"
                );
                let role = |it: &prose_hir::NameUse| (it.range, it.role, it.binding);
                assert_eq!(
                    named.as_ref().map(role),
                    name_at(db, source, at.into()).as_ref().map(role),
                    "chunks of {size}, {at}\n{text}"
                );
                assert_eq!(used, places(db), "chunks of {size}, {at}\n{text}");
            }
        }
        definitions(&walked[0], file(&walked[0], 0));
    }
}
