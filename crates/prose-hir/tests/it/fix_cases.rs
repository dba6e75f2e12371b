//! The table of quick fixes: a program, and what every fix of a code's first finding in it makes of it.

use expect_test::{Expect, expect};

/// One row.
pub struct Case {
    pub code: &'static str,
    pub before: &'static str,
    pub after: Expect,
}

fn case(code: &'static str, before: &'static str, after: Expect) -> Case {
    Case { code, before, after }
}

/// Every row.
pub fn all() -> Vec<Case> {
    [
        characters(),
        layout(),
        words(),
        sessions(),
        lists_and_bodies(),
        declarations(),
        names(),
        agents(),
        properties(),
        modifiers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn characters() -> Vec<Case> {
    vec![
        case(
            "P102",
            "do:\n	session \"a\" # one\n",
            expect![[r#"
            -- Indent with spaces (automatic)
            do:
              session "a" # one
        "#]],
        ),
        case(
            "P102",
            "do:\n  do:\n  	session \"a\"\n  	session \"b\"\n",
            expect![[r#"
                -- Indent with spaces (automatic)
                do:
                  do:
                    session "a"
                  	session "b"
            "#]],
        ),
        case(
            "P102",
            "do:\n	 	session \"a\"\n",
            expect![[r#"
            -- Indent with spaces (automatic)
            do:
                session "a"
        "#]],
        ),
        case(
            "E002",
            "session \"a\\d+ b\"\n",
            expect![[r#"
            -- Double the backslash (automatic)
            session "a\\d+ b"
        "#]],
        ),
        case(
            "E002",
            "session \"it\\'s\"\n",
            expect![[r#"
                -- Double the backslash
                session "it\\'s"
                -- Remove the backslash
                session "it's"
            "#]],
        ),
        case(
            "E001",
            "session \"a\nsession \"b\"\n",
            expect![[r#"
            -- Add `"`
            session "a"
            session "b"
        "#]],
        ),
        case(
            "P221",
            "session\u{a0}\"a\"\n",
            expect![[r#"
            -- Replace with a space (automatic)
            session "a"
        "#]],
        ),
        case(
            "P301",
            "if **it\n  rains**:\n  session \"a\"\n",
            expect![[r#"
            -- Write `***` (automatic)
            if ***it
              rains***:
              session "a"
        "#]],
        ),
        case(
            "P220",
            "agent a:\n  persist: .notes/a/\nsession: a\n  prompt: \"x\"\n",
            expect![[r#"
                -- Put it into quotes (automatic)
                agent a:
                  persist: ".notes/a/"
                session: a
                  prompt: "x"
            "#]],
        ),
        case(
            "E005",
            "use alice/research\n",
            expect![[r#"
            -- Put it into quotes
            use "alice/research"
        "#]],
        ),
        case(
            "P101",
            "if **it rains: # today\n  session \"a\"\n",
            expect![[r#"
                -- Add `**`
                if **it rains**: # today
                  session "a"
            "#]],
        ),
        case(
            "P101",
            "loop until **it is good (max: 3):\n  session \"a\"\n",
            expect![[r#"
                -- Add `**`
                loop until **it is good (max: 3)**:
                  session "a"
            "#]],
        ),
        case(
            "P108",
            "repeat 3s:\n  session \"a\"\n",
            expect![[r#"
            -- Write `3`
            repeat 3:
              session "a"
        "#]],
        ),
    ]
}

fn layout() -> Vec<Case> {
    vec![
        case(
            "P103",
            "if **it rains**:\n    session \"a\"\n  session \"b\" # two\n  session \"c\"\nsession \"d\"\n",
            expect![[r#"
                -- Align it with the block
                if **it rains**:
                    session "a"
                    session "b" # two
                    session "c"
                session "d"
            "#]],
        ),
        case(
            "P103",
            "do:\n  do:\n      session \"a\"\n     # note\n     session \"\"\"\n  text\n\"\"\"\n  session \"b\"\n",
            expect![[r#"
                -- Align it with the block
                do:
                  do:
                      session "a"
                     # note
                      session """
                  text
                """
                  session "b"
            "#]],
        ),
        case(
            "P103",
            "do:\n      session \"a\" # one\n    session \"b\"\n    session \"c\"\nsession \"d\"\n",
            expect![[r#"
                -- Align it with the block
                do:
                      session "a" # one
                      session "b"
                      session "c"
                session "d"
            "#]],
        ),
        case(
            "P104",
            "session \"a\"\n    session \"b\" # two\n    session \"c\"\n\n# end\nsession \"d\"\n",
            expect![[r#"
                -- Remove the indentation
                session "a"
                session "b" # two
                session "c"

                # end
                session "d"
            "#]],
        ),
        case(
            "P105",
            "let x = [\"a\", \"b\" # list\nsession \"c\"\n  context: x\n",
            expect![[r#"
                -- Add `]`
                let x = ["a", "b"] # list
                session "c"
                  context: x
            "#]],
        ),
        case(
            "P105",
            "loop until **good** (max: 3:\n  session \"a\"\n",
            expect![[r#"
                -- Add `)`
                loop until **good** (max: 3):
                  session "a"
            "#]],
        ),
        case(
            "P216",
            "choice **which**: # now\noption \"a\":\n  session \"\"\"\n  a\n  \"\"\"\n# second\noption \"b\":\n  session \"b\"\nsession \"c\"\n",
            expect![[r#"
                -- Indent the options (automatic)
                choice **which**: # now
                  option "a":
                    session """
                  a
                  """
                  # second
                  option "b":
                    session "b"
                session "c"
            "#]],
        ),
        case(
            "E004",
            "if the draft is good:\n  session \"a\"\n",
            expect![[r#"
                -- Put it between stars
                if **the draft is good**:
                  session "a"
            "#]],
        ),
        case(
            "E004",
            "let ys = [1] | map (x):\n  session \"{item}\"\n",
            expect![[r#"
                -- Remove the name
                let ys = [1] | map:
                  session "{item}"
            "#]],
        ),
        case(
            "E004",
            "for x of [1]:\n  session \"{x}\"\n",
            expect![[r#"
            -- Write `in` (automatic)
            for x in [1]:
              session "{x}"
        "#]],
        ),
        case(
            "E004",
            "if **it rains** {\n  session \"a\" # one\n} else {\n  session \"b\"\n}\nsession \"c\"\n",
            expect![[r#"
                -- Write `:` and indent
                if **it rains**:
                  session "a" # one
                else:
                  session "b"
                session "c"
            "#]],
        ),
        case(
            "E004",
            "let x = 1\nif x == 1 {\n  session \"a\"\n}\n",
            expect![[r#"
                -- Write `:` and indent
                let x = 1
                if x == 1:
                  session "a"
            "#]],
        ),
        case(
            "E005",
            "session \"a\"\nprompt: \"b\" # two\nsession \"c\"\n",
            expect![[r#"
                -- Indent it under the session
                session "a"
                  prompt: "b" # two
                session "c"
            "#]],
        ),
        case(
            "E005",
            "topic: \"a\"\nsession \"about {topic}\"\n",
            expect![[r#"
            -- Write `let topic = …`
            let topic = "a"
            session "about {topic}"
        "#]],
        ),
    ]
}

fn words() -> Vec<Case> {
    vec![
        case(
            "P213",
            "let x = 1\nif x == 1:\n  session \"a\"\nelse  if x == 2:\n  session \"b\"\n",
            expect![[r#"
                -- Write `elif` (automatic)
                let x = 1
                if x == 1:
                  session "a"
                elif x == 2:
                  session "b"
            "#]],
        ),
        case(
            "P269",
            "if \"the draft is good\": # why\n  session \"a\"\n",
            expect![[r#"
                -- Put it between asterisks
                if **the draft is good**: # why
                  session "a"
            "#]],
        ),
        case(
            "P223",
            "let x = 1\nif x is 1: # why\n  session \"a\"\n",
            expect![[r#"
                -- Write `==` (automatic)
                let x = 1
                if x == 1: # why
                  session "a"
            "#]],
        ),
        case(
            "P223",
            "let x = 1\nif x is  not 2: # why\n  session \"a\"\n",
            expect![[r#"
                -- Write `!=` (automatic)
                let x = 1
                if x != 2: # why
                  session "a"
            "#]],
        ),
        case(
            "P214",
            "try:\n  session \"a\"\ncatch err:\n  session \"b {err.message}\"\n",
            expect![[r#"
                -- Add `as` (automatic)
                try:
                  session "a"
                catch as err:
                  session "b {err.message}"
            "#]],
        ),
        case(
            "E004",
            "let x = 1\nif x == 1&&x < 2:\n  session \"a\"\n",
            expect![[r#"
                -- Write `and` (automatic)
                let x = 1
                if x == 1 and x < 2:
                  session "a"
            "#]],
        ),
        case(
            "E004",
            "let x = 1\nif x == 1 || x < 2:\n  session \"a\"\n",
            expect![[r#"
                -- Write `or` (automatic)
                let x = 1
                if x == 1 or x < 2:
                  session "a"
            "#]],
        ),
        case(
            "E004",
            "let x = 1\nif x = 1:\n  session \"a\"\n",
            expect![[r#"
            -- Write `==`
            let x = 1
            if x == 1:
              session "a"
        "#]],
        ),
        case(
            "E004",
            "sesion \"a\"\n",
            expect![[r#"
            -- Replace with `session`
            session "a"
        "#]],
        ),
        case(
            "E005",
            "repeat 3\n  session \"a\"\n",
            expect![[r#"
            -- Add `:`
            repeat 3:
              session "a"
        "#]],
        ),
        case(
            "E005",
            "do\n  session \"a\"\n",
            expect![[r#"
            -- Add `:`
            do:
              session "a"
        "#]],
        ),
        case(
            "E005",
            "session \"a\"\n  retry 3\n",
            expect![[r#"
            -- Add `:`
            session "a"
              retry: 3
        "#]],
        ),
        case(
            "P308",
            "let n = 2\nloop (max: {n}):\n  session \"a\"\n",
            expect![[r#"
                -- Remove the braces (automatic)
                let n = 2
                loop (max: n):
                  session "a"
            "#]],
        ),
        case(
            "P307",
            "loop as i (max: 5) until **good {i}**: # go\n  session \"a\"\n",
            expect![[r#"
                -- Put the parts in order (automatic)
                loop until **good {i}** (max: 5) as i: # go
                  session "a"
            "#]],
        ),
        case(
            "P307",
            "repeat 3 as i:\n  loop (max: 3) while **bad**:\n    session \"a {i}\"\n",
            expect![[r#"
                -- Put the parts in order (automatic)
                repeat 3 as i:
                  loop while **bad** (max: 3):
                    session "a {i}"
            "#]],
        ),
        case(
            "P208",
            "block f(x): # f\n  return x + \"a\"\nlet y = do f(\"b\")\nsession \"c {y}\"\n",
            expect![[r#"
                -- Write `output` (automatic)
                block f(x): # f
                  output x + "a"
                let y = do f("b")
                session "c {y}"
            "#]],
        ),
        case(
            "P208",
            "let x = session \"a\"\nassert x == \"b\": \"no\"\nsession \"c\"\n",
            expect![[r#"
                -- Write `if not …` and `throw`
                let x = session "a"
                if not (x == "b"):
                  throw "no"
                session "c"
            "#]],
        ),
        case(
            "P208",
            "let x = session \"a\"\nassert **{x} is fine**\nsession \"c\"\n",
            expect![[r#"
                -- Write `if not …` and `throw`
                let x = session "a"
                if not **{x} is fine**:
                  throw "the assertion failed"
                session "c"
            "#]],
        ),
        case(
            "P215",
            "input the_topic # what\nsession \"a {the_topic}\"\n",
            expect![[r#"
                -- Describe it by its name
                input the_topic: "the topic" # what
                session "a {the_topic}"
            "#]],
        ),
        case(
            "P215",
            "input topic:\nsession \"a {topic}\"\n",
            expect![[r#"
            -- Describe it by its name
            input topic: "topic"
            session "a {topic}"
        "#]],
        ),
        case(
            "P202",
            "let x = **the better one of two**\nsession \"a {x}\"\n",
            expect![[r#"
                -- Ask a session instead
                let x = session "the better one of two"
                session "a {x}"
            "#]],
        ),
        case(
            "P219",
            "let x = session \"a\"\noutput y: x\n",
            expect![[r#"
            -- Write `=` (automatic)
            let x = session "a"
            output y = x
        "#]],
        ),
    ]
}

fn sessions() -> Vec<Case> {
    vec![
        case(
            "E003",
            "agent a:\n  prompt: \"You are a.\"\nsession a\n",
            expect![[r#"
                -- Write `session: a`
                agent a:
                  prompt: "You are a."
                session: a
            "#]],
        ),
        case(
            "P204",
            "session: \"a\"\n",
            expect![[r#"
            -- Remove `:` (automatic)
            session "a"
        "#]],
        ),
        case(
            "P204",
            "session \"a\":\n  retry: 2\n",
            expect![[r#"
            -- Remove `:` (automatic)
            session "a"
              retry: 2
        "#]],
        ),
        case(
            "P204",
            "agent a:\n  prompt: \"You are a.\"\nlet x = session: a \"text\"\n  retry: 2\n",
            expect![[r#"
                -- Write the text as `prompt:`
                agent a:
                  prompt: "You are a."
                let x = session: a
                  prompt: "text"
                  retry: 2
            "#]],
        ),
        case(
            "P204",
            "agent a:\n  prompt: \"You are a.\"\ndo:\n  session: a \"text\"\n",
            expect![[r#"
                -- Write the text as `prompt:`
                agent a:
                  prompt: "You are a."
                do:
                  session: a
                    prompt: "text"
            "#]],
        ),
        case(
            "P204",
            "session \"a\" (retry: 3, backoff: \"linear\")\n",
            expect![[r#"
                -- Write the properties on lines of their own
                session "a"
                  retry: 3
                  backoff: "linear"
            "#]],
        ),
        case(
            "P204",
            "session \"a\" as x\n  retry: 2\noutput y = x\n",
            expect![[r#"
                -- Write `let x = …`
                let x = session "a"
                  retry: 2
                output y = x
            "#]],
        ),
        case(
            "P204",
            "session:\n  # what to do\n  prompt: \"a\" # a\n  retry: 2\n",
            expect![[r#"
                -- Write the prompt on the session's line
                session "a"
                  # what to do
                  # a
                  retry: 2
            "#]],
        ),
        case(
            "P204",
            "session:\n  prompt: \"\"\"\n    a\n  \"\"\"\n",
            expect![[r#"
                -- Write the prompt on the session's line
                session """
                    a
                  """
            "#]],
        ),
        case(
            "P203",
            "session x:\n  prompt: \"a\"\noutput y = x\n",
            expect![[r#"
            -- Write `let x = session …`
            let x = session "a"
            output y = x
        "#]],
        ),
        case(
            "P203",
            "session x: \"a\"\noutput y = x\n",
            expect![[r#"
            -- Write `let x = session …`
            let x = session "a"
            output y = x
        "#]],
        ),
        case(
            "P203",
            "parallel:\n  session x:\n    prompt: \"a\"\n    retry: 2\n  y = session \"b\"\noutput z = x + y\n",
            expect![[r#"
                -- Write `x = session …`
                parallel:
                  x = session "a"
                    retry: 2
                  y = session "b"
                output z = x + y
            "#]],
        ),
    ]
}

fn lists_and_bodies() -> Vec<Case> {
    vec![
        case(
            "P205",
            "let a = session \"a\"\nlet b = session \"b\"\nsession \"c\"\n  context: a, b\n",
            expect![[r#"
                -- Put the list into brackets (automatic)
                let a = session "a"
                let b = session "b"
                session "c"
                  context: [a, b]
            "#]],
        ),
        case(
            "P209",
            "agent a:\n  skills:\n    - \"x\"\n    - \"y\"\nsession: a\n  prompt: \"x\"\n",
            expect![[r#"
                -- Write the list in brackets (automatic)
                agent a:
                  skills: ["x", "y"]
                session: a
                  prompt: "x"
            "#]],
        ),
        case(
            "P209",
            "agent a:\n  skills:\n  - \"x\"\n  prompt: \"y\"\nsession: a\n",
            expect![[r#"
                -- Write the list in brackets (automatic)
                agent a:
                  skills: ["x"]
                  prompt: "y"
                session: a
            "#]],
        ),
        case(
            "P209",
            "let l =\n  - \"x\"\n  - y\nsession \"{l}\"\n",
            expect![[r#"
                -- Write the list in brackets (automatic)
                let l = ["x", y]
                session "{l}"
            "#]],
        ),
        case(
            "P210",
            "agent a:\n  prompt: |\n    one\n    two\nsession: a\n",
            expect![[r#"
                -- Write `"""` (automatic)
                agent a:
                  prompt: """
                    one
                    two
                  """
                session: a
            "#]],
        ),
        case(
            "P212",
            "let x = [\"a\" \"b\"]\nsession \"c\"\n  context: x\n",
            expect![[r#"
                -- Add a comma (automatic)
                let x = ["a", "b"]
                session "c"
                  context: x
            "#]],
        ),
        case(
            "P305",
            "if **it rains**: session \"a\"\n",
            expect![[r#"
            -- Put it on a line of its own (automatic)
            if **it rains**:
              session "a"
        "#]],
        ),
        case(
            "P306",
            "let x = session \"a\"\nsession \"b\"\n  context:\n    first: x\n    second: \"text\"\n  retry: 2 # two\n",
            expect![[r#"
                -- Write it as an object (automatic)
                let x = session "a"
                session "b"
                  context: { first: x, second: "text" }
                  retry: 2 # two
            "#]],
        ),
    ]
}

fn declarations() -> Vec<Case> {
    vec![
        case(
            "E006",
            "agent a:\n  prompt: \"You are a.\"\n# again\nagent a:\n  prompt: \"You are a.\"\nsession: a\n",
            expect![[r#"
                -- Remove the repeated definition
                agent a:
                  prompt: "You are a."
                # again
                session: a
            "#]],
        ),
        case(
            "P146",
            "block f:\n  session \"a\"\nblock f:\n  session \"a\"\ndo f\n",
            expect![[r#"
                -- Remove the repeated definition
                block f:
                  session "a"
                do f
            "#]],
        ),
        case(
            "E010",
            "use \"alice/research\" as r\nuse \"alice/research\" as r # twice\nr()\n",
            expect![[r#"
                -- Remove the repeated `use`
                use "alice/research" as r
                # twice
                r()
            "#]],
        ),
        case(
            "E011",
            "use \"\" # which?\nsession \"a\"\n",
            expect![[r#"
            -- Remove the `use`
            # which?
            session "a"
        "#]],
        ),
        case(
            "E019",
            "let x = session \"a\"\nlet x = session \"b\" # newer\nsession \"c {x}\"\n",
            expect![[r#"
                -- Drop `let`
                let x = session "a"
                x = session "b" # newer
                session "c {x}"
            "#]],
        ),
        case(
            "E021",
            "input topic: \"a\"\ninput topic: \"b\" # more\nsession \"c {topic}\"\n",
            expect![[r#"
                -- Remove this input
                input topic: "a"
                # more
                session "c {topic}"
            "#]],
        ),
        case(
            "E024",
            "output x = session \"a\"\noutput x = session \"b\"\n",
            expect![[r#"
                -- Drop `output`
                output x = session "a"
                x = session "b"
            "#]],
        ),
        case(
            "P144",
            "const x = session \"a\"\n\nblock f:\n  session \"f\"\n\ndo f\nx = session \"b\" # newer\nsession \"c {x}\"\n",
            expect![[r#"
                -- Declare it with `let`
                let x = session "a"

                block f:
                  session "f"

                do f
                x = session "b" # newer
                session "c {x}"
            "#]],
        ),
        case(
            "P242",
            "let x = session \"a\"\nif **it rains**:\n  let x = session \"b\"\nsession \"c {x}\"\n",
            expect![[r#"
                -- Drop `let`
                let x = session "a"
                if **it rains**:
                  x = session "b"
                session "c {x}"
            "#]],
        ),
        case(
            "P243",
            "x = session \"a\" # new\nsession \"b {x}\"\n",
            expect![[r#"
                -- Add `let`
                let x = session "a" # new
                session "b {x}"
            "#]],
        ),
        case(
            "P248",
            "let x = session \"a\"\noutput x # done\n",
            expect![[r#"
            -- Write `output result = …`
            let x = session "a"
            output result = x # done
        "#]],
        ),
        case(
            "P250",
            "for i, thing in [\"a\", \"b\"]:\n  session \"{thing} {i}\"\n",
            expect![[r#"
                -- Swap the two
                for thing, i in ["a", "b"]:
                  session "{thing} {i}"
            "#]],
        ),
        case(
            "P153",
            "if **it rains**:\n  session \"a\"\n  break # stop\n",
            expect![[r#"
                -- Remove `break`
                if **it rains**:
                  session "a"
                  # stop
            "#]],
        ),
        case(
            "P344",
            "session \"\" # prose: allow W0001\n",
            expect![[r#"
            -- Replace with `W001`
            session "" # prose: allow W001
        "#]],
        ),
        case(
            "P345",
            "session \"a\" # prose: allow W001, P301 why\n",
            expect![[r#"
                -- Remove `W001` from the comment
                session "a" # prose: allow P301 why
            "#]],
        ),
        case(
            "P345",
            "# prose: allow W001\nsession \"a\"\n",
            expect![[r#"
            -- Remove the comment
            session "a"
        "#]],
        ),
        case(
            "L404",
            "let x = session \"a\" # run\n  retry: 2\nsession \"b\"\n",
            expect![[r#"
                -- Drop `let x =`
                session "a" # run
                  retry: 2
                session "b"
            "#]],
        ),
        case(
            "L404",
            "let x = \"a\" # text\nsession \"b\"\n",
            expect![[r#"
            -- Remove the variable
            # text
            session "b"
        "#]],
        ),
        case(
            "L407",
            "use \"lib.prose\" as research # later\nsession \"b\"\n",
            expect![[r#"
                -- Remove the `use`
                # later
                session "b"
            "#]],
        ),
        case(
            "L413",
            "let x = session \"a\"\nsession \"b\"\n  context: [x, x] # twice\n",
            expect![[r#"
                -- Remove the second
                let x = session "a"
                session "b"
                  context: [x] # twice
            "#]],
        ),
        case(
            "L401",
            "# header\n\n# about a\nagent a:\n  # inside\n  prompt: \"a\"\n\n# about the session\nsession \"b\"\n",
            expect![[r#"
                -- Remove agent `a` with its comments
                # header

                # about the session
                session "b"
            "#]],
        ),
        case(
            "L401",
            "agent a:\n  prompt: \"You are a.\"\n\nsession \"b\"\n",
            expect![[r#"
                -- Remove agent `a`
                session "b"
            "#]],
        ),
        case(
            "L402",
            "session \"a\"\n\nblock f(x):\n  session \"b {x}\"\n",
            expect![[r#"
                -- Remove block `f`
                session "a"

            "#]],
        ),
    ]
}

fn names() -> Vec<Case> {
    vec![
        case(
            "E007",
            "agent writer:\n  prompt: \"a\"\nsession: writter\n",
            expect![[r#"
                -- Replace with `writer`
                agent writer:
                  prompt: "a"
                session: writer
                -- Declare agent `writter`
                agent writer:
                  prompt: "a"
                agent writter:
                  prompt: "…"

                session: writter
            "#]],
        ),
        case(
            "E007",
            "# first\nsession: writer # who\n  prompt: \"a\"\n",
            expect![[r#"
                -- Declare agent `writer`
                agent writer:
                  prompt: "…"

                # first
                session: writer # who
                  prompt: "a"
            "#]],
        ),
        case(
            "E007",
            "block f:\n  session \"a\"\ndo f\nsession: f\n",
            expect![[r#"
                -- Write `do f`
                block f:
                  session "a"
                do f
                do f
            "#]],
        ),
        case(
            "P141",
            "block review:\n  session \"a\"\ndo revew\ndo review\n",
            expect![[r#"
                -- Replace with `review`
                block review:
                  session "a"
                do review
                do review
                -- Declare block `revew`
                block review:
                  session "a"
                block revew:
                  session "…"

                do revew
                do review
            "#]],
        ),
        case(
            "P141",
            "do:\n  do review\n",
            expect![[r#"
            -- Declare block `review`
            block review:
              session "…"

            do:
              do review
        "#]],
        ),
        case(
            "P141",
            "agent a:\n  prompt: \"You are a.\"\ndo a\n",
            expect![[r#"
            -- Write `session: a`
            agent a:
              prompt: "You are a."
            session: a
        "#]],
        ),
        case(
            "P142",
            "block f(depth):\n  do f(depth-1)\ndo f(1)\n",
            expect![[r#"
            -- Write `depth - 1`
            block f(depth):
              do f(depth - 1)
            do f(1)
            -- Put it into quotes
            block f(depth):
              do f("depth-1")
            do f(1)
        "#]],
        ),
        case(
            "P142",
            "let topic = session \"a\"\nsession \"b\"\n  context: topci\n",
            expect![[r#"
                -- Replace with `topic`
                let topic = session "a"
                session "b"
                  context: topic
                -- Put it into quotes
                let topic = session "a"
                session "b"
                  context: "topci"
            "#]],
        ),
        case(
            "P142",
            "let topic = text\nsession \"b {topic}\"\n",
            expect![[r#"
            -- Put it into quotes
            let topic = "text"
            session "b {topic}"
        "#]],
        ),
        case(
            "P246",
            "let topic = session \"a\"\nsession \"b {topik}\"\n",
            expect![[r#"
                -- Replace with `topic`
                let topic = session "a"
                session "b {topic}"
            "#]],
        ),
        case(
            "P340",
            "session \"a {name.first} b\" # c\n",
            expect![[r#"
            -- Write `\{name.first\}`
            session "a \{name.first\} b" # c
        "#]],
        ),
        case(
            "P340",
            "session \"\"\"\n  {name}\n\"\"\"\n",
            expect![[r#"
            -- Write `\{name\}`
            session """
              \{name\}
            """
        "#]],
        ),
        case(
            "P251",
            "block f:\n  session \"a\"\nlet x = f\nsession \"b {x}\"\n",
            expect![[r#"
                -- Write `do f`
                block f:
                  session "a"
                let x = do f
                session "b {x}"
            "#]],
        ),
        case(
            "P256",
            "block f(x):\n  session \"a {x}\"\nlet y = f(\"b\")\nsession \"c {y}\"\n",
            expect![[r#"
                -- Write `do f`
                block f(x):
                  session "a {x}"
                let y = do f("b")
                session "c {y}"
            "#]],
        ),
        case(
            "E025",
            "use \"lib.prose\" as research\nlet x = reserch(topic: \"a\")\nsession \"b {x}\"\n",
            expect![[r#"
                -- Replace with `research`
                use "lib.prose" as research
                let x = research(topic: "a")
                session "b {x}"
            "#]],
        ),
        case(
            "E027",
            "use \"lib.prose\" as research\nlet x = research(topik: \"a\", topic: \"b\")\nsession \"b {x}\"\n",
            expect![[r#"
                -- Replace with `topic`
                use "lib.prose" as research
                let x = research(topic: "a", topic: "b")
                session "b {x}"
            "#]],
        ),
        case(
            "E028",
            "use \"lib.prose\" as research\nlet x = research(topic: \"a\").reprot\nsession \"b {x}\"\n",
            expect![[r#"
                -- Replace with `report`
                use "lib.prose" as research
                let x = research(topic: "a").report
                session "b {x}"
            "#]],
        ),
    ]
}

fn agents() -> Vec<Case> {
    vec![
        case(
            "E017",
            "agent a:\n  prompt: \"You are a.\"\n\nsession: a\nresume: a # again\n",
            expect![[r#"
                -- Write `session`
                agent a:
                  prompt: "You are a."

                session: a
                session: a # again
                -- Add `persist: true` to the agent
                agent a:
                  persist: true
                  prompt: "You are a."

                session: a
                resume: a # again
            "#]],
        ),
        case(
            "E018",
            "agent a:\n  persist: true\n  prompt: \"a\"\nresume: a\n",
            expect![[r#"
                -- Write `session`
                agent a:
                  persist: true
                  prompt: "a"
                session: a
            "#]],
        ),
        case(
            "W011",
            "agent a:\n  persist: true\n  prompt: \"a\"\nsession: a\nsession: a\n  prompt: \"b\"\n",
            expect![[r#"
                -- Write `resume`
                agent a:
                  persist: true
                  prompt: "a"
                session: a
                resume: a
                  prompt: "b"
            "#]],
        ),
    ]
}

fn properties() -> Vec<Case> {
    vec![
        case(
            "E008",
            "agent a:\n  model: 4 # four\n  prompt: \"a\"\nsession: a\n",
            expect![[r#"
                -- Put it into quotes
                agent a:
                  model: "4" # four
                  prompt: "a"
                session: a
            "#]],
        ),
        case(
            "E009",
            "session \"a\"\n  model: haiku # cheap\n  model: opus # dear\n",
            expect![[r#"
                -- Remove the other one
                session "a"
                  # cheap
                  model: opus # dear
                -- Remove this one
                session "a"
                  model: haiku # cheap
                  # dear
            "#]],
        ),
        case(
            "E009",
            "agent a:\n  prompt: \"a\"\n  permissions:\n    bash: deny\n    bash: allow\nsession: a\n",
            expect![[r#"
                -- Remove the other one
                agent a:
                  prompt: "a"
                  permissions:
                    bash: allow
                session: a
                -- Remove this one
                agent a:
                  prompt: "a"
                  permissions:
                    bash: deny
                session: a
            "#]],
        ),
        case(
            "E014",
            "import \"4\" from \"y\"\nagent a:\n  prompt: \"a\"\n  skills: [4]\nsession: a\n",
            expect![[r#"
                -- Put it into quotes
                import "4" from "y"
                agent a:
                  prompt: "a"
                  skills: ["4"]
                session: a
            "#]],
        ),
        case(
            "E016",
            "agent a:\n  prompt: \"a\"\n  permissions:\n    read: [4, \"b\"]\nsession: a\n",
            expect![[r#"
                -- Put it into quotes
                agent a:
                  prompt: "a"
                  permissions:
                    read: ["4", "b"]
                session: a
            "#]],
        ),
        case(
            "W004",
            "session \"a\"\n  prompt: \"\"\n",
            expect![[r#"
            -- Remove the empty prompt
            session "a"
        "#]],
        ),
        case(
            "W005",
            "session \"a\"\n  modle: opus\n",
            expect![[r#"
            -- Replace with `model`
            session "a"
              model: opus
            -- Remove what is ignored
            session "a"
        "#]],
        ),
        case(
            "W005",
            "session \"a\"\n  temperature: 1 # hot\n",
            expect![[r#"
            -- Remove what is ignored
            session "a"
              # hot
        "#]],
        ),
        case(
            "W005",
            "session \"a\"\n  env:\n    x: 1\n  retry: 2\n",
            expect![[r#"
                -- Remove what is ignored
                session "a"
                  retry: 2
            "#]],
        ),
        case(
            "W008",
            "agent a:\n  prompt: \"a\"\n  permissions:\n    reed: deny\nsession: a\n",
            expect![[r#"
                -- Replace with `read`
                agent a:
                  prompt: "a"
                  permissions:
                    read: deny
                session: a
            "#]],
        ),
        case(
            "W009",
            "agent a:\n  prompt: \"a\"\n  permissions:\n    bash: alow\n    read: 5\nsession: a\n",
            expect![[r#"
                -- Replace with `allow`
                agent a:
                  prompt: "a"
                  permissions:
                    bash: allow
                    read: 5
                session: a
            "#]],
        ),
        case(
            "W009",
            "agent a:\n  prompt: \"a\"\n  permissions:\n    bash: sometimes # or not\nsession: a\n",
            expect![[r#"
                -- Write `prompt`, which is taken anyway
                agent a:
                  prompt: "a"
                  permissions:
                    bash: prompt # or not
                session: a
            "#]],
        ),
        case(
            "W010",
            "agent a:\n  prompt: \"a\"\n  skills: [] # none\nsession: a\n",
            expect![[r#"
                -- Remove the empty list (automatic)
                agent a:
                  prompt: "a"
                  # none
                session: a
            "#]],
        ),
        case(
            "P241",
            "agent a:\n  prompt: \"a\"\n  model: sonet\nsession: a\n",
            expect![[r#"
                -- Replace with `sonnet`
                agent a:
                  prompt: "a"
                  model: sonnet
                session: a
                -- Put it into quotes
                agent a:
                  prompt: "a"
                  model: "sonet"
                session: a
            "#]],
        ),
        case(
            "P258",
            "agent a:\n  prompt: \"a\"\n  skills: \"x\"\nsession: a\n",
            expect![[r#"
                -- Put it in brackets (automatic)
                agent a:
                  prompt: "a"
                  skills: ["x"]
                session: a
            "#]],
        ),
        case(
            "P258",
            "agent a:\n  prompt: \"a\"\n  persist: 1\nsession: a\n",
            expect![[r#"
                -- Write `true`, which is taken anyway (automatic)
                agent a:
                  prompt: "a"
                  persist: true
                session: a
            "#]],
        ),
        case(
            "P258",
            "session \"a\"\n  backoff: \"Linear\"\n",
            expect![[r#"
            -- Replace with "linear"
            session "a"
              backoff: "linear"
        "#]],
        ),
    ]
}

fn modifiers() -> Vec<Case> {
    vec![
        case(
            "P249",
            "parallel (\"race\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Write "first" (automatic)
                parallel ("first"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (\"frist\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Replace with "first"
                parallel ("first"):
                  session "a"
                  session "b"
                -- Remove what is ignored
                parallel:
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (join: \"frist\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Replace with "first"
                parallel ("first"):
                  session "a"
                  session "b"
                -- Remove what is ignored
                parallel:
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (join: first, on-fail: \"ignore\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Remove the name (automatic)
                parallel ("first", on-fail: "ignore"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (on-fail: \"collect\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Write "continue" (automatic)
                parallel (on-fail: "continue"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (on-fail: \"ignored\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Replace with "ignore"
                parallel (on-fail: "ignore"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (on_fail: \"ignore\", count: 2):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Replace with `on-fail`
                parallel (on-fail: "ignore", count: 2):
                  session "a"
                  session "b"
                -- Remove what is ignored
                parallel (count: 2):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (on-fail: \"ignore\", on-fail: \"continue\"):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Remove the other one
                parallel (on-fail: "continue"):
                  session "a"
                  session "b"
                -- Remove this one
                parallel (on-fail: "ignore"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "parallel (\"all\", count: 2):\n  session \"a\"\n  session \"b\"\n",
            expect![[r#"
                -- Remove what is ignored
                parallel ("all"):
                  session "a"
                  session "b"
            "#]],
        ),
        case(
            "P249",
            "repeat 3 (until: 4):\n  session \"a\"\n",
            expect![[r#"
            -- Remove what is ignored
            repeat 3:
              session "a"
        "#]],
        ),
        case(
            "P249",
            "loop (mx: 3, max: 5):\n  session \"a\"\n",
            expect![[r#"
            -- Remove what is ignored
            loop (max: 5):
              session "a"
        "#]],
        ),
        case(
            "P263",
            "loop as i: # on\n  session \"a {i}\"\n",
            expect![[r#"
            -- Add `(max: 10)`
            loop (max: 10) as i: # on
              session "a {i}"
        "#]],
        ),
        case(
            "P263",
            "loop:\n  session \"a\"\n",
            expect![[r#"
            -- Add `(max: 10)`
            loop (max: 10):
              session "a"
        "#]],
        ),
        case(
            "P149",
            "do:\n  try: # it\n    session \"a\"\n    # end of try\n  # after\n  session \"b\"\n",
            expect![[r#"
                -- Add `catch:`
                do:
                  try: # it
                    session "a"
                    # end of try
                  catch:
                    throw
                  # after
                  session "b"
            "#]],
        ),
        case(
            "P149",
            "try: session \"a\" # it\n",
            expect![[r#"
            -- Add `catch:`
            try: session "a" # it
            catch:
              throw
        "#]],
        ),
        case(
            "P265",
            "if **it rains**:\n  throw # now\n",
            expect![[r#"
            -- Add a message
            if **it rains**:
              throw "failed" # now
        "#]],
        ),
        case(
            "P240",
            "block f(x):\n  session \"a {x}\"\ndo f(\"b\", \"c\", \"d\")\n",
            expect![[r#"
                -- Remove what is ignored
                block f(x):
                  session "a {x}"
                do f("b")
            "#]],
        ),
        case(
            "P240",
            "block f:\n  session \"a\"\ndo f(\"b\")\n",
            expect![[r#"
            -- Remove what is ignored
            block f:
              session "a"
            do f()
        "#]],
        ),
        case(
            "P240",
            "block f(x, y):\n  session \"a {x} {y}\"\ndo f(\"b\")\n",
            expect![[r#"
                -- Pass `null`, which is taken anyway
                block f(x, y):
                  session "a {x} {y}"
                do f("b", null)
            "#]],
        ),
        case(
            "P240",
            "block f(x, y):\n  session \"a {x} {y}\"\ndo f # all\n",
            expect![[r#"
                -- Pass `null`, which is taken anyway
                block f(x, y):
                  session "a {x} {y}"
                do f(null, null) # all
            "#]],
        ),
        case(
            "P240",
            "block f(topic, y):\n  session \"a {topic} {y}\"\ndo f(topik: \"b\", y: 1)\n",
            expect![[r#"
                -- Replace with `topic`
                block f(topic, y):
                  session "a {topic} {y}"
                do f(topic: "b", y: 1)
            "#]],
        ),
        case(
            "P240",
            "block f(topic, y):\n  session \"a {topic} {y}\"\ndo f(topic: \"b\")\n",
            expect![[r#"
                -- Pass `null`, which is taken anyway
                block f(topic, y):
                  session "a {topic} {y}"
                do f(topic: "b", y: null)
            "#]],
        ),
    ]
}
