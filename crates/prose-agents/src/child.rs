//! Starting agents as child processes that leave nothing behind.
//!
//! A child leads a process group of its own and is given only the variables that it needs. It ends with this process
//! whatever happens to it: the system kills the child itself (Linux), and a guard, a small shell that waits for this
//! process to be gone, kills what the child had started. Its standard input and output are pipes; of its standard error
//! the end is kept, for messages.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prose_model::backend::Variables;
use regex::Regex;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// How much of the end of a child's standard error is kept, in bytes.
const TAIL: usize = 8 * 1024;
/// How long to wait for the rest of standard error once a child has ended: what it started may hold it open.
const TAIL_WAIT: Duration = Duration::from_millis(500);

/// Variables that any program may need to run at all: where things are, the language.
const BASIC: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "SYSTEMROOT",
    "SystemRoot",
    "WINDIR",
    "COMSPEC",
    "ComSpec",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMFILES",
    "ProgramFiles",
];

/// The way to the network, and whom to believe there.
const NETWORK: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// The variables that a child is given. Shown are their names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    values: BTreeMap<String, String>,
}

impl Environment {
    /// What any program may need, and no key of anybody.
    pub fn basic(variables: &Variables) -> Environment {
        let mut environment = Environment::default();
        environment.take(variables, BASIC);
        // IMPORTANT: of the process only. Keys go this way, and a project's file must not lead them to somebody else.
        for name in NETWORK {
            if let Some(value) = variables.of_process(name) {
                environment.set(name, value);
            }
        }
        environment.set("TERM", "dumb");
        environment
    }

    /// Passes those of these variables on that are set.
    pub fn take(&mut self, variables: &Variables, names: &[&str]) {
        for name in names {
            if let Some(value) = variables.get(name) {
                self.set(name, value);
            }
        }
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// The value of one that is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// What to start.
#[derive(Debug, Clone)]
pub struct ChildCommand {
    /// The program: a path, or a name that is looked for on the `PATH` of the environment below.
    pub program: PathBuf,
    /// Its arguments. Everybody on the machine can read them: no secret and no prompt belongs here.
    pub args: Vec<OsString>,
    /// The folder it starts in.
    pub dir: PathBuf,
    /// All the variables that it sees.
    pub environment: Environment,
}

/// Why there is no child.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// No such program.
    #[error("`{program}` was not found on the PATH")]
    NotFound {
        /// As it was asked for.
        program: String,
    },
    /// The folder to start in is not there.
    #[error("the folder `{}` does not exist", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// The system refuses.
    #[error("`{program}` could not be started: {source}")]
    Start {
        /// As it was asked for.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// A child that runs, or has ended. Dropped before it has ended, it is killed with all that it started.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    process: tokio::process::Child,
    /// Its standard input, until it is taken. Dropping it tells the child that there is no more.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until it is taken; see [`Lines`].
    pub stdout: Option<ChildStdout>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_task: tokio::task::JoinHandle<()>,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts one. To be told to [`crate::SessionSink::child`] before it is given anything to do.
    ///
    /// # Errors
    /// When the program or the folder is not there, or the system refuses.
    pub async fn start(command: ChildCommand) -> Result<Child, ChildError> {
        let name = command.program.display().to_string();
        let program = find_program(&command.program, command.environment.get("PATH")).ok_or_else(|| {
            ChildError::NotFound {
                program: name.clone(),
            }
        })?;
        if !command.dir.is_dir() {
            return Err(ChildError::NoFolder { dir: command.dir });
        }
        let mut start = tokio::process::Command::new(program);
        start
            .args(command.args)
            .current_dir(command.dir)
            .env_clear()
            .envs(command.environment.values)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |source| ChildError::Start {
            program: name,
            source,
        };
        let mut process = starter::start(start).await.map_err(failed)?;
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let stderr_task = tokio::spawn(keep_tail(process.stderr.take(), stderr.clone()));
        Ok(Child {
            // Only one that has been waited for has no id.
            pid: process.id().unwrap_or_default(),
            process,
            stdin,
            stdout,
            stderr,
            stderr_task,
            ended: None,
        })
    }

    /// Its process id, which is also that of its group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended, and ends what is left of its group. Cancel-safe.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        // The child is done, so nothing that it left running is wanted any more. IMPORTANT: its group ends before its number
        // is given back, from when on it may be another's.
        let is_told = has_ended(self.pid).await;
        if is_told {
            signal_group(self.pid, true);
        }
        let status = self.process.wait().await?;
        self.ended = Some(status);
        if !is_told {
            signal_group(self.pid, true);
        }
        starter::forget(self.pid);
        let _ = tokio::time::timeout(TAIL_WAIT, &mut self.stderr_task).await;
        Ok(status)
    }

    /// Waits until it has ended, and ends what is left of its group, so that nobody holds its output open any more. Cancel-safe.
    /// Where the system can't tell, it waits for ever.
    pub async fn ended(&self) {
        if self.ended.is_none() {
            if !has_ended(self.pid).await {
                std::future::pending::<()>().await;
            }
            signal_group(self.pid, true);
        }
    }

    /// Ends it with all that it started: first asked, after `grace` forced. Returns when the child is gone.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn stop(&mut self, grace: Duration) -> std::io::Result<ExitStatus> {
        if self.ended.is_none() {
            // One that reads its input until the end sees the end.
            self.stdin = None;
            signal_group(self.pid, false);
            if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
                return status;
            }
            signal_group(self.pid, true);
            let _ = self.process.start_kill();
        }
        self.wait().await
    }

    /// The end of what it wrote to standard error, without the sequences that steer terminals.
    pub fn stderr(&self) -> String {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = match bytes.len() >= TAIL {
            // The first line is only a part of one, and its first word a part of a word, which may be a key.
            true => text
                .split_once('\n')
                .or_else(|| text.split_once(char::is_whitespace))
                .map_or("", |(_, rest)| rest),
            false => &*text,
        };
        let plain = ESCAPES.replace_all(text, "");
        let visible = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
        plain
            .chars()
            .filter(visible)
            .collect::<String>()
            .trim()
            .to_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            signal_group(self.pid, true);
            let _ = self.process.start_kill();
            starter::forget(self.pid);
        }
        self.stderr_task.abort();
    }
}

static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is fixed")]
    Regex::new(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)").expect("a pattern that compiles")
});

/// How a child ended, in words.
pub fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return format!("was ended by signal {signal}");
        }
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended without an exit code".to_owned(),
    }
}

/// Where a program is: itself when it is given as a path, else the first of its name in the folders of `path`. Absolute, since
/// it may be started in another folder.
pub fn find_program(program: &Path, path: Option<&str>) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        let absolute = || std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        return is_program(program).then(absolute);
    }
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn keep_tail(stderr: Option<ChildStderr>, tail: Arc<Mutex<VecDeque<u8>>>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = lock(&tail);
        tail.extend(&buffer[..read]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}

/// Waits until a child has ended, and leaves it for who asks how. False, at once, where the system can't tell.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
async fn has_ended(pid: u32) -> bool {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    // SAFETY: the handle is owned, and is the same one until it is closed.
    let wait = |handle| unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    let handle = handle.and_then(|handle| wait(handle).ok());
    match handle {
        Some(handle) => handle.readable().await.is_ok(),
        None => false,
    }
}

#[cfg(not(target_os = "linux"))]
async fn has_ended(_: u32) -> bool {
    false
}

#[cfg(unix)]
fn signal_group(pid: u32, force: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if force { Signal::KILL } else { Signal::TERM };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // A group that is gone needs no ending.
        let _ = kill_process_group(pid, signal);
    }
}

#[cfg(not(unix))]
fn signal_group(_: u32, _: bool) {}

/// A line of a child's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// One within the limit, without its end; bytes that are no UTF-8 are replaced.
    Text(String),
    /// One of this many bytes, which is over the limit; it was thrown away.
    TooLong(usize),
}

/// Reads lines of bounded length.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    /// What was read of the line so far, up to the limit.
    line: Vec<u8>,
    /// How long the line is so far.
    length: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader: BufReader::with_capacity(64 * 1024, reader),
            limit,
            line: Vec::new(),
            length: 0,
        }
    }

    /// The next line; none at the end. A last line without an end is a line. Cancel-safe.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok((self.length > 0).then(|| self.finish()));
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.length += piece.len();
            if self.length <= self.limit {
                self.line.extend_from_slice(piece);
            } else {
                self.line = Vec::new();
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.finish()));
            }
        }
    }

    fn finish(&mut self) -> Line {
        let length = std::mem::take(&mut self.length);
        let mut line = std::mem::take(&mut self.line);
        if length > self.limit {
            return Line::TooLong(length);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Text(
            String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

/// The thread that starts children, and the guard.
mod starter {
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::panic::AssertUnwindSafe;
    use std::process::Stdio;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{LazyLock, Mutex};

    use tokio::process::{Child, Command};
    use tokio::runtime::Handle;
    use tokio::sync::oneshot;

    struct Job {
        command: Command,
        runtime: Handle,
        answer: oneshot::Sender<std::io::Result<Child>>,
    }

    static JOBS: LazyLock<Mutex<Option<Sender<Job>>>> = LazyLock::new(Mutex::default);
    static GUARD: LazyLock<Mutex<Guard>> = LazyLock::new(Mutex::default);

    /// Starts a child from the thread that lives as long as the process.
    ///
    /// IMPORTANT: the system kills a child when the *thread* that started it ends, and threads of an async runtime end
    /// when they are idle.
    pub(super) async fn start(command: Command) -> std::io::Result<Child> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            command,
            runtime: Handle::current(),
            answer,
        };
        let gone = || std::io::Error::other("the thread that starts children is gone");
        let jobs = {
            let mut jobs = super::lock(&JOBS);
            match &*jobs {
                Some(jobs) => jobs.clone(),
                None => {
                    let (sender, receiver) = channel();
                    let thread = std::thread::Builder::new().name("prose-children".to_owned());
                    thread.spawn(move || run(receiver))?;
                    jobs.insert(sender).clone()
                }
            }
        };
        jobs.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    fn run(jobs: Receiver<Job>) {
        // The sender is never dropped, so this goes on until the process ends.
        for job in jobs {
            let Job {
                mut command,
                runtime,
                answer,
            } = job;
            // The runtime may be shutting down, which tokio answers with a panic.
            let started = std::panic::catch_unwind(AssertUnwindSafe(|| {
                let _runtime = runtime.enter();
                prepare(&mut command);
                let child = command.spawn()?;
                if let Some(pid) = child.id() {
                    super::lock(&GUARD).add(pid);
                }
                Ok(child)
            }));
            let started = started.unwrap_or_else(|_| Err(std::io::Error::other("the run is shutting down")));
            if let Err(Ok(mut child)) = answer.send(started) {
                // Nobody waits for it any more.
                if let Some(pid) = child.id() {
                    super::signal_group(pid, true);
                    forget(pid);
                }
                let _ = child.start_kill();
            }
        }
    }

    /// A child has ended.
    pub(super) fn forget(pid: u32) {
        super::lock(&GUARD).remove(pid);
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn prepare(command: &mut Command) {
        use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
        command.process_group(0);
        let parent = getpid();
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // It may have ended before the line above.
                if getppid() != Some(parent) {
                    return Err(std::io::Error::from_raw_os_error(
                        rustix::io::Errno::SRCH.raw_os_error(),
                    ));
                }
                Ok(())
            });
        }
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn prepare(command: &mut Command) {
        command.process_group(0);
    }

    #[cfg(not(unix))]
    fn prepare(_: &mut Command) {}

    /// Kills the groups of the children that are left when this process is gone, however it went. One for all children.
    #[derive(Default)]
    struct Guard {
        shell: Option<std::process::Child>,
        groups: BTreeSet<u32>,
    }

    /// Reads `+ GROUP` and `- GROUP` until its input ends, which it does with the process that writes to it.
    const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
all=' '
while read -r what group; do
  case $what in
    +) all="$all$group " ;;
    -) rest=' '
       for one in $all; do [ "$one" = "$group" ] || rest="$rest$one "; done
       all=$rest ;;
  esac
done
for one in $all; do kill -s KILL -- "-$one" 2>/dev/null; done"#;

    impl Guard {
        fn add(&mut self, group: u32) {
            self.groups.insert(group);
            self.tell(&format!("+ {group}\n"));
        }

        fn remove(&mut self, group: u32) {
            if self.groups.remove(&group) {
                self.tell(&format!("- {group}\n"));
            }
        }

        /// Without a shell there is no guard; then the child itself still ends with this process.
        fn tell(&mut self, what: &str) {
            if cfg!(not(unix)) {
                return;
            }
            if let Some(stdin) = self.shell.as_mut().and_then(|shell| shell.stdin.as_mut())
                && stdin.write_all(what.as_bytes()).is_ok()
            {
                return;
            }
            if let Some(mut ended) = self.shell.take() {
                let _ = ended.kill();
                let _ = ended.wait();
            }
            let mut shell = std::process::Command::new("/bin/sh");
            shell
                .args(["-c", SCRIPT, "prose-guard"])
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut shell, 0);
            let Ok(mut shell) = shell.spawn() else { return };
            if let Some(stdin) = shell.stdin.as_mut() {
                let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
                let _ = stdin.write_all(all.as_bytes());
            }
            self.shell = Some(shell);
        }
    }
}
