//! What `state.md` has to know of a program's shape: which statements there are, on which lines, and what follows what.

use std::collections::HashMap;

use prose_model::{
    BindTarget, Bundle, ConstructKind, Node, Op, Parallel, Program, SourceRange, Stage, StmtId,
};

use crate::program::snippet;

/// Byte offsets at which the lines of a text begin.
#[derive(Debug)]
pub(crate) struct LineStarts(Vec<u32>);

/// The statements of a program.
#[derive(Debug)]
pub(crate) struct Outline {
    /// In source order of each body, bodies after their statement.
    pub(crate) statements: Vec<Statement>,
    /// Statements that run in order or side by side, by index into `statements`.
    pub(crate) bodies: Vec<Body>,
    /// What is known of constructs before they run, by their own node.
    pub(crate) facts: HashMap<StmtId, Facts>,
}

#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) src: SourceRange,
    /// The construct it is or binds the value of.
    pub(crate) construct: Option<StmtId>,
    /// Whether it opens a body at all, as `do:` does too.
    pub(crate) opens: bool,
    /// The body it stands in.
    pub(crate) body: usize,
    pub(crate) position: usize,
}

#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) statements: Vec<usize>,
    /// The statement it is a part of; none for the top level and for blocks.
    pub(crate) parent: Option<usize>,
    /// Whether one statement comes after the other.
    pub(crate) in_order: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    pub(crate) kind: ConstructKind,
    pub(crate) src: SourceRange,
    /// Names of a `parallel:`'s branches.
    pub(crate) branches: Vec<String>,
    /// A literal number of iterations.
    pub(crate) total: Option<u32>,
    /// A condition or criteria as written.
    pub(crate) condition: Option<String>,
}

impl LineStarts {
    pub(crate) fn new(text: &str) -> LineStarts {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends {
                starts.push(at as u32 + 1);
            }
        }
        LineStarts(starts)
    }

    /// The line of a byte, from 0.
    pub(crate) fn line(&self, offset: u32) -> u32 {
        self.0.partition_point(|start| *start <= offset).saturating_sub(1) as u32
    }

    /// First and last line of a range, from 0.
    pub(crate) fn span(&self, src: SourceRange) -> (u32, u32) {
        (self.line(src.start), self.line(src.end.max(src.start + 1) - 1))
    }
}

impl Outline {
    pub(crate) fn new(bundle: &Bundle, program: &Program) -> Outline {
        let mut outline = Outline {
            statements: Vec::new(),
            bodies: Vec::new(),
            facts: HashMap::new(),
        };
        let mut builder = Builder {
            bundle,
            outline: &mut outline,
        };
        builder.body(&program.body, None, true);
        for block in program.blocks.values() {
            builder.body(&block.body, None, true);
        }
        outline
    }

    /// The statement whose text is the smallest around a place.
    pub(crate) fn statement_at(&self, src: SourceRange) -> Option<usize> {
        let around = self.statements.iter().enumerate().filter(|(_, statement)| {
            let it = statement.src;
            it.file == src.file && it.start <= src.start && src.end <= it.end
        });
        around
            .min_by_key(|(_, statement)| statement.src.end - statement.src.start)
            .map(|(index, _)| index)
    }

    /// What comes after a statement: the rest of its body, then that of the bodies around it.
    pub(crate) fn following(&self, statement: usize) -> Vec<usize> {
        let mut following = Vec::new();
        let mut current = Some(statement);
        while let Some(index) = current {
            let Statement { body, position, .. } = self.statements[index];
            let body = &self.bodies[body];
            if body.in_order {
                following.extend(&body.statements[position + 1..]);
            }
            current = body.parent;
        }
        following
    }
}

struct Builder<'a> {
    bundle: &'a Bundle,
    outline: &'a mut Outline,
}

impl Builder<'_> {
    fn body(&mut self, nodes: &[Node], parent: Option<usize>, in_order: bool) {
        let body = self.outline.bodies.len();
        self.outline.bodies.push(Body {
            statements: Vec::new(),
            parent,
            in_order,
        });
        for (position, node) in nodes.iter().enumerate() {
            let index = self.outline.statements.len();
            let statement = Statement {
                src: node.src,
                construct: None,
                opens: false,
                body,
                position,
            };
            self.outline.statements.push(statement);
            self.outline.bodies[body].statements.push(index);
            self.node(node, index);
        }
    }

    /// The bodies in a statement or in the value that it binds.
    fn node(&mut self, node: &Node, statement: usize) {
        match &node.op {
            Op::Bind { value, .. } | Op::Assign { value, .. } => self.node(value, statement),
            Op::Return(Some(value)) => self.node(value, statement),
            Op::Do(body) => {
                self.outline.statements[statement].opens = true;
                self.body(body, Some(statement), true);
            }
            Op::Parallel(parallel) => {
                let branches = branch_names(parallel);
                self.construct(node, statement, ConstructKind::Parallel, branches, None, None);
                self.body(&parallel.branches, Some(statement), false);
            }
            Op::For(for_) => {
                let kind = if for_.parallel.is_some() {
                    ConstructKind::ParallelFor
                } else {
                    ConstructKind::For
                };
                self.construct(node, statement, kind, vec![], None, None);
                self.body(&for_.body, Some(statement), true);
            }
            Op::Repeat { count, body, .. } => {
                self.construct(
                    node,
                    statement,
                    ConstructKind::Repeat,
                    vec![],
                    literal(count),
                    None,
                );
                self.body(body, Some(statement), true);
            }
            Op::Loop(loop_) => {
                let test = loop_.test.as_ref().map(|test| match test {
                    prose_model::LoopTest::Until(test) | prose_model::LoopTest::While(test) => test.src,
                });
                let total = loop_.max.as_ref().and_then(literal);
                self.construct(node, statement, ConstructKind::Loop, vec![], total, test);
                self.body(&loop_.body, Some(statement), true);
            }
            Op::If { arms, otherwise } => {
                let test = arms.first().map(|arm| arm.cond.src);
                self.construct(node, statement, ConstructKind::If, vec![], None, test);
                for arm in arms {
                    self.body(&arm.body, Some(statement), true);
                }
                self.body(otherwise.as_deref().unwrap_or_default(), Some(statement), true);
            }
            Op::Choice { options, .. } => {
                self.construct(node, statement, ConstructKind::Choice, vec![], None, None);
                for option in options {
                    self.body(&option.body, Some(statement), true);
                }
            }
            Op::Try(try_) => {
                self.construct(node, statement, ConstructKind::Try, vec![], None, None);
                self.body(&try_.body, Some(statement), true);
                if let Some(catch) = &try_.catch {
                    self.body(&catch.body, Some(statement), true);
                }
                self.body(try_.finally.as_deref().unwrap_or_default(), Some(statement), true);
            }
            Op::Pipeline { source, stages } => {
                self.construct(node, statement, ConstructKind::Pipeline, vec![], None, None);
                self.node(source, statement);
                for stage in stages {
                    match stage {
                        Stage::Map { body, .. }
                        | Stage::Filter { body, .. }
                        | Stage::Pmap { body, .. }
                        | Stage::Reduce { body, .. } => self.body(body, Some(statement), true),
                        Stage::Chunks(_) => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn construct(
        &mut self,
        node: &Node,
        statement: usize,
        kind: ConstructKind,
        branches: Vec<String>,
        total: Option<u32>,
        condition: Option<SourceRange>,
    ) {
        let condition = condition
            .map(|src| snippet(self.bundle, src))
            .filter(|text| !text.is_empty());
        let facts = Facts {
            kind,
            src: node.src,
            branches,
            total,
            condition,
        };
        self.outline.facts.insert(node.id.clone(), facts);
        let statement = &mut self.outline.statements[statement];
        statement.opens = true;
        // The outermost construct of a statement stands for it.
        statement.construct.get_or_insert_with(|| node.id.clone());
    }
}

fn branch_names(parallel: &Parallel) -> Vec<String> {
    let name = |(index, branch): (usize, &Node)| match &branch.op {
        Op::Bind {
            target: BindTarget::Name(name),
            ..
        } => name.to_string(),
        Op::Bind {
            target: BindTarget::Record(names),
            ..
        } => {
            format!(
                "{{ {} }}",
                names
                    .iter()
                    .map(|name| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        _ => format!("branch {}", index + 1),
    };
    parallel.branches.iter().enumerate().map(name).collect()
}

fn literal(node: &Node) -> Option<u32> {
    match node.op {
        Op::Number(number) if number >= 0.0 && number <= f64::from(u32::MAX) => Some(number as u32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_for_every_line_end() {
        let starts = LineStarts::new("a\nb\r\nc\rd");
        let lines: Vec<u32> = (0..9).map(|offset| starts.line(offset)).collect();
        assert_eq!(lines, [0, 0, 1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(
            starts.span(SourceRange {
                file: 0,
                start: 2,
                end: 6
            }),
            (1, 2)
        );
        assert_eq!(
            starts.span(SourceRange {
                file: 0,
                start: 5,
                end: 5
            }),
            (2, 2)
        );
    }
}
