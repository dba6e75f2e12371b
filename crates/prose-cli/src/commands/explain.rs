//! `prose explain CODE`.

use std::io::Write;

use prose_model::codes;

use super::{Exit, out};

/// Prints the page of a code.
pub fn explain(code: &str) -> Exit {
    match codes::find(code) {
        Some(info) => out(|stdout| stdout.write_all(info.page.as_bytes())),
        None => {
            let known: Vec<&str> = codes::CODES.iter().map(|info| info.code).collect();
            super::fail(&format!(
                "there is no code `{code}`; the codes are {}",
                known.join(", ")
            ))
        }
    }
}
