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
    /// Known from upstream's list and never reported here; the page says why.
    pub withdrawn: bool,
}

/// Finds a code, in any case (`e007`).
pub fn find(code: &str) -> Option<&'static CodeInfo> {
    CODES.iter().find(|info| info.code.eq_ignore_ascii_case(code))
}

macro_rules! codes {
    ($( $code:ident $severity:ident $title:literal )*) => {
        /// Every code: errors and warnings with upstream's numbers, then those without (`P1xx` error, `P2xx` warning, `P3xx`
        /// hint), then lints.
        pub static CODES: &[CodeInfo] = &[ $( CodeInfo {
            code: stringify!($code),
            severity: codes!(@severity $severity),
            title: $title,
            page: include_str!(concat!("../../../docs/codes/", stringify!($code), ".md")),
            withdrawn: codes!(@withdrawn $severity),
        }, )* ];
    };
    (@severity Withdrawn) => { Severity::Hint };
    (@severity $severity:ident) => { Severity::$severity };
    (@withdrawn Withdrawn) => { true };
    (@withdrawn $severity:ident) => { false };
}

codes! {
    E001 Error "Unterminated string literal"
    E002 Error "Unknown escape sequence in string"
    E003 Error "Session missing prompt or agent"
    E004 Error "Unexpected token"
    E005 Error "Invalid syntax"
    E006 Error "Duplicate agent definition"
    E007 Error "Undefined agent reference"
    E008 Error "Invalid model value"
    E009 Error "Duplicate property"
    E010 Error "Duplicate use statement"
    E011 Error "Empty use path"
    E012 Error "Invalid use path format"
    E013 Error "Skills must be an array"
    E014 Error "Skill name must be a string"
    E015 Error "Permissions must be a block"
    E016 Error "Permission pattern must be a string"
    E017 Error "`resume:` requires persistent agent"
    E018 Hint "`resume:` with no existing memory"
    E019 Error "Duplicate variable name"
    E020 Error "Empty input name"
    E021 Error "Duplicate input declaration"
    E022 Withdrawn "Input after executable statement"
    E023 Error "Empty output name"
    E024 Error "Duplicate output declaration"
    E025 Error "Unknown program in invocation"
    E026 Warning "Missing required input"
    E027 Error "Unknown input name in invocation"
    E028 Warning "Unknown output property access"
    W001 Warning "Empty session prompt"
    W002 Warning "Whitespace-only session prompt"
    W003 Warning "Session prompt exceeds 10,000 characters"
    W004 Warning "Empty prompt property"
    W005 Warning "Unknown property name"
    W006 Warning "Unknown import source format"
    W007 Hint "Skill not imported"
    W008 Warning "Unknown permission type"
    W009 Warning "Unknown permission value"
    W010 Warning "Empty skills array"
    W011 Hint "`session:` on persistent agent with existing memory"
    P101 Error "Unterminated discretion"
    P102 Error "Tab in indentation"
    P103 Error "Dedent to a column no block has"
    P104 Error "Unexpected indentation"
    P105 Error "Unclosed bracket"
    P106 Error "Nested too deeply"
    P107 Error "Empty discretion"
    P108 Error "Misplaced duration"
    P141 Error "Undefined block"
    P142 Error "Undefined variable"
    P143 Error "Used before it is declared"
    P144 Error "Assignment to a constant"
    P145 Error "Assignment to a loop or pipeline variable"
    P146 Error "Duplicate block definition"
    P147 Error "Agent and block of the same name"
    P148 Error "Variable and agent of the same name"
    P149 Error "`try` without `catch` or `finally`"
    P150 Error "`choice` without options"
    P151 Error "Used file not found"
    P152 Error "Files that use each other"
    P153 Error "`break` outside a loop"
    P201 Warning "Very short discretion"
    P202 Warning "Discretion used as a value"
    P203 Warning "Named session without an agent"
    P204 Warning "Unusual form of session"
    P205 Warning "List without brackets"
    P207 Warning "Computed variable name"
    P208 Warning "Statement outside the grammar"
    P209 Warning "Dash list"
    P210 Warning "YAML block text"
    P212 Warning "Missing comma"
    P213 Warning "`else if` instead of `elif`"
    P214 Warning "`catch` variable without `as`"
    P215 Warning "Input without description"
    P216 Warning "Options not indented"
    P217 Warning "List as an input's default"
    P218 Warning "Input with modifiers"
    P219 Warning "Output with a colon"
    P220 Warning "Unquoted word"
    P221 Warning "Invisible character"
    P222 Warning "Empty block"
    P240 Warning "Arguments don't match parameters"
    P241 Warning "Unknown model"
    P242 Warning "`let` for a name that is already there"
    P243 Warning "Assignment to a name that is not declared"
    P244 Warning "Used after the loop that declares it"
    P245 Warning "Declared only in another block"
    P246 Warning "Misspelled name in a text"
    P247 Warning "Output bound again further down"
    P248 Warning "Output without a name at the top level"
    P249 Warning "Unknown modifier or value"
    P250 Warning "Index and item swapped"
    P251 Warning "Block or program used as a value"
    P252 Warning "May have no value yet"
    P253 Warning "Name bound in two ways"
    P254 Warning "Program named like an agent or block"
    P255 Warning "Variable of a construct named like an agent"
    P256 Warning "Block called without `do`"
    P257 Warning "More than one `catch`"
    P258 Warning "Property value that is not understood"
    P262 Warning "Session with nothing to say"
    P263 Warning "Loop without an end"
    P264 Warning "Options with the same label"
    P265 Warning "`throw` without a message"
    P266 Warning "Number of rounds that makes no sense"
    P267 Warning "More successes wanted than there are branches"
    P268 Warning "Unusually many retries"
    P301 Hint "Discretion over several lines"
    P302 Hint "Name with letters beyond ASCII"
    P303 Hint "Name is also a keyword"
    P304 Hint "Legacy import"
    P305 Hint "Body on one line"
    P306 Hint "Context as indented lines"
    P307 Hint "Order of a loop's parts"
    P308 Hint "Braces around a value"
    P340 Hint "Name in a text is not in scope"
    P341 Hint "Name hides another"
    P342 Hint "Variable named like a block"
    P343 Hint "Assignment to a parameter"
    P344 Hint "Unknown code in an `allow` comment"
    P345 Hint "`allow` comment that silences nothing"
    P346 Hint "`allow` comment for an error"
    P347 Hint "Imported program not fetched"
    L401 Hint "Agent that is never used"
    L402 Hint "Block that is never called"
    L403 Hint "Concurrent sessions of one memory"
    L404 Hint "Variable that is never read"
    L405 Hint "Parameter that is never read"
    L406 Hint "Input that is never read"
    L407 Hint "Program that is never called"
    L408 Hint "Statement that is never reached"
    L409 Hint "Parallel with one branch"
    L410 Hint "Loop that runs once"
    L411 Hint "Catch that only raises the error again"
    L412 Hint "Parallel directly inside another"
    L413 Hint "Value twice in one context"
    L414 Hint "Agent that may do everything"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_their_pages_begin_with_them() {
        for (index, info) in CODES.iter().enumerate() {
            assert!(
                CODES[..index].iter().all(|it| it.code != info.code),
                "{} twice",
                info.code
            );
            assert!(
                info.page
                    .starts_with(&format!("# {}: {}\n", info.code, info.title)),
                "{}",
                info.code
            );
        }
    }

    #[test]
    fn numbers_say_the_severity() {
        for info in CODES {
            let expected = match info.code.as_bytes() {
                [b'P', b'1', ..] => Severity::Error,
                [b'P', b'2', ..] => Severity::Warning,
                [b'P', b'3', ..] | [b'L', ..] => Severity::Hint,
                // Upstream's numbers keep their letter where the language reference changes the severity.
                _ => continue,
            };
            assert_eq!(info.severity, expected, "{}", info.code);
        }
    }

    #[test]
    fn found_in_any_case() {
        assert_eq!(find("e007").map(|it| it.code), Some("E007"));
        assert_eq!(find("E999"), None);
    }
}
