//! Judgements through both services.

use std::sync::Arc;

use mock_model::{Answer, Fault, MockModel, Rule, Script, Stop};
use prose_agents::*;
use prose_model::*;
use serde_json::json;

use crate::harness::*;

fn question(ask: Ask, text: &str) -> JudgeInput {
    JudgeInput {
        effect: "main/1".into(),
        stmt: "main/1".into(),
        request: Arc::new(JudgeRequest {
            ask,
            text: Text::inline(text),
            names: Vec::new(),
            history: Vec::new(),
        }),
        text: text.to_owned(),
        attempt: 1,
        content: Arc::new(InlineContent),
        budget: SpendLimit::default(),
        cancel: CancelToken::new(),
    }
}

#[tokio::test]
async fn a_condition_is_decided_with_reason_confidence_and_cost() {
    for kind in KINDS {
        let answer = Answer::json(json!({"reason": "two errors", "decision": "no", "confidence": 0.8}));
        let script = Script::new().rule(Rule::any().forced(true).answer(answer.tokens(100, 10)));
        let mock = MockModel::start(script).await.unwrap();
        let verdict = backend(kind, &mock)
            .judge
            .decide(question(Ask::Condition, "it is right"))
            .await
            .unwrap();
        assert_eq!(
            (&verdict.decision, verdict.confidence),
            (&Decision::No, 0.8),
            "{kind}"
        );
        assert_eq!(verdict.reason, "two errors");
        assert_eq!(
            (verdict.usage.input_tokens, verdict.usage.output_tokens),
            (100, 10)
        );
        let body = mock.asked()[0].body.to_string();
        assert!(
            body.contains("it is right") && body.contains(r#""enum":["yes","no","unsure"]"#),
            "{body}"
        );
    }
}

#[tokio::test]
async fn the_judge_has_a_model_of_its_own_if_it_is_given_one() {
    let answer = Answer::json(json!({"reason": "", "decision": "b", "confidence": 1}));
    for kind in KINDS {
        let mock = MockModel::start(Script::always(answer.clone())).await.unwrap();
        let mut spec = spec(kind, &mock);
        let options = Ask::Choice {
            options: vec!["a".to_owned(), "b".to_owned()],
        };
        let usual = create(&spec, &variables(), limits()).unwrap();
        usual
            .judge
            .decide(question(options.clone(), "which"))
            .await
            .unwrap();
        spec.models.insert("judge".to_owned(), "model-j".to_owned());
        let own = create(&spec, &variables(), limits()).unwrap();
        let verdict = own.judge.decide(question(options, "which")).await.unwrap();
        assert_eq!(verdict.decision, Decision::Option("b".to_owned()));
        let asked = mock.asked();
        let models: Vec<_> = asked
            .iter()
            .map(|asked| asked.body["model"].as_str().unwrap())
            .collect();
        assert_eq!(models, ["model-s", "model-j"], "{kind}");
    }
}

#[tokio::test]
async fn a_server_without_schemas_is_asked_in_words() {
    let refused = Answer::text("").fault(Fault::Status {
        code: 400,
        retry_after: None,
        message: Some("response_format is not supported".to_owned()),
        body: None,
    });
    let plain =
        Answer::text("Sure:\n```json\n{\"decision\": \"yes\", \"confidence\": 1, \"reason\": \"so\"}\n```");
    let script = Script::new()
        .rule(Rule::any().forced(true).answer(refused))
        .rule(Rule::any().answer(plain));
    let mock = MockModel::start(script).await.unwrap();
    let backend = backend("openai", &mock);
    for _ in 0..2 {
        let verdict = backend
            .judge
            .decide(question(Ask::Condition, "it is so"))
            .await
            .unwrap();
        assert_eq!(verdict.decision, Decision::Yes);
    }
    assert_eq!(mock.asked().len(), 3, "the server is taken at its word");
    assert!(
        mock.asked()[2].body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("JSON object")
    );
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure_of_the_judge() {
    for kind in KINDS {
        for answer in [
            Answer::json(json!({"decision": "perhaps"})),
            Answer::json(json!({"decision": "yes"})).stop(Stop::MaxTokens),
            Answer::text("I will not.").stop(Stop::Refusal),
        ] {
            let mock = MockModel::start(Script::always(answer.tokens(5, 5)))
                .await
                .unwrap();
            let failure = backend(kind, &mock)
                .judge
                .decide(question(Ask::Condition, "x"))
                .await
                .unwrap_err();
            assert_eq!(
                (failure.kind, failure.usage.output_tokens),
                (ErrorKind::Judge, 5),
                "{kind} {failure:?}"
            );
        }
    }
}

#[tokio::test]
async fn content_is_read() {
    for kind in KINDS {
        let answer = Answer::json(json!({"reason": "", "value": ["a", "b"]}));
        let mock = MockModel::start(Script::always(answer)).await.unwrap();
        let input = DecodeInput {
            effect: "main/1".into(),
            text: "first a, then b".to_owned(),
            target: DecodeTarget::List,
            budget: SpendLimit::default(),
            cancel: CancelToken::new(),
        };
        let value = backend(kind, &mock).judge.decode(input).await;
        assert_eq!(
            value.map(|reading| reading.value),
            Ok(Value::list(vec![Value::text("a"), Value::text("b")])),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_judgement_costs_no_more_than_is_left() {
    for kind in KINDS {
        let answer = json!({"reason": "two errors", "decision": "no", "confidence": 0.8});
        let script = Script::new().rule(Rule::any().forced(true).answer(Answer::json(answer)));
        let mock = MockModel::start(script).await.unwrap();
        let with = |tokens| JudgeInput {
            budget: SpendLimit {
                usd: None,
                tokens: Some(tokens),
            },
            ..question(Ask::Condition, "it is right")
        };
        let judge = backend(kind, &mock).judge;
        judge.decide(with(1_500)).await.unwrap();
        let body = mock.asked()[0].body.clone();
        let most = ["max_tokens", "max_completion_tokens"]
            .iter()
            .find_map(|name| body[name].as_u64());
        assert!(most.is_some_and(|most| most < 1_500), "{kind}: {body}");
        let failure = judge.decide(with(10)).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Budget, "{kind}");
        assert_eq!(mock.asked().len(), 1, "{kind}");
    }
}
