//! What the server has done: counted by each worker for itself, added up when someone asks.

mod reference;
mod table;
mod thread;

use std::sync::atomic::{AtomicU64, Ordering};

use gustnado_tasks::Workload;

pub use reference::counters_reference;
pub use table::Cell;
pub use table::{Stats, WorkerStats};
pub use thread::Thread;

/// One worker's counts, one cell for each counter of the table that has one. Only that worker
/// writes them, so no write needs to be a read-modify-write; the alignment keeps workers off each
/// other's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    cells: [AtomicU64; Cell::COUNT],
    /// Of the bytes that were counted as sent, those that have not left: their send has failed.
    unsent: AtomicU64,
}

/// What one answer, or one end of a connection, adds to a tally.
#[derive(Debug, Default, Clone, Copy)]
pub struct Added {
    /// The answer's status; 0 if there was none.
    pub status: u16,
    pub bytes_sent: u64,
    pub fault: Option<Fault>,
}

/// What ended a connection before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
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
    NoProxyHeader,
}

impl Fault {
    /// The counters that it counts for.
    fn cells(self) -> &'static [Cell] {
        match self {
            Self::BadRequest => &[Cell::BadRequests],
            Self::TooSlow => &[Cell::Timeouts],
            Self::Idle => &[Cell::Timeouts, Cell::IdleClosed],
            Self::NeverAsked => &[Cell::Timeouts, Cell::NeverAsked],
            Self::FileCut => &[Cell::FilesCut],
            Self::HandlerPanicked => &[Cell::Panics],
            Self::TooManyRequests => &[Cell::TooManyRequests],
            Self::NoProxyHeader => &[Cell::ProxyRefused],
        }
    }
}

/// The answers of each class, by its digit less one: their cells lie side by side.
const FIRST_CLASS: usize = Cell::Answers1xx as usize;
const CLASSES: usize = Cell::Answers5xx as usize - FIRST_CLASS + 1;

impl Tally {
    /// Adds to it. To be called on the tally's own worker only.
    pub fn add(&self, added: &Added) {
        self.add_response(added.status, added.bytes_sent);
        if let Some(fault) = added.fault {
            fault.cells().iter().for_each(|cell| add(&self.cells[*cell as usize], 1));
        }
    }

    /// Adds an answer without a fault, or a part of one: its status is 0.
    #[inline]
    pub fn add_response(&self, status: u16, bytes_sent: u64) {
        add(&self.cells[Cell::BytesSent as usize], bytes_sent);
        // (No class is below all of them, and so behind all of them.)
        let class = usize::from((status / 100).wrapping_sub(1));
        if class < CLASSES {
            add(&self.cells[FIRST_CLASS + class], 1);
        }
    }

    /// Takes bytes back that were counted as sent and have not left.
    pub fn take_back(&self, unsent: u64) {
        add(&self.unsent, unsent);
    }

    fn read(&self, cell: Cell) -> u64 {
        self.cells[cell as usize].load(Ordering::Relaxed)
    }
}

fn add(total: &AtomicU64, more: u64) {
    total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Stats {
    /// The counts of all workers together.
    ///
    /// - `told`: what was told of the bytes sent. It only grows, as readers are promised of totals:
    ///   what is taken back is made up for first.
    #[doc(hidden)]
    pub fn of_all(tallies: &[Tally], told: &AtomicU64) -> Self {
        let mut stats = Self::default();
        for tally in tallies {
            stats.include(tally);
        }
        // (Where workers share tasks, one may take back what another has counted.)
        let unsent: u64 = tallies.iter().map(|tally| tally.unsent.load(Ordering::Relaxed)).sum();
        let left = stats.bytes_sent.saturating_sub(unsent);
        stats.bytes_sent = told.fetch_max(left, Ordering::Relaxed).max(left);
        stats
    }

    /// Adds one worker's counts, and takes nothing back.
    fn include(&mut self, tally: &Tally) {
        self.add_cells(|cell| tally.read(cell));
        let answers = &tally.cells[FIRST_CLASS..][..CLASSES];
        self.requests += answers.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    }
}

impl WorkerStats {
    #[doc(hidden)]
    pub fn new(workload: Workload, tally: &Tally, thread: Thread) -> Self {
        let mut sum = Stats {
            connections_added: workload.connections_added,
            connections_removed: workload.connections_removed,
            waits: thread.waits,
            ..Stats::default()
        };
        sum.include(tally);
        sum.bytes_sent = sum.bytes_sent.saturating_sub(tally.unsent.load(Ordering::Relaxed));
        Self {
            worker: workload.worker,
            tasks_added: workload.tasks_added,
            tasks_ended: workload.tasks_ended,
            cpu_ms: thread.cpu_ms,
            ..Self::of(&sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_faults_add_up() {
        let tally = Tally::default();
        tally.add(&Added { status: 200, bytes_sent: 100, fault: None });
        tally.add(&Added { status: 404, bytes_sent: 50, fault: Some(Fault::BadRequest) });
        tally.add(&Added { fault: Some(Fault::FileCut), ..Added::default() });
        let mut stats = Stats::default();
        stats.include(&tally);
        stats.include(&tally);
        assert_eq!((stats.requests, stats.bytes_sent, stats.answers_4xx), (4, 300, 2));
        assert_eq!((stats.bad_requests, stats.files_cut, stats.timeouts), (2, 2, 0));
    }

    #[test]
    fn what_has_not_left_is_taken_back_and_totals_only_grow() {
        let (tallies, told) = ([Tally::default(), Tally::default()], AtomicU64::new(0));
        let sent = || Stats::of_all(&tallies, &told).bytes_sent;
        tallies[0].add_response(200, 100);
        tallies[1].take_back(30);
        assert_eq!(sent(), 70);
        tallies[1].add_response(200, 100);
        assert_eq!(sent(), 170);
        tallies[0].take_back(60);
        assert_eq!(sent(), 170, "it was told already");
        tallies[0].add_response(0, 100);
        assert_eq!(sent(), 210);
    }
}
