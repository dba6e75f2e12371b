//! Editor features through the protocol. What they say is `prose-ide`'s matter and tested there; here it is whether it
//! reaches the client, in the client's terms.

use serde_json::{Value, json};

use crate::testing::TestClient;

const A: &str = "file:///w/a.prose";

const PROGRAM: &str = "\
agent writer:
  model: sonnet
  prompt: \"Write. 🦀\"

block review(text):
  session: writer
    prompt: \"Review {text}\"

let draft = session: writer
  prompt: \"🦀 draft\"
do review(draft)
";

async fn client(capabilities: Value) -> TestClient {
    let params = json!({ "capabilities": capabilities });
    let mut client = TestClient::with(params).await;
    client.open(A, 1, PROGRAM).await;
    client
}

/// The position right behind the `nth` occurrence of a text, in UTF-16.
fn behind(text: &str, nth: usize) -> Value {
    let (at, found) = PROGRAM.match_indices(text).nth(nth).unwrap();
    let before = &PROGRAM[..at + found.len()];
    let line = before.matches('\n').count();
    let character = before.rsplit('\n').next().unwrap().encode_utf16().count();
    json!({ "line": line, "character": character })
}

fn at(position: Value) -> Value {
    json!({ "textDocument": { "uri": A }, "position": position })
}

#[tokio::test]
async fn hover_in_the_format_of_the_client() {
    let rich = json!({ "textDocument": { "hover": { "contentFormat": ["markdown", "plaintext"] } } });
    for (capabilities, kind) in [(rich, "markdown"), (json!({}), "plaintext")] {
        let mut client = client(capabilities).await;
        let hover = client
            .request("textDocument/hover", at(behind("session: wri", 0)))
            .await
            .unwrap();
        assert_eq!(hover["contents"]["kind"], kind);
        assert!(
            hover["contents"]["value"].as_str().unwrap().contains("writer"),
            "{hover}"
        );
        let range = json!({ "start": { "line": 5, "character": 11 }, "end": { "line": 5, "character": 17 } });
        assert_eq!(hover["range"], range);
    }
}

#[tokio::test]
async fn completion_with_edits_and_snippets_only_where_understood() {
    let snippets =
        json!({ "textDocument": { "completion": { "completionItem": { "snippetSupport": true } } } });
    for (capabilities, with_snippets) in [(snippets, true), (json!({}), false)] {
        let mut client = client(capabilities).await;
        let list = client
            .request("textDocument/completion", at(behind("session: ", 0)))
            .await
            .unwrap();
        let items = list["items"].as_array().unwrap();
        let writer = items
            .iter()
            .find(|item| item["label"] == "writer")
            .expect("the agent");
        assert_eq!(writer["textEdit"]["newText"], "writer");
        // Statements, at the end of the file.
        let end = json!({ "line": 11, "character": 0 });
        let list = client.request("textDocument/completion", at(end)).await.unwrap();
        let formats: Vec<_> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["insertTextFormat"].clone())
            .collect();
        assert!(!formats.is_empty());
        assert_eq!(formats.contains(&json!(2)), with_snippets);
    }
}

#[tokio::test]
async fn a_space_proposes_no_statements() {
    let mut client = client(json!({})).await;
    let ask = |position: Value| {
        let mut params = at(position);
        params["context"] = json!({ "triggerKind": 2, "triggerCharacter": " " });
        params
    };
    let list = client
        .request("textDocument/completion", ask(behind("do ", 0)))
        .await
        .unwrap();
    assert!(
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["label"] == "review"),
        "{list}"
    );
    let list = client
        .request(
            "textDocument/completion",
            ask(json!({ "line": 11, "character": 0 })),
        )
        .await
        .unwrap();
    assert!(
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["kind"] != 14),
        "{list}"
    );
}

#[tokio::test]
async fn definition_as_link_or_location() {
    let links = json!({ "textDocument": { "definition": { "linkSupport": true } } });
    let name = json!({ "start": { "line": 4, "character": 6 }, "end": { "line": 4, "character": 12 } });
    let mut rich = client(links).await;
    let found = rich
        .request("textDocument/definition", at(behind("do rev", 0)))
        .await
        .unwrap();
    assert_eq!(found[0]["targetUri"], A);
    assert_eq!(found[0]["targetSelectionRange"], name);
    let mut plain = client(json!({})).await;
    let found = plain
        .request("textDocument/definition", at(behind("do rev", 0)))
        .await
        .unwrap();
    assert_eq!(found, json!([{ "uri": A, "range": name }]));
    assert_eq!(
        plain
            .request(
                "textDocument/definition",
                at(json!({ "line": 3, "character": 0 }))
            )
            .await,
        Ok(json!(null))
    );
}

#[tokio::test]
async fn references_with_and_without_the_declaration() {
    let mut client = client(json!({})).await;
    for (declaration, count) in [(true, 3), (false, 2)] {
        let mut params = at(behind("agent wri", 0));
        params["context"] = json!({ "includeDeclaration": declaration });
        let found = client.request("textDocument/references", params).await.unwrap();
        assert_eq!(found.as_array().unwrap().len(), count, "{found}");
        assert_eq!(found[0]["uri"], A);
    }
}

#[tokio::test]
async fn symbols_as_tree_or_list() {
    let tree = json!({ "textDocument": { "documentSymbol": { "hierarchicalDocumentSymbolSupport": true } } });
    let params = json!({ "textDocument": { "uri": A } });
    let mut rich = client(tree).await;
    let found = rich
        .request("textDocument/documentSymbol", params.clone())
        .await
        .unwrap();
    let names = |found: &Value| -> Vec<String> {
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        names(&found).starts_with(&["writer".into(), "review".into(), "draft".into()]),
        "{found}"
    );
    assert!(found[0]["selectionRange"].is_object());
    let mut plain = client(json!({})).await;
    let found = plain
        .request("textDocument/documentSymbol", params)
        .await
        .unwrap();
    assert!(names(&found).contains(&"review".into()), "{found}");
    assert_eq!(found[0]["location"]["uri"], A);
}

#[tokio::test]
async fn run_as_lens_and_as_action() {
    let literals = json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": {
        "codeActionKind": { "valueSet": ["quickfix", "source"] } } } } });
    let mut rich = client(literals).await;
    let params = json!({ "textDocument": { "uri": A } });
    let lenses = rich.request("textDocument/codeLens", params).await.unwrap();
    let commands: Vec<_> = lenses
        .as_array()
        .unwrap()
        .iter()
        .map(|lens| lens["command"].clone())
        .collect();
    assert_eq!(commands[0]["command"], "prose.run");
    assert_eq!(commands[0]["arguments"], json!([{ "uri": A }]));
    assert_eq!(
        commands[1]["arguments"],
        json!([{ "uri": A, "backend": "simulate" }])
    );
    let start = json!({ "line": 0, "character": 0 });
    let action = |only: Value| {
        let range = json!({ "start": start, "end": start });
        json!({ "textDocument": { "uri": A }, "range": range, "context": { "diagnostics": [], "only": only } })
    };
    let actions = rich
        .request("textDocument/codeAction", action(json!(["source"])))
        .await
        .unwrap();
    assert_eq!(actions[0]["command"]["command"], "prose.run");
    assert_eq!(actions[0]["kind"], "source.run");
    assert_eq!(
        rich.request("textDocument/codeAction", action(json!(["refactor"])))
            .await,
        Ok(json!([]))
    );
    let mut plain = client(json!({})).await;
    let actions = plain
        .request("textDocument/codeAction", action(json!(null)))
        .await
        .unwrap();
    assert_eq!(actions[0]["command"], "prose.run");
}

#[tokio::test]
async fn refactorings_by_their_kind() {
    let literals = json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": {
        "codeActionKind": { "valueSet": ["refactor"] } } } } });
    let at = behind("do rev", 0);
    let ask = |only: Value| {
        let range = json!({ "start": at, "end": at });
        json!({ "textDocument": { "uri": A }, "range": range, "context": { "diagnostics": [], "only": only } })
    };
    let params = json!({ "capabilities": literals.clone() });
    let answer = TestClient::raw().request("initialize", params).await.unwrap();
    let kinds = &answer["capabilities"]["codeActionProvider"]["codeActionKinds"];
    for kind in ["refactor.extract", "refactor.inline", "refactor.rewrite"] {
        assert!(kinds.as_array().unwrap().contains(&json!(kind)), "{kinds}");
    }
    let mut rich = client(literals).await;
    let found = rich
        .request("textDocument/codeAction", ask(json!(["refactor"])))
        .await
        .unwrap();
    assert_eq!(found[0]["title"], "Inline block `review`");
    assert_eq!(found[0]["kind"], "refactor.inline");
    assert_eq!(found[0]["edit"]["changes"][A].as_array().unwrap().len(), 2);
    assert_eq!(found[1], Value::Null);
    for (client, only) in [
        (&mut rich, json!(["refactor.extract"])),
        (&mut client(json!({})).await, json!(["refactor"])),
    ] {
        let found = client.request("textDocument/codeAction", ask(only)).await;
        assert_eq!(found, Ok(json!([])));
    }
}

#[tokio::test]
async fn a_quick_fix_names_its_diagnostic_and_edits() {
    let literals = json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": {
        "codeActionKind": { "valueSet": ["quickfix"] } } } } });
    let mut client = client(literals).await;
    client
        .change(
            A,
            2,
            json!([{ "text": "agent writer:\n  model: opus\n\nsession: writter\n  prompt: \"x\"\n" }]),
        )
        .await;
    let diagnostics = client.diagnostics(A, 2).await;
    let diagnostic = diagnostics
        .iter()
        .find(|d| d["code"] == "E007")
        .expect("undefined agent");
    let params = json!({
        "textDocument": { "uri": A },
        "range": diagnostic["range"],
        "context": { "diagnostics": diagnostics, "only": ["quickfix"] },
    });
    let actions = client.request("textDocument/codeAction", params).await.unwrap();
    let fix = &actions[0];
    assert_eq!(fix["kind"], "quickfix");
    assert_eq!(fix["diagnostics"][0]["code"], "E007");
    assert_eq!(fix["edit"]["changes"][A][0]["newText"], "writer");
}

#[tokio::test]
async fn all_that_needs_no_decision_is_fixed_on_request() {
    let literals = json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": {
        "codeActionKind": { "valueSet": ["quickfix", "source"] } } } } });
    let mut client = client(literals).await;
    let text = "do:\n\tsession: \"a\"\n\tsession: \"b\"\n";
    client.change(A, 2, json!([{ "text": text }])).await;
    let diagnostics = client.diagnostics(A, 2).await;
    let start = json!({ "line": 1, "character": 1 });
    let ask = |only: Value| {
        json!({
            "textDocument": { "uri": A },
            "range": { "start": start, "end": start },
            "context": { "diagnostics": diagnostics, "only": only },
        })
    };
    let all = client
        .request("textDocument/codeAction", ask(json!(["source.fixAll"])))
        .await
        .unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    assert_eq!(all[0]["kind"], "source.fixAll.prose");
    assert_eq!(all[0]["edit"]["changes"][A].as_array().unwrap().len(), 4);
    let fixes = client
        .request("textDocument/codeAction", ask(json!(["quickfix"])))
        .await
        .unwrap();
    let shown: Vec<_> = fixes
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let solved = it["diagnostics"].as_array().map_or(0, Vec::len);
            (it["title"].as_str().unwrap(), it["isPreferred"] == true, solved)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("Indent with spaces", true, 1),
            ("Remove `:`", true, 1),
            ("Fix all 2 of P102 in this file", false, 2),
            ("Fix all 2 of P204 in this file", false, 2),
        ]
    );
    let unasked = client
        .request("textDocument/codeAction", ask(json!(null)))
        .await
        .unwrap();
    assert!(
        unasked
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["kind"] != "source.fixAll.prose"),
        "{unasked}"
    );
}

#[tokio::test]
async fn a_request_for_a_position_in_an_older_text_is_not_answered_wrongly() {
    let mut client = client(json!({})).await;
    for version in 2..100 {
        let id = client
            .send("textDocument/hover", at(behind("session: wri", 0)))
            .await;
        client.change(A, version, json!([{ "text": PROGRAM }])).await;
        // Answered before the change arrived, or refused: both are right.
        match client.answer(id).await {
            Ok(hover) => assert!(hover["contents"]["value"].as_str().unwrap().contains("writer")),
            Err(error) => assert_eq!(error["code"], -32801, "{error}"),
        }
    }
}

#[tokio::test]
async fn used_files_are_found_on_disk_and_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("lib")).unwrap();
    std::fs::write(root.join("lib/helpers.prose"), "agent helper:\n  model: opus\n").unwrap();
    let uri = |path: &str| {
        lsp_types::Url::from_file_path(root.join(path))
            .unwrap()
            .to_string()
    };
    let folder = lsp_types::Url::from_file_path(&root).unwrap();
    let params = json!({ "capabilities": {}, "workspaceFolders": [{ "uri": folder, "name": "w" }] });
    let mut client = TestClient::with(params).await;
    let main = uri("main.prose");
    let text = "use \"./lib/helpers.prose\"\n\nsession: helper\n  prompt: \"x\"\n";
    client.open(&main, 1, text).await;
    let errors = |found: Vec<Value>| {
        found
            .into_iter()
            .filter(|d| d["severity"] == 1)
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(client.diagnostics(&main, 1).await), [] as [Value; 0]);
    let params = json!({ "textDocument": { "uri": main }, "position": { "line": 2, "character": 11 } });
    let found = client.request("textDocument/definition", params).await.unwrap();
    assert_eq!(found[0]["uri"], uri("lib/helpers.prose"));
    // The open text counts, not the one on disk.
    client
        .open(&uri("lib/helpers.prose"), 1, "agent other:\n  model: opus\n")
        .await;
    let found = client
        .wait(|m| m["params"]["uri"] == json!(main) && m["params"]["diagnostics"] != json!([]))
        .await;
    assert!(
        found["params"]["diagnostics"].to_string().contains("E007"),
        "{found}"
    );
    // Closed, the one on disk counts again; and it may change there.
    client
        .notify(
            "textDocument/didClose",
            json!({ "textDocument": { "uri": uri("lib/helpers.prose") } }),
        )
        .await;
    client
        .wait(|m| m["params"]["uri"] == json!(main) && !m["params"].to_string().contains("E007"))
        .await;
    std::fs::remove_file(root.join("lib/helpers.prose")).unwrap();
    let changes = json!({ "changes": [{ "uri": uri("lib/helpers.prose"), "type": 3 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    client
        .wait(|m| m["params"]["uri"] == json!(main) && m["params"]["diagnostics"] != json!([]))
        .await;
    // A client that doesn't watch files: what a save may have brought is looked at anyway.
    std::fs::write(root.join("lib/helpers.prose"), "agent helper:\n  model: opus\n").unwrap();
    client
        .notify("textDocument/didSave", json!({ "textDocument": { "uri": main } }))
        .await;
    client
        .wait(|m| m["params"]["uri"] == json!(main) && m["params"]["diagnostics"] == json!([]))
        .await;
}

#[tokio::test]
async fn severities_follow_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = lsp_types::Url::from_file_path(&root).unwrap();
    let file = lsp_types::Url::from_file_path(root.join("a.prose"))
        .unwrap()
        .to_string();
    std::fs::write(root.join("prose.toml"), "[lint]\nE007 = \"warning\"\n").unwrap();
    let params = json!({ "capabilities": {}, "workspaceFolders": [{ "uri": folder, "name": "w" }] });
    let mut client = TestClient::with(params).await;
    client.open(&file, 1, "session: nobody\n  prompt: \"x\"\n").await;
    let severity = |found: &[Value]| {
        found
            .iter()
            .find(|d| d["code"] == "E007")
            .map(|d| d["severity"].clone())
    };
    assert_eq!(severity(&client.diagnostics(&file, 1).await), Some(json!(2)));
    let settings = json!({ "settings": { "prose": { "lint": { "E007": "hint" } } } });
    client.notify("workspace/didChangeConfiguration", settings).await;
    assert_eq!(severity(&client.diagnostics(&file, 1).await), Some(json!(4)));
    client
        .notify(
            "workspace/didChangeConfiguration",
            json!({ "settings": { "prose": { "lint": {} } } }),
        )
        .await;
    assert_eq!(severity(&client.diagnostics(&file, 1).await), Some(json!(2)));
    std::fs::write(root.join("prose.toml"), "[lint]\nE007 = \"off\"\n").unwrap();
    let toml = lsp_types::Url::from_file_path(root.join("prose.toml")).unwrap();
    let changes = json!({ "changes": [{ "uri": toml, "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    assert_eq!(severity(&client.diagnostics(&file, 1).await), None);
}

#[tokio::test]
async fn settings_are_pulled_from_clients_that_offer_it() {
    let params = json!({ "capabilities": { "workspace": { "configuration": true } } });
    let mut client = TestClient::with(params).await;
    let request = client.next("workspace/configuration").await;
    assert_eq!(request["params"]["items"], json!([{ "section": "prose" }]));
    client.open(A, 1, "session: nobody\n  prompt: \"x\"\n").await;
    client.diagnostics(A, 1).await;
    client
        .reply(&request, json!([{ "lint": { "E007": "off" } }]))
        .await;
    client
        .wait(|m| m["params"]["version"] == 1 && !m.to_string().contains("E007"))
        .await;
    client
        .notify("workspace/didChangeConfiguration", json!({ "settings": null }))
        .await;
    let request = client.next("workspace/configuration").await;
    client
        .reply(&request, json!([{ "lint": { "E007": "loud" } }]))
        .await;
    let message = client.next("window/showMessage").await;
    assert!(
        message["params"]["message"].as_str().unwrap().contains("loud"),
        "{message}"
    );
}

#[tokio::test]
async fn formatting_of_a_document_of_a_range_and_while_typing() {
    let params = json!({ "capabilities": {} });
    let mut client = TestClient::with(params).await;
    client.open(A, 1, "let a=\"🦀\"\nif a:\n    do f\n    \n").await;
    let document = json!({ "uri": A });
    let options = json!({ "tabSize": 8, "insertSpaces": false });
    let edits = client
        .request(
            "textDocument/formatting",
            json!({ "textDocument": document, "options": options }),
        )
        .await
        .unwrap();
    let edits: Vec<_> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["range"]["start"])
        .collect();
    assert_eq!(
        edits,
        [
            &json!({ "line": 0, "character": 5 }),
            &json!({ "line": 0, "character": 6 }),
            &json!({ "line": 2, "character": 2 }),
            &json!({ "line": 3, "character": 0 }),
        ]
    );
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let edits = client
        .request(
            "textDocument/rangeFormatting",
            json!({ "textDocument": document, "range": range, "options": options }),
        )
        .await
        .unwrap();
    assert_eq!(edits.as_array().unwrap().len(), 2, "{edits}");
    let position = json!({ "line": 3, "character": 0 });
    let edits = client
        .request(
            "textDocument/onTypeFormatting",
            json!({ "textDocument": document, "position": position, "ch": "\n", "options": options }),
        )
        .await
        .unwrap();
    assert_eq!(edits, json!([]), "the line is as deep as the one above");
}

#[tokio::test]
async fn a_diagnostic_links_to_the_page_of_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let config = || crate::Config {
        cache: Some(dir.path().join("prose")),
        ..crate::Config::default()
    };
    let shows = json!({ "textDocument": { "publishDiagnostics": { "codeDescriptionSupport": true } } });
    for (capabilities, linked) in [(shows, true), (json!({}), false)] {
        let mut client = TestClient::configured(config(), json!({ "capabilities": capabilities })).await;
        client.open(A, 1, "session: nobody\n").await;
        let found = client.diagnostics(A, 1).await;
        let href = &found[0]["codeDescription"]["href"];
        assert_eq!(href.is_string(), linked, "{found:?}");
        if let Some(href) = href.as_str() {
            let page = lsp_types::Url::parse(href).unwrap().to_file_path().unwrap();
            assert!(
                std::fs::read_to_string(page).unwrap().starts_with("# E007"),
                "{href}"
            );
        }
    }
}
