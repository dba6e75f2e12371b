//! The socket of a session: where it lies, who may connect, and what is read from it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::ServiceExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use super::calls::{Calls, Server};
use crate::Secret;

/// What the folders' names begin with.
const FOLDER: &str = "prose-mcp-";
/// The socket's name in its folder.
const NAME: &str = "s";
/// The longest path of a socket that every system takes, in bytes.
const LONGEST_PATH: usize = 100;
/// How long whoever connects has to show the token.
const GREETING_TIME: Duration = Duration::from_secs(20);
/// Most bytes of a greeting, and of the answer to it.
pub(super) const LONGEST_GREETING: u64 = 256;
/// The answer to the right token.
pub(super) const ACCEPTED: &str = "ok\n";
/// The answer to any other.
const REFUSED: &str = "refused\n";
/// Most connections of a session at a time.
const CONNECTIONS: usize = 8;
/// Most bytes of a message: a piece of a value, each byte of which may be written as six.
const LONGEST_LINE: usize = 32 * 1024 * 1024;

/// What whoever connects says first.
pub(super) fn greeting(token: &str) -> String {
    format!("prose-mcp 1 {token}\n")
}

/// A socket that is listened at. Dropped, it is gone, and so are those who were connected.
pub(super) struct Socket {
    folder: Folder,
    token: Secret,
    listening: AbortHandle,
}

impl Socket {
    /// Opens one for the calls of a session.
    pub(super) fn open(calls: Arc<Calls>) -> io::Result<Socket> {
        let (folder, listener) = listen()?;
        let token = Secret::new(format!(
            "{}{}",
            uuid::Uuid::new_v4().simple(),
            uuid::Uuid::new_v4().simple()
        ));
        let listening = tokio::spawn(serve(listener, greeting(token.expose()), calls)).abort_handle();
        Ok(Socket {
            folder,
            token,
            listening,
        })
    }

    /// Where it is.
    pub(super) fn place(&self) -> &Path {
        &self.folder.socket
    }

    /// What has to be shown.
    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    /// Writes a file beside it, which is gone with it.
    pub(super) fn put_beside(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.folder.path.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The connections are tasks of that task's set, and end with it.
        self.listening.abort();
    }
}

/// A folder that only this user can enter.
struct Folder {
    path: PathBuf,
    socket: PathBuf,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is put away by a later process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Listens at a new socket, in the first place that takes one.
fn listen() -> io::Result<(Folder, UnixListener)> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime
        .into_iter()
        .chain([std::env::temp_dir(), PathBuf::from("/tmp")]);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no place for a socket");
    for place in places.filter(|place| place.is_absolute()) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| put_away(&place));
        match listen_in(&place) {
            Ok(listening) => return Ok(listening),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen_in(place: &Path) -> io::Result<(Folder, UnixListener)> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let path = place.join(format!("{FOLDER}{}", &name[..12]));
    let socket = path.join(NAME);
    if socket.as_os_str().as_bytes().len() > LONGEST_PATH {
        return Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            format!("`{}` is too long for the path of a socket", socket.display()),
        ));
    }
    DirBuilder::new().mode(0o700).create(&path)?;
    let folder = Folder { path, socket };
    let listener = UnixListener::bind(&folder.socket)?;
    Ok((folder, listener))
}

/// Removes the folders of processes that had no time to do so: sockets that nobody listens at.
fn put_away(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(FOLDER.as_bytes()) {
            continue;
        }
        let folder = entry.path();
        let left = std::os::unix::net::UnixStream::connect(folder.join(NAME));
        if left.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Lets in whoever has the token, for as long as the task lives.
async fn serve(listener: UnixListener, expected: String, calls: Arc<Calls>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS => {
                    connections.spawn(connection(stream, expected.clone(), calls.clone()));
                }
                // One too many is closed without a word.
                Ok(_) => {}
                // Out of descriptors, as a rule: some will be closed.
                Err(error) => {
                    tracing::warn!("a session's socket: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn connection(stream: UnixStream, expected: String, calls: Arc<Calls>) {
    let own = rustix::process::geteuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
        return;
    }
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut said = Vec::new();
    let greeted = async {
        let mut first = (&mut read).take(LONGEST_GREETING);
        first.read_until(b'\n', &mut said).await
    };
    if !matches!(tokio::time::timeout(GREETING_TIME, greeted).await, Ok(Ok(_))) {
        return;
    }
    if !same(&said, expected.as_bytes()) {
        tracing::warn!("someone without the session's token was refused");
        let _ = write.write_all(REFUSED.as_bytes()).await;
        return;
    }
    if write.write_all(ACCEPTED.as_bytes()).await.is_err() {
        return;
    }
    let transport = (Bounded::new(read), write);
    match Server(calls).serve(transport).await {
        Ok(running) => {
            let _ = running.waiting().await;
        }
        Err(error) => tracing::debug!("an agent did not begin to speak: {error}"),
    }
}

/// Compares without telling by its time how much is right.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Reads lines that are not too long; the first that is ends it.
struct Bounded<R> {
    inner: R,
    /// Bytes of the line so far.
    line: usize,
}

impl<R> Bounded<R> {
    fn new(inner: R) -> Bounded<R> {
        Bounded { inner, line: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => new.len() - end - 1,
            None => self.line + new.len(),
        };
        if self.line > LONGEST_LINE {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a message is too long",
            )));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_without_an_end_is_not_read_for_ever() {
        let mut bounded = Bounded::new(tokio::io::repeat(b'x'));
        let mut read = 0;
        let mut buffer = vec![0; 1024 * 1024];
        let error = loop {
            match bounded.read(&mut buffer).await {
                Ok(more) => read += more,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(read, LONGEST_LINE);
        // Many lines are as long as they like together.
        let line = [vec![b'x'; 1000], vec![b'\n']].concat();
        let many = line.repeat(LONGEST_LINE / 1000);
        let mut all = Vec::new();
        Bounded::new(many.as_slice()).read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), many.len());
    }

    #[test]
    fn what_nobody_listens_at_is_put_away_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (dead, live, young, other) = (
            folder("prose-mcp-1"),
            folder("prose-mcp-2"),
            folder("prose-mcp-3"),
            folder("other"),
        );
        drop(std::os::unix::net::UnixListener::bind(dead.join(NAME)).unwrap());
        let listener = std::os::unix::net::UnixListener::bind(live.join(NAME)).unwrap();
        drop(std::os::unix::net::UnixListener::bind(other.join(NAME)).unwrap());
        put_away(place.path());
        assert!(!dead.exists());
        assert!(live.exists() && young.exists() && other.exists());
        drop(listener);
    }

    #[test]
    fn a_path_that_is_too_long_is_none() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a".repeat(80));
        fs::create_dir(&deep).unwrap();
        let error = listen_in(&deep).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidFilename);
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 0);
    }
}
