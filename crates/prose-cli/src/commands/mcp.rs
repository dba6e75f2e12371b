//! `prose mcp`: connects an agent with the tools of its session.

use super::{Exit, fail};

/// Passes on what the agent and its session say, until either has enough.
pub fn mcp() -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("can't start: {error}")),
    };
    let ended = runtime.block_on(prose_runtime::backends::mcp::proxy());
    // A thread that still reads standard input can't be stopped and must not hold the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Exit::Ok,
        Err(error) => fail(&error.to_string()),
    }
}
