//! Light tasks, and the workers that run them.
//!
//! A task is a future on our own executor: a connection is one, and so is what a handler spawns. A
//! million that sleep cost their own size and a slot each. [`Workers`] are threads with a reactor
//! each; one of [four schedulers](SchedulerKind) decides where connections live and who runs them.
//!
//! ```text
//! reactor event ─▶ schedule.ready ─▶ schedule.claim ─▶ worker polls ─▶ schedule.settle
//! ```
//!
//! What lives here: tasks, lines of tasks, workers, placing connections, sockets as tasks see them.
//! What does not: HTTP, files, configuration. It uses the reactor.

mod acceptor;
mod blocking;
mod claim;
mod crew;
mod group;
mod here;
mod inbox;
#[cfg(all(test, loom))]
mod models;
mod net;
mod places;
mod queue;
mod ready_bits;
mod schedule;
mod sync;
mod task;
mod time;
mod wake;
mod worker;
mod workers;

pub use acceptor::Acceptor;
pub use blocking::{BlockingPool, PoolFull};
pub use crew::{Counts, Phase, Serve};
pub use gustnado_reactor::{
    Backend, Endpoint, IoChoice, Outgoing, Piece, descriptor_limit, probe_uring,
};
pub use net::{Link, LinkError, Patience};
pub use places::Placement;
pub use queue::TokenQueue;
pub use schedule::{BoxTask, SchedulerKind};
pub use task::{JoinError, JoinHandle, SpawnError, spawn, yield_now};
pub use time::{Now, now, sleep, timeout};
pub use workers::{Capacity, Plan, StartError, Workers};

/// The running worker's number, from 0; `None` on a thread that is no worker. Numbers are below the
/// plan's workers, and equal to it on a dedicated accepting thread.
pub fn worker() -> Option<usize> {
    here::try_with(|here| here.worker)
}

/// The phase of the server that the running task belongs to.
///
/// # Panics
/// Outside a task.
pub fn phase() -> Phase {
    here::with(here::Here::phase)
}
