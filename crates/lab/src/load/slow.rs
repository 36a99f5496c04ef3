//! Clients that are slow on purpose: how much they send or read, and how long they then wait.

use std::time::Duration;

use gustnado_tasks::{Connection, SendBuf};

/// Portions per second, where there are bytes enough.
const PORTIONS_PER_S: u64 = 10;

/// The rest of a request that leaves in portions.
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

    /// Whether a part of a request has left, and a part has not.
    pub(super) fn has_begun(&self) -> bool {
        self.at > 0 && self.at < self.bytes.len()
    }

    /// The next portion, if anything is left.
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

    /// How long to wait after the last portion, if another one follows.
    pub(super) fn pause(&self) -> Option<Duration> {
        (self.at < self.bytes.len()).then(|| pause_after(self.last, self.rate))
    }
}

/// How long to wait after so many bytes.
pub(super) fn pause_after(bytes: usize, rate: u64) -> Duration {
    Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / rate)
}

/// How many bytes the kernel may take for a slow reader: a tenth of a second's worth of them.
pub(super) fn recv_bytes(rate: u64) -> usize {
    usize::try_from(rate / PORTIONS_PER_S).unwrap_or(usize::MAX).clamp(2048, 1 << 20)
}
