//! Drives one run for the crash tests, which kill it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let (code, output, error) = prose_tests::crash::host::run(&arguments);
        println!("{output}");
        eprint!("{error}");
        std::process::ExitCode::from(code)
    }
    #[cfg(not(unix))]
    std::process::ExitCode::FAILURE
}
