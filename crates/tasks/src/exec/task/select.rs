//! Waiting for the first of several futures. Nothing is allocated.
//!
//! The futures are looked at in their order, so of several that are ready the first one wins. Those
//! that lose are dropped, which is how a task is told to give up; to keep one, pass a reference to
//! it (`pin!(future)`, then `future.as_mut()`).

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// Which of two was ready first, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
}

/// Which of three was ready first, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
    /// The third one.
    Third(C),
}

/// Waits for the first of two futures, and drops the other.
pub async fn select2<A: Future, B: Future>(first: A, second: B) -> Either<A::Output, B::Output> {
    let mut first = pin!(first);
    let mut second = pin!(second);
    poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

/// Waits for the first of three futures, and drops the others.
pub async fn select3<A: Future, B: Future, C: Future>(
    first: A,
    second: B,
    third: C,
) -> Either3<A::Output, B::Output, C::Output> {
    let mut first = pin!(first);
    let mut second = pin!(second);
    let mut third = pin!(third);
    poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either3::First(output));
        }
        if let Poll::Ready(output) = second.as_mut().poll(context) {
            return Poll::Ready(Either3::Second(output));
        }
        third.as_mut().poll(context).map(Either3::Third)
    })
    .await
}

/// Waits for the first of many futures of one type. Returns its place and its output; all stay
/// where they are, so that the others can be waited for again. That one must not be: take it out.
///
/// Each wake-up looks at all of them: for more than a few dozen, a [`crate::Group`] is cheaper.
/// Futures that cannot be moved come as `Pin<Box<F>>`. Of none, none is ever ready.
pub async fn select_all<F: Future + Unpin>(futures: &mut [F]) -> (usize, F::Output) {
    poll_fn(|context| {
        for (at, future) in futures.iter_mut().enumerate() {
            if let Poll::Ready(output) = Pin::new(future).poll(context) {
                return Poll::Ready((at, output));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn of_several_that_are_ready_the_first_wins() {
        assert_eq!(poll_once(select2(ready(1), ready('b'))), Poll::Ready(Either::First(1)));
        assert_eq!(
            poll_once(select2(pending::<u8>(), ready('b'))),
            Poll::Ready(Either::Second('b'))
        );
        let third = select3(pending::<u8>(), pending::<u8>(), ready("c"));
        assert_eq!(poll_once(third), Poll::Ready(Either3::Third("c")));
        assert_eq!(poll_once(select2(pending::<u8>(), pending::<u8>())), Poll::Pending);
    }

    #[test]
    fn of_many_the_others_can_be_waited_for_again() {
        let mut futures = vec![ready(10), ready(20), ready(30)];
        assert_eq!(poll_once(select_all(&mut futures[1..])), Poll::Ready((0, 20)));
        drop(futures.remove(1));
        assert_eq!(poll_once(select_all(&mut futures)), Poll::Ready((0, 10)));
        assert_eq!(poll_once(select_all::<std::future::Ready<u8>>(&mut [])), Poll::Pending);
    }
}
