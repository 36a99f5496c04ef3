//! Connections of tasks: deadlines, receiving, sending, files.

mod files;
mod receiving;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::task::Poll;
use std::time::Duration;

use gustnado_reactor::{
    Endpoint, Interest, Io, Outbound, Reactor, SendBuf, SocketAddrs, Unsent, connect_socket,
};
use rustix::net::sockopt;

use crate::exec::executor::context::{self, Alarm, WorkerContext};
use crate::exec::timers::time::Now;
use crate::exec::waits::WaitsOn;
use crate::exec::worker::evictions::{EvictionAnswer, EvictionQuestion};
use crate::exec::worker::workers_shared::count;
use crate::net::connection_error::ConnectionError;
use crate::net::connection_id::ConnectionId;
use crate::net::idleness::{Idleness, disturbance};
use crate::net::progress_timeout::ProgressTimeout;
use crate::net::send_watch::SendWatch;

/// A connection of the running task. Its deadline bounds every operation; when the server ends,
/// operations fail with [`ConnectionError::Ending`].
///
/// Everything on it happens in one task. Dropping it closes the socket.
#[derive(Debug)]
pub struct Connection {
    pub(crate) io: Io,
    pub(crate) out: Option<Box<SendBuf>>,
    sending: bool,
    alarm: Alarm,
    /// The time of the last operation's turn.
    now: Now,
    /// The worker whose slot it has.
    place: u16,
}

/// The mark of a connection that has no slot: an outgoing one.
const NO_PLACE: u16 = u16::MAX;

impl Connection {
    pub(crate) fn new(io: Io, place: Option<u16>) -> Self {
        let place = place.unwrap_or(NO_PLACE);
        Self { io, out: None, sending: false, alarm: Alarm::unset(), now: crate::now(), place }
    }

    /// Connects to `to` within `timeout_ms`.
    ///
    /// # Errors
    /// [`ConnectionError`]: refused, unreachable, too late.
    pub async fn connect(
        to: &Endpoint,
        outbound: &Outbound,
        timeout_ms: u64,
    ) -> Result<Self, ConnectionError> {
        let socket: OwnedFd = connect_socket(to, outbound).map_err(ConnectionError::Broken)?;
        let io = context::with(|ctx| ctx.reactor.borrow_mut().adopt(socket));
        let mut connection = Self::new(io.map_err(ConnectionError::Broken)?, None);
        connection.set_deadline(connection.now.mono_ms + timeout_ms);
        poll_fn(|_| {
            connection.attempt(WaitsOn::SocketWrite, Idleness::Busy, |reactor, io, _, ctx| {
                reactor.ready(io, Interest::Write, ctx.token()).map(|()| reactor.connected(io))
            })
        })
        .await?;
        Ok(connection)
    }

    /// Moves a fresh connection into the ring's own table, where there is one with room: then it
    /// holds no descriptor of this process, which so may have more connections than descriptors.
    /// Under epoll, and on a worker that accepts connections, it stays as it is.
    ///
    /// # Errors
    /// `ResourceBusy`: something is being sent or received. It stays as it is.
    pub fn make_direct(&mut self) -> io::Result<()> {
        context::with(|ctx| ctx.reactor.borrow_mut().make_direct(&mut self.io))
    }

    /// Takes in a socket that is connected and does not block, for the running task.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn adopt(socket: OwnedFd) -> io::Result<Self> {
        let io = context::with(|ctx| ctx.reactor.borrow_mut().adopt(socket))?;
        Ok(Self::new(io, None))
    }

    /// Takes the connection out, for an owner that cannot be taken apart. What is left is closed,
    /// and every operation on it panics.
    #[must_use = "dropping it closes the connection"]
    pub fn take(&mut self) -> Self {
        Self {
            io: self.io.take(),
            out: self.out.take(),
            sending: mem::take(&mut self.sending),
            alarm: mem::replace(&mut self.alarm, Alarm::unset()),
            now: self.now,
            place: mem::replace(&mut self.place, NO_PLACE),
        }
    }

    /// Whether [`Connection::take`] has not taken it out.
    pub fn is_open(&self) -> bool {
        !self.io.is_taken()
    }

    /// The time as of the last operation on this connection.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Reads the time again: for a step that no operation on this connection came just before.
    pub fn refresh_now(&mut self) {
        self.now = crate::now();
    }

    /// Sets the time, in milliseconds of [`crate::Now::mono_ms`], past which operations fail.
    pub fn set_deadline(&mut self, at_ms: u64) {
        self.alarm.at_ms = at_ms;
    }

    /// Returns the time past which operations fail.
    pub fn deadline_ms(&self) -> u64 {
        self.alarm.at_ms
    }

    /// An empty buffer to fill and [`Connection::send`].
    pub fn outgoing() -> Box<SendBuf> {
        context::with(|ctx| ctx.reactor.borrow_mut().outgoing(false))
    }

    /// The same for a whole step of a file that has to be read.
    pub fn outgoing_for_step() -> Box<SendBuf> {
        context::with(|ctx| ctx.reactor.borrow_mut().outgoing(true))
    }

    /// Gives a buffer back that was not sent.
    pub fn put_back(out: Box<SendBuf>) {
        context::with(|ctx| ctx.reactor.borrow_mut().put_back(out));
    }

    /// Takes over bytes to send; [`Connection::poll_sent`] sends them.
    pub fn start_send(&mut self, out: Box<SendBuf>) {
        debug_assert!(self.out.is_none(), "one send at a time");
        self.out = Some(out);
        self.sending = true;
    }

    /// Takes back what [`Connection::start_send`] took over, if nothing of it was sent yet:
    /// to send it in smaller parts, or together with what it [waits for](SendBuf::wait_for_more).
    pub fn take_unsent(&mut self) -> Option<Box<SendBuf>> {
        let mut out = self.take_to_seal()?;
        out.expect_nothing();
        Some(out)
    }

    /// The same for what leaves in another form at once: what was said of what follows still holds.
    pub fn take_to_seal(&mut self) -> Option<Box<SendBuf>> {
        let out = self.out.take()?;
        self.sending = false;
        Some(out)
    }

    /// Continues what [`Connection::start_send`] took over and [`Connection::poll_sent`] has failed
    /// to send: to send something behind it, or to fail again.
    pub fn resume_send(&mut self) {
        self.sending = true;
    }

    /// Returns whether something that [`Connection::start_send`] took over was not sent yet.
    pub fn is_sending(&self) -> bool {
        self.sending
    }

    /// Sends what [`Connection::start_send`] took over.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_sent(&mut self) -> Poll<Result<(), ConnectionError>> {
        let sent = self.attempt(WaitsOn::SocketWrite, Idleness::Busy, |reactor, io, out, ctx| {
            let waits = ctx.defer_send() || !ctx.may_operate();
            if waits { Poll::Pending } else { reactor.send(io, out, ctx.token()) }
        });
        self.sending = sent.is_pending();
        sent
    }

    /// Sends all bytes of `out`.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn send(&mut self, out: Box<SendBuf>) -> Result<(), ConnectionError> {
        self.start_send(out);
        poll_fn(|_| self.poll_sent()).await
    }

    /// Returns the deadline has come during a send: looks at how far it has come, and sets the next
    /// deadline. Returns false if the peer has had its time.
    ///
    /// - `of_file`: what of a file was and is to be sent, if it is one.
    pub fn look_at_send(
        &mut self,
        watch: &mut SendWatch,
        patience: ProgressTimeout,
        of_file: Option<(u64, u64)>,
    ) -> bool {
        let mut unsent = self.unsent();
        if let Some((total, left)) = of_file {
            unsent = Unsent { total, here: left, ..unsent };
        }
        let next = watch.look(patience, self.now().mono_ms, unsent);
        if let Some(next_ms) = next {
            self.set_deadline(next_ms);
        }
        next.is_some()
    }

    /// Returns whether bytes are held back that [wait for more](SendBuf::wait_for_more).
    pub fn holds_back(&self) -> bool {
        !self.sending && self.out.is_some()
    }

    /// Returns whether what is to be sent [waits for more](SendBuf::wait_for_more).
    pub fn waits_for_more(&self) -> bool {
        self.out.as_ref().is_some_and(|out| out.waits_for_more())
    }

    /// Returns how many bytes of a send that was given up the kernel has not taken; 0 where the
    /// peer is gone and that is not known.
    pub fn unsent_bytes(&self) -> u64 {
        self.unsent().here
    }

    fn unsent(&self) -> Unsent {
        context::with(|ctx| {
            ctx.ask_reactor(|reactor, woken| reactor.unsent(&self.io, self.out.as_deref(), woken))
        })
    }

    /// Waits for the deadline, or the server's end, and nothing else.
    ///
    /// - `idle`: as for [`Connection::poll_recv`].
    pub fn poll_deadline(&mut self, idle: bool) -> Poll<ConnectionError> {
        let never = self.attempt(WaitsOn::Socket, Idleness::of(idle), |_, _, _, _| {
            Poll::<io::Result<Infallible>>::Pending
        });
        never.map(|ended| match ended {
            Err(error) => error,
            Ok(never) => match never {},
        })
    }

    /// Returns what names this connection for those who run in its task without holding it.
    #[inline]
    pub fn id(&self) -> ConnectionId {
        ConnectionId::of(&self.io)
    }

    /// Returns where the peer is; a Unix socket's peer mostly has no name, which is an empty path.
    ///
    /// Asking costs one to four calls to the kernel the first time, and none after that.
    ///
    /// # Errors
    /// `NotConnected`: the peer has reset the connection. `Unsupported`: `io_uring` before Linux
    /// 6.8, where the sockets that it has accepted cannot be asked. `EMFILE`: no descriptor is left
    /// to ask with.
    pub fn peer(&self) -> io::Result<Endpoint> {
        self.id().addrs()?.peer.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// As [`Connection::peer`], but for `NotConnected`.
    pub fn local(&self) -> io::Result<Endpoint> {
        Ok(self.id().addrs()?.local)
    }

    /// Returns where the peer is without keeping it, for one that may never be asked for again.
    ///
    /// # Errors
    /// As [`Connection::peer`].
    pub fn peer_unkept(&self) -> io::Result<Endpoint> {
        context::with(|ctx| ctx.ask_reactor(|reactor, woken| reactor.peer_unkept(&self.io, woken)))
    }

    /// Says after [`ConnectionError::GiveWay`] that this connection may be closed. Returns whether
    /// it is to be: then no other one is in its place.
    ///
    /// - `client`: returns a number of whose it is. The client with most gives way first.
    pub fn give_way(&self, client: impl FnOnce() -> Option<u64>) -> bool {
        let (answer, is_chosen) = match context::with(|ctx| ctx.eviction_answer.get()) {
            EvictionAnswer::Waiting(EvictionQuestion::DoSo, _) => (EvictionAnswer::GivesWay, true),
            EvictionAnswer::Waiting(EvictionQuestion::CouldIt, deadline_ms) => {
                (EvictionAnswer::Candidate { deadline_ms, client: client() }, false)
            }
            _ => return false,
        };
        context::with(|ctx| ctx.eviction_answer.set(answer));
        is_chosen
    }

    /// Counts this connection as closed to make room for others.
    pub fn count_evicted(&self) {
        context::with(|ctx| count(&ctx.shared.counts.evicted));
    }

    /// Overrides the peer and local address, e.g. from a PROXY header.
    pub fn override_addrs(&self, addrs: SocketAddrs) {
        context::with(|ctx| ctx.reactor.borrow_mut().override_addrs(&self.io, addrs));
    }

    /// Resets the connection when it is dropped, so that the peer learns that not all of its bytes
    /// were read, or not all of ours sent. With `io_uring` before Linux 6.8 it may learn nothing.
    pub fn reset_on_drop(&self) {
        context::with(|ctx| {
            ctx.ask_reactor(|reactor, woken| {
                // A peer that is gone already needs no telling.
                let _ = reactor.with_descriptor(&self.io, woken, |descriptor| {
                    Ok(sockopt::set_socket_linger(descriptor, Some(Duration::ZERO))?)
                });
            });
        });
    }

    /// Bounds what the kernel takes to be sent beyond what is under way (`TCP_NOTSENT_LOWAT`). A
    /// socket that has no such bound stays as it is.
    pub fn set_unsent_max(&self, bytes: usize) {
        context::with(|ctx| {
            ctx.ask_reactor(|reactor, woken| {
                let _ = reactor.set_unsent_max(&self.io, bytes, woken);
            });
        });
    }

    /// Tells the peer that nothing more will come.
    pub fn shutdown_write(&mut self) {
        context::with(|ctx| ctx.reactor.borrow_mut().shutdown_write(&self.io));
    }

    /// Starts an operation or asks for its completion; while there is none, looks at the server's
    /// phase and at the deadline.
    fn attempt<T>(
        &mut self,
        on: WaitsOn,
        idle: Idleness,
        operation: impl FnOnce(
            &mut Reactor,
            &Io,
            &mut Option<Box<SendBuf>>,
            &WorkerContext,
        ) -> Poll<io::Result<T>>,
    ) -> Poll<Result<T, ConnectionError>> {
        context::with(|ctx| {
            let mut reactor = ctx.reactor.borrow_mut();
            self.now = Now::of(&reactor);
            match operation(&mut reactor, &self.io, &mut self.out, ctx) {
                Poll::Ready(Ok(done)) => return Poll::Ready(Ok(done)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(ConnectionError::Broken(error))),
                Poll::Pending => ctx.waits_on(on),
            }
            drop(reactor);
            if !ctx.shared.is_undisturbed()
                && let Some(error) = disturbance(ctx, (on, idle), &mut self.alarm)
            {
                return Poll::Ready(Err(error));
            }
            self.alarm.poll_at(self.now.mono_ms, ctx).map(|()| Err(ConnectionError::TimedOut))
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.io.is_taken() {
            return;
        }
        context::try_with(|ctx| {
            self.alarm.disarm(ctx);
            ctx.reactor.borrow_mut().close(self.io.take());
            if self.place != NO_PLACE {
                ctx.metrics().remove_connection();
                ctx.shared.connection_slots.release(usize::from(self.place));
                ctx.shared.publish_load();
            }
        });
    }
}
