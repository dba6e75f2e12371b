//! Logs: to stderr, off unless `PROSE_LOG` asks for them.

use tracing_subscriber::EnvFilter;

/// Starts logging; `PROSE_LOG=debug`, or a filter as `prose_lsp=trace,warn`. Warnings always show.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("PROSE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}
