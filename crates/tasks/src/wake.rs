//! Wakers are numbers: which worker, which slot, which life of it.
//!
//! A waker is made for each poll, and cloning one costs nothing: no allocation, no count. What a
//! stale number does is wake a task once more than needed, which every future must bear.

#![expect(unsafe_code, reason = "a waker whose data is a number has no safe constructor")]

use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::here;

const SLOT_BITS: u32 = 32;
const GENERATION_BITS: u32 = 20;
const STATION_BITS: u32 = u64::BITS - SLOT_BITS - GENERATION_BITS;
/// The bit of a station's number that makes a number name a waker kept for a timer there.
const FOREIGN: u16 = 1 << (STATION_BITS - 1);
/// The largest generation of a slot; the next one is zero again.
pub(crate) const GENERATION_MAX: u32 = (1 << GENERATION_BITS) - 1;

/// Names one life of one task, of whichever server of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TaskId(u64);

impl TaskId {
    /// No task, and no waker.
    pub(crate) const NOBODY: Self = Self(u64::MAX);

    pub(crate) fn new(station: u16, slot: u32, generation: u32) -> Self {
        let generation = u64::from(generation & GENERATION_MAX);
        let station = u64::from(station) << (SLOT_BITS + GENERATION_BITS);
        Self(station | generation << SLOT_BITS | u64::from(slot))
    }

    /// The number of a waker that is kept for a timer of `station`.
    pub(crate) fn foreign(station: u16, place: u32, generation: u32) -> Self {
        Self::new(station | FOREIGN, place, generation)
    }

    /// Whether it names a waker that is kept for a timer, and no task.
    pub(crate) fn is_foreign(self) -> bool {
        self.station() & FOREIGN != 0
    }

    /// The station whose timers wake it.
    pub(crate) fn home(self) -> u16 {
        self.station() & !FOREIGN
    }

    /// The task that a waker wakes, if it is a number.
    pub(crate) fn of_waker(waker: &Waker) -> Option<Self> {
        ptr::eq(waker.vtable(), &raw const TABLE).then(|| Self(waker.data().addr() as u64))
    }

    pub(crate) fn of_token(token: u64) -> Self {
        Self(token)
    }

    pub(crate) fn token(self) -> u64 {
        self.0
    }

    pub(crate) fn station(self) -> u16 {
        u16::try_from(self.0 >> (SLOT_BITS + GENERATION_BITS)).expect("12 bits are left")
    }

    pub(crate) fn slot(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).expect("masked to 32 bits")
    }

    pub(crate) fn generation(self) -> u32 {
        u32::try_from(self.0 >> SLOT_BITS & u64::from(GENERATION_MAX)).expect("masked to 20 bits")
    }

    /// A waker for this task.
    pub(crate) fn waker(self) -> Waker {
        const { assert!(usize::BITS == 64, "a task's number fills a pointer") };
        let data = ptr::without_provenance::<()>(usize::try_from(self.0).unwrap_or_default());
        // SAFETY: the table's functions never dereference the data, take any number, own nothing
        // and may be called from any thread: each is a safe function of a copied number.
        unsafe { Waker::new(data, &TABLE) }
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &TABLE),
    |data| wake(TaskId(data.addr() as u64)),
    |data| wake(TaskId(data.addr() as u64)),
    |_| {},
);

/// Where wake-ups from other threads go: a worker, or a group of workers that share their tasks.
pub(crate) trait Station: Send + Sync {
    /// Makes a task ready. Any thread.
    fn wake(&self, id: TaskId);
}

/// All stations of this process. A waker holds only a number, so it needs a place to look it up;
/// read on wake-ups between threads, written when a server starts or ends.
static STATIONS: RwLock<Vec<Option<Arc<dyn Station>>>> = RwLock::new(Vec::new());
const STATIONS_MAX: usize = FOREIGN as usize;

/// Enters a station and returns its number.
///
/// # Errors
/// 2,048 are in use.
pub(crate) fn enter(station: Arc<dyn Station>) -> std::io::Result<u16> {
    let mut stations = STATIONS.write().unwrap_or_else(PoisonError::into_inner);
    let at = stations.iter().position(Option::is_none).unwrap_or(stations.len());
    if at >= STATIONS_MAX {
        return Err(std::io::Error::other("at most 2,048 workers run in one process"));
    }
    if at == stations.len() {
        stations.push(None);
    }
    stations[at] = Some(station);
    Ok(u16::try_from(at).expect("checked against the maximum"))
}

/// Takes a station out; wakers that still name it do nothing.
pub(crate) fn leave(number: u16) {
    let mut stations = STATIONS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(station) = stations.get_mut(usize::from(number)) {
        *station = None;
    }
}

/// Makes a task ready, from wherever this is called.
fn wake(id: TaskId) {
    if here::wake_here(id) {
        return;
    }
    let stations = STATIONS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(station)) = stations.get(usize::from(id.station())) {
        station.wake(id);
    }
}
