//! Long programs without prompts: many short tokens, much nesting, many names. The opposite of what [`crate::repeated`] makes.

use std::fmt::Write;

/// A program of at least `bytes` bytes of code with few texts in it, valid and without errors.
pub fn dense(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 1024);
    let mut copy = 0;
    while out.len() < bytes {
        // Writing to a string doesn't fail.
        let _ = write!(
            out,
            "\
block sum_{copy}(a, b, limit):
  let total = a + b - 1
  if total > limit and not (a == b or b < 0):
    output total - limit
  elif total >= 10:
    output [total, a, b]
  else:
    output {{ total, a: a, rest: [b, limit, {{ a, b }}] }}

const start_{copy} = [1, 2, 3, {copy}, [4, 5], {{ x: 1, y: 2 }}]
let found_{copy} = []
for n, i in start_{copy}:
  let value = do sum_{copy}(n, i + 1, limit: 30)
  found_{copy} = found_{copy} + [value, {{ n, i }}]
repeat 3 as k:
  if k > 1 and (k < 3 or k == 7):
    found_{copy} = found_{copy} + [k, -k, k + 1, k - 1]
let first_{copy} = start_{copy}[0]
output last_{copy} = found_{copy}
  | filter:
      item != first_{copy}
  | map:
      [item, first_{copy}]
"
        );
        copy += 1;
    }
    out
}
