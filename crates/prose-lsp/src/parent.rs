//! The editor's process: when it is gone, the server has no reason to live.

use std::time::Duration;

use tokio::sync::watch;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// Ends when the process has ended whose id `parent` comes to hold. Never ends if there was no such process to begin
/// with: an editor may start the server in a container, where its own id means nothing; the end of stdin is the
/// signal there.
#[cfg(unix)]
pub(crate) async fn gone(mut parent: watch::Receiver<Option<u32>>) {
    let known = parent.wait_for(Option::is_some).await.ok().and_then(|pid| *pid);
    let Some(pid) = known else {
        return std::future::pending().await;
    };
    if !alive(pid) {
        tracing::info!(pid, "the editor's process can't be seen from here");
        return std::future::pending().await;
    }
    while alive(pid) {
        tokio::time::sleep(INTERVAL).await;
    }
    tracing::warn!(pid, "the editor's process is gone");
}

/// Elsewhere the end of stdin is the only signal.
#[cfg(not(unix))]
pub(crate) async fn gone(_parent: watch::Receiver<Option<u32>>) {
    std::future::pending().await
}

#[cfg(unix)]
fn alive(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // A process of another user can't be signalled but exists.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}
