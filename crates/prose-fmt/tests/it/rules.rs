//! Each rule of the style.

use expect_test::{Expect, expect};

use crate::formatted;

#[track_caller]
fn check(text: &str, expect: Expect) {
    expect.assert_eq(&formatted(text));
}

#[test]
fn blanks_within_a_line() {
    check(
        r#"use "a/b"   as   x
let y=1+2  -3
let z = not(a==b)and - c<=d
agent a :
  model:opus
x = f( k:1 ,l : [ 1,2 ] ,m:{a ,b:2} )
do g (1)
let {a,b}={  }
y. z = xs[ 0 ].length
session "a"(retry:3)
session "a"->session "b"
let r = xs|map:session "x"
loop until **done**(max:3)as i:
  break
block f (a,b)(max_depth:5):
  throw
"#,
        expect![[r#"
            use "a/b" as x
            let y = 1 + 2 - 3
            let z = not (a == b) and -c <= d

            agent a:
              model: opus

            x = f(k: 1, l: [1, 2], m: { a, b: 2 })
            do g(1)
            let { a, b } = {}
            y.z = xs[0].length
            session "a" (retry: 3)
            session "a" -> session "b"
            let r = xs | map: session "x"
            loop until **done** (max: 3) as i:
              break

            block f(a, b) (max_depth: 5):
              throw
        "#]],
    );
}

#[test]
fn indentation_is_two_blanks() {
    check(
        r#"if **a thing**:
    session "x"
        context: y
    repeat 3:
     do f
elif b:
 try:
      throw
 catch as e:
     session "y"
 finally:
        session "z"
else:
	session "w"
choice **which one**:
    option "a":
        do f
"#,
        expect![[r#"
            if **a thing**:
              session "x"
                context: y
              repeat 3:
                do f
            elif b:
              try:
                throw
              catch as e:
                session "y"
              finally:
                session "z"
            else:
              session "w"
            choice **which one**:
              option "a":
                do f
        "#]],
    );
}

#[test]
fn empty_lines() {
    check(
        r#"

# head


use "a/b"
agent a:

  model: opus


  prompt: "x"

let x = 1
let y = 2



let z = 3
# about f
block f():

  # first

  session "a"



  session "b"

  # last


do f
# header

agent b:
  model: opus


"#,
        expect![[r##"
            # head

            use "a/b"

            agent a:
              model: opus

              prompt: "x"

            let x = 1
            let y = 2

            let z = 3

            # about f
            block f():
              # first

              session "a"

              session "b"

              # last

            do f
            # header

            agent b:
              model: opus
        "##]],
    );
}

#[test]
fn comments_above_a_list_at_the_left_go_with_it() {
    check(
        r##"session "a"
  context: # why
  # the first

  # of two
  - b
  # another
  - c
choice **which**:
# one way
option "d":
  do d
# or the other
option "e":
  do e
"##,
        expect![[r#"
            session "a"
              context: # why
                # the first

                # of two
                - b
                # another
                - c
            choice **which**:
              # one way
              option "d":
                do d
              # or the other
              option "e":
                do e
        "#]],
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        r##"session "a"     # aligned
session "b"# none
#top
if a:   # behind the colon
        # before the first
        do f
    # end of the body
  # end, too
# before else
else:
  do g
# after
agent a:
  # in an empty agent

do h
for x in xs:
  # nothing here yet
do i
session: a
    # about the prompt
    prompt: "x"  # behind
    # after the prompt
let l = [ # open
  1, # one
      # before two
  2
  # last
]
let v =  # why
      5
# end"##,
        expect![[r#"
            session "a"     # aligned
            session "b"  # none
            #top
            if a:   # behind the colon
              # before the first
              do f
            # end of the body
            # end, too
            # before else
            else:
              do g

            # after
            agent a:
              # in an empty agent

            do h
            for x in xs:
              # nothing here yet
            do i
            session: a
              # about the prompt
              prompt: "x"  # behind
              # after the prompt
            let l = [ # open
              1, # one
              # before two
              2,
              # last
            ]
            let v =  # why
              5
            # end"#]],
    );
}

#[test]
fn texts_are_never_touched() {
    check(
        r#"agent a:
      prompt: """
   Keep
        this,   please
  """
      permissions:
          read: ["**"]
session: a
        prompt: |
             raw    text
               deeper  

        retry: 2
if ***
  several
     lines
***:
    do f
"#,
        expect![[r#"
            agent a:
              prompt: """
               Keep
                    this,   please
              """
              permissions:
                read: ["**"]

            session: a
              prompt: |
                         raw    text
                           deeper  

              retry: 2
            if ***
              several
                 lines
            ***:
              do f
        "#]],
    );
}

#[test]
fn long_lists_are_broken_and_short_ones_joined() {
    check(
        r#"let a = [
  "short",
  "enough"]
let b = ["one that is rather long", "another one that is rather long", "a third one that is long", "four"]
let c = [
  "kept",
  "as it is",
]
let d = [1, 2,]
let e = do f("one that is rather long", key: "another one that is rather long", more: { a: 1, b: [2, 3] }, x)
let f = do f({ first: "one that is rather long", second: "another one that is rather long", third: "a third" })
block g(first_parameter, second_parameter, third_parameter, fourth_parameter, fifth_parameter, sixth_one):
  if (**the first condition is really true** or **the second condition is really true** or first == second):
    session "x"
      context: { first_parameter, second_parameter, third_parameter, fourth_parameter, fifth_parameter }
let h = [
  # a comment
  1, 2]
let i = [
  """
  text
  """, 3]
"#,
        expect![[r#"
            let a = ["short", "enough"]
            let b = [
              "one that is rather long",
              "another one that is rather long",
              "a third one that is long",
              "four",
            ]
            let c = [
              "kept",
              "as it is",
            ]
            let d = [1, 2]
            let e = do f(
              "one that is rather long",
              key: "another one that is rather long",
              more: { a: 1, b: [2, 3] },
              x,
            )
            let f = do f({
              first: "one that is rather long",
              second: "another one that is rather long",
              third: "a third",
            })

            block g(
              first_parameter,
              second_parameter,
              third_parameter,
              fourth_parameter,
              fifth_parameter,
              sixth_one,
            ):
              if (
                **the first condition is really true**
                or **the second condition is really true**
                or first == second
              ):
                session "x"
                  context: {
                    first_parameter,
                    second_parameter,
                    third_parameter,
                    fourth_parameter,
                    fifth_parameter,
                  }

            let h = [
              # a comment
              1,
              2,
            ]
            let i = [
              """
              text
              """,
              3,
            ]
        "#]],
    );
}

#[test]
fn chains() {
    check(
        r#"let a = xs | filter: **it is good** | map: session "x {item}"
let b = xs | map:
    session "x"
        context: item
let c = xs
| filter:
   session "keep?"
 # now each
  | map: session "one"
         context: item
| reduce(sum, next):
        session "join"
session "a"
    context: x
-> session "b"
    -> session "c"
       context: y
session "a fairly long prompt for the first one" -> session "a fairly long prompt for the second one, too"
let d =
  xs
    | chunks(3)
"#,
        expect![[r#"
            let a = xs | filter: **it is good** | map: session "x {item}"
            let b = xs | map:
              session "x"
                context: item
            let c = xs
              | filter:
                session "keep?"
              # now each
              | map: session "one"
                context: item
              | reduce(sum, next):
                session "join"
            session "a"
                context: x
              -> session "b"
              -> session "c"
                context: y
            session "a fairly long prompt for the first one"
              -> session "a fairly long prompt for the second one, too"
            let d = xs
              | chunks(3)
        "#]],
    );
}

#[test]
fn values_below_their_name_come_up_if_they_fit() {
    check(
        r#"let a =
    session "x"
        context: y
output b =
  "a text that is so long that it does not fit on the line above it, however one turns it, really"
session "x"
  context:
     [a, b]
  skills:
  - "one"
  -   "two"
"#,
        expect![[r#"
            let a = session "x"
              context: y
            output b =
              "a text that is so long that it does not fit on the line above it, however one turns it, really"
            session "x"
              context: [a, b]
              skills:
                - "one"
                - "two"
        "#]],
    );
}

#[test]
fn sessions_inside_brackets() {
    check(
        r#"let a = [session "x" context: y, session: b
   prompt: "z"
     retry: 2]
"#,
        expect![[r#"
            let a = [
              session "x" context: y,
              session: b
                prompt: "z"
                retry: 2,
            ]
        "#]],
    );
}

#[test]
fn line_ends_and_marks_of_the_file_stay() {
    assert_eq!(
        formatted("\u{feff}\r\nif a:\r\n\r\n    do f  \r\n\r\n\r\n"),
        "\u{feff}if a:\r\n  do f\r\n"
    );
    assert_eq!(formatted("if a:\r    do f\r"), "if a:\r  do f\r");
    assert_eq!(formatted("let x=1"), "let x = 1");
    assert_eq!(formatted("let x=1  "), "let x = 1");
    assert_eq!(
        formatted("agent a:\r\n  model: opus\r\nlet x = 1\nlet y = 1\n"),
        "agent a:\r\n  model: opus\r\n\r\nlet x = 1\nlet y = 1\n"
    );
    assert_eq!(formatted(" \n\n"), "");
    assert_eq!(formatted(""), "");
}

#[test]
fn edits_are_small() {
    let text = "let a=1\n\nif b:\n    session \"x\"\n";
    let parse = prose_syntax::parse(text);
    let edits = prose_fmt::format(&parse, text, &prose_fmt::Options::default());
    let shown: Vec<_> = edits.iter().map(|it| (it.range, it.insert.as_str())).collect();
    expect![[r#"[(5..5, " "), (6..6, " "), (17..19, "")]"#]].assert_eq(&format!("{shown:?}"));
}
