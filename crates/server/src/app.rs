//! What all connections of a server have in common: limits, the site, the counts.

mod current;

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gustnado_config::{Networks, millis};
use gustnado_http::date::imf_fixdate;
use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::Request;
use gustnado_http::response_writer::{Persist, ResponseWriter, WrittenHead};
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Now, Patience, Workload};

use crate::access_log::AccessLog;
use crate::build_context::BuildContext;
use crate::config::{AnswerVersion, Config};
use crate::default_site::{self, Live, Process};
use crate::files::{Files, Replied};
use crate::handler::{HandlerId, Placed, panicked};
use crate::hooks::Hooks;
use crate::pace::Pace;
use crate::proxies::Proxies;
use crate::response::{Response, ResponsePrefix};
use crate::routes::Tables;
use crate::server_stats::ServerStats;
use crate::stats::{Added, Fault, Stats, Tally, Thread, WorkerStats};
use crate::status_page::Turn;

pub(crate) use current::{Current, Lasting};

/// Where answers come from.
pub(crate) enum Site {
    Folder(Files),
    BuiltIn,
    /// Handlers by route. They can be swapped while the server runs.
    Routes(Box<Routed>),
}

/// The routes that count now, and what others would be made ready with.
pub(crate) struct Routed {
    tables: Mutex<Arc<Tables>>,
    /// Another one when the tables are swapped, and no other site's.
    version: AtomicU64,
    pub(crate) means: BuildContext,
}

thread_local! {
    /// What this worker answers by. (A thread works for one server, but in tests.)
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// The tables as a worker knows them, and what it keeps from one request to the next.
pub(crate) struct Known {
    version: u64,
    pub(crate) tables: Arc<Tables>,
    /// The path that was found last.
    pub(crate) recent: Cell<usize>,
    /// The request of the last inline handler, to be used again.
    pub(crate) used: Cell<Option<Box<crate::request::Request>>>,
    /// Where the last task handler was at work that answered at once, and which one that was.
    pub(crate) place: Cell<Option<(HandlerId, Box<dyn Placed>)>>,
}

impl Routed {
    pub(crate) fn new(tables: Tables, means: BuildContext) -> Self {
        let tables = Mutex::new(Arc::new(tables));
        Self { tables, version: AtomicU64::new(fresh_version()), means }
    }

    /// Runs `act` with the tables that count now. Nothing is locked unless they were swapped since
    /// this worker last looked.
    #[inline]
    pub(crate) fn with<T>(&self, act: impl FnOnce(&Known) -> T) -> T {
        let version = self.version.load(Ordering::Acquire);
        KNOWN.with(|cell| {
            let known = cell.borrow();
            let known = match &*known {
                Some(current) if current.version == version => known,
                _ => {
                    drop(known);
                    self.learn(cell, version)
                }
            };
            act(known.as_ref().expect("learnt just now, at the latest"))
        })
    }

    #[cold]
    fn learn<'c>(&self, cell: &'c RefCell<Option<Known>>, version: u64) -> Ref<'c, Option<Known>> {
        let tables = Arc::clone(&self.tables.lock().unwrap_or_else(PoisonError::into_inner));
        let known = Known {
            version,
            tables,
            recent: Cell::new(0),
            used: Cell::new(None),
            place: Cell::new(None),
        };
        *cell.borrow_mut() = Some(known);
        cell.borrow()
    }

    pub(crate) fn swap(&self, tables: Tables) {
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tables);
        self.version.store(fresh_version(), Ordering::Release);
    }
}

/// A version that no tables of this process have had.
fn fresh_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The blocking pool of the server that the running thread works for, once it has answered by
/// routes.
pub(crate) fn pool() -> Option<BlockingPool> {
    KNOWN.with_borrow(|known| known.as_ref().map(|known| known.tables.pool().clone()))
}

/// Has the running thread forget for which server it works.
pub(crate) fn forget() {
    let known = KNOWN.take();
    // (Not while it is borrowed: its end may be the end of the routes, which are somebody's.)
    drop(known);
    COMMON.take();
}

thread_local! {
    /// The field lines of every answer, for one second.
    static COMMON: RefCell<Rc<ResponsePrefix>> = RefCell::default();
}

/// Times that a connection keeps, in milliseconds.
pub(crate) struct Times {
    /// For a connection's first byte.
    pub(crate) first_ms: u64,
    pub(crate) header_ms: u64,
    pub(crate) keep_alive_ms: u64,
    pub(crate) body: Patience,
    pub(crate) write: Patience,
    /// When a send is looked at first: see [`Patience::first_look_ms`].
    pub(crate) write_look_ms: u64,
    /// How long a client that sends no more may wait for a handler.
    pub(crate) half_close_ms: u64,
}

/// How connections behave, where that is not as usual.
pub(crate) struct Manners {
    /// Requests per connection; `None` where there is no limit.
    pub(crate) requests_max: Option<u64>,
    /// The version that answers call themselves.
    pub(crate) answers: AnswerVersion,
}

impl Manners {
    fn of(config: &Config) -> Option<Self> {
        let requests_max = Some(config.max_requests_per_connection).filter(|max| *max > 0);
        let answers = config.answer_version;
        let is_unusual = requests_max.is_some() || answers != AnswerVersion::Newest;
        is_unusual.then_some(Self { requests_max, answers })
    }
}

pub(crate) struct App {
    pub(crate) limits: Limits,
    pub(crate) times: Times,
    /// What is unusual about its connections; `None` if nothing is.
    pub(crate) manners: Option<Manners>,
    pub(crate) hooks: Hooks,
    /// Where requests are taken down, if they are.
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// Who may begin connections with a PROXY header, where one is demanded.
    pub(crate) introducers: Option<Networks>,
    /// Who is believed about the client of a request, if anybody is.
    pub(crate) proxies: Option<Arc<Proxies>>,
    /// Bytes of later requests that are taken while a handler is at work.
    pub(crate) read_ahead_bytes: usize,
    /// Bytes of a stream that are gathered before they are sent, if there are more at once.
    pub(crate) stream_buffer_bytes: usize,
    site: Site,
    tallies: Arc<[Tally]>,
    /// There is something to heed before the next answer: a drain, or another app.
    notice: AtomicBool,
    lasting: Arc<Lasting>,
    current: Weak<Current>,
    /// What paces each connection, if anything does.
    pace: Option<Pace>,
}

impl App {
    pub(crate) fn new(
        config: &Config,
        site: Site,
        (hooks, access_log): (Hooks, Option<Arc<AccessLog>>),
        lasting: Arc<Lasting>,
        current: Weak<Current>,
    ) -> Self {
        let write =
            Patience { silence_ms: millis(config.write_timeout), rate_min: config.write_rate_min };
        Self {
            limits: Limits {
                head_bytes_max: config.limit_head_bytes,
                target_bytes_max: config.limit_target_bytes,
                fields_max: config.limit_header_fields,
                body_bytes_max: config.limit_body_bytes,
            },
            times: Times {
                first_ms: millis(match config.first_request_timeout {
                    Duration::ZERO => config.header_timeout,
                    own => own,
                }),
                header_ms: millis(config.header_timeout),
                keep_alive_ms: millis(config.timeout_keep_alive),
                body: Patience {
                    silence_ms: millis(config.body_timeout),
                    rate_min: config.body_rate_min,
                },
                write,
                write_look_ms: write.first_look_ms(),
                half_close_ms: millis(config.half_close_timeout),
            },
            manners: Manners::of(config),
            hooks,
            access_log,
            introducers: introducers(config),
            proxies: Proxies::of(config),
            read_ahead_bytes: config.read_ahead_bytes,
            stream_buffer_bytes: config.stream_buffer_bytes,
            site,
            tallies: Arc::clone(&lasting.tallies),
            notice: AtomicBool::new(false),
            lasting,
            current,
            pace: Pace::new(&config.pace),
        }
    }

    /// The connection's end, as a refusal says it.
    pub(crate) fn last_words(&self) -> Persist {
        match &self.manners {
            Some(Manners { answers: AnswerVersion::Old, .. }) => Persist::OldClose,
            _ => Persist::Close,
        }
    }

    /// What paces each connection, if anything does.
    pub(crate) fn pace(&self) -> Option<&Pace> {
        self.pace.as_ref()
    }

    /// Where answers come from.
    #[inline]
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// A handler's answer; 500 if it panicked, which is counted.
    #[inline]
    pub(crate) fn answer_or_500(&self, answer: Option<Response>) -> Response {
        answer.unwrap_or_else(|| {
            self.count(&Added { fault: Some(Fault::HandlerPanicked), ..Added::default() });
            panicked()
        })
    }

    /// Whether a connection should look at [`App::is_draining`] and [`App::successor`].
    #[inline]
    pub(crate) fn has_notice(&self) -> bool {
        self.notice.load(Ordering::Relaxed)
    }

    fn give_notice(&self) {
        self.notice.store(true, Ordering::SeqCst);
    }

    /// Whether each connection's next answer is its last.
    #[cold]
    pub(crate) fn is_draining(&self) -> bool {
        self.lasting.is_draining()
    }

    /// Whether another app counts, and goes on counting for a while.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_outdated(&self) -> bool {
        !self.is_draining() && self.successor().is_some()
    }

    /// The app that has taken the place of this one.
    #[cold]
    pub(crate) fn successor(&self) -> Option<Arc<App>> {
        let app = self.current.upgrade()?.app();
        (!std::ptr::eq(&raw const *app, self)).then_some(app)
    }

    /// Whether a request's body is read for a handler, rather than thrown away.
    pub(crate) fn wants_body(&self, request: &Request<'_>) -> bool {
        matches!(self.site, Site::BuiltIn)
            && request.method() == Method::Post
            && CanonicalPath::of(request.path()).is_ok_and(|path| path.as_str() == "/echo")
    }

    /// Answers a request that names a path. Its body was read, or thrown away (then it is empty).
    pub(crate) fn answer(
        &self,
        request: &Request<'_>,
        body: &[u8],
        now: Now,
        turn: &Turn<'_>,
        out: &mut Vec<u8>,
    ) -> Replied {
        match &self.site {
            Site::Folder(files) => files.answer_at(None, request, now, turn, out),
            Site::BuiltIn if self.wants_body(request) => plain(request, body, turn, out).into(),
            Site::BuiltIn => default_site::reply(request, || self.live().json(), turn, out).into(),
            Site::Routes(_) => unreachable!("the connection answers by routes itself"),
        }
    }

    /// Adds what a turn did to the running worker's tally.
    pub(crate) fn count(&self, added: &Added) {
        if let Some(tally) = self.tally() {
            tally.add(added);
        }
    }

    /// The same for an answer without a fault. Its bytes are counted when they are given to be
    /// sent; what does not leave is taken back.
    ///
    /// - `status`: 0 for more of an answer that was counted.
    #[inline]
    pub(crate) fn count_response(&self, status: u16, bytes: u64) {
        if let Some(tally) = self.tally() {
            tally.add_response(status, bytes);
        }
    }

    /// Bytes that were counted have not left.
    #[cold]
    pub(crate) fn take_back(&self, unsent: u64) {
        if let Some(tally) = self.tally() {
            tally.take_back(unsent);
        }
    }

    /// That of the running worker.
    #[inline]
    fn tally(&self) -> Option<&Tally> {
        gustnado_tasks::worker().and_then(|worker| self.tallies.get(worker))
    }

    fn live(&self) -> Live {
        let stats = self.stats();
        Live {
            uptime_ms: stats.uptime_ms,
            connections_open: stats.connections_open,
            connections_accepted: stats.connections_accepted,
            requests: stats.requests,
            bytes_sent: stats.bytes_sent,
            process: Process::read(),
            workers: stats.workers,
            backend: self.backend(),
            scheduler: self.scheduler(),
        }
    }

    /// The field lines of every answer, made anew once a second per worker.
    pub(crate) fn common(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        COMMON.with_borrow_mut(|common| {
            if common.unix_secs != unix_secs {
                let mut lines = self.lasting.lines().to_vec();
                lines.extend_from_slice(b"Date: ");
                lines.extend_from_slice(&imf_fixdate(unix_secs));
                lines.extend_from_slice(b"\r\n");
                *common = Rc::new(ResponsePrefix::new(unix_secs, &lines));
            }
            Rc::clone(common)
        })
    }
}

impl ServerStats for App {
    fn backend(&self) -> &'static str {
        self.lasting.workers().map_or("", |workers| workers.backend().name())
    }

    fn scheduler(&self) -> &'static str {
        self.lasting.scheduler
    }

    fn stats(&self) -> Stats {
        let lasting = &self.lasting;
        let mut stats = Stats::of_all(&self.tallies, &lasting.bytes_told);
        stats.ready = lasting.is_ready();
        stats.reloads = lasting.reloads.load(Ordering::Relaxed);
        stats.reloads_refused = lasting.reloads_refused.load(Ordering::Relaxed);
        stats.log_lines_lost = lasting.logs.lost();
        stats.files_exhausted = lasting.files_exhausted.load(Ordering::Relaxed);
        if let Site::Folder(files) = &self.site {
            stats.files_exhausted += files.failures().exhausted;
        }
        if let Some(workers) = lasting.workers() {
            let counts = workers.counts();
            stats.uptime_ms = workers.uptime_ms();
            stats.workers = workers.workers() as u64;
            stats.workers_grown = counts.workers_grown.load(Ordering::Relaxed);
            stats.workers_shrunk = counts.workers_shrunk.load(Ordering::Relaxed);
            stats.workers_failed = counts.workers_failed.load(Ordering::Relaxed);
            stats.connections_open = workers.connections_open() as u64;
            stats.connections_accepted = counts.accepted.load(Ordering::Relaxed);
            stats.accept_exhausted = counts.accept_exhausted.load(Ordering::Relaxed);
            stats.accept_failed = counts.accept_failed.load(Ordering::Relaxed);
            stats.accept_paused = counts.accept_paused.load(Ordering::Relaxed);
            stats.panics += counts.panics.load(Ordering::Relaxed);
            stats.tasks_live = workers.tasks_live();
            for workload in workers.workloads() {
                stats.connections_added += workload.connections_added;
                stats.connections_removed += workload.connections_removed;
                stats.waits += Thread::read(workload.thread).waits;
            }
        }
        stats
    }

    /// The same for each worker by itself.
    fn stats_by_worker(&self) -> Vec<WorkerStats> {
        let Some(workers) = self.lasting.workers() else { return Vec::new() };
        let with_tally = |workload: Workload| {
            let tally = self.tallies.get(workload.worker)?;
            Some(WorkerStats::new(workload, tally, Thread::read(workload.thread)))
        };
        workers.workloads().into_iter().filter_map(with_tally).collect()
    }
}

fn plain(request: &Request<'_>, text: &[u8], turn: &Turn<'_>, out: &mut Vec<u8>) -> WrittenHead {
    let mut answer = ResponseWriter::start(out, Status::OK, turn.common, turn.persist);
    answer
        .field("Content-Type", b"text/plain; charset=utf-8")
        .expect("a constant field is well formed");
    answer.content_length(text.len() as u64);
    let written = answer.finish();
    if request.method() != Method::Head {
        out.extend_from_slice(text);
    }
    written
}

/// Who may begin connections with a PROXY header; `None` where none is demanded.
fn introducers(config: &Config) -> Option<Networks> {
    // (Whatever is malformed was refused at the start.)
    config.proxy_protocol.then(|| Networks::of(&config.proxy_allow_from).unwrap_or_default())
}
