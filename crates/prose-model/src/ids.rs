//! Names and identities that every layer shares.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An identifier of the program: agent, block, variable, parameter, import.
pub type Name = smol_str::SmolStr;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the given text; nothing is checked.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            /// The identity as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

text_id! {
    /// Names a node of a program: the name of the declaration it stands in, then its child-index path,
    /// as in `main/3`, `block:review/2.0`, `agent:critic/0`. Edits in other declarations don't move it.
    StmtId
}
text_id! {
    /// Names one effect of a run by its place: call-site path, statement path, loop indexes, branch,
    /// ordinal and language try. The same program with the same outcomes gives the same ids, so it is
    /// also the idempotency key of a backend.
    EffectId
}
text_id! {
    /// The lower-case hexadecimal SHA-256 of some content.
    Digest
}
text_id! {
    /// Names a run: `{YYYYMMDD}-{HHMMSS}-{random6}` (seed, "Run ID Format").
    RunId
}

/// Numbers a frame in start order from 1; the root has none (seed, "Execution ID Generation").
pub type ExecutionId = u32;
