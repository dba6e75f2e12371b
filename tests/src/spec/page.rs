//! A page taken apart into cases.

use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::Failure;
use super::diagnostics::Expected;

/// A page of the specification.
#[derive(Debug, Clone)]
pub struct Page {
    /// `05-discretion`.
    pub name: String,
    /// The first heading.
    pub title: String,
    /// The whole page.
    pub text: String,
    /// What is tried, in order.
    pub cases: Vec<Case>,
    /// Mistakes in the page's own form.
    pub problems: Vec<Failure>,
}

/// A program with its files and what is expected of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Files beside the program, in order.
    pub files: Vec<Fence>,
    /// The program.
    pub main: Fence,
    /// Answers, inputs and outcomes.
    pub others: Vec<Fence>,
}

/// A fenced block.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Line of its first content line in the page, from 1.
    pub line: usize,
    /// What it is for.
    pub role: Role,
    /// Its content.
    pub text: String,
    /// The bytes of the page that hold the content.
    pub range: Range<usize>,
    /// Flags of a program.
    pub flags: Flags,
}

/// What a fence is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// `prose`: the program that is tried.
    Program,
    /// `prose file=PATH`, `toml file=PATH`, …: a file beside it.
    File(String),
    /// `toml mock`: the answers of a run.
    Mock,
    /// `toml inputs`: values given before the run starts.
    Inputs,
    /// `text diagnostics`: every diagnostic of the program, with places and messages.
    Diagnostics,
    /// `prose formatted`: what the formatter makes of it.
    Formatted,
    /// `prose canonical`: what `prose compile` makes of it.
    Canonical,
    /// `prose fixed`: the program after every quick fix.
    Fixed,
    /// `text output`: what the run prints.
    Output,
    /// `text error`: how the run fails.
    Error,
    /// `text events`: what happens, in order.
    Events,
    /// `text sessions`: the sessions in the order of their start.
    Sessions,
    /// `text prompts`: what each session is given.
    Prompts,
    /// `text bindings`: every name with a file and its last value.
    Bindings,
    /// `text run=PATH`: a file of the run's folder.
    RunFile(String),
    /// `text project=PATH`: a file of the project's folder, in which the user's home is `home`.
    ProjectFile(String),
    /// `text given`: the whole text that each session is given.
    Given,
    /// `text decodings`: what the judge is asked to read.
    Decodings,
}

/// How a program fence is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// `hints=off`: hints are not looked at.
    pub hints_off: bool,
    /// `lints=on`: lints (codes `L…`) are looked at although none is announced.
    pub lints_on: bool,
    /// `eol=crlf`, `eol=cr`: what its lines end with.
    pub eol: Option<&'static str>,
    /// `bom`: begins with a byte order mark.
    pub bom: bool,
    /// `no-newline`: the last line does not end.
    pub no_newline: bool,
    /// `repeat=N`: what stands between `‹` and `›` occurs N times.
    pub repeat: Option<usize>,
    /// Who answers the run, besides the mock file.
    pub scene: Scene,
}

/// What is different from a run that is only simulated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scene {
    /// `agent=files`: sessions are answered by an agent that works on files and does what its text says.
    pub files: bool,
    /// `cancel=WORD`: a person cancels the run when a session with this word in its task has started.
    pub cancel: Option<String>,
    /// `stop=WORD`: the process ends there, and another takes the run up. What the first one's session still writes
    /// comes too late.
    pub stop: Option<String>,
    /// `garbled=N`: the first N answers of the judge can't be read.
    pub garbled: usize,
}

impl Role {
    /// Whether the fence says what comes out, and can be rewritten when something else does.
    pub fn is_outcome(&self) -> bool {
        !matches!(self, Role::Program | Role::File(_) | Role::Mock | Role::Inputs)
    }

    /// Whether it says something about a run.
    pub fn needs_run(&self) -> bool {
        matches!(
            self,
            Role::Output
                | Role::Error
                | Role::Events
                | Role::Sessions
                | Role::Prompts
                | Role::Bindings
                | Role::RunFile(_)
                | Role::ProjectFile(_)
                | Role::Given
                | Role::Decodings
        )
    }
}

impl Fence {
    /// Whether it is a program, so that it is checked.
    pub fn is_program(&self) -> bool {
        match &self.role {
            Role::Program => true,
            Role::File(path) => path.ends_with(".prose"),
            _ => false,
        }
    }

    /// The file's bytes: the content with the line ends, mark and end that the flags ask for.
    pub fn source(&self) -> String {
        let mut text = match self.flags.repeat {
            Some(times) => repeated(&self.text, times),
            None => self.text.clone(),
        };
        if self.flags.no_newline {
            text.truncate(text.trim_end_matches('\n').len());
        }
        if let Some(eol) = self.flags.eol {
            text = text.replace('\n', eol);
        }
        if self.flags.bom {
            text.insert(0, '\u{feff}');
        }
        text
    }
}

impl Case {
    /// Its programs: the files beside it, then itself.
    pub fn programs(&self) -> impl Iterator<Item = &Fence> {
        self.files
            .iter()
            .filter(|fence| fence.is_program())
            .chain([&self.main])
    }

    /// The fence of a role.
    pub fn other(&self, role: &Role) -> Option<&Fence> {
        self.others.iter().find(|fence| fence.role == *role)
    }

    /// Whether the program is run.
    pub fn runs(&self) -> bool {
        self.others.iter().any(|fence| fence.role.needs_run())
    }

    /// Number of expectations that are written down: each diagnostic, each clean program, each outcome.
    pub fn assertions(&self) -> usize {
        let listed = self.other(&Role::Diagnostics).is_some();
        let diagnostics: usize = self
            .programs()
            .filter(|fence| !(listed && fence.role == Role::Program))
            .map(|fence| Expected::read(&fence.text).0.len().max(1))
            .sum();
        let outcomes = self.others.iter().filter(|fence| fence.role.is_outcome()).count();
        diagnostics + outcomes
    }
}

impl Page {
    /// Reads a page from its file.
    pub fn open(path: &Path) -> Page {
        let name = path.file_stem().unwrap().to_string_lossy();
        Page::read(&name, &std::fs::read_to_string(path).unwrap())
    }

    /// Takes a page apart.
    pub fn read(name: &str, text: &str) -> Page {
        let mut page = Page {
            name: name.to_owned(),
            title: String::new(),
            text: text.to_owned(),
            cases: Vec::new(),
            problems: Vec::new(),
        };
        let mut files: Vec<Fence> = Vec::new();
        let mut events = Parser::new(text).into_offset_iter();
        while let Some((event, range)) = events.next() {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    if level == HeadingLevel::H1 && page.title.is_empty() {
                        page.title = text[range.clone()].trim_start_matches('#').trim().to_owned();
                    }
                    page.no_files_left(&mut files);
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let line = line_of(text, range.start);
                    let CodeBlockKind::Fenced(info) = kind else {
                        page.problem(line, "code that is only indented is not tried; use a fence");
                        continue;
                    };
                    let (content, at) = content(&mut events, text, &range);
                    match role(&info) {
                        Ok((role, flags)) => page.fence(
                            Fence {
                                line: line + 1,
                                role,
                                text: content,
                                range: at,
                                flags,
                            },
                            &mut files,
                        ),
                        Err(problem) => page.problem(line, problem),
                    }
                }
                _ => {}
            }
        }
        page.no_files_left(&mut files);
        if page.title.is_empty() {
            page.problem(1, "the page has no title (`# …`)");
        }
        page
    }

    /// Number of expectations that are written down.
    pub fn assertions(&self) -> usize {
        self.cases.iter().map(Case::assertions).sum()
    }

    /// The titles of its sections, as written.
    pub fn sections(&self) -> Vec<&str> {
        let mut sections = Vec::new();
        for (event, range) in Parser::new(&self.text).into_offset_iter() {
            if let Event::Start(Tag::Heading {
                level: HeadingLevel::H2,
                ..
            }) = event
            {
                sections.push(self.text[range].trim_start_matches('#').trim());
            }
        }
        sections
    }

    fn problem(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Failure {
            line,
            message: message.into(),
        });
    }

    fn fence(&mut self, fence: Fence, files: &mut Vec<Fence>) {
        if let Some(what) = Expected::read(&fence.text).1.filter(|_| fence.is_program()) {
            self.problem(fence.line + what.line, what.message);
        }
        match fence.role {
            Role::File(_) => files.push(fence),
            Role::Program => self.cases.push(Case {
                files: std::mem::take(files),
                main: fence,
                others: Vec::new(),
            }),
            _ if !files.is_empty() => {
                self.problem(fence.line - 1, "a program has to come between its files and this");
            }
            _ => match self.cases.last_mut() {
                Some(case) if case.other(&fence.role).is_some() => {
                    self.problem(fence.line - 1, "the program above has such a fence already");
                }
                Some(case) => case.others.push(fence),
                None => self.problem(fence.line - 1, "there is no program above this"),
            },
        }
    }

    fn no_files_left(&mut self, files: &mut Vec<Fence>) {
        for file in std::mem::take(files) {
            self.problem(
                file.line - 1,
                "no program follows that this file stands beside; files come before their program",
            );
        }
    }
}

/// The text inside a fence, and where it is.
fn content<'a>(
    events: &mut impl Iterator<Item = (Event<'a>, Range<usize>)>,
    text: &str,
    block: &Range<usize>,
) -> (String, Range<usize>) {
    let mut content = String::new();
    let mut at: Option<Range<usize>> = None;
    for (event, range) in events {
        match event {
            Event::Text(piece) => {
                content.push_str(&piece);
                at = Some(at.map_or(range.start, |at| at.start)..range.end);
            }
            Event::End(TagEnd::CodeBlock) => break,
            _ => {}
        }
    }
    // An empty fence: the place is the start of its last line.
    let empty = text[block.clone()]
        .find('\n')
        .map_or(block.end, |newline| block.start + newline + 1);
    (content, at.unwrap_or(empty..empty))
}

/// What the words after the three backticks mean.
fn role(info: &str) -> Result<(Role, Flags), String> {
    let mut flags = Flags::default();
    let mut words = Vec::new();
    let mut role = None;
    for word in info.split_whitespace() {
        match word.split_once('=') {
            Some(("file", path)) => role = Some(Role::File(path.to_owned())),
            Some(("run", path)) => role = Some(Role::RunFile(path.to_owned())),
            Some(("project", path)) => role = Some(Role::ProjectFile(path.to_owned())),
            Some(("repeat", number)) => flags.repeat = Some(count(number)?),
            Some(("agent", "files")) => flags.scene.files = true,
            Some(("cancel", word)) => flags.scene.cancel = Some(word.to_owned()),
            Some(("stop", word)) => flags.scene.stop = Some(word.to_owned()),
            Some(("garbled", number)) => flags.scene.garbled = count(number)?,
            Some(("hints", "off")) => flags.hints_off = true,
            Some(("lints", "on")) => flags.lints_on = true,
            Some(("eol", "crlf")) => flags.eol = Some("\r\n"),
            Some(("eol", "cr")) => flags.eol = Some("\r"),
            _ if word == "bom" => flags.bom = true,
            _ if word == "no-newline" => flags.no_newline = true,
            _ => words.push(word),
        }
    }
    let role = match (words.as_slice(), role) {
        (["prose"], None) => Role::Program,
        (["prose" | "toml" | "text"], Some(role @ Role::File(_)))
        | (["text"], Some(role @ (Role::RunFile(_) | Role::ProjectFile(_)))) => role,
        (["toml", "mock"], None) => Role::Mock,
        (["toml", "inputs"], None) => Role::Inputs,
        (["prose", "formatted"], None) => Role::Formatted,
        (["prose", "canonical"], None) => Role::Canonical,
        (["prose", "fixed"], None) => Role::Fixed,
        (["text", "diagnostics"], None) => Role::Diagnostics,
        (["text", "output"], None) => Role::Output,
        (["text", "error"], None) => Role::Error,
        (["text", "events"], None) => Role::Events,
        (["text", "sessions"], None) => Role::Sessions,
        (["text", "prompts"], None) => Role::Prompts,
        (["text", "bindings"], None) => Role::Bindings,
        (["text", "given"], None) => Role::Given,
        (["text", "decodings"], None) => Role::Decodings,
        _ => {
            return Err(format!(
                "unknown kind of fence `{info}`; tests/spec/README.md lists them"
            ));
        }
    };
    Ok((role, flags))
}

fn count(number: &str) -> Result<usize, String> {
    number.parse().map_err(|_| format!("`{number}` is no number"))
}

/// A program with what stands between `‹` and `›` repeated.
fn repeated(text: &str, times: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('‹')
        && let Some((part, after)) = after.split_once('›')
    {
        out.push_str(before);
        out.push_str(&part.repeat(times));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The line of an offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}
