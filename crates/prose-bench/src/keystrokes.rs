//! What a person who types waits for: from the edit sent to the diagnostics received, through the pipes of a real server.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::machine;

/// A document that is never edited, for the request that does nothing.
const STILL: &str = "session \"Wait\"\n";
/// Edits sent in one go while memory is watched.
const BATCH: usize = 20;
/// A moment in which nobody types, before memory is looked at.
const REST: Duration = Duration::from_secs(2);
/// Keystrokes before anything is counted.
const WARM_UP: usize = 30;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Lines of the document, about.
    pub lines: usize,
    /// Keystrokes of each kind.
    pub keystrokes: usize,
    /// Edits after which memory is looked at again; 0 for none.
    pub edits: usize,
}

/// Where something is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A letter more or less in a prompt.
    Prompt,
    /// A new statement, letter by letter.
    Statement,
    /// A letter more or less in the name of an agent that others use.
    Name,
}

impl Place {
    const ALL: [Place; 3] = [Place::Prompt, Place::Statement, Place::Name];

    fn describe(self) -> &'static str {
        match self {
            Place::Prompt => "in a prompt",
            Place::Statement => "a new statement",
            Place::Name => "a name others use",
        }
    }
}

/// Times of one kind, sorted.
#[derive(Debug, Clone)]
pub struct Times {
    /// What was done.
    pub what: &'static str,
    /// How long each took.
    pub all: Vec<Duration>,
    /// CPU time of the server for each, on average.
    pub cpu: Duration,
}

impl Times {
    /// The time that this part of all, from 0 to 1, doesn't exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.all.len().saturating_sub(1);
        let at = (last as f64 * part).ceil() as usize;
        self.all.get(at.min(last)).copied().unwrap_or_default()
    }
}

/// What a document cost.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Lines of the document.
    pub lines: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// From opening it to its diagnostics.
    pub opened: Duration,
    /// Keystrokes of each kind, then all of them, then the request that does nothing.
    pub times: Vec<Times>,
    /// Memory of the server in bytes, each time after a rest: idle, with the document, after the edits.
    pub resident: [u64; 3],
    /// How many edits those were.
    pub edits: usize,
}

/// Opens a long document in a server and types in it.
///
/// # Errors
/// When the server can't be started, ends, or doesn't answer.
pub fn measure(server: &Path, options: Options) -> io::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let text = text(options.lines);
    let mut client = Client::start(server, folder.path())?;
    let uri = |name: &str| format!("file://{}/{name}.prose", folder.path().display());
    let mut session = Session {
        still: uri("still"),
        typed: Document {
            uri: uri("typed"),
            version: 1,
        },
        client: &mut client,
    };
    session.open(&session.still.clone(), STILL)?;
    std::thread::sleep(REST);
    let idle = machine::resident(session.client.id());
    let opened = session.open(&session.typed.uri.clone(), &text)?;
    session.nothing()?;
    std::thread::sleep(REST);
    let full = machine::resident(session.client.id());

    let mut times = Vec::new();
    let (mut all, mut nothing) = (Vec::new(), Vec::new());
    let mut cpu = Duration::ZERO;
    for place in Place::ALL {
        let typed = session.type_at(place, &text, options.keystrokes)?;
        all.extend(&typed.keystrokes);
        nothing.extend(typed.nothing);
        cpu += typed.cpu;
        times.push(of(place.describe(), typed.keystrokes, typed.cpu));
    }
    times.push(of("all keystrokes", all, cpu));
    times.push(of("a request that does nothing", nothing, Duration::ZERO));
    session.edit_often(&text, options.edits)?;
    std::thread::sleep(REST);
    let after = machine::resident(session.client.id());
    Ok(Outcome {
        lines: text.lines().count(),
        bytes: text.len(),
        opened,
        times,
        resident: [idle, full, after],
        edits: options.edits,
    })
}

/// A program of about so many lines.
fn text(lines: usize) -> String {
    let sample = test_programs::repeated(100_000);
    let bytes = sample.len() / sample.lines().count().max(1) * lines;
    let mut text = test_programs::repeated(bytes.max(10_000) + bytes / 8);
    if let Some((at, _)) = text.match_indices('\n').nth(lines.saturating_sub(1)) {
        // Where the text ends doesn't matter, but a statement cut in two would be an error that every answer carries.
        let end = text[..at].rfind("\n\n").map_or(at, |it| it + 1);
        text.truncate(end);
    }
    text
}

fn of(what: &'static str, mut all: Vec<Duration>, cpu: Duration) -> Times {
    all.sort();
    let count = u32::try_from(all.len().max(1)).unwrap_or(u32::MAX);
    Times {
        what,
        all,
        cpu: cpu / count,
    }
}

struct Document {
    uri: String,
    version: i64,
}

struct Session<'a> {
    client: &'a mut Client,
    typed: Document,
    still: String,
}

/// What typing at a place took.
struct Typed {
    keystrokes: Vec<Duration>,
    nothing: Vec<Duration>,
    cpu: Duration,
}

impl Session<'_> {
    fn open(&mut self, uri: &str, text: &str) -> io::Result<Duration> {
        let document = json!({"uri": uri, "languageId": "prose", "version": 1, "text": text});
        let begun = self
            .client
            .notify("textDocument/didOpen", json!({"textDocument": document}))?;
        Ok(self.client.diagnostics(uri, 1)? - begun)
    }

    /// A request about a tiny document: what the way to the server and back takes, and the machine's noise.
    fn nothing(&mut self) -> io::Result<Duration> {
        let at = json!({"line": 0, "character": 2});
        let parameters = json!({"textDocument": {"uri": self.still}, "position": at});
        self.client.request("textDocument/hover", parameters)
    }

    /// Sends an edit within a line.
    fn edit(
        &mut self,
        (line, column): (usize, usize),
        deleted: usize,
        with: &str,
    ) -> io::Result<std::time::Instant> {
        self.typed.version += 1;
        let change = json!({
            "range": {
                "start": {"line": line, "character": column},
                "end": {"line": line, "character": column + deleted},
            },
            "text": with,
        });
        let document = json!({"uri": self.typed.uri, "version": self.typed.version});
        let parameters = json!({"textDocument": document, "contentChanges": [change]});
        self.client.notify("textDocument/didChange", parameters)
    }

    fn diagnosed(&mut self) -> io::Result<std::time::Instant> {
        self.client.diagnostics(&self.typed.uri, self.typed.version)
    }

    fn type_at(&mut self, place: Place, text: &str, count: usize) -> io::Result<Typed> {
        let at = position(place, text);
        let (mut keystrokes, mut nothing) = (Vec::new(), Vec::new());
        let mut cpu = Duration::ZERO;
        let mut column = 0;
        const STATEMENT: &str = "let extra = session \"More of it\" # and";
        for index in 0..WARM_UP + count {
            let before = machine::cpu(self.client.id());
            let begun = match place {
                Place::Statement if column == STATEMENT.len() => {
                    let whole = std::mem::take(&mut column);
                    self.edit((at.0, at.1), whole, "")?
                }
                Place::Statement => {
                    column += 1;
                    self.edit((at.0, at.1 + column - 1), 0, &STATEMENT[column - 1..column])?
                }
                _ if index % 2 == 0 => self.edit(at, 0, "x")?,
                _ => self.edit(at, 1, "")?,
            };
            let took = self.diagnosed()? - begun;
            let spent = machine::cpu(self.client.id()).saturating_sub(before);
            let idle = self.nothing()?;
            if index >= WARM_UP {
                keystrokes.push(took);
                nothing.push(idle);
                cpu += spent;
            }
        }
        if (WARM_UP + count) % 2 == 1 && place != Place::Statement {
            self.edit(at, 1, "")?;
        } else if column > 0 {
            self.edit(at, column, "")?;
        }
        Ok(Typed {
            keystrokes,
            nothing,
            cpu,
        })
    }

    /// Many edits in prompts all over the document, as in a long day. The document stays a program without errors and of
    /// nearly the same length: what the server remembers of texts that are gone is what can grow.
    fn edit_often(&mut self, text: &str, count: usize) -> io::Result<()> {
        let prompts: Vec<(usize, usize)> = text
            .lines()
            .enumerate()
            .filter_map(|(line, it)| {
                let at = it.find("prompt: \"")? + "prompt: \"".len();
                // In front of two more quotes it would end the text.
                (!it[at..].starts_with('"')).then_some((line, at))
            })
            .collect();
        let mut written = vec![0; prompts.len()];
        for index in 0..count {
            let number = index * 7919 % prompts.len().max(1);
            let Some(at) = prompts.get(number) else {
                return Ok(());
            };
            // Each text is another one than ever before.
            let word = format!("{index} ");
            self.edit(*at, written[number], &word)?;
            written[number] = word.len();
            if index % BATCH == BATCH - 1 || index + 1 == count {
                self.diagnosed()?;
                self.nothing()?;
            }
        }
        Ok(())
    }
}

/// Line and column of a place in the middle of a text.
fn position(place: Place, text: &str) -> (usize, usize) {
    let middle = text[..text.len() / 2].rfind("\n\n").unwrap_or(0);
    let find = |what: &str, behind: usize| {
        text[middle..]
            .find(what)
            .map_or(middle, |at| middle + at + behind)
    };
    let at = match place {
        Place::Prompt => find("prompt: \"", 9),
        Place::Statement => find("\n\nagent ", 1),
        Place::Name => {
            let name = find("\nagent ", 7);
            name + text[name..].find(':').unwrap_or(0)
        }
    };
    let line = text[..at].matches('\n').count();
    (line, at - text[..at].rfind('\n').map_or(0, |it| it + 1))
}
