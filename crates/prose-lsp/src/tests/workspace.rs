//! Programs of the workspace that nobody has opened, and diagnostics that the client asks for.

use std::path::Path;

use lsp_types::Url;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::testing::TestClient;

const LIB: &str = "agent writer:\n  prompt: \"Write.\"\nblock review(text):\n  session \"{text}\"\n";
const MAIN: &str = "use \"lib.prose\"\nsession: writer\ndo review(1)\n";

/// A workspace of these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(dir.path(), name, text);
    }
    dir
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn uri(dir: &TempDir, name: &str) -> String {
    // Links on the way to the folder for temporary files are followed by nobody here.
    Url::from_file_path(dir.path().join(name)).unwrap().to_string()
}

async fn client(dir: &TempDir, capabilities: Value) -> TestClient {
    TestClient::with(json!({
        "capabilities": capabilities,
        "workspaceFolders": [{ "uri": Url::from_directory_path(dir.path()).unwrap(), "name": "w" }],
    }))
    .await
}

/// The files, without the folder, and what stands for each.
fn by_file(dir: &TempDir, found: &Value, what: impl Fn(&Value) -> String) -> Vec<String> {
    let folder = Url::from_directory_path(dir.path()).unwrap().to_string();
    let mut lines: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let uri = it["uri"].as_str().or(it["location"]["uri"].as_str()).unwrap();
            format!("{} {}", uri.replace(&folder, ""), what(it))
        })
        .collect();
    lines.sort();
    lines
}

async fn symbols(client: &mut TestClient, dir: &TempDir, query: &str) -> Vec<String> {
    let found = client
        .request("workspace/symbol", json!({ "query": query }))
        .await
        .unwrap();
    by_file(dir, &found, |it| it["name"].as_str().unwrap().to_owned())
}

async fn references(client: &mut TestClient, dir: &TempDir, uri: &str, line: u32, at: u32) -> Vec<String> {
    let params = json!({
        "textDocument": { "uri": uri },
        "position": { "line": line, "character": at },
        "context": { "includeDeclaration": true },
    });
    let found = client.request("textDocument/references", params).await.unwrap();
    by_file(dir, &found, |it| it["range"]["start"]["line"].to_string())
}

fn changed(uri: &str, kind: u32) -> Value {
    json!({ "changes": [{ "uri": uri, "type": kind }] })
}

#[tokio::test]
async fn programs_that_nobody_has_opened_are_known() {
    let dir = folder(&[
        ("lib.prose", LIB),
        ("main.prose", MAIN),
        (
            "deep/er/other.prose",
            "use \"../../lib.prose\"\nsession: writer\n",
        ),
        (".prose/runs/r/program.prose", LIB),
        ("node_modules/m.prose", LIB),
    ]);
    let mut client = client(&dir, json!({})).await;
    assert_eq!(symbols(&mut client, &dir, "writer").await, ["lib.prose writer"]);
    client.open(&uri(&dir, "lib.prose"), 1, LIB).await;
    let found = references(&mut client, &dir, &uri(&dir, "lib.prose"), 0, 7).await;
    assert_eq!(found, ["deep/er/other.prose 1", "lib.prose 0", "main.prose 1"]);

    let rename = json!({
        "textDocument": { "uri": uri(&dir, "lib.prose") },
        "position": { "line": 0, "character": 7 },
        "newName": "author",
    });
    let edits = client.request("textDocument/rename", rename).await.unwrap();
    assert_eq!(edits["changes"].as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn files_that_come_change_and_go_on_disk() {
    let dir = folder(&[("lib.prose", LIB)]);
    let mut client = client(&dir, json!({})).await;
    assert_eq!(symbols(&mut client, &dir, "").await.len(), 2);

    write(dir.path(), "new.prose", "agent fresh:\n  model: opus\n");
    write(
        dir.path(),
        "node_modules/x.prose",
        "agent hidden:\n  model: opus\n",
    );
    client
        .notify(
            "workspace/didChangeWatchedFiles",
            changed(&uri(&dir, "new.prose"), 1),
        )
        .await;
    let hidden = uri(&dir, "node_modules/x.prose");
    client
        .notify("workspace/didChangeWatchedFiles", changed(&hidden, 1))
        .await;
    assert_eq!(
        symbols(&mut client, &dir, "").await,
        ["lib.prose review", "lib.prose writer", "new.prose fresh"]
    );

    write(dir.path(), "new.prose", "agent renamed:\n  model: opus\n");
    client
        .notify(
            "workspace/didChangeWatchedFiles",
            changed(&uri(&dir, "new.prose"), 2),
        )
        .await;
    assert_eq!(symbols(&mut client, &dir, "renamed").await, ["new.prose renamed"]);

    // Nobody tells of these, but something is saved.
    std::fs::remove_file(dir.path().join("new.prose")).unwrap();
    write(dir.path(), "lib.prose", "agent longer-name:\n  model: opus\n");
    let saved = json!({ "textDocument": { "uri": "file:///elsewhere.prose" } });
    client.notify("textDocument/didSave", saved).await;
    assert_eq!(symbols(&mut client, &dir, "").await, ["lib.prose longer-name"]);
}

#[tokio::test]
async fn what_is_open_counts_before_what_is_on_disk() {
    let dir = folder(&[("lib.prose", LIB)]);
    let mut client = client(&dir, json!({})).await;
    let lib = uri(&dir, "lib.prose");
    client.open(&lib, 1, "agent typed:\n  model: opus\n").await;
    assert_eq!(symbols(&mut client, &dir, "").await, ["lib.prose typed"]);
    client
        .notify("textDocument/didClose", json!({ "textDocument": { "uri": lib } }))
        .await;
    assert_eq!(
        symbols(&mut client, &dir, "").await,
        ["lib.prose review", "lib.prose writer"]
    );
}

/// A client that asks for diagnostics.
fn pulls() -> Value {
    json!({
        "textDocument": { "diagnostic": {} },
        "workspace": { "diagnostic": { "refreshSupport": true } },
    })
}

async fn pull(client: &mut TestClient, uri: &str, before: Option<&Value>) -> Value {
    let mut params = json!({ "textDocument": { "uri": uri } });
    if let Some(before) = before {
        params["previousResultId"] = before.clone();
    }
    client.request("textDocument/diagnostic", params).await.unwrap()
}

#[tokio::test]
async fn diagnostics_of_a_document_are_answered_once() {
    let dir = folder(&[("lib.prose", LIB)]);
    let mut client = client(&dir, pulls()).await;
    let main = uri(&dir, "main.prose");
    client.open(&main, 1, "session: nobody\n").await;
    let report = pull(&mut client, &main, None).await;
    assert_eq!(report["kind"], "full");
    assert_eq!(report["items"][0]["code"], "E007");
    let same = pull(&mut client, &main, Some(&report["resultId"])).await;
    assert_eq!(
        same,
        json!({ "kind": "unchanged", "resultId": report["resultId"] })
    );
    let stranger = pull(&mut client, &main, Some(&json!("never given"))).await;
    assert_eq!(stranger, report);

    client
        .change(&main, 2, json!([{ "text": "session \"x\"\n" }]))
        .await;
    let mended = pull(&mut client, &main, Some(&report["resultId"])).await;
    assert_eq!((&mended["kind"], &mended["items"]), (&json!("full"), &json!([])));
    let told = client
        .pending()
        .filter(|m| m["method"] == "textDocument/publishDiagnostics");
    assert_eq!(told.count(), 0, "who asks is not told as well");
}

async fn pull_all(client: &mut TestClient, dir: &TempDir, before: &Value) -> (Vec<String>, Value) {
    let ids = before.as_array().unwrap().clone();
    let report = client
        .request("workspace/diagnostic", json!({ "previousResultIds": ids }))
        .await
        .unwrap();
    let lines = by_file(dir, &report["items"], |it| match it["kind"].as_str().unwrap() {
        "full" => {
            let codes: Vec<&str> = it["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["code"].as_str().unwrap())
                .collect();
            codes.join(" ")
        }
        kind => kind.to_owned(),
    });
    let ids = report["items"].as_array().unwrap().iter();
    let ids = ids.map(|it| json!({ "uri": it["uri"], "value": it["resultId"] }));
    (lines, ids.collect())
}

#[tokio::test]
async fn diagnostics_of_the_workspace() {
    let dir = folder(&[
        ("lib.prose", LIB),
        ("main.prose", MAIN),
        ("wrong.prose", "session: nobody\n"),
    ]);
    let mut client = client(&dir, pulls()).await;
    let (first, ids) = pull_all(&mut client, &dir, &json!([])).await;
    assert_eq!(first, ["lib.prose ", "main.prose ", "wrong.prose E007"]);
    let (again, same) = pull_all(&mut client, &dir, &ids).await;
    assert_eq!(
        again,
        [
            "lib.prose unchanged",
            "main.prose unchanged",
            "wrong.prose unchanged"
        ]
    );
    assert_eq!(same, ids);

    // Without the agent, the program that uses it is wrong, though it is the same.
    write(
        dir.path(),
        "lib.prose",
        "block review(text):\n  session \"{text}\"\n",
    );
    client
        .notify(
            "workspace/didChangeWatchedFiles",
            changed(&uri(&dir, "lib.prose"), 2),
        )
        .await;
    let ask = client.next("workspace/diagnostic/refresh").await;
    client.reply(&ask, Value::Null).await;
    let (now, ids) = pull_all(&mut client, &dir, &ids).await;
    assert_eq!(
        now,
        ["lib.prose unchanged", "main.prose E007", "wrong.prose unchanged"]
    );

    std::fs::remove_file(dir.path().join("wrong.prose")).unwrap();
    client
        .notify(
            "workspace/didChangeWatchedFiles",
            changed(&uri(&dir, "wrong.prose"), 3),
        )
        .await;
    let (now, ids) = pull_all(&mut client, &dir, &ids).await;
    assert_eq!(
        now,
        ["lib.prose unchanged", "main.prose unchanged", "wrong.prose "]
    );
    let kept: Vec<&Value> = ids
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| !it["uri"].as_str().unwrap().ends_with("wrong.prose"))
        .collect();
    let (now, _) = pull_all(&mut client, &dir, &json!(kept)).await;
    assert_eq!(now, ["lib.prose unchanged", "main.prose unchanged"]);
}

#[tokio::test]
async fn paths_follow_a_folder_that_moves() {
    let dir = folder(&[
        ("main.prose", "use \"lib/a.prose\"\n\nlet x = a()\n"),
        ("lib/a.prose", "use \"lib/b.prose\"\nlet y = b()\n"),
        ("lib/b.prose", "session \"b\"\n"),
    ]);
    let mut client = client(&dir, json!({})).await;
    let mut moved = async |from: &str, to: &str| {
        let files = json!([{ "oldUri": uri(&dir, from), "newUri": uri(&dir, to) }]);
        client
            .request("workspace/willRenameFiles", json!({ "files": files }))
            .await
            .unwrap()
    };
    let edit = moved("lib", "parts").await;
    let texts = |name: &str| edit["changes"][uri(&dir, name)][0]["newText"].clone();
    assert_eq!(
        [texts("main.prose"), texts("lib/a.prose")],
        ["parts/a.prose", "parts/b.prose"],
        "{edit}"
    );
    let edit = moved("lib/a.prose", "lib/first.prose").await;
    let edits: Vec<_> = edit["changes"][uri(&dir, "main.prose")]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["newText"].as_str().unwrap())
        .collect();
    assert_eq!(edits, ["lib/first.prose", " as a"], "{edit}");
    assert_eq!(moved("other.prose", "more.prose").await, json!(null));
}
