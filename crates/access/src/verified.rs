//! Credentials that were right a short while ago: a page of a hundred files costs one check.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::AccessError;
use crate::hash::fill_random;

/// How long they are kept.
const KEPT_MS: u64 = 60_000;
/// The most of them.
const KEPT_MAX: usize = 4096;

pub(crate) type Tag = [u8; 16];

/// Tags of credentials, under a key of this process: neither users nor passwords are kept.
pub(crate) struct Verified {
    key: [u8; 32],
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tags: HashSet<Tag>,
    /// In the order of their ends.
    order: VecDeque<(u64, Tag)>,
}

impl Verified {
    pub(crate) fn new() -> Result<Self, AccessError> {
        let mut key = [0; 32];
        fill_random(&mut key)?;
        Ok(Self { key, kept: Mutex::default() })
    }

    /// Returns whether credentials were right within the last minute.
    pub(crate) fn has(&self, credentials: &[u8], now_ms: u64) -> bool {
        let tag = self.tag(credentials);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(now_ms, KEPT_MAX);
        kept.tags.contains(&tag)
    }

    /// Keeps credentials that were right.
    pub(crate) fn add(&self, credentials: &[u8], now_ms: u64) {
        let tag = self.tag(credentials);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(now_ms, KEPT_MAX - 1);
        if kept.tags.insert(tag) {
            kept.order.push_back((now_ms.saturating_add(KEPT_MS), tag));
        }
    }

    /// Returns the tag of credentials.
    pub(crate) fn tag(&self, credentials: &[u8]) -> Tag {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        mac.update(credentials);
        let whole = mac.finalize().into_bytes();
        *whole.first_chunk().expect("it has 32 bytes")
    }
}

impl Kept {
    /// Forgets those whose time is over, and the oldest of more than `most`.
    fn forget(&mut self, now_ms: u64, most: usize) {
        while let Some((end_ms, tag)) = self.order.front().copied()
            && (end_ms <= now_ms || self.order.len() > most)
        {
            self.order.pop_front();
            self.tags.remove(&tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_is_known_for_a_minute() {
        let verified = Verified::new().expect("random bytes");
        verified.add(b"ann:x", 1_000);
        assert!(verified.has(b"ann:x", 60_999) && !verified.has(b"ann:y", 1_000));
        assert!(!verified.has(b"ann:x", 61_000));
        let other = Verified::new().expect("random bytes");
        assert_ne!(verified.tag(b"ann:x"), other.tag(b"ann:x"), "each has a key of its own");
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let verified = Verified::new().expect("random bytes");
        for number in 0..5_000_u64 {
            verified.add(&number.to_be_bytes(), number);
        }
        assert_eq!(verified.kept.lock().expect("no panic").tags.len(), KEPT_MAX);
        assert!(
            !verified.has(&0_u64.to_be_bytes(), 5_000)
                && verified.has(&4_999_u64.to_be_bytes(), 5_000)
        );
    }
}
