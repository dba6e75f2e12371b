//! The text of `state.md` in the seed's format.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use prose_model::{ConstructKind, End, ExecutionId, FrameKind, Persist, RunStatus, SourceRange};

use super::{Construct, Frame, Part, StateProjection, Tree};
use crate::format_seconds;
use crate::outline::{Facts, Outline};
use crate::trace::{self, Annotation, EndedNote};

/// So many parts of a construct are listed one by one; of more, only those that are not complete.
const PARTS_LISTED: usize = 20;

/// So many calling frames are looked through for what comes next.
const CALLERS_FOLLOWED: usize = 100;

/// The lines, from 0, of something that goes on.
struct Span {
    first: u32,
    last: u32,
    /// Whether something goes on inside of it.
    outer: bool,
}

impl StateProjection {
    pub(super) fn render_tree(&mut self, index: usize) -> String {
        let outline = self.outline(self.trees[index].program);
        let tree = &self.trees[index];
        let upcoming = outline
            .as_deref()
            .map(|outline| self.upcoming(tree, outline))
            .unwrap_or_default();
        let mut text = String::from("# Execution State\n\n");
        text.push_str(&format!("run: {}\n", self.run_id));
        text.push_str(&format!("program: {}\n", tree.title));
        text.push_str(&format!("started: {}\n", format_seconds(tree.started_ms)));
        text.push_str(&format!("updated: {}\n", format_seconds(tree.updated_ms)));
        if self.simulated {
            text.push_str("backend: simulate (no agent ran; the answers are made up)\n");
        }
        if let Some((status, error)) = &tree.ended {
            text.push_str(&format!("status: {}\n", word(status)));
            if let Some(error) = error {
                text.push_str(&format!("error: {}\n", one_line(&error.message)));
            }
        }
        text.push_str("\n## Execution Trace\n\n");
        self.render_traces(&mut text, tree, &upcoming);
        text.push_str("\n## Active Constructs\n");
        self.render_constructs(&mut text, tree, outline.as_deref(), &upcoming);
        text.push_str("\n## Index\n\n### Bindings\n\n");
        text.push_str("| Name | Kind | Path | Execution ID |\n|------|------|------|--------------|\n");
        for ((name, frame), row) in &tree.bindings {
            let frame = frame.map_or("(root)".to_owned(), |frame| frame.to_string());
            text.push_str(&format!("| {name} | {} | {} | {frame} |\n", row.kind, row.path));
        }
        text.push_str("\n### Agents\n\n| Name | Scope | Path |\n|------|-------|------|\n");
        self.render_agents(&mut text, tree);
        text.push_str("\n## Call Stack\n\n| execution_id | block | depth | status |\n");
        text.push_str("|--------------|-------|-------|--------|\n");
        self.render_stack(&mut text, index);
        text
    }

    /// The program's own text, then that of other files whose blocks it has used.
    fn render_traces(&self, text: &mut String, tree: &Tree, upcoming: &[(u32, u32, bool)]) {
        let own = self
            .bundle
            .programs
            .get(tree.program)
            .map_or(0, |program| program.file);
        let mut files = BTreeSet::from([own]);
        files.extend(tree.notes.keys().map(|(file, _)| *file));
        files.extend(tree.running.values().map(|running| running.src.file));
        let others = files.iter().copied().filter(|file| *file != own);
        for file in std::iter::once(own).chain(others) {
            let Some(source) = self.bundle.files.get(file as usize) else {
                continue;
            };
            if file != own {
                text.push_str(&format!("\n### {}\n\n", source.path));
            }
            text.push_str(&trace::render(
                &source.text,
                &self.annotations(tree, file, upcoming),
            ));
        }
    }

    fn annotations(
        &self,
        tree: &Tree,
        file: u32,
        upcoming: &[(u32, u32, bool)],
    ) -> BTreeMap<u32, Annotation> {
        let mut annotations = BTreeMap::new();
        for (_, line, opens) in upcoming.iter().filter(|(of, ..)| *of == file) {
            let annotation = if *opens {
                Annotation::NotYetEntered
            } else {
                Annotation::Next
            };
            annotations.insert(*line, annotation);
        }
        // Many frames may run the same few statements: what rests on the text alone is worked out once for each.
        let mut spans: HashMap<(u32, u32), Span> = HashMap::new();
        for running in tree.running.values().filter(|running| running.src.file == file) {
            let (first, last) = self.span(running.src);
            let key = (running.src.start, running.src.end);
            spans.entry(key).or_insert(Span {
                first,
                last,
                outer: false,
            });
        }
        let all: Vec<((u32, u32), u32)> = spans.iter().map(|(range, span)| (*range, span.first)).collect();
        for ((start, end), span) in &mut spans {
            // What goes on in the lines below says more than that the whole does.
            span.outer = all.iter().any(|((inner_start, inner_end), line)| {
                span.first < *line && *line <= span.last && start <= inner_start && inner_end <= end
            });
        }
        for ((_, line), note) in tree.notes.iter().filter(|((of, _), _)| *of == file) {
            if note.ended.is_none() && note.bindings.is_empty() {
                continue;
            }
            let bindings = note.bindings.values().cloned().collect();
            let inside = spans
                .values()
                .any(|span| span.first < *line && *line <= span.last);
            let note = EndedNote {
                ends: note.ended,
                bindings,
            };
            annotations.insert(*line, Annotation::Ended { note, inside });
        }
        for span in spans.values().filter(|span| span.outer) {
            annotations.remove(&span.first);
        }
        let calls: HashMap<(Option<ExecutionId>, (u32, u32)), &str> = self
            .frames
            .values()
            .filter(|frame| matches!(frame.kind, FrameKind::Block | FrameKind::Program))
            .map(|frame| ((frame.parent, self.line(frame.call_src)), frame.name.as_str()))
            .collect();
        for running in tree.running.values().filter(|running| running.src.file == file) {
            if spans
                .get(&(running.src.start, running.src.end))
                .is_some_and(|span| span.outer)
            {
                continue;
            }
            let retry = tree.notes.get(&(file, running.line)).and_then(|note| note.retry);
            let called = calls.get(&(running.frame, (file, running.line)));
            let detail = running.detail.clone().or(called.map(|name| format!("in {name}")));
            match annotations.get_mut(&running.line) {
                Some(Annotation::Executing {
                    frames,
                    detail: known,
                    ..
                }) => {
                    frames.extend(self.shown(running.frame));
                    *known = known.take().or(detail);
                }
                _ => {
                    let frames = self.shown(running.frame).into_iter().collect();
                    annotations.insert(
                        running.line,
                        Annotation::Executing {
                            frames,
                            detail,
                            retry,
                        },
                    );
                }
            }
        }
        annotations
    }

    /// Statements that come next, as file, line, and whether they have a body: all with a body up to the first
    /// without.
    fn upcoming(&self, tree: &Tree, outline: &Outline) -> Vec<(u32, u32, bool)> {
        if tree
            .ended
            .as_ref()
            .is_some_and(|(status, _)| !matches!(status, RunStatus::Waiting | RunStatus::OutOfBudget))
        {
            return Vec::new();
        }
        // What began last is the innermost of what goes on in its frame. After its body comes the rest of the caller's.
        let mut place = tree
            .running
            .values()
            .next_back()
            .map(|running| (running.src, running.frame));
        let mut following = Vec::new();
        if place.is_none() {
            following = match self.last_ended(tree, outline) {
                Some(statement) => outline.following(statement),
                None => outline
                    .bodies
                    .first()
                    .map(|body| body.statements.clone())
                    .unwrap_or_default(),
            };
        }
        // In a deep recursion the innermost frames say enough.
        let mut hops = 0;
        while let Some((src, frame)) = place.filter(|_| hops < CALLERS_FOLLOWED) {
            hops += 1;
            following.extend(
                outline
                    .statement_at(src)
                    .map(|it| outline.following(it))
                    .unwrap_or_default(),
            );
            let frame = frame.and_then(|id| self.frames.get(&id));
            // A called program's statements are followed to its own end only.
            let frame = frame.filter(|frame| frame.kind != FrameKind::Program);
            place = frame.map(|frame| (frame.call_src, frame.parent));
        }
        let mut upcoming = Vec::new();
        for index in following {
            let statement = &outline.statements[index];
            let (file, line) = self.line(statement.src);
            // In a loop, what comes next has been here before, and says so.
            let seen = tree
                .notes
                .get(&(file, line))
                .is_some_and(|note| !note.ended.is_none());
            if seen
                || tree
                    .running
                    .values()
                    .any(|running| (running.src.file, running.line) == (file, line))
            {
                continue;
            }
            upcoming.push((file, line, statement.opens));
            if !statement.opens {
                break;
            }
        }
        upcoming
    }

    /// Between two statements of the top level: the last one that ended.
    fn last_ended(&self, tree: &Tree, outline: &Outline) -> Option<usize> {
        let top = outline.bodies.first()?;
        let ended = |index: &&usize| {
            let line = self.line(outline.statements[**index].src);
            tree.notes.get(&line).is_some_and(|note| !note.ended.is_none())
        };
        top.statements.iter().rev().find(ended).copied()
    }

    fn render_constructs(
        &self,
        text: &mut String,
        tree: &Tree,
        outline: Option<&Outline>,
        upcoming: &[(u32, u32, bool)],
    ) {
        let mut any = false;
        for construct in tree.constructs.values() {
            any = true;
            let facts = outline.and_then(|outline| outline.facts.get(&construct.stmt));
            let frame = construct
                .frame
                .map(|id| format!(", execution_id {id}"))
                .unwrap_or_default();
            text.push_str(&self.construct_heading(construct.kind, construct.src, &frame));
            construct.render(text, facts);
        }
        for (file, line, _) in upcoming {
            let Some(outline) = outline else { break };
            let mut statements = outline.statements.iter();
            let statement = statements.find(|statement| self.line(statement.src) == (*file, *line));
            let facts = statement
                .and_then(|it| it.construct.as_ref())
                .and_then(|id| outline.facts.get(id));
            let Some(facts) = facts else { continue };
            any = true;
            text.push_str(&self.construct_heading(facts.kind, facts.src, ""));
            text.push_str("- status: not yet entered\n");
            if matches!(facts.kind, ConstructKind::Loop | ConstructKind::Repeat) {
                text.push_str(&iteration(0, facts.total));
            }
            if let Some(condition) = &facts.condition {
                text.push_str(&format!("- condition: {}\n", one_line(condition)));
            }
        }
        if !any {
            text.push_str("\n(none)\n");
        }
    }

    fn construct_heading(&self, kind: ConstructKind, src: SourceRange, frame: &str) -> String {
        let (first, last) = self.span(src);
        let lines = if first == last {
            format!("line {}", first + 1)
        } else {
            format!("lines {}-{}", first + 1, last + 1)
        };
        format!("\n### {} ({lines}{frame})\n\n", kind_title(kind))
    }

    /// Persistent agents of the program.
    fn render_agents(&self, text: &mut String, tree: &Tree) {
        let Some(program) = self.bundle.programs.get(tree.program) else {
            return;
        };
        let inside = format!(".prose/runs/{}/agents/", self.run_id);
        for agent in program.agents.values() {
            let Some(persist) = &agent.persist else { continue };
            let name = &agent.name;
            let namespace = match program.namespace.as_str() {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            let (scope, path) = match persist {
                Persist::Execution => ("execution", format!("agents/{name}/")),
                Persist::Project | Persist::User if self.simulated => {
                    let scope = if *persist == Persist::Project {
                        "project"
                    } else {
                        "user"
                    };
                    (scope, format!("{inside}{namespace}{name}/"))
                }
                Persist::Path(path) if self.simulated => (
                    "custom",
                    format!("{inside}{}/", crate::safe_file_name(&format!("path={path}"))),
                ),
                Persist::Project => ("project", format!(".prose/agents/{namespace}{name}/")),
                Persist::User => ("user", format!("~/.prose/agents/{namespace}{name}/")),
                Persist::Path(path) => ("custom", path.replace('|', "\\|")),
            };
            text.push_str(&format!("| {name} | {scope} | {path} |\n"));
        }
    }

    /// Block frames of the tree, the innermost first; one that waits for another is said to.
    fn render_stack(&self, text: &mut String, tree: usize) {
        let calls = |frame: &Frame| matches!(frame.kind, FrameKind::Block | FrameKind::Program);
        let mut waiting = HashSet::new();
        for frame in self.frames.values().filter(|frame| calls(frame)) {
            let mut parent = frame.parent;
            while let Some(id) = parent.filter(|id| waiting.insert(*id)) {
                parent = self.frames.get(&id).and_then(|frame| frame.parent);
            }
        }
        let mut frames: Vec<(&ExecutionId, &Frame)> = self
            .frames
            .iter()
            .filter(|(_, frame)| frame.tree == tree && frame.kind == FrameKind::Block)
            .collect();
        frames.sort_by(|a, b| b.0.cmp(a.0));
        for (id, frame) in frames {
            let status = if waiting.contains(id) {
                "waiting"
            } else {
                "executing"
            };
            text.push_str(&format!(
                "| {id} | {} | {} | {status} |\n",
                frame.name, frame.depth
            ));
        }
    }

    /// The frame's number where it tells something: a called program's own frame is the root of its tree.
    fn shown(&self, frame: Option<ExecutionId>) -> Option<ExecutionId> {
        let is_root = |id: &ExecutionId| {
            self.frames
                .get(id)
                .is_some_and(|it| it.kind == FrameKind::Program)
        };
        frame.filter(|id| !is_root(id))
    }

    /// First and last line, from 0.
    fn span(&self, src: SourceRange) -> (u32, u32) {
        self.files
            .get(src.file as usize)
            .map_or((0, 0), |file| file.span(src))
    }
}

impl Construct {
    fn render(&self, text: &mut String, facts: Option<&Facts>) {
        let condition = self
            .condition
            .as_ref()
            .or(facts.and_then(|facts| facts.condition.as_ref()));
        let total = self.total.or(facts.and_then(|facts| facts.total));
        match self.kind {
            ConstructKind::Parallel | ConstructKind::ParallelFor | ConstructKind::Pipeline => {
                self.render_parts(
                    text,
                    facts.map(|facts| facts.branches.as_slice()).unwrap_or_default(),
                    total,
                );
            }
            ConstructKind::For | ConstructKind::Repeat | ConstructKind::Loop => {
                text.push_str("- status: executing\n");
                let done = self.parts.keys().next_back().map_or(0, |index| index + 1);
                text.push_str(&iteration(done, total));
            }
            ConstructKind::If | ConstructKind::Choice | ConstructKind::Try => {
                text.push_str("- status: executing\n");
                if let Some((index, part)) = self.parts.iter().next_back() {
                    let name = part
                        .label
                        .clone()
                        .unwrap_or_else(|| format!("part {}", index + 1));
                    text.push_str(&format!("- {}: {}\n", one_line(&name), part.status()));
                }
            }
        }
        if let Some(condition) = condition {
            text.push_str(&format!("- condition: {}\n", one_line(condition)));
        }
    }

    fn render_parts(&self, text: &mut String, names: &[String], total: Option<u32>) {
        let last = self
            .parts
            .keys()
            .next_back()
            .map_or(0, |index| *index as usize + 1);
        // A `total` is known for most, but only what has begun or has a name is worth a line.
        let count = last.max(names.len());
        let noun = if self.kind == ConstructKind::Parallel {
            "branch"
        } else {
            "item"
        };
        let complete = |part: &Part| matches!(part.end, Some(End::Ok | End::Left));
        for index in 0..count {
            let part = self.parts.get(&(index as u32));
            if count > PARTS_LISTED && part.is_none_or(complete) {
                continue;
            }
            let label = part
                .and_then(|part| part.label.clone())
                .or_else(|| names.get(index).cloned());
            let label = label.unwrap_or_else(|| format!("{noun} {}", index + 1));
            let status = part.map_or("waiting", Part::status);
            text.push_str(&format!("- {}: {status}\n", one_line(&label)));
        }
        let total = total.map_or(count, |total| count.max(total as usize));
        if total > names.len() || count > PARTS_LISTED {
            let done = self.parts.values().filter(|part| complete(part)).count();
            text.push_str(&format!("- complete: {done}/{total}\n"));
        }
    }
}

impl Part {
    fn status(&self) -> &'static str {
        match self.end {
            None => "executing",
            Some(End::Ok | End::Left) => "complete",
            Some(End::Failed) => "failed",
            Some(End::Cancelled) => "cancelled",
        }
    }
}

fn iteration(done: u32, total: Option<u32>) -> String {
    match total {
        Some(total) => format!("- iteration: {done}/{total}\n"),
        None => format!("- iteration: {done}\n"),
    }
}

fn kind_title(kind: ConstructKind) -> &'static str {
    match kind {
        ConstructKind::Parallel => "Parallel",
        ConstructKind::ParallelFor => "Parallel For",
        ConstructKind::For => "For",
        ConstructKind::Repeat => "Repeat",
        ConstructKind::Loop => "Loop",
        ConstructKind::If => "If",
        ConstructKind::Choice => "Choice",
        ConstructKind::Try => "Try",
        ConstructKind::Pipeline => "Pipeline",
    }
}

fn word(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Waiting => "waiting",
        RunStatus::OutOfBudget => "out of budget",
        RunStatus::Interrupted => "interrupted",
    }
}

/// Text on one line of a list or table.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
