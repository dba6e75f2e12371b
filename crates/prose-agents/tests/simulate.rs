//! The simulate backend: which rule answers, what is made up, how the registry finds it.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;

use expect_test::expect;
use prose_agents::prompt::RenderedPrompt;
use prose_agents::*;
use prose_model::*;

fn session(label: &str, agent: Option<&str>, binding: &str) -> SessionRequest {
    SessionRequest {
        agent: agent.map(Into::into),
        label: label.to_owned(),
        model: None,
        system: None,
        task: Text::inline(label),
        context: Vec::new(),
        context_given: false,
        skills: Vec::new(),
        permissions: Vec::new(),
        memory: None,
        binding: BindingTarget {
            binding: BindingRef {
                name: binding.into(),
                execution_id: None,
                program: Vec::new(),
            },
            bind_kind: BindKind::Let,
            source: SourceRange {
                file: 0,
                start: 0,
                end: 0,
            },
        },
        scope: None,
        attempt: 1,
        max_attempts: 1,
    }
}

fn issued(order: u64, effect: Effect) -> Issued {
    Issued {
        id: format!("e{order}").into(),
        stmt: "main/0".into(),
        src: SourceRange {
            file: 0,
            start: 0,
            end: 0,
        },
        execution_id: None,
        order,
        effect,
    }
}

/// Issues the effects in order and answers them in the opposite order.
async fn answers(mock: &str, requests: Vec<SessionRequest>) -> Vec<String> {
    let sim = Simulate::new(MockFile::parse(mock).unwrap(), false);
    let mut spawns = Vec::new();
    for (order, request) in requests.into_iter().enumerate() {
        let issued = issued(order as u64, Effect::Session(Arc::new(request.clone())));
        sim.issued(&issued, &InlineContent).unwrap();
        spawns.push((issued.id, Arc::new(request)));
    }
    let mut out = Vec::new();
    for (effect, request) in spawns.into_iter().rev() {
        let clock = Clock::virtual_time();
        let reply = sim
            .spawn(SessionSpawn {
                effect,
                order: 0,
                lease: 1,
                request,
                prompt: RenderedPrompt::default(),
                work_dir: PathBuf::new(),
                staging: PathBuf::new(),
                memory: None,
                timeout: None,
                budget: Default::default(),
                sink: Arc::new(NullSink),
                cancel: CancelToken::new(),
                clock: clock.clone(),
            })
            .await;
        out.push(match reply {
            Ok(SessionReply {
                body: ReplyBody::Text(text),
                ..
            }) => format!("{text} @{}", clock.elapsed_ms()),
            Ok(other) => format!("{other:?}"),
            Err(failure) => format!("{:?}: {} @{}", failure.kind, failure.message, clock.elapsed_ms()),
        });
    }
    out.reverse();
    out
}

#[tokio::test]
async fn the_first_matching_rule_wins_and_nth_counts_in_issue_order() {
    let mock = r#"
[defaults]
reply = "{label}/{agent}/{binding}/{unknown}{"
delay_ms = 7
[[session]]
agent = "critic"
nth = 2
fail = "timeout"
[[session]]
agent = "critic"
binding = "b"
reply = "bound"
delay_ms = 50
[[session]]
prompt = "^Wri.e$"
reply = "{label} is not filled in here"
[[session]]
prompt = "odd"
fail = "the disk is full"
"#;
    let requests = vec![
        session("one", Some("critic"), "b"),
        session("two", Some("critic"), "b"),
        session("three", Some("critic"), "c"),
        session("Write", None, "x"),
        session("an odd one", None, "x"),
        session("four", Some("other"), "x"),
    ];
    expect![[r#"
        bound @50
        Timeout: [simulated] failure: timeout @7
        three/critic/c/{unknown}{ @7
        {label} is not filled in here @7
        Backend: the disk is full @7
        four/other/x/{unknown}{ @7"#]]
    .assert_eq(&answers(mock, requests).await.join("\n"));
}

#[tokio::test]
async fn unmatched_answers_say_that_they_are_simulated() {
    let answers = answers("", vec![session("Do it", None, "x")]).await;
    assert_eq!(answers, ["[simulated] Do it @0"]);
}

async fn verdicts(mock: &str, asks: Vec<(Ask, &str)>) -> Vec<String> {
    let sim = Simulate::new(MockFile::parse(mock).unwrap(), false);
    let mut out = Vec::new();
    for (order, (ask, text)) in asks.into_iter().enumerate() {
        let request = JudgeRequest {
            ask,
            text: Text::inline(text),
            names: Vec::new(),
            history: Vec::new(),
        };
        let issued = issued(order as u64, Effect::Judge(Box::new(request.clone())));
        sim.issued(&issued, &InlineContent).unwrap();
        let ask = request.ask.clone();
        let answer = sim
            .decide(JudgeInput {
                effect: issued.id,
                stmt: issued.stmt,
                request: Arc::new(request),
                text: text.to_owned(),
                attempt: 1,
                content: Arc::new(InlineContent),
                budget: SpendLimit::default(),
                cancel: CancelToken::new(),
            })
            .await;
        out.push(match answer {
            Ok(verdict) => {
                assert!(decision_fits(&ask, &verdict.decision), "{verdict:?}");
                format!("{:?}", verdict.decision)
            }
            Err(failure) => format!("{:?}: {}", failure.kind, failure.message),
        });
    }
    out
}

fn test(until: bool, test: u32, frame: &str) -> Ask {
    Ask::Loop {
        until,
        test,
        frame: frame.into(),
        previous: Vec::new(),
    }
}

#[tokio::test]
async fn unmatched_questions_let_loops_run_once() {
    let options = vec!["A".to_owned(), "B".to_owned()];
    let asks = vec![
        (Ask::Condition, "x"),
        (test(true, 0, "l"), "x"),
        (test(true, 1, "l"), "x"),
        (test(false, 0, "m"), "x"),
        (test(false, 1, "m"), "x"),
        (Ask::Choice { options }, "x"),
    ];
    assert_eq!(
        verdicts("", asks).await,
        ["Yes", "No", "Yes", "Yes", "No", "Option(\"A\")"]
    );
}

#[tokio::test]
async fn answers_go_by_loop_and_the_last_one_repeats() {
    let mock = r#"
[[verdict]]
condition = "done"
answers = [false, "unsure", true]
[[verdict]]
condition = "which"
answers = ["b", "nothing"]
[[verdict]]
condition = "ok"
answers = [true, "perhaps"]
"#;
    let options = vec!["A".to_owned(), "B".to_owned()];
    let asks = vec![
        (test(true, 0, "l"), "done?"),
        (test(true, 1, "l"), "done?"),
        (test(true, 0, "other"), "done?"),
        (test(true, 2, "l"), "done?"),
        (test(true, 3, "l"), "done?"),
        (
            Ask::Choice {
                options: options.clone(),
            },
            "which",
        ),
        (Ask::Choice { options }, "which"),
        (Ask::Condition, "ok"),
        (Ask::Condition, "ok"),
    ];
    expect![[r#"
        No
        Unsure
        No
        Yes
        Yes
        Option("B")
        Backend: mock verdict for **which**: `nothing` is none of the options A, B
        Yes
        Backend: mock verdict for **ok**: a condition is answered by true, false, "unsure" or, in a loop, "no-progress""#]]
    .assert_eq(&verdicts(mock, asks).await.join("\n"));
}

#[tokio::test]
async fn decodings_and_inputs() {
    let mock =
        "[[decode]]\ntext = \"^three\"\nvalue = [1, 2, 3]\n[[input]]\nname = \"topic\"\nvalue = \"bees\"\n";
    let sim = Simulate::new(MockFile::parse(mock).unwrap(), false);
    let decode = async |text: &str, target| {
        let input = DecodeInput {
            effect: "e".into(),
            text: text.to_owned(),
            target,
            budget: SpendLimit::default(),
            cancel: CancelToken::new(),
        };
        plain_json(&sim.decode(input).await.unwrap().value, &InlineContent)
            .unwrap()
            .to_string()
    };
    assert_eq!(decode("three things", DecodeTarget::List).await, "[1,2,3]");
    assert_eq!(decode("prose", DecodeTarget::List).await, r#"["prose"]"#);
    assert_eq!(
        decode("prose", DecodeTarget::Record(vec!["a".into()])).await,
        r#"{"a":null}"#
    );
    assert_eq!(decode("prose", DecodeTarget::Number).await, "1");
    assert_eq!(decode("prose", DecodeTarget::Bool).await, "true");

    let input = async |sim: &Simulate, name: &str| {
        let request = InputRequest {
            name: name.into(),
            prompt: Text::default(),
            options: Vec::new(),
        };
        sim.answer(&"e".into(), &request, "").await
    };
    assert_eq!(input(&sim, "topic").await, Some(Value::text("bees")));
    assert_eq!(input(&sim, "other").await, Some(Value::text("[simulated] other")));
    let asking = Simulate::new(
        MockFile::parse(&format!("[defaults]\nask = true\n{mock}")).unwrap(),
        false,
    );
    assert_eq!(input(&asking, "topic").await, Some(Value::text("bees")));
    assert_eq!(input(&asking, "other").await, None);
    let strict = Simulate::replay(MockFile::parse(mock).unwrap(), false);
    assert_eq!(input(&strict, "other").await, None);
}

fn open(name: Option<&str>, mock: Option<&str>) -> Result<Backend, BackendError> {
    // Only these two, whatever other backends a build has.
    let mut registry = Registry::empty();
    registry.add(SimulateFactory);
    registry.add(ReplayFactory);
    registry.open(&BackendSettings {
        name: name.map(str::to_owned),
        mock: mock.map(|text| MockSource::Text(text.to_owned())),
        realtime: false,
    })
}

#[test]
fn nothing_is_simulated_unless_asked_for() {
    let Err(error) = open(None, Some("")) else {
        panic!("a backend was found")
    };
    expect![[r#"
        no backend to run sessions with
          looked for:
            - a name given by `--backend NAME` or `[run] backend` in prose.toml
          set one up:
            - simulate: `--backend simulate` makes answers up, or takes them from a mock file (`--mock FILE`); no model is asked
            - replay: `--backend replay --mock FILE` answers only from the file and fails where it has no answer"#]]
    .assert_eq(&error.to_string());

    let Err(error) = open(Some("gpt"), None) else {
        panic!("a backend was found")
    };
    assert_eq!(
        error.to_string(),
        "unknown backend `gpt`; this build knows simulate, replay"
    );
    let Err(error) = open(Some("replay"), None) else {
        panic!("a backend was found")
    };
    assert!(error.to_string().contains("it needs a mock file"), "{error}");
    let Err(error) = open(Some("simulate"), Some("[x]")) else {
        panic!("a backend was found")
    };
    assert!(matches!(error, BackendError::Mock(_)), "{error}");

    let backend = open(Some("simulate"), Some("[defaults]")).unwrap();
    assert!(backend.simulated && backend.sessions.capabilities().virtual_time);
    assert_eq!(
        (backend.name.as_str(), backend.mock_text.as_deref()),
        ("simulate", Some("[defaults]"))
    );
}
