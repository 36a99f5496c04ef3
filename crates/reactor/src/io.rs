//! A socket of a reactor, and its name for those who do not hold it.

use std::mem;

use crate::epoll::EpollIo;
use crate::uring::UringIo;

/// An open socket. Close it with [`Reactor::close`](crate::Reactor::close), which takes it: dropped
/// without that, its slot is lost until the reactor ends.
#[derive(Debug)]
pub struct Io(pub(crate) IoKind);

#[derive(Debug)]
pub(crate) enum IoKind {
    Epoll(EpollIo),
    Uring(UringIo),
    /// Somebody has taken it.
    Gone,
}

/// An open socket as those name it who do not hold it.
///
/// It does not hold the socket open. Its own reactor answers for this socket or not at all, also
/// while another thread closes it: see [`Reactor::names`](crate::Reactor::names). Other reactors
/// know other sockets by the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoId(u64);

impl IoId {
    /// No socket.
    pub const NONE: Self = Self(u64::MAX);

    #[inline]
    fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    pub(crate) fn parts(self) -> (u32, u32) {
        let [low, high] = [self.0 & u64::from(u32::MAX), self.0 >> 32];
        let half = |half| u32::try_from(half).expect("half of 64 bits");
        (half(low), half(high))
    }
}

impl Io {
    /// Takes the socket out, for an owner that cannot be taken apart. What is left is no socket,
    /// and every operation on it panics.
    #[must_use = "an open socket has to be closed"]
    pub fn take(&mut self) -> Self {
        Self(mem::replace(&mut self.0, IoKind::Gone))
    }

    /// Whether [`Io::take`] has taken the socket out.
    pub fn is_taken(&self) -> bool {
        matches!(self.0, IoKind::Gone)
    }

    /// What names this socket.
    #[inline]
    pub fn id(&self) -> IoId {
        let (index, generation) = match &self.0 {
            IoKind::Epoll(io) => {
                let (descriptor, generation) = io.parts();
                (descriptor.cast_unsigned(), generation)
            }
            IoKind::Uring(io) => io.parts(),
            IoKind::Gone => return IoId::NONE,
        };
        IoId::new(index, generation)
    }
}
