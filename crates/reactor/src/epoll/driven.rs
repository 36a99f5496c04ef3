//! A turn in two halves, for a worker whose thread is its caller's: sleeping, and looking at what
//! has come. And the descriptors of somebody else's that are watched beside the sockets.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::io::Errno;

use super::{Epoll, WAKER, data_of, note, open_queue};
use crate::Token;
use crate::readiness::REGISTERED;
use crate::sys::by_number::{EpollChange, EpollOrder, change_epoll};
use crate::watched::{WATCHED, Wants, WatchEvent};

impl Epoll {
    /// Waits for events until `timeout`. Returns whether a signal has ended that.
    pub(crate) fn sleep(&mut self, timeout: Option<&Timespec>) -> io::Result<bool> {
        match epoll::wait(&self.queue, spare_capacity(self.watched.room()), timeout) {
            Ok(_) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands out what the last sleep has brought.
    pub(crate) fn collect(&mut self, woken: &mut Vec<Token>, ready: &mut Vec<WatchEvent>) {
        let mut is_astray = false;
        let mut events = mem::take(&mut self.watched.events);
        for event in events.drain(..) {
            let (data, flags) = (event.data.u64(), event.flags);
            if data & WATCHED == 0 {
                woken.extend(note(&self.table, self.shared, data, flags));
            } else if data != WAKER {
                is_astray |= !self.watched.note(data, flags, ready);
            }
        }
        self.watched.events = events;
        if is_astray {
            // Without descriptors or memory it is tried again by the next turn.
            _ = self.renew();
        }
    }

    pub(crate) fn watch(&mut self, number: i32, wants: Wants, key: u64) -> io::Result<()> {
        self.tell(EpollOrder::Add, number, wants, key)
    }

    pub(crate) fn rewatch(&mut self, number: i32, wants: Wants) -> io::Result<()> {
        let key = self.key(number)?;
        let told = self.tell(EpollOrder::Modify, number, wants, key);
        if told.as_ref().is_err_and(is_gone) {
            // It was closed, and perhaps its number has been given to another one since.
            self.watched.forget(number.cast_unsigned());
        }
        told
    }

    fn tell(&mut self, order: EpollOrder, number: i32, wants: Wants, key: u64) -> io::Result<()> {
        let change = self.watched.propose(number.cast_unsigned(), wants);
        change_epoll(self.queue.as_fd(), order, number, change)?;
        self.watched.keep(number.cast_unsigned(), &change, wants, key);
        Ok(())
    }

    pub(crate) fn unwatch(&mut self, number: i32) -> io::Result<()> {
        self.key(number)?;
        self.watched.forget(number.cast_unsigned());
        let change = EpollChange::default();
        match change_epoll(self.queue.as_fd(), EpollOrder::Delete, number, change) {
            // It was closed before, which has taken it out.
            Err(error) if is_gone(&error) => Ok(()),
            done => done,
        }
    }

    /// Returns what a watched number is called; `ENOENT` where it is not watched.
    pub(crate) fn key(&self, number: i32) -> io::Result<u64> {
        let number = u32::try_from(number).map_err(|_| Errno::BADF)?;
        self.watched.key(number).ok_or_else(|| Errno::NOENT.into())
    }

    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.queue.as_fd().try_clone_to_owned()
    }

    /// Takes another epoll descriptor in place of this one.
    ///
    /// A watched descriptor was closed while something else (a process that was forked meanwhile)
    /// holds it open: its events go on, and nothing that is left here could stop them.
    fn renew(&mut self) -> io::Result<()> {
        let queue = open_queue(&self.waker)?;
        let limit = self.table.limit().max(self.watched.limit());
        for number in 0..u32::try_from(limit).unwrap_or(u32::MAX) {
            let Some(told) = self.told(number) else { continue };
            let raw = number.cast_signed();
            // What the old one does not know by this number is another descriptor by now.
            if change_epoll(self.queue.as_fd(), EpollOrder::Modify, raw, told).is_ok() {
                change_epoll(queue.as_fd(), EpollOrder::Add, raw, told)?;
            } else {
                self.watched.forget(number);
            }
        }
        self.queue = Arc::new(queue);
        Ok(())
    }

    /// Returns what the kernel was told of a descriptor.
    fn told(&self, number: u32) -> Option<EpollChange> {
        if let Some(told) = self.watched.told(number) {
            return Some(told);
        }
        let index = number as usize;
        let readiness = self.table.get(index).filter(|readiness| readiness.has(REGISTERED))?;
        let data = data_of(index, readiness.generation());
        Some(EpollChange { read: true, write: true, edges: true, data })
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::BADF))
}
