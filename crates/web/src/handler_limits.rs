//! The limits that handlers run under: of a route, of the threads that run it, of the server.
//!
//! A request passes them in this order. So what waits for a slow route, or for a thread, holds no
//! permit of the server that another route's requests could use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gustnado_access::AccessCounts;
use gustnado_compress::CompressionCounts;
use gustnado_config::Config;

use crate::admission::{Admission, AdmissionLimits, HandlerCounts, Permit};

/// A handler passes at most: its route's, its threads', the server's.
const LIMITS_MAX: usize = 3;

/// The limits of a server, for its whole life; a reload may change their numbers.
#[derive(Debug)]
pub struct HandlerLimits {
    pub counts: Arc<HandlerCounts>,
    /// Requests that gates have refused.
    pub access: Arc<AccessCounts>,
    /// What is compressed, and sent compressed.
    pub compression: Arc<CompressionCounts>,
    /// All handlers that are counted: `limit-concurrency`.
    server: Arc<Admission>,
    /// Those on the blocking pool: one for each of its threads.
    blocking: Arc<Admission>,
}

impl Default for HandlerLimits {
    fn default() -> Self {
        let counts = Arc::default();
        let new = || Admission::new(&counts, AdmissionLimits::default());
        let (server, blocking) = (new(), new());
        let (access, compression) = (Arc::default(), Arc::default());
        Self { counts, access, compression, server, blocking }
    }
}

impl HandlerLimits {
    /// Sets the numbers. A reload keeps that of the blocking pool's threads, as the pool does.
    pub fn set(&self, config: &Config) {
        let handlers = of_handlers(config);
        self.server.set_limits(handlers);
        let threads = AdmissionLimits {
            running_max: config.blocking_threads,
            queue_max: config.blocking_queue,
            wait_max: config.blocking_queue_timeout,
        };
        self.blocking.set_limits(of_threads(threads, handlers));
    }
}

/// Returns the limits of threads. Where the server limits all handlers, no more requests wait for a
/// thread, and none for longer, than for a handler: it is one wait to their clients.
fn of_threads(threads: AdmissionLimits, handlers: AdmissionLimits) -> AdmissionLimits {
    if handlers.running_max == 0 {
        return threads;
    }
    AdmissionLimits {
        queue_max: threads.queue_max.min(handlers.queue_max),
        wait_max: threads.wait_max.min(handlers.wait_max),
        ..threads
    }
}

fn of_handlers(config: &Config) -> AdmissionLimits {
    AdmissionLimits {
        running_max: config.limit_concurrency,
        queue_max: config.handler_queue,
        wait_max: config.handler_queue_timeout,
    }
}

/// A limit that a route or a handler has of its own. Copies of a route share it.
#[derive(Clone, Copy, Debug)]
pub struct OwnLimit {
    /// Handlers at a time, at least 1.
    pub running_max: usize,
    /// Tells it from others.
    number: u64,
}

impl OwnLimit {
    /// - `running_max`: handlers at a time; with 0 there is no limit.
    pub fn new(running_max: usize) -> Option<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        (running_max > 0).then_some(Self { running_max, number })
    }
}

/// The threads that a handler runs on.
#[derive(Clone, Copy, Debug)]
pub enum HandlerThreads {
    /// It runs on a worker.
    None,
    /// It runs on the blocking pool.
    Pool,
    /// It runs on threads of its own, for which so many requests may wait.
    Own(OwnLimit, usize),
}

/// The limits of a server while its routes are built.
#[derive(Clone, Debug)]
pub struct LimitContext {
    shared: Arc<HandlerLimits>,
    /// For handlers of a route or of the server.
    handlers: AdmissionLimits,
    /// How long a request waits for a thread.
    thread_wait: Duration,
    /// Limits of routes and handlers by their numbers.
    own: Arc<Mutex<HashMap<u64, Arc<Admission>>>>,
}

impl LimitContext {
    /// - `config`: the settings that the routes are built by.
    pub fn new(shared: &Arc<HandlerLimits>, config: &Config) -> Self {
        Self {
            shared: Arc::clone(shared),
            handlers: of_handlers(config),
            thread_wait: config.blocking_queue_timeout,
            own: Arc::default(),
        }
    }

    /// Returns the counts of requests that gates have refused.
    pub fn access(&self) -> &Arc<AccessCounts> {
        &self.shared.access
    }

    /// Returns the counts of what is compressed.
    pub fn compression(&self) -> &Arc<CompressionCounts> {
        &self.shared.compression
    }

    /// Returns the limits that a handler passes.
    ///
    /// - `route`: its route's own limit.
    /// - `is_exempt`: it passes neither the server's nor the pool's.
    pub fn of_handler(
        &self,
        route: Option<OwnLimit>,
        threads: HandlerThreads,
        is_exempt: bool,
    ) -> AdmissionChain {
        let of_route = route.map(|limit| {
            let running_max = limit.running_max;
            self.own(limit, AdmissionLimits { running_max, ..self.handlers })
        });
        let of_threads = match threads {
            HandlerThreads::Pool if !is_exempt => Some(Arc::clone(&self.shared.blocking)),
            HandlerThreads::Pool | HandlerThreads::None => None,
            HandlerThreads::Own(limit, queue_max) => {
                let (running_max, wait_max) = (limit.running_max, self.thread_wait);
                let limits = AdmissionLimits { running_max, queue_max, wait_max };
                Some(self.own(limit, of_threads(limits, self.handlers)))
            }
        };
        let is_limited = self.handlers.running_max > 0 && !is_exempt;
        let of_server = is_limited.then(|| Arc::clone(&self.shared.server));
        AdmissionChain {
            limits: [of_route, of_threads, of_server],
            counts: Arc::clone(&self.shared.counts),
        }
    }

    fn own(&self, limit: OwnLimit, limits: AdmissionLimits) -> Arc<Admission> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Admission::new(&self.shared.counts, limits);
        Arc::clone(own.entry(limit.number).or_insert_with(new))
    }
}

/// The limits that one handler passes, in their order.
#[derive(Clone, Debug)]
pub struct AdmissionChain {
    limits: [Option<Arc<Admission>>; LIMITS_MAX],
    counts: Arc<HandlerCounts>,
}

impl AdmissionChain {
    /// Returns whether there is no limit.
    pub fn is_empty(&self) -> bool {
        self.limits.iter().all(Option::is_none)
    }

    /// Waits for permission to run. `None`: the response is 503.
    ///
    /// - `bytes`: what the request holds while it waits.
    pub async fn admit(&self, bytes: usize) -> Option<Permits> {
        let mut permits = [const { None }; LIMITS_MAX];
        for (permit, limit) in permits.iter_mut().zip(self.limits.iter().flatten()) {
            *permit = Some(limit.admit(bytes).await?);
        }
        if self.is_empty() {
            return Some(Permits { _permits: permits, counts: None });
        }
        self.counts.running.fetch_add(1, Ordering::Relaxed);
        Some(Permits { _permits: permits, counts: Some(Arc::clone(&self.counts)) })
    }

    /// Counts a request that gets no handler though it was admitted.
    pub fn count_refused(&self) {
        self.counts.count_refused();
    }
}

/// Permission to run one handler, by all of its limits.
#[derive(Debug)]
pub struct Permits {
    _permits: [Option<Permit>; LIMITS_MAX],
    /// `None`: it is not counted.
    counts: Option<Arc<HandlerCounts>>,
}

impl Drop for Permits {
    fn drop(&mut self) {
        if let Some(counts) = &self.counts {
            counts.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
