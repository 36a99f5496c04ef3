//! What records hold besides content: alerts, and what may come after the handshake.

use super::{
    CLOSE_NOTIFY, EMPTY_IN_A_ROW_MAX, HANDSHAKE, KEY_UPDATE, RecordError, Records, TlsVersion,
    WARNING,
};

const USER_CANCELED: u8 = 90;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE_BYTES: usize = 5;

/// Warnings of TLS 1.2 that are let pass.
const WARNINGS_MAX: u8 = 4;
/// How far apart key updates of the peer have to be: each costs as much as a few kilobytes.
const UPDATE_EVERY_MS: u64 = 1_000;

impl Records {
    /// Reads an alert. Returns whether it is the peer's orderly end.
    pub(super) fn read_alert(&mut self, content: &[u8]) -> Result<bool, RecordError> {
        match *content {
            [_, CLOSE_NOTIFY] => Ok(true),
            [level, alert] if alert == USER_CANCELED || self.is_warning(level) => {
                self.warnings += 1;
                if self.warnings > WARNINGS_MAX {
                    return Err(RecordError::TooMany("warnings"));
                }
                Ok(false)
            }
            [_, alert] => Err(RecordError::Alert(alert)),
            _ => Err(RecordError::Malformed("alert")),
        }
    }

    /// TLS 1.3 has no warnings: every other alert is the end (RFC 8446 §6.2).
    fn is_warning(&self, level: u8) -> bool {
        self.version == TlsVersion::V12 && level == WARNING
    }

    /// Reads handshake messages: from a client only a key update may come now, from a server
    /// tickets too. (TLS 1.2 would begin another handshake with one, which no end has to take.)
    pub(super) fn read_handshake(
        &mut self,
        mut content: &[u8],
        now_ms: u64,
    ) -> Result<(), RecordError> {
        if self.version == TlsVersion::V12 {
            return Err(RecordError::Unexpected { kind: HANDSHAKE });
        }
        // A ticket that comes this late is not kept.
        while self.is_client && content.first() == Some(&NEW_SESSION_TICKET) {
            let [_, high, middle, low, ref message @ ..] = *content else {
                return Err(RecordError::Malformed("ticket"));
            };
            let bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
            content = message.get(bytes..).ok_or(RecordError::Malformed("ticket"))?;
            self.empty_in_a_row += 1;
            if self.empty_in_a_row > EMPTY_IN_A_ROW_MAX {
                return Err(RecordError::TooMany("tickets"));
            }
            if content.is_empty() {
                return Ok(());
            }
        }
        self.read_key_update(content, now_ms)
    }

    fn read_key_update(&mut self, content: &[u8], now_ms: u64) -> Result<(), RecordError> {
        if content.first() != Some(&KEY_UPDATE) {
            return Err(RecordError::Unexpected { kind: HANDSHAKE });
        }
        // Nothing may follow it under the old key, so it is alone in its record.
        let wants_one = match *content {
            [KEY_UPDATE, 0, 0, 1, wants_one @ (0 | 1)] => wants_one == 1,
            _ => return Err(RecordError::Malformed("key update")),
        };
        debug_assert_eq!(content.len(), KEY_UPDATE_BYTES);
        let is_early = |last: u64| now_ms.saturating_sub(last) < UPDATE_EVERY_MS;
        if self.updated_ms.is_some_and(is_early) {
            return Err(RecordError::TooMany("key updates"));
        }
        self.updated_ms = Some(now_ms);
        self.read.update();
        self.owes_update |= wants_one;
        Ok(())
    }
}
