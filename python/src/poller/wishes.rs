//! What loops want to know of their descriptors, and what of it the kernel has been told.
//!
//! A transport that has something to send asks for writability, is told of it at once, for most
//! sockets can be written to at most times, sends, and asks no more. The kernel need not hear of
//! that: it is told of a wish only if it outlasts the attempt.

use std::os::fd::RawFd;

use gustnado_reactor::Reactor;

use super::{ERR, IN, OUT, wants};

/// By descriptor.
#[derive(Default)]
pub(crate) struct Wishes {
    all: Vec<Option<Wish>>,
    changed: Vec<RawFd>,
    /// No longer wanted, which the kernel has not been told.
    ended: Vec<RawFd>,
}

struct Wish {
    wanted: u32,
    /// None: the kernel has never heard of it.
    told: Option<u32>,
    /// A connected stream that never blocks: to try to write to it does no harm. Not known yet.
    may_be_tried: bool,
    trial: Trial,
    is_changed: bool,
}

/// Whether a descriptor was said to be writable without asking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Not,
    /// This is to be said now.
    Due,
    /// It was said, and is to be written to before that is said again.
    Said,
}

impl Wish {
    fn take_due(&mut self) -> bool {
        let is_due = self.trial == Trial::Due;
        if is_due {
            self.trial = Trial::Said;
        }
        is_due
    }
}

impl Wishes {
    fn of(&mut self, number: RawFd) -> Option<&mut Wish> {
        self.all.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// A descriptor is wanted from now on.
    ///
    /// - `is_told`: the kernel has been told.
    pub(crate) fn begin(&mut self, number: RawFd, events: u32, is_told: bool) {
        let Ok(at) = usize::try_from(number) else { return };
        if self.all.len() <= at {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(Wish {
            wanted: events,
            told: is_told.then_some(events),
            may_be_tried: false,
            trial: Trial::Not,
            is_changed: false,
        });
        if !is_told {
            self.change(number, events);
        }
    }

    /// A descriptor is wanted no longer.
    ///
    /// - `is_told`: the kernel has been told.
    pub(crate) fn end(&mut self, number: RawFd, is_told: bool) {
        if let Some(wish) = usize::try_from(number).ok().and_then(|at| self.all.get_mut(at)) {
            *wish = None;
        }
        if !is_told {
            self.ended.push(number);
        }
    }

    /// Another reactor is told all of it.
    pub(crate) fn begin_anew(&mut self) {
        self.ended.clear();
        let numbers = 0..RawFd::try_from(self.all.len()).unwrap_or(RawFd::MAX);
        for number in numbers {
            let Some(wish) = self.of(number) else { continue };
            wish.told = None;
            let wanted = wish.wanted;
            self.change(number, wanted);
        }
    }

    /// Takes a wish. Returns whether it will be seen to: not for a descriptor that nobody watches.
    pub(crate) fn change(&mut self, number: RawFd, events: u32) -> bool {
        let Some(wish) = self.of(number) else { return false };
        wish.wanted = events;
        if !std::mem::replace(&mut wish.is_changed, true) {
            self.changed.push(number);
        }
        true
    }

    /// Sees to all wishes. Returns what is to be tried, and what the kernel would not watch.
    pub(crate) fn settle(&mut self, reactor: &mut Reactor) -> (Vec<RawFd>, Vec<(u64, u32)>) {
        let (mut tried, mut refused) = (Vec::new(), Vec::new());
        for number in std::mem::take(&mut self.ended) {
            // (One that was closed meanwhile is watched no longer.)
            _ = reactor.unwatch(number);
        }
        for number in std::mem::take(&mut self.changed) {
            let Some(wish) = self.of(number) else { continue };
            wish.is_changed = false;
            let is_new = wish.wanted & OUT != 0 && wish.told.is_some_and(|told| told & OUT == 0);
            if is_new && wish.trial == Trial::Not {
                wish.may_be_tried |= reactor.may_be_tried(number);
                if wish.may_be_tried {
                    (wish.trial, wish.is_changed) = (Trial::Due, true);
                    self.changed.push(number);
                    tried.push(number);
                    continue;
                }
            }
            wish.trial = Trial::Not;
            let key = u64::from(number.cast_unsigned());
            let told = match wish.told {
                Some(told) if told == wish.wanted => Ok(()),
                Some(_) => reactor.rewatch(number, wants(wish.wanted)),
                None => reactor.watch(number, wants(wish.wanted), key),
            };
            match told {
                Ok(()) => wish.told = Some(wish.wanted),
                Err(_) => refused.push((key, ERR)),
            }
        }
        (tried, refused)
    }

    /// What of the events that the kernel has found is wanted, for it may not have been told yet;
    /// and what is to be tried, with it.
    pub(crate) fn wanted(&mut self, key: u64, events: u32) -> u32 {
        let wish = RawFd::try_from(key).ok().and_then(|number| self.of(number));
        wish.map_or(events, |wish| {
            let due = if wish.take_due() { OUT } else { 0 };
            (events | due) & (wish.wanted | !(IN | OUT))
        })
    }

    /// What is to be tried, unless it has been said together with what else has happened.
    pub(crate) fn left(&mut self, tried: Vec<RawFd>) -> impl Iterator<Item = (u64, u32)> {
        tried
            .into_iter()
            .filter(|number| self.of(*number).is_some_and(Wish::take_due))
            .map(|number| (u64::from(number.cast_unsigned()), OUT))
    }
}
