//! `prose compile`: the canonical form of a program.

use std::io::{self, Write as _};
use std::path::Path;

use prose_model::codes::Severity;
use prose_project::Workspace;

use super::check::{configured, project, render_all};
use super::{Exit, colour, fail, out, say};

/// Prints the canonical form, unless the program has errors.
pub fn compile(path: &Path) -> Exit {
    let (root, config) = match project(path) {
        Ok(project) => project,
        Err(message) => return fail(&message),
    };
    let mut workspace = Workspace::new(&root);
    let file = match workspace.add(path) {
        Ok(file) => file,
        Err(error) => return fail(&error.to_string()),
    };
    let found = configured(workspace.diagnostics(file), &config);
    let errors: Vec<_> = found.iter().filter(|it| it.severity == Severity::Error).collect();
    let text = workspace.text(file);
    let parse = prose_syntax::parse(&text);
    if !errors.is_empty() || parse.has_errors() {
        if errors.is_empty() {
            say(
                "error: the program has syntax errors whose codes `[lint]` turns off: turn them on to see them\n",
            );
        }
        say(&render_all(&workspace, errors, colour(&io::stderr())));
        return Exit::Failed;
    }
    let form = prose_fmt::canonical(&parse);
    out(|to| to.write_all(form.as_bytes()))
}
