//! A model that isn't one: a server on the loopback that speaks Anthropic's messages, OpenAI's chat completions and
//! responses, and Gemini's content generation, and answers from a [`Script`]. Streams, tool calls, forced schemas, usage and
//! everything that goes wrong with them are said in the script; what was asked is kept in a log.
//!
//! ```
//! use mock_model::{Answer, MockModel, Rule, Script};
//!
//! let script = Script::new().rule(Rule::user("weather").answer(Answer::text("Sunny.")));
//! let mock = MockModel::start_blocking(script)?;
//! assert!(mock.url().starts_with("http://127.0.0.1:"));
//! assert!(mock.requests().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`openclaw`] does the same in the place of an agents' gateway, and [`scripted`] has stand-ins for agents.
//!
//! Deliberately absent: meaning. Nothing is answered that the script doesn't say, and a request that no rule fits is refused.
//! TLS and HTTP/2, too.
//!
//! Architecture invariant: only tests use this crate. It listens on 127.0.0.1 alone, and no key that a client
//! sends is kept or shown: the log has its last four characters and a hash.

mod api;
mod asked;
mod choose;
mod log;
pub mod openclaw;
mod plan;
mod script;
pub mod scripted;
mod server;

pub use asked::{Api, Asked};
pub use log::{Counts, Ended, Logged};
pub use script::{Answer, Call, Cut, Fault, Made, Pattern, Place, Rule, Script, ScriptError, Stop, Usage};
pub use server::{MockModel, Options};
