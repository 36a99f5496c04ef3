//! Flow control of either side (RFC 9113 §5.2): how much may be sent, and how much may come.

use super::error::H2Error;
use super::frame::write_window;

/// The window of a connection and of each stream at first (RFC 9113 §6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;

/// The windows of a stream.
#[derive(Debug)]
pub(super) struct StreamWindows {
    /// How much more may be sent; below 0 after the peer has made its windows smaller.
    pub(super) send: i32,
    /// How much more the peer may send.
    pub(super) receive: i32,
    /// What was taken of the body since the peer was last told.
    taken: u32,
    /// The window that the peer is given back, as it grows.
    size: u32,
}

impl StreamWindows {
    /// - `send`: what the peer allows at first.
    /// - `receive`: what it may send at first.
    /// - `size`: the window that it is given back.
    #[inline]
    pub(super) fn new(send: i32, receive: u32, size: u32) -> Self {
        Self { send, receive: receive.cast_signed(), taken: 0, size }
    }

    /// Returns the window that the peer is given back.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Lets this side send more. Returns whether the window stays within its bounds.
    pub(super) fn widen(&mut self, more: i64) -> bool {
        let window = i32::try_from(i64::from(self.send) + more);
        self.send = window.unwrap_or(self.send);
        window.is_ok()
    }

    /// Takes a frame off what the peer may send. Returns whether it was allowed to send it.
    #[inline]
    pub(super) fn receive(&mut self, frame_bytes: i32) -> bool {
        self.receive -= frame_bytes;
        self.receive >= 0
    }

    /// Notes that bytes were taken, padding among them. What is owed for them is owed until
    /// [`StreamWindows::given_back`].
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Returns how many bytes the peer is to be told that it may send, once half of the window was
    /// taken: the window then grows, as it is in use.
    ///
    /// - `size_max`: it grows no further.
    #[inline]
    pub(super) fn given_back(&mut self, size_max: u32) -> Option<u32> {
        if self.taken == 0 || self.taken < self.size / 2 {
            return None;
        }
        let mut more = std::mem::take(&mut self.taken);
        if self.size < size_max {
            let wider = self.size.saturating_mul(2).min(size_max);
            more += wider - self.size;
            self.size = wider;
        }
        self.receive = self.receive.saturating_add_unsigned(more);
        Some(more)
    }
}

/// The windows of a connection.
#[derive(Debug)]
pub(super) struct ConnectionWindows {
    /// How much more may be sent on all streams together.
    pub(super) send: i32,
    /// What each stream may send at first, as the peer wants it.
    pub(super) send_first: i32,
    /// How much more the peer may send.
    receive: i32,
    /// Bytes received since the peer was last told.
    received: u32,
}

impl ConnectionWindows {
    /// - `size`: what the peer is told that it may send.
    pub(super) fn new(size: u32) -> Self {
        let first = FIRST_WINDOW.cast_signed();
        Self { send: first, send_first: first, receive: size.cast_signed(), received: 0 }
    }

    /// Lets this side send more.
    ///
    /// # Errors
    /// Nothing is given, or too much.
    pub(super) fn widen(&mut self, more: i64) -> Result<(), H2Error> {
        if more == 0 {
            return Err(H2Error::protocol("WINDOW_UPDATE gives nothing"));
        }
        let too_large = H2Error::flow("the connection's window is larger than 2^31 - 1");
        self.send = i32::try_from(i64::from(self.send) + more).map_err(|_| too_large)?;
        Ok(())
    }

    /// Changes what each stream may send by as much as the first window changes (RFC 9113 §6.9.2).
    ///
    /// # Errors
    /// A window is too large.
    pub(super) fn set_first<'w>(
        &mut self,
        value: u32,
        streams: impl Iterator<Item = &'w mut StreamWindows>,
    ) -> Result<(), H2Error> {
        let too_large = H2Error::flow("a window is larger than 2^31 - 1");
        let value = i32::try_from(value).map_err(|_| too_large)?;
        let change = i64::from(value) - i64::from(self.send_first);
        self.send_first = value;
        for windows in streams {
            if !windows.widen(change) {
                return Err(too_large);
            }
        }
        Ok(())
    }

    /// Takes a frame off what the peer may send, and gives the window back once half of it is used.
    /// What is held is bounded by the windows of the streams.
    ///
    /// - `size`: as for [`ConnectionWindows::new`].
    ///
    /// # Errors
    /// The peer was not allowed to send it.
    #[inline]
    pub(super) fn receive(
        &mut self,
        frame_bytes: i32,
        size: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), H2Error> {
        self.receive -= frame_bytes;
        if self.receive < 0 {
            return Err(H2Error::flow("DATA is more than the connection's window"));
        }
        self.received += frame_bytes.unsigned_abs();
        if self.received >= size / 2 {
            write_window(0, self.received, out);
            self.receive += self.received.cast_signed();
            self.received = 0;
        }
        Ok(())
    }
}
