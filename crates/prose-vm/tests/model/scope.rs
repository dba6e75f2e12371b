//! Names: language.md, "Scope". Every scope is an ordinary shared object with a link to the one around it.

use std::cell::RefCell;
use std::rc::Rc;

use indexmap::IndexMap;
use prose_model::{BindKind, ErrorValue, FrameKind, Value};

pub type Slots = RefCell<IndexMap<String, (Value, BindKind)>>;

pub struct Scope {
    pub parent: Option<Rc<Scope>>,
    pub slots: Slots,
    /// None for the variables of a loop, `catch` or stage.
    pub frame: Option<Frame>,
    pub caught: Option<std::sync::Arc<ErrorValue>>,
}

#[derive(Default)]
pub struct Frame {
    /// None for the root of the entry.
    pub kind: Option<FrameKind>,
    pub execution: Option<u32>,
    pub name: String,
    pub depth: u32,
    pub outputs: RefCell<IndexMap<String, Value>>,
    pub residue: RefCell<IndexMap<String, Value>>,
}

impl Frame {
    fn ends_lookup(&self) -> bool {
        matches!(self.kind, None | Some(FrameKind::Program))
    }
}

impl Scope {
    pub fn layer(parent: &Rc<Scope>) -> Rc<Scope> {
        Rc::new(Scope {
            parent: Some(parent.clone()),
            slots: Slots::default(),
            frame: None,
            caught: None,
        })
    }
    pub fn framed(parent: Option<&Rc<Scope>>, frame: Frame) -> Rc<Scope> {
        Rc::new(Scope {
            parent: parent.cloned(),
            slots: Slots::default(),
            frame: Some(frame),
            caught: None,
        })
    }
    pub fn set(&self, name: &str, value: Value, kind: BindKind) {
        self.slots.borrow_mut().insert(name.into(), (value, kind));
    }
}

/// A scope and those around it, up to the program's root.
pub fn chain(from: &Rc<Scope>) -> Vec<Rc<Scope>> {
    let mut out = vec![from.clone()];
    loop {
        let last = &out[out.len() - 1];
        if last.frame.as_ref().is_some_and(Frame::ends_lookup) {
            return out;
        }
        let Some(parent) = last.parent.clone() else {
            return out;
        };
        out.push(parent);
    }
}

pub fn find(from: &Rc<Scope>, name: &str) -> Option<(Rc<Scope>, Value, BindKind)> {
    chain(from).into_iter().find_map(|scope| {
        let (value, kind) = scope.slots.borrow().get(name).cloned()?;
        Some((scope.clone(), value, kind))
    })
}

/// Where an assignment goes: as `find`, but a caller's loop variable is not meant.
pub fn assignable(from: &Rc<Scope>, name: &str) -> Option<(Rc<Scope>, BindKind)> {
    let mut called = false;
    for scope in chain(from) {
        let kind = scope.slots.borrow().get(name).map(|(_, kind)| *kind);
        match kind {
            Some(BindKind::Loop) if called => {}
            Some(kind) => return Some((scope, kind)),
            None => {}
        }
        called |= scope
            .frame
            .as_ref()
            .is_some_and(|frame| frame.kind == Some(FrameKind::Block));
    }
    None
}

/// What a block that was called for its own sake has left.
pub fn residue(from: &Rc<Scope>, name: &str) -> Option<Value> {
    let frames = chain(from);
    let mut left = frames
        .iter()
        .filter_map(|scope| scope.frame.as_ref()?.residue.borrow().get(name).cloned());
    left.next()
}

pub fn frame_of(from: &Rc<Scope>) -> Rc<Scope> {
    let mut all = chain(from).into_iter();
    all.find(|scope| scope.frame.is_some()).expect("a frame")
}

pub fn block_of(from: &Rc<Scope>) -> Option<Rc<Scope>> {
    let block = |scope: &Rc<Scope>| {
        scope
            .frame
            .as_ref()
            .is_some_and(|f| f.kind == Some(FrameKind::Block))
    };
    chain(from).into_iter().find(block)
}

/// Where a declaration goes: the frame, or a variable of this frame that shadows the name.
pub fn holder(from: &Rc<Scope>, name: &str) -> Rc<Scope> {
    let mut all = chain(from).into_iter();
    all.find(|scope| scope.frame.is_some() || scope.slots.borrow().contains_key(name))
        .expect("a frame")
}

/// The error that a bare `throw` raises again.
pub fn caught(from: &Rc<Scope>) -> Option<std::sync::Arc<ErrorValue>> {
    for scope in chain(from) {
        if scope.caught.is_some() {
            return scope.caught.clone();
        }
        if scope
            .frame
            .as_ref()
            .is_some_and(|f| f.kind == Some(FrameKind::Block))
        {
            return None;
        }
    }
    None
}

/// Visible names, nearest first.
pub fn visible(from: &Rc<Scope>) -> Vec<(String, Value)> {
    let mut seen: IndexMap<String, Value> = IndexMap::new();
    for scope in chain(from) {
        for (name, (value, _)) in scope.slots.borrow().iter() {
            seen.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    seen.into_iter().collect()
}
