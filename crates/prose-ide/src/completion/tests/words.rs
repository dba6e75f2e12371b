//! Words of the language: properties, their values, modifiers, keywords.

use expect_test::expect;

use super::{check, check_apply, check_each, check_none, items};

// ---- properties ------------------------------------------------------------------------------------

#[test]
fn property_keys() {
    check(
        "agent a:\n  $0",
        expect!["property: backoff context model permissions persist prompt retry skills"],
    );
    check(
        "agent a:\n  model: opus\n  $0\n  prompt: \"x\"\n",
        expect!["property: backoff context permissions persist retry skills"],
    );
    check(
        "agent a:\n  mo$0\n",
        expect!["property: backoff context model permissions persist prompt retry skills"],
    );
    // The key at the cursor is no obstacle to itself.
    check(
        "agent a:\n  mo$0del: opus\n  prompt: \"x\"\n",
        expect!["property: backoff context model permissions persist retry skills"],
    );
    check(
        "session \"x\"\n  $0",
        expect!["property: backoff context model permissions prompt retry skills"],
    );
    check(
        "session \"x\"\n  context: []\n  pro$0\n",
        expect!["property: backoff model permissions prompt retry skills"],
    );
    check(
        "let r = session \"x\"\n  $0\n",
        expect!["property: backoff context model permissions prompt retry skills"],
    );
    check(
        "block b:\n  resume: a\n    $0\n  session \"y\"\n",
        expect!["property: backoff context model permissions prompt retry skills"],
    );
    check(
        "parallel:\n  p = session \"x\"\n    $0\n",
        expect!["property: backoff context model permissions prompt retry skills"],
    );
    check(
        "if **x**:\n  session \"y\"\n    prompt: \"\"\"\n      text\n    \"\"\"\n    $0\n",
        expect!["property: backoff context model permissions retry skills"],
    );
}

#[test]
fn property_keys_bring_their_colon() {
    check_apply(
        "agent a:\n  mo$0\n",
        "model",
        true,
        expect![[r#"
        agent a:
          model: 
    "#]],
    );
    check_apply(
        "agent a:\n  mo$0: opus\n",
        "model",
        true,
        expect![[r#"
        agent a:
          model: opus
    "#]],
    );
    check_apply(
        "agent a:\n  $0\n",
        "prompt",
        true,
        expect![[r#"
        agent a:
          prompt: "$1"$0
    "#]],
    );
    check_apply(
        "agent a:\n  $0\n",
        "prompt",
        false,
        expect![[r#"
        agent a:
          prompt: 
    "#]],
    );
}

#[test]
fn property_values() {
    check("agent a:\n  model: $0", expect!["value: haiku opus sonnet"]);
    check(
        "agent a:\n  model: op$0us\n  prompt: \"x\"\n",
        expect!["value: haiku opus sonnet"],
    );
    check("agent a:\n  model: \"$0\"\n", expect!["value: haiku opus sonnet"]);
    check("agent a:\n  persist: $0\n", expect!["value: project true user"]);
    check(
        "session \"x\"\n  backoff: $0\n",
        expect!["value: exponential linear none"],
    );
    check(
        "session \"x\"\n  backoff: \"$0\"\n",
        expect!["value: exponential linear none"],
    );
    check("session \"x\" model: $0\n", expect!["value: haiku opus sonnet"]);
    check("let n = 3\nsession \"x\"\n  retry: $0\n", expect!["variable: n"]);
    check_none("agent a:\n  model: opus $0\n");
    check_none("agent a:\n  persist: \"$0\"\n");
    check_none("agent a:\n  unknown: $0\n");
}

#[test]
fn permissions() {
    check(
        "agent a:\n  permissions:\n    $0",
        expect!["property: bash execute network read write"],
    );
    check(
        "agent a:\n  permissions:\n    bash: deny\n    $0\n",
        expect!["property: execute network read write"],
    );
    check(
        "agent a:\n  permissions:\n    bash: $0\n",
        expect!["value: allow deny prompt"],
    );
    check(
        "session \"x\"\n  permissions:\n    network: al$0\n",
        expect!["value: allow deny prompt"],
    );
    check(
        "const docs = \"*.md\"\nagent a:\n  permissions:\n    read: [$0]\n",
        expect!["constant: docs"],
    );
    check_none("const docs = \"*.md\"\nagent a:\n  permissions:\n    read: [\"$0\"]\n");
}

// ---- modifiers -------------------------------------------------------------------------------------

#[test]
fn modifiers() {
    check(
        "parallel ($0",
        expect![[r#"
        value: all any
        property: count
        value: first
        property: max on-fail"#]],
    );
    check(
        "parallel (\"any\", $0):\n  session \"x\"\n",
        expect![[r#"
        value: all any
        property: count
        value: first
        property: max on-fail"#]],
    );
    check("parallel (\"$0\"):\n", expect!["value: all any first"]);
    check(
        "parallel (\"any\", count: 2, $0):\n",
        expect![[r#"
        value: all any first
        property: max on-fail"#]],
    );
    check(
        "parallel (on-fail: $0):\n",
        expect!["value: continue fail-fast ignore"],
    );
    check(
        "parallel (on-fail: \"$0\"):\n",
        expect!["value: continue fail-fast ignore"],
    );
    check(
        "parallel for x in [1] ($0):\n",
        expect![[r#"
        value: all any
        property: count
        value: first
        property: max on-fail"#]],
    );
    check("loop until **x** ($0", expect!["property: max"]);
    check("loop ($0):\n", expect!["property: max"]);
    check("let n = 5\nloop until **x** (max: $0):\n", expect!["variable: n"]);
    check("block f(a) ($0):\n", expect!["property: max_depth"]);
    check("session \"x\" ($0)\n", expect!["property: retry"]);
}

#[test]
fn modifier_values_bring_their_quotes() {
    check_apply(
        "parallel (on-fail: $0):\n",
        "ignore",
        true,
        expect![[r#"
        parallel (on-fail: "ignore"):
    "#]],
    );
    check_apply(
        "parallel (on-fail: \"ig$0\"):\n",
        "ignore",
        true,
        expect![[r#"
        parallel (on-fail: "ignore"):
    "#]],
    );
    check_apply(
        "parallel (\"$0\n",
        "first",
        true,
        expect![[r#"
        parallel ("first
    "#]],
    );
}

// ---- keywords --------------------------------------------------------------------------------------

#[test]
fn statements_of_the_top_level() {
    check_each(
        [
            "$0",
            "se$0",
            "session \"x\"\n$0\nsession \"y\"\n",
            "agent a:\n  model: opus\n\n$0",
        ],
        expect![
            "keyword: agent block choice const do for if input let loop output parallel repeat resume session throw try use"
        ],
    );
    check(
        "let a = \"1\"\nconst k = 1\n$0\n",
        expect![[r#"
        variable: a
        keyword: agent block choice const do for if input let loop output parallel repeat resume session throw try use"#]],
    );
}

#[test]
fn statements_of_a_body() {
    check_each(
        [
            "block b:\n  $0",
            "do:\n  $0\n",
            "if **x**:\n  session \"y\"\n  $0\n",
            "choice **x**:\n  option \"a\":\n    $0\n",
            "loop:\n  s$0\n",
        ],
        expect![
            "keyword: choice const do for if input let loop output parallel repeat resume session throw try"
        ],
    );
    check(
        "parallel:\n  $0\n",
        expect!["keyword: choice do for if loop parallel repeat resume session throw try"],
    );
    check(
        "for x in [1]:\n  let y = session \"a\"\n  $0",
        expect![[r#"
        variable: y
        keyword: choice const do for if input let loop output parallel repeat resume session throw try"#]],
    );
}

#[test]
fn continuations() {
    fn first_of(fixture: &str) -> Vec<String> {
        items(fixture, false)
            .into_iter()
            .filter(|it| it.sort_text.starts_with('0'))
            .map(|it| it.label)
            .collect()
    }
    assert_eq!(first_of("if **x**:\n  session \"y\"\n$0"), ["elif", "else"]);
    assert_eq!(
        first_of("if **x**:\n  session \"y\"\nelif **z**:\n  session \"y\"\nel$0\n"),
        ["elif", "else"]
    );
    assert_eq!(
        first_of("if **x**:\n  session \"y\"\nelse:\n  session \"z\"\n$0"),
        Vec::<String>::new()
    );
    assert_eq!(
        first_of("let a = if **x**:\n  session \"y\"\n$0"),
        ["elif", "else"]
    );
    assert_eq!(first_of("try:\n  session \"y\"\n$0"), ["catch", "finally"]);
    assert_eq!(
        first_of("try:\n  session \"y\"\ncatch:\n  session \"z\"\n$0"),
        ["finally"]
    );
    assert_eq!(
        first_of("block b:\n  try:\n    session \"y\"\n  $0"),
        ["catch", "finally"]
    );
    assert_eq!(first_of("session \"y\"\n$0"), Vec::<String>::new());
    assert_eq!(first_of("if **x**:\n  $0"), Vec::<String>::new());
    assert_eq!(
        first_of("if **x**:\n  session \"y\"\nsession \"z\"\n$0"),
        Vec::<String>::new()
    );
}

#[test]
fn options_of_a_choice() {
    check("choice **x**:\n  $0", expect!["keyword: option"]);
    check(
        "choice **x**:\n  option \"a\":\n    session \"y\"\n  op$0\n",
        expect!["keyword: option"],
    );
    let labels: Vec<String> = items("session \"x\"\n$0", false)
        .into_iter()
        .map(|it| it.label)
        .filter(|it| it == "option")
        .collect();
    assert!(labels.is_empty());
}

#[test]
fn words_inside_a_line() {
    check("for x $0", expect!["keyword: in"]);
    check("parallel $0", expect!["keyword: for"]);
    check("parallel for x $0", expect!["keyword: in"]);
    check("loop $0", expect!["keyword: as until while"]);
    check("repeat 3 $0", expect!["keyword: as"]);
    check("catch $0", expect!["keyword: as"]);
    check("use \"alice/x\" $0", expect!["keyword: as"]);
    check(
        "let x = [1] | $0",
        expect!["keyword: chunks filter map pmap reduce"],
    );
    check(
        "let x = [1]\n  | $0",
        expect!["keyword: chunks filter map pmap reduce"],
    );
    check("if **a** $0:\n  session \"x\"\n", expect!["keyword: and or"]);
    check(
        "session \"a\" -> $0\n",
        expect!["keyword: choice do for if loop parallel repeat resume session try false null true"],
    );
}

#[test]
fn snippets_only_where_the_client_knows_them() {
    check_apply(
        "$0",
        "if",
        true,
        expect![[r#"
        if **${1:condition}**:
          $0"#]],
    );
    check_apply("$0", "if", false, expect!["if"]);
    // On a line that goes on only the word is missing.
    check_apply(
        "i$0 **x**:\n  session \"y\"\n",
        "if",
        true,
        expect![[r#"
        if **x**:
          session "y"
    "#]],
    );
    assert!(items("$0", false).iter().all(|it| it.snippet.is_none()));
}
