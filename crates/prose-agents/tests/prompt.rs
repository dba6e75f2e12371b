//! The text a session is given.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use expect_test::expect;
use prose_agents::prompt::{PromptParts, confirmation_summary, render};
use prose_agents::{Delivery, InlineContent};
use prose_model::*;

fn request() -> SessionRequest {
    let memory = MemoryRequest {
        agent: "critic".into(),
        persist: Persist::Execution,
        namespace: String::new(),
        program: Vec::new(),
        mode: MemoryMode::Resume,
    };
    let item = |label: &str, value| ContextItem {
        label: label.into(),
        value,
        binding: None,
        memory_of: None,
    };
    let large = TextRef {
        sha256: "00".into(),
        len: 40_000,
        summary: "A long report".into(),
    };
    SessionRequest {
        agent: Some("critic".into()),
        label: "Review".into(),
        model: None,
        system: Some(Text::inline("You are strict.")),
        task: Text::inline("Review the draft"),
        context: vec![
            item("draft", Value::text("Once upon a time.")),
            item("report", Value::Text(Text::reference(large))),
            item("notes", Value::list(vec![Value::Number(1.0), Value::text("b")])),
        ],
        context_given: true,
        skills: vec!["web".into()],
        permissions: Vec::new(),
        memory: Some(memory),
        binding: BindingTarget {
            binding: BindingRef {
                name: "result".into(),
                execution_id: Some(43),
                program: Vec::new(),
            },
            bind_kind: BindKind::Let,
            source: SourceRange {
                file: 0,
                start: 0,
                end: 0,
            },
        },
        scope: Some(ExecutionScope {
            execution_id: 43,
            block: "process".into(),
            depth: 3,
        }),
        attempt: 1,
        max_attempts: 1,
    }
}

fn parts() -> PromptParts {
    PromptParts {
        staging: PathBuf::from("/s"),
        binding_header:
            "# result\n\nkind: let\nexecution_id: 43\n\nsource:\n```prose\nlet result = …\n```\n\n---\n"
                .into(),
        context_files: vec![Some("/s/draft.md".into()), Some("/s/report.md".into()), None],
        memory: Some("I like commas.".into()),
        context_memory: Vec::new(),
        segment: 2,
        skills_handled: false,
        skills: Vec::new(),
        broker: false,
        in_context: false,
    }
}

#[test]
fn a_plain_api_gets_context_as_text() {
    let prompt = render(&request(), Delivery::Plain, &parts(), &InlineContent).unwrap();
    expect![[r#"
        You are strict.

        Use these skills if you have them: web.

        You are a persistent agent. Your result belongs to this task; your memory belongs to you and comes back in later tasks. They are separate texts.
        In your memory keep what a later task can't find again: exact places, names and numbers, decisions with their reasons, open questions. Leave out how you got there, what turned out wrong, and long quotations.
        Stay consistent with your memory; where you change your mind, say so and say why.

        Review the draft

        Context:

        ## draft

        Once upon a time.

        ## report

        A long report (40000 bytes; whole text: /s/report.md)

        ## notes

        [
          1,
          "b"
        ]

        Execution scope:
          execution_id: 43
          block: process
          depth: 3

        ## Agent Memory: critic

        I like commas."#]]
    .assert_eq(&prompt.joined());
}

#[test]
fn a_file_agent_gets_references_and_is_told_where_to_write() {
    let prompt = render(&request(), Delivery::Files, &parts(), &InlineContent).unwrap();
    expect![[r#"
        Review the draft

        Context (by reference):
        - draft: /s/draft.md
        - report: /s/report.md

        ## notes

        [
          1,
          "b"
        ]

        Execution scope:
          execution_id: 43
          block: process
          depth: 3

        ## Agent Memory: critic

        I like commas.

        When you are done, write your memory anew, whole, to:
          /s/memory.md
        and a record of this session (segment 002: what you looked at, found, decided, and what should come next) to:
          /s/segment.md

        When you have completed the task, write your output to:
          /s/binding.md

        Format (keep the head as it is, put your output below the line):

        # result

        kind: let
        execution_id: 43

        source:
        ```prose
        let result = …
        ```

        ---
        [your output]

        Then reply with only:

        Binding written: result
        Location: /s/binding.md
        Execution ID: 43
        Summary: [one line about your output]"#]]
    .assert_eq(&prompt.user);
}

#[test]
fn an_agent_with_the_tools_of_the_run_is_told_of_them_and_what_to_do_without() {
    let parts = PromptParts {
        broker: true,
        ..parts()
    };
    let prompt = render(&request(), Delivery::Files, &parts, &InlineContent).unwrap();
    assert_eq!(
        prompt
            .files
            .iter()
            .map(|file| file.label.as_str())
            .collect::<Vec<_>>(),
        ["draft", "report"]
    );
    assert!(
        prompt.system.contains("`mcp__prose__write_binding`"),
        "{}",
        prompt.system
    );
    let told = prompt.user.split_once("I like commas.\n\n").unwrap().1;
    expect![[r#"
        When you are done, hand over your memory, written anew and whole, with the tool `update_memory`, and a record of this session with `write_segment`.

        If you don't have these tools, write your memory anew, whole, to:
          /s/memory.md
        and a record of this session (segment 002: what you looked at, found, decided, and what should come next) to:
          /s/segment.md

        When you have completed the task, hand over your output with the tool `write_binding`.

        If you don't have this tool, write your output to:
          /s/binding.md

    "#]]
    .assert_eq(told.split_once("Format").unwrap().0);
}

#[test]
fn an_empty_context_is_said_aloud_and_an_absent_one_is_not() {
    let bare = SessionRequest {
        context: Vec::new(),
        memory: None,
        scope: None,
        system: None,
        skills: Vec::new(),
        ..request()
    };
    let text = |request: &SessionRequest| {
        render(request, Delivery::Plain, &PromptParts::default(), &InlineContent)
            .unwrap()
            .joined()
    };
    assert_eq!(text(&bare), "Review the draft\n\nContext: none. Start fresh.");
    assert_eq!(
        text(&SessionRequest {
            context_given: false,
            ..bare
        }),
        "Review the draft"
    );
}

#[test]
fn the_confirmation_gives_the_summary() {
    assert_eq!(
        confirmation_summary("Binding written: x\nLocation: y\nSummary: All fine"),
        Some("All fine")
    );
    assert_eq!(confirmation_summary("**Summary:** All fine"), Some("All fine"));
    assert_eq!(confirmation_summary("done"), None);
}

#[test]
fn in_context_state_passes_long_values_in_short() {
    let given = |text: &str| {
        let mut request = request();
        request.context = vec![prose_model::ContextItem {
            label: "notes".into(),
            value: prose_model::Value::text(text),
            binding: None,
            memory_of: None,
        }];
        let parts = PromptParts {
            in_context: true,
            ..parts()
        };
        let prompt = render(&request, Delivery::Plain, &parts, &InlineContent).unwrap();
        prompt.user.split_once("## notes\n\n").unwrap().1.to_owned()
    };
    let whole = "word ".repeat(399);
    assert!(given(&whole).starts_with(whole.trim_end()));
    let paragraph = format!(
        "# Heading\n\nThe point is this. {}\n- an entry\n\n",
        "and more of it ".repeat(30)
    );
    let points = given(&paragraph.repeat(6));
    assert!(
        points.contains("# Heading\nThe point is this.\n- an entry\n"),
        "{points}"
    );
    assert!(points.contains("(the key points of "), "{points}");
    assert!(points.chars().count() < 2_500);
    let essentials = given(&paragraph.repeat(60));
    assert!(essentials.contains("(the essentials of "), "{essentials}");
    assert!(
        essentials.chars().count() < 1_500,
        "{}",
        essentials.chars().count()
    );
}

#[test]
fn skills_with_a_file_are_told_with_it() {
    let skill = |name: &str, purpose: &str| prose_agents::skills::Skill {
        name: name.to_owned(),
        purpose: purpose.to_owned(),
        path: format!("/w/skills/{name}/SKILL.md").into(),
    };
    let request = SessionRequest {
        skills: ["web", "sums", "mine"].map(str::to_owned).to_vec(),
        memory: None,
        ..request()
    };
    let parts = PromptParts {
        skills: vec![skill("web", "Looks things up."), skill("sums", "")],
        ..parts()
    };
    let prompt = render(&request, Delivery::Plain, &parts, &InlineContent).unwrap();
    expect![[r#"
        You are strict.

        Your skills, each in a file; read it before you do what it is for:
        - web (Looks things up): /w/skills/web/SKILL.md
        - sums: /w/skills/sums/SKILL.md

        Use these skills if you have them: mine."#]]
    .assert_eq(&prompt.system);
    let files: Vec<&str> = prompt.files.iter().map(|file| file.label.as_str()).collect();
    assert_eq!(files, ["draft", "report", "skill web", "skill sums"]);
}

#[test]
fn skills_are_found_in_the_workspace_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("ws");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        ".claude/skills/web/SKILL.md",
        "---\nname: web\ndescription: \"Looks things up.\"\n---\n\nSearch.\n",
    );
    write("skills/web/SKILL.md", "of less weight");
    write("skills/tools/sums/SKILL.md", "Add.\n");
    write("skills/long/SKILL.md", "---\ndescription: >\n  more\n---\n");
    write("../out/SKILL.md", "secret");
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("../out"), root.join("skills/linked")).unwrap();
    let names = [
        "web",
        "@tools/sums",
        "long",
        "none",
        "../out",
        "/out",
        "linked",
        "",
        "@",
    ];
    let found = prose_agents::skills::find(&root, &names.map(str::to_owned));
    let found: Vec<_> = found
        .iter()
        .map(|skill| {
            let path = skill.path.strip_prefix(&root).unwrap();
            (
                skill.name.as_str(),
                skill.purpose.as_str(),
                path.to_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("web", "Looks things up.", ".claude/skills/web/SKILL.md"),
            ("@tools/sums", "", "skills/tools/sums/SKILL.md"),
            ("long", "", "skills/long/SKILL.md"),
        ]
    );
}
