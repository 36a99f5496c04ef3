//! Connections of HTTP/2 by their origins.
//!
//! Each worker has its own, as with HTTP/1: a connection's driver is a task of the worker. While
//! one request connects, others for the same origin wait for it: it may become the connection of
//! them all.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use gustnado_tasks::Lock;

use super::connection::Http2Connection;
use crate::ClientOptions;
use crate::connect::RequestOrigin;

/// Origins that have chosen HTTP/1.1 and are remembered for that.
const OLD_MAX: usize = 64;

/// The connections of one client.
pub(crate) struct Http2Pool {
    places: Lock<HashMap<ThreadId, Vec<PoolPlace>>>,
    /// Origins that speak HTTP/1.1 only, as they have said by ALPN.
    old: Lock<VecDeque<Arc<RequestOrigin>>>,
    /// Connections for one origin, on each worker.
    per_host_max: usize,
    /// No connection is kept after its request.
    keeps_none: bool,
}

/// A connection, or one in the making.
struct PoolPlace {
    origin: Arc<RequestOrigin>,
    state: PlaceState,
}

enum PlaceState {
    Connecting(Arc<Connecting>),
    Connected(Weak<Http2Connection>),
}

/// A connection in the making.
#[derive(Default)]
pub(crate) struct Connecting(Lock<ConnectingState>);

#[derive(Default)]
struct ConnectingState {
    is_over: bool,
    waiting: Vec<Waker>,
}

/// Where a request goes.
pub(crate) enum Place<'p> {
    /// To a connection.
    On(Arc<Http2Connection>),
    /// Nowhere, until another request has connected.
    Wait(Arc<Connecting>),
    /// To a connection that it makes.
    Connect(ConnectGuard<'p>),
}

/// Says to others what has become of a connection in the making, also if its request is dropped.
pub(crate) struct ConnectGuard<'p> {
    pool: &'p Http2Pool,
    thread: ThreadId,
    connecting: Arc<Connecting>,
    origin: Arc<RequestOrigin>,
}

impl Http2Pool {
    pub(crate) fn new(options: &ClientOptions) -> Self {
        Self {
            places: Lock::default(),
            old: Lock::default(),
            per_host_max: options.kept_per_host_max.max(1),
            keeps_none: options.kept_per_host_max == 0 || options.kept_max == 0,
        }
    }

    /// Returns whether an origin has chosen HTTP/1.1 before.
    pub(crate) fn is_old(&self, origin: &RequestOrigin) -> bool {
        self.old.lock().iter().any(|known| **known == *origin)
    }

    /// Finds a place for a request: a connection with room, else a new one, else the one that has
    /// room next.
    pub(crate) fn find(&self, origin: &Arc<RequestOrigin>) -> Place<'_> {
        let thread = thread::current().id();
        let mut places = self.places.lock();
        let places = places.entry(thread).or_default();
        places.retain(PoolPlace::is_alive);
        let (mut count, mut full) = (0, None);
        for place in places.iter().filter(|place| *place.origin == **origin) {
            match &place.state {
                PlaceState::Connecting(connecting) => return Place::Wait(Arc::clone(connecting)),
                PlaceState::Connected(connection) => {
                    let Some(connection) = connection.upgrade() else { continue };
                    match connection.has_room() {
                        Some(true) => return Place::On(connection),
                        Some(false) => {
                            count += 1;
                            full.get_or_insert(connection);
                        }
                        None => {}
                    }
                }
            }
        }
        if let Some(full) = full
            && count >= self.per_host_max
        {
            return Place::On(full);
        }
        let connecting = Arc::<Connecting>::default();
        let state = PlaceState::Connecting(Arc::clone(&connecting));
        places.push(PoolPlace { origin: Arc::clone(origin), state });
        Place::Connect(ConnectGuard { pool: self, thread, connecting, origin: Arc::clone(origin) })
    }

    /// Returns how many connections without a request the running thread keeps.
    pub(crate) fn idle_here(&self) -> usize {
        let places = self.places.lock();
        let here = places.get(&thread::current().id());
        let idle = |place: &&PoolPlace| match &place.state {
            PlaceState::Connecting(_) => false,
            PlaceState::Connected(of) => of.upgrade().is_some_and(|of| of.is_idle()),
        };
        here.map_or(0, |places| places.iter().filter(idle).count())
    }

    /// Takes a connection to an origin that had chosen HTTP/1.1 before: others may use it from now
    /// on.
    pub(crate) fn adopt(&self, origin: &Arc<RequestOrigin>, connection: &Arc<Http2Connection>) {
        self.old.lock().retain(|known| **known != **origin);
        if self.keeps_none {
            return;
        }
        let place = PoolPlace {
            origin: Arc::clone(origin),
            state: PlaceState::Connected(Arc::downgrade(connection)),
        };
        self.places.lock().entry(thread::current().id()).or_default().push(place);
    }

    fn note_old(&self, origin: &Arc<RequestOrigin>) {
        let mut old = self.old.lock();
        if old.iter().any(|known| **known == **origin) {
            return;
        }
        if old.len() == OLD_MAX {
            old.pop_front();
        }
        old.push_back(Arc::clone(origin));
    }
}

impl Drop for Http2Pool {
    fn drop(&mut self) {
        // Their drivers close them: this may be any thread.
        for place in self.places.lock().values().flatten() {
            if let PlaceState::Connected(connection) = &place.state
                && let Some(connection) = connection.upgrade()
            {
                connection.leave();
            }
        }
    }
}

impl PoolPlace {
    fn is_alive(&self) -> bool {
        match &self.state {
            PlaceState::Connecting(_) => true,
            PlaceState::Connected(connection) => {
                connection.upgrade().is_some_and(|connection| connection.has_room().is_some())
            }
        }
    }
}

impl Connecting {
    /// Waits until it is known what has become of the connection.
    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.is_over {
                return Poll::Ready(());
            }
            if !state.waiting.iter().any(|known| known.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn finish(&self) {
        let mut state = self.0.lock();
        state.is_over = true;
        mem::take(&mut state.waiting).into_iter().for_each(Waker::wake);
    }
}

impl ConnectGuard<'_> {
    /// The connection speaks HTTP/2: others may use it.
    pub(crate) fn connected(&self, connection: &Arc<Http2Connection>) {
        if self.pool.keeps_none {
            return;
        }
        let mut places = self.pool.places.lock();
        for place in places.get_mut(&self.thread).into_iter().flatten() {
            if self.is_of(place) {
                place.state = PlaceState::Connected(Arc::downgrade(connection));
            }
        }
    }

    /// The server has chosen HTTP/1.1.
    pub(crate) fn is_old(&self) {
        self.pool.note_old(&self.origin);
    }

    fn is_of(&self, place: &PoolPlace) -> bool {
        matches!(&place.state, PlaceState::Connecting(of) if Arc::ptr_eq(of, &self.connecting))
    }
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        if let Some(places) = self.pool.places.lock().get_mut(&self.thread) {
            places.retain(|place| !self.is_of(place));
        }
        self.connecting.finish();
    }
}
