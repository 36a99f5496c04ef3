//! Session tickets (RFC 8446 §4.6.1, RFC 5077): sessions that clients keep, sealed by the server.
//!
//! One set of keys serves a process, and outlives its reloads: a renewed certificate ends no
//! session. A ticket is bound to the site that issued it, and to the certificates that this site
//! wants of its clients: no other site resumes it (CVE-2025-23419).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::crypto::digest::{SHA256, digest};
use crate::crypto::{TicketCipher, fill_random};
use crate::files::{UnreadableFile, read_file};

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Bytes of a ticket's beginning, which say the key.
const NAME_BYTES: usize = 8;
/// Random bytes and the tag, which a ticket has behind its name.
const MORE_BYTES: usize = 44;
/// How long a key of this process seals. It opens for as long again.
const PERIOD: Duration = Duration::from_hours(6);
/// How long clients keep a ticket: it can be opened for that long at least.
const LIFETIME_S: u32 = 6 * 60 * 60;
/// Keys of a file, at most.
const KEYS_MAX: usize = 16;

/// What tickets of a site are bound to.
pub(crate) type Binding = [u8; 32];

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TicketKeysError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// A line is no key.
    #[error(
        "{}, line {line}: expected a key of 64 hexadecimal digits, found {found} characters; \
         `openssl rand -hex 32` makes one",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// How long the line is: its text may be half of a secret.
        found: usize,
    },
    /// The file has no key, or too many.
    #[error(
        "{}: expected 1 to {KEYS_MAX} keys, a line each, found {found}; `openssl rand -hex \
         32` makes one",
        path.display()
    )]
    Count {
        /// The file.
        path: PathBuf,
        /// How many there are.
        found: usize,
    },
}

/// The keys of a process that tickets are sealed with.
pub struct TicketKeys(RwLock<Keys>);

struct Keys {
    /// The first one seals; all of them open.
    keys: Vec<TicketKey>,
    /// When the first one was made; `None` for keys of a file, which somebody else replaces.
    made: Option<Instant>,
}

struct TicketKey {
    name: [u8; NAME_BYTES],
    cipher: TicketCipher,
}

impl TicketKey {
    fn new(secret: &[u8; KEY_BYTES]) -> Self {
        let digest = digest(&SHA256, secret);
        let name = digest.as_ref()[..NAME_BYTES].try_into().expect("it is longer");
        Self { name, cipher: TicketCipher::new(secret) }
    }

    fn random() -> Option<Self> {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        fill_random(&mut *secret)?;
        Some(Self::new(&secret))
    }
}

impl TicketKeys {
    /// Makes a key for this process alone, which is replaced every six hours. `None`: the system
    /// gives no random bytes.
    pub fn random() -> Option<Self> {
        let keys = vec![TicketKey::random()?];
        Some(Self(RwLock::new(Keys { keys, made: Some(Instant::now()) })))
    }

    /// Reads the keys of a file: 64 hexadecimal digits in each line. The first one seals tickets,
    /// and all of them open some. Lines that begin with `#` are left out.
    ///
    /// # Errors
    /// [`TicketKeysError`].
    pub fn read(path: &Path) -> Result<Self, TicketKeysError> {
        let text = read_file(path)?;
        let text = str::from_utf8(&text).map_err(|error| UnreadableFile {
            path: path.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        })?;
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let secret = secret(line).ok_or_else(|| TicketKeysError::NoKey {
                path: path.to_owned(),
                line: at + 1,
                found: line.chars().count(),
            })?;
            keys.push(TicketKey::new(&secret));
        }
        if !(1..=KEYS_MAX).contains(&keys.len()) {
            return Err(TicketKeysError::Count { path: path.to_owned(), found: keys.len() });
        }
        Ok(Self(RwLock::new(Keys { keys, made: None })))
    }

    /// Takes over the keys of another set, as a reload does with those of a file.
    pub fn replace(&self, by: Self) {
        let by = by.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// Replaces a key of this process whose time is over.
    fn rotate(&self, now: Instant) {
        let is_due = |keys: &Keys| keys.made.is_some_and(|made| now.duration_since(made) >= PERIOD);
        if !is_due(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        if is_due(&keys)
            && let Some(next) = TicketKey::random()
        {
            keys.keys.insert(0, next);
            keys.keys.truncate(2);
            keys.made = Some(now);
        }
    }

    fn seal(&self, session: &[u8], binding: &Binding, now: Instant) -> Option<Vec<u8>> {
        self.rotate(now);
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.keys.first()?;
        let mut ticket = Vec::with_capacity(NAME_BYTES + session.len() + MORE_BYTES);
        ticket.extend_from_slice(&key.name);
        key.cipher.seal(session, binding, &mut ticket)?;
        Some(ticket)
    }

    fn open(&self, ticket: &[u8], binding: &Binding, now: Instant) -> Option<Vec<u8>> {
        self.rotate(now);
        let (name, sealed) = ticket.split_at_checked(NAME_BYTES)?;
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.keys.iter().find(|key| key.name == name)?;
        key.cipher.open(sealed, binding)
    }
}

/// Returns the bytes of hexadecimal digits.
fn secret(line: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if line.len() != 2 * KEY_BYTES || !line.is_ascii() {
        return None;
    }
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&line[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(secret)
}

// Never derived: a log must not hold a key.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").finish_non_exhaustive()
    }
}

/// Seals and opens the tickets of one site.
#[derive(Debug)]
pub(crate) struct SiteTickets {
    pub(crate) keys: Arc<TicketKeys>,
    pub(crate) binding: Binding,
}

impl ProducesTickets for SiteTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal(plain, &self.binding, Instant::now())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(cipher, &self.binding, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const A: Binding = [1; 32];
    const B: Binding = [2; 32];

    #[test]
    fn a_ticket_is_opened_by_its_own_site_alone() {
        let keys = TicketKeys::random().expect("random bytes");
        let now = Instant::now();
        let ticket = keys.seal(b"a session", &A, now).expect("a ticket");
        assert_eq!(keys.open(&ticket, &A, now).as_deref(), Some(&b"a session"[..]));
        assert_eq!(keys.open(&ticket, &B, now), None);
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.open(&changed, &A, now), None, "byte {at}");
            assert_eq!(keys.open(&ticket[..at], &A, now), None, "{at} bytes");
        }
    }

    #[test]
    fn a_key_opens_for_a_period_after_its_own() {
        let keys = TicketKeys::random().expect("random bytes");
        let began = Instant::now();
        let ticket = keys.seal(b"x", &A, began).expect("a ticket");
        let later = began + PERIOD + Duration::from_secs(1);
        assert!(keys.open(&ticket, &A, later).is_some());
        let second = keys.seal(b"y", &A, later).expect("a ticket");
        assert_ne!(ticket[..NAME_BYTES], second[..NAME_BYTES]);
        assert!(keys.open(&ticket, &A, later).is_some());
        let last = later + PERIOD + Duration::from_secs(1);
        assert_eq!(keys.open(&ticket, &A, last), None);
        assert!(keys.open(&second, &A, last).is_some());
    }

    #[test]
    fn machines_with_the_same_file_open_each_others_tickets() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("keys");
        let (first, second) = ("ab".repeat(32), "12".repeat(32));
        fs::write(&path, format!("# new\n{first}\n\n{second}\n")).expect("a file");
        let one = TicketKeys::read(&path).expect("keys");
        fs::write(&path, format!("{second}\n")).expect("a file");
        let other = TicketKeys::read(&path).expect("keys");
        let now = Instant::now();
        let ticket = other.seal(b"x", &A, now).expect("a ticket");
        assert!(one.open(&ticket, &A, now).is_some());
        let ticket = one.seal(b"x", &A, now).expect("a ticket");
        assert_eq!(other.open(&ticket, &A, now), None);
        other.replace(one);
        assert!(other.open(&ticket, &A, now).is_some());
    }

    #[test]
    fn files_that_hold_no_keys_are_refused_without_their_text() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("keys");
        let many = format!("{}\n", "ab".repeat(32)).repeat(KEYS_MAX + 1);
        for text in ["", "# none\n", "abcd", &"xy".repeat(32), &"é".repeat(32), &many] {
            fs::write(&path, text).expect("a file");
            let error = TicketKeys::read(&path).expect_err(text).to_string();
            assert!(error.contains("openssl rand -hex 32"), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        assert!(TicketKeys::read(&folder.path().join("none")).is_err());
    }
}
