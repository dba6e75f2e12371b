//! What the machine is, and what a process used of it. Only Linux tells; elsewhere figures are 0 and names empty.

use std::fs;
use std::time::Duration;

/// The machine in a line: processor, cores, system.
pub fn describe() -> String {
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|it| it.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{model}, {cores} cores, {} GiB, Linux {}",
        (memory + 512 * 1024) / 1024 / 1024,
        kernel.trim()
    )
}

/// How many processes wanted to run in the last minute, on average.
pub fn load() -> f64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|it| it.split(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

/// The memory of a process that is in RAM, in bytes.
pub fn resident(process: u32) -> u64 {
    field(&format!("/proc/{process}/status"), "VmRSS")
        .and_then(|it| it.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// The CPU time that the live threads of a process took.
pub fn cpu(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Duration::ZERO;
    };
    let nanos = |entry: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(nanos).sum())
}

/// The CPU time that this process took, with threads that are over; to a hundredth of a second.
pub fn cpu_with_ended_threads() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold anything; two numbers behind it are the time outside and inside the system.
    let fields = text
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The value of a line `NAME : VALUE`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
