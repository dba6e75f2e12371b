//! A backend that answers by a script, and notes what it was asked.

use super::*;

/// Answers by what the task begins with.
pub(crate) struct Scripted {
    pub(crate) delivery: Delivery,
    pub(crate) reattach: bool,
    pub(crate) seen: Mutex<Vec<String>>,
    pub(crate) prompts: Mutex<Vec<String>>,
    /// Released by a test.
    pub(crate) gate: Notify,
    /// Told when a session hangs.
    pub(crate) hanging: Notify,
    pub(crate) verdicts: Mutex<Vec<Result<Decision, Failure>>>,
}

impl Scripted {
    pub(crate) fn new(delivery: Delivery) -> Arc<Scripted> {
        Arc::new(Scripted {
            delivery,
            reattach: false,
            seen: Mutex::default(),
            prompts: Mutex::default(),
            gate: Notify::new(),
            hanging: Notify::new(),
            verdicts: Mutex::default(),
        })
    }

    pub(crate) fn backend(self: &Arc<Self>) -> Backend {
        Backend {
            name: "scripted".to_owned(),
            simulated: false,
            sessions: self.clone(),
            judge: self.clone(),
            inputs: None,
            observer: None,
            mock_text: None,
        }
    }

    pub(crate) fn see(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl SessionBackend for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: self.delivery,
            reattach: self.reattach,
            skills: false,
            virtual_time: false,
        }
    }

    async fn spawn(&self, s: SessionSpawn) -> Result<SessionReply, Failure> {
        let task = s.request.task.as_inline().unwrap().into_owned();
        self.see(task.clone());
        self.prompts.lock().unwrap().push(s.prompt.joined());
        let word = task.split_whitespace().next().unwrap_or_default();
        match word {
            "panic" => panic!("told to"),
            "empty" => Ok(SessionReply::text(" \n")),
            "hang" => {
                self.hanging.notify_one();
                s.cancel.cancelled().await;
                self.see(format!("{task} stopped"));
                Err(failure(ErrorKind::Backend, "cancelled"))
            }
            "deaf" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            "gate" => {
                s.sink
                    .started(Some(serde_json::json!({ "session": task })), None)
                    .await?;
                self.hanging.notify_one();
                self.gate.notified().await;
                Ok(SessionReply::text(format!("{task} passed")))
            }
            "chatty" => {
                for n in 0..500 {
                    s.sink.update(SessionUpdate::Text(n.to_string()));
                }
                let tool = SessionUpdate::Tool {
                    name: "read".into(),
                    detail: "a file".into(),
                };
                s.sink.update(tool);
                Ok(SessionReply::text("said enough"))
            }
            "ask" => {
                let question = PermissionQuestion {
                    key: "bash".into(),
                    tool: "bash".into(),
                    detail: "rm -r build".into(),
                };
                Ok(SessionReply::text(format!(
                    "{:?}",
                    s.sink.ask_permission(question).await
                )))
            }
            "wonder" => {
                let question = UserQuestion {
                    text: "Which bees?".into(),
                    options: vec!["wild".into(), "tame".into()],
                };
                let answer = tokio::select! {
                    answer = s.sink.ask_user(question) => answer,
                    () = s.cancel.cancelled() => return Err(failure(ErrorKind::Backend, "cancelled")),
                };
                self.see(format!("answer {answer:?}"));
                Ok(SessionReply::text("heard"))
            }
            "write" => {
                let text = format!("# x\n\nkind: let\n\n---\n\nwritten by {task}\n");
                std::fs::write(s.staging.join(STAGED_BINDING), text).unwrap();
                let memory = s.memory.as_ref().map(|memory| {
                    let old = memory.text.clone().unwrap_or_default();
                    std::fs::write(s.staging.join(STAGED_MEMORY), format!("{old}{task}\n")).unwrap();
                    std::fs::write(s.staging.join(STAGED_SEGMENT), format!("did {task}")).unwrap();
                    MemoryUpdate::Staged
                });
                let summary = Some(format!("Binding written: x\nSummary: all of {task}"));
                Ok(SessionReply {
                    body: ReplyBody::Staged,
                    summary,
                    usage: Usage::default(),
                    memory,
                })
            }
            "nothing" => Ok(SessionReply {
                body: ReplyBody::Staged,
                ..SessionReply::text("")
            }),
            _ => Ok(SessionReply::text(format!("did {task}"))),
        }
    }

    async fn reattach(
        &self,
        s: SessionSpawn,
        handle: serde_json::Value,
    ) -> Option<Result<SessionReply, Failure>> {
        self.see(format!("reattach {handle} lease {}", s.lease));
        (!handle["session"].as_str().unwrap().contains("lost")).then(|| Ok(SessionReply::text("found again")))
    }
}

#[async_trait]
impl Judge for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }
    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        self.see(format!("judge {} #{}", input.text, input.attempt));
        let decision = self.verdicts.lock().unwrap().remove(0)?;
        let usage = Usage {
            input_tokens: 1,
            ..Usage::default()
        };
        Ok(Verdict {
            decision,
            confidence: 1.0,
            reason: String::new(),
            usage,
        })
    }
    async fn decode(&self, _: DecodeInput) -> Result<Reading, Failure> {
        Ok(Value::text("not what was asked").into())
    }
}
