//! `read`, `write` and `list`.

use std::io::{BufRead as _, BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use serde::Deserialize;

use super::beneath::{Folder, Kind};
use super::{LONGEST_RESULT, ToolResult, Toolbox, cut};
use crate::policy::{Access, Decision, Place, Policy, resolve};
use crate::redact::{RedactBytes, Redactor};

/// Lines that are read at once when no number is given.
const LINES: usize = 2_000;
/// The longest line that is shown whole, in bytes.
const LONGEST_LINE: usize = 4_000;
/// Larger files are left to other tools.
const LARGEST_FILE: u64 = 256 * 1024 * 1024;
/// The longest text that is written at once, in bytes.
const LONGEST_CONTENT: usize = 8 * 1024 * 1024;
/// Most entries that are listed.
const ENTRIES: usize = 1_000;
/// Most entries that are looked at for a pattern.
const LOOKED_AT: usize = 200_000;
/// Folders that are not searched: what is in them was made by tools, and there is much of it.
const NOT_SEARCHED: &[&str] = &[".git", ".prose", "node_modules", "target"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    pub(super) path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub(super) path: String,
    content: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    path: Option<String>,
    pattern: Option<String>,
}

impl List {
    pub(super) fn detail(&self) -> String {
        let path = self.path.as_deref().unwrap_or(".");
        match &self.pattern {
            Some(pattern) => format!("{path} {pattern}"),
            None => path.to_owned(),
        }
    }
}

pub(super) async fn read(tools: &Toolbox, input: Read) -> Result<ToolResult, ToolResult> {
    let place = permitted(tools, "read", &input.path).await?;
    let protected = tools.gate.policy().root().join(".prose").join(".env");
    let path = input.path.clone();
    let redactor = tools.redactor.clone();
    blocking(move || {
        let failed = |error: std::io::Error| describe(&path, &error);
        let file = Folder::open(&place.base)
            .and_then(|base| base.read(&place.relative))
            .map_err(failed)?;
        // A second name of the file with the keys is the file with the keys.
        if same_file(&file, &protected) {
            return Err(ToolResult::error(format_args!(
                "refused: {path} holds the keys of this workspace"
            )));
        }
        let size = file.metadata().map_err(failed)?.len();
        if size > LARGEST_FILE {
            return Err(ToolResult::error(format_args!(
                "{path} has {size} bytes; at most {LARGEST_FILE} are read"
            )));
        }
        let first = input.offset.unwrap_or(1).max(1);
        let most = input.limit.unwrap_or(LINES).max(1);
        lines(file, &redactor, first, most).map_err(|error| match error {
            Unreadable::Binary => ToolResult::error(format_args!("{path} is no text ({size} bytes)")),
            Unreadable::Io(error) => describe(&path, &error),
        })
    })
    .await
    .map(ToolResult::ok)
}

enum Unreadable {
    Binary,
    Io(std::io::Error),
}

impl From<std::io::Error> for Unreadable {
    fn from(error: std::io::Error) -> Self {
        Unreadable::Io(error)
    }
}

/// At most `most` lines from the line `first` on, and what to ask for next where there are more.
fn lines(file: std::fs::File, redactor: &Redactor, first: usize, most: usize) -> Result<String, Unreadable> {
    let mut file = BufReader::new(file);
    if file.fill_buf()?.contains(&0) {
        return Err(Unreadable::Binary);
    }
    // IMPORTANT: secrets are hidden in the file as a whole, before lines and parts of it are cut out.
    let mut file = BufReader::new(Hidden {
        file,
        read: redactor.bytes(),
        ready: Cursor::default(),
    });
    let mut out = String::new();
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        // No more of a line than is shown, however long it is.
        let read = (&mut file)
            .take(LONGEST_LINE as u64)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let mut rest = 0;
        if line.last() != Some(&b'\n') {
            loop {
                let buffer = file.fill_buf()?;
                let end = buffer.iter().position(|byte| *byte == b'\n');
                let used = end.map_or(buffer.len(), |end| end + 1);
                let is_over = end.is_some() || buffer.is_empty();
                rest += end.unwrap_or(used);
                file.consume(used);
                if is_over {
                    break;
                }
            }
        }
        number += 1;
        if number < first {
            continue;
        }
        let shown = number - first;
        if shown == most || out.len() + line.len() > LONGEST_RESULT {
            out.push_str(&format!("(more follows: go on with offset {number})\n"));
            return Ok(out);
        }
        out.push_str(&String::from_utf8_lossy(&line));
        if rest > 0 {
            out.push_str(&format!(" (and {rest} more bytes on this line)\n"));
        }
    }
    if out.is_empty() {
        return Ok(match number {
            0 => "(the file is empty)".to_owned(),
            _ => format!("(the file has only {number} lines)"),
        });
    }
    Ok(out)
}

/// A file as a text without secrets.
struct Hidden<R> {
    file: R,
    read: RedactBytes,
    /// What was read and has not been given yet.
    ready: Cursor<Vec<u8>>,
}

impl<R: std::io::BufRead> std::io::Read for Hidden<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let given = self.ready.read(buffer)?;
            if given > 0 || buffer.is_empty() {
                return Ok(given);
            }
            let piece = self.file.fill_buf()?;
            let length = piece.len();
            let text = match length {
                0 => self.read.finish(),
                _ => self.read.push(piece),
            };
            self.file.consume(length);
            if length == 0 && text.is_empty() {
                return Ok(0);
            }
            self.ready = Cursor::new(text.into_bytes());
        }
    }
}

pub(super) async fn write(tools: &Toolbox, input: Write) -> Result<ToolResult, ToolResult> {
    if input.content.len() > LONGEST_CONTENT {
        return Err(ToolResult::error(format_args!(
            "the content has {} bytes; at most {LONGEST_CONTENT} are written at once",
            input.content.len()
        )));
    }
    let place = permitted(tools, "write", &input.path).await?;
    // What is handed to a thread goes on when this future is dropped.
    let stop = tools.cancel.child_token();
    let stopped = stop.clone();
    let _dropped = stop.drop_guard();
    blocking(move || {
        Folder::open(&place.base)
            .and_then(|base| {
                base.replace(&place.relative, input.content.as_bytes(), || {
                    !stopped.is_cancelled()
                })
            })
            .map_err(|error| describe(&input.path, &error))?;
        Ok(ToolResult::ok(format!(
            "wrote {} bytes to {}",
            input.content.len(),
            input.path
        )))
    })
    .await
}

pub(super) async fn list(tools: &Toolbox, input: List) -> Result<ToolResult, ToolResult> {
    let path = match input.path.as_deref() {
        None | Some("") => ".".to_owned(),
        Some(path) => path.to_owned(),
    };
    let policy = tools.gate.policy().clone();
    let named = policy.named(Path::new(&path))?;
    let place = resolve(&named)?;
    let access = Access::Read(Path::new(&path));
    let decision = policy.decide_folder(&named).and(policy.decide_folder(&place));
    // What a person was asked about is the folder with what is in it.
    let asked = decision == Decision::Ask;
    tools.gate.ask("list", access, decision).await?;
    let glob = match &input.pattern {
        Some(pattern) => {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            Some(
                glob.map_err(|error| {
                    ToolResult::error(format_args!("the pattern can't be understood: {error}"))
                })?
                .compile_matcher(),
            )
        }
        None => None,
    };
    blocking(move || {
        let visible = |path: &Path| {
            let place = Place {
                base: place.base.clone(),
                relative: place.relative.join(path),
            };
            match policy.decide_place(Access::Read(path), &place) {
                Decision::Allow => true,
                Decision::Ask => asked,
                Decision::Deny(_) => false,
            }
        };
        let top = Folder::open(&place.base)
            .and_then(|base| base.folder(&place.relative, false))
            .map_err(|error| describe(&path, &error))?;
        let mut out: Vec<String> = Vec::new();
        let (mut looked_at, mut more, mut unreadable) = (0, false, 0);
        // Folders still to be looked into, the next one last. Each is opened when its turn comes: a file system has more
        // folders than a process may hold open.
        let mut left = vec![PathBuf::new()];
        'all: while let Some(at) = left.pop() {
            let is_top = at.as_os_str().is_empty();
            let entries = match is_top {
                true => top.entries(LOOKED_AT),
                false => top
                    .folder(&at, false)
                    .and_then(|folder| folder.entries(LOOKED_AT)),
            };
            let entries = match entries {
                Ok((entries, is_cut)) => {
                    more |= is_cut;
                    entries
                }
                // One that can't be read is passed over, unless it is the one that was asked for.
                Err(error) if is_top => return Err(describe(&path, &error)),
                Err(_) => {
                    unreadable += 1;
                    continue;
                }
            };
            let mut folders = Vec::new();
            for entry in entries {
                looked_at += 1;
                if out.len() == ENTRIES || looked_at > LOOKED_AT {
                    more = true;
                    break 'all;
                }
                let inner = at.join(&entry.name);
                let shown = inner.display().to_string();
                match (&glob, entry.kind) {
                    (None, Kind::Folder) => out.push(format!("{shown}/")),
                    (Some(_), Kind::Folder) if NOT_SEARCHED.contains(&entry.name.as_str()) => {}
                    (Some(_), Kind::Folder) => folders.push(inner),
                    (Some(glob), _) if !glob.is_match(&inner) => {}
                    _ if !visible(&inner) => {}
                    (_, Kind::Link) => out.push(format!("{shown} (link)")),
                    _ => out.push(shown),
                }
            }
            left.extend(folders.into_iter().rev());
        }
        if out.is_empty() && !more {
            out.push("(nothing)".to_owned());
        }
        let mut text = out.join("\n");
        if text.len() > LONGEST_RESULT {
            let kept = cut(&text, LONGEST_RESULT);
            // A part of a name is the name of something else.
            let end = kept.rfind('\n').unwrap_or(0);
            text.truncate(end);
            more = true;
        }
        if unreadable > 0 {
            text.push_str(&format!("\n({unreadable} folders could not be read)"));
        }
        if more {
            text.push_str("\n(there is more: list a folder below, or give a narrower pattern)");
        }
        Ok(ToolResult::ok(text.trim_start_matches('\n')))
    })
    .await
}

/// Where a path leads, if the session may go there: asked about the path as named and as resolved.
async fn permitted(tools: &Toolbox, tool: &str, path: &str) -> Result<Place, ToolResult> {
    let policy: &Policy = tools.gate.policy();
    let path = Path::new(path);
    let access = match tool {
        "write" => Access::Write(path),
        _ => Access::Read(path),
    };
    let named = policy.named(path)?;
    let place = resolve(&named)?;
    let decision = policy
        .decide_place(access, &named)
        .and(policy.decide_place(access, &place));
    tools.gate.ask(tool, access, decision).await?;
    Ok(place)
}

/// Does something that may wait for the disk, away from the threads that must not.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolResult> + Send + 'static,
) -> Result<T, ToolResult> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(ToolResult::error("it was stopped")),
    }
}

fn describe(path: &str, error: &std::io::Error) -> ToolResult {
    use std::io::ErrorKind;
    let what = match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        ErrorKind::IsADirectory => "is a folder".to_owned(),
        ErrorKind::NotADirectory => "is no folder, or leads through a file".to_owned(),
        ErrorKind::PermissionDenied => "the system does not permit it".to_owned(),
        _ => error.to_string(),
    };
    ToolResult::error(format_args!("{path}: {what}"))
}

#[cfg(unix)]
fn same_file(file: &std::fs::File, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(other)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_: &std::fs::File, _: &Path) -> bool {
    false
}
