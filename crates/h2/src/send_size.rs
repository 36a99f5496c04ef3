//! How much one send holds.
//!
//! What is handed over cannot be overtaken: an urgent response waits behind it, here and in the
//! kernel. A client that reads fast takes 60 KiB in less than a millisecond; for one that reads
//! slowly little is handed over at a time, and the kernel is told to take little.

use crate::Http2Conn;

/// What one send holds, about: one packet of loopback, as a step of content by HTTP/1.1 (see
/// [`gustnado_tasks::send_step`]). Less would be more sends, more would make an urgent response
/// wait.
const OUT_KIB_MAX: u16 = 60;

/// The same for a slow client: a line of 10 Mbit/s takes it in 13 ms.
const SLOW_KIB: u16 = 16;

/// A send that took so long was one to a slow client, or by a busy worker, where less does no harm.
const SLOW_MS: u64 = 10;

/// How much the sends of a connection hold, as its client reads.
pub(super) struct SendSize {
    kib_max: u16,
    /// The kernel was told, too.
    is_told: bool,
}

impl SendSize {
    #[inline]
    pub(super) fn bytes_max(&self) -> usize {
        usize::from(self.kib_max) << 10
    }

    /// Takes note of how long a send took. Returns whether the client was found to be slow for the
    /// first time.
    fn note(&mut self, took_ms: u64) -> bool {
        if took_ms >= SLOW_MS {
            self.kib_max = (self.kib_max / 2).max(SLOW_KIB);
            return !std::mem::replace(&mut self.is_told, true);
        }
        if took_ms <= 1 {
            self.kib_max = (self.kib_max * 2).min(OUT_KIB_MAX);
        }
        false
    }
}

impl Default for SendSize {
    fn default() -> Self {
        Self { kib_max: OUT_KIB_MAX, is_told: false }
    }
}

impl Http2Conn {
    /// Fits the size of sends to the client, after one that took so long.
    pub(super) fn fit_sends(&mut self, took_ms: u64) {
        let is_new = self.sends.note(took_ms);
        if is_new && self.app.h2_unsent_max > 0 {
            self.socket.set_unsent_max(self.app.h2_unsent_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_shrink_while_they_are_slow_and_grow_while_they_are_fast() {
        let mut sends = SendSize::default();
        assert!(!sends.note(0) && !sends.note(9));
        assert_eq!(sends.kib_max, OUT_KIB_MAX);
        assert!(sends.note(50), "it is new");
        assert!(!sends.note(25));
        assert_eq!(sends.kib_max, SLOW_KIB);
        assert!(!sends.note(13));
        assert_eq!(sends.kib_max, SLOW_KIB, "no less");
        assert!(!sends.note(5));
        assert_eq!(sends.kib_max, SLOW_KIB);
        assert!(!sends.note(0) && !sends.note(1));
        assert_eq!(sends.kib_max, OUT_KIB_MAX);
        assert!(!sends.note(0) && !sends.note(50), "the kernel was told once");
    }
}
