//! One test for each known fault of tower-lsp 0.20 (docs/architecture.md, "The server loop").

use serde_json::json;

use crate::testing::TestClient;

const A: &str = "file:///a.prose";

#[tokio::test]
async fn notifications_keep_their_order_behind_requests_that_wait() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "").await;
    for version in 1..=50 {
        // Each of these requests waits; the changes in between must not overtake one another.
        client.send("test/pending", json!({})).await;
        let digit = char::from(b'a' + (version % 26) as u8).to_string();
        client
            .change(
                A,
                version,
                json!([{ "range": range(0, version as u32 - 1), "text": digit }]),
            )
            .await;
    }
    let want: String = (1..=50).map(|v: u8| char::from(b'a' + v % 26)).collect();
    assert_eq!(client.text(A).await, want);
}

fn range(line: u32, character: u32) -> serde_json::Value {
    let position = json!({ "line": line, "character": character });
    json!({ "start": position, "end": position })
}

#[tokio::test]
async fn many_slow_requests_stall_neither_changes_nor_cancellation_nor_answers() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "").await;
    let mut slow = Vec::new();
    for _ in 0..900 {
        slow.push(client.send("test/pending", json!({})).await);
    }
    client.change(A, 1, json!([{ "text": "new" }])).await;
    assert_eq!(client.text(A).await, "new");
    client.notify("$/cancelRequest", json!({ "id": slow[899] })).await;
    assert_eq!(client.answer(slow[899]).await.unwrap_err()["code"], -32800);
}

#[tokio::test]
async fn more_requests_than_slots_are_refused_and_the_session_goes_on() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "").await;
    let mut slow = Vec::new();
    for _ in 0..2000 {
        slow.push(client.send("test/pending", json!({})).await);
    }
    assert_eq!(client.answer(slow[1999]).await.unwrap_err()["code"], -32802);
    client.change(A, 1, json!([{ "text": "new" }])).await;
    client.notify("$/cancelRequest", json!({ "id": slow[0] })).await;
    assert_eq!(client.answer(slow[0]).await.unwrap_err()["code"], -32800);
    assert_eq!(client.text(A).await, "new");
}

#[tokio::test]
async fn a_panicking_handler_answers_and_the_session_goes_on() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "text").await;
    for method in ["test/panic", "test/panicLater", "test/panicInQuery"] {
        let error = client.request(method, json!({ "uri": A })).await.unwrap_err();
        assert_eq!(error["code"], -32603, "{method}");
        assert!(
            error["message"].as_str().unwrap().contains("on purpose"),
            "{error}"
        );
    }
    client.notify("test/panicNotification", json!({})).await;
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn an_id_is_free_again_after_a_panic_and_may_even_repeat() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "text").await;
    let view = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "prose/viewText", "params": { "uri": A } });
    client
        .message(json!({ "jsonrpc": "2.0", "id": 77, "method": "test/panicLater", "params": {} }))
        .await;
    assert!(client.answer(77).await.is_err());
    for _ in 0..3 {
        client.message(view(77)).await;
    }
    for _ in 0..3 {
        assert_eq!(client.answer(77).await.unwrap()["text"], "text");
    }
}

#[tokio::test]
async fn exit_ends_the_session_while_stdin_is_open() {
    let mut client = TestClient::start().await;
    assert_eq!(client.request("shutdown", json!(null)).await, Ok(json!(null)));
    client.notify("exit", json!(null)).await;
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn exit_without_shutdown_is_an_error() {
    let mut client = TestClient::start().await;
    client.notify("exit", json!(null)).await;
    assert_eq!(client.exit_code().await, 1);
}

#[tokio::test]
async fn exit_ends_even_a_session_that_never_began() {
    let mut client = TestClient::raw();
    client.notify("exit", json!(null)).await;
    assert_eq!(client.exit_code().await, 1);
}

#[tokio::test]
async fn exit_ends_a_session_with_requests_that_wait() {
    let mut client = TestClient::start().await;
    for _ in 0..20 {
        client.send("test/pending", json!({})).await;
    }
    let last = client.send("shutdown", json!(null)).await;
    client.notify("exit", json!(null)).await;
    assert_eq!(
        client.answer(last).await,
        Ok(json!(null)),
        "the answer comes before the end"
    );
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn handlers_never_wait_for_the_client() {
    // This client registers dynamically, and never answers the server's request.
    let watches = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    let mut client = TestClient::with(json!({ "capabilities": watches })).await;
    let request = client.next("client/registerCapability").await;
    client.open(A, 0, "").await;
    for version in 1..=300 {
        client
            .change(A, version, json!([{ "text": version.to_string() }]))
            .await;
    }
    assert_eq!(client.text(A).await, "300");
    // An answer that comes late is taken; one that nobody asked for is ignored.
    client.reply(&request, json!(null)).await;
    client.reply(&json!({ "id": 4711 }), json!(null)).await;
    assert_eq!(client.text(A).await, "300");
}

#[tokio::test]
async fn a_late_answer_to_a_request_given_up_is_ignored() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "text").await;
    client.notify("test/askBriefly", json!({})).await;
    let request = client.next("workspace/configuration").await;
    let cancel = client.next("$/cancelRequest").await;
    assert_eq!(cancel["params"]["id"], request["id"]);
    client.reply(&request, json!([])).await;
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn malformed_frames_are_answered_and_skipped() {
    let mut client = TestClient::start().await;
    client.open(A, 0, "text").await;
    let big = format!("Content-Length: {}\r\n\r\n{}", 2 << 20, " ".repeat(2 << 20));
    for bad in [
        "Content-Length: 5\r\n\r\n{bad}",
        "Content-Length: nan\r\n\r\n",
        "nonsense\r\n\r\n",
        &big,
    ] {
        client.bytes(bad.as_bytes()).await;
        let error = client
            .wait(|m| m["id"].is_null() && m.get("error").is_some())
            .await;
        assert_eq!(error["error"]["code"], -32700, "{error}");
        assert_eq!(client.text(A).await, "text");
    }
    client
        .message(json!({ "jsonrpc": "2.0", "id": [1], "method": "x" }))
        .await;
    let error = client.wait(|m| m.get("error").is_some()).await;
    assert_eq!(error["error"]["code"], -32600);
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn a_panic_while_changing_state_says_so_and_exits_101() {
    let mut client = TestClient::start().await;
    client.notify("test/sabotage", json!({})).await;
    let message = client.next("window/showMessage").await;
    assert_eq!(message["params"]["type"], 1);
    assert!(
        message["params"]["message"]
            .as_str()
            .unwrap()
            .contains("has to stop")
    );
    assert_eq!(client.exit_code().await, 101);
}
