//! The server's counters: each worker counts by itself, readers add up.

mod counter;
mod declare;
mod exposition;
mod handshakes;
mod http2;
mod reference;
mod shared_stats;
mod table;
mod thread;
mod websocket;

use std::sync::atomic::{AtomicU64, Ordering};

use counter::Visibility;
use gustnado_tasks::Workload;
use gustnado_tls::{HandshakeFailure, TlsInfo};

pub use exposition::{Exposition, exposition};
pub use http2::Http2Fault;
pub use reference::counters_reference;
pub use shared_stats::SharedStats;
pub use table::Cell;
pub use table::{Stats, WorkerStats};
pub use thread::Thread;
pub use websocket::WebSocketCount;

/// One worker's counts, one cell for each counter of the table that has one. Only that worker
/// writes them, so a write is a plain load and store instead of a read-modify-write, which would
/// lock the cache line for each response. The alignment keeps workers off each other's lines; 128
/// because CPUs prefetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct Tally {
    cells: [AtomicU64; Cell::COUNT],
    /// Bytes that were counted as sent but did not leave, because their send failed. A cell of its
    /// own: subtracting from `BytesSent` could make a total shrink that a reader has already seen.
    unsent: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        let cells = [const { AtomicU64::new(0) }; Cell::COUNT];
        Self { cells, unsent: AtomicU64::new(0) }
    }
}

/// The increments of one response, or of one connection's end.
#[derive(Debug, Default, Clone, Copy)]
pub struct Added {
    /// The response's status; 0 if there was none.
    pub status: u16,
    pub bytes_sent: u64,
    pub fault: Option<Fault>,
}

/// The fault that ended a connection.
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
    /// A handler panicked. Its connection persists.
    HandlerPanicked,
    /// A client has sent more requests than it may. Its connection persists.
    TooManyRequests,
    /// Its request's body was cut because memory was short.
    BodyCut,
    /// A part of a head was cut because memory was short.
    HeadCut,
    /// The peer did not take its responses while memory was short.
    SendCut,
    /// Its client has as many connections as it may.
    TooManyConnections,
    /// It did not begin with a valid PROXY header from a permitted sender.
    NoProxyHeader,
    /// Its TLS handshake failed.
    Handshake(HandshakeFailure),
    /// It broke a rule of HTTP/2.
    Http2(Http2Fault),
}

impl Fault {
    /// Returns the counters that it increments.
    fn cells(self) -> &'static [Cell] {
        match self {
            Self::BadRequest => &[Cell::BadRequests],
            Self::TooSlow => &[Cell::Timeouts],
            Self::Idle => &[Cell::Timeouts, Cell::IdleClosed],
            Self::NeverAsked => &[Cell::Timeouts, Cell::NeverAsked],
            Self::FileCut => &[Cell::FilesCut],
            Self::HandlerPanicked => &[Cell::Panics],
            Self::TooManyRequests => &[Cell::TooManyRequests],
            Self::BodyCut => &[Cell::BodiesCut],
            Self::HeadCut => &[Cell::HeadsCut],
            Self::SendCut => &[Cell::SendsCut],
            Self::TooManyConnections => &[Cell::ClientsOver],
            Self::NoProxyHeader => &[Cell::ProxyRefused],
            Self::Handshake(failure) => handshakes::cells_of_failure(failure),
            Self::Http2(fault) => http2::cells_of(fault),
        }
    }
}

/// The cells of the response classes, which lie next to each other: class by digit, less one.
const FIRST_CLASS: usize = Cell::Responses1xx as usize;
const CLASSES: usize = Cell::Responses5xx as usize - FIRST_CLASS + 1;

impl Tally {
    /// Adds increments. Only the tally's own worker may call this: two writers would lose counts.
    pub fn add(&self, added: &Added) {
        self.add_response(added.status, added.bytes_sent);
        if let Some(fault) = added.fault {
            fault.cells().iter().for_each(|cell| add(&self.cells[*cell as usize], 1));
        }
    }

    /// Adds a response without a fault, or with status 0 a further part of one.
    #[inline]
    pub fn add_response(&self, status: u16, bytes_sent: u64) {
        add(&self.cells[Cell::BytesSent as usize], bytes_sent);
        // Status 0 wraps to the largest number and so is above every class.
        let class = usize::from((status / 100).wrapping_sub(1));
        if class < CLASSES {
            add(&self.cells[FIRST_CLASS + class], 1);
        }
    }

    /// Adds a TLS handshake that succeeded.
    pub fn add_handshake(&self, tls: &TlsInfo) {
        handshakes::cells_of(tls).for_each(|cell| add(&self.cells[cell as usize], 1));
    }

    /// Adds a connection that speaks HTTP/2.
    pub fn add_http2(&self) {
        add(&self.cells[Cell::Http2Connections as usize], 1);
    }

    /// Adds what a WebSocket counts.
    pub fn add_websocket(&self, count: WebSocketCount) {
        count.add_to(|cell, more| add(&self.cells[cell as usize], more));
    }

    /// Takes back bytes that were counted as sent and have not left.
    pub fn take_back(&self, unsent: u64) {
        add(&self.unsent, unsent);
    }

    fn read(&self, cell: Cell) -> u64 {
        self.cells[cell as usize].load(Ordering::Relaxed)
    }
}

/// Adds without a read-modify-write. Readers on other threads see either the old or the new value,
/// never a torn one; Relaxed, because counters order nothing.
fn add(total: &AtomicU64, more: u64) {
    total.store(total.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Stats {
    /// Returns the counts of all workers together.
    ///
    /// - `reported`: the largest total of sent bytes that was reported. Totals promise to only
    ///   grow, so taken-back bytes are first made up for by new ones.
    #[doc(hidden)]
    pub fn of_all(tallies: &[Tally], reported: &AtomicU64) -> Self {
        let mut stats = Self::default();
        for tally in tallies {
            stats.include(tally);
        }
        // Summed over all workers first: where workers share tasks, one may take back bytes that
        // another has counted.
        let unsent: u64 = tallies.iter().map(|tally| tally.unsent.load(Ordering::Relaxed)).sum();
        let left = stats.bytes_sent.saturating_sub(unsent);
        // Readers may run concurrently: `fetch_max` keeps a slower one from reporting less. They
        // are rare, so a read-modify-write costs nothing here.
        stats.bytes_sent = reported.fetch_max(left, Ordering::Relaxed).max(left);
        stats
    }

    fn websockets_ended(&self) -> u64 {
        self.websocket_closes_normal
            + self.websocket_closes_error
            + self.websocket_closes_application
            + self.websocket_closes_lost
    }

    /// Adds one worker's counts, without the bytes taken back.
    fn include(&mut self, tally: &Tally) {
        self.add_cells(|cell| tally.read(cell));
        let answers = &tally.cells[FIRST_CLASS..][..CLASSES];
        self.websockets_open = self.websockets.saturating_sub(self.websockets_ended());
        self.requests += answers.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    }
}

impl Stats {
    /// Returns all shown counters by the names of their fields.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.shown(|visibility| visibility != Visibility::InStats)
    }

    /// Returns those of them that the periodic line has.
    pub fn named_in_line(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.shown(|visibility| visibility == Visibility::Everywhere)
    }

    fn shown(
        &self,
        is_shown: fn(Visibility) -> bool,
    ) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let faults = self.bad_requests + self.timeouts + self.files_cut + self.panics;
        let shown = self.all().filter(move |(_, _, visibility)| is_shown(*visibility));
        shown.map(|(name, number, _)| (name, number)).chain([("faults", faults)])
    }
}

impl WorkerStats {
    #[doc(hidden)]
    pub fn new(workload: Workload, open: u64, tally: &Tally, thread: Thread) -> Self {
        let mut sum = Stats {
            connections_open: open,
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
        let (tallies, reported) = ([Tally::default(), Tally::default()], AtomicU64::new(0));
        let sent = || Stats::of_all(&tallies, &reported).bytes_sent;
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
