//! What sessions want to know from the person who runs the program.

use super::*;

const PROGRAM: &str = "parallel:\n  a = session \"wonder\"\noutput x = a\n";

fn attended() -> Attach {
    Attach {
        inputs: InputMode::Ask,
        ..Attach::default()
    }
}

/// The next question of a session, and all events up to it.
async fn asked(events: &mut prose_runtime::EventStream) -> EffectId {
    while let Some(item) = events.next().await {
        if let StreamItem::Event(event) = item
            && let Event::QuestionStarted { request, text, .. } = &event.event
        {
            assert_eq!(text, "Which bees?");
            return request.clone();
        }
    }
    panic!("nothing was asked")
}

/// Whether the next question that is settled was answered, and whether there was anybody to ask.
async fn settled(events: &mut prose_runtime::EventStream) -> (bool, bool) {
    while let Some(item) = events.next().await {
        if let StreamItem::Event(event) = item
            && let Event::QuestionFinished {
                answered, attended, ..
            } = &event.event
        {
            return (*answered, *attended);
        }
    }
    panic!("nothing was settled")
}

#[tokio::test]
async fn the_first_answer_goes_to_the_session_and_nowhere_else() {
    let project = Project::new(PROGRAM);
    let scripted = Scripted::new(Delivery::Plain);
    let mut handle = project
        .start_with(&project.engine(), scripted.backend(), attended())
        .await;
    let mut events = handle.take_events().unwrap();
    let request = asked(&mut events).await;
    let open = handle.control().session_questions();
    assert_eq!(open.len(), 1);
    assert_eq!(
        (
            &open[0].request,
            open[0].text.as_str(),
            open[0].options.as_slice()
        ),
        (
            &request,
            "Which bees?",
            &["wild".to_owned(), "tame".to_owned()][..]
        )
    );
    assert_eq!(
        open[0].session.as_str(),
        request.as_str().split('?').next().unwrap()
    );
    // It is no input.
    assert!(handle.control().questions().is_empty());
    assert_eq!(handle.answer(&request, text("the solitary ones")), Ok(()));
    assert_eq!(
        handle.answer(&request, text("wild")),
        Err(AnswerError::NotOpen(request.clone()))
    );
    assert_eq!(settled(&mut events).await, (true, true));
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["x"], "heard");
    assert_eq!(
        scripted.seen().last().unwrap(),
        "answer Some(\"the solitary ones\")"
    );
    let journal = std::fs::read_to_string(result.dir.join("journal.jsonl")).unwrap();
    assert!(
        !journal.contains("solitary") && !journal.contains("Which bees"),
        "{journal}"
    );
}

#[tokio::test]
async fn without_an_answer_the_session_is_told_so() {
    #[derive(PartialEq)]
    enum How {
        Unattended,
        Empty,
        NobodyAnyMore,
    }
    for how in [How::Unattended, How::Empty, How::NobodyAnyMore] {
        let project = Project::new(PROGRAM);
        let scripted = Scripted::new(Delivery::Plain);
        let attach = match how {
            How::Unattended => Attach::default(),
            _ => attended(),
        };
        let mut handle = project
            .start_with(&project.engine(), scripted.backend(), attach)
            .await;
        let mut events = handle.take_events().unwrap();
        let request = asked(&mut events).await;
        match how {
            How::Unattended => {}
            How::Empty => handle.answer(&request, text(" ")).unwrap(),
            How::NobodyAnyMore => handle.control().stop_asking(),
        }
        assert_eq!(settled(&mut events).await, (false, how != How::Unattended));
        handle.join().await.unwrap();
        assert_eq!(scripted.seen().last().unwrap(), "answer None");
    }
}

#[tokio::test]
async fn a_question_ends_with_its_session() {
    let project = Project::new(PROGRAM);
    let scripted = Scripted::new(Delivery::Plain);
    let mut handle = project
        .start_with(&project.engine(), scripted.backend(), attended())
        .await;
    let mut events = handle.take_events().unwrap();
    let request = asked(&mut events).await;
    handle.cancel();
    assert_eq!(settled(&mut events).await, (false, true));
    let control = handle.control();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Cancelled);
    assert!(control.session_questions().is_empty());
    assert!(control.answer(&request, text("too late")).is_err());
}
