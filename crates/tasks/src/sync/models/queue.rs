//! [`TokenQueue`]: no token lost, doubled or out of its producer's order.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::sync::queue::TokenQueue;

#[test]
fn tokens_of_two_producers_come_out_once_and_in_their_order() {
    check(|| {
        let queue = Arc::new(TokenQueue::new(4));
        let producers = [10, 20].map(|base| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for token in [base + 1, base + 2] {
                    queue.push(token).expect("four fit");
                }
            })
        });
        let mut taken: Vec<u64> = (0..2).filter_map(|_| queue.pop()).collect();
        for producer in producers {
            producer.join().expect("a producer ends");
        }
        taken.extend(std::iter::from_fn(|| queue.pop()));
        for base in [10, 20] {
            let own: Vec<u64> =
                taken.iter().copied().filter(|token| token - token % 10 == base).collect();
            assert_eq!(own, [base + 1, base + 2]);
        }
        assert_eq!(taken.len(), 4);
        assert!(queue.is_empty());
    });
}

#[test]
fn a_token_goes_to_one_of_two_consumers() {
    check(|| {
        let queue = Arc::new(TokenQueue::new(2));
        queue.push(1).expect("two fit");
        queue.push(2).expect("two fit");
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.pop()
        });
        let mut taken = vec![queue.pop()];
        taken.push(other.join().expect("a consumer ends"));
        taken.sort_unstable();
        assert_eq!(taken, [Some(1), Some(2)]);
        assert_eq!(queue.pop(), None);
    });
}

#[test]
fn a_full_queue_refuses_and_keeps_what_it_has() {
    check(|| {
        let queue = Arc::new(TokenQueue::new(2));
        queue.push(1).expect("two fit");
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push(2)
        });
        let ctx = queue.push(3);
        let there = other.join().expect("a producer ends");
        assert!(ctx.is_ok() != there.is_ok(), "one of the two found no room");
        assert_eq!(queue.pop(), Some(1));
        assert_eq!(queue.pop(), Some(if ctx.is_ok() { 3 } else { 2 }));
        assert_eq!(queue.pop(), None);
    });
}

/// The lines of tasks and cells count on this: a token that was refused would be lost.
#[test]
fn a_queue_with_room_for_every_token_refuses_none() {
    check(|| {
        let queue = Arc::new(TokenQueue::new(2));
        queue.push(1).expect("two fit");
        queue.push(2).expect("two fit");
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                if let Some(token) = queue.pop() {
                    queue.push(token).expect("this token's room is free");
                }
            }
        });
        if let Some(token) = queue.pop() {
            queue.push(token).expect("this token's room is free");
        }
        other.join().expect("the other one ends");
        let mut left = [queue.pop(), queue.pop()];
        left.sort_unstable();
        assert_eq!(left, [Some(1), Some(2)]);
    });
}

#[test]
fn a_token_handed_over_carries_what_was_written_before() {
    use loom::sync::atomic::{AtomicU64, Ordering};
    check(|| {
        let queue = Arc::new(TokenQueue::new(2));
        let written = Arc::new(AtomicU64::new(0));
        let producer = thread::spawn({
            let (queue, written) = (Arc::clone(&queue), Arc::clone(&written));
            move || {
                written.store(7, Ordering::Relaxed);
                queue.push(1).expect("two fit");
            }
        });
        if queue.pop().is_some() {
            assert_eq!(written.load(Ordering::Relaxed), 7);
        }
        producer.join().expect("the producer ends");
    });
}
