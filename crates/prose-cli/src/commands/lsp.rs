//! `prose lsp --stdio` and `prose-lsp --stdio`.

use super::{Exit, fail};
use crate::args::LspArgs;
use crate::memory;

/// Serves until the client is done with us.
pub fn lsp(_args: &LspArgs) -> Exit {
    memory::set_up();
    let config = prose_lsp::Config {
        at_rest: memory::give_back,
        cache: prose_project::cache(),
        ..prose_lsp::Config::default()
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("can't start: {error}")),
    };
    let code = runtime.block_on(prose_lsp::serve(
        tokio::io::stdin(),
        tokio::io::stdout(),
        config,
        terminated(),
    ));
    // A thread that still reads standard input can't be stopped and must not hold the process.
    runtime.shutdown_background();
    Exit::Server(u8::try_from(code).unwrap_or(1))
}

/// Resolves when the process is asked to end.
async fn terminated() {
    #[cfg(unix)]
    if let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        signal.recv().await;
        return;
    }
    std::future::pending::<()>().await;
}
