//! The same program on agents that speak the Agent Client Protocol, through the backend of that name.

use std::fs;

use mock_model::{Answer, Logged, Rule, Script};
use serde_json::{Value, json};

use super::program::{PROGRAM, SECRET, expect, leaves_what_it_should};
use super::{Agent, Stage};

/// Where the sessions of the program are among the rules.
const RESEARCH: usize = 3;
const STYLE: usize = 4;
const FACTS: usize = 5;
const DRAFT: usize = 6;

/// Runs the program with `--backend mine` and looks at what the model was asked.
pub fn acp_program(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| script(agent))?;
    let problem = |error: std::io::Error| format!("can't set the stage: {error}");
    let [sonnet, haiku] = models(agent);
    let settings = settings(agent)?;
    fs::create_dir(stage.work.join(".prose")).map_err(problem)?;
    for (file, text) in [
        ("article.prose", PROGRAM),
        ("prose.toml", settings.as_str()),
        (".prose/.env", &format!("SERVICE_TOKEN={SECRET}\n")),
    ] {
        fs::write(stage.work.join(file), text).map_err(problem)?;
    }
    let ended = stage.run_prose(&["run", "article.prose", "--backend", "mine"])?;
    let read = |file: &str| fs::read_to_string(stage.work.join(file)).unwrap_or_default();
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
    expect(ended.success && ended.output == "FINAL article\n", || {
        let last = asked.last().map(|request| request.body.to_string());
        format!("it ended with {ended:?}; the last request is {last:?}")
    })?;
    expect(agent == Agent::CodexAcp || ended.errors.contains("curl"), || {
        format!("the shell was not asked for: {}", ended.errors)
    })?;
    expect(read("article.md").trim_end() == "FINAL on disk", || {
        "article.md was not written".to_owned()
    })?;
    expect(read("prose.toml") == settings, || {
        "prose.toml was written".to_owned()
    })?;
    // By reference: the file is named, and its text is not there until it is read.
    let of = |rule: usize| asked.iter().filter(move |request| request.rule == Some(rule));
    let first = |rule: usize| of(rule).next().ok_or_else(|| format!("rule {rule} was not used"));
    for (rule, model, system) in [
        (RESEARCH, sonnet, "You are a researcher\\n\\n"),
        (STYLE, haiku, "You review texts\\n\\n"),
    ] {
        let request = first(rule)?;
        let model = model.rsplit('/').next().unwrap_or(model);
        // Gemini's service is told the model by the path.
        let named = format!("{} {}", request.path, request.body["model"]);
        expect(named.contains(model), || {
            format!("the model is in {named} and not {model}")
        })?;
        expect(request.body.to_string().contains(system), || {
            format!("the request is {}", request.body)
        })?;
    }
    let facts = &first(FACTS)?.body.to_string();
    expect(
        facts.contains("Context (by reference):\\n- notes: ") && !facts.contains("NOTES about bees"),
        || facts.clone(),
    )?;
    let style = of(STYLE).nth(1).map(|request| request.body.to_string());
    expect(
        style
            .as_deref()
            .is_some_and(|body| body.contains("NOTES about bees")),
        || format!("the context could not be read: {style:?}"),
    )?;
    let draft = &first(DRAFT)?.body.to_string();
    expect(
        ["notes", "style", "facts"]
            .iter()
            .all(|name| draft.contains(&format!("\\n- {name}: "))),
        || draft.clone(),
    )?;
    expect(of(1).count() == 1 && of(2).count() == 1, || {
        "the judge was not asked twice".to_owned()
    })?;

    leaves_what_it_should(&stage, &ended)
}

/// The `prose.toml` with which the agent is the backend `mine`.
pub(super) fn settings(agent: Agent) -> Result<String, String> {
    let program = agent
        .program()
        .ok_or("the agent isn't there: `cargo xtask agents` brings it")?;
    let [sonnet, haiku] = models(agent);
    let key = match agent {
        Agent::CodexAcp => "api_key_env = \"MOCK_KEY\"\n",
        _ => "",
    };
    Ok(format!(
        "[backends.mine]\nkind = \"acp\"\ncommand = {:?}\n{key}[models.mine]\nsonnet = \"{sonnet}\"\nhaiku = \"{haiku}\"\n\
         default = \"{sonnet}\"\n",
        program.display().to_string()
    ))
}

/// What the program's `sonnet` and `haiku` are with an agent.
fn models(agent: Agent) -> [&'static str; 2] {
    match agent {
        Agent::CodexAcp => ["gpt-5.6-terra", "gpt-5.6-luna"],
        Agent::GeminiAcp => ["gemini-2.5-pro", "gemini-3.5-flash-lite"],
        Agent::OpencodeAcp => ["mock/mock", "mock/small"],
        _ => ["sonnet", "haiku"],
    }
}

fn script(agent: Agent) -> Script {
    let verdict = |decision: &str| {
        let answer = json!({"reason": "as it is", "decision": decision, "confidence": 0.9});
        Rule::user("You decide what a running program").answer(Answer::text(answer.to_string()))
    };
    let write = |path: &str, content: &str| call(agent, Act::Write(path, content));
    let session = |task: &str, steps: Vec<(&'static str, Value)>| {
        let pattern = format!(r"(?s){task}.*write your output to:\n  (?P<out>\S+)");
        let receipt = Answer::text("Binding written: it\nLocation: ${out}\nSummary: done");
        let steps = steps
            .into_iter()
            .map(|(name, input)| Answer::call(name, input).tokens(100, 10));
        Rule::user(&pattern).turns(steps.chain([receipt.tokens(120, 5)]))
    };
    let mut research = vec![write("${out}", "NOTES about bees")];
    let mut facts = vec![write("${out}", "FACTS fine")];
    let mut article = vec![
        write("article.md", "FINAL on disk"),
        write("${out}", "FINAL article"),
    ];
    // Codex ends its turn at a no.
    if agent != Agent::CodexAcp {
        research.insert(0, call(agent, Act::Read(".prose/.env")));
        facts.insert(0, call(agent, Act::Run("curl http://127.0.0.1:9/")));
        article.insert(1, write("prose.toml", "taken over"));
    }
    Script::new()
        .rule(super::cases::title())
        .rule(verdict("no").nth(1))
        .rule(verdict("yes"))
        .rule(session("Research bees", research))
        .rule({
            let steps = [
                call(agent, Act::Read("${notes}")),
                call(agent, Act::Write("${memory}", "I remember bees")),
                call(agent, Act::Write("${segment}", "I looked at the notes")),
                call(agent, Act::Write("${out}", "STYLE fine")),
            ];
            let steps = steps.into_iter().map(|(name, input)| Answer::call(name, input));
            Rule::user(
                r"(?s)Review the style.*\n- notes: (?P<notes>\S+).*anew, whole, to:\n  (?P<memory>\S+).*to:\n  (?P<segment>\S+).*your output to:\n  (?P<out>\S+)",
            )
            .turns(steps.chain([Answer::text("Summary: reviewed")]))
        })
        .rule(session("Check the facts", facts))
        .rule(session("Write a draft", vec![write("${out}", "DRAFT 1")]))
        .rule(session("Improve the draft", vec![write("${out}", "DRAFT 2")]))
        .rule(session("Write the article", article))
}

enum Act<'a> {
    Read(&'a str),
    Write(&'a str, &'a str),
    Run(&'a str),
}

/// A call of the tool that does it, as each agent has it.
fn call(agent: Agent, act: Act<'_>) -> (&'static str, Value) {
    match (agent, act) {
        (Agent::CodexAcp, Act::Read(path)) => ("exec_command", json!({"cmd": format!("cat {path}")})),
        (Agent::CodexAcp, Act::Write(path, content)) => {
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch");
            (
                "exec_command",
                json!({"cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF")}),
            )
        }
        (Agent::CodexAcp, Act::Run(command)) => ("exec_command", json!({"cmd": command})),
        (Agent::GeminiAcp, Act::Read(path)) => ("read_file", json!({"file_path": path})),
        (Agent::GeminiAcp, Act::Write(path, content)) => {
            ("write_file", json!({"file_path": path, "content": content}))
        }
        (Agent::GeminiAcp, Act::Run(command)) => ("run_shell_command", json!({"command": command})),
        (Agent::OpencodeAcp, Act::Read(path)) => ("read", json!({"filePath": path})),
        (Agent::OpencodeAcp, Act::Write(path, content)) => {
            ("write", json!({"filePath": path, "content": content}))
        }
        (Agent::OpencodeAcp, Act::Run(command)) => {
            ("bash", json!({"command": command, "description": "Runs it"}))
        }
        (_, Act::Read(path)) => ("Read", json!({"file_path": path})),
        (_, Act::Write(path, content)) => ("Write", json!({"file_path": path, "content": content})),
        (_, Act::Run(command)) => ("Bash", json!({"command": command})),
    }
}
