//! `bash`: a shell command, in a process group of its own that ends with it.
//!
//! A shell does whatever its user may do: the rules for files and hosts don't hold it back, which is why a person is asked
//! about each command unless the program permits it. It sees no keys: its variables are those that any program needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prose_model::backend::Variables;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;

use super::watch::{changed, fingerprints};
use super::{ToolResult, Toolbox, cut};
use crate::child::{Child, ChildCommand, ChildError, Environment, describe};
use crate::policy::Access;
use crate::redact::{RedactBytes, Redactor};

/// How long a command may take when it doesn't say.
const USUAL: Duration = Duration::from_secs(120);
/// How long it may take at most.
pub(super) const LONGEST: Duration = Duration::from_secs(1_800);
/// How long it has to stop when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for the rest of its output once it has ended.
const OUTPUT_WAIT: Duration = Duration::from_millis(500);
/// How much is kept of the beginning of its output, and of the end, in bytes.
const KEPT: usize = 24 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bash {
    pub(super) command: String,
    timeout_seconds: Option<u64>,
}

pub(super) async fn bash(tools: &Toolbox, input: Bash) -> Result<ToolResult, ToolResult> {
    if input.command.trim().is_empty() {
        return Err(ToolResult::error("the command is empty"));
    }
    if input.command.contains('\0') {
        return Err(ToolResult::error("a command has no zero byte in it"));
    }
    tools.gate.pass("bash", Access::Bash(&input.command)).await?;
    let limit = input
        .timeout_seconds
        .map_or(USUAL, Duration::from_secs)
        .min(LONGEST);
    let root = tools.gate.policy().root().to_owned();
    let before = fingerprints(&root).await;

    let mut child = start(&root, &input.command, &tools.variables)
        .await
        .map_err(ToolResult::error)?;
    let told = tools.sink.child(child.pid()).await;
    if let Err(failure) = told {
        let _ = child.stop(GRACE).await;
        return Err(ToolResult::error(failure.message));
    }
    let mut output = Output::new(&tools.redactor);
    // It reads nothing: whoever asks for input sees the end.
    child.stdin = None;
    let mut stdout = child.stdout.take();
    let ended = {
        let read = async {
            if let Some(stdout) = &mut stdout {
                let mut buffer = vec![0; 16 * 1024];
                while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
                    output.add(&buffer[..read]);
                }
            }
        };
        tokio::pin!(read);
        let run = async {
            let mut read_all = false;
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    () = &mut read, if !read_all => read_all = true,
                }
            };
            if !read_all {
                let _ = tokio::time::timeout(OUTPUT_WAIT, &mut read).await;
            }
            status
        };
        tokio::time::timeout(limit, run).await
    };
    let ended_by_itself = ended.is_ok();
    let (end, mut is_error) = match ended {
        Ok(Ok(status)) if status.success() => (None, false),
        Ok(Ok(status)) => (Some(describe(status)), true),
        Ok(Err(error)) => (Some(error.to_string()), true),
        Err(_) => {
            let _ = child.stop(GRACE).await;
            (Some(format!("was ended after {} s", limit.as_secs())), true)
        }
    };
    // What may be the beginning of a secret is shown if the output ended, not if it was cut.
    if ended_by_itself {
        output.end();
    }
    let mut text = output.text();
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if let Some(end) = end {
        text.push_str(&format!("\n(the command {end})"));
    }
    let changed = changed(&before, &fingerprints(&root).await);
    if !changed.is_empty() {
        is_error = true;
        let changed = changed.join(", ");
        tools.sink.notice(format!(
            "while a shell command of a session ran, {changed} changed, which sessions must not write: look at it"
        ));
        text.push_str(&format!(
            "\n(while it ran, {changed} changed, which sessions must not write: undo it and say so in your result)"
        ));
    }
    Ok(ToolResult { text, is_error })
}

/// Starts the shell, with one stream for all it says, in the order it says it.
async fn start(root: &Path, command: &str, variables: &Variables) -> Result<Child, ChildError> {
    let environment = Environment::basic(variables);
    let shell = crate::child::find_program(Path::new("bash"), environment.get("PATH"))
        .unwrap_or_else(|| PathBuf::from("sh"));
    let args = ["-c", "exec \"$0\" -c \"$1\" 2>&1"]
        .into_iter()
        .map(Into::into)
        .chain([shell.into_os_string(), command.into()])
        .collect();
    Child::start(ChildCommand {
        program: "sh".into(),
        args,
        dir: root.to_owned(),
        environment,
    })
    .await
}

/// The beginning and the end of an output of any length. Secrets are hidden before it is cut, which would leave halves.
struct Output {
    read: RedactBytes,
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    dropped: u64,
}

impl Output {
    fn new(redactor: &Redactor) -> Output {
        Output {
            read: redactor.bytes(),
            head: Vec::new(),
            tail: std::collections::VecDeque::new(),
            dropped: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let text = self.read.push(bytes);
        self.keep(text.as_bytes());
    }

    fn end(&mut self) {
        let rest = self.read.finish();
        self.keep(rest.as_bytes());
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let tail = String::from_utf8_lossy(&tail);
        let text = match self.dropped {
            0 => format!("{head}{tail}"),
            dropped => format!("{head}\n(… {dropped} bytes left out …)\n{tail}"),
        };
        cut(text.trim_end(), 3 * KEPT).to_owned()
    }
}
