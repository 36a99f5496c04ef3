//! Descriptors of the caller that a reactor watches in addition to its own sockets,
//! level-triggered.
//!
//! Each is known by its number and a key of its owner's. What the kernel hands back is the number
//! with a generation, so that nothing is ever reported under the key of an earlier descriptor.

use rustix::event::epoll::{Event, EventFlags};

use crate::sys::by_number::EpollChange;

/// The readiness that is wanted of a watched descriptor. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Whether something can be read.
    pub read: bool,
    /// Whether something can be written.
    pub write: bool,
}

/// An event of a watched descriptor. It is found again by the next one for as long
/// as it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "one for each thing that the kernel tells")]
pub struct WatchEvent {
    /// The key that its owner gave it.
    pub key: u64,
    /// Bytes, a connection or the end may be read.
    pub read: bool,
    /// Bytes may be written.
    pub write: bool,
    /// It has failed. The reading end of a pipe has gone, a socket has an error.
    pub error: bool,
    /// Both directions have ended, or a pipe has lost its writers.
    pub hang_up: bool,
    mark: u64,
}

/// Set in what the kernel hands back of a watched descriptor, where no number of a socket has it.
pub(crate) const WATCHED: u64 = 1 << 31;
/// Events taken from the kernel per turn, and one more for each watched descriptor.
const EVENTS: usize = 64;

/// The watched descriptors of one reactor, by their numbers.
#[derive(Default)]
pub(crate) struct Watched {
    entries: Vec<WatchedFd>,
    count: usize,
    /// Goes up with each descriptor that comes, changes or goes.
    changes: u32,
    /// Those of the last turn.
    pub(crate) events: Vec<Event>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WatchedFd {
    key: u64,
    /// What the kernel hands back; 0 while this number is not watched.
    mark: u64,
    wants: Wants,
}

impl Watched {
    /// Returns how many are watched.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns all watched numbers are below this.
    pub(crate) fn limit(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns what the kernel is to be told of a number that is to be watched from now on. Keep it
    /// with [`Watched::keep`] once the kernel has agreed.
    pub(crate) fn propose(&self, number: u32, wants: Wants) -> EpollChange {
        let generation = u64::from(self.changes.wrapping_add(1));
        change(generation << 32 | WATCHED | u64::from(number), wants)
    }

    pub(crate) fn keep(&mut self, number: u32, proposed: &EpollChange, wants: Wants, key: u64) {
        let at = number as usize;
        if at >= self.entries.len() {
            self.entries.resize(at + 1, WatchedFd::default());
        }
        self.count += usize::from(self.entries[at].mark == 0);
        self.entries[at] = WatchedFd { key, mark: proposed.data, wants };
        self.changes = self.changes.wrapping_add(1);
    }

    /// Returns what its owner calls a watched number; `None` if it is not watched.
    pub(crate) fn key(&self, number: u32) -> Option<u64> {
        self.entry(number).map(|entry| entry.key)
    }

    /// Returns what the kernel was told of a watched number.
    pub(crate) fn told(&self, number: u32) -> Option<EpollChange> {
        self.entry(number).map(|entry| change(entry.mark, entry.wants))
    }

    fn entry(&self, number: u32) -> Option<&WatchedFd> {
        self.entries.get(number as usize).filter(|entry| entry.mark != 0)
    }

    /// Forgets a number. Returns whether it was watched.
    #[inline]
    pub(crate) fn forget(&mut self, number: u32) -> bool {
        match self.entries.get_mut(number as usize) {
            Some(entry) if entry.mark != 0 => {
                *entry = WatchedFd::default();
                self.count -= 1;
                self.changes = self.changes.wrapping_add(1);
                true
            }
            _ => false,
        }
    }

    /// Room for the events of a turn, empty.
    pub(crate) fn room(&mut self) -> &mut Vec<Event> {
        self.events.clear();
        self.events.reserve(EVENTS + self.count);
        &mut self.events
    }

    /// Takes an event in. Returns whether it is of a descriptor that is watched.
    pub(crate) fn note(&self, mark: u64, flags: EventFlags, ready: &mut Vec<WatchEvent>) -> bool {
        let Some(entry) = self.live(mark) else { return false };
        ready.push(WatchEvent {
            key: entry.key,
            read: flags.contains(EventFlags::IN),
            write: flags.contains(EventFlags::OUT),
            error: flags.contains(EventFlags::ERR),
            hang_up: flags.contains(EventFlags::HUP),
            mark,
        });
        true
    }

    /// Returns whether what was found is still watched as it was then.
    pub(crate) fn is_current(&self, found: &WatchEvent) -> bool {
        self.live(found.mark).is_some()
    }

    fn live(&self, mark: u64) -> Option<&WatchedFd> {
        let number = usize::try_from(mark & (WATCHED - 1)).ok()?;
        self.entries.get(number).filter(|entry| entry.mark == mark)
    }
}

fn change(mark: u64, wants: Wants) -> EpollChange {
    EpollChange { read: wants.read, write: wants.write, edges: false, data: mark }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Wants = Wants { read: true, write: true };

    fn keep(watched: &mut Watched, number: u32, key: u64) -> u64 {
        let proposed = watched.propose(number, BOTH);
        watched.keep(number, &proposed, BOTH, key);
        proposed.data
    }

    #[test]
    fn a_number_that_is_watched_again_has_another_mark() {
        let mut watched = Watched::default();
        let first = keep(&mut watched, 7, 1);
        let mut ready = Vec::new();
        assert!(watched.note(first, EventFlags::IN, &mut ready));
        assert!(watched.is_current(&ready[0]));
        let second = keep(&mut watched, 7, 2);
        assert_eq!((watched.count(), watched.key(7)), (1, Some(2)));
        assert!(!watched.note(first, EventFlags::IN, &mut ready));
        assert!(!watched.is_current(&ready[0]));
        assert!(watched.note(second, EventFlags::OUT | EventFlags::HUP, &mut ready));
        assert_eq!(ready.iter().map(|found| found.key).collect::<Vec<_>>(), [1, 2]);
        assert!(ready[1].write && ready[1].hang_up && !ready[1].read && !ready[1].error);
        assert!(watched.forget(7) && !watched.forget(7) && !watched.forget(70));
        assert!(watched.count() == 0 && watched.told(7).is_none());
    }
}
