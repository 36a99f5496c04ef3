//! The slowest pace that is accepted of a peer.

/// How often a blocked send is looked at, at most, in milliseconds: a peer that takes nothing is
/// noticed that much late.
const LOOK_MS: u64 = 1_000;

/// The slowest pace that is accepted of a peer: silent for `silence_ms` at most, and on average at
/// least `rate_min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressTimeout {
    /// Longest time without any progress, and the head start for the rate, in milliseconds.
    pub silence_ms: u64,
    /// Bytes per second on average after that; 0 for no such demand.
    pub rate_min: u64,
}

impl ProgressTimeout {
    /// Returns the deadline of a transfer that began at `began_ms` and has moved `bytes` by
    /// `now_ms`, just now.
    pub fn deadline_ms(self, began_ms: u64, now_ms: u64, bytes: u64) -> u64 {
        let silent = now_ms.saturating_add(self.silence_ms);
        match bytes.saturating_mul(1000).checked_div(self.rate_min) {
            Some(earned_ms) => {
                silent.min(began_ms.saturating_add(self.silence_ms).saturating_add(earned_ms))
            }
            None => silent,
        }
    }

    /// Returns how long after its start a send is looked at first, in milliseconds. By then most
    /// are over: an earlier look would cost each of them a timer.
    #[inline]
    pub fn first_look_ms(self) -> u64 {
        self.silence_ms - self.silence_ms / 4
    }

    pub(crate) fn look_ms(self) -> u64 {
        (self.silence_ms / 6).clamp(1, LOOK_MS)
    }
}
