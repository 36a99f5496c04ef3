//! Slow clients: how much they send or receive, and how long they then pause.

use std::time::Duration;

use gustnado_tasks::{Connection, SendBuf};

/// Portions per second, if there are bytes enough.
const PORTIONS_PER_S: u64 = 10;

/// The rest of a request that is sent in portions.
#[derive(Debug, Default)]
pub(super) struct UnsentRequest {
    bytes: Vec<u8>,
    at: usize,
    rate: u64,
    last: usize,
}

impl UnsentRequest {
    pub(super) fn begin(&mut self, bytes: &[u8], rate: u64) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
        self.rate = rate;
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }

    /// Returns whether only a part of a request was sent.
    pub(super) fn has_begun(&self) -> bool {
        self.at > 0 && self.at < self.bytes.len()
    }

    /// Returns the next portion, if anything is left.
    pub(super) fn portion(&mut self) -> Option<Box<SendBuf>> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let most = usize::try_from((self.rate / PORTIONS_PER_S).max(1)).unwrap_or(usize::MAX);
        self.last = rest.len().min(most);
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(&rest[..self.last]);
        self.at += self.last;
        Some(out)
    }

    /// Returns the pause after the last portion, if another one follows.
    pub(super) fn pause(&self) -> Option<Duration> {
        (self.at < self.bytes.len()).then(|| pause_after(self.last, self.rate))
    }
}

/// Returns the pause after this many bytes.
pub(super) fn pause_after(bytes: usize, rate: u64) -> Duration {
    Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / rate)
}

/// Size of a slow reader's receive buffer: the bytes of a tenth of a second.
pub(super) fn recv_bytes(rate: u64) -> usize {
    usize::try_from(rate / PORTIONS_PER_S).unwrap_or(usize::MAX).clamp(2048, 1 << 20)
}
