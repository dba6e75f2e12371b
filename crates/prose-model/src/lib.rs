//! Plain data that lies under every other crate: the lowered bundle, values, effects and outcomes, events, journal
//! records, and the tables of codes and vocabulary. Everything that is stored or sent is serde and versioned.
//!
//! Deliberately absent: logic beyond constructors, IO, syntax trees, queries, async.
//!
//! Architecture invariant: this crate depends on none of ours, and a change to a serialised shape shows in a snapshot.

pub mod arguments;
pub mod backend;
mod bundle;
pub mod codes;
mod effect;
mod event;
mod ids;
mod journal;
pub mod protected;
mod value;
pub mod vocabulary;

pub use bundle::*;
pub use effect::*;
pub use event::*;
pub use ids::*;
pub use journal::*;
pub use value::*;
