//! The state that outlives each app of a server: counters, logs, the drain.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use gustnado_access::Refusal;
use gustnado_files::FolderCounts;
use gustnado_http::content_coding::ContentCoding;
use gustnado_tasks::{MemoryKind, Phase, Workers, Workload};

use super::heap_trim::HeapTrim;
use crate::bodies::Bodies;
use crate::client_slots::ClientSlots;
use gustnado_observe::access_log::Logs;
use gustnado_observe::certificate_end::CertificateEnd;
use gustnado_observe::last_reload::LastReload;
use gustnado_observe::process::Process;
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::{SharedStats, Stats, Tally, Thread, WebSocketCount, WorkerStats};
use gustnado_web::handler_limits::HandlerLimits;
use gustnado_web::spool::Spool;

/// The state that successive apps of a server share.
pub struct ServerShared {
    pub(super) tallies: Arc<[Tally]>,
    draining: AtomicBool,
    restarting: AtomicBool,
    /// Request bodies in memory.
    pub bodies: Arc<Bodies>,
    /// The disk that request bodies may take.
    pub spool: Arc<Spool>,
    /// Workers that a handler has held for too long.
    held: AtomicUsize,
    /// Set once they run. Weak, because they hold this.
    pub(super) workers: OnceLock<Weak<Workers>>,
    pub(super) scheduler: &'static str,
    /// Prepared field lines of every response, without the date. Each worker reads them once a
    /// second.
    lines: Mutex<Arc<[u8]>>,
    /// When the certificates in force end.
    certificate_ends: Mutex<Vec<CertificateEnd>>,
    /// The largest total of sent bytes that was reported: totals must not shrink.
    pub(super) bytes_reported: AtomicU64,
    /// The counts of all folders of the server, closed ones included.
    pub(super) folders: Arc<FolderCounts>,
    /// Connections by client, where their number is limited.
    pub(super) client_slots: Arc<ClientSlots>,
    /// Where requests wait for handlers.
    pub handler_limits: Arc<HandlerLimits>,
    pub(super) heap_trim: Arc<HeapTrim>,
    pub reloads: AtomicU64,
    pub reloads_refused: AtomicU64,
    last_reload: Mutex<Option<LastReload>>,
    pub certificates_obtained: AtomicU64,
    pub certificates_failed: AtomicU64,
    pub logs: Logs,
    /// Other processes that serve together with this one, if there may be some.
    shared_stats: OnceLock<SharedStats>,
}

impl ServerShared {
    pub fn new(workers: usize, scheduler: &'static str, folders: Arc<FolderCounts>) -> Arc<Self> {
        Arc::new(Self {
            // One more for a thread that only accepts.
            tallies: (0..=workers).map(|_| Tally::default()).collect(),
            draining: AtomicBool::new(false),
            restarting: AtomicBool::new(false),
            bodies: Arc::default(),
            spool: Arc::default(),
            held: AtomicUsize::new(0),
            workers: OnceLock::new(),
            scheduler,
            lines: Mutex::new(Arc::from([])),
            certificate_ends: Mutex::default(),
            bytes_reported: AtomicU64::new(0),
            folders,
            client_slots: Arc::default(),
            handler_limits: Arc::default(),
            heap_trim: Arc::default(),
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            last_reload: Mutex::default(),
            certificates_obtained: AtomicU64::new(0),
            certificates_failed: AtomicU64::new(0),
            logs: Logs::default(),
            shared_stats: OnceLock::new(),
        })
    }

    pub fn attach(&self, workers: &Arc<Workers>) {
        let first = self.workers.set(Arc::downgrade(workers));
        debug_assert!(first.is_ok(), "workers are attached once");
        self.bodies.attach(workers.ledger());
    }

    /// Returns how many threads have a tally and a log buffer of their own.
    pub fn places(&self) -> usize {
        self.tallies.len()
    }

    pub(super) fn workers(&self) -> Option<Arc<Workers>> {
        self.workers.get().and_then(Weak::upgrade)
    }

    /// Returns whether the server serves, is not draining, and no handler holds a worker.
    pub fn is_ready(&self) -> bool {
        let serves = |workers: Arc<Workers>| workers.phase() == Phase::Serving;
        !self.is_draining() && self.held() == 0 && self.workers().is_some_and(serves)
    }

    /// A handler holds one more worker, or one less.
    pub fn note_held(&self, is_free: bool) {
        if is_free {
            self.held.fetch_sub(1, Ordering::SeqCst);
        } else {
            self.held.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns how many workers a handler has held for too long.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    pub(super) fn begin_draining(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Notes that the server is to be started again after its end.
    pub fn announce_restart(&self) {
        self.restarting.store(true, Ordering::SeqCst);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Sets the field lines of every response. All workers use them within a second.
    pub fn set_lines(&self, lines: Vec<u8>) {
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = lines.into();
    }

    /// Sets when the certificates in force end: they were read, or read again.
    pub fn set_certificate_ends(&self, ends: Vec<CertificateEnd>) {
        *self.certificate_ends.lock().unwrap_or_else(PoisonError::into_inner) = ends;
    }

    /// Notes the result of a reload.
    pub fn note_reload(&self, result: LastReload) {
        *self.last_reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Adds up counters with other processes from now on. Only the first call counts.
    pub fn share_stats(&self, shared: SharedStats) {
        _ = self.shared_stats.set(shared);
    }

    /// Writes the counters for those processes.
    ///
    /// - `is_alive`: false at the end of this process.
    pub fn publish_stats(&self, is_alive: bool) {
        if let Some(shared) = self.shared_stats.get() {
            // The file is in memory. Where that is full, others see the numbers of before.
            _ = shared.publish(&self.stats(), &Process::read(), is_alive);
        }
    }

    pub(super) fn lines(&self) -> Arc<[u8]> {
        Arc::clone(&self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ServerShared {
    fn add_access(&self, stats: &mut Stats) {
        let refused = |refusal| self.handler_limits.access.of(refusal);
        stats.password_checks = self.handler_limits.access.password_checks();
        stats.access_refused_address = refused(Refusal::Address);
        stats.access_refused_rate = refused(Refusal::Rate);
        stats.access_refused_password = refused(Refusal::Password);
        stats.access_refused_busy = refused(Refusal::Busy);
        stats.access_refused_signature = refused(Refusal::Signature);
        stats.access_refused_expired = refused(Refusal::Expired);
        stats.access_refused_origin = refused(Refusal::Origin);
    }

    fn add_compression(&self, stats: &mut Stats) {
        let compression = &self.handler_limits.compression;
        stats.responses_gzip = compression.responses(ContentCoding::Gzip);
        stats.responses_zstd = compression.responses(ContentCoding::Zstd);
        stats.responses_brotli = compression.responses(ContentCoding::Brotli);
        (stats.compressions, stats.compress_bytes_in, stats.compress_bytes_out) =
            compression.compressions();
        stats.compress_refused = compression.refused();
        (stats.variants_cached, stats.variant_bytes) = compression.variants();
    }

    fn add_folders(&self, stats: &mut Stats) {
        let folders = &self.folders;
        stats.files_exhausted = folders.exhausted.load(Ordering::Relaxed);
        stats.deltas_made = folders.deltas_made.load(Ordering::Relaxed);
        stats.deltas_sent = folders.deltas_sent.load(Ordering::Relaxed);
        stats.archives_open = folders.archives_open.load(Ordering::Relaxed);
        stats.archives_begun = folders.archives_begun.load(Ordering::Relaxed);
        stats.archives_refused = folders.archives_refused.load(Ordering::Relaxed);
        stats.archives_failed = folders.archives_failed.load(Ordering::Relaxed);
    }
}

impl ServerStats for ServerShared {
    fn backend(&self) -> &'static str {
        self.workers().map_or("", |workers| workers.backend().name())
    }

    fn scheduler(&self) -> &'static str {
        self.scheduler
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::of_all(&self.tallies, &self.bytes_reported);
        stats.ready = self.is_ready();
        stats.reloads = self.reloads.load(Ordering::Relaxed);
        stats.reloads_refused = self.reloads_refused.load(Ordering::Relaxed);
        stats.certificates_obtained = self.certificates_obtained.load(Ordering::Relaxed);
        stats.certificates_failed = self.certificates_failed.load(Ordering::Relaxed);
        let handlers = &self.handler_limits.counts;
        stats.handlers_running = handlers.running.load(Ordering::Relaxed);
        stats.handlers_queued = handlers.queued.load(Ordering::Relaxed);
        stats.handlers_refused = handlers.refused.load(Ordering::Relaxed);
        self.add_access(&mut stats);
        self.add_compression(&mut stats);
        self.add_folders(&mut stats);
        stats.log_lines_lost = self.logs.lost();
        let spool = self.spool.counts();
        stats.spool_bytes = spool.bytes;
        stats.bodies_spooled = spool.bodies;
        stats.spool_failed = spool.failed;
        if let Some(workers) = self.workers() {
            let counts = workers.counts();
            stats.uptime_ms = workers.uptime_ms();
            stats.workers = workers.workers() as u64;
            stats.workers_held = self.held() as u64;
            stats.workers_grown = counts.workers_grown.load(Ordering::Relaxed);
            stats.workers_shrunk = counts.workers_shrunk.load(Ordering::Relaxed);
            stats.workers_failed = counts.workers_failed.load(Ordering::Relaxed);
            stats.connections_open = workers.connections_open() as u64;
            stats.connections_accepted = counts.accepted.load(Ordering::Relaxed);
            stats.accept_exhausted = counts.accept_exhausted.load(Ordering::Relaxed);
            stats.accept_failed = counts.accept_failed.load(Ordering::Relaxed);
            stats.evicted = counts.evicted.load(Ordering::Relaxed);
            stats.accept_paused = counts.accept_paused.load(Ordering::Relaxed);
            // Handlers that panicked are in the tallies already; these are panics of other tasks.
            stats.panics += counts.panics.load(Ordering::Relaxed);
            stats.tasks_live = workers.tasks_live();
            let ledger = workers.ledger();
            stats.memory_heads = ledger.held(MemoryKind::Heads);
            stats.memory_sends = ledger.held(MemoryKind::Sends);
            stats.memory_cache = ledger.held(MemoryKind::Cache);
            stats.memory_bodies = ledger.held(MemoryKind::Bodies);
            stats.memory_receives = ledger.held(MemoryKind::Receives);
            stats.memory_queue = ledger.held(MemoryKind::Queue);
            stats.memory_websockets = ledger.held(MemoryKind::WebSockets);
            for workload in workers.workloads() {
                stats.connections_added += workload.connections_added;
                stats.connections_removed += workload.connections_removed;
                stats.waits += Thread::read(workload.thread).waits;
            }
        }
        stats
    }

    fn stats_of_all(&self) -> (Stats, Process) {
        let own = (self.stats(), Process::read());
        match self.shared_stats.get() {
            Some(shared) => shared.sum(&own.0, &own.1).unwrap_or(own),
            None => own,
        }
    }

    /// Returns the counters of each worker.
    fn stats_by_worker(&self) -> Vec<WorkerStats> {
        let Some(workers) = self.workers() else { return Vec::new() };
        let open = workers.connections_by_place();
        let with_tally = |workload: Workload| {
            let tally = self.tallies.get(workload.worker)?;
            let open = open.get(workload.worker).copied().unwrap_or(0) as u64;
            Some(WorkerStats::new(workload, open, tally, Thread::read(workload.thread)))
        };
        workers.workloads().into_iter().filter_map(with_tally).collect()
    }

    fn count_websocket(&self, count: WebSocketCount) {
        // No other thread writes to the tally of the running worker.
        if let Some(tally) = gustnado_tasks::worker().and_then(|worker| self.tallies.get(worker)) {
            tally.add_websocket(count);
        }
    }

    fn is_restarting(&self) -> bool {
        self.restarting.load(Ordering::SeqCst)
    }

    fn last_reload(&self) -> Option<LastReload> {
        self.last_reload.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn certificate_ends(&self) -> Vec<CertificateEnd> {
        self.certificate_ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
