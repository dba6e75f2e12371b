//! The run commands and their arguments, checked before anything happens.

use prose_model::{EffectId, RunId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tower_lsp::jsonrpc::Error;

/// Commands of `workspace/executeCommand`, in the order in which they are advertised.
pub(crate) const COMMANDS: &[&str] = &[
    "prose.run",
    "prose.cancel",
    "prose.resume",
    "prose.answer",
    "prose.runs",
];

/// A checked command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// `prose.run`.
    Run(RunArgs),
    /// `prose.cancel`.
    Cancel(RunRef),
    /// `prose.resume`.
    Resume(ResumeArgs),
    /// `prose.answer`.
    Answer(AnswerArgs),
    /// `prose.runs`.
    Runs,
}

/// Argument of `prose.run`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunArgs {
    /// The program.
    pub(crate) uri: lsp_types::Url,
    /// The version of the text that the person sees; another one is refused.
    #[serde(default)]
    pub(crate) version: Option<i32>,
    /// Values for inputs, by name.
    #[serde(default)]
    pub(crate) inputs: Map<String, Value>,
    /// Backend name.
    #[serde(default)]
    pub(crate) backend: Option<String>,
    /// State backend name.
    #[serde(default)]
    pub(crate) state: Option<String>,
    /// Path of a mock file.
    #[serde(default)]
    pub(crate) mock: Option<std::path::PathBuf>,
    /// US dollars for the run.
    #[serde(default)]
    pub(crate) budget_usd: Option<f64>,
    /// Tokens for the run.
    #[serde(default)]
    pub(crate) budget_tokens: Option<u64>,
}

/// Argument of `prose.resume`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResumeArgs {
    /// The run.
    pub(crate) run_id: RunId,
    /// Go on with what was started although the program's files have changed since.
    #[serde(default)]
    pub(crate) accept_changed: bool,
    /// What failed for a reason that passes (the backend, time, the budget) is asked again.
    #[serde(default)]
    pub(crate) retry_failed: bool,
    /// With `acceptChanged`: the program, where its file has another name than when the run was started.
    #[serde(default)]
    pub(crate) uri: Option<lsp_types::Url>,
    /// US dollars for the whole run, what it has cost so far included.
    #[serde(default)]
    pub(crate) budget_usd: Option<f64>,
    /// Tokens for the whole run, those used so far included.
    #[serde(default)]
    pub(crate) budget_tokens: Option<u64>,
}

/// Argument of `prose.cancel`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunRef {
    /// The run.
    pub(crate) run_id: RunId,
}

/// Argument of `prose.answer`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerArgs {
    /// The run.
    pub(crate) run_id: RunId,
    /// The question, as `prose/input` or the message named it.
    pub(crate) request_id: EffectId,
    /// The answer; text as a rule.
    pub(crate) value: Value,
}

impl Command {
    /// Checks a command's name and arguments.
    pub(crate) fn parse(name: &str, arguments: Vec<Value>) -> Result<Command, Error> {
        Ok(match name {
            "prose.run" => Command::Run(one(name, arguments)?),
            "prose.cancel" => Command::Cancel(one(name, arguments)?),
            "prose.resume" => Command::Resume(one(name, arguments)?),
            "prose.answer" => Command::Answer(one(name, arguments)?),
            "prose.runs" if arguments.is_empty() => Command::Runs,
            "prose.runs" => return Err(Error::invalid_params("prose.runs takes no argument")),
            _ => {
                let known = COMMANDS.join(", ");
                return Err(Error::invalid_params(format!(
                    "unknown command `{name}`; there are {known}"
                )));
            }
        })
    }
}

/// The only argument of a command.
fn one<T: DeserializeOwned>(name: &str, arguments: Vec<Value>) -> Result<T, Error> {
    let count = arguments.len();
    let Ok([argument]) = <[Value; 1]>::try_from(arguments) else {
        return Err(Error::invalid_params(format!(
            "{name} takes one argument, an object; there are {count}"
        )));
    };
    if !argument.is_object() {
        return Err(Error::invalid_params(format!(
            "the argument of {name} must be an object"
        )));
    }
    serde_json::from_value(argument).map_err(|e| Error::invalid_params(format!("argument of {name}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    #[track_caller]
    fn check(name: &str, arguments: Value, want: Expect) {
        let Value::Array(arguments) = arguments else {
            panic!("an array")
        };
        let got = match Command::parse(name, arguments) {
            Ok(command) => format!("{command:?}"),
            Err(error) => error.message.into_owned(),
        };
        want.assert_eq(&got);
    }

    #[test]
    fn good_arguments() {
        check("prose.runs", json!([]), expect!["Runs"]);
        check(
            "prose.cancel",
            json!([{ "runId": "r" }]),
            expect![[r#"Cancel(RunRef { run_id: "r" })"#]],
        );
        check(
            "prose.answer",
            json!([{ "runId": "r", "requestId": "e", "value": "yes" }]),
            expect![[r#"Answer(AnswerArgs { run_id: "r", request_id: "e", value: String("yes") })"#]],
        );
    }

    #[test]
    fn bad_arguments_say_what_is_wrong() {
        check(
            "prose.run",
            json!([]),
            expect!["prose.run takes one argument, an object; there are 0"],
        );
        check(
            "prose.run",
            json!(["file:///a"]),
            expect!["the argument of prose.run must be an object"],
        );
        check(
            "prose.run",
            json!([{}]),
            expect!["argument of prose.run: missing field `uri`"],
        );
        check(
            "prose.run",
            json!([{ "uri": "a.prose" }]),
            expect!["argument of prose.run: relative URL without a base: \"a.prose\""],
        );
        check(
            "prose.run",
            json!([{ "uri": "file:///a", "version": "1" }]),
            expect!["argument of prose.run: invalid type: string \"1\", expected i32"],
        );
        check(
            "prose.run",
            json!([{ "uri": "file:///a", "bakend": "x" }]),
            expect![
                "argument of prose.run: unknown field `bakend`, expected one of `uri`, `version`, `inputs`, `backend`, `state`, `mock`, `budgetUsd`, `budgetTokens`"
            ],
        );
        check("prose.runs", json!([1]), expect!["prose.runs takes no argument"]);
        check(
            "prose.stop",
            json!([]),
            expect![
                "unknown command `prose.stop`; there are prose.run, prose.cancel, prose.resume, prose.answer, prose.runs"
            ],
        );
    }
}
