use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Longer than anything here takes, even under Miri.
const PATIENCE: Option<Duration> = Some(Duration::from_mins(1));
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn poll_noop<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll(future, Waker::noop())
}

/// Counts itself as it is dropped, and says its number when asked.
#[derive(Debug)]
struct Parcel(u32, Arc<AtomicUsize>);

impl Drop for Parcel {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn values_come_out_in_the_order_they_went_in() {
    let (sender, mut receiver) = mailbox(4);
    assert_eq!((sender.capacity(), receiver.capacity()), (4, 4));
    for n in 0..4 {
        sender.try_send(n).expect("four fit");
    }
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert_eq!((sender.len(), receiver.len()), (4, 4));
    for n in 0..4 {
        assert_eq!(receiver.try_recv(), Ok(n));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert!(sender.is_empty() && receiver.is_empty());
}

#[test]
fn both_ends_may_go_to_any_thread() {
    fn goes<T: Send>(_: &T) {}
    fn is_shared<T: Sync>(_: &T) {}
    let (sender, mut receiver) = mailbox(1);
    sender.try_send(std::cell::Cell::new(1)).expect("one fits");
    goes(&sender);
    is_shared(&sender);
    goes(&receiver);
    goes(&sender.send(std::cell::Cell::new(2)));
    goes(&receiver.recv());
}

#[test]
fn a_capacity_of_nothing_is_one() {
    let (sender, _receiver) = mailbox(0);
    assert_eq!(sender.try_send(1), Ok(()));
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
}

#[test]
fn a_value_wakes_the_receiver_that_waits() {
    let (sender, mut receiver) = mailbox(1);
    let (count, waker) = counted();
    let mut receiving = receiver.recv();
    assert!(poll(&mut receiving, &waker).is_pending());
    assert_eq!(poll_noop(&mut sender.send('a')), Poll::Ready(Ok(())));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(&mut receiving, &waker), Poll::Ready(Some('a')));
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let (sender, mut receiver) = mailbox(1);
    let ((old, old_waker), (new, new_waker)) = (counted(), counted());
    let mut receiving = receiver.recv();
    assert!(poll(&mut receiving, &old_waker).is_pending());
    assert!(poll(&mut receiving, &new_waker).is_pending());
    sender.try_send(1).expect("one fits");
    let mut sending = sender.send(2);
    assert!(poll(&mut sending, &old_waker).is_pending());
    assert!(poll(&mut sending, &new_waker).is_pending());
    assert_eq!(poll(&mut receiving, &new_waker), Poll::Ready(Some(1)));
    assert_eq!(old.0.load(Ordering::SeqCst), 0);
    assert_eq!(new.0.load(Ordering::SeqCst), 2);
}

#[test]
fn senders_that_wait_are_served_in_turn_and_nobody_passes_them() {
    let (sender, mut receiver) = mailbox(1);
    sender.try_send(0).expect("one fits");
    let wakers = [counted(), counted(), counted()];
    let mut sendings: Vec<_> = (1..4).map(|n| sender.send(n)).collect();
    for (sending, (_, waker)) in sendings.iter_mut().zip(&wakers) {
        assert!(poll(sending, waker).is_pending());
    }
    let woken = || wakers.each_ref().map(|(count, _)| count.0.load(Ordering::SeqCst));
    for (n, sending) in sendings.iter_mut().enumerate() {
        assert_eq!(receiver.try_recv(), Ok(n));
        assert_eq!(sender.try_send(99), Err(TrySendError::Full(99)), "passed those who wait");
        assert_eq!((woken().iter().sum::<usize>(), woken()[n]), (n + 1, 1));
        assert_eq!(poll_noop(sending), Poll::Ready(Ok(())));
    }
    assert_eq!(receiver.try_recv(), Ok(3));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_send_that_is_dropped_sends_nothing_and_leaves_its_turn_to_the_next() {
    let (sender, mut receiver) = mailbox(1);
    let drops = Arc::new(AtomicUsize::new(0));
    sender.try_send(Parcel(0, Arc::clone(&drops))).expect("one fits");
    let mut first = sender.send(Parcel(1, Arc::clone(&drops)));
    let mut second = sender.send(Parcel(2, Arc::clone(&drops)));
    assert!(poll_noop(&mut first).is_pending() && poll_noop(&mut second).is_pending());
    drop(first);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    drop(receiver.try_recv());
    assert!(poll_noop(&mut second).is_ready());
    assert_eq!(receiver.try_recv().map(|parcel| parcel.0).expect("it was sent"), 2);
    // One that has been sent is not taken back by dropping the future.
    sender.try_send(Parcel(3, Arc::clone(&drops))).expect("there is room");
    let mut late = sender.send(Parcel(4, Arc::clone(&drops)));
    assert!(poll_noop(&mut late).is_pending());
    drop(receiver.try_recv());
    drop(late);
    assert_eq!(receiver.try_recv().map(|parcel| parcel.0).expect("it was sent"), 4);
    drop(receiver);
    drop(sender.send(Parcel(5, Arc::clone(&drops))));
    assert_eq!(drops.load(Ordering::SeqCst), 6, "each was dropped once");
}

#[test]
fn a_receiver_that_goes_gives_their_values_back_to_those_who_wait() {
    let (sender, receiver) = mailbox(1);
    let drops = Arc::new(AtomicUsize::new(0));
    sender.try_send(Parcel(0, Arc::clone(&drops))).expect("one fits");
    let (count, waker) = counted();
    let mut sending = sender.send(Parcel(1, Arc::clone(&drops)));
    assert!(poll(&mut sending, &waker).is_pending());
    drop(receiver);
    assert_eq!(drops.load(Ordering::SeqCst), 1, "what lay inside goes with the receiver");
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Err(Closed(back))) = poll(&mut sending, &waker) else {
        panic!("it was neither sent nor given back")
    };
    assert_eq!(back.0, 1);
    assert!(sender.is_closed());
    let refused = sender.try_send(back).expect_err("nobody receives");
    assert_eq!(refused.into_value().0, 1);
    let Poll::Ready(Err(Closed(back))) = poll_noop(&mut sender.send(Parcel(2, drops))) else {
        panic!("it was neither sent nor given back")
    };
    assert_eq!(back.0, 2);
}

#[test]
fn a_closed_mailbox_is_emptied_first() {
    let (sender, mut receiver) = mailbox(2);
    sender.try_send(1).expect("two fit");
    sender.try_send(2).expect("two fit");
    let mut sending = sender.send(3);
    assert!(poll_noop(&mut sending).is_pending());
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(poll_noop(&mut sending), Poll::Ready(Err(Closed(3))));
    assert_eq!(sender.try_send(4), Err(TrySendError::Closed(4)));
    assert_eq!(poll_noop(&mut receiver.recv()), Poll::Ready(Some(2)));
    assert_eq!(poll_noop(&mut receiver.recv()), Poll::Ready(None));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn the_last_sender_that_goes_wakes_the_receiver() {
    let (sender, mut receiver) = mailbox::<u8>(1);
    let other = sender.clone();
    let (count, waker) = counted();
    let mut receiving = receiver.recv();
    assert!(poll(&mut receiving, &waker).is_pending());
    drop(sender);
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "one is left");
    other.try_send(7).expect("it is still open");
    drop(other);
    assert_eq!(poll(&mut receiving, &waker), Poll::Ready(Some(7)));
    assert_eq!(poll_noop(&mut receiver.recv()), Poll::Ready(None));
    assert_eq!(receiver.blocking_recv(None), Err(RecvTimeoutError::Closed));
}

#[test]
fn values_that_hold_their_own_mailbox_do_no_harm() {
    struct Loop(#[expect(dead_code, reason = "held for its destructor")] Sender<Loop>);
    let (sender, receiver) = mailbox(2);
    sender.try_send(Loop(sender.clone())).expect("two fit");
    sender.try_send(Loop(sender.clone())).expect("two fit");
    let mut waiting = sender.send(Loop(sender.clone()));
    assert!(poll_noop(&mut waiting).is_pending());
    drop(receiver);
    drop(waiting);
}

#[test]
fn a_thread_waits_for_a_value_and_for_room_and_not_for_ever() {
    let (sender, mut receiver) = mailbox(1);
    let start = Instant::now();
    assert_eq!(receiver.blocking_recv(SHORT), Err(RecvTimeoutError::TimedOut));
    assert_eq!(sender.blocking_send(1, SHORT), Ok(()));
    assert_eq!(sender.blocking_send(2, SHORT), Err(SendTimeoutError::TimedOut(2)));
    assert!(start.elapsed() >= Duration::from_millis(40));
    let far = thread::spawn(move || {
        for n in 2..6 {
            sender.blocking_send(n, PATIENCE).expect("it is received");
        }
        sender
    });
    for n in 1..6 {
        assert_eq!(receiver.blocking_recv(PATIENCE), Ok(n));
    }
    let sender = far.join().expect("the thread ends");
    sender.try_send(6).expect("there is room");
    let far = thread::spawn(move || sender.blocking_send(7, None));
    while receiver.store.waiting() == 0 {
        thread::yield_now();
    }
    drop(receiver);
    assert_eq!(far.join().expect("the thread ends"), Err(SendTimeoutError::Closed(7)));
}

/// Threads that send, wait, give up and go while the receiver may close: whatever was sent was
/// received once, in its sender's order, and whatever was not came back.
#[test]
fn nothing_is_lost_or_doubled_among_many_threads() {
    const EACH: u64 = if cfg!(miri) { 40 } else { 30_000 };
    for (capacity, taken_max) in [(1, u64::MAX), (3, u64::MAX), (2, EACH)] {
        let (sender, mut receiver) = mailbox(capacity);
        let senders: Vec<_> = (0..3_u64)
            .map(|me| {
                let sender = sender.clone();
                thread::spawn(move || send_in_every_way(&sender, me, EACH))
            })
            .collect();
        drop(sender);
        let mut taken = [Vec::new(), Vec::new(), Vec::new()];
        while let Ok(value) = receiver.blocking_recv(PATIENCE) {
            let (me, n) = value;
            taken[usize::try_from(me).expect("one of three")].push(n);
            if taken.iter().map(Vec::len).sum::<usize>() as u64 == taken_max {
                receiver.close();
            }
        }
        for (sender, taken) in senders.into_iter().zip(taken) {
            let sent: Vec<u64> = sender.join().expect("a sender ends");
            assert_eq!(sent, taken);
        }
    }
}

/// Returns what was sent.
fn send_in_every_way(sender: &Sender<(u64, u64)>, me: u64, count: u64) -> Vec<u64> {
    let mut sent = Vec::new();
    for n in 0..count {
        let done = match n % 4 {
            0 => sender.try_send((me, n)).is_ok(),
            1 => sender.blocking_send((me, n), Some(Duration::from_micros(20))).is_ok(),
            2 => sender.blocking_send((me, n), PATIENCE).is_ok(),
            _ => {
                // Asked once, then given up, unless it has been put in by then.
                let mut sending = pin!(sender.send((me, n)));
                match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(outcome) => outcome.is_ok(),
                    Poll::Pending => {
                        let ticket = sending.ticket.take().expect("it waits");
                        sender.store.give_up(ticket).is_none()
                    }
                }
            }
        };
        if done {
            sent.push(n);
        }
    }
    sent
}
