//! Trees of constructs.

use expect_test::expect;

use crate::check;

#[test]
fn session_forms() {
    check(
        r#"session "x"
session: a
session n: a
session: "t"
session: a "t"
"#,
        expect![[r#"
            SOURCE_FILE@0..64
              EXPR_STMT@0..11
                SESSION_EXPR@0..11
                  SESSION_KW@0..7 "session"
                  LITERAL@8..11
                    STRING@8..11 "\"x\""
              EXPR_STMT@12..22
                SESSION_EXPR@12..22
                  SESSION_KW@12..19 "session"
                  COLON@19..20 ":"
                  NAME_REF@21..22
                    IDENT@21..22 "a"
              EXPR_STMT@23..35
                SESSION_EXPR@23..35
                  SESSION_KW@23..30 "session"
                  NAME@31..32
                    IDENT@31..32 "n"
                  COLON@32..33 ":"
                  NAME_REF@34..35
                    IDENT@34..35 "a"
              EXPR_STMT@36..48
                SESSION_EXPR@36..48
                  SESSION_KW@36..43 "session"
                  COLON@43..44 ":"
                  LITERAL@45..48
                    STRING@45..48 "\"t\""
              EXPR_STMT@49..63
                SESSION_EXPR@49..63
                  SESSION_KW@49..56 "session"
                  COLON@56..57 ":"
                  NAME_REF@58..59
                    IDENT@58..59 "a"
                  LITERAL@60..63
                    STRING@60..63 "\"t\""
            P204@36..43: write `session "…"` without the colon
            P204@49..56: write the text as a property: `prompt: "…"` on an indented line
        "#]],
    );
}

#[test]
fn session_with_properties() {
    check(
        r#"session "x"
  context: [a, b]
  retry: 3
session "x" context: y retry: 1
  model: opus
session "y":
  context: a, b
session "z" (retry: 3)
"#,
        expect![[r#"
            SOURCE_FILE@0..139
              EXPR_STMT@0..40
                SESSION_EXPR@0..40
                  SESSION_KW@0..7 "session"
                  LITERAL@8..11
                    STRING@8..11 "\"x\""
                  PROPERTY_LIST@11..40
                    PROPERTY@14..29
                      NAME@14..21
                        IDENT@14..21 "context"
                      COLON@21..22 ":"
                      LIST_EXPR@23..29
                        L_BRACK@23..24 "["
                        NAME_REF@24..25
                          IDENT@24..25 "a"
                        COMMA@25..26 ","
                        NAME_REF@27..28
                          IDENT@27..28 "b"
                        R_BRACK@28..29 "]"
                    PROPERTY@32..40
                      NAME@32..37
                        IDENT@32..37 "retry"
                      COLON@37..38 ":"
                      LITERAL@39..40
                        NUMBER@39..40 "3"
              EXPR_STMT@41..86
                SESSION_EXPR@41..86
                  SESSION_KW@41..48 "session"
                  LITERAL@49..52
                    STRING@49..52 "\"x\""
                  PROPERTY_LIST@53..72
                    PROPERTY@53..63
                      NAME@53..60
                        IDENT@53..60 "context"
                      COLON@60..61 ":"
                      NAME_REF@62..63
                        IDENT@62..63 "y"
                    PROPERTY@64..72
                      NAME@64..69
                        IDENT@64..69 "retry"
                      COLON@69..70 ":"
                      LITERAL@71..72
                        NUMBER@71..72 "1"
                  PROPERTY_LIST@72..86
                    PROPERTY@75..86
                      NAME@75..80
                        IDENT@75..80 "model"
                      COLON@80..81 ":"
                      NAME_REF@82..86
                        IDENT@82..86 "opus"
              EXPR_STMT@87..115
                SESSION_EXPR@87..115
                  SESSION_KW@87..94 "session"
                  LITERAL@95..98
                    STRING@95..98 "\"y\""
                  COLON@98..99 ":"
                  PROPERTY_LIST@99..115
                    PROPERTY@102..115
                      NAME@102..109
                        IDENT@102..109 "context"
                      COLON@109..110 ":"
                      LIST_EXPR@111..115
                        NAME_REF@111..112
                          IDENT@111..112 "a"
                        COMMA@112..113 ","
                        NAME_REF@114..115
                          IDENT@114..115 "b"
              EXPR_STMT@116..138
                SESSION_EXPR@116..138
                  SESSION_KW@116..123 "session"
                  LITERAL@124..127
                    STRING@124..127 "\"z\""
                  MODIFIER_LIST@128..138
                    L_PAREN@128..129 "("
                    MODIFIER@129..137
                      NAME@129..134
                        IDENT@129..134 "retry"
                      COLON@134..135 ":"
                      LITERAL@136..137
                        NUMBER@136..137 "3"
                    R_PAREN@137..138 ")"
            P204@87..94: no `:` is needed after a session's text
            P205@111..115: write a list in brackets: `[a, b]`
            P204@116..123: write a session's properties on indented lines: `retry: 3`
        "#]],
    );
}

#[test]
fn named_session_and_prompt_only() {
    check(
        r#"session n:
  prompt: "x"
session:
  prompt: "y"
"#,
        expect![[r#"
            SOURCE_FILE@0..48
              EXPR_STMT@0..24
                SESSION_EXPR@0..24
                  SESSION_KW@0..7 "session"
                  NAME@8..9
                    IDENT@8..9 "n"
                  COLON@9..10 ":"
                  PROPERTY_LIST@10..24
                    PROPERTY@13..24
                      NAME@13..19
                        IDENT@13..19 "prompt"
                      COLON@19..20 ":"
                      LITERAL@21..24
                        STRING@21..24 "\"x\""
              EXPR_STMT@25..47
                SESSION_EXPR@25..47
                  SESSION_KW@25..32 "session"
                  COLON@32..33 ":"
                  PROPERTY_LIST@33..47
                    PROPERTY@36..47
                      NAME@36..42
                        IDENT@36..42 "prompt"
                      COLON@42..43 ":"
                      LITERAL@44..47
                        STRING@44..47 "\"y\""
            P203@0..7: session has a name but no agent: write `let name = session "…"`, or name the agent after `:`
            P204@25..32: session without an agent: write its prompt on the line, `session "…"`
        "#]],
    );
}

#[test]
fn context_lines() {
    check(
        r#"session "x"
  context:
    a: b
    c: "d"
"#,
        expect![[r#"
            SOURCE_FILE@0..43
              EXPR_STMT@0..42
                SESSION_EXPR@0..42
                  SESSION_KW@0..7 "session"
                  LITERAL@8..11
                    STRING@8..11 "\"x\""
                  PROPERTY_LIST@11..42
                    PROPERTY@14..42
                      NAME@14..21
                        IDENT@14..21 "context"
                      COLON@21..22 ":"
                      PROPERTY_LIST@22..42
                        PROPERTY@27..31
                          NAME@27..28
                            IDENT@27..28 "a"
                          COLON@28..29 ":"
                          NAME_REF@30..31
                            IDENT@30..31 "b"
                        PROPERTY@36..42
                          NAME@36..37
                            IDENT@36..37 "c"
                          COLON@37..38 ":"
                          LITERAL@39..42
                            STRING@39..42 "\"d\""
            P306@14..22: write the context as a record: `context: { key: value }`
        "#]],
    );
}

#[test]
fn resume() {
    check(
        r#"resume: a
  prompt: "x"
let r = resume: a
"#,
        expect![[r#"
            SOURCE_FILE@0..42
              EXPR_STMT@0..23
                RESUME_EXPR@0..23
                  RESUME_KW@0..6 "resume"
                  COLON@6..7 ":"
                  NAME_REF@8..9
                    IDENT@8..9 "a"
                  PROPERTY_LIST@9..23
                    PROPERTY@12..23
                      NAME@12..18
                        IDENT@12..18 "prompt"
                      COLON@18..19 ":"
                      LITERAL@20..23
                        STRING@20..23 "\"x\""
              LET_STMT@24..41
                LET_KW@24..27 "let"
                NAME@28..29
                  IDENT@28..29 "r"
                EQ@30..31 "="
                RESUME_EXPR@32..41
                  RESUME_KW@32..38 "resume"
                  COLON@38..39 ":"
                  NAME_REF@40..41
                    IDENT@40..41 "a"
        "#]],
    );
}

#[test]
fn do_block_and_call() {
    check(
        r#"do:
  session "a"
do f
do f(x, n - 1)
let v = do f(k: 1)
"#,
        expect![[r#"
            SOURCE_FILE@0..57
              EXPR_STMT@0..17
                DO_EXPR@0..17
                  DO_KW@0..2 "do"
                  COLON@2..3 ":"
                  BODY@3..17
                    EXPR_STMT@6..17
                      SESSION_EXPR@6..17
                        SESSION_KW@6..13 "session"
                        LITERAL@14..17
                          STRING@14..17 "\"a\""
              EXPR_STMT@18..22
                DO_CALL_EXPR@18..22
                  DO_KW@18..20 "do"
                  NAME_REF@21..22
                    IDENT@21..22 "f"
              EXPR_STMT@23..37
                DO_CALL_EXPR@23..37
                  DO_KW@23..25 "do"
                  NAME_REF@26..27
                    IDENT@26..27 "f"
                  ARG_LIST@27..37
                    L_PAREN@27..28 "("
                    ARG@28..29
                      NAME_REF@28..29
                        IDENT@28..29 "x"
                    COMMA@29..30 ","
                    ARG@31..36
                      BIN_EXPR@31..36
                        NAME_REF@31..32
                          IDENT@31..32 "n"
                        MINUS@33..34 "-"
                        LITERAL@35..36
                          NUMBER@35..36 "1"
                    R_PAREN@36..37 ")"
              LET_STMT@38..56
                LET_KW@38..41 "let"
                NAME@42..43
                  IDENT@42..43 "v"
                EQ@44..45 "="
                DO_CALL_EXPR@46..56
                  DO_KW@46..48 "do"
                  NAME_REF@49..50
                    IDENT@49..50 "f"
                  ARG_LIST@50..56
                    L_PAREN@50..51 "("
                    ARG@51..55
                      NAME@51..52
                        IDENT@51..52 "k"
                      COLON@52..53 ":"
                      LITERAL@54..55
                        NUMBER@54..55 "1"
                    R_PAREN@55..56 ")"
        "#]],
    );
}

#[test]
fn parallel_with_branches() {
    check(
        r#"parallel ("any", count: 2, on-fail: "ignore"):
  a = session "x"
  session "y"
"#,
        expect![[r#"
            SOURCE_FILE@0..79
              EXPR_STMT@0..78
                PARALLEL_EXPR@0..78
                  PARALLEL_KW@0..8 "parallel"
                  MODIFIER_LIST@9..45
                    L_PAREN@9..10 "("
                    MODIFIER@10..15
                      LITERAL@10..15
                        STRING@10..15 "\"any\""
                    COMMA@15..16 ","
                    MODIFIER@17..25
                      NAME@17..22
                        IDENT@17..22 "count"
                      COLON@22..23 ":"
                      LITERAL@24..25
                        NUMBER@24..25 "2"
                    COMMA@25..26 ","
                    MODIFIER@27..44
                      NAME@27..34
                        IDENT@27..34 "on-fail"
                      COLON@34..35 ":"
                      LITERAL@36..44
                        STRING@36..44 "\"ignore\""
                    R_PAREN@44..45 ")"
                  COLON@45..46 ":"
                  BODY@46..78
                    ASSIGN_STMT@49..64
                      NAME_REF@49..50
                        IDENT@49..50 "a"
                      EQ@51..52 "="
                      SESSION_EXPR@53..64
                        SESSION_KW@53..60 "session"
                        LITERAL@61..64
                          STRING@61..64 "\"x\""
                    EXPR_STMT@67..78
                      SESSION_EXPR@67..78
                        SESSION_KW@67..74 "session"
                        LITERAL@75..78
                          STRING@75..78 "\"y\""
        "#]],
    );
}

#[test]
fn for_and_parallel_for() {
    check(
        r#"for x, i in xs:
  do f(x)
parallel for x in [1, 2] (max: 3):
  do f(x)
"#,
        expect![[r#"
            SOURCE_FILE@0..71
              EXPR_STMT@0..25
                FOR_EXPR@0..25
                  FOR_KW@0..3 "for"
                  NAME@4..5
                    IDENT@4..5 "x"
                  COMMA@5..6 ","
                  NAME@7..8
                    IDENT@7..8 "i"
                  IN_KW@9..11 "in"
                  NAME_REF@12..14
                    IDENT@12..14 "xs"
                  COLON@14..15 ":"
                  BODY@15..25
                    EXPR_STMT@18..25
                      DO_CALL_EXPR@18..25
                        DO_KW@18..20 "do"
                        NAME_REF@21..22
                          IDENT@21..22 "f"
                        ARG_LIST@22..25
                          L_PAREN@22..23 "("
                          ARG@23..24
                            NAME_REF@23..24
                              IDENT@23..24 "x"
                          R_PAREN@24..25 ")"
              EXPR_STMT@26..70
                FOR_EXPR@26..70
                  PARALLEL_KW@26..34 "parallel"
                  FOR_KW@35..38 "for"
                  NAME@39..40
                    IDENT@39..40 "x"
                  IN_KW@41..43 "in"
                  LIST_EXPR@44..50
                    L_BRACK@44..45 "["
                    LITERAL@45..46
                      NUMBER@45..46 "1"
                    COMMA@46..47 ","
                    LITERAL@48..49
                      NUMBER@48..49 "2"
                    R_BRACK@49..50 "]"
                  MODIFIER_LIST@51..59
                    L_PAREN@51..52 "("
                    MODIFIER@52..58
                      NAME@52..55
                        IDENT@52..55 "max"
                      COLON@55..56 ":"
                      LITERAL@57..58
                        NUMBER@57..58 "3"
                    R_PAREN@58..59 ")"
                  COLON@59..60 ":"
                  BODY@60..70
                    EXPR_STMT@63..70
                      DO_CALL_EXPR@63..70
                        DO_KW@63..65 "do"
                        NAME_REF@66..67
                          IDENT@66..67 "f"
                        ARG_LIST@67..70
                          L_PAREN@67..68 "("
                          ARG@68..69
                            NAME_REF@68..69
                              IDENT@68..69 "x"
                          R_PAREN@69..70 ")"
        "#]],
    );
}

#[test]
fn repeat_and_loop() {
    check(
        r#"repeat 3 as i:
  do f
loop until **all done** (max: 5) as i:
  do f
loop while a < 3:
  do f
loop:
  do f
"#,
        expect![[r#"
            SOURCE_FILE@0..106
              EXPR_STMT@0..21
                REPEAT_EXPR@0..21
                  REPEAT_KW@0..6 "repeat"
                  LITERAL@7..8
                    NUMBER@7..8 "3"
                  AS_KW@9..11 "as"
                  NAME@12..13
                    IDENT@12..13 "i"
                  COLON@13..14 ":"
                  BODY@14..21
                    EXPR_STMT@17..21
                      DO_CALL_EXPR@17..21
                        DO_KW@17..19 "do"
                        NAME_REF@20..21
                          IDENT@20..21 "f"
              EXPR_STMT@22..67
                LOOP_EXPR@22..67
                  LOOP_KW@22..26 "loop"
                  UNTIL_KW@27..32 "until"
                  DISCRETION_EXPR@33..45
                    DISCRETION@33..45 "**all done**"
                  MODIFIER_LIST@46..54
                    L_PAREN@46..47 "("
                    MODIFIER@47..53
                      NAME@47..50
                        IDENT@47..50 "max"
                      COLON@50..51 ":"
                      LITERAL@52..53
                        NUMBER@52..53 "5"
                    R_PAREN@53..54 ")"
                  AS_KW@55..57 "as"
                  NAME@58..59
                    IDENT@58..59 "i"
                  COLON@59..60 ":"
                  BODY@60..67
                    EXPR_STMT@63..67
                      DO_CALL_EXPR@63..67
                        DO_KW@63..65 "do"
                        NAME_REF@66..67
                          IDENT@66..67 "f"
              EXPR_STMT@68..92
                LOOP_EXPR@68..92
                  LOOP_KW@68..72 "loop"
                  WHILE_KW@73..78 "while"
                  BIN_EXPR@79..84
                    NAME_REF@79..80
                      IDENT@79..80 "a"
                    LT@81..82 "<"
                    LITERAL@83..84
                      NUMBER@83..84 "3"
                  COLON@84..85 ":"
                  BODY@85..92
                    EXPR_STMT@88..92
                      DO_CALL_EXPR@88..92
                        DO_KW@88..90 "do"
                        NAME_REF@91..92
                          IDENT@91..92 "f"
              EXPR_STMT@93..105
                LOOP_EXPR@93..105
                  LOOP_KW@93..97 "loop"
                  COLON@97..98 ":"
                  BODY@98..105
                    EXPR_STMT@101..105
                      DO_CALL_EXPR@101..105
                        DO_KW@101..103 "do"
                        NAME_REF@104..105
                          IDENT@104..105 "f"
        "#]],
    );
}

#[test]
fn if_elif_else() {
    check(
        r#"if **one thing**:
  do f
elif a and not b:
  do g
else:
  do h
"#,
        expect![[r#"
            SOURCE_FILE@0..63
              EXPR_STMT@0..62
                IF_EXPR@0..62
                  IF_KW@0..2 "if"
                  DISCRETION_EXPR@3..16
                    DISCRETION@3..16 "**one thing**"
                  COLON@16..17 ":"
                  BODY@17..24
                    EXPR_STMT@20..24
                      DO_CALL_EXPR@20..24
                        DO_KW@20..22 "do"
                        NAME_REF@23..24
                          IDENT@23..24 "f"
                  ELIF_CLAUSE@25..49
                    ELIF_KW@25..29 "elif"
                    BIN_EXPR@30..41
                      NAME_REF@30..31
                        IDENT@30..31 "a"
                      AND_KW@32..35 "and"
                      PREFIX_EXPR@36..41
                        NOT_KW@36..39 "not"
                        NAME_REF@40..41
                          IDENT@40..41 "b"
                    COLON@41..42 ":"
                    BODY@42..49
                      EXPR_STMT@45..49
                        DO_CALL_EXPR@45..49
                          DO_KW@45..47 "do"
                          NAME_REF@48..49
                            IDENT@48..49 "g"
                  ELSE_CLAUSE@50..62
                    ELSE_KW@50..54 "else"
                    COLON@54..55 ":"
                    BODY@55..62
                      EXPR_STMT@58..62
                        DO_CALL_EXPR@58..62
                          DO_KW@58..60 "do"
                          NAME_REF@61..62
                            IDENT@61..62 "h"
        "#]],
    );
}

#[test]
fn else_if_and_one_line_bodies() {
    check(
        r#"if a: do f
else if b: do g
else: do h
"#,
        expect![[r#"
            SOURCE_FILE@0..38
              EXPR_STMT@0..37
                IF_EXPR@0..37
                  IF_KW@0..2 "if"
                  NAME_REF@3..4
                    IDENT@3..4 "a"
                  COLON@4..5 ":"
                  BODY@6..10
                    EXPR_STMT@6..10
                      DO_CALL_EXPR@6..10
                        DO_KW@6..8 "do"
                        NAME_REF@9..10
                          IDENT@9..10 "f"
                  ELIF_CLAUSE@11..26
                    ELSE_KW@11..15 "else"
                    IF_KW@16..18 "if"
                    NAME_REF@19..20
                      IDENT@19..20 "b"
                    COLON@20..21 ":"
                    BODY@22..26
                      EXPR_STMT@22..26
                        DO_CALL_EXPR@22..26
                          DO_KW@22..24 "do"
                          NAME_REF@25..26
                            IDENT@25..26 "g"
                  ELSE_CLAUSE@27..37
                    ELSE_KW@27..31 "else"
                    COLON@31..32 ":"
                    BODY@33..37
                      EXPR_STMT@33..37
                        DO_CALL_EXPR@33..37
                          DO_KW@33..35 "do"
                          NAME_REF@36..37
                            IDENT@36..37 "h"
            P305@6..8: put the body on an indented line of its own
            P213@11..15: write `elif`
            P305@22..24: put the body on an indented line of its own
            P305@33..35: put the body on an indented line of its own
        "#]],
    );
}

#[test]
fn choice() {
    check(
        r#"choice **which of them**:
  option "a":
    do f
  # c
  option "b":
    do g
"#,
        expect![[r##"
            SOURCE_FILE@0..78
              EXPR_STMT@0..77
                CHOICE_EXPR@0..77
                  CHOICE_KW@0..6 "choice"
                  DISCRETION_EXPR@7..24
                    DISCRETION@7..24 "**which of them**"
                  COLON@24..25 ":"
                  OPTION_LIST@25..77
                    CHOICE_OPTION@28..48
                      OPTION_KW@28..34 "option"
                      LITERAL@35..38
                        STRING@35..38 "\"a\""
                      COLON@38..39 ":"
                      BODY@39..48
                        EXPR_STMT@44..48
                          DO_CALL_EXPR@44..48
                            DO_KW@44..46 "do"
                            NAME_REF@47..48
                              IDENT@47..48 "f"
                    COMMENT@51..54 "# c"
                    CHOICE_OPTION@57..77
                      OPTION_KW@57..63 "option"
                      LITERAL@64..67
                        STRING@64..67 "\"b\""
                      COLON@67..68 ":"
                      BODY@68..77
                        EXPR_STMT@73..77
                          DO_CALL_EXPR@73..77
                            DO_KW@73..75 "do"
                            NAME_REF@76..77
                              IDENT@76..77 "g"
        "##]],
    );
}

#[test]
fn try_catch_finally() {
    check(
        r#"try:
  do f
catch as err:
  throw
finally:
  do g
"#,
        expect![[r#"
            SOURCE_FILE@0..50
              EXPR_STMT@0..49
                TRY_EXPR@0..49
                  TRY_KW@0..3 "try"
                  COLON@3..4 ":"
                  BODY@4..11
                    EXPR_STMT@7..11
                      DO_CALL_EXPR@7..11
                        DO_KW@7..9 "do"
                        NAME_REF@10..11
                          IDENT@10..11 "f"
                  CATCH_CLAUSE@12..33
                    CATCH_KW@12..17 "catch"
                    AS_KW@18..20 "as"
                    NAME@21..24
                      IDENT@21..24 "err"
                    COLON@24..25 ":"
                    BODY@25..33
                      THROW_STMT@28..33
                        THROW_KW@28..33 "throw"
                  FINALLY_CLAUSE@34..49
                    FINALLY_KW@34..41 "finally"
                    COLON@41..42 ":"
                    BODY@42..49
                      EXPR_STMT@45..49
                        DO_CALL_EXPR@45..49
                          DO_KW@45..47 "do"
                          NAME_REF@48..49
                            IDENT@48..49 "g"
        "#]],
    );
}
