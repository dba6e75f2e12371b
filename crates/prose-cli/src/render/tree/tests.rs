use super::*;
use prose_model::{BindingRef, Order, SourceRange};

fn event(event: Event) -> RunEvent {
    RunEvent {
        v: 1,
        run_id: "r".into(),
        ts: String::new(),
        order: Order::Machine { seq: 0 },
        event,
    }
}

fn place(path: &str) -> Place {
    Place {
        stmt: "main/0".into(),
        src: SourceRange {
            file: 0,
            start: 0,
            end: 0,
        },
        execution_id: None,
        path: path.into(),
    }
}

fn session(path: &str, label: &str) -> RunEvent {
    event(Event::SessionStarted {
        at: place(path),
        effect: path.into(),
        agent: None,
        label: label.to_owned(),
        model: None,
        attempt: 1,
        max_attempts: 1,
        binding: BindingRef {
            name: "x".into(),
            execution_id: None,
            program: Vec::new(),
        },
        resume: false,
    })
}

fn spawned(path: &str) -> RunEvent {
    event(Event::SessionSpawned {
        effect: path.into(),
        backend: "simulate".to_owned(),
        model: None,
    })
}

fn plain(lines: &[String]) -> Vec<String> {
    let line = |line: &String| {
        let line = uncoloured(line);
        // How long something took is up to the machine that runs the test.
        match line.rsplit_once("  ") {
            Some((head, tail)) if tail.starts_with(|c: char| c.is_ascii_digit()) && tail.ends_with('s') => {
                match tail.rsplit_once(' ') {
                    Some((_, "ms" | "s")) => head.to_owned(),
                    _ => line,
                }
            }
            _ => line,
        }
    };
    lines.iter().map(line).collect()
}

#[test]
fn children_lie_under_their_construct_and_finished_roots_settle() {
    let mut tree = Tree::default();
    tree.apply(&event(Event::ConstructStarted {
        at: place("main/0"),
        construct: "main/0".into(),
        kind: ConstructKind::Parallel,
        total: Some(2),
        condition: None,
    }));
    tree.apply(&session("main/0.0", "first"));
    tree.apply(&session("main/0.1", "second"));
    assert_eq!(
        plain(&tree.live(60, 1, 99).0),
        ["⣽ parallel  2 branches", "  ◌ first  waits", "  ◌ second  waits"]
    );
    assert_eq!(tree.foot(), "0 done, 0 running, 2 waiting");
    tree.apply(&spawned("main/0.0"));
    assert_eq!(
        plain(&tree.live(60, 1, 99).0),
        ["⣽ parallel  2 branches", "  ⣽ first", "  ◌ second  waits"]
    );
    assert_eq!(tree.foot(), "0 done, 1 running, 1 waiting");
    tree.apply(&spawned("main/0.1"));
    assert_eq!(
        plain(&tree.live(60, 1, 99).0),
        ["⣽ parallel  2 branches", "  ⣽ first", "  ⣽ second"]
    );
    assert!(tree.take_settled(60).is_empty());
    for path in ["main/0.0", "main/0.1"] {
        tree.apply(&event(Event::SessionFinished {
            effect: path.into(),
            end: End::Ok,
            summary: "fine".to_owned(),
            usage: Usage {
                input_tokens: 3,
                output_tokens: 4,
                cost_usd: None,
            },
        }));
    }
    tree.apply(&event(Event::ConstructFinished {
        construct: "main/0".into(),
        end: End::Ok,
    }));
    assert_eq!(
        plain(&tree.take_settled(60)),
        [
            "✓ parallel  2 branches",
            "  ✓ first  fine (3 in, 4 out)",
            "  ✓ second  fine (3 in, 4 out)"
        ]
    );
    assert!(tree.live(60, 1, 99).0.is_empty());
    assert_eq!(tree.foot(), "2 done, 0 running (6 in, 8 out)");
}

/// `count` iterations of a `parallel for`, each with a session that goes on.
fn parallel(count: u32) -> Tree {
    let mut tree = Tree::default();
    tree.apply(&event(Event::ConstructStarted {
        at: place("main/0"),
        construct: "main/0".into(),
        kind: ConstructKind::ParallelFor,
        total: Some(count),
        condition: None,
    }));
    for n in 1..=count {
        tree.apply(&event(Event::FrameStarted {
            at: place("main/0"),
            frame: n,
            kind: FrameKind::Iteration,
            name: "x".into(),
            depth: 0,
            arguments: Default::default(),
        }));
    }
    for n in 1..=count {
        let path = format!("main/0[{}]>main/0.1.0", n - 1);
        let mut started = session(&path, &format!("work {n}"));
        if let Event::SessionStarted { at, .. } = &mut started.event {
            at.execution_id = Some(n);
        }
        tree.apply(&started);
        tree.apply(&spawned(&path));
    }
    tree
}

#[test]
fn sessions_of_parallel_iterations_lie_under_their_own() {
    let tree = parallel(3);
    assert_eq!(
        plain(&tree.live(60, 1, 99).0),
        [
            "⣽ parallel  3 items",
            "  ⣽ x #1",
            "    ⣽ work 1",
            "  ⣽ x #2",
            "    ⣽ work 2",
            "  ⣽ x #3",
            "    ⣽ work 3"
        ]
    );
}

#[test]
fn two_hundred_sessions_fit_any_terminal() {
    for (width, height) in [(8, 3), (20, 5), (40, 10), (200, 50)] {
        let mut tree = parallel(200);
        let mut screen = Screen::new(Vec::new(), false);
        screen.draw_at(&mut tree, width, height).unwrap();
        let text = String::from_utf8(screen.out.clone()).unwrap();
        assert!(!text.contains('\x1b'), "no colours and nothing to erase yet");
        assert!(text.lines().count() < height.max(4), "{width}×{height}: {text}");
        assert!(
            text.lines().all(|line| line.width() <= width),
            "{width}×{height}: {text}"
        );
        assert!(text.contains("…"), "says that there is more");
    }
}

#[test]
fn a_narrower_terminal_has_wrapped_what_is_erased() {
    let mut tree = parallel(1);
    let mut screen = Screen::new(Vec::new(), false);
    screen.draw_at(&mut tree, 79, 24).unwrap();
    assert_eq!(screen.drawn.len(), 4);
    let before = screen.out.len();
    let widths = screen.drawn.clone();
    assert!(widths.iter().all(|width| (8..40).contains(width)), "{widths:?}");
    screen.erase_at(9).unwrap();
    let erased = String::from_utf8(screen.out[before..].to_vec()).unwrap();
    let rows: usize = [19, 8, 12, 17]
        .iter()
        .map(|width: &usize| width.div_ceil(10))
        .sum();
    assert!(
        erased.contains(&format!("\x1b[{rows}A")),
        "{erased:?} {:?}",
        screen.drawn
    );
}

#[test]
fn what_is_over_makes_room_first_and_is_let_go_of() {
    let mut tree = Tree::default();
    tree.apply(&event(Event::ConstructStarted {
        at: place("main/0"),
        construct: "main/0".into(),
        kind: ConstructKind::Loop,
        total: None,
        condition: None,
    }));
    for n in 0..10_000 {
        let path = format!("main/0[{n}]>main/0.1");
        tree.apply(&session(&path, &format!("round {n}")));
        tree.apply(&event(Event::SessionFinished {
            effect: path.as_str().into(),
            end: End::Ok,
            summary: String::new(),
            usage: Usage::default(),
        }));
        tree.prune();
    }
    tree.apply(&session("main/0[10000]>main/0.1", "the last"));
    tree.apply(&spawned("main/0[10000]>main/0.1"));
    assert!(tree.items.len() < 5_000, "{}", tree.items.len());
    let (lines, hidden) = tree.live(60, 1, 3);
    // What stands behind it is how long it took.
    let lines = plain(&lines);
    let starts = ["⣽ loop", "  ✓ round 9999", "  ⣽ the last"];
    assert!(
        lines.len() == 3
            && lines
                .iter()
                .zip(starts)
                .all(|(line, start)| line.starts_with(start)),
        "{lines:?}"
    );
    assert!(hidden > 1_000);
    assert_eq!(tree.sessions_done, 10_000);
}

#[test]
fn cutting_counts_columns() {
    assert_eq!(cut("漢字かな", 5), "漢字…");
    assert_eq!(cut("abc", 3), "abc");
}
