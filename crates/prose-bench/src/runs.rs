//! Whole runs through the engine: many sessions, many iterations, one very long value.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prose_agents::prompt::STAGED_BINDING;
use prose_agents::{
    Capabilities, DecodeInput, Delivery, Judge, JudgeInput, Reading, ReplyBody, SessionBackend, SessionReply,
    SessionSpawn, failure,
};
use prose_model::{ErrorKind, Failure, RunOptions, RunStatus, Usage, Verdict};
use prose_runtime::backends::{Backend, BackendSettings};
use prose_runtime::{Attach, Engine, RunRequest};

use crate::machine;

/// What a run took.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// What was run.
    pub what: String,
    /// Sessions or iterations, for figures of each.
    pub count: u64,
    /// From start to end.
    pub wall: Duration,
    /// Of all threads of this process, the simulated backend's included.
    pub cpu: Duration,
    /// The most memory in RAM beyond what was there before, in bytes.
    pub grown: u64,
}

/// One `parallel for` over so many items, a simulated session each.
///
/// # Errors
/// A sentence, when the run does not end as it should.
pub fn sessions(count: u64) -> Result<RunOutcome, String> {
    let items: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    let program = format!(
        "parallel for item in [{}]:\n  session \"Look at {{item}}\"\n",
        items.join(", ")
    );
    simulated(
        &program,
        format!("{count} simulated sessions in one `parallel for`"),
        count,
    )
}

/// One `repeat` of so many iterations.
///
/// # Errors
/// A sentence, when the run does not end as it should.
pub fn iterations(count: u64) -> Result<RunOutcome, String> {
    let program = format!("let x = 0\nrepeat {count}:\n  x = x + 1\noutput x = x\n");
    simulated(&program, format!("{count} iterations of a loop"), count)
}

/// A session that answers with a file of so many bytes, and one that is given it by reference.
///
/// # Errors
/// A sentence, when the run does not end as it should.
pub fn long_value(bytes: u64) -> Result<RunOutcome, String> {
    let program = "let book = session \"write\"\nlet size = session \"read\"\n  context: book\n";
    let author = Arc::new(Author { bytes });
    let backend = Backend {
        name: "author".to_owned(),
        simulated: false,
        sessions: author.clone(),
        judge: author,
        inputs: None,
        observer: None,
        mock_text: None,
    };
    let what = format!(
        "a value of {:.0} MB from one session to the next",
        bytes as f64 / 1e6
    );
    run(program, what, 1, |_| Ok(backend))
}

fn simulated(program: &str, what: String, count: u64) -> Result<RunOutcome, String> {
    run(program, what, count, |engine| {
        let settings = BackendSettings {
            name: Some("simulate".to_owned()),
            ..BackendSettings::default()
        };
        engine.backend(&settings).map_err(|error| error.to_string())
    })
}

fn run(
    program: &str,
    what: String,
    count: u64,
    backend: impl FnOnce(&Engine) -> Result<Backend, String>,
) -> Result<RunOutcome, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let dir = tempfile::tempdir().map_err(|error| text(&error))?;
    let path = dir.path().join("main.prose");
    std::fs::write(&path, program).map_err(|error| text(&error))?;
    let loaded = prose_project::load(&path, dir.path()).map_err(|error| text(&error))?;
    let bundle = loaded.bundle.map_err(|errors| format!("{errors:?}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| text(&error))?;
    let engine = Engine::new(dir.path());
    let backend = backend(&engine)?;
    let request = RunRequest {
        bundle,
        program: "main.prose".to_owned(),
        inputs: Default::default(),
        options: RunOptions::default(),
        backend,
        attach: Attach::default(),
    };
    let peak = Peak::watch();
    let (started, cpu) = (Instant::now(), machine::cpu_with_ended_threads());
    let result = runtime.block_on(async {
        let mut handle = engine.start(request).await?;
        // Nobody looks on.
        drop(handle.take_events());
        handle.join().await
    });
    let (wall, cpu) = (started.elapsed(), machine::cpu_with_ended_threads() - cpu);
    let grown = peak.end();
    let result = result.map_err(|error| text(&error))?;
    if result.status != RunStatus::Completed {
        return Err(format!("{what}: {:?}", result.error));
    }
    Ok(RunOutcome {
        what,
        count,
        wall,
        cpu,
        grown,
    })
}

/// Looks at the memory in RAM every few milliseconds.
struct Peak {
    before: u64,
    most: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Peak {
    fn watch() -> Peak {
        let resident = || machine::resident(std::process::id());
        let before = resident();
        let (most, over) = (Arc::new(AtomicU64::new(before)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (most.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max(resident(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        Peak {
            before,
            most,
            over,
            thread: Some(thread),
        }
    }

    fn end(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only reads a file; should it have failed, the figure is that of before.
            let _ = thread.join();
        }
        self.most.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}

/// Writes a long file, or says how long the one that it is given is.
struct Author {
    bytes: u64,
}

impl Author {
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let line = "All work and no play makes a long value, line after line after line.\n".repeat(1000);
        let mut file = std::fs::File::create(path)?;
        file.write_all(b"# book\n\nkind: let\n\n---\n\n")?;
        let mut left = self.bytes;
        while left > 0 {
            let piece = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&line.as_bytes()[..piece])?;
            left -= piece as u64;
        }
        Ok(())
    }
}

fn none() -> Failure {
    failure(ErrorKind::Backend, "nothing of this kind is asked")
}

#[async_trait]
impl SessionBackend for Author {
    fn name(&self) -> &str {
        "author"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Files,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }
    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        let failed = |error: std::io::Error| failure(ErrorKind::Backend, error.to_string());
        let given = std::fs::read_dir(session.staging.join("context"));
        let body = match given.ok().and_then(|mut files| files.next()) {
            Some(file) => {
                let file = file.and_then(|file| file.metadata()).map_err(failed)?;
                ReplyBody::Text(file.len().to_string())
            }
            None => {
                self.write(&session.staging.join(STAGED_BINDING))
                    .map_err(failed)?;
                ReplyBody::Staged
            }
        };
        Ok(SessionReply {
            body,
            summary: None,
            usage: Usage::default(),
            memory: None,
        })
    }
}

#[async_trait]
impl Judge for Author {
    fn name(&self) -> &str {
        "author"
    }
    async fn decide(&self, _: JudgeInput) -> Result<Verdict, Failure> {
        Err(none())
    }
    async fn decode(&self, _: DecodeInput) -> Result<Reading, Failure> {
        Err(none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_never_in_memory_as_a_whole() {
        const BYTES: u64 = 200_000_000;
        let outcome = long_value(BYTES).unwrap();
        // Where memory can't be looked at, this shows only that the run ends.
        assert!(outcome.grown < BYTES / 3, "{outcome:?}");
    }
}
