//! Listening sockets: when accepting is armed, and for how many.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;

use super::{Uring, UringIo};
use crate::Token;
use crate::listener_poll::has_pending;
use crate::sys::Key;

/// A listening socket and the connections that wait to be asked for.
pub(super) struct UringListener {
    /// Open until nothing is under way that names it by its number.
    socket: Option<Arc<OwnedFd>>,
    is_closed: bool,
    backlog: usize,
    pub(super) armed: Armed,
    /// A poll is under way that ends when a connection waits.
    pub(super) polling: bool,
    pub(super) direct: VecDeque<io::Result<u32>>,
    pub(super) ordinary: VecDeque<io::Result<OwnedFd>>,
    pub(super) waiter: Token,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Armed {
    No,
    One,
    Many,
    OneAway,
    Stopping,
}

/// A connection as the ring's descriptor table or as an ordinary descriptor.
pub(crate) enum UringAccepted {
    Here(UringIo),
    Away(OwnedFd),
}

/// Returns what names a listener's operations. A listener's index is never given to another one.
fn key_of(index: u32) -> Key {
    Key { index, generation: 0 }
}

impl UringListener {
    /// The accept that was armed is over.
    pub(super) fn disarm(&mut self) {
        self.armed = Armed::No;
        self.close_if_done();
    }

    /// The poll for a connection is over.
    pub(super) fn end_poll(&mut self) {
        self.polling = false;
        self.close_if_done();
    }

    /// Returns whether the kernel still uses the socket.
    pub(super) fn is_busy(&self) -> bool {
        self.armed != Armed::No || self.polling
    }

    fn close_if_done(&mut self) {
        if self.is_closed && !self.is_busy() {
            self.socket = None;
        }
    }
}

impl Uring {
    pub(crate) fn listen(&mut self, socket: Arc<OwnedFd>, backlog: usize) -> io::Result<u32> {
        // On a non-blocking listener the kernel would answer "try again" instead of waiting.
        rustix::io::ioctl_fionbio(&socket, false)?;
        self.listening.push(UringListener {
            socket: Some(socket),
            is_closed: false,
            backlog,
            armed: Armed::No,
            polling: false,
            direct: VecDeque::new(),
            ordinary: VecDeque::new(),
            waiter: 0,
        });
        Ok(u32::try_from(self.listening.len() - 1).expect("a server has few listeners"))
    }

    /// Accepts a connection into the table if `room` says how many more may come in, or as an
    /// ordinary descriptor for another worker if there is no room here.
    ///
    /// Multishot accepting takes whatever waits, so it is armed only where the whole backlog fits.
    pub(crate) fn accept(
        &mut self,
        index: u32,
        room: usize,
        token: Token,
    ) -> Poll<io::Result<UringAccepted>> {
        let listening = &mut self.listening[index as usize];
        if let Some(result) = listening.ordinary.pop_front() {
            return Poll::Ready(result.map(UringAccepted::Away));
        }
        if let Some(result) = listening.direct.pop_front() {
            return Poll::Ready(result.map(|slot| UringAccepted::Here(self.open_direct(slot))));
        }
        listening.waiter = token;
        let Some(socket) = listening.socket.as_ref().filter(|_| !listening.is_closed) else {
            return Poll::Pending;
        };
        let wanted = match room {
            0 => Armed::OneAway,
            room if room > listening.backlog => Armed::Many,
            _ => Armed::One,
        };
        let key = key_of(index);
        match listening.armed {
            Armed::No => {
                match wanted {
                    Armed::OneAway => self.ring.accept(socket.as_fd(), key),
                    wanted => self.ring.accept_direct(socket.as_fd(), key, wanted == Armed::Many),
                }
                listening.armed = wanted;
            }
            // Armed for one, many will do no harm; but many must not come where one fits.
            Armed::Stopping => {}
            armed if armed == wanted || (armed, wanted) == (Armed::One, Armed::Many) => {}
            _ => {
                self.ring.cancel_accept(key);
                listening.armed = Armed::Stopping;
            }
        }
        Poll::Pending
    }

    /// Returns whether a connection waits, in the kernel or here; if none does, the token is woken
    /// when one comes.
    pub(crate) fn has_pending(&mut self, index: u32, token: Token) -> bool {
        let listening = &mut self.listening[index as usize];
        listening.waiter = token;
        if !listening.direct.is_empty() || !listening.ordinary.is_empty() {
            return true;
        }
        let Some(socket) = listening.socket.as_ref().filter(|_| !listening.is_closed) else {
            return false;
        };
        if has_pending(socket) {
            return true;
        }
        // Where accepting is armed, its completion wakes the token.
        if !listening.polling && listening.armed == Armed::No {
            listening.polling = true;
            self.ring.poll_listener(socket.as_fd(), key_of(index));
        }
        false
    }

    /// Stops accepting. Connections that were accepted already can still be asked for.
    pub(crate) fn unlisten(&mut self, index: u32) {
        let listening = &mut self.listening[index as usize];
        listening.is_closed = true;
        match listening.armed {
            Armed::No if !listening.polling => listening.socket = None,
            Armed::No => self.ring.cancel_accept(key_of(index)),
            Armed::Stopping => {}
            Armed::One | Armed::Many | Armed::OneAway => {
                self.ring.cancel_accept(key_of(index));
                listening.armed = Armed::Stopping;
            }
        }
    }

    pub(crate) fn unlisten_all(&mut self) {
        for index in 0..self.listening.len() {
            self.unlisten(u32::try_from(index).expect("a server has few listeners"));
        }
    }

    /// Returns whether the kernel may still accept for this listener.
    pub(crate) fn is_listening(&self, index: u32) -> bool {
        self.listening[index as usize].is_busy()
    }
}
