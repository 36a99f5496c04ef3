//! A response that is sent later, from any thread.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use gustnado_http::status::Status;
use gustnado_tasks::contained;

use super::{IntoResponse, Response};

/// Creates a response that is sent later: the future for the task handler, and its sender.
///
/// ```
/// use gustnado::{Request, Server, reply_later};
///
/// let server = Server::new().get("/later", |_: Request| {
///     let (replier, reply) = reply_later();
///     std::thread::spawn(move || replier.respond("here it is"));
///     reply
/// });
/// # drop(server);
/// ```
///
/// It costs one allocation. On the worker's own thread nothing else is needed: the connection's
/// task is queued, and no other thread is woken.
pub fn reply_later() -> (Replier, Reply) {
    let slot = Arc::new(ReplySlot(Mutex::new(ReplyState::Open { waiter: None, on_lost: None })));
    (Replier(Some(Arc::clone(&slot))), Reply(slot))
}

/// Sends one response, from any thread. Dropping it without a response sends 500.
pub struct Replier(Option<Arc<ReplySlot>>);

/// Future of a response that a [`Replier`] sends, to be returned by a handler.
#[must_use = "a response is sent only if this is returned or awaited"]
pub struct Reply(Arc<ReplySlot>);

struct ReplySlot(Mutex<ReplyState>);

enum ReplyState {
    /// No response has been set; the handler's future may be waiting.
    Open {
        waiter: Option<Waker>,
        on_lost: Option<Box<dyn FnOnce() + Send>>,
    },
    Given(Box<Response>),
    /// The response was taken, or the handler's future was dropped.
    Closed,
}

impl ReplySlot {
    fn state(&self) -> MutexGuard<'_, ReplyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the response. Returns whether its future still exists.
    fn give(&self, response: impl FnOnce() -> Response) -> bool {
        if !matches!(*self.state(), ReplyState::Open { .. }) {
            return false;
        }
        // The lock is released while `response` runs, because it may use the replier.
        let given = ReplyState::Given(Box::new(response()));
        let mut state = self.state();
        match std::mem::replace(&mut *state, given) {
            ReplyState::Open { waiter, on_lost } => {
                drop(state);
                drop(on_lost);
                if let Some(waiter) = waiter {
                    waiter.wake();
                }
                true
            }
            // The client has gone meanwhile.
            closed => {
                let given = std::mem::replace(&mut *state, closed);
                drop(state);
                drop(given);
                false
            }
        }
    }
}

impl Replier {
    /// Sets the response. Returns whether it will be sent: not if the client is gone, or the
    /// handler timed out.
    pub fn respond(mut self, response: impl IntoResponse) -> bool {
        // If making the response panics, the drop of this sends 500.
        let is_sent = self.0.as_ref().is_some_and(|slot| slot.give(|| response.into_response()));
        self.0 = None;
        is_sent
    }

    /// Returns whether the response can no longer be sent.
    pub fn is_lost(&self) -> bool {
        self.0.as_ref().is_none_or(|slot| matches!(*slot.state(), ReplyState::Closed))
    }

    /// Calls `call` if the client goes, or the handler times out, before the response is set; at
    /// once if that has happened. It runs on the connection's worker, so it should not wait. The
    /// last one set replaces earlier ones.
    pub fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let Some(slot) = &self.0 else { return };
        let mut state = slot.state();
        if let ReplyState::Open { on_lost, .. } = &mut *state {
            let before = on_lost.replace(Box::new(call));
            drop(state);
            drop(before);
        } else {
            drop(state);
            call();
        }
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.give(|| Response::new(Status::INTERNAL_SERVER_ERROR));
        }
    }
}

impl Future for Reply {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let mut state = self.0.state();
        match std::mem::replace(&mut *state, ReplyState::Closed) {
            ReplyState::Given(response) => Poll::Ready(*response),
            ReplyState::Open { waiter, on_lost } => {
                let known = waiter.filter(|waiter| waiter.will_wake(context.waker()));
                let waiter = Some(known.unwrap_or_else(|| context.waker().clone()));
                *state = ReplyState::Open { waiter, on_lost };
                Poll::Pending
            }
            // Polled after its end.
            ReplyState::Closed => Poll::Ready(Response::new(Status::INTERNAL_SERVER_ERROR)),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.0.state(), ReplyState::Closed);
        if let ReplyState::Open { on_lost: Some(call), .. } = state {
            // It runs in the connection's task, which a panic must not end.
            _ = contained(call);
        }
    }
}

impl fmt::Debug for Replier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replier").field("is_lost", &self.is_lost()).finish()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(reply: &mut Reply, bell: &Arc<Bell>) -> Option<u16> {
        let waker = Waker::from(Arc::clone(bell));
        match Pin::new(reply).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(response) => Some(response.status_code().code()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_answer_comes_once_and_wakes_whoever_waits() {
        let (replier, mut reply) = reply_later();
        let bell = Arc::new(Bell::default());
        assert_eq!((poll(&mut reply, &bell), poll(&mut reply, &bell)), (None, None));
        replier.on_lost(|| panic!("nobody has gone"));
        assert!(!replier.is_lost() && replier.respond(Status::NO_CONTENT));
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        assert_eq!(poll(&mut reply, &bell), Some(204));
    }

    #[test]
    fn whoever_gives_none_has_given_500() {
        let (replier, mut reply) = reply_later();
        let bell = Arc::new(Bell::default());
        assert_eq!(poll(&mut reply, &bell), None);
        drop(replier);
        assert_eq!((bell.0.load(Ordering::Relaxed), poll(&mut reply, &bell)), (1, Some(500)));
    }

    #[test]
    fn the_loss_of_the_client_is_told_once() {
        let (replier, reply) = reply_later();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = |calls: &Arc<AtomicUsize>| {
            let calls = Arc::clone(calls);
            move || _ = calls.fetch_add(1, Ordering::Relaxed)
        };
        replier.on_lost(|| panic!("only the last one counts"));
        replier.on_lost(count(&calls));
        drop(reply);
        assert_eq!((replier.is_lost(), calls.load(Ordering::Relaxed)), (true, 1));
        replier.on_lost(count(&calls));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert!(!replier.respond("too late"));
    }
}
