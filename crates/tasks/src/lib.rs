//! Light tasks, and the workers that run them.
//!
//! A task is a future on our own executor: a connection is one, and so is what a handler spawns. A
//! million that sleep cost their own size, a slot and a timer each. [`Workers`] are threads with a
//! reactor each; one of [four schedulers](SchedulerKind) decides where connections live and who
//! runs them.
//!
//! ```text
//! reactor event ─▶ schedule.ready ─▶ schedule.claim ─▶ worker polls ─▶ schedule.release
//! ```
//!
//! | to | there is |
//! | --- | --- |
//! | start another task | [`spawn`], [`spawn_named`], [`spawn_detached`] |
//! | go on as another future, without what the first one held | [`continue_as`] |
//! | wait for it, cancel it | [`JoinHandle`], [`Attached`] |
//! | have many, and their results as they finish | [`Group`] |
//! | start one from any thread | [`Spawner`] |
//! | wait for time | [`sleep`], [`timeout`], [`now`]; [`PreciseTimer`] below a millisecond |
//! | let others run | [`yield_now`] |
//! | wait for the first of several | [`select2`], [`select3`], [`select_all`] |
//! | pass values between tasks and threads | [`mailbox()`] |
//! | call what blocks | [`BlockingPool`] |
//! | talk to a peer | [`Connection`] |
//! | run a future on the current thread | [`block_on()`], [`block_on_with()`] |
//! | see what every task waits for | [`dump()`], [`Workers::dump`] |
//! | notice that a task never returns | [`Workers::watch`] |
//! | have a worker on a thread that one's own loop runs on | [`Driven`] |
//! | run a server | [`Workers`], [`WorkerPlan`], [`ListenerHandle`] |
//!
//! ```
//! use std::time::Duration;
//! use gustnado_tasks::{Group, block_on, mailbox, sleep, timeout};
//!
//! let sum = block_on(async {
//!     let (sender, mut receiver) = mailbox(2);
//!     let mut group = Group::new(10);
//!     for n in 1..=3_u64 {
//!         let sender = sender.clone();
//!         let task = async move {
//!             sleep(Duration::from_millis(n)).await;
//!             sender.send(n).await.is_ok()
//!         };
//!         group.spawn(task).expect("ten fit");
//!     }
//!     drop(sender);
//!     let mut sum = 0;
//!     while let Some(Some(n)) = timeout(Duration::from_secs(5), receiver.recv()).await {
//!         sum += n;
//!     }
//!     sum
//! });
//! assert_eq!(sum.expect("a reactor can be had"), 6);
//! ```
//!
//! What lives here: tasks, lines of tasks, workers, placing connections, sockets as tasks see them.
//! What does not: HTTP, files, configuration. It uses the reactor.

mod error_text;
mod exec;
mod net;
mod pool;
mod sync;

#[doc(hidden)]
pub use error_text::write_with_causes;
pub use exec::charge::Charge;
#[doc(hidden)]
pub use exec::contained::contained;
pub use exec::cut_order::cut_waker;
pub use exec::dump::dump;
pub use exec::error::SpawnError;
pub use exec::error::WorkersStartError;
pub use exec::executor::block_on::{BlockOnOptions, block_on, block_on_with};
pub use exec::executor::context::{charge, charge_step};
pub use exec::executor::eviction::request_descriptors;
pub use exec::mailbox::{
    Closed, Receiver, Receiving, RecvTimeoutError, SendTimeoutError, Sender, Sending, TryRecvError,
    TrySendError, mailbox,
};
pub use exec::schedule::{BoxTask, SchedulerKind};
pub use exec::task::blocking::{BlockingPool, PoolFull};
pub use exec::task::select::{Either, Either3, select_all, select2, select3};
pub use exec::task::spawner::Spawner;
pub use exec::task::{
    Attached, Group, JoinError, JoinHandle, continue_as, spawn, spawn_detached, spawn_named,
    yield_now,
};
pub use exec::timers::precise_timer::PreciseTimer;
pub use exec::timers::time::{Now, Sleep, now, sleep, timeout, turn_number};
pub use exec::waits::WaitsOn;
pub use exec::worker::cuts::CutDuring;
pub use exec::worker::descriptors::descriptors_for_connections;
pub use exec::worker::dump_request::{Dump, TaskInfo, TaskState};
pub use exec::worker::throttle::Throttle;
pub use exec::worker::worker_metrics::Workload;
pub use exec::worker::workers_shared::{Counts, Phase};
pub use gustnado_reactor::{
    BackendKind, BindOptions, Discarded, Endpoint, IoChoice, MappedFile, OpenedRoom, Outbound,
    PrivateFile, ReactorWaker, RecvBuf, SECRET_BYTES, SecretBytes, SendBuf, SendGuard, SocketAddrs,
    SocketOptions, TrafficClass, Wants, WatchEvent, block_file_size_signal, descriptor_limit,
    duplicate, probe_uring, trim_heap,
};
pub use net::acceptor::Acceptor;
pub use net::connection::Connection;
pub use net::connection_error::ConnectionError;
pub use net::connection_id::{ConnectionId, TaskMark};
pub use net::listener_handle::{ListenerHandle, Serve};
pub use net::progress_timeout::{ProgressTimeout, ProgressWindow};
pub use net::send_step::send_step;
pub use net::send_watch::SendWatch;
pub use pool::drain_report::DrainReport;
pub use pool::driven::{Driven, Turned};
pub use pool::elastic::growth::Growth;
pub use pool::plan::{Capacity, ListenOptions, WorkerPlan};
pub use pool::watchdog::{HeldWorker, note_step};
pub use pool::workers::Workers;
pub use sync::bucket::{Bucket, Rate, SharedBucket};
pub use sync::connection_slots::Placement;
pub use sync::ledger::{Ledger, MemoryKind};
#[doc(hidden)]
pub use sync::lock::Lock;

/// Returns the running worker's number, from 0; `None` on a thread that is no worker. Numbers are
/// below [`WorkerPlan::workers_max`], and equal to it on a dedicated accepting thread.
pub fn worker() -> Option<usize> {
    exec::executor::context::try_with(|ctx| ctx.worker)
}

/// Returns how many connections are open on all workers together; 0 on a thread that is no worker.
#[inline]
pub fn connections_open() -> usize {
    let open = |ctx: &exec::executor::context::WorkerContext| ctx.shared.connection_slots.open();
    exec::executor::context::try_with(open).unwrap_or(0)
}

/// Returns the phase of the server that the running task belongs to.
///
/// # Panics
/// Outside a task.
pub fn phase() -> Phase {
    exec::executor::context::with(exec::executor::context::WorkerContext::phase)
}
