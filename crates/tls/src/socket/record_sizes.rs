//! How much content a record has. A record must be whole to be opened: a long one holds back its
//! first bytes until its last packet is there.

use crate::records::CONTENT_BYTES_MAX;

/// Content of a record that fits into one packet: its first byte can be used without the next
/// packet.
const PACKET_CONTENT_BYTES: usize = 1_369;
/// How much content is in such records after a pause, while the kernel's window is small.
const PACKETS_BYTES: u32 = 64 << 10;
/// How long a pause is.
const PAUSE_MS: u32 = 1_000;

/// Chooses how much content a record has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordSizes {
    /// When it last sent, in milliseconds; it wraps after 49 days.
    sent_ms: u32,
    /// Content since the last pause, up to [`PACKETS_BYTES`].
    sent_bytes: u32,
}

impl RecordSizes {
    /// Returns how much content each record of the next bytes has.
    pub(super) fn next(&mut self, now_ms: u64, bytes: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "differences are what counts")]
        let now_ms = now_ms as u32;
        if now_ms.wrapping_sub(self.sent_ms) >= PAUSE_MS {
            self.sent_bytes = 0;
        }
        self.sent_ms = now_ms;
        let is_small = self.sent_bytes < PACKETS_BYTES;
        let bytes_added = u32::try_from(bytes).unwrap_or(PACKETS_BYTES);
        self.sent_bytes = self.sent_bytes.saturating_add(bytes_added).min(PACKETS_BYTES);
        // What fits into few packets gains nothing from more records.
        if is_small && bytes > CONTENT_BYTES_MAX { PACKET_CONTENT_BYTES } else { CONTENT_BYTES_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_a_packet_each_after_a_pause_and_long_in_bulk() {
        let mut sizes = RecordSizes::default();
        let now_ms = 10_000;
        assert_eq!(sizes.next(now_ms, 1_000_000), PACKET_CONTENT_BYTES);
        assert_eq!(sizes.next(now_ms, 900_000), CONTENT_BYTES_MAX);
        assert_eq!(sizes.next(now_ms + u64::from(PAUSE_MS), 900_000), PACKET_CONTENT_BYTES);
        // One record is enough for what is short.
        assert_eq!(sizes.next(now_ms + 2 * u64::from(PAUSE_MS), 4_000), CONTENT_BYTES_MAX);
    }
}
