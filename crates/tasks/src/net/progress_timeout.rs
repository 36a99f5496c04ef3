//! The slowest pace that is accepted of a peer, on average or over a window.

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

/// The progress of a transfer against a [`ProgressTimeout`], measured over a window as long as its
/// silence.
///
/// Bytes earn time at the least rate, but never more of it than the window. So a peer that sends
/// much at once cannot live on that while it trickles. Time that the peer is not waited for does
/// not count: [`ProgressWindow::stop`], [`ProgressWindow::resume`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressWindow {
    /// The bytes so far last until then.
    until_ms: u64,
    bytes: u64,
    /// Thousandths of a byte that have earned no whole millisecond yet.
    rest: u64,
    stopped_ms: Option<u64>,
}

impl ProgressWindow {
    /// Creates the window of a transfer that begins now.
    pub fn new(patience: ProgressTimeout, now_ms: u64) -> Self {
        let until_ms = now_ms.saturating_add(patience.silence_ms);
        Self { until_ms, bytes: 0, rest: 0, stopped_ms: None }
    }

    /// Creates the window of a transfer whose peer is not waited for yet.
    pub fn stopped(patience: ProgressTimeout, now_ms: u64) -> Self {
        Self { stopped_ms: Some(now_ms), ..Self::new(patience, now_ms) }
    }

    /// Returns the deadline of a transfer that has moved `bytes` by `now_ms`, just now.
    pub fn deadline_ms(&mut self, patience: ProgressTimeout, now_ms: u64, bytes: u64) -> u64 {
        let silent = now_ms.saturating_add(patience.silence_ms);
        if patience.rate_min == 0 {
            return silent;
        }
        let more = bytes.saturating_sub(self.bytes);
        self.bytes = bytes;
        let credit = more.saturating_mul(1_000).saturating_add(self.rest);
        self.rest = credit % patience.rate_min;
        let earned_ms = credit / patience.rate_min;
        self.until_ms = self.until_ms.saturating_add(earned_ms).min(silent);
        self.until_ms
    }

    /// Adds time in which the server did not receive at its own will.
    pub fn extend(&mut self, ms: u64) {
        self.until_ms = self.until_ms.saturating_add(ms);
    }

    /// Stops the window: from now on the peer is not waited for.
    pub fn stop(&mut self, now_ms: u64) {
        self.stopped_ms.get_or_insert(now_ms);
    }

    /// Resumes the window after a [`ProgressWindow::stop`].
    pub fn resume(&mut self, now_ms: u64) {
        if let Some(stopped_ms) = self.stopped_ms.take() {
            self.extend(now_ms.saturating_sub(stopped_ms));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const PATIENCE: ProgressTimeout = ProgressTimeout { silence_ms: 30_000, rate_min: 240 };

    #[test]
    fn much_at_once_does_not_pay_for_a_trickle() {
        let mut window = ProgressWindow::new(PATIENCE, 1_000);
        assert_eq!(window.deadline_ms(PATIENCE, 1_100, 1 << 20), 31_100, "a window from now");
        // A byte earns four milliseconds.
        assert_eq!(window.deadline_ms(PATIENCE, 30_000, (1 << 20) + 1), 31_104);
        assert_eq!(window.deadline_ms(PATIENCE, 31_000, (1 << 20) + 2), 31_109, "and a sixth more");
    }

    #[test]
    fn the_least_rate_lasts_for_ever() {
        let mut window = ProgressWindow::new(PATIENCE, 0);
        for second in 1..200_000 {
            let deadline = window.deadline_ms(PATIENCE, second * 1_000, second * 240);
            assert_eq!(deadline, second * 1_000 + 30_000);
        }
    }

    #[test]
    fn a_little_less_than_the_least_rate_ends() {
        let mut window = ProgressWindow::new(PATIENCE, 0);
        let is_late = |second: &u64| {
            window.deadline_ms(PATIENCE, second * 1_000, second * 200) < (second + 1) * 1_000
        };
        // It loses a sixth of a second each second.
        assert_eq!((1..1_000).find(is_late), Some(175));
    }

    #[test]
    fn parts_of_milliseconds_add_up() {
        let patience = ProgressTimeout { silence_ms: 1_000, rate_min: 3_000 };
        let mut window = ProgressWindow::new(patience, 0);
        assert_eq!(window.deadline_ms(patience, 500, 1), 1_000);
        assert_eq!(window.deadline_ms(patience, 500, 2), 1_000);
        assert_eq!(window.deadline_ms(patience, 500, 3), 1_001);
    }

    #[test]
    fn a_server_that_does_not_receive_blames_no_client() {
        let mut window = ProgressWindow::new(PATIENCE, 0);
        assert_eq!(window.deadline_ms(PATIENCE, 10, 100), 30_010);
        window.stop(10);
        window.stop(5_000);
        window.resume(60_010);
        assert_eq!(window.deadline_ms(PATIENCE, 60_010, 100), 90_010);
        window.resume(70_000);
        assert_eq!(window.deadline_ms(PATIENCE, 70_000, 100), 90_010, "it was not stopped");
    }

    #[test]
    fn without_a_rate_only_silence_counts() {
        let patience = ProgressTimeout { rate_min: 0, ..PATIENCE };
        let mut window = ProgressWindow::new(patience, 0);
        assert_eq!(window.deadline_ms(patience, 500_000, 1), 530_000);
    }
}
