//! Receiving: requests, bodies in large pieces, and bytes that are discarded.

use std::future::poll_fn;
use std::task::Poll;

use gustnado_reactor::{Discarded, RecvBuf};

use super::Connection;
use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;
use crate::net::connection_error::ConnectionError;
use crate::net::idleness::Idleness;

impl Connection {
    /// Receives bytes; an empty piece is the peer's end.
    ///
    /// - `idle`: nothing is owed to the peer, so the server's draining ends the wait.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.poll_recv_as(Idleness::of(idle))
    }

    /// Like [`Connection::poll_recv`], but while it is `idle`, it may fail with
    /// [`ConnectionError::GiveWay`].
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_or_give_way(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.poll_recv_as(Idleness::of_request(idle))
    }

    fn poll_recv_as(&mut self, idle: Idleness) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.attempt(WaitsOn::SocketRead, idle, |reactor, io, _, ctx| {
            if !ctx.may_operate() {
                return Poll::Pending;
            }
            let received = reactor.recv(io, ctx.token());
            if let Poll::Ready(Ok(piece)) = &received {
                ctx.charge_bytes(piece.bytes().len());
            }
            received
        })
    }

    /// Like [`Connection::poll_recv_or_give_way`], for tasks that send something before they
    /// receive again, or receive little: the send alone counts against what the task may do in one
    /// run.
    ///
    /// For one caller, in whose loop it is inlined: a second one would cost each request 130
    /// instructions.
    ///
    /// # Errors
    /// [`ConnectionError`].
    #[inline]
    pub fn poll_recv_request(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        let idle = Idleness::of_request(idle);
        self.attempt(WaitsOn::SocketRead, idle, |reactor, io, _, ctx| reactor.recv(io, ctx.token()))
    }

    /// [`Connection::poll_recv`] as a future.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn recv(&mut self, idle: bool) -> Result<RecvBuf, ConnectionError> {
        poll_fn(|_| self.poll_recv(idle)).await
    }

    /// From now on receives only when it is asked to: what the peer sends meanwhile stays in the
    /// kernel, which makes it wait. For callers that are slow to ask on purpose.
    pub fn receive_on_demand(&mut self) {
        context::with(|ctx| ctx.reactor.borrow_mut().receive_on_demand(&self.io));
    }

    /// Like [`Connection::poll_recv`], for a body that is known to be large: bytes come in a large
    /// buffer, where one is left.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_large(&mut self, idle: bool) -> Poll<Result<RecvBuf, ConnectionError>> {
        self.attempt(WaitsOn::SocketRead, Idleness::of(idle), |reactor, io, _, ctx| {
            if !ctx.may_operate() {
                return Poll::Pending;
            }
            let received = reactor.recv_large(io, ctx.token());
            if let Poll::Ready(Ok(piece)) = &received {
                ctx.charge_bytes(piece.bytes().len());
            }
            received
        })
    }

    /// Like [`Connection::poll_recv_large`], behind the bytes of a body that is read whole. `None`:
    /// they were appended to `bytes`.
    ///
    /// - `room`: for how many bytes room is made, once some are here.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_recv_onto(
        &mut self,
        idle: bool,
        bytes: &mut Vec<u8>,
        room: usize,
    ) -> Poll<Result<Option<RecvBuf>, ConnectionError>> {
        let before = bytes.len();
        self.attempt(WaitsOn::SocketRead, Idleness::of(idle), |reactor, io, _, ctx| {
            if !ctx.may_operate() {
                return Poll::Pending;
            }
            let received = reactor.recv_onto(io, (bytes, room), ctx.token());
            if let Poll::Ready(Ok(piece)) = &received {
                let apart = piece.as_ref().map_or(0, |piece| piece.bytes().len());
                ctx.charge_bytes(bytes.len() - before + apart);
            }
            received
        })
    }

    /// Discards up to `bytes_max` bytes, at least 1, without a copy where that is possible. Once
    /// under way, ask again until it is ready, or close: what is received would lack those bytes.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn poll_discard(
        &mut self,
        idle: bool,
        bytes_max: u64,
    ) -> Poll<Result<Discarded, ConnectionError>> {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        self.attempt(WaitsOn::SocketRead, Idleness::of(idle), |reactor, io, _, ctx| {
            if !ctx.may_operate() {
                return Poll::Pending;
            }
            let discarded = reactor.discard(io, bytes_max, ctx.token());
            if let Poll::Ready(Ok(Discarded::Received(piece))) = &discarded {
                ctx.charge_bytes(piece.bytes().len());
            }
            discarded
        })
    }
}
