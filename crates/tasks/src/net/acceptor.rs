//! Accepting: a task per listening socket, that waits for room, accepts, and places the connection.

mod close;
mod room;

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::{Accepted, BackendKind, Io, Listener};
use room::{wait_for_descriptor, wait_for_room, wait_while_scarce};
use rustix::io::Errno;
use rustix::net::sockopt::socket_reuseport;

use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::task::yield_now;
use crate::exec::timers::time::sleep;
use crate::exec::waits::WaitsOn;
use crate::exec::worker::arrival::{Arrival, IncomingHandler};
use crate::exec::worker::descriptors::INSTALLED_PART;
use crate::exec::worker::elastic::{LoadEvent, PolledListener};
use crate::exec::worker::workers_shared::{Phase, WorkersShared, count};
use crate::net::connection::Connection;
use crate::net::listener_handle::ListenerShared;
use crate::sync::connection_slots::Placement;

/// How long accepting rests when descriptors or memory have run out, or all is refused.
/// Connections wait in the backlog.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// For how long one with more than its share lets other processes accept first. One of them that is
/// held does not hold the connection for longer.
const OTHERS_FIRST: Duration = Duration::from_millis(1);
/// Connections accepted in one go before other tasks have their turn.
const BURST_MAX: u32 = 64;

/// The threads that accept connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acceptor {
    /// The workers themselves, for TCP each from a listening socket of its own (`SO_REUSEPORT`).
    #[default]
    PerWorker,
    /// One thread that does nothing else, and passes the connections to the workers.
    Dedicated,
}

impl Acceptor {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::PerWorker, Self::Dedicated];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 2] = ["per-worker", "dedicated"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The position of an acceptor.
#[derive(Clone, Copy)]
struct AcceptorPlace {
    /// The worker of the running thread, if connections may stay here.
    place: Option<usize>,
    /// Its listening socket is its own (`SO_REUSEPORT`), so the kernel spreads connections among
    /// the workers, and few are past a worker's share.
    is_spread: bool,
}

/// Accepts from one listener until it is stopped, or the server drains.
///
/// - `me`: the worker of the running thread, if connections may stay here.
/// - `polled`: keeps the socket polled for a backlog, if there is an autoscaler.
async fn accept_all(
    listener: Listener,
    socket: Arc<OwnedFd>,
    me: Option<usize>,
    listener_shared: Arc<ListenerShared>,
    polled: Option<Arc<PolledListener>>,
    _open: AcceptorGuard,
) {
    let listener_shared = &listener_shared;
    let me = AcceptorPlace { place: me, is_spread: socket_reuseport(&socket).unwrap_or(false) };
    poll_fn(|context| {
        listener_shared.join(context.waker());
        Poll::Ready(())
    })
    .await;
    let mut burst = 0;
    while let Some(accepted) = next(&listener, me, listener_shared).await {
        match accepted {
            Ok(accepted) => {
                place(accepted, me, listener_shared).await;
                if context::with(|ctx| ctx.shared.throttle.has_paced_accepts()) {
                    rest(listener_shared).await;
                }
            }
            Err(error) => after_error(&error).await,
        }
        burst += 1;
        if burst == BURST_MAX {
            burst = 0;
            yield_now().await;
        }
    }
    if polled.is_some() {
        drop(polled);
        context::with(|ctx| ctx.shared.elastic.report(LoadEvent::Changed));
    }
    close::close(listener, socket, me, listener_shared).await;
}

/// Counts an acceptor for as long as it may bring connections.
struct AcceptorGuard(Arc<WorkersShared>);

impl AcceptorGuard {
    fn new(shared: &Arc<WorkersShared>) -> Self {
        shared.acceptors.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for AcceptorGuard {
    fn drop(&mut self) {
        self.0.acceptors.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the next connection, once there is room for it. `None` when that was the last.
async fn next(
    listener: &Listener,
    me: AcceptorPlace,
    listener_shared: &ListenerShared,
) -> Option<io::Result<Accepted>> {
    let serves = |ctx: &WorkerContext| serves(ctx, listener_shared);
    if context::with(|ctx| serves(ctx) && choose(ctx, me).is_none()) {
        context::with(|ctx| count(&ctx.shared.counts.accept_paused));
        let has_room = |ctx: &WorkerContext| !serves(ctx) || choose(ctx, me).is_some();
        let has_pending = |ctx: &WorkerContext| {
            let pending = ctx.reactor.borrow_mut().has_pending(listener, ctx.token());
            // Where the kernel cannot watch it, one may wait.
            pending.unwrap_or(true)
        };
        wait_for_room(|ctx| has_room(ctx).then_some(()), has_pending).await;
    }
    loop {
        if context::with(|ctx| ctx.shared.is_over_share()) {
            sleep(OTHERS_FIRST).await;
        }
        let mut has_waited = false;
        let attempt = poll_fn(|_| {
            context::with(|ctx| {
                if !serves(ctx) {
                    return Poll::Ready(Some(None));
                }
                if has_waited && ctx.shared.shared_load.get().is_some() {
                    // One has come; whose it is, is to be looked at first.
                    return Poll::Ready(None);
                }
                has_waited = true;
                let room = choose_room(ctx, me, listener_shared);
                ctx.waits_on(WaitsOn::Socket);
                let accepted = ctx.reactor.borrow_mut().accept(listener, room, ctx.token());
                accepted.map(|accepted| Some(Some(accepted)))
            })
        });
        if let Some(accepted) = attempt.await {
            return accepted;
        }
    }
}

/// Returns whether connections are still accepted.
fn serves(ctx: &WorkerContext, listener_shared: &ListenerShared) -> bool {
    ctx.phase() == Phase::Serving && listener_shared.is_open()
}

/// Rests after a connection for as long as the pace of accepting says. Not once no more are
/// accepted: a drain does not wait for it.
async fn rest(listener_shared: &ListenerShared) {
    let rest_ms = context::with(|ctx| {
        let now_ms = ctx.reactor.borrow().clock().read_ms();
        ctx.shared.throttle.rest_after_accept_ms(now_ms)
    });
    let mut sleep = sleep(Duration::from_millis(rest_ms));
    poll_fn(|context| {
        if rest_ms == 0 || context::with(|ctx| !serves(ctx, listener_shared)) {
            return Poll::Ready(());
        }
        Pin::new(&mut sleep).poll(context)
    })
    .await;
}

/// Returns how many connections one request to the kernel may bring into this reactor.
fn choose_room(ctx: &WorkerContext, me: AcceptorPlace, listener_shared: &ListenerShared) -> usize {
    let Some(own) = me.place.filter(|_| !listener_shared.descriptors) else { return 0 };
    // A connection that will go elsewhere must not come into this reactor's table. Where that is
    // seldom, it is moved out of it again: to accept otherwise for one would cost more.
    let is_seldom = me.is_spread && ctx.shared.placement == Placement::Spread;
    let stays = is_seldom || choose(ctx, me) == me.place;
    let room = if stays { ctx.shared.connection_slots.room_on(own) } else { 0 };
    room.min(ctx.shared.throttle.accept_room_max)
}

fn choose(ctx: &WorkerContext, me: AcceptorPlace) -> Option<usize> {
    ctx.shared.connection_slots.choose(me.place, ctx.shared.placement)
}

/// The same for a connection in this worker's reactor. One that leaves a ring keeps an ordinary
/// descriptor for good, so it stays where these would become few.
fn choose_for_own(ctx: &WorkerContext, me: AcceptorPlace) -> Option<usize> {
    let slots = &ctx.shared.connection_slots;
    let stays = ctx.shared.placement == Placement::Spread
        && slots.open() >= ctx.shared.scarce_from / INSTALLED_PART
        && ctx.reactor.borrow().backend() == BackendKind::Uring;
    let own = me.place.filter(|own| stays && slots.room_on(*own) > 0);
    own.or_else(|| choose(ctx, me))
}

/// Gives a connection its slot and its task. It was accepted, so it is kept while all are full.
async fn place(accepted: Accepted, me: AcceptorPlace, listener_shared: &Arc<ListenerShared>) {
    context::with(|ctx| count(&ctx.shared.counts.accepted));
    match accepted {
        Accepted::Here(io) => place_own(io, me, listener_shared).await,
        Accepted::Away(connection) => {
            let number = usize::try_from(connection.as_raw_fd()).unwrap_or_default();
            let is_scarce = context::with(|ctx| {
                number >= ctx.shared.scarce_from && ctx.phase() == Phase::Serving
            });
            let Some(worker) = wait_for_place(|ctx| choose(ctx, me)).await else { return };
            if Some(worker) == me.place {
                context::with(|ctx| take_in(ctx, connection, worker, listener_shared));
            } else {
                hand_over(worker, connection, listener_shared);
            }
            if is_scarce {
                // Before accepting fails, and files cannot be opened.
                wait_while_scarce(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

/// Places a connection that is in this worker's reactor already. Should the last slot here have
/// gone to another one meanwhile, or this worker have more than its share, it moves to another.
async fn place_own(io: Io, me: AcceptorPlace, listener_shared: &Arc<ListenerShared>) {
    let worker = wait_for_place(|ctx| choose_for_own(ctx, me)).await;
    match worker {
        None => {}
        Some(worker) if Some(worker) == me.place => {
            return context::with(|ctx| serve(ctx, io, worker, listener_shared));
        }
        Some(worker) => {
            let exported =
                poll_fn(|_| context::with(|ctx| ctx.reactor.borrow_mut().export(&io, ctx.token())));
            if let Ok(connection) = exported.await {
                hand_over(worker, connection, listener_shared);
            } else {
                // It has to stay; so it waits until there is room here.
                context::with(|ctx| {
                    ctx.shared.connection_slots.release(worker);
                    if worker >= ctx.shared.elastic.floor() {
                        // It may have been retired meanwhile, and this was all that it had left.
                        ctx.shared.handles[worker].wake_all();
                    }
                });
                if let Some(me) = wait_for_place(|_| me.place).await {
                    return context::with(|ctx| serve(ctx, io, me, listener_shared));
                }
            }
        }
    }
    context::with(|ctx| ctx.reactor.borrow_mut().close(io));
}

/// Hands a connection to the worker whose slot it has.
fn hand_over(worker: usize, connection: OwnedFd, listener_shared: &Arc<ListenerShared>) {
    context::with(|ctx| {
        let incoming = Arc::clone(listener_shared) as Arc<dyn IncomingHandler>;
        ctx.shared.handles[worker].arrive(Arrival::Connection(connection, incoming));
        ctx.shared.elastic.report(LoadEvent::HandedOver);
    });
}

/// Takes a slot of the worker that `wanted` names. `None` when the server cuts connections.
async fn wait_for_place(mut wanted: impl FnMut(&WorkerContext) -> Option<usize>) -> Option<usize> {
    let take = |ctx: &WorkerContext| {
        if ctx.phase() >= Phase::Cutting {
            return Some(None);
        }
        wanted(ctx).filter(|&worker| ctx.shared.connection_slots.take(worker)).map(Some)
    };
    wait_for_room(take, |_| true).await
}

impl IncomingHandler for ListenerShared {
    fn serve(&self, connection: OwnedFd, place: usize) {
        context::with(|ctx| take_in(ctx, connection, place, self));
    }

    fn accept_from(self: Arc<Self>, socket: Arc<OwnedFd>, place: Option<usize>) {
        context::with(|ctx| {
            if start(ctx, socket, place, &self).is_err() {
                count(&ctx.shared.counts.accept_exhausted);
            }
        });
    }
}

/// Takes in a connection whose slot is taken.
fn take_in(
    ctx: &WorkerContext,
    connection: OwnedFd,
    place: usize,
    listener_shared: &ListenerShared,
) {
    let adopted = ctx.reactor.borrow_mut().adopt(connection);
    if let Ok(io) = adopted {
        serve(ctx, io, place, listener_shared);
    } else {
        count(&ctx.shared.counts.accept_exhausted);
        ctx.shared.connection_slots.release(place);
    }
}

fn serve(ctx: &WorkerContext, io: Io, place: usize, listener_shared: &ListenerShared) {
    let place = u16::try_from(place).expect("workers are few");
    ctx.metrics().add_connection();
    ctx.shared.publish_load();
    let task = (listener_shared.serve)(Connection::new(io, Some(place)));
    // Without a slot the task is dropped, which closes the connection and frees its slot.
    if ctx.insert(task).is_err() {
        count(&ctx.shared.counts.accept_exhausted);
    }
}

/// The meaning of a failed accept for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptFailure {
    /// The connection was at fault, or a signal came: the next one may be fine.
    ThisOne,
    /// Descriptors or memory have run out.
    Exhausted,
    /// Whatever it is, the next one will fail too: a security module or a filter refuses (`EPERM`),
    /// or the network is down.
    All,
}

impl AcceptFailure {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::CONNABORTED | Errno::PROTO | Errno::INTR) => Self::ThisOne,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => Self::Exhausted,
            _ => Self::All,
        }
    }
}

/// Counts a failed accept, and rests if the next one would fail too.
async fn after_error(error: &io::Error) {
    let failure = AcceptFailure::of(error);
    context::with(|ctx| {
        count(match failure {
            AcceptFailure::Exhausted => &ctx.shared.counts.accept_exhausted,
            _ => &ctx.shared.counts.accept_failed,
        });
    });
    // What waits in the backlog would fail as fast as it can be tried.
    match failure {
        AcceptFailure::ThisOne => {}
        AcceptFailure::Exhausted => wait_for_descriptor(EXHAUSTED_PAUSE).await,
        AcceptFailure::All => sleep(EXHAUSTED_PAUSE).await,
    }
}

/// Starts accepting on the running thread.
///
/// # Errors
/// No task slot is left, or the process is out of descriptors.
fn start(
    ctx: &WorkerContext,
    socket: Arc<OwnedFd>,
    me: Option<usize>,
    listener_shared: &Arc<ListenerShared>,
) -> io::Result<()> {
    let incoming = Arc::clone(listener_shared) as Arc<dyn IncomingHandler>;
    let polled = PolledListener { socket: Arc::clone(&socket), incoming, worker: me };
    let polled = ctx.shared.elastic.poll_listener(polled)?;
    let backlog = listener_shared.backlog;
    let listener = ctx.reactor.borrow_mut().listen(Arc::clone(&socket), backlog)?;
    let open = AcceptorGuard::new(&ctx.shared);
    let listener_shared = Arc::clone(listener_shared);
    ctx.insert(Box::pin(accept_all(listener, socket, me, listener_shared, polled, open)))
        .map_err(|_| io::Error::other("no task slot is left to accept in"))?;
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn accepting_rests_unless_one_connection_was_at_fault() {
        use AcceptFailure::{All, Exhausted, ThisOne};
        for (errno, failure) in [
            (Errno::CONNABORTED, ThisOne),
            (Errno::PROTO, ThisOne),
            (Errno::INTR, ThisOne),
            (Errno::MFILE, Exhausted),
            (Errno::NFILE, Exhausted),
            (Errno::NOMEM, Exhausted),
            (Errno::NOBUFS, Exhausted),
            (Errno::PERM, All),
            (Errno::ACCESS, All),
            (Errno::NETDOWN, All),
            (Errno::INVAL, All),
        ] {
            let found = AcceptFailure::of(&io::Error::from(errno));
            assert_eq!(found, failure, "{errno:?}");
        }
    }
}
