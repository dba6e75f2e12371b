//! The tools that a session is given to hand over what it made: an MCP server that belongs to the run.
//!
//! The server lives in the run's process, one [`Broker`] for each session. An agent can only start programs, so it is told
//! to start `prose mcp` ([`proxy`]), which passes bytes between the agent and the broker's socket and knows nothing else.
//! The socket lies in a folder that only this user can enter, and whoever connects has to show the session's token, which
//! reaches the program by its environment.
//!
//! What arrives is kept aside and becomes the session's result when the session is over ([`Broker::finish`]). From then on
//! nobody gets in, so that what an agent of an older lease still sends is never taken for the result.
//!
//! Architecture invariant: a value that was handed over counts for more than a file that the agent wrote, and that for
//! more than what it said.

mod calls;
mod proxy;
mod shelf;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prose_model::{ErrorKind, Failure, MemoryMode, Usage};
use serde_json::{Value as Json, json};

use crate::{Secret, SessionSpawn, failure};
use calls::{Calls, Purpose};
use shelf::Shelf;
use socket::Socket;

pub use proxy::{ProxyError, proxy};

/// The name by which agents know the server.
pub const SERVER: &str = "prose";

/// The variable with the socket's path.
pub const SOCKET_VARIABLE: &str = "PROSE_MCP_SOCKET";
/// The variable with the session's token.
pub const TOKEN_VARIABLE: &str = "PROSE_MCP_TOKEN";
/// The variable with the path of a file that the token is in, for agents that put a server's variables among arguments.
pub const TOKEN_FILE_VARIABLE: &str = "PROSE_MCP_TOKEN_FILE";

/// Most bytes of a value in one call; longer ones come in pieces.
pub const LONGEST_PIECE: usize = 4 * 1024 * 1024;
/// Most bytes of a value.
pub const LONGEST_VALUE: u64 = 256 * 1024 * 1024;

/// The program that agents are told to start, unless there is none that can be: `prose` itself, or the one that lies beside
/// this program. None also where there are no local sockets (Windows).
pub fn program() -> Option<PathBuf> {
    if !cfg!(unix) {
        return None;
    }
    let here = std::env::current_exe().ok()?;
    beside(&here)
}

fn beside(here: &Path) -> Option<PathBuf> {
    let prose = here.with_file_name(format!("prose{}", std::env::consts::EXE_SUFFIX));
    // A program that was replaced while it runs has a path that leads nowhere.
    crate::child::find_program(&prose, None)
}

/// How an agent starts the server.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its name.
    pub name: &'static str,
    /// The program.
    pub command: PathBuf,
    /// Its arguments; none is secret.
    pub args: Vec<String>,
    /// The variables that it has to find.
    pub variables: Vec<(&'static str, Secret)>,
}

/// What was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handed {
    /// The session's result, which lies in the staging file of its name.
    pub binding: bool,
    /// The agent's memory, likewise.
    pub memory: bool,
    /// The record of the session, likewise.
    pub segment: bool,
}

/// The run's side of a session's tools. When it is dropped, nobody can reach it any more, and what was handed over and not
/// taken stays where it counts for nothing.
pub struct Broker {
    socket: Socket,
    calls: Arc<Calls>,
    program: PathBuf,
}

impl Broker {
    /// A broker for one session. `program` is `prose`, as [`program`] finds it. To be called on a tokio runtime.
    ///
    /// # Errors
    /// There can be no socket: nowhere to put it, or no such thing on this system.
    pub fn for_session(session: &SessionSpawn, program: PathBuf) -> io::Result<Broker> {
        let request = &session.request;
        let remembers = request
            .memory
            .as_ref()
            .is_some_and(|memory| memory.mode != MemoryMode::Read);
        let purpose = Purpose::Session {
            name: request.binding.binding.name.to_string(),
            remembers,
            files: session.prompt.files.clone(),
            sink: session.sink.clone(),
        };
        Broker::start(purpose, Shelf::new(session.staging.clone()), program)
    }

    /// A broker for one question to a judge, whose only tool takes an answer of this form.
    ///
    /// # Errors
    /// As for [`Broker::for_session`].
    pub fn for_judge(schema: Json, program: PathBuf) -> io::Result<Broker> {
        // It has nothing to put down.
        let shelf = Shelf::new(PathBuf::new());
        Broker::start(Purpose::Judge { schema }, shelf, program)
    }

    fn start(purpose: Purpose, shelf: Shelf, program: PathBuf) -> io::Result<Broker> {
        let calls = Arc::new(Calls::new(purpose, shelf));
        let socket = Socket::open(calls.clone())?;
        Ok(Broker {
            socket,
            calls,
            program,
        })
    }

    /// How the agent gets to it.
    pub fn server(&self) -> McpServer {
        let socket = self.socket.place().display().to_string();
        McpServer {
            name: SERVER,
            command: self.program.clone(),
            args: vec!["mcp".to_owned()],
            variables: vec![
                (SOCKET_VARIABLE, Secret::new(socket)),
                (TOKEN_VARIABLE, self.socket.token().clone()),
            ],
        }
    }

    /// The same with the token in a file beside the socket, so that none of the variables is secret. It is gone with the
    /// broker.
    ///
    /// # Errors
    /// It can't be written.
    pub fn server_by_file(&self) -> io::Result<McpServer> {
        let token = self.socket.put_beside("token", self.socket.token().expose())?;
        let mut server = self.server();
        server.variables.retain(|(name, _)| *name != TOKEN_VARIABLE);
        server
            .variables
            .push((TOKEN_FILE_VARIABLE, Secret::new(token.display().to_string())));
        Ok(server)
    }

    /// The same in a file of the form that many agents read (`{"mcpServers": …}`), beside the socket, so that the token is in
    /// nobody's arguments. It is gone with the broker.
    ///
    /// # Errors
    /// It can't be written.
    pub fn config_file(&self) -> io::Result<PathBuf> {
        let server = self.server();
        let variables: serde_json::Map<String, Json> = server
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.expose().into()))
            .collect();
        let text = json!({"mcpServers": {SERVER: {
            "type": "stdio",
            "command": server.command,
            "args": server.args,
            "env": variables,
        }}});
        self.socket.put_beside("mcp.json", &text.to_string())
    }

    /// Ends it: nothing more is taken, and what was handed over is put where the prompt told the agent to write, in place of
    /// what it may have written there itself.
    ///
    /// # Errors
    /// A file can't be put in its place.
    pub async fn finish(self) -> io::Result<Handed> {
        drop(self.socket);
        self.calls.finish().await
    }

    /// Ends it, and gives the answer of a judge, if there was one.
    pub async fn answer(self) -> Option<Json> {
        drop(self.socket);
        self.calls.answer().await
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Broker({})", self.socket.place().display())
    }
}

/// Keeps what was handed over to the broker of a session whose agent has ended after using so much.
pub(crate) async fn keep(broker: Option<Broker>, usage: Usage) -> Result<(), Failure> {
    let Some(broker) = broker else { return Ok(()) };
    match broker.finish().await {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure {
            usage,
            ..failure(
                ErrorKind::Backend,
                format!("what the session handed over can't be kept: {error}"),
            )
        }),
    }
}

/// Whether there is such a tool.
pub(crate) use calls::is_tool;

/// The names of all tools.
pub(crate) use calls::TOOLS;

/// Whether an agent that names tools of servers as Claude Code does means one of ours.
pub fn is_own_tool(name: &str) -> bool {
    name.strip_prefix("mcp__")
        .and_then(|rest| rest.strip_prefix(SERVER))
        .and_then(|rest| rest.strip_prefix("__"))
        .is_some_and(is_tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tools_of_the_server_are_its_own() {
        assert!(is_own_tool("mcp__prose__write_binding"));
        assert!(is_own_tool("mcp__prose__ask_user"));
        for other in [
            "write_binding",
            "mcp__prose__",
            "mcp__prose__Bash",
            "mcp__prose2__write_binding",
            "mcp__prose__write_binding2",
        ] {
            assert!(!is_own_tool(other), "{other}");
        }
    }

    #[test]
    fn the_program_lies_beside_this_one_or_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("prose-lsp");
        assert_eq!(beside(&here), None);
        let prose = folder.path().join("prose");
        std::fs::write(&prose, "").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // It has to be a program.
            assert_eq!(beside(&here), None);
            std::fs::set_permissions(&prose, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(beside(&here), Some(prose.clone()));
            assert_eq!(beside(&prose), Some(prose));
        }
    }
}
