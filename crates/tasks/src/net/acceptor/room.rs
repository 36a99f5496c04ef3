//! Waiting for room: while a connection waits and all slots are taken, idle ones give way to it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use gustnado_reactor::lowest_free_descriptor;

use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::timers::time::{Sleep, sleep, timeout};
use crate::exec::worker::elastic::LoadEvent;
use crate::exec::worker::workers_shared::{Phase, WorkersShared};

/// Time between two requests: more than a connection takes to give way.
const REQUEST_INTERVAL: Duration = Duration::from_millis(40);

/// Connections are what takes the descriptors if they are at least this part of them.
const OUR_PART: usize = 4;

/// Waits for `done`, checking whenever a slot is freed or the phase changes.
///
/// - `is_wanted`: whether a connection waits for the slot. If not, it wakes the task when one does.
pub(super) async fn wait_for_room<T>(
    mut done: impl FnMut(&WorkerContext) -> Option<T>,
    mut is_wanted: impl FnMut(&WorkerContext) -> bool,
) -> T {
    let shared = context::with(|ctx| Arc::clone(&ctx.shared));
    let check = || {
        let found = context::with(&mut done);
        if found.is_none() {
            shared.elastic.report(LoadEvent::SlotsFull);
        }
        found
    };
    let mut freed = pin!(shared.connection_slots.wait_for(check));
    let mut interval = None::<Sleep>;
    poll_fn(|context| {
        if let Poll::Ready(found) = freed.as_mut().poll(context) {
            return Poll::Ready(found);
        }
        loop {
            if let Some(interval) = &mut interval {
                ready!(Pin::new(interval).poll(context));
            }
            interval = None;
            if !may_evict(&shared) || !context::with(&mut is_wanted) {
                return Poll::Pending;
            }
            let now_ms = context::with(WorkerContext::now_ms);
            shared.request_evictions(shared.evictions.next_count(now_ms));
            interval = Some(sleep(REQUEST_INTERVAL));
        }
    })
    .await
}

/// Waits until a connection has closed, but not longer than `pause`: descriptors have run out, or
/// will, so idle connections give way.
pub(super) async fn wait_for_descriptor(pause: Duration) {
    let shared = context::with(|ctx| Arc::clone(&ctx.shared));
    shared.request_descriptors();
    let open = shared.connection_slots.open();
    let is_freed = || (shared.connection_slots.open() < open).then_some(());
    timeout(pause, shared.connection_slots.wait_for(is_freed)).await;
}

/// Waits until descriptors are free that are not kept for files. Where connections, and the files
/// sent on them, are not what takes them, to wait does not help.
pub(super) async fn wait_while_scarce(pause: Duration) {
    let mut is_scarce = true;
    while is_scarce {
        wait_for_descriptor(pause).await;
        is_scarce = context::with(|ctx| {
            let is_ours = ctx.shared.connection_slots.open() >= ctx.shared.scarce_from / OUR_PART;
            is_ours && ctx.phase() == Phase::Serving && has_only_reserve(ctx)
        });
    }
}

/// Returns whether the next descriptor would be one that is kept for files.
fn has_only_reserve(ctx: &WorkerContext) -> bool {
    let reactor = ctx.reactor.borrow();
    lowest_free_descriptor(&reactor.waker()).is_none_or(|number| number >= ctx.shared.scarce_from)
}

/// Returns whether connections are to be closed here: no worker that may be added has room, and no
/// other process that accepts from the same socket.
fn may_evict(shared: &WorkersShared) -> bool {
    let may_grow = shared.elastic.workers() < shared.handles.len();
    let can_add = may_grow && shared.connection_slots.is_short_of_workers();
    shared.phase() == Phase::Serving && !can_add && !shared.is_over_share()
}
