//! A program whose sessions hand over what they make with the tools of the run.

use std::fs;

use mock_model::{Answer, Logged, Rule, Script};
use serde_json::json;

use super::acp_program::settings as acp_settings;
use super::program::{file_with, names, settings, working_in};
use super::{Agent, Stage};

const PROGRAM: &str = r#"agent critic:
  model: haiku
  persist: true
  prompt: "You review texts"
  permissions:
    read: deny
    write: deny
    bash: deny
    network: deny

let notes = session "Research bees"

output review = session: critic
  prompt: "Review the notes"
  context: notes
"#;

/// How long the value is that one session hands over and another reads.
const LINES: usize = 4_000;

/// Runs the program and looks at what went through the tools.
pub fn tools(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| script(agent))?;
    let problem = |error: std::io::Error| format!("can't set the stage: {error}");
    fs::create_dir(stage.work.join(".prose")).map_err(problem)?;
    fs::write(stage.work.join("main.prose"), PROGRAM).map_err(problem)?;
    let (backend, settings) = match agent {
        Agent::Claude => ("claude", settings(agent)?),
        _ => ("mine", acp_settings(agent)?),
    };
    fs::write(stage.work.join("prose.toml"), settings).map_err(problem)?;
    let ended = stage.run_prose(&["run", "main.prose", "--backend", backend])?;
    let asked: Vec<Logged> = stage.mock.asked();
    if let Some(request) = asked
        .iter()
        .find(|request| request.complaint.is_some() || request.rule.is_none())
    {
        return Err(format!(
            "a request was refused: {:?} {}",
            request.complaint, request.body
        ));
    }
    expect(ended.success && ended.output == "FINE review\n", || {
        format!("it ended with {ended:?}")
    })?;
    expect(!ended.errors.contains("warning"), || ended.errors.clone())?;
    // They need no permission.
    let offered = asked
        .iter()
        .find(|request| request.rule == Some(CRITIC))
        .map(|request| request.body["tools"].clone())
        .unwrap_or_default();
    // Gemini CLI has a tool of that name for people in front of a terminal, and leaves all of that name out.
    let asks = agent != Agent::GeminiAcp;
    let has = |tool: &&str| offered.to_string().contains(tool) || *tool == "ask_user" && !asks;
    expect(TOOLS.iter().all(has), || format!("the critic has {offered}"))?;
    if agent == Agent::Claude {
        let offered = names(&offered);
        let own = offered
            .iter()
            .filter_map(|name| name.strip_prefix("mcp__prose__"));
        expect(own.eq(TOOLS.iter().copied()), || {
            format!("the critic has {offered:?}")
        })?;
    }
    let last = asked
        .last()
        .map(|request| request.body.to_string())
        .unwrap_or_default();
    expect(last.contains("line 3999 of the notes"), || {
        format!("the value that it was given was not told: {last}")
    })?;
    expect(!asks || last.contains("nobody is there to answer"), || {
        format!("that nobody answers was not told: {last}")
    })?;
    let runs = stage.work.join(".prose/runs");
    let whole = notes();
    expect(file_with(&runs, &whole).is_some(), || {
        "the notes were not kept whole".to_owned()
    })?;
    for text in ["I remember bees", "I looked at the notes"] {
        expect(file_with(&runs, text).is_some(), || {
            format!("`{text}` was not kept")
        })?;
    }
    let left = working_in(&stage.work);
    expect(left.is_empty(), || format!("processes are left: {left:?}"))
}

fn notes() -> String {
    let lines = (0..LINES).map(|number| format!("line {number} of the notes\n"));
    lines.collect::<String>().trim_end().to_owned()
}

/// Where the critic is among the rules.
const CRITIC: usize = 2;
/// The tools that it has.
const TOOLS: &[&str] = &[
    "ask_user",
    "read_binding",
    "update_memory",
    "write_binding",
    "write_segment",
];

/// The name by which an agent offers a tool of the run.
pub(super) fn own(agent: Agent, tool: &str) -> String {
    let before = match agent {
        Agent::GeminiAcp => "mcp_prose_",
        Agent::OpencodeAcp => "prose_",
        _ => "mcp__prose__",
    };
    format!("{before}{tool}")
}

fn script(agent: Agent) -> Script {
    let notes = notes();
    // In two pieces, after one that counts for nothing.
    let (first, rest) = notes.split_at(notes.len() / 2);
    let receipt = || Answer::text("Binding written: it\nSummary: done");
    let own = |name: &str| own(agent, name);
    let end = notes.len() - 1_000;
    Script::new()
        .rule(super::cases::title())
        .rule(Rule::user("Research bees").turns([
            Answer::call(own("write_binding"), json!({"value": "not yet"})),
            Answer::call(own("write_binding"), json!({"value": first})),
            Answer::call(own("write_binding"), json!({"value": rest, "append": true})),
            receipt(),
        ]))
        .rule(
            Rule::user("Review the notes").turns([
                Answer::call(own("read_binding"), json!({"name": "notes", "offset": end})),
                Answer::call(own("ask_user"), json!({"question": "Which bees?"})),
                Answer::call(own("update_memory"), json!({"memory": "I remember bees"}))
                    .and_call(own("write_segment"), json!({"segment": "I looked at the notes"}))
                    .and_call(own("write_binding"), json!({"value": "FINE review"})),
                receipt(),
            ]),
        )
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
