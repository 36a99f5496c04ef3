//! A stream that outlasts the turn in which its request came.

use super::priority::Priority;

/// The bounds of windows.
pub(super) const WINDOW_MAX: i64 = (1 << 31) - 1;

/// The number of a stream: odd, as clients open them.
pub type StreamId = u32;

/// A stream whose request or response is not over.
#[derive(Debug)]
pub struct Stream<S> {
    /// Its number.
    pub id: StreamId,
    /// How much more may be sent on it; below 0 after the peer has made its windows smaller.
    pub(super) send_window: i32,
    /// How much more the peer may send.
    pub(super) receive_window: i32,
    /// What was taken of the body since the peer was last told.
    pub(super) taken: u32,
    /// The window that the peer is given back, as it grows.
    pub(super) window: u32,
    /// What is left of an announced length.
    pub(super) body_left: Option<u64>,
    /// The client has sent all of its request.
    pub is_remote_closed: bool,
    /// The priority of its response.
    pub priority: Priority,
    /// What the owner of the connection keeps with it.
    pub state: S,
}

impl<S> Stream<S> {
    /// Returns how much may be sent on it, as far as the stream goes.
    #[inline]
    pub fn window(&self) -> usize {
        usize::try_from(self.send_window).unwrap_or(0)
    }

    /// Returns how much more the client may send on it.
    pub fn peer_window(&self) -> usize {
        usize::try_from(self.receive_window).unwrap_or(0)
    }

    /// Takes a payload off the announced length.
    ///
    /// - Returns whether it agrees.
    pub(super) fn note_body(&mut self, bytes: usize, is_end: bool) -> bool {
        let Some(left) = &mut self.body_left else { return true };
        match left.checked_sub(bytes as u64) {
            Some(rest) => {
                *left = rest;
                !is_end || rest == 0
            }
            None => false,
        }
    }
}
