//! `prose fmt`: brings programs into the project's style.

use std::io::{self, Read as _, Write as _};

use prose_fmt::Options;
use prose_project::read_program;

use super::{Exit, fail, out, programs, replace, say};
use crate::args::FmtArgs;

/// What became of one text.
struct Formatted {
    text: String,
    changed: bool,
    /// What stands in it has syntax errors; the statements with them were left as they are.
    broken: bool,
}

/// Formats files in place, or standard input to standard output.
pub fn fmt(args: &FmtArgs) -> Exit {
    if args.stdin {
        return stdin(args.check);
    }
    let mut refused = false;
    let paths = programs(&args.paths, &mut refused);
    let mut failed = false;
    let mut changed = Vec::new();
    for path in &paths {
        let text = match read_program(path) {
            Ok(text) => text,
            Err(error) => {
                fail(&error.to_string());
                refused = true;
                continue;
            }
        };
        let formatted = format(&text);
        if formatted.broken {
            note_errors(&path.display().to_string());
            failed = true;
        }
        if !formatted.changed {
            continue;
        }
        if !args.check
            && let Err(error) = replace(path, &formatted.text)
        {
            fail(&format!("can't write {}: {error}", path.display()));
            refused = true;
            continue;
        }
        changed.push(path);
    }
    if args.check {
        failed |= !changed.is_empty();
        if let Exit::Refused = out(|to| {
            changed
                .iter()
                .try_for_each(|path| writeln!(to, "{}", path.display()))
        }) {
            return Exit::Refused;
        }
    }
    match (refused, failed) {
        (true, _) => Exit::Refused,
        (_, true) => Exit::Failed,
        _ => Exit::Ok,
    }
}

fn stdin(check: bool) -> Exit {
    let mut text = String::new();
    if let Err(error) = io::stdin().lock().read_to_string(&mut text) {
        return fail(&format!("can't read standard input: {error}"));
    }
    if text.len() > prose_syntax::MAX_TEXT_LEN {
        return fail("standard input is too large for a program");
    }
    let formatted = format(&text);
    if formatted.broken {
        note_errors("standard input");
    }
    if !check && let Exit::Refused = out(|to| to.write_all(formatted.text.as_bytes())) {
        return Exit::Refused;
    }
    match formatted.broken || (check && formatted.changed) {
        true => Exit::Failed,
        false => Exit::Ok,
    }
}

fn format(text: &str) -> Formatted {
    let parse = prose_syntax::parse(text);
    let edits = prose_fmt::format(&parse, text, &Options::default());
    let text = prose_fmt::apply(text, &edits);
    // A tab in the indentation is an error that formatting mends.
    let broken = match edits.is_empty() {
        true => parse.has_errors(),
        false => parse.has_errors() && prose_syntax::parse(&text).has_errors(),
    };
    Formatted {
        changed: !edits.is_empty(),
        text,
        broken,
    }
}

fn note_errors(what: &str) {
    say(&format!(
        "note: {what} has syntax errors; the statements with them were left as they are (`prose check` shows them)\n"
    ));
}
