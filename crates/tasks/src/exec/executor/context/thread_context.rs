//! Which worker the running thread is.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use super::WorkerContext;

/// Which worker a thread is.
pub(super) struct ThreadContext {
    /// Set once: a thread of ours is one worker for its life. Its tasks are dropped before it ends.
    pub(super) own: OnceCell<Rc<WorkerContext>>,
    /// The worker that a thread of the caller's is for now.
    pub(super) borrowed: RefCell<Option<Rc<WorkerContext>>>,
}

thread_local! {
    /// One value, since in a library that is loaded later each look at one is a call.
    pub(super) static CONTEXT: ThreadContext =
        const { ThreadContext { own: OnceCell::new(), borrowed: RefCell::new(None) } };
}

impl ThreadContext {
    /// Returns the worker that a thread of somebody else's is for now. Apart, so that our own
    /// threads have nothing to ask.
    #[cold]
    pub(super) fn borrowed(&self) -> Option<Rc<WorkerContext>> {
        self.borrowed.borrow().clone()
    }
}
