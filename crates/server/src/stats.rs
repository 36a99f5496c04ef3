//! What the server has done: counted by each worker for itself, added up when someone asks.

mod report;
mod thread;

use std::sync::atomic::{AtomicU64, Ordering};

use gustnado_tasks::Workload;

pub use report::stats_page;
pub(crate) use report::write_regularly;
pub(crate) use thread::Thread;

/// One worker's counts. Only that worker writes them, so no write needs to be a read-modify-write;
/// the alignment keeps workers off each other's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    bytes_sent: AtomicU64,
    /// Answers by the first digit of their status, 1 to 5; 0 counts what was no answer.
    answers: [AtomicU64; 6],
    bad_requests: AtomicU64,
    timeouts: AtomicU64,
    files_cut: AtomicU64,
    panics: AtomicU64,
    idle_closed: AtomicU64,
    never_asked: AtomicU64,
    too_many: AtomicU64,
    not_introduced: AtomicU64,
}

/// What one answer, or one end of a connection, adds to a tally.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Added {
    /// First digit of the answer's status; 0 if there was none.
    pub(crate) class: u8,
    pub(crate) bytes_sent: u64,
    pub(crate) fault: Option<Fault>,
}

impl Added {
    /// An answer as it was written, head first: `HTTP/1.1 ` and then the digits of its status.
    pub(crate) fn answer(written: &[u8]) -> Self {
        let class = written.get(9).map_or(0, |digit| digit.wrapping_sub(b'0'));
        Self { class, bytes_sent: written.len() as u64, fault: None }
    }
}

/// What ended a connection before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A request against the rules, or past a limit.
    BadRequest,
    /// The peer was silent or slow for too long.
    TooSlow,
    /// Nothing came between two requests for too long.
    Idle,
    /// Not a byte came for too long.
    NeverAsked,
    /// A file became shorter while it was sent.
    FileCut,
    /// A handler panicked. (Its connection goes on.)
    HandlerPanicked,
    /// A client has sent more requests than it may. (Its connection goes on.)
    TooManyRequests,
    /// It did not begin with a valid PROXY header of somebody who may send one.
    NotIntroduced,
}

impl Tally {
    /// Adds to it. To be called on the tally's own worker only.
    pub(crate) fn add(&self, added: &Added) {
        add(&self.bytes_sent, added.bytes_sent);
        if let Some(answers) = self.answers.get(usize::from(added.class)) {
            add(answers, 1);
        }
        match added.fault {
            None => {}
            Some(Fault::BadRequest) => add(&self.bad_requests, 1),
            Some(Fault::TooSlow) => add(&self.timeouts, 1),
            Some(Fault::Idle) => {
                add(&self.timeouts, 1);
                add(&self.idle_closed, 1);
            }
            Some(Fault::NeverAsked) => {
                add(&self.timeouts, 1);
                add(&self.never_asked, 1);
            }
            Some(Fault::FileCut) => add(&self.files_cut, 1),
            Some(Fault::HandlerPanicked) => add(&self.panics, 1),
            Some(Fault::TooManyRequests) => add(&self.too_many, 1),
            Some(Fault::NotIntroduced) => add(&self.not_introduced, 1),
        }
    }
}

fn add(total: &AtomicU64, more: u64) {
    total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// One look at the server. Totals count from its start and only grow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Whether it takes new connections, and will go on: no from the moment on that its end begins.
    pub ready: bool,
    /// Milliseconds since the start.
    pub uptime_ms: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Requests answered, those against the rules included.
    pub requests: u64,
    /// Bytes of answers handed to the kernel.
    pub bytes_sent: u64,
    /// Answers with a status of 100 to 199.
    pub answers_1xx: u64,
    /// Answers with a status of 200 to 299.
    pub answers_2xx: u64,
    /// Answers with a status of 300 to 399.
    pub answers_3xx: u64,
    /// Answers with a status of 400 to 499.
    pub answers_4xx: u64,
    /// Answers with a status of 500 to 599.
    pub answers_5xx: u64,
    /// Requests refused for their form: head or body against the rules or past a limit.
    pub bad_requests: u64,
    /// Of these, connections without a valid PROXY header, where one is demanded, or from somebody
    /// who may not send one.
    pub proxy_refused: u64,
    /// Connections ended because the peer was silent or slow for too long.
    pub timeouts: u64,
    /// Of these, those that were idle between two requests.
    pub idle_closed: u64,
    /// Of these, those that never sent a byte.
    pub never_asked: u64,
    /// Connections that workers have taken in. (Those accepted last may still be on their way.)
    pub connections_added: u64,
    /// Connections that have ended.
    pub connections_removed: u64,
    /// Light tasks that live now: connections, acceptors, and what handlers have started.
    pub tasks_live: u64,
    /// Times that a worker's thread gave its CPU up to wait, by the kernel's own count.
    pub waits: u64,
    /// Connections cut because a file became shorter while it was sent.
    pub files_cut: u64,
    /// Accepts that failed for want of descriptors or memory; accepting rested for a moment.
    pub accept_exhausted: u64,
    /// Accepts that failed otherwise.
    pub accept_failed: u64,
    /// Times that accepting paused because all places were taken.
    pub accept_paused: u64,
    /// Workers there are now.
    pub workers: u64,
    /// Workers that were added because all were busy, those included that came back.
    pub workers_grown: u64,
    /// Workers that have gone because they were not needed.
    pub workers_shrunk: u64,
    /// Workers that were needed and could not be started.
    pub workers_failed: u64,
    /// Handlers that panicked; the panic was contained.
    pub panics: u64,
    /// Requests answered with 429: their client has sent more than it may.
    pub too_many_requests: u64,
    /// Files that could not be opened for want of descriptors.
    pub files_exhausted: u64,
    /// Times that another configuration was taken while it ran.
    pub reloads: u64,
    /// Times that another configuration was wrong, and the old one stayed.
    pub reloads_refused: u64,
    /// Lines of the access log that could not be written: the disk was full, or the reader too
    /// slow.
    pub log_lines_lost: u64,
}

impl Stats {
    /// Adds one worker's counts.
    pub(crate) fn include(&mut self, tally: &Tally) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.requests += tally.answers[1..].iter().map(read).sum::<u64>();
        self.bytes_sent += read(&tally.bytes_sent);
        self.answers_1xx += read(&tally.answers[1]);
        self.answers_2xx += read(&tally.answers[2]);
        self.answers_3xx += read(&tally.answers[3]);
        self.answers_4xx += read(&tally.answers[4]);
        self.answers_5xx += read(&tally.answers[5]);
        self.bad_requests += read(&tally.bad_requests);
        self.timeouts += read(&tally.timeouts);
        self.idle_closed += read(&tally.idle_closed);
        self.never_asked += read(&tally.never_asked);
        self.files_cut += read(&tally.files_cut);
        self.panics += read(&tally.panics);
        self.too_many_requests += read(&tally.too_many);
        self.proxy_refused += read(&tally.not_introduced);
    }
}

/// One worker's part of [`Stats`].
///
/// Where workers share their tasks, a connection may be added by one and removed by another: then
/// only the sums say how many live.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Its number, from 0; a thread that only accepts has the one behind the last.
    pub worker: usize,
    /// Connections that it has taken in.
    pub connections_added: u64,
    /// Connections that have ended on it.
    pub connections_removed: u64,
    /// Light tasks that it has taken in, connections among them.
    pub tasks_added: u64,
    /// Light tasks that have ended on it.
    pub tasks_ended: u64,
    /// Requests that it has answered.
    pub requests: u64,
    /// Bytes of answers that it has handed to the kernel.
    pub bytes_sent: u64,
    /// Answers with a status of 400 to 499.
    pub answers_4xx: u64,
    /// Answers with a status of 500 to 599.
    pub answers_5xx: u64,
    /// Requests that it has refused for their form.
    pub bad_requests: u64,
    /// Connections that it has ended for silence or slowness.
    pub timeouts: u64,
    /// Of these, those that were idle between two requests.
    pub idle_closed: u64,
    /// Of these, those that never sent a byte.
    pub never_asked: u64,
    /// Connections that it has cut because a file became shorter.
    pub files_cut: u64,
    /// Handlers that panicked on it.
    pub panics: u64,
    /// Times that its thread gave its CPU up to wait, by the kernel's own count.
    pub waits: u64,
    /// CPU time of its thread, user and system together.
    pub cpu_ms: u64,
}

impl WorkerStats {
    pub(crate) fn new(workload: Workload, tally: &Tally, thread: Thread) -> Self {
        let mut sum = Stats::default();
        sum.include(tally);
        Self {
            worker: workload.worker,
            connections_added: workload.connections_added,
            connections_removed: workload.connections_removed,
            tasks_added: workload.tasks_added,
            tasks_ended: workload.tasks_ended,
            requests: sum.requests,
            bytes_sent: sum.bytes_sent,
            answers_4xx: sum.answers_4xx,
            answers_5xx: sum.answers_5xx,
            bad_requests: sum.bad_requests,
            timeouts: sum.timeouts,
            idle_closed: sum.idle_closed,
            never_asked: sum.never_asked,
            files_cut: sum.files_cut,
            panics: sum.panics,
            waits: thread.waits,
            cpu_ms: thread.cpu_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_faults_add_up() {
        let tally = Tally::default();
        tally.add(&Added { class: 2, bytes_sent: 100, fault: None });
        tally.add(&Added { class: 4, bytes_sent: 50, fault: Some(Fault::BadRequest) });
        tally.add(&Added { fault: Some(Fault::FileCut), ..Added::default() });
        let mut stats = Stats::default();
        stats.include(&tally);
        stats.include(&tally);
        assert_eq!((stats.requests, stats.bytes_sent, stats.answers_4xx), (4, 300, 2));
        assert_eq!((stats.bad_requests, stats.files_cut, stats.timeouts), (2, 2, 0));
    }
}
