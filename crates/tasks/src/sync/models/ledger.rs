//! [`Ledger`]: no charge is lost, whoever releases it.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::sync::ledger::{Ledger, MemoryKind};

const KIND: MemoryKind = MemoryKind::Bodies;

#[test]
fn charges_of_two_workers_and_a_release_elsewhere_add_up() {
    check(|| {
        let ledger = Arc::new(Ledger::new(2));
        ledger.add(Some(0), KIND, 100_000);
        let worker = thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || {
                ledger.add(Some(1), KIND, 70_000);
                ledger.add(Some(1), KIND, -30_000);
            }
        });
        let releasing = thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || ledger.add(None, KIND, -100_000)
        });
        ledger.add(Some(0), KIND, 3);
        worker.join().expect("no panic");
        releasing.join().expect("no panic");
        assert_eq!(ledger.held(KIND), 40_003);
        // 30,000 are still to be taken off, and 3 to be added.
        assert_eq!(ledger.published(KIND), 70_000);
    });
}

#[test]
fn a_total_is_never_more_than_a_step_per_worker_wrong() {
    check(|| {
        let ledger = Arc::new(Ledger::new(1));
        let worker = thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || {
                ledger.add(Some(0), KIND, 60_000);
                ledger.add(Some(0), KIND, 60_000);
                ledger.add(Some(0), KIND, -60_000);
            }
        });
        assert!([0, 120_000].contains(&ledger.published(KIND)));
        worker.join().expect("no panic");
        assert_eq!((ledger.published(KIND), ledger.held(KIND)), (120_000, 60_000));
    });
}
