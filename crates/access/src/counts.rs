//! Counts of requests that a gate has refused, by the reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its client's address.
    Address,
    /// Its client has sent too many.
    Rate,
    /// It had no user and password, or wrong ones.
    Password,
    /// Too many passwords were being checked.
    Busy,
    /// Its URL had no signature, or a wrong one.
    Signature,
    /// Its URL was no longer valid.
    Expired,
    /// A page of another origin may not send it.
    Origin,
}

impl Refusal {
    const COUNT: usize = 7;
}

/// The counts of a server, for its whole life. Refusals are rare or cheap, so that workers share
/// them.
#[derive(Debug, Default)]
pub struct AccessCounts {
    refusals: [AtomicU64; Refusal::COUNT],
    password_checks: AtomicU64,
}

impl AccessCounts {
    /// Counts a refusal.
    pub fn add(&self, refusal: Refusal) {
        self.refusals[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many there were.
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.refusals[refusal as usize].load(Ordering::Relaxed)
    }

    /// Counts a password whose hash is computed.
    pub fn add_password_check(&self) {
        self.password_checks.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many there were.
    pub fn password_checks(&self) -> u64 {
        self.password_checks.load(Ordering::Relaxed)
    }
}
