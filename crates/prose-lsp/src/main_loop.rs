//! The thread that owns the analysis database.
//!
//! It takes one [`Event`] at a time, in the order in which the client's messages arrived. Writes happen here and
//! nowhere else; reads are handed, each with a snapshot, to a small fixed pool of threads.
//!
//! IMPORTANT: a salsa write waits until every clone of the database is dropped. So no snapshot is ever kept on this
//! thread or in a queue: one is made at the moment an idle worker takes a task, and the worker drops it before it
//! reports back. A write cancels the readers (their queries unwind at the next salsa call); a cancelled task comes
//! back and is run again, or is answered with `ContentModified` when its document has changed meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lsp_types::request::WorkspaceDiagnosticRefresh;
use lsp_types::{MessageType, TextDocumentContentChangeEvent, Url};
use prose_ide::{AnalysisHost, Change, FileContent, FileId};
use tower_lsp::jsonrpc::Error;

use crate::convert;
use crate::documents::{Documents, FileKey};
use crate::guard::panic_message;
use crate::outbox::Outbox;
use crate::project::Project;
use crate::query::{Basis, Query, Reach, Snapshot};
use crate::scan::{self, Found, Stamp};
use crate::session::Session;
use crate::settings::{Lint, Settings};
use crate::watchdog::Watchdog;

/// Nobody types so slowly, and nobody notices work that is done after it.
const PAUSE: Duration = Duration::from_millis(700);

/// Everything that can happen to the main loop.
pub(crate) enum Event {
    /// `initialize` was answered.
    Initialized {
        session: Arc<Session>,
        settings: Settings,
    },
    /// `workspace/didChangeConfiguration`.
    Configured { settings: Settings },
    /// `textDocument/didOpen`.
    Opened { uri: Url, version: i32, text: String },
    /// `textDocument/didChange`.
    Changed {
        uri: Url,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    },
    /// `textDocument/didClose`.
    Closed { uri: Url },
    /// `workspace/didChangeWatchedFiles`: the files that are different now on disk.
    DiskChanged { uris: Vec<Url> },
    /// Files that are not open may have changed on disk, though the client doesn't say so.
    Stale,
    /// Programs of the workspace.
    Found(Vec<Found>),
    /// Files have changed on disk since they were read.
    Outdated(Vec<FileId>),
    /// The workspace was looked through, for programs or for changes.
    Scanned,
    /// A request that reads the database.
    Query {
        /// Missing in questions about no file in particular.
        uri: Option<Url>,
        basis: Basis,
        reach: Reach,
        query: Box<dyn Query>,
    },
    /// A worker is idle again.
    Idle(Outcome),
    /// Diagnostics were computed.
    Diagnosed {
        file: FileId,
        revision: u64,
        /// As JSON.
        items: String,
    },
    /// The session is over.
    Quit,
    /// Panics inside a turn, so that tests see what happens then.
    #[cfg(test)]
    Sabotage,
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Event::Initialized { .. } => "initialized",
            Event::Configured { .. } => "didChangeConfiguration",
            Event::Opened { .. } => "didOpen",
            Event::Changed { .. } => "didChange",
            Event::Closed { .. } => "didClose",
            Event::DiskChanged { .. } => "didChangeWatchedFiles",
            Event::Stale => "stale",
            Event::Found(_) => "found",
            Event::Outdated(_) => "outdated",
            Event::Scanned => "scanned",
            Event::Query { query, .. } => query.name(),
            Event::Idle(_) => "idle",
            Event::Diagnosed { .. } => "diagnosed",
            Event::Quit => "quit",
            #[cfg(test)]
            Event::Sabotage => "sabotage",
        }
    }
}

/// Stands for the file in questions about none.
const NO_FILE: FileId = FileId(u32::MAX);

/// Work for the pool.
enum Task {
    Query {
        file: FileId,
        /// With [`Basis::Position`], the document's generation when the request arrived.
        generation: Option<u64>,
        query: Box<dyn Query>,
    },
    Diagnose {
        file: FileId,
        revision: u64,
    },
}

/// How a task went.
pub(crate) struct Outcome {
    /// It was a diagnosis.
    diagnosis: bool,
    /// The request that a write has interrupted.
    interrupted: Option<Interrupted>,
}

/// A request that has to be looked at again.
struct Interrupted {
    file: FileId,
    generation: Option<u64>,
    query: Box<dyn Query>,
}

/// The parts of the server the main loop works with.
pub(crate) struct Setup {
    pub(crate) documents: Arc<Documents>,
    pub(crate) outbox: Outbox,
    pub(crate) events: Receiver<Event>,
    /// For the workers, which report through the same channel.
    pub(crate) sender: Sender<Event>,
    /// See [`crate::Config::at_rest`].
    pub(crate) at_rest: fn(),
    /// Called when a turn panicked; the loop is over then.
    pub(crate) on_panic: Box<dyn FnOnce(String) + Send>,
}

/// Starts the thread. It ends at [`Event::Quit`] or when every sender is gone.
pub(crate) fn spawn(setup: Setup) -> std::io::Result<thread::JoinHandle<()>> {
    let workers = thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    let (tasks, queue) = std::sync::mpsc::channel();
    let queue = Arc::new(Mutex::new(queue));
    for n in 0..workers {
        let queue = Arc::clone(&queue);
        let events = setup.sender.clone();
        thread::Builder::new()
            .name(format!("prose-read-{n}"))
            .spawn(move || work(&queue, &events))?;
    }
    thread::Builder::new()
        .name("prose-main-loop".into())
        .spawn(move || {
            let Setup {
                documents,
                outbox,
                events,
                sender,
                at_rest,
                on_panic,
            } = setup;
            let mut watchdog = Watchdog::start();
            let mut state = Loop {
                host: AnalysisHost::default(),
                documents,
                outbox,
                session: None,
                project: Project::default(),
                settings: Settings::default(),
                lint: Arc::default(),
                sender,
                unsynced: BTreeSet::new(),
                ahead: BTreeMap::new(),
                stamps: BTreeMap::new(),
                scans: 0,
                later: Vec::new(),
                unresolved: BTreeSet::new(),
                misplaced: BTreeSet::new(),
                shown: BTreeMap::new(),
                targets: BTreeMap::new(),
                at_rest,
                tired: false,
                revision: 0,
                undiagnosed: false,
                elsewhere: false,
                published: BTreeMap::new(),
                hashing: RandomState::new(),
                waiting: VecDeque::new(),
                diagnoses: VecDeque::new(),
                idle: workers,
                diagnosing: 0,
                workers,
                tasks,
            };
            let turns = AssertUnwindSafe(|| state.run(&events, &mut watchdog));
            if let Err(panic) = std::panic::catch_unwind(turns) {
                // The database may be half changed: nothing it says can be trusted any more.
                let what = panic_message(&*panic).to_owned();
                tracing::error!(what, "the main loop panicked");
                on_panic(what);
            }
        })
}

fn work(queue: &Mutex<Receiver<(Task, Snapshot)>>, events: &Sender<Event>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((task, snapshot)) = next else { return };
        let outcome = perform(task, &snapshot, events);
        // IMPORTANT: before the report, see the module's comment.
        drop(snapshot);
        if events.send(Event::Idle(outcome)).is_err() {
            return;
        }
    }
}

fn perform(task: Task, snapshot: &Snapshot, events: &Sender<Event>) -> Outcome {
    match task {
        Task::Query {
            file,
            generation,
            mut query,
        } => {
            let run = AssertUnwindSafe(|| query.run(snapshot, file));
            let interrupted = match std::panic::catch_unwind(run) {
                Ok(Ok(())) => None,
                Ok(Err(_cancelled)) => Some(Interrupted {
                    file,
                    generation,
                    query,
                }),
                Err(panic) => {
                    let (name, what) = (query.name(), panic_message(&*panic));
                    tracing::error!(name, what, "a query panicked");
                    let mut error = Error::internal_error();
                    error.message = format!("internal error in {name}: {what}").into();
                    query.refuse(error);
                    None
                }
            };
            Outcome {
                diagnosis: false,
                interrupted,
            }
        }
        Task::Diagnose { file, revision } => {
            let diagnose = || convert::diagnostics(snapshot, file).map(|it| serde_json::to_string(&it));
            match std::panic::catch_unwind(AssertUnwindSafe(diagnose)) {
                Ok(Ok(Ok(items))) => drop(events.send(Event::Diagnosed {
                    file,
                    revision,
                    items,
                })),
                Ok(Ok(Err(e))) => tracing::error!(%e, "diagnostics can't be serialised"),
                // The write asks for all diagnostics anew.
                Ok(Err(_cancelled)) => {}
                Err(panic) => tracing::error!(what = panic_message(&*panic), "diagnostics panicked"),
            }
            Outcome {
                diagnosis: true,
                interrupted: None,
            }
        }
    }
}

/// What the thread owns.
struct Loop {
    host: AnalysisHost,
    documents: Arc<Documents>,
    outbox: Outbox,
    /// Known from `initialize` on.
    session: Option<Arc<Session>>,
    project: Project,
    settings: Settings,
    lint: Arc<Lint>,
    /// For threads that report to this one.
    sender: Sender<Event>,
    /// Files whose text in the database is behind.
    unsynced: BTreeSet<FileId>,
    /// What such files hold, if it was read already.
    ahead: BTreeMap<FileId, FileContent>,
    /// Files on disk as they were when they were read.
    stamps: BTreeMap<FileId, Option<Stamp>>,
    /// How many scans of folders are under way.
    scans: usize,
    /// Requests that wait for the end of the scans.
    later: Vec<Task>,
    /// Files whose `use` targets may be others than before.
    unresolved: BTreeSet<FileId>,
    /// Files whose `use` targets have to be looked for again, though they are the same.
    misplaced: BTreeSet<FileId>,
    /// Paths as shown to a person, as long as no file comes or goes.
    shown: BTreeMap<FileId, String>,
    /// The `use` targets that were last looked for, of files that have any.
    targets: BTreeMap<FileId, Vec<String>>,
    at_rest: fn(),
    /// There was work since the last rest.
    tired: bool,
    /// Counts the writes to the database; diagnostics of an older one are stale.
    revision: u64,
    /// The database changed since diagnostics were last asked for.
    undiagnosed: bool,
    /// Something that diagnostics depend on has changed, and the client does not know that.
    elsewhere: bool,
    /// What the client was last told, by file.
    published: BTreeMap<FileId, Published>,
    hashing: RandomState,
    waiting: VecDeque<Task>,
    diagnoses: VecDeque<Task>,
    idle: usize,
    /// Workers busy with diagnostics.
    diagnosing: usize,
    workers: usize,
    tasks: Sender<(Task, Snapshot)>,
}

impl Loop {
    fn run(&mut self, events: &Receiver<Event>, watchdog: &mut Watchdog) {
        loop {
            // Writes are put off while more messages wait, so that a burst of changes is one write.
            let event = match events.try_recv() {
                Ok(event) => event,
                Err(TryRecvError::Empty) => {
                    watchdog.turn("settle", || self.settle());
                    match self.next(events, watchdog) {
                        Some(event) => event,
                        None => return,
                    }
                }
                Err(TryRecvError::Disconnected) => return,
            };
            if matches!(event, Event::Quit) {
                return;
            }
            watchdog.turn(event.name(), || self.turn(event));
        }
    }

    /// Waits for the next event; rests when none comes for a while. `None` when none can come any more.
    fn next(&mut self, events: &Receiver<Event>, watchdog: &mut Watchdog) -> Option<Event> {
        if self.tired {
            match events.recv_timeout(PAUSE) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => watchdog.turn("rest", || self.rest()),
            }
        }
        events.recv().ok()
    }

    /// Lets go of what can be computed again.
    fn rest(&mut self) {
        // A reader would be cancelled; when it is done, there is another pause.
        if self.idle == self.workers {
            self.tired = false;
            self.host.rest();
            (self.at_rest)();
        }
    }

    fn turn(&mut self, event: Event) {
        self.tired = true;
        match event {
            Event::Initialized { session, settings } => {
                self.project = Project::new(&session);
                self.session = Some(session);
                self.configure(settings);
                self.scan();
            }
            Event::Configured { settings } => self.configure(settings),
            Event::Opened { uri, version, text } => {
                let file = self.documents.open(uri, version, text);
                self.unsynced.insert(file);
                self.look_again();
            }
            Event::Changed {
                uri,
                version,
                changes,
            } => {
                let encoding = self.session.as_ref().map(|s| s.encoding).unwrap_or_default();
                match self.documents.change(&uri, version, &changes, encoding) {
                    Some(file) => drop(self.unsynced.insert(file)),
                    None => tracing::warn!(%uri, "change of a document that isn't open"),
                }
            }
            Event::Closed { uri } => self.close(&uri),
            Event::DiskChanged { uris } => self.disk_changed(&uris),
            Event::Stale => self.find_changed(),
            Event::Found(files) => self.found(files),
            Event::Outdated(files) => self.outdated(files),
            Event::Scanned => {
                self.scans -= 1;
                if self.scans == 0 {
                    self.waiting.extend(self.later.drain(..));
                }
            }
            Event::Query {
                uri,
                basis,
                reach,
                query,
            } => self.enqueue(uri.as_ref(), basis, reach, query),
            Event::Idle(outcome) => self.worker_idle(outcome),
            Event::Diagnosed {
                file,
                revision,
                items,
            } => self.publish(file, revision, items),
            Event::Quit => {}
            #[cfg(test)]
            Event::Sabotage => panic!("sabotaged"),
        }
        self.hand_out();
    }

    fn configure(&mut self, settings: Settings) {
        self.settings = settings;
        let mut problems = self.project.reload();
        let (lint, bad_levels) = Lint::new(&self.settings, self.project.config().clone());
        problems.extend(bad_levels);
        for problem in problems {
            self.outbox
                .show(MessageType::WARNING, format!("OpenProse settings: {problem}"));
        }
        if *self.lint != lint {
            self.lint = Arc::new(lint);
            // Diagnostics that are on their way have the old severities.
            self.revision += 1;
            self.undiagnosed = true;
            self.elsewhere = true;
        }
        self.look_again();
    }

    fn close(&mut self, uri: &Url) {
        let Some((file, _)) = self.documents.close(uri) else {
            return;
        };
        self.unsynced.insert(file);
        self.look_again();
        if let Some(published) = self.published.remove(&file)
            && !published.nothing
        {
            self.outbox.publish(&published.uri, None, NOTHING);
        }
    }

    fn disk_changed(&mut self, uris: &[Url]) {
        for uri in uris {
            if uri.path().ends_with("/prose.toml") {
                self.configure(self.settings.clone());
            }
            let known = self.documents.id(uri).or_else(|| {
                let key = FileKey::new(uri);
                let new = key.path().is_some_and(|path| self.project.has_program(path));
                new.then(|| self.documents.intern(key).0)
            });
            if let Some(file) = known
                && !self.documents.has(file)
            {
                self.unsynced.insert(file);
                self.elsewhere = true;
            }
        }
        self.look_again();
        // A folder that is gone is told of as such, if at all.
        self.find_changed();
    }

    /// Looks for the programs of the workspace.
    fn scan(&mut self) {
        let folders = self.project.folders().to_vec();
        if !folders.is_empty() {
            self.scans += 1;
            scan::spawn(folders, self.project.clone(), self.sender.clone());
        }
    }

    fn found(&mut self, files: Vec<Found>) {
        for found in files {
            let (file, new) = self.documents.intern(FileKey::Path(found.path));
            // One that is open, or was read because another uses it, is known better.
            if new {
                self.shown.insert(file, found.shown);
                self.stamps.insert(file, found.stamp);
                self.ahead.insert(file, found.content);
                self.unsynced.insert(file);
            }
        }
    }

    /// Looks which files have changed on disk; requests across files wait for that.
    fn find_changed(&mut self) {
        let on_disk = self.stamps.iter().filter_map(|(file, stamp)| {
            let FileKey::Path(path) = self.documents.key(*file)? else {
                return None;
            };
            (!self.documents.has(*file)).then_some((*file, path, *stamp))
        });
        self.scans += 1;
        scan::find_changed(on_disk.collect(), self.sender.clone());
    }

    /// These have to be read again. For the client, the diagnostics of whatever uses them have changed.
    fn outdated(&mut self, files: Vec<FileId>) {
        for file in files {
            if !self.documents.has(file) {
                self.ahead.remove(&file);
                self.unsynced.insert(file);
                self.elsewhere = true;
            }
        }
        self.look_again();
    }

    /// A file may have come or gone: `use` targets may lead elsewhere.
    fn look_again(&mut self) {
        self.misplaced.extend(self.targets.keys().copied());
        self.shown.clear();
    }

    fn enqueue(&mut self, uri: Option<&Url>, basis: Basis, reach: Reach, mut query: Box<dyn Query>) {
        let file = match uri {
            Some(uri) => match self.documents.id(uri) {
                Some(file) => file,
                None => return query.refuse(Error::invalid_params(format!("unknown document: {uri}"))),
            },
            None => NO_FILE,
        };
        let generation = match basis {
            Basis::Position => self.documents.generation(file),
            Basis::Document => None,
        };
        let task = Task::Query {
            file,
            generation,
            query,
        };
        if reach == Reach::Workspace && self.scans > 0 {
            self.later.push(task);
        } else {
            self.waiting.push_back(task);
        }
    }

    fn worker_idle(&mut self, outcome: Outcome) {
        self.idle += 1;
        self.diagnosing -= usize::from(outcome.diagnosis);
        if let Some(Interrupted {
            file,
            generation,
            query,
        }) = outcome.interrupted
        {
            // In front: it has waited longest.
            self.waiting.push_front(Task::Query {
                file,
                generation,
                query,
            });
        }
    }

    /// Nothing more to read: bring the database up to date and ask for diagnostics.
    fn settle(&mut self) {
        self.sync();
        if std::mem::take(&mut self.elsewhere)
            && self.session.as_ref().is_some_and(|s| s.refreshes_diagnostics)
        {
            self.outbox.request::<WorkspaceDiagnosticRefresh>(());
        }
        let pulls = self.session.as_ref().is_some_and(|s| s.pulls_diagnostics);
        if std::mem::take(&mut self.undiagnosed) && !pulls {
            self.diagnoses.clear();
            let revision = self.revision;
            let files = self.documents.open_files().into_iter();
            self.diagnoses
                .extend(files.map(|file| Task::Diagnose { file, revision }));
        }
        self.hand_out();
    }

    /// Writes what has changed, and what `use` targets lead to. Waits until every reader has noticed the cancellation.
    fn sync(&mut self) {
        if self.unsynced.is_empty() && self.misplaced.is_empty() {
            return;
        }
        // Every round brings the files that the round before has found to be used; each file is read once.
        while !self.unsynced.is_empty() || !self.misplaced.is_empty() {
            let mut change = Change::new();
            for file in std::mem::take(&mut self.unsynced) {
                let Some(key) = self.documents.key(file) else {
                    continue;
                };
                let content = match self.documents.text(file) {
                    Some(text) => FileContent::Text(text),
                    None => self.read(file, &key),
                };
                let shown = self
                    .shown
                    .entry(file)
                    .or_insert_with(|| self.project.display(&key))
                    .clone();
                change.files.push((file, shown, content));
                self.unresolved.insert(file);
            }
            self.host.apply_change(change);
            let change = self.resolve_uses();
            if !change.resolutions.is_empty() {
                self.host.apply_change(change);
            }
        }
        self.revision += 1;
        self.undiagnosed = true;
    }

    /// What a file that is not open holds.
    fn read(&mut self, file: FileId, key: &FileKey) -> FileContent {
        if let Some(content) = self.ahead.remove(&file) {
            return content;
        }
        if let Some(path) = key.path() {
            // Before the text: a change in between is noticed the next time.
            self.stamps.insert(file, Stamp::of(path));
        }
        self.project.read(key)
    }

    fn resolve_uses(&mut self) -> Change {
        let mut change = Change::new();
        let misplaced = std::mem::take(&mut self.misplaced);
        let unresolved = std::mem::take(&mut self.unresolved);
        for file in misplaced.union(&unresolved).copied() {
            let Some(key) = self.documents.key(file) else {
                continue;
            };
            // IMPORTANT: the snapshot ends with this statement, before the next write. Only this thread writes, so
            // the question can't be cancelled.
            let Ok(targets) = self.host.analysis().use_targets(file) else {
                continue;
            };
            let same = self
                .targets
                .get(&file)
                .map_or(targets.is_empty(), |before| *before == targets);
            if same && !misplaced.contains(&file) {
                continue;
            }
            let documents = Arc::clone(&self.documents);
            let is_open = |path: &std::path::Path| documents.is_open(path);
            let mut resolutions = Vec::new();
            for target in &targets {
                let found = self
                    .project
                    .resolve(target, &key, &is_open)
                    .map(|found| self.enter(found));
                resolutions.push((target.clone(), found));
            }
            change.resolve(file, resolutions);
            if targets.is_empty() {
                self.targets.remove(&file);
            } else {
                self.targets.insert(file, targets);
            }
        }
        change
    }

    /// The id of a used file; one that is new will be read.
    fn enter(&mut self, key: FileKey) -> FileId {
        let (file, new) = self.documents.intern(key);
        if new {
            self.unsynced.insert(file);
        }
        file
    }

    fn hand_out(&mut self) {
        while self.idle > 0 {
            let Some(task) = self.next_task() else { return };
            let Some(session) = self.session.clone() else {
                return;
            };
            self.sync();
            if matches!(task, Task::Diagnose { .. }) {
                self.diagnosing += 1;
            }
            let snapshot = Snapshot {
                analysis: self.host.analysis(),
                revision: self.revision,
                session,
                lint: Arc::clone(&self.lint),
                documents: Arc::clone(&self.documents),
            };
            if self.tasks.send((task, snapshot)).is_err() {
                return;
            }
            self.idle -= 1;
        }
    }

    /// The next task worth doing: requests first, and never all workers busy with diagnostics.
    fn next_task(&mut self) -> Option<Task> {
        while let Some(task) = self.waiting.pop_front() {
            let Task::Query {
                file,
                generation,
                mut query,
            } = task
            else {
                return Some(task);
            };
            if !query.wanted() {
                continue;
            }
            if generation.is_some() && generation != self.documents.generation(file) {
                query.refuse(Error::content_modified());
                continue;
            }
            return Some(Task::Query {
                file,
                generation,
                query,
            });
        }
        if self.diagnosing + 1 < self.workers {
            self.diagnoses.pop_front()
        } else {
            None
        }
    }

    fn publish(&mut self, file: FileId, revision: u64, diagnostics: String) {
        if revision != self.revision || !self.unsynced.is_empty() {
            return;
        }
        let Some((uri, version)) = self.documents.version(file) else {
            return;
        };
        let news = Published {
            uri,
            version,
            digest: self.hashing.hash_one(&diagnostics),
            nothing: diagnostics == NOTHING,
        };
        if self.published.get(&file) != Some(&news) {
            self.outbox.publish(&news.uri, Some(news.version), &diagnostics);
            self.published.insert(file, news);
        }
    }
}

/// No diagnostics, as JSON.
const NOTHING: &str = "[]";

/// What the client was last told of a file.
#[derive(PartialEq)]
struct Published {
    uri: Url,
    version: i32,
    /// Of the diagnostics: they may be many, and are only kept to be compared.
    digest: u64,
    nothing: bool,
}
