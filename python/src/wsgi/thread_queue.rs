//! Requests that have the permit for a Python thread, on their way to it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gustnado::{Permits, Replier, Reply, Request, reply_later};

use super::body::WsgiBody;

/// The queue between the engine and the threads. It has at most one request for each of them:
/// others wait for their permits.
#[derive(Default)]
pub(super) struct ThreadQueue {
    waiting: Mutex<QueueState>,
    change: Condvar,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<HandlerCall>,
    has_ended: bool,
}

/// One request with its complete body.
pub(super) struct HandlerCall {
    pub(super) request: Request,
    pub(super) body: WsgiBody,
    pub(super) replier: Replier,
    pub(super) permits: Permits,
}

impl ThreadQueue {
    fn waiting(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. `None`: the threads have ended.
    pub(super) fn put(&self, request: Request, body: WsgiBody, permits: Permits) -> Option<Reply> {
        let mut waiting = self.waiting();
        if waiting.has_ended {
            return None;
        }
        let (replier, reply) = reply_later();
        waiting.jobs.push_back(HandlerCall { request, body, replier, permits });
        drop(waiting);
        self.change.notify_one();
        Some(reply)
    }

    /// Returns the next request; `None`: the queue has ended.
    pub(super) fn next(&self) -> Option<HandlerCall> {
        let idle = |waiting: &mut QueueState| waiting.jobs.is_empty() && !waiting.has_ended;
        let waiting = self.change.wait_while(self.waiting(), idle);
        waiting.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    pub(super) fn end(&self) {
        self.waiting().has_ended = true;
        self.change.notify_all();
    }
}
