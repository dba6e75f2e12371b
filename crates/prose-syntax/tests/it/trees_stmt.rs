//! Trees of statements.

use expect_test::expect;

use crate::check;

#[test]
fn use_and_import() {
    check(
        r#"use "a/b" as c # why
import "x" from "y"
"#,
        expect![[r##"
            SOURCE_FILE@0..41
              USE_STMT@0..14
                USE_KW@0..3 "use"
                LITERAL@4..9
                  STRING@4..9 "\"a/b\""
                AS_KW@10..12 "as"
                NAME@13..14
                  IDENT@13..14 "c"
              COMMENT@15..20 "# why"
              IMPORT_STMT@21..40
                IMPORT_KW@21..27 "import"
                LITERAL@28..31
                  STRING@28..31 "\"x\""
                FROM_KW@32..36 "from"
                LITERAL@37..40
                  STRING@37..40 "\"y\""
            P304@21..40: `import … from …` is the old way to declare a skill: write `use "handle/slug"`
        "##]],
    );
}

#[test]
fn inputs() {
    check(
        r#"input a: "text"
input b: **what next**
input c: [1, 2]
input d
"#,
        expect![[r#"
            SOURCE_FILE@0..63
              INPUT_STMT@0..15
                INPUT_KW@0..5 "input"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                LITERAL@9..15
                  STRING@9..15 "\"text\""
              INPUT_STMT@16..38
                INPUT_KW@16..21 "input"
                NAME@22..23
                  IDENT@22..23 "b"
                COLON@23..24 ":"
                DISCRETION_EXPR@25..38
                  DISCRETION@25..38 "**what next**"
              INPUT_STMT@39..54
                INPUT_KW@39..44 "input"
                NAME@45..46
                  IDENT@45..46 "c"
                COLON@46..47 ":"
                LIST_EXPR@48..54
                  L_BRACK@48..49 "["
                  LITERAL@49..50
                    NUMBER@49..50 "1"
                  COMMA@50..51 ","
                  LITERAL@52..53
                    NUMBER@52..53 "2"
                  R_BRACK@53..54 "]"
              INPUT_STMT@55..62
                INPUT_KW@55..60 "input"
                NAME@61..62
                  IDENT@61..62 "d"
            P217@48..54: a list after `input` is taken as its default: describe the input with a text
            P215@62..62: input has no description: write `input name: "what it is"`
        "#]],
    );
}

#[test]
fn outputs() {
    check(
        r#"output a = b
output a + b
output output = 1
"#,
        expect![[r#"
            SOURCE_FILE@0..44
              OUTPUT_STMT@0..12
                OUTPUT_KW@0..6 "output"
                NAME@7..8
                  IDENT@7..8 "a"
                EQ@9..10 "="
                NAME_REF@11..12
                  IDENT@11..12 "b"
              OUTPUT_STMT@13..25
                OUTPUT_KW@13..19 "output"
                BIN_EXPR@20..25
                  NAME_REF@20..21
                    IDENT@20..21 "a"
                  PLUS@22..23 "+"
                  NAME_REF@24..25
                    IDENT@24..25 "b"
              OUTPUT_STMT@26..43
                OUTPUT_KW@26..32 "output"
                NAME@33..39
                  IDENT@33..39 "output"
                EQ@40..41 "="
                LITERAL@42..43
                  NUMBER@42..43 "1"
            P303@33..39: `output` is also a keyword: another name reads more clearly
        "#]],
    );
}

#[test]
fn let_and_const() {
    check(
        r#"let a = 1
const b = "x"
let { c, d } = f(x: 1)
let e =
  session "s"
"#,
        expect![[r#"
            SOURCE_FILE@0..69
              LET_STMT@0..9
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "a"
                EQ@6..7 "="
                LITERAL@8..9
                  NUMBER@8..9 "1"
              LET_STMT@10..23
                CONST_KW@10..15 "const"
                NAME@16..17
                  IDENT@16..17 "b"
                EQ@18..19 "="
                LITERAL@20..23
                  STRING@20..23 "\"x\""
              LET_STMT@24..46
                LET_KW@24..27 "let"
                RECORD_PATTERN@28..36
                  L_BRACE@28..29 "{"
                  NAME@30..31
                    IDENT@30..31 "c"
                  COMMA@31..32 ","
                  NAME@33..34
                    IDENT@33..34 "d"
                  R_BRACE@35..36 "}"
                EQ@37..38 "="
                CALL_EXPR@39..46
                  NAME_REF@39..40
                    IDENT@39..40 "f"
                  ARG_LIST@40..46
                    L_PAREN@40..41 "("
                    ARG@41..45
                      NAME@41..42
                        IDENT@41..42 "x"
                      COLON@42..43 ":"
                      LITERAL@44..45
                        NUMBER@44..45 "1"
                    R_PAREN@45..46 ")"
              LET_STMT@47..68
                LET_KW@47..50 "let"
                NAME@51..52
                  IDENT@51..52 "e"
                EQ@53..54 "="
                SESSION_EXPR@57..68
                  SESSION_KW@57..64 "session"
                  LITERAL@65..68
                    STRING@65..68 "\"s\""
        "#]],
    );
}

#[test]
fn assignments() {
    check(
        r#"a = 1
a.b = 2
a[0] = 3
name_{v} = 4
session = 5
"#,
        expect![[r#"
            SOURCE_FILE@0..48
              ASSIGN_STMT@0..5
                NAME_REF@0..1
                  IDENT@0..1 "a"
                EQ@2..3 "="
                LITERAL@4..5
                  NUMBER@4..5 "1"
              ASSIGN_STMT@6..13
                FIELD_EXPR@6..9
                  NAME_REF@6..7
                    IDENT@6..7 "a"
                  DOT@7..8 "."
                  NAME@8..9
                    IDENT@8..9 "b"
                EQ@10..11 "="
                LITERAL@12..13
                  NUMBER@12..13 "2"
              ASSIGN_STMT@14..22
                INDEX_EXPR@14..18
                  NAME_REF@14..15
                    IDENT@14..15 "a"
                  L_BRACK@15..16 "["
                  LITERAL@16..17
                    NUMBER@16..17 "0"
                  R_BRACK@17..18 "]"
                EQ@19..20 "="
                LITERAL@21..22
                  NUMBER@21..22 "3"
              ASSIGN_STMT@23..35
                COMPUTED_NAME@23..31
                  IDENT@23..28 "name_"
                  L_BRACE@28..29 "{"
                  NAME_REF@29..30
                    IDENT@29..30 "v"
                  R_BRACE@30..31 "}"
                EQ@32..33 "="
                LITERAL@34..35
                  NUMBER@34..35 "4"
              ASSIGN_STMT@36..47
                NAME_REF@36..43
                  IDENT@36..43 "session"
                EQ@44..45 "="
                LITERAL@46..47
                  NUMBER@46..47 "5"
            P207@23..31: a computed name becomes a field of a record: write a record or list instead
        "#]],
    );
}

#[test]
fn throw_return_break_assert() {
    check(
        r#"throw
throw "x"
return
return a
break
assert a > 1: "no"
"#,
        expect![[r#"
            SOURCE_FILE@0..57
              THROW_STMT@0..5
                THROW_KW@0..5 "throw"
              THROW_STMT@6..15
                THROW_KW@6..11 "throw"
                LITERAL@12..15
                  STRING@12..15 "\"x\""
              RETURN_STMT@16..22
                RETURN_KW@16..22 "return"
              RETURN_STMT@23..31
                RETURN_KW@23..29 "return"
                NAME_REF@30..31
                  IDENT@30..31 "a"
              BREAK_STMT@32..37
                BREAK_KW@32..37 "break"
              ASSERT_STMT@38..56
                ASSERT_KW@38..44 "assert"
                BIN_EXPR@45..50
                  NAME_REF@45..46
                    IDENT@45..46 "a"
                  GT@47..48 ">"
                  LITERAL@49..50
                    NUMBER@49..50 "1"
                COLON@50..51 ":"
                LITERAL@52..56
                  STRING@52..56 "\"no\""
            P208@16..22: `return` is understood here but other tools may not know it
            P208@23..29: `return` is understood here but other tools may not know it
            P208@32..37: `break` is understood here but other tools may not know it
            P208@38..44: `assert` is understood here but other tools may not know it
        "#]],
    );
}

#[test]
fn agent_with_properties() {
    check(
        r#"agent a:
  # about it
  model: opus
  persist: project
  skills: ["x", "y"]
  permissions:
    read: ["*.md"]
    bash: deny
  # end
# outside
"#,
        expect![[r##"
            SOURCE_FILE@0..143
              AGENT_DEF@0..132
                AGENT_KW@0..5 "agent"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                PROPERTY_LIST@8..132
                  COMMENT@11..21 "# about it"
                  PROPERTY@24..35
                    NAME@24..29
                      IDENT@24..29 "model"
                    COLON@29..30 ":"
                    NAME_REF@31..35
                      IDENT@31..35 "opus"
                  PROPERTY@38..54
                    NAME@38..45
                      IDENT@38..45 "persist"
                    COLON@45..46 ":"
                    NAME_REF@47..54
                      IDENT@47..54 "project"
                  PROPERTY@57..75
                    NAME@57..63
                      IDENT@57..63 "skills"
                    COLON@63..64 ":"
                    LIST_EXPR@65..75
                      L_BRACK@65..66 "["
                      LITERAL@66..69
                        STRING@66..69 "\"x\""
                      COMMA@69..70 ","
                      LITERAL@71..74
                        STRING@71..74 "\"y\""
                      R_BRACK@74..75 "]"
                  PROPERTY@78..124
                    NAME@78..89
                      IDENT@78..89 "permissions"
                    COLON@89..90 ":"
                    PROPERTY_LIST@90..124
                      PROPERTY@95..109
                        NAME@95..99
                          IDENT@95..99 "read"
                        COLON@99..100 ":"
                        LIST_EXPR@101..109
                          L_BRACK@101..102 "["
                          LITERAL@102..108
                            STRING@102..108 "\"*.md\""
                          R_BRACK@108..109 "]"
                      PROPERTY@114..124
                        NAME@114..118
                          IDENT@114..118 "bash"
                        COLON@118..119 ":"
                        NAME_REF@120..124
                          IDENT@120..124 "deny"
                  COMMENT@127..132 "# end"
              COMMENT@133..142 "# outside"
        "##]],
    );
}

#[test]
fn agent_named_like_a_keyword() {
    check(
        r#"agent session:
  model: x
"#,
        expect![[r#"
            SOURCE_FILE@0..26
              AGENT_DEF@0..25
                AGENT_KW@0..5 "agent"
                NAME@6..13
                  IDENT@6..13 "session"
                COLON@13..14 ":"
                PROPERTY_LIST@14..25
                  PROPERTY@17..25
                    NAME@17..22
                      IDENT@17..22 "model"
                    COLON@22..23 ":"
                    NAME_REF@24..25
                      IDENT@24..25 "x"
            P303@6..13: `session` is also a keyword: another name reads more clearly
        "#]],
    );
}

#[test]
fn block_with_params_and_modifiers() {
    check(
        r#"block f(a, b) (max_depth: 50):
  session "x"
block g:
  output 1
"#,
        expect![[r#"
            SOURCE_FILE@0..65
              BLOCK_DEF@0..44
                BLOCK_KW@0..5 "block"
                NAME@6..7
                  IDENT@6..7 "f"
                PARAM_LIST@7..13
                  L_PAREN@7..8 "("
                  PARAM@8..9
                    NAME@8..9
                      IDENT@8..9 "a"
                  COMMA@9..10 ","
                  PARAM@11..12
                    NAME@11..12
                      IDENT@11..12 "b"
                  R_PAREN@12..13 ")"
                MODIFIER_LIST@14..29
                  L_PAREN@14..15 "("
                  MODIFIER@15..28
                    NAME@15..24
                      IDENT@15..24 "max_depth"
                    COLON@24..25 ":"
                    LITERAL@26..28
                      NUMBER@26..28 "50"
                  R_PAREN@28..29 ")"
                COLON@29..30 ":"
                BODY@30..44
                  EXPR_STMT@33..44
                    SESSION_EXPR@33..44
                      SESSION_KW@33..40 "session"
                      LITERAL@41..44
                        STRING@41..44 "\"x\""
              BLOCK_DEF@45..64
                BLOCK_KW@45..50 "block"
                NAME@51..52
                  IDENT@51..52 "g"
                COLON@52..53 ":"
                BODY@53..64
                  OUTPUT_STMT@56..64
                    OUTPUT_KW@56..62 "output"
                    LITERAL@63..64
                      NUMBER@63..64 "1"
        "#]],
    );
}

#[test]
fn unknown_property_with_nested_lines() {
    check(
        r#"agent a:
  tools: [x]
  timeout: 120s
  env:
    A: 1
    - B
  model: opus
"#,
        expect![[r#"
            SOURCE_FILE@0..76
              AGENT_DEF@0..75
                AGENT_KW@0..5 "agent"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                PROPERTY_LIST@8..75
                  PROPERTY@11..21
                    NAME@11..16
                      IDENT@11..16 "tools"
                    COLON@16..17 ":"
                    LIST_EXPR@18..21
                      L_BRACK@18..19 "["
                      NAME_REF@19..20
                        IDENT@19..20 "x"
                      R_BRACK@20..21 "]"
                  PROPERTY@24..37
                    NAME@24..31
                      IDENT@24..31 "timeout"
                    COLON@31..32 ":"
                    LITERAL@33..37
                      DURATION@33..37 "120s"
                  PROPERTY@40..61
                    NAME@40..43
                      IDENT@40..43 "env"
                    COLON@43..44 ":"
                    PROPERTY_LIST@44..61
                      PROPERTY@49..53
                        NAME@49..50
                          IDENT@49..50 "A"
                        COLON@50..51 ":"
                        LITERAL@52..53
                          NUMBER@52..53 "1"
                      ERROR@58..61
                        MINUS@58..59 "-"
                        IDENT@60..61 "B"
                  PROPERTY@64..75
                    NAME@64..69
                      IDENT@64..69 "model"
                    COLON@69..70 ":"
                    NAME_REF@71..75
                      IDENT@71..75 "opus"
        "#]],
    );
}

#[test]
fn models_as_bare_words() {
    check(
        r#"agent a:
  model: gpt-4.1
agent b:
  model: vendor/name-2
"#,
        expect![[r#"
            SOURCE_FILE@0..58
              AGENT_DEF@0..25
                AGENT_KW@0..5 "agent"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                PROPERTY_LIST@8..25
                  PROPERTY@11..25
                    NAME@11..16
                      IDENT@11..16 "model"
                    COLON@16..17 ":"
                    BARE_WORD@18..25
                      IDENT@18..23 "gpt-4"
                      DOT@23..24 "."
                      NUMBER@24..25 "1"
              AGENT_DEF@26..57
                AGENT_KW@26..31 "agent"
                NAME@32..33
                  IDENT@32..33 "b"
                COLON@33..34 ":"
                PROPERTY_LIST@34..57
                  PROPERTY@37..57
                    NAME@37..42
                      IDENT@37..42 "model"
                    COLON@42..43 ":"
                    BARE_WORD@44..57
                      IDENT@44..50 "vendor"
                      UNKNOWN@50..51 "/"
                      IDENT@51..57 "name-2"
            P220@18..25: put this value into quotes
            P220@44..57: put this value into quotes
        "#]],
    );
}

#[test]
fn dash_lists_and_block_text() {
    check(
        r#"agent a:
  skills:
    - x
    - "y"
  prompt: |
    one {b}

      two
  model: x
"#,
        expect![[r#"
            SOURCE_FILE@0..83
              AGENT_DEF@0..82
                AGENT_KW@0..5 "agent"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                PROPERTY_LIST@8..82
                  PROPERTY@11..36
                    NAME@11..17
                      IDENT@11..17 "skills"
                    COLON@17..18 ":"
                    DASH_LIST@18..36
                      DASH_ITEM@23..26
                        MINUS@23..24 "-"
                        NAME_REF@25..26
                          IDENT@25..26 "x"
                      DASH_ITEM@31..36
                        MINUS@31..32 "-"
                        LITERAL@33..36
                          STRING@33..36 "\"y\""
                  PROPERTY@39..71
                    NAME@39..45
                      IDENT@39..45 "prompt"
                    COLON@45..46 ":"
                    BLOCK_STRING@47..71
                      PIPE@47..48 "|"
                      BLOCK_TEXT@48..71 "\n    one {b}\n\n      two"
                  PROPERTY@74..82
                    NAME@74..79
                      IDENT@74..79 "model"
                    COLON@79..80 ":"
                    NAME_REF@81..82
                      IDENT@81..82 "x"
            P209@23..36: write the list in brackets: `[a, b]`
            P210@47..48: write text over several lines as `"""…"""`
        "#]],
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        r#"# top
block f: # head
  # first
  session "a" # a
  # deep end
# shallow
session "b"
"#,
        expect![[r##"
            SOURCE_FILE@0..85
              COMMENT@0..5 "# top"
              BLOCK_DEF@6..62
                BLOCK_KW@6..11 "block"
                NAME@12..13
                  IDENT@12..13 "f"
                COLON@13..14 ":"
                COMMENT@15..21 "# head"
                BODY@21..62
                  COMMENT@24..31 "# first"
                  EXPR_STMT@34..45
                    SESSION_EXPR@34..45
                      SESSION_KW@34..41 "session"
                      LITERAL@42..45
                        STRING@42..45 "\"a\""
                  COMMENT@46..49 "# a"
                  COMMENT@52..62 "# deep end"
              COMMENT@63..72 "# shallow"
              EXPR_STMT@73..84
                SESSION_EXPR@73..84
                  SESSION_KW@73..80 "session"
                  LITERAL@81..84
                    STRING@81..84 "\"b\""
        "##]],
    );
}

#[test]
fn described_inputs_and_outputs() {
    check(
        r#"input a: "text" (default: 1)
output b: "text"
output c: a
session "x" as d
"#,
        expect![[r#"
            SOURCE_FILE@0..75
              INPUT_STMT@0..28
                INPUT_KW@0..5 "input"
                NAME@6..7
                  IDENT@6..7 "a"
                COLON@7..8 ":"
                LITERAL@9..15
                  STRING@9..15 "\"text\""
                MODIFIER_LIST@16..28
                  L_PAREN@16..17 "("
                  MODIFIER@17..27
                    NAME@17..24
                      IDENT@17..24 "default"
                    COLON@24..25 ":"
                    LITERAL@26..27
                      NUMBER@26..27 "1"
                  R_PAREN@27..28 ")"
              OUTPUT_STMT@29..45
                OUTPUT_KW@29..35 "output"
                NAME@36..37
                  IDENT@36..37 "b"
                COLON@37..38 ":"
                LITERAL@39..45
                  STRING@39..45 "\"text\""
              OUTPUT_STMT@46..57
                OUTPUT_KW@46..52 "output"
                NAME@53..54
                  IDENT@53..54 "c"
                COLON@54..55 ":"
                NAME_REF@56..57
                  IDENT@56..57 "a"
              EXPR_STMT@58..74
                SESSION_EXPR@58..74
                  SESSION_KW@58..65 "session"
                  LITERAL@66..69
                    STRING@66..69 "\"x\""
                  AS_KW@70..72 "as"
                  NAME@73..74
                    IDENT@73..74 "d"
            P218@16..28: of an input's modifiers only `default:` counts, and other tools may not know it
            P219@36..38: this only describes the output and binds nothing: bind it with `output name = …`
            P219@53..55: write `=` between an output's name and value
            P204@58..65: name a session's result in front of it: `let name = session …`
        "#]],
    );
}
