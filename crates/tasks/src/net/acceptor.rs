//! Accepting: a task per listening socket, that waits for room, accepts, and places the connection.

mod close;

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::{Accepted, Io, Listener};
use rustix::io::Errno;
use rustix::net::sockopt::socket_reuseport;

use crate::exec::arrival::{Arrival, Door, Incoming};
use crate::exec::crew::{Crew, Phase, count};
use crate::exec::here::{self, Here};
use crate::exec::task::yield_now;
use crate::exec::time::sleep;
use crate::exec::waits::WaitsOn;
use crate::net::link::Link;
use crate::net::listening::Entrance;

/// How long accepting rests when descriptors or memory have run out, or all is refused.
/// Connections wait in the backlog.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// For how long one with more than its share lets other processes accept first. (One of them that
/// is held does not hold the connection for longer.)
const OTHERS_FIRST: Duration = Duration::from_millis(1);
/// Connections accepted in one go before other tasks have their turn.
const BURST_MAX: u32 = 64;

/// Who accepts connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acceptor {
    /// The workers themselves, for TCP each from a listening socket of its own (`SO_REUSEPORT`).
    #[default]
    PerWorker,
    /// One thread that does nothing else, and hands connections over.
    Dedicated,
}

impl Acceptor {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::PerWorker, Self::Dedicated];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 2] = ["per-worker", "dedicated"];

    /// What a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Who accepts from a listener.
#[derive(Clone, Copy)]
struct Me {
    /// The place that belongs to the running thread, if connections may stay here.
    place: Option<usize>,
    /// Whether connections past this worker's share go to others. They are ordinary descriptors
    /// then, so it is not done where each has a socket of its own, among which the kernel spreads.
    hands_over: bool,
}

/// Accepts from one listener until it is stopped, or the server drains.
///
/// - `me`: the place that belongs to the running thread, if connections may stay here.
/// - `door`: the socket as the watch sees it, where there is one.
async fn accept_all(
    listener: Listener,
    socket: Arc<OwnedFd>,
    me: Option<usize>,
    entrance: Arc<Entrance>,
    door: Option<Arc<Door>>,
    _open: Open,
) {
    let entrance = &entrance;
    let me = Me { place: me, hands_over: !socket_reuseport(&socket).unwrap_or(false) };
    poll_fn(|context| {
        entrance.join(context.waker());
        Poll::Ready(())
    })
    .await;
    let mut burst = 0;
    while let Some(accepted) = next(&listener, me, entrance).await {
        match accepted {
            Ok(accepted) => {
                place(accepted, me, entrance).await;
                if here::with(|here| here.crew.pauses.has_paced_accepts()) {
                    rest(entrance).await;
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
    if door.is_some() {
        drop(door);
        here::with(|here| here.crew.tell_watch());
    }
    close::close(listener, socket, me, entrance).await;
}

/// Counts an acceptor for as long as it may bring connections.
struct Open(Arc<Crew>);

impl Open {
    fn new(crew: &Arc<Crew>) -> Self {
        crew.acceptors.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(crew))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.acceptors.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The next connection, once there is room for it. `None` when that was the last.
async fn next(listener: &Listener, me: Me, entrance: &Entrance) -> Option<io::Result<Accepted>> {
    let serves = |here: &Here| serves(here, entrance);
    if here::with(|here| serves(here) && choose(here, me).is_none()) {
        here::with(|here| count(&here.crew.counts.accept_paused));
        wait_here(|here| (!serves(here) || choose(here, me).is_some()).then_some(())).await;
    }
    loop {
        if here::with(|here| here.crew.is_over_share()) {
            sleep(OTHERS_FIRST).await;
        }
        let mut has_waited = false;
        let attempt = poll_fn(|_| {
            here::with(|here| {
                if !serves(here) {
                    return Poll::Ready(Some(None));
                }
                if has_waited && here.crew.shared_load.get().is_some() {
                    // One has come; whose it is, is to be looked at first.
                    return Poll::Ready(None);
                }
                has_waited = true;
                let room = choose_room(here, me, entrance);
                here.waits_on(WaitsOn::Socket);
                let accepted = here.reactor.borrow_mut().accept(listener, room, here.token());
                accepted.map(|accepted| Some(Some(accepted)))
            })
        });
        if let Some(accepted) = attempt.await {
            return accepted;
        }
    }
}

/// Whether connections are still accepted.
fn serves(here: &Here, entrance: &Entrance) -> bool {
    here.phase() == Phase::Serving && entrance.is_open()
}

/// Rests after a connection for as long as the pace of accepting says. Not once no more are
/// accepted: a drain does not wait for it.
async fn rest(entrance: &Entrance) {
    let rest_ms = here::with(|here| {
        let now_ms = here.reactor.borrow().clock().read_ms();
        here.crew.pauses.rest_after_accept_ms(now_ms)
    });
    let mut sleep = sleep(Duration::from_millis(rest_ms));
    poll_fn(|context| {
        if rest_ms == 0 || here::with(|here| !serves(here, entrance)) {
            return Poll::Ready(());
        }
        Pin::new(&mut sleep).poll(context)
    })
    .await;
}

/// How many connections one request to the kernel may bring into this reactor.
fn choose_room(here: &Here, me: Me, entrance: &Entrance) -> usize {
    // A connection that will go elsewhere must not come into this reactor's table.
    let stays = !entrance.descriptors && me.place.is_some() && choose(here, me) == me.place;
    let room = me.place.filter(|_| stays).map_or(0, |me| here.crew.places.room_on(me));
    room.min(here.crew.pauses.accept_room_max)
}

fn choose(here: &Here, me: Me) -> Option<usize> {
    here.crew.places.choose(me.place, here.crew.placement, me.hands_over)
}

/// Waits for `done`, looking whenever a place is freed or the phase changes.
async fn wait_here<T>(mut done: impl FnMut(&Here) -> Option<T>) -> T {
    let crew = here::with(|here| here.crew.clone());
    let look = || {
        let found = here::with(&mut done);
        if found.is_none()
            && let Some(watch) = crew.watch.get()
        {
            watch.tell_full();
        }
        found
    };
    crew.places.wait_for(look).await
}

/// Gives a connection its place and its task. It was accepted, so it is kept while all are full.
async fn place(accepted: Accepted, me: Me, entrance: &Arc<Entrance>) {
    here::with(|here| count(&here.crew.counts.accepted));
    match (accepted, me) {
        (Accepted::Here(io), me) => place_own(io, me, entrance).await,
        (Accepted::Away(connection), me) => {
            let Some(worker) = wait_for_place(|here| choose(here, me)).await else { return };
            if Some(worker) == me.place {
                here::with(|here| take_in(here, connection, worker, entrance));
            } else {
                hand_over(worker, connection, entrance);
            }
        }
    }
}

/// Places a connection that is in this worker's reactor already. Should the last place here have
/// gone to another one meanwhile, it moves to a worker that has room.
async fn place_own(io: Io, me: Me, entrance: &Arc<Entrance>) {
    let worker = wait_for_place(|here| choose(here, me)).await;
    match worker {
        None => {}
        Some(worker) if Some(worker) == me.place => {
            return here::with(|here| serve(here, io, worker, entrance));
        }
        Some(worker) => {
            let exported =
                poll_fn(|_| here::with(|here| here.reactor.borrow_mut().export(&io, here.token())));
            if let Ok(connection) = exported.await {
                hand_over(worker, connection, entrance);
            } else {
                // It has to stay; so it waits until there is room here.
                here::with(|here| {
                    here.crew.places.release(worker);
                    if here.crew.watch.get().is_some() {
                        // It may have been the last thing that one waited for.
                        here.crew.posts[worker].wake_all();
                    }
                });
                if let Some(me) = wait_for_place(|_| me.place).await {
                    return here::with(|here| serve(here, io, me, entrance));
                }
            }
        }
    }
    here::with(|here| here.reactor.borrow_mut().close(io));
}

/// Gives a connection to the worker whose place it has.
fn hand_over(worker: usize, connection: OwnedFd, entrance: &Arc<Entrance>) {
    here::with(|here| {
        let incoming = Arc::clone(entrance) as Arc<dyn Incoming>;
        here.crew.posts[worker].arrive(Arrival::Connection(connection, incoming));
        if let Some(watch) = here.crew.watch.get() {
            watch.tell_arrival();
        }
    });
}

/// Takes a place on the worker that `wanted` names. `None` when the server cuts connections.
async fn wait_for_place(mut wanted: impl FnMut(&Here) -> Option<usize>) -> Option<usize> {
    wait_here(|here| {
        if here.phase() >= Phase::Cutting {
            return Some(None);
        }
        wanted(here).filter(|&worker| here.crew.places.take(worker)).map(Some)
    })
    .await
}

impl Incoming for Entrance {
    fn serve(&self, connection: OwnedFd, place: usize) {
        here::with(|here| take_in(here, connection, place, self));
    }

    fn accept_from(self: Arc<Self>, socket: Arc<OwnedFd>, place: Option<usize>) {
        here::with(|here| {
            if start(here, vec![socket], place, &self).is_err() {
                count(&here.crew.counts.accept_exhausted);
            }
        });
    }
}

/// Takes in a connection whose place is taken.
fn take_in(here: &Here, connection: OwnedFd, place: usize, entrance: &Entrance) {
    let adopted = here.reactor.borrow_mut().adopt(connection);
    if let Ok(io) = adopted {
        serve(here, io, place, entrance);
    } else {
        count(&here.crew.counts.accept_exhausted);
        here.crew.places.release(place);
    }
}

fn serve(here: &Here, io: Io, place: usize, entrance: &Entrance) {
    let place = u16::try_from(place).expect("workers are few");
    here.desk().add_connection();
    here.crew.publish_load();
    let task = (entrance.serve)(Link::new(io, Some(place)));
    // Without a slot the task is dropped, which closes the connection and frees its place.
    if here.insert(task).is_err() {
        count(&here.crew.counts.accept_exhausted);
    }
}

/// What a failed accept means for the next one.
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

    /// Whether it may succeed once something is closed.
    fn is_shortage(self) -> bool {
        self == Self::Exhausted
    }

    /// Whether accepting rests: what waits in the backlog would fail as fast as it can be tried.
    fn rests(self) -> bool {
        self != Self::ThisOne
    }
}

/// Counts a failed accept, and rests if the next one would fail too.
async fn after_error(error: &io::Error) {
    let failure = AcceptFailure::of(error);
    here::with(|here| {
        let counts = &here.crew.counts;
        count(if failure.is_shortage() { &counts.accept_exhausted } else { &counts.accept_failed });
    });
    if failure.rests() {
        sleep(EXHAUSTED_PAUSE).await;
    }
}

/// Starts accepting on the running thread.
///
/// # Errors
/// No task slot is left, or the process is out of descriptors.
pub(crate) fn start(
    here: &Here,
    sockets: Vec<Arc<OwnedFd>>,
    me: Option<usize>,
    entrance: &Arc<Entrance>,
) -> io::Result<()> {
    for socket in sockets {
        let door = match here.crew.watch.get() {
            // Where tasks are shared, nobody has a line of its own.
            Some(watch) if !here.is_shared() => {
                let incoming = Arc::clone(entrance) as Arc<dyn Incoming>;
                let door = Arc::new(Door { socket: Arc::clone(&socket), incoming, worker: me });
                watch.open_door(&door)?;
                Some(door)
            }
            _ => None,
        };
        let listener = here.reactor.borrow_mut().listen(Arc::clone(&socket), here.crew.backlog)?;
        let open = Open::new(&here.crew);
        let entrance = Arc::clone(entrance);
        here.insert(Box::pin(accept_all(listener, socket, me, entrance, door, open)))
            .map_err(|_| io::Error::other("no task slot is left to accept in"))?;
    }
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
            assert_eq!((found, found.rests()), (failure, failure != ThisOne), "{errno:?}");
        }
    }
}
