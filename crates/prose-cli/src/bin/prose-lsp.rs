//! `prose-lsp`: the language server.

fn main() -> std::process::ExitCode {
    prose_cli::prose_lsp()
}
