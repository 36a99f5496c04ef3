//! Wakers are numbers: which worker, which slot, which life of it.
//!
//! A waker is made for each poll, and cloning one costs nothing: no allocation, no count. What a
//! stale number does is wake a task once more than needed, which every future must bear.

#![expect(unsafe_code, reason = "a waker whose data is a number has no safe constructor")]

use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::exec::executor::context;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::wakers::wake_target;

impl TaskId {
    /// Returns the task that a waker wakes, if it is a number.
    pub(crate) fn of_waker(waker: &Waker) -> Option<Self> {
        ptr::eq(waker.vtable(), &raw const TABLE)
            .then(|| Self::of_token(waker.data().addr() as u64))
    }

    /// A waker for this task.
    pub(crate) fn waker(self) -> Waker {
        const { assert!(usize::BITS == 64, "a task's number fills a pointer") };
        let data = ptr::without_provenance::<()>(usize::try_from(self.token()).unwrap_or_default());
        // SAFETY: the table's functions never dereference the data, take any number, own nothing
        // and may be called from any thread: each is a safe function of a copied number.
        unsafe { Waker::new(data, &TABLE) }
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &TABLE),
    |data| wake(TaskId::of_token(data.addr() as u64)),
    |data| wake(TaskId::of_token(data.addr() as u64)),
    |_| {},
);

/// Makes a task ready, from wherever this is called.
fn wake(id: TaskId) {
    if !context::wake_local(id) {
        wake_target::wake(id);
    }
}
