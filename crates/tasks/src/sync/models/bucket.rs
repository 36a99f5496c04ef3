//! [`SharedBucket`]: takers at once are served one after the other.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::sync::bucket::{Rate, SharedBucket};

#[test]
fn two_takers_never_get_the_same_moment() {
    check(|| {
        let rate = Rate::new(1_000, 1).expect("a rate");
        let bucket = Arc::new(SharedBucket::default());
        let other = thread::spawn({
            let bucket = Arc::clone(&bucket);
            move || bucket.take(rate, 10, 1)
        });
        let mut times = [bucket.take(rate, 10, 1), other.join().expect("no panic")];
        times.sort_unstable();
        assert_eq!(times, [10, 11]);
    });
}

#[test]
fn the_last_token_goes_to_one_of_two() {
    check(|| {
        let rate = Rate::new(1_000, 1).expect("a rate");
        let bucket = Arc::new(SharedBucket::default());
        let other = thread::spawn({
            let bucket = Arc::clone(&bucket);
            move || bucket.try_take(rate, 10, 1).is_ok()
        });
        let own = bucket.try_take(rate, 10, 1).is_ok();
        assert!(own != other.join().expect("no panic"));
    });
}
