//! An OpenClaw gateway that isn't one: a WebSocket on the loopback that speaks the part of its protocol that runs agents, and
//! answers from a [`GatewayScript`]. Runs go on when the client that began them is gone, as those of a real gateway do, and an answer
//! that came meanwhile can be asked for.
//!
//! ```
//! use mock_model::openclaw::{GatewayScript, MockGateway, Run, Step};
//!
//! let script = GatewayScript::new("a-token").run(Run::on("weather", [Step::say("Sunny.")]));
//! let gateway = MockGateway::start(script)?;
//! assert!(gateway.url().starts_with("ws://127.0.0.1:"));
//! assert!(gateway.asked().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

mod run;
mod script;
mod server;

pub use script::{GatewayScript, Refusal, Run, Step};
pub use server::{Asked, MockGateway};
