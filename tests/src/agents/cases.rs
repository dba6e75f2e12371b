//! What is tried with each agent.

use std::fs;
use std::path::Path;

use mock_model::{Answer, Fault, Logged, Rule, Script};
use serde_json::{Value, json};

use super::acp;
use super::acp_program::acp_program;
use super::handed::tools;
use super::openclaw;
use super::program::program;
use super::{Agent, KEY, Stage};

/// What the agents are asked.
const PLAIN: &str = "Say something plain, please.";
const TOOL: &str = "Write the file, please.";
/// What the model answers.
const PLAIN_ANSWER: &str = "Something plain, from the mock model.";
const TOOL_ANSWER: &str = "The file is there.";
/// What the model has the agent write.
const CONTENT: &str = "written by an agent";

/// One thing that is tried.
pub(super) type Try = fn(Agent) -> Result<(), String>;

/// What is tried with an agent, by name.
pub fn cases(agent: Agent) -> Vec<(String, Try)> {
    let mut all: Vec<(&str, Try)> = match agent {
        Agent::Openclaw => openclaw::CASES.to_vec(),
        _ => vec![("plain", plain), ("tool", tool)],
    };
    // Gemini CLI waits for seconds, OpenCode for as long as the service says.
    if matches!(
        agent,
        Agent::Claude | Agent::Codex | Agent::ClaudeAcp | Agent::CodexAcp
    ) {
        all.push(("busy", busy));
    }
    // What runs on a backend of ours.
    if agent == Agent::Claude {
        all.push(("program", program));
        all.push(("tools", tools));
    }
    if agent.acp_arguments().is_some() {
        all.push(("program", acp_program));
        // Codex has tools of servers in a namespace; calls of them do not get through to it yet.
        if agent != Agent::CodexAcp {
            all.push(("tools", tools));
        }
    }
    all.into_iter()
        .map(|(name, case)| (format!("{}::{name}", agent.name()), case))
        .collect()
}

/// A turn without tools.
fn plain(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| {
        Script::new()
            .rule(title())
            .rule(Rule::user(PLAIN).answer(Answer::text(PLAIN_ANSWER).tokens(100, 7)))
    })?;
    let said = say(&stage, agent, PLAIN)?;
    expect(said.contains(PLAIN_ANSWER), || format!("it said {said:?}"))?;
    let asked = main_requests(&stage)?;
    expect(asked.len() == 1, || {
        format!("the model was asked {} times", asked.len())
    })?;
    let body = asked[0].body.to_string();
    expect(body.contains(PLAIN), || {
        "the prompt is not in the request".to_owned()
    })?;
    expect(asked[0].turn == 0, || "tools were called".to_owned())?;
    no_key(&stage)
}

/// A turn in which the model has a file written.
fn tool(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |work| {
        let (name, input) = write_call(agent, work);
        Script::new().rule(title()).rule(Rule::user(TOOL).turns([
            Answer::text("I write it.").and_call(name, input).tokens(100, 20),
            Answer::text(TOOL_ANSWER).tokens(150, 5),
        ]))
    })?;
    let said = say(&stage, agent, TOOL)?;
    let asked = main_requests(&stage)?;
    let written = fs::read_to_string(stage.work.join("out.txt")).unwrap_or_default();
    expect(written.trim_end() == CONTENT, || {
        let last = asked.last().map(|request| request.body.to_string());
        format!("the file has {written:?}; it said {said:?}; the last request is {last:?}")
    })?;
    expect(said.contains(TOOL_ANSWER), || format!("it said {said:?}"))?;
    let turns: Vec<usize> = asked.iter().map(|request| request.turn).collect();
    expect(turns == [0, 1], || format!("the turns were {turns:?}"))?;
    no_key(&stage)
}

/// A turn whose first requests the service has no time for.
fn busy(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| {
        let answer = Answer::text(PLAIN_ANSWER)
            .first(1, Fault::status_retry_after(429, "0"))
            .first(1, Fault::status(500));
        Script::new().rule(title()).rule(Rule::user(PLAIN).answer(answer))
    })?;
    let said = say(&stage, agent, PLAIN)?;
    expect(said.contains(PLAIN_ANSWER), || format!("it said {said:?}"))?;
    let statuses: Vec<u16> = main_requests(&stage)?
        .iter()
        .map(|request| request.status)
        .collect();
    expect(statuses == [429, 500, 200], || {
        format!("the statuses were {statuses:?}")
    })
}

/// Has the agent answer a prompt; everything it said.
fn say(stage: &Stage, agent: Agent, prompt: &str) -> Result<String, String> {
    if let Some(arguments) = agent.acp_arguments() {
        let turn = acp::turn(stage, arguments, prompt)?;
        expect(turn.stop == "end_turn", || format!("the turn is {turn:?}"))?;
        return Ok(turn.text);
    }
    let arguments = match agent {
        Agent::Claude => vec![
            "-p",
            "--output-format",
            "json",
            "--model",
            "sonnet",
            "--allowedTools",
            "Write",
            "--permission-mode",
            "acceptEdits",
            "--",
            prompt,
        ],
        Agent::Codex => vec![
            "exec",
            "--skip-git-repo-check",
            "--json",
            "--sandbox",
            "workspace-write",
            prompt,
        ],
        Agent::Gemini => vec![
            "--model",
            "gemini-2.5-flash",
            "--approval-mode",
            "yolo",
            "--prompt",
            prompt,
        ],
        _ => vec!["run", "--format", "json", prompt],
    };
    let ended = stage.run(&arguments)?;
    expect(ended.success, || format!("it failed: {ended:?}"))?;
    Ok(ended.output)
}

/// Some agents have a small model name the conversation.
pub(super) fn title() -> Rule {
    Rule {
        tool: None,
        ..Rule::any().system("(?i)title generator|generate a (short )?title|concise.* title")
    }
    .answer(Answer::text("A title"))
}

/// The requests that aren't for a title. All of them must have had an answer in the script.
fn main_requests(stage: &Stage) -> Result<Vec<Logged>, String> {
    let asked = stage.mock.asked();
    if let Some(refused) = asked.iter().find(|request| request.complaint.is_some()) {
        return Err(format!(
            "the mock model refused a request: {:?}",
            refused.complaint
        ));
    }
    Ok(asked
        .into_iter()
        .filter(|request| request.rule == Some(1))
        .collect())
}

/// The tool that writes a file, as each agent names it.
fn write_call(agent: Agent, work: &Path) -> (&'static str, Value) {
    let file = work.join("out.txt");
    match agent {
        Agent::Claude | Agent::ClaudeAcp => ("Write", json!({"file_path": file, "content": CONTENT})),
        Agent::Codex | Agent::CodexAcp => (
            "exec_command",
            json!({"cmd": format!("echo '{CONTENT}' > out.txt")}),
        ),
        Agent::Gemini | Agent::GeminiAcp => ("write_file", json!({"file_path": file, "content": CONTENT})),
        Agent::Opencode | Agent::OpencodeAcp => ("write", json!({"filePath": file, "content": CONTENT})),
        Agent::Openclaw => ("write", json!({"path": file, "content": CONTENT})),
    }
}

/// The log can be shown to anybody.
fn no_key(stage: &Stage) -> Result<(), String> {
    let log = serde_json::to_string(&stage.mock.requests()).map_err(|error| error.to_string())?;
    expect(!log.contains(KEY), || "the key is in the log".to_owned())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
