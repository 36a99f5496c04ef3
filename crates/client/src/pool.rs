//! Connections that wait for their next request.
//!
//! A connection belongs to its worker's reactor, so each worker thread has an idle pool of its own.
//! Workers that share their tasks share a reactor too: there, a connection may be taken from one
//! pool and put into another. Each pool is held by a task of its worker, the reaper, which closes
//! connections that were idle for too long. So when the worker ends, its tasks are dropped, and the
//! connections with them, on the thread that can close them. The client itself holds pools by weak
//! references only, and shuts their reapers down when it ends. A pool without connections has no
//! reaper, and costs nothing.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use gustnado_tasks::{Lock, Phase, now, phase, sleep, spawn_named};
use gustnado_tls::Socket;

use super::connect::RequestOrigin;
use super::{ClientOptions, millis};

/// The kept connections of one client.
pub(super) struct IdlePools {
    pools: Lock<HashMap<ThreadId, PoolEntry>>,
    keep_ms: u64,
    per_host_max: usize,
    total_max: usize,
}

/// The pool of one worker, and how to end its reaper.
struct PoolEntry {
    pool: Weak<IdlePool>,
    shutdown: Arc<Shutdown>,
}

/// Ends a reaper, from any thread.
#[derive(Default)]
struct Shutdown(Lock<ReaperState>);

#[derive(Default)]
struct ReaperState {
    /// The client has gone.
    has_begun: bool,
    reaper: Option<Waker>,
}

/// The kept connections of one client on one worker.
#[derive(Default)]
struct IdlePool {
    idle: Lock<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    /// The one that was put first is the first to expire.
    connections: VecDeque<IdleConnection>,
    /// The reaper has ended: no connection can be put here any more.
    closed: bool,
}

/// A connection that waits for its next request.
struct IdleConnection {
    origin: Arc<RequestOrigin>,
    connection: Socket,
    until_ms: u64,
}

impl IdlePools {
    pub(super) fn new(options: &ClientOptions) -> Self {
        Self {
            pools: Lock::default(),
            keep_ms: millis(options.keep_timeout),
            per_host_max: options.kept_per_host_max,
            total_max: options.kept_max,
        }
    }

    /// A connection to an origin that still stands: the one used last.
    pub(super) fn take(&self, origin: &RequestOrigin) -> Option<Socket> {
        let pool = self.pool()?;
        let mut idle = pool.idle.lock();
        while let Some(at) =
            idle.connections.iter().rposition(|connection| *connection.origin == *origin)
        {
            let mut connection = idle.connections.remove(at)?.connection;
            if is_idle(&mut connection) {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for its next request. In a full pool the oldest one makes room.
    pub(super) fn put(&self, origin: Arc<RequestOrigin>, mut connection: Socket) {
        if self.per_host_max == 0 || self.total_max == 0 || !is_idle(&mut connection) {
            return;
        }
        let open = self.pool().filter(|pool| !pool.idle.lock().closed);
        let Some(pool) = open.or_else(|| self.new_pool()) else { return };
        let mut idle = pool.idle.lock();
        if idle.closed {
            return; // by a reaper on another thread, just now
        }
        let of_host = |connection: &IdleConnection| *connection.origin == *origin;
        if idle.connections.iter().filter(|connection| of_host(connection)).count()
            >= self.per_host_max
        {
            let oldest = idle.connections.iter().position(of_host);
            oldest.and_then(|at| idle.connections.remove(at));
        } else if idle.connections.len() >= self.total_max {
            idle.connections.pop_front();
        }
        let until_ms = now().mono_ms.saturating_add(self.keep_ms);
        idle.connections.push_back(IdleConnection { origin, connection, until_ms });
    }

    /// Returns how many the running thread keeps.
    pub(super) fn idle_here(&self) -> usize {
        self.pool().map_or(0, |pool| pool.idle.lock().connections.len())
    }

    /// Returns the running thread's pool.
    fn pool(&self) -> Option<Arc<IdlePool>> {
        self.pools.lock().get(&thread::current().id()).and_then(|place| place.pool.upgrade())
    }

    /// Makes one, if there is room for the task of its reaper.
    fn new_pool(&self) -> Option<Arc<IdlePool>> {
        let (pool, shutdown) = (Arc::<IdlePool>::default(), Arc::<Shutdown>::default());
        let reaper = keep(Arc::clone(&pool), Arc::clone(&shutdown), self.keep_ms);
        drop(spawn_named("client: reaper", reaper).ok()?); // it goes on alone
        let place = PoolEntry { pool: Arc::downgrade(&pool), shutdown };
        let mut pools = self.pools.lock();
        pools.retain(|_, place| place.pool.strong_count() > 0);
        pools.insert(thread::current().id(), place);
        Some(pool)
    }
}

impl Drop for IdlePools {
    fn drop(&mut self) {
        // Closing is left to the reapers: this may be any thread.
        for place in self.pools.lock().values() {
            place.shutdown.begin();
        }
    }
}

impl Shutdown {
    fn begin(&self) {
        let reaper = {
            let mut told = self.0.lock();
            told.has_begun = true;
            told.reaper.take()
        };
        if let Some(reaper) = reaper {
            reaper.wake();
        }
    }

    /// Returns whether the reaper is to end now; if not, `waker` will wake it.
    fn is_over(&self, waker: &Waker) -> bool {
        let mut told = self.0.lock();
        told.reaper = Some(waker.clone());
        told.has_begun || phase() >= Phase::Draining
    }
}

impl IdlePool {
    /// Closes connections that were idle for too long. Returns when to look again; `None` if none
    /// is left, after which the pool is closed.
    fn sweep(&self) -> Option<u64> {
        let mut idle = self.idle.lock();
        let now_ms = now().mono_ms;
        while let Some(first) = idle.connections.front_mut()
            && first.until_ms <= now_ms
        {
            // By TLS the server hears that the end is one in order.
            first.connection.shutdown_write();
            idle.connections.pop_front();
        }
        let next_ms = idle.connections.front().map(|connection| connection.until_ms);
        idle.closed = next_ms.is_none();
        next_ms
    }

    /// Closes all, for good.
    fn clear(&self) {
        let mut idle = self.idle.lock();
        idle.closed = true;
        idle.connections.clear();
    }
}

/// Keeps a pool until it is empty, the client has gone, or the server drains.
///
/// - `first_ms`: how long to wait before the first look.
async fn keep(pool: Arc<IdlePool>, shutdown: Arc<Shutdown>, first_ms: u64) {
    let mut next_ms = Some(now().mono_ms.saturating_add(first_ms));
    while let Some(at_ms) = next_ms {
        let wait = Duration::from_millis(at_ms.saturating_sub(now().mono_ms));
        let mut rest = pin!(sleep(wait));
        let is_over = poll_fn(|cx| {
            if shutdown.is_over(cx.waker()) {
                return Poll::Ready(true);
            }
            rest.as_mut().poll(cx).map(|()| false)
        });
        if is_over.await {
            return pool.clear();
        }
        next_ms = pool.sweep();
    }
}

/// Returns whether nothing came on a connection that nothing was asked on: neither its end, nor
/// bytes that would be taken for the next response. Without a deadline, the alarm of the task
/// before is put away.
fn is_idle(connection: &mut Socket) -> bool {
    connection.set_deadline(u64::MAX);
    connection.poll_recv(true).is_pending()
}
