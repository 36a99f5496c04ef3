//! A socket of a reactor, and its name for those who do not hold it.

use crate::epoll::EpollIo;
use crate::uring::UringIo;

/// An open socket. Close it with [`Reactor::close`](crate::Reactor::close) before it is dropped.
#[derive(Debug)]
pub struct Io(pub(crate) IoKind);

#[derive(Debug)]
pub(crate) enum IoKind {
    Epoll(EpollIo),
    Uring(UringIo),
}

/// An open socket as those name it who do not hold it.
///
/// It may be asked about by the task that holds the socket, while it does.
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
    /// What names this socket.
    #[inline]
    pub fn id(&self) -> IoId {
        let (index, generation) = match &self.0 {
            IoKind::Epoll(io) => {
                let (descriptor, generation) = io.parts();
                (descriptor.cast_unsigned(), generation)
            }
            IoKind::Uring(io) => io.parts(),
        };
        IoId::new(index, generation)
    }
}
