//! Beginning and end of a session, and what may come at the wrong time.

use serde_json::json;

use crate::testing::TestClient;

const A: &str = "file:///a.prose";

#[tokio::test]
async fn initialize_tells_what_the_server_can_do() {
    let mut client = TestClient::raw();
    let result = client
        .request("initialize", json!({ "capabilities": {} }))
        .await
        .unwrap();
    assert_eq!(result["serverInfo"]["name"], "prose-lsp");
    let capabilities = &result["capabilities"];
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    assert_eq!(capabilities["textDocumentSync"]["change"], 2);
    let again = client
        .request("initialize", json!({ "capabilities": {} }))
        .await
        .unwrap_err();
    assert_eq!(again["code"], -32600);
}

#[tokio::test]
async fn messages_may_follow_initialize_without_waiting_for_its_answer() {
    let mut client = TestClient::raw();
    let id = client.send("initialize", json!({ "capabilities": {} })).await;
    client.notify("initialized", json!({})).await;
    client.open(A, 1, "text").await;
    assert_eq!(client.text(A).await, "text");
    assert!(client.answer(id).await.is_ok());
}

#[tokio::test]
async fn requests_before_initialize_and_after_shutdown_are_refused() {
    let mut client = TestClient::raw();
    let early = client
        .request("prose/viewText", json!({ "uri": A }))
        .await
        .unwrap_err();
    assert_eq!(early["code"], -32002);
    client
        .request("initialize", json!({ "capabilities": {} }))
        .await
        .unwrap();
    client.request("shutdown", json!({})).await.unwrap();
    let late = client
        .request("prose/viewText", json!({ "uri": A }))
        .await
        .unwrap_err();
    assert_eq!(late["code"], -32600);
    client.notify("exit", json!({})).await;
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn unknown_methods_are_answered_or_ignored() {
    let mut client = TestClient::start().await;
    client.notify("$/unknown", json!({})).await;
    client.notify("unknown/notification", json!({})).await;
    for method in ["unknown/request", "$/unknownRequest"] {
        assert_eq!(
            client.request(method, json!({})).await.unwrap_err()["code"],
            -32601,
            "{method}"
        );
    }
}

#[tokio::test]
async fn wrong_parameters_are_an_error_of_that_request_only() {
    let mut client = TestClient::start().await;
    let error = client
        .request("prose/viewText", json!({ "uri": 7 }))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    client
        .notify("textDocument/didOpen", json!({ "textDocument": "x" }))
        .await;
    client.open(A, 1, "text").await;
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn the_end_of_stdin_ends_the_session_after_the_last_answers() {
    let mut client = TestClient::start().await;
    client.open(A, 1, "text").await;
    let id = client.send("prose/viewText", json!({ "uri": A })).await;
    client.close_stdin();
    assert_eq!(client.answer(id).await.unwrap()["text"], "text");
    assert_eq!(client.exit_code().await, 1, "nobody said shutdown");
}

#[tokio::test]
async fn the_end_of_stdin_after_shutdown_is_fine() {
    let mut client = TestClient::start().await;
    client.request("shutdown", json!(null)).await.unwrap();
    client.close_stdin();
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn the_host_can_end_the_session() {
    let mut client = TestClient::start().await;
    client.stop_host();
    assert_eq!(client.exit_code().await, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn the_session_ends_with_the_process_of_the_editor() {
    let mut editor = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let params = json!({ "capabilities": {}, "processId": editor.id() });
    let client = TestClient::with(params).await;
    editor.kill().unwrap();
    editor.wait().unwrap();
    assert_eq!(client.exit_code().await, 1);
}

/// Whoever started the editor may be in no hurry to ask how it ended.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_editor_that_nobody_waited_for_is_gone_too() {
    let mut editor = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let params = json!({ "capabilities": {}, "processId": editor.id() });
    let client = TestClient::with(params).await;
    editor.kill().unwrap();
    assert_eq!(client.exit_code().await, 1);
    editor.wait().unwrap();
}

#[tokio::test]
async fn a_process_that_never_was_ends_nothing() {
    let params = json!({ "capabilities": {}, "processId": i32::MAX });
    let mut client = TestClient::with(params).await;
    client.open(A, 1, "text").await;
    assert_eq!(client.text(A).await, "text");
}

#[tokio::test]
async fn malformed_options_are_told_and_ignored() {
    let params = json!({ "capabilities": {}, "initializationOptions": { "trusted": "yes" } });
    let mut client = TestClient::with(params).await;
    let message = client.next("window/showMessage").await;
    assert!(
        message["params"]["message"]
            .as_str()
            .unwrap()
            .contains("initializationOptions")
    );
}
