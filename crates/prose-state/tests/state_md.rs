//! `state.md` as it stands at different moments of runs.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use expect_test::{Expect, expect};
use prose_model::*;
use prose_state::{RunDir, StateProjection};

const START: i64 = 1_768_487_452_000;

/// A bundle that is put together by hand from pieces of its texts.
struct World {
    bundle: Bundle,
    projection: Option<StateProjection>,
    now: i64,
}

fn file(path: &str, text: &str) -> BundleFile {
    BundleFile {
        path: path.into(),
        text: text.into(),
        digest: prose_state::digest_of(text.as_bytes()),
    }
}

fn program(name: &str, namespace: &str, file: u32) -> Program {
    Program {
        name: name.into(),
        namespace: namespace.into(),
        file,
        inputs: vec![],
        outputs: vec![],
        agents: Default::default(),
        blocks: Default::default(),
        imports: Default::default(),
        body: vec![],
    }
}

impl World {
    fn new(text: &str) -> World {
        let bundle = Bundle {
            version: BUNDLE_VERSION,
            entry: 0,
            programs: vec![program("main", "", 0)],
            files: vec![file("main.prose", text)],
            digest: "d".into(),
        };
        World {
            bundle,
            projection: None,
            now: START,
        }
    }

    /// The range of a piece of a file's text.
    #[track_caller]
    fn src_in(&self, file: usize, piece: &str) -> SourceRange {
        let start = self.bundle.files[file].text.find(piece).expect(piece);
        SourceRange {
            file: file as u32,
            start: start as u32,
            end: (start + piece.len()) as u32,
        }
    }

    #[track_caller]
    fn node(&self, id: &str, piece: &str, op: Op) -> Node {
        Node {
            id: id.into(),
            src: self.src_in(0, piece),
            op,
        }
    }

    /// A node whose own meaning does not matter here.
    #[track_caller]
    fn plain(&self, id: &str, piece: &str) -> Node {
        self.node(id, piece, Op::Null)
    }

    #[track_caller]
    fn at(&self, id: &str, piece: &str, execution_id: Option<u32>) -> Place {
        Place {
            stmt: id.into(),
            src: self.src_in(0, piece),
            execution_id,
            path: id.into(),
        }
    }

    fn event(&mut self, event: Event) {
        self.now += 1000;
        let projection = self.projection.get_or_insert_with(|| {
            StateProjection::new(
                Arc::new(self.bundle.clone()),
                "20260115-143052-a7b3c9".into(),
                "main.prose",
                START,
            )
        });
        projection.apply(&event, self.now);
    }

    fn start(&mut self, at: &Place) {
        self.event(Event::StatementStarted { at: at.clone() });
    }

    fn end(&mut self, at: &Place, end: End) {
        self.event(Event::StatementFinished { at: at.clone(), end });
    }

    fn session(&mut self, at: &Place, attempt: u32, name: &str) {
        self.event(Event::SessionStarted {
            at: at.clone(),
            // As the machine does it, a session's id can be its statement's place.
            effect: at.path.clone(),
            agent: None,
            label: "label".into(),
            model: None,
            attempt,
            max_attempts: 3,
            binding: binding(name, at.execution_id),
            resume: false,
        });
    }

    fn session_end(&mut self, at: &Place, end: End) {
        let usage = Usage::default();
        self.event(Event::SessionFinished {
            effect: at.path.clone(),
            end,
            summary: String::new(),
            usage,
        });
    }

    fn bound(&mut self, at: &Place, name: &str, kind: BindKind) {
        let binding = binding(name, at.execution_id);
        let value = Value::text("v");
        self.event(Event::Bound {
            at: at.clone(),
            binding,
            kind,
            source: at.src,
            value,
        });
    }

    fn construct(&mut self, at: &Place, kind: ConstructKind, total: Option<u32>) {
        self.event(Event::ConstructStarted {
            at: at.clone(),
            construct: at.path.clone(),
            kind,
            total,
            condition: None,
        });
    }

    fn part(&mut self, construct: &str, index: u32, label: Option<&str>) {
        let label = label.map(ToOwned::to_owned);
        self.event(Event::PartStarted {
            construct: construct.into(),
            index,
            label,
        });
    }

    fn part_end(&mut self, construct: &str, index: u32, end: End) {
        self.event(Event::PartFinished {
            construct: construct.into(),
            index,
            end,
        });
    }

    fn frame(&mut self, at: &Place, frame: u32, kind: FrameKind, name: &str, depth: u32) {
        let (at, name) = (at.clone(), name.into());
        self.event(Event::FrameStarted {
            at,
            frame,
            kind,
            name,
            depth,
            arguments: Default::default(),
        });
    }

    fn text(&mut self) -> String {
        self.projection.as_mut().unwrap().render().swap_remove(0).1
    }

    fn expect(&mut self, expected: Expect) {
        expected.assert_eq(&self.text());
    }

    fn trace(&mut self, expected: Expect) {
        let text = self.text();
        let (_, trace) = text.split_once("## Execution Trace\n\n").unwrap();
        expected.assert_eq(trace.split_once("\n## Active").unwrap().0);
    }
}

fn binding(name: &str, execution_id: Option<u32>) -> BindingRef {
    BindingRef {
        name: name.into(),
        execution_id,
        program: vec![],
    }
}

fn bind(kind: BindKind, name: &str, value: Node) -> Op {
    Op::Bind {
        kind,
        target: BindTarget::Name(name.into()),
        value: Box::new(value),
    }
}

const PLAN: &str = r#"agent researcher:
  model: sonnet

agent captain:
  model: opus
  persist: true

let research = session: researcher
  prompt: "Look into it"

parallel:
  a = session "Weigh A"
  b = session "Weigh B"

loop until **nothing is open** (max: 3):
  session "Join both"
    context: { a, b, research }

resume: captain
  prompt: "Look over it"
"#;

/// The world of [`PLAN`], up to where branch `a` is done and `b` goes on.
fn plan() -> World {
    let mut world = World::new(PLAN);
    let agent = Agent {
        name: "captain".into(),
        src: world.src_in(0, "agent captain:"),
        persist: Some(Persist::Execution),
        props: Props::default(),
    };
    let research = "let research = session: researcher\n  prompt: \"Look into it\"";
    let parallel = "parallel:\n  a = session \"Weigh A\"\n  b = session \"Weigh B\"";
    let loop_ =
        "loop until **nothing is open** (max: 3):\n  session \"Join both\"\n    context: { a, b, research }";
    let session = |id: &str, piece: &str| world.plain(id, piece);
    let body = vec![
        world.node(
            "main/0",
            research,
            bind(
                BindKind::Let,
                "research",
                session("main/0.0", "session: researcher"),
            ),
        ),
        world.node(
            "main/1",
            parallel,
            Op::Parallel(Parallel {
                branches: vec![
                    world.node(
                        "main/1.0",
                        "a = session \"Weigh A\"",
                        bind(
                            BindKind::Branch,
                            "a",
                            session("main/1.0.0", "session \"Weigh A\""),
                        ),
                    ),
                    world.node(
                        "main/1.1",
                        "b = session \"Weigh B\"",
                        bind(
                            BindKind::Branch,
                            "b",
                            session("main/1.1.0", "session \"Weigh B\""),
                        ),
                    ),
                ],
                strategy: Default::default(),
                policy: Default::default(),
                count: None,
                max: None,
            }),
        ),
        world.node(
            "main/2",
            loop_,
            Op::Loop(Box::new(Loop {
                test: Some(LoopTest::Until(world.plain("main/2.0", "**nothing is open**"))),
                max: Some(world.node("main/2.1", "3", Op::Number(3.0))),
                index: None,
                body: vec![session(
                    "main/2.2",
                    "session \"Join both\"\n    context: { a, b, research }",
                )],
            })),
        ),
        session("main/3", "resume: captain\n  prompt: \"Look over it\""),
    ];
    world.bundle.programs[0].agents.insert("captain".into(), agent);
    world.bundle.programs[0].body = body;

    let at = world.at("main/0", research, None);
    world.start(&at);
    world.session(&at, 1, "research");
    world.session_end(&at, End::Ok);
    world.bound(&at, "research", BindKind::Let);
    world.end(&at, End::Ok);
    let whole = world.at("main/1", parallel, None);
    world.start(&whole);
    world.construct(&whole, ConstructKind::Parallel, Some(2));
    let a = world.at("main/1.0", "a = session \"Weigh A\"", None);
    let b = world.at("main/1.1", "b = session \"Weigh B\"", None);
    for (index, branch) in [&a, &b].into_iter().enumerate() {
        world.part("main/1", index as u32, None);
        world.start(branch);
        world.session(branch, 1, "x");
    }
    world.session_end(&a, End::Ok);
    world.bound(&a, "a", BindKind::Branch);
    world.end(&a, End::Ok);
    world.part_end("main/1", 0, End::Ok);
    world
}

#[test]
fn a_run_under_way_reads_as_in_the_seed() {
    plan().expect(expect![[r#"
        # Execution State

        run: 20260115-143052-a7b3c9
        program: main.prose
        started: 2026-01-15T14:30:52Z
        updated: 2026-01-15T14:31:09Z

        ## Execution Trace

        ```prose
        agent researcher:
          model: sonnet

        agent captain:
          model: opus
          persist: true

        let research = session: researcher           # --> bindings/research.md
          prompt: "Look into it"

        parallel:
          a = session "Weigh A"                      # --> bindings/a.md (complete)
          b = session "Weigh B"                      # <-- EXECUTING

        loop until **nothing is open** (max: 3):     # [not yet entered]
          session "Join both"
            context: { a, b, research }

        resume: captain                              # [...next...]
          prompt: "Look over it"
        ```

        ## Active Constructs

        ### Parallel (lines 11-13)

        - a: complete
        - b: executing

        ### Loop (lines 15-17)

        - status: not yet entered
        - iteration: 0/3
        - condition: **nothing is open**

        ## Index

        ### Bindings

        | Name | Kind | Path | Execution ID |
        |------|------|------|--------------|
        | research | let | bindings/research.md | (root) |
        | a | let | bindings/a.md | (root) |

        ### Agents

        | Name | Scope | Path |
        |------|-------|------|
        | captain | execution | agents/captain/ |

        ## Call Stack

        | execution_id | block | depth | status |
        |--------------|-------|-------|--------|
    "#]]);
}

#[test]
fn a_retried_session_says_which_try_it_is() {
    let mut world = plan();
    let b = world.at("main/1.1", "b = session \"Weigh B\"", None);
    world.session_end(&b, End::Failed);
    world.session(&b, 2, "b");
    let text = world.text();
    assert!(
        text.contains("  b = session \"Weigh B\"                      # <-- RETRYING (attempt 2/3)\n"),
        "{text}"
    );
    world.session_end(&b, End::Failed);
    world.end(&b, End::Failed);
    world.part_end("main/1", 1, End::Failed);
    let text = world.text();
    assert!(
        text.contains("  b = session \"Weigh B\"                      # (failed)\n"),
        "{text}"
    );
    assert!(text.contains("- b: failed\n"), "{text}");
}

#[test]
fn a_loop_shows_its_iteration_and_an_end_its_status() {
    let mut world = plan();
    let b = world.at("main/1.1", "b = session \"Weigh B\"", None);
    let parallel = world.at(
        "main/1",
        "parallel:\n  a = session \"Weigh A\"\n  b = session \"Weigh B\"",
        None,
    );
    world.session_end(&b, End::Cancelled);
    world.end(&b, End::Cancelled);
    world.end(&parallel, End::Ok);
    world.event(Event::ConstructFinished {
        construct: "main/1".into(),
        end: End::Ok,
    });
    let loop_ = world.at(
        "main/2",
        &PLAN[PLAN.find("loop").unwrap()..PLAN.find("\n\nresume").unwrap()],
        None,
    );
    world.start(&loop_);
    world.construct(&loop_, ConstructKind::Loop, None);
    let session = "session \"Join both\"\n    context: { a, b, research }";
    for turn in 0..2 {
        let mut at = world.at("main/2.2", session, None);
        at.path = format!("main/2#{turn}.2").into();
        world.part("main/2", turn, None);
        world.start(&at);
        world.session(&at, 1, "anon_001");
        if turn == 0 {
            world.bound(&at, "anon_001", BindKind::Anonymous);
            world.session_end(&at, End::Ok);
            world.end(&at, End::Ok);
            world.part_end("main/2", turn, End::Ok);
        }
    }
    let text = world.text();
    assert!(
        text.contains("### Loop (lines 15-17)\n\n- status: executing\n- iteration: 2/3\n"),
        "{text}"
    );
    assert!(!text.contains("### Parallel"), "{text}");
    world.trace(expect![[r#"
        ```prose
        agent researcher:
          model: sonnet

        agent captain:
          model: opus
          persist: true

        let research = session: researcher           # --> bindings/research.md
          prompt: "Look into it"

        parallel:                                    # (complete)
          a = session "Weigh A"                      # --> bindings/a.md
          b = session "Weigh B"                      # (cancelled)

        loop until **nothing is open** (max: 3):
          session "Join both"                        # <-- EXECUTING
            context: { a, b, research }

        resume: captain                              # [...next...]
          prompt: "Look over it"
        ```
    "#]]);

    let error = ErrorValue {
        kind: ErrorKind::Backend,
        message: "no\nanswer".into(),
        statement: "main/2.2".into(),
        place: String::new(),
        attempts: 1,
    };
    world.event(Event::RunFinished {
        status: RunStatus::Failed,
        outputs: Default::default(),
        error: Some(error),
        usage: Usage::default(),
    });
    let text = world.text();
    assert!(text.contains("status: failed\nerror: no answer\n"), "{text}");
    assert!(!text.contains("[...next...]"), "{text}");
}

const RECURSIVE: &str = r#"block process(chunk, depth):
  if depth > 0:
    do process(chunk, depth - 1)
  let result = session "Work"

do process("all", 2)
session "Close"
"#;

#[test]
fn the_call_stack_and_scoped_bindings() {
    let mut world = World::new(RECURSIVE);
    let inner = "do process(chunk, depth - 1)";
    let if_ = "if depth > 0:\n    do process(chunk, depth - 1)";
    let result = "let result = session \"Work\"";
    let arm = Arm {
        cond: world.plain("block:process/0.0", "depth > 0"),
        body: vec![world.plain("block:process/0.1", inner)],
    };
    let block = Block {
        name: "process".into(),
        src: world.src_in(0, "block process(chunk, depth):"),
        params: vec!["chunk".into(), "depth".into()],
        max_depth: None,
        body: vec![
            world.node(
                "block:process/0",
                if_,
                Op::If {
                    arms: vec![arm],
                    otherwise: None,
                },
            ),
            world.plain("block:process/1", result),
        ],
    };
    world.bundle.programs[0].blocks.insert("process".into(), block);
    world.bundle.programs[0].body = vec![
        world.plain("main/0", "do process(\"all\", 2)"),
        world.plain("main/1", "session \"Close\""),
    ];

    let call = world.at("main/0", "do process(\"all\", 2)", None);
    world.start(&call);
    world.frame(&call, 1, FrameKind::Block, "process", 1);
    let mut last = call.clone();
    for frame in 1..=2u32 {
        let mut whole = world.at("block:process/0", if_, Some(frame));
        whole.path = format!("{}/{frame}/0", last.path).into();
        world.start(&whole);
        world.construct(&whole, ConstructKind::If, None);
        world.part(whole.path.as_str(), 0, None);
        last = world.at("block:process/0.1", inner, Some(frame));
        last.path = format!("{}.1", whole.path).into();
        world.start(&last);
        world.frame(&last, frame + 1, FrameKind::Block, "process", frame + 1);
    }
    let mut at = world.at("block:process/1", result, Some(3));
    at.path = format!("{}/3/1", last.path).into();
    world.start(&at);
    world.session(&at, 1, "result");
    let text = world.text();
    let stack = text
        .split_once("|--------------|-------|-------|--------|\n")
        .unwrap()
        .1;
    expect![[r#"
        | 3 | process | 3 | executing |
        | 2 | process | 2 | waiting |
        | 1 | process | 1 | waiting |
    "#]]
    .assert_eq(stack);
    world.trace(expect![[r#"
        ```prose
        block process(chunk, depth):
          if depth > 0:
            do process(chunk, depth - 1)             # <-- EXECUTING (in process, execution_id 1, 2)
          let result = session "Work"                # <-- EXECUTING (execution_id 3)

        do process("all", 2)                         # <-- EXECUTING (in process)
        session "Close"                              # [...next...]
        ```
    "#]]);
    world.bound(&at, "result", BindKind::Let);
    world.session_end(&at, End::Ok);
    world.end(&at, End::Ok);
    world.event(Event::FrameFinished {
        frame: 3,
        end: End::Ok,
    });
    let text = world.text();
    assert!(
        text.contains("| result | let | bindings/result__3.md | 3 |\n"),
        "{text}"
    );
    assert!(text.contains("| 2 | process | 2 | executing |\n"), "{text}");
    assert!(!text.contains("| 3 | process"), "{text}");
    assert!(
        text.contains("  let result = session \"Work\"                # --> bindings/result__3.md\n"),
        "{text}"
    );
}

#[test]
fn called_programs_have_trees_of_their_own() {
    let mut world = World::new(
        "use \"alice/research\"\nlet r = research(topic: \"x\")\nlet s = research(topic: \"y\")\n",
    );
    let inner = "let notes = session \"Gather\"\nsession \"Done\"\n";
    world
        .bundle
        .files
        .push(file("https://p.example/alice/research", inner));
    let mut called = program("research", "alice--research", 1);
    let inner_src = |start: usize, end: usize| SourceRange {
        file: 1,
        start: start as u32,
        end: end as u32,
    };
    called.body = vec![
        Node {
            id: "main/0".into(),
            src: inner_src(0, 28),
            op: Op::Null,
        },
        Node {
            id: "main/1".into(),
            src: inner_src(29, 43),
            op: Op::Null,
        },
    ];
    world.bundle.programs.push(called);
    let import = Import {
        target: "alice/research".into(),
        program: Some(1),
    };
    world.bundle.programs[0].imports.insert("research".into(), import);
    world.bundle.programs[0].body = vec![
        world.plain("main/0", "let r = research(topic: \"x\")"),
        world.plain("main/1", "let s = research(topic: \"y\")"),
    ];

    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::at(dir.path()).unwrap();
    let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).unwrap_or_default();
    for (index, (piece, frame)) in [
        ("let r = research(topic: \"x\")", 1),
        ("let s = research(topic: \"y\")", 2),
    ]
    .into_iter()
    .enumerate()
    {
        let call = world.at(&format!("main/{index}"), piece, None);
        world.start(&call);
        world.frame(&call, frame, FrameKind::Program, "research", 0);
        let folder = if frame == 1 {
            "alice--research".to_owned()
        } else {
            "alice--research__2".to_owned()
        };
        // The called program's root has no frame number; its place says where it belongs.
        let path: EffectId = format!("{}/main/0", call.path).into();
        let at = Place {
            stmt: "main/0".into(),
            src: inner_src(0, 28),
            execution_id: None,
            path,
        };
        world.start(&at);
        let binding = BindingRef {
            name: "notes".into(),
            execution_id: None,
            program: vec![folder.clone()],
        };
        world.event(Event::Bound {
            at: at.clone(),
            binding,
            kind: BindKind::Let,
            source: at.src,
            value: Value::Null,
        });
        let projection = world.projection.as_mut().unwrap();
        assert!(projection.dirty());
        projection.flush(&run).unwrap();
        assert!(!projection.dirty());
        let state = read(&format!("imports/{folder}/state.md"));
        assert!(
            state.contains("program: https://p.example/alice/research\n"),
            "{state}"
        );
        assert!(
            state.contains("let notes = session \"Gather\"                 # <-- EXECUTING\n"),
            "{state}"
        );
        assert!(
            state.contains("session \"Done\"                               # [...next...]\n"),
            "{state}"
        );
        assert!(
            state.contains("| notes | let | bindings/notes.md | (root) |\n"),
            "{state}"
        );
        assert_eq!(read(&format!("imports/{folder}/program.prose")), inner);
        assert!(!read("state.md").contains("| notes |"));
        world.end(&at, End::Ok);
        world.event(Event::FrameFinished { frame, end: End::Ok });
        world.end(&call, End::Ok);
        world.projection.as_mut().unwrap().flush(&run).unwrap();
        let state = read(&format!("imports/{folder}/state.md"));
        assert!(state.contains("status: completed\n"), "{state}");
        assert!(state.contains("# --> bindings/notes.md\n"), "{state}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".tmp"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn simulated_runs_say_so_and_streamed_events_change_nothing() {
    let mut world = plan();
    world.event(Event::RunStarted {
        program: "main.prose".into(),
        digest: "d".into(),
        files: vec![],
        backend: "simulate".into(),
        simulated: true,
        resumed: false,
        dir: String::new(),
    });
    assert!(
        world
            .text()
            .contains("\nbackend: simulate (no agent ran; the answers are made up)\n")
    );
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::at(dir.path()).unwrap();
    world.projection.as_mut().unwrap().flush(&run).unwrap();
    world.event(Event::SessionText {
        effect: "main/1.1".into(),
        text: "tick".into(),
    });
    assert!(!world.projection.as_ref().unwrap().dirty());
}

#[test]
fn events_that_fit_nothing_are_ignored() {
    let mut world = plan();
    let before = world.text();
    let mut stray = world.at("main/9", "parallel:", Some(77));
    stray.src = SourceRange {
        file: 9,
        start: 5,
        end: 1,
    };
    world.end(&stray, End::Ok);
    world.event(Event::FrameFinished {
        frame: 77,
        end: End::Ok,
    });
    world.part("nothing", 0, None);
    world.part_end("nothing", 0, End::Ok);
    world.event(Event::ConstructFinished {
        construct: "nothing".into(),
        end: End::Ok,
    });
    assert_eq!(world.text(), before);
    world.start(&stray);
    world.construct(&stray, ConstructKind::For, None);
    world.text();
}

#[test]
fn a_projection_can_be_handed_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<StateProjection>();
    sendable::<prose_state::Run>();
}
