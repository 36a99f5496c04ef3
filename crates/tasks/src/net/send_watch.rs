//! Telling a peer that takes bytes slowly from one that takes none.
//!
//! The kernel takes megabytes at once and says when a third of them has left: minutes may pass
//! between two such moments with a peer that reads all the time. So while a send is blocked, the
//! kernel's queue is looked at now and then: what has left it was taken by the peer.

use gustnado_reactor::Unsent;

use crate::net::progress_timeout::ProgressTimeout;

/// Progress of one send.
#[derive(Debug)]
pub struct SendWatch {
    began_ms: u64,
    /// When the peer was last seen to have taken bytes.
    moved_ms: u64,
    /// What was left at the last look; 0 before there was one.
    left: u64,
    /// What was left at the first look. That may be more than is to be sent: the kernel may still
    /// hold megabytes of the sends before this one.
    left_at_first: u64,
}

impl SendWatch {
    /// - `began_ms`: when the send began, in milliseconds of [`crate::Now::mono_ms`].
    pub fn new(began_ms: u64) -> Self {
        Self { began_ms, moved_ms: began_ms, left: 0, left_at_first: 0 }
    }

    /// Returns when the send began, in milliseconds.
    pub(crate) fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// Bytes have moved.
    pub(crate) fn note_progress(&mut self, now_ms: u64) {
        (self.moved_ms, self.left) = (now_ms, 0);
    }

    /// Takes a look. Returns when to take the next one; `None` if the peer has had its time.
    pub(crate) fn look(
        &mut self,
        patience: ProgressTimeout,
        now_ms: u64,
        unsent: Unsent,
    ) -> Option<u64> {
        let left = unsent.here + unsent.queued;
        if left < self.left {
            self.moved_ms = now_ms;
        }
        self.left = left;
        // It never grows: what the kernel takes is no longer here.
        self.left_at_first = self.left_at_first.max(left);
        // What has left since the first look was taken, whichever send it belonged to.
        let taken = unsent.total.max(self.left_at_first) - left;
        let until_ms = patience.deadline_ms(self.began_ms, self.moved_ms, taken);
        (until_ms > now_ms).then(|| until_ms.min(now_ms + patience.look_ms()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const PATIENCE: ProgressTimeout = ProgressTimeout { silence_ms: 30_000, rate_min: 240 };

    fn left(ctx: u64, queued: u64) -> Unsent {
        Unsent { here: ctx, queued, total: 1_000_000 }
    }

    #[test]
    fn a_peer_that_takes_nothing_is_given_its_silence_and_no_more() {
        let mut watch = SendWatch::new(0);
        let mut at_ms = PATIENCE.first_look_ms();
        while let Some(next_ms) = watch.look(PATIENCE, at_ms, left(500_000, 500_000)) {
            assert!(next_ms > at_ms && next_ms <= 30_000);
            at_ms = next_ms;
        }
        assert_eq!(at_ms, 30_000);
    }

    #[test]
    fn what_has_left_the_queue_is_progress_though_the_buffer_stands_still() {
        let mut watch = SendWatch::new(0);
        let mut queued = 900_000;
        for at_ms in (23_000..200_000).step_by(1_000) {
            queued -= 1_000;
            assert!(watch.look(PATIENCE, at_ms, left(100_000, queued)).is_some(), "{at_ms}");
        }
        // It takes no more: a look each second notices within a second.
        let mut at_ms = 200_000;
        while let Some(next_ms) = watch.look(PATIENCE, at_ms, left(100_000, queued)) {
            at_ms = next_ms;
        }
        assert!((229_000..=230_000).contains(&at_ms), "{at_ms}");
    }

    #[test]
    fn what_the_kernel_still_held_of_earlier_sends_counts_once_it_has_left() {
        let mut watch = SendWatch::new(0);
        let mut queued = 2_000_000;
        for at_ms in (20_000..200_000).step_by(1_000) {
            queued -= 1_000;
            assert!(watch.look(PATIENCE, at_ms, left(900_000, queued)).is_some(), "{at_ms}");
        }
    }

    #[test]
    fn a_peer_slower_than_the_minimum_is_given_what_it_has_earned() {
        let mut watch = SendWatch::new(0);
        let mut at_ms = PATIENCE.first_look_ms();
        // 24 bytes each second are a tenth of the minimum: it loses 0.9 seconds in each.
        while let Some(next_ms) =
            watch.look(PATIENCE, at_ms, left(0, 1_000_000 - 24 * at_ms / 1_000))
        {
            at_ms = next_ms;
        }
        assert!((33_000..=34_000).contains(&at_ms), "{at_ms}");
    }
}
