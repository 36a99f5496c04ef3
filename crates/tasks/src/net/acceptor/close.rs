//! Closing a listener without losing a connection that the kernel has completed.
//!
//! 1. Deferred accepting ends, and accepting goes on for the time that the plan says, or until
//!    nothing has come for a moment. This is only done when the server ends; a listener that is
//!    closed for itself begins with the second step.
//! 2. The kernel refuses new connections, on all sockets of the listener at once, since it spreads
//!    them over all of a group. Handshakes under way end, and their connections are accepted. If
//!    their socket was closed, they would be reset.
//! 3. Once nothing has come for a moment, each acceptor takes what its queue still holds and closes
//!    its socket, with nothing in between.
//!
//! The first acceptor that comes to a step does it for all of them, so an acceptor whose worker is
//! held does not hold up the others. A socket that other processes hold too is left as it is: its
//! queue is theirs.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::{Accepted, Listener, take_queue};

use super::{AcceptFailure, AcceptorPlace, BURST_MAX, after_error, choose_room, place};
use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::task::yield_now;
use crate::exec::timers::time::timeout;
use crate::exec::waits::WaitsOn;
use crate::exec::worker::workers_shared::Phase;
use crate::net::closing::QUIET_MS;
use crate::net::listener_handle::ListenerShared;

/// From giving all new connections to one socket to refusing them: a SYN that was routed to another
/// socket just before has so long to complete.
const GATHER_MS: u64 = 2;
/// A handshake that was under way when refusing began has so long to end, counted from the last one
/// that did: a round trip to a distant client.
const SETTLE_MS: u64 = 100;
/// The same where no connection came before, so hardly a handshake is under way.
const SETTLE_QUIET_MS: u64 = 10;
/// The bound for all handshakes together: a client that connects again and again must not keep the
/// server from ending.
const SETTLE_MAX_MS: u64 = 200;

/// Ends accepting from a listener, and returns when all that it brought has been placed.
pub(super) async fn close(
    listener: Listener,
    socket: Arc<OwnedFd>,
    me: AcceptorPlace,
    listener_shared: &Arc<ListenerShared>,
) {
    context::with(|ctx| {
        if let Some(load) = ctx.shared.shared_load.get() {
            load.leave();
        }
    });
    // Refusing on a shared socket would refuse for the other processes too.
    let is_ours = !listener_shared.is_shared();
    if is_ours {
        let closing = listener_shared.closing();
        let wait_ms = context::with(|ctx| ctx.shared.drain_accept_ms);
        let (now_ms, phase) = context::with(|ctx| (read_ms(ctx), ctx.phase()));
        let began_ms = closing.begin(now_ms);
        if phase >= Phase::Draining {
            let until_ms = || closing.quiet_at(began_ms, QUIET_MS).min(began_ms + wait_ms);
            accept_until(&listener, me, listener_shared, until_ms).await;
        }
        let gathered_ms = closing.gather(context::with(read_ms));
        accept_until(&listener, me, listener_shared, || gathered_ms + GATHER_MS).await;
        let refused = closing.refuse(context::with(read_ms));
        if refused.works {
            let settle_ms = if refused.was_quiet { SETTLE_QUIET_MS } else { SETTLE_MS };
            let settle_ms = settle_ms.min(wait_ms);
            let latest_ms = refused.at_ms + SETTLE_MAX_MS;
            let until_ms = || closing.quiet_at(refused.at_ms, settle_ms).min(latest_ms);
            accept_until(&listener, me, listener_shared, until_ms).await;
        }
    }
    // A ring may have accepted connections that no task has asked for yet: closing would drop them.
    take_last(&listener, me, listener_shared).await;
    context::with(|ctx| ctx.reactor.borrow_mut().close_listener(listener));
    // Closing the socket resets what its queue holds. So the last connections are taken and the
    // socket closed in one go, as many at a time as other tasks can wait for.
    let mut left = Some(socket).filter(|_| is_ours && !is_cutting());
    while let Some(socket) = left {
        let (taken, more) = take_queue(socket, BURST_MAX as usize);
        left = more;
        for connection in taken {
            place(Accepted::Away(connection), me, listener_shared).await;
        }
    }
}

/// Accepts until a time, which may move while connections come.
async fn accept_until(
    listener: &Listener,
    me: AcceptorPlace,
    listener_shared: &Arc<ListenerShared>,
    until_ms: impl Fn() -> u64,
) {
    let mut burst = 0;
    loop {
        let left_ms = until_ms().saturating_sub(context::with(read_ms));
        if left_ms == 0 || is_cutting() {
            return;
        }
        let next = next_or_cut(listener, me, listener_shared);
        match timeout(Duration::from_millis(left_ms), next).await.flatten() {
            // The time is up, unless `until_ms` has moved on: the loop checks.
            None => {}
            Some(Ok(accepted)) => {
                listener_shared.closing().note_arrival(context::with(read_ms));
                place(accepted, me, listener_shared).await;
            }
            Some(Err(error)) if AcceptFailure::of(&error) == AcceptFailure::Exhausted => {
                after_error(&error).await;
            }
            // Another acceptor of the same socket has closed it.
            Some(Err(_)) => return,
        }
        burst += 1;
        if burst == BURST_MAX {
            burst = 0;
            yield_now().await;
        }
    }
}

/// Returns the next connection; `None` when connections are cut.
async fn next_or_cut(
    listener: &Listener,
    me: AcceptorPlace,
    listener_shared: &ListenerShared,
) -> Option<io::Result<Accepted>> {
    poll_fn(|_| {
        context::with(|ctx| {
            if ctx.phase() >= Phase::Cutting {
                return Poll::Ready(None);
            }
            let room = choose_room(ctx, me, listener_shared);
            ctx.waits_on(WaitsOn::Socket);
            ctx.reactor.borrow_mut().accept(listener, room, ctx.token()).map(Some)
        })
    })
    .await
}

/// Takes what a ring has accepted already, until it accepts no more.
async fn take_last(listener: &Listener, me: AcceptorPlace, listener_shared: &Arc<ListenerShared>) {
    context::with(|ctx| ctx.reactor.borrow_mut().unlisten(listener));
    loop {
        let last = poll_fn(|_| {
            context::with(|ctx| {
                let mut reactor = ctx.reactor.borrow_mut();
                match reactor.last_accepted(listener, ctx.token()) {
                    Poll::Pending if !reactor.is_listening(listener) => Poll::Ready(None),
                    accepted => accepted.map(Some),
                }
            })
        });
        match last.await {
            Some(Ok(accepted)) => place(accepted, me, listener_shared).await,
            Some(Err(_)) => {}
            None => return,
        }
    }
}

fn is_cutting() -> bool {
    context::with(|ctx| ctx.phase() >= Phase::Cutting)
}

fn read_ms(ctx: &WorkerContext) -> u64 {
    ctx.reactor.borrow().clock().read_ms()
}
