//! Records and bundles that the tests share.

// Each test file uses its own part.
#![allow(dead_code)]

use std::sync::Arc;

use prose_model::*;

/// A bundle with one program of the given text and nothing lowered.
pub fn bundle(text: &str) -> Arc<Bundle> {
    let digest = prose_state::digest_of(text.as_bytes());
    let program = Program {
        name: "main".into(),
        namespace: String::new(),
        file: 0,
        inputs: vec![],
        outputs: vec![],
        agents: Default::default(),
        blocks: Default::default(),
        imports: Default::default(),
        body: vec![],
    };
    let file = BundleFile {
        path: "main.prose".into(),
        text: text.into(),
        digest: digest.clone(),
    };
    Arc::new(Bundle {
        version: BUNDLE_VERSION,
        entry: 0,
        programs: vec![program],
        files: vec![file],
        digest,
    })
}

/// A record for a session effect that is asked for.
pub fn issued(id: &str, order: u64) -> RecordBody {
    RecordBody::Issued {
        id: id.into(),
        stmt: "main/0".into(),
        kind: "session".into(),
        order,
        hash: prose_state::digest_of(id.as_bytes()),
        memory: None,
    }
}

/// A record for a session's result.
pub fn outcome(id: &str, lease: u64, value: Value) -> RecordBody {
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cost_usd: Some(0.25),
    };
    let outcome = SessionOutcome {
        value,
        summary: "a \"result\"".into(),
        usage,
        memory: None,
        segment: None,
    };
    RecordBody::Outcome {
        id: id.into(),
        lease,
        outcome: Outcome::Session(Box::new(outcome)),
    }
}
