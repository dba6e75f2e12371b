//! What can be wrong with a text, as typed kinds.
//!
//! Codes of this crate: E001–E005, E020, E023, and of the unnumbered ones P100–P139 (errors), P200–P239 (warnings), P300–P339 (hints).

use std::fmt;

use prose_model::codes::Severity;
use rowan::TextRange;

/// A finding of lexer, layout or parser. The name is for the usual case; some are warnings or hints.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SyntaxError {
    /// What is wrong.
    pub kind: SyntaxErrorKind,
    /// Where; may be empty, at the place where something is missing.
    pub range: TextRange,
}

impl SyntaxError {
    /// The code, `E004` or `P102`.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
    /// How serious it is.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)
    }
}

/// Unusual ways to write a session that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionForm {
    /// `session: "text"`
    ColonText,
    /// `session: agent "text"`
    AgentText,
    /// `session "text":`
    TrailingColon,
    /// `session "text" (retry: 3)`
    Modifiers,
    /// `session:` with only a `prompt:`
    NoAgent,
    /// `session "text" as name`
    AsName,
}

/// What is wrong. `Display` says it with a way out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SyntaxErrorKind {
    /// A string without closing quotes.
    UnterminatedString {
        /// `"""` rather than `"`.
        triple: bool,
    },
    /// Closing `"""` of a string that nothing opened.
    UnopenedString,
    /// A backslash before a character that needs none, in a `"…"` string.
    UnknownEscape(char),
    /// `session` or `resume` with nothing to do.
    SessionWithoutPrompt {
        /// `session` or `resume`.
        word: &'static str,
        /// A word that looks like an agent's name: `session foo`.
        name: Option<String>,
    },
    /// Something that can't stand here.
    UnexpectedToken {
        /// As written.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// `value.name(…)`: values have nothing that can be called.
    CallOfField {
        /// What is called.
        name: String,
    },
    /// A word at a statement's start that begins none.
    NotAStatement {
        /// The word.
        word: String,
        /// What to write instead, if it is known.
        nearest: Option<&'static str>,
    },
    /// A block in braces instead of `:` and indentation.
    BraceBlock,
    /// An operator of another language.
    WrongOperator {
        /// As written.
        found: String,
        /// Ours.
        instead: &'static str,
    },
    /// `else`, `elif`, `catch`, `finally`, `option` away from their construct.
    MisplacedClause {
        /// The word.
        word: String,
        /// What it must follow.
        after: &'static str,
    },
    /// Several words where a condition stands.
    ConditionInWords {
        /// The words.
        words: String,
    },
    /// `let x = input "…"`
    InputAsValue {
        /// The name that is to take the value.
        name: String,
    },
    /// `do greet "Bo"`
    ArgumentsWithoutParentheses {
        /// The block's name.
        block: String,
    },
    /// `block greet(name = "Bo")`
    ParameterWithMore,
    /// `prompt: You write well.`
    TextWithoutQuotes,
    /// `import "name"`
    ImportWithoutFrom,
    /// A word too many, such as `each` behind `for`.
    ExtraWord {
        /// The word.
        word: String,
    },
    /// `/`, `%` or `*` between two values.
    NoArithmetic {
        /// The operator.
        found: String,
    },
    /// `map (x):`
    StageWithVariable {
        /// The operation.
        op: String,
    },
    /// Something is missing.
    Expected {
        /// What is missing.
        what: &'static str,
        /// After what.
        after: &'static str,
    },
    /// The word a statement begins with.
    MissingWord {
        /// What the statement looks like with it.
        form: &'static str,
    },
    /// `key: value` outside agents and sessions.
    PropertyOutside {
        /// The key.
        key: String,
    },
    /// A statement directly under `choice`.
    OptionExpected,
    /// `input` without a name.
    InputWithoutName,
    /// `output:` without a name.
    OutputWithoutName,
    /// `reduce` without its two variables.
    ReduceWithoutVariables,
    /// A word after `|` that is no operation.
    UnknownPipeOp(String),
    /// A discretion without closing stars.
    UnterminatedDiscretion {
        /// `***` rather than `**`.
        block: bool,
    },
    /// `****` or only blanks between the stars.
    EmptyDiscretion,
    /// Indentation with a tab.
    TabIndent,
    /// A line that returns to a column no open block has.
    BadDedent {
        /// Rather the first line of its block is the odd one.
        first: bool,
    },
    /// A deeper line that nothing opened.
    UnexpectedIndent,
    /// A bracket that is never closed.
    UnclosedBracket {
        /// The bracket.
        open: char,
    },
    /// Nested deeper than supported.
    TooDeep,
    /// `120s` where no duration can stand.
    MisplacedDuration,
    /// Under three characters between the stars.
    ShortDiscretion,
    /// `let x = **…**`
    DiscretionAsValue,
    /// `session name:` without an agent
    AnonymousSession,
    /// An unusual form of session.
    OddSession(SessionForm),
    /// `context: a, b`
    BareList,
    /// `name_{v} = …`
    ComputedName,
    /// `assert`, `break`, `return`
    NotInGrammar {
        /// The word.
        word: &'static str,
    },
    /// `- a` lines
    DashList,
    /// `- "text"`
    MinusText,
    /// `prompt: |`
    BlockString,
    /// Two elements without a comma between.
    MissingComma,
    /// `else if`
    ElseIf,
    /// `is` for `==`, or `is not` for `!=`.
    ComparisonInWords {
        /// It is `is not`.
        not: bool,
    },
    /// `catch err:`
    CatchWithoutAs,
    /// `input x` without text
    InputWithoutText,
    /// `option` at the column of its `choice`
    OptionNotIndented,
    /// `input x: [..]`
    InputListDefault,
    /// `input x: "text" (default: 1)`
    InputModifiers,
    /// `input x: "text" (required: true)`
    InputModifierIgnored {
        /// The modifier's name.
        name: String,
    },
    /// `output name: …`
    OutputColon {
        /// With only a description, which binds nothing.
        declares: bool,
    },
    /// `model: gpt-4.1`
    BareWord,
    /// A no-break space and the like.
    InvisibleCharacter(char),
    /// A block with nothing in it.
    EmptyBody,
    /// `**` over several lines
    MultiLineDiscretion,
    /// A name with letters beyond ASCII
    NonAsciiName,
    /// A name that is also a statement word
    KeywordName {
        /// The name.
        name: String,
    },
    /// `import … from …`
    LegacyImport,
    /// A body on the line of its colon
    InlineBody,
    /// Indented `k: v` lines under `context:`
    ContextLines,
    /// `loop as i (max: 5)`: parts in unusual order
    LoopOrder,
    /// `(max: {n})`
    BracedValue,
}

use SyntaxErrorKind::*;

impl SyntaxErrorKind {
    /// Every code this crate can report with its severity and a short title.
    pub const CODES: &'static [(&'static str, Severity, &'static str)] = &[
        ("E001", Severity::Error, "Unterminated string literal"),
        ("E002", Severity::Error, "Unknown escape sequence in string"),
        ("E003", Severity::Error, "Session missing prompt or agent"),
        ("E004", Severity::Error, "Unexpected token"),
        ("E005", Severity::Error, "Invalid syntax"),
        ("E020", Severity::Error, "Empty input name"),
        ("E023", Severity::Error, "Empty output name"),
        ("P101", Severity::Error, "Unterminated discretion"),
        ("P102", Severity::Error, "Tab in indentation"),
        ("P103", Severity::Error, "Dedent to a column no block has"),
        ("P104", Severity::Error, "Unexpected indentation"),
        ("P105", Severity::Error, "Unclosed bracket"),
        ("P106", Severity::Error, "Nested too deeply"),
        ("P107", Severity::Error, "Empty discretion"),
        ("P108", Severity::Error, "Misplaced duration"),
        ("P201", Severity::Warning, "Very short discretion"),
        ("P202", Severity::Warning, "Discretion used as a value"),
        ("P203", Severity::Warning, "Named session without an agent"),
        ("P204", Severity::Warning, "Unusual form of session"),
        ("P205", Severity::Warning, "List without brackets"),
        ("P207", Severity::Warning, "Computed variable name"),
        ("P208", Severity::Warning, "Statement outside the grammar"),
        ("P209", Severity::Warning, "Dash list"),
        ("P210", Severity::Warning, "YAML block text"),
        ("P212", Severity::Warning, "Missing comma"),
        ("P213", Severity::Warning, "`else if` instead of `elif`"),
        ("P214", Severity::Warning, "`catch` variable without `as`"),
        ("P215", Severity::Warning, "Input without description"),
        ("P216", Severity::Warning, "Options not indented"),
        ("P217", Severity::Warning, "List as an input's default"),
        ("P218", Severity::Warning, "Input with modifiers"),
        ("P219", Severity::Warning, "Output with a colon"),
        ("P220", Severity::Warning, "Unquoted word"),
        ("P221", Severity::Warning, "Invisible character"),
        ("P222", Severity::Warning, "Empty block"),
        ("P223", Severity::Warning, "Comparison in words"),
        ("P301", Severity::Hint, "Discretion over several lines"),
        ("P302", Severity::Hint, "Name with letters beyond ASCII"),
        ("P303", Severity::Hint, "Name is also a keyword"),
        ("P304", Severity::Hint, "Legacy import"),
        ("P305", Severity::Hint, "Body on one line"),
        ("P306", Severity::Hint, "Context as indented lines"),
        ("P307", Severity::Hint, "Order of a loop's parts"),
        ("P308", Severity::Hint, "Braces around a value"),
    ];

    /// The code.
    pub fn code(&self) -> &'static str {
        match self {
            UnterminatedString { .. } | UnopenedString => "E001",
            UnknownEscape(_) => "E002",
            SessionWithoutPrompt { .. } => "E003",
            UnexpectedToken { .. }
            | CallOfField { .. }
            | NotAStatement { .. }
            | BraceBlock
            | WrongOperator { .. }
            | MisplacedClause { .. }
            | ConditionInWords { .. }
            | InputAsValue { .. }
            | ArgumentsWithoutParentheses { .. }
            | ParameterWithMore
            | TextWithoutQuotes
            | ExtraWord { .. }
            | NoArithmetic { .. }
            | StageWithVariable { .. }
            | UnknownPipeOp(_) => "E004",
            Expected { .. }
            | MissingWord { .. }
            | ImportWithoutFrom
            | PropertyOutside { .. }
            | OptionExpected
            | ReduceWithoutVariables => "E005",
            InputWithoutName => "E020",
            OutputWithoutName => "E023",
            UnterminatedDiscretion { .. } => "P101",
            TabIndent => "P102",
            BadDedent { .. } => "P103",
            UnexpectedIndent => "P104",
            UnclosedBracket { .. } => "P105",
            TooDeep => "P106",
            EmptyDiscretion => "P107",
            MisplacedDuration => "P108",
            ShortDiscretion => "P201",
            DiscretionAsValue => "P202",
            AnonymousSession => "P203",
            OddSession(_) => "P204",
            BareList => "P205",
            ComputedName => "P207",
            NotInGrammar { .. } => "P208",
            DashList | MinusText => "P209",
            BlockString => "P210",
            MissingComma => "P212",
            ElseIf => "P213",
            ComparisonInWords { .. } => "P223",
            CatchWithoutAs => "P214",
            InputWithoutText => "P215",
            OptionNotIndented => "P216",
            InputListDefault => "P217",
            InputModifiers | InputModifierIgnored { .. } => "P218",
            OutputColon { .. } => "P219",
            BareWord => "P220",
            InvisibleCharacter(_) => "P221",
            EmptyBody => "P222",
            MultiLineDiscretion => "P301",
            NonAsciiName => "P302",
            KeywordName { .. } => "P303",
            LegacyImport => "P304",
            InlineBody => "P305",
            ContextLines => "P306",
            LoopOrder => "P307",
            BracedValue => "P308",
        }
    }

    /// How much it says about what is wrong with its line, if errors like it come in company; see `one_error_a_line`.
    pub(crate) fn weight(&self) -> Option<u8> {
        Some(match self {
            UnterminatedString { .. }
            | UnopenedString
            | UnterminatedDiscretion { .. }
            | UnclosedBracket { .. } => 2,
            SessionWithoutPrompt { .. }
            | UnexpectedToken { .. }
            | NotAStatement { .. }
            | BraceBlock
            | WrongOperator { .. }
            | MisplacedClause { .. }
            | UnknownPipeOp(_)
            | ConditionInWords { .. }
            | InputAsValue { .. }
            | ArgumentsWithoutParentheses { .. }
            | ParameterWithMore
            | TextWithoutQuotes
            | ImportWithoutFrom
            | ExtraWord { .. }
            | NoArithmetic { .. }
            | StageWithVariable { .. }
            | Expected { .. }
            | MissingWord { .. }
            | PropertyOutside { .. }
            | OptionExpected
            | ReduceWithoutVariables
            | InputWithoutName
            | BadDedent { .. }
            | UnexpectedIndent => 1,
            _ => return None,
        })
    }

    /// How serious it is, before any configuration.
    pub fn severity(&self) -> Severity {
        match self.code().as_bytes() {
            [b'E', ..] | [b'P', b'1', ..] => Severity::Error,
            [b'P', b'2', ..] => Severity::Warning,
            _ => Severity::Hint,
        }
    }
}

impl fmt::Display for SyntaxErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnterminatedString { triple: false } => {
                write!(
                    f,
                    "string is not closed on its line: add `\"`, or use `\"\"\"` for several lines"
                )
            }
            UnterminatedString { triple: true } => {
                write!(f, "string is never closed: add `\"\"\"` after its last line")
            }
            UnopenedString => write!(f, "string is never opened: add `\"\"\"` before its first line"),
            UnknownEscape(c) => write!(
                f,
                "unknown escape `\\{c}`: known are `\\\\ \\\" \\n \\t \\{{ \\}}`; write `\\\\` for a backslash"
            ),
            SessionWithoutPrompt {
                word,
                name: Some(name),
            } => {
                write!(
                    f,
                    "`{word}` needs a prompt or an agent: to run agent `{name}` write `{word}: {name}`"
                )
            }
            SessionWithoutPrompt { word: "resume", .. } => {
                write!(f, "`resume` needs the agent to continue: `resume: agent`")
            }
            SessionWithoutPrompt { word, .. } => {
                write!(
                    f,
                    "`{word}` needs a prompt or an agent: `{word} \"…\"` or `{word}: agent`"
                )
            }
            CallOfField { name } => write!(
                f,
                "values have nothing to call: blocks, those of used files too, go by their own name: `do {name}(…)`"
            ),
            UnexpectedToken { found, expected } => write!(f, "unexpected {found}, expected {expected}"),
            NotAStatement {
                word,
                nearest: Some(nearest),
            } => {
                write!(f, "`{word}` begins no statement: use {nearest}")
            }
            NotAStatement { word, nearest: None } => write!(
                f,
                "`{word}` begins no statement: to let an agent do something write `session \"…\"`, to call a block `do {word}`"
            ),
            BraceBlock => write!(
                f,
                "blocks don't use braces: end the line with `:` and indent what follows"
            ),
            WrongOperator { found, instead } => write!(f, "`{found}` can't stand here: write `{instead}`"),
            MisplacedClause { word, after } => {
                write!(
                    f,
                    "`{word}` without {after}: it must directly follow {after}, at the same column"
                )
            }
            ConditionInWords { words } => write!(
                f,
                "a condition in words stands between stars, for the model to judge: write `**{words}**`"
            ),
            InputAsValue { name } => write!(
                f,
                "an input is a statement of its own, which binds its name: write `input {name}: \"…\"`"
            ),
            ArgumentsWithoutParentheses { block } => {
                write!(f, "arguments go into parentheses: write `do {block}(…)`")
            }
            ParameterWithMore => write!(
                f,
                "a parameter is only a name, without default or type: remove this, and pass the value in each call"
            ),
            TextWithoutQuotes => write!(f, "a text stands in quotes: write `prompt: \"…\"`"),
            ImportWithoutFrom => write!(
                f,
                "`import` only declares a skill, and only with `from \"…\"`: to bring in a program write `use \"…\"`"
            ),
            ExtraWord { word } => write!(f, "`{word}` is a word too many: remove it"),
            NoArithmetic { found } => write!(
                f,
                "there is no `{found}`, numbers can only be added and subtracted: let a session calculate the rest"
            ),
            StageWithVariable { op } => write!(
                f,
                "`{op}` takes no name, the item is called `item`: write `{op}:`"
            ),
            Expected { what, after } => write!(f, "expected {what} after {after}"),
            MissingWord { form } => write!(f, "a word is missing here: write {form}"),
            PropertyOutside { key } => write!(
                f,
                "property `{key}:` belongs to no agent or session: indent it under one; to name a value write `{key} = …`"
            ),
            OptionExpected => write!(
                f,
                "only `option \"label\":` can stand under `choice`: put the statement into one"
            ),
            InputWithoutName => write!(f, "input has no name: write `input name: \"what it is\"`"),
            OutputWithoutName => write!(f, "output has no name: write `output name = …`"),
            ReduceWithoutVariables => {
                write!(
                    f,
                    "`reduce` needs names for accumulator and item: `reduce(acc, item):`"
                )
            }
            UnknownPipeOp(op) => {
                write!(
                    f,
                    "`{op}` is no pipeline operation: use map, filter, pmap, reduce or chunks"
                )
            }
            UnterminatedDiscretion { block: false } => {
                write!(
                    f,
                    "discretion is not closed: add `**`, or use `***` for several lines"
                )
            }
            UnterminatedDiscretion { block: true } => write!(f, "discretion is never closed: add `***`"),
            EmptyDiscretion => write!(
                f,
                "discretion is empty: say between the stars what is to be judged"
            ),
            TabIndent => write!(f, "indentation with a tab: use spaces"),
            BadDedent { first: true } => write!(
                f,
                "this line's indentation differs from that of the lines below it: align it with them"
            ),
            BadDedent { first: false } => write!(
                f,
                "this line's indentation matches no open block: align it with a line above"
            ),
            UnexpectedIndent => {
                write!(
                    f,
                    "unexpected indentation, no line above opens a block here: end that line with `:` or remove the indentation"
                )
            }
            UnclosedBracket { open } => {
                let close = match open {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                };
                write!(f, "`{open}` is never closed: add `{close}`")
            }
            TooDeep => write!(
                f,
                "nested too deeply: move the inner part into a block of its own"
            ),
            MisplacedDuration => write!(f, "a duration can't stand here: write a plain number"),
            ShortDiscretion => write!(
                f,
                "discretion is too short to be judged well: say it in a few words"
            ),
            DiscretionAsValue => {
                write!(
                    f,
                    "a discretion as a value is judged once, here: `if **…**` or a session says more clearly what is meant"
                )
            }
            AnonymousSession => {
                write!(
                    f,
                    "session has a name but no agent: write `let name = session \"…\"`, or name the agent after `:`"
                )
            }
            OddSession(SessionForm::ColonText) => write!(f, "write `session \"…\"` without the colon"),
            OddSession(SessionForm::AgentText) => {
                write!(
                    f,
                    "write the text as a property: `prompt: \"…\"` on an indented line"
                )
            }
            OddSession(SessionForm::TrailingColon) => write!(f, "no `:` is needed after a session's text"),
            OddSession(SessionForm::Modifiers) => {
                write!(f, "write a session's properties on indented lines: `retry: 3`")
            }
            OddSession(SessionForm::NoAgent) => {
                write!(
                    f,
                    "session without an agent: write its prompt on the line, `session \"…\"`"
                )
            }
            OddSession(SessionForm::AsName) => {
                write!(
                    f,
                    "name a session's result in front of it: `let name = session …`"
                )
            }
            BareList => write!(f, "write a list in brackets: `[a, b]`"),
            ComputedName => {
                write!(
                    f,
                    "a computed name becomes a field of a record: write a record or list instead"
                )
            }
            NotInGrammar { word } => write!(f, "`{word}` is understood here but other tools may not know it"),
            DashList => write!(f, "write the list in brackets: `[a, b]`"),
            MinusText => write!(
                f,
                "`-` before a text means nothing: remove it, or write a list in brackets, `[\"a\", \"b\"]`"
            ),
            BlockString => write!(f, "write text over several lines as `\"\"\"…\"\"\"`"),
            MissingComma => write!(f, "a comma is missing between the elements"),
            ElseIf => write!(f, "write `elif`"),
            ComparisonInWords { not: false } => write!(f, "write `==`"),
            ComparisonInWords { not: true } => write!(f, "write `!=`"),
            CatchWithoutAs => write!(f, "write `catch as name:`"),
            InputWithoutText => write!(f, "input has no description: write `input name: \"what it is\"`"),
            OptionNotIndented => write!(f, "indent the options under their `choice`"),
            InputListDefault => write!(
                f,
                "a list after `input` is taken as its default: describe the input with a text"
            ),
            InputModifiers => write!(
                f,
                "of an input's modifiers only `default:` counts, and other tools may not know it"
            ),
            InputModifierIgnored { name } => write!(
                f,
                "`{name}:` is ignored, of an input's modifiers only `default:` counts: remove it"
            ),
            OutputColon { declares: true } => write!(
                f,
                "this only describes the output and binds nothing: bind it with `output name = …`"
            ),
            OutputColon { declares: false } => write!(f, "write `=` between an output's name and value"),
            BareWord => write!(f, "put this value into quotes"),
            InvisibleCharacter(c) => {
                write!(
                    f,
                    "invisible character U+{:04X}: replace it with a space",
                    u32::from(*c)
                )
            }
            EmptyBody => write!(
                f,
                "nothing is in this block: put a statement into it, or remove it"
            ),
            MultiLineDiscretion => write!(f, "use `***` for a discretion over several lines"),
            NonAsciiName => write!(f, "name with letters beyond ASCII: other tools may not accept it"),
            KeywordName { name } => write!(f, "`{name}` is also a keyword: another name reads more clearly"),
            LegacyImport => write!(
                f,
                "`import … from …` is the old way to declare a skill: write `use \"handle/slug\"`"
            ),
            InlineBody => write!(f, "put the body on an indented line of its own"),
            ContextLines => write!(f, "write the context as a record: `context: {{ key: value }}`"),
            LoopOrder => write!(f, "usual order: condition, then `(max: n)`, then `as name`"),
            BracedValue => write!(f, "no braces are needed around the value"),
        }
    }
}
