//! Requests that wait for a Python thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gustnado::{Replier, Reply, Request, reply_later};

use super::body::WsgiBody;

/// The queue between the engine and the threads.
pub(super) struct ThreadQueue {
    waiting: Mutex<QueueState>,
    change: Condvar,
    waiting_max: usize,
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
}

impl ThreadQueue {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), change: Condvar::new(), waiting_max }
    }

    fn waiting(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. `None`: the queue is full.
    pub(super) fn put(&self, request: Request, body: WsgiBody) -> Option<Reply> {
        let mut waiting = self.waiting();
        if waiting.jobs.len() >= self.waiting_max || waiting.has_ended {
            return None;
        }
        let (replier, reply) = reply_later();
        waiting.jobs.push_back(HandlerCall { request, body, replier });
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
