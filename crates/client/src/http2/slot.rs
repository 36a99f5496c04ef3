//! What has come of one response, until its request takes it.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use gustnado_http::h2::ErrorCode;
use gustnado_tasks::Lock;

use super::end::ConnectionEnd;
use crate::exchange::ReceivedHead;

/// Interim responses to one request. One or two are usual.
pub(super) const INTERIM_MAX: usize = 16;

/// A stream's slot: the driver fills it, the request empties it.
pub(crate) type SlotHandle = Arc<Lock<StreamSlot>>;

/// What has come of one response.
#[derive(Default)]
pub(crate) struct StreamSlot {
    pub(super) head: Option<ReceivedHead>,
    pub(super) interim: VecDeque<ReceivedHead>,
    /// `100 Continue` has come.
    pub(super) is_continued: bool,
    pub(super) data: BytesMut,
    /// The records of the trailer fields.
    pub(super) trailers: Option<Bytes>,
    /// All of the response has come.
    pub(super) is_ended: bool,
    pub(super) failure: Option<StreamFailure>,
    /// The request waits for something of the response, or for room to send in.
    waker: Option<Waker>,
}

/// Why no more comes on a stream.
#[derive(Clone, Debug)]
pub(super) enum StreamFailure {
    /// The server has not looked at it (RFC 9113 §8.7).
    Refused,
    /// The server has ended it.
    Reset(ErrorCode),
    /// The response breaks a rule.
    Malformed(ErrorCode, &'static str),
    /// More interim responses than are taken.
    TooManyInterim,
    /// The connection has ended.
    Lost(ConnectionEnd),
}

impl StreamSlot {
    /// Notes which task is to be woken.
    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    /// Wakes the request.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Ends it before its time.
    pub(super) fn fail(&mut self, failure: StreamFailure) {
        if !self.is_ended {
            self.failure.get_or_insert(failure);
        }
        self.wake();
    }

    /// Returns whether nothing of a response has come.
    pub(super) fn is_untouched(&self) -> bool {
        self.head.is_none() && self.interim.is_empty() && !self.is_continued
    }

    /// Takes the bytes that have come.
    pub(super) fn take_data(&mut self) -> Bytes {
        mem::take(&mut self.data).freeze()
    }
}
