//! Runs from the editor with the real runtime, simulated.

use std::path::Path;

use serde_json::{Value, json};

use crate::testing::TestClient;

const PROGRAM: &str = "\
agent writer:
  model: sonnet
  prompt: \"Write.\"

input topic: \"What about?\"

parallel:
  a = session: writer
    prompt: \"First on {topic}\"
  b = session: writer
    prompt: \"Second on {topic}\"

output both = session: writer
  prompt: \"Join\"
  context: [a, b]
";

fn uri(path: &Path) -> String {
    lsp_types::Url::from_file_path(path).unwrap().to_string()
}

async fn session(root: &Path, trusted: bool) -> TestClient {
    let params = json!({
        "capabilities": {
            "experimental": { "prose": { "runEvent": true, "input": true } },
            "window": { "workDoneProgress": true },
        },
        "initializationOptions": { "trusted": trusted },
        "workspaceFolders": [{ "uri": uri(root), "name": "w" }],
    });
    TestClient::with(params).await
}

async fn command(client: &mut TestClient, command: &str, argument: Value) -> Result<Value, Value> {
    client
        .request(
            "workspace/executeCommand",
            json!({ "command": command, "arguments": [argument] }),
        )
        .await
}

/// All events of a run up to its end.
async fn events(client: &mut TestClient) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = client.next("prose/runEvent").await["params"]["event"].clone();
        let over = event["type"] == "run_finished";
        events.push(event);
        if over {
            return events;
        }
    }
}

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir(root.join(".prose")).unwrap();
    (dir, root)
}

#[tokio::test]
async fn a_simulated_run_streams_to_its_end() {
    let (_dir, root) = folder();
    let mut client = session(&root, false).await;
    let file = uri(&root.join("main.prose"));
    // Never saved: the open text runs.
    client.open(&file, 1, PROGRAM).await;
    let argument = json!({ "uri": file, "version": 1, "backend": "simulate", "inputs": { "topic": "tea" } });
    let started = command(&mut client, "prose.run", argument).await.unwrap();
    let run = started["runId"].as_str().unwrap().to_owned();
    let create = client.next("window/workDoneProgress/create").await;
    client.reply(&create, json!(null)).await;
    let events = events(&mut client).await;
    let of = |kind: &str| events.iter().filter(|e| e["type"] == kind).count();
    assert_eq!(events[0]["type"], "run_started");
    assert_eq!(events[0]["simulated"], true);
    assert_eq!((of("session_started"), of("session_finished")), (3, 3));
    let last = &events[events.len() - 1];
    assert_eq!(last["status"], "completed", "{last}");
    assert!(last["outputs"].get("both").is_some(), "{last}");
    let end = client.wait(|m| m["params"]["value"]["kind"] == "end").await;
    assert!(
        end["params"]["value"]["message"]
            .as_str()
            .unwrap()
            .starts_with("completed · 3 sessions"),
        "{end}"
    );
    let state = root.join(".prose/runs").join(&run);
    assert!(state.join("state.md").is_file());
    assert!(
        std::fs::read_to_string(state.join("bindings/a.md"))
            .unwrap()
            .contains("kind")
    );
    let listed = client
        .request("workspace/executeCommand", json!({ "command": "prose.runs" }))
        .await
        .unwrap();
    assert_eq!(
        listed,
        json!([{ "runId": run, "status": "completed", "program": "main.prose", "waitingFor": [] }])
    );
    // Another server sees it on disk.
    let mut other = session(&root, false).await;
    let listed = other
        .request("workspace/executeCommand", json!({ "command": "prose.runs" }))
        .await
        .unwrap();
    assert_eq!(
        (&listed[0]["runId"], &listed[0]["status"]),
        (&json!(run), &json!("completed"))
    );
}

#[tokio::test]
async fn runs_and_edits_do_not_disturb_each_other() {
    let (_dir, root) = folder();
    let mut client = session(&root, false).await;
    let file = uri(&root.join("main.prose"));
    client.open(&file, 0, PROGRAM).await;
    for n in 0..5 {
        let argument = json!({ "uri": file, "backend": "simulate", "inputs": { "topic": "tea" } });
        command(&mut client, "prose.run", argument).await.unwrap();
        for m in 1..=50 {
            let end = json!({ "line": 99, "character": 0 });
            let edit = json!({ "range": { "start": end, "end": end }, "text": "# more\n" });
            client.change(&file, n * 50 + m, json!([edit])).await;
        }
    }
    assert_eq!(
        client.text(&file).await,
        PROGRAM.to_owned() + &"# more\n".repeat(250)
    );
    for _ in 0..5 {
        client
            .wait(|m| m["params"]["event"]["status"] == "completed")
            .await;
    }
    client.diagnostics(&file, 250).await;
}

#[tokio::test]
async fn refusals_come_from_configuration_backend_and_program() {
    let (_dir, root) = folder();
    let mut client = session(&root, true).await;
    let file = uri(&root.join("main.prose"));
    client.open(&file, 1, PROGRAM).await;
    let mut refusal = async |argument: Value| {
        let error = command(&mut client, "prose.run", argument).await.unwrap_err();
        error["message"].as_str().unwrap().to_owned()
    };
    let text = refusal(json!({ "uri": file, "backend": "nonsense" })).await;
    assert!(text.contains("nonsense") && text.contains("simulate"), "{text}");
    let text = refusal(json!({ "uri": file, "backend": "simulate", "state": "paper" })).await;
    assert!(text.contains("paper"), "{text}");
    let text = refusal(json!({ "uri": file, "backend": "simulate", "mock": "nowhere.toml" })).await;
    assert!(text.contains("nowhere.toml"), "{text}");
    let text = refusal(json!({ "uri": file, "backend": "simulate", "inputs": { "topik": "tea" } })).await;
    assert!(text.contains("no input `topik`; its inputs are topic"), "{text}");
    client
        .change(
            &file,
            2,
            json!([{ "text": "session: nobody\n  prompt: \"x\"\n" }]),
        )
        .await;
    let error = command(
        &mut client,
        "prose.run",
        json!({ "uri": file, "backend": "simulate" }),
    )
    .await
    .unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains("main.prose:1: E007"),
        "{error}"
    );
}

#[tokio::test]
async fn remote_programs_are_not_fetched() {
    let (_dir, root) = folder();
    let mut client = session(&root, true).await;
    let file = uri(&root.join("main.prose"));
    client
        .open(
            &file,
            1,
            "use \"https://example.invalid/x.prose\" as x\n\nlet r = x()\n",
        )
        .await;
    let error = command(
        &mut client,
        "prose.run",
        json!({ "uri": file, "backend": "simulate" }),
    )
    .await
    .unwrap_err();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("https://example.invalid/x.prose"),
        "{error}"
    );
}

#[tokio::test]
async fn a_mock_file_beside_the_program_is_found() {
    let (_dir, root) = folder();
    std::fs::write(
        root.join("main.mock.toml"),
        "[[session]]\nreply = \"from the mock\"\n",
    )
    .unwrap();
    let mut client = session(&root, false).await;
    let file = uri(&root.join("main.prose"));
    client.open(&file, 1, "output r = session \"say\"\n").await;
    command(
        &mut client,
        "prose.run",
        json!({ "uri": file, "backend": "simulate" }),
    )
    .await
    .unwrap();
    let events = events(&mut client).await;
    assert!(
        events[events.len() - 1]["outputs"]
            .to_string()
            .contains("from the mock"),
        "{events:?}"
    );
}

#[tokio::test]
async fn an_untitled_program_runs_in_the_folder_and_needs_one() {
    let (_dir, root) = folder();
    let untitled = "untitled:Untitled-1";
    let mut client = session(&root, false).await;
    client.open(untitled, 1, "output r = session \"say\"\n").await;
    command(
        &mut client,
        "prose.run",
        json!({ "uri": untitled, "backend": "simulate" }),
    )
    .await
    .unwrap();
    assert_eq!(events(&mut client).await.last().unwrap()["status"], "completed");
    let mut client = TestClient::start().await;
    client.open(untitled, 1, "output r = session \"say\"\n").await;
    let error = command(
        &mut client,
        "prose.run",
        json!({ "uri": untitled, "backend": "simulate" }),
    )
    .await
    .unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("folder"), "{error}");
}

#[tokio::test]
async fn what_failed_in_passing_is_asked_again_on_request() {
    let (_dir, root) = folder();
    let mock = "[[session]]\nprompt = \"two\"\nfail = \"timeout\"\n";
    std::fs::write(root.join("main.mock.toml"), mock).unwrap();
    let mut client = session(&root, false).await;
    let file = uri(&root.join("main.prose"));
    let program = "let a = session \"one\"\noutput b = session \"two\"\n";
    client.open(&file, 1, program).await;
    let argument = json!({ "uri": file, "backend": "simulate" });
    let run = command(&mut client, "prose.run", argument).await.unwrap()["runId"].clone();
    // What an earlier process asked is told again, but not spawned.
    let sessions = |events: &[Value]| events.iter().filter(|e| e["type"] == "session_spawned").count();
    let first = events(&mut client).await;
    assert_eq!(
        (sessions(&first), &first.last().unwrap()["status"]),
        (2, &json!("failed"))
    );

    for (retry, asked) in [(false, 0), (true, 1)] {
        let argument = json!({ "runId": run, "retryFailed": retry });
        command(&mut client, "prose.resume", argument).await.unwrap();
        let events = events(&mut client).await;
        assert_eq!(
            (sessions(&events), &events.last().unwrap()["status"]),
            (asked, &json!("failed"))
        );
    }
}
