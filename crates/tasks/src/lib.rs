//! Light tasks, and the workers that run them.
//!
//! A task is a future on our own executor: a connection is one, and so is what a handler spawns. A
//! million that sleep cost their own size, a slot and a timer each. [`Workers`] are threads with a
//! reactor each; one of [four schedulers](SchedulerKind) decides where connections live and who
//! runs them.
//!
//! ```text
//! reactor event ─▶ schedule.ready ─▶ schedule.claim ─▶ worker polls ─▶ schedule.settle
//! ```
//!
//! | to | there is |
//! | --- | --- |
//! | start a task beside the running one | [`spawn`], [`spawn_named`], [`spawn_detached`] |
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
//! | have a worker on a thread that one's own loop runs on | [`Driven`] |
//! | run a server | [`Workers`], [`Plan`], [`Listening`] |
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
pub use exec::block_on::{BlockOnOptions, block_on, block_on_with};
pub use exec::blocking::{BlockingPool, PoolFull};
pub use exec::context::{charge, charge_step};
pub use exec::descriptors::descriptors_for_connections;
pub use exec::dump::dump;
pub use exec::look::{Dump, TaskInfo, TaskState};
pub use exec::mailbox::{
    Closed, Receiver, Receiving, RecvTimeoutError, SendTimeoutError, Sender, Sending, TryRecvError,
    TrySendError, mailbox,
};
pub use exec::pauses::Throttle;
pub use exec::precise_timer::PreciseTimer;
pub use exec::schedule::{BoxTask, SchedulerKind};
pub use exec::select::{Either, Either3, select_all, select2, select3};
pub use exec::spawn_error::SpawnError;
pub use exec::spawner::Spawner;
pub use exec::start_error::StartError;
pub use exec::task::{
    Attached, Group, JoinError, JoinHandle, spawn, spawn_detached, spawn_named, yield_now,
};
pub use exec::time::{Now, Sleep, now, sleep, timeout};
pub use exec::waits::WaitsOn;
pub use exec::workers_shared::{Counts, Phase};
pub use exec::workload::Workload;
pub use gustnado_reactor::{
    Alert, BackendKind, Endpoint, IoChoice, Names, Outbound, Ready, RecvBuf, SendBuf,
    SocketOptions, TrafficClass, Wants, block_file_size_signal, descriptor_limit, probe_uring,
};
pub use net::acceptor::Acceptor;
pub use net::connection::Connection;
pub use net::connection_error::ConnectionError;
pub use net::connection_id::{ConnectionId, TaskMark};
pub use net::listening::{Listening, Serve};
pub use net::patience::Patience;
pub use net::send_watch::SendWatch;
pub use pool::drain_report::DrainReport;
pub use pool::driven::{Driven, Turned};
pub use pool::growth::Growth;
pub use pool::plan::{Capacity, Plan};
pub use pool::workers::Workers;
pub use sync::bucket::{Bucket, Rate, SharedBucket};
pub use sync::connection_slots::Placement;
pub use sync::queue::TokenQueue;

/// The running worker's number, from 0; `None` on a thread that is no worker. Numbers are below
/// [`Plan::workers_max`], and equal to it on a dedicated accepting thread.
pub fn worker() -> Option<usize> {
    exec::context::try_with(|ctx| ctx.worker)
}

/// The phase of the server that the running task belongs to.
///
/// # Panics
/// Outside a task.
pub fn phase() -> Phase {
    exec::context::with(exec::context::WorkerContext::phase)
}
