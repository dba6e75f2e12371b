//! What each API's answers look like on the wire.

use expect_test::{Expect, expect};
use mock_model::{Answer, MockModel, Rule, Script};
use serde_json::{Value, json};

use crate::client::{Came, End, anthropic, ask, chat, hello, hello_chat, read};

fn mock(answer: Answer) -> MockModel {
    MockModel::start_blocking(Script::always(answer)).unwrap()
}

fn rich() -> Answer {
    Answer::text("Now I look.")
        .thinking("Where?")
        .and_call("read", json!({"path": "a.md"}))
        .tokens(10, 20)
        .chunk(8)
}

#[track_caller]
fn check(answer: Came, expected: &Expect) {
    assert_eq!(answer.end, End::Whole, "{answer:?}");
    expected.assert_eq(&answer.body);
}

#[test]
fn anthropic_stream() {
    check(
        anthropic(&mock(rich()), &hello(true)),
        &expect![[r#"
        event: message_start
        data: {"type":"message_start","message":{"id":"msg_mock_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

        event: ping
        data: {"type":"ping"}

        event: content_block_start
        data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Where?"}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"bW9jaw=="}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":0}

        event: content_block_start
        data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Now I lo"}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ok."}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":1}

        event: content_block_start
        data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_mock_1_0","name":"read","input":{}}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a.md\"}"}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":2}

        event: message_delta
        data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}

        event: message_stop
        data: {"type":"message_stop"}

    "#]],
    );
}

#[test]
fn anthropic_whole() {
    check(
        anthropic(&mock(rich()), &hello(false)),
        &expect![[
            r#"{"id":"msg_mock_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Where?","signature":"bW9jaw=="},{"type":"text","text":"Now I look."},{"type":"tool_use","id":"call_mock_1_0","name":"read","input":{"path":"a.md"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}"#
        ]],
    );
}

#[test]
fn chat_stream() {
    check(
        chat(&mock(rich()), &hello_chat(true)),
        &expect![[r#"
        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Where?"},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"content":"Now I lo"},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"content":"ok."},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_mock_1_0","type":"function","function":{"name":"read","arguments":""},"index":0}]},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.md\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}

        data: {"id":"chatcmpl-mock-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}

        data: [DONE]

    "#]],
    );
}

#[test]
fn chat_whole() {
    check(
        chat(&mock(rich()), &hello_chat(false)),
        &expect![[
            r#"{"id":"chatcmpl-mock-1","object":"chat.completion","created":1767225600,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Now I look.","refusal":null,"reasoning_content":"Where?","tool_calls":[{"id":"call_mock_1_0","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.md\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#
        ]],
    );
}

fn responses(stream: bool) -> Came {
    let body = json!({"model": "m", "stream": stream, "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello."}]}]});
    read(ask(&mock(rich()), "/v1/responses", &[], &body))
}

fn gemini(method: &str) -> Came {
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]});
    read(ask(
        &mock(rich()),
        &format!("/v1beta/models/m:{method}"),
        &[],
        &body,
    ))
}

#[test]
fn responses_stream() {
    check(
        responses(true),
        &expect![[r#"
        event: response.created
        data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_mock_1","object":"response","created_at":1767225600,"status":"in_progress","error":null,"incomplete_details":null,"model":"m","output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null}}

        event: response.in_progress
        data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_mock_1","object":"response","created_at":1767225600,"status":"in_progress","error":null,"incomplete_details":null,"model":"m","output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"reasoning","id":"rs_mock_1","summary":[{"type":"summary_text","text":"Where?"}]}}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"type":"reasoning","id":"rs_mock_1","summary":[{"type":"summary_text","text":"Where?"}]}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":4,"output_index":1,"item":{"type":"message","id":"msg_mock_1","status":"in_progress","role":"assistant","content":[]}}

        event: response.content_part.added
        data: {"type":"response.content_part.added","sequence_number":5,"item_id":"msg_mock_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}

        event: response.output_text.delta
        data: {"type":"response.output_text.delta","sequence_number":6,"item_id":"msg_mock_1","output_index":1,"content_index":0,"delta":"Now I lo"}

        event: response.output_text.delta
        data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_mock_1","output_index":1,"content_index":0,"delta":"ok."}

        event: response.output_text.done
        data: {"type":"response.output_text.done","sequence_number":8,"item_id":"msg_mock_1","output_index":1,"content_index":0,"text":"Now I look."}

        event: response.content_part.done
        data: {"type":"response.content_part.done","sequence_number":9,"item_id":"msg_mock_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Now I look.","annotations":[]}}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":10,"output_index":1,"item":{"type":"message","id":"msg_mock_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Now I look.","annotations":[]}]}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":11,"output_index":2,"item":{"type":"function_call","id":"fc_call_mock_1_0","call_id":"call_mock_1_0","name":"read","arguments":"","status":"in_progress"}}

        event: response.function_call_arguments.delta
        data: {"type":"response.function_call_arguments.delta","sequence_number":12,"item_id":"fc_call_mock_1_0","output_index":2,"delta":"{\"path\":"}

        event: response.function_call_arguments.delta
        data: {"type":"response.function_call_arguments.delta","sequence_number":13,"item_id":"fc_call_mock_1_0","output_index":2,"delta":"\"a.md\"}"}

        event: response.function_call_arguments.done
        data: {"type":"response.function_call_arguments.done","sequence_number":14,"item_id":"fc_call_mock_1_0","output_index":2,"arguments":"{\"path\":\"a.md\"}"}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":15,"output_index":2,"item":{"type":"function_call","id":"fc_call_mock_1_0","call_id":"call_mock_1_0","name":"read","arguments":"{\"path\":\"a.md\"}","status":"completed"}}

        event: response.completed
        data: {"type":"response.completed","sequence_number":16,"response":{"id":"resp_mock_1","object":"response","created_at":1767225600,"status":"completed","error":null,"incomplete_details":null,"model":"m","output":[{"type":"reasoning","id":"rs_mock_1","summary":[{"type":"summary_text","text":"Where?"}]},{"type":"message","id":"msg_mock_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Now I look.","annotations":[]}]},{"type":"function_call","id":"fc_call_mock_1_0","call_id":"call_mock_1_0","name":"read","arguments":"{\"path\":\"a.md\"}","status":"completed"}],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":30}}}

    "#]],
    );
}

#[test]
fn responses_whole() {
    check(
        responses(false),
        &expect![[
            r#"{"id":"resp_mock_1","object":"response","created_at":1767225600,"status":"completed","error":null,"incomplete_details":null,"model":"m","output":[{"type":"reasoning","id":"rs_mock_1","summary":[{"type":"summary_text","text":"Where?"}]},{"type":"message","id":"msg_mock_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Now I look.","annotations":[]}]},{"type":"function_call","id":"fc_call_mock_1_0","call_id":"call_mock_1_0","name":"read","arguments":"{\"path\":\"a.md\"}","status":"completed"}],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":30}}"#
        ]],
    );
}

#[test]
fn responses_call_tools_of_a_namespace() {
    let rule = Rule::user("Hello").tool(r"^mcp__own\.write$");
    let answer = Answer::call("mcp__own.write", json!({"value": "x"})).and_call("read", json!({}));
    let body = json!({
        "model": "m",
        "input": [{"role": "user", "content": "Hello."}],
        "tools": [
            {"type": "function", "name": "read"},
            {"type": "namespace", "name": "mcp__own", "tools": [{"type": "function", "name": "write"}]},
        ],
    });
    let mock = MockModel::start_blocking(Script::new().rule(rule.answer(answer))).unwrap();
    let came = read(ask(&mock, "/v1/responses", &[], &body));
    let whole: Value = serde_json::from_str(&came.body).unwrap();
    let called = |call: usize| {
        (
            &whole["output"][call]["namespace"],
            &whole["output"][call]["name"],
        )
    };
    assert_eq!(called(0), (&json!("mcp__own"), &json!("write")));
    assert_eq!(called(1), (&Value::Null, &json!("read")));
}

#[test]
fn gemini_stream() {
    check(
        gemini("streamGenerateContent?alt=sse"),
        &expect![[r#"
        data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Where?","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":30},"modelVersion":"m","responseId":"mock-1"}

        data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Now I lo"}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":30},"modelVersion":"m","responseId":"mock-1"}

        data: {"candidates":[{"content":{"role":"model","parts":[{"text":"ok."}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":30},"modelVersion":"m","responseId":"mock-1"}

        data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_mock_1_0","name":"read","args":{"path":"a.md"}}}]},"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":30},"modelVersion":"m","responseId":"mock-1"}

    "#]],
    );
}

#[test]
fn gemini_whole() {
    check(
        gemini("generateContent"),
        &expect![[
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Where?","thought":true},{"text":"Now I look."},{"functionCall":{"id":"call_mock_1_0","name":"read","args":{"path":"a.md"}}}]},"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":30},"modelVersion":"m","responseId":"mock-1"}"#
        ]],
    );
}

#[test]
fn gemini_streams_an_array_unless_told() {
    let came: serde_json::Value = serde_json::from_str(&gemini("streamGenerateContent").body).unwrap();
    assert!(came.as_array().unwrap().len() > 2);
}
