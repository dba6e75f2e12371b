//! The text that a session is given.
//!
//! A file-capable agent gets what the seed's "Subagent Output Writing" and "Context Passing" ask for: the task,
//! context by reference, the execution scope, where and in which format to write, and what to reply. A
//! plain API gets the same facts with context as text, and its reply is the result.

use std::fmt::Write as _;
use std::path::PathBuf;

use prose_model::{Failure, MemoryMode, SessionRequest, Value};

use crate::content::{Content, plain_text};
use crate::session::Delivery;
use crate::skills::Skill;

/// Name of the file, in a session's staging folder, that an agent writes its result to.
pub const STAGED_BINDING: &str = "binding.md";
/// Name of the staging file for a persistent agent's new memory.
pub const STAGED_MEMORY: &str = "memory.md";
/// Name of the staging file for a persistent agent's record of the session.
pub const STAGED_SEGMENT: &str = "segment.md";

/// Longest context value, in bytes, that is put into a prompt as text; above it stand a summary and the reference.
pub const CONTEXT_LIMIT: u64 = 32 * 1024;

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderedPrompt {
    /// For backends with a system role; empty when there is nothing to say.
    pub system: String,
    /// The message.
    pub user: String,
    /// Files that the texts refer to, for the session to read.
    pub files: Vec<PromptFile>,
}

/// A value that is handed over by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Its name in the context.
    pub label: String,
    /// Where it is.
    pub path: PathBuf,
}

impl RenderedPrompt {
    /// Both parts as one text, for backends without a system role.
    pub fn joined(&self) -> String {
        if self.system.is_empty() {
            self.user.clone()
        } else {
            format!("{}\n\n{}", self.system, self.user)
        }
    }
}

/// What the runtime knows besides the request.
#[derive(Debug, Clone, Default)]
pub struct PromptParts {
    /// The session's staging folder; used for [`Delivery::Files`].
    pub staging: PathBuf,
    /// The head of the binding file, down to the line before the body, exactly as it has to be written.
    pub binding_header: String,
    /// Where each context entry can be read, by position; none for what has no file.
    pub context_files: Vec<Option<PathBuf>>,
    /// The text of a persistent agent's memory, if the session resumes it and there is any.
    pub memory: Option<String>,
    /// For context entries that are an agent's memory: its text, by position.
    pub context_memory: Vec<Option<String>>,
    /// The number of the segment that a persistent agent writes, from 1.
    pub segment: u32,
    /// Whether the backend takes skills by itself.
    pub skills_handled: bool,
    /// The skills of the session that have a file.
    pub skills: Vec<Skill>,
    /// Whether the session has the tools of [`crate::mcp`].
    pub broker: bool,
    /// Whether context is kept short because there are no files to refer to: up to 2,000 characters as they are, up to
    /// 8,000 by their key points, longer ones by the essentials.
    pub in_context: bool,
}

/// Renders the text for a session.
pub fn render(
    request: &SessionRequest,
    delivery: Delivery,
    parts: &PromptParts,
    content: &dyn Content,
) -> Result<RenderedPrompt, Failure> {
    let mut system = String::new();
    if let Some(text) = &request.system {
        system.push_str(&content.read(text)?);
    }
    if !request.skills.is_empty() && !parts.skills_handled {
        paragraph(&mut system, &skills(&request.skills, &parts.skills));
    }
    if let Some(rules) = rules(request, delivery, parts) {
        paragraph(&mut system, &rules);
    }

    let mut user = content.read(&request.task)?;
    context(&mut user, request, delivery, parts, content)?;
    if let Some(scope) = &request.scope {
        paragraph(
            &mut user,
            &format!(
                "Execution scope:\n  execution_id: {}\n  block: {}\n  depth: {}",
                scope.execution_id, scope.block, scope.depth
            ),
        );
    }
    memory(&mut user, request, delivery, parts);
    if delivery == Delivery::Files {
        output(&mut user, request, parts);
    }
    Ok(RenderedPrompt {
        system,
        user,
        files: files(request, parts),
    })
}

/// Those that have a file are read there; the others may be known to the agent.
fn skills(names: &[String], found: &[Skill]) -> String {
    let mut text = String::new();
    if !found.is_empty() {
        text.push_str("Your skills, each in a file; read it before you do what it is for:");
        for skill in found {
            let _ = write!(text, "\n- {}", skill.name);
            if !skill.purpose.is_empty() {
                let _ = write!(text, " ({})", skill.purpose.trim_end_matches('.'));
            }
            let _ = write!(text, ": {}", skill.path.display());
        }
    }
    let is_found = |name: &&String| found.iter().any(|skill| skill.name == **name);
    let others: Vec<&str> = names
        .iter()
        .filter(|name| !is_found(name))
        .map(String::as_str)
        .collect();
    if !others.is_empty() {
        let others = format!("Use these skills if you have them: {}.", others.join(", "));
        paragraph(&mut text, &others);
    }
    text
}

fn files(request: &SessionRequest, parts: &PromptParts) -> Vec<PromptFile> {
    let entries = request.context.iter().zip(&parts.context_files);
    let context = entries.filter_map(|(item, path)| {
        Some(PromptFile {
            label: item.label.to_string(),
            path: path.clone()?,
        })
    });
    let skills = parts.skills.iter().map(|skill| PromptFile {
        label: format!("skill {}", skill.name),
        path: skill.path.clone(),
    });
    context.chain(skills).collect()
}

fn paragraph(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// How to behave, for whoever has no other instructions about being a session.
fn rules(request: &SessionRequest, delivery: Delivery, parts: &PromptParts) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    if delivery == Delivery::Files {
        lines.push(
            "You run as one step of a larger program. Do the task below and nothing beyond it; other steps do the rest.",
        );
        lines.push(
            "Context is handed over by file: open what the task needs, and only as much of it as it needs.",
        );
        if parts.broker {
            lines.push(
                "The server `prose` gives you tools to hand over what you made and to read what you were given (`write_binding`, `read_binding` …); their names may have something in front, as in `mcp__prose__write_binding`.",
            );
        }
        lines.push(match parts.broker {
            true => {
                "Hand over the whole result as you are told below. What you reply is a receipt, which no later step reads as the result."
            }
            false => {
                "Put the whole result into the output file. What you reply is a receipt, which no later step reads as the result."
            }
        });
    }
    if request
        .memory
        .as_ref()
        .is_some_and(|memory| memory.mode != MemoryMode::Read)
    {
        lines.push(
            "You are a persistent agent. Your result belongs to this task; your memory belongs to you and comes back in later tasks. They are separate texts.",
        );
        lines.push(
            "In your memory keep what a later task can't find again: exact places, names and numbers, decisions with their reasons, open questions. Leave out how you got there, what turned out wrong, and long quotations.",
        );
        lines.push("Stay consistent with your memory; where you change your mind, say so and say why.");
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn context(
    user: &mut String,
    request: &SessionRequest,
    delivery: Delivery,
    parts: &PromptParts,
    content: &dyn Content,
) -> Result<(), Failure> {
    if request.context.is_empty() {
        if request.context_given {
            paragraph(user, "Context: none. Start fresh.");
        }
        return Ok(());
    }
    let heading = match delivery {
        Delivery::Files => "Context (by reference):",
        Delivery::Plain => "Context:",
    };
    paragraph(user, heading);
    for (index, item) in request.context.iter().enumerate() {
        let file = parts.context_files.get(index).and_then(Option::as_ref);
        let memory = parts.context_memory.get(index).and_then(Option::as_ref);
        if delivery == Delivery::Files
            && let Some(path) = file
        {
            let _ = write!(user, "\n- {}: {}", item.label, path.display());
            continue;
        }
        let (text, size) = match (&item.memory_of, memory) {
            (Some(_), Some(text)) => (text.clone(), text.len() as u64),
            (Some(_), None) => (String::new(), 0),
            (None, _) => match large_text(&item.value).filter(|_| !parts.in_context) {
                Some((summary, size)) => (summary, size),
                None => {
                    let text = plain_text(&item.value, content)?;
                    let size = text.len() as u64;
                    (text, size)
                }
            },
        };
        let text = if parts.in_context { shortened(&text) } else { text };
        if size > CONTEXT_LIMIT && !parts.in_context {
            let place = file.map_or_else(String::new, |path| format!("; whole text: {}", path.display()));
            let _ = write!(
                user,
                "\n\n## {}\n\n{} ({size} bytes{place})",
                item.label,
                crate::one_line(&text)
            );
        } else if text.trim().is_empty() {
            let _ = write!(user, "\n\n## {}\n\n(empty)", item.label);
        } else {
            let _ = write!(user, "\n\n## {}\n\n{}", item.label, text.trim_end());
        }
    }
    Ok(())
}

/// Longest context value, in characters, that is passed whole where state is kept in context.
const WHOLE: usize = 2_000;
/// Longest one of which the key points are passed.
const KEY_POINTS: usize = 8_000;
/// How long the essentials of a longer one are.
const ESSENTIALS: usize = 1_000;

/// A text as it is passed where state is kept in context: the beginnings of its paragraphs, headings and list entries, as
/// many as there is room for, and how long the whole is.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= WHOLE {
        return text.to_owned();
    }
    let (room, what) = if count <= KEY_POINTS {
        (WHOLE, "key points")
    } else {
        (ESSENTIALS, "essentials")
    };
    let mut short = String::new();
    let mut left = room;
    let mut before_blank = true;
    for line in text.lines().map(str::trim_end) {
        let trimmed = line.trim_start();
        let begins = before_blank || trimmed.starts_with(['#', '-', '*', '+', '|']) || {
            let digits = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
            digits.len() < trimmed.len() && digits.starts_with(['.', ')'])
        };
        before_blank = trimmed.is_empty();
        if !begins || trimmed.is_empty() {
            continue;
        }
        // The first sentence says most.
        let end = trimmed.find(". ").map_or(trimmed.len(), |at| at + 1);
        let piece: String = trimmed[..end].chars().take(left.min(300)).collect();
        left = left.saturating_sub(piece.chars().count() + 1);
        short.push_str(&piece);
        short.push('\n');
        if left == 0 {
            break;
        }
    }
    short.push_str(&format!("(the {what} of {count} characters)"));
    short
}

/// Summary and size of a text too long for a prompt, known without reading it.
fn large_text(value: &Value) -> Option<(String, u64)> {
    let Value::Text(text) = value else { return None };
    (text.len() > CONTEXT_LIMIT).then(|| {
        let summary = text.parts.iter().map(|part| match part {
            prose_model::TextPart::Inline(text) => crate::one_line(text),
            prose_model::TextPart::Ref(reference) => reference.summary.clone(),
        });
        (summary.collect::<Vec<_>>().join(" "), text.len())
    })
}

fn memory(user: &mut String, request: &SessionRequest, delivery: Delivery, parts: &PromptParts) {
    let Some(memory) = request
        .memory
        .as_ref()
        .filter(|memory| memory.mode != MemoryMode::Read)
    else {
        return;
    };
    let mut text = format!("## Agent Memory: {}\n\n", memory.agent);
    match (&parts.memory, memory.mode) {
        (Some(memory), MemoryMode::Resume) => text.push_str(memory.trim_end()),
        _ => text.push_str("(empty: nothing is remembered yet)"),
    }
    if delivery == Delivery::Files {
        let before = match parts.broker {
            true => {
                "When you are done, hand over your memory, written anew and whole, with the tool `update_memory`, and a record of this session with `write_segment`.\n\n\
                 If you don't have these tools, write your memory anew, whole, to:"
            }
            false => "When you are done, write your memory anew, whole, to:",
        };
        let _ = write!(
            text,
            "\n\n{before}\n  {}\n\
             and a record of this session (segment {:03}: what you looked at, found, decided, and what should come next) to:\n  {}",
            parts.staging.join(STAGED_MEMORY).display(),
            parts.segment,
            parts.staging.join(STAGED_SEGMENT).display(),
        );
    }
    paragraph(user, &text);
}

fn output(user: &mut String, request: &SessionRequest, parts: &PromptParts) {
    let path = parts.staging.join(STAGED_BINDING);
    let path = path.display();
    let id = match request.binding.binding.execution_id {
        Some(id) => format!("\nExecution ID: {id}"),
        None => String::new(),
    };
    let before = match parts.broker {
        true => {
            "When you have completed the task, hand over your output with the tool `write_binding`.\n\n\
             If you don't have this tool, write your output to:"
        }
        false => "When you have completed the task, write your output to:",
    };
    paragraph(
        user,
        &format!(
            "{before}\n  {path}\n\n\
             Format (keep the head as it is, put your output below the line):\n\n{}\n[your output]\n\n\
             Then reply with only:\n\n\
             Binding written: {}\nLocation: {path}{id}\nSummary: [one line about your output]",
            parts.binding_header.trim_end(),
            request.binding.binding.name,
        ),
    );
}

/// The `Summary:` line of a confirmation as [`render`] asks for it.
pub fn confirmation_summary(reply: &str) -> Option<&str> {
    reply
        .lines()
        .rev()
        .find_map(|line| {
            line.trim()
                .trim_start_matches(['*', '-', ' '])
                .strip_prefix("Summary:")
        })
        .map(|summary| summary.trim_matches(['*', ' ']))
        .filter(|summary| !summary.is_empty())
}
