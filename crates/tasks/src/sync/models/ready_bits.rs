//! [`ReadyBits`]: nothing lost, nothing claimed twice.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::sync::ready_bits::ReadyBits;

#[test]
fn what_two_threads_set_is_claimed_once_each() {
    check(|| {
        let bits = Arc::new(ReadyBits::new(64));
        let setters = [3, 40].map(|slot| {
            let bits = Arc::clone(&bits);
            thread::spawn(move || bits.set(slot))
        });
        let mut claimed: Vec<u32> = bits.claim().into_iter().collect();
        for setter in setters {
            setter.join().expect("a setter ends");
        }
        assert_eq!(bits.any(), claimed.len() < 2);
        claimed.extend(std::iter::from_fn(|| bits.claim()));
        claimed.sort_unstable();
        assert_eq!(claimed, [3, 40]);
        assert!(!bits.any());
    });
}

#[test]
fn two_claimers_never_get_the_same_slot() {
    check(|| {
        let bits = Arc::new(ReadyBits::new(128));
        bits.set(1);
        bits.set(100);
        let other = thread::spawn({
            let bits = Arc::clone(&bits);
            move || bits.claim()
        });
        let mut claimed: Vec<u32> = bits.claim().into_iter().collect();
        claimed.extend(other.join().expect("a claimer ends"));
        claimed.extend(std::iter::from_fn(|| bits.claim()));
        claimed.sort_unstable();
        assert_eq!(claimed, [1, 100]);
    });
}

#[test]
fn a_set_that_has_something_says_so_to_whoever_was_told() {
    check(|| {
        let bits = Arc::new(ReadyBits::new(64));
        let setter = thread::spawn({
            let bits = Arc::clone(&bits);
            move || bits.set(5)
        });
        let early = bits.claim();
        setter.join().expect("the setter ends");
        assert_eq!(bits.any(), early.is_none());
        assert_eq!(early.or_else(|| bits.claim()), Some(5));
    });
}
