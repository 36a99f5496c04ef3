//! The task of a WebSocket: the handler's future, and what it sends.

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use gustnado_http::websocket::CloseCode;
use gustnado_tasks::{contained, timeout};

use crate::core::Core;

/// The future of a handler. In a box of its own: as an argument of an async function it would be
/// kept twice.
pub(crate) type SocketFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A WebSocket that several handles share.
pub(crate) type SharedCore = Arc<Mutex<Core>>;

pub(crate) fn lock(core: &SharedCore) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A WebSocket that is open. It ends with its task, also with one that is dropped.
struct OpenSocket(SharedCore);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        lock(&self.0).end_with_task();
    }
}

/// Runs a handler to its end, and closes. Whenever the handler waits, what it has sent leaves. A
/// handler that panics closes with 1011, and then its panic goes on.
pub(crate) async fn run(core: SharedCore, mut handler: SocketFuture) {
    let open = OpenSocket(core);
    let is_done = poll_fn(|context| match contained(|| handler.as_mut().poll(context)) {
        Some(Poll::Pending) => {
            lock(&open.0).poll_idle(context);
            Poll::Pending
        }
        polled => Poll::Ready(polled.is_some()),
    });
    let is_done = is_done.await;
    // Its destructors may panic, too.
    let is_done = contained(|| drop(handler)).is_some() && is_done;
    if is_done {
        // Another task may still receive.
        poll_fn(|context| {
            let mut core = lock(&open.0);
            if !core.is_held() {
                return Poll::Ready(());
            }
            core.poll_idle(context);
            Poll::Pending
        })
        .await;
    }
    let why = if is_done { CloseCode::NORMAL } else { CloseCode::INTERNAL_ERROR };
    // In a box of its own, as it would be a part of every socket that is open.
    Box::pin(end(&open.0, why)).await;
    if !is_done {
        // It was reported where it happened; whoever owns the tunnel counts it.
        resume_unwind(Box::new("the handler of a WebSocket has panicked"));
    }
}

/// Sends the close frame, and waits for the peer's.
async fn end(shared: &SharedCore, why: CloseCode) {
    let time = {
        let mut core = lock(shared);
        core.close(why, "");
        core.close_timeout()
    };
    let closed = async {
        poll_fn(|context| lock(shared).poll_closed(context)).await;
        poll_fn(|context| lock(shared).poll_gone(context)).await;
    };
    timeout(time, closed).await;
}
