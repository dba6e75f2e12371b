//! The real `prose-lsp` process: life and death, text synchronisation, runs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::{Command, Stdio};

use prose_tests::lsp::Client;
use prose_tests::{everything, workspace};
use serde_json::{Value, json};

const PROGRAM: &str = "agent poet:\n  model: haiku\n\nlet poem = session: poet\n  prompt: \"A poem\"\n\
                       output title = session \"A title\"\n  context: poem\n";

fn run_capabilities() -> Value {
    json!({
        "window": {"workDoneProgress": true},
        "experimental": {"prose": {"runEvent": true, "input": true, "approveImports": true}}
    })
}

/// A cheap generator, so that the test needs no seed from outside.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn exit_ends_the_process_while_stdin_is_open() {
    let dir = workspace(&[]);
    let (mut client, _) = Client::start(dir.path(), json!({}), json!({}));
    client.request("shutdown", Value::Null).unwrap();
    client.notify("exit", Value::Null);
    assert_eq!(client.wait_exit(), Some(0));

    let (mut client, _) = Client::start(dir.path(), json!({}), json!({}));
    client.notify("exit", Value::Null);
    assert_eq!(client.wait_exit(), Some(1));
}

#[test]
fn a_closed_stdin_ends_the_process() {
    let dir = workspace(&[]);
    let (mut client, _) = Client::start(dir.path(), json!({}), json!({}));
    client.close_stdin();
    client.wait_exit();
}

#[test]
fn killing_the_client_ends_the_server_even_when_its_pipes_stay_open() {
    let dir = workspace(&[]);
    let mut client = Client::spawn(dir.path());
    // Stands for the editor: the server is told its process id, and this test keeps the pipes.
    let mut editor = Command::new("sleep")
        .arg("60")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client
        .request(
            "initialize",
            json!({"processId": editor.id(), "rootUri": null, "capabilities": {}}),
        )
        .unwrap();
    client.notify("initialized", json!({}));
    editor.kill().unwrap();
    editor.wait().unwrap();
    client.wait_exit();
}

#[test]
fn a_malformed_frame_is_answered_and_the_session_goes_on() {
    let dir = workspace(&[]);
    let (mut client, _) = Client::start(dir.path(), json!({}), json!({}));
    client.send_raw(b"Content-Length: 9\r\n\r\n{\"broken\"");
    let reply = client.wait(|m| m.get("error").is_some());
    assert_eq!(reply["error"]["code"], -32700);
    let uri = format!("file://{}/a.prose", dir.path().display());
    client.open(&uri, PROGRAM);
    let view = client.request("prose/viewText", json!({"uri": uri})).unwrap();
    assert_eq!(view["text"], PROGRAM);
}

#[test]
fn a_thousand_unawaited_changes_leave_the_clients_text() {
    let dir = workspace(&[]);
    for encoding in ["utf-8", "utf-16"] {
        let capabilities = json!({"general": {"positionEncodings": [encoding]}});
        let (mut client, initialized) = Client::start(dir.path(), capabilities, json!({}));
        assert_eq!(initialized["capabilities"]["positionEncoding"], encoding);
        let uri = format!("file://{}/a.prose", dir.path().display());
        let mut text = String::from(PROGRAM);
        client.open(&uri, &text);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let pieces = [
            "x",
            "𝒳",
            "é\u{301}",
            "\n",
            "\r\n",
            "\"",
            "**",
            "{poem}",
            "",
            "session \"a\"\n",
        ];
        let position = |text: &str, at: usize| {
            let head = &text[..at];
            let line = head.matches('\n').count();
            let column = &head[head.rfind('\n').map_or(0, |n| n + 1)..];
            let character = if encoding == "utf-8" {
                column.len()
            } else {
                column.encode_utf16().count()
            };
            json!({"line": line, "character": character})
        };
        for version in 2..1002 {
            let mut changes = Vec::new();
            for _ in 0..=random.below(2) {
                // Splitting `\r\n` would change what a line is between client and server; editors don't do it.
                let fine = |text: &str, at: usize| {
                    text.is_char_boundary(at) && !(at > 0 && text[..at].ends_with('\r'))
                };
                let mut start = random.below(text.len() + 1);
                while !fine(&text, start) {
                    start -= 1;
                }
                let mut end = (start + random.below(8)).min(text.len());
                while !fine(&text, end) {
                    end += 1;
                }
                let piece = pieces[random.below(pieces.len())];
                changes.push(json!({
                    "range": {"start": position(&text, start), "end": position(&text, end)},
                    "text": piece
                }));
                text.replace_range(start..end, piece);
            }
            client.notify(
                "textDocument/didChange",
                json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}),
            );
        }
        let view = client.request("prose/viewText", json!({"uri": uri})).unwrap();
        assert_eq!(view["text"].as_str().unwrap(), text, "{encoding}");
        let diagnostics = client
            .wait(|m| m["method"] == "textDocument/publishDiagnostics" && m["params"]["version"] == 1001);
        assert_eq!(diagnostics["params"]["uri"], json!(uri));
    }
}

#[test]
fn diagnostics_hover_completion_definition_and_lens() {
    let dir = workspace(&[]);
    let (mut client, initialized) = Client::start(dir.path(), run_capabilities(), json!({}));
    assert!(initialized["serverInfo"]["version"].is_string());
    let uri = format!("file://{}/a.prose", dir.path().display());
    client.open(&uri, &format!("{PROGRAM}session: poat\n"));
    let published = client.wait_method("textDocument/publishDiagnostics");
    let diagnostics = published["params"]["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:#?}");
    assert_eq!(diagnostics[0]["code"], "E007");
    assert_eq!(
        diagnostics[0]["range"]["start"],
        json!({"line": 7, "character": 9})
    );
    let at = |line: u32, character: u32| json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}});
    let hover = client.request("textDocument/hover", at(3, 22)).unwrap();
    assert!(
        hover["contents"]["value"].as_str().unwrap().contains("haiku"),
        "{hover}"
    );
    let definition = client.request("textDocument/definition", at(3, 22)).unwrap();
    assert!(definition.to_string().contains("\"line\":0"), "{definition}");
    let completion = client.request("textDocument/completion", at(7, 9)).unwrap();
    assert!(completion.to_string().contains("\"poet\""), "{completion}");
    let references = client
        .request("textDocument/references", {
            let mut params = at(3, 5);
            params["context"] = json!({"includeDeclaration": true});
            params
        })
        .unwrap();
    assert_eq!(references.as_array().unwrap().len(), 2, "{references}");
    let lenses = client
        .request("textDocument/codeLens", json!({"textDocument": {"uri": uri}}))
        .unwrap();
    assert!(lenses.to_string().contains("prose.run"), "{lenses}");
    let actions = client
        .request(
            "textDocument/codeAction",
            json!({
                "textDocument": {"uri": uri},
                "range": {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 0}},
                "context": {"diagnostics": []}
            }),
        )
        .unwrap();
    assert!(actions.to_string().contains("prose.run"), "{actions}");
}

#[test]
fn a_run_streams_its_events_and_ends_its_progress_while_the_text_is_edited() {
    let dir = everything();
    let program = std::fs::read_to_string(dir.path().join("everything.prose")).unwrap();
    let (mut client, _) = Client::start(dir.path(), run_capabilities(), json!({}));
    let uri = format!("file://{}/everything.prose", dir.path().display());
    client.open(&uri, &program);
    let started = client
        .request(
            "workspace/executeCommand",
            json!({"command": "prose.run", "arguments": [{"uri": uri, "version": 1, "backend": "simulate"}]}),
        )
        .unwrap();
    let run_id = started["runId"].as_str().unwrap().to_owned();
    let mut version = 1;
    let mut kinds = Vec::new();
    let mut last_seq = None;
    let mut progress = Vec::new();
    loop {
        let message = client.wait(|m| {
            matches!(
                m["method"].as_str(),
                Some("prose/runEvent" | "$/progress" | "window/workDoneProgress/create")
            )
        });
        match message["method"].as_str().unwrap() {
            "window/workDoneProgress/create" => client.reply(&message, Value::Null),
            "$/progress" => progress.push(message["params"]["value"]["kind"].as_str().unwrap().to_owned()),
            _ => {
                assert_eq!(message["params"]["runId"], json!(run_id));
                let event = &message["params"]["event"];
                if let Some(seq) = event["seq"].as_u64() {
                    assert_eq!(
                        seq,
                        last_seq.map_or(0, |last| last + 1),
                        "events come in order, none is lost"
                    );
                    last_seq = Some(seq);
                }
                kinds.push(event["type"].as_str().unwrap().to_owned());
            }
        }
        // Type into the file that runs: the run must not notice, and the text must arrive.
        version += 1;
        client.notify(
            "textDocument/didChange",
            json!({
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{
                    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
                    "text": "#"
                }]
            }),
        );
        if kinds.last().is_some_and(|kind| kind == "run_finished")
            && progress.last().is_some_and(|kind| kind == "end")
        {
            break;
        }
    }
    assert_eq!(progress.first().map(String::as_str), Some("begin"));
    assert_eq!(kinds.iter().filter(|kind| *kind == "run_started").count(), 1);
    let view = client.request("prose/viewText", json!({"uri": uri})).unwrap();
    assert_eq!(
        view["text"],
        format!("{}{program}", "#".repeat(version as usize - 1))
    );
}

#[test]
fn an_untrusted_workspace_runs_only_simulated_and_a_stale_version_not_at_all() {
    let dir = workspace(&[("a.prose", PROGRAM)]);
    let (mut client, _) = Client::start(dir.path(), json!({}), json!({}));
    let uri = format!("file://{}/a.prose", dir.path().display());
    client.open(&uri, PROGRAM);
    let mut run = |arguments: Value| {
        client.request(
            "workspace/executeCommand",
            json!({"command": "prose.run", "arguments": arguments}),
        )
    };
    let refused = run(json!([{"uri": uri, "backend": "claude"}])).unwrap_err();
    assert!(
        refused["message"].as_str().unwrap().contains("trust"),
        "{refused}"
    );
    let refused = run(json!([{"uri": uri, "version": 7, "backend": "simulate"}])).unwrap_err();
    assert!(
        refused["message"].as_str().unwrap().contains("version"),
        "{refused}"
    );
    for nonsense in [
        json!([]),
        json!([7]),
        json!([{"uri": 7}]),
        json!([{"uri": uri, "inputz": {}}]),
    ] {
        run(nonsense).unwrap_err();
    }
    assert!(run(json!([{"uri": uri, "backend": "simulate"}])).unwrap()["runId"].is_string());
}

#[test]
fn an_input_is_asked_of_the_client_and_the_first_answer_wins() {
    let program = "input ok: \"Go on? (yes/no)\"\noutput r = \"you said {ok}\"\n";
    let dir = workspace(&[("a.prose", program), ("a.mock.toml", "[defaults]\nask = true\n")]);
    let (mut client, _) = Client::start(dir.path(), run_capabilities(), json!({}));
    let uri = format!("file://{}/a.prose", dir.path().display());
    client.open(&uri, program);
    let started = client
        .request(
            "workspace/executeCommand",
            json!({"command": "prose.run", "arguments": [{"uri": uri, "backend": "simulate"}]}),
        )
        .unwrap();
    let question = client.wait_method("prose/input");
    assert_eq!(question["params"]["name"], "ok");
    assert_eq!(question["params"]["options"], json!(["yes", "no"]));
    client.reply(&question, json!({"value": "yes"}));
    let finished =
        client.wait(|m| m["method"] == "prose/runEvent" && m["params"]["event"]["type"] == "run_finished");
    assert_eq!(finished["params"]["event"]["status"], "completed", "{finished}");
    let late = client
        .request(
            "workspace/executeCommand",
            json!({"command": "prose.answer", "arguments": [{
                "runId": started["runId"], "requestId": question["params"]["requestId"], "value": "no"
            }]}),
        )
        .unwrap_err();
    assert!(!late["message"].as_str().unwrap().is_empty());
}
