//! Mailboxes: bounded, first in first out, many senders, one receiver.
//!
//! Both ends work from tasks and from plain threads, so a mailbox is also the bridge between the
//! two. A time limit in a task is [`crate::timeout`]; the calls for threads take one themselves.
//!
//! A full mailbox holds its senders up, in the order in which they came: nobody passes those who
//! wait. When the receiver goes, they get their values back.

mod errors;
mod store;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

pub use errors::{Closed, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError};
use store::Store;

use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::sync::parking;

/// Creates a mailbox: a bounded queue of values for one receiver.
///
/// - `capacity`: how many values it holds; at least 1, which is also what 0 means. Memory is
///   allocated as it fills.
pub fn mailbox<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let store = Arc::new(Store::new(capacity));
    (Sender { store: Arc::clone(&store) }, Receiver { store })
}

/// The end of a mailbox that values are put in at. The receiver learns when the last clone is gone.
pub struct Sender<T> {
    store: Arc<Store<T>>,
}

impl<T> Sender<T> {
    /// Puts a value in, as soon as there is room and all earlier senders have put theirs in. If the
    /// future is dropped before that, so is the value.
    ///
    /// # Errors
    /// [`Closed`], with the value: the receiver has gone or closed the mailbox.
    pub fn send(&self, value: T) -> Sending<'_, T> {
        Sending { store: &self.store, value: Some(value), ticket: None }
    }

    /// Puts a value in if there is room now.
    ///
    /// # Errors
    /// [`TrySendError`], with the value: the mailbox is full or closed.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.store.try_send(value)
    }

    /// Puts a value in, for plain threads: blocks until there is room. In a task it would block the
    /// worker, with all its tasks.
    ///
    /// - `timeout`: how long to wait for room at most; `None`: for as long as it takes.
    ///
    /// # Errors
    /// [`SendTimeoutError`], with the value: `timeout` has passed, or the mailbox is closed.
    pub fn blocking_send(
        &self,
        value: T,
        timeout: Option<Duration>,
    ) -> Result<(), SendTimeoutError<T>> {
        let value = match self.try_send(value) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(value)) => return Err(SendTimeoutError::Closed(value)),
            Err(TrySendError::Full(value)) => value,
        };
        let mut sending = self.send(value);
        match parking::wait(timeout, |context| Pin::new(&mut sending).poll(context)) {
            Some(Ok(())) => Ok(()),
            Some(Err(Closed(value))) => Err(SendTimeoutError::Closed(value)),
            // It may have been put in at the last moment.
            None => {
                sending.give_up().map_or(Ok(()), |value| Err(SendTimeoutError::TimedOut(value)))
            }
        }
    }

    /// Returns whether the receiver has gone or has closed the mailbox: nothing can be sent any
    /// more.
    pub fn is_closed(&self) -> bool {
        self.store.is_closed()
    }

    /// Returns how many values lie in the mailbox.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether no value lies in the mailbox.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many values may lie in the mailbox.
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.store.add_sender();
        Self { store: Arc::clone(&self.store) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.store.remove_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// A send that waits for room; [`Sender::send`] returns it.
#[must_use = "nothing is sent until it is awaited"]
pub struct Sending<'a, T> {
    store: &'a Store<T>,
    /// Until the first poll.
    value: Option<T>,
    /// While the value waits for room.
    ticket: Option<u64>,
}

/// The value is moved, never pinned.
impl<T> Unpin for Sending<'_, T> {}

impl<T> Sending<'_, T> {
    /// Takes the value back, if it is not in the mailbox.
    fn give_up(mut self) -> Option<T> {
        match self.ticket.take() {
            Some(ticket) => self.store.give_up(ticket),
            None => self.value.take(),
        }
    }
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), Closed<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let sent = if let Some(ticket) = this.ticket {
            this.store.poll_waiting(ticket, context.waker())
        } else {
            let value = this.value.take().expect("what was sent is not polled again");
            this.store.send_or_wait(value, &mut this.ticket, context.waker())
        };
        if sent.is_ready() {
            this.ticket = None;
        } else {
            context::waits_on(WaitsOn::MailboxSend);
        }
        sent
    }
}

impl<T> Drop for Sending<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            drop(self.store.give_up(ticket));
        }
    }
}

impl<T> fmt::Debug for Sending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("waits", &self.ticket.is_some()).finish_non_exhaustive()
    }
}

/// The end of a mailbox that values are taken out at. When it is dropped, so is what lies inside,
/// and nothing can be sent any more.
///
/// It is a [`Stream`] too.
pub struct Receiver<T> {
    store: Arc<Store<T>>,
}

impl<T> Receiver<T> {
    /// Takes the oldest value. `None` when no more will come: the mailbox is empty, and all senders
    /// have gone or it was closed.
    pub fn recv(&mut self) -> Receiving<'_, T> {
        Receiving { receiver: self }
    }

    /// Polls for the oldest value, as [`Receiver::recv`] does. A task that has received very often
    /// without waiting is made to yield once, so that others run.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        if !context::spend() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let received = self.store.poll_recv(context.waker());
        if received.is_pending() {
            context::waits_on(WaitsOn::MailboxReceive);
        }
        received
    }

    /// Takes the oldest value if there is one now.
    ///
    /// # Errors
    /// [`TryRecvError`]: the mailbox is empty now, or no value will come any more.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let more = |more| if more { TryRecvError::Empty } else { TryRecvError::Closed };
        self.store.try_recv().map_err(more)
    }

    /// Takes the oldest value, for plain threads: blocks until there is one. In a task it would
    /// block the worker, with all its tasks.
    ///
    /// - `timeout`: how long to wait for one at most; `None`: for as long as it takes.
    ///
    /// # Errors
    /// [`RecvTimeoutError`]: `timeout` has passed, or no value will come any more.
    pub fn blocking_recv(&mut self, timeout: Option<Duration>) -> Result<T, RecvTimeoutError> {
        match self.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
            Err(TryRecvError::Empty) => {}
        }
        match parking::wait(timeout, |context| self.store.poll_recv(context.waker())) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(RecvTimeoutError::Closed),
            None => Err(RecvTimeoutError::TimedOut),
        }
    }

    /// Takes in no more: senders that wait for room get their values back. What lies inside can
    /// still be received.
    pub fn close(&mut self) {
        self.store.close();
    }

    /// Returns how many values lie in the mailbox.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether no value lies in the mailbox.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many values may lie in the mailbox.
    pub fn capacity(&self) -> usize {
        self.store.capacity()
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.store.abandon();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// A wait for a value; [`Receiver::recv`] returns it. Dropping it loses nothing.
#[derive(Debug)]
#[must_use = "nothing is received until it is awaited"]
pub struct Receiving<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T> Future for Receiving<'_, T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().receiver.poll_recv(context)
    }
}
