//! The records of an established connection (RFC 8446 §5, RFC 5246 §6.2). Without I/O: bytes and
//! the time go in, content comes out, in buffers that the caller has anyway.
//!
//! What lives here: framing, the two directions' keys, alerts, key updates. What does not: the
//! handshake, which rustls does, and the ciphers, which are the library's of `crypto.rs`.

mod keys;
mod messages;

use std::fmt;

use zeroize::Zeroize;

use crate::crypto::TAG_BYTES;
use keys::{AwakeKeys, DirectionKeys};

pub(crate) use keys::{Cipher, KeyExhausted};

/// Bytes of a record's head: type, version, length.
pub(crate) const HEAD_BYTES: usize = 5;
/// Most bytes of content in a record (RFC 8446 §5.1).
pub(crate) const CONTENT_BYTES_MAX: usize = 1 << 14;
/// Most bytes behind a record's head (RFC 8446 §5.2). TLS 1.2 would allow 1,792 more, for a
/// compression that nothing does.
pub(crate) const SEALED_BYTES_MAX: usize = CONTENT_BYTES_MAX + 256;
/// Bytes that a record has more than its content, at most.
pub(crate) const OVERHEAD_BYTES_MAX: usize = HEAD_BYTES + EXPLICIT_BYTES + TAG_BYTES + 1;
const EXPLICIT_BYTES: usize = 8;

/// Records in a row that hold nothing. More of them are an attack on the CPU.
const EMPTY_IN_A_ROW_MAX: u8 = 32;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// `legacy_record_version`, which is that of TLS 1.2 too.
const VERSION: [u8; 2] = [3, 3];

const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;
const FATAL: u8 = 2;

const KEY_UPDATE: u8 = 24;

/// The version that a handshake has agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// RFC 5246.
    V12,
    /// RFC 8446.
    #[default]
    V13,
}

impl TlsVersion {
    /// Returns its name, as OpenSSL and Apache write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V12 => "TLSv1.2",
            Self::V13 => "TLSv1.3",
        }
    }
}

/// Why a connection's records cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A record was changed on its way, or sealed with another key.
    #[error("a record's tag does not fit its bytes")]
    BadMac,
    /// A record is longer than any may be.
    #[error("a record of {bytes} bytes; at most {SEALED_BYTES_MAX} are allowed")]
    TooLong {
        /// As its head says.
        bytes: usize,
    },
    /// A record of a kind that may not come now.
    #[error("a record of type {kind} after the handshake")]
    Unexpected {
        /// Its content type.
        kind: u8,
    },
    /// What a record holds has a value that is not allowed.
    #[error("a value that is not allowed in a {0}")]
    Illegal(&'static str),
    /// What a record holds cannot be read.
    #[error("a malformed {0}")]
    Malformed(&'static str),
    /// The peer has ended the connection with an alert.
    #[error("the peer sent the alert {0}")]
    Alert(u8),
    /// The peer changes its keys all the time, or sends nothing but empty records.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// A key has sealed or opened as many records as it may.
    #[error("a key of TLS 1.2 is used up")]
    KeyExhausted,
}

impl RecordError {
    /// Returns the alert that tells the peer, if one does (RFC 8446 §6.2).
    pub fn alert(self) -> Option<u8> {
        match self {
            Self::BadMac => Some(20),
            Self::TooLong { .. } => Some(22),
            Self::Unexpected { .. } | Self::TooMany(_) => Some(10),
            Self::Illegal(_) => Some(47),
            Self::Malformed(_) => Some(50),
            Self::KeyExhausted => Some(80),
            Self::Alert(_) => None,
        }
    }
}

impl From<KeyExhausted> for RecordError {
    fn from(_: KeyExhausted) -> Self {
        Self::KeyExhausted
    }
}

/// What was found in received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Bytes of whole records, which were taken.
    pub taken: usize,
    /// Bytes of content, with which the room begins.
    pub content: usize,
    /// The peer has closed its direction, by `close_notify`: nothing follows.
    pub is_end: bool,
}

/// The secrets of both directions, as a handshake leaves them.
pub(crate) struct Secrets {
    /// The agreed cipher.
    pub cipher: Cipher,
    /// What the peer seals with.
    pub read: DirectionSecret,
    /// What this end seals with.
    pub write: DirectionSecret,
    /// Whether this end is the client.
    pub is_client: bool,
}

/// The secret of one direction.
pub(crate) enum DirectionSecret {
    /// The traffic secret of TLS 1.3, the number of the next record, and what was derived from the
    /// secret, where that is known.
    V13(Vec<u8>, u64, Option<KeyAndIv>),
    /// Those of TLS 1.2, and the number of the next record.
    V12(KeyAndIv, u64),
}

/// What a cipher is set up with.
pub(crate) struct KeyAndIv {
    /// The key.
    pub key: Vec<u8>,
    /// What nonces come from.
    pub iv: [u8; 12],
}

/// An established connection's records.
#[derive(Debug)]
pub(crate) struct Records {
    version: TlsVersion,
    read: DirectionKeys,
    write: DirectionKeys,
    /// The peer wants this end to replace its key.
    owes_update: bool,
    /// The peer's last key update, in milliseconds.
    updated_ms: Option<u64>,
    empty_in_a_row: u8,
    warnings: u8,
    is_client: bool,
    /// The beginning of a handshake message whose rest is in the next record.
    fragment: Option<Box<[u8]>>,
}

impl Records {
    /// Takes what a handshake has agreed on. `None`: a secret has not the cipher's length.
    pub(crate) fn new(secrets: &Secrets) -> Option<Self> {
        let keys = |secret: &DirectionSecret| match secret {
            DirectionSecret::V13(secret, record, derived) => {
                let derived = derived.as_ref().map(|of| (&*of.key, &of.iv[..]));
                DirectionKeys::from_secret(secrets.cipher, secret, derived, *record)
            }
            DirectionSecret::V12(KeyAndIv { key, iv }, record) => {
                DirectionKeys::from_key(secrets.cipher, key, iv, *record)
            }
        };
        let version = match secrets.write {
            DirectionSecret::V13(..) => TlsVersion::V13,
            DirectionSecret::V12(..) => TlsVersion::V12,
        };
        Some(Self {
            version,
            read: keys(&secrets.read)?,
            write: keys(&secrets.write)?,
            owes_update: false,
            updated_ms: None,
            empty_in_a_row: 0,
            warnings: 0,
            is_client: secrets.is_client,
            fragment: None,
        })
    }

    /// Opens all whole records that `received` begins with, into `room`.
    ///
    /// Stops behind `close_notify`, and before a record that may not fit. What it has not taken is
    /// to come again, with more behind it.
    ///
    /// - `room`: at least as long as `received`, if everything is to be opened.
    /// - `now_ms`: bounds how often the peer may replace its key.
    ///
    /// # Errors
    /// [`RecordError`]; nothing of the connection can be used afterwards but its
    /// [alert](Self::alert).
    pub(crate) fn open(
        &mut self,
        received: &[u8],
        room: &mut [u8],
        now_ms: u64,
    ) -> Result<Opened, RecordError> {
        let mut opened = Opened::default();
        while !opened.is_end {
            let Some((kind, content)) = self.open_run(received, room, &mut opened)? else { break };
            match kind {
                ALERT => opened.is_end = self.read_alert(content)?,
                HANDSHAKE => self.read_handshake(content, now_ms)?,
                kind => return Err(RecordError::Unexpected { kind }),
            }
        }
        Ok(opened)
    }

    /// Opens records of content, for which the cipher is set up once. Returns the type and content
    /// of the first one that holds something else: it may change the key.
    fn open_run<'a>(
        &mut self,
        received: &[u8],
        room: &'a mut [u8],
        opened: &mut Opened,
    ) -> Result<Option<(u8, &'a [u8])>, RecordError> {
        let room_bytes = room.len();
        let whole =
            |opened: &Opened| whole_record(&received[opened.taken..], room_bytes - opened.content);
        let Some(mut bytes) = whole(opened)? else { return Ok(None) };
        let mut keys = self.read.wake();
        loop {
            let (record, at) = (&received[opened.taken..][..bytes], opened.content);
            let (kind, len) = open_record(self.version, &mut keys, record, &mut room[at..])?;
            opened.taken += bytes;
            if self.fragment.is_some() && kind != HANDSHAKE {
                return Err(RecordError::Unexpected { kind });
            }
            if kind != APPLICATION_DATA {
                return Ok(Some((kind, &room[at..at + len])));
            }
            self.empty_in_a_row = if len == 0 { self.empty_in_a_row + 1 } else { 0 };
            if self.empty_in_a_row > EMPTY_IN_A_ROW_MAX {
                return Err(RecordError::TooMany("empty records"));
            }
            opened.content += len;
            let Some(next) = whole(opened)? else { return Ok(None) };
            bytes = next;
        }
    }

    /// Seals content as records of at most `record_bytes` bytes of it, behind what `out` holds.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`], under TLS 1.2.
    pub(crate) fn seal(
        &mut self,
        content: &[u8],
        record_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        debug_assert!((1..=CONTENT_BYTES_MAX).contains(&record_bytes), "{record_bytes}");
        if self.owes_update || (self.version == TlsVersion::V13 && self.write.is_worn()) {
            self.update_write(out)?;
        }
        let records = content.len().div_ceil(record_bytes);
        out.reserve(content.len() + records * OVERHEAD_BYTES_MAX);
        let version = self.version;
        let mut keys = self.write.wake();
        for content in content.chunks(record_bytes) {
            seal_record(version, &mut keys, APPLICATION_DATA, content, out)?;
        }
        Ok(())
    }

    /// Seals `close_notify`, which is the last of this direction.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> Result<(), RecordError> {
        self.seal_alert([WARNING, CLOSE_NOTIFY], out)
    }

    /// Seals the alert of an error, where it has one.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub(crate) fn alert(
        &mut self,
        error: RecordError,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        error.alert().map_or(Ok(()), |alert| self.seal_alert([FATAL, alert], out))
    }

    fn seal_alert(&mut self, alert: [u8; 2], out: &mut Vec<u8>) -> Result<(), RecordError> {
        seal_record(self.version, &mut self.write.wake(), ALERT, &alert, out)
    }

    /// Replaces this end's key, and says so under the old one (RFC 8446 §4.6.3).
    fn update_write(&mut self, out: &mut Vec<u8>) -> Result<(), RecordError> {
        let message = [KEY_UPDATE, 0, 0, 1, 0];
        seal_record(self.version, &mut self.write.wake(), HANDSHAKE, &message, out)?;
        self.write.update();
        self.owes_update = false;
        Ok(())
    }
}

/// Seals the alert of an error, where it has one, with a key that nothing else is sealed with
/// afterwards.
///
/// - `key`: the key, its IV, and the number of the next record.
pub(crate) fn seal_alert_by_key(
    (version, cipher): (TlsVersion, Cipher),
    (key, iv, record): (&[u8], &[u8], u64),
    error: RecordError,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut keys = DirectionKeys::from_key(cipher, key, iv, record)?;
    seal_record(version, &mut keys.wake(), ALERT, &[FATAL, error.alert()?], out).ok()
}

/// Returns how many bytes the record that begins here has, or `None` if its head is not whole.
///
/// # Errors
/// [`RecordError::TooLong`], [`RecordError::Unexpected`].
pub(crate) fn record_bytes(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let [kind, _, _, high, low, ..] = *bytes else { return Ok(None) };
    // All of TLS 1.3 looks like application data; TLS 1.2 shows alerts and handshakes.
    if !(ALERT..=APPLICATION_DATA).contains(&kind) {
        return Err(RecordError::Unexpected { kind });
    }
    let sealed = usize::from(u16::from_be_bytes([high, low]));
    if sealed > SEALED_BYTES_MAX {
        return Err(RecordError::TooLong { bytes: sealed });
    }
    Ok(Some(HEAD_BYTES + sealed))
}

/// Returns how many bytes the first record has, if it is whole and fits into `free` bytes.
///
/// # Errors
/// As [`record_bytes`].
pub(crate) fn whole_record(bytes: &[u8], free: usize) -> Result<Option<usize>, RecordError> {
    Ok(record_bytes(bytes)?.filter(|record| bytes.len().min(free) >= *record))
}

/// Opens one whole record into `room`. Returns its type and the length of its content.
fn open_record(
    version: TlsVersion,
    keys: &mut AwakeKeys<'_>,
    record: &[u8],
    room: &mut [u8],
) -> Result<(u8, usize), RecordError> {
    let (head, sealed) = record.split_at(HEAD_BYTES);
    let number = keys.next()?;
    match version {
        TlsVersion::V13 => {
            if head[0] != APPLICATION_DATA {
                return Err(RecordError::Unexpected { kind: head[0] });
            }
            let len = keys.open(number, None, head, sealed, room).ok_or(RecordError::BadMac)?;
            if len > CONTENT_BYTES_MAX + 1 {
                return Err(RecordError::TooLong { bytes: len });
            }
            // The content's type is its last byte that is not padding.
            let kind_at = room[..len].iter().rposition(|byte| *byte != 0);
            let kind_at = kind_at.ok_or(RecordError::Unexpected { kind: 0 })?;
            within_limit(kind_at)?;
            let kind = room[kind_at];
            // Only application data may be empty (RFC 8446 §5.4).
            if kind_at == 0 && kind != APPLICATION_DATA {
                return Err(RecordError::Unexpected { kind });
            }
            Ok((kind, kind_at))
        }
        TlsVersion::V12 => {
            let explicit_bytes = if keys.has_explicit_nonce() { EXPLICIT_BYTES } else { 0 };
            if sealed.len() < explicit_bytes + TAG_BYTES {
                return Err(RecordError::BadMac);
            }
            let (explicit, sealed) = sealed.split_at(explicit_bytes);
            let explicit: Option<[u8; EXPLICIT_BYTES]> = explicit.try_into().ok();
            let len = sealed.len() - TAG_BYTES;
            within_limit(len)?;
            let authenticated = authenticated_v12(number.to_be_bytes(), head[0], len);
            let len = keys.open(number, explicit, &authenticated, sealed, room);
            Ok((head[0], len.ok_or(RecordError::BadMac)?))
        }
    }
}

fn within_limit(content: usize) -> Result<(), RecordError> {
    if content > CONTENT_BYTES_MAX {
        return Err(RecordError::TooLong { bytes: content });
    }
    Ok(())
}

/// Seals one record behind what `out` holds.
fn seal_record(
    version: TlsVersion,
    keys: &mut AwakeKeys<'_>,
    kind: u8,
    content: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RecordError> {
    let number = keys.next()?;
    match version {
        TlsVersion::V13 => {
            let head = record_head(APPLICATION_DATA, content.len() + 1 + TAG_BYTES);
            out.extend_from_slice(&head);
            keys.seal(number, &head, (content, &[kind]), out);
        }
        TlsVersion::V12 => {
            let authenticated = authenticated_v12(number.to_be_bytes(), kind, content.len());
            if keys.has_explicit_nonce() {
                let sealed = EXPLICIT_BYTES + content.len() + TAG_BYTES;
                out.extend_from_slice(&record_head(kind, sealed));
                out.extend_from_slice(&keys.explicit_nonce(&number));
            } else {
                out.extend_from_slice(&record_head(kind, content.len() + TAG_BYTES));
            }
            keys.seal(number, &authenticated, (content, &[]), out);
        }
    }
    Ok(())
}

fn record_head(kind: u8, sealed: usize) -> [u8; HEAD_BYTES] {
    let [high, low] = u16::try_from(sealed).expect("records are short").to_be_bytes();
    [kind, VERSION[0], VERSION[1], high, low]
}

/// What a record of TLS 1.2 authenticates in addition to its content (RFC 5246 §6.2.3.3).
fn authenticated_v12(number: [u8; 8], kind: u8, content: usize) -> [u8; 13] {
    let [high, low] = u16::try_from(content).expect("records are short").to_be_bytes();
    let mut authenticated = [0; 13];
    authenticated[..8].copy_from_slice(&number);
    authenticated[8..].copy_from_slice(&[kind, VERSION[0], VERSION[1], high, low]);
    authenticated
}

// Secrets are in no log.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

impl Drop for DirectionSecret {
    fn drop(&mut self) {
        if let Self::V13(secret, ..) = self {
            secret.zeroize();
        }
    }
}

impl Drop for KeyAndIv {
    fn drop(&mut self) {
        self.key.zeroize();
        self.iv.zeroize();
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
