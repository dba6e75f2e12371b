//! Values that are given for inputs: whether the program can take them, which is said before anything is run or written.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, CancelWhat, Effect, EffectId, InputRequest, Name, Outcome, RecordBody, RunId, RunStatus, Value,
};
use prose_state::{RunDir, RunState, StoredRun, read_run};
use prose_vm::choices::as_choice;
use prose_vm::{Machine, StepState};

use crate::kept::kept;
use crate::plan::entry_inputs;
use crate::request::RunError;

/// Refuses a value that is none of the choices, where those are known before the program runs. An input that is written
/// several times takes what one of its places takes.
pub(crate) fn check_choices(bundle: &Bundle, given: &IndexMap<String, Value>) -> Result<(), RunError> {
    if given.is_empty() {
        return Ok(());
    }
    let places = entry_inputs(bundle);
    for (name, value) in given {
        let choices = places
            .iter()
            .filter(|place| place.name == name.as_str())
            .map(|place| &place.choices);
        let mut refused = None;
        let mut taken = false;
        for options in choices {
            match as_choice(options, value) {
                Some(_) => taken = true,
                None => refused = Some(options.clone()),
            }
        }
        if let Some(options) = refused.filter(|_| !taken) {
            return Err(RunError::NotAChoice {
                name: name.as_str().into(),
                options,
            });
        }
    }
    Ok(())
}

/// Refuses a name that the program has no input of.
pub(crate) fn check_names(bundle: &Bundle, given: &IndexMap<String, Value>) -> Result<(), RunError> {
    let known: Vec<Name> = match bundle.programs.get(bundle.entry) {
        Some(program) => program.inputs.iter().map(|input| input.name.clone()).collect(),
        None => Vec::new(),
    };
    match given
        .keys()
        .find(|name| !known.iter().any(|known| known == name.as_str()))
    {
        Some(name) => Err(RunError::NoSuchInput {
            name: name.as_str().into(),
            known,
        }),
        None => Ok(()),
    }
}

/// Refuses what a run that is taken up can't use: names it has no input of, answers to what was answered, values that are
/// none of the choices. Nothing of the run is changed. What keeps the run from being taken up at all is not looked at.
pub(crate) fn check_resume(
    project_root: &Path,
    run_id: &RunId,
    given: &IndexMap<String, Value>,
    changed: Option<&Arc<Bundle>>,
    retry_failed: bool,
) -> Result<(), RunError> {
    if given.is_empty() {
        return Ok(());
    }
    let Ok(dir) = RunDir::find(project_root, run_id) else {
        return Ok(());
    };
    let stored = read_run(&dir);
    let over = match stored.summary.state {
        RunState::Ended { status } => match status {
            RunStatus::Completed | RunStatus::Cancelled => true,
            RunStatus::Failed => changed.is_none() && !retry_failed,
            _ => false,
        },
        // It will not be taken up.
        _ => true,
    };
    let Some(bundle) = changed.or(stored.bundle.as_ref()).filter(|_| !over) else {
        return Ok(());
    };
    let Some(standing) = Standing::of(&stored, bundle) else {
        return check_names(bundle, given);
    };
    // A program that is called asks for inputs of its own.
    let asked = |name: &str| standing.open.iter().any(|request| request.name == name);
    let others = given.iter().filter(|(name, _)| !asked(name));
    let others = others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    check_names(bundle, &others)?;
    let places = entry_inputs(bundle);
    for (name, value) in given {
        let mut open = standing
            .open
            .iter()
            .filter(|request| request.name == name.as_str());
        if let Some(request) = open.next() {
            if as_choice(&request.options, value).is_none() {
                return Err(RunError::NotAChoice {
                    name: request.name.clone(),
                    options: request.options.clone(),
                });
            }
            continue;
        }
        let once = {
            let mut own = places.iter().filter(|place| place.name == name.as_str());
            own.next().is_some_and(|place| place.once) && own.next().is_none()
        };
        if once && standing.answered.contains(name.as_str()) {
            return Err(RunError::InputAnswered {
                name: name.as_str().into(),
            });
        }
    }
    check_choices(bundle, given)
}

/// How far a run has come with its inputs.
struct Standing {
    open: Vec<InputRequest>,
    /// Names with an answer, or with a value that was given at the start.
    answered: HashSet<String>,
}

impl Standing {
    /// By its journal; none when that does not fit the program.
    fn of(stored: &StoredRun, bundle: &Arc<Bundle>) -> Option<Standing> {
        let header = stored.header.as_ref()?;
        let same = stored
            .bundle
            .as_ref()
            .is_some_and(|own| own.digest == bundle.digest);
        let changed = if same {
            stored.changed
        } else {
            stored.records.len()
        };
        let records = kept(bundle, &header.inputs, &stored.records, changed);
        let mut machine = Machine::start(bundle.clone(), header.inputs.clone());
        let mut asked: IndexMap<EffectId, InputRequest> = IndexMap::new();
        let mut answered: HashSet<String> = header.inputs.keys().cloned().collect();
        settle(&mut machine, &mut asked);
        for record in records.iter() {
            match &record.body {
                RecordBody::Outcome { id, outcome, .. } => {
                    if let (Some(request), Outcome::Input { .. }) = (asked.get(id), outcome) {
                        answered.insert(request.name.to_string());
                    }
                    machine.resolve(id, outcome.clone()).ok()?;
                }
                RecordBody::Cancel {
                    what: CancelWhat::Run,
                } => machine.cancel(),
                RecordBody::Cancel {
                    what: CancelWhat::Deadline(scope),
                } => machine.deadline(scope),
                _ => continue,
            }
            settle(&mut machine, &mut asked);
        }
        let pending = machine.pending();
        let open = pending.into_iter().filter_map(|issued| match issued.effect {
            Effect::Input(request) => Some(*request),
            _ => None,
        });
        Some(Standing {
            open: open.collect(),
            answered,
        })
    }
}

fn settle(machine: &mut Machine, asked: &mut IndexMap<EffectId, InputRequest>) {
    loop {
        let step = machine.step();
        for issued in step.effects {
            if let Effect::Input(request) = issued.effect {
                asked.insert(issued.id, *request);
            }
        }
        if !matches!(step.state, StepState::Running) {
            return;
        }
    }
}
