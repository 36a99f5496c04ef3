//! Sends of a tunnel that has a connection for itself.

use std::mem;

use bytes::Bytes;
use gustnado_tasks::{Connection, ProgressTimeout, SendBuf, SendWatch};
use gustnado_tls::{Grant, Socket};

/// Up to this many bytes are copied into the send buffer; more are sent without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The most bytes in one step at a pace, however fast it is: a larger one would be a burst.
const STEP_BYTES_MAX: u64 = 64 << 10;

/// A send that is under way.
pub(super) struct TunnelSend {
    /// Bytes of the step that the socket has; 0: it has none.
    pub(super) bytes: usize,
    began_ms: u64,
    /// When there is something to do; `u64::MAX` is never.
    pub(super) at_ms: u64,
    /// Made at the first look: most sends are over before that.
    watch: Option<Box<SendWatch>>,
    /// What the socket does not have yet, at a pace.
    paced: Option<Box<PacedSend>>,
}

/// A send at a pace: it leaves in steps.
struct PacedSend {
    rest: Bytes,
    /// The next step: how many bytes, and when. `None`: it was not granted yet.
    step: Option<Grant>,
    /// How slowly the peer may take the step that is under way.
    patience: ProgressTimeout,
}

/// Returns bytes as they are sent: few are copied.
#[expect(clippy::unnecessary_box_returns, reason = "sockets take, and give back, the box")]
fn outgoing(bytes: Bytes) -> Box<SendBuf> {
    let mut out = Connection::outgoing();
    if bytes.len() <= COPIED_BYTES_MAX {
        out.bytes.extend_from_slice(&bytes);
    } else {
        out.share(bytes);
    }
    out
}

impl Default for TunnelSend {
    fn default() -> Self {
        Self { bytes: 0, began_ms: 0, at_ms: u64::MAX, watch: None, paced: None }
    }
}

impl TunnelSend {
    /// Returns whether nothing is being sent.
    pub(super) fn is_over(&self) -> bool {
        self.bytes == 0 && self.paced.is_none()
    }

    /// Begins to send.
    pub(super) fn start(&mut self, socket: &mut Socket, bytes: Bytes, write: ProgressTimeout) {
        if socket.is_paced() {
            let paced = PacedSend { rest: bytes, step: None, patience: write };
            self.paced = Some(Box::new(paced));
            return;
        }
        self.begin_step(socket, bytes, write);
    }

    /// Begins to send few bytes, which are copied.
    pub(super) fn start_copy(&mut self, socket: &mut Socket, bytes: &[u8], write: ProgressTimeout) {
        if socket.is_paced() {
            return self.start(socket, Bytes::copy_from_slice(bytes), write);
        }
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(bytes);
        self.begin(socket, (out, bytes.len()), write);
    }

    /// Hands a step to the socket.
    pub(super) fn begin_step(&mut self, socket: &mut Socket, step: Bytes, write: ProgressTimeout) {
        let len = step.len();
        self.begin(socket, (outgoing(step), len), write);
    }

    fn begin(
        &mut self,
        socket: &mut Socket,
        (step, len): (Box<SendBuf>, usize),
        write: ProgressTimeout,
    ) {
        socket.refresh_now();
        self.bytes = len;
        self.began_ms = socket.now().mono_ms;
        let patience = match &mut self.paced {
            Some(paced) => {
                paced.patience = socket.step_patience(write, self.began_ms);
                paced.patience
            }
            None => write,
        };
        self.at_ms = self.began_ms.saturating_add(patience.first_look_ms());
        socket.start_send(step);
    }

    /// Looks at the step that is under way, if it is time. Returns false if the peer has had its
    /// time.
    pub(super) fn look(&mut self, socket: &mut Socket, write: ProgressTimeout) -> bool {
        if self.bytes == 0 || socket.now().mono_ms < self.at_ms {
            return true;
        }
        let patience = self.paced.as_ref().map_or(write, |paced| paced.patience);
        let watch = self.watch.get_or_insert_with(|| SendWatch::new(self.began_ms).into());
        let is_in_time = socket.look_at_send(watch, patience);
        self.at_ms = socket.deadline_ms();
        is_in_time
    }

    /// Notes that the socket has no step any more. Returns how many bytes it was given.
    pub(super) fn end_step(&mut self, socket: &mut Socket) -> u64 {
        if self.paced.is_some() && self.bytes > 0 {
            socket.note_sent(self.began_ms, self.bytes as u64);
        }
        (self.at_ms, self.watch) = (u64::MAX, None);
        mem::take(&mut self.bytes) as u64
    }

    /// Takes the next step of a send at a pace, if it may leave now; [`TunnelSend::at_ms`] is when
    /// it may otherwise.
    pub(super) fn take_step(&mut self, socket: &mut Socket) -> PacedStep {
        let now_ms = socket.now().mono_ms;
        let Some(paced) = &mut self.paced else { return PacedStep::None };
        if paced.rest.is_empty() {
            self.paced = None;
            return PacedStep::None;
        }
        let wanted = (paced.rest.len() as u64).min(STEP_BYTES_MAX);
        let grant = *paced.step.get_or_insert_with(|| socket.grant(now_ms, wanted));
        if grant.at_ms > now_ms {
            self.at_ms = grant.at_ms;
            return PacedStep::Later;
        }
        paced.step = None;
        let bytes = usize::try_from(grant.bytes).map_or(paced.rest.len(), |bytes| bytes);
        PacedStep::Now(paced.rest.split_to(bytes.min(paced.rest.len())))
    }
}

/// What of a send at a pace is next.
pub(super) enum PacedStep {
    Now(Bytes),
    Later,
    None,
}
