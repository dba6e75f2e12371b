//! Ranges, and what happens while typing. `$0` is the cursor.

use prose_syntax::{TextRange, TextSize};

#[track_caller]
fn typed(before: &str, typed: char, after: &str) {
    let offset = before.find("$0").unwrap();
    let text = before.replace("$0", "");
    let edits = prose_fmt::on_type(&text, TextSize::new(offset as u32), typed);
    assert_eq!(prose_fmt::apply(&text, &edits), after);
}

#[test]
fn a_new_line_is_as_deep_as_what_stands_above_asks() {
    typed("if a:\n$0", '\n', "if a:\n  ");
    typed("if a:  # why\n$0", '\n', "if a:  # why\n  ");
    typed("  session: a\n$0", '\n', "  session: a\n  ");
    typed("if a:\n    $0do f\n", '\n', "if a:\n  do f\n");
    typed("let a = [\n$0]", '\n', "let a = [\n  ]");
    typed("agent a:\n  prompt: |\n$0", '\n', "agent a:\n  prompt: |\n    ");
    typed(
        "block f():\n  if a:\n    throw \"x\"\n$0",
        '\n',
        "block f():\n  if a:\n    throw \"x\"\n  ",
    );
    typed("block f():\n  output x\n    $0", '\n', "block f():\n  output x\n");
    typed(
        "block f():\n  output session: a\n$0",
        '\n',
        "block f():\n  output session: a\n  ",
    );
    // In texts nothing is touched.
    typed(
        "session \"\"\"\n      $0\n\"\"\"\n",
        '\n',
        "session \"\"\"\n      \n\"\"\"\n",
    );
    typed("session \"\"\"\n      $0", '\n', "session \"\"\"\n      ");
    typed("$0", '\n', "");
}

#[test]
fn a_clause_goes_below_its_construct() {
    typed("if a:\n  do f\n  else:$0", ':', "if a:\n  do f\nelse:");
    typed(
        "if a:\n  try:\n    do f\n    catch as e:$0\n",
        ':',
        "if a:\n  try:\n    do f\n  catch as e:\n",
    );
    typed(
        "if a:\n  try:\n    do f\n    elif b:$0\n",
        ':',
        "if a:\n  try:\n    do f\nelif b:\n",
    );
    typed(
        "if a:\n  if b:\n    do f\n  else:$0\n",
        ':',
        "if a:\n  if b:\n    do f\n  else:\n",
    );
    typed("do f\n  else:$0", ':', "do f\n  else:");
    typed("session: a\n  prompt:$0", ':', "session: a\n  prompt:");
}

#[track_caller]
fn ranged(text: &str, after: &str) {
    let start = text.find("<<").unwrap();
    let text = text.replacen("<<", "", 1);
    let end = text.find(">>").unwrap();
    let text = text.replacen(">>", "", 1);
    let range = TextRange::new((start as u32).into(), (end as u32).into());
    let parse = prose_syntax::parse(&text);
    let edits = prose_fmt::format_range(&parse, &text, range, &prose_fmt::Options::default());
    assert_eq!(prose_fmt::apply(&text, &edits), after);
}

#[test]
fn a_range_is_widened_to_its_statements() {
    ranged("let a=1\nlet b<<>>=2\nlet c=3\n", "let a=1\nlet b = 2\nlet c=3\n");
    ranged(
        "if a:\n  let x=1\n  let y<<=2\n  let z>>=3\n  let w=4\n",
        "if a:\n  let x=1\n  let y = 2\n  let z = 3\n  let w=4\n",
    );
    // Alone it would leave its block: the whole statement is moved.
    ranged(
        "if a:\n    let x=1\n    let y<<=>>2\nlet z=3\n",
        "if a:\n  let x = 1\n  let y = 2\nlet z=3\n",
    );
    ranged(
        "session: a\n  prompt:\"x\"\n  retry:<<>>3\n",
        "session: a\n  prompt:\"x\"\n  retry: 3\n",
    );
}
