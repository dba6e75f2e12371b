//! What a program would do, told by its bundle alone: every session with its properties and its prompt as far as they
//! are known, how often each runs, inputs, imports, permissions. Nothing is run and nothing is asked.

mod count;
mod known;
mod width;

use std::collections::HashSet;

use indexmap::IndexMap;
use prose_model::{
    Agent, Backoff, BindTarget, Bundle, LoopTest, Name, Node, Op, Permission, Persist, Program, Props,
    Session, SourceRange, Stage, Strategy, Value,
};
use serde::Serialize;

pub use count::Times;

use crate::history::location;
use count::Counts;
use known::Known;

/// A program's plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The program's path.
    pub program: String,
    /// The files that it is made of.
    pub files: Vec<String>,
    /// How many sessions there will be when none fails, and at most, with every try.
    pub sessions: Times,
    /// How many sessions can be at work at once by the program's own shape; none: without a bound.
    pub width: Option<u64>,
    /// Every place that starts a session.
    pub calls: Vec<PlannedSession>,
    /// Every place where a model judges.
    pub questions: Vec<PlannedQuestion>,
    /// Every input of the program.
    pub inputs: Vec<PlannedInput>,
    /// What it uses.
    pub imports: Vec<PlannedImport>,
}

/// A place that starts sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedSession {
    /// `file:line`.
    pub place: String,
    /// `session` or `resume`.
    pub kind: &'static str,
    /// What stands around it, from the outside in.
    pub inside: Vec<String>,
    /// How often it runs, tries included.
    pub times: Times,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where an agent's memory lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The name that the result is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// What the agent is told about itself; what isn't known before the run stands in braces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The task.
    pub prompt: String,
    /// What else it is given, by label.
    pub context: Vec<String>,
    /// The properties that count, and where each is from.
    pub properties: Vec<Property>,
}

/// A property that counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Property {
    /// Its name; `permissions.read` for a permission.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// `session`, or `agent NAME`.
    pub from: String,
}

/// A place where a model judges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedQuestion {
    /// `file:line`.
    pub place: String,
    /// `condition`, `until`, `while`, `choice`, `value` or `input`.
    pub kind: &'static str,
    /// The text.
    pub text: String,
    /// The labels of a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedInput {
    /// Its name.
    pub name: String,
    /// `file:line`.
    pub place: String,
    /// Its prompt.
    pub prompt: String,
    /// Where its value is from: `given`, `default` or `asked`.
    pub source: &'static str,
    /// Whether it is asked for before anything else runs.
    pub leading: bool,
    /// The value, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A used program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedImport {
    /// The name it is called by.
    pub name: String,
    /// The target as written.
    pub target: String,
    /// The file it was found in; none when calling it is an error.
    pub file: Option<String>,
    /// What it wants.
    pub inputs: Vec<String>,
}

/// Makes the plan of a bundle; `given` are the values that inputs would be supplied with.
pub fn plan(bundle: &Bundle, given: &IndexMap<String, Value>) -> Plan {
    let Some(entry) = bundle.programs.get(bundle.entry) else {
        return Plan {
            program: String::new(),
            files: Vec::new(),
            sessions: Times::exactly(0),
            width: Some(0),
            calls: Vec::new(),
            questions: Vec::new(),
            inputs: Vec::new(),
            imports: Vec::new(),
        };
    };
    let counts = Counts::new(bundle, given);
    let mut walker = Walker {
        bundle,
        counts: &counts,
        calls: Vec::new(),
        questions: Vec::new(),
        inputs: Vec::new(),
    };
    // Programs that are used are listed, too: their sessions cost as much. A local file's blocks are in its user's list.
    let mut seen: HashSet<SourceRange> = HashSet::new();
    let programs =
        std::iter::once(bundle.entry).chain((0..bundle.programs.len()).filter(|at| *at != bundle.entry));
    for at in programs {
        let Some(program) = bundle.programs.get(at) else {
            continue;
        };
        let mut cx = Context {
            program,
            known: counts.known(at),
            inside: Vec::new(),
            binding: None,
            is_entry: at == bundle.entry,
        };
        if at != bundle.entry {
            cx.inside.push(format!("program {}", program.name));
        }
        walker.body(&program.body, &mut cx);
        for block in program.blocks.values() {
            if seen.insert(block.src) {
                cx.inside
                    .push(format!("block {}({})", block.name, block.params.join(", ")));
                walker.body(&block.body, &mut cx);
                cx.inside.pop();
            }
        }
    }
    let inputs = walker
        .inputs
        .iter()
        .map(|(input, src, _)| {
            let contract = entry.inputs.iter().find(|contract| contract.name == input.name);
            let value = given.get(input.name.as_str());
            PlannedInput {
                name: input.name.to_string(),
                place: place(bundle, *src),
                prompt: contract
                    .map(|contract| contract.prompt.clone())
                    .unwrap_or_default(),
                source: match value {
                    Some(_) => "given",
                    None if input.default.is_some() => "default",
                    None => "asked",
                },
                leading: contract.is_some_and(|contract| contract.leading),
                value: value.and_then(known::shown),
            }
        })
        .collect();
    let file_of = |program: usize| {
        let program = bundle.programs.get(program)?;
        bundle
            .files
            .get(program.file as usize)
            .map(|file| file.path.clone())
    };
    Plan {
        program: file_of(bundle.entry).unwrap_or_default(),
        files: bundle.files.iter().map(|file| file.path.clone()).collect(),
        sessions: counts.program(bundle.entry),
        width: counts.width(bundle.entry),
        inputs,
        imports: bundle
            .programs
            .iter()
            .flat_map(|program| &program.imports)
            .map(|(name, import)| PlannedImport {
                name: name.to_string(),
                target: import.target.clone(),
                file: import.program.and_then(file_of),
                inputs: import
                    .program
                    .and_then(|at| bundle.programs.get(at))
                    .map(|program| {
                        program
                            .inputs
                            .iter()
                            .map(|input| input.name.to_string())
                            .collect()
                    })
                    .unwrap_or_default(),
            })
            .collect(),
        calls: walker.calls,
        questions: walker.questions,
    }
}

/// An input of the entry program, and whether it is met once and no more.
pub(crate) struct EntryInput {
    pub(crate) name: Name,
    /// Its choices, as far as they are known beforehand.
    pub(crate) choices: Vec<String>,
    pub(crate) once: bool,
}

/// All inputs of the entry program and its blocks, in source order.
pub(crate) fn entry_inputs(bundle: &Bundle) -> Vec<EntryInput> {
    let Some(program) = bundle.programs.get(bundle.entry) else {
        return Vec::new();
    };
    let given = IndexMap::new();
    let counts = Counts::new(bundle, &given);
    let mut walker = Walker {
        bundle,
        counts: &counts,
        calls: Vec::new(),
        questions: Vec::new(),
        inputs: Vec::new(),
    };
    let mut cx = Context {
        program,
        known: counts.known(bundle.entry),
        inside: Vec::new(),
        binding: None,
        is_entry: true,
    };
    walker.body(&program.body, &mut cx);
    cx.inside.push("block".to_owned());
    for block in program.blocks.values() {
        walker.body(&block.body, &mut cx);
    }
    let mut inputs = Vec::new();
    for (input, _, once) in walker.inputs {
        inputs.push(EntryInput {
            name: input.name.clone(),
            choices: prose_vm::choices::fixed_choices(input),
            once,
        });
    }
    inputs
}

fn place(bundle: &Bundle, src: SourceRange) -> String {
    location(bundle, src).map_or_else(String::new, |place| place.to_string())
}

struct Context<'a> {
    program: &'a Program,
    known: &'a Known,
    inside: Vec<String>,
    /// The name that the value being looked at is bound to.
    binding: Option<Name>,
    is_entry: bool,
}

struct Walker<'a> {
    bundle: &'a Bundle,
    counts: &'a Counts<'a>,
    calls: Vec<PlannedSession>,
    questions: Vec<PlannedQuestion>,
    /// The entry's inputs, and whether nothing is around them that may run them more than once, or not at all.
    inputs: Vec<(&'a prose_model::Input, SourceRange, bool)>,
}

impl<'a> Walker<'a> {
    fn body(&mut self, nodes: &'a [Node], cx: &mut Context<'a>) {
        for node in nodes {
            cx.binding = None;
            self.node(node, cx);
        }
        cx.binding = None;
    }

    fn within(&mut self, what: String, nodes: &'a [Node], cx: &mut Context<'a>) {
        cx.inside.push(what);
        self.body(nodes, cx);
        cx.inside.pop();
    }

    fn ask(&mut self, kind: &'static str, src: SourceRange, text: String, options: Vec<String>) {
        self.questions.push(PlannedQuestion {
            place: place(self.bundle, src),
            kind,
            text,
            options,
        });
    }

    fn condition(&mut self, node: &'a Node, kind: &'static str, cx: &mut Context<'a>) {
        match &node.op {
            Op::Judge(text) => {
                let text = cx.known.template(text);
                self.ask(kind, node.src, text, Vec::new());
            }
            Op::Binary { lhs, rhs, .. } => {
                self.condition(lhs, kind, cx);
                self.condition(rhs, kind, cx);
            }
            Op::Not(inner) => self.condition(inner, kind, cx),
            _ => self.node(node, cx),
        }
    }

    fn node(&mut self, node: &'a Node, cx: &mut Context<'a>) {
        match &node.op {
            Op::Session(session) => self.session(node, session, cx),
            Op::Judge(_) => self.condition(node, "value", cx),
            Op::Input(input) => {
                if input.discretion
                    && let Some(prompt) = &input.prompt
                {
                    let text = cx.known.template(prompt);
                    self.ask("input", node.src, text, Vec::new());
                }
                if cx.is_entry {
                    self.inputs.push((input, node.src, cx.inside.is_empty()));
                }
            }
            Op::Bind { target, value, .. } => {
                cx.binding = match target {
                    BindTarget::Name(name) => Some(name.clone()),
                    BindTarget::Record(_) => None,
                };
                self.node(value, cx);
                cx.binding = None;
            }
            Op::Assign { name, value, path } => {
                cx.binding = path.is_empty().then(|| name.clone());
                self.node(value, cx);
                cx.binding = None;
            }
            Op::Do(body) => self.within("do".to_owned(), body, cx),
            Op::Parallel(parallel) => {
                let mut what = format!("parallel, {} branches", parallel.branches.len());
                what.push_str(join_word(parallel.strategy));
                self.within(what, &parallel.branches, cx);
            }
            Op::For(each) => {
                self.node(&each.source, cx);
                let items = match self.counts.items(&each.source, cx.known) {
                    Some(n) => format!("{n} items"),
                    None => "a number of items known only then".to_owned(),
                };
                let what = match &each.parallel {
                    Some(parallel) => {
                        format!(
                            "parallel for {}, {items}{}",
                            each.item,
                            join_word(parallel.strategy)
                        )
                    }
                    None => format!("for {}, {items}", each.item),
                };
                self.within(what, &each.body, cx);
            }
            Op::Repeat { count, body, .. } => {
                self.node(count, cx);
                let what = match cx.known.number(count) {
                    Some(n) => format!("repeat {n}"),
                    None => "repeat a number known only then".to_owned(),
                };
                self.within(what, body, cx);
            }
            Op::Loop(it) => {
                let max = it.max.as_ref().and_then(|max| cx.known.number(max));
                let bound = max.map_or_else(|| ", no max".to_owned(), |max| format!(", at most {max} times"));
                let what = match &it.test {
                    Some(LoopTest::Until(cond)) => {
                        self.condition(cond, "until", cx);
                        format!("loop until {}{bound}", condition_text(self.bundle, cond))
                    }
                    Some(LoopTest::While(cond)) => {
                        self.condition(cond, "while", cx);
                        format!("loop while {}{bound}", condition_text(self.bundle, cond))
                    }
                    None => format!("loop{bound}"),
                };
                self.within(what, &it.body, cx);
            }
            Op::If { arms, otherwise } => {
                for arm in arms {
                    self.condition(&arm.cond, "condition", cx);
                    self.within(
                        format!("if {}", condition_text(self.bundle, &arm.cond)),
                        &arm.body,
                        cx,
                    );
                }
                if let Some(body) = otherwise {
                    self.within("else".to_owned(), body, cx);
                }
            }
            Op::Choice { criteria, options } => {
                let labels = options.iter().map(|option| option.label.clone()).collect();
                let text = cx.known.template(criteria);
                self.ask("choice", node.src, text, labels);
                for option in options {
                    self.within(format!("option \"{}\"", option.label), &option.body, cx);
                }
            }
            Op::Try(it) => {
                self.within("try".to_owned(), &it.body, cx);
                if let Some(catch) = &it.catch {
                    self.within("catch".to_owned(), &catch.body, cx);
                }
                if let Some(body) = &it.finally {
                    self.within("finally".to_owned(), body, cx);
                }
            }
            Op::Pipeline { source, stages } => {
                self.node(source, cx);
                for stage in stages {
                    let (word, body) = match stage {
                        Stage::Map { body, .. } => ("map", body),
                        Stage::Filter { body, .. } => ("filter", body),
                        Stage::Pmap { body, .. } => ("pmap", body),
                        Stage::Reduce { body, .. } => ("reduce", body),
                        Stage::Chunks(size) => {
                            self.node(size, cx);
                            continue;
                        }
                    };
                    self.within(word.to_owned(), body, cx);
                }
            }
            Op::Assert { cond, message } => {
                self.condition(cond, "condition", cx);
                if let Some(message) = message {
                    self.node(message, cx);
                }
            }
            Op::Null
            | Op::Bool(_)
            | Op::Number(_)
            | Op::Text(_)
            | Op::Name(_)
            | Op::AgentMemory(_)
            | Op::Break
            | Op::Member { .. }
            | Op::Index { .. }
            | Op::List(_)
            | Op::Record(_)
            | Op::Not(_)
            | Op::Neg(_)
            | Op::Binary { .. }
            | Op::Call { .. }
            | Op::CallProgram { .. }
            | Op::Arrow(_)
            | Op::Return(_)
            | Op::Throw(_) => {
                // A session deep in an expression has no name of its own.
                cx.binding = None;
                for part in count::parts(node) {
                    self.node(part, cx);
                }
            }
        }
    }

    fn session(&mut self, node: &'a Node, session: &'a Session, cx: &mut Context<'a>) {
        let agent = session
            .agent
            .as_ref()
            .and_then(|name| cx.program.agents.get(name));
        let own = &session.props;
        let defaults = agent.map(|agent| &agent.props);
        let text = |node: &Node| cx.known.text(node);
        let label = session.label.as_deref().map(text);
        let prompt = own.prompt.as_deref().map(text);
        let agent_prompt = defaults.and_then(|props| props.prompt.as_deref()).map(text);
        let task: Vec<String> = [label, prompt].into_iter().flatten().collect();
        let (system, task) = match (task.is_empty(), agent_prompt) {
            (false, system) => (system, task.join("\n\n")),
            (true, task) => (None, task.unwrap_or_default()),
        };
        let properties = properties(own, agent, cx.known);
        let context = own
            .context
            .as_ref()
            .or_else(|| defaults.and_then(|props| props.context.as_ref()));
        self.calls.push(PlannedSession {
            place: place(self.bundle, node.src),
            kind: if session.resume { "resume" } else { "session" },
            inside: cx.inside.clone(),
            times: self.counts.of(node),
            agent: session.agent.as_ref().map(ToString::to_string),
            memory: agent
                .and_then(|agent| agent.persist.as_ref())
                .map(|persist| match persist {
                    Persist::Execution => "the run's".to_owned(),
                    Persist::Project => "the project's".to_owned(),
                    Persist::User => "the user's".to_owned(),
                    Persist::Path(path) => path.clone(),
                }),
            binding: session
                .name
                .as_ref()
                .or(cx.binding.as_ref())
                .map(ToString::to_string),
            system,
            prompt: task,
            context: context
                .map(|context| context.items.iter().map(|item| item.label.clone()).collect())
                .unwrap_or_default(),
            properties,
        });
    }
}

/// What a condition is written as.
fn condition_text(bundle: &Bundle, node: &Node) -> String {
    bundle
        .files
        .get(node.src.file as usize)
        .and_then(|file| file.text.get(node.src.start as usize..node.src.end as usize))
        .map(prose_agents::one_line)
        .unwrap_or_default()
}

fn join_word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::All => "",
        Strategy::First => ", the first counts",
        Strategy::Any => ", any counts",
    }
}

/// A session's properties after precedence: its own replace the agent's, permissions by key; skills add up.
fn properties(own: &Props, agent: Option<&Agent>, known: &Known) -> Vec<Property> {
    let from_agent = agent
        .map(|agent| format!("agent {}", agent.name))
        .unwrap_or_default();
    let defaults = agent.map(|agent| &agent.props);
    let mut list = Vec::new();
    let mut add = |name: String, value: String, is_own: bool| {
        list.push(Property {
            name,
            value,
            from: if is_own {
                "session".to_owned()
            } else {
                from_agent.clone()
            },
        });
    };
    let mut pick = |name: &str, of: fn(&Props) -> Option<&Node>| {
        if let Some(node) = of(own) {
            add(name.to_owned(), known.text(node), true);
        } else if let Some(node) = defaults.and_then(of) {
            add(name.to_owned(), known.text(node), false);
        }
    };
    pick("model", |props| props.model.as_deref());
    pick("retry", |props| props.retry.as_deref());
    match (own.backoff, defaults.and_then(|props| props.backoff)) {
        (Some(backoff), _) => add("backoff".to_owned(), backoff_text(backoff), true),
        (None, Some(backoff)) => add("backoff".to_owned(), backoff_text(backoff), false),
        (None, None) => {}
    }
    if own.context.is_none()
        && let Some(context) = defaults.and_then(|props| props.context.as_ref())
    {
        let labels: Vec<&str> = context.items.iter().map(|item| item.label.as_str()).collect();
        add("context".to_owned(), labels.join(", "), false);
    }
    for (props, is_own) in defaults
        .into_iter()
        .map(|props| (props, false))
        .chain([(own, true)])
    {
        for skill in &props.skills {
            add("skill".to_owned(), known.text(skill), is_own);
        }
    }
    for (props, is_own) in defaults
        .into_iter()
        .map(|props| (props, false))
        .chain([(own, true)])
    {
        for (key, rule) in &props.permissions {
            if is_own || !own.permissions.contains_key(key) {
                add(format!("permissions.{key}"), permission_text(rule, known), is_own);
            }
        }
    }
    list
}

fn backoff_text(backoff: Backoff) -> String {
    match backoff {
        Backoff::None => "none".to_owned(),
        Backoff::Linear => "linear".to_owned(),
        Backoff::Exponential => "exponential".to_owned(),
        Backoff::Millis(ms) => format!("{ms} ms"),
    }
}

fn permission_text(rule: &Permission, known: &Known) -> String {
    match rule {
        Permission::Allow => "allow".to_owned(),
        Permission::Deny => "deny".to_owned(),
        Permission::Prompt => "a person is asked".to_owned(),
        Permission::Patterns(patterns) => patterns
            .iter()
            .map(|pattern| known.text(pattern))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
