//! `prose-lsp`: the language server.
fn main() {}
