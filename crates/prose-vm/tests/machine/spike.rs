//! One program with all that has to work together first: a recursive block, a `parallel for` with an inner `let`, a
//! loop, a pipeline and a retry. In source form it has some forty lines.

use expect_test::expect;
use prose_model::{Backoff, BinaryOp, Block, Bundle, ErrorKind};
use std::sync::Arc;

use crate::build::*;
use crate::harness::*;

pub fn bundle_of_spike() -> Arc<Bundle> {
    let less = bin(BinaryOp::Sub, var("depth"), num(1.0));
    let split = block(
        "split",
        &["chunk", "depth"],
        vec![if_(
            bin(BinaryOp::Le, var("depth"), num(0.0)),
            vec![session("Handle").context(vec![("chunk", var("chunk"))])],
            Some(vec![
                let_("parts", session("Split {chunk}")),
                for_("part", var("parts"), vec![call("split", vec![var("part"), less])]),
                session("Combine").context(vec![("parts", var("parts"))]),
            ]),
        )],
    );
    let body = vec![
        input("topic", "The topic"),
        let_("plan", session_of("writer").prompt("Plan {topic}")),
        let_("notes", list(vec![])),
        parallel_for(
            "area",
            list(vec![text("north"), text("south")]),
            vec![
                let_("note", session("Visit {area}").retry(2, Backoff::Exponential)),
                assign("notes", add(var("notes"), list(vec![var("note")]))),
            ],
        ),
        let_("tree", call("split", vec![text("all"), num(1.0)])),
        let_("draft", text("empty")),
        loop_(
            until(judge("{draft} is good")),
            Some(3),
            vec![assign(
                "draft",
                session("Draft {n}").context(vec![("notes", var("notes"))]),
            )],
        ),
        let_(
            "picked",
            pipe(
                var("notes"),
                vec![
                    filter(vec![session("Keep {item}?")]),
                    map(vec![session("Polish {item}")]),
                    reduce(vec![add(add(var("acc"), text(" & ")), var("item"))]),
                ],
            ),
        ),
        try_(
            vec![
                session("Publish"),
                if_(judge("published"), vec![], Some(vec![throw(Some("not out"))])),
            ],
            Some(vec![let_("why", member(var("err"), "message"))]),
            Some(vec![session("Archive")]),
        ),
        output("report", text("{draft}: {picked} ({why})")),
    ];
    let split = Block {
        max_depth: Some(10),
        ..split
    };
    bundle(vec![
        program(body)
            .agent(agent("writer", Some("You write")))
            .block(split),
    ])
}

#[test]
fn the_program_runs_to_its_end() {
    let mut run = Run::start(bundle_of_spike(), &[("topic", "trains")]);
    run.reply("Plan trains", "a plan");
    assert_eq!(run.sessions(), ["Visit north", "Visit south"]);
    run.fail("Visit north", ErrorKind::Backend, "down");
    run.reply("Visit south", "sunny")
        .slept()
        .reply("Visit north", "windy");
    run.reply("Split all", "- left\n- right")
        .reply("Handle", "l")
        .reply("Handle", "r")
        .reply("Combine", "lr");
    run.no().reply("Draft 0", "v1").no().reply("Draft 1", "v2").yes();
    run.reply("Keep sunny?", "yes").reply("Keep windy?", "yes");
    run.reply("Polish sunny", "SUNNY").reply("Polish windy", "WINDY");
    run.reply("Publish", "p").no().reply("Archive", "done");
    assert_eq!(
        show(&run.completion().outputs["report"]),
        "v2: SUNNY & WINDY (not out)"
    );
    let trace: Vec<String> = run.effects.iter().map(brief).collect();
    expect![[r#"
        session main/1.0
        session main/3[0]>main/3.1.0
        session main/3[1]>main/3.1.0
        sleep main/3[0]>main/3.1.0~2:sleep
        session main/3[0]>main/3.1.0~2
        session main/4.0>block:split/0.2.0
        session main/4.0>block:split/0.3[0]>block:split/0.3.1>block:split/0.1
        session main/4.0>block:split/0.3[1]>block:split/0.3.1>block:split/0.1
        session main/4.0>block:split/0.4
        judge main/6[0]>main/6.0
        session main/6[0]>main/6.2.0
        judge main/6[1]>main/6.0
        session main/6[1]>main/6.2.0
        judge main/6[2]>main/6.0
        session main/7.0|0[0]>main/7.0.1
        session main/7.0|0[1]>main/7.0.1
        session main/7.0|1[0]>main/7.0.2
        session main/7.0|1[1]>main/7.0.2
        session main/8.0
        judge main/8.1.0
        session main/8.3
    "#]]
    .assert_eq(&(trace.join("\n") + "\n"));
    expect![[r#"
        topic = trains
        plan = a plan
        notes = []
        note__2 = sunny
        notes = [sunny]
        note__1 = windy
        notes = [sunny, windy]
        parts__3 = - left
        - right
        anon_001__4 = l
        anon_002__5 = r
        anon_003__3 = lr
        tree = lr
        draft = empty
        draft = v1
        draft = v2
        anon_004 = yes
        anon_005 = yes
        anon_006 = SUNNY
        anon_007 = WINDY
        picked = SUNNY & WINDY
        anon_008 = p
        why = not out
        anon_009 = done
        report = v2: SUNNY & WINDY (not out)
    "#]]
    .assert_eq(&(run.bound().join("\n") + "\n"));
}
