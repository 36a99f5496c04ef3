//! The seats of workers beside those of the start: who is there, who comes, who goes.
//!
//! Everything here is under one lock, which nobody takes while nothing changes: a worker takes it
//! when it comes and when it has nothing left to do, the watch when it adds or dismisses one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};

/// How a seat is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// By nobody.
    Absent,
    /// Its thread starts.
    Coming,
    Working,
    /// It was dismissed, and serves what it has.
    Leaving,
    /// It has nothing left, and waits until it is needed again.
    Parked,
    /// It has nothing left, and its thread ends.
    Ending,
}

/// What a dismissed worker that has nothing left to do is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Go on: it is needed again, or something came meanwhile.
    Stay,
    /// Wait until it is needed again.
    Park,
    /// End.
    End,
}

struct Seat {
    state: State,
    /// The station of whoever sits here; kept from one to the next.
    station: Option<u16>,
    thread: Option<Thread>,
}

/// The seats of one crew.
pub(crate) struct Seats {
    /// Workers of the start; they have no seat here, for they always stay.
    floor: usize,
    /// Whether threads are kept.
    cache: bool,
    inside: Mutex<Inside>,
}

struct Inside {
    seats: Vec<Seat>,
    threads: Vec<JoinHandle<()>>,
}

/// Workers beside those of the start, by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) coming: usize,
    pub(crate) working: usize,
    pub(crate) leaving: usize,
}

impl Seats {
    pub(crate) fn new(floor: usize, ceiling: usize, cache: bool) -> Self {
        let seat = || Seat { state: State::Absent, station: None, thread: None };
        let seats = (floor..ceiling).map(|_| seat()).collect();
        Self { floor, cache, inside: Mutex::new(Inside { seats, threads: Vec::new() }) }
    }

    pub(crate) fn floor(&self) -> usize {
        self.floor
    }

    pub(crate) fn ceiling(&self) -> usize {
        self.floor + self.inside().seats.len()
    }

    pub(crate) fn census(&self) -> Census {
        let inside = self.inside();
        let count = |state| inside.seats.iter().filter(|seat| seat.state == state).count();
        Census {
            coming: count(State::Coming),
            working: count(State::Working),
            leaving: count(State::Leaving),
        }
    }

    /// Whether a worker of this number is there and has not been dismissed.
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
        self.inside().seats.get(seat).map(|seat| seat.state)
    }

    /// Brings somebody back who is still here: of those who leave, or else of those who wait.
    ///
    /// - `admit`: lets the worker with this number take part again.
    pub(crate) fn recall(&self, admit: impl FnOnce(usize)) -> bool {
        let mut inside = self.inside();
        let find = |state| inside.seats.iter().position(|seat| seat.state == state);
        let Some(at) = find(State::Leaving).or_else(|| find(State::Parked)) else { return false };
        admit(self.floor + at);
        let seat = &mut inside.seats[at];
        seat.state = State::Working;
        if let Some(thread) = &seat.thread {
            thread.unpark();
        }
        true
    }

    /// Reserves an empty seat for a thread that is to be started. Returns the worker's number.
    pub(crate) fn reserve(&self) -> Option<usize> {
        let mut inside = self.inside();
        let at = inside.seats.iter().position(|seat| seat.state == State::Absent)?;
        inside.seats[at].state = State::Coming;
        Some(self.floor + at)
    }

    /// Keeps the handle of a thread that was started.
    pub(crate) fn keep_thread(&self, worker: usize, handle: JoinHandle<()>) {
        let mut inside = self.inside();
        // Handles of those that have ended say nothing any more.
        inside.threads.retain(|handle| !handle.is_finished());
        let thread = handle.thread().clone();
        inside.threads.push(handle);
        if let Some(seat) = inside.seats.get_mut(worker - self.floor) {
            seat.thread = Some(thread);
        }
    }

    /// The station of a seat, entered when it is needed first.
    pub(crate) fn station(
        &self,
        worker: usize,
        enter: impl FnOnce() -> std::io::Result<u16>,
    ) -> std::io::Result<u16> {
        let seat = &mut self.inside().seats[worker - self.floor];
        if let Some(station) = seat.station {
            return Ok(station);
        }
        let station = enter()?;
        seat.station = Some(station);
        Ok(station)
    }

    /// A worker's thread has started.
    pub(crate) fn arrive(&self, worker: usize, admit: impl FnOnce()) {
        let seat = &mut self.inside().seats[worker - self.floor];
        debug_assert_eq!(seat.state, State::Coming, "whoever arrives was awaited");
        admit();
        seat.state = State::Working;
    }

    /// Dismisses a worker.
    pub(crate) fn dismiss(&self, worker: usize, close: impl FnOnce()) -> bool {
        let seat = &mut self.inside().seats[worker - self.floor];
        if seat.state != State::Working {
            return false;
        }
        close();
        seat.state = State::Leaving;
        true
    }

    /// A dismissed worker has nothing left to do.
    ///
    /// - `close`: sees to it that nothing more comes, and returns whether nothing has.
    pub(crate) fn leave(&self, worker: usize, close: impl FnOnce() -> bool) -> Farewell {
        let seat = &mut self.inside().seats[worker - self.floor];
        if seat.state != State::Leaving || !close() {
            return Farewell::Stay;
        }
        if self.cache {
            seat.state = State::Parked;
            return Farewell::Park;
        }
        seat.state = State::Ending;
        Farewell::End
    }

    /// A worker's thread has ended, or could not start.
    pub(crate) fn vacate(&self, worker: usize) {
        let seat = &mut self.inside().seats[worker - self.floor];
        seat.state = State::Absent;
        seat.thread = None;
    }

    /// Has parked threads look whether the server ends.
    pub(crate) fn rouse_parked(&self) {
        for seat in &self.inside().seats {
            if let (State::Parked, Some(thread)) = (seat.state, &seat.thread) {
                thread.unpark();
            }
        }
    }

    /// Hands out the threads and the stations, for their end.
    pub(crate) fn take(&self) -> (Vec<JoinHandle<()>>, Vec<u16>) {
        let mut inside = self.inside();
        let threads = std::mem::take(&mut inside.threads);
        let stations = inside.seats.iter_mut().filter_map(|seat| seat.station.take());
        (threads, stations.collect())
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two workers of the start, and seats for two more, of which the first works.
    fn seats(cache: bool) -> Seats {
        let seats = Seats::new(2, 4, cache);
        assert_eq!(seats.reserve(), Some(2));
        assert!(!seats.works(2) && seats.census().coming == 1);
        seats.arrive(2, || ());
        assert!(seats.works(2) && !seats.works(3) && seats.works(1));
        seats
    }

    #[test]
    fn a_dismissed_worker_is_brought_back_before_another_is_started() {
        let seats = seats(true);
        assert!(!seats.recall(|_| panic!("nobody was dismissed")));
        assert!(seats.dismiss(2, || ()));
        assert!(!seats.dismiss(2, || panic!("it was dismissed")));
        assert!(seats.recall(|worker| assert_eq!(worker, 2)));
        assert_eq!(seats.leave(2, || panic!("it is needed")), Farewell::Stay);
        assert!(seats.dismiss(2, || ()));
        assert_eq!(seats.leave(2, || false), Farewell::Stay, "something came");
        assert_eq!(seats.leave(2, || true), Farewell::Park);
        assert!(seats.is_parked(2) && !seats.is_present(2));
        assert!(seats.recall(|worker| assert_eq!(worker, 2)));
        assert!(seats.works(2) && seats.is_present(2));
    }

    #[test]
    fn a_seat_whose_thread_has_ended_is_taken_again() {
        let seats = seats(false);
        assert!(seats.dismiss(2, || ()));
        assert_eq!(seats.leave(2, || true), Farewell::End);
        assert_eq!(seats.reserve(), Some(3), "the other thread has not ended yet");
        assert_eq!(seats.reserve(), None);
        seats.vacate(2);
        assert_eq!(seats.reserve(), Some(2));
    }

    #[test]
    fn a_thread_that_only_accepts_is_always_present() {
        assert!(seats(true).is_present(4));
    }
}
