//! Rates in both directions, the buckets that connections share, and the pace of a route.

use std::sync::Arc;

use gustnado_tasks::{Rate, SharedBucket};

/// Buckets that several connections share: those of a client, of a route, of the server.
#[derive(Debug, Default)]
pub struct Buckets {
    /// Bytes that are sent.
    pub write: SharedBucket,
    /// Bytes that are received.
    pub read: SharedBucket,
    /// Requests.
    pub requests: SharedBucket,
}

/// Rates in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flows {
    /// Bytes that are sent.
    pub write: Option<Rate>,
    /// Bytes that are received.
    pub read: Option<Rate>,
}

impl Flows {
    /// Returns whether neither direction has a rate.
    pub fn is_free(self) -> bool {
        self.write.is_none() && self.read.is_none()
    }
}

/// The pace of the responses of one route.
#[derive(Debug)]
pub struct ResponsePace {
    /// The rate of each connection.
    pub(crate) write: Option<Rate>,
    /// The rate of all connections together.
    pub(crate) in_all: Option<Rate>,
    pub(crate) buckets: Arc<Buckets>,
    pub(crate) first_byte_delay_ms: u64,
}

impl ResponsePace {
    /// Returns how long after its request, read at `read_ms`, a response may begin: 0 is at once.
    pub fn first_byte_at_ms(&self, read_ms: u64) -> u64 {
        after(read_ms, self.first_byte_delay_ms)
    }

    /// Returns whether bytes are sent at a rate.
    pub fn has_rate(&self) -> bool {
        self.write.is_some() || self.in_all.is_some()
    }

    /// - `write`: the rate of each connection.
    /// - `in_all`: the rate of all connections together.
    ///
    /// Returns `None` where nothing is paced.
    pub fn new(
        write: Option<Rate>,
        in_all: Option<Rate>,
        first_byte_delay_ms: u64,
    ) -> Option<Self> {
        let is_free = write.is_none() && in_all.is_none() && first_byte_delay_ms == 0;
        let buckets = Arc::default();
        (!is_free).then_some(Self { write, in_all, buckets, first_byte_delay_ms })
    }
}

/// Returns when a delay has certainly passed. The clock counts whole milliseconds and `since_ms`
/// may have been at its end, hence one more.
pub(crate) fn after(since_ms: u64, delay_ms: u64) -> u64 {
    match delay_ms {
        0 => 0,
        delay_ms => since_ms.saturating_add(delay_ms).saturating_add(1),
    }
}
