//! One connection as its requests and its driver share it.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::h2::{ErrorCode, H2Client, H2ClientEvent, H2ClientLimits, H2Error, StreamId};
use gustnado_http::response::ResponseHead;
use gustnado_tasks::Lock;

use super::end::ConnectionEnd;
use super::slot::{INTERIM_MAX, SlotHandle, StreamFailure};
use crate::ClientOptions;
use crate::exchange::ReceivedHead;

/// A stream's window at first, and the connection's. What is held for a caller that does not read
/// is no more than its stream's window.
const WINDOW_BYTES: u32 = 256 << 10;
const WINDOW_BYTES_MAX: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// A connection of HTTP/2.
pub(crate) struct Http2Connection {
    pub(super) state: Lock<ConnectionState>,
}

/// What requests and the driver share.
pub(super) struct ConnectionState {
    pub(super) core: H2Client<SlotHandle>,
    /// What is sent next.
    pub(super) out: Vec<u8>,
    pub(super) driver: Option<Waker>,
    /// Requests that wait for a stream, or for room in what is sent next.
    waiting: Vec<Waker>,
    pub(super) end: Option<ConnectionEnd>,
    /// No request begins any more; it ends with its last one.
    pub(super) is_leaving: bool,
    /// When bytes were last received.
    pub(super) received_ms: u64,
}

impl Http2Connection {
    pub(super) fn new(options: &ClientOptions) -> Self {
        let limits = H2ClientLimits {
            window_bytes: WINDOW_BYTES,
            window_bytes_max: WINDOW_BYTES_MAX,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            head_bytes_max: options.head_bytes_max,
            fields_max: options.fields_max,
            ..H2ClientLimits::default()
        };
        let mut out = Vec::new();
        let core = H2Client::new(limits, &mut out);
        Self {
            state: Lock::new(ConnectionState {
                core,
                out,
                driver: None,
                waiting: Vec::new(),
                end: None,
                is_leaving: false,
                received_ms: gustnado_tasks::now().mono_ms,
            }),
        }
    }

    /// Lets no request begin any more. The connection ends with its last one.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.is_leaving = true;
        state.wake_waiting();
        state.wake_driver();
    }

    /// Returns whether a request can begin now; `None`: no request will.
    pub(crate) fn has_room(&self) -> Option<bool> {
        let state = self.state.lock();
        state.is_open().then(|| state.core.can_open())
    }

    /// Returns whether it has no request.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.is_open() && state.core.open_streams() == 0
    }

    /// Waits until the server has said whether it takes CONNECT with a protocol, and returns that.
    pub(crate) fn poll_takes_protocols(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut state = self.state.lock();
        // (One that ends says so when a stream is opened.)
        if state.core.has_settings() || !state.is_open() {
            return Poll::Ready(state.core.takes_protocols() || !state.is_open());
        }
        state.wait(cx.waker());
        Poll::Pending
    }

    /// Opens a stream once there is room for one; `None`: there will be none.
    pub(super) fn poll_open(
        &self,
        cx: &mut Context<'_>,
        ends: (bool, bool),
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Poll<Option<(StreamId, SlotHandle)>> {
        let mut state = self.state.lock();
        if !state.is_open() {
            return Poll::Ready(None);
        }
        if !state.core.can_open() {
            state.wait(cx.waker());
            return Poll::Pending;
        }
        let slot = SlotHandle::default();
        let ConnectionState { core, out, .. } = &mut *state;
        let id = core.open(ends, Arc::clone(&slot), out, encode);
        state.wake_driver();
        Poll::Ready(Some((id, slot)))
    }
}

impl ConnectionState {
    fn is_open(&self) -> bool {
        self.end.is_none() && !self.is_leaving && !self.core.is_used_up()
    }

    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    pub(super) fn wake_waiting(&mut self) {
        mem::take(&mut self.waiting).into_iter().for_each(Waker::wake);
    }

    pub(super) fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Closes a stream, which makes room for another one.
    pub(super) fn close(&mut self, id: StreamId, code: ErrorCode) {
        if self.core.close(id, code, &mut self.out).is_some() {
            self.wake_waiting();
            self.wake_driver();
        }
    }

    /// Reads received bytes. Returns how many were used.
    pub(super) fn read(&mut self, bytes: &[u8], now_ms: u64) -> Result<usize, H2Error> {
        let mut used = 0;
        self.received_ms = now_ms;
        loop {
            let (more, event) = self.core.next(&bytes[used..], now_ms, &mut self.out)?;
            used += more;
            match event {
                None => return Ok(used),
                Some(H2ClientEvent::Interim { id, head }) => self.take_interim(id, head),
                Some(H2ClientEvent::Response { id, head, is_end }) => {
                    let head = self.received(head);
                    self.fill(id, is_end, |slot| slot.head = Some(head));
                }
                Some(H2ClientEvent::Data { id, bytes, is_end }) => {
                    self.fill(id, is_end, |slot| slot.data.extend_from_slice(bytes));
                }
                Some(H2ClientEvent::Trailers { id }) => {
                    let records = Bytes::copy_from_slice(self.core.head_bytes());
                    self.fill(id, true, |slot| slot.trailers = Some(records));
                }
                Some(H2ClientEvent::Reset { stream, code, fault }) => {
                    let failure = match fault {
                        Some(fault) => StreamFailure::Malformed(code, fault),
                        None if code == ErrorCode::RefusedStream => StreamFailure::Refused,
                        None => StreamFailure::Reset(code),
                    };
                    stream.state.lock().fail(failure);
                    self.wake_waiting();
                }
                Some(H2ClientEvent::GoAway { refused, code }) => {
                    for stream in refused {
                        stream.state.lock().fail(StreamFailure::Refused);
                    }
                    if code != ErrorCode::NoError {
                        self.end_hint(code);
                    }
                    self.wake_waiting();
                }
                Some(H2ClientEvent::Window) => {
                    self.core
                        .streams()
                        .filter(|stream| !stream.is_local_closed)
                        .for_each(|stream| stream.state.lock().wake());
                    self.wake_waiting();
                }
            }
        }
    }

    /// Remembers the code with which the server goes away: the close behind it is no other error.
    fn end_hint(&mut self, code: ErrorCode) {
        if self.core.open_streams() == 0 {
            self.end.get_or_insert(ConnectionEnd::GoAway(code));
        } else {
            self.is_leaving = true;
        }
    }

    fn received(&self, head: ResponseHead) -> ReceivedHead {
        ReceivedHead::new(Bytes::copy_from_slice(self.core.head_bytes()), head)
    }

    fn take_interim(&mut self, id: StreamId, head: ResponseHead) {
        let head = self.received(head);
        let Some(stream) = self.core.stream(id) else { return };
        let slot = Arc::clone(&stream.state);
        let mut slot = slot.lock();
        if head.head.status() == 100 {
            slot.is_continued = true;
        } else if slot.interim.len() == INTERIM_MAX {
            slot.fail(StreamFailure::TooManyInterim);
            return self.close(id, ErrorCode::EnhanceYourCalm);
        } else {
            slot.interim.push_back(head);
        }
        slot.wake();
    }

    /// Notes a part of a response. With its end the stream is closed, also where the rest of the
    /// request was not sent: it is not needed any more.
    fn fill(
        &mut self,
        id: StreamId,
        is_end: bool,
        fill: impl FnOnce(&mut super::slot::StreamSlot),
    ) {
        let Some(stream) = self.core.stream(id) else { return };
        {
            let mut slot = stream.state.lock();
            fill(&mut slot);
            slot.is_ended = is_end;
            slot.wake();
        }
        if is_end {
            self.close(id, ErrorCode::NoError);
        }
    }

    /// Says that the connection ends.
    pub(super) fn go_away(&mut self, error: H2Error) {
        self.core.go_away(error, &mut self.out);
    }

    /// Ends the connection: all requests hear why.
    pub(super) fn finish(&mut self, end: ConnectionEnd) {
        let end = self.end.get_or_insert(end).clone();
        for stream in self.core.streams() {
            stream.state.lock().fail(StreamFailure::Lost(end.clone()));
        }
        self.wake_waiting();
    }
}
