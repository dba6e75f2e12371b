//! `prose doctor`: which backends can be used, what they rest on, and whether one really answers.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use prose_runtime::backends::detect::{self, BackendReport, KeyReport, ModelMeaning, SelfTest};
use prose_runtime::backends::{Backend, BackendSettings, Registry};
use serde_json::json;

use super::check::project;
use super::{Exit, colour, fail, out, plain, say};
use crate::args::DoctorArgs;
use crate::render::lines::duration;
use crate::render::text::{Columns, Paint};

/// How long a self-test may take.
const TEST_TIME: Duration = Duration::from_secs(120);

/// Which backend a run takes that names none, and why.
struct Taken {
    name: String,
    /// Where it is named; none: it is the first that was found.
    named_in: Option<String>,
}

/// Reports, and tests one if that is wanted.
pub fn doctor(args: &DoctorArgs) -> Exit {
    let (_, config) = match project(Path::new(".")) {
        Ok(project) => project,
        Err(message) => return fail(&message),
    };
    let registry = Registry::configured(config.catalog());
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("can't start: {error}")),
    };
    let taken = match config.run.backend {
        Some(name) => Some(Taken {
            name,
            named_in: config.run.backend_origin,
        }),
        None => detect::taken_unnamed(&registry).map(|name| Taken { name, named_in: None }),
    };
    let test = match &args.test {
        None => None,
        Some(name) => match to_test(&registry, name.as_deref(), taken.as_ref()) {
            Ok(backend) if backend.simulated => {
                return fail(&format!(
                    "`{}` asks no model: there is nothing to test",
                    backend.name
                ));
            }
            Ok(backend) if args.yes || agreed(&backend.name) => Some(backend),
            Ok(backend) => {
                return fail(&format!(
                    "the test was not agreed to, and nothing was asked of `{}`; to agree beforehand: prose doctor --test {} --yes",
                    backend.name, backend.name
                ));
            }
            Err(message) => return fail(&message),
        },
    };
    let reports = runtime.block_on(detect::report(&registry));
    let tested = test.as_ref().map(|backend| {
        if !args.json {
            say(&format!("testing `{}` …\n", backend.name));
        }
        runtime.block_on(run_test(backend))
    });
    // What a backend leaves behind in its runtime is nobody's business any more.
    runtime.shutdown_background();
    let shown = match args.json {
        true => show_json(&reports, taken.as_ref(), test.as_ref().zip(tested.as_ref())),
        false => show_text(&reports, taken.as_ref(), test.as_ref().zip(tested.as_ref())),
    };
    let good = match &tested {
        Some(tested) => tested.is_ok(),
        None => reports.iter().any(|report| report.usable && !report.simulated),
    };
    match shown {
        Exit::Ok if !good => Exit::Failed,
        exit => exit,
    }
}

fn to_test(registry: &Registry, name: Option<&str>, taken: Option<&Taken>) -> Result<Backend, String> {
    let name = name.or(taken.map(|taken| taken.name.as_str()));
    let settings = BackendSettings {
        name: name.map(ToOwned::to_owned),
        ..BackendSettings::default()
    };
    registry.open(&settings).map_err(|error| error.to_string())
}

/// Asks whether the test may cost something. Where nobody can be asked, it may not.
fn agreed(name: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    say(&plain(&format!(
        "`{name}` is asked for one word, which may cost a little money. Go on? [y/N] "
    )));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line).is_ok();
    read && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

async fn run_test(backend: &Backend) -> Result<SelfTest, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("can't make a folder: {error}"))?;
    // Links on the way, as macOS has them, would be no place of the session's own.
    let path = folder
        .path()
        .canonicalize()
        .map_err(|error| format!("can't make a folder: {error}"))?;
    let tested = detect::self_test(backend, &path, TEST_TIME).await;
    tested.map_err(|failure| failure.message)
}

type Tested<'a> = Option<(&'a Backend, &'a Result<SelfTest, String>)>;

fn show_json(reports: &[BackendReport], taken: Option<&Taken>, tested: Tested<'_>) -> Exit {
    let mut object = json!({
        "backends": reports,
        "taken": taken.map(|taken| json!({"name": taken.name, "namedIn": taken.named_in})),
    });
    if let Some((backend, result)) = tested {
        object["test"] = match result {
            Ok(test) => json!({"backend": backend.name, "ok": true, "answer": test}),
            Err(message) => json!({"backend": backend.name, "ok": false, "error": message}),
        };
    }
    out(|stdout| writeln!(stdout, "{object:#}"))
}

fn show_text(reports: &[BackendReport], taken: Option<&Taken>, tested: Tested<'_>) -> Exit {
    let paint = Paint::new(colour(&io::stdout()));
    let mut text = table(reports, &paint);
    text.push('\n');
    text.push_str(&match taken {
        Some(Taken { name, named_in: None }) => {
            format!("Without --backend, `{name}` is taken: it is the first that was found.\n")
        }
        Some(Taken {
            name,
            named_in: Some(place),
        }) => format!(
            "Without --backend, `{name}` is taken, as {} says.\n",
            from_here(place)
        ),
        None => "Without --backend no program runs: no backend was found.\n".to_owned(),
    });
    let known = reports
        .iter()
        .any(|report| Some(&report.name) == taken.map(|taken| &taken.name));
    if let Some(taken) = taken.filter(|_| !known) {
        text.push_str(&format!("There is no backend `{}`.\n", taken.name));
    }
    for report in reports
        .iter()
        .filter(|report| report.usable && !report.models.is_empty())
    {
        text.push_str(&format!(
            "\n{}: {}\n",
            paint.bold(&report.name),
            models(&report.models)
        ));
        if let Some(path) = report.program.as_ref().and_then(|program| program.path.as_ref()) {
            text.push_str(&format!("  program: {}\n", path.display()));
        }
        if let Some(month) = &report.prices_of {
            text.push_str(&format!(
                "  dollars: by list prices of {month}; `[backends.{}.prices]` in prose.toml names others\n",
                report.name
            ));
        }
    }
    for report in reports.iter().filter(|report| !report.usable) {
        let reason = plain(report.reason.as_deref().unwrap_or("it can't be used"));
        text.push_str(&format!("\n{}: {reason}\n", paint.bold(&report.name)));
        if let Some(setup) = &report.setup {
            text.push_str(&format!("  to set it up: {setup}\n"));
        }
    }
    if let Some((backend, result)) = tested {
        text.push('\n');
        text.push_str(&match result {
            Ok(test) => format!(
                "{} `{}` answered \"{}\" after {}{}\n",
                paint.green("ok:"),
                backend.name,
                plain(&test.said),
                duration(test.took_ms),
                used(test),
            ),
            Err(message) => format!(
                "{} `{}`: {}\n",
                paint.red("failed:"),
                backend.name,
                plain(message)
            ),
        });
    }
    out(|stdout| stdout.write_all(text.as_bytes()))
}

/// A place without the way to the current folder.
fn from_here(place: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = Path::new(place).strip_prefix(&here);
    below.map_or_else(|_| place.to_owned(), |below| below.display().to_string())
}

fn table(reports: &[BackendReport], paint: &Paint) -> String {
    let mut columns = Columns::new(["USABLE", "BACKEND", "VERSION", "KEY", "ADDRESS", "CONFIGURED IN"]);
    let dash = || "-".to_owned();
    for report in reports {
        let program = report.program.as_ref();
        columns.row([
            match (report.simulated, report.usable) {
                (true, _) => "made up",
                (_, true) => "yes",
                (_, false) => "no",
            }
            .to_owned(),
            match report.kind == report.name {
                true => report.name.clone(),
                false => format!("{} ({})", report.name, report.kind),
            },
            match program {
                Some(program) if program.path.is_some() => plain(program.version.as_deref().unwrap_or("?")),
                _ => dash(),
            },
            report.key.as_ref().map_or_else(dash, key),
            report.base_url.clone().unwrap_or_else(dash),
            report.configured_in.as_deref().map_or_else(dash, from_here),
        ]);
    }
    columns.render(paint, 0, |word| match word.trim() {
        "yes" => paint.green(word),
        "no" => paint.red(word),
        _ => paint.dim(word),
    })
}

fn key(key: &KeyReport) -> String {
    match (&key.set_in, key.required) {
        (Some(place), _) => format!("{} in {place}", key.variable),
        (None, true) => format!("{} is not set", key.variable),
        (None, false) => format!("{} is not set, and need not be", key.variable),
    }
}

fn models(models: &[ModelMeaning]) -> String {
    let one = |model: &ModelMeaning| match &model.id {
        Some(id) if *id == model.name => format!("{id} as it is"),
        Some(id) if model.configured => format!("{} is {id} (configured)", model.name),
        Some(id) => format!("{} is {id}", model.name),
        None => format!("{} is not configured", model.name),
    };
    models.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn used(test: &SelfTest) -> String {
    let mut text = String::new();
    if let Some(model) = &test.model {
        text.push_str(&format!(", by {}", plain(model)));
    }
    if test.usage.tokens() > 0 {
        text.push_str(&format!(", {} tokens", test.usage.tokens()));
    }
    if let Some(cost) = test.usage.cost_usd {
        text.push_str(&format!(", ${cost:.4}"));
    }
    text
}
