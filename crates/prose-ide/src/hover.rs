//! What is under the cursor: a name with its declaration, a property or keyword with its explanation, and the codes of
//! diagnostics there.

use prose_hir::{Binding, DefKind, Definition, Diagnostic, RootDatabase, SourceFile};
use prose_model::codes;
use prose_model::vocabulary::{self, ModifierOwner};
use prose_syntax::ast::{self, AstNode, HasProperties};
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

use crate::describe::{self, Part};
use crate::types::{FilePosition, HoverConfig, HoverResult};
use crate::{diagnostics, names, tree};

pub(crate) fn hover(db: &RootDatabase, position: FilePosition, config: HoverConfig) -> Option<HoverResult> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let (mut parts, mut range) = match subject(db, source, offset) {
        Some((parts, range)) => (parts, Some(range)),
        None => (Vec::new(), None),
    };
    for found in diagnostics::diagnostics(db, position.file) {
        if found.range.contains_inclusive(offset) {
            parts.extend(code(&found));
            range = range.or(Some(found.range));
        }
    }
    let range = range?;
    (!parts.is_empty()).then(|| HoverResult {
        markdown: describe::render(&parts, config.markup),
        range,
    })
}

/// The name or word at the offset.
fn subject(db: &RootDatabase, source: SourceFile, offset: TextSize) -> Option<(Vec<Part>, TextRange)> {
    if let Some(found) = names::at(db, source, offset) {
        let mut parts = describe::definition(db, &found.definition);
        if found.definition.kind == DefKind::Agent {
            parts.extend(
                in_session(db, source, &found.definition, found.range)
                    .into_iter()
                    .flatten(),
            );
        }
        parts.extend(doubt(found.binding).map(|it| Part::Words(it.to_owned())));
        return Some((parts, found.range));
    }
    let (piece, local) = tree::piece_at(db, source, offset)?;
    let token = tree::token_at(&piece.root, local)?;
    let parts = word(&token)?;
    Some((parts, piece.up(token.text_range())))
}

/// What holds for the session that names the agent here.
fn in_session(
    db: &RootDatabase,
    source: SourceFile,
    def: &Definition,
    place: TextRange,
) -> Option<Vec<Part>> {
    let agent = ast::AgentDef::cast(names::node(db, def)?)?;
    let (piece, local) = tree::piece_at(db, source, place.start())?;
    let token = tree::token_at(&piece.root, local)?;
    let user = token.parent()?.parent()?;
    match user.kind() {
        SyntaxKind::SESSION_EXPR => describe::effective(&agent, ast::SessionExpr::cast(user)?.properties()),
        SyntaxKind::RESUME_EXPR => describe::effective(&agent, ast::ResumeExpr::cast(user)?.properties()),
        _ => None,
    }
}

/// What is to be said about a name that may have no value where it is read.
fn doubt(binding: Binding) -> Option<&'static str> {
    match binding {
        Binding::Sure | Binding::Global | Binding::Unbound => None,
        Binding::AfterLoop => {
            Some("Declared in a body that is over here: the value of its last round, if there was one.")
        }
        Binding::NextRound => {
            Some("Declared further down in the same loop: has no value in the first round.")
        }
        Binding::OtherBlock => {
            Some("Declared in a block only: has a value while that block is calling, or after it was called.")
        }
        Binding::Later => Some("Declared only below this place."),
    }
}

/// A keyword, property, modifier, or one of their values.
fn word(token: &SyntaxToken) -> Option<Vec<Part>> {
    let parent = token.parent()?;
    if token.kind().is_keyword() {
        let keyword = vocabulary::keyword(token.text())?;
        let mut parts = vec![
            Part::Code(keyword.usage.to_owned()),
            Part::Words(keyword.doc.to_owned()),
        ];
        // One that names an agent is told about at the agent's name.
        if token.kind() == SyntaxKind::SESSION_KW
            && let Some(session) = ast::SessionExpr::cast(parent)
            && session.agent().is_none()
        {
            let own: Vec<ast::Property> = session.properties().collect();
            parts.extend(describe::permissions(None, &own));
        }
        return Some(parts);
    }
    // The key of a property or modifier is the NAME directly in it.
    if parent.kind() == SyntaxKind::NAME {
        let owner = parent.parent()?;
        return match owner.kind() {
            SyntaxKind::PROPERTY => property_key(&owner, token.text()),
            SyntaxKind::MODIFIER => {
                let modifier = vocabulary::modifier(modified(&owner)?, Some(token.text()))?;
                Some(vec![
                    Part::Code(modifier.usage.to_owned()),
                    Part::Words(modifier.doc.to_owned()),
                ])
            }
            _ => None,
        };
    }
    value(token)
}

/// The key that a property's list belongs to: `permissions` for what is nested in it.
fn outer_key(property: &SyntaxNode) -> Option<String> {
    let outer = property.parent()?.parent()?;
    Some(ast::Property::cast(outer)?.key()?.text())
}

fn property_key(property: &SyntaxNode, key: &str) -> Option<Vec<Part>> {
    match outer_key(property).as_deref() {
        Some("permissions") => {
            let permission = vocabulary::permission(key)?;
            Some(vec![Part::Words(format!(
                "Permission `{}`: {}",
                permission.word, permission.doc
            ))])
        }
        Some(_) => None,
        None => {
            let property = vocabulary::property(key)?;
            Some(vec![
                Part::Code(property.usage.to_owned()),
                Part::Words(property.doc.to_owned()),
            ])
        }
    }
}

/// A value that a property or modifier has from a list: `model: opus`, `parallel ("any")`.
fn value(token: &SyntaxToken) -> Option<Vec<Part>> {
    let word = token.text().trim_matches('"');
    let owner = token
        .parent_ancestors()
        .take(4)
        .find(|it| matches!(it.kind(), SyntaxKind::PROPERTY | SyntaxKind::MODIFIER))?;
    let values = match owner.kind() {
        SyntaxKind::PROPERTY => {
            let key = ast::Property::cast(owner.clone())?.key()?.text();
            match outer_key(&owner).as_deref() {
                Some("permissions") => vocabulary::PERMISSION_VALUES,
                Some(_) => return None,
                None => vocabulary::property(&key)?.values,
            }
        }
        _ => {
            let key = ast::Modifier::cast(owner.clone())?.name().map(|it| it.text());
            vocabulary::modifier(modified(&owner)?, key.as_deref())?.values
        }
    };
    let found = values.iter().find(|it| it.word == word)?;
    Some(vec![Part::Words(format!("`{}`: {}", found.word, found.doc))])
}

/// What a modifier belongs to.
fn modified(modifier: &SyntaxNode) -> Option<ModifierOwner> {
    let owner = modifier.parent()?.parent()?;
    Some(match owner.kind() {
        SyntaxKind::PARALLEL_EXPR => ModifierOwner::Parallel,
        SyntaxKind::FOR_EXPR => ModifierOwner::ParallelFor,
        SyntaxKind::LOOP_EXPR => ModifierOwner::Loop,
        SyntaxKind::BLOCK_DEF => ModifierOwner::Block,
        SyntaxKind::SESSION_EXPR | SyntaxKind::RESUME_EXPR => ModifierOwner::Session,
        _ => return None,
    })
}

/// A diagnostic's code with the beginning of its page. Clients show the message themselves.
fn code(found: &Diagnostic) -> Option<Part> {
    let info = codes::find(found.code)?;
    let first = info
        .page
        .split("\n\n")
        .map(str::trim)
        .find(|paragraph| !paragraph.is_empty() && !paragraph.starts_with('#'))
        .unwrap_or_default();
    let mut words = format!("**{}** ({}): {}", info.code, found.severity.as_str(), info.title);
    if !first.is_empty() {
        words.push_str("\n\n");
        words.push_str(first);
    }
    words.push_str(&format!("\n\n`prose explain {}` tells more.", info.code));
    Some(Part::Words(words))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{HoverConfig, MarkupKind};

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let position = setup.position();
        let hover = setup
            .analysis
            .hover(position, HoverConfig::default())
            .unwrap()
            .expect("no hover");
        let hovered = setup.slice(position.file, hover.range);
        expect.assert_eq(&format!("[{hovered}]\n{}\n", hover.markdown));
    }

    #[track_caller]
    fn check_none(fixture: &str) {
        let setup = setup(fixture);
        let hover = setup
            .analysis
            .hover(setup.position(), HoverConfig::default())
            .unwrap();
        assert_eq!(hover, None);
    }

    #[test]
    fn agents() {
        check(
            "# Finds facts.\nagent researcher:\n  model: opus\n  persist: project\n  prompt: \"Be exact\"\nsession: rese$0archer\n",
            expect![[r#"
                [researcher]
                ```prose
                agent researcher:
                  model: opus
                  persist: project
                  prompt: "Be exact"
                ```

                Finds facts\.

                Persistent: memory in the project's `.prose/agents/`, for later runs too.
            "#]],
        );
        check(
            "agent a:\n  model: opus\n  prompt: \"You review\"\n  retry: 2\nlet r = resume: $0a\n  prompt: \"Go\"\n  model: haiku\n",
            expect![[r#"
                [a]
                ```prose
                agent a:
                  model: opus
                  prompt: "You review"
                  retry: 2
                ```

                In this session:

                ```prose
                prompt: "Go"  # session
                model: haiku  # session
                prompt: "You review"  # agent, as system part
                retry: 2  # agent
                ```

                **E017** (error): `resume:` requires persistent agent

                `resume:` goes on with what an agent remembers. An agent without `persist:` remembers nothing.

                `prose explain E017` tells more.
            "#]],
        );
    }

    #[test]
    fn blocks() {
        check(
            "# Reviews a text.\n# Twice, if needed.\nblock review(text, depth) (max_depth: 5):\n  output a = session \"x\"\n  output b = session \"y\"\ndo rev$0iew(1, 2)\n",
            expect![[r#"
                [review]
                ```prose
                block review(text, depth) (max_depth: 5)
                ```

                Reviews a text\.
                Twice\, if needed\.

                Gives a record of `a`, `b`.
            "#]],
        );
        check(
            "block f(te$0xt):\n  session \"{text}\"\n",
            expect![[r#"
            [text]
            ```prose
            block f(text)
            ```

            Parameter `text`.
        "#]],
        );
        check(
            "block f(text):\n  session \"{te$0xt}\"\n",
            expect![[r#"
            [text]
            ```prose
            block f(text)
            ```

            Parameter `text`.
        "#]],
        );
    }

    #[test]
    fn bindings() {
        check(
            "agent w:\n  model: opus\nlet draft = session: w\n  prompt: \"Write\"\nsession \"use {dr$0aft}\"\n",
            expect![[r#"
            [draft]
            ```prose
            let draft = session: w
              prompt: "Write"
            ```

            Variable `draft`, bound by a session of agent `w` (`opus`).
        "#]],
        );
        check(
            "const n = 3\nrepeat $0n:\n  session \"x\"\n",
            expect![[r#"
            [n]
            ```prose
            const n = 3
            ```

            Constant `n`.
        "#]],
        );
        check(
            "parallel:\n  a = session \"1\"\n  b = session \"2\"\nsession \"z\"\n  context: [$0a, b]\n",
            expect![[r#"
            [a]
            ```prose
            a = session "1"
            ```

            Branch result `a`, bound by a session.
        "#]],
        );
        check(
            "for x, i in [1]:\n  session \"{$0x}\"\n",
            expect![[r#"
            [x]
            ```prose
            for x, i in [1]:
            ```

            Loop variable `x`.
        "#]],
        );
        check(
            "try:\n  session \"x\"\ncatch as err:\n  throw er$0r.message\n",
            expect![[r#"
            [err]
            ```prose
            catch as err:
            ```

            The caught error `err`: `.message`, `.kind`, `.statement`, `.attempts`.
        "#]],
        );
        check(
            "let xs = [1]\nxs | map:\n  session \"{it$0em}\"\n",
            expect![[r#"
            [item]
            ```prose
            | map:
            ```

            `item`: the item that the stage works on.
        "#]],
        );
        check(
            "output x = do f()\nblock f:\n  session \"{$0x}\"\n",
            expect![[r#"
            [x]
            ```prose
            output x = do f()
            ```

            Output `x`, bound by block `f`.
        "#]],
        );
    }

    #[test]
    fn inputs() {
        check(
            "input topic: \"What about?\"\nsession \"{top$0ic}\"\n",
            expect![[r#"
            [topic]
            ```prose
            input topic
            ```

            ```text
            What about?
            ```
        "#]],
        );
        check(
            "input go: **shall we go on**\nif $0go == \"yes\":\n  session \"x\"\n",
            expect![[r#"
            [go]
            ```prose
            input go
            ```

            The judge puts this into a question:

            ```text
            shall we go on
            ```
        "#]],
        );
        check(
            "input names: [\"a\"]\nfor n in na$0mes:\n  session \"x\"\n",
            expect![[r#"
            [names]
            ```prose
            input names
            ```

            With a default:

            ```prose
            ["a"]
            ```
        "#]],
        );
    }

    #[test]
    fn imports() {
        check(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = li$0b(topic: \"x\")\n#- /lib.prose\ninput topic: \"t\"\ninput kinds: [\"a\"]\noutput r = session \"x\"\n",
            expect![[r#"
                [lib]
                ```prose
                use "lib.prose" as lib
                ```

                Inputs: `topic`, `kinds` (has a default)

                Outputs: `r`
            "#]],
        );
        check(
            "use \"alice/research\" as re$0s\nlet r = res()\n",
            expect![[r#"
            [res]
            ```prose
            use "alice/research" as res
            ```

            A remote program: each run that reaches it asks for approval.
        "#]],
        );
    }

    #[test]
    fn words_of_the_language() {
        check(
            "ses$0sion \"x\"\n",
            expect![[r#"
            [session]
            ```prose
            session "TASK"  ·  session: AGENT
            ```

            Runs one agent session on a task. Its value is what the session wrote. With `session: AGENT` the agent's properties are the defaults; a persistent agent starts with empty memory.
        "#]],
        );
        check(
            "loop unt$0il **x**:\n  session \"y\"\n",
            expect![[r#"
            [until]
            ```prose
            loop until **CONDITION**:
            ```

            Ends the loop when the condition holds.
        "#]],
        );
        check(
            "agent a:\n  per$0sist: true\n",
            expect![[r#"
            [persist]
            ```prose
            persist: true
            ```

            Gives the agent memory, which `resume:` goes on with. A string is a folder inside the workspace or `~/.prose`.
        "#]],
        );
        check(
            "agent a:\n  persist: proj$0ect\n",
            expect![[r#"
            [project]
            `project`: Memory in the project's `.prose/agents/`, for later runs too.
        "#]],
        );
        check(
            "agent a:\n  model: op$0us\n",
            expect![[r#"
            [opus]
            `opus`: The strong one, for hard tasks.
        "#]],
        );
        check(
            "agent $0a:\n  permissions:\n    read: [\"*.md\"]\n    bash: deny\n",
            expect![[r#"
                [a]
                ```prose
                agent a:
                  permissions:
                    read: ["*.md"]
                    bash: deny
                ```

                Permissions:

                - `read`: `["*.md"]` (agent)
                - `write`: files of the workspace (default)
                - `execute`: a person is asked (default)
                - `bash`: `deny` (agent)
                - `network`: a person is asked about each host (default)

                Never: files outside of the workspace, the keys in `.prose/.env`, and writing to `.prose/`, `prose.toml`, `prose.lock`, settings of editors and agents, and what Git, shells and containers are told by and run.
            "#]],
        );
        check(
            "agent a:\n  permissions:\n    read: [\"*.md\"]\n    bash: deny\nsession: $0a\n  permissions:\n    bash: allow\n",
            expect![[r#"
                [a]
                ```prose
                agent a:
                  permissions:
                    read: ["*.md"]
                    bash: deny
                ```

                Permissions:

                - `read`: `["*.md"]` (agent)
                - `write`: files of the workspace (default)
                - `execute`: a person is asked (default)
                - `bash`: `deny` (agent)
                - `network`: a person is asked about each host (default)

                Never: files outside of the workspace, the keys in `.prose/.env`, and writing to `.prose/`, `prose.toml`, `prose.lock`, settings of editors and agents, and what Git, shells and containers are told by and run.

                In this session:

                ```prose
                permissions: …  # session
                ```

                Permissions:

                - `read`: `["*.md"]` (agent)
                - `write`: files of the workspace (default)
                - `execute`: a person is asked (default)
                - `bash`: `allow` (session)
                - `network`: a person is asked about each host (default)

                **P262** (warning): Session with nothing to say

                Neither the session nor its agent has a prompt.

                `prose explain P262` tells more.
            "#]],
        );
        check(
            "$0session \"x\"\n  permissions:\n    network: deny\n",
            expect![[r#"
                [session]
                ```prose
                session "TASK"  ·  session: AGENT
                ```

                Runs one agent session on a task. Its value is what the session wrote. With `session: AGENT` the agent's properties are the defaults; a persistent agent starts with empty memory.

                Permissions:

                - `read`: files of the workspace (default)
                - `write`: files of the workspace (default)
                - `execute`: a person is asked (default)
                - `bash`: a person is asked about each command (default)
                - `network`: `deny` (session)

                Never: files outside of the workspace, the keys in `.prose/.env`, and writing to `.prose/`, `prose.toml`, `prose.lock`, settings of editors and agents, and what Git, shells and containers are told by and run.
            "#]],
        );
        check(
            "agent a:\n  permissions:\n    ba$0sh: deny\n",
            expect![[r#"
            [bash]
            Permission `bash`: Shell commands: `allow`, `deny` or `prompt`.
        "#]],
        );
        check(
            "agent a:\n  permissions:\n    bash: de$0ny\n",
            expect![[r#"
            [deny]
            `deny`: Refused.
        "#]],
        );
        check(
            "parallel (on-f$0ail: \"ignore\"):\n  session \"x\"\n",
            expect![[r#"
            [on-fail]
            ```prose
            parallel (on-fail: "continue"):
            ```

            What a failed branch does.
        "#]],
        );
        check(
            "parallel (\"an$0y\"):\n  session \"x\"\n",
            expect![[r#"
            ["any"]
            `any`: The first success, or `count` successes; failures are tolerated while that is possible.
        "#]],
        );
    }

    #[test]
    fn codes_of_diagnostics() {
        check(
            "session: nob$0ody\n",
            expect![[r#"
            [nobody]
            **E007** (error): Undefined agent reference

            `session:` and `resume:` name an agent. The agent must be declared in this file or in a local file that it uses; it may stand further down.

            `prose explain E007` tells more.
        "#]],
        );
    }

    #[test]
    fn text_and_comments_have_none() {
        check_none("session \"some te$0xt\"\n");
        check_none("# a ses$0sion\nsession \"x\"\n");
        check_none("session \"x\"\n\n$0\n");
        check_none("session \"{unkn$0own words}\"\n");
    }

    #[test]
    fn program_text_stays_text() {
        // In a comment, a prompt and a statement.
        check(
            "# [click](command:evil) <img src=x> `a`\n# ![i](http://x.y)\nagent a:\n  prompt: \"\"\"\n    ```\n    [x](command:evil)\n  \"\"\"\nsession: $0a\n",
            expect![[r#"
                [a]
                ````prose
                agent a:
                  prompt: """
                    ```
                    [x](command:evil)
                  """
                ````

                \[click\]\(command\:evil\) \<img src\=x\> \`a\`
                \!\[i\]\(http\:\/\/x\.y\)
            "#]],
        );
        check(
            "input q: \"```\\n[x](command:evil)\"\nsession \"{$0q}\"\n",
            expect![[r#"
            [q]
            ```prose
            input q
            ```

            ````text
            ```
            [x](command:evil)
            ````
        "#]],
        );
    }

    #[test]
    fn plain_text_for_clients_without_markdown() {
        let setup = setup("# Does *it*.\nblock f(a):\n  session \"x\"\ndo $0f(1)\n");
        let config = HoverConfig {
            markup: MarkupKind::PlainText,
        };
        let hover = setup.analysis.hover(setup.position(), config).unwrap().unwrap();
        assert_eq!(hover.markdown, "block f(a)\n\nDoes *it*.");
    }
}
