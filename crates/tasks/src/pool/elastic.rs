//! State of each elastic worker: absent, starting, running, draining, parked, ending.
//!
//! Everything here is under one lock, which nobody takes while nothing changes: a worker takes it
//! when it comes and when it has nothing left to do, the autoscaler when it adds or retires one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};

/// The state of an elastic worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Absent.
    Absent,
    /// Its thread starts.
    Coming,
    Working,
    /// It was retired, and serves what it has.
    Leaving,
    /// It has nothing left, and waits until it is needed again.
    Parked,
    /// It has nothing left, and its thread ends.
    Ending,
}

/// What a retired worker that has nothing left to do is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetireAction {
    /// Go on: it is needed again, or something came meanwhile.
    Stay,
    /// Wait until it is needed again.
    Park,
    /// End.
    End,
}

struct Seat {
    state: State,
    /// The wake target of the worker; kept for the next one.
    wake_target: Option<u16>,
    thread: Option<Thread>,
}

/// The elastic workers of one server.
pub(crate) struct ElasticWorkers {
    /// Workers of the start; they are not kept here, for they always stay.
    floor: usize,
    /// Whether threads are kept.
    cache: bool,
    inside: Mutex<Inside>,
}

struct Inside {
    elastic: Vec<Seat>,
    threads: Vec<JoinHandle<()>>,
}

/// Workers beside those of the start, by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElasticCounts {
    pub(crate) coming: usize,
    pub(crate) working: usize,
    pub(crate) leaving: usize,
}

impl ElasticWorkers {
    pub(crate) fn new(floor: usize, ceiling: usize, cache: bool) -> Self {
        let seat = || Seat { state: State::Absent, wake_target: None, thread: None };
        let elastic = (floor..ceiling).map(|_| seat()).collect();
        Self { floor, cache, inside: Mutex::new(Inside { elastic, threads: Vec::new() }) }
    }

    pub(crate) fn floor(&self) -> usize {
        self.floor
    }

    pub(crate) fn ceiling(&self) -> usize {
        self.floor + self.inside().elastic.len()
    }

    pub(crate) fn census(&self) -> ElasticCounts {
        let inside = self.inside();
        let count = |state| inside.elastic.iter().filter(|seat| seat.state == state).count();
        ElasticCounts {
            coming: count(State::Coming),
            working: count(State::Working),
            leaving: count(State::Leaving),
        }
    }

    /// Whether a worker of this number is there and has not been retired.
    pub(crate) fn works(&self, worker: usize) -> bool {
        worker < self.floor || self.state(worker) == Some(State::Working)
    }

    /// Whether a worker of this number has something to do, or had it a moment ago.
    pub(crate) fn is_present(&self, worker: usize) -> bool {
        let state = self.state(worker);
        worker < self.floor || matches!(state, None | Some(State::Working | State::Leaving))
    }

    pub(crate) fn is_parked(&self, worker: usize) -> bool {
        self.state(worker) == Some(State::Parked)
    }

    fn state(&self, worker: usize) -> Option<State> {
        let seat = worker.checked_sub(self.floor)?;
        self.inside().elastic.get(seat).map(|seat| seat.state)
    }

    /// Brings somebody back who is still here: of those who leave, or else of those who wait.
    ///
    /// - `admit`: lets the worker with this number take part again.
    pub(crate) fn recall(&self, admit: impl FnOnce(usize)) -> bool {
        let mut inside = self.inside();
        let find = |state| inside.elastic.iter().position(|seat| seat.state == state);
        let Some(at) = find(State::Leaving).or_else(|| find(State::Parked)) else { return false };
        admit(self.floor + at);
        let seat = &mut inside.elastic[at];
        seat.state = State::Working;
        if let Some(thread) = &seat.thread {
            thread.unpark();
        }
        true
    }

    /// Reserves an absent worker for a thread that is to be started. Returns the worker's number.
    pub(crate) fn reserve(&self) -> Option<usize> {
        let mut inside = self.inside();
        let at = inside.elastic.iter().position(|seat| seat.state == State::Absent)?;
        inside.elastic[at].state = State::Coming;
        Some(self.floor + at)
    }

    /// Keeps the handle of a thread that was started.
    pub(crate) fn keep_thread(&self, worker: usize, handle: JoinHandle<()>) {
        let mut inside = self.inside();
        // Handles of those that have ended say nothing any more.
        inside.threads.retain(|handle| !handle.is_finished());
        let thread = handle.thread().clone();
        inside.threads.push(handle);
        if let Some(seat) = inside.elastic.get_mut(worker - self.floor) {
            seat.thread = Some(thread);
        }
    }

    /// The wake target of an elastic worker, entered when it is needed first.
    pub(crate) fn wake_target(
        &self,
        worker: usize,
        enter: impl FnOnce() -> std::io::Result<u16>,
    ) -> std::io::Result<u16> {
        let seat = &mut self.inside().elastic[worker - self.floor];
        if let Some(wake_target) = seat.wake_target {
            return Ok(wake_target);
        }
        let wake_target = enter()?;
        seat.wake_target = Some(wake_target);
        Ok(wake_target)
    }

    /// A worker's thread has started.
    pub(crate) fn arrive(&self, worker: usize, admit: impl FnOnce()) {
        let seat = &mut self.inside().elastic[worker - self.floor];
        debug_assert_eq!(seat.state, State::Coming, "whoever arrives was awaited");
        admit();
        seat.state = State::Working;
    }

    /// Dismisses a worker.
    pub(crate) fn retire(&self, worker: usize, close: impl FnOnce()) -> bool {
        let seat = &mut self.inside().elastic[worker - self.floor];
        if seat.state != State::Working {
            return false;
        }
        close();
        seat.state = State::Leaving;
        true
    }

    /// A retired worker has nothing left to do.
    ///
    /// - `close`: sees to it that nothing more comes, and returns whether nothing has.
    pub(crate) fn leave(&self, worker: usize, close: impl FnOnce() -> bool) -> RetireAction {
        let seat = &mut self.inside().elastic[worker - self.floor];
        if seat.state != State::Leaving || !close() {
            return RetireAction::Stay;
        }
        if self.cache {
            seat.state = State::Parked;
            return RetireAction::Park;
        }
        seat.state = State::Ending;
        RetireAction::End
    }

    /// A worker's thread has ended, or could not start.
    pub(crate) fn vacate(&self, worker: usize) {
        let seat = &mut self.inside().elastic[worker - self.floor];
        seat.state = State::Absent;
        seat.thread = None;
    }

    /// Has parked threads look whether the server ends.
    pub(crate) fn rouse_parked(&self) {
        for seat in &self.inside().elastic {
            if let (State::Parked, Some(thread)) = (seat.state, &seat.thread) {
                thread.unpark();
            }
        }
    }

    /// Hands out the threads and the wake targets, for their end.
    pub(crate) fn take(&self) -> (Vec<JoinHandle<()>>, Vec<u16>) {
        let mut inside = self.inside();
        let threads = std::mem::take(&mut inside.threads);
        let wake_targets = inside.elastic.iter_mut().filter_map(|seat| seat.wake_target.take());
        (threads, wake_targets.collect())
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two workers of the start, and two elastic ones, of which the first works.
    fn elastic(cache: bool) -> ElasticWorkers {
        let elastic = ElasticWorkers::new(2, 4, cache);
        assert_eq!(elastic.reserve(), Some(2));
        assert!(!elastic.works(2) && elastic.census().coming == 1);
        elastic.arrive(2, || ());
        assert!(elastic.works(2) && !elastic.works(3) && elastic.works(1));
        elastic
    }

    #[test]
    fn a_dismissed_worker_is_brought_back_before_another_is_started() {
        let elastic = elastic(true);
        assert!(!elastic.recall(|_| panic!("nobody was retired")));
        assert!(elastic.retire(2, || ()));
        assert!(!elastic.retire(2, || panic!("it was retired")));
        assert!(elastic.recall(|worker| assert_eq!(worker, 2)));
        assert_eq!(elastic.leave(2, || panic!("it is needed")), RetireAction::Stay);
        assert!(elastic.retire(2, || ()));
        assert_eq!(elastic.leave(2, || false), RetireAction::Stay, "something came");
        assert_eq!(elastic.leave(2, || true), RetireAction::Park);
        assert!(elastic.is_parked(2) && !elastic.is_present(2));
        assert!(elastic.recall(|worker| assert_eq!(worker, 2)));
        assert!(elastic.works(2) && elastic.is_present(2));
    }

    #[test]
    fn a_seat_whose_thread_has_ended_is_taken_again() {
        let elastic = elastic(false);
        assert!(elastic.retire(2, || ()));
        assert_eq!(elastic.leave(2, || true), RetireAction::End);
        assert_eq!(elastic.reserve(), Some(3), "the other thread has not ended yet");
        assert_eq!(elastic.reserve(), None);
        elastic.vacate(2);
        assert_eq!(elastic.reserve(), Some(2));
    }

    #[test]
    fn a_thread_that_only_accepts_is_always_present() {
        assert!(elastic(true).is_present(4));
    }
}
