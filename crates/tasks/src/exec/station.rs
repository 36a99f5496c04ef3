//! Stations: where wake-ups from other threads go, by number.

use std::sync::{Arc, PoisonError, RwLock};

use crate::exec::task_id::{STATIONS_MAX, TaskId};

/// Where wake-ups from other threads go: a worker, or a group of workers that share their tasks.
pub(crate) trait Station: Send + Sync {
    /// Makes a task ready. Any thread.
    fn wake(&self, id: TaskId);
}

/// All stations of this process. A waker holds only a number, so it needs a place to look it up;
/// read on wake-ups between threads, written when a server starts or ends.
static STATIONS: RwLock<Vec<Option<Arc<dyn Station>>>> = RwLock::new(Vec::new());

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

/// Has the station of a task make it ready, if it is still there.
pub(crate) fn wake(id: TaskId) {
    let stations = STATIONS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(station)) = stations.get(usize::from(id.station())) {
        station.wake(id);
    }
}
