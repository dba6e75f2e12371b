//! What is known of a program's names before it runs: literals bound once and nowhere assigned, and inputs that are
//! given.

use std::collections::HashMap;

use indexmap::IndexMap;
use prose_model::{BindTarget, Name, Node, Op, Program, Stage, Template, TemplatePart, Value};

use super::count::parts;

/// The values that are known.
#[derive(Debug, Default)]
pub(crate) struct Known {
    values: HashMap<Name, Literal>,
}

#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Number(f64),
    Text(String),
    List(Vec<Literal>),
    Other(String),
}

impl Literal {
    fn text(&self) -> String {
        match self {
            Literal::Number(n) => number_text(*n),
            Literal::Text(text) | Literal::Other(text) => text.clone(),
            Literal::List(items) => serde_json::Value::from(
                items
                    .iter()
                    .map(|item| serde_json::Value::from(item.text()))
                    .collect::<Vec<_>>(),
            )
            .to_string(),
        }
    }
}

fn number_text(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        format!("{}", n as i64)
    } else {
        n.to_string()
    }
}

/// A given value as text; none for what has to be read first.
pub(super) fn shown(value: &Value) -> Option<String> {
    prose_agents::plain_text(value, &prose_agents::InlineContent).ok()
}

impl Known {
    /// Looks a program through; `given` are the values of its inputs.
    pub(super) fn new(program: &Program, given: Option<&IndexMap<String, Value>>) -> Known {
        let mut uses = Uses::default();
        for node in &program.body {
            uses.node(node);
        }
        for block in program.blocks.values() {
            for param in &block.params {
                uses.bound(param);
            }
            for node in &block.body {
                uses.node(node);
            }
        }
        let mut known = Known::default();
        let once = |uses: &Uses<'_>, name: &Name| uses.times.get(name) == Some(&1);
        for name in &uses.inputs {
            if once(&uses, name)
                && let Some(value) = given.and_then(|given| given.get(name.as_str()))
                && let Some(literal) = of_value(value)
            {
                known.values.insert((*name).clone(), literal);
            }
        }
        // Each may be made of those before it.
        for (name, value) in &uses.literals {
            if once(&uses, name)
                && let Some(literal) = known.literal(value)
            {
                known.values.insert((*name).clone(), literal);
            }
        }
        known
    }

    fn literal(&self, node: &Node) -> Option<Literal> {
        match &node.op {
            Op::Number(n) => Some(Literal::Number(*n)),
            Op::Bool(flag) => Some(Literal::Other(flag.to_string())),
            Op::Text(template) => {
                let mut text = String::new();
                for part in &template.parts {
                    match part {
                        TemplatePart::Text(literal) => text.push_str(literal),
                        TemplatePart::Insert { value, .. } => text.push_str(&self.literal(value)?.text()),
                    }
                }
                Some(Literal::Text(text))
            }
            Op::Name(name) => self.values.get(name).cloned(),
            Op::List(items) => items
                .iter()
                .map(|item| self.literal(item))
                .collect::<Option<_>>()
                .map(Literal::List),
            Op::Neg(inner) => match self.literal(inner)? {
                Literal::Number(n) => Some(Literal::Number(-n)),
                _ => None,
            },
            Op::Index { of, index } => match (self.literal(of)?, self.literal(index)?) {
                (Literal::List(items), Literal::Number(n)) if n >= 0.0 => items.get(n as usize).cloned(),
                _ => None,
            },
            Op::Member { of, key } if matches!(key.as_str(), "length" | "count") => {
                match self.literal(of)? {
                    Literal::List(items) => Some(Literal::Number(items.len() as f64)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A number that is known and counts something.
    pub(super) fn number(&self, node: &Node) -> Option<u64> {
        match self.literal(node)? {
            Literal::Number(n) if (0.0..1e15).contains(&n) => Some(n as u64),
            Literal::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// How many items a known list has.
    pub(super) fn items(&self, node: &Node) -> Option<u64> {
        match self.literal(node) {
            Some(Literal::List(items)) => Some(items.len() as u64),
            _ => match &node.op {
                // Its items need not be known to be counted.
                Op::List(items) => Some(items.len() as u64),
                _ => None,
            },
        }
    }

    /// A text with what is known filled in.
    pub(super) fn template(&self, template: &Template) -> String {
        let mut text = String::new();
        for part in &template.parts {
            match part {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Insert { value, verbatim } => match self.literal(value) {
                    Some(literal) => text.push_str(&literal.text()),
                    None => text.push_str(verbatim),
                },
            }
        }
        text
    }

    /// A value as text; what is not known stands in braces.
    pub(super) fn text(&self, node: &Node) -> String {
        match &node.op {
            Op::Text(template) => self.template(template),
            Op::Binary {
                op: prose_model::BinaryOp::Add,
                lhs,
                rhs,
            } => format!("{}{}", self.text(lhs), self.text(rhs)),
            op => match (self.literal(node), op) {
                (Some(literal), _) => literal.text(),
                (None, Op::Name(name)) => format!("{{{name}}}"),
                (None, _) => "{…}".to_owned(),
            },
        }
    }
}

fn of_value(value: &Value) -> Option<Literal> {
    Some(match value {
        Value::Number(n) => Literal::Number(*n),
        Value::Bool(flag) => Literal::Other(flag.to_string()),
        Value::Text(text) => Literal::Text(text.as_inline()?.into_owned()),
        Value::List(items) => Literal::List(items.iter().map(of_value).collect::<Option<_>>()?),
        Value::Null | Value::Record(_) | Value::Error(_) => return None,
    })
}

/// How often each name is bound or assigned, anywhere.
#[derive(Default)]
struct Uses<'a> {
    times: HashMap<&'a Name, usize>,
    literals: Vec<(&'a Name, &'a Node)>,
    inputs: Vec<&'a Name>,
}

impl<'a> Uses<'a> {
    fn bound(&mut self, name: &'a Name) {
        *self.times.entry(name).or_default() += 1;
    }

    fn node(&mut self, root: &'a Node) {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            match &node.op {
                Op::Bind { target, value, .. } => match target {
                    BindTarget::Name(name) => {
                        self.bound(name);
                        self.literals.push((name, value));
                    }
                    BindTarget::Record(names) => names.iter().for_each(|name| self.bound(name)),
                },
                Op::Assign { name, .. } => {
                    // Assigned at least once more than it is bound.
                    self.bound(name);
                    self.bound(name);
                }
                Op::Input(input) => {
                    self.bound(&input.name);
                    self.inputs.push(&input.name);
                }
                Op::Session(session) => session.name.iter().for_each(|name| self.bound(name)),
                Op::For(each) => {
                    self.bound(&each.item);
                    each.index.iter().for_each(|name| self.bound(name));
                }
                Op::Repeat { index, .. } => index.iter().for_each(|name| self.bound(name)),
                Op::Loop(it) => it.index.iter().for_each(|name| self.bound(name)),
                Op::Try(it) => {
                    let caught = it.catch.as_ref().and_then(|catch| catch.name.as_ref());
                    caught.into_iter().for_each(|name| self.bound(name));
                }
                Op::Pipeline { stages, .. } => {
                    for stage in stages {
                        match stage {
                            Stage::Map { item, .. }
                            | Stage::Filter { item, .. }
                            | Stage::Pmap { item, .. } => {
                                self.bound(item);
                            }
                            Stage::Reduce { acc, item, .. } => {
                                self.bound(acc);
                                self.bound(item);
                            }
                            Stage::Chunks(_) => {}
                        }
                    }
                }
                _ => {}
            }
            stack.extend(parts(node).into_iter().rev());
        }
    }
}
