//! What the server has done: counted by each worker for itself, added up when someone asks.

mod reference;
mod table;
mod thread;

use std::sync::atomic::{AtomicU64, Ordering};

use gustnado_http::answer::WrittenHead;
use gustnado_tasks::Workload;

pub use reference::counters_reference;
pub(crate) use table::Cell;
pub use table::{Stats, WorkerStats};
pub(crate) use thread::Thread;

/// One worker's counts, one cell for each counter of the [table] that has one. Only that worker
/// writes them, so no write needs to be a read-modify-write; the alignment keeps workers off each
/// other's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    cells: [AtomicU64; Cell::COUNT],
}

/// What one answer, or one end of a connection, adds to a tally.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Added {
    /// First digit of the answer's status; 0 if there was none.
    pub(crate) class: u16,
    pub(crate) bytes_sent: u64,
    pub(crate) fault: Option<Fault>,
}

impl Added {
    /// A response whose head was written, with so many bytes of it, head and all.
    #[inline]
    pub(crate) fn response(written: WrittenHead, bytes: usize) -> Self {
        Self { class: written.status / 100, bytes_sent: bytes as u64, fault: None }
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
            Self::NotIntroduced => &[Cell::ProxyRefused],
        }
    }
}

/// The answers of each class, by its digit less one: their cells lie side by side.
const FIRST_CLASS: usize = Cell::Answers1xx as usize;
const CLASSES: usize = Cell::Answers5xx as usize - FIRST_CLASS + 1;

impl Tally {
    /// Adds to it. To be called on the tally's own worker only.
    pub(crate) fn add(&self, added: &Added) {
        add(&self.cells[Cell::BytesSent as usize], added.bytes_sent);
        // (No class is below all of them, and so behind all of them.)
        let class = usize::from(added.class.wrapping_sub(1));
        if class < CLASSES {
            add(&self.cells[FIRST_CLASS + class], 1);
        }
        if let Some(fault) = added.fault {
            fault.cells().iter().for_each(|cell| add(&self.cells[*cell as usize], 1));
        }
    }

    fn read(&self, cell: Cell) -> u64 {
        self.cells[cell as usize].load(Ordering::Relaxed)
    }
}

fn add(total: &AtomicU64, more: u64) {
    total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Stats {
    /// Adds one worker's counts.
    pub(crate) fn include(&mut self, tally: &Tally) {
        self.add_cells(|cell| tally.read(cell));
        let answers = &tally.cells[FIRST_CLASS..][..CLASSES];
        self.requests += answers.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    }
}

impl WorkerStats {
    pub(crate) fn new(workload: Workload, tally: &Tally, thread: Thread) -> Self {
        let mut sum = Stats {
            connections_added: workload.connections_added,
            connections_removed: workload.connections_removed,
            waits: thread.waits,
            ..Stats::default()
        };
        sum.include(tally);
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
