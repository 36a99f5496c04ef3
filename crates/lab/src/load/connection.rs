//! One connection of the load: its loop.
//!
//! Only [`LoadConnection::step`] decides what comes next. It runs without waiting and returns rare
//! cases to [`send_requests`], which may wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Outbound, SendBuf, sleep};
use gustnado_tls::Socket;

use super::coordinator::{self, NextRequest};
use super::counts::{FailureKind, OpenState, ServiceState};
use super::in_flight::RequestsInFlight;
use super::pending::{LeaveReason, PendingRequest, SendPermit};
use super::route::{TargetRoute, broken, millis};
use super::shared::LoadShared;
use super::slow;

/// First and longest pause after a failed connection attempt.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Connection attempts before the load starts.
const OPENING_TRIES: u32 = 3;

/// One connection, which may be opened several times.
pub(super) struct LoadConnection {
    shared: Arc<LoadShared>,
    slot: u32,
    group: u32,
    route: TargetRoute,
    outbound: Outbound,
    connect_ms: u64,
    response_ms: u64,
    depth: usize,
    connection: Option<Socket>,
    /// Permit of a request whose connection is being made.
    connecting: Option<SendPermit>,
    /// Requests without a response.
    in_flight: RequestsInFlight,
    /// Time to establish the current connection, until its first request is sent; then 0.
    connect: u64,
    /// Unsent rest of a request of a slow sender.
    unsent: slow::UnsentRequest,
    is_opening: bool,
    open_state: OpenState,
    service: ServiceState,
}

impl LoadConnection {
    /// Makes the connection with this number among all of the run.
    pub(super) fn new(shared: &Arc<LoadShared>, number: u64, slot: u32) -> Self {
        let plan = &shared.plan;
        let group = shared.script.group_of(number);
        let route = TargetRoute::of(shared, group, number);
        let kind = shared.script.opening_kind(group, number);
        let recv_bytes = plan.slowness.read_bytes_per_s.map_or(0, slow::recv_bytes);
        Self {
            shared: Arc::clone(shared),
            slot,
            group,
            route,
            outbound: Outbound { source: route.source, recv_bytes },
            connect_ms: millis(plan.connect_timeout),
            response_ms: millis(plan.response_timeout),
            depth: plan.pipeline as usize,
            connection: None,
            connecting: None,
            in_flight: RequestsInFlight::new(plan, kind, number),
            connect: 0,
            unsent: slow::UnsentRequest::default(),
            is_opening: true,
            open_state: OpenState::Unopened,
            service: ServiceState::NotAsked,
        }
    }
}

/// Sends requests on one connection until none is left.
pub(super) async fn send_requests(mut connection: LoadConnection) {
    if connection.shared.plan.keep_alive {
        connection.open_early().await;
    }
    connection.note_opened();
    let mut pause = PAUSE;
    loop {
        if connection.connection.is_none() {
            let Some(permit) = connection.await_need().await else { return };
            connection.connecting = permit;
            let made = connection.connect().await;
            let permit = connection.connecting.take();
            match made {
                Ok(()) => pause = PAUSE,
                Err(failure) => {
                    connection.fail_unsent(permit, failure);
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            }
            if let Some(permit) = permit {
                connection.send_one(permit);
            }
        }
        match poll_fn(|context| connection.step(context)).await {
            LeaveReason::Over if connection.shared.keeps_to_end() => {
                return std::future::pending().await;
            }
            LeaveReason::Over => return,
            LeaveReason::Pause(duration) => sleep(duration).await,
            LeaveReason::Closed => connection.close(),
            LeaveReason::Failed(failure) if connection.in_flight.is_opening() => {
                connection.close();
                connection.fail_unsent(None, failure);
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            LeaveReason::Failed(failure) => connection.fail_all(failure),
        }
    }
}

impl Drop for LoadConnection {
    /// Records the requests that had no response by the end of the run. An early end says nothing
    /// about them.
    fn drop(&mut self) {
        let has_sent = self.connection.is_some() || self.in_flight.has_refused();
        if !has_sent && self.connecting.is_none() || self.shared.is_stopped() {
            return;
        }
        let now = self.shared.now();
        coordinator::try_with(|coordinator| {
            self.connecting.iter().for_each(|permit| coordinator.record_unanswered(permit, now));
            self.in_flight.drain(|pending| coordinator.record_unanswered(&pending.permit, now));
        });
    }
}

impl LoadConnection {
    /// Connects before the load starts.
    async fn open_early(&mut self) {
        let mut pause = PAUSE;
        for _ in 0..OPENING_TRIES {
            let Err(failure) = self.connect().await else { return };
            if coordinator::with(|coordinator| coordinator.times.is_some()) {
                // The load starts without it, so this counts as a failed request.
                return self.fail_unsent(None, failure);
            }
            sleep(pause).await;
            pause = (pause * 4).min(PAUSE_MAX);
        }
    }

    /// Notes that the first attempt to connect is over.
    fn note_opened(&mut self) {
        if std::mem::take(&mut self.is_opening) {
            coordinator::try_with(|coordinator| {
                coordinator.opening -= 1;
                coordinator.wake_thread();
            });
        }
    }

    /// Returns whether it had no response yet, and no request of it is under way.
    fn is_new(&self) -> bool {
        !self.service.is_served() && self.in_flight.is_empty()
    }

    fn is_over(&self) -> bool {
        let now = self.shared.now();
        coordinator::with(|coordinator| coordinator.is_over(now))
    }

    /// Waits until another connection is needed: for a single request, whose permit it returns, for
    /// all that follow, or for those that the server has refused. `None`: no request is left.
    async fn await_need(&self) -> Option<Option<SendPermit>> {
        if self.in_flight.has_refused() {
            return Some(None);
        }
        if self.shared.plan.keep_alive {
            return (!self.is_over()).then_some(None);
        }
        self.await_permit().await.map(Some)
    }

    /// Waits for a permit to send; `None`: none will come.
    async fn await_permit(&self) -> Option<SendPermit> {
        poll_fn(|context| {
            let now = self.shared.now();
            match coordinator::with(|coordinator| {
                coordinator.next_for(self.slot, now, self.is_new(), Some(context.waker()))
            }) {
                NextRequest::Send(permit) => Poll::Ready(Some(permit)),
                NextRequest::Over => Poll::Ready(None),
                NextRequest::Wait => Poll::Pending,
            }
        })
        .await
    }

    async fn connect(&mut self) -> Result<(), FailureKind> {
        let began = self.shared.now();
        let made = self.route.connect(&self.shared, &self.outbound, self.connect_ms).await;
        let now = self.shared.now();
        coordinator::with(|coordinator| match made {
            Ok((mut connection, received)) => {
                if self.outbound.recv_bytes > 0 {
                    connection.receive_on_demand();
                }
                self.connection = Some(connection);
                self.in_flight.begin(received, now);
                self.connect = now - began;
                coordinator.counts.connect.record(self.connect);
                coordinator.counts.note_open(&mut self.open_state);
                coordinator.opened_at = now;
                coordinator.failures_in_a_row = 0;
                Ok(())
            }
            Err(failure) => {
                coordinator.counts.note_lost(&mut self.open_state);
                coordinator.failures_in_a_row += 1;
                Err(failure)
            }
        })
    }

    /// Fails the request of a connection that could not be established, or those that were to be
    /// sent again on it.
    fn fail_unsent(&mut self, permit: Option<SendPermit>, failure: FailureKind) {
        let now = self.shared.now();
        if self.in_flight.has_refused() {
            return coordinator::with(|coordinator| {
                self.in_flight.drain(|pending| coordinator.record_failure(pending, failure, now));
            });
        }
        let first = self.service.ask();
        coordinator::with(|coordinator| {
            coordinator.counts.requesting += first;
            let permit = match permit {
                Some(permit) => permit,
                None => match coordinator.next_for(self.slot, now, true, None) {
                    NextRequest::Send(permit) => permit,
                    NextRequest::Wait | NextRequest::Over => return coordinator.counts.unmade += 1,
                },
            };
            coordinator.record_failure(&self.pending(permit, 0, false, now), failure, now);
        });
    }

    fn pending(&self, permit: SendPermit, kind: u32, hashes: bool, now: u64) -> PendingRequest {
        let churns = !self.shared.plan.keep_alive;
        PendingRequest { permit, kind, hashes, sent: now, connect: self.connect, churns }
    }

    /// Begins to send the only request of a connection.
    fn send_one(&mut self, permit: SendPermit) {
        let now = self.shared.now();
        let mut out = Connection::outgoing();
        self.write_output(&mut out);
        self.put(permit, now, &mut out.bytes);
        self.start(out, now);
    }

    /// Adds what the protocol itself has to say.
    fn write_output(&mut self, out: &mut SendBuf) {
        self.in_flight.write_output(&self.shared.script, &mut out.bytes);
    }

    /// Encodes a request and records it as pending.
    fn put(&mut self, permit: SendPermit, now: u64, bytes: &mut Vec<u8>) {
        let first = self.service.ask();
        coordinator::with(|coordinator| {
            coordinator.counts.requesting += first;
            let kind = coordinator.next_kind(self.group);
            let hashes = coordinator.is_checked(kind);
            let pending = self.pending(permit, kind, hashes, now);
            let length = self.in_flight.put(pending, &coordinator.shared.script, bytes);
            coordinator.record_sent(&permit, length);
        });
        self.connect = 0;
    }

    fn start(&mut self, out: Box<SendBuf>, now: u64) {
        let Some(connection) = &mut self.connection else { return };
        let left_ms = self.response_ms.saturating_sub(self.in_flight.oldest_ms(now));
        connection.set_deadline(connection.now().mono_ms + left_ms);
        match self.shared.plan.slowness.send_bytes_per_s {
            None => connection.start_send(out),
            Some(rate) => {
                self.unsent.begin(&out.bytes, rate);
                Connection::put_back(out);
            }
        }
    }

    /// Makes progress on an established connection.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<LeaveReason> {
        let mut now = 0;
        loop {
            match self.send_on(&mut now) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(left)) => return Poll::Ready(left),
                Poll::Ready(None) => {}
            }
            if self.may_ask() || self.in_flight.has_output() {
                if now == 0 {
                    now = self.shared.now();
                }
                match self.fill(now, context.waker()) {
                    FillState::Some => continue,
                    FillState::Over if self.in_flight.is_empty() => {
                        return Poll::Ready(LeaveReason::Over);
                    }
                    FillState::Over | FillState::None => {}
                }
            }
            match self.receive(&mut now) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(left)) => return Poll::Ready(left),
                Poll::Ready(None) => {}
            }
        }
    }

    fn may_ask(&self) -> bool {
        // A connection without keep-alive was opened for a request that it holds already.
        self.in_flight.has_room(self.depth) && self.shared.plan.keep_alive
    }

    /// Sends what is pending; of a slow sender, the next portion.
    fn send_on(&mut self, now: &mut u64) -> Poll<Option<LeaveReason>> {
        if self.unsent.has_begun() {
            // The server may have closed it.
            if let Poll::Ready(left) = self.receive(now) {
                return Poll::Ready(left);
            }
        }
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Some(LeaveReason::Closed));
        };
        let portion = if connection.is_sending() { None } else { self.unsent.portion() };
        if let Some(portion) = portion {
            connection.set_deadline(connection.now().mono_ms + self.response_ms);
            connection.start_send(portion);
        }
        if !connection.is_sending() {
            return Poll::Ready(None);
        }
        self.poll_sent(now)
    }

    /// Waits until what is under way was sent. By HTTP/2 bytes are received meanwhile: a server
    /// that waits for a window may read nothing before it has it.
    fn poll_sent(&mut self, now: &mut u64) -> Poll<Option<LeaveReason>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(Some(LeaveReason::Closed));
            };
            match connection.poll_sent() {
                Poll::Pending if self.in_flight.is_two_way() => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Some(LeaveReason::Failed(broken(&error))));
                }
                // A connection that is not slow never pauses.
                Poll::Ready(Ok(())) => {
                    return Poll::Ready(self.unsent.pause().map(LeaveReason::Pause));
                }
            }
            if let Some(left) = ready!(self.receive(now)) {
                return Poll::Ready(Some(left));
            }
        }
    }

    /// Receives what has arrived. Returns the reason to leave the connection, if there is one.
    fn receive(&mut self, now: &mut u64) -> Poll<Option<LeaveReason>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Some(LeaveReason::Closed));
        };
        let piece = match connection.poll_recv(false) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(piece)) => piece,
            Poll::Ready(Err(ConnectionError::TimedOut)) if self.in_flight.is_empty() => {
                // The deadline was met.
                connection.set_deadline(u64::MAX);
                return Poll::Ready(None);
            }
            Poll::Ready(Err(ConnectionError::TimedOut))
                if self.in_flight.oldest_ms(self.shared.now()) < self.response_ms
                    && self.in_flight.is_two_way() =>
            {
                // That of a request that has its response by now.
                let waited_ms = self.in_flight.oldest_ms(self.shared.now());
                let left_ms = self.response_ms.saturating_sub(waited_ms);
                connection.set_deadline(connection.now().mono_ms + left_ms);
                return Poll::Ready(None);
            }
            Poll::Ready(Err(error)) => {
                return Poll::Ready(Some(LeaveReason::Failed(broken(&error))));
            }
        };
        *now = self.shared.now();
        let left = self.take_in(piece.bytes(), *now);
        let Some(rate) = self.shared.plan.slowness.read_bytes_per_s else {
            return Poll::Ready(left);
        };
        if left.is_some() {
            return Poll::Ready(left);
        }
        let pause = slow::pause_after(piece.bytes().len(), rate);
        if let Some(connection) = &mut self.connection {
            let later = connection.now().mono_ms + self.response_ms;
            connection.set_deadline(later.saturating_add(millis(pause)));
        }
        Poll::Ready(Some(LeaveReason::Pause(pause)))
    }

    /// Encodes as many requests as may be in flight.
    fn fill(&mut self, now: u64, waker: &Waker) -> FillState {
        let mut out = None;
        if self.in_flight.has_output() {
            let out = out.get_or_insert_with(Connection::outgoing);
            self.write_output(out);
        }
        let mut filled = FillState::None;
        while self.may_ask() {
            let is_new = self.is_new();
            match coordinator::with(|coordinator| {
                coordinator.next_for(self.slot, now, is_new, Some(waker))
            }) {
                NextRequest::Send(permit) => {
                    let out = out.get_or_insert_with(Connection::outgoing);
                    self.put(permit, now, &mut out.bytes);
                }
                NextRequest::Wait => break,
                NextRequest::Over => {
                    filled = FillState::Over;
                    break;
                }
            }
        }
        match out {
            Some(out) => {
                self.start(out, now);
                FillState::Some
            }
            None => filled,
        }
    }

    /// Parses received bytes. Returns the reason to leave the connection, if there is one.
    fn take_in(&mut self, bytes: &[u8], now: u64) -> Option<LeaveReason> {
        coordinator::with(|coordinator| {
            if bytes.is_empty() {
                return Some(self.in_flight.end(coordinator, &mut self.service, now));
            }
            coordinator.record_received(bytes.len(), now);
            self.in_flight.take_in(bytes, coordinator, &mut self.service, now)
        })
    }

    /// Fails the first pending request, and those after it as without a response.
    fn fail_all(&mut self, failure: FailureKind) {
        let now = self.shared.now();
        coordinator::with(|coordinator| {
            let mut failure = failure;
            coordinator.counts.note_lost(&mut self.open_state);
            self.in_flight.drain(|pending| {
                coordinator.record_failure(pending, failure, now);
                if failure != FailureKind::TimedOut {
                    failure = FailureKind::Reset;
                }
            });
        });
        self.close();
    }

    fn close(&mut self) {
        if self.connection.take().is_some() {
            coordinator::try_with(|coordinator| coordinator.counts.standing -= 1);
        }
        self.in_flight.reset();
        self.unsent.clear();
        self.connect = 0;
    }
}

enum FillState {
    Some,
    None,
    Over,
}
