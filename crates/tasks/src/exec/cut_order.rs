//! Cutting the connection of another task: what it waits for fails.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use crate::exec::executor::context;
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::cuts::CutDuring;
use crate::exec::worker::workers_shared::WorkersShared;

/// An order that is given by waking it. It is withdrawn when it is dropped.
struct CutOrder {
    shared: Arc<WorkersShared>,
    task: TaskId,
    during: CutDuring,
    is_given: AtomicBool,
}

/// Returns a waker which cuts a connection of the running task: while it waits for that, its
/// operation fails with [`ConnectionError::Cut`](crate::ConnectionError::Cut). Dropping all clones
/// of it withdraws that. `None` outside workers.
pub fn cut_waker(during: CutDuring) -> Option<Waker> {
    let order = context::try_with(|ctx| CutOrder {
        shared: Arc::clone(&ctx.shared),
        task: ctx.current(),
        during,
        is_given: AtomicBool::new(false),
    });
    order.map(|order| Waker::from(Arc::new(order)))
}

impl Wake for CutOrder {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_given.swap(true, Ordering::SeqCst) {
            self.shared.add_cut(self.task, self.during);
            self.task.waker().wake();
        }
    }
}

impl Drop for CutOrder {
    fn drop(&mut self) {
        if *self.is_given.get_mut() {
            self.shared.take_cut(self.task, self.during);
        }
    }
}

impl fmt::Debug for CutOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutOrder").field("during", &self.during).finish_non_exhaustive()
    }
}
