//! Runs from the editor, against a scripted runtime.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use prose_model::{
    BindingRef, EffectId, End, Event, Order, Place, RunEvent, RunId, RunStatus, SourceRange, StmtId, Usage,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runs::{Control, Engine, How, Question, Resumption, RunError, RunSummary, StartRequest, Started};
use crate::testing::TestClient;

const A: &str = "file:///w/a.prose";

/// A runtime whose runs do what the test says.
#[derive(Default)]
struct Scripted {
    runs: Mutex<BTreeMap<RunId, Script>>,
    requests: Mutex<Vec<StartRequest>>,
}

struct Script {
    events: Option<mpsc::Sender<RunEvent>>,
    seq: u64,
    log: Arc<Log>,
}

/// What was done to a run.
#[derive(Default)]
struct Log {
    cancelled: Mutex<u32>,
    stopped: Mutex<u32>,
    answers: Mutex<Vec<(EffectId, Value)>>,
    answered: tokio::sync::Notify,
}

impl Control for Log {
    fn cancel(&self) {
        *self.cancelled.lock().unwrap() += 1;
    }
    fn stop(&self) {
        *self.stopped.lock().unwrap() += 1;
    }
    fn answer(&self, request: &EffectId, value: Value) -> Result<(), RunError> {
        if value == json!("bad") {
            return Err(RunError("not one of the options".into()));
        }
        self.answers.lock().unwrap().push((request.clone(), value));
        self.answered.notify_one();
        Ok(())
    }
}

impl Scripted {
    fn begin(&self, id: RunId) -> Started {
        // More than any test emits.
        let (tx, events) = mpsc::channel(10_000);
        let log = Arc::<Log>::default();
        let script = Script {
            events: Some(tx),
            seq: 0,
            log: Arc::clone(&log),
        };
        self.runs.lock().unwrap().insert(id.clone(), script);
        Started {
            id,
            events,
            control: log,
        }
    }

    fn emit(&self, run: &str, event: Event) {
        let mut runs = self.runs.lock().unwrap();
        let script = runs.get_mut(&RunId::from(run)).unwrap();
        let event = RunEvent {
            v: 1,
            run_id: run.into(),
            ts: "2026-01-02T03:04:05.678Z".into(),
            order: Order::Machine { seq: script.seq },
            event,
        };
        script.seq += 1;
        script.events.as_ref().unwrap().try_send(event).unwrap();
    }

    fn finish(&self, run: &str, status: RunStatus) {
        let event = Event::RunFinished {
            status,
            outputs: Default::default(),
            error: None,
            usage: Usage::default(),
        };
        self.emit(run, event);
        self.drop_events(run);
    }

    /// As a run that has panicked.
    fn drop_events(&self, run: &str) {
        self.runs
            .lock()
            .unwrap()
            .get_mut(&RunId::from(run))
            .unwrap()
            .events = None;
    }

    fn log(&self, run: &str) -> Arc<Log> {
        Arc::clone(&self.runs.lock().unwrap()[&RunId::from(run)].log)
    }
}

/// The client's side of [`Scripted`], since tests keep it, too.
struct Shared(Arc<Scripted>);

impl Engine for Shared {
    fn start(&self, request: StartRequest) -> BoxFuture<'static, Result<Started, RunError>> {
        let scripted = Arc::clone(&self.0);
        Box::pin(async move {
            assert_ne!(request.how.backend.as_deref(), Some("panics"), "on purpose");
            if request.how.backend.as_deref() == Some("missing") {
                return Err(RunError("no backend `missing`".into()));
            }
            let mut requests = scripted.requests.lock().unwrap();
            requests.push(request);
            let id = RunId::from(format!("run-{}", requests.len()));
            Ok(scripted.begin(id))
        })
    }
    fn resume(&self, run: RunId, _: Resumption, how: How) -> BoxFuture<'static, Result<Started, RunError>> {
        let scripted = Arc::clone(&self.0);
        Box::pin(async move {
            if how.trusted {
                Ok(scripted.begin(run))
            } else {
                Err(RunError::untrusted())
            }
        })
    }
    fn list(&self, _: Option<PathBuf>) -> BoxFuture<'static, Vec<RunSummary>> {
        let on_disk = |id: &str| RunSummary {
            run_id: id.into(),
            status: "completed".into(),
            program: "old.prose".into(),
            waiting_for: Vec::<Question>::new(),
        };
        let runs = vec![on_disk("run-1"), on_disk("old")];
        Box::pin(async move { runs })
    }
}

fn place() -> Place {
    let src = SourceRange {
        file: 0,
        start: 0,
        end: 1,
    };
    Place {
        stmt: StmtId::from("main/0"),
        src,
        execution_id: None,
        path: "main/0".into(),
    }
}

fn session_started(effect: &str, agent: &str) -> Event {
    let binding = BindingRef {
        name: "x".into(),
        execution_id: None,
        program: Vec::new(),
    };
    Event::SessionStarted {
        at: place(),
        effect: effect.into(),
        agent: Some(agent.into()),
        label: "label".into(),
        model: None,
        attempt: 1,
        max_attempts: 1,
        binding,
        resume: false,
    }
}

fn session_finished(effect: &str) -> Event {
    Event::SessionFinished {
        effect: effect.into(),
        end: End::Ok,
        summary: String::new(),
        usage: Usage::default(),
    }
}

fn session_text(effect: &str, text: &str) -> Event {
    Event::SessionText {
        effect: effect.into(),
        text: text.into(),
    }
}

fn input_started(effect: &str, name: &str, options: &[&str]) -> Event {
    Event::InputStarted {
        at: place(),
        effect: effect.into(),
        name: name.into(),
        prompt: "Which one?".into(),
        options: options.iter().map(ToString::to_string).collect(),
    }
}

/// The backend has no answer of its own.
fn input_needed(effect: &str) -> Event {
    Event::InputNeeded {
        effect: effect.into(),
    }
}

/// A trusted session of a client with the given extensions, one document open.
async fn session(prose: Value, progress: bool) -> (TestClient, Arc<Scripted>) {
    let scripted = Arc::<Scripted>::default();
    let params = json!({
        "capabilities": {
            "experimental": { "prose": prose },
            "window": { "workDoneProgress": progress },
        },
        "initializationOptions": { "trusted": true, "maxParallel": 5 },
        "workspaceFolders": [{ "uri": "file:///w", "name": "w" }],
    });
    let mut client = TestClient::with_engine(Arc::new(Shared(Arc::clone(&scripted))), params).await;
    client.open(A, 3, "session \"hello\"\n").await;
    (client, scripted)
}

async fn command(client: &mut TestClient, command: &str, argument: Value) -> Result<Value, Value> {
    let arguments = if argument.is_null() {
        json!([])
    } else {
        json!([argument])
    };
    client
        .request(
            "workspace/executeCommand",
            json!({ "command": command, "arguments": arguments }),
        )
        .await
}

async fn run(client: &mut TestClient) -> String {
    let answer = command(client, "prose.run", json!({ "uri": A })).await.unwrap();
    answer["runId"].as_str().unwrap().to_owned()
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_run_gets_what_the_command_says() {
    let (mut client, scripted) = session(json!({}), false).await;
    let argument = json!({
        "uri": A, "version": 3, "inputs": { "topic": "x" }, "backend": "b", "state": "sqlite", "mock": "m.toml", "budgetTokens": 9,
    });
    assert_eq!(
        command(&mut client, "prose.run", argument).await.unwrap(),
        json!({ "runId": "run-1" })
    );
    let requests = scripted.requests.lock().unwrap();
    let [request] = requests.as_slice() else {
        panic!("one request")
    };
    assert_eq!(request.path.as_deref(), Some(std::path::Path::new("/w/a.prose")));
    assert_eq!(
        &*request.bundle.files[request.bundle.files.len() - 1].text,
        "session \"hello\"\n"
    );
    assert_eq!(Value::Object(request.inputs.clone()), json!({ "topic": "x" }));
    let how = How {
        folder: Some("/w".into()),
        backend: Some("b".into()),
        state: Some("sqlite".into()),
        mock: Some("m.toml".into()),
        max_parallel: Some(5),
        budget_usd: None,
        budget_tokens: Some(9),
        trusted: true,
    };
    assert_eq!(request.how, how);
}

#[tokio::test]
async fn what_can_not_be_run_is_refused_with_a_reason() {
    let (mut client, scripted) = session(json!({}), false).await;
    for (argument, want) in [
        (json!({ "uri": A, "version": 2 }), "version 2"),
        (json!({ "uri": "file:///w/other.prose" }), "unknown document"),
        (json!({ "uri": A, "backend": "missing" }), "no backend `missing`"),
        (json!({ "uri": A, "speed": 3 }), "unknown field `speed`"),
    ] {
        let error = command(&mut client, "prose.run", argument).await.unwrap_err();
        assert!(message(&error).contains(want), "{error}");
    }
    client
        .change(
            A,
            4,
            json!([{ "text": "session \"unterminated\nlet error = session\n" }]),
        )
        .await;
    let error = command(&mut client, "prose.run", json!({ "uri": A }))
        .await
        .unwrap_err();
    assert!(message(&error).contains("can't be run"), "{error}");
    assert!(scripted.requests.lock().unwrap().is_empty());
    assert!(command(&mut client, "prose.stop", json!(null)).await.is_err());
}

#[tokio::test]
async fn an_edit_after_the_command_does_not_disturb_the_run() {
    let (mut client, scripted) = session(json!({}), false).await;
    let arguments = json!([{ "uri": A, "version": 3 }]);
    let id = client
        .send(
            "workspace/executeCommand",
            json!({ "command": "prose.run", "arguments": arguments }),
        )
        .await;
    client
        .change(A, 4, json!([{ "text": "session \"other\"\n" }]))
        .await;
    // Either the run has the text the person saw, or it is refused: never another text.
    match client.answer(id).await {
        Ok(_) => {
            let requests = scripted.requests.lock().unwrap();
            assert_eq!(&*requests[0].bundle.files[0].text, "session \"hello\"\n");
        }
        Err(error) => assert!(message(&error).contains("version 3"), "{error}"),
    }
}

#[tokio::test]
async fn an_untrusted_workspace_runs_only_simulated() {
    let scripted = Arc::<Scripted>::default();
    let params = json!({ "capabilities": {}, "initializationOptions": { "backend": "claude" } });
    let mut client = TestClient::with_engine(Arc::new(Shared(Arc::clone(&scripted))), params).await;
    client.open(A, 1, "session \"hello\"\n").await;
    for argument in [json!({ "uri": A }), json!({ "uri": A, "backend": "replay" })] {
        let error = command(&mut client, "prose.run", argument).await.unwrap_err();
        assert!(message(&error).contains("not trusted"), "{error}");
    }
    let error = command(&mut client, "prose.resume", json!({ "runId": "old" }))
        .await
        .unwrap_err();
    assert!(message(&error).contains("not trusted"), "{error}");
    command(
        &mut client,
        "prose.run",
        json!({ "uri": A, "backend": "simulate" }),
    )
    .await
    .unwrap();
    assert!(!scripted.requests.lock().unwrap()[0].how.trusted);
}

#[tokio::test]
async fn events_are_sent_in_order_and_text_is_joined() {
    let (mut client, scripted) = session(json!({ "runEvent": true }), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, session_started("e1", "writer"));
    for n in 0..500 {
        scripted.emit(&run, session_text("e1", &format!("{n} ")));
        if n == 250 {
            scripted.emit(&run, session_text("e2", "between"));
        }
    }
    scripted.emit(&run, session_finished("e1"));
    scripted.finish(&run, RunStatus::Completed);
    let (mut seq, mut text, mut types) = (0, String::new(), Vec::new());
    loop {
        let params = client.next("prose/runEvent").await["params"].clone();
        assert_eq!((&params["runId"], &params["seq"]), (&json!(run), &json!(seq)));
        seq += 1;
        let event = &params["event"];
        assert_eq!(event["v"], 1);
        if event["type"] == "session_text" && event["effect"] == "e1" {
            text += event["text"].as_str().unwrap();
        }
        types.push(event["type"].as_str().unwrap().to_owned());
        if event["type"] == "run_finished" {
            break;
        }
    }
    assert_eq!(text, (0..500).map(|n| format!("{n} ")).collect::<String>());
    assert_eq!(types.first().unwrap(), "session_started");
    assert_eq!(types[types.len() - 2], "session_finished");
    assert!(types.len() < 500, "{} notifications for 504 events", types.len());
}

#[tokio::test]
async fn a_client_that_did_not_ask_for_events_gets_none() {
    let (mut client, scripted) = session(json!({ "runEvent": "yes" }), true).await;
    let run = run(&mut client).await;
    scripted.emit(&run, session_started("e1", "writer"));
    scripted.finish(&run, RunStatus::Completed);
    let create = client.next("window/workDoneProgress/create").await;
    client.reply(&create, json!(null)).await;
    client.wait(|m| m["params"]["value"]["kind"] == "end").await;
    assert!(client.pending().all(|m| m["method"] != "prose/runEvent"));
}

#[tokio::test]
async fn progress_begins_reports_and_ends() {
    let (mut client, scripted) = session(json!({}), true).await;
    let run = run(&mut client).await;
    let create = client.next("window/workDoneProgress/create").await;
    let token = create["params"]["token"].clone();
    client.reply(&create, json!(null)).await;
    let begin = client.next("$/progress").await["params"].clone();
    assert_eq!(
        (&begin["token"], &begin["value"]["kind"]),
        (&token, &json!("begin"))
    );
    assert_eq!(
        (&begin["value"]["title"], &begin["value"]["cancellable"]),
        (&json!("a.prose"), &json!(true))
    );
    scripted.emit(&run, session_started("e1", "writer"));
    scripted.emit(&run, session_started("e2", "critic"));
    scripted.emit(&run, session_finished("e1"));
    let report = client.wait(|m| text(m).contains("1/2 sessions · critic")).await;
    assert_eq!(report["params"]["value"]["kind"], "report");
    scripted.finish(&run, RunStatus::Failed);
    let end = client.wait(|m| m["params"]["value"]["kind"] == "end").await;
    assert!(text(&end).starts_with("failed · 1 session · "), "{end}");
}

fn text(message: &Value) -> &str {
    message["params"]["value"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_run_goes_on_when_the_client_refuses_progress_or_never_answers() {
    let (mut client, scripted) = session(json!({ "runEvent": true }), true).await;
    let first = run(&mut client).await;
    let create = client.next("window/workDoneProgress/create").await;
    let error = json!({ "code": -32601, "message": "no" });
    client
        .message(json!({ "jsonrpc": "2.0", "id": create["id"], "error": error }))
        .await;
    let second = run(&mut client).await;
    client.next("window/workDoneProgress/create").await;
    for run in [first, second] {
        scripted.emit(&run, session_started("e1", "writer"));
        scripted.finish(&run, RunStatus::Completed);
        client
            .wait(|m| m["params"]["event"]["type"] == "run_finished" && m["params"]["runId"] == json!(run))
            .await;
    }
    assert!(client.pending().all(|m| m["method"] != "$/progress"));
    assert_eq!(client.text(A).await, "session \"hello\"\n");
}

#[tokio::test]
async fn a_run_is_cancelled_by_command_and_by_its_progress() {
    let (mut client, scripted) = session(json!({ "runEvent": true }), true).await;
    let run = run(&mut client).await;
    let create = client.next("window/workDoneProgress/create").await;
    client.reply(&create, json!(null)).await;
    command(&mut client, "prose.cancel", json!({ "runId": run }))
        .await
        .unwrap();
    assert_eq!(*scripted.log(&run).cancelled.lock().unwrap(), 1);
    client
        .notify(
            "window/workDoneProgress/cancel",
            json!({ "token": create["params"]["token"] }),
        )
        .await;
    client
        .notify("window/workDoneProgress/cancel", json!({ "token": 7 }))
        .await;
    client.text(A).await;
    assert_eq!(*scripted.log(&run).cancelled.lock().unwrap(), 2);
    scripted.finish(&run, RunStatus::Cancelled);
    client.wait(|m| m["params"]["value"]["kind"] == "end").await;
    let error = command(&mut client, "prose.cancel", json!({ "runId": run }))
        .await
        .unwrap_err();
    assert!(message(&error).contains("cancelled"), "{error}");
    let error = command(&mut client, "prose.cancel", json!({ "runId": "none" }))
        .await
        .unwrap_err();
    assert!(message(&error).contains("no run none"), "{error}");
}

#[tokio::test]
async fn the_client_is_asked_for_inputs() {
    let (mut client, scripted) = session(json!({ "input": true }), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, input_started("q1", "color", &["red", "green"]));
    scripted.emit(&run, input_needed("q1"));
    let request = client.next("prose/input").await;
    let params = json!({
        "runId": run, "requestId": "q1", "name": "color", "prompt": "Which one?", "options": ["red", "green"],
    });
    assert_eq!(request["params"], params);
    // The question blocks nothing else.
    assert_eq!(client.text(A).await, "session \"hello\"\n");
    client.reply(&request, json!({ "value": "red" })).await;
    scripted.log(&run).answered.notified().await;
    scripted.emit(&run, input_started("q2", "size", &[]));
    scripted.emit(&run, input_needed("q2"));
    let request = client.next("prose/input").await;
    assert_eq!(request["params"].get("options"), None);
    assert_eq!(
        *scripted.log(&run).answers.lock().unwrap(),
        [("q1".into(), json!("red"))]
    );
    // A person who closes the dialog leaves the run waiting, and is told how to answer.
    client.reply(&request, json!({ "value": null })).await;
    let shown = client.next("window/showMessage").await;
    assert!(
        shown["params"]["message"]
            .as_str()
            .unwrap()
            .contains("prose.answer"),
        "{shown}"
    );
    let listed = command(&mut client, "prose.runs", json!(null)).await.unwrap();
    assert_eq!(listed[0]["status"], "waiting");
    assert_eq!(listed[0]["waitingFor"][0]["requestId"], "q2");
}

#[tokio::test]
async fn the_client_is_asked_what_a_session_wants_to_know() {
    let (mut client, scripted) = session(json!({ "input": true }), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, session_started("e1", "writer"));
    let asks = |request: &str| Event::QuestionStarted {
        effect: "e1".into(),
        request: request.into(),
        text: "Which bees?".to_owned(),
        options: vec!["wild".to_owned(), "tame".to_owned()],
    };
    scripted.emit(&run, asks("e1?1"));
    let request = client.next("prose/input").await;
    let name = request["params"]["name"].clone();
    let params = json!({
        "runId": run, "requestId": "e1?1", "name": name, "prompt": "Which bees?", "options": ["wild", "tame"],
        "ofSession": true,
    });
    assert_eq!(request["params"], params);
    client.reply(&request, json!({ "value": "solitary" })).await;
    scripted.log(&run).answered.notified().await;
    // Put away, it is for the session to decide.
    scripted.emit(&run, asks("e1?2"));
    let request = client.next("prose/input").await;
    client.reply(&request, json!({ "value": null })).await;
    scripted.log(&run).answered.notified().await;
    assert_eq!(
        *scripted.log(&run).answers.lock().unwrap(),
        [("e1?1".into(), json!("solitary")), ("e1?2".into(), json!(""))]
    );
    // One whose session does not wait any more is closed.
    scripted.emit(&run, asks("e1?3"));
    let request = client.next("prose/input").await;
    scripted.emit(
        &run,
        Event::QuestionFinished {
            effect: "e1".into(),
            request: "e1?3".into(),
            answered: false,
            attended: true,
        },
    );
    let cancel = client.next("$/cancelRequest").await;
    assert_eq!(cancel["params"]["id"], request["id"]);
}

#[tokio::test]
async fn the_client_is_not_asked_what_the_backend_answers() {
    let (mut client, scripted) = session(json!({ "input": true }), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, input_started("q1", "color", &[]));
    scripted.emit(
        &run,
        Event::InputFinished {
            effect: "q1".into(),
            end: prose_model::End::Ok,
        },
    );
    scripted.emit(&run, input_started("q2", "size", &[]));
    scripted.emit(&run, input_needed("q2"));
    // The first request of the kind is about the second.
    let request = client.next("prose/input").await;
    assert_eq!(request["params"]["requestId"], "q2");
}

#[tokio::test]
async fn the_first_valid_answer_wins() {
    let (mut client, scripted) = session(json!({ "input": true }), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, input_started("q1", "color", &[]));
    scripted.emit(&run, input_needed("q1"));
    let request = client.next("prose/input").await;
    let answer = |value: &str| json!({ "runId": run, "requestId": "q1", "value": value });
    let error = command(&mut client, "prose.answer", answer("bad"))
        .await
        .unwrap_err();
    assert!(message(&error).contains("not one of the options"), "{error}");
    command(&mut client, "prose.answer", answer("first"))
        .await
        .unwrap();
    // The dialog is closed; what it says now comes too late.
    let cancel = client.next("$/cancelRequest").await;
    assert_eq!(cancel["params"]["id"], request["id"]);
    client.reply(&request, json!({ "value": "second" })).await;
    let error = command(&mut client, "prose.answer", answer("third"))
        .await
        .unwrap_err();
    assert!(message(&error).contains("not waiting for `q1`"), "{error}");
    assert_eq!(
        *scripted.log(&run).answers.lock().unwrap(),
        [("q1".into(), json!("first"))]
    );
}

#[tokio::test]
async fn a_client_without_dialogs_is_told_how_to_answer() {
    let (mut client, scripted) = session(json!({}), false).await;
    let run = run(&mut client).await;
    scripted.emit(&run, input_started("q1", "color", &["red", "green"]));
    scripted.emit(&run, input_needed("q1"));
    let shown = client.next("window/showMessage").await;
    let shown = shown["params"]["message"].as_str().unwrap();
    for part in [
        "a.prose",
        "`color`",
        "Which one?",
        "(red, green)",
        "`prose.answer`",
        "\"requestId\":\"q1\"",
        &run,
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    command(
        &mut client,
        "prose.answer",
        json!({ "runId": run, "requestId": "q1", "value": "red" }),
    )
    .await
    .unwrap();
    assert_eq!(
        *scripted.log(&run).answers.lock().unwrap(),
        [("q1".into(), json!("red"))]
    );
}

#[tokio::test]
async fn a_run_that_crashes_ends_alone() {
    let (mut client, scripted) = session(json!({ "runEvent": true }), false).await;
    let first = run(&mut client).await;
    let second = run(&mut client).await;
    scripted.emit(&first, session_started("e1", "writer"));
    scripted.drop_events(&first);
    let end = client
        .wait(|m| m["params"]["event"]["type"] == "run_finished")
        .await;
    assert_eq!(
        (&end["params"]["runId"], &end["params"]["event"]["status"]),
        (&json!(first), &json!("interrupted"))
    );
    let shown = client.next("window/showMessage").await;
    assert!(
        shown["params"]["message"]
            .as_str()
            .unwrap()
            .contains("internal error"),
        "{shown}"
    );
    scripted.finish(&second, RunStatus::Completed);
    let end = client
        .wait(|m| m["params"]["event"]["type"] == "run_finished")
        .await;
    assert_eq!(
        (&end["params"]["runId"], &end["params"]["event"]["status"]),
        (&json!(second), &json!("completed"))
    );
    let error = command(&mut client, "prose.run", json!({ "uri": A, "backend": "panics" }))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32603);
    assert_eq!(run(&mut client).await, "run-3");
}

#[tokio::test]
async fn runs_are_listed_and_resumed() {
    let (mut client, scripted) = session(json!({ "runEvent": true }), false).await;
    let run = run(&mut client).await;
    let error = command(&mut client, "prose.resume", json!({ "runId": run }))
        .await
        .unwrap_err();
    assert!(message(&error).contains("still going on"), "{error}");
    let listed = command(&mut client, "prose.runs", json!(null)).await.unwrap();
    let brief: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["runId"].clone(), r["status"].clone()))
        .collect();
    assert_eq!(
        brief,
        [
            (json!("run-1"), json!("running")),
            (json!("old"), json!("completed"))
        ]
    );
    scripted.finish(&run, RunStatus::Failed);
    client
        .wait(|m| m["params"]["event"]["type"] == "run_finished")
        .await;
    for id in [run.as_str(), "old"] {
        let resumed = command(&mut client, "prose.resume", json!({ "runId": id }))
            .await
            .unwrap();
        assert_eq!(resumed, json!({ "runId": id }));
        scripted.emit(id, session_started("e1", "writer"));
        client
            .wait(|m| m["params"]["event"]["type"] == "session_started" && m["params"]["runId"] == json!(id))
            .await;
    }
}

#[tokio::test]
async fn the_end_of_the_session_does_not_wait_for_runs() {
    let (mut client, scripted) = session(json!({}), false).await;
    let run = run(&mut client).await;
    client.request("shutdown", json!(null)).await.unwrap();
    client.notify("exit", json!(null)).await;
    assert_eq!(client.exit_code().await, 0);
    assert_eq!(
        *scripted.log(&run).stopped.lock().unwrap(),
        1,
        "it is told to stop, and stays resumable"
    );
}
