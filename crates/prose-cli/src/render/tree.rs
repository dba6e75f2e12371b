//! The live tree of a run on a terminal: what is running with spinners, what is done scrolls away above.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossterm::style::Stylize;
use crossterm::{cursor, queue, terminal};
use prose_model::{ConstructKind, EffectId, End, Event, FrameKind, Place, RunEvent, Usage};
use prose_runtime::Nesting;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::lines::{
    construct_subject, construct_word, decision_word, duration, missed, one_line, status_word, usage_note,
};

const SPINNER: [&str; 8] = ["⣾", "⣽", "⣻", "⢿", "⡿", "⣟", "⣯", "⣷"];

/// How an item of the tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A session that nobody works on yet: others have its place, or the memory that it needs.
    Waiting,
    Running,
    Asking,
    Ended(End),
}

/// A line of the tree.
#[derive(Debug)]
struct Item {
    depth: usize,
    text: String,
    note: String,
    state: State,
    started: Instant,
    took: Duration,
    usage: Usage,
    children: Vec<usize>,
    container: bool,
}

/// The tree's content, without a terminal.
#[derive(Debug, Default)]
pub struct Tree {
    items: Vec<Item>,
    by_key: HashMap<String, usize>,
    nesting: Nesting<usize>,
    /// Roots not yet flushed.
    roots: Vec<usize>,
    /// Lines that belong above the tree: warnings, notices.
    above: Vec<String>,
    sessions_done: usize,
    sessions_running: usize,
    sessions_waiting: usize,
    usage: Usage,
}

impl Tree {
    /// Takes an event in.
    pub fn apply(&mut self, event: &RunEvent) {
        match &event.event {
            Event::RunStarted {
                program,
                backend,
                simulated,
                resumed,
                ..
            } => {
                let verb = if *resumed { "Resuming" } else { "Running" };
                let note = if *simulated {
                    " (simulated: no model is asked)"
                } else {
                    ""
                };
                self.above.push(format!("{verb} {program} on {backend}{note}"));
            }
            Event::RunFinished {
                status, error, usage, ..
            } => {
                let mut line = format!("Run {}{}", status_word(*status), usage_note(usage));
                if let Some(error) = error {
                    line.push_str(": ");
                    line.push_str(&one_line(&error.message, 400));
                }
                self.end_all();
                self.above.push(line);
            }
            Event::SessionStarted {
                at,
                effect,
                agent,
                label,
                model,
                attempt,
                max_attempts,
                ..
            } => {
                let mut text = match agent {
                    Some(agent) => format!("{agent}  {}", one_line(label, 60)),
                    None => one_line(label, 70),
                };
                if let Some(model) = model {
                    text.push_str(&format!("  [{model}]"));
                }
                if *attempt > 1 {
                    text.push_str(&format!("  attempt {attempt}/{max_attempts}"));
                }
                self.sessions_waiting += 1;
                self.start(effect.to_string(), at, text, false, State::Waiting);
            }
            Event::SessionFinished {
                effect,
                end,
                summary,
                usage,
            } => {
                self.sessions_done += 1;
                self.usage.add(usage);
                if let Some(item) = self.item(effect.as_str()) {
                    let ran = item.state == State::Running;
                    item.usage = *usage;
                    item.note = one_line(summary, 60);
                    if ran {
                        self.sessions_running = self.sessions_running.saturating_sub(1);
                    } else {
                        self.sessions_waiting = self.sessions_waiting.saturating_sub(1);
                    }
                }
                self.end(effect.as_str(), *end);
            }
            Event::SessionSpawned { effect, .. } => {
                if let Some(item) = self.item(effect.as_str())
                    && item.state == State::Waiting
                {
                    item.state = State::Running;
                    // What it waited is not what it takes.
                    item.started = Instant::now();
                    self.sessions_running += 1;
                    self.sessions_waiting = self.sessions_waiting.saturating_sub(1);
                }
            }
            Event::SessionTool { effect, tool, detail } => {
                if let Some(item) = self.item(effect.as_str()) {
                    item.note = format!("{tool} {}", one_line(detail, 50));
                }
            }
            Event::PermissionStarted {
                effect,
                permission,
                detail,
                ..
            } => {
                if let Some(item) = self.item(effect.as_str())
                    && item.state == State::Running
                {
                    item.state = State::Asking;
                    item.note = format!("asks for {permission}: {}", one_line(detail, 60));
                }
            }
            Event::QuestionStarted { effect, text, .. } => {
                if let Some(item) = self.item(effect.as_str())
                    && item.state == State::Running
                {
                    item.state = State::Asking;
                    item.note = format!("asks: {}", one_line(text, 60));
                }
            }
            Event::PermissionFinished { effect, .. } | Event::QuestionFinished { effect, .. } => {
                if let Some(item) = self.item(effect.as_str())
                    && item.state == State::Asking
                {
                    item.state = State::Running;
                    item.note = String::new();
                }
            }
            Event::SessionText { effect, text } => {
                if let Some(item) = self.item(effect.as_str()) {
                    let tail = one_line(text, 60);
                    if !tail.is_empty() {
                        item.note = tail;
                    }
                }
            }
            Event::SessionUsage { effect, usage } => {
                if let Some(item) = self.item(effect.as_str()) {
                    item.usage = *usage;
                }
            }
            Event::JudgeStarted { at, effect, text } => {
                let text = format!("judge  **{}**", one_line(text, 60));
                self.start(effect.to_string(), at, text, false, State::Running);
            }
            Event::JudgeFinished { effect, end, verdict } => {
                if let (Some(item), Some(verdict)) = (self.item(effect.as_str()), verdict) {
                    item.note = format!("-> {}", decision_word(&verdict.decision));
                }
                self.end(effect.as_str(), *end);
            }
            Event::InputStarted {
                at,
                effect,
                name,
                prompt,
                ..
            } => {
                let text = format!("input  {name}: {}", one_line(prompt, 60));
                self.start(effect.to_string(), at, text, false, State::Asking);
            }
            Event::InputFinished { effect, end } => self.end(effect.as_str(), *end),
            Event::SleepStarted { at, effect, ms } => {
                let text = format!("wait   {}", duration(*ms));
                self.start(effect.to_string(), at, text, false, State::Running);
            }
            Event::SleepFinished { effect, end } => self.end(effect.as_str(), *end),
            Event::FrameStarted {
                at,
                frame,
                kind,
                name,
                ..
            } => {
                let text = match kind {
                    FrameKind::Block => format!("do {name}"),
                    FrameKind::Program => format!("{name}()"),
                    FrameKind::Iteration | FrameKind::Item => format!("{name} #{frame}"),
                };
                let (item, depth) = self.start(format!("frame {frame}"), at, text, true, State::Running);
                self.nesting.open_frame(*frame, item, depth);
            }
            Event::FrameFinished { frame, end } => {
                self.nesting.close_frame(*frame);
                self.end(&format!("frame {frame}"), *end);
            }
            Event::ConstructStarted {
                at,
                construct,
                kind,
                total,
                condition,
            } => {
                // An `if` or `try` alone says nothing a reader of the tree wants to know.
                if matches!(kind, ConstructKind::If | ConstructKind::Try) {
                    return;
                }
                let subject = construct_subject(*kind, *total, condition.as_deref());
                let text = format!("{}  {subject}", construct_word(*kind));
                let (item, depth) = self.start(construct_key(construct), at, text, true, State::Running);
                self.nesting
                    .open_construct(construct.as_str(), at.path.as_str(), item, depth);
            }
            Event::PartStarted {
                construct,
                index,
                label,
            } => {
                if let Some(item) = self.item(&construct_key(construct)) {
                    item.note = match label {
                        Some(label) => label.clone(),
                        None => format!("{}", index + 1),
                    };
                }
            }
            Event::ConstructFinished { construct, end } => {
                self.nesting.close_construct(construct.as_str());
                self.end(&construct_key(construct), *end);
            }
            Event::Warning { code, message, .. } => {
                self.above
                    .push(format!("warning[{code}]: {}", one_line(message, 300)));
            }
            Event::Notice { level, message } => {
                self.above.push(format!("{level}: {}", one_line(message, 300)))
            }
            Event::EventsMissed { machine, streamed } => {
                self.above
                    .push(format!("warning: {}", missed(*machine, *streamed)));
            }
            Event::StatementStarted { .. }
            | Event::StatementFinished { .. }
            | Event::PartFinished { .. }
            | Event::DecodeStarted { .. }
            | Event::DecodeFinished { .. }
            | Event::Bound { .. }
            | Event::InputNeeded { .. }
            | Event::Narration { .. } => {}
        }
    }

    /// One line about the whole, for the foot of the tree.
    fn foot(&self) -> String {
        let waiting = match self.sessions_waiting {
            0 => String::new(),
            count => format!(", {count} waiting"),
        };
        format!(
            "{} done, {} running{waiting}{}",
            self.sessions_done,
            self.sessions_running,
            usage_note(&self.usage)
        )
    }

    fn item(&mut self, key: &str) -> Option<&mut Item> {
        self.by_key.get(key).map(|&at| &mut self.items[at])
    }

    /// Begins an item and returns it with its depth.
    fn start(
        &mut self,
        key: String,
        at: &Place,
        text: String,
        container: bool,
        state: State,
    ) -> (usize, usize) {
        let around = self.nesting.around(at.execution_id, at.path.as_str());
        let depth = around.map_or(0, |(_, depth)| depth + 1);
        let item = self.items.len();
        self.items.push(Item {
            depth,
            text,
            note: String::new(),
            state,
            started: Instant::now(),
            took: Duration::ZERO,
            usage: Usage::default(),
            children: Vec::new(),
            container,
        });
        match around {
            Some((parent, _)) => self.items[parent].children.push(item),
            None => self.roots.push(item),
        }
        self.by_key.insert(key, item);
        (item, depth)
    }

    fn end(&mut self, key: &str, end: End) {
        let Some(at) = self.by_key.remove(key) else { return };
        let item = &mut self.items[at];
        item.state = State::Ended(end);
        item.took = item.started.elapsed();
    }

    fn end_all(&mut self) {
        for item in &mut self.items {
            if !matches!(item.state, State::Ended(_)) {
                item.state = State::Ended(End::Cancelled);
                item.took = item.started.elapsed();
            }
        }
        self.nesting.clear();
        self.by_key.clear();
    }

    /// Takes what will not change any more: lines above and finished roots at the front.
    fn take_settled(&mut self, width: usize) -> Vec<String> {
        let mut lines: Vec<String> = std::mem::take(&mut self.above);
        let settled = self
            .roots
            .iter()
            .take_while(|&&at| matches!(self.items[at].state, State::Ended(_)))
            .count();
        for at in self.roots.drain(..settled).collect::<Vec<_>>() {
            self.lines_of(at, width, 0, &mut lines);
        }
        if self.roots.is_empty() && self.by_key.is_empty() {
            self.items.clear();
            self.nesting.clear();
        }
        lines
    }

    /// The lines that may still change, at most `room` of them, with how many are left out: where there is no room, what
    /// is over goes first, then the oldest of what goes on.
    fn live(&self, width: usize, tick: usize, room: usize) -> (Vec<String>, usize) {
        let mut order = Vec::new();
        let mut stack: Vec<usize> = self.roots.iter().rev().copied().collect();
        while let Some(at) = stack.pop() {
            order.push(at);
            stack.extend(self.items[at].children.iter().rev());
        }
        let mut excess = order.len().saturating_sub(room);
        let hidden = excess;
        if excess > 0 {
            order.retain(|&at| {
                let is_over = matches!(self.items[at].state, State::Ended(_));
                let drop = is_over && excess > 0;
                excess -= usize::from(drop);
                !drop
            });
            order.drain(..excess);
        }
        let lines = order
            .into_iter()
            .map(|at| self.line(&self.items[at], width, tick));
        (lines.collect(), hidden)
    }

    fn lines_of(&self, root: usize, width: usize, tick: usize, lines: &mut Vec<String>) {
        let mut stack = vec![root];
        while let Some(at) = stack.pop() {
            lines.push(self.line(&self.items[at], width, tick));
            stack.extend(self.items[at].children.iter().rev());
        }
    }

    /// Lets go of what is over inside of what goes on, when there is a lot: a long loop must not make every frame longer.
    /// It is counted, and the run's own record has it all.
    fn prune(&mut self) {
        const KEPT: usize = 2_000;
        if self.items.len() <= KEPT * 2 {
            return;
        }
        let mut keep = vec![false; self.items.len()];
        let newest = self.items.len() - KEPT;
        // A parent comes before its children, so one pass from the end finds every ancestor of what is kept.
        let mut parent = vec![None; self.items.len()];
        for (at, item) in self.items.iter().enumerate() {
            for &child in &item.children {
                parent[child] = Some(at);
            }
        }
        for at in (0..self.items.len()).rev() {
            if keep[at] || at >= newest || !matches!(self.items[at].state, State::Ended(_)) {
                keep[at] = true;
                if let Some(parent) = parent[at] {
                    keep[parent] = true;
                }
            }
        }
        let mut place = vec![usize::MAX; self.items.len()];
        let mut kept = Vec::new();
        for (at, item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            if keep[at] {
                place[at] = kept.len();
                kept.push(item);
            }
        }
        for item in &mut kept {
            item.children.retain(|&child| keep[child]);
            for child in &mut item.children {
                *child = place[*child];
            }
        }
        self.items = kept;
        self.roots.retain(|&root| keep[root]);
        for root in &mut self.roots {
            *root = place[*root];
        }
        self.by_key.retain(|_, at| keep[*at]);
        for at in self.by_key.values_mut() {
            *at = place[*at];
        }
        self.nesting.renumber(|at| keep[at].then_some(place[at]));
    }

    fn line(&self, item: &Item, width: usize, tick: usize) -> String {
        let mark = match item.state {
            State::Waiting => "◌".dark_grey(),
            State::Running => SPINNER[tick % SPINNER.len()].cyan(),
            State::Asking => "?".yellow(),
            State::Ended(End::Ok | End::Left) => "✓".green(),
            State::Ended(End::Failed) => "✗".red(),
            State::Ended(End::Cancelled) => "⊘".dark_grey(),
        };
        let took = match item.state {
            State::Ended(_) => item.took,
            _ => item.started.elapsed(),
        };
        let mut tail = String::new();
        if item.state == State::Waiting {
            tail.push_str("  waits");
        }
        if took >= Duration::from_millis(100) {
            tail = format!("  {}", duration(took.as_millis() as u64));
        }
        tail.push_str(&usage_note(&item.usage));
        // On a narrow terminal neither depth nor figures may take the whole line.
        let indent = "  ".repeat(item.depth.min(12).min(width / 8));
        if tail.width() + indent.len() + 12 > width {
            tail.clear();
        }
        let room = width.saturating_sub(indent.len() + 2 + tail.width());
        let mut body = item.text.clone();
        let settled = item.container && matches!(item.state, State::Ended(_));
        if !item.note.is_empty() && !settled {
            body.push_str("  ");
            body.push_str(&item.note);
        }
        let body = cut(&body, room);
        format!("{indent}{mark} {body}{}", tail.dark_grey())
    }
}

/// A choice and its question are at the same place.
fn construct_key(construct: &EffectId) -> String {
    format!("construct {construct}")
}

/// Cuts text to a number of terminal columns.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        end = at + c.len_utf8();
    }
    format!("{}…", &text[..end])
}

/// Draws a [`Tree`] on a terminal.
pub struct Screen<W: Write> {
    out: W,
    colour: bool,
    /// The width of each line of the live part.
    drawn: Vec<usize>,
    tick: usize,
}

impl<W: Write> Screen<W> {
    /// Draws on the given terminal.
    pub fn new(out: W, colour: bool) -> Screen<W> {
        Screen {
            out,
            colour,
            drawn: Vec::new(),
            tick: 0,
        }
    }

    /// Draws the tree's present state over the last one.
    pub fn draw(&mut self, tree: &mut Tree) -> io::Result<()> {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        // One column stays free: a line that fills the last one would wrap on some terminals.
        self.draw_at(
            tree,
            usize::from(width).saturating_sub(1).max(8),
            usize::from(height),
        )
    }

    fn draw_at(&mut self, tree: &mut Tree, width: usize, height: usize) -> io::Result<()> {
        self.tick += 1;
        tree.prune();
        let settled = tree.take_settled(width);
        // Foot, note and the cursor's own line are not for the tree.
        let room = height.saturating_sub(3).max(1);
        let (mut live, hidden) = tree.live(width, self.tick, room);
        if hidden > 0 {
            live.insert(0, cut(&format!("… {hidden} more"), width));
        }
        if !live.is_empty() {
            live.push(format!("{}", cut(&tree.foot(), width).dark_grey()));
        }
        self.erase_at(width)?;
        for line in settled.iter().chain(&live) {
            if self.colour {
                writeln!(self.out, "{line}")?;
            } else {
                writeln!(self.out, "{}", uncoloured(line))?;
            }
        }
        // What the terminal has made of a line when it gets narrower is known by how long it is.
        self.drawn = live.iter().map(|line| uncoloured(line).width()).collect();
        self.out.flush()
    }

    /// Removes the live part, so that something else can be written where it was.
    pub fn erase(&mut self) -> io::Result<()> {
        let (width, _) = terminal::size().unwrap_or((80, 24));
        self.erase_at(usize::from(width).saturating_sub(1).max(8))
    }

    fn erase_at(&mut self, width: usize) -> io::Result<()> {
        if !self.drawn.is_empty() {
            // A terminal that got narrower has wrapped what was drawn; its last column was left free.
            let rows = |line: &usize| line.div_ceil(width + 1).max(1);
            let rows: usize = self.drawn.iter().map(rows).sum();
            queue!(
                self.out,
                cursor::MoveToColumn(0),
                cursor::MoveUp(u16::try_from(rows).unwrap_or(u16::MAX)),
                terminal::Clear(terminal::ClearType::FromCursorDown)
            )?;
            self.drawn.clear();
        }
        self.out.flush()
    }
}

/// A line without its colours.
fn uncoloured(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut escape = false;
    for c in line.chars() {
        match c {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            c if !escape => text.push(c),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
