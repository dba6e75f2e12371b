//! Trees of expressions.

use expect_test::expect;

use crate::check;

#[test]
fn precedence() {
    check(
        r#"let x = not a == b + 1 and c or d
"#,
        expect![[r#"
            SOURCE_FILE@0..34
              LET_STMT@0..33
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                BIN_EXPR@8..33
                  BIN_EXPR@8..28
                    PREFIX_EXPR@8..22
                      NOT_KW@8..11 "not"
                      BIN_EXPR@12..22
                        NAME_REF@12..13
                          IDENT@12..13 "a"
                        EQ2@14..16 "=="
                        BIN_EXPR@17..22
                          NAME_REF@17..18
                            IDENT@17..18 "b"
                          PLUS@19..20 "+"
                          LITERAL@21..22
                            NUMBER@21..22 "1"
                    AND_KW@23..26 "and"
                    NAME_REF@27..28
                      IDENT@27..28 "c"
                  OR_KW@29..31 "or"
                  NAME_REF@32..33
                    IDENT@32..33 "d"
        "#]],
    );
}

#[test]
fn unary_and_parentheses() {
    check(
        r#"let x = -(a - 1) - -b
"#,
        expect![[r#"
            SOURCE_FILE@0..22
              LET_STMT@0..21
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                BIN_EXPR@8..21
                  PREFIX_EXPR@8..16
                    MINUS@8..9 "-"
                    PAREN_EXPR@9..16
                      L_PAREN@9..10 "("
                      BIN_EXPR@10..15
                        NAME_REF@10..11
                          IDENT@10..11 "a"
                        MINUS@12..13 "-"
                        LITERAL@14..15
                          NUMBER@14..15 "1"
                      R_PAREN@15..16 ")"
                  MINUS@17..18 "-"
                  PREFIX_EXPR@19..21
                    MINUS@19..20 "-"
                    NAME_REF@20..21
                      IDENT@20..21 "b"
        "#]],
    );
}

#[test]
fn fields_indexes_and_calls() {
    check(
        r#"let x = a.b[0].length
let y = f(k: 1, 2)
let z = a.session
"#,
        expect![[r#"
            SOURCE_FILE@0..59
              LET_STMT@0..21
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                FIELD_EXPR@8..21
                  INDEX_EXPR@8..14
                    FIELD_EXPR@8..11
                      NAME_REF@8..9
                        IDENT@8..9 "a"
                      DOT@9..10 "."
                      NAME@10..11
                        IDENT@10..11 "b"
                    L_BRACK@11..12 "["
                    LITERAL@12..13
                      NUMBER@12..13 "0"
                    R_BRACK@13..14 "]"
                  DOT@14..15 "."
                  NAME@15..21
                    IDENT@15..21 "length"
              LET_STMT@22..40
                LET_KW@22..25 "let"
                NAME@26..27
                  IDENT@26..27 "y"
                EQ@28..29 "="
                CALL_EXPR@30..40
                  NAME_REF@30..31
                    IDENT@30..31 "f"
                  ARG_LIST@31..40
                    L_PAREN@31..32 "("
                    ARG@32..36
                      NAME@32..33
                        IDENT@32..33 "k"
                      COLON@33..34 ":"
                      LITERAL@35..36
                        NUMBER@35..36 "1"
                    COMMA@36..37 ","
                    ARG@38..39
                      LITERAL@38..39
                        NUMBER@38..39 "2"
                    R_PAREN@39..40 ")"
              LET_STMT@41..58
                LET_KW@41..44 "let"
                NAME@45..46
                  IDENT@45..46 "z"
                EQ@47..48 "="
                FIELD_EXPR@49..58
                  NAME_REF@49..50
                    IDENT@49..50 "a"
                  DOT@50..51 "."
                  NAME@51..58
                    IDENT@51..58 "session"
        "#]],
    );
}

#[test]
fn lists_and_objects() {
    check(
        r#"let x = [a, "b", 1.5, true, null, [] ]
let y = {a, b: 1, "c d": {}}
"#,
        expect![[r#"
            SOURCE_FILE@0..68
              LET_STMT@0..38
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                LIST_EXPR@8..38
                  L_BRACK@8..9 "["
                  NAME_REF@9..10
                    IDENT@9..10 "a"
                  COMMA@10..11 ","
                  LITERAL@12..15
                    STRING@12..15 "\"b\""
                  COMMA@15..16 ","
                  LITERAL@17..20
                    NUMBER@17..20 "1.5"
                  COMMA@20..21 ","
                  LITERAL@22..26
                    TRUE_KW@22..26 "true"
                  COMMA@26..27 ","
                  LITERAL@28..32
                    NULL_KW@28..32 "null"
                  COMMA@32..33 ","
                  LIST_EXPR@34..36
                    L_BRACK@34..35 "["
                    R_BRACK@35..36 "]"
                  R_BRACK@37..38 "]"
              LET_STMT@39..67
                LET_KW@39..42 "let"
                NAME@43..44
                  IDENT@43..44 "y"
                EQ@45..46 "="
                OBJECT_EXPR@47..67
                  L_BRACE@47..48 "{"
                  OBJECT_FIELD@48..49
                    NAME_REF@48..49
                      IDENT@48..49 "a"
                  COMMA@49..50 ","
                  OBJECT_FIELD@51..55
                    NAME@51..52
                      IDENT@51..52 "b"
                    COLON@52..53 ":"
                    LITERAL@54..55
                      NUMBER@54..55 "1"
                  COMMA@55..56 ","
                  OBJECT_FIELD@57..66
                    NAME@57..62
                      STRING@57..62 "\"c d\""
                    COLON@62..63 ":"
                    OBJECT_EXPR@64..66
                      L_BRACE@64..65 "{"
                      R_BRACE@65..66 "}"
                  R_BRACE@66..67 "}"
        "#]],
    );
}

#[test]
fn multi_line_brackets() {
    check(
        r#"let x = {
  a: 1, # one
  b: [
    2,
  ],
}
"#,
        expect![[r##"
            SOURCE_FILE@0..45
              LET_STMT@0..44
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                OBJECT_EXPR@8..44
                  L_BRACE@8..9 "{"
                  OBJECT_FIELD@12..16
                    NAME@12..13
                      IDENT@12..13 "a"
                    COLON@13..14 ":"
                    LITERAL@15..16
                      NUMBER@15..16 "1"
                  COMMA@16..17 ","
                  COMMENT@18..23 "# one"
                  OBJECT_FIELD@26..41
                    NAME@26..27
                      IDENT@26..27 "b"
                    COLON@27..28 ":"
                    LIST_EXPR@29..41
                      L_BRACK@29..30 "["
                      LITERAL@35..36
                        NUMBER@35..36 "2"
                      COMMA@36..37 ","
                      R_BRACK@40..41 "]"
                  COMMA@41..42 ","
                  R_BRACE@43..44 "}"
        "##]],
    );
}

#[test]
fn discretion_in_condition() {
    check(
        r#"if **it is bad** or depth <= 0:
  do f
"#,
        expect![[r#"
            SOURCE_FILE@0..39
              EXPR_STMT@0..38
                IF_EXPR@0..38
                  IF_KW@0..2 "if"
                  BIN_EXPR@3..30
                    DISCRETION_EXPR@3..16
                      DISCRETION@3..16 "**it is bad**"
                    OR_KW@17..19 "or"
                    BIN_EXPR@20..30
                      NAME_REF@20..25
                        IDENT@20..25 "depth"
                      LTEQ@26..28 "<="
                      LITERAL@29..30
                        NUMBER@29..30 "0"
                  COLON@30..31 ":"
                  BODY@31..38
                    EXPR_STMT@34..38
                      DO_CALL_EXPR@34..38
                        DO_KW@34..36 "do"
                        NAME_REF@37..38
                          IDENT@37..38 "f"
        "#]],
    );
}

#[test]
fn pipelines_on_lines() {
    check(
        r#"let x = xs
  | filter:
      session "keep?"
        context: item
  | reduce(a, b):
      do f(a, b)
  | chunks(3)
let y = 1
"#,
        expect![[r#"
            SOURCE_FILE@0..126
              LET_STMT@0..115
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                PIPE_EXPR@8..115
                  NAME_REF@8..10
                    IDENT@8..10 "xs"
                  PIPE_OP@13..66
                    PIPE@13..14 "|"
                    FILTER_KW@15..21 "filter"
                    COLON@21..22 ":"
                    BODY@22..66
                      EXPR_STMT@29..66
                        SESSION_EXPR@29..66
                          SESSION_KW@29..36 "session"
                          LITERAL@37..44
                            STRING@37..44 "\"keep?\""
                          PROPERTY_LIST@44..66
                            PROPERTY@53..66
                              NAME@53..60
                                IDENT@53..60 "context"
                              COLON@60..61 ":"
                              NAME_REF@62..66
                                IDENT@62..66 "item"
                  PIPE_OP@69..101
                    PIPE@69..70 "|"
                    REDUCE_KW@71..77 "reduce"
                    PARAM_LIST@77..83
                      L_PAREN@77..78 "("
                      PARAM@78..79
                        NAME@78..79
                          IDENT@78..79 "a"
                      COMMA@79..80 ","
                      PARAM@81..82
                        NAME@81..82
                          IDENT@81..82 "b"
                      R_PAREN@82..83 ")"
                    COLON@83..84 ":"
                    BODY@84..101
                      EXPR_STMT@91..101
                        DO_CALL_EXPR@91..101
                          DO_KW@91..93 "do"
                          NAME_REF@94..95
                            IDENT@94..95 "f"
                          ARG_LIST@95..101
                            L_PAREN@95..96 "("
                            ARG@96..97
                              NAME_REF@96..97
                                IDENT@96..97 "a"
                            COMMA@97..98 ","
                            ARG@99..100
                              NAME_REF@99..100
                                IDENT@99..100 "b"
                            R_PAREN@100..101 ")"
                  PIPE_OP@104..115
                    PIPE@104..105 "|"
                    CHUNKS_KW@106..112 "chunks"
                    ARG_LIST@112..115
                      L_PAREN@112..113 "("
                      ARG@113..114
                        LITERAL@113..114
                          NUMBER@113..114 "3"
                      R_PAREN@114..115 ")"
              LET_STMT@116..125
                LET_KW@116..119 "let"
                NAME@120..121
                  IDENT@120..121 "y"
                EQ@122..123 "="
                LITERAL@124..125
                  NUMBER@124..125 "1"
        "#]],
    );
}

#[test]
fn pipelines_inline() {
    check(
        r#"xs | filter: **it matters** | map: session "x"
  context: item
"#,
        expect![[r#"
            SOURCE_FILE@0..63
              EXPR_STMT@0..62
                PIPE_EXPR@0..62
                  NAME_REF@0..2
                    IDENT@0..2 "xs"
                  PIPE_OP@3..27
                    PIPE@3..4 "|"
                    FILTER_KW@5..11 "filter"
                    COLON@11..12 ":"
                    BODY@13..27
                      EXPR_STMT@13..27
                        DISCRETION_EXPR@13..27
                          DISCRETION@13..27 "**it matters**"
                  PIPE_OP@28..62
                    PIPE@28..29 "|"
                    MAP_KW@30..33 "map"
                    COLON@33..34 ":"
                    BODY@35..62
                      EXPR_STMT@35..62
                        SESSION_EXPR@35..62
                          SESSION_KW@35..42 "session"
                          LITERAL@43..46
                            STRING@43..46 "\"x\""
                          PROPERTY_LIST@46..62
                            PROPERTY@49..62
                              NAME@49..56
                                IDENT@49..56 "context"
                              COLON@56..57 ":"
                              NAME_REF@58..62
                                IDENT@58..62 "item"
        "#]],
    );
}

#[test]
fn arrows() {
    check(
        r#"session "a" -> session "b"
  context: x
-> session "c"
"#,
        expect![[r#"
            SOURCE_FILE@0..55
              EXPR_STMT@0..54
                ARROW_EXPR@0..54
                  SESSION_EXPR@0..11
                    SESSION_KW@0..7 "session"
                    LITERAL@8..11
                      STRING@8..11 "\"a\""
                  ARROW@12..14 "->"
                  SESSION_EXPR@15..39
                    SESSION_KW@15..22 "session"
                    LITERAL@23..26
                      STRING@23..26 "\"b\""
                    PROPERTY_LIST@26..39
                      PROPERTY@29..39
                        NAME@29..36
                          IDENT@29..36 "context"
                        COLON@36..37 ":"
                        NAME_REF@38..39
                          IDENT@38..39 "x"
                  ARROW@40..42 "->"
                  SESSION_EXPR@43..54
                    SESSION_KW@43..50 "session"
                    LITERAL@51..54
                      STRING@51..54 "\"c\""
        "#]],
    );
}

#[test]
fn arrow_after_a_deeper_block() {
    check(
        r#"session n: a
  prompt: "x"

-> session m: b
  prompt: "y"
"#,
        expect![[r#"
            SOURCE_FILE@0..58
              EXPR_STMT@0..57
                ARROW_EXPR@0..57
                  SESSION_EXPR@0..26
                    SESSION_KW@0..7 "session"
                    NAME@8..9
                      IDENT@8..9 "n"
                    COLON@9..10 ":"
                    NAME_REF@11..12
                      IDENT@11..12 "a"
                    PROPERTY_LIST@12..26
                      PROPERTY@15..26
                        NAME@15..21
                          IDENT@15..21 "prompt"
                        COLON@21..22 ":"
                        LITERAL@23..26
                          STRING@23..26 "\"x\""
                  ARROW@28..30 "->"
                  SESSION_EXPR@31..57
                    SESSION_KW@31..38 "session"
                    NAME@39..40
                      IDENT@39..40 "m"
                    COLON@40..41 ":"
                    NAME_REF@42..43
                      IDENT@42..43 "b"
                    PROPERTY_LIST@43..57
                      PROPERTY@46..57
                        NAME@46..52
                          IDENT@46..52 "prompt"
                        COLON@52..53 ":"
                        LITERAL@54..57
                          STRING@54..57 "\"y\""
        "#]],
    );
}

#[test]
fn hyphens() {
    check(
        r#"let x = a-b - c -d
a->b
"#,
        expect![[r#"
            SOURCE_FILE@0..24
              LET_STMT@0..18
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "x"
                EQ@6..7 "="
                BIN_EXPR@8..18
                  BIN_EXPR@8..15
                    NAME_REF@8..11
                      IDENT@8..11 "a-b"
                    MINUS@12..13 "-"
                    NAME_REF@14..15
                      IDENT@14..15 "c"
                  MINUS@16..17 "-"
                  NAME_REF@17..18
                    IDENT@17..18 "d"
              EXPR_STMT@19..23
                ARROW_EXPR@19..23
                  NAME_REF@19..20
                    IDENT@19..20 "a"
                  ARROW@20..22 "->"
                  NAME_REF@22..23
                    IDENT@22..23 "b"
        "#]],
    );
}

#[test]
fn keywords_as_names() {
    check(
        r#"let y = [session, loop, not]
for x in loop:
  do f
"#,
        expect![[r#"
            SOURCE_FILE@0..51
              LET_STMT@0..28
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "y"
                EQ@6..7 "="
                LIST_EXPR@8..28
                  L_BRACK@8..9 "["
                  NAME_REF@9..16
                    IDENT@9..16 "session"
                  COMMA@16..17 ","
                  NAME_REF@18..22
                    IDENT@18..22 "loop"
                  COMMA@22..23 ","
                  NAME_REF@24..27
                    IDENT@24..27 "not"
                  R_BRACK@27..28 "]"
              EXPR_STMT@29..50
                FOR_EXPR@29..50
                  FOR_KW@29..32 "for"
                  NAME@33..34
                    IDENT@33..34 "x"
                  IN_KW@35..37 "in"
                  NAME_REF@38..42
                    IDENT@38..42 "loop"
                  COLON@42..43 ":"
                  BODY@43..50
                    EXPR_STMT@46..50
                      DO_CALL_EXPR@46..50
                        DO_KW@46..48 "do"
                        NAME_REF@49..50
                          IDENT@49..50 "f"
        "#]],
    );
}

#[test]
fn constructs_as_values() {
    check(
        r#"let a = if b:
  1
else:
  2
let c = parallel:
  do f
"#,
        expect![[r#"
            SOURCE_FILE@0..53
              LET_STMT@0..27
                LET_KW@0..3 "let"
                NAME@4..5
                  IDENT@4..5 "a"
                EQ@6..7 "="
                IF_EXPR@8..27
                  IF_KW@8..10 "if"
                  NAME_REF@11..12
                    IDENT@11..12 "b"
                  COLON@12..13 ":"
                  BODY@13..17
                    EXPR_STMT@16..17
                      LITERAL@16..17
                        NUMBER@16..17 "1"
                  ELSE_CLAUSE@18..27
                    ELSE_KW@18..22 "else"
                    COLON@22..23 ":"
                    BODY@23..27
                      EXPR_STMT@26..27
                        LITERAL@26..27
                          NUMBER@26..27 "2"
              LET_STMT@28..52
                LET_KW@28..31 "let"
                NAME@32..33
                  IDENT@32..33 "c"
                EQ@34..35 "="
                PARALLEL_EXPR@36..52
                  PARALLEL_KW@36..44 "parallel"
                  COLON@44..45 ":"
                  BODY@45..52
                    EXPR_STMT@48..52
                      DO_CALL_EXPR@48..52
                        DO_KW@48..50 "do"
                        NAME_REF@51..52
                          IDENT@51..52 "f"
        "#]],
    );
}

#[test]
fn empty_body() {
    check(
        r#"block f:
  # later
session "x"
"#,
        expect![[r##"
            SOURCE_FILE@0..31
              BLOCK_DEF@0..8
                BLOCK_KW@0..5 "block"
                NAME@6..7
                  IDENT@6..7 "f"
                COLON@7..8 ":"
                BODY@8..8
              COMMENT@11..18 "# later"
              EXPR_STMT@19..30
                SESSION_EXPR@19..30
                  SESSION_KW@19..26 "session"
                  LITERAL@27..30
                    STRING@27..30 "\"x\""
            P222@8..8: nothing is in this block: put a statement into it, or remove it
        "##]],
    );
}
