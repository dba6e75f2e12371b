//! Who declares and who uses which name inside one chunk, and how the places nest.
//!
//! The rules are those of the language reference, "Scope": a frame has one slot per name; scopes inside a frame only limit
//! where a name can be seen.

mod index;
mod walk;

use std::sync::Arc;

use crate::Name;
use crate::signature::Declarations;
use prose_syntax::TextRange;

use index::NameIndex;
pub(crate) use index::{DefsOfName, Sort};

/// What a declaration makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefKind {
    /// `agent`
    Agent,
    /// `block`
    Block,
    /// `use`
    Import,
    /// `input`
    Input,
    /// `output name =`
    Output,
    /// `let`, also through `{ a, b }`
    Let,
    /// `const`
    Const,
    /// `session name: agent`
    Session,
    /// `name = …` in `parallel:`
    Branch,
    /// `name = …` elsewhere: a declaration only where nothing else declares the name
    Assigned,
    /// A parameter of a block
    Param,
    /// The item of `for`
    Item,
    /// The index of `for`, `repeat`, `loop`
    Index,
    /// `catch as name`
    Catch,
    /// The implicit `item` of `map`, `filter`, `pmap`
    Implicit,
    /// A variable of `reduce`
    Reduce,
}

impl DefKind {
    /// An agent, block or import: one global table.
    pub fn is_global(self) -> bool {
        matches!(self, DefKind::Agent | DefKind::Block | DefKind::Import)
    }
    /// Lives in its construct only, and can't be assigned (parameters: should not).
    pub fn is_scoped(self) -> bool {
        matches!(
            self,
            DefKind::Param
                | DefKind::Item
                | DefKind::Index
                | DefKind::Catch
                | DefKind::Implicit
                | DefKind::Reduce
        )
    }
    /// Declares a slot of its frame in so many words.
    pub(crate) fn declares_slot(self) -> bool {
        matches!(
            self,
            DefKind::Input
                | DefKind::Output
                | DefKind::Let
                | DefKind::Const
                | DefKind::Session
                | DefKind::Branch
        )
    }
    /// The word for it with its article.
    pub(crate) fn a_noun(self) -> String {
        let noun = self.noun();
        let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        format!("{article} {noun}")
    }
    /// The word for it in messages.
    pub fn noun(self) -> &'static str {
        match self {
            DefKind::Agent => "agent",
            DefKind::Block => "block",
            DefKind::Import => "imported program",
            DefKind::Input => "input",
            DefKind::Output => "output",
            DefKind::Let | DefKind::Assigned => "variable",
            DefKind::Const => "constant",
            DefKind::Session => "session result",
            DefKind::Branch => "branch result",
            DefKind::Param => "parameter",
            DefKind::Item => "loop variable",
            DefKind::Index => "loop index",
            DefKind::Catch => "error variable",
            DefKind::Implicit | DefKind::Reduce => "pipeline variable",
        }
    }
}

/// How a name is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefKind {
    /// In an expression.
    Value,
    /// In `{…}` of a string or discretion.
    Insert,
    /// The whole text of a discretion.
    Bare,
    /// `session: name`
    Agent,
    /// `resume: name`
    Resume,
    /// `do name`
    Do,
    /// `name(…)`
    Call,
    /// `name = …`
    Assign,
    /// A skill or permission list names it; a plain word unless something declares it.
    Word,
    /// It selects a parameter, input or output of what is called: `f(topic: x)`, `r.verdict`.
    Label,
}

/// A declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Def {
    pub name: Name,
    pub range: TextRange,
    pub kind: DefKind,
    pub scope: u32,
    /// Position in evaluation order, shared with uses.
    pub seq: u32,
    /// The statement or construct it belongs to.
    pub full: TextRange,
    /// `output x = x`
    pub promotes: bool,
    /// Whether what it binds is also the value of what is around it.
    pub valued: Valued,
}

/// Whether the value of a statement is anybody's value besides its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Valued {
    /// It is dropped.
    #[default]
    No,
    /// It is the value of a block, of a pipeline's item or of another expression.
    Yes,
    /// It is the value of the last statement of its chunk, which is the program's when no chunk follows.
    Last,
}

/// What a variable is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The result of what is called by this name.
    Call(Name),
    /// The value of another variable.
    Variable(Name),
}

/// A use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ref {
    pub name: Name,
    pub range: TextRange,
    pub kind: RefKind,
    pub scope: u32,
    pub seq: u32,
}

/// A stretch of the program with its own visibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub parent: Option<u32>,
    pub frame: u32,
    pub range: TextRange,
    /// The last scope inside it; itself when there is none. Scopes are numbered outside in, in order.
    pub last: u32,
    /// The widest scope of its frame from which what it declares can be seen.
    pub home: u32,
    /// What it declares and uses comes after the first and not after the second place.
    pub seqs: (u32, u32),
    /// What it declares can't be seen after it.
    pub hides: bool,
    /// Runs more than once in the same frame, so that what comes later may already be there.
    pub looped: bool,
    /// Arms of one construct, of which not all run, share a number; 0 for anything else.
    pub group: u32,
    /// Its last statement leaves it, so that nothing after it is reached.
    pub exits: bool,
    /// The branches of a `parallel:`.
    pub parallel: bool,
}

/// What has slots of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: FrameKind,
    pub parent: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The top level of the program.
    Root,
    /// A block's invocation. Its name may be missing in a broken program.
    Block(Name),
    /// Text of an agent, evaluated where a session of it is started.
    Agent,
    /// An iteration of `parallel for`, an item of `pmap`.
    Iteration,
}

/// Everything about names in a chunk that can be known without looking at any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scopes {
    pub frames: Box<[Frame]>,
    pub scopes: Box<[Scope]>,
    pub defs: Box<[Def]>,
    pub refs: Box<[Ref]>,
    /// Where the judge is asked, who is told of every name in sight: position in evaluation order, scope.
    pub judged: Box<[(u32, u32)]>,
    /// Variables that are bound to what a call gives, or to other variables.
    pub held: Box<[(Name, Holds)]>,
    /// What the chunk declares, for the query of that name: what asks for that alone stays true while ranges change.
    pub declared: Arc<Declarations>,
    names: NameIndex,
}

/// The root's frame and scope in every chunk.
pub(crate) const ROOT: u32 = 0;

impl Scopes {
    pub fn scope(&self, index: u32) -> &Scope {
        &self.scopes[index as usize]
    }
    pub fn frame_of(&self, scope: u32) -> u32 {
        self.scope(scope).frame
    }
    pub fn def(&self, index: u32) -> &Def {
        &self.defs[index as usize]
    }

    /// The variables of a name.
    pub fn defs_of(&self, name: &Name) -> Option<DefsOfName<'_>> {
        self.names.get(self, name)
    }

    /// The scope and all around it, inside out.
    pub fn ancestors(&self, scope: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(scope), |it| self.scope(*it).parent)
    }

    pub fn encloses(&self, outer: u32, inner: u32) -> bool {
        outer <= inner && inner <= self.scope(outer).last
    }

    /// The scopes of one frame around a place, inside out, its own among them.
    pub fn ancestors_in(&self, frame: u32, scope: u32) -> impl Iterator<Item = u32> + '_ {
        self.ancestors(scope)
            .skip_while(move |it| self.frame_of(*it) != frame)
            .take_while(move |it| self.frame_of(*it) == frame)
    }

    /// The innermost scope around both.
    pub fn common(&self, a: u32, b: u32) -> u32 {
        self.ancestors(a).find(|it| self.encloses(*it, b)).unwrap_or(ROOT)
    }

    /// The frame and those around it in the text, which are its callers.
    pub fn frames_from(&self, frame: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(frame), |it| self.frames[*it as usize].parent)
    }

    /// The frame that stands for the whole declaration a scope is in: the root, a block or an agent.
    pub fn outermost_frame(&self, scope: u32) -> &FrameKind {
        let last = self.frames_from(self.frame_of(scope)).last().unwrap_or(ROOT);
        &self.frames[last as usize].kind
    }

    /// Whether the scope may be skipped and, when it runs, what comes after it runs too, seen from `outer`, which is
    /// around it.
    pub fn may_skip(&self, scope: u32, outer: u32) -> bool {
        let between = || {
            self.ancestors(scope)
                .take_while(|it| *it != outer)
                .map(|it| self.scope(it))
        };
        between().any(|it| it.group != 0) && !between().any(|it| it.exits)
    }
}
