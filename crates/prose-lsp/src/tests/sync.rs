//! The server's text is the client's text.

use serde_json::{Value, json};

use crate::testing::{Random, TestClient};

const A: &str = "file:///a.prose";

/// Pieces that are hard on positions: astral and combining characters, every line end, halves of a CRLF.
const PIECES: &[&str] = &[
    "",
    "a",
    "session \"x\"\n",
    "🦀",
    "é",
    "e\u{301}",
    "\r\n",
    "\r",
    "\n",
    "👩‍👩‍👧",
    "\u{feff}",
    "\t",
    "\u{2028}",
    "error ",
];

/// The client's side: a text in which positions are counted independently of the server's code.
struct Model {
    text: Vec<char>,
    utf8: bool,
}

impl Model {
    fn width(&self, c: char) -> usize {
        if self.utf8 { c.len_utf8() } else { c.len_utf16() }
    }

    /// The position of the boundary before `at`, counted from the start.
    fn position(&self, at: usize) -> Value {
        let (mut line, mut character) = (0, 0);
        for i in 0..at {
            let c = self.text[i];
            let ends = c == '\n' || (c == '\r' && self.text.get(i + 1) != Some(&'\n'));
            if ends {
                line += 1;
                character = 0;
            } else {
                character += self.width(c);
            }
        }
        json!({ "line": line, "character": character })
    }

    /// A boundary that a client can name: not between CR and LF.
    fn boundary(&self, random: &mut Random) -> usize {
        let at = random.below(self.text.len() + 1);
        let split = at > 0 && self.text[at - 1] == '\r' && self.text.get(at) == Some(&'\n');
        if split { at - 1 } else { at }
    }

    fn edit(&mut self, random: &mut Random) -> Value {
        let piece = *random.pick(PIECES);
        if random.below(200) == 0 {
            self.text = piece.chars().collect();
            return json!({ "text": piece });
        }
        let a = self.boundary(random);
        // Mostly small ranges, so that the text grows.
        let b = if random.below(3) == 0 {
            self.boundary(random).min(a + 8).max(a.min(8))
        } else {
            a
        };
        let b = if b > 0 && self.text.get(b - 1) == Some(&'\r') && self.text.get(b) == Some(&'\n') {
            b - 1
        } else {
            b
        };
        let (from, to) = (a.min(b), a.max(b));
        let range = json!({ "start": self.position(from), "end": self.position(to) });
        self.text.splice(from..to, piece.chars());
        json!({ "range": range, "text": piece })
    }

    fn text(&self) -> String {
        self.text.iter().collect()
    }
}

async fn thousand_changes(encodings: Value, utf8: bool) {
    let capabilities = json!({ "general": { "positionEncodings": encodings } });
    for seed in 1..=4 {
        let params = json!({ "capabilities": capabilities });
        let mut client = TestClient::with(params).await;
        let mut random = Random(0x9e37_79b9 * seed);
        let mut model = Model {
            text: "agent a:\r\n  prompt: \"é🦀\"\n".chars().collect(),
            utf8,
        };
        client.open(A, 0, &model.text()).await;
        for version in 1..=1000 {
            let edits: Vec<Value> = (0..=random.below(3)).map(|_| model.edit(&mut random)).collect();
            client.change(A, version, json!(edits)).await;
        }
        assert_eq!(client.text(A).await, model.text(), "seed {seed}");
        client.diagnostics(A, 1000).await;
    }
}

#[tokio::test]
async fn a_thousand_unawaited_changes_in_utf16() {
    thousand_changes(json!(["utf-16"]), false).await;
}

#[tokio::test]
async fn a_thousand_unawaited_changes_in_utf8() {
    thousand_changes(json!(["utf-16", "utf-8"]), true).await;
}

#[tokio::test]
async fn positions_that_do_not_exist_are_clamped() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "ab\r\ncd").await;
    let edits = json!([
        { "range": { "start": { "line": 0, "character": 99 }, "end": { "line": 0, "character": 99 } }, "text": "1" },
        { "range": { "start": { "line": 99, "character": 0 }, "end": { "line": 99, "character": 5 } }, "text": "2" },
        { "range": { "start": { "line": 0, "character": 1 }, "end": { "line": 0, "character": 0 } }, "text": "" },
    ]);
    client.change(A, 1, edits).await;
    assert_eq!(client.text(A).await, "b1\r\ncd2");
}

#[tokio::test]
async fn diagnostics_carry_the_version_and_positions_in_the_encoding() {
    let mut client = TestClient::start().await;
    client.open(A, 7, "session \"fine\"\n").await;
    assert_eq!(client.diagnostics(A, 7).await, [] as [Value; 0]);
    client
        .change(A, 8, json!([{ "text": "\nlet x = \"🦀\" + nobody\n" }]))
        .await;
    let found = client.diagnostics(A, 8).await;
    let nobody = json!({ "start": { "line": 1, "character": 15 }, "end": { "line": 1, "character": 21 } });
    assert_eq!(found[0]["range"], nobody, "{found:?}");
    client
        .notify("textDocument/didClose", json!({ "textDocument": { "uri": A } }))
        .await;
    let cleared = client.next("textDocument/publishDiagnostics").await;
    assert_eq!(cleared["params"], json!({ "uri": A, "diagnostics": [] }));
}

#[tokio::test]
async fn diagnostics_of_a_stale_text_are_never_sent_for_a_newer_version() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "").await;
    for version in 1..=200 {
        let text = if version % 2 == 0 {
            "session \"fine\"\n"
        } else {
            "session \"{\" + nobody\n"
        };
        client.change(A, version, json!([{ "text": text }])).await;
    }
    client.diagnostics(A, 200).await;
    let published = client
        .pending()
        .filter(|m| m["method"] == "textDocument/publishDiagnostics");
    for message in published {
        let version = message["params"]["version"].as_i64().unwrap();
        let count = message["params"]["diagnostics"].as_array().unwrap().len();
        assert_eq!(count as i64, version % 2, "version {version}");
    }
}

#[tokio::test]
async fn documents_keep_the_uri_as_spelled_and_need_no_path() {
    let mut client = TestClient::start().await;
    for uri in [
        "file:///w/a%2Db%20c.prose",
        "untitled:Untitled-1",
        "file:///c%3A/x.prose",
        "vscode-vfs://h/y.prose",
    ] {
        client.open(uri, 3, uri).await;
        assert_eq!(client.text(uri).await, uri);
        client.diagnostics(uri, 3).await;
    }
}

#[tokio::test]
async fn a_document_that_is_not_open_is_an_error_of_that_request_only() {
    let mut client = TestClient::start().await;
    let error = client
        .request("prose/viewText", json!({ "uri": "file:///nowhere" }))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    client.change(A, 1, json!([{ "text": "lost" }])).await;
    client
        .notify("textDocument/didClose", json!({ "textDocument": { "uri": A } }))
        .await;
    client.open(A, 1, "text").await;
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn a_client_that_reads_late_blocks_nothing() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "").await;
    // Far more answers than a pipe holds, none read before all is written.
    let text = "error ".repeat(2000);
    let mut last = 0;
    for version in 1..=100 {
        client.change(A, version, json!([{ "text": text }])).await;
        last = client.send("prose/viewText", json!({ "uri": A })).await;
    }
    assert_eq!(client.answer(last).await.unwrap()["text"], text);
}

#[tokio::test]
async fn a_change_interrupts_readers() {
    let mut client = TestClient::start().await;
    client.open(A, 1, "session \"x\"\n").await;
    // As many as there can be workers, so that the change finds none of them idle.
    let mut ids = Vec::new();
    for n in 0..4 {
        let params = json!({ "uri": A, "position": n % 2 == 0 });
        ids.push(client.send("test/untilCancelled", params).await);
    }
    client.next("window/showMessage").await;
    client.change(A, 2, json!([{ "text": "session \"y\"\n" }])).await;
    for (n, id) in ids.into_iter().enumerate() {
        match client.answer(id).await {
            // What was begun is refused when its position may be wrong by now, else run again.
            Err(error) => assert_eq!((error["code"].as_i64(), n % 2), (Some(-32801), 0)),
            Ok(runs) => assert_eq!((runs, n % 2), (json!(2), 1)),
        }
        client
            .change(
                A,
                3 + n as i32,
                json!([{ "text": "session \"z\"\n" }, { "text": n.to_string() }]),
            )
            .await;
    }
    client.diagnostics(A, 6).await;
}
