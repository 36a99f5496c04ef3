//! Encoders of content at hand, kept for the next body with the memory that they are charged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gustnado_compress::{Level, WholeEncoder};
use gustnado_http::content_coding::ContentCoding;
use gustnado_tasks::Charge;

/// The most encoders that are kept for further jobs.
const IDLE_MAX: usize = 4;

/// Encoders that no job has at the moment, for all routes of a server. Jobs take the one that was
/// used last: what it holds is in the CPU's caches.
#[derive(Clone, Default)]
pub struct IdleEncoders(Arc<Mutex<Vec<KeptEncoder>>>);

impl IdleEncoders {
    fn list(&self) -> MutexGuard<'_, Vec<KeptEncoder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compresses a body; `None` if no memory is free. `charge` is for what the encoder holds.
    pub(crate) fn encode(
        &self,
        (coding, level): (ContentCoding, Level),
        bytes: &[u8],
        charge: Charge,
    ) -> Option<Bytes> {
        let is_one = |kept: &KeptEncoder| (kept.coding, kept.level) == (coding, level);
        let known = {
            let mut list = self.list();
            list.iter().rposition(is_one).map(|at| list.remove(at))
        };
        let mut encoder = known.or_else(|| KeptEncoder::new((coding, level), charge))?;
        let out = encoder.encode(bytes)?;
        if !encoder.takes_too_much() {
            let mut list = self.list();
            if list.len() == IDLE_MAX {
                // The one that was not used for longest.
                list.remove(0);
            }
            list.push(encoder);
        }
        Some(out)
    }
}

/// An encoder of content at hand that is kept for the next body, and its charge.
pub(crate) struct KeptEncoder {
    encoder: WholeEncoder,
    coding: ContentCoding,
    pub(crate) level: Level,
    charge: Charge,
}

impl KeptEncoder {
    pub(crate) fn new((coding, level): (ContentCoding, Level), charge: Charge) -> Option<Self> {
        let encoder = WholeEncoder::new(coding, level).ok()?;
        Some(Self { encoder, coding, level, charge })
    }

    pub(crate) fn encode(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let out = self.encoder.encode(bytes).map(Bytes::copy_from_slice).ok();
        self.charge.set(self.encoder.heap_bytes());
        out
    }

    /// Returns whether it should be dropped.
    pub(crate) fn takes_too_much(&self) -> bool {
        self.charge.is_over_budget()
    }
}

#[cfg(test)]
mod tests {
    use gustnado_tasks::MemoryKind;

    use super::*;

    #[test]
    fn encoders_are_kept_within_bounds_and_the_last_one_is_taken() {
        let encoders = IdleEncoders::default();
        for level in [1, 2, 3, 4, 5, 6, 6, 6] {
            let level = Level { gzip: level, zstd: 3 };
            let charge = Charge::new(MemoryKind::Sends);
            let out = encoders.encode((ContentCoding::Gzip, level), b"text text text", charge);
            assert!(out.is_some());
        }
        let levels: Vec<u8> = encoders.list().iter().map(|kept| kept.level.gzip).collect();
        assert_eq!(levels, [3, 4, 5, 6]);
    }
}
