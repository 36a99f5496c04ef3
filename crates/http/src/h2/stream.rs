//! A stream that outlasts the turn in which its request came.

use super::flow::StreamWindows;
use super::frame::StreamId;
use super::incoming::AnnouncedLength;
use super::priority::Priority;

/// A stream whose request or response is not over.
#[derive(Debug)]
pub struct Stream<S> {
    /// Its number.
    pub id: StreamId,
    pub(super) windows: StreamWindows,
    pub(super) body_left: AnnouncedLength,
    /// The client has sent all of its request.
    pub is_remote_closed: bool,
    /// Its request is a CONNECT: nothing but DATA may follow.
    pub(super) is_tunnel: bool,
    /// The priority of its response.
    pub priority: Priority,
    /// What the owner of the connection keeps with it.
    pub state: S,
}

impl<S> Stream<S> {
    /// Returns how many bytes of the request's body are to come, if that was announced.
    pub fn body_left(&self) -> Option<u64> {
        self.body_left.0
    }

    /// Returns how many bytes the client may have on the way before any of them is taken.
    pub fn receive_window(&self) -> u32 {
        self.windows.size()
    }

    /// Returns how many bytes the client may send before it is told that more of them were taken.
    pub fn receive_left(&self) -> u32 {
        self.windows.receive.max(0).cast_unsigned()
    }

    /// Returns how much may be sent on it, as far as the stream goes.
    #[inline]
    pub fn window(&self) -> usize {
        usize::try_from(self.windows.send).unwrap_or(0)
    }
}
