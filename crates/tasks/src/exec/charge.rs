//! A guard for memory that is charged to the ledger of the workers.

use std::fmt;
use std::sync::Arc;

use gustnado_reactor::MemoryAccount;

use crate::exec::executor::context;
use crate::sync::ledger::{Ledger, MemoryKind};

/// Memory of one holder, charged to the ledger of the workers that it was created on. Dropping it
/// releases all of it, on any thread.
pub struct Charge {
    /// `None` outside workers: then nothing is charged.
    ledger: Option<Arc<Ledger>>,
    kind: MemoryKind,
    bytes: usize,
}

impl Charge {
    /// Creates a charge of no bytes, to the ledger of the running worker.
    pub fn new(kind: MemoryKind) -> Self {
        let ledger = context::try_with(|ctx| Arc::clone(&ctx.shared.ledger));
        Self { ledger, kind, bytes: 0 }
    }

    /// Returns the bytes charged.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets how many bytes are held.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let change = signed(bytes).wrapping_sub(signed(self.bytes));
        self.bytes = bytes;
        if let Some(ledger) = &self.ledger {
            ledger.add(account_at(ledger), self.kind, change);
        }
    }

    /// Returns whether so much more of its kind may be held, as far as that is published.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.ledger.as_ref().is_none_or(|ledger| {
            let held = ledger.published(self.kind).saturating_add(bytes as u64);
            held <= ledger.budget(self.kind)
        })
    }

    /// Returns whether more of its kind is held than may be, as far as that is published.
    pub fn is_over_budget(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.is_short_of(self.kind))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Charge");
        shown.field("kind", &self.kind).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Receive buffers. They are few and large, and may be dropped on any thread: no account of a
/// worker is needed.
impl MemoryAccount for Ledger {
    fn change(&self, bytes: i64) {
        self.add(None, MemoryKind::Receives, bytes);
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        let held = self.published(MemoryKind::Receives);
        held.saturating_add(bytes as u64) <= self.budget(MemoryKind::Receives)
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the account of the running thread in a ledger: it has one if it is a worker there.
fn account_at(ledger: &Arc<Ledger>) -> Option<usize> {
    let own = |ctx: &context::WorkerContext| {
        Arc::ptr_eq(&ctx.shared.ledger, ledger).then_some(ctx.worker)
    };
    context::try_with(own).flatten()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::exec::executor::block_on::block_on;
    use proptest::prelude::*;

    const KIND: MemoryKind = MemoryKind::Bodies;

    fn own_ledger() -> Arc<Ledger> {
        context::with(|ctx| Arc::clone(&ctx.shared.ledger))
    }

    #[test]
    fn a_guard_grows_shrinks_and_releases_on_any_thread() {
        let left = block_on(async {
            let ledger = own_ledger();
            let mut charge = Charge::new(KIND);
            charge.set(200_000);
            charge.set(150_000);
            assert_eq!((charge.bytes(), ledger.held(KIND)), (150_000, 150_000));
            charge.set(0);
            assert_eq!(ledger.held(KIND), 0);
            charge.set(9_000);
            std::thread::spawn(move || drop(charge)).join().expect("no panic");
            ledger.held(KIND)
        });
        assert_eq!(left.expect("a reactor"), 0);
    }

    #[test]
    fn outside_workers_nothing_is_charged() {
        let mut charge = Charge::new(KIND);
        charge.set(5);
        assert_eq!(charge.bytes(), 5);
    }

    proptest! {
        #[test]
        fn the_guards_are_the_account(
            steps in prop::collection::vec((0_usize..6, 0_u8..4, 0_usize..300_000), 0..120),
        ) {
            let outcome = block_on(async move {
                let ledger = own_ledger();
                let mut guards: Vec<Option<Charge>> = (0..6).map(|_| None).collect();
                for (place, step, bytes) in steps {
                    let guard = &mut guards[place];
                    match (step, guard.as_mut()) {
                        (0, _) => *guard = None,
                        (_, None) => *guard = Some(Charge::new(KIND)),
                        (1, Some(charge)) => charge.set(charge.bytes() + bytes),
                        (2, Some(charge)) => charge.set(charge.bytes().saturating_sub(bytes)),
                        (_, Some(charge)) => charge.set(bytes),
                    }
                    let sum: usize = guards.iter().flatten().map(Charge::bytes).sum();
                    prop_assert_eq!(ledger.held(KIND), sum as u64);
                }
                drop(guards);
                prop_assert_eq!(ledger.held(KIND), 0);
                Ok(())
            });
            outcome.expect("a reactor")?;
        }
    }
}
