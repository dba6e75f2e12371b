//! Programs with errors: what is safe is formatted, the rest keeps its bytes.

use expect_test::{Expect, expect};

use crate::formatted;

#[track_caller]
fn check(text: &str, expect: Expect) {
    expect.assert_eq(&formatted(text));
}

#[test]
fn a_statement_with_an_error_keeps_its_bytes() {
    check(
        "let x=1\nlet  y   =\nlet z=2\nsession   \"open\nlet w=3\n",
        expect![[r#"
            let x = 1
            let  y   =
            let z = 2
            session   "open
            let w = 3
        "#]],
    );
}

#[test]
fn so_does_one_inside_a_body_if_the_body_is_in_its_place() {
    check(
        "if a:\n  let x=1\n  let  y   =\n  let z=2\nif a:\n    let x=1\n    let  y   =\n",
        expect![[r#"
            if a:
              let x = 1
              let  y   =
              let z = 2
            if a:
                let x=1
                let  y   =
        "#]],
    );
}

#[test]
fn a_property_with_an_error_keeps_its_bytes() {
    check(
        "session \"x\"\n  retry:3\n  context:  [a  b}\n  model:opus\nlet x=1\n",
        expect![[r#"
            session "x"
              retry: 3
              context:  [a  b}
              model: opus
            let x = 1
        "#]],
    );
}

#[test]
fn tabs_become_blanks() {
    check(
        "if a:\n\tsession \"x\"\n\t\tcontext: y\nlet x=1\n",
        expect![[r#"
            if a:
              session "x"
                context: y
            let x = 1
        "#]],
    );
}

#[test]
fn columns_that_no_block_has() {
    check(
        "let x=1\nif a:\n    do f\n  do  g\nlet y=1\n   let  z=1\nlet w=1\n",
        expect![[r#"
            let x = 1
            if a:
                do f
              do  g
            let y=1
               let  z=1
            let w = 1
        "#]],
    );
}

#[test]
fn an_open_bracket() {
    check(
        "let x=1\nlet y = [1,  2\nlet z=3\n",
        expect![[r#"
        let x = 1
        let y = [1,  2
        let z = 3
    "#]],
    );
}

#[test]
fn text_that_would_change_when_moved() {
    // Deeper, the lines under `|` would be no text of it.
    check(
        "if a:\n if b:\n  session: c\n   prompt: |\n    text\nlet x=1\n",
        expect![[r#"
            if a:
             if b:
              session: c
               prompt: |
                text
            let x = 1
        "#]],
    );
}
