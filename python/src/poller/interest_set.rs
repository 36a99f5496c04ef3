//! The events that loops watch their descriptors for, and those that the kernel has.
//!
//! A transport with data to send requests writability, gets it at once (most sockets are usually
//! writable), sends, and drops the interest. So the kernel gets only an interest that outlasts such
//! an attempt.

use std::os::fd::RawFd;

use gustnado_reactor::Reactor;

use super::{ERR, IN, OUT, wants};

/// Entries by descriptor.
#[derive(Default)]
pub(crate) struct InterestSet {
    all: Vec<Option<InterestEntry>>,
    changed: Vec<RawFd>,
    /// Ended interests that the kernel never got.
    ended: Vec<RawFd>,
}

struct InterestEntry {
    wanted: u32,
    /// `None`: the kernel never got it.
    told: Option<u32>,
    /// A connected stream in non-blocking mode, which may be written to on trial. False until
    /// known.
    may_be_tried: bool,
    trial: WriteTrial,
    is_changed: bool,
}

/// State of reporting a descriptor as writable without a call to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteTrial {
    Not,
    /// Report it now.
    Due,
    /// Reported; it must be written to before the next report.
    Said,
}

impl InterestEntry {
    fn take_due(&mut self) -> bool {
        let is_due = self.trial == WriteTrial::Due;
        if is_due {
            self.trial = WriteTrial::Said;
        }
        is_due
    }
}

impl InterestSet {
    fn of(&mut self, fd: RawFd) -> Option<&mut InterestEntry> {
        self.all.get_mut(usize::try_from(fd).ok()?)?.as_mut()
    }

    /// Adds a descriptor.
    ///
    /// - `is_told`: the kernel has the events.
    pub(crate) fn begin(&mut self, fd: RawFd, events: u32, is_told: bool) {
        let Ok(at) = usize::try_from(fd) else { return };
        if self.all.len() <= at {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(InterestEntry {
            wanted: events,
            told: is_told.then_some(events),
            may_be_tried: false,
            trial: WriteTrial::Not,
            is_changed: false,
        });
        if !is_told {
            self.change(fd, events);
        }
    }

    /// Removes a descriptor.
    ///
    /// - `is_told`: the kernel has the events.
    pub(crate) fn end(&mut self, fd: RawFd, is_told: bool) {
        if let Some(entry) = usize::try_from(fd).ok().and_then(|at| self.all.get_mut(at)) {
            *entry = None;
        }
        if !is_told {
            self.ended.push(fd);
        }
    }

    /// Marks everything as changed, for another reactor.
    pub(crate) fn retell_all(&mut self) {
        self.ended.clear();
        let fds = 0..RawFd::try_from(self.all.len()).unwrap_or(RawFd::MAX);
        for fd in fds {
            let Some(entry) = self.of(fd) else { continue };
            entry.told = None;
            let wanted = entry.wanted;
            self.change(fd, wanted);
        }
    }

    /// Changes the events of a descriptor. Returns false if it is not watched.
    pub(crate) fn change(&mut self, fd: RawFd, events: u32) -> bool {
        let Some(entry) = self.of(fd) else { return false };
        entry.wanted = events;
        if !std::mem::replace(&mut entry.is_changed, true) {
            self.changed.push(fd);
        }
        true
    }

    /// Passes all changes to the kernel. Returns the descriptors to try, and those that the kernel
    /// refused.
    pub(crate) fn settle(&mut self, reactor: &mut Reactor) -> (Vec<RawFd>, Vec<(u64, u32)>) {
        let (mut tried, mut refused) = (Vec::new(), Vec::new());
        for fd in std::mem::take(&mut self.ended) {
            // A descriptor closed meanwhile is no longer watched.
            _ = reactor.unwatch(fd);
        }
        for fd in std::mem::take(&mut self.changed) {
            let Some(entry) = self.of(fd) else { continue };
            entry.is_changed = false;
            let is_new = entry.wanted & OUT != 0 && entry.told.is_some_and(|told| told & OUT == 0);
            if is_new && entry.trial == WriteTrial::Not {
                entry.may_be_tried |= reactor.may_be_tried(fd);
                if entry.may_be_tried {
                    (entry.trial, entry.is_changed) = (WriteTrial::Due, true);
                    self.changed.push(fd);
                    tried.push(fd);
                    continue;
                }
            }
            entry.trial = WriteTrial::Not;
            let key = u64::from(fd.cast_unsigned());
            let told = match entry.told {
                Some(told) if told == entry.wanted => Ok(()),
                Some(_) => reactor.rewatch(fd, wants(entry.wanted)),
                None => reactor.watch(fd, wants(entry.wanted), key),
            };
            match told {
                Ok(()) => entry.told = Some(entry.wanted),
                Err(_) => refused.push((key, ERR)),
            }
        }
        (tried, refused)
    }

    /// Returns the part of the kernel's events that is watched, since the kernel may not have the
    /// latest interest, with the trial of the descriptor.
    pub(crate) fn wanted(&mut self, key: u64, events: u32) -> u32 {
        let entry = RawFd::try_from(key).ok().and_then(|fd| self.of(fd));
        entry.map_or(events, |entry| {
            let due = if entry.take_due() { OUT } else { 0 };
            (events | due) & (entry.wanted | !(IN | OUT))
        })
    }

    /// Returns the remaining trials.
    pub(crate) fn left(&mut self, tried: Vec<RawFd>) -> impl Iterator<Item = (u64, u32)> {
        tried
            .into_iter()
            .filter(|fd| self.of(*fd).is_some_and(InterestEntry::take_due))
            .map(|fd| (u64::from(fd.cast_unsigned()), OUT))
    }
}
