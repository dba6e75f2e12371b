//! The one table of diagnostic codes: checker, `prose explain`, hover and `docs/codes/` all read it.

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Style or legacy; never blocks.
    Hint,
    /// It runs, probably not as meant.
    Warning,
    /// The program can't run as written.
    Error,
}

impl Severity {
    /// The word used in messages and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeInfo {
    /// As shown: `E007`.
    pub code: &'static str,
    /// Severity where no configuration changes it.
    pub severity: Severity,
    /// A short name for lists.
    pub title: &'static str,
    /// The page, Markdown: why, one wrong and one right program, how to silence.
    pub page: &'static str,
}

/// Finds a code, in any case (`e007`).
pub fn find(code: &str) -> Option<&'static CodeInfo> {
    CODES.iter().find(|info| info.code.eq_ignore_ascii_case(code))
}

/// Every code, in order.
pub static CODES: &[CodeInfo] = &[];
