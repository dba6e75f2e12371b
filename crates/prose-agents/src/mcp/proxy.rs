//! `prose mcp`: what an agent starts. It shows the token to the socket that it was told, and passes bytes on.

use std::io;

#[cfg(unix)]
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

#[cfg(unix)]
use super::socket::{ACCEPTED, LONGEST_GREETING, greeting};
use super::{SOCKET_VARIABLE, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE};

/// Why an agent is not connected to its session.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Nobody has said which session.
    #[error(
        "this is started by an agent, which is told of the session by {SOCKET_VARIABLE} and {TOKEN_VARIABLE} (or {TOKEN_FILE_VARIABLE}); there is nothing to be done with it by hand"
    )]
    NoSession,
    /// Nobody listens.
    #[error("the session is over: nobody listens at its socket any more ({0})")]
    Gone(io::Error),
    /// The token is not that of the session.
    #[error("the session refuses the token: it belongs to another session, or to one that is over")]
    Refused,
    /// It was connected, and then the run ended the session.
    #[error("the session is over: the run has closed the connection")]
    Ended,
    /// The connection broke.
    #[error("the connection to the run broke: {0}")]
    Broken(#[from] io::Error),
    /// There are no local sockets.
    #[error("agents can't be connected to their session on this system; they write files instead")]
    Unsupported,
}

/// Connects the agent at standard input and output with its session, until either has enough.
///
/// # Errors
/// Why there is no connection, or how it ended other than by the agent.
#[cfg(unix)]
pub async fn proxy() -> Result<(), ProxyError> {
    let socket = std::env::var_os(SOCKET_VARIABLE).ok_or(ProxyError::NoSession)?;
    let token = token()?;
    let stream = tokio::net::UnixStream::connect(&socket)
        .await
        .map_err(ProxyError::Gone)?;
    let (read, mut write) = stream.into_split();
    let mut read = tokio::io::BufReader::new(read);
    write.write_all(greeting(&token).as_bytes()).await?;
    let mut answer = String::new();
    (&mut read).take(LONGEST_GREETING).read_line(&mut answer).await?;
    if answer != ACCEPTED {
        return Err(ProxyError::Refused);
    }
    let to_run = async {
        tokio::io::copy(&mut tokio::io::stdin(), &mut write).await?;
        // The run answers what it was asked before, and closes.
        write.shutdown().await
    };
    let mut stdout = tokio::io::stdout();
    let to_agent = async {
        tokio::io::copy_buf(&mut read, &mut stdout).await?;
        stdout.flush().await
    };
    tokio::pin!(to_agent);
    tokio::select! {
        sent = to_run => sent?,
        ended = &mut to_agent => {
            ended?;
            return Err(ProxyError::Ended);
        }
    }
    Ok(to_agent.await?)
}

/// The session's token.
#[cfg(unix)]
fn token() -> Result<String, ProxyError> {
    if let Ok(token) = std::env::var(TOKEN_VARIABLE) {
        return Ok(token);
    }
    let path = std::env::var_os(TOKEN_FILE_VARIABLE).ok_or(ProxyError::NoSession)?;
    // It is there for as long as the session.
    std::fs::read_to_string(path).map_err(ProxyError::Gone)
}

/// Says that there is nothing like it here.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub async fn proxy() -> Result<(), ProxyError> {
    Err(ProxyError::Unsupported)
}
