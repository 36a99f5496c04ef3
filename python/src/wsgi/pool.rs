//! Requests that wait for a thread of Python's.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use gustnado::{Replier, Reply, Request, reply_later};

use super::body::Body;

/// The queue between the engine and the threads.
pub(super) struct Pool {
    waiting: Mutex<Waiting>,
    change: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    has_ended: bool,
}

/// One request, whole.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) body: Body,
    pub(super) replier: Replier,
}

impl Pool {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), change: Condvar::new(), waiting_max }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in line. `None`: too many wait already.
    pub(super) fn put(&self, request: Request, body: Body) -> Option<Reply> {
        let mut waiting = self.waiting();
        if waiting.jobs.len() >= self.waiting_max || waiting.has_ended {
            return None;
        }
        let (replier, reply) = reply_later();
        waiting.jobs.push_back(Job { request, body, replier });
        drop(waiting);
        self.change.notify_one();
        Some(reply)
    }

    /// The next request; `None`: there will be none.
    pub(super) fn next(&self) -> Option<Job> {
        let idle = |waiting: &mut Waiting| waiting.jobs.is_empty() && !waiting.has_ended;
        let waiting = self.change.wait_while(self.waiting(), idle);
        waiting.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    pub(super) fn end(&self) {
        self.waiting().has_ended = true;
        self.change.notify_all();
    }
}
