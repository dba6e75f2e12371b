//! The bundle as the machine walks it: nodes in one table, named by index, with what can be known beforehand.
//!
//! Continuation frames hold [`NodeId`]s instead of borrowing the bundle. Nodes fall into two classes. *Pure* nodes need
//! no effect (but may need content decoded); *constructs* run sessions, ask, bind or branch. `lifts` of a node are the
//! constructs that must have run before its pure part can be evaluated; they run left to right, and only then are plain
//! names read (language.md, "Execution").

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use prose_model::{
    Backoff, BinaryOp, BindKind, BindTarget, Bundle, Name, Persist, Policy, SourceRange, StmtId, Strategy,
};

/// Index into [`Code::nodes`].
pub(crate) type NodeId = u32;
/// Nodes in order.
pub(crate) type Body = Arc<[NodeId]>;

/// The compiled bundle.
#[derive(Debug)]
pub(crate) struct Code {
    pub bundle: Arc<Bundle>,
    pub nodes: Vec<CNode>,
    pub programs: Vec<CProgram>,
}

#[derive(Debug)]
pub(crate) struct CProgram {
    pub agents: IndexMap<Name, CAgent>,
    pub blocks: IndexMap<Name, CBlock>,
    /// Inputs that are asked at once before anything runs.
    pub leading: Body,
    /// The top level without `leading`.
    pub body: Body,
    /// Every name that something in the program binds: reading one too early gives null, not an error.
    pub declared: IndexSet<Name>,
}

#[derive(Debug)]
pub(crate) struct CBlock {
    pub params: Vec<Name>,
    pub max_depth: u32,
    pub body: Body,
}

#[derive(Debug)]
pub(crate) struct CAgent {
    pub persist: Option<Persist>,
    pub props: CProps,
    /// Constructs inside the properties.
    pub operands: Body,
}

#[derive(Debug)]
pub(crate) struct CNode {
    pub id: StmtId,
    pub src: SourceRange,
    pub op: COp,
    /// Constructs to run before the node's value can be taken; itself when it is one.
    pub lifts: Body,
    /// For a construct: those inside its operands.
    pub operands: Body,
    /// Where a session's result goes, when something around it says so.
    pub target: Option<Target>,
    /// Whether it stands as a statement.
    pub statement: bool,
    /// Whether anything looks at its value: what a loop or join gives need not be kept otherwise.
    pub used: bool,
}

/// A session's place in a binding.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub name: Name,
    /// None for an assignment: the kind is the slot's.
    pub kind: Option<BindKind>,
    pub source: SourceRange,
}

#[derive(Debug, Clone)]
pub(crate) enum CPart {
    Text(Arc<str>),
    Insert {
        value: NodeId,
        verbatim: Arc<str>,
        base: Option<Name>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct CTemplate(pub Arc<[CPart]>);

impl CTemplate {
    /// The text as it was written.
    pub fn written(&self) -> String {
        self.0
            .iter()
            .map(|part| match part {
                CPart::Text(text) => &**text,
                CPart::Insert { verbatim, .. } => &**verbatim,
            })
            .collect()
    }

    /// Whether its own words hold a parenthesis, in which it may offer choices.
    pub fn has_parenthesis(&self) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| matches!(part, CPart::Text(text) if text.contains('(')))
    }
}

/// What a judge is asked, and what "unsure" counts as at this place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Role {
    pub kind: RoleKind,
    pub unsure: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RoleKind {
    Value,
    Condition,
    Loop { until: bool },
}

impl Role {
    pub const VALUE: Role = Role {
        kind: RoleKind::Value,
        unsure: false,
    };
    pub const CONDITION: Role = Role {
        kind: RoleKind::Condition,
        unsure: false,
    };

    /// The role of an operand of `and`, `or`.
    pub fn operand(self) -> Role {
        if self.kind == RoleKind::Value {
            Role::CONDITION
        } else {
            self
        }
    }
    /// The role of the operand of `not`.
    pub fn negated(self) -> Role {
        let role = self.operand();
        Role {
            unsure: !role.unsure,
            ..role
        }
    }
}

#[derive(Debug)]
pub(crate) struct CSession {
    pub resume: bool,
    pub name: Option<Name>,
    pub agent: Option<Name>,
    pub label: Option<NodeId>,
    pub props: CProps,
    /// Whether it is a later part of `a -> b`.
    pub chained: bool,
}

#[derive(Debug)]
pub(crate) struct CProps {
    pub model: Option<NodeId>,
    pub prompt: Option<NodeId>,
    pub context: Option<Vec<(String, NodeId)>>,
    pub retry: Option<NodeId>,
    pub backoff: Option<Backoff>,
    pub skills: Vec<NodeId>,
    pub permissions: IndexMap<Name, CPermission>,
}

#[derive(Debug)]
pub(crate) enum CPermission {
    Allow,
    Deny,
    Prompt,
    Patterns(Vec<NodeId>),
}

#[derive(Debug)]
pub(crate) struct CArgs(pub Vec<(Option<Name>, NodeId)>);

/// A join's modifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CJoin {
    pub strategy: Strategy,
    pub policy: Policy,
    pub count: Option<NodeId>,
    pub max: Option<NodeId>,
}

#[derive(Debug)]
pub(crate) struct CBranch {
    pub node: NodeId,
    /// Its name, when it is named.
    pub name: Option<Name>,
    /// Names of this frame that it can bind.
    pub binds: Vec<Name>,
}

/// An option of a choice.
#[derive(Debug)]
pub(crate) struct COption {
    pub label: CTemplate,
    pub body: Body,
}

#[derive(Debug)]
pub(crate) enum CStage {
    Map { item: Name, body: Body },
    Filter { item: Name, body: Body },
    Pmap { item: Name, body: Body },
    Reduce { acc: Name, item: Name, body: Body },
    Chunks(NodeId),
}

#[derive(Debug)]
pub(crate) enum COp {
    Null,
    Bool(bool),
    Number(f64),
    Text(CTemplate),
    Name(Name),
    AgentMemory(Name),
    Member {
        of: NodeId,
        key: String,
    },
    Index {
        of: NodeId,
        index: NodeId,
    },
    List(Body),
    Record(Vec<(String, NodeId)>),
    Not(NodeId),
    Neg(NodeId),
    Binary {
        op: BinaryOp,
        lhs: NodeId,
        rhs: NodeId,
    },
    // ---- constructs ----
    /// `and`, `or` with a side that is a construct; `first` is the side evaluated first.
    Logic {
        or: bool,
        first: NodeId,
        second: NodeId,
    },
    Judge {
        text: CTemplate,
        role: Role,
    },
    Session(Box<CSession>),
    Call {
        block: Name,
        args: CArgs,
    },
    CallProgram {
        import: Name,
        args: CArgs,
    },
    Arrow(Body),
    Pipeline {
        source: NodeId,
        stages: Vec<CStage>,
    },
    Do(Body),
    Parallel {
        branches: Vec<CBranch>,
        join: CJoin,
    },
    For {
        item: Name,
        index: Option<Name>,
        source: NodeId,
        parallel: Option<CJoin>,
        body: Body,
    },
    Repeat {
        count: NodeId,
        index: Option<Name>,
        body: Body,
    },
    Loop {
        test: Option<(bool, NodeId)>,
        max: Option<NodeId>,
        index: Option<Name>,
        body: Body,
    },
    If {
        arms: Vec<(NodeId, Body)>,
        otherwise: Option<Body>,
    },
    Choice {
        criteria: CTemplate,
        options: Vec<COption>,
    },
    Try {
        body: Body,
        catch: Option<(Option<Name>, Body)>,
        finally: Option<Body>,
    },
    Input {
        name: Name,
        prompt: Option<CTemplate>,
        discretion: bool,
        default: Option<NodeId>,
    },
    Bind {
        kind: BindKind,
        target: BindTarget,
        value: NodeId,
    },
    Assign {
        name: Name,
        path: Body,
        value: NodeId,
    },
    Return(Option<NodeId>),
    Break,
    Throw(Option<NodeId>),
    Assert {
        cond: NodeId,
        message: Option<NodeId>,
    },
}

impl Code {
    pub fn new(bundle: Arc<Bundle>) -> Code {
        let (nodes, programs) = crate::compile::compile(&bundle);
        Code {
            nodes,
            programs,
            bundle,
        }
    }

    pub fn node(&self, id: NodeId) -> &CNode {
        &self.nodes[id as usize]
    }

    /// Where a node stands, for a person: file, line and the line's own words. Empty without a source.
    pub fn place(&self, id: NodeId) -> String {
        let src = self.node(id).src;
        let Some(file) = self.bundle.files.get(src.file as usize) else {
            return String::new();
        };
        let text = crate::render::one_line(&self.source(id));
        match file.text.get(..src.start as usize) {
            Some(before) if !text.is_empty() => {
                let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
                format!("{}:{line}: {text}", file.path)
            }
            _ => String::new(),
        }
    }

    /// The source text of a node.
    pub fn source(&self, id: NodeId) -> String {
        let src = self.node(id).src;
        let text = self
            .bundle
            .files
            .get(src.file as usize)
            .map_or("", |file| &*file.text);
        text.get(src.start as usize..src.end as usize)
            .unwrap_or_default()
            .to_owned()
    }
}

/// Whether a node needs a continuation of its own.
pub(crate) fn is_construct(op: &COp) -> bool {
    !matches!(
        op,
        COp::Null
            | COp::Bool(_)
            | COp::Number(_)
            | COp::Text(_)
            | COp::Name(_)
            | COp::AgentMemory(_)
            | COp::Member { .. }
            | COp::Index { .. }
            | COp::List(_)
            | COp::Record(_)
            | COp::Not(_)
            | COp::Neg(_)
            | COp::Binary { .. }
    )
}
