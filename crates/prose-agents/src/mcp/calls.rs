//! The tools: what each takes, and what it does.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, Content, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerInfo, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value as Json, json};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::Mutex;

use super::shelf::{Place, Shelf};
use super::{Handed, LONGEST_PIECE};
use crate::prompt::PromptFile;
use crate::{SessionSink, UserQuestion};

const WRITE_BINDING: &str = "write_binding";
const READ_BINDING: &str = "read_binding";
const UPDATE_MEMORY: &str = "update_memory";
const WRITE_SEGMENT: &str = "write_segment";
const ASK_USER: &str = "ask_user";
const VERDICT: &str = "verdict";

/// Bytes that are read at once when nobody says how many.
const USUAL_RANGE: u64 = 32 * 1024;
/// Most bytes that are read at once: agents cut longer results off.
const LONGEST_RANGE: u64 = 64 * 1024;
/// Longest question to a person, in characters.
const LONGEST_QUESTION: usize = 2_000;
/// Most answers that a person is offered.
const MOST_OPTIONS: usize = 20;

/// The names of all tools.
pub(crate) const TOOLS: &[&str] = &[
    WRITE_BINDING,
    READ_BINDING,
    UPDATE_MEMORY,
    WRITE_SEGMENT,
    ASK_USER,
    VERDICT,
];

/// Whether there is such a tool.
pub(crate) fn is_tool(name: &str) -> bool {
    TOOLS.contains(&name)
}

/// Whom the tools are for.
pub(super) enum Purpose {
    Session {
        /// The name of what it binds.
        name: String,
        /// Whether it leaves a memory.
        remembers: bool,
        /// What it may read.
        files: Vec<PromptFile>,
        sink: Arc<dyn SessionSink>,
    },
    Judge {
        /// The form of the answer.
        schema: Json,
    },
}

/// The calls of one session.
pub(super) struct Calls {
    purpose: Purpose,
    state: Mutex<State>,
}

struct State {
    /// Nothing is taken any more.
    over: bool,
    shelf: Shelf,
    answer: Option<Json>,
}

impl Calls {
    pub(super) fn new(purpose: Purpose, shelf: Shelf) -> Calls {
        Calls {
            purpose,
            state: Mutex::new(State {
                over: false,
                shelf,
                answer: None,
            }),
        }
    }

    /// Closes it, and puts what was handed over in its place.
    pub(super) async fn finish(&self) -> std::io::Result<Handed> {
        let mut state = self.state.lock().await;
        state.over = true;
        state.shelf.take().await
    }

    /// Closes it, and gives the judge's answer.
    pub(super) async fn answer(&self) -> Option<Json> {
        let mut state = self.state.lock().await;
        state.over = true;
        state.answer.take()
    }

    /// The tools that this session has.
    fn tools(&self) -> Vec<Tool> {
        let (remembers, reads) = match &self.purpose {
            Purpose::Judge { schema } => {
                let schema = schema.as_object().cloned().unwrap_or_default();
                return vec![
                    Tool::new(
                        VERDICT,
                        "Gives your decision. The last one counts.",
                        Arc::new(schema),
                    )
                    .annotate(harmless(false)),
                ];
            }
            Purpose::Session { remembers, files, .. } => (*remembers, !files.is_empty()),
        };
        let text = |what: &str| json!({"type": "string", "description": what});
        let mut tools = vec![tool(
            WRITE_BINDING,
            "Hands over your output, as it is and whole. The last call counts. What is longer than 4 MiB is handed over in pieces, all but the first with `append`.",
            json!({
                "value": text("The output, without any head"),
                "append": {"type": "boolean", "description": "Add it to what was handed over before"},
            }),
            &["value"],
        )];
        if reads {
            tools.push(tool(
                READ_BINDING,
                "Reads a value that you were given by reference, or a part of it, and says how long it is.",
                json!({
                    "name": text("The name in your context"),
                    "offset": {"type": "integer", "minimum": 0, "description": "The first byte; 0 if it is not given"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": LONGEST_RANGE,
                        "description": "Most bytes to read; 32768 if it is not given"},
                }),
                &["name"],
            ));
        }
        if remembers {
            tools.push(tool(
                UPDATE_MEMORY,
                "Hands over your memory, written anew and whole. The last call counts.",
                json!({"memory": text("All that you want to remember")}),
                &["memory"],
            ));
            tools.push(tool(
                WRITE_SEGMENT,
                "Hands over your record of this session. The last call counts.",
                json!({"segment": text("What you looked at, found and decided, and what should come next")}),
                &["segment"],
            ));
        }
        tools.push(tool(
            ASK_USER,
            "Asks the person who runs the program something that you can't decide or find out. Says so when nobody is there: then decide yourself.",
            json!({
                "question": text("The question"),
                "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from"},
            }),
            &["question"],
        ));
        tools
    }

    /// Does what is asked; the error is for the agent to read.
    async fn call(&self, name: &str, input: &Map<String, Json>) -> Result<Vec<String>, String> {
        match (&self.purpose, name) {
            (Purpose::Judge { .. }, VERDICT) => {
                let mut state = self.state.lock().await;
                if state.over {
                    return Err(over());
                }
                state.answer = Some(Json::Object(input.clone()));
                Ok(vec!["Decided.".to_owned()])
            }
            (Purpose::Session { name, .. }, WRITE_BINDING) => {
                let value = text(input, "value")?;
                let append = input.get("append").and_then(Json::as_bool).unwrap_or(false);
                let len = self.put(Place::Binding, &head(name), &value, append).await?;
                Ok(vec![format!("Binding written: {name} ({len} bytes)")])
            }
            (Purpose::Session { remembers: true, .. }, UPDATE_MEMORY) => {
                let len = self
                    .put(Place::Memory, "", &text(input, "memory")?, false)
                    .await?;
                Ok(vec![format!("Memory written ({len} bytes)")])
            }
            (Purpose::Session { remembers: true, .. }, WRITE_SEGMENT) => {
                let len = self
                    .put(Place::Segment, "", &text(input, "segment")?, false)
                    .await?;
                Ok(vec![format!("Record written ({len} bytes)")])
            }
            (Purpose::Session { files, sink, .. }, READ_BINDING) => {
                let label = text(input, "name")?;
                let file = files.iter().find(|file| file.label == *label).ok_or_else(|| {
                    let known: Vec<&str> = files.iter().map(|file| file.label.as_str()).collect();
                    match known.is_empty() {
                        true => "nothing was given to you by reference".to_owned(),
                        false => format!(
                            "there is no such name in your context; there is {}",
                            known.join(", ")
                        ),
                    }
                })?;
                let number = |key: &str, other| match input.get(key) {
                    None | Some(Json::Null) => Ok(other),
                    Some(number) => number
                        .as_u64()
                        .ok_or_else(|| format!("`{key}` is a whole number that is not negative")),
                };
                let offset = number("offset", 0)?;
                let limit = number("limit", USUAL_RANGE)?.clamp(8, LONGEST_RANGE);
                let part = range(&file.path, offset, limit)
                    .await
                    .map_err(|error| format!("it can't be read: {error}"))?;
                let said = part.said();
                Ok(vec![sink.redactor().redact(&part.text).into_owned(), said])
            }
            (Purpose::Session { sink, .. }, ASK_USER) => {
                if self.state.lock().await.over {
                    return Err(over());
                }
                let question = question(input)?;
                match sink.ask_user(question).await {
                    Some(answer) => Ok(vec![sink.redactor().redact(&answer).into_owned()]),
                    None => Err("nobody is there to answer: decide yourself, and say in your output what you took for granted".to_owned()),
                }
            }
            _ => {
                let known: Vec<_> = self.tools().into_iter().map(|tool| tool.name).collect();
                Err(format!("there is no such tool; there is {}", known.join(", ")))
            }
        }
    }

    async fn put(&self, place: Place, head: &str, value: &str, append: bool) -> Result<u64, String> {
        if value.trim().is_empty() && !append {
            return Err("it is empty: hand over what you made".to_owned());
        }
        if value.len() > LONGEST_PIECE {
            return Err(format!(
                "{} bytes are too many for one call ({LONGEST_PIECE} at most); nothing was written",
                value.len()
            ));
        }
        let mut state = self.state.lock().await;
        if state.over {
            return Err(over());
        }
        let shelf = &mut state.shelf;
        let put = match append {
            true => shelf.add(place, head, value).await,
            false => shelf.put(place, head, value).await,
        };
        put.map_err(|error| error.to_string())
    }
}

fn over() -> String {
    "the session is over: nothing is taken any more".to_owned()
}

fn tool(name: &'static str, what: &'static str, properties: Json, required: &[&str]) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema = match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    };
    let only_reads = matches!(name, READ_BINDING | ASK_USER);
    Tool::new(name, what, Arc::new(schema)).annotate(harmless(only_reads))
}

/// What a tool does to its surroundings, for agents that ask less about tools that do no harm.
fn harmless(only_reads: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(only_reads)
        .destructive(false)
        .open_world(false)
}

/// A text that has to be there. Some models give the value itself where its text is wanted.
fn text<'a>(input: &'a Map<String, Json>, key: &str) -> Result<std::borrow::Cow<'a, str>, String> {
    match input.get(key) {
        Some(Json::String(text)) => Ok(text.into()),
        None | Some(Json::Null) => Err(format!("`{key}` is missing")),
        Some(other) => Ok(serde_json::to_string_pretty(other).unwrap_or_default().into()),
    }
}

/// The head of a binding file, so that a value that looks like one itself is not taken for it.
fn head(name: &str) -> String {
    format!("# {name}\n\nkind: let\n\n---\n\n")
}

fn question(input: &Map<String, Json>) -> Result<UserQuestion, String> {
    let text = text(input, "question")?.trim().to_owned();
    if text.is_empty() {
        return Err("`question` is empty".to_owned());
    }
    let options = match input.get("options") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(options)) => options
            .iter()
            .map(|option| option.as_str().map(ToOwned::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or("`options` is a list of texts")?,
        Some(_) => return Err("`options` is a list of texts".to_owned()),
    };
    let long = text.chars().count() + options.iter().map(|option| option.chars().count()).sum::<usize>();
    if long > LONGEST_QUESTION || options.len() > MOST_OPTIONS {
        return Err(format!(
            "it is too long to ask a person ({LONGEST_QUESTION} characters and {MOST_OPTIONS} options at most)"
        ));
    }
    Ok(UserQuestion { text, options })
}

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    text: String,
    /// Its first byte, the one after its last, and how many there are.
    from: u64,
    to: u64,
    size: u64,
}

impl Part {
    fn said(&self) -> String {
        let Part { from, to, size, .. } = self;
        match to < size {
            true => format!("[bytes {from} to {to} of {size}; it goes on at offset {to}]"),
            false => format!("[bytes {from} to {to} of {size}; this is its end]"),
        }
    }
}

/// Reads at most `limit` bytes from `offset` on. A character is never cut: one that begins before `offset` is left out, and
/// so is one that ends behind the limit.
async fn range(path: &PathBuf, offset: u64, limit: u64) -> std::io::Result<Part> {
    let mut file = File::open(path).await?;
    let size = file.metadata().await?.len();
    let start = offset.min(size);
    file.seek(std::io::SeekFrom::Start(start)).await?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).await?;
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let skip = match start {
        0 => 0,
        _ => bytes.iter().take(3).take_while(|byte| continues(byte)).count(),
    };
    let mut end = bytes.len();
    if start + (end as u64) < size {
        // The beginning of the last character, if it is not whole.
        let last = bytes.iter().rposition(|byte| !continues(byte)).unwrap_or(0);
        let cut = std::str::from_utf8(&bytes[last..]).is_err_and(|error| error.error_len().is_none());
        if cut && last > skip {
            end = last;
        }
    }
    Ok(Part {
        text: String::from_utf8_lossy(&bytes[skip..end]).into_owned(),
        from: start + skip as u64,
        to: start + end as u64,
        size,
    })
}

/// What an agent speaks to.
pub(super) struct Server(pub(super) Arc<Calls>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        ServerInfo::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(super::SERVER, env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let input = request.arguments.unwrap_or_default();
        let called = tokio::select! {
            called = self.0.call(&request.name, &input) => called,
            // A person must not be asked for somebody who has gone.
            () = context.ct.cancelled() => Err("the call was given up".to_owned()),
        };
        Ok(match called {
            Ok(texts) => CallToolResult::success(texts.into_iter().map(Content::text).collect()),
            Err(why) => CallToolResult::error(vec![Content::text(why)]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ranges_never_cut_a_character_and_miss_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let whole = "aé€😀".repeat(50);
        std::fs::write(&path, &whole).unwrap();
        for limit in 4..20 {
            let (mut all, mut at) = (String::new(), 0);
            loop {
                let part = range(&path, at, limit).await.unwrap();
                assert_eq!(part.from, at);
                assert!(!part.text.contains('\u{fffd}'), "{part:?}");
                all.push_str(&part.text);
                at = part.to;
                if part.to == part.size {
                    break;
                }
                assert!(!part.text.is_empty(), "{part:?}");
            }
            assert_eq!(all, whole, "{limit}");
        }
        let inside = range(&path, 2, 8).await.unwrap();
        assert_eq!((inside.text.as_str(), inside.from), ("€😀", 3));
        let behind = range(&path, 10_000, 8).await.unwrap();
        assert_eq!((behind.text.as_str(), behind.from, behind.to), ("", 500, 500));
        assert!(behind.said().contains("of 500; this is its end"));
        // What is no text is read all the same, and to its end.
        std::fs::write(&path, [0x80; 100]).unwrap();
        let (mut at, mut turns) = (0, 0);
        while at < 100 {
            let part = range(&path, at, 10).await.unwrap();
            assert!(part.to > at, "{part:?}");
            (at, turns) = (part.to, turns + 1);
        }
        assert_eq!(turns, 10);
    }
}
