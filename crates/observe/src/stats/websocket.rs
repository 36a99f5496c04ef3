//! The counters of `WebSocket`s: how they are opened, what they carry, and how they end.

use super::table::Cell;

/// What a WebSocket adds to the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketCount {
    /// It was opened.
    Opened,
    /// Messages went through it since it was last counted.
    Messages {
        /// From its peer.
        received: u64,
        /// To its peer.
        sent: u64,
    },
    /// Its peer was pinged and has not answered.
    PingLost,
    /// Its peer broke a rule or a limit.
    Violation,
    /// A page of another origin asked for one, and was refused.
    OriginRefused,
    /// It has ended.
    ///
    /// - `code`: of the close frame that came first, the peer's or the server's; `None` where the
    ///   connection ended without one.
    Closed {
        /// That code; 1005 for a frame that has none.
        code: Option<u16>,
    },
}

impl WebSocketCount {
    /// Calls `add` with each counter that it increments, and by how much.
    pub(super) fn add_to(self, mut add: impl FnMut(Cell, u64)) {
        match self {
            Self::Opened => add(Cell::WebSockets, 1),
            Self::Messages { received, sent } => {
                add(Cell::WebSocketReceived, received);
                add(Cell::WebSocketSent, sent);
            }
            Self::PingLost => add(Cell::WebSocketPingsLost, 1),
            Self::Violation => add(Cell::WebSocketViolations, 1),
            Self::OriginRefused => add(Cell::WebSocketOriginsRefused, 1),
            Self::Closed { code } => add(cell_of_close(code), 1),
        }
    }
}

/// Returns the counter of a close code.
fn cell_of_close(code: Option<u16>) -> Cell {
    match code {
        None => Cell::WebSocketLost,
        Some(1000 | 1001 | 1005 | 1012) => Cell::WebSocketNormal,
        Some(3000..) => Cell::WebSocketApplication,
        Some(_) => Cell::WebSocketErrors,
    }
}
