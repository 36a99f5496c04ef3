//! A connection as its protocol sees it.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use gustnado_tasks::{ConnectionError, Endpoint};

use super::carrier::{Carrier, ReceivedBytes};
use super::handle::{HandleRequests, TransportHandle};
use super::outbox::{Outbox, WriteFlow, WriteLimits};
use super::reason::Reason;

/// A connection as its protocol sees it. Every callback borrows it; to write at other times, or
/// from elsewhere, take its [`Transport::handle`].
///
/// **Writing** is never blocking: bytes are taken into a buffer, and leave when the callback
/// returns. The buffer is bounded ([`WriteLimits`]). A writer learns that it should wait from the
/// [`WriteFlow`] that each write returns, and from `pause_producing` and `resume_producing` of its
/// protocol. What is written past the limit is not taken, and the connection is given up with
/// [`Reason::Overrun`]: a stream with a hole in it would be worse. [`Transport::room`] says how
/// much can be written.
///
/// **Reading** goes on until it is paused. On connections that were accepted it also rests while a
/// writer is to wait, so nothing more is read from a peer that sends requests and does not read
/// ([`Transport::hold_reading`]).
#[derive(Debug)]
pub struct Transport {
    /// `None` only where a test drives a protocol without one.
    carrier: Option<Carrier>,
    outbox: Outbox,
    peer: Endpoint,
    local: Endpoint,
    handle: Option<TransportHandle>,
    /// The connection's task.
    task: Waker,
    idle_ms: Option<u64>,
    /// How long a connection that is to end may take for a piece of what is pending.
    closing_ms: u64,
    ending: Option<CloseMode>,
    /// What ends the connection, if the protocol now ends it.
    cause: Option<Reason>,
    reading: ReadState,
    writing: WriteState,
    /// Boxed, as most connections have had no other protocol before.
    handed: Option<Box<HandedOver>>,
}

/// The policy of connections of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionPolicy {
    /// See [`Transport::hold_reading`].
    pub(super) hold_reading: bool,
    /// Longest time without progress while a connection that ends is written out.
    pub(super) closing_ms: u64,
}

/// What a connection brings along that another protocol has had before.
#[derive(Debug)]
pub(super) struct HandedOver {
    /// Bytes that came and were not used.
    pub(super) unread: Vec<u8>,
    /// Counts the bytes that leave.
    pub(super) sent: Arc<AtomicU64>,
}

/// The way a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseMode {
    AfterWrites,
    AtOnce,
}

#[derive(Debug)]
struct ReadState {
    paused: bool,
    /// Rests while the output is congested.
    held: bool,
    finished: bool,
}

#[derive(Debug)]
struct WriteState {
    auto_flush: bool,
    flush_wanted: bool,
    shut: WriteEnd,
}

/// Progress of ending this side's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteEnd {
    No,
    Wanted,
    Done,
}

impl Transport {
    pub(super) fn new(
        carrier: Option<Carrier>,
        peer: Endpoint,
        local: Endpoint,
        policy: ConnectionPolicy,
    ) -> Self {
        Self {
            carrier,
            outbox: Outbox::default(),
            peer,
            local,
            handle: None,
            task: Waker::noop().clone(),
            idle_ms: None,
            closing_ms: policy.closing_ms,
            ending: None,
            cause: None,
            reading: ReadState { paused: false, held: policy.hold_reading, finished: false },
            writing: WriteState { auto_flush: true, flush_wanted: false, shut: WriteEnd::No },
            handed: None,
        }
    }

    /// Returns where the peer is. A Unix socket's peer has an empty path.
    pub fn peer(&self) -> &Endpoint {
        &self.peer
    }

    /// Returns the address of this end.
    pub fn local(&self) -> &Endpoint {
        &self.local
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> WriteFlow {
        // What handles have written before comes first.
        self.apply_handle_requests();
        if self.flow() == WriteFlow::Closed {
            return WriteFlow::Closed;
        }
        if bytes.len() > self.outbox.room() {
            self.end_at_once(Reason::Overrun);
            return WriteFlow::Closed;
        }
        self.outbox.push(bytes);
        self.flow()
    }

    /// Writes pieces one after the other, as if they were one: all of them, or none.
    pub fn write_sequence<B: AsRef<[u8]>>(&mut self, pieces: &[B]) -> WriteFlow {
        let bytes: usize = pieces.iter().map(|piece| piece.as_ref().len()).sum();
        if bytes > self.outbox.room() && self.ending.is_none() {
            self.end_at_once(Reason::Overrun);
        }
        for piece in pieces {
            self.write(piece.as_ref());
        }
        self.flow()
    }

    /// Returns what a write would return now.
    pub fn flow(&self) -> WriteFlow {
        let closed = self.ending.is_some() || self.writing.shut != WriteEnd::No;
        WriteFlow::of(closed, self.outbox.is_congested())
    }

    /// Bytes written that the kernel has not taken yet.
    pub fn pending_bytes(&self) -> usize {
        self.outbox.pending()
    }

    /// Returns how many bytes can be written now.
    pub fn room(&self) -> usize {
        if self.flow() == WriteFlow::Closed { 0 } else { self.outbox.room() }
    }

    /// Sets how much may be pending. Marks out of order are lowered.
    pub fn set_write_limits(&mut self, limits: WriteLimits) {
        self.outbox.set_limits(limits);
        if let Some(handle) = &self.handle {
            handle.set_limits(self.outbox.limits());
        }
    }

    /// Passes pending bytes to the kernel now, as far as it takes them, before the callback
    /// returns.
    pub fn flush(&mut self) {
        self.writing.flush_wanted = true;
        if let Poll::Ready(Err(ConnectionError::Broken(error))) = self.poll_flush() {
            self.end_at_once(Reason::Lost(error.kind()));
        }
    }

    /// Sets whether what was written leaves when the callback returns, which is the default. If
    /// not, it waits for [`Transport::flush`], the high-water mark, or the end.
    pub fn set_auto_flush(&mut self, auto_flush: bool) {
        self.writing.auto_flush = auto_flush;
    }

    /// Closes the connection in order, once everything pending has left. No more data is received,
    /// and nothing more can be written.
    pub fn lose_connection(&mut self) {
        self.cause.get_or_insert(Reason::Closed);
        if self.ending.is_none() {
            self.ending = Some(CloseMode::AfterWrites);
            self.restart_timeout();
        }
    }

    /// Gives the connection up now. What is pending is thrown away, and the peer gets a reset.
    pub fn abort_connection(&mut self) {
        if self.cause.is_none_or(|cause| cause == Reason::Closed) {
            self.cause = Some(Reason::Aborted);
        }
        self.ending = Some(CloseMode::AtOnce);
    }

    /// Sends the peer an end of stream, once everything pending has left: nothing more will come.
    /// Data can still be received.
    pub fn lose_write_connection(&mut self) {
        if self.writing.shut == WriteEnd::No {
            self.writing.shut = WriteEnd::Wanted;
        }
    }

    /// Returns whether the connection is about to end: nothing can be written, and nothing is
    /// received.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Receives no more data until [`Transport::resume_reading`]. The peer must wait in turn, once
    /// what the kernel holds for it is full. Also the peer's end is noticed only after that.
    pub fn pause_reading(&mut self) {
        self.reading.paused = true;
    }

    /// Receives data again.
    pub fn resume_reading(&mut self) {
        self.reading.paused = false;
    }

    /// Returns whether data is received at present.
    pub fn is_reading(&self) -> bool {
        let held = self.reading.held && self.outbox.is_congested();
        !(self.reading.paused || held || self.reading.finished || self.ending.is_some())
    }

    /// Sets whether reading rests while more is pending than the high-water mark. That is the
    /// default for accepted connections. It is not for those that were made by `connect_tcp`: if
    /// both ends did that, each could wait for the other to read.
    pub fn hold_reading(&mut self, hold: bool) {
        self.reading.held = hold;
    }

    /// Sets the time without a moved byte after which [`super::Protocol::timed_out`] is called;
    /// `None`, the default, for never. The time begins now. Whole milliseconds count.
    pub fn set_timeout(&mut self, time: Option<Duration>) {
        self.idle_ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.restart_timeout();
    }

    /// Returns a handle of this connection for use elsewhere: other threads, other connections,
    /// delayed calls.
    pub fn handle(&mut self) -> TransportHandle {
        let (peer, limits) = (&self.peer, self.outbox.limits());
        let pending = self.outbox.pending();
        let task = &self.task;
        let new = || TransportHandle::new(peer.clone(), limits, pending, task.clone());
        self.handle.get_or_insert_with(new).clone()
    }
}

/// What the connection's task does with it.
impl Transport {
    /// Takes over what another protocol has left.
    pub(super) fn take_over(&mut self, handed: HandedOver) {
        self.handed = Some(Box::new(handed));
        // The deadline that is set was for something else.
        self.restart_timeout();
    }

    /// The bytes that another protocol has left, if they were not taken yet.
    pub(super) fn take_unread(&mut self) -> Option<Vec<u8>> {
        let unread = mem::take(&mut self.handed.as_mut()?.unread);
        (!unread.is_empty()).then_some(unread)
    }

    /// Says which task this connection is.
    pub(super) fn attend(&mut self, task: &Waker) {
        self.task.clone_from(task);
    }

    /// Does what handles have asked for.
    pub(super) fn apply_handle_requests(&mut self) {
        let Some(handle) = &self.handle else { return };
        let Some((bytes, requests)) = handle.take_requests() else { return };
        if self.flow() != WriteFlow::Closed {
            self.outbox.push(&bytes);
        }
        if requests.has(HandleRequests::PAUSE) {
            self.pause_reading();
        }
        if requests.has(HandleRequests::RESUME) {
            self.resume_reading();
        }
        if requests.has(HandleRequests::SHUT) {
            self.lose_write_connection();
        }
        if requests.has(HandleRequests::LOSE) {
            self.lose_connection();
        }
        if requests.has(HandleRequests::ABORT) {
            self.abort_connection();
        }
    }

    /// Tells handles how much is pending, and whether that was all.
    pub(super) fn inform_handles(&self) {
        if let Some(handle) = &self.handle {
            handle.set_pending(self.outbox.pending(), self.flow() == WriteFlow::Closed);
        }
    }

    /// Sends what is to be sent now. Ready once that is nothing.
    pub(super) fn poll_flush(&mut self) -> Poll<Result<(), ConnectionError>> {
        loop {
            let Some(carrier) = &mut self.carrier else { return Poll::Ready(Ok(())) };
            if self.outbox.is_leaving() {
                ready!(carrier.poll_sent(&self.task))?;
                let bytes = self.outbox.sent();
                if let Some(handed) = &self.handed {
                    handed.sent.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                self.restart_timeout();
            } else if self.may_send()
                && let Some(chunk) = self.outbox.take_chunk()
            {
                let Some(carrier) = &mut self.carrier else { return Poll::Ready(Ok(())) };
                carrier.start_send(chunk);
            } else {
                self.writing.flush_wanted &= self.outbox.has_waiting();
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn may_send(&self) -> bool {
        let writing = &self.writing;
        writing.auto_flush
            || writing.flush_wanted
            || writing.shut == WriteEnd::Wanted
            || self.ending.is_some()
            || self.outbox.is_congested()
    }

    /// Shuts the sending side down if that is wanted and nothing is pending.
    pub(super) fn shut_if_wanted(&mut self) {
        if self.writing.shut == WriteEnd::Wanted && self.outbox.pending() == 0 {
            self.shut();
        }
    }

    /// Tells the peer that nothing more will come.
    pub(super) fn shut(&mut self) {
        let before = mem::replace(&mut self.writing.shut, WriteEnd::Done);
        if let Some(carrier) = self.carrier.as_mut().filter(|_| before != WriteEnd::Done) {
            carrier.shutdown_write();
        }
    }

    /// Why the connection is over, if it is now: nothing has to be sent before.
    pub(super) fn is_over(&self) -> Option<Reason> {
        let reason = self.cause.unwrap_or(Reason::Closed);
        let written = self.outbox.pending() == 0;
        let both_finished = self.reading.finished && self.writing.shut == WriteEnd::Done;
        match self.ending {
            Some(CloseMode::AtOnce) => Some(reason),
            Some(CloseMode::AfterWrites) if written => Some(reason),
            None if both_finished => Some(reason),
            _ => None,
        }
    }

    pub(super) fn end_at_once(&mut self, reason: Reason) {
        self.cause = Some(reason);
        self.ending = Some(CloseMode::AtOnce);
    }

    /// The peer has sent its last byte.
    pub(super) fn finish_reading(&mut self) {
        self.reading.finished = true;
        self.cause = Some(Reason::Done);
    }

    /// Returns whether the connection ends in order, with everything sent.
    pub(super) fn is_written_out(&self) -> bool {
        self.ending == Some(CloseMode::AfterWrites) && self.outbox.pending() == 0
    }

    /// Returns whether the peer has sent its last byte.
    pub(super) fn has_finished_reading(&self) -> bool {
        self.reading.finished
    }

    /// Sets the reason that is given if the protocol now ends the connection. Returns the former
    /// one.
    pub(super) fn set_cause(&mut self, reason: Option<Reason>) -> Option<Reason> {
        mem::replace(&mut self.cause, reason)
    }

    /// Returns whether writers were told to wait since this was asked last.
    pub(super) fn take_was_congested(&mut self) -> bool {
        self.outbox.take_was_congested()
    }

    /// Restarts the time in which something has to move.
    pub(super) fn restart_timeout(&mut self) {
        let closing_ms = self.ending.map(|_| self.closing_ms);
        let wait_ms = [self.idle_ms, closing_ms].into_iter().flatten().min();
        if let Some(carrier) = &mut self.carrier {
            let now_ms = gustnado_tasks::now().mono_ms;
            carrier
                .set_deadline(wait_ms.map_or(u64::MAX, |wait_ms| now_ms.saturating_add(wait_ms)));
        }
    }

    /// Receives bytes, or only waits for the deadline; `None` where a test drives a protocol
    /// without a carrier.
    pub(super) fn poll_recv(
        &mut self,
        reads: bool,
    ) -> Option<Poll<Result<ReceivedBytes, ConnectionError>>> {
        let carrier = self.carrier.as_mut()?;
        Some(if reads {
            carrier.poll_recv(&self.task)
        } else {
            carrier.poll_deadline(&self.task).map(Err)
        })
    }

    /// The carrier itself.
    pub(super) fn carrier(&mut self) -> Option<&mut Carrier> {
        self.carrier.as_mut()
    }

    /// Handles take nothing more.
    pub(super) fn close_handles(&mut self) {
        if let Some(handle) = &self.handle {
            handle.close();
        }
    }

    /// A transport without a socket.
    #[cfg(test)]
    pub(super) fn detached() -> Self {
        let nowhere = Endpoint::Unix(std::path::PathBuf::new());
        let policy = ConnectionPolicy { hold_reading: true, closing_ms: 1_000 };
        Self::new(None, nowhere.clone(), nowhere, policy)
    }
}
