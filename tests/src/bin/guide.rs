//! `cargo xtask guide`: renders the pages of the specification as the language guide.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use prose_tests::spec::{self, Page, guide};

fn main() -> ExitCode {
    let pages: Vec<Page> = spec::page_paths(&spec::folder())
        .iter()
        .map(|path| Page::open(path))
        .collect();
    let files = guide::render(&pages);
    match guide::write(&guide::folder(), &files) {
        Ok(()) => {
            println!("docs/guide: {} files", files.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
