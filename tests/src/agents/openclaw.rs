//! The same program on a real gateway of OpenClaw, through the backend of that name; a run that is killed while the gateway
//! works for it; and what a gateway lets its agents do that no permission grants.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mock_model::{Answer, Logged, Rule, Script};
use serde_json::{Value, json};

use super::program::{PROGRAM, SECRET, expect, file_with, leaves_what_it_should};
use super::{Agent, KEY, Stage};

/// What lets in at the gateway.
const TOKEN: &str = "gateway-token-0000-1111-2222";
/// How long a gateway may take until it is ready; only a hang takes longer.
const LIMIT: Duration = Duration::from_secs(180);

/// What is tried.
pub(super) const CASES: [(&str, super::cases::Try); 5] = [
    ("program", program),
    ("killed", killed),
    ("cancelled", cancelled),
    ("permissions", permissions),
    ("without-gateway", without_gateway),
];

/// Where the sessions of the program are among the rules.
const RESEARCH: usize = 2;
const STYLE: usize = 3;
const FACTS: usize = 4;
const DRAFT: usize = 5;

/// A gateway that runs.
struct Gateway {
    child: Child,
    port: u16,
}

impl Gateway {
    /// Starts one. It gives up when the machine is busy for more than a few seconds, so that it is tried a few times.
    fn start(stage: &Stage) -> Result<Gateway, String> {
        let again = |_| Gateway::start_once(stage);
        Gateway::start_once(stage).or_else(again).or_else(again)
    }

    fn start_once(stage: &Stage) -> Result<Gateway, String> {
        let problem = |error: std::io::Error| format!("can't start the gateway: {error}");
        // Free now; somebody else would have to take it within a moment.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| Ok(listener.local_addr()?.port()))
            .map_err(problem)?;
        stage
            .write_json(".openclaw/openclaw.json", &settings(stage, port))
            .map_err(problem)?;
        let log = stage.home.join("gateway.log");
        let mut command = stage.command(&["gateway", "run"])?;
        let output = File::create(&log).map_err(problem)?;
        command
            .current_dir(&stage.home)
            .stdout(output.try_clone().map_err(problem)?)
            .stderr(output);
        let child = command.spawn().map_err(problem)?;
        let mut gateway = Gateway { child, port };
        let begun = Instant::now();
        while !gateway.is_ready() {
            let ended = gateway.child.try_wait().map_err(problem)?;
            if ended.is_some() || begun.elapsed() > LIMIT {
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("the gateway does not get ready ({ended:?}): {log}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(gateway)
    }

    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(process) = prose_agents::process::identify(self.child.id()) {
            prose_agents::process::end(&[process], Duration::from_secs(5));
        }
        // It is gone now, or can't be waited for.
        let _ = self.child.try_wait();
    }
}

/// The gateway's `openclaw.json`.
fn settings(stage: &Stage, port: u16) -> Value {
    let model = |id: &str, price: u64| {
        json!({
            "id": id, "name": id, "input": ["text"], "contextWindow": 200_000, "maxTokens": 8192,
            "cost": {"input": price, "output": 2 * price, "cacheRead": 0, "cacheWrite": 0},
        })
    };
    json!({
        "gateway": {
            "mode": "local", "bind": "loopback", "port": port,
            "auth": {"mode": "token", "token": TOKEN}, "controlUi": {"enabled": false},
        },
        "update": {"checkOnStart": false},
        "telemetry": {"enabled": false},
        "plugins": {"enabled": false},
        "agents": {"defaults": {
            "workspace": stage.home.join("agent"), "skipBootstrap": true, "contextInjection": "never", "skills": [],
            "model": {"primary": "mock/a", "fallbacks": []},
        }},
        "tools": {"allow": ["read", "write", "edit", "ls", "exec"], "toolSearch": false},
        "models": {"mode": "replace", "catalogRefresh": {"enabled": false}, "providers": {"mock": {
            "baseUrl": format!("{}/v1", stage.mock.url()), "apiKey": KEY, "api": "openai-completions",
            "models": [model("a", 1), model("b", 10)],
        }}},
    })
}

/// Puts a program and its settings in the folder that is worked in.
fn prepare(stage: &Stage, gateway: &Gateway, program: &str) -> Result<String, String> {
    let problem = |error: std::io::Error| format!("can't set the stage: {error}");
    let settings = format!(
        "[backends.openclaw]\nbase_url = \"ws://127.0.0.1:{}\"\napi_key_env = \"GATEWAY_TOKEN\"\n\
         [models.openclaw]\nsonnet = \"mock/a\"\nhaiku = \"mock/b\"\n",
        gateway.port
    );
    fs::create_dir(stage.work.join(".prose")).map_err(problem)?;
    for (file, text) in [
        ("article.prose", program),
        ("prose.toml", settings.as_str()),
        (
            ".prose/.env",
            &format!("SERVICE_TOKEN={SECRET}\nGATEWAY_TOKEN={TOKEN}\n"),
        ),
    ] {
        fs::write(stage.work.join(file), text).map_err(problem)?;
    }
    Ok(settings)
}

/// The requests that the model was sent for the program; none of them refused. The gateway's own assistant may look after
/// sessions that have changed, in a session of its own.
fn asked(stage: &Stage) -> Result<Vec<Logged>, String> {
    let mut asked = stage.mock.asked();
    asked.retain(|request| !request.body.to_string().contains("session=agent:main:main "));
    match asked
        .iter()
        .find(|request| request.complaint.is_some() || request.rule.is_none())
    {
        Some(request) => Err(format!(
            "a request was refused: {:?} {}",
            request.complaint, request.body
        )),
        None => Ok(asked),
    }
}

/// Runs the program with `--backend openclaw` and looks at what the model was asked.
fn program(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| script())?;
    let gateway = Gateway::start(&stage)?;
    let settings = prepare(&stage, &gateway, PROGRAM)?;
    let ended = stage.run_prose(&["run", "article.prose", "--backend", "openclaw"])?;
    let asked = asked(&stage)?;
    expect(ended.success && ended.output == "FINAL article\n", || {
        let last = asked.last().map(|request| request.body.to_string());
        format!("it ended with {ended:?}; the last request is {last:?}")
    })?;
    let read = |file: &str| fs::read_to_string(stage.work.join(file)).unwrap_or_default();
    expect(read("article.md") == "FINAL on disk", || {
        "article.md was not written".to_owned()
    })?;
    expect(read("prose.toml") == settings, || {
        "prose.toml was written".to_owned()
    })?;
    // Nobody was there to be asked, and the agent was told so.
    expect(ended.errors.contains("refused: exec wc -l"), || {
        format!("the command was not asked for: {}", ended.errors)
    })?;
    let of = |rule: usize| asked.iter().filter(move |request| request.rule == Some(rule));
    let first = |rule: usize| of(rule).next().ok_or_else(|| format!("rule {rule} was not used"));
    let nth = |rule: usize, nth: usize| of(rule).nth(nth).map(|request| request.body.to_string());
    for (rule, model, system) in [
        (RESEARCH, "a", "You are a researcher"),
        (STYLE, "b", "You review texts"),
    ] {
        let body = &first(rule)?.body;
        expect(body["model"] == model, || {
            format!("the model is {}", body["model"])
        })?;
        expect(body["messages"][0].to_string().contains(system), || {
            format!("the system text is {}", body["messages"][0])
        })?;
    }
    expect(
        nth(FACTS, 1).is_some_and(|body| body.contains("user-denied")),
        || format!("the refusal was not told: {:?}", nth(FACTS, 1)),
    )?;
    // By reference: the file is named, and its text is not there until it is read.
    let facts = &first(FACTS)?.body.to_string();
    expect(
        facts.contains("Context (by reference):\\n- notes: ") && !facts.contains("NOTES about bees"),
        || facts.clone(),
    )?;
    expect(
        nth(STYLE, 1).is_some_and(|body| body.contains("NOTES about bees")),
        || format!("the context could not be read: {:?}", nth(STYLE, 1)),
    )?;
    let draft = &first(DRAFT)?.body.to_string();
    expect(
        ["notes", "style", "facts"]
            .iter()
            .all(|name| draft.contains(&format!("\\n- {name}: "))),
        || draft.clone(),
    )?;
    // The judge has no tools, and is asked once each time.
    expect(of(0).count() == 1 && of(1).count() == 1, || {
        "the judge was not asked twice".to_owned()
    })?;
    expect(first(0)?.body["tools"].is_null(), || {
        format!(
            "the judge has {}",
            first(0).map_or(&Value::Null, |request| &request.body["tools"])
        )
    })?;
    // Money comes from the gateway.
    let outcome = file_with(&stage.work.join(".prose/runs"), "\"cost_usd\":0.");
    expect(outcome.is_some(), || "nothing is said of money".to_owned())?;
    no_token(&stage, &ended.errors)?;
    leaves_what_it_should(&stage, &ended)
}

/// The gateway's token is nowhere but where it comes from.
fn no_token(stage: &Stage, errors: &str) -> Result<(), String> {
    let found = file_with(&stage.work.join(".prose/runs"), TOKEN);
    expect(found.is_none() && !errors.contains(TOKEN), || {
        format!("the token is in {found:?} or {errors}")
    })
}

/// A run that is killed while the gateway works for it, and taken up: the answer is picked up, whether it came meanwhile or
/// comes later.
fn killed(agent: Agent) -> Result<(), String> {
    let program = "let notes = session \"Research bees\"\noutput x = session \"Sum up\"\n  context: notes\n";
    for later in [false, true] {
        let stage = Stage::new(agent, |_| {
            let out = r"(?s){}.*write your output to:\n  (?P<out>\S+)";
            let session = |task: &str, content: &str, wait: Duration| {
                Rule::user(&out.replace("{}", task)).turns([
                    Answer::call("write", json!({"path": "${out}", "content": content})).first_after(wait),
                    Answer::text("Binding written: it\nSummary: done"),
                ])
            };
            Script::new()
                .rule(session(
                    "Research bees",
                    "NOTES about bees",
                    Duration::from_secs(4),
                ))
                .rule(session("Sum up", "BEES in short", Duration::ZERO))
        })?;
        let gateway = Gateway::start(&stage)?;
        prepare(&stage, &gateway, program)?;
        let problem = |error: std::io::Error| format!("can't end prose: {error}");
        let begun = Instant::now();
        let mut run = begin(&stage)?;
        run.kill().map_err(problem)?;
        run.wait().map_err(problem)?;
        if later {
            // Until the answer is there.
            while stage.mock.asked().len() < 2 && begun.elapsed() < LIMIT {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(Duration::from_secs(2));
        }
        let id = only_run(&stage)?;
        let ended = stage.run_prose(&["resume", &id, "--backend", "openclaw"])?;
        let asked = asked(&stage)?;
        let turns: Vec<(Option<usize>, usize)> =
            asked.iter().map(|request| (request.rule, request.turn)).collect();
        expect(ended.success && ended.output == "BEES in short\n", || {
            format!("it ended with {ended:?} after {turns:?}")
        })?;
        expect(
            turns == [(Some(0), 0), (Some(0), 1), (Some(1), 0), (Some(1), 1)],
            || format!("what was begun was asked again: {turns:?}"),
        )?;
        no_token(&stage, &ended.errors)?;
    }
    Ok(())
}

/// Starts a run, and waits until the model is asked for it.
fn begin(stage: &Stage) -> Result<Child, String> {
    let problem = |error: std::io::Error| format!("can't run prose: {error}");
    let errors = File::create(stage.home.join("err")).map_err(problem)?;
    let run = stage
        .prose(&["run", "article.prose", "--backend", "openclaw"])?
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(problem)?;
    let begun = Instant::now();
    while stage.mock.asked().is_empty() {
        if begun.elapsed() > LIMIT {
            let errors = fs::read_to_string(stage.home.join("err")).unwrap_or_default();
            return Err(format!("the model is not asked: {errors}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(run)
}

/// A run that is cancelled stops what the gateway does for it.
fn cancelled(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| {
        let late = Answer::text("too late").first_after(Duration::from_secs(600));
        Script::new().rule(Rule::user("Take long").answer(late))
    })?;
    let gateway = Gateway::start(&stage)?;
    prepare(&stage, &gateway, "output x = session \"Take long\"\n")?;
    let mut run = begin(&stage)?;
    let begun = Instant::now();
    let asked = std::process::Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    expect(asked.is_ok_and(|status| status.success()), || {
        "prose can't be asked to end".to_owned()
    })?;
    let ended = super::stage::wait(&mut run, LIMIT);
    expect(ended == Some(false), || format!("prose ended with {ended:?}"))?;
    while stage.mock.counts().open > 0 {
        expect(begun.elapsed() < Duration::from_secs(60), || {
            "the gateway still waits for the model".to_owned()
        })?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Where no gateway is, sessions run by the command line.
fn without_gateway(agent: Agent) -> Result<(), String> {
    let stage = Stage::new(agent, |_| {
        let answer = json!({"reason": "as it is", "decision": "yes", "confidence": 0.9});
        let write = |path: &str| Answer::call("write", json!({"path": path, "content": "NOTES about bees"}));
        Script::new()
            .rule(Rule::user("You decide what a running program").answer(Answer::text(answer.to_string())))
            .rule(
                Rule::user(r"(?s)Research bees.*write your output to:\n  (?P<out>\S+)").turns([
                    write("/tmp/outside-of-the-project.md"),
                    Answer::call("exec", json!({"command": "touch by-command"})),
                    write("${out}"),
                    Answer::text("Binding written: it"),
                ]),
            )
    })?;
    let problem = |error: std::io::Error| format!("can't set the stage: {error}");
    stage
        .write_json(".openclaw/openclaw.json", &settings(&stage, 1))
        .map_err(problem)?;
    let program = agent
        .program()
        .ok_or("the agent isn't there: `cargo xtask agents` brings it")?;
    let settings = format!(
        "[backends.openclaw]\ncommand = {:?}\n[models.openclaw]\ndefault = \"mock/b\"\n",
        program.display().to_string()
    );
    let program = "let notes = session \"Research bees\"\nif **there are notes**:\n  output x = notes\n";
    fs::write(stage.work.join("article.prose"), program).map_err(problem)?;
    fs::write(stage.work.join("prose.toml"), settings).map_err(problem)?;
    let ended = stage.run_prose(&["run", "article.prose", "--backend", "openclaw"])?;
    let asked = asked(&stage)?;
    expect(ended.success && ended.output == "NOTES about bees\n", || {
        let last = asked.last().map(|request| request.body.to_string());
        format!("it ended with {ended:?}; the last request is {last:?}")
    })?;
    expect(ended.errors.contains("no gateway of OpenClaw is there"), || {
        ended.errors.clone()
    })?;
    let first = &asked[0].body;
    expect(first["model"] == "b", || {
        format!("the model is {}", first["model"])
    })?;
    let mut tools: Vec<&str> = first["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    tools.sort_unstable();
    expect(tools == ["edit", "ls", "read", "write"], || {
        format!("it has the tools {tools:?}")
    })?;
    expect(!stage.work.join("by-command").exists(), || {
        "it ran a command".to_owned()
    })?;
    let left = super::program::working_in(&stage.work);
    expect(left.is_empty(), || format!("processes are left: {left:?}"))
}

fn only_run(stage: &Stage) -> Result<String, String> {
    let runs: Vec<PathBuf> = fs::read_dir(stage.work.join(".prose/runs"))
        .map_err(|error| format!("there is no run: {error}"))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    match runs.as_slice() {
        [run] => Ok(run.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        runs => Err(format!("there is not one run: {runs:?}")),
    }
}

/// An agent that may not write, one that reads a key, one that writes what it may not.
fn permissions(agent: Agent) -> Result<(), String> {
    let cases = [
        (
            "write: deny",
            vec![("write", json!({"path": "notes.md", "content": "x"}))],
            Ok("I could not"),
        ),
        (
            "write: [\"notes/\"]",
            vec![("write", json!({"path": "notes/a.md", "content": "x"}))],
            Ok("I could not"),
        ),
        (
            "read: allow",
            vec![
                ("read", json!({"path": "/etc/hostname"})),
                ("read", json!({"path": "../out"})),
            ],
            Ok("I could not"),
        ),
        (
            "bash: [\"ls *\"]",
            vec![
                ("exec", json!({"command": "ls -l"})),
                ("exec", json!({"command": "wc -l prose.toml"})),
            ],
            Ok("I could not"),
        ),
        (
            "read: allow",
            vec![("read", json!({"path": ".prose/.env"}))],
            Err("the gateway let `read` do what is not permitted"),
        ),
        (
            "write: [\"notes/\"]",
            vec![("write", json!({"path": "prose.toml.bak", "content": "x"}))],
            Err("the gateway let `write` do what is not permitted"),
        ),
    ];
    for (number, (rules, calls, expected)) in cases.into_iter().enumerate() {
        let stage = Stage::new(agent, |_| {
            let calls = calls
                .iter()
                .map(|(name, input)| Answer::call(*name, input.clone()));
            // It thinks for long, so that what is seen of it comes in time.
            let last = Answer::text("I could not").first_after(Duration::from_secs(1));
            Script::new().rule(Rule::user("Try it").turns(calls.chain([last])))
        })?;
        let gateway = Gateway::start(&stage)?;
        let program = format!("output x = session \"Try it\"\n  permissions:\n    {rules}\n");
        prepare(&stage, &gateway, &program)?;
        let ended = stage.run_prose(&["run", "article.prose", "--backend", "openclaw"])?;
        let is_so = match expected {
            Ok(output) => ended.success && ended.output.trim() == output,
            Err(message) => !ended.success && ended.errors.contains(message),
        };
        expect(is_so, || format!("case {number} ended with {ended:?}"))?;
        let exists = |file: &str| stage.work.join(file).exists();
        expect(!exists("notes.md"), || "it wrote without permission".to_owned())?;
        expect(number != 1 || exists("notes/a.md"), || {
            "it did not write what it may".to_owned()
        })?;
        if number == 3 {
            let bodies: Vec<String> = asked(&stage)?
                .iter()
                .map(|request| request.body.to_string())
                .collect();
            expect(
                bodies[1].contains("article.prose") && bodies[2].contains("user-denied"),
                || format!("the commands did {:?}", &bodies[1..]),
            )?;
        }
    }
    Ok(())
}

fn script() -> Script {
    let verdict = |decision: &str| {
        let answer = json!({"reason": "as it is", "decision": decision, "confidence": 0.9});
        Rule::user("You decide what a running program").answer(Answer::text(answer.to_string()))
    };
    let write = |path: &str, content: &str| Answer::call("write", json!({"path": path, "content": content}));
    let session = |task: &str, steps: Vec<Answer>| {
        let pattern = format!(r"(?s){task}.*write your output to:\n  (?P<out>\S+)");
        let receipt = Answer::text("Binding written: it\nLocation: ${out}\nSummary: done");
        let steps = steps.into_iter().map(|step| step.tokens(100, 10));
        Rule::user(&pattern).turns(steps.chain([receipt.tokens(120, 5)]))
    };
    Script::new()
        .rule(verdict("no").nth(1))
        .rule(verdict("yes"))
        .rule(session("Research bees", vec![write("${out}", "NOTES about bees")]))
        .rule({
            let steps = [
                Answer::call("read", json!({"path": "${notes}"})),
                write("${memory}", "I remember bees"),
                write("${segment}", "I looked at the notes"),
                write("${out}", "STYLE fine"),
                Answer::text("Summary: reviewed"),
            ];
            Rule::user(
                r"(?s)Review the style.*\n- notes: (?P<notes>\S+).*anew, whole, to:\n  (?P<memory>\S+).*to:\n  (?P<segment>\S+).*your output to:\n  (?P<out>\S+)",
            )
            .turns(steps)
        })
        .rule(session(
            "Check the facts",
            vec![Answer::call("exec", json!({"command": "wc -l prose.toml"})), write("${out}", "FACTS fine")],
        ))
        .rule(session("Write a draft", vec![write("${out}", "DRAFT 1")]))
        .rule(session("Improve the draft", vec![write("${out}", "DRAFT 2")]))
        .rule(session(
            "Write the article",
            vec![write("article.md", "FINAL on disk"), write("${out}", "FINAL article")],
        ))
}
