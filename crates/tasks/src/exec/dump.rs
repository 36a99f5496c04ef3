//! Asking what every task does, from a task or from any other thread.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use crate::exec::executor::context;
use crate::exec::timers::time::timeout;
use crate::exec::worker::dump_request::{Dump, DumpRequest};
use crate::exec::worker::workers_shared::WorkersShared;
use crate::sync::parking;

/// Returns what the tasks of the running task's server do.
///
/// - `within`: how long to wait for workers that are held by a task.
///
/// # Panics
/// Outside a task.
pub async fn dump(within: Duration) -> Dump {
    let (shared, now_ms) =
        context::with(|ctx| (Arc::clone(&ctx.shared), ctx.reactor.borrow().clock().read_ms()));
    let look = ask(&shared, now_ms);
    timeout(within, poll_fn(|context| look.poll(context))).await;
    finish(&look, &shared)
}

/// Returns what the tasks of a server do. Blocks the calling thread until its workers have
/// answered.
///
/// - `within`: how long to wait for workers that are held by a task.
pub(crate) fn wait_for_dump(shared: &WorkersShared, now_ms: u64, within: Duration) -> Dump {
    let look = ask(shared, now_ms);
    parking::wait(Some(within), |context| look.poll(context));
    finish(&look, shared)
}

/// Asks every worker.
fn ask(shared: &WorkersShared, now_ms: u64) -> Arc<DumpRequest> {
    let handles = shared.handles.iter().chain(shared.acceptor.get());
    let look = Arc::new(DumpRequest::new(now_ms, Arc::clone(&shared.names)));
    look.expect_replies(handles.filter(|handle| handle.reply(&look)).count());
    look
}

fn finish(look: &DumpRequest, shared: &WorkersShared) -> Dump {
    let worker_metrics = shared.worker_metrics.lock();
    let present = worker_metrics.iter().filter(|metrics| shared.elastic.is_present(metrics.worker));
    look.finish(present.map(|metrics| &**metrics))
}
