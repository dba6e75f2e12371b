//! The editor's process: when it is gone, the server has no reason to live.

use std::sync::Arc;

use tokio::sync::watch;

/// How often the process is looked at.
#[cfg(unix)]
const INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// The process whose id the client gave at `initialize`, held on to from that moment on: it may end before anything
/// here gets to run again, and its id may then belong to another.
#[derive(Debug)]
pub(crate) struct Editor {
    pid: u32,
    /// Becomes readable when the process ends. None where the system gives no such handle.
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

impl Editor {
    /// The process with the id `pid`. None if there is none: an editor may start the server in a container, where its
    /// own id means nothing; the end of stdin is the signal there.
    pub(crate) fn find(pid: u32) -> Option<Arc<Editor>> {
        #[cfg(unix)]
        if !alive(pid) {
            tracing::info!(pid, "the editor's process can't be seen from here");
            return None;
        }
        Some(Arc::new(Editor {
            pid,
            #[cfg(target_os = "linux")]
            handle: handle(pid),
        }))
    }

    async fn ended(&self) {
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
        #[cfg(unix)]
        while self.alive() {
            tokio::time::sleep(INTERVAL).await;
        }
    }

    #[cfg(unix)]
    fn alive(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut asked = [PollFd::new(handle, PollFlags::IN)];
            return poll(&mut asked, Some(&Timespec::default())) != Ok(1);
        }
        alive(self.pid)
    }
}

/// Ends when the editor that `known` comes to hold has ended; never if it comes to hold none.
pub(crate) async fn gone(mut known: watch::Receiver<Option<Arc<Editor>>>) {
    let editor = known
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|editor| editor.clone());
    let Some(editor) = editor else {
        return std::future::pending().await;
    };
    editor.ended().await;
    tracing::warn!(pid = editor.pid, "the editor's process is gone");
}

#[cfg(unix)]
fn id(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(target_os = "linux")]
fn handle(pid: u32) -> Option<std::os::fd::OwnedFd> {
    rustix::process::pidfd_open(id(pid)?, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(unix)]
fn alive(pid: u32) -> bool {
    // A process of another user can't be signalled but exists.
    id(pid).is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
