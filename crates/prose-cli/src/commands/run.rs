//! `prose run` and `prose resume`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prose_model::codes::Severity;
use prose_model::{Bundle, ErrorKind, RunEvent, RunOptions, RunStatus, StateIn};
use prose_project::{Config, LoadError, Loaded, StateKind, Target, resolve_target};
use prose_runtime::backends::{BackendSettings, MockFile, MockSource};
use prose_runtime::runs::{RunState, StateError, find_run, read_run, run_summary, state_word};
use prose_runtime::{
    Attach, Engine, EngineConfig, InputMode, Overrides, ResumeRequest, RunControl, RunError, RunHandle,
    RunRequest, RunResult, StreamItem, value_from_json,
};
use tokio::sync::Notify;

use super::asking::{Asker, Prompter, Question, choices, meant, next_question, open_questions};
use super::check::{configured, project, render_all};
use super::destination::{Destination, Kept};
use super::{Exit, colour, fail, out, plain, say};
use crate::args::{CommonArgs, ResumeArgs, RunArgs};
use crate::render::lines::Lines;
use crate::render::tree::{Screen, Tree};

/// How often the live tree is drawn.
const FRAME: Duration = Duration::from_millis(80);

pub(super) type Inputs = indexmap::IndexMap<String, prose_model::Value>;

/// Runs a program.
pub fn run(args: RunArgs) -> Exit {
    if args.dry_run {
        return super::dry_run::dry_run(&args);
    }
    match prepare(&args) {
        Ok((engine, mut request)) => {
            let asker = Asker::of(&args.common);
            request.attach.permissions = asker.provider();
            drive(&args.common, &asker, async move {
                engine.start(request).await.map_err(|error| {
                    with_files(error, |room| match room {
                        true => "nothing was started; make room, and start it again".to_owned(),
                        false => "nothing was started".to_owned(),
                    })
                })
            })
        }
        Err(message) => fail(&message),
    }
}

/// Continues a run.
pub fn resume(args: ResumeArgs) -> Exit {
    match prepare_resume(&args) {
        Ok((engine, mut request)) => {
            let asker = Asker::of(&args.common);
            request.attach.permissions = asker.provider();
            let run = request.run_id.clone();
            drive(&args.common, &asker, async move {
                engine.resume(request).await.map_err(|error| match error {
                    RunError::ProgramChanged { ref run, ref diff, .. } => RunError::Engine(format!(
                        "{error}\n\n{}\nto go on with the program as it is now: prose resume {run} --accept-changes\nwhat was answered counts where the changed program asks the same in the same place",
                        diff.trim_end()
                    )),
                    error => with_files(error, |room| match room {
                        true => format!("nothing was asked, and what was answered is safe in the run; make room, then go on: prose resume {run}"),
                        false => "nothing was asked, and what was answered is safe in the run".to_owned(),
                    }),
                })
            })
        }
        Err(message) => fail(&message),
    }
}

/// An error of the run's files, with what it means for the run; `then` is told whether there is no room for them.
fn with_files(error: RunError, then: impl FnOnce(bool) -> String) -> RunError {
    match &error {
        RunError::State(state @ StateError::Io { .. }) => {
            RunError::Engine(format!("{error}\n  {}", then(state.is_no_room())))
        }
        _ => error,
    }
}

/// From arguments to a request; errors are messages.
fn prepare_resume(args: &ResumeArgs) -> Result<(Engine, ResumeRequest), String> {
    let common = &args.common;
    let (root, config) = project(Path::new("."))?;
    let dir = find_run(&root, &args.run_id).map_err(|error| error.to_string())?;
    let summary = run_summary(&dir);
    let engine = Engine::with(EngineConfig::configured(&root, config.catalog()));
    if let RunState::Ended { status } = &summary.state
        && match status {
            RunStatus::Completed | RunStatus::Cancelled => true,
            RunStatus::Failed => !args.accept_changes && !args.retry_failed,
            _ => false,
        }
    {
        let given = if common.input.is_empty() && common.inputs.is_none() {
            ""
        } else {
            " The values given for inputs are not used."
        };
        let mend = match status {
            RunStatus::Failed => {
                " To go on with its program mended, add --accept-changes; to try again what failed for a reason that passes (the backend, time, the budget), --retry-failed."
            }
            _ => "",
        };
        say(&format!(
            "note: run {} is over ({}): nothing is run again; this is what it came to.{given}{mend}\n",
            summary.id,
            state_word(&summary.state),
        ));
    }
    let mock = mock_file(common)?;
    if mock.is_some()
        && common.backend.is_none()
        && !matches!(summary.backend.as_str(), "simulate" | "replay")
    {
        return Err(format!(
            "the run was started on `{}`, which takes no mock file; to go on with made-up answers: add --backend simulate",
            summary.backend
        ));
    }
    // Without any of these the run goes on as it was started, with the mock file that it keeps.
    let backend = if common.backend.is_some() || mock.is_some() || common.realtime {
        let kept = engine
            .header(&summary.id)
            .map_err(|error| error.to_string())?
            .options;
        let same = common.backend.as_ref().is_none_or(|name| *name == kept.backend);
        let settings = BackendSettings {
            name: Some(common.backend.clone().unwrap_or(kept.backend)),
            mock: match &mock {
                Some(mock) => Some(MockSource::Path(mock.clone())),
                None => kept.mock_text.filter(|_| same).map(MockSource::Text),
            },
            realtime: common.realtime,
        };
        Some(engine.backend(&settings).map_err(|error| error.to_string())?)
    } else {
        None
    };
    let changed = match args.accept_changes {
        true => Some(accepted(&engine, &summary.id, args.program.as_deref(), &config)?),
        false => None,
    };
    if let Some(path) = &common.record {
        let own = read_run(&dir).bundle;
        let kept = Kept::of(&root)
            .file(mock.as_deref(), "the mock file, which is read")
            .file(common.inputs.as_deref(), "the file of --inputs");
        let programs = own.iter().chain(&changed);
        let kept = programs.fold(kept, |kept, bundle| kept.program(bundle));
        Destination::record(path).check_record(&kept)?;
    }
    let request = ResumeRequest {
        run_id: summary.id,
        inputs: given_inputs(common)?,
        changed,
        backend,
        overrides: Overrides {
            max_parallel: common.max_parallel,
            timeout_ms: common.timeout.map(millis),
            idle_timeout_ms: common.idle_timeout.map(millis),
            budget_usd: common.budget,
            budget_tokens: common.budget_tokens,
            retry_failed: args.retry_failed,
        },
        attach: attach(common),
    };
    Ok((engine, request))
}

fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}

/// The mock file that was named, which has to be there.
fn mock_file(common: &CommonArgs) -> Result<Option<PathBuf>, String> {
    match &common.mock {
        Some(mock) if !mock.is_file() => Err(format!("there is no mock file {}", mock.display())),
        mock => Ok(mock.clone()),
    }
}

/// The run's program as it is now, or why it can't be run.
fn accepted(
    engine: &Engine,
    run: &prose_model::RunId,
    program: Option<&Path>,
    config: &Config,
) -> Result<std::sync::Arc<Bundle>, String> {
    let root = engine.project_root();
    let path = match program {
        Some(path) => path.to_owned(),
        None => {
            let path = root.join(engine.program(run).map_err(|error| error.to_string())?);
            if !path.exists() {
                return Err(format!(
                    "{}, the run's program, is gone; if it has another name now, add --program FILE",
                    path.display()
                ));
            }
            path
        }
    };
    let loaded = prose_project::load(&path, root).map_err(|error| error.to_string())?;
    runnable(&loaded, config)
}

/// A program that was checked and lowered.
pub(super) struct Prepared {
    pub(super) path: PathBuf,
    pub(super) root: PathBuf,
    pub(super) config: Config,
    pub(super) bundle: Arc<Bundle>,
    /// The program's path as it is shown.
    pub(super) program: String,
    pub(super) inputs: Inputs,
}

/// Loads the program and the values for its inputs; errors are messages.
pub(super) fn load(args: &RunArgs) -> Result<Prepared, String> {
    let path = match resolve_target(&args.target) {
        Target::Local(path) => path,
        Target::Remote(_) | Target::NotFound => {
            return Err(LoadError::Remote {
                target: args.target.clone(),
            }
            .to_string());
        }
    };
    let (root, config) = project(&path)?;
    let loaded = prose_project::load(&path, &root).map_err(|error| error.to_string())?;
    let bundle = runnable(&loaded, &config)?;
    let inputs = inputs(&args.common, &bundle)?;
    Ok(Prepared {
        program: loaded.workspace.display(loaded.file).to_owned(),
        path,
        root,
        config,
        bundle,
        inputs,
    })
}

/// From arguments to a request; errors are messages.
fn prepare(args: &RunArgs) -> Result<(Engine, RunRequest), String> {
    let Prepared {
        path,
        root,
        config,
        bundle,
        program,
        inputs,
    } = load(args)?;
    let asked = args.state.or(args.in_context.then_some(StateKind::InContext));
    let state = match asked.or(config.run.state) {
        None | Some(StateKind::Filesystem) => StateIn::Files,
        Some(StateKind::InContext) => StateIn::Memory,
        Some(other) => {
            return Err(format!(
                "runs can't keep their state in `{other}` yet, only in `filesystem` or `in-context`"
            ));
        }
    };
    if state == StateIn::Memory && args.common.record.is_some() {
        return Err("--record reads the run's journal, and --state in-context keeps none".to_owned());
    }
    let mock = mock_file(&args.common)?.or_else(|| MockFile::beside(&path));
    let engine = Engine::with(EngineConfig::configured(&root, config.catalog()));
    let settings = BackendSettings {
        name: args.common.backend.clone().or_else(|| config.run.backend.clone()),
        mock: mock.clone().map(MockSource::Path),
        realtime: args.common.realtime,
    };
    let backend = engine.backend(&settings).map_err(|error| error.to_string())?;
    if args.common.mock.is_some() && !backend.simulated {
        // Whoever names one doesn't mean to pay.
        return Err(format!(
            "`{}` is a real backend, which takes no mock file; for made-up answers: add --backend simulate",
            backend.name
        ));
    }
    if let Some(record) = &args.common.record {
        // Others than those that make answers up don't read it.
        let read = mock.as_deref().filter(|_| backend.mock_text.is_some());
        let kept = Kept::of(&root)
            .program(&bundle)
            .file(read, "the mock file, which is read")
            .file(args.common.inputs.as_deref(), "the file of --inputs");
        Destination::record(record).check_record(&kept)?;
    }
    let options = RunOptions {
        mock: mock.map(|mock| mock.to_string_lossy().into_owned()),
        state,
        max_parallel: args.common.max_parallel.or(config.run.max_parallel),
        timeout_ms: args.common.timeout.or(config.run.timeout).map(millis),
        idle_timeout_ms: args.common.idle_timeout.or(config.run.idle_timeout).map(millis),
        budget_usd: args.common.budget.or(config.run.budget_usd),
        budget_tokens: args.common.budget_tokens.or(config.run.budget_tokens),
        ..RunOptions::default()
    };
    let request = RunRequest {
        bundle,
        program,
        inputs,
        options,
        backend,
        attach: attach(&args.common),
    };
    Ok((engine, request))
}

/// The bundle, unless something keeps the program from running. Warnings are shown, and keep nothing.
fn runnable(loaded: &Loaded, config: &Config) -> Result<std::sync::Arc<Bundle>, String> {
    let workspace = &loaded.workspace;
    if let Some(remote) = workspace.remote().first() {
        return Err(format!(
            "{} uses `{}`, a remote program; fetching programs is not supported yet, and nothing was fetched",
            workspace.display(remote.file),
            remote.target
        ));
    }
    if let Some(error) = workspace.unreadable().first() {
        return Err(format!("a used program can't be read: {error}"));
    }
    let worth = |severity: Severity| severity > Severity::Hint;
    let found: Vec<_> = loaded
        .diagnostics
        .iter()
        .flat_map(|(_, found)| configured(found.clone(), config))
        .filter(|diagnostic| worth(diagnostic.severity))
        .collect();
    say(&render_all(workspace, &found, colour(&io::stderr())));
    let errors = found.iter().filter(|d| d.severity == Severity::Error).count();
    match &loaded.bundle {
        Ok(bundle) if errors == 0 => Ok(bundle.clone()),
        _ => Err(match errors {
            0 => "the program can't be run as written".to_owned(),
            1 => "1 error; nothing was run".to_owned(),
            n => format!("{n} errors; nothing was run"),
        }),
    }
}

/// Values from `--inputs` and `--input`; the latter win.
fn given_inputs(common: &CommonArgs) -> Result<Inputs, String> {
    let mut inputs = Inputs::new();
    if let Some(path) = &common.inputs {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("can't read {}: {error}", path.display()))?;
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text)
            .map_err(|error| format!("{} is not a JSON object of input values: {error}", path.display()))?;
        inputs.extend(
            object
                .into_iter()
                .map(|(name, value)| (name, value_from_json(value))),
        );
    }
    for (name, value) in &common.input {
        inputs.insert(name.clone(), prose_model::Value::text(value.as_str()));
    }
    Ok(inputs)
}

/// The values that were given. A name that the program doesn't have is an error, and so is a value that can't be chosen.
fn inputs(common: &CommonArgs, bundle: &Bundle) -> Result<Inputs, String> {
    let inputs = given_inputs(common)?;
    Engine::check_inputs(bundle, &inputs).map_err(|error| error.to_string())?;
    Ok(inputs)
}

/// A person can be asked only where both sides of the conversation are a terminal.
pub(super) fn asks(common: &CommonArgs) -> bool {
    !common.json && io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn attach(common: &CommonArgs) -> Attach {
    Attach {
        inputs: match asks(common) {
            true => InputMode::Ask,
            false => InputMode::Never,
        },
        ..Attach::default()
    }
}

/// What shows the events.
enum View {
    Json,
    Quiet,
    Lines(Box<Lines>),
    Tree(Box<Tree>, Screen<io::Stderr>),
}

impl View {
    /// Shows an event.
    ///
    /// # Errors
    /// When what has to be written can't be.
    fn show(&mut self, event: &RunEvent) -> io::Result<()> {
        match self {
            View::Json => {
                let line = serde_json::to_string(event)?;
                return writeln!(io::stdout().lock(), "{line}");
            }
            View::Quiet => {}
            View::Lines(lines) => {
                if let Some(line) = lines.line(event) {
                    say(&format!("{line}\n"));
                }
            }
            View::Tree(tree, _) => tree.apply(event),
        }
        Ok(())
    }
}

/// Starts, watches and ends a run.
fn drive(
    common: &CommonArgs,
    asker: &Asker,
    start: impl Future<Output = Result<RunHandle, RunError>>,
) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("can't start: {error}")),
    };
    let exit = runtime.block_on(async {
        let interrupts = Arc::new(Interrupts::default());
        tokio::spawn(interrupts.clone().listen());
        match start.await {
            Ok(handle) => watch(common, asker, handle, &interrupts).await,
            Err(error) => fail(&error.to_string()),
        }
    });
    // A thread that waits for a line of standard input can't be stopped and must not hold the process.
    runtime.shutdown_background();
    exit
}

/// What Ctrl-C does. It is listened for apart from everything that writes: a reader that has stopped reading holds a
/// write up for ever, and must not hold the person up.
#[derive(Default)]
struct Interrupts {
    control: OnceLock<RunControl>,
    over: AtomicBool,
    cancelling: Notify,
}

impl Interrupts {
    async fn listen(self: Arc<Self>) {
        let mut count = 0;
        while tokio::signal::ctrl_c().await.is_ok() {
            count += 1;
            match self.control.get() {
                Some(control) if count < 3 && !self.over.load(Ordering::Relaxed) => {
                    control.cancel();
                    if count == 1 {
                        self.cancelling.notify_one();
                    }
                }
                // Before the start, behind the end, or for the third time: what is written is safe as it is.
                _ => std::process::exit(130),
            }
        }
    }
}

async fn watch(common: &CommonArgs, asker: &Asker, mut handle: RunHandle, interrupts: &Interrupts) -> Exit {
    let control = handle.control();
    let _ = interrupts.control.set(control.clone());
    let terminal = io::stderr().is_terminal();
    let mut view = match (common.json, common.quiet || handle.ended().is_some(), terminal) {
        (true, ..) => View::Json,
        (_, true, _) => View::Quiet,
        // Where nothing is written the markers are what there is to read.
        (.., true) if !control.dir().as_os_str().is_empty() => {
            View::Tree(Box::default(), Screen::new(io::stderr(), colour(&io::stderr())))
        }
        _ => View::Lines(Box::new(Lines::new(control.bundle().clone()))),
    };
    let asks = asks(common);
    let mut prompter = Prompter::default();
    let mut frame = tokio::time::interval(FRAME);
    let mut unwritten = false;
    let Some(mut events) = handle.take_events() else {
        return fail("the run's events were taken");
    };
    loop {
        tokio::select! {
            item = events.next() => match item {
                Some(item) => {
                    let mut shown = Ok(());
                    match item {
                        StreamItem::Event(event) => shown = view.show(&event),
                        StreamItem::Gap(gap) => {
                            control.make_up(&gap, |event| {
                                shown = view.show(&event);
                                shown.is_ok()
                            });
                        }
                    }
                    if let Err(error) = shown {
                        // Nobody gets the events any more; the run can be resumed.
                        control.stop();
                        if error.kind() == io::ErrorKind::BrokenPipe {
                            say("nobody reads the events any more; the run is stopped\n");
                        } else {
                            fail(&format!("the events can't be written to standard output: {error}"));
                            unwritten = true;
                        }
                        view = View::Quiet;
                    }
                }
                None => break,
            },
            _ = frame.tick() => {
                prompter.withdraw(|| open_questions(&control));
                if asks && !prompter.waits() && let Some(question) = next_question(asker, &control) {
                    if let View::Tree(tree, screen) = &mut view {
                        let _ = screen.draw(tree);
                        let _ = screen.erase();
                    }
                    prompter.ask(question);
                }
                // The tree stands still while a person types below it.
                match &mut view {
                    View::Tree(tree, screen) if !prompter.waits() => {
                        let _ = screen.draw(tree);
                    }
                    View::Lines(lines) => {
                        for line in lines.overdue(std::time::Instant::now()) {
                            say(&format!("{line}\n"));
                        }
                    }
                    _ => {}
                }
            }
            answer = prompter.answer() => match answer {
                Some((Question::Input(question), text)) => {
                    // Refused only when the question was settled meanwhile, which is as good.
                    let _ = control.answer(&question.effect, prose_model::Value::text(text));
                }
                Some((Question::Permission(question), text)) => question.settle(&text),
                Some((Question::Session(question), text)) => {
                    let text = meant(&question, &text);
                    let _ = control.answer(&question.request, prose_model::Value::text(text));
                }
                None => {
                    control.stop_asking();
                    asker.stop();
                }
            },
            () = interrupts.cancelling.notified() => {
                if let View::Tree(_, screen) = &mut view {
                    let _ = screen.erase();
                }
                say("cancelling; clean-up still runs, Ctrl-C again cuts it short\n");
            }
        }
    }
    if let View::Tree(tree, screen) = &mut view {
        let _ = screen.draw(tree);
    }
    let joined = handle.join().await;
    interrupts.over.store(true, Ordering::Relaxed);
    let exit = match joined {
        Ok(result) => match finish(common, &result) {
            Exit::Ok if unwritten => Exit::Failed,
            exit => exit,
        },
        Err(error) => {
            fail(&error.to_string());
            let exit = exit_of(&error);
            if exit == Exit::Failed && !control.dir().as_os_str().is_empty() {
                let then = match &error {
                    // It says itself what is left.
                    RunError::State(StateError::JournalGone { .. } | StateError::JournalAltered { .. }) => {
                        None
                    }
                    RunError::State(state) if state.is_no_room() => {
                        Some("what was answered until then is safe in the run; make room, then go on")
                    }
                    _ => Some("what was answered is kept; to go on when that is mended"),
                };
                if let Some(then) = then {
                    say(&format!("{then}: {}\n", resume_command(control.dir())));
                }
            }
            exit
        }
    };
    if let Some(path) = &common.record {
        write_record(control.dir(), path);
    }
    exit
}

/// A run whose journal does not fit its program is refused although it had begun to be read: nothing was asked or written.
fn exit_of(error: &RunError) -> Exit {
    match error {
        RunError::Diverged { .. } => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// Writes the mock file; that it can't be written doesn't change how the run ended.
fn write_record(dir: &Path, path: &Path) {
    match super::destination::write_record(dir, path) {
        Ok(problems) => {
            for problem in problems {
                say(&format!("warning: {}: {problem}\n", path.display()));
            }
        }
        Err(error) => say(&plain(&format!(
            "error: the record was not written: {error}\n  to try again: {} --record FILE\n",
            resume_command(dir)
        ))),
    }
}

/// Prints the outputs and says what there is to say about the end.
fn finish(common: &CommonArgs, result: &RunResult) -> Exit {
    let mut written = Exit::Ok;
    if !common.json {
        match result.output() {
            // Nothing is no empty line.
            Ok(Some(output)) if output.is_empty() && result.has_no_value() => {}
            Ok(Some(output)) => {
                written = out(|stdout| output.write(stdout));
                if written != Exit::Ok && !result.dir.as_os_str().is_empty() {
                    say(&format!(
                        "the outputs are safe in the run; to print them again: {}\n",
                        resume_command(&result.dir)
                    ));
                }
            }
            Ok(None) => {}
            Err(error) => written = fail(&error.to_string()),
        }
    }
    match result.status {
        // The code for "nothing was run" would be a lie here.
        RunStatus::Completed if written != Exit::Ok => Exit::Failed,
        RunStatus::Completed => Exit::Ok,
        RunStatus::Failed => {
            if let Some(error) = &result.error {
                say(&plain(&format!(
                    "error: {} (at {})\n",
                    error.message,
                    error.place()
                )));
                let passes = matches!(
                    error.kind,
                    ErrorKind::Backend | ErrorKind::Timeout | ErrorKind::Budget
                );
                if passes && !result.dir.as_os_str().is_empty() {
                    say(&format!(
                        "what was answered is kept; to try again what failed: {} --retry-failed\n",
                        resume_command(&result.dir)
                    ));
                }
            }
            Exit::Failed
        }
        RunStatus::Waiting if result.dir.as_os_str().is_empty() => {
            let names: Vec<String> = result
                .waiting
                .iter()
                .map(|input| format!("--input {}=…", input.name))
                .collect();
            say(&format!(
                "the run waits for input, and its state was in context, so that it can't go on; start it again with {}\n",
                names.join(" ")
            ));
            Exit::Waiting
        }
        RunStatus::Waiting => {
            let mut text = "the run waits for input:\n".to_owned();
            let mut command = resume_command(&result.dir);
            for input in &result.waiting {
                text.push_str(&format!(
                    "  {}: {}{}\n",
                    input.name,
                    input.prompt.trim_end(),
                    choices(input)
                ));
                let answer = input.options.first().map_or("…", String::as_str);
                command.push_str(&format!(
                    " --input {}",
                    shell_word(&format!("{}={answer}", input.name))
                ));
            }
            say(&format!("{text}to answer: {command}\n"));
            Exit::Waiting
        }
        RunStatus::OutOfBudget => {
            if let Some(error) = &result.error {
                say(&format!("error: {}\n", error.message));
            }
            if let Some(root) = elsewhere(&result.dir) {
                say(&format!("the run is below {}; resume it there\n", root.display()));
            }
            Exit::Failed
        }
        RunStatus::Cancelled => Exit::Cancelled,
        RunStatus::Interrupted => {
            say(&format!(
                "the run was interrupted; to go on: {}\n",
                resume_command(&result.dir)
            ));
            Exit::Cancelled
        }
    }
}

/// The command that goes on with a run, as it works where the person is.
fn resume_command(dir: &Path) -> String {
    let id = dir.file_name().unwrap_or_default().to_string_lossy();
    match elsewhere(dir) {
        Some(root) => format!("cd {} && prose resume {id}", shell_word(&root.to_string_lossy())),
        None => format!("prose resume {id}"),
    }
}

/// The project root of a run that isn't found from the current folder, because that belongs to another project or to none.
fn elsewhere(dir: &Path) -> Option<&Path> {
    let root = dir.ancestors().nth(3)?;
    let here = super::check::root(Path::new("."));
    let same = match (here.canonicalize(), root.canonicalize()) {
        (Ok(here), Ok(root)) => here == root,
        _ => true,
    };
    (!same).then_some(root)
}

/// A word as a shell takes it whole.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '=' | '.' | '/' | '…');
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_can_not_be_resumed_is_refused() {
        let diverged = RunError::Diverged {
            run: "r".into(),
            reason: String::new(),
        };
        assert_eq!(exit_of(&diverged), Exit::Refused);
        assert_eq!(exit_of(&RunError::Engine("a panic".to_owned())), Exit::Failed);
    }
}
