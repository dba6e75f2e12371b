//! Programs as text, for the message of a failed case.

use prose_model::*;

pub fn bundle(bundle: &Bundle) -> String {
    let mut out = String::from("\n");
    for program in &bundle.programs {
        out.push_str(&format!("# program {}\n", program.name));
        for block in program.blocks.values().filter(|block| block.name != "unused") {
            let depth = block
                .max_depth
                .map_or_else(String::new, |n| format!(" (max_depth: {n})"));
            out.push_str(&format!(
                "block {}({}){depth}:\n",
                block.name,
                block.params.join(", ")
            ));
            body(&block.body, 1, &mut out);
        }
        body(&program.body, 0, &mut out);
    }
    out
}

fn body(nodes: &[Node], depth: usize, out: &mut String) {
    if nodes.is_empty() {
        out.push_str(&format!("{}pass\n", "  ".repeat(depth)));
    }
    for node in nodes {
        let text = statement(node, depth);
        out.push_str(&format!("{}{text}\n", "  ".repeat(depth)));
    }
}

fn block(head: String, nodes: &[Node], depth: usize) -> String {
    let mut out = format!("{head}:\n");
    body(nodes, depth + 1, &mut out);
    out.trim_end().to_owned()
}

fn template(template: &Template) -> String {
    let parts = template.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Insert { verbatim, .. } => verbatim.clone(),
    });
    parts.collect()
}

fn args(args: &[Argument], depth: usize) -> String {
    let args = args.iter().map(|arg| {
        let name = arg
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}: "));
        format!("{name}{}", statement(&arg.value, depth))
    });
    args.collect::<Vec<_>>().join(", ")
}

fn join(strategy: Strategy, policy: Policy, count: &Option<Box<Node>>, max: &Option<Box<Node>>) -> String {
    let mut out = format!("{strategy:?}, {policy:?}");
    for (word, value) in [("count", count), ("max", max)] {
        if let Some(value) = value {
            out.push_str(&format!(", {word}: {}", statement(value, 0)));
        }
    }
    out
}

fn statement(node: &Node, depth: usize) -> String {
    let e = |node: &Node| statement(node, depth);
    let list = |nodes: &[Node], by: &str| nodes.iter().map(e).collect::<Vec<_>>().join(by);
    let indent = "  ".repeat(depth);
    match &node.op {
        Op::Null => "null".into(),
        Op::Bool(b) => b.to_string(),
        Op::Number(n) => n.to_string(),
        Op::Text(text) => format!("{:?}", template(text)),
        Op::Name(name) | Op::AgentMemory(name) => name.to_string(),
        Op::Member { of, key } => format!("{}.{key}", e(of)),
        Op::Index { of, index } => format!("{}[{}]", e(of), e(index)),
        Op::List(nodes) => format!("[{}]", list(nodes, ", ")),
        Op::Record(entries) => {
            let entries = entries
                .iter()
                .map(|entry| format!("{}: {}", entry.key, e(&entry.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Op::Not(of) => format!("not {}", e(of)),
        Op::Neg(of) => format!("-{}", e(of)),
        Op::Binary { op, lhs, rhs } => format!("({} {op:?} {})", e(lhs), e(rhs)),
        Op::Judge(text) => format!("**{}**", template(text)),
        Op::Session(it) => {
            let mut out = if it.resume { "resume" } else { "session" }.to_owned();
            out.extend(it.name.iter().map(|name| format!(" {name}")));
            out.extend(it.agent.iter().map(|name| format!(": {name}")));
            out.extend(it.label.iter().map(|label| format!(" {}", e(label))));
            out.extend(
                it.props
                    .prompt
                    .iter()
                    .map(|prompt| format!(" prompt={}", e(prompt))),
            );
            for item in it.props.context.iter().flat_map(|context| &context.items) {
                out.push_str(&format!(" context={}", e(&item.value)));
            }
            if let Some(retry) = &it.props.retry {
                out.push_str(&format!(" retry={} {:?}", e(retry), it.props.backoff));
            }
            out
        }
        Op::Call { block, args: given } => format!("do {block}({})", args(given, depth)),
        Op::CallProgram { import, args: given } => format!("{import}({})", args(given, depth)),
        Op::Arrow(parts) => list(parts, " -> "),
        Op::Pipeline { source, stages } => {
            let mut out = e(source);
            for stage in stages {
                let (word, nodes) = match stage {
                    Stage::Map { body, .. } => ("map", body),
                    Stage::Filter { body, .. } => ("filter", body),
                    Stage::Pmap { body, .. } => ("pmap", body),
                    Stage::Reduce { body, .. } => ("reduce", body),
                    Stage::Chunks(size) => {
                        out.push_str(&format!(" | chunks({})", e(size)));
                        continue;
                    }
                };
                out.push_str(&format!(
                    "\n{indent}  {}",
                    block(format!("| {word}"), nodes, depth + 1)
                ));
            }
            out
        }
        Op::Do(nodes) => block("do".into(), nodes, depth),
        Op::Parallel(it) => {
            let head = format!("parallel ({})", join(it.strategy, it.policy, &it.count, &it.max));
            block(head, &it.branches, depth)
        }
        Op::For(it) => {
            let index = it
                .index
                .as_ref()
                .map_or_else(String::new, |index| format!(", {index}"));
            let head = format!("for {}{index} in {}", it.item, e(&it.source));
            match &it.parallel {
                Some(p) => {
                    let join = join(p.strategy, p.policy, &p.count, &p.max);
                    block(format!("parallel {head} ({join})"), &it.body, depth)
                }
                None => block(head, &it.body, depth),
            }
        }
        Op::Repeat { count, index, body } => block(format!("repeat {} as {index:?}", e(count)), body, depth),
        Op::Loop(it) => {
            let test = match &it.test {
                Some(LoopTest::Until(cond)) => format!("until {}", e(cond)),
                Some(LoopTest::While(cond)) => format!("while {}", e(cond)),
                None => String::new(),
            };
            let max = it.max.as_ref().map(e);
            block(format!("loop {test} (max: {max:?}) as n"), &it.body, depth)
        }
        Op::If { arms, otherwise } => {
            let mut parts: Vec<String> = arms
                .iter()
                .map(|arm| block(format!("if {}", e(&arm.cond)), &arm.body, depth))
                .collect();
            parts.extend(otherwise.iter().map(|nodes| block("else".into(), nodes, depth)));
            parts.join(&format!("\n{indent}el"))
        }
        Op::Choice { criteria, options } => {
            let mut out = format!("choice **{}**:", template(criteria));
            for option in options {
                let head = format!("\n{indent}  option {:?}", option.label);
                out.push_str(&block(head, &option.body, depth + 1));
            }
            out
        }
        Op::Try(it) => {
            let mut out = block("try".into(), &it.body, depth);
            if let Some(catch) = &it.catch {
                out.push_str(&format!(
                    "\n{indent}{}",
                    block("catch as err".into(), &catch.body, depth)
                ));
            }
            if let Some(finally) = &it.finally {
                out.push_str(&format!("\n{indent}{}", block("finally".into(), finally, depth)));
            }
            out
        }
        Op::Input(it) => format!("input {}", it.name),
        Op::Bind { kind, target, value } => {
            let target = match target {
                BindTarget::Name(name) => name.to_string(),
                BindTarget::Record(names) => format!("{{{}}}", names.join(", ")),
            };
            format!("{} {target} = {}", format!("{kind:?}").to_lowercase(), e(value))
        }
        Op::Assign { name, path, value } => format!("{name}.{} = {}", list(path, "."), e(value)),
        Op::Return(of) => format!("return {}", of.as_deref().map_or_else(String::new, e)),
        Op::Break => "break".into(),
        Op::Throw(of) => format!("throw {}", of.as_deref().map_or_else(String::new, e)),
        Op::Assert { cond, message } => format!("assert {}: {:?}", e(cond), message.as_deref().map(e)),
    }
}
