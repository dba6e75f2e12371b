//! Operators: what they give for which values.

use std::cmp::Ordering;

use prose_model::{BinaryOp, DecodeTarget, ErrorKind, Value};

use super::{Builder, Eval, Pure, Stop};
use crate::code::{COp, NodeId};
use crate::{MAX_ITEMS, decode};

impl Eval<'_> {
    /// A binary expression; chains that lean to the left are folded in a loop.
    pub(super) fn binary(&mut self, node: NodeId) -> Pure<Value> {
        let code = self.code;
        let mut spine = Vec::new();
        let mut leftmost = node;
        while let COp::Binary { op, lhs, rhs } = &code.node(leftmost).op {
            spine.push((leftmost, *op, *rhs));
            leftmost = *lhs;
        }
        let mut left = self.value(leftmost)?;
        while let Some((node, op, rhs)) = spine.pop() {
            left = match op {
                BinaryOp::And => Value::Bool(self.truth_of(&left)? && self.truth(rhs)?),
                BinaryOp::Or => Value::Bool(self.truth_of(&left)? || self.truth(rhs)?),
                _ => {
                    let right = self.value(rhs)?;
                    self.apply(op, &left, &right, node)?
                }
            };
        }
        Ok(left)
    }

    fn apply(&mut self, op: BinaryOp, left: &Value, right: &Value, node: NodeId) -> Pure<Value> {
        Ok(match op {
            BinaryOp::Add => self.add(left, right, node)?,
            BinaryOp::Sub => {
                let difference = self.number(left, node)? - self.number(right, node)?;
                self.finite(difference, node)?
            }
            BinaryOp::Eq => Value::Bool(self.equal(left, right)?),
            BinaryOp::Ne => Value::Bool(!self.equal(left, right)?),
            BinaryOp::Lt => Value::Bool(self.order(left, right, node)? == Some(Ordering::Less)),
            BinaryOp::Le => Value::Bool(self.order(left, right, node)?.is_some_and(Ordering::is_le)),
            BinaryOp::Gt => Value::Bool(self.order(left, right, node)? == Some(Ordering::Greater)),
            BinaryOp::Ge => Value::Bool(self.order(left, right, node)?.is_some_and(Ordering::is_ge)),
            BinaryOp::And | BinaryOp::Or => Value::Null,
        })
    }

    /// `+`: numbers add; a list on either side appends; else texts join.
    fn add(&mut self, left: &Value, right: &Value, node: NodeId) -> Pure<Value> {
        let too_many = || Stop::Raise(ErrorKind::Type, format!("a list of over {MAX_ITEMS} items"), node);
        let concat = |left: &[Value], right: &[Value]| {
            if left.len() + right.len() > MAX_ITEMS {
                return Err(too_many());
            }
            Ok(Value::list(left.iter().chain(right).cloned().collect()))
        };
        match (left, right) {
            (Value::Number(a), Value::Number(b)) => self.finite(a + b, node),
            (Value::List(a), Value::List(b)) => concat(a, b),
            (Value::List(a), b) => {
                self.nested(std::slice::from_ref(b), node)?;
                concat(a, std::slice::from_ref(b))
            }
            (a, Value::List(b)) => {
                self.nested(std::slice::from_ref(a), node)?;
                concat(std::slice::from_ref(a), b)
            }
            (a, b) => {
                let mut text = Builder::default();
                text.push(&self.text_of(a, node)?);
                text.push(&self.text_of(b, node)?);
                Ok(Value::Text(text.finish(node)?))
            }
        }
    }

    /// `==`: trimmed text, numbers when both parse.
    fn equal(&mut self, left: &Value, right: &Value) -> Pure<bool> {
        Ok(match (left, right) {
            (Value::Text(a), Value::Text(b)) => match (a.as_inline(), b.as_inline()) {
                (Some(a), Some(b)) => match (decode::number(&a), decode::number(&b)) {
                    (Some(a), Some(b)) => a == b,
                    _ => a.trim() == b.trim(),
                },
                _ if a == b => true,
                (Some(a), None) if a.trim().is_empty() => self.decides(right, DecodeTarget::IsEmpty)?,
                (None, Some(b)) if b.trim().is_empty() => self.decides(left, DecodeTarget::IsEmpty)?,
                (Some(_), None) => self.decides(right, DecodeTarget::Equals(left.clone()))?,
                (None, _) => self.decides(left, DecodeTarget::Equals(right.clone()))?,
            },
            (Value::Null, _) | (_, Value::Null) => left == right,
            (Value::Text(_), other) => self.decides(left, DecodeTarget::Equals(other.clone()))?,
            (other, Value::Text(_)) => self.decides(right, DecodeTarget::Equals(other.clone()))?,
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Record(a), Value::Record(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, a) in a.iter() {
                    let Some(b) = b.get(key) else { return Ok(false) };
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => left == right,
        })
    }

    fn decides(&mut self, value: &Value, target: DecodeTarget) -> Pure<bool> {
        Ok(matches!(self.decoded(value, target)?, Value::Bool(true)))
    }

    /// Ordering: with null there is none; two texts that are no numbers compare as texts; else numbers.
    fn order(&mut self, left: &Value, right: &Value, node: NodeId) -> Pure<Option<Ordering>> {
        if matches!(left, Value::Null) || matches!(right, Value::Null) {
            return Ok(None);
        }
        if let (Value::Text(a), Value::Text(b)) = (left, right)
            && let (Some(a), Some(b)) = (a.as_inline(), b.as_inline())
            && (decode::number(&a).is_none() || decode::number(&b).is_none())
        {
            return Ok(Some(a.trim().cmp(b.trim())));
        }
        let (a, b) = (self.number(left, node)?, self.number(right, node)?);
        Ok(a.partial_cmp(&b))
    }
}
