//! What loops want to know of their descriptors, and what of it the kernel has been told.
//!
//! A transport that has something to send asks for writability, is told of it at once, for most
//! sockets can be written to at most times, sends, and asks no more. The kernel need not hear of
//! that: it is told of a wish only if it outlasts the attempt.

use std::os::fd::RawFd;

use gustnado_reactor::Reactor;

use crate::poller::{IN, OUT, wants};

/// By descriptor.
#[derive(Default)]
pub(crate) struct Wishes {
    all: Vec<Option<Wish>>,
    changed: Vec<RawFd>,
    /// The kernel was not asked for what else has happened, the last time.
    has_gone_on: bool,
}

struct Wish {
    wanted: u32,
    told: u32,
    /// A stream socket that never blocks: to try to write to it does no harm. Not asked yet.
    may_be_tried: Option<bool>,
    /// It was said to be writable, and is to be written to before that is said again.
    is_tried: bool,
    is_changed: bool,
}

impl Wishes {
    fn of(&mut self, number: RawFd) -> Option<&mut Wish> {
        self.all.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// The kernel has been told to watch a descriptor.
    pub(crate) fn begin(&mut self, number: RawFd, events: u32) {
        let Ok(at) = usize::try_from(number) else { return };
        if self.all.len() <= at {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(Wish {
            wanted: events,
            told: events,
            may_be_tried: None,
            is_tried: false,
            is_changed: false,
        });
    }

    pub(crate) fn end(&mut self, number: RawFd) {
        if let Some(wish) = usize::try_from(number).ok().and_then(|at| self.all.get_mut(at)) {
            *wish = None;
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

    /// Sees to all wishes. Returns what is to be tried, as if it had been found.
    pub(crate) fn settle(&mut self, reactor: &mut Reactor) -> Vec<(u64, u32)> {
        let mut tried = Vec::new();
        for number in std::mem::take(&mut self.changed) {
            let Some(wish) = self.of(number) else { continue };
            wish.is_changed = false;
            let is_new = wish.wanted & OUT != 0 && wish.told & OUT == 0;
            let may_be_tried = |wish: &mut Wish| {
                *wish.may_be_tried.get_or_insert_with(|| reactor.may_be_tried(number))
            };
            if is_new && !wish.is_tried && may_be_tried(wish) {
                wish.is_tried = true;
                wish.is_changed = true;
                self.changed.push(number);
                tried.push((u64::from(number.cast_unsigned()), OUT));
                continue;
            }
            wish.is_tried = false;
            if wish.wanted != wish.told {
                wish.told = wish.wanted;
                // (One that was closed meanwhile is watched no longer.)
                _ = reactor.rewatch(number, wants(wish.wanted));
            }
        }
        tried
    }

    /// What of the events that were found is wanted: the kernel may not have been told yet.
    pub(crate) fn wanted(&mut self, key: u64, events: u32) -> u32 {
        let wish = i32::try_from(key).ok().and_then(|number| self.of(number));
        wish.map_or(events, |wish| events & (wish.wanted | !(IN | OUT)))
    }

    /// Whether what is to be tried may be told without a look at what else has happened: not twice
    /// in a row.
    pub(crate) fn may_go_on(&mut self, tried: &[(u64, u32)]) -> bool {
        self.has_gone_on = !tried.is_empty() && !self.has_gone_on;
        self.has_gone_on
    }
}
