//! The state that sender and receiver of a mailbox share, behind one lock.
//!
//! Two rules keep it right. While a sender waits, the mailbox is full: a receiver that takes a
//! value puts the first waiting sender's in, so no sender overtakes one that waits. And no value
//! and no waker is dropped, and no task woken, under the lock: what they do may lead back here.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use super::errors::{Closed, TrySendError};

use crate::exec::wakers::replace;
use crate::sync::lock::Lock;

pub(super) struct Store<T> {
    state: Lock<MailboxState<T>>,
    capacity: usize,
}

struct MailboxState<T> {
    values: VecDeque<T>,
    /// In the order they came, so in the order of their tickets.
    waiting: VecDeque<WaitingSender<T>>,
    next_ticket: u64,
    receiver: Option<Waker>,
    senders: usize,
    closed: bool,
}

/// A sender that waits for room, with what it sends.
struct WaitingSender<T> {
    ticket: u64,
    value: T,
    sender: Option<Waker>,
}

impl<T> Store<T> {
    /// A store for one sender and one receiver.
    pub(super) fn new(capacity: usize) -> Self {
        let state = MailboxState {
            values: VecDeque::new(),
            waiting: VecDeque::new(),
            next_ticket: 0,
            receiver: None,
            senders: 1,
            closed: false,
        };
        Self { state: Lock::new(state), capacity: capacity.max(1) }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().values.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Puts a value in if there is room.
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let receiver = self.state.lock().put(value, self.capacity)?;
        wake(receiver);
        Ok(())
    }

    /// Puts a value in, or at the end of those who wait for room; then `ticket` is its number.
    pub(super) fn send_or_wait(
        &self,
        value: T,
        ticket: &mut Option<u64>,
        sender: &Waker,
    ) -> Poll<Result<(), Closed<T>>> {
        let mut state = self.state.lock();
        let receiver = match state.put(value, self.capacity) {
            Ok(receiver) => receiver,
            Err(TrySendError::Closed(value)) => return Poll::Ready(Err(Closed(value))),
            Err(TrySendError::Full(value)) => {
                let number = state.next_ticket;
                state.next_ticket += 1;
                *ticket = Some(number);
                let sender = Some(sender.clone());
                state.waiting.push_back(WaitingSender { ticket: number, value, sender });
                return Poll::Pending;
            }
        };
        drop(state);
        wake(receiver);
        Poll::Ready(Ok(()))
    }

    /// Returns whether a value that waited for room has been put in.
    pub(super) fn poll_waiting(&self, ticket: u64, sender: &Waker) -> Poll<Result<(), Closed<T>>> {
        let mut state = self.state.lock();
        let Some(at) = state.place_of(ticket) else { return Poll::Ready(Ok(())) };
        if state.closed {
            let waited = state.waiting.remove(at);
            drop(state);
            return Poll::Ready(waited.map_or(Ok(()), |waited| Err(Closed(waited.value))));
        }
        let outdated = replace(&mut state.waiting[at].sender, sender);
        drop(state);
        drop(outdated);
        Poll::Pending
    }

    /// Takes back a value that waits for room; `None` if it has been put in.
    pub(super) fn give_up(&self, ticket: u64) -> Option<T> {
        let mut state = self.state.lock();
        let at = state.place_of(ticket)?;
        let waited = state.waiting.remove(at);
        drop(state);
        waited.map(|waited| waited.value)
    }

    /// Takes the oldest value. `None` when no more will come.
    pub(super) fn poll_recv(&self, receiver: &Waker) -> Poll<Option<T>> {
        let mut state = self.state.lock();
        if let Some(value) = state.values.pop_front() {
            let sender = state.admit();
            drop(state);
            wake(sender);
            return Poll::Ready(Some(value));
        }
        if state.has_ended() {
            return Poll::Ready(None);
        }
        let outdated = replace(&mut state.receiver, receiver);
        drop(state);
        drop(outdated);
        Poll::Pending
    }

    /// Takes the oldest value, if there is one. The error says whether more may come.
    pub(super) fn try_recv(&self) -> Result<T, bool> {
        let mut state = self.state.lock();
        let Some(value) = state.values.pop_front() else { return Err(!state.has_ended()) };
        let sender = state.admit();
        drop(state);
        wake(sender);
        Ok(value)
    }

    pub(super) fn add_sender(&self) {
        self.state.lock().senders += 1;
    }

    pub(super) fn remove_sender(&self) {
        let mut state = self.state.lock();
        state.senders -= 1;
        let last = if state.senders == 0 { state.receiver.take() } else { None };
        drop(state);
        wake(last);
    }

    /// Takes in no more. Those who wait for room get their values back.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let senders: Vec<_> = state.waiting.iter_mut().map(|w| w.sender.take()).collect();
        drop(state);
        senders.into_iter().for_each(wake);
    }

    /// Does what [`Store::close`] does, and drops the values, which no receiver will take.
    pub(super) fn abandon(&self) {
        self.close();
        let mut state = self.state.lock();
        let values = std::mem::take(&mut state.values);
        let receiver = state.receiver.take();
        drop(state);
        drop(values);
        drop(receiver);
    }
}

impl<T> MailboxState<T> {
    /// Puts a value in if there is room. Returns whom to wake.
    fn put(&mut self, value: T, capacity: usize) -> Result<Option<Waker>, TrySendError<T>> {
        if self.closed {
            return Err(TrySendError::Closed(value));
        }
        if self.values.len() >= capacity {
            return Err(TrySendError::Full(value));
        }
        self.values.push_back(value);
        Ok(self.receiver.take())
    }

    /// Puts the first waiting sender's value into the room that was just made. Returns whom to
    /// wake.
    fn admit(&mut self) -> Option<Waker> {
        if self.closed {
            return None;
        }
        let WaitingSender { value, sender, .. } = self.waiting.pop_front()?;
        self.values.push_back(value);
        sender
    }

    /// Returns whether what is inside is all there will ever be.
    fn has_ended(&self) -> bool {
        self.closed || self.senders == 0
    }

    fn place_of(&self, ticket: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(all(test, not(loom)))]
impl<T> Store<T> {
    /// Returns how many senders wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}
