//! What records hold besides content: alerts, and what may come after the handshake.

use super::{
    ALERT, CLOSE_NOTIFY, EMPTY_IN_A_ROW_MAX, HANDSHAKE, KEY_UPDATE, RecordError, Records,
    TlsVersion, WARNING,
};

const USER_CANCELED: u8 = 90;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE_BYTES: usize = 5;
/// Bytes of a ticket that comes in several records.
const TICKET_BYTES_MAX: usize = 32 << 10;

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
            // RFC 8446 §5.1: it is whole, and alone in its record.
            _ => Err(RecordError::Unexpected { kind: ALERT }),
        }
    }

    /// TLS 1.3 has no warnings: every other alert is the end (RFC 8446 §6.2).
    fn is_warning(&self, level: u8) -> bool {
        self.version == TlsVersion::V12 && level == WARNING
    }

    /// Reads handshake messages: from a client only a key update may come now, from a server
    /// tickets too. (TLS 1.2 would begin another handshake with one, which no end has to take.)
    pub(super) fn read_handshake(&mut self, record: &[u8], now_ms: u64) -> Result<(), RecordError> {
        if self.version == TlsVersion::V12 {
            return Err(RecordError::Unexpected { kind: HANDSHAKE });
        }
        let mut joined = self.fragment.take().map_or(Vec::new(), <[u8]>::into_vec);
        joined.extend_from_slice(record);
        let mut content = joined.as_slice();
        while let Some(bytes) = message_bytes(content) {
            let Some((message, rest)) = content.split_at_checked(bytes) else { break };
            self.read_message(message, rest, now_ms)?;
            content = rest;
        }
        let is_known = |kind: &u8| match *kind {
            KEY_UPDATE => true,
            NEW_SESSION_TICKET => self.is_client,
            _ => false,
        };
        let bytes_max = if self.is_client { TICKET_BYTES_MAX } else { KEY_UPDATE_BYTES };
        if content.first().is_some_and(|kind| !is_known(kind)) || content.len() > bytes_max {
            return Err(RecordError::Unexpected { kind: HANDSHAKE });
        }
        if !content.is_empty() {
            // The rest of it has to come next (RFC 8446 §5.1).
            self.fragment = Some(content.into());
        }
        Ok(())
    }

    /// Reads a whole message.
    ///
    /// - `rest`: what its record has behind it.
    fn read_message(
        &mut self,
        message: &[u8],
        rest: &[u8],
        now_ms: u64,
    ) -> Result<(), RecordError> {
        match message {
            // A ticket that comes this late is not kept.
            [NEW_SESSION_TICKET, ..] if self.is_client => {
                self.empty_in_a_row += 1;
                if self.empty_in_a_row > EMPTY_IN_A_ROW_MAX {
                    return Err(RecordError::TooMany("tickets"));
                }
                Ok(())
            }
            // Nothing may follow it under the old key.
            [KEY_UPDATE, ..] if rest.is_empty() => self.read_key_update(message, now_ms),
            _ => Err(RecordError::Unexpected { kind: HANDSHAKE }),
        }
    }

    fn read_key_update(&mut self, message: &[u8], now_ms: u64) -> Result<(), RecordError> {
        let wants_one = match *message {
            [_, 0, 0, 1, wants_one @ (0 | 1)] => wants_one == 1,
            [_, 0, 0, 1, _] => return Err(RecordError::Illegal("key update")),
            _ => return Err(RecordError::Malformed("key update")),
        };
        debug_assert_eq!(message.len(), KEY_UPDATE_BYTES);
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

/// Returns how many bytes the message that begins here has, if its head is whole.
fn message_bytes(content: &[u8]) -> Option<usize> {
    let [_, high, middle, low, ..] = *content else { return None };
    Some(4 + u32::from_be_bytes([0, high, middle, low]) as usize)
}
