//! The one table of keywords, properties and their values: what is valid where, with one explanation that completion,
//! hover and the checker's messages share.

/// Iterations after which a loop with neither condition nor `max` is an error (language reference, "Execution").
pub const LOOP_LIMIT: u64 = 1_000;

/// Where a keyword may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeywordRole {
    /// Begins a statement and has no value: `agent`, `use`, `let` ….
    Statement,
    /// Begins a statement or, having a value, an expression: `session`, `parallel` ….
    Construct,
    /// Continues the construct above at its column: `elif`, `catch` ….
    Continuation,
    /// Begins a line inside `choice`.
    Option,
    /// Comes after `|`.
    Pipeline,
    /// Stands inside a statement's line: `as`, `in`, `until` ….
    Clause,
    /// Joins or negates values.
    Operator,
    /// Is a value.
    Constant,
}

/// A keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyword {
    /// The word.
    pub word: &'static str,
    /// Where it may stand.
    pub role: KeywordRole,
    /// A pattern of its use, for one line.
    pub usage: &'static str,
    /// What it does, Markdown.
    pub doc: &'static str,
}

/// A word that a property or modifier accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The word; without quotes.
    pub word: &'static str,
    /// What it means, Markdown.
    pub doc: &'static str,
}

/// A property of an agent or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property {
    /// The word before the colon.
    pub key: &'static str,
    /// Whether an agent may have it.
    pub agent: bool,
    /// Whether a session may have it.
    pub session: bool,
    /// Words it accepts; other values may be possible, too.
    pub values: &'static [Word],
    /// A pattern of its use, for one line.
    pub usage: &'static str,
    /// What it does, Markdown.
    pub doc: &'static str,
}

/// What has modifiers in parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModifierOwner {
    /// `parallel (…):`
    Parallel,
    /// `parallel for x in xs (…):`
    ParallelFor,
    /// `loop (…):`
    Loop,
    /// `block f(a) (…):`
    Block,
    /// `session "…" (…)`
    Session,
}

/// A modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modifier {
    /// The word before the colon; none for the join strategy, which is written alone.
    pub key: Option<&'static str>,
    /// What it belongs to.
    pub owners: &'static [ModifierOwner],
    /// Words it accepts, in quotes.
    pub values: &'static [Word],
    /// A pattern of its use, for one line.
    pub usage: &'static str,
    /// What it does, Markdown.
    pub doc: &'static str,
}

/// The keyword with this word.
pub fn keyword(word: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|it| it.word == word)
}

/// The property with this key.
pub fn property(key: &str) -> Option<&'static Property> {
    PROPERTIES.iter().find(|it| it.key == key)
}

/// The key of `permissions:` with this word.
pub fn permission(key: &str) -> Option<&'static Word> {
    PERMISSIONS.iter().find(|it| it.word == key)
}

/// The modifier with this key.
pub fn modifier(owner: ModifierOwner, key: Option<&str>) -> Option<&'static Modifier> {
    MODIFIERS
        .iter()
        .find(|it| it.key == key && it.owners.contains(&owner))
}

const fn keyword_entry(
    word: &'static str,
    role: KeywordRole,
    usage: &'static str,
    doc: &'static str,
) -> Keyword {
    Keyword {
        word,
        role,
        usage,
        doc,
    }
}

const fn value(word: &'static str, doc: &'static str) -> Word {
    Word { word, doc }
}

use KeywordRole::{
    Clause, Constant, Construct, Continuation, Operator, Option as OptionRole, Pipeline, Statement,
};

/// Every keyword.
pub static KEYWORDS: &[Keyword] = &[
    keyword_entry(
        "agent",
        Statement,
        "agent NAME:",
        "Declares an agent: a named set of defaults (model, prompt, memory, permissions) for the sessions that name it.",
    ),
    keyword_entry(
        "block",
        Statement,
        "block NAME(PARAMETERS):",
        "Declares a block: statements that `do NAME(…)` runs. A block may be used above its declaration and may call itself.",
    ),
    keyword_entry(
        "session",
        Construct,
        "session \"TASK\"  ·  session: AGENT",
        "Runs one agent session on a task. Its value is what the session wrote. With `session: AGENT` the agent's properties \
         are the defaults; a persistent agent starts with empty memory.",
    ),
    keyword_entry(
        "resume",
        Construct,
        "resume: AGENT",
        "Runs a session of a persistent agent that goes on with the agent's memory and updates it.",
    ),
    keyword_entry(
        "let",
        Statement,
        "let NAME = VALUE",
        "Binds a name that may be assigned again. `let { a, b } = …` takes keys of a record.",
    ),
    keyword_entry(
        "const",
        Statement,
        "const NAME = VALUE",
        "Binds a name that can't be assigned again.",
    ),
    keyword_entry(
        "input",
        Statement,
        "input NAME: \"PROMPT\"",
        "Binds a value from outside. One that was not supplied is asked for where the program meets it. A `**…**` prompt is \
         put into a question by the judge.",
    ),
    keyword_entry(
        "output",
        Statement,
        "output NAME = VALUE",
        "Binds a name and registers it as a result of the program. `output VALUE` returns the value from the nearest block.",
    ),
    keyword_entry(
        "use",
        Statement,
        "use \"PROGRAM\" as NAME",
        "Brings in another program: a local `.prose` file, `handle/slug` or a URL. Remote ones need approval before each run. \
         Call it as `NAME(input: value)`.",
    ),
    keyword_entry(
        "import",
        Statement,
        "import \"SKILL\" from \"SOURCE\"",
        "Legacy: declares where a skill comes from.",
    ),
    keyword_entry(
        "do",
        Construct,
        "do BLOCK(ARGUMENTS)  ·  do:",
        "Runs a block with arguments. `do:` runs the statements below in order; its value is that of the last one.",
    ),
    keyword_entry(
        "parallel",
        Construct,
        "parallel:  ·  parallel for ITEM in LIST:",
        "Runs all branches at once and waits as the join strategy says (`\"all\"`, `\"first\"`, `\"any\"`). `parallel for` does so \
         for each item of a list.",
    ),
    keyword_entry(
        "for",
        Construct,
        "for ITEM, INDEX in LIST:",
        "Runs the body for each item in order. The second name counts from 0.",
    ),
    keyword_entry(
        "repeat",
        Construct,
        "repeat COUNT as INDEX:",
        "Runs the body a fixed number of times.",
    ),
    keyword_entry(
        "loop",
        Construct,
        "loop until **CONDITION** (max: N):",
        "Runs the body until or while a condition holds. It is tested before each iteration. Without `max` a safety limit \
         of 1,000 iterations applies.",
    ),
    keyword_entry(
        "if",
        Construct,
        "if **CONDITION**:",
        "Runs the body when the condition holds. `**…**` is decided by the judge, other conditions by the engine.",
    ),
    keyword_entry(
        "choice",
        Construct,
        "choice **CRITERIA**:",
        "Lets the judge pick exactly one of the options below.",
    ),
    keyword_entry(
        "try",
        Construct,
        "try:",
        "Runs the body; `catch` handles an error of it, `finally` runs in every case.",
    ),
    keyword_entry(
        "throw",
        Statement,
        "throw \"MESSAGE\"",
        "Raises an error. Alone inside `catch` it raises the caught one again.",
    ),
    keyword_entry(
        "return",
        Statement,
        "return VALUE",
        "Leaves the nearest block with a value. The grammar's own form is `output VALUE`.",
    ),
    keyword_entry(
        "break",
        Statement,
        "break",
        "Leaves the nearest loop. The grammar's own form is a condition on the loop.",
    ),
    keyword_entry(
        "assert",
        Statement,
        "assert CONDITION: \"MESSAGE\"",
        "Raises an error when the condition is false. The grammar's own form is `if` with `throw`.",
    ),
    keyword_entry(
        "elif",
        Continuation,
        "elif **CONDITION**:",
        "Another condition, tried when those above did not hold.",
    ),
    keyword_entry(
        "else",
        Continuation,
        "else:",
        "Runs when no condition above held.",
    ),
    keyword_entry(
        "catch",
        Continuation,
        "catch as NAME:",
        "Handles an error of the `try` body. `NAME.message`, `.kind`, `.statement` and `.attempts` describe it. \
         Cancellation is never caught.",
    ),
    keyword_entry(
        "finally",
        Continuation,
        "finally:",
        "Runs after the body and its `catch` in every case, also on cancellation.",
    ),
    keyword_entry(
        "option",
        OptionRole,
        "option \"LABEL\":",
        "One of the options of a `choice`.",
    ),
    keyword_entry(
        "map",
        Pipeline,
        "| map:",
        "Gives the value of the body for each item, in order. The item is `item`.",
    ),
    keyword_entry(
        "filter",
        Pipeline,
        "| filter:",
        "Keeps the items for which the body gives a true value. The item is `item`.",
    ),
    keyword_entry(
        "pmap",
        Pipeline,
        "| pmap:",
        "As `map`, all items at once. The item is `item`.",
    ),
    keyword_entry(
        "reduce",
        Pipeline,
        "| reduce(ACC, ITEM):",
        "Folds the list into one value, starting from its first item.",
    ),
    keyword_entry(
        "chunks",
        Pipeline,
        "| chunks(N)",
        "Cuts the list into lists of at most N items.",
    ),
    keyword_entry(
        "as",
        Clause,
        "… as NAME",
        "Names an import, a loop's index or a caught error.",
    ),
    keyword_entry(
        "in",
        Clause,
        "for ITEM in LIST",
        "Stands between a loop's variables and its list.",
    ),
    keyword_entry(
        "from",
        Clause,
        "import \"SKILL\" from \"SOURCE\"",
        "Legacy: the source of a skill.",
    ),
    keyword_entry(
        "until",
        Clause,
        "loop until **CONDITION**:",
        "Ends the loop when the condition holds.",
    ),
    keyword_entry(
        "while",
        Clause,
        "loop while **CONDITION**:",
        "Ends the loop when the condition no longer holds.",
    ),
    keyword_entry(
        "and",
        Operator,
        "A and B",
        "True when both sides are. A side that needs no model is evaluated first.",
    ),
    keyword_entry(
        "or",
        Operator,
        "A or B",
        "True when one side is. A side that needs no model is evaluated first.",
    ),
    keyword_entry("not", Operator, "not A", "True when the value is not."),
    keyword_entry("true", Constant, "true", "The true value."),
    keyword_entry("false", Constant, "false", "The false value."),
    keyword_entry("null", Constant, "null", "No value."),
];

/// Model names that every backend maps to one of its models.
pub static MODELS: &[Word] = &[
    value("haiku", "The fast one, for simple tasks."),
    value("sonnet", "The balanced one, for most tasks."),
    value("opus", "The strong one, for hard tasks."),
];

/// Values of a key in `permissions:`; `read`, `write` and `execute` also take a list of glob patterns.
pub static PERMISSION_VALUES: &[Word] = &[
    value("allow", "Granted."),
    value("deny", "Refused."),
    value("prompt", "A person is asked each time."),
];

/// What counts for a key of `permissions:` that the program says nothing about, by key.
pub static PERMISSION_DEFAULTS: &[Word] = &[
    value("read", "files of the workspace"),
    value("write", "files of the workspace"),
    value("execute", "a person is asked"),
    value("bash", "a person is asked about each command"),
    value("network", "a person is asked about each host"),
];

/// The kinds of backend whose own program uses the tools: it is told the rules, and keeps them in its own way.
pub static OWN_TOOLS: &[&str] = &["claude", "acp", "openclaw"];

/// Keys of `permissions:`.
pub static PERMISSIONS: &[Word] = &[
    value(
        "read",
        "Files that may be read: `allow`, `deny`, `prompt` or a list of glob patterns.",
    ),
    value(
        "write",
        "Files that may be written: `allow`, `deny`, `prompt` or a list of glob patterns.",
    ),
    value(
        "execute",
        "Files that may be executed: `allow`, `deny`, `prompt` or a list of glob patterns.",
    ),
    value("bash", "Shell commands: `allow`, `deny` or `prompt`."),
    value("network", "Access to the network: `allow`, `deny` or `prompt`."),
];

/// Every property.
pub static PROPERTIES: &[Property] = &[
    Property {
        key: "model",
        agent: true,
        session: true,
        values: MODELS,
        usage: "model: sonnet",
        doc: "The model. A session's own replaces its agent's. Names map to models of the backend in `prose.toml`.",
    },
    Property {
        key: "prompt",
        agent: true,
        session: true,
        values: &[],
        usage: "prompt: \"TEXT\"",
        doc: "Of a session: the task. Of an agent: the task of sessions that have none, else their system part. \
              `{name}` inserts a value.",
    },
    Property {
        key: "context",
        agent: true,
        session: true,
        values: &[],
        usage: "context: NAME  ·  context: [A, B]  ·  context: { A, B }",
        doc: "Values the session may read, given by reference. Without it a session gets only what its prompt inserts; \
              `context: []` says so aloud.",
    },
    Property {
        key: "persist",
        agent: true,
        session: false,
        values: &[
            value("true", "Memory that lasts for the run."),
            value(
                "project",
                "Memory in the project's `.prose/agents/`, for later runs too.",
            ),
            value("user", "Memory in `~/.prose/agents/`, for all projects."),
        ],
        usage: "persist: true",
        doc: "Gives the agent memory, which `resume:` goes on with. A string is a folder inside the workspace or `~/.prose`.",
    },
    Property {
        key: "retry",
        agent: true,
        session: true,
        values: &[],
        usage: "retry: 3",
        doc: "How often a failed session is tried again after the first attempt.",
    },
    Property {
        key: "backoff",
        agent: true,
        session: true,
        values: &[
            value("none", "No wait between tries."),
            value("linear", "One second between tries."),
            value("exponential", "1, 2, 4 … seconds, at most 60."),
        ],
        usage: "backoff: exponential",
        doc: "The wait between tries; a number is milliseconds.",
    },
    Property {
        key: "skills",
        agent: true,
        session: true,
        values: &[],
        usage: "skills: [\"NAME\"]",
        doc: "Skills that the session is told of and that the backend may load.",
    },
    Property {
        key: "permissions",
        agent: true,
        session: true,
        values: &[],
        usage: "permissions:",
        doc: "What a session may do, one key a line: `read`, `write`, `execute`, `bash`, `network`.",
    },
];

/// Every modifier.
pub static MODIFIERS: &[Modifier] = &[
    Modifier {
        key: None,
        owners: &[ModifierOwner::Parallel, ModifierOwner::ParallelFor],
        values: &[
            value(
                "all",
                "Waits for all branches. This is so without a strategy, too.",
            ),
            value("first", "The first completion decides; the others are cancelled."),
            value(
                "any",
                "The first success, or `count` successes; failures are tolerated while that is possible.",
            ),
        ],
        usage: "parallel (\"first\"):",
        doc: "The join strategy: when the construct is done.",
    },
    Modifier {
        key: Some("on-fail"),
        owners: &[ModifierOwner::Parallel, ModifierOwner::ParallelFor],
        values: &[
            value(
                "fail-fast",
                "The first failure cancels the rest and is raised. This is so without a policy, too.",
            ),
            value(
                "continue",
                "All run; failures are bound as error values and reported once.",
            ),
            value("ignore", "As `continue`, without the report."),
        ],
        usage: "parallel (on-fail: \"continue\"):",
        doc: "What a failed branch does.",
    },
    Modifier {
        key: Some("count"),
        owners: &[ModifierOwner::Parallel, ModifierOwner::ParallelFor],
        values: &[],
        usage: "parallel (\"any\", count: 2):",
        doc: "How many successes `\"any\"` waits for.",
    },
    Modifier {
        key: Some("max"),
        owners: &[ModifierOwner::Parallel, ModifierOwner::ParallelFor],
        values: &[],
        usage: "parallel for x in xs (max: 3):",
        doc: "How many run at once.",
    },
    Modifier {
        key: Some("max"),
        owners: &[ModifierOwner::Loop],
        values: &[],
        usage: "loop until **done** (max: 5):",
        doc: "The most iterations; reaching it ends the loop without an error.",
    },
    Modifier {
        key: Some("max_depth"),
        owners: &[ModifierOwner::Block],
        values: &[],
        usage: "block f(a) (max_depth: 50):",
        doc: "How deep the block may call itself; 100 where nothing is said.",
    },
    Modifier {
        key: Some("retry"),
        owners: &[ModifierOwner::Session],
        values: &[],
        usage: "session \"…\" (retry: 3)",
        doc: "As the property `retry:`.",
    },
];

/// Keys of a caught error.
pub static ERROR_KEYS: &[Word] = &[
    value("message", "What went wrong."),
    value(
        "kind",
        "The kind of failure: `thrown`, `backend`, `timeout`, `permission` ….",
    ),
    value("statement", "The statement that failed."),
    value("attempts", "How many times it was tried."),
];

/// Keys that every list has.
pub static LIST_KEYS: &[Word] = &[
    value("length", "How many items there are."),
    value("count", "How many items there are."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_explained() {
        for (i, it) in KEYWORDS.iter().enumerate() {
            assert!(it.doc.ends_with('.'), "{}", it.word);
            assert!(
                KEYWORDS[..i].iter().all(|other| other.word != it.word),
                "{}",
                it.word
            );
        }
        for (i, it) in PROPERTIES.iter().enumerate() {
            assert!(it.doc.ends_with('.') && (it.agent || it.session), "{}", it.key);
            assert!(
                PROPERTIES[..i].iter().all(|other| other.key != it.key),
                "{}",
                it.key
            );
        }
    }
}
