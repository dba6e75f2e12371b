//! A workspace on disk: files, prose.toml, import closure, the bundle for a target.
