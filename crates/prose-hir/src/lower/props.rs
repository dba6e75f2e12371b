//! Properties of agents and sessions.

use indexmap::IndexMap;
use prose_model::{Backoff, Context, ContextEntry, Name, Node, Op, Permission, Persist, Props};

use super::expr::literal;
use super::{Lowerer, Parts, parts};
use crate::hir::*;

/// The word that a value is, quoted or not.
pub(super) fn word(value: &Expr) -> Option<String> {
    match &value.kind {
        ExprKind::Name(name) => Some(name.to_string()),
        ExprKind::Text(text) => text.plain(),
        _ => None,
    }
}

/// A whole number that is known without running anything.
pub(super) fn whole_number(value: &Expr) -> Option<u32> {
    match &value.kind {
        ExprKind::Number(number) if *number >= 0.0 && *number <= f64::from(u32::MAX) => Some(*number as u32),
        ExprKind::Text(text) => text.plain()?.trim().parse().ok(),
        _ => None,
    }
}

/// Where an agent's memory lives.
pub(crate) fn persist(props: &[Property]) -> Option<Persist> {
    match &property(props, "persist")?.value {
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Bool(false) | ExprKind::Null => None,
            ExprKind::Text(text) => match text.source().as_str() {
                "true" | "execution" => Some(Persist::Execution),
                "project" => Some(Persist::Project),
                "user" => Some(Persist::User),
                "false" => None,
                path => Some(Persist::Path(path.to_owned())),
            },
            ExprKind::Name(name) => Some(match name.as_str() {
                "project" => Persist::Project,
                "user" => Persist::User,
                _ => Persist::Execution,
            }),
            _ => Some(Persist::Execution),
        },
        // Only what can't be one of the words above is read as a raw word.
        PropValue::Word(path) => Some(Persist::Path(path.name.to_string())),
        _ => Some(Persist::Execution),
    }
}

impl Lowerer<'_> {
    /// Lowers properties; of a key given twice the last counts. Ids of their values come from `id`.
    pub(super) fn props(&mut self, props: &[Property], mods: &[Modifier], id: &str) -> Props {
        let mut out = Props::default();
        let mut ids = parts(id);
        for prop in props {
            let id = ids.next();
            match prop.key.name.as_str() {
                "model" => out.model = self.word_value(&prop.value, &id).map(Box::new),
                "prompt" => out.prompt = self.value(&prop.value, &id).map(Box::new),
                "context" => out.context = self.context(&prop.value, &id),
                "retry" => out.retry = self.number(&prop.value, &id).map(Box::new),
                "backoff" => out.backoff = backoff(&prop.value),
                "skills" => out.skills = self.words(&prop.value, &id).into_iter().map(Box::new).collect(),
                "permissions" => out.permissions = self.permissions(&prop.value, &id),
                _ => {}
            }
        }
        if out.retry.is_none()
            && let Some(retry) = modifier(mods, "retry")
        {
            out.retry = Some(Box::new(self.expr(retry, &format!("{id}.retry"))));
        }
        out
    }

    fn value(&mut self, value: &PropValue, id: &str) -> Option<Node> {
        match value {
            PropValue::Expr(Expr {
                kind: ExprKind::Missing,
                ..
            })
            | PropValue::Missing => None,
            PropValue::Expr(it) => Some(self.expr(it, id)),
            PropValue::Block(text) => {
                let op = Op::Text(self.template(text, id));
                Some(self.node(id, text.range, op))
            }
            PropValue::Word(word) => Some(self.node(id, word.range, Op::Text(literal(&word.name)))),
            PropValue::Dashes(items, range) => {
                let mut ids = parts(id);
                let items = items.iter().map(|it| self.expr(it, &ids.next())).collect();
                Some(self.node(id, *range, Op::List(items)))
            }
            PropValue::Nested(props, range) => {
                let mut ids = parts(id);
                let mut entries = Vec::new();
                for prop in props {
                    if let Some(value) = self.value(&prop.value, &ids.next()) {
                        entries.push(prose_model::RecordEntry {
                            key: prop.key.name.to_string(),
                            value,
                        });
                    }
                }
                Some(self.node(id, *range, Op::Record(entries)))
            }
        }
    }

    /// A value whose bare word is text.
    fn word_value(&mut self, value: &PropValue, id: &str) -> Option<Node> {
        match value {
            PropValue::Expr(Expr {
                kind: ExprKind::Name(name),
                range,
            }) => Some(self.node(id, *range, Op::Text(literal(name)))),
            value => self.value(value, id),
        }
    }

    fn number(&mut self, value: &PropValue, id: &str) -> Option<Node> {
        match value {
            PropValue::Expr(it) => match (&it.kind, whole_number(it)) {
                (ExprKind::Text(_), Some(number)) => {
                    Some(self.node(id, it.range, Op::Number(f64::from(number))))
                }
                (ExprKind::Bool(_) | ExprKind::List { .. } | ExprKind::Neg(_), _) => None,
                _ => self.value(value, id),
            },
            _ => None,
        }
    }

    fn context(&mut self, value: &PropValue, id: &str) -> Option<Context> {
        let mut ids = parts(id);
        let mut items = Vec::new();
        match value {
            PropValue::Missing => return None,
            PropValue::Expr(it) => match &it.kind {
                ExprKind::Missing => return None,
                ExprKind::Null => {}
                ExprKind::List { items: list, .. } => {
                    items.extend(list.iter().map(|it| self.entry(it, &mut ids)));
                }
                ExprKind::Record(fields) => {
                    items.extend(fields.iter().map(|it| ContextEntry {
                        label: it.key.name.to_string(),
                        value: self.expr(&it.value, &ids.next()),
                    }));
                }
                _ => items.push(self.entry(it, &mut ids)),
            },
            PropValue::Dashes(list, _) => items.extend(list.iter().map(|it| self.entry(it, &mut ids))),
            PropValue::Nested(props, _) => {
                for prop in props {
                    if let Some(value) = self.value(&prop.value, &ids.next()) {
                        items.push(ContextEntry {
                            label: prop.key.name.to_string(),
                            value,
                        });
                    }
                }
            }
            PropValue::Block(text) => {
                let id = ids.next();
                let op = Op::Text(self.template(text, &id));
                items.push(ContextEntry {
                    label: "text".to_owned(),
                    value: self.node(&id, text.range, op),
                });
            }
            PropValue::Word(word) => {
                let value = self.node(&ids.next(), word.range, Op::Text(literal(&word.name)));
                items.push(ContextEntry {
                    label: word.name.to_string(),
                    value,
                });
            }
        }
        Some(Context { items })
    }

    fn entry(&mut self, expr: &Expr, ids: &mut Parts<'_>) -> ContextEntry {
        let label = match &expr.kind {
            ExprKind::Name(name) => name.to_string(),
            _ => self.source(expr.range),
        };
        ContextEntry {
            label,
            value: self.expr(expr, &ids.next()),
        }
    }

    /// A list whose bare words are texts unless something binds them. A single value is a list of one.
    fn words(&mut self, value: &PropValue, id: &str) -> Vec<Node> {
        let items: &[Expr] = match value {
            PropValue::Expr(it) => match &it.kind {
                ExprKind::List { items, .. } => items,
                ExprKind::Missing | ExprKind::Null => &[],
                _ => std::slice::from_ref(it),
            },
            PropValue::Dashes(items, _) => items,
            PropValue::Word(word) => return vec![self.node(id, word.range, Op::Text(literal(&word.name)))],
            _ => &[],
        };
        let mut ids = parts(id);
        items
            .iter()
            .map(|it| {
                let id = ids.next();
                match &it.kind {
                    ExprKind::Name(name) if !self.is_value(name, it.range) => {
                        self.node(&id, it.range, Op::Text(literal(name)))
                    }
                    _ => self.expr(it, &id),
                }
            })
            .collect()
    }

    fn permissions(&mut self, value: &PropValue, id: &str) -> IndexMap<Name, Permission> {
        let mut ids = parts(id);
        let mut out = IndexMap::new();
        match value {
            PropValue::Nested(rules, _) => {
                for rule in rules {
                    let id = ids.next();
                    out.insert(rule.key.name.into(), self.permission(&rule.value, &id));
                }
            }
            PropValue::Expr(Expr {
                kind: ExprKind::Record(fields),
                ..
            }) => {
                for field in fields {
                    let id = ids.next();
                    let value = PropValue::Expr(field.value.clone());
                    out.insert(field.key.name.into(), self.permission(&value, &id));
                }
            }
            _ => {}
        }
        out
    }

    fn permission(&mut self, value: &PropValue, id: &str) -> Permission {
        let by_word = |word: &str| match word {
            "allow" | "true" => Some(Permission::Allow),
            "deny" | "false" | "none" => Some(Permission::Deny),
            "prompt" | "ask" => Some(Permission::Prompt),
            _ => None,
        };
        match value {
            PropValue::Expr(it) => match &it.kind {
                ExprKind::Bool(true) => Permission::Allow,
                ExprKind::Bool(false) => Permission::Deny,
                // Whatever can't be understood is left to a person.
                ExprKind::Name(name) => by_word(name).unwrap_or(Permission::Prompt),
                ExprKind::Text(text) => match text.plain().as_deref().and_then(by_word) {
                    Some(permission) => permission,
                    None => Permission::Patterns(self.words(value, id)),
                },
                ExprKind::List { .. } | ExprKind::Member { .. } => {
                    Permission::Patterns(self.words(value, id))
                }
                _ => Permission::Prompt,
            },
            PropValue::Dashes(..) => Permission::Patterns(self.words(value, id)),
            PropValue::Word(word) => by_word(&word.name).unwrap_or(Permission::Prompt),
            _ => Permission::Prompt,
        }
    }
}

fn backoff(value: &PropValue) -> Option<Backoff> {
    let by_word = |word: &str| match word {
        "none" => Some(Backoff::None),
        "linear" => Some(Backoff::Linear),
        "exponential" => Some(Backoff::Exponential),
        other => millis(other).map(Backoff::Millis),
    };
    match value {
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Number(number) if *number >= 0.0 => Some(Backoff::Millis(*number as u64)),
            ExprKind::Duration(text) => millis(text).map(Backoff::Millis),
            _ => by_word(&word(it)?),
        },
        PropValue::Word(word) => by_word(&word.name),
        _ => None,
    }
}

/// `120s`, `500ms`, `2m`, `1h` in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let digits = text
        .bytes()
        .take_while(|it| it.is_ascii_digit() || *it == b'.')
        .count();
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 1.0,
        "s" | "sec" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}
