//! `prose examples`: the programs to start from, which are part of the binary.

use std::io::Write;
use std::path::Path;

use clap::Parser as _;

use super::{Exit, fail, out, say};
use crate::args::{Cli, Command, ExamplesArgs};

/// A program with its mock file.
struct Example {
    name: &'static str,
    program: &'static str,
    mock: &'static str,
}

macro_rules! examples {
    ($($name:literal)+) => {
        &[$(Example {
            name: $name,
            program: include_str!(concat!("../../../../examples/", $name, ".prose")),
            mock: include_str!(concat!("../../../../examples/", $name, ".mock.toml")),
        }),+]
    };
}

/// From the shortest to the longest.
const EXAMPLES: &[Example] = examples![
    "hello" "parallel-review" "refine" "captain" "recover" "triage" "shortlist" "divide" "release"
];

impl Example {
    /// What the program's first comment says.
    fn about(&self) -> String {
        let first = self.program.lines().next().unwrap_or_default();
        first
            .trim_start_matches(['#', ' '])
            .trim_end_matches('.')
            .to_owned()
    }
}

/// Lists the examples, or does something with one.
pub fn examples(args: &ExamplesArgs) -> Exit {
    let Some(name) = &args.name else {
        let widest = EXAMPLES
            .iter()
            .map(|example| example.name.len())
            .max()
            .unwrap_or(0);
        return out(|stdout| {
            for example in EXAMPLES {
                writeln!(stdout, "{:widest$}  {}", example.name, example.about())?;
            }
            Ok(())
        });
    };
    let wanted = name.trim_end_matches(".prose");
    let Some(example) = EXAMPLES.iter().find(|example| example.name == wanted) else {
        let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        return fail(&format!(
            "there is no example `{name}`; there are {}",
            names.join(", ")
        ));
    };
    if let Some(folder) = &args.copy {
        return match copy(example, folder) {
            Ok(()) => {
                let path = folder.join(example.name);
                say(&format!(
                    "wrote {0}.prose and {0}.mock.toml; to run it: prose run {0}.prose --backend simulate\n",
                    path.strip_prefix(".").unwrap_or(&path).display()
                ));
                Exit::Ok
            }
            Err(message) => fail(&message),
        };
    }
    if args.run {
        return run(example);
    }
    out(|stdout| stdout.write_all(example.program.as_bytes()))
}

/// Writes the example's files; what is there is not replaced.
fn copy(example: &Example, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("can't create {}: {error}", folder.display()))?;
    let files = [("prose", example.program), ("mock.toml", example.mock)];
    let path = |kind: &str| folder.join(format!("{}.{kind}", example.name));
    if let Some((kind, _)) = files.iter().find(|(kind, _)| path(kind).exists()) {
        return Err(format!("{} is there already", path(kind).display()));
    }
    for (kind, text) in files {
        std::fs::write(path(kind), text)
            .map_err(|error| format!("can't write {}: {error}", path(kind).display()))?;
    }
    Ok(())
}

/// Runs the example as a person would who had copied it.
fn run(example: &Example) -> Exit {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return fail(&format!("can't make a temporary folder: {error}")),
    };
    if let Err(message) = copy(example, folder.path()) {
        return fail(&message);
    }
    let program = folder.path().join(format!("{}.prose", example.name));
    let line = [
        "prose".as_ref(),
        "run".as_ref(),
        program.as_os_str(),
        "--backend".as_ref(),
        "simulate".as_ref(),
    ];
    match Cli::try_parse_from(line) {
        Ok(Cli {
            command: Command::Run(args),
        }) => super::run::run(args),
        _ => fail("the example can't be started"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_there_and_says_what_it_is() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut on_disk: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter_map(|name| name.strip_suffix(".prose").map(str::to_owned))
            .collect();
        on_disk.sort();
        let mut listed: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        listed.sort_unstable();
        assert_eq!(listed, on_disk);
        for example in EXAMPLES {
            assert!(
                example.program.starts_with("# ") && example.about().len() > 10,
                "{}",
                example.name
            );
        }
    }
}
