//! A whole program on the backend that runs an agent: research, reviews side by side, a loop until a verdict, a file that is
//! written; and an agent that tries to get at what no permission grants.

use std::fs;
use std::path::Path;

use mock_model::{Answer, Logged, Rule, Script};
use serde_json::{Value, json};

use super::{Agent, KEY, Stage};

pub(super) const PROGRAM: &str = r#"agent researcher:
  model: sonnet
  prompt: "You are a researcher"

agent reviewer:
  model: haiku
  persist: true
  prompt: "You review texts"
  permissions:
    bash: deny

let notes = session: researcher
  prompt: "Research bees"

parallel:
  style = session: reviewer
    prompt: "Review the style"
    context: notes
  facts = session "Check the facts"
    context: notes

let draft = session "Write a draft, see @.prose/.env"
  context: { notes, style, facts }

loop until **the draft is good enough** (max: 3):
  draft = session "Improve the draft"
    context: draft

output article = session: researcher
  prompt: "Write the article to article.md"
  context: draft
"#;

/// What only `.prose/.env` holds.
pub(super) const SECRET: &str = "a-value-that-nobody-may-see";

/// Where the sessions of the program are among the rules.
const RESEARCH: usize = 2;
const STYLE: usize = 3;
const FACTS: usize = 4;
const DRAFT: usize = 5;

/// Runs the program with `--backend claude` and looks at what the model was asked.
pub fn program(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| script())?;
    let problem = |error: std::io::Error| format!("can't set the stage: {error}");
    let settings = settings(agent)?;
    fs::create_dir(stage.work.join(".prose")).map_err(problem)?;
    for (file, text) in [
        ("article.prose", PROGRAM),
        ("prose.toml", settings.as_str()),
        (".prose/.env", &format!("SERVICE_TOKEN={SECRET}\n")),
    ] {
        fs::write(stage.work.join(file), text).map_err(problem)?;
    }
    let ended = stage.run_prose(&["run", "article.prose", "--backend", "claude"])?;
    let read = |file: &str| fs::read_to_string(stage.work.join(file)).unwrap_or_default();
    expect(ended.success && ended.output == "FINAL article\n", || {
        format!("it ended with {ended:?}")
    })?;
    expect(read("article.md") == "FINAL on disk", || {
        "article.md was not written".to_owned()
    })?;
    expect(read("prose.toml") == settings, || {
        "prose.toml was written".to_owned()
    })?;
    expect(ended.errors.contains("refused: Bash curl"), || {
        format!("the shell was not asked for: {}", ended.errors)
    })?;

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
    let of = |rule: usize| asked.iter().filter(move |request| request.rule == Some(rule));
    let first = |rule: usize| of(rule).next().ok_or_else(|| format!("rule {rule} was not used"));
    for (rule, model, system) in [
        (RESEARCH, "sonnet", "You are a researcher"),
        (STYLE, "haiku", "You review texts"),
    ] {
        let body = &first(rule)?.body;
        expect(
            body["model"].as_str().is_some_and(|name| name.contains(model)),
            || format!("the model is {}", body["model"]),
        )?;
        expect(body["system"].to_string().contains(system), || {
            format!("the system text is {}", body["system"])
        })?;
    }
    let tools = |rule: usize| first(rule).map(|request| names(&request.body["tools"]));
    expect(
        tools(STYLE)?
            == [
                "Edit",
                "Glob",
                "Grep",
                "NotebookEdit",
                "Read",
                "WebFetch",
                "WebSearch",
                "Write",
                "mcp__prose__ask_user",
                "mcp__prose__read_binding",
                "mcp__prose__update_memory",
                "mcp__prose__write_binding",
                "mcp__prose__write_segment",
            ],
        || format!("the reviewer has {:?}", tools(STYLE)),
    )?;
    expect(tools(FACTS)?.contains(&"Bash".to_owned()), || {
        format!("others have {:?}", tools(FACTS))
    })?;
    // By reference: the file is named, and its text is not there until it is read.
    let facts = &first(FACTS)?.body.to_string();
    expect(
        facts.contains("Context (by reference):\\n- notes: ") && !facts.contains("NOTES about bees"),
        || facts.clone(),
    )?;
    let style = of(STYLE)
        .nth(1)
        .map(|request| request.body.to_string())
        .unwrap_or_default();
    expect(style.contains("NOTES about bees"), || {
        format!("the context could not be read: {style}")
    })?;
    let draft = &first(DRAFT)?.body.to_string();
    expect(
        ["notes", "style", "facts"]
            .iter()
            .all(|name| draft.contains(&format!("\\n- {name}: "))),
        || draft.clone(),
    )?;
    expect(of(0).count() == 1 && of(1).count() == 1, || {
        "the judge was not asked twice".to_owned()
    })?;

    leaves_what_it_should(&stage, &ended)
}

/// What every run of the program leaves: the agent's memory, no secret anywhere, and no process.
pub(super) fn leaves_what_it_should(stage: &Stage, ended: &super::stage::Ended) -> Result<(), String> {
    let log = serde_json::to_string(&stage.mock.requests()).map_err(|error| error.to_string())?;
    for (what, text) in [("a key", KEY), ("a secret", SECRET)] {
        expect(!log.contains(text), || format!("{what} was sent"))?;
        expect(!ended.errors.contains(text), || format!("{what} was shown"))?;
        let found = file_with(&stage.work.join(".prose/runs"), text);
        expect(found.is_none(), || format!("{what} is in {found:?}"))?;
    }
    let memory = file_with(&stage.work.join(".prose/runs"), "I remember bees");
    expect(memory.is_some(), || "the memory was not kept".to_owned())?;
    let left = working_in(&stage.work);
    expect(left.is_empty(), || format!("processes are left: {left:?}"))
}

/// The `prose.toml` with which the agent is the backend.
pub(super) fn settings(agent: Agent) -> Result<String, String> {
    let program = agent
        .program()
        .ok_or("the agent isn't there: `cargo xtask agents` brings it")?;
    Ok(format!(
        "[backends.claude]\ncommand = {:?}\n",
        program.display().to_string()
    ))
}

fn script() -> Script {
    let verdict = |decision: &str| {
        let answer = json!({"reason": "as it is", "decision": decision, "confidence": 0.9});
        Rule::any()
            .system("You decide what a running program")
            .answer(Answer::call("StructuredOutput", answer))
    };
    let call = |name: &str, input: Value| Answer::call(name, input);
    let write = |path: &str, content: &str| call("Write", json!({"file_path": path, "content": content}));
    let session = |task: &str, steps: Vec<Answer>| {
        let pattern = format!(r"(?s){task}.*write your output to:\n  (?P<out>\S+)");
        let receipt = Answer::text("Binding written: it\nLocation: ${out}\nSummary: done");
        Rule::user(&pattern).turns(steps.into_iter().chain([receipt]))
    };
    let reviews = Answer::call(
        "Write",
        json!({"file_path": "${memory}", "content": "I remember bees"}),
    )
    .and_call(
        "Write",
        json!({"file_path": "${segment}", "content": "I looked at the notes"}),
    )
    .and_call("Write", json!({"file_path": "${out}", "content": "STYLE fine"}));
    Script::new()
        .rule(verdict("no").nth(1))
        .rule(verdict("yes"))
        .rule(session(
            "Research bees",
            vec![
                call("Grep", json!({"pattern": "nobody-may", "output_mode": "content"})),
                call("Read", json!({"file_path": ".prose/.env"})),
                write("${out}", "NOTES about bees"),
            ],
        ))
        .rule(
            Rule::user(
                r"(?s)Review the style.*\n- notes: (?P<notes>\S+).*anew, whole, to:\n  (?P<memory>\S+).*to:\n  (?P<segment>\S+).*your output to:\n  (?P<out>\S+)",
            )
            .turns([call("Read", json!({"file_path": "${notes}"})), reviews, Answer::text("Summary: reviewed")]),
        )
        .rule(session(
            "Check the facts",
            vec![call("Bash", json!({"command": "curl http://127.0.0.1:9/"})), write("${out}", "FACTS fine")],
        ))
        .rule(session("Write a draft", vec![write("${out}", "DRAFT 1")]))
        .rule(session("Improve the draft", vec![write("${out}", "DRAFT 2")]))
        .rule(session(
            "Write the article",
            vec![write("article.md", "FINAL on disk"), write("prose.toml", "taken over"), write("${out}", "FINAL article")],
        ))
}

pub(super) fn names(tools: &Value) -> Vec<String> {
    let mut names: Vec<String> = tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str().map(ToOwned::to_owned))
        .collect();
    names.sort();
    names
}

/// The first file below a folder that has the text in it.
pub(super) fn file_with(folder: &Path, text: &str) -> Option<std::path::PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => file_with(&path, text),
            false => {
                let bytes = fs::read(&path).ok()?;
                String::from_utf8_lossy(&bytes).contains(text).then_some(path)
            }
        }
    })
}

/// The processes whose folder it is, on systems that tell.
pub(super) fn working_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|at| at.starts_with(folder)))
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

pub(super) fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
