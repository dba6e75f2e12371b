//! Whole sessions over in-memory pipes.

mod faults;
mod features;
mod reading;
mod real_runs;
mod runs;
mod session;
mod sync;
mod workspace;

use std::time::Duration;

use lsp_types::ConfigurationParams;
use lsp_types::request::WorkspaceConfiguration;
use serde_json::Value;
use tower_lsp::jsonrpc::Result;
use tower_lsp::{LspServiceBuilder, jsonrpc};

use crate::handlers::ViewTextParams;
use crate::main_loop::Event;
use crate::query::{Basis, Snapshot};
use crate::server::Backend;

/// Methods that misbehave, in test builds only.
pub(crate) fn sabotage(service: LspServiceBuilder<Backend>) -> LspServiceBuilder<Backend> {
    service
        .custom_method("test/pending", Backend::pending)
        .custom_method("test/panic", Backend::panic)
        .custom_method("test/panicLater", Backend::panic_later)
        .custom_method("test/panicInQuery", Backend::panic_in_query)
        .custom_method("test/panicNotification", Backend::panic_notification)
        .custom_method("test/untilCancelled", Backend::until_cancelled)
        .custom_method("test/askBriefly", Backend::ask_briefly)
        .custom_method("test/sabotage", Backend::sabotage)
}

#[derive(serde::Deserialize)]
struct UntilCancelled {
    uri: lsp_types::Url,
    /// Whether it is about a position.
    position: bool,
}

impl Backend {
    /// Never answers.
    async fn pending(&self, _: Value) -> Result<Value> {
        std::future::pending().await
    }

    async fn panic(&self, _: Value) -> Result<Value> {
        panic!("on purpose")
    }

    async fn panic_later(&self, _: Value) -> Result<Value> {
        tokio::task::yield_now().await;
        panic!("on purpose")
    }

    async fn panic_in_query(&self, params: ViewTextParams) -> jsonrpc::Result<Value> {
        self.read("panic", Basis::Position, params.uri, |_, _| panic!("on purpose"))
            .await
    }

    /// Works until a write interrupts it; run again, it answers at once. Says when it begins.
    async fn until_cancelled(&self, params: UntilCancelled) -> Result<u32> {
        let basis = if params.position {
            Basis::Position
        } else {
            Basis::Document
        };
        let outbox = self.outbox.clone();
        let mut runs = 0;
        let work = move |snapshot: &Snapshot, file| {
            runs += 1;
            outbox.show(lsp_types::MessageType::LOG, "begun");
            if runs > 1 {
                return Ok(Ok(runs));
            }
            loop {
                snapshot.analysis.diagnostics(file)?;
            }
        };
        self.read("untilCancelled", basis, params.uri, work).await
    }

    async fn panic_notification(&self, _: Value) {
        panic!("on purpose")
    }

    /// Asks the client, and gives up at once.
    async fn ask_briefly(&self, _: Value) {
        let outbox = self.outbox.clone();
        let params = ConfigurationParams { items: Vec::new() };
        tokio::spawn(async move {
            outbox
                .ask::<WorkspaceConfiguration>(params, Duration::ZERO)
                .await
                .is_ok()
        });
    }

    async fn sabotage(&self, _: Value) {
        self.send(Event::Sabotage);
    }
}
