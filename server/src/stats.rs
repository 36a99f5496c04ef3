//! What the server has done: counted by each worker for itself, added up when someone asks.

use std::sync::atomic::{AtomicU64, Ordering};

/// One worker's counts. Only that worker writes them, so no write needs to be a read-modify-write;
/// the alignment keeps workers off each other's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    requests: AtomicU64,
    bytes_sent: AtomicU64,
    /// Answers by the first digit of their status, 1 to 5.
    answers: [AtomicU64; 6],
    bad_requests: AtomicU64,
    timeouts: AtomicU64,
    files_cut: AtomicU64,
}

/// What one turn of a connection adds to a tally.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Added {
    pub(crate) requests: u32,
    pub(crate) bad_requests: u32,
    pub(crate) timeouts: u32,
    pub(crate) files_cut: u32,
    pub(crate) answers: [u32; 6],
    pub(crate) bytes_sent: u64,
}

impl Tally {
    /// Adds a turn. To be called on the tally's own worker only.
    pub(crate) fn add(&self, added: &Added) {
        add(&self.requests, added.requests.into());
        add(&self.bytes_sent, added.bytes_sent);
        for (total, more) in self.answers.iter().zip(added.answers) {
            add(total, more.into());
        }
        add(&self.bad_requests, added.bad_requests.into());
        add(&self.timeouts, added.timeouts.into());
        add(&self.files_cut, added.files_cut.into());
    }
}

fn add(total: &AtomicU64, more: u64) {
    if more > 0 {
        total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }
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
    /// Requests whose head was read and understood.
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
    /// Handlers that panicked; the panic was contained.
    pub panics: u64,
    /// Files that could not be opened for want of descriptors.
    pub files_exhausted: u64,
}

impl Stats {
    /// Adds one worker's counts.
    pub(crate) fn include(&mut self, tally: &Tally) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.requests += read(&tally.requests);
        self.bytes_sent += read(&tally.bytes_sent);
        self.answers_1xx += read(&tally.answers[1]);
        self.answers_2xx += read(&tally.answers[2]);
        self.answers_3xx += read(&tally.answers[3]);
        self.answers_4xx += read(&tally.answers[4]);
        self.answers_5xx += read(&tally.answers[5]);
        self.bad_requests += read(&tally.bad_requests);
        self.timeouts += read(&tally.timeouts);
        self.files_cut += read(&tally.files_cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_add_up() {
        let tally = Tally::default();
        let mut added = Added { requests: 2, bytes_sent: 100, ..Added::default() };
        added.answers[4] = 1;
        tally.add(&added);
        tally.add(&added);
        let mut stats = Stats::default();
        stats.include(&tally);
        stats.include(&tally);
        assert_eq!((stats.requests, stats.bytes_sent, stats.answers_4xx), (8, 400, 4));
    }
}
