//! The machine's own work, in real time; `bench-report` gives the same in CPU time.
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prose_bench::alone;

fn machine(criterion: &mut Criterion) {
    // As a test it only has to run; then few are enough.
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (branches, iterations) = if bench { (10_000, 100_000) } else { (100, 100) };
    let programs = [
        ("parallel for", alone::parallel_for(branches)),
        ("repeat", alone::repeat(iterations)),
        ("loop while", alone::loop_while(iterations)),
    ];
    let mut group = criterion.benchmark_group("machine");
    group.sample_size(10);
    for (name, program) in programs {
        let program = program.unwrap_or_else(|problem| panic!("{problem}"));
        group.throughput(Throughput::Elements(program.count as u64));
        group.bench_function(format!("{name}/{}", program.count), |it| {
            it.iter(|| program.run());
        });
    }
    group.finish();
}

criterion_group!(benches, machine);
criterion_main!(benches);
