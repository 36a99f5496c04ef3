//! How far the response to a request has come, and the end of a turn. The connection's next step
//! follows from it.

use gustnado_http::request::RequestView;
use gustnado_tasks::SendBuf;

use super::body::BodyRequest;
use super::body_end::Ending;
use super::in_flight::InFlight;
use super::pending::PendingContent;
use super::unread::Unread;

/// How far the response to a request has come.
pub(super) enum ResponseProgress {
    /// All of it is written, and the connection persists.
    Written,
    /// All of it is written, and the peer expects the connection's end.
    Last,
    /// All of it is written, and the connection ends while the peer may still be sending.
    Lingering,
    /// Its head is written, and there is content that is long or not there yet.
    Begun(Box<PendingContent>),
    /// The request's body is to be read first, because the response needs it or to find the next
    /// request.
    BodyFirst(Box<BodyRequest>),
    /// Its handler is running.
    InFlight(Box<InFlight>),
}

/// How a turn has ended.
pub(super) enum TurnEnd {
    /// More of the next request has to be received.
    NeedMore,
    /// The buffer is to be sent before more requests get their responses.
    Full,
    /// A request, whose head this is, is to be parsed again under the configuration that a reload
    /// has put in force.
    Outdated(Box<Unread>),
    /// The bytes are the beginning of a connection in HTTP/2.
    Http2,
    /// With its last request.
    Last(ResponseProgress),
}

impl ResponseProgress {
    /// Returns the progress of a response with its head and short content written.
    ///
    /// - `rest`: what is left to be sent, if anything.
    #[inline]
    pub(super) fn of(
        rest: Option<Box<PendingContent>>,
        ending: Ending,
        request: &RequestView<'_>,
        out: &mut SendBuf,
    ) -> Self {
        if let Some(rest) = rest {
            rest.announce(out);
            return Self::Begun(rest);
        }
        let progress = Self::written(ending);
        if matches!(progress, Self::Last) && !request.head().keep_alive() {
            out.expect_end();
        }
        progress
    }

    /// Returns the progress of a response, all of which is written.
    #[inline]
    pub(super) fn written(ending: Ending) -> Self {
        match (ending.ends(), ending.lingers()) {
            (_, true) => Self::Lingering,
            (true, false) => Self::Last,
            (false, false) => Self::Written,
        }
    }
}
