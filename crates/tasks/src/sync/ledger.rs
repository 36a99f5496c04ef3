//! The memory ledger: how many bytes of each kind are held, and how many may be.
//!
//! Each worker adds to an account of its own, a plain load and store, and publishes it to the
//! shared total once it has changed by a step. So a total is known to all at any time, at most a
//! step per worker wrong, and no cache line is shared while little changes.

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// An account is published when it has changed by this much.
const STEP_BYTES: i64 = 64 << 10;

/// What memory is used for. Each kind has a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Received bytes that are not parsed yet: parts of request heads, and later requests.
    Heads,
    /// Request bodies.
    Bodies,
    /// Responses that peers have not taken yet, in buffers larger than usual.
    Sends,
    /// Prepared responses of small files.
    Cache,
    /// Buffers that bytes are received into: those of each worker, and large ones for bodies.
    Receives,
    /// Requests that wait for a handler or a thread, their bodies excepted.
    Queue,
    /// Messages of `WebSocket`s, in both directions, and what their compressors keep.
    WebSockets,
}

impl MemoryKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Heads,
        Self::Bodies,
        Self::Sends,
        Self::Cache,
        Self::Receives,
        Self::Queue,
        Self::WebSockets,
    ];
    const COUNT: usize = Self::ALL.len();
}

/// Bytes held by one worker that the totals do not include yet; negative where it has released
/// bytes that another worker charged. Only the worker writes it. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LedgerAccount([AtomicI64; MemoryKind::COUNT]);

/// The bytes held of each kind, and the budgets.
#[derive(Debug)]
pub struct Ledger {
    accounts: Box<[LedgerAccount]>,
    totals: [AtomicI64; MemoryKind::COUNT],
    budgets: [AtomicU64; MemoryKind::COUNT],
}

// No number stands for other memory, so all accesses are relaxed.
impl Ledger {
    /// Creates a ledger without budgets.
    ///
    /// - `workers`: how many may write to an account of their own.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            accounts: (0..workers).map(|_| LedgerAccount::default()).collect(),
            totals: Default::default(),
            budgets: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
        }
    }

    /// Adds to what is held.
    ///
    /// - `worker`: the worker that the running thread is; no other thread may pass its number.
    pub(crate) fn add(&self, worker: Option<usize>, kind: MemoryKind, bytes: i64) {
        let total = &self.totals[kind as usize];
        let Some(account) = worker.and_then(|worker| self.accounts.get(worker)) else {
            total.fetch_add(bytes, Ordering::Relaxed);
            return;
        };
        let account = &account.0[kind as usize];
        // Only this thread writes the account, so this need not be a read-modify-write.
        let changed = account.load(Ordering::Relaxed).wrapping_add(bytes);
        if changed.abs() < STEP_BYTES {
            account.store(changed, Ordering::Relaxed);
        } else {
            account.store(0, Ordering::Relaxed);
            total.fetch_add(changed, Ordering::Relaxed);
        }
    }

    /// Returns the bytes held of a kind, as far as they are published: one load.
    #[inline]
    pub fn published(&self, kind: MemoryKind) -> u64 {
        unsigned(self.totals[kind as usize].load(Ordering::Relaxed))
    }

    /// Returns whether more of a kind is held than may be, as far as that is published.
    pub fn is_short_of(&self, kind: MemoryKind) -> bool {
        self.published(kind) > self.budget(kind)
    }

    /// Returns the bytes held of a kind, from the accounts of all workers.
    pub fn held(&self, kind: MemoryKind) -> u64 {
        let total = self.totals[kind as usize].load(Ordering::Relaxed);
        let unpublished =
            self.accounts.iter().map(|one| one.0[kind as usize].load(Ordering::Relaxed));
        unsigned(unpublished.fold(total, i64::wrapping_add))
    }

    /// Returns how many bytes of a kind may be held.
    pub fn budget(&self, kind: MemoryKind) -> u64 {
        self.budgets[kind as usize].load(Ordering::Relaxed)
    }

    /// Sets how many bytes of a kind may be held.
    pub fn set_budget(&self, kind: MemoryKind, bytes: u64) {
        self.budgets[kind as usize].store(bytes, Ordering::Relaxed);
    }
}

/// A sum may be below zero for a moment: a release is seen before its charge.
fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIND: MemoryKind = MemoryKind::Bodies;

    #[test]
    fn a_total_is_published_in_steps() {
        let ledger = Ledger::new(1);
        ledger.add(Some(0), KIND, STEP_BYTES - 1);
        assert_eq!((ledger.published(KIND), ledger.held(KIND)), (0, 65_535));
        ledger.add(Some(0), KIND, 1);
        assert_eq!((ledger.published(KIND), ledger.held(KIND)), (65_536, 65_536));
        assert_eq!(ledger.held(MemoryKind::Heads), 0);
    }

    #[test]
    fn a_thread_without_an_account_publishes_at_once() {
        let ledger = Ledger::new(1);
        ledger.add(Some(0), KIND, 100);
        ledger.add(None, KIND, -40);
        assert_eq!((ledger.published(KIND), ledger.held(KIND)), (0, 60));
        ledger.add(Some(7), KIND, 5);
        assert_eq!(ledger.held(KIND), 65);
    }

    #[test]
    fn a_ledger_has_no_budget_until_one_is_set() {
        let ledger = Ledger::new(0);
        assert_eq!(ledger.budget(KIND), u64::MAX);
        ledger.set_budget(KIND, 7);
        assert_eq!((ledger.budget(KIND), ledger.budget(MemoryKind::Heads)), (7, u64::MAX));
    }

    proptest! {
        #[test]
        fn what_is_held_is_the_sum_of_all_changes(
            changes in prop::collection::vec((0_usize..5, -200_000_i64..200_000), 0..200),
        ) {
            let ledger = Ledger::new(3);
            let mut sum = 0;
            for (worker, bytes) in changes {
                // What is held is never negative, as a guard releases what it has charged.
                let bytes = bytes.max(-sum);
                sum += bytes;
                ledger.add((worker < 4).then_some(worker), KIND, bytes);
                prop_assert_eq!(ledger.held(KIND), sum.unsigned_abs());
                let wrong = ledger.published(KIND).abs_diff(sum.unsigned_abs());
                prop_assert!(wrong < 3 * STEP_BYTES.unsigned_abs(), "{} wrong", wrong);
            }
        }
    }
}
