//! Connections that wait for their next request.
//!
//! A link belongs to its worker's reactor, so each worker thread has a rack of its own. (Workers
//! that share their tasks share a reactor too: a link may be taken from one's rack and put on
//! another's.) Each rack is held by a task of its worker, its keeper, which closes what nobody used
//! for too long. So when the worker ends, its tasks are dropped, and the links with them, on the
//! thread that can close them. The client itself holds racks by weak references only, and tells
//! their keepers when it ends. A rack without links has no keeper, and costs nothing.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use gustnado_tasks::{Connection, Lock, Phase, now, phase, sleep, spawn_named};

use super::connect::Origin;
use super::{ClientOptions, millis};

/// The kept connections of one client.
pub(super) struct Pool {
    racks: Lock<HashMap<ThreadId, Place>>,
    keep_ms: u64,
    per_host_max: usize,
    total_max: usize,
}

/// Where the rack of one worker is.
struct Place {
    rack: Weak<Rack>,
    notice: Arc<Notice>,
}

/// What a keeper is told from any thread.
#[derive(Default)]
struct Notice(Lock<Told>);

#[derive(Default)]
struct Told {
    /// The client has gone.
    dismissed: bool,
    keeper: Option<Waker>,
}

/// The kept connections of one client on one worker.
#[derive(Default)]
struct Rack(Lock<Kept>);

#[derive(Default)]
struct Kept {
    /// The one that was put first is the first to expire.
    connections: VecDeque<Waiting>,
    /// The keeper has gone: nothing can be put here any more.
    closed: bool,
}

/// A connection that waits for its next request.
struct Waiting {
    origin: Arc<Origin>,
    connection: Connection,
    until_ms: u64,
}

impl Pool {
    pub(super) fn new(options: &ClientOptions) -> Self {
        Self {
            racks: Lock::default(),
            keep_ms: millis(options.keep_timeout),
            per_host_max: options.kept_per_host_max,
            total_max: options.kept_max,
        }
    }

    /// A connection to an origin that still stands: the one used last.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        let rack = self.rack()?;
        let mut kept = rack.lock();
        while let Some(at) = kept.connections.iter().rposition(|waiting| *waiting.origin == *origin)
        {
            let mut connection = kept.connections.remove(at)?.connection;
            if is_idle(&mut connection) {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for its next request. In a full pool the oldest one makes room.
    pub(super) fn put(&self, origin: Arc<Origin>, mut connection: Connection) {
        if self.per_host_max == 0 || self.total_max == 0 || !is_idle(&mut connection) {
            return;
        }
        let open = self.rack().filter(|rack| !rack.lock().closed);
        let Some(rack) = open.or_else(|| self.new_rack()) else { return };
        let mut kept = rack.lock();
        if kept.closed {
            return; // by a keeper on another thread, just now
        }
        let of_host = |waiting: &Waiting| *waiting.origin == *origin;
        if kept.connections.iter().filter(|waiting| of_host(waiting)).count() >= self.per_host_max {
            let oldest = kept.connections.iter().position(of_host);
            oldest.and_then(|at| kept.connections.remove(at));
        } else if kept.connections.len() >= self.total_max {
            kept.connections.pop_front();
        }
        let until_ms = now().mono_ms.saturating_add(self.keep_ms);
        kept.connections.push_back(Waiting { origin, connection, until_ms });
    }

    /// How many the running thread keeps.
    pub(super) fn kept_here(&self) -> usize {
        self.rack().map_or(0, |rack| rack.lock().connections.len())
    }

    /// The running thread's rack.
    fn rack(&self) -> Option<Arc<Rack>> {
        self.racks().get(&thread::current().id()).and_then(|place| place.rack.upgrade())
    }

    /// Makes one, if a task can be had for its keeper.
    fn new_rack(&self) -> Option<Arc<Rack>> {
        let (rack, notice) = (Arc::<Rack>::default(), Arc::<Notice>::default());
        let keeper = keep(Arc::clone(&rack), Arc::clone(&notice), self.keep_ms);
        drop(spawn_named("client: keeper", keeper).ok()?); // it goes on alone
        let place = Place { rack: Arc::downgrade(&rack), notice };
        let mut racks = self.racks();
        racks.retain(|_, place| place.rack.strong_count() > 0);
        racks.insert(thread::current().id(), place);
        Some(rack)
    }

    fn racks(&self) -> MutexGuard<'_, HashMap<ThreadId, Place>> {
        self.racks.lock()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // On whichever thread this is, closing is the keepers'.
        for place in self.racks().values() {
            place.notice.dismiss();
        }
    }
}

impl Notice {
    fn dismiss(&self) {
        let keeper = {
            let mut told = self.0.lock();
            told.dismissed = true;
            told.keeper.take()
        };
        if let Some(keeper) = keeper {
            keeper.wake();
        }
    }

    /// Whether the keeper is to end now; if not, `waker` will rouse it.
    fn is_over(&self, waker: &Waker) -> bool {
        let mut told = self.0.lock();
        told.keeper = Some(waker.clone());
        told.dismissed || phase() >= Phase::Draining
    }
}

impl Rack {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }

    /// Closes what has waited for too long. Returns when to look again; `None` if nothing is left,
    /// after which the rack is closed.
    fn sweep(&self) -> Option<u64> {
        let mut kept = self.lock();
        let now_ms = now().mono_ms;
        while kept.connections.front().is_some_and(|waiting| waiting.until_ms <= now_ms) {
            kept.connections.pop_front();
        }
        let next_ms = kept.connections.front().map(|waiting| waiting.until_ms);
        kept.closed = next_ms.is_none();
        next_ms
    }

    /// Closes all, for good.
    fn clear(&self) {
        let mut kept = self.lock();
        kept.closed = true;
        kept.connections.clear();
    }
}

/// Keeps a rack until nothing is left on it, the client has gone, or the server drains.
///
/// - `first_ms`: how long to wait before the first look.
async fn keep(rack: Arc<Rack>, notice: Arc<Notice>, first_ms: u64) {
    let mut next_ms = Some(now().mono_ms.saturating_add(first_ms));
    while let Some(at_ms) = next_ms {
        let wait = Duration::from_millis(at_ms.saturating_sub(now().mono_ms));
        let mut rest = pin!(sleep(wait));
        let is_over = poll_fn(|cx| {
            if notice.is_over(cx.waker()) {
                return Poll::Ready(true);
            }
            rest.as_mut().poll(cx).map(|()| false)
        });
        if is_over.await {
            return rack.clear();
        }
        next_ms = rack.sweep();
    }
}

/// Whether nothing came on a connection that nothing was asked on: neither its end, nor bytes that
/// would be taken for the next answer. Without a deadline, the alarm of the task before is put
/// away.
fn is_idle(connection: &mut Connection) -> bool {
    connection.set_deadline(u64::MAX);
    connection.poll_recv(true).is_pending()
}
