//! The language server shell around prose-ide and prose-runtime.
