//! Features for reading and renaming through the protocol, in the client's terms.

use serde_json::{Value, json};

use crate::testing::TestClient;

const A: &str = "file:///w/a.prose";
const B: &str = "file:///w/b.prose";

const PROGRAM: &str = "\
agent writer:
  model: sonnet
  prompt: \"Write. 🦀\"

block review(text):
  session: writer
    prompt: \"🦀 {text}\"

let draft = session: writer
  prompt: \"\"\"
    🦀
    draft
  \"\"\"
do review(draft)
";

async fn client(capabilities: Value) -> TestClient {
    let mut client = TestClient::with(json!({ "capabilities": capabilities })).await;
    client.open(A, 1, PROGRAM).await;
    client
}

fn at(line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": A }, "position": { "line": line, "character": character } })
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

#[tokio::test]
async fn highlights_and_declarations() {
    let mut client = client(json!({})).await;
    let found = client
        .request("textDocument/documentHighlight", at(8, 22))
        .await
        .unwrap();
    let shown: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["range"].clone(), it["kind"].clone()))
        .collect();
    assert_eq!(
        shown,
        [
            (range(0, 6, 12), json!(3)),
            (range(5, 11, 17), json!(2)),
            (range(8, 21, 27), json!(2)),
        ]
    );
    for method in ["declaration", "definition", "typeDefinition"] {
        let found = client
            .request(&format!("textDocument/{method}"), at(8, 22))
            .await
            .unwrap();
        assert_eq!(found[0]["range"], range(0, 6, 12), "{method}");
    }
    let found = client
        .request("textDocument/implementation", at(0, 7))
        .await
        .unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn folds_as_the_client_takes_them() {
    let mut plain = client(json!({})).await;
    let params = json!({ "textDocument": { "uri": A } });
    let found = plain
        .request("textDocument/foldingRange", params.clone())
        .await
        .unwrap();
    let lines: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["startLine"].as_u64().unwrap(), it["endLine"].as_u64().unwrap()))
        .collect();
    assert_eq!(lines, [(0, 2), (4, 6), (5, 6), (8, 12), (9, 12)]);
    let folding = json!({ "textDocument": { "foldingRange": { "lineFoldingOnly": true, "rangeLimit": 2 } } });
    let mut narrow = client(folding).await;
    let found = narrow.request("textDocument/foldingRange", params).await.unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert!(found[0].get("endCharacter").is_none());
}

#[tokio::test]
async fn selections_grow() {
    let mut client = client(json!({})).await;
    let params = json!({ "textDocument": { "uri": A }, "positions": [{ "line": 6, "character": 18 }, { "line": 99, "character": 0 }] });
    let found = client
        .request("textDocument/selectionRange", params)
        .await
        .unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
    // Behind the crab, which counts two.
    assert_eq!(found[0]["range"], range(6, 17, 21));
    assert_eq!(found[0]["parent"]["range"], range(6, 16, 22));
}

/// Tokens as (line, column, length, type, modifiers).
fn absolute(data: &Value) -> Vec<[u64; 5]> {
    let numbers: Vec<u64> = data
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_u64().unwrap())
        .collect();
    let (mut line, mut column) = (0, 0);
    let mut out = Vec::new();
    for token in numbers.chunks(5) {
        if token[0] > 0 {
            line += token[0];
            column = 0;
        }
        column += token[1];
        out.push([line, column, token[2], token[3], token[4]]);
    }
    out
}

#[tokio::test]
async fn colours_whole_by_range_and_by_difference() {
    let mut client = client(json!({})).await;
    client.open(B, 1, "let b = 1\n").await;
    let full = client
        .request(
            "textDocument/semanticTokens/full",
            json!({ "textDocument": { "uri": A } }),
        )
        .await
        .unwrap();
    let tokens = absolute(&full["data"]);
    // `agent`, and the name declared.
    assert_eq!(tokens[..2], [[0, 0, 5, 0, 0], [0, 6, 6, 7, 1]]);
    // A text of several lines is sent line by line, and in UTF-16.
    assert!(tokens.contains(&[10, 0, 6, 2, 0]), "{tokens:?}");

    // Another document in between.
    let other = client
        .request(
            "textDocument/semanticTokens/full",
            json!({ "textDocument": { "uri": B } }),
        )
        .await
        .unwrap();
    assert_ne!(other["resultId"], full["resultId"]);

    let part = client
        .request(
            "textDocument/semanticTokens/range",
            json!({ "textDocument": { "uri": A }, "range": range(0, 6, 12) }),
        )
        .await
        .unwrap();
    assert_eq!(absolute(&part["data"]), [[0, 6, 6, 7, 1]]);

    let edit = json!([{ "range": range(13, 0, 0), "text": "do review(1)\n" }]);
    client.change(A, 2, edit).await;
    let delta = |id: &Value| json!({ "textDocument": { "uri": A }, "previousResultId": id });
    let changed = client
        .request("textDocument/semanticTokens/full/delta", delta(&full["resultId"]))
        .await
        .unwrap();
    let edits = changed["edits"].as_array().unwrap();
    assert_eq!(edits.len(), 1);
    let mut data = full["data"].as_array().unwrap().clone();
    let start = edits[0]["start"].as_u64().unwrap() as usize;
    let deleted = edits[0]["deleteCount"].as_u64().unwrap() as usize;
    data.splice(
        start..start + deleted,
        edits[0]["data"].as_array().unwrap().iter().cloned(),
    );
    let again = client
        .request(
            "textDocument/semanticTokens/full",
            json!({ "textDocument": { "uri": A } }),
        )
        .await
        .unwrap();
    assert_eq!(Value::Array(data), again["data"]);
    // What is known no more is answered in full.
    for unknown in [&full["resultId"], &other["resultId"], &json!("x")] {
        let whole = client
            .request("textDocument/semanticTokens/full/delta", delta(unknown))
            .await
            .unwrap();
        assert_eq!(whole["data"], again["data"]);
    }
}

#[tokio::test]
async fn hints_and_signatures() {
    let mut client = client(json!({})).await;
    let params = json!({ "textDocument": { "uri": A }, "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } } });
    let hints = client.request("textDocument/inlayHint", params).await.unwrap();
    let shown: Vec<_> = hints
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["position"].clone(),
                it["label"][0]["value"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (
                json!({ "line": 8, "character": 9 }),
                ": writer · sonnet".to_owned()
            ),
            (json!({ "line": 13, "character": 10 }), "text:".to_owned()),
        ]
    );
    let help = client
        .request("textDocument/signatureHelp", at(13, 12))
        .await
        .unwrap();
    assert_eq!(help["signatures"][0]["label"], "review(text)");
    assert_eq!(help["activeParameter"], 0);
    assert_eq!(
        client
            .request("textDocument/signatureHelp", at(0, 0))
            .await
            .unwrap(),
        Value::Null
    );
}

#[tokio::test]
async fn renames_with_and_without_versions() {
    let versions = json!({ "workspace": { "workspaceEdit": { "documentChanges": true } } });
    for (capabilities, versioned) in [(versions, true), (json!({}), false)] {
        let mut client = client(capabilities).await;
        let found = client
            .request("textDocument/prepareRename", at(6, 17))
            .await
            .unwrap();
        assert_eq!(found, json!({ "range": range(6, 17, 21), "placeholder": "text" }));
        let mut params = at(6, 17);
        params["newName"] = "copy".into();
        let edit = client.request("textDocument/rename", params).await.unwrap();
        let edits = match versioned {
            true => {
                let document = &edit["documentChanges"][0];
                assert_eq!(document["textDocument"], json!({ "uri": A, "version": 1 }));
                &document["edits"]
            }
            false => &edit["changes"][A],
        };
        let places: Vec<_> = edits
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["range"].clone())
            .collect();
        assert_eq!(places, [range(4, 13, 17), range(6, 17, 21)]);
        let mut refused = at(6, 17);
        refused["newName"] = "9".into();
        let error = client.request("textDocument/rename", refused).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("no name"), "{error}");
        assert_eq!(
            client
                .request("textDocument/prepareRename", at(2, 12))
                .await
                .unwrap(),
            Value::Null
        );
    }
}

#[tokio::test]
async fn calls_and_symbols_of_the_workspace() {
    let mut client = client(json!({})).await;
    let items = client
        .request("textDocument/prepareCallHierarchy", at(4, 8))
        .await
        .unwrap();
    let item = &items[0];
    assert_eq!(item["name"], "review");
    let calls = client
        .request("callHierarchy/incomingCalls", json!({ "item": item }))
        .await
        .unwrap();
    assert_eq!(calls[0]["from"]["name"], "a.prose");
    assert_eq!(calls[0]["fromRanges"], json!([range(13, 3, 9)]));
    let program = &calls[0]["from"];
    let calls = client
        .request("callHierarchy/outgoingCalls", json!({ "item": program }))
        .await
        .unwrap();
    assert_eq!(calls[0]["to"]["name"], "review");
    let found = client
        .request("workspace/symbol", json!({ "query": "rev" }))
        .await
        .unwrap();
    assert_eq!(found[0]["name"], "review");
    assert_eq!(found[0]["location"]["uri"], A);
    assert_eq!(found.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn links_stay_in_the_workspace() {
    let mut client = TestClient::with(json!({
        "capabilities": {},
        "workspaceFolders": [{ "uri": "file:///w", "name": "w" }],
    }))
    .await;
    let text = "use \"https://example.org/x.prose\" as x\nagent a:\n  persist: \"notes/a\"\nagent b:\n  persist: \"../../etc\"\n";
    client.open(B, 1, text).await;
    let found = client
        .request(
            "textDocument/documentLink",
            json!({ "textDocument": { "uri": B } }),
        )
        .await
        .unwrap();
    let targets: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["target"].clone())
        .collect();
    assert_eq!(targets, ["https://example.org/x.prose", "file:///w/notes/a"]);
}
