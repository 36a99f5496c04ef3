//! Bodies that are collected: as far as there is memory in memory, else on the disk.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gustnado_config::{BodyPolicy, UNCHARGED_BYTES};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::ConnectionError;

use super::Conn;
use super::body_memory::Admitted;
use super::in_flight::{ConnAction, InFlight, Incoming};
use gustnado_app::bodies::{BodyHold, BodyProgress};
use gustnado_web::body_channel::{BodyChannel, HeldBytes};
use gustnado_web::routes::RouteOptions;
use gustnado_web::spool::{Spool, SpoolFailure, SpooledBody};

/// How long the disk may take for a part of a body.
const DISK_MS_MAX: u64 = 20_000;

/// Where the body of an inline handler is collected.
pub(super) struct BodyStore {
    body: SpooledBody,
    /// Where it may go; `None` if it has to stay in memory.
    spool: Option<Arc<Spool>>,
}

/// Returns the memory that a body is received into, if it is wanted.
pub(super) fn memory_of(store: &mut Option<BodyStore>) -> Option<&mut Vec<u8>> {
    store.as_mut().map(|store| &mut store.body.memory)
}

impl Conn {
    /// Returns where a body is collected by the options of its route.
    pub(super) fn body_store(&self, options: &RouteOptions) -> BodyStore {
        let spool = options.spools_bodies().then(|| Arc::clone(self.spool()));
        BodyStore { body: SpooledBody::default(), spool }
    }

    fn spool(&self) -> &Arc<Spool> {
        &self.app.tables.build.spool
    }

    /// Waits until more of a body may be received, and puts what is in memory to the disk where
    /// that is due. Returns the status of its refusal, if it is refused.
    ///
    /// - `left`: bytes to come, if that is known.
    ///
    /// # Errors
    /// The connection failed or was closed.
    pub(super) async fn admit_more(
        &mut self,
        store: &mut BodyStore,
        hold: &mut BodyHold,
        left: Option<u64>,
        request: RequestView<'_>,
    ) -> Result<Option<Status>, ConnectionError> {
        loop {
            let progress = BodyProgress {
                held: store.body.memory.len(),
                received: store.body.len(),
                can_spill: store.spool.is_some(),
                is_part: false,
                uncharged: UNCHARGED_BYTES,
                left,
                ahead: 0,
                now_ms: 0,
            };
            let admitted = poll_fn(|context| self.poll_admission(hold, progress, request, context));
            match admitted.await? {
                Admitted::Read => return Ok(None),
                Admitted::Cut(cut) => return Ok(Some(cut.status())),
                Admitted::Spill if self.spill(store).await? => {}
                Admitted::Spill => return Ok(Some(Status::SERVICE_UNAVAILABLE)),
            }
        }
    }

    /// Puts what is in memory of a body to the disk. Returns false if that has failed after a part
    /// of it was there.
    async fn spill(&mut self, store: &mut BodyStore) -> Result<bool, ConnectionError> {
        let Some(spool) = store.spool.clone() else { return Ok(true) };
        match self.await_disk(store.body.spill(&spool)).await? {
            Some(Ok(())) => Ok(true),
            Some(Err(SpoolFailure::Full)) => {
                store.spool = None;
                Ok(true)
            }
            Some(Err(SpoolFailure::Lost)) | None => Ok(false),
        }
    }

    /// Returns the bytes of a body that was received to its end, or the status of its refusal.
    ///
    /// # Errors
    /// The server ends.
    pub(super) async fn finish_body(
        &mut self,
        store: Option<BodyStore>,
        hold: &mut BodyHold,
    ) -> Result<Result<Bytes, Status>, ConnectionError> {
        let body = store.map_or_else(SpooledBody::default, |store| store.body);
        hold.complete(body.memory.len(), body.len(), self.socket.now().mono_ms);
        if body.spilled() == 0 {
            return Ok(Ok(body.memory.into()));
        }
        match self.await_disk(body.finish()).await? {
            Some(Ok(whole)) => {
                hold.settle(0, self.socket.now().mono_ms);
                Ok(Ok(whole))
            }
            Some(Err(_)) | None => Ok(Err(Status::SERVICE_UNAVAILABLE)),
        }
    }

    /// Waits for the disk; `None` if it takes too long.
    ///
    /// # Errors
    /// The server ends.
    async fn await_disk<T>(
        &mut self,
        job: impl Future<Output = T>,
    ) -> Result<Option<T>, ConnectionError> {
        self.socket.refresh_now();
        self.socket.set_deadline(self.socket.now().mono_ms + DISK_MS_MAX);
        let mut job = pin!(job);
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = job.as_mut().poll(context) {
                return Poll::Ready(Ok(Some(done)));
            }
            match ready!(self.socket.poll_deadline(false)) {
                ConnectionError::TimedOut => Poll::Ready(Ok(None)),
                error => Poll::Ready(Err(error)),
            }
        });
        let done = done.await;
        self.socket.refresh_now();
        done
    }

    /// Waits until more of a body may be received for a reader in a task. Returns an action if
    /// there is another one to take first.
    pub(super) fn poll_collect(
        &mut self,
        in_flight: &mut InFlight,
        context: &Context<'_>,
    ) -> Poll<Result<Option<ConnAction>, ConnectionError>> {
        let InFlight { incoming, parts, .. } = in_flight;
        let channel = parts.channel();
        let Some(held) = channel.held() else {
            // Its reader may have collected it so far, and put it elsewhere.
            incoming.hold = BodyHold::default();
            return Poll::Ready(Ok(None));
        };
        let (received, left) = (incoming.decoder.received(), incoming.decoder.left());
        let HeldBytes { bytes: held, can_spill, is_part } = held;
        let can_spill = can_spill && incoming.body_policy == Some(BodyPolicy::Spool);
        let progress = BodyProgress {
            held,
            received,
            can_spill,
            is_part,
            uncharged: UNCHARGED_BYTES,
            left,
            ahead: 0,
            now_ms: 0,
        };
        let admitted = self.poll_admission(&mut incoming.hold, progress, parts.view(), context)?;
        let Poll::Ready(admitted) = admitted else {
            incoming.stop_waiting(self.socket.now().mono_ms);
            return Poll::Pending;
        };
        match admitted {
            Admitted::Read => Poll::Ready(Ok(None)),
            Admitted::Cut(cut) => Poll::Ready(Ok(Some(in_flight.break_off(cut.error())))),
            Admitted::Spill => {
                channel.order_spill(self.spool());
                incoming.stop_waiting(self.socket.now().mono_ms);
                Poll::Ready(Ok(Some(ConnAction::BodyFed)))
            }
        }
    }

    /// Notes that a body that its reader collects was received to its end.
    pub(super) fn complete_hold(&self, incoming: &mut Incoming, channel: &BodyChannel) {
        if incoming.hold.is_charged() {
            let held = channel.held().map_or(0, |held| held.bytes);
            let now_ms = self.socket.now().mono_ms;
            incoming.hold.complete(held, incoming.decoder.received(), now_ms);
        }
    }

    /// Charges what the reader of a whole body still holds: it may have put it to the disk.
    pub(super) fn settle_hold(&self, in_flight: &mut InFlight) {
        let InFlight { incoming, parts, .. } = in_flight;
        if incoming.hold.may_settle() {
            let held = parts.channel().held().map_or(0, |held| held.bytes);
            incoming.hold.settle(held, self.socket.now().mono_ms);
        }
    }
}
