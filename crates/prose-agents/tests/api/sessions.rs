//! Sessions that end well, and those that a limit ends.

use expect_test::expect;
use mock_model::{Answer, Fault, MockModel, Place, Rule, Script, Stop, Usage as Tokens};
use prose_agents::*;
use prose_model::*;
use serde_json::json;

use crate::harness::*;

#[tokio::test]
async fn a_session_sends_what_it_is_given_and_its_reply_is_the_result() {
    for kind in KINDS {
        let answer = Answer::text("All is well.").tokens(20, 5).chunk(4);
        let mock = MockModel::start(Script::always(answer).key(KEY)).await.unwrap();
        let (reply, sink) = run(&backend(kind, &mock), "Look at it").await;
        let reply = reply.unwrap();
        assert_eq!(
            (text(&reply), sink.text().as_str()),
            ("All is well.", "All is well."),
            "{kind}"
        );
        assert_eq!(
            (reply.usage.input_tokens, reply.usage.output_tokens),
            (20, 5),
            "{kind}"
        );
        assert_eq!(reply.usage.cost_usd, None, "no price is known of it");
        assert_eq!(sink.usage(), Some(reply.usage));
        assert_eq!(*sink.started.lock().unwrap(), [Some("model-s".to_owned())]);
        assert_eq!(reply.memory, None);
        let asked = mock.asked();
        assert_eq!(asked.len(), 1);
        let body = asked[0].body.to_string();
        assert!(
            body.contains("You are strict.") && body.contains("Look at it"),
            "{body}"
        );
        assert_eq!(asked[0].body["model"], "model-s");
        assert_eq!(asked[0].body["stream"], true);
    }
}

#[tokio::test]
async fn a_model_is_meant_by_its_name() {
    let mock = MockModel::start(Script::always(Answer::text("ok")))
        .await
        .unwrap();
    for (kind, name, id) in [
        ("anthropic", Some("opus"), "model-o"),
        ("anthropic", Some("haiku"), "claude-haiku-4-5"),
        ("openai", Some("qwen3:8b"), "qwen3:8b"),
        ("openai", None, "model-s"),
    ] {
        let (mut session, _) = spawn("x");
        let mut request = (*session.request).clone();
        request.model = name.map(str::to_owned);
        session.request = request.into();
        backend(kind, &mock).sessions.spawn(session).await.unwrap();
        assert_eq!(mock.asked().last().unwrap().body["model"], id);
    }
}

#[tokio::test]
async fn a_server_with_one_model_needs_no_names() {
    let mut script = Script::always(Answer::text("ok"));
    script.models = vec!["the-one".to_owned()];
    let mock = MockModel::start(script.clone()).await.unwrap();
    let mut spec = spec("openai", &mock);
    spec.models.clear();
    spec.api_key_env = None;
    let local = create(&spec, &variables(), limits()).unwrap();
    run(&local, "x").await.0.unwrap();
    run(&local, "y").await.0.unwrap();
    assert!(mock.asked().iter().all(|asked| asked.body["model"] == "the-one"));
    assert_eq!(mock.requests().len(), 3, "the list is asked for once");
    assert!(
        mock.requests()
            .iter()
            .all(|asked| !asked.headers.contains_key("authorization"))
    );

    script.models.push("another".to_owned());
    let mock = MockModel::start(script).await.unwrap();
    spec.base_url = Some(mock.url());
    let local = create(&spec, &variables(), limits()).unwrap();
    let failure = run(&local, "x").await.0.unwrap_err();
    expect![[r#"openai: which of its models is `sonnet`? it has the-one, another. Say so in prose.toml: [models.openai] sonnet = "…""#]]
        .assert_eq(&failure.message);
}

#[tokio::test]
async fn known_models_have_a_price_and_a_cache_its_own() {
    let usage = Tokens {
        input: Some(1000),
        output: Some(100),
        cache_read: 10_000,
        cache_write: 0,
        reasoning: 0,
    };
    for (kind, model, cost) in [
        (
            "anthropic",
            "claude-sonnet-4-5",
            (1000.0 * 3.0 + 10_000.0 * 0.3 + 100.0 * 15.0) / 1e6,
        ),
        (
            "openai",
            "gpt-5.1",
            (1000.0 * 1.25 + 10_000.0 * 0.125 + 100.0 * 10.0) / 1e6,
        ),
    ] {
        let answer = Answer::text("ok").usage(usage);
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let mut spec = spec(kind, &mock);
        spec.models.insert("sonnet".to_owned(), model.to_owned());
        let backend = create(&spec, &variables(), limits()).unwrap();
        let reply = run(&backend, "x").await.0.unwrap();
        assert_eq!(
            (reply.usage.input_tokens, reply.usage.output_tokens),
            (11_000, 100),
            "{kind}"
        );
        assert!(
            (reply.usage.cost_usd.unwrap() - cost).abs() < 1e-9,
            "{kind} {:?}",
            reply.usage
        );
    }
}

#[tokio::test]
async fn a_price_that_is_configured_counts_before_the_list() {
    for kind in KINDS {
        let answer = Answer::text("ok").tokens(1_000_000, 1_000_000);
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let mut spec = spec(kind, &mock);
        let price = prose_model::backend::Price {
            input: 1.0,
            output: 2.0,
            cached_input: None,
        };
        spec.prices.insert("model-s".to_owned(), price);
        let backend = create(&spec, &variables(), limits()).unwrap();
        let reply = run(&backend, "x").await.0.unwrap();
        assert_eq!(reply.usage.cost_usd, Some(3.0), "{kind}");
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_said_to_the_model_and_usage_adds_up() {
    for kind in KINDS {
        let script = Script::new().rule(
            Rule::any().turns([
                Answer::text("I look.")
                    .and_call("no_such_tool", json!({"path": "a"}))
                    .tokens(10, 2),
                Answer::text("There is nothing.").tokens(30, 4),
            ]),
        );
        let mock = MockModel::start(script).await.unwrap();
        let (reply, sink) = run(&backend(kind, &mock), "x").await;
        let reply = reply.unwrap();
        assert_eq!(
            text(&reply),
            "There is nothing.",
            "only the last word is the result"
        );
        assert_eq!(sink.text(), "I look.There is nothing.");
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (40, 6));
        let asked = mock.asked();
        let last = asked[1].body["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(last.contains("no_such_tool"), "{last}");
    }
}

#[tokio::test]
async fn the_last_word_before_a_silent_end_counts() {
    for kind in KINDS {
        let script = Script::new().rule(Rule::any().turns([
            Answer::text("The result.").and_call("note", json!({})),
            Answer::text(""),
        ]));
        let mock = MockModel::start(script).await.unwrap();
        let (reply, _) = run(&backend(kind, &mock), "x").await;
        assert_eq!(text(&reply.unwrap()), "The result.", "{kind}");
    }
}

#[tokio::test]
async fn a_session_that_only_uses_tools_comes_to_an_end() {
    for kind in KINDS {
        let answer = Answer::call("again", json!({})).tokens(10, 1);
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let failure = run(&backend(kind, &mock), "x").await.0.unwrap_err();
        assert_eq!(
            failure.message,
            format!("{kind}: the session used tools for 6 rounds without coming to a result")
        );
        assert_eq!((failure.usage.input_tokens, mock.asked().len()), (60, 6));
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_or_declined_is_no_result() {
    let cases = [
        (
            Stop::MaxTokens,
            "the answer was cut at the model's limit of tokens; ask for less at once, or for parts",
        ),
        (Stop::Refusal, "`model-s` declined to answer"),
    ];
    for kind in KINDS {
        for (stop, message) in cases {
            let answer = Answer::text("I can").stop(stop).tokens(7, 3);
            let mock = MockModel::start(Script::always(answer)).await.unwrap();
            let failure = run(&backend(kind, &mock), "x").await.0.unwrap_err();
            assert_eq!(failure.kind, ErrorKind::Backend);
            assert!(
                failure.message.starts_with(&format!("{kind}: {message}")),
                "{}",
                failure.message
            );
            assert_eq!(
                (failure.usage.output_tokens, mock.asked().len()),
                (3, 1),
                "it is not tried again"
            );
        }
    }
    let answer = Answer::text("I").stop(Stop::Filtered);
    let mock = MockModel::start(Script::always(answer)).await.unwrap();
    let failure = run(&backend("openai", &mock), "x").await.0.unwrap_err();
    expect!["openai: `model-s` declined to answer: the service's filter kept the answer back"]
        .assert_eq(&failure.message);
}

#[tokio::test]
async fn a_budget_bounds_answers_and_stops_before_the_next_call() {
    for kind in KINDS {
        let answer = Answer::call("again", json!({})).tokens(400, 80);
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let backend = backend(kind, &mock);
        let (mut session, _) = spawn("x");
        session.budget.tokens = Some(1000);
        let failure = backend.sessions.spawn(session).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.usage.tokens()),
            (ErrorKind::Budget, 960),
            "{kind}"
        );
        let asked = mock.asked();
        assert_eq!(asked.len(), 2, "{kind}");
        let limits: Vec<u64> = asked
            .iter()
            .map(|asked| asked.body["max_tokens"].as_u64().unwrap())
            .collect();
        assert!(
            limits[0] < 1000 && limits[1] < 520 && limits[1] > 100,
            "{limits:?}"
        );

        // Money is a limit where a price is known.
        let answer = Answer::text("never").stop(Stop::MaxTokens).tokens(400, 80);
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let mut spec = spec(kind, &mock);
        spec.models
            .insert("sonnet".to_owned(), "claude-sonnet-4-5".to_owned());
        let priced = create(&spec, &variables(), limits_of()).unwrap();
        let (mut session, _) = spawn("x");
        session.budget.usd = Some(0.003);
        let failure = priced.sessions.spawn(session).await.unwrap_err();
        assert_eq!(
            failure.kind,
            ErrorKind::Budget,
            "the limit that cut it was the budget's: {failure:?}"
        );
        let limit = mock.asked()[0].body["max_tokens"].as_u64().unwrap();
        assert!((100..200).contains(&limit), "{limit}");
    }
}

fn limits_of() -> prose_agents::api::Limits {
    limits()
}

#[tokio::test]
async fn memory_is_asked_for_after_the_result() {
    for kind in KINDS {
        let script = Script::new()
            .rule(Rule::any().forced(true).answer(
                Answer::json(json!({"memory": "# I know\n\nThe draft has two errors.", "segment": "Looked at it."}))
                    .tokens(50, 20),
            ))
            .rule(Rule::any().answer(Answer::text("Two errors.").tokens(10, 2)));
        let mock = MockModel::start(script).await.unwrap();
        let (mut session, sink) = spawn("Review");
        session.memory = Some(MemoryContext {
            text: None,
            segment: 3,
        });
        let reply = backend(kind, &mock).sessions.spawn(session).await.unwrap();
        assert_eq!(text(&reply), "Two errors.", "{kind}");
        assert_eq!(
            reply.memory,
            Some(MemoryUpdate::Text {
                memory: "# I know\n\nThe draft has two errors.\n".to_owned(),
                segment: "Looked at it.\n".to_owned(),
            })
        );
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (60, 22));
        assert_eq!(sink.text(), "Two errors.", "what is remembered is no progress");
        let body = mock.asked()[1].body.to_string();
        assert!(
            body.contains("segment 003") && body.contains("Two errors."),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_memory_that_can_not_be_had_costs_no_result() {
    for kind in KINDS {
        let script = Script::new()
            .rule(
                Rule::any()
                    .forced(true)
                    .answer(Answer::json(json!({"memory": ""}))),
            )
            .rule(Rule::any().answer(Answer::text("Done.")));
        let mock = MockModel::start(script).await.unwrap();
        let (mut session, sink) = spawn("Review");
        session.memory = Some(MemoryContext {
            text: Some("old".to_owned()),
            segment: 1,
        });
        let reply = backend(kind, &mock).sessions.spawn(session).await.unwrap();
        assert_eq!((text(&reply), &reply.memory), ("Done.", &None), "{kind}");
        assert_eq!(mock.asked().len(), 3, "it is asked for twice");
        assert_eq!(
            *sink.notices.lock().unwrap(),
            ["the agent's memory stays as it was: it could not be read"]
        );
    }
}

#[tokio::test]
async fn a_cancelled_session_leaves_the_connection() {
    for kind in KINDS {
        let answer = Answer::text("never").fault(mock_model::Fault::Hang { after: None });
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let (session, _) = spawn("x");
        let cancel = session.cancel.clone();
        let backend = backend(kind, &mock);
        let task = tokio::spawn(async move { backend.sessions.spawn(session).await });
        mock.wait(|counts| counts.asked == 1).await;
        cancel.cancel();
        assert!(task.await.unwrap().is_err());
        mock.wait(|counts| counts.open == 0).await;
    }
}

#[test]
fn what_is_missing_is_said_with_how_to_mend_it() {
    let none = prose_model::backend::Variables::default();
    let spec = |kind: &str| prose_model::backend::BackendSpec {
        name: kind.to_owned(),
        kind: kind.to_owned(),
        ..Default::default()
    };
    let error = |spec| create(&spec, &none, limits()).err().unwrap().to_string();
    expect![[r#"
        backend `anthropic` is not usable: there is no key in ANTHROPIC_API_KEY
          to set it up: put a key of Anthropic's API into ANTHROPIC_API_KEY, in the environment or in .prose/.env"#]]
    .assert_eq(&error(spec("anthropic")));
    let mut bad = spec("openai");
    bad.base_url = Some("ftp://x".to_owned());
    expect![[r#"
        backend `openai` is not usable: its base_url is no http or https address
          to set it up: put a key of OpenAI's API into OPENAI_API_KEY, or name a compatible server (Ollama, vLLM, llama.cpp, LM Studio) in prose.toml: [backends.openai] base_url = "http://127.0.0.1:11434/v1""#]]
    .assert_eq(&error(bad));
    let mut local = spec("openai");
    local.base_url = Some("http://127.0.0.1:1".to_owned());
    assert!(
        create(&local, &none, limits()).is_ok(),
        "a server of one's own needs no key"
    );
}

#[tokio::test]
async fn what_was_used_is_known_though_the_answer_never_ends() {
    let answer = Answer::text("one two three")
        .chunk(4)
        .tokens(10, 3)
        .fault(Fault::Hang {
            after: Some(Place::Events(4)),
        });
    let mock = MockModel::start(Script::always(answer)).await.unwrap();
    let backend = backend("anthropic", &mock);
    let (session, sink) = spawn("x");
    let cancel = session.cancel.clone();
    let used = async {
        // It is told before the answer is whole.
        while sink.usage().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(backend.sessions.spawn(session), used);
    assert_eq!(reply.unwrap_err().usage.input_tokens, 10);
    assert_eq!(sink.usage().unwrap().input_tokens, 10);
}

#[tokio::test]
async fn a_key_goes_only_to_whom_it_is_meant_for() {
    use prose_model::backend::Variables;
    let keys = [
        ("ANTHROPIC_API_KEY", KEY),
        ("OPENAI_API_KEY", KEY),
        ("TEST_KEY", KEY),
    ];
    let keys = keys.map(|(name, key)| (name.to_owned(), key.to_owned()));
    let variables = Variables::new(keys.into(), Default::default());
    for kind in KINDS {
        for (named, sent) in [(None, false), (Some("TEST_KEY".to_owned()), true)] {
            let mock = MockModel::start(Script::always(Answer::text("ok")))
                .await
                .unwrap();
            let mut spec = spec(kind, &mock);
            spec.api_key_env = named;
            let backend = create(&spec, &variables, limits()).unwrap();
            run(&backend, "x").await.0.unwrap();
            let asked = &mock.asked()[0];
            let has = ["x-api-key", "authorization"]
                .iter()
                .any(|name| asked.headers.contains_key(*name));
            assert_eq!(has, sent, "{kind}: {:?}", asked.headers);
        }
        // Nobody on the way may read it.
        for (address, usable) in [
            ("http://models.example", false),
            ("http://10.0.0.1:8080/v1", false),
            ("https://models.example/v1", true),
            ("http://localhost:1", true),
            ("http://[::1]:1", true),
        ] {
            let spec = prose_model::backend::BackendSpec {
                name: kind.to_owned(),
                kind: kind.to_owned(),
                base_url: Some(address.to_owned()),
                api_key_env: Some("TEST_KEY".to_owned()),
                ..Default::default()
            };
            let made = create(&spec, &variables, limits());
            assert_eq!(made.is_ok(), usable, "{kind} {address}");
            if let Err(error) = made {
                assert!(error.to_string().contains("leave `api_key_env` out"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn tools_are_offered_by_permission_and_do_their_work() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.md"), "The answer is 42.").unwrap();
        let script = Script::new().rule(
            Rule::any().turns([
                Answer::call("read", json!({"path": "notes.md"}))
                    .and_call("write", json!({"path": "out.md", "content": "42"})),
                Answer::call("read", json!({"path": "../secret"})),
                Answer::text("42"),
            ]),
        );
        let mock = MockModel::start(script).await.unwrap();
        let (mut session, sink) = spawn("Look it up");
        session.work_dir = folder.path().to_owned();
        let mut request = (*session.request).clone();
        request.permissions = vec![PermissionRule {
            key: "bash".into(),
            rule: PermissionValue::Deny,
        }];
        session.request = request.into();
        let reply = backend(kind, &mock).sessions.spawn(session).await.unwrap();
        assert_eq!(text(&reply), "42", "{kind}");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("out.md")).unwrap(),
            "42"
        );
        let asked = mock.asked();
        let offered = asked[0].body["tools"].to_string();
        assert!(
            offered.contains("\"read\"") && !offered.contains("\"bash\""),
            "{offered}"
        );
        assert!(asked[1].body.to_string().contains("The answer is 42."));
        let refused = asked[2].body["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(refused.contains("outside of the workspace"), "{refused}");
        assert!(
            sink.tools().iter().any(|tool| tool.starts_with("read ")),
            "{:?}",
            sink.tools()
        );
    }
}
