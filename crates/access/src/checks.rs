//! Checks of passwords that are under way: requests with the same credentials share one, so that a
//! page of a hundred files takes one place, and not a hundred.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::verified::Tag;

/// How a check has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The password is right.
    Right,
    /// It is not.
    Wrong,
    /// There was no place for the check.
    Busy,
    /// The request that was to make it has gone: another one has to.
    Dropped,
}

/// A check of credentials, by this request or another.
pub enum JoinedCheck {
    /// This request makes it.
    Own(CheckTicket),
    /// Another one does.
    Other(CheckFollower),
}

/// Checks that are under way, by the tags of their credentials.
#[derive(Default)]
pub(crate) struct Checks(Mutex<HashMap<Tag, Arc<Check>>>);

#[derive(Default)]
pub(crate) struct Check(Mutex<CheckState>);

#[derive(Default)]
struct CheckState {
    outcome: Option<CheckOutcome>,
    wakers: Vec<Waker>,
}

impl Checks {
    /// Joins the check of credentials, or begins it.
    pub(crate) fn join(self: &Arc<Self>, tag: Tag) -> JoinedCheck {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = all.get(&tag) {
            return JoinedCheck::Other(CheckFollower { check: Arc::clone(check), place: None });
        }
        let check = Arc::<Check>::default();
        all.insert(tag, Arc::clone(&check));
        JoinedCheck::Own(CheckTicket { checks: Arc::clone(self), tag, check })
    }

    fn remove(&self, tag: &Tag) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(tag);
    }
}

/// The duty to make a check. Dropping it leaves that to another request.
pub struct CheckTicket {
    checks: Arc<Checks>,
    tag: Tag,
    check: Arc<Check>,
}

impl CheckTicket {
    /// Ends the check, and tells those that wait for it.
    pub fn end(self, outcome: CheckOutcome) {
        self.tell(outcome);
    }

    fn tell(&self, outcome: CheckOutcome) {
        let wakers = {
            let mut state = self.check.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.outcome.is_some() {
                return;
            }
            state.outcome = Some(outcome);
            std::mem::take(&mut state.wakers)
        };
        self.checks.remove(&self.tag);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for CheckTicket {
    fn drop(&mut self) {
        self.tell(CheckOutcome::Dropped);
    }
}

/// Waits for a check that another request makes.
pub struct CheckFollower {
    check: Arc<Check>,
    /// The place of its waker.
    place: Option<usize>,
}

impl Future for CheckFollower {
    type Output = CheckOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CheckOutcome> {
        let check = Arc::clone(&self.check);
        let mut state = check.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = state.outcome {
            return Poll::Ready(outcome);
        }
        let waker = context.waker().clone();
        if let Some(place) = self.place {
            state.wakers[place] = waker;
        } else {
            self.place = Some(state.wakers.len());
            state.wakers.push(waker);
        }
        Poll::Pending
    }
}
