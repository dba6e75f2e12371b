//! The page of a run.

use prose_runtime::runs::RunReport;

/// The page.
pub fn page(run: &RunReport) -> String {
    format!("<!doctype html><meta charset=\"utf-8\"><title>{}</title>", run.id)
}
