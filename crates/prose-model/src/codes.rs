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

/// Whether findings of a code can be settled by a change that the tools make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// Only the author can.
    None,
    /// The editor offers a change; which one, or whether at all, is for the author to decide.
    Offered,
    /// The change is plain and keeps the meaning, at least in some cases; all such changes can be made at once.
    Automatic,
}

impl Repair {
    /// The sentence about it on the code's page; none where there is nothing to say.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            Repair::None => None,
            Repair::Offered => Some("The editor offers a quick fix."),
            Repair::Automatic => Some(
                "The editor offers a quick fix; where it needs no decision, `prose check --fix` and \"Fix All\" make it, too.",
            ),
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
    /// Whether there is a quick fix.
    pub repair: Repair,
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

macro_rules! repair {
    () => {
        Repair::None
    };
    ($repair:ident) => {
        Repair::$repair
    };
}

macro_rules! codes {
    ($( $code:ident $severity:ident $($repair:ident)? $title:literal )*) => {
        /// Every code: errors and warnings with upstream's numbers, then those without (`P1xx` error, `P2xx` warning, `P3xx`
        /// hint), then lints.
        pub static CODES: &[CodeInfo] = &[ $( CodeInfo {
            code: stringify!($code),
            severity: codes!(@severity $severity),
            repair: repair!($($repair)?),
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
    E001 Error Offered "Unterminated string literal"
    E002 Error Automatic "Unknown escape sequence in string"
    E003 Error Offered "Session missing prompt or agent"
    E004 Error Automatic "Unexpected token"
    E005 Error Offered "Invalid syntax"
    E006 Error Offered "Duplicate agent definition"
    E007 Error Offered "Undefined agent reference"
    E008 Error Offered "Invalid model value"
    E009 Error Offered "Duplicate property"
    E010 Error Offered "Duplicate use statement"
    E011 Error Offered "Empty use path"
    E012 Error "Invalid use path format"
    E013 Error "Skills must be an array"
    E014 Error Offered "Skill name must be a string"
    E015 Error "Permissions must be a block"
    E016 Error Offered "Permission pattern must be a string"
    E017 Error Offered "`resume:` requires persistent agent"
    E018 Hint Offered "`resume:` with no existing memory"
    E019 Error Offered "Duplicate variable name"
    E020 Error "Empty input name"
    E021 Error Offered "Duplicate input declaration"
    E022 Withdrawn "Input after executable statement"
    E023 Error "Empty output name"
    E024 Error Offered "Duplicate output declaration"
    E025 Error Offered "Unknown program in invocation"
    E026 Warning "Missing required input"
    E027 Error Offered "Unknown input name in invocation"
    E028 Warning Offered "Unknown output property access"
    W001 Warning "Empty session prompt"
    W002 Warning "Whitespace-only session prompt"
    W003 Warning "Session prompt exceeds 10,000 characters"
    W004 Warning Offered "Empty prompt property"
    W005 Warning Offered "Unknown property name"
    W006 Warning "Unknown import source format"
    W007 Hint "Skill not imported"
    W008 Warning Offered "Unknown permission type"
    W009 Warning Offered "Unknown permission value"
    W010 Warning Automatic "Empty skills array"
    W011 Hint Offered "`session:` on persistent agent with existing memory"
    P101 Error Offered "Unterminated discretion"
    P102 Error Automatic "Tab in indentation"
    P103 Error Offered "Dedent to a column no block has"
    P104 Error Offered "Unexpected indentation"
    P105 Error Offered "Unclosed bracket"
    P106 Error "Nested too deeply"
    P107 Error "Empty discretion"
    P108 Error Offered "Misplaced duration"
    P141 Error Offered "Undefined block"
    P142 Error Offered "Undefined variable"
    P143 Error "Used before it is declared"
    P144 Error Offered "Assignment to a constant"
    P145 Error "Assignment to a loop or pipeline variable"
    P146 Error Offered "Duplicate block definition"
    P147 Error "Agent and block of the same name"
    P148 Error "Variable and agent of the same name"
    P149 Error Offered "`try` without `catch` or `finally`"
    P150 Error "`choice` without options"
    P151 Error "Used file not found"
    P152 Error "Files that use each other"
    P153 Error Offered "`break` outside a loop"
    P201 Warning "Very short discretion"
    P202 Warning Offered "Discretion used as a value"
    P203 Warning Offered "Named session without an agent"
    P204 Warning Automatic "Unusual form of session"
    P205 Warning Automatic "List without brackets"
    P207 Warning "Computed variable name"
    P208 Warning Automatic "Statement outside the grammar"
    P209 Warning Automatic "Dash list"
    P210 Warning Automatic "YAML block text"
    P212 Warning Automatic "Missing comma"
    P213 Warning Automatic "`else if` instead of `elif`"
    P214 Warning Automatic "`catch` variable without `as`"
    P215 Warning Offered "Input without description"
    P216 Warning Automatic "Options not indented"
    P217 Warning "List as an input's default"
    P218 Warning "Input with modifiers"
    P219 Warning Automatic "Output with a colon"
    P220 Warning Automatic "Unquoted word"
    P221 Warning Automatic "Invisible character"
    P222 Warning "Empty block"
    P223 Warning Automatic "Comparison in words"
    P240 Warning Offered "Arguments don't match parameters"
    P241 Warning Offered "Unknown model"
    P242 Warning Offered "`let` for a name that is already there"
    P243 Warning Offered "Assignment to a name that is not declared"
    P244 Warning "Used after the loop that declares it"
    P245 Warning "Declared only in another block"
    P246 Warning Offered "Misspelled name in a text"
    P247 Warning "Output bound again further down"
    P248 Warning Offered "Output without a name at the top level"
    P249 Warning Automatic "Unknown modifier or value"
    P250 Warning Offered "Index and item swapped"
    P251 Warning Offered "Block or program used as a value"
    P252 Warning "May have no value yet"
    P253 Warning "Name bound in two ways"
    P254 Warning "Program named like an agent or block"
    P255 Warning "Variable of a construct named like an agent"
    P256 Warning Offered "Block called without `do`"
    P257 Warning "More than one `catch`"
    P258 Warning Automatic "Property value that is not understood"
    P262 Warning "Session with nothing to say"
    P263 Warning Offered "Loop without an end"
    P264 Warning "Options with the same label"
    P265 Warning Offered "`throw` without a message"
    P266 Warning "Number of rounds that makes no sense"
    P267 Warning "More successes wanted than there are branches"
    P268 Warning "Unusually many retries"
    P269 Warning Offered "Text as a condition"
    P301 Hint Automatic "Discretion over several lines"
    P302 Hint "Name with letters beyond ASCII"
    P303 Hint "Name is also a keyword"
    P304 Hint "Legacy import"
    P305 Hint Automatic "Body on one line"
    P306 Hint Automatic "Context as indented lines"
    P307 Hint Automatic "Order of a loop's parts"
    P308 Hint Automatic "Braces around a value"
    P340 Hint Offered "Name in a text is not in scope"
    P341 Hint "Name hides another"
    P342 Hint "Variable named like a block"
    P343 Hint "Assignment to a parameter"
    P344 Hint Offered "Unknown code in an `allow` comment"
    P345 Hint Offered "`allow` comment that silences nothing"
    P346 Hint "`allow` comment for an error"
    P347 Hint "Imported program not fetched"
    P348 Hint "Imported program has syntax errors"
    L401 Hint Offered "Agent that is never used"
    L402 Hint Offered "Block that is never called"
    L403 Hint "Concurrent sessions of one memory"
    L404 Hint Offered "Variable that is never read"
    L405 Hint "Parameter that is never read"
    L406 Hint "Input that is never read"
    L407 Hint Offered "Program that is never called"
    L408 Hint "Statement that is never reached"
    L409 Hint "Parallel with one branch"
    L410 Hint "Loop that runs once"
    L411 Hint "Catch that only raises the error again"
    L412 Hint "Parallel directly inside another"
    L413 Hint Offered "Value twice in one context"
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
    fn pages_tell_of_quick_fixes() {
        for info in CODES {
            let told = info.page.split("\n## Quick fix\n\n").nth(1);
            let told = told.map(|it| it.split("\n\n## ").next().unwrap_or(it).replace('\n', " "));
            assert_eq!(told.as_deref(), info.repair.sentence(), "{}", info.code);
        }
    }

    /// `docs/codes/README.md`: a table for each group of numbers.
    fn index() -> String {
        let groups = [
            (
                "E",
                "Errors with upstream's numbers",
                "Some are milder here than upstream has them.",
            ),
            (
                "W",
                "Warnings with upstream's numbers",
                "Some are milder here than upstream has them.",
            ),
            ("P1", "Errors", "A program with one does not run."),
            ("P2", "Warnings", "The program runs, probably not as meant."),
            ("P3", "Hints", "Worth knowing; the program runs as it is."),
            (
                "L",
                "Lints",
                "The program is right and may still not say what its author meant.",
            ),
        ];
        let mut text = "# The diagnostic codes\n\n\
            Everything that the checks can report, a page each. `prose explain CODE` shows the same page.\n\
            A quick fix is a change that the editor offers; those marked `--fix` are, where they need no decision, also made by\n\
            `prose check --fix`. [Configuration](../configuration.md#silencing-a-finding) says how a finding is silenced, and how a\n\
            whole code gets another severity.\n"
            .to_owned();
        for (prefix, title, about) in groups {
            text.push_str(&format!(
                "\n## {title}\n\n{about}\n\n| code | what is reported | severity | quick fix |\n|---|---|---|---|\n"
            ));
            for info in CODES.iter().filter(|info| info.code.starts_with(prefix)) {
                let severity = match info.withdrawn {
                    true => "never reported",
                    false => info.severity.as_str(),
                };
                let repair = match info.repair {
                    Repair::None => "",
                    Repair::Offered => "yes",
                    Repair::Automatic => "`--fix`",
                };
                let title = info.title.replace('|', "\\|");
                let code = info.code;
                text.push_str(&format!(
                    "| [{code}]({code}.md) | {title} | {severity} | {repair} |\n"
                ));
            }
        }
        text
    }

    /// With `UPDATE_EXPECT=1` the index is written.
    #[test]
    fn the_index_lists_every_code() {
        let index = index();
        for info in CODES {
            assert_eq!(
                index.matches(&format!("| [{0}]({0}.md) |", info.code)).count(),
                1,
                "{}",
                info.code
            );
        }
        expect_test::expect_file!["../../../docs/codes/README.md"].assert_eq(&index);
    }

    #[test]
    fn found_in_any_case() {
        assert_eq!(find("e007").map(|it| it.code), Some("E007"));
        assert_eq!(find("E999"), None);
    }
}
