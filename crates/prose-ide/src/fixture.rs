//! A host with the files of a fixture.

use prose_syntax::TextSize;
use test_fixture::Fixture;

use crate::{Analysis, AnalysisHost, Change, FileId, FilePosition, FileRange, TextRange};

/// A snapshot and what the tests need beside it.
pub(crate) struct Setup {
    /// Kept so that the snapshot's database has its owner.
    _host: AnalysisHost,
    pub(crate) analysis: Analysis,
    fixture: Fixture,
}

/// Loads a fixture; `use "x.prose"` leads to the fixture's `/x.prose`.
pub(crate) fn setup(text: &str) -> Setup {
    let fixture = Fixture::parse(text);
    let mut change = Change::new();
    for (number, file) in fixture.files.iter().enumerate() {
        let id = FileId(number as u32);
        change.text(id, file.path.clone(), file.text.as_str());
        let targets = file
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("use \"")?.split('"').next())
            .filter(|target| target.ends_with(".prose"))
            .map(|target| {
                let path = format!("/{}", target.trim_start_matches("./"));
                (
                    target.to_owned(),
                    fixture.file(&path).map(|number| FileId(number as u32)),
                )
            })
            .collect();
        change.resolve(id, targets);
    }
    let mut host = AnalysisHost::new();
    host.apply_change(change);
    let analysis = host.analysis();
    Setup {
        _host: host,
        analysis,
        fixture,
    }
}

impl Setup {
    /// The file of the first path.
    pub(crate) fn main(&self) -> FileId {
        FileId(0)
    }

    #[track_caller]
    pub(crate) fn position(&self) -> FilePosition {
        let (file, offset) = self.fixture.offset();
        FilePosition {
            file: FileId(file as u32),
            offset: TextSize::new(offset as u32),
        }
    }

    #[track_caller]
    pub(crate) fn selection(&self) -> FileRange {
        let (file, range) = self.fixture.selection();
        FileRange {
            file: FileId(file as u32),
            range: TextRange::new((range.start as u32).into(), (range.end as u32).into()),
        }
    }

    pub(crate) fn text(&self, file: FileId) -> &str {
        &self.fixture.files[file.0 as usize].text
    }

    pub(crate) fn slice(&self, file: FileId, range: TextRange) -> &str {
        &self.text(file)[range]
    }

    /// `/main.prose:3:5`, counting from 1.
    pub(crate) fn place(&self, FileRange { file, range }: FileRange) -> String {
        let before = &self.text(file)[..usize::from(range.start())];
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        format!("{}:{line}:{column}", self.fixture.files[file.0 as usize].path)
    }
}
