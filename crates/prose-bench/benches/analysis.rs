//! Lexing, parsing, checks and lowering of long texts, in CPU time of the thread: other programs don't show in it, except
//! through the caches they empty.
#![allow(missing_docs)]

use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prose_hir::{Change, FileId, RootDatabase, SourceFile, bundle, diagnostics};
use rustix::time::{ClockId, clock_gettime};

/// Time that this thread had a processor.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        )
    }
    fn end(&self, begun: Duration) -> Duration {
        self.start().saturating_sub(begun)
    }
    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// A text and its name in the results.
struct Input {
    name: String,
    text: String,
}

/// Names a file to be measured too: a program of one's own.
const OWN: &str = "PROSE_BENCH_TEXT";

/// What is measured; only a small text when this runs as a test.
fn inputs() -> Vec<Input> {
    let measured = std::env::args().any(|it| it == "--bench");
    let sizes: &[(&str, usize)] = match measured {
        true => &[("0.1 MB", 100_000), ("1 MB", 1_000_000), ("10 MB", 10_000_000)],
        false => &[("10 kB", 10_000)],
    };
    let mut all = Vec::new();
    for (size, bytes) in sizes {
        all.push(Input {
            name: format!("programs/{size}"),
            text: test_programs::repeated(*bytes),
        });
    }
    let (size, bytes) = sizes[sizes.len() / 2];
    all.push(Input {
        name: format!("dense/{size}"),
        text: test_programs::dense(bytes),
    });
    if let Some(path) = std::env::var_os(OWN) {
        match std::fs::read_to_string(&path) {
            Ok(text) => all.push(Input {
                name: "own".to_owned(),
                text,
            }),
            Err(error) => panic!("{OWN}={}: {error}", path.display()),
        }
    }
    all
}

/// A database with one file, nothing asked yet.
fn database(text: &str) -> (RootDatabase, SourceFile) {
    let mut db = RootDatabase::default();
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
    match db.source(FileId(0)) {
        Some(file) => (db, file),
        None => panic!("the file is not there"),
    }
}

fn analysis(criterion: &mut Criterion<CpuTime>) {
    for input in inputs() {
        let text = input.text.as_str();
        let mut group = criterion.benchmark_group("analysis");
        group.throughput(Throughput::Bytes(text.len() as u64));
        if text.len() > 5_000_000 {
            group.sample_size(10);
        }
        let id = |what: &str| BenchmarkId::new(what, &input.name);
        // A text is cut by lexing it and its layout, and by nothing more.
        group.bench_function(id("lex"), |it| it.iter(|| prose_syntax::ChunkMap::new(text)));
        group.bench_function(id("parse"), |it| {
            it.iter_with_large_drop(|| prose_syntax::parse(text))
        });
        group.bench_function(id("format"), |it| {
            let parse = prose_syntax::parse(text);
            let options = prose_fmt::Options::default();
            it.iter(|| prose_fmt::format(&parse, text, &options));
        });
        group.bench_function(id("check"), |it| {
            it.iter_with_large_drop(|| {
                let (db, file) = database(text);
                (diagnostics(&db, file), db)
            });
        });
        group.bench_function(id("lower"), |it| {
            let prepared = || {
                let (db, file) = database(text);
                diagnostics(&db, file);
                (db, file)
            };
            it.iter_batched(
                prepared,
                |(db, file)| (bundle(&db, file), db),
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    targets = analysis
}
criterion_main!(benches);
