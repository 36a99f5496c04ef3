//! What the server has done: counted by each worker for itself, added up when someone asks.

use std::sync::atomic::{AtomicU64, Ordering};

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
    /// A file became shorter while it was sent.
    FileCut,
    /// A handler panicked. (Its connection goes on.)
    HandlerPanicked,
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
            Some(Fault::FileCut) => add(&self.files_cut, 1),
            Some(Fault::HandlerPanicked) => add(&self.panics, 1),
        }
    }
}

fn add(total: &AtomicU64, more: u64) {
    total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// One look at the server. Totals count from its start and only grow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
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
    /// Connections ended because the peer was silent or slow for too long.
    pub timeouts: u64,
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
    /// Files that could not be opened for want of descriptors.
    pub files_exhausted: u64,
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
        self.files_cut += read(&tally.files_cut);
        self.panics += read(&tally.panics);
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
