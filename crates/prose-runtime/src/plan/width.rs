//! How many sessions a program can have at work at once.

use std::collections::HashMap;

use prose_model::{Node, Op, Stage};

use super::count::{Counts, Unit, parts, stage_times};

/// How many sessions can be at work at once.
pub(super) struct Width<'c, 'a> {
    counts: &'c Counts<'a>,
    open: Vec<Unit>,
    known: HashMap<Unit, Option<u64>>,
}

impl<'c, 'a> Width<'c, 'a> {
    pub(super) fn new(counts: &'c Counts<'a>) -> Width<'c, 'a> {
        Width {
            counts,
            open: Vec::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn unit(&mut self, unit: &Unit) -> Option<u64> {
        if let Some(width) = self.known.get(unit) {
            return *width;
        }
        if self.open.contains(unit) {
            return Some(0);
        }
        let programs = &self.counts.bundle.programs;
        let body: &[Node] = match &unit.1 {
            None => programs.get(unit.0).map_or(&[], |program| &program.body),
            Some(name) => match programs.get(unit.0).and_then(|program| program.blocks.get(name)) {
                Some(block) => &block.body,
                None => &[],
            },
        };
        self.open.push(unit.clone());
        let mut width = self.widest(unit.0, body.iter());
        self.open.pop();
        // What calls itself from several branches at once doubles with every level.
        let calls_itself = self
            .counts
            .totals
            .get(unit)
            .is_some_and(|total| total.max.is_none());
        if calls_itself && width.is_some_and(|width| width > 1) && self.calls(unit, body) {
            width = None;
        }
        self.known.insert(unit.clone(), width);
        width
    }

    /// Whether a body calls its own unit.
    fn calls(&self, unit: &Unit, body: &[Node]) -> bool {
        let mut stack: Vec<&Node> = body.iter().collect();
        while let Some(node) = stack.pop() {
            if let Op::Call { block, .. } = &node.op
                && unit.1.as_ref() == Some(block)
            {
                return true;
            }
            stack.extend(parts(node));
        }
        false
    }

    fn widest<'n>(&mut self, program: usize, nodes: impl Iterator<Item = &'n Node>) -> Option<u64> {
        let mut widest = 0;
        for node in nodes {
            widest = self.node(program, node)?.max(widest);
        }
        Some(widest)
    }

    fn node(&mut self, program: usize, node: &Node) -> Option<u64> {
        let max = |max: Option<&Node>| max.and_then(|max| self.counts.known[program].number(max));
        match &node.op {
            Op::Session(_) => Some(self.widest(program, parts(node).into_iter())?.max(1)),
            Op::Call { block, .. } => {
                let own = self.widest(program, parts(node).into_iter())?;
                Some(self.unit(&(program, Some(block.clone())))?.max(own))
            }
            Op::CallProgram { import, .. } => {
                let own = self.widest(program, parts(node).into_iter())?;
                let import = self.counts.bundle.programs[program].imports.get(import);
                let callee = match import.and_then(|import| import.program) {
                    Some(at) => self.unit(&(at, None))?,
                    None => 0,
                };
                Some(callee.max(own))
            }
            Op::Parallel(parallel) => {
                let limit = max(parallel.max.as_deref());
                let mut widths = Vec::new();
                for branch in &parallel.branches {
                    widths.push(self.node(program, branch)?);
                }
                // So many branches at once, the widest of them.
                widths.sort_unstable_by(|a, b| b.cmp(a));
                let at_once =
                    limit.map_or(widths.len(), |limit| usize::try_from(limit).unwrap_or(usize::MAX));
                Some(widths.into_iter().take(at_once).fold(0, u64::saturating_add))
            }
            Op::For(each) => {
                let limit = each
                    .parallel
                    .as_ref()
                    .and_then(|parallel| max(parallel.max.as_deref()));
                let source = self.node(program, &each.source)?;
                let body = self.widest(program, each.body.iter())?;
                let width = match &each.parallel {
                    None => body,
                    Some(_) if body == 0 => 0,
                    Some(_) => {
                        let items = self.counts.known[program].items(&each.source);
                        let at_once = match (items, limit) {
                            (Some(items), Some(limit)) => items.min(limit),
                            (items, limit) => items.or(limit)?,
                        };
                        body.saturating_mul(at_once)
                    }
                };
                Some(width.max(source))
            }
            Op::Pipeline { source, stages } => {
                let mut width = self.node(program, source)?;
                let times = stage_times(source, stages, &self.counts.known[program]);
                let bodies = stages.iter().filter(|stage| !matches!(stage, Stage::Chunks(_)));
                for (stage, (body, times)) in bodies.zip(times) {
                    let mut inner = self.widest(program, body.iter())?;
                    if matches!(stage, Stage::Pmap { .. }) && inner > 0 {
                        inner = inner.saturating_mul(times.max?);
                    }
                    width = width.max(inner);
                }
                Some(width)
            }
            _ => self.widest(program, parts(node).into_iter()),
        }
    }
}
