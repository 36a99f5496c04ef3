//! What a peer may do that costs this side and serves nobody.
//!
//! One leaky bucket for all of it: resets, refused streams, frames that break a rule, and empty or
//! idle frames in a row. Each attack that is known (CVE-2019-9511 to 9518, CVE-2023-44487,
//! CVE-2024-27316, CVE-2025-8671) is a way to fill it.

use super::error::{Flood, H2Error};

/// How much is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlitchLimits {
    /// How many at once; 0 is no limit.
    pub burst: u32,
    /// How many a second after that, at least 1.
    pub per_second: u32,
}

impl Default for GlitchLimits {
    fn default() -> Self {
        Self { burst: 1_000, per_second: 33 }
    }
}

/// Frames in a row that may serve no request: a client that measures the line sends a few.
const IDLE_FRAMES_MAX: u8 = 32;

/// Content that is worth a frame.
const WORTHWHILE_BYTES: usize = 256;

/// `WINDOW_UPDATE` frames that each frame of content may bring: half of a window of the stream and
/// of the connection, twice.
const WINDOWS_OF_FRAME: usize = 4;

/// What a connection has used of its budget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    /// When the bucket will be empty, in milliseconds.
    empty_ms: u64,
    /// Frames since the last one that served a request.
    idle_frames: u8,
    /// `WINDOW_UPDATE` frames that answer what was sent.
    windows: u16,
}

impl Budget {
    /// Counts something that only a broken or hostile peer does often.
    ///
    /// # Errors
    /// It was once too often: the connection ends.
    #[cold]
    pub(super) fn glitch(
        &mut self,
        flood: Flood,
        now_ms: u64,
        limits: GlitchLimits,
    ) -> Result<(), H2Error> {
        let cost_ms = 1000 / u64::from(limits.per_second.max(1));
        self.empty_ms = self.empty_ms.max(now_ms) + cost_ms;
        let is_full = self.empty_ms - now_ms > u64::from(limits.burst) * cost_ms;
        if is_full && limits.burst > 0 {
            return Err(H2Error::flood(flood));
        }
        Ok(())
    }

    /// Counts a frame that serves no request by itself.
    ///
    /// # Errors
    /// As [`Budget::glitch`].
    pub(super) fn idle_frame(&mut self, now_ms: u64, limits: GlitchLimits) -> Result<(), H2Error> {
        self.idle_frames = self.idle_frames.saturating_add(1);
        if self.idle_frames <= IDLE_FRAMES_MAX {
            return Ok(());
        }
        self.glitch(Flood::IdleFrames, now_ms, limits)
    }

    /// Counts a `WINDOW_UPDATE`. Those that give back what was sent are no idle frames: some
    /// clients send one for each few kilobytes that they read, of each of a hundred streams.
    ///
    /// # Errors
    /// As [`Budget::glitch`].
    pub(super) fn window(&mut self, now_ms: u64, limits: GlitchLimits) -> Result<(), H2Error> {
        match self.windows.checked_sub(1) {
            Some(left) => {
                self.windows = left;
                Ok(())
            }
            None => self.idle_frame(now_ms, limits),
        }
    }

    /// Notes content that was sent. A client that lets this side send a few bytes at a time only
    /// makes work.
    #[inline]
    pub(super) fn note_sent(&mut self, bytes: usize) {
        if bytes >= WORTHWHILE_BYTES {
            self.note_progress();
            let windows = WINDOWS_OF_FRAME + bytes / WORTHWHILE_BYTES;
            self.windows = self.windows.saturating_add(u16::try_from(windows).unwrap_or(u16::MAX));
        }
    }

    /// Notes content of a tunnel that was sent, however short it is.
    pub(super) fn note_message(&mut self) {
        self.note_progress();
        let windows = u16::try_from(WINDOWS_OF_FRAME).unwrap_or(u16::MAX);
        self.windows = self.windows.saturating_add(windows);
    }

    /// Notes that a request was served a bit further.
    #[inline]
    pub(super) fn note_progress(&mut self) {
        self.idle_frames = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_is_full_after_the_burst_and_leaks() {
        let limits = GlitchLimits { burst: 5, per_second: 10 };
        let mut budget = Budget::default();
        for _ in 0..5 {
            assert_eq!(budget.glitch(Flood::Resets, 1_000, limits), Ok(()));
        }
        assert!(budget.glitch(Flood::Resets, 1_000, limits).is_err());
        assert!(
            budget.glitch(Flood::Resets, 1_100, limits).is_err(),
            "the one too many counts as well"
        );
        assert_eq!(budget.glitch(Flood::Resets, 1_300, limits), Ok(()));
        assert!(budget.glitch(Flood::Resets, 1_300, limits).is_err());
        assert_eq!(
            Budget::default().glitch(Flood::Resets, 0, GlitchLimits { burst: 0, per_second: 1 }),
            Ok(())
        );
    }

    #[test]
    fn idle_frames_count_once_they_are_many_in_a_row() {
        let limits = GlitchLimits { burst: 1, per_second: 1 };
        let mut budget = Budget::default();
        for _ in 0..1_000 {
            assert_eq!(budget.idle_frame(0, limits), Ok(()));
            budget.note_progress();
        }
        let taken = (0..100).take_while(|_| budget.idle_frame(0, limits).is_ok()).count();
        assert_eq!(taken, usize::from(IDLE_FRAMES_MAX) + 1);
    }
}
