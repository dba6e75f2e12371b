//! Programs for tests and benchmarks: the project's own programs as they are ([`originals`]), in pieces ([`pieces`]), and
//! programs of any length made from them ([`repeated`], [`dense`]).
//!
//! Deliberately absent: checks of any kind, and programs that aren't in this repository.
//!
//! Architecture invariant: the same arguments give the same text, and what [`repeated`] and [`dense`] make has no errors.
//! Only tests and benchmarks use this crate: it reads the repository's files and panics when they can't be read.

mod dense;
mod pieces;
mod repeated;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use dense::dense;
pub use pieces::pieces;
pub use repeated::repeated;

/// A program of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Where it is, relative to the repository's root. A program of a page has the page's path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The programs of `examples/`, in the order of their names.
pub fn examples() -> &'static [Program] {
    static ALL: OnceLock<Vec<Program>> = OnceLock::new();
    ALL.get_or_init(|| {
        let all = files("examples", "prose");
        assert!(!all.is_empty(), "no programs in examples/");
        all
    })
}

/// Every program of the repository: the examples, those of the tests, and those in the pages of codes and of the specification,
/// right and wrong ones.
pub fn originals() -> &'static [Program] {
    static ALL: OnceLock<Vec<Program>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = examples().to_vec();
        all.extend(files("tests/programs", "prose"));
        for folder in ["docs/codes", "tests/spec"] {
            for page in files(folder, "md") {
                all.extend(fences(&page));
            }
        }
        all
    })
}

/// The files of a folder with this ending, if the folder is there.
fn files(folder: &str, ending: &str) -> Vec<Program> {
    let Ok(entries) = std::fs::read_dir(root().join(folder)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{folder}: {error}")).path())
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    paths.sort();
    let program = |path: &PathBuf| Program {
        path: format!(
            "{folder}/{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        ),
        text: std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    paths.iter().map(program).collect()
}

/// The `prose` fences of a page.
fn fences(page: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let mut open: Option<String> = None;
    for line in page.text.split_inclusive('\n') {
        match (&mut open, line.trim_end()) {
            (Some(_), "```") => all.extend(open.take().map(|text| Program {
                path: page.path.clone(),
                text,
            })),
            (Some(text), _) => text.push_str(line),
            (None, info) if info.starts_with("```prose") => open = Some(String::new()),
            (None, _) => {}
        }
    }
    all
}

/// A small generator of numbers; the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// Numbers from a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// The next number, below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
