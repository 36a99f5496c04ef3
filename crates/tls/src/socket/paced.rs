//! Operations of a socket with a pace. Every pause is a timer of the connection's own task; no
//! thread waits.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};

use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, Rate, RecvBuf, now};

use super::Socket;
use crate::pacer::{Grant, Pacer};
use crate::rates::{ResponsePace, after};

impl Socket {
    /// Sets the pace from now on.
    pub fn set_pacer(&mut self, pacer: Box<Pacer>) {
        if pacer.has_read_pace() {
            // Unread bytes then stay in the kernel, whose window slows the peer down: a pace that
            // only delayed the processing would buffer without bound.
            self.receive_on_demand();
        }
        self.more.get_or_insert_default().pacer = Some(pacer);
    }

    /// Returns whether there is a pace.
    pub fn is_paced(&self) -> bool {
        self.pacer().is_some()
    }

    /// Returns when a response may begin whose request was read at `read_ms`, for a loop that holds
    /// it back itself: 0 is at once.
    pub fn first_byte_at_ms(&self, read_ms: u64) -> u64 {
        self.pacer().map_or(0, |pacer| after(read_ms, pacer.first_byte_delay_ms()))
    }

    /// Takes bytes off the connection's pace, for a loop that waits itself.
    pub fn grant(&mut self, now_ms: u64, wanted: u64) -> Grant {
        let free = Grant { bytes: wanted, at_ms: now_ms };
        self.pacer_mut().map_or(free, |pacer| pacer.grant(now_ms, wanted))
    }

    /// Begins the response to a request that was read at `read_ms`.
    pub fn begin_response(&mut self, read_ms: u64) {
        if let Some(pacer) = self.pacer_mut() {
            pacer.begin_response(read_ms);
        }
    }

    /// Counts a request. The error is in how many milliseconds the client may retry.
    ///
    /// # Errors
    /// The client's bucket of requests is empty.
    pub fn admit(&mut self, now_ms: u64) -> Result<(), u64> {
        self.pacer_mut().map_or(Ok(()), |pacer| pacer.admit(now_ms))
    }

    /// Begins a response of a route with a pace of its own.
    ///
    /// - `read_ms`: when its request was read.
    pub fn begin_route(&mut self, pace: &Arc<ResponsePace>, read_ms: u64) {
        self.own_pacer().begin_route(pace, read_ms);
    }

    /// Ends the response of such a route.
    pub fn end_route(&mut self) {
        if let Some(pacer) = self.pacer_mut() {
            pacer.end_route();
        }
    }

    /// Sets the pace of the body that follows.
    ///
    /// - `received`: bytes of it that have arrived.
    pub fn begin_route_read(&mut self, rate: Rate, received: u64) {
        self.own_pacer().begin_route_read(rate, now().mono_ms, received);
        self.receive_on_demand();
    }

    /// Receives at the connection's pace. The deadline moves by the pauses of the pace.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn receive(&mut self, idle: bool) -> Result<RecvBuf, ConnectionError> {
        self.receive_by(idle, Connection::poll_recv).await
    }

    /// [`Socket::receive`] for a loop whose idle connections may give way.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub async fn receive_request(&mut self, idle: bool) -> Result<RecvBuf, ConnectionError> {
        self.receive_by(idle, Connection::poll_recv_or_give_way).await
    }

    async fn receive_by(
        &mut self,
        idle: bool,
        poll: impl Fn(&mut Connection, bool) -> Poll<Result<RecvBuf, ConnectionError>>,
    ) -> Result<RecvBuf, ConnectionError> {
        let due_ms = self.deadline_ms();
        let paused_ms = self.await_reading(idle).await?;
        // The pause used the same timer, so the peer's deadline is set again, later by the pause.
        self.set_deadline(due_ms.saturating_add(paused_ms));
        let piece = poll_fn(|_| {
            let received = poll(&mut self.connection, idle);
            if self.is_sealed() && (received.is_ready() || self.has_closed()) {
                return self.open(received, idle, |connection| poll(connection, idle));
            }
            received
        });
        let piece = piece.await?;
        self.charge_read(&piece);
        Ok(piece)
    }

    /// Waits until the response may begin and some of the wanted bytes may be sent. Returns how
    /// many; without a pace, all of them.
    ///
    /// # Errors
    /// The server ends.
    pub async fn await_turn(&mut self, wanted: u64) -> Result<u64, ConnectionError> {
        let Some(pacer) = self.pacer_mut() else { return Ok(wanted) };
        let first_byte_at_ms = pacer.take_first_byte_at_ms();
        self.pause(first_byte_at_ms, false).await?;
        let Some(pacer) = self.pacer_mut() else { return Ok(wanted) };
        let grant = pacer.grant(now().mono_ms, wanted);
        self.pause(grant.at_ms, false).await?;
        Ok(grant.bytes)
    }

    /// Waits until something may be received. Returns the wait in milliseconds.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    ///
    /// # Errors
    /// The server ends.
    pub async fn await_reading(&mut self, idle: bool) -> Result<u64, ConnectionError> {
        let Some(pacer) = self.pacer() else { return Ok(0) };
        let (at_ms, began_ms) = (pacer.read_at_ms(), now().mono_ms);
        self.pause(at_ms, idle).await?;
        Ok(now().mono_ms - began_ms)
    }

    /// Returns ready if something may be received now; else the task is woken at that time.
    ///
    /// # Errors
    /// The server ends.
    pub fn poll_reading(&mut self) -> Poll<Result<(), ConnectionError>> {
        let at_ms = self.pacer().map_or(0, Pacer::read_at_ms);
        self.poll_pause(at_ms, false)
    }

    /// Returns the time until which nothing is received; `u64::MAX` if receiving is possible now.
    pub fn read_pause_ms(&self) -> u64 {
        let Some(pacer) = self.pacer() else { return u64::MAX };
        let at_ms = pacer.read_at_ms();
        if at_ms > 0 && now().mono_ms < at_ms { at_ms } else { u64::MAX }
    }

    /// Counts received bytes. Returns the pause that follows, by which the peer's time is to be
    /// extended.
    pub fn charge_read(&mut self, piece: &RecvBuf) -> u64 {
        let (now_ms, bytes) = (self.now().mono_ms, piece.bytes().len() as u64);
        self.pacer_mut().map_or(0, |pacer| pacer.charge_read(now_ms, bytes))
    }

    /// Returns how slow the peer may be during one step. Bytes that it took in earlier steps extend
    /// the silence that it may keep.
    pub fn step_patience(&self, patience: ProgressTimeout, began_ms: u64) -> ProgressTimeout {
        let Some(pacer) = self.pacer() else { return patience };
        let until_ms = pacer.send_deadline_ms(patience, began_ms);
        ProgressTimeout { silence_ms: until_ms.saturating_sub(began_ms), ..patience }
    }

    /// Notes that the peer has taken the bytes of a step.
    pub fn note_sent(&mut self, began_ms: u64, bytes: u64) {
        if let Some(pacer) = self.pacer_mut() {
            pacer.note_sent(now().mono_ms - began_ms, bytes);
        }
    }

    /// Returns the pacer of this socket, and creates one without limits if there is none.
    fn own_pacer(&mut self) -> &mut Pacer {
        self.more.get_or_insert_default().pacer.get_or_insert_default()
    }

    fn pacer(&self) -> Option<&Pacer> {
        self.more.as_ref()?.pacer.as_deref()
    }

    fn pacer_mut(&mut self) -> Option<&mut Pacer> {
        self.more.as_mut()?.pacer.as_deref_mut()
    }

    /// Waits until `until_ms`, or fails once the server ends.
    async fn pause(&mut self, until_ms: u64, idle: bool) -> Result<(), ConnectionError> {
        poll_fn(|_| self.poll_pause(until_ms, idle)).await
    }

    fn poll_pause(&mut self, until_ms: u64, idle: bool) -> Poll<Result<(), ConnectionError>> {
        // The deadline is the timer: a paused connection has no other operation that could need it.
        while now().mono_ms < until_ms {
            self.set_deadline(until_ms);
            match ready!(self.poll_deadline(idle)) {
                ConnectionError::TimedOut => {}
                error => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}
