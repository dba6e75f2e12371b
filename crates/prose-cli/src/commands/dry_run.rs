//! `prose run --dry-run`: the plan and the prompts, without any session.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prose_model::{protected, vocabulary};
use prose_runtime::plan::{Plan, PlannedSession, plan};

use super::run::{Prepared, load};
use super::{Exit, colour, fail, out, plain};
use crate::args::RunArgs;
use crate::render::text::{Columns, Paint};

/// Shows what would run.
pub(super) fn dry_run(args: &RunArgs) -> Exit {
    let prepared = match load(args) {
        Ok(prepared) => prepared,
        Err(message) => return fail(&message),
    };
    let plan = plan(&prepared.bundle, &prepared.inputs);
    let backend = args
        .common
        .backend
        .clone()
        .or_else(|| prepared.config.run.backend.clone());
    let max_parallel = args.common.max_parallel.or(prepared.config.run.max_parallel);
    if args.common.json {
        let json = serde_json::json!({
            "backend": backend,
            "maxParallel": max_parallel,
            "plan": plan,
            "permissions": {
                "defaults": vocabulary::PERMISSION_DEFAULTS
                    .iter()
                    .map(|default| (default.word, default.doc))
                    .collect::<BTreeMap<_, _>>(),
                "never": protected::never(),
                "ownTools": backend.as_deref().is_some_and(|name| has_own_tools(&prepared, name)),
            },
        });
        return out(|stdout| {
            serde_json::to_writer_pretty(&mut *stdout, &json)?;
            stdout.write_all(b"\n")
        });
    }
    let paint = Paint::new(colour(&io::stdout()));
    let text = text(&plan, &prepared, backend.as_deref(), max_parallel, &paint);
    out(|stdout| stdout.write_all(text.as_bytes()))
}

fn text(
    plan: &Plan,
    prepared: &Prepared,
    backend: Option<&str>,
    max_parallel: Option<u32>,
    paint: &Paint,
) -> String {
    let mut text = format!(
        "{}  {}\n",
        paint.bold(&plain(&prepared.program)),
        paint.dim("nothing is run")
    );
    text.push_str(&format!("sessions: {}\n", plan.sessions));
    let width = match (plan.width, max_parallel) {
        (Some(width), Some(max)) => format!(
            "{} at once (of {width} by the program)",
            width.min(u64::from(max))
        ),
        (Some(width), None) => format!("{width} at once"),
        (None, Some(max)) => format!("{max} at once (the program sets no bound)"),
        (None, None) => "no bound at once but the backend's".to_owned(),
    };
    text.push_str(&format!("parallel: {width}\n"));
    text.push_str(&format!(
        "backend:  {}\n",
        plain(backend.unwrap_or("none is named; the first that is found"))
    ));
    if plan.files.len() > 1 {
        text.push_str(&format!("files:    {}\n", plain(&plan.files.join(", "))));
    }
    if !plan.inputs.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Inputs")));
        let mut columns = Columns::new(["NAME", "FROM", "PROMPT", "WHERE"]);
        for input in &plan.inputs {
            let from = match (input.source, &input.value) {
                ("given", Some(value)) => format!("given: {}", crate::render::lines::one_line(value, 40)),
                ("asked", _) if input.leading => "asked at the start".to_owned(),
                ("asked", _) => "asked when it is reached".to_owned(),
                (source, _) => source.to_owned(),
            };
            columns.row([
                plain(&input.name),
                from,
                crate::render::lines::one_line(&input.prompt, 60),
                plain(&input.place),
            ]);
        }
        text.push_str(&columns.render(paint, 1, |from| {
            if from.starts_with("asked") {
                paint.yellow(from)
            } else {
                paint.green(from)
            }
        }));
    }
    if !plan.imports.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Uses")));
        for import in &plan.imports {
            let found = import.file.as_deref().unwrap_or("not found: calling it fails");
            text.push_str(&plain(&format!(
                "  {} = {} ({found})\n",
                import.name, import.target
            )));
        }
    }
    if !plan.calls.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Sessions")));
        for call in &plan.calls {
            session(&mut text, call, paint);
        }
        permissions(&mut text, prepared, backend, paint);
    }
    if !plan.questions.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("Judged while it runs")));
        for question in &plan.questions {
            let options = if question.options.is_empty() {
                String::new()
            } else {
                format!(" ({})", question.options.join(", "))
            };
            text.push_str(&format!(
                "  {}  {} **{}**{}\n",
                paint.dim(&plain(&question.place)),
                question.kind,
                crate::render::lines::one_line(&question.text, 100),
                plain(&options)
            ));
        }
    }
    text
}

/// Whether a backend's own program uses the tools.
fn has_own_tools(prepared: &Prepared, backend: &str) -> bool {
    let kind = prepared.config.catalog().spec(backend).kind;
    vocabulary::OWN_TOOLS.contains(&kind.as_str())
}

/// What counts where a session has no rule of its own, and who keeps the rules.
fn permissions(text: &mut String, prepared: &Prepared, backend: Option<&str>, paint: &Paint) {
    text.push_str(&format!(
        "\n{}\n",
        paint.bold("Permissions where a session says nothing")
    ));
    for default in vocabulary::PERMISSION_DEFAULTS {
        let name = paint.dim(&format!("{:<8}", default.word));
        text.push_str(&format!("  {name}  {}\n", default.doc));
    }
    let never = protected::never().replace('`', "");
    text.push_str(&format!("  {}  {never}\n", paint.dim("never   ")));
    if let Some(name) = backend.filter(|name| has_own_tools(prepared, name)) {
        let note = format!(
            "{name} uses tools of its own; it is answered by these rules when it asks, and keeping to them is up to it"
        );
        text.push_str(&format!("  {}  {}\n", paint.dim("by      "), plain(&note)));
    }
}

fn session(text: &mut String, call: &PlannedSession, paint: &Paint) {
    let mut head = format!("  {}  {}", paint.dim(&plain(&call.place)), call.kind);
    if let Some(agent) = &call.agent {
        head.push_str(&format!(": {}", paint.bold(&plain(agent))));
    }
    if let Some(binding) = &call.binding {
        head.push_str(&format!(" → {}", plain(binding)));
    }
    text.push_str(&format!("{head}  {}\n", paint.cyan(&format!("×{}", call.times))));
    let mut fact = |name: &str, value: &str| {
        text.push_str(&format!(
            "      {}  {}\n",
            paint.dim(&format!("{name:<8}")),
            plain(value)
        ));
    };
    if !call.inside.is_empty() {
        fact("inside", &call.inside.join(" › "));
    }
    for property in &call.properties {
        fact(
            &property.name,
            &format!("{}  ({})", property.value, property.from),
        );
    }
    if let Some(memory) = &call.memory {
        fact("memory", memory);
    }
    if !call.context.is_empty() {
        fact("context", &call.context.join(", "));
    }
    let mut block = |name: &str, body: &str| {
        for (at, line) in plain(body).trim_end().lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            text.push_str(format!("      {}  {line}", paint.dim(&format!("{name:<8}"))).trim_end());
            text.push('\n');
        }
    };
    if let Some(system) = &call.system {
        block("system", system);
    }
    block("prompt", &call.prompt);
}
