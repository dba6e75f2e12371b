//! Sessions from the queue to their outcome: memory, staging, prompt, result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prose_agents::prompt::{
    CONTEXT_LIMIT, PromptParts, STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT, confirmation_summary, render,
};
use prose_agents::{
    CancelToken, Clock, Delivery, MemoryContext, MemoryUpdate, RedactStream, ReplyBody, SessionReply,
    SessionSpawn, SessionUpdate, failure, plain_text,
};
use prose_model::{
    Digest, Effect, EffectId, ErrorKind, Event, Failure, Issued, MemoryMode, Outcome, RecordBody, Segment,
    SessionOutcome, SessionRequest, StateIn, Usage, Value,
};
use prose_state::{
    AgentMemory, BindingFile, Hide, MemoryLock, StateError, digest_of, failpoint, read_staged,
    read_staged_text, safe_file_name, snippet, summarize,
};

use crate::dispatch::due_handle;
use crate::driver::Driver;
use crate::perform::{self, Activity, SessionLimits, Sink, TaskResult};
use crate::request::{Limits, RunError};
use crate::timeline::Next;

/// How long to wait before another look at a memory that another process has.
const MEMORY_RETRY: Duration = Duration::from_millis(200);

/// What is kept of a session while it runs.
pub(crate) struct SessionState {
    staging: PathBuf,
    /// The staging folder of the earlier process's session, when it is tried to reattach.
    earlier_staging: Option<PathBuf>,
    memory: Option<SessionMemory>,
    /// Progress of a simulated session, published when its outcome is due.
    buffer: Vec<SessionUpdate>,
    /// Its text as it may be shown.
    pub(crate) shown: RedactStream,
    activity: Arc<Activity>,
}

struct SessionMemory {
    place: AgentMemory,
    segment: u32,
    /// None where state is in memory.
    _lock: Option<MemoryLock>,
    /// Memory and segment to write once the outcome is journaled.
    update: Option<(String, String)>,
}

/// Why a session does not start.
enum NotStarted {
    /// It fails.
    Fails(Failure),
    /// Another process has its memory.
    Busy,
    /// The run can't go on.
    Broken(RunError),
}

impl From<RunError> for NotStarted {
    fn from(error: RunError) -> Self {
        NotStarted::Broken(error)
    }
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        NotStarted::Fails(failure)
    }
}

/// Only this session can't be had: a memory outside of the workspace, a folder that can't be made.
impl From<StateError> for NotStarted {
    fn from(error: StateError) -> Self {
        let kind = match error {
            StateError::MemoryPath { .. } => ErrorKind::Permission,
            _ => ErrorKind::Backend,
        };
        NotStarted::Fails(failure(kind, error.to_string()))
    }
}

impl Driver {
    /// Puts a session in line. One with memory gets its `issued` record when it starts, since the record names the
    /// memory that the session reads.
    pub(crate) fn enqueue_session(
        &mut self,
        issued: &Issued,
        request: &SessionRequest,
    ) -> Result<(), RunError> {
        // Where the memory can't be had, the session fails when it starts.
        let memory = self
            .memory_place(request)
            .ok()
            .flatten()
            .map(|place| place.dir().to_owned());
        if memory.is_none() {
            self.record(issued, None)?;
        }
        self.queue.push(issued.id.clone(), issued.order, memory);
        Ok(())
    }

    /// Starts every session that may.
    pub(crate) fn start_queued(&mut self) -> Result<(), RunError> {
        while !self.lets_go()
            && !self.holds()
            && let Some(id) = self.queue.next()
        {
            let Some(issued) = self.open.get(&id).cloned() else {
                self.queue.finish(&id);
                continue;
            };
            let Effect::Session(request) = &issued.effect else {
                continue;
            };
            match self.start_session(&issued, request.clone()) {
                Ok(()) => {}
                Err(NotStarted::Broken(error)) => return Err(error),
                Err(NotStarted::Fails(failure)) => {
                    self.schedule(&issued, TaskResult::failed(failure));
                }
                Err(NotStarted::Busy) => {
                    self.queue.block(&id, issued.order);
                    self.later(MEMORY_RETRY, perform::Msg::MemoryFree);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn memory_place(&self, request: &SessionRequest) -> prose_state::Result<Option<AgentMemory>> {
        let Some(memory) = request
            .memory
            .as_ref()
            .filter(|memory| memory.mode != MemoryMode::Read)
        else {
            return Ok(None);
        };
        self.setup
            .roots
            .locate(&self.run.dir, &request.binding.binding.program, memory)
            .map(Some)
    }

    fn start_session(&mut self, issued: &Issued, request: Arc<SessionRequest>) -> Result<(), NotStarted> {
        let spent = self.spent();
        if self.budget.is_spent(&spent) {
            // Only a run that is cancelled gets here: what its `finally` bodies still ask can't be had.
            return Err(failure(ErrorKind::Budget, self.budget.message(&spent).0).into());
        }
        let id = &issued.id;
        // A plain session writes no files.
        let staging = match self.capabilities.delivery {
            Delivery::Files => self.run.dir.staging(self.run.lease, id)?,
            Delivery::Plain => self.run.dir.staging_path(self.run.lease, id),
        };
        let memory = self.take_memory(issued, &request)?;
        let parts = self.prompt_parts(&request, &staging, memory.as_ref().map(|(context, _)| context))?;
        let mut prompt = render(&request, self.capabilities.delivery, &parts, &self.content)?;
        self.setup.redactor.redact_in(&mut prompt.system);
        self.setup.redactor.redact_in(&mut prompt.user);

        let activity = Arc::new(Activity::default());
        let cancel = CancelToken::new();
        let clock = if self.capabilities.virtual_time {
            Clock::virtual_time()
        } else {
            Clock::Real
        };
        let timeout = self.setup.options.timeout_ms.map(Duration::from_millis);
        let (context, state) = memory.unzip();
        let spawn = SessionSpawn {
            effect: id.clone(),
            order: issued.order,
            lease: self.run.lease,
            request,
            prompt,
            work_dir: self.setup.project_root.clone(),
            staging: staging.clone(),
            memory: context,
            timeout,
            budget: self.budget.rest(&spent),
            sink: Arc::new(Sink {
                id: id.clone(),
                tx: self.setup.tx.clone(),
                activity: activity.clone(),
                permissions: self.setup.permissions.clone(),
                questions: self.questions.clone(),
                asked: self.setup.asked.clone(),
                redactor: self.setup.redactor.clone(),
            }),
            cancel: cancel.clone(),
            clock,
        };
        let reattach = self.earlier(&spawn);
        let earlier_staging = reattach.as_ref().map(|(earlier, _)| earlier.staging.clone());
        let session = SessionState {
            staging,
            earlier_staging,
            memory: state,
            buffer: Vec::new(),
            shown: self.setup.redactor.stream(),
            activity: activity.clone(),
        };
        self.sessions.insert(id.clone(), session);
        if !self.capabilities.virtual_time {
            // What is asked has to be known before it can cost anything.
            self.log.sync()?;
        }
        let Limits {
            idle_timeout: idle,
            cancel_grace: grace,
            ..
        } = self.setup.limits;
        let own_idle = self.setup.options.idle_timeout_ms.map(Duration::from_millis);
        let leftovers = self.leftovers.remove(id).unwrap_or_default();
        let limits = SessionLimits {
            total: timeout,
            // Of a simulated session only its length is known: it is held to be silent by someone who asks for that.
            idle: match self.capabilities.virtual_time {
                true => own_idle,
                false => own_idle.or(idle),
            },
            grace,
        };
        let timer = self.setup.timer.clone();
        let task = perform::session(
            self.backend.sessions.clone(),
            spawn,
            reattach,
            leftovers,
            activity,
            limits,
            timer,
        );
        self.spawn_background(issued, cancel, task);
        if self.capabilities.virtual_time {
            let result = self.run_to_end(id)?;
            self.schedule_virtual(issued, result)?;
        }
        Ok(())
    }

    /// Puts a simulated session's end on the timeline. When it is due is journaled, so that a resumed run keeps
    /// the order.
    fn schedule_virtual(&mut self, issued: &Issued, result: TaskResult) -> Result<(), RunError> {
        let TaskResult::Session { took_ms, .. } = &result else {
            self.schedule(issued, result);
            return Ok(());
        };
        let now = self.timeline.now().unwrap_or(0);
        let due = match self.recovered.due(&issued.id) {
            Some(due) => due,
            None => {
                let due = now.saturating_add(*took_ms);
                self.log.append(RecordBody::Started {
                    id: issued.id.clone(),
                    lease: self.run.lease,
                    backend: self.backend.name.clone(),
                    handle: Some(due_handle(due)),
                })?;
                due
            }
        };
        self.timeline
            .push_at(due, issued.order, Next::Answer(issued.id.clone(), result));
        Ok(())
    }

    /// What an earlier process knew of this session, if this backend can find it again.
    fn earlier(&self, spawn: &SessionSpawn) -> Option<(SessionSpawn, serde_json::Value)> {
        if !self.capabilities.reattach {
            return None;
        }
        let started = self.recovered.started(&spawn.effect)?;
        let handle = started
            .handle
            .clone()
            .filter(|_| started.backend == self.backend.name)?;
        let staging = self.run.dir.staging_path(started.lease, &spawn.effect);
        Some((
            SessionSpawn {
                staging,
                ..spawn.clone()
            },
            handle,
        ))
    }

    /// Locks and reads the memory of a persistent agent, and journals which version of it the session reads.
    fn take_memory(
        &mut self,
        issued: &Issued,
        request: &SessionRequest,
    ) -> Result<Option<(MemoryContext, SessionMemory)>, NotStarted> {
        let Some(place) = self.memory_place(request)? else {
            self.record(issued, None)?;
            return Ok(None);
        };
        let resumes = request
            .memory
            .as_ref()
            .is_some_and(|memory| memory.mode == MemoryMode::Resume);
        if self.setup.options.state == StateIn::Memory {
            self.record(issued, None)?;
            let kept = self.remembered.entry(place.dir().to_owned()).or_default();
            if !resumes {
                kept.0 = None;
            }
            kept.1 += 1;
            let context = MemoryContext {
                text: kept.0.clone(),
                segment: kept.1,
            };
            let memory = SessionMemory {
                place,
                segment: context.segment,
                _lock: None,
                update: None,
            };
            return Ok(Some((context, memory)));
        }
        let lock = place.try_lock()?.ok_or(NotStarted::Busy)?;
        failpoint::hit("session", "memory-locked");
        let known = self.recovered.memory(&issued.id).cloned();
        let text = if !resumes {
            None
        } else if let Some(digest) = known {
            // The version that the session was issued with, whatever others wrote since.
            Some(self.run.values.get_text(&digest)?)
        } else {
            place.read()?
        };
        let digest = match &text {
            Some(text) => Some(self.run.values.put(text.as_bytes())?),
            None => None,
        };
        self.record(issued, digest)?;
        if !resumes {
            // IMPORTANT: after the record, which tells a resumed run that what the memory held before is done with.
            // Put away again after a crash, it is put away where the rest is.
            self.log.sync()?;
            place.archive(self.run.id().as_str())?;
        }
        if resumes && text.is_none() {
            let agent = request.agent.as_deref().unwrap_or("the agent");
            self.publisher.notice(
                "warning",
                format!("`{agent}` is resumed but has no memory yet; it starts without"),
            );
        }
        let segment = place.next_segment()?;
        let memory = SessionMemory {
            place,
            segment,
            _lock: Some(lock),
            update: None,
        };
        Ok(Some((MemoryContext { text, segment }, memory)))
    }

    /// What an agent remembers.
    pub(crate) fn recall(&self, place: &AgentMemory) -> prose_state::Result<Option<String>> {
        match self.setup.options.state {
            StateIn::Files => place.read(),
            StateIn::Memory => Ok(self.remembered.get(place.dir()).and_then(|kept| kept.0.clone())),
        }
    }

    fn prompt_parts(
        &mut self,
        request: &SessionRequest,
        staging: &Path,
        memory: Option<&MemoryContext>,
    ) -> Result<PromptParts, NotStarted> {
        let target = &request.binding;
        let header = BindingFile {
            name: target.binding.name.to_string(),
            kind: target.bind_kind.file_kind().unwrap_or("let").to_owned(),
            execution_id: target.binding.execution_id,
            source: snippet(&self.run.bundle, target.source),
            body: String::new(),
        };
        let mut files = Vec::with_capacity(request.context.len());
        let mut memories = Vec::with_capacity(request.context.len());
        for (index, item) in request.context.iter().enumerate() {
            let remembered = match &item.memory_of {
                Some(memory) => {
                    let roots = &self.setup.roots;
                    let place = roots.locate(&self.run.dir, &target.binding.program, memory)?;
                    self.recall(&place)?
                }
                None => None,
            };
            files.push(self.context_file(index, item, remembered.as_deref(), staging)?);
            memories.push(remembered);
        }
        Ok(PromptParts {
            staging: staging.to_owned(),
            binding_header: header.render(),
            context_files: files,
            memory: memory.and_then(|memory| memory.text.clone()),
            context_memory: memories,
            segment: memory.map_or(1, |memory| memory.segment),
            skills_handled: self.capabilities.skills,
            skills: prose_agents::skills::find(&self.setup.project_root, &request.skills),
            broker: self.backend.sessions.has_broker(),
            in_context: self.setup.options.state == StateIn::Memory,
        })
    }

    /// Gives a session a file to read a context entry from, inside its own folder: what lies there does not change
    /// under it when the name is bound anew.
    fn context_file(
        &mut self,
        index: usize,
        item: &prose_model::ContextItem,
        memory: Option<&str>,
        staging: &Path,
    ) -> Result<Option<PathBuf>, NotStarted> {
        if self.setup.options.state == StateIn::Memory {
            return Ok(None);
        }
        if self.capabilities.delivery == Delivery::Plain {
            return self.long_context(item, memory);
        }
        let folder = staging.join("context");
        let name = format!("{:02}-{}.md", index + 1, safe_file_name(&item.label));
        let path = folder.join(name);
        if memory.is_none()
            && item.memory_of.is_none()
            && let Some(binding) = &item.binding
            && self.publisher.holds_value(binding, &item.value)
        {
            self.run.bindings.copy(binding, &path)?;
            return Ok(Some(path));
        }
        let io = |source| StateError::Io {
            action: "write",
            path: path.clone(),
            source,
        };
        if memory.is_none()
            && item.memory_of.is_none()
            && let Value::Text(text) = &item.value
            && let [prose_model::TextPart::Ref(reference)] = text.parts.as_slice()
        {
            // A copy, since the agent may write to what it is given.
            let stored = self.run.values.path(&reference.sha256)?;
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::copy(stored, &path))
                .map_err(io)?;
            return Ok(Some(path));
        }
        let body = match memory {
            Some(text) => text.to_owned(),
            None if item.memory_of.is_some() => String::new(),
            None => self.run.values.render(&item.value)?,
        };
        if let Some(binding) = &item.binding
            && self
                .run
                .bindings
                .read(binding)
                .ok()
                .flatten()
                .is_some_and(|file| file.body == body)
        {
            self.run.bindings.copy(binding, &path)?;
            return Ok(Some(path));
        }
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, body))
            .map_err(io)?;
        Ok(Some(path))
    }

    /// Where a session that gets its context as text finds what is too long for a prompt; none for all else.
    fn long_context(
        &self,
        item: &prose_model::ContextItem,
        memory: Option<&str>,
    ) -> Result<Option<PathBuf>, NotStarted> {
        let values = &self.run.values;
        let is_long = |text: &str| text.len() as u64 > CONTEXT_LIMIT;
        let digest = match (memory, &item.value) {
            (Some(text), _) if is_long(text) => values.put(text.as_bytes())?,
            (None, Value::Text(text)) if text.len() > CONTEXT_LIMIT => values.put_whole(text)?.sha256,
            (None, Value::List(_) | Value::Record(_)) => {
                let text = plain_text(&item.value, &self.content)?;
                if !is_long(&text) {
                    return Ok(None);
                }
                values.put(text.as_bytes())?
            }
            _ => return Ok(None),
        };
        Ok(Some(values.path(&digest)?))
    }

    /// A backend took a session up.
    pub(crate) fn session_started(
        &mut self,
        id: &EffectId,
        mut handle: Option<serde_json::Value>,
        model: Option<String>,
    ) -> Result<(), RunError> {
        if let Some(handle) = &mut handle {
            self.setup.redactor.redact_json(handle);
        }
        if !self.open.contains_key(id) {
            return Ok(());
        }
        let durable = handle.is_some();
        let record = RecordBody::Started {
            id: id.clone(),
            lease: self.run.lease,
            backend: self.backend.name.clone(),
            handle,
        };
        if durable {
            self.log.append_durable(record)?;
        } else {
            self.log.append(record)?;
        }
        self.publish_spawned(id, model);
        Ok(())
    }

    pub(crate) fn publish_spawned(&mut self, id: &EffectId, model: Option<String>) {
        let backend = self.backend.name.clone();
        self.publisher.stream(Event::SessionSpawned {
            effect: id.clone(),
            backend,
            model,
        });
    }

    pub(crate) fn buffer(&mut self, id: &EffectId, update: SessionUpdate) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.buffer.push(update);
        }
    }

    pub(crate) fn buffered(&mut self, id: &EffectId) -> Vec<SessionUpdate> {
        self.sessions
            .get_mut(id)
            .map(|session| std::mem::take(&mut session.buffer))
            .unwrap_or_default()
    }

    /// Makes an outcome of what a session answered: reads what it wrote, stores the result, decides that nothing is a
    /// failure.
    pub(crate) fn finish_session(
        &mut self,
        issued: &Issued,
        reply: Result<SessionReply, Failure>,
        reattached: bool,
    ) -> Result<Outcome, RunError> {
        let reply = match reply {
            Ok(reply) => reply,
            Err(mut failure) => {
                // One that was stopped or broke down left only what it had reported.
                if failure.usage == Usage::default()
                    && let Some(session) = self.sessions.get(&issued.id)
                {
                    failure.usage = session.activity.used();
                }
                return Ok(Outcome::Failed(failure));
            }
        };
        let Some(session) = self.sessions.get(&issued.id) else {
            return Ok(Outcome::Failed(failure(
                ErrorKind::Backend,
                "the session is not known",
            )));
        };
        let mut staging = session.staging.clone();
        if let Some(earlier) = session.earlier_staging.as_ref().filter(|_| reattached) {
            staging.clone_from(earlier);
        }
        let failed = |kind, message: &str| {
            Ok(Outcome::Failed(Failure {
                usage: reply.usage,
                ..failure(kind, message)
            }))
        };
        let read = match &reply.body {
            ReplyBody::Text(text) => {
                let text = self.setup.redactor.redact(text.trim_end());
                match text.trim().is_empty() {
                    true => None,
                    false => Some((self.run.values.externalize_text(&text)?, summarize(&text))),
                }
            }
            ReplyBody::Staged => {
                let path = staging.join(STAGED_BINDING);
                let mut hide = HideSecrets(self.setup.redactor.stream());
                match read_staged(&path, &self.run.values, &mut hide) {
                    Ok(read) => read,
                    Err(StateError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                        return failed(ErrorKind::Empty, "the session wrote no output file");
                    }
                    Err(error) => return failed(ErrorKind::Backend, &error.to_string()),
                }
            }
        };
        let Some((value, summary)) = read else {
            return failed(ErrorKind::Empty, "the session returned nothing");
        };
        let update = match &session.memory {
            Some(_) => memory_update(reply.memory.as_ref(), &staging),
            None => Ok(None),
        };
        let update = update.unwrap_or_else(|error| {
            self.publisher.notice(
                "warning",
                format!("what an agent wants to remember was not taken: {error}"),
            );
            None
        });
        let update = update.map(|(memory, segment)| {
            let hidden = |text: String| self.setup.redactor.redact(&text).into_owned();
            (hidden(memory), hidden(segment))
        });
        failpoint::hit("session", "validated");
        // Both are on disk before the record that names them: a crash before they are projected finds them there.
        let (memory, segment) = match (&update, &session.memory) {
            (Some((memory, segment)), Some(place)) => {
                let stored = Segment {
                    number: place.segment,
                    sha256: self.run.values.put(segment.as_bytes())?,
                };
                (Some(self.run.values.put(memory.as_bytes())?), Some(stored))
            }
            _ => (None, None),
        };
        let summary = reply
            .summary
            .as_deref()
            .map(|reply| {
                summarize(
                    &self
                        .setup
                        .redactor
                        .redact(confirmation_summary(reply).unwrap_or(reply)),
                )
            })
            .unwrap_or(summary);
        let outcome = SessionOutcome {
            value: Value::Text(value),
            summary,
            usage: reply.usage,
            memory,
            segment,
        };
        if let Some(memory) = self
            .sessions
            .get_mut(&issued.id)
            .and_then(|session| session.memory.as_mut())
        {
            memory.update = update;
        }
        Ok(Outcome::Session(Box::new(outcome)))
    }

    /// Writes a persistent agent's memory and segment, after the outcome is journaled.
    pub(crate) fn project_memory(&mut self, id: &EffectId, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Session(_)) {
            return;
        }
        let Some(memory) = self
            .sessions
            .get_mut(id)
            .and_then(|session| session.memory.as_mut())
        else {
            return;
        };
        let Some((text, segment)) = memory.update.take() else {
            return;
        };
        if self.setup.options.state == StateIn::Memory {
            let dir = memory.place.dir().to_owned();
            self.remembered.entry(dir).or_default().0 = Some(text);
            return;
        }
        failpoint::hit("session", "journaled");
        // IMPORTANT: the segment first: memory that is up to date says that both are.
        let written = memory
            .place
            .write_segment(memory.segment, &segment)
            .and_then(|_| memory.place.write(&text));
        if let Err(error) = written {
            self.publisher
                .notice("warning", format!("an agent's memory was not written: {error}"));
        }
    }

    /// Brings memory up to date after a crash between record and projection: `read` and `new` are what the last
    /// session of that memory read and left.
    pub(crate) fn repair_memory(
        &self,
        place: &AgentMemory,
        read: Option<&Digest>,
        new: &Digest,
        segment: Option<&Segment>,
    ) -> prose_state::Result<()> {
        // Mostly nothing is to be done, and then not even the lock file is needed.
        let is_written = place.read()?.map(|text| digest_of(text.as_bytes())).as_ref() == Some(new);
        let has_segment = match segment {
            Some(segment) => {
                place.has_segment(segment.number, &self.run.values.get_text(&segment.sha256)?)?
            }
            None => true,
        };
        if is_written && has_segment {
            return Ok(());
        }
        let _lock = place.lock()?;
        if let Some(segment) = segment {
            place.restore_segment(segment.number, &self.run.values.get_text(&segment.sha256)?)?;
        }
        let current = place.read()?.map(|text| digest_of(text.as_bytes()));
        // Anything else was written by someone after us.
        if current.as_ref() != read || current.as_ref() == Some(new) {
            return Ok(());
        }
        place.write(&self.run.values.get_text(new)?)
    }

    /// What running sessions have used so far by their own account.
    pub(crate) fn in_flight(&self) -> Usage {
        let mut sum = Usage::default();
        for session in self.sessions.values() {
            sum.add(&session.activity.used());
        }
        sum
    }

    /// What a session has used so far by its own account.
    pub(crate) fn reported(&self, id: &EffectId) -> Usage {
        let session = self.sessions.get(id);
        session.map(|session| session.activity.used()).unwrap_or_default()
    }

    /// Frees what an effect held: its slot, its memory, its staged state.
    pub(crate) fn release(&mut self, id: &EffectId) {
        self.queue.finish(id);
        self.sessions.remove(id);
    }
}

/// Keeps secrets out of what is stored of a file.
struct HideSecrets(RedactStream);

impl Hide for HideSecrets {
    fn push(&mut self, piece: &str) -> String {
        self.0.push(piece)
    }
    fn finish(&mut self) -> String {
        self.0.finish()
    }
}

/// What the agent wants to remember; none when it left nothing, and then its memory stays as it is.
fn memory_update(
    update: Option<&MemoryUpdate>,
    staging: &Path,
) -> prose_state::Result<Option<(String, String)>> {
    Ok(match update {
        None => None,
        Some(MemoryUpdate::Text { memory, segment }) => Some((memory.clone(), segment.clone())),
        Some(MemoryUpdate::Staged) => match read_staged_text(&staging.join(STAGED_MEMORY))? {
            None => None,
            Some(memory) => {
                let segment = read_staged_text(&staging.join(STAGED_SEGMENT))?.unwrap_or_default();
                Some((memory, segment))
            }
        },
    })
}
