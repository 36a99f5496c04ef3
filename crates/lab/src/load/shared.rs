//! State shared by all threads of a run. It is read often and rarely written.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::StopHandle;
use super::counts::{ThreadCounts, ThreadSecond};
use super::schedule::nanos;
use super::script::Script;
use super::sock_diag;
use super::trace::{ENTRIES_MAX, Trace};
use crate::plan::{LoadModel, LoadPlan};

/// Refusals before any connection after which the server counts as unreachable.
const REFUSALS: u32 = 3;

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The value of a time that has not come.
const NEVER: u64 = u64::MAX;

/// The times of a run, in nanoseconds since its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MeasureWindow {
    pub(super) go: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl MeasureWindow {
    /// Returns whether a moment lies within the window.
    #[inline]
    pub(super) fn measures(&self, now: u64) -> bool {
        now >= self.from && now < self.until
    }

    /// Nanoseconds since measuring began. A moment after the end lies in a second of its own,
    /// because it was not measured in the second that the end has cut.
    #[inline]
    pub(super) fn elapsed(&self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.from);
        if now < self.until {
            return elapsed;
        }
        let window = self.until.saturating_sub(self.from);
        elapsed.max(window.div_ceil(SECOND).saturating_mul(SECOND))
    }
}

/// Shared state of one run.
pub(super) struct LoadShared {
    pub(super) plan: LoadPlan,
    pub(super) script: Script,
    pub(super) stop: StopHandle,
    pub(super) threads: u32,
    origin: Instant,
    origin_unix_us: u64,
    /// Threads that have opened their connections, and when the last of them had.
    opened: AtomicU32,
    begun: AtomicU64,
    /// Threads whose connections were served, as far as they are.
    ramped_up: AtomicU32,
    /// Threads whose load is over, and the kernel counters that the last of them read before any
    /// connection was closed.
    ended: AtomicU32,
    pub(super) retransmits: OnceLock<Option<u64>>,
    go: AtomicU64,
    /// A thread has failed, so the others stop.
    pub(super) failed: AtomicBool,
    /// Whether any connection was ever established, and how many were refused before.
    reached: AtomicBool,
    refused: AtomicU32,
    pub(super) published: Vec<Mutex<ThreadSnapshot>>,
}

/// Counters that a thread publishes ten times a second.
#[derive(Debug, Default)]
pub(super) struct ThreadSnapshot {
    pub(super) right: u64,
    pub(super) errors: u64,
    pub(super) standing: u64,
    /// Whether it is measuring, and whether all requests were sent.
    pub(super) measuring: bool,
    pub(super) ending: bool,
    /// Seconds that are over and not yet collected.
    pub(super) parts: Vec<ThreadSecond>,
}

impl LoadShared {
    pub(super) fn new(plan: &LoadPlan, script: Script, stop: &StopHandle, threads: u32) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            plan: plan.clone(),
            script,
            stop: stop.clone(),
            threads,
            origin: Instant::now(),
            origin_unix_us: u64::try_from(unix.as_micros()).unwrap_or(0),
            opened: AtomicU32::new(0),
            begun: AtomicU64::new(NEVER),
            ramped_up: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            retransmits: OnceLock::new(),
            go: AtomicU64::new(NEVER),
            failed: AtomicBool::new(false),
            reached: AtomicBool::new(false),
            refused: AtomicU32::new(0),
            published: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// Nanoseconds since the origin of the run, read now.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        let elapsed = self.origin.elapsed();
        elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
    }

    /// Converts a moment of the run to microseconds since 1970-01-01.
    pub(super) fn unix_us(&self, at: u64) -> u64 {
        self.origin_unix_us + at / 1000
    }

    /// Notes that a thread has opened its connections. The last one begins the ramp-up.
    pub(super) fn note_opened(&self) {
        if self.opened.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.begun.store(self.now(), Ordering::Release);
        }
    }

    /// When all threads had opened their connections; `None` before that.
    pub(super) fn begun(&self) -> Option<u64> {
        Some(self.begun.load(Ordering::Acquire)).filter(|begun| *begun != NEVER)
    }

    /// Notes that the connections of a thread were served, or had time enough for it. The last one
    /// starts the load.
    pub(super) fn note_ramped_up(&self) {
        if self.ramped_up.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.go.store(self.now(), Ordering::Release);
        }
    }

    /// Notes that a thread's load is over. The last one queries the kernel about all connections.
    pub(super) fn note_ended(&self) {
        if self.ended.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            let retransmits =
                self.keeps_to_end().then(|| sock_diag::retransmits(&self.script.servers()));
            _ = self.retransmits.set(retransmits.flatten());
        }
    }

    /// Returns whether connections stay open until the kernel was asked about them. Of a number of
    /// requests, one with none left makes room: a server may serve a few connections at a time.
    pub(super) fn keeps_to_end(&self) -> bool {
        self.plan.keep_alive && self.plan.end.requests.is_none()
    }

    /// The times of the run, once the load has started.
    pub(super) fn times(&self) -> Option<MeasureWindow> {
        let go = self.go.load(Ordering::Acquire);
        if go == NEVER {
            return None;
        }
        let from = go.saturating_add(nanos(self.plan.warm_up));
        let mut until =
            self.plan.end.after.map_or(NEVER, |after| from.saturating_add(nanos(after)));
        if let Some(length) = self.plan.ramp_length() {
            until = until.min(from.saturating_add(length));
        }
        Some(MeasureWindow { go, from, until })
    }

    /// Seconds from the opened connections to the start of the load.
    pub(super) fn ramp_up_s(&self) -> f64 {
        let ramp_up = self.begun().zip(self.times()).filter(|_| self.plan.ramps_up());
        let took = ramp_up.map(|(begun, times)| times.go - begun);
        Duration::from_nanos(took.unwrap_or(0)).as_secs_f64()
    }

    /// Returns whether it was stopped early.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped() || self.failed.load(Ordering::Relaxed) || self.is_unreachable()
    }

    /// Notes an established connection.
    pub(super) fn note_reached(&self) {
        if !self.reached.load(Ordering::Relaxed) {
            self.reached.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a connection that was refused, or failed in its handshake.
    pub(super) fn note_refused(&self) {
        if !self.reached.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether the only server has refused all connections so far, or its TLS was. A server
    /// that was reachable once may come back, and is waited for.
    pub(super) fn is_unreachable(&self) -> bool {
        !self.reached.load(Ordering::Relaxed)
            && self.refused.load(Ordering::Relaxed) >= REFUSALS
            && self.script.only_way().is_some()
    }

    /// Returns a thread's share of a total.
    pub(super) fn share_of(&self, thread: u32, all: u64) -> u64 {
        share(all, thread, self.threads)
    }

    /// Requests that a thread may send; `u64::MAX`: any number. It has as many as connections, if
    /// there are enough.
    pub(super) fn budget_of(&self, thread: u32) -> u64 {
        let Some(all) = self.plan.end.requests else { return u64::MAX };
        let Some((place, places)) = self.place_of(thread) else { return 0 };
        share(all, place, places)
    }

    /// Returns a thread's place among those with a connection that sends requests, and how many
    /// these are. `None`: it only holds idle ones.
    pub(super) fn place_of(&self, thread: u32) -> Option<(u32, u32)> {
        // Held connections are dealt out from the first thread on, the others from the last one.
        let mirrored = self.threads - 1 - thread;
        let places = u64::from(self.threads).min(self.plan.connections);
        let places = u32::try_from(places).expect("no more than threads");
        (mirrored < places).then_some((mirrored, places))
    }

    /// Returns the number of a connection among all of the run: the idle ones come first. Numbers
    /// have no gaps, so that each host, target and source has its share of connections, and are
    /// dealt out to threads in turn.
    ///
    /// - `index`: among the connections of its thread, of which the first `held` are idle.
    pub(super) fn number_of(&self, thread: u32, index: u64, held: u64) -> u64 {
        let of = |place: u32, places: u32, index: u64| index * u64::from(places) + u64::from(place);
        if index < held {
            return of(thread, self.threads, index);
        }
        let idle = self.plan.all_connections() - self.plan.connections;
        let (place, places) = self.place_of(thread).expect("it has connections with requests");
        idle + of(place, places, index - held)
    }

    pub(super) fn counts(&self, thread: u32) -> ThreadCounts {
        let has_service = self.plan.last_rate().is_some();
        let steps = if let LoadModel::Ramp { stages } = &self.plan.load { stages.len() } else { 0 };
        let capacity = ENTRIES_MAX / self.threads as usize;
        let trace = self.plan.trace.as_ref().map(|_| Trace::new(capacity));
        let counts = ThreadCounts::new(has_service, steps, trace);
        debug_assert!(thread < self.threads);
        counts
    }

    /// Returns a thread's snapshot. A thread that panicked meanwhile left it consistent.
    pub(super) fn show<T>(&self, thread: usize, show: impl FnOnce(&mut ThreadSnapshot) -> T) -> T {
        let mut published = self.published[thread].lock().unwrap_or_else(PoisonError::into_inner);
        show(&mut published)
    }
}

/// Returns what falls to one place of some, of a total that is dealt out in turn.
fn share(all: u64, place: u32, places: u32) -> u64 {
    let (place, places) = (u64::from(place), u64::from(places));
    all / places + u64::from(place < all % places)
}

#[cfg(test)]
mod tests {
    use super::LoadShared;
    use crate::load::StopHandle;
    use crate::load::script::Script;
    use crate::plan::{LoadModel, LoadPlan};

    #[test]
    fn numbers_of_connections_have_no_gap() {
        for (idle, connections, threads) in [(0, 3, 2), (0, 7, 4), (5, 3, 4), (6, 1, 4), (3, 8, 3)]
        {
            let mut plan = LoadPlan::closed("http://127.0.0.1:1/", connections);
            plan.load = LoadModel::Hold { idle, rate_per_s: None };
            let script = Script::prepare(&plan).expect("the plan is good");
            let shared = LoadShared::new(&plan, script, &StopHandle::default(), threads);
            let of_thread = |thread: u32| {
                let held = shared.share_of(thread, idle);
                let all = held + shared.share_of(threads - 1 - thread, connections);
                let numbers = (0..all).map(|index| shared.number_of(thread, index, held));
                numbers.collect::<Vec<_>>()
            };
            let mut numbers: Vec<u64> = (0..threads).flat_map(of_thread).collect();
            numbers.sort_unstable();
            let expected: Vec<u64> = (0..idle + connections).collect();
            assert_eq!(numbers, expected, "{idle} {connections} {threads}");
        }
    }
}
