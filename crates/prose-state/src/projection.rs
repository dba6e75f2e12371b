//! `state.md`: where a run stands, for people and for other tools; built from the run's events alone.

mod render;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    BindingRef, Bundle, ConstructKind, EffectId, End, ErrorValue, Event, ExecutionId, FrameKind, Name, Place,
    RunEvent, RunId, RunStatus, SourceRange, StmtId,
};

use crate::fs::{Sync, read_file, write_atomic, write_changed};
use crate::outline::{LineStarts, Outline};
use crate::trace::LineNote;
use crate::{Result, RunDir, binding_file_name, clock};

/// The `state.md` of a run and of every program that it calls, kept up to date by events.
pub struct StateProjection {
    bundle: Arc<Bundle>,
    run_id: RunId,
    simulated: bool,
    files: Vec<LineStarts>,
    outlines: Vec<Option<Arc<Outline>>>,
    trees: Vec<Tree>,
    /// Numbered in the order in which they began.
    frames: BTreeMap<ExecutionId, Frame>,
    /// Those of called programs.
    programs: BTreeSet<ExecutionId>,
    /// The tree of everything that goes on, and its place there.
    running: HashMap<Key, (usize, u64)>,
    constructs: HashMap<EffectId, usize>,
    /// Whether the run is over and only looked at: then files that say the same are left as they are.
    at_rest: bool,
}

/// One program's state.
struct Tree {
    path: Vec<String>,
    program: usize,
    title: String,
    started_ms: i64,
    updated_ms: i64,
    ended: Option<(RunStatus, Option<ErrorValue>)>,
    notes: HashMap<(u32, u32), LineNote>,
    /// By the order in which they began.
    running: BTreeMap<u64, Running>,
    begun: u64,
    constructs: IndexMap<EffectId, Construct>,
    bindings: IndexMap<(Name, Option<ExecutionId>), BindingRow>,
    /// Folder names given to calls of this program.
    folders: HashSet<String>,
    dirty: bool,
    written: bool,
}

/// What can begin and end. A statement's place and its effect's id may be the same text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Statement(EffectId),
    Effect(EffectId),
}

/// Something that has begun and not ended.
struct Running {
    src: SourceRange,
    line: u32,
    frame: Option<ExecutionId>,
    detail: Option<String>,
}

struct BindingRow {
    kind: &'static str,
    path: String,
}

struct Frame {
    tree: usize,
    parent: Option<ExecutionId>,
    kind: FrameKind,
    name: Name,
    depth: u32,
    /// The place of the call: what happens in the frame has a longer one.
    call: EffectId,
    call_src: SourceRange,
}

struct Construct {
    stmt: StmtId,
    src: SourceRange,
    kind: ConstructKind,
    frame: Option<ExecutionId>,
    total: Option<u32>,
    condition: Option<String>,
    parts: BTreeMap<u32, Part>,
}

struct Part {
    label: Option<String>,
    end: Option<End>,
}

impl StateProjection {
    /// The state of a run before its first event. `program` is shown as the program's name.
    pub fn new(bundle: Arc<Bundle>, run_id: RunId, program: &str, started_ms: i64) -> StateProjection {
        let files = bundle
            .files
            .iter()
            .map(|file| LineStarts::new(&file.text))
            .collect();
        let outlines = bundle.programs.iter().map(|_| None).collect();
        let entry = Tree::new(Vec::new(), bundle.entry, program.to_owned(), started_ms);
        StateProjection {
            bundle,
            run_id,
            simulated: false,
            files,
            outlines,
            trees: vec![entry],
            frames: BTreeMap::new(),
            programs: BTreeSet::new(),
            running: HashMap::new(),
            constructs: HashMap::new(),
            at_rest: false,
        }
    }

    /// The run is over, and only what is missing or says something else is written from now on. When the run was worked on
    /// is told by the journal to the millisecond, but not as exactly as it was known then: it alone makes no difference.
    pub fn at_rest(&mut self) {
        self.at_rest = true;
    }

    /// Takes in a published event.
    pub fn apply_run_event(&mut self, event: &RunEvent) {
        let ts_ms = clock::parse_ms(&event.ts).unwrap_or(self.trees[0].updated_ms);
        self.apply(&event.event, ts_ms);
    }

    /// Takes in an event that happened at the given time. Streamed text, usage and the like change nothing.
    pub fn apply(&mut self, event: &Event, ts_ms: i64) {
        let Some(tree) = self.update(event, ts_ms) else {
            return;
        };
        // A parent shows a called program's progress only as its own statement that goes on.
        for tree in [tree, 0] {
            let tree = &mut self.trees[tree];
            tree.updated_ms = ts_ms.max(tree.updated_ms);
            tree.dirty = true;
        }
    }

    /// Whether something changed since the last [`StateProjection::flush`].
    pub fn dirty(&self) -> bool {
        self.trees.iter().any(|tree| tree.dirty)
    }

    /// Writes what changed, each file in one step. Called programs get their folders and `program.prose` first.
    pub fn flush(&mut self, run: &RunDir) -> Result<()> {
        for index in 0..self.trees.len() {
            if !self.trees[index].dirty {
                continue;
            }
            let text = self.render_tree(index);
            let tree = &mut self.trees[index];
            let dir = run.program(&tree.path)?;
            if !tree.written && !tree.path.is_empty() {
                run.create_below(dir.path())?;
                dir.create()?;
                let file = self
                    .bundle
                    .programs
                    .get(tree.program)
                    .map_or(0, |program| program.file as usize);
                let source = self.bundle.files.get(file).map_or("", |file| &*file.text);
                write_changed(&dir.program(), source.as_bytes(), Sync::Lazy, "program")?;
            }
            let path = dir.state();
            if !self.at_rest || !says(&path, &text) {
                write_atomic(&path, text.as_bytes(), Sync::Lazy, "state")?;
            }
            tree.written = true;
            tree.dirty = false;
            if tree.ended.is_some() && index > 0 {
                // Nothing more is written for a call that is over; a loop may make thousands.
                tree.forget();
            }
        }
        Ok(())
    }

    /// The text of `state.md` of every program that is not yet written in its final form, by its path as in
    /// [`BindingRef::program`]; the entry's first.
    pub fn render(&mut self) -> Vec<(Vec<String>, String)> {
        (0..self.trees.len())
            .filter_map(|index| {
                let tree = &self.trees[index];
                let is_final = index > 0 && tree.ended.is_some() && tree.written;
                (!is_final)
                    .then(|| tree.path.clone())
                    .map(|path| (path, self.render_tree(index)))
            })
            .collect()
    }

    /// The tree that an event changed.
    fn update(&mut self, event: &Event, ts_ms: i64) -> Option<usize> {
        Some(match event {
            Event::RunStarted { simulated, .. } => {
                self.simulated = *simulated;
                self.trees[0].ended = None;
                0
            }
            Event::RunFinished { status, error, .. } => {
                self.trees[0].ended = Some((*status, error.clone()));
                0
            }
            Event::StatementStarted { at } => self.begin(at, Key::Statement(at.path.clone()), None),
            Event::StatementFinished { at, end } => {
                let tree = self.finish(&Key::Statement(at.path.clone()))?;
                let line = self.line(at.src);
                let note = self.trees[tree].notes.entry(line).or_default();
                note.ended.add(*end);
                note.retry = None;
                tree
            }
            Event::FrameStarted {
                at,
                frame,
                kind,
                name,
                depth,
                ..
            } => self.frame_started(at, *frame, *kind, name, *depth, ts_ms),
            Event::FrameFinished { frame, end } => {
                self.programs.remove(frame);
                let frame = self.frames.remove(frame)?;
                if frame.kind == FrameKind::Program {
                    let status = match end {
                        End::Ok | End::Left => RunStatus::Completed,
                        End::Failed => RunStatus::Failed,
                        End::Cancelled => RunStatus::Cancelled,
                    };
                    self.trees[frame.tree].ended = Some((status, None));
                }
                frame.tree
            }
            Event::ConstructStarted {
                at,
                construct,
                kind,
                total,
                condition,
            } => {
                let tree = self.tree_of(at);
                self.constructs.insert(construct.clone(), tree);
                let started = Construct {
                    stmt: at.stmt.clone(),
                    src: at.src,
                    kind: *kind,
                    frame: at.execution_id,
                    total: *total,
                    condition: condition.clone(),
                    parts: BTreeMap::new(),
                };
                self.trees[tree].constructs.insert(construct.clone(), started);
                tree
            }
            Event::PartStarted {
                construct,
                index,
                label,
            } => {
                let tree = *self.constructs.get(construct)?;
                let construct = self.trees[tree].constructs.get_mut(construct)?;
                let parts = &mut construct.parts;
                // A loop shows the iteration that it is at, and may have any number of them.
                if matches!(
                    construct.kind,
                    ConstructKind::For | ConstructKind::Repeat | ConstructKind::Loop
                ) {
                    parts.clear();
                }
                parts.insert(
                    *index,
                    Part {
                        label: label.clone(),
                        end: None,
                    },
                );
                tree
            }
            Event::PartFinished {
                construct,
                index,
                end,
            } => {
                let tree = *self.constructs.get(construct)?;
                self.trees[tree]
                    .constructs
                    .get_mut(construct)?
                    .parts
                    .get_mut(index)?
                    .end = Some(*end);
                tree
            }
            Event::ConstructFinished { construct, .. } => {
                let tree = self.constructs.remove(construct)?;
                self.trees[tree].constructs.shift_remove(construct);
                tree
            }
            Event::SessionStarted {
                at,
                effect,
                attempt,
                max_attempts,
                binding,
                ..
            } => {
                let tree = self.begin(at, Key::Effect(effect.clone()), None);
                self.name_tree(tree, binding);
                let line = self.line(at.src);
                let note = self.trees[tree].notes.entry(line).or_default();
                note.retry = (*attempt > 1).then_some((*attempt, *max_attempts));
                tree
            }
            Event::InputStarted { at, effect, name, .. } => self.begin(
                at,
                Key::Effect(effect.clone()),
                Some(format!("waiting for input `{name}`")),
            ),
            Event::JudgeStarted { at, effect, .. }
            | Event::DecodeStarted { at, effect }
            | Event::SleepStarted { at, effect, .. } => self.begin(at, Key::Effect(effect.clone()), None),
            Event::SessionFinished { effect, .. }
            | Event::JudgeFinished { effect, .. }
            | Event::DecodeFinished { effect, .. }
            | Event::InputFinished { effect, .. }
            | Event::SleepFinished { effect, .. } => self.finish(&Key::Effect(effect.clone()))?,
            Event::Bound {
                at, binding, kind, ..
            } => {
                let kind = kind.file_kind()?;
                let tree = self.tree_of(at);
                self.name_tree(tree, binding);
                let path = format!("bindings/{}", binding_file_name(binding));
                let line = self.line(at.src);
                let tree_state = &mut self.trees[tree];
                let note = tree_state.notes.entry(line).or_default();
                note.bindings.insert(binding.name.to_string(), path.clone());
                let key = (binding.name.clone(), binding.execution_id);
                tree_state.bindings.insert(key, BindingRow { kind, path });
                tree
            }
            Event::Warning { .. }
            | Event::SessionSpawned { .. }
            | Event::SessionText { .. }
            | Event::SessionTool { .. }
            | Event::PermissionStarted { .. }
            | Event::PermissionFinished { .. }
            | Event::QuestionStarted { .. }
            | Event::QuestionFinished { .. }
            | Event::SessionUsage { .. }
            | Event::InputNeeded { .. }
            | Event::Narration { .. }
            | Event::Notice { .. }
            | Event::EventsMissed { .. } => return None,
        })
    }

    fn begin(&mut self, at: &Place, key: Key, detail: Option<String>) -> usize {
        let tree = self.tree_of(at);
        let (_, line) = self.line(at.src);
        let state = &mut self.trees[tree];
        let place = state.begun;
        state.begun += 1;
        state.running.insert(
            place,
            Running {
                src: at.src,
                line,
                frame: at.execution_id,
                detail,
            },
        );
        self.running.insert(key, (tree, place));
        tree
    }

    fn finish(&mut self, key: &Key) -> Option<usize> {
        let (tree, place) = self.running.remove(key)?;
        self.trees[tree].running.remove(&place);
        Some(tree)
    }

    fn frame_started(
        &mut self,
        at: &Place,
        frame: ExecutionId,
        kind: FrameKind,
        name: &Name,
        depth: u32,
        ts_ms: i64,
    ) -> usize {
        let caller = self.tree_of(at);
        let tree = if kind == FrameKind::Program {
            self.call(caller, frame, name, ts_ms)
        } else {
            caller
        };
        let (parent, call) = (at.execution_id, at.path.clone());
        let name = name.clone();
        if kind == FrameKind::Program {
            self.programs.insert(frame);
        }
        self.frames.insert(
            frame,
            Frame {
                tree,
                parent,
                kind,
                name,
                depth,
                call,
                call_src: at.src,
            },
        );
        tree
    }

    /// The tree of a program that is called: `imports/{handle}--{slug}`, and `…__{execution_id}` for later calls
    /// (language.md, "Execution").
    fn call(&mut self, caller: usize, frame: ExecutionId, name: &Name, ts_ms: i64) -> usize {
        let imports = self
            .bundle
            .programs
            .get(self.trees[caller].program)
            .map(|program| &program.imports);
        let program = imports.and_then(|imports| {
            let direct = imports.get(name).and_then(|import| import.program);
            direct.or_else(|| {
                let mut all = imports.values().filter_map(|import| import.program);
                all.find(|index| {
                    self.bundle
                        .programs
                        .get(*index)
                        .is_some_and(|program| program.name == *name)
                })
            })
        });
        let program = program.unwrap_or(usize::MAX);
        let known = self.bundle.programs.get(program);
        let folder = known
            .map(|program| program.namespace.as_str())
            .filter(|namespace| !namespace.is_empty());
        let mut folder = folder.map_or_else(|| crate::safe_file_name(name), ToOwned::to_owned);
        let title = known
            .and_then(|program| self.bundle.files.get(program.file as usize))
            .map_or_else(|| name.to_string(), |file| file.path.clone());
        let caller = &mut self.trees[caller];
        if !caller.folders.insert(folder.clone()) {
            folder = format!("{folder}__{frame}");
        }
        let mut path = caller.path.clone();
        path.push(folder);
        self.trees.push(Tree::new(path, program, title, ts_ms));
        self.trees.len() - 1
    }

    /// The machine's word on where a program's files are counts.
    fn name_tree(&mut self, tree: usize, binding: &BindingRef) {
        let tree = &mut self.trees[tree];
        if !tree.written && tree.path.len() == binding.program.len() && tree.path != binding.program {
            tree.path = binding.program.clone();
        }
    }

    fn tree_of(&self, at: &Place) -> usize {
        if let Some(frame) = at.execution_id.and_then(|id| self.frames.get(&id)) {
            return frame.tree;
        }
        // The root of a called program has no execution id of its own, but its place goes on from the call's.
        let programs = self.programs.iter().filter_map(|id| self.frames.get(id));
        let around = programs.filter(|frame| at.path.as_str().starts_with(frame.call.as_str()));
        around
            .max_by_key(|frame| frame.call.as_str().len())
            .map_or(0, |frame| frame.tree)
    }

    /// File and line, from 0, of a range's start.
    fn line(&self, src: SourceRange) -> (u32, u32) {
        (
            src.file,
            self.files
                .get(src.file as usize)
                .map_or(0, |file| file.line(src.start)),
        )
    }

    fn outline(&mut self, program: usize) -> Option<Arc<Outline>> {
        let program_data = self.bundle.programs.get(program)?;
        let slot = self.outlines.get_mut(program)?;
        Some(
            slot.get_or_insert_with(|| Arc::new(Outline::new(&self.bundle, program_data)))
                .clone(),
        )
    }
}

/// Whether a file says the same as a text, but for the times at its head.
fn says(path: &Path, text: &str) -> bool {
    let Ok(found) = read_file(path) else { return false };
    let found = String::from_utf8_lossy(&found);
    let is_time = |line: &str| line.starts_with("started: ") || line.starts_with("updated: ");
    let mut head = true;
    let mut lines = found.split('\n').zip(text.split('\n'));
    found.split('\n').count() == text.split('\n').count()
        && lines.all(|(found, wanted)| {
            head &= !wanted.starts_with("## ");
            found == wanted || (head && is_time(found) && is_time(wanted))
        })
}

impl Tree {
    fn new(path: Vec<String>, program: usize, title: String, started_ms: i64) -> Tree {
        Tree {
            path,
            program,
            title,
            started_ms,
            updated_ms: started_ms,
            ended: None,
            notes: HashMap::new(),
            running: BTreeMap::new(),
            begun: 0,
            constructs: IndexMap::new(),
            bindings: IndexMap::new(),
            folders: HashSet::new(),
            dirty: true,
            written: false,
        }
    }

    fn forget(&mut self) {
        self.notes = HashMap::new();
        self.running = BTreeMap::new();
        self.constructs = IndexMap::new();
        self.bindings = IndexMap::new();
        self.folders = HashSet::new();
    }
}
