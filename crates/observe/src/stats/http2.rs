//! The counters of HTTP/2: streams and connections that ended before their time.

use gustnado_http::h2::Flood;

use super::table::Cell;

/// What went wrong on a connection that speaks HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2Fault {
    /// The client has reset a stream.
    Reset,
    /// A stream broke a rule.
    Stream,
    /// There were as many streams as there may be.
    Refused,
    /// The client has not answered a PING, and its connection ended with that.
    NoAnswer,
    /// The connection broke a rule, and ended with that.
    Connection(Option<Flood>),
}

/// Returns the counters of a fault.
pub(super) fn cells_of(fault: Http2Fault) -> &'static [Cell] {
    match fault {
        Http2Fault::Reset => &[Cell::Http2Resets],
        Http2Fault::Stream => &[Cell::BadRequests, Cell::Http2StreamErrors],
        Http2Fault::Refused => &[Cell::Http2Refused],
        Http2Fault::NoAnswer => &[Cell::Timeouts, Cell::Http2PingTimeouts],
        Http2Fault::Connection(flood) => match flood {
            None => &[Cell::BadRequests, Cell::Http2Errors],
            Some(Flood::Resets) => &[Cell::BadRequests, Cell::Http2Errors, Cell::Http2FloodsResets],
            Some(Flood::StreamErrors) => {
                &[Cell::BadRequests, Cell::Http2Errors, Cell::Http2FloodsErrors]
            }
            Some(Flood::IdleFrames) => {
                &[Cell::BadRequests, Cell::Http2Errors, Cell::Http2FloodsIdle]
            }
            Some(Flood::Fields) => &[Cell::BadRequests, Cell::Http2Errors, Cell::Http2FloodsFields],
        },
    }
}
