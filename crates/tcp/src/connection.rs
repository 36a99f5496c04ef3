//! The hub of a protocol's connection: what comes next on it, and which callback is told.
//!
//! ```text
//! what handles ordered ─▶ send what is pending ─▶ tell who waits ─▶ receive ─▶ data_received …
//! ```

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado_tasks::{ConnectionError, Endpoint, Phase};
use gustnado_tls::Socket;

use super::carrier::Carrier;
use super::counters::{EngineCounters, count};
use super::handle::TransportHandle;
use super::outbox::WriteFlow;
use super::reason::Reason;
use super::transport::{ConnectionPolicy, HandedOver, Transport};
use super::{Factory, Protocol};

/// Steps of one connection before other tasks have their turn.
const STEPS_MAX: u32 = 16;
/// How long, and for how many bytes, a connection lingers once everything has been sent.
const LINGER_MS: u64 = 1_000;
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A connection and its protocol.
pub(super) struct ProtocolLoop {
    protocol: Box<dyn Protocol>,
    transport: Transport,
    counters: Arc<EngineCounters>,
    notified: NotifiedState,
}

/// State that the protocol was told last.
#[derive(Debug)]
struct NotifiedState {
    stage: ProtocolStage,
    congested: bool,
    reading: bool,
    stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolStage {
    Built,
    Made,
    Lost,
}

impl ProtocolLoop {
    /// Builds a protocol for a connection. `None`: the factory built none, or the peer
    /// has gone; the connection is closed.
    pub(super) fn build(
        socket: Socket,
        factory: &dyn Factory,
        counters: &Arc<EngineCounters>,
        policy: ConnectionPolicy,
    ) -> Option<Box<Self>> {
        let (peer, local) = (socket.peer().ok()?, socket.local().ok()?);
        let Some(protocol) = counters.contain(|| factory.build_protocol(&peer)).flatten() else {
            count(&counters.refused);
            return None;
        };
        count(&counters.made);
        let transport = Transport::new(Some(Carrier::Socket(socket)), peer, local, policy);
        Some(Self::new(protocol, transport, Arc::clone(counters)))
    }

    /// Puts a protocol on what another one has had before.
    pub(super) fn take_over(
        carrier: Carrier,
        (peer, local): (Endpoint, Endpoint),
        handed: HandedOver,
        protocol: Box<dyn Protocol>,
        closing_ms: u64,
    ) -> Box<Self> {
        let policy = ConnectionPolicy { hold_reading: true, closing_ms };
        let mut transport = Transport::new(Some(carrier), peer, local, policy);
        transport.take_over(handed);
        Self::new(protocol, transport, Arc::default())
    }

    fn new(
        protocol: Box<dyn Protocol>,
        transport: Transport,
        counters: Arc<EngineCounters>,
    ) -> Box<Self> {
        let notified = NotifiedState {
            stage: ProtocolStage::Built,
            congested: false,
            reading: true,
            stopping: false,
        };
        Box::new(Self { protocol, transport, counters, notified })
    }

    /// Registers the running task; without that, handles wake no task.
    pub(super) async fn attend(&mut self) {
        poll_fn(|context| {
            self.transport.attend(context.waker());
            Poll::Ready(())
        })
        .await;
    }

    pub(super) fn handle(&mut self) -> TransportHandle {
        self.transport.handle()
    }

    /// Runs the connection to its end. The protocol has been told of it when this returns; what
    /// else has to be done for the peer is [`ProtocolLoop::linger`]'s.
    pub(super) async fn run(&mut self) -> Reason {
        self.notified.stage = ProtocolStage::Made;
        self.call(|protocol, transport| protocol.connection_made(transport));
        let reason = poll_fn(|context| self.poll(context)).await;
        self.tell_lost(reason);
        reason
    }

    /// Gives the peer the chance to read everything, or tells it that it will not.
    pub(super) async fn linger(&mut self, reason: Reason) {
        let is_written_out = self.transport.is_written_out();
        let talks_on = is_written_out && !self.transport.has_finished_reading();
        let Some(carrier) = self.transport.carrier() else { return };
        let is_cut = matches!(reason, Reason::Aborted | Reason::Overrun);
        if is_cut {
            carrier.cut();
        }
        // A stream's connection sees to the rest.
        let Some(socket) = carrier.socket() else { return };
        // Boxed, so that no connection keeps room for its end.
        if talks_on {
            Box::pin(socket.linger(LINGER_MS, LINGER_BYTES_MAX, true)).await;
        } else if socket.is_sealed() && is_written_out && !is_cut {
            Box::pin(socket.close()).await;
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Reason> {
        self.follow_phase();
        for _ in 0..STEPS_MAX {
            match self.step() {
                Poll::Ready(None) => {}
                Poll::Ready(Some(reason)) => return Poll::Ready(reason),
                Poll::Pending => {
                    self.transport.inform_handles();
                    return Poll::Pending;
                }
            }
        }
        self.transport.inform_handles();
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// One thing that can be done now: `None` when something was, `Some` when that was the last.
    fn step(&mut self) -> Poll<Option<Reason>> {
        self.transport.apply_handle_requests();
        if let Poll::Ready(Err(error)) = self.transport.poll_flush() {
            return Poll::Ready(self.after_error(&error));
        }
        self.transport.shut_if_wanted();
        if let Some(reason) = self.transport.is_over() {
            return Poll::Ready(Some(reason));
        }
        if self.tell_flow() {
            return Poll::Ready(None);
        }
        let reads = self.transport.is_reading();
        if reads && let Some(unread) = self.transport.take_unread() {
            self.take(&unread);
            return Poll::Ready(None);
        }
        let Some(received) = self.transport.poll_recv(reads) else {
            return Poll::Ready(Some(Reason::Closed));
        };
        received.map(|received| match received {
            Ok(piece) => {
                self.take(piece.bytes());
                None
            }
            Err(error) => self.after_error(&error),
        })
    }

    fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.transport.finish_reading();
            self.call(|protocol, transport| protocol.peer_finished(transport));
        } else {
            self.transport.restart_timeout();
            self.call(|protocol, transport| protocol.data_received(transport, bytes));
        }
    }

    /// Tells the protocol whether to write and whether data comes. Returns whether it was told.
    fn tell_flow(&mut self) -> bool {
        if self.transport.is_ending() {
            return false;
        }
        // A protocol that was told to wait is told to go on, however short that was.
        if self.transport.take_was_congested() && !self.notified.congested {
            self.notified.congested = true;
            self.call(|protocol, transport| protocol.pause_producing(transport));
            return true;
        }
        if self.notified.congested && self.transport.flow() == WriteFlow::Go {
            self.notified.congested = false;
            self.call(|protocol, transport| protocol.resume_producing(transport));
            return true;
        }
        let resumed = self.transport.is_reading() && !self.notified.reading;
        if resumed {
            self.notified.reading = true;
            self.call(|protocol, transport| protocol.reading_resumed(transport));
        }
        resumed
    }

    /// Decides what a failed operation means. Returns why the connection is over, if it is.
    fn after_error(&mut self, error: &ConnectionError) -> Option<Reason> {
        match error {
            ConnectionError::TimedOut if self.transport.is_ending() => Some(Reason::TimedOut),
            ConnectionError::TimedOut => {
                let cause = self.transport.set_cause(Some(Reason::TimedOut));
                self.call(|protocol, transport| protocol.timed_out(transport));
                if !self.transport.is_ending() {
                    self.transport.set_cause(cause);
                }
                self.transport.restart_timeout();
                None
            }
            ConnectionError::Ending => Some(Reason::Ended),
            ConnectionError::Broken(error) => Some(Reason::Lost(error.kind())),
            _ => Some(Reason::Lost(std::io::ErrorKind::Other)),
        }
    }

    /// Tells the protocol, once, that the engine stops. Every task is woken when it begins to.
    fn follow_phase(&mut self) {
        if self.notified.stopping || gustnado_tasks::phase() == Phase::Serving {
            return;
        }
        self.notified.stopping = true;
        if !self.transport.is_ending() {
            self.transport.set_cause(Some(Reason::Ended));
            self.call(|protocol, transport| protocol.stopping(transport));
        }
    }

    /// Calls the protocol. If it panics, the connection ends, and nothing else does.
    fn call(&mut self, callback: impl FnOnce(&mut dyn Protocol, &mut Transport)) {
        let Self { protocol, transport, .. } = self;
        let called = self.counters.contain(|| callback(&mut **protocol, transport));
        // However soon it goes on, the protocol is told.
        self.notified.reading &= self.transport.is_reading();
        if called.is_none() {
            self.transport.end_at_once(Reason::Panicked);
        }
    }

    fn tell_lost(&mut self, reason: Reason) {
        self.transport.close_handles();
        if self.notified.stage == ProtocolStage::Made {
            self.notified.stage = ProtocolStage::Lost;
            self.call(|protocol, _| protocol.connection_lost(reason));
        }
    }
}

impl Drop for ProtocolLoop {
    fn drop(&mut self) {
        // The task was dropped where it waited: the workers end.
        self.tell_lost(Reason::Ended);
    }
}
