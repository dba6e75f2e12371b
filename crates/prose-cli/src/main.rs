//! `prose`: run, check and explain OpenProse programs.

fn main() -> std::process::ExitCode {
    prose_cli::prose()
}
