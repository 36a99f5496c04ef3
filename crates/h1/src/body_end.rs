//! The end of a request's body: decided before a response is written.
//!
//! Bytes of a body that are left unread would be parsed as the next request. So a connection
//! persists only after a body that is known to end: a [`RequestedPersist`] becomes an [`Ending`],
//! which every response is written with, only by way of a [`BodyEnd`], and that only comes from the
//! pending body.

use bytes::Bytes;
use gustnado_http::response_writer::Persist;
use gustnado_web::trailers::RequestTrailers;

/// A body that was read to its end.
#[derive(Debug, Default)]
pub(super) struct WholeBody {
    pub(super) bytes: Bytes,
    pub(super) trailers: Option<RequestTrailers>,
}

/// A request's body before the response.
pub(super) enum PendingBody<'a> {
    /// The request has none.
    Empty,
    /// It was read to its end; empty if it was not wanted.
    Read(&'a mut WholeBody),
    /// It will not be read.
    Unread,
    /// It has not been read yet.
    Ahead,
}

/// How the body of a request ends, as far as its response is concerned.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// There is none.
    Empty,
    /// It was read to its end.
    Read,
    /// It is read to its end once the response has been sent, within bounds. Beyond them the
    /// connection closes after all.
    Drain,
    /// It is left unread: the connection closes, which the response announces.
    Close,
}

/// Whether a connection would persist after a response, apart from the request's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedPersist {
    persist: Persist,
    /// It closes, and the client did not ask for that.
    is_our_end: bool,
}

/// Whether a connection persists after a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    persist: Persist,
    lingers: bool,
}

impl PendingBody<'_> {
    /// Returns the state of a body whose head was just decoded.
    #[inline]
    pub(super) fn new(has_body: bool) -> Self {
        if has_body { Self::Ahead } else { Self::Empty }
    }

    /// Returns how it ends if a response is written now.
    #[inline]
    pub(super) fn end(&self) -> BodyEnd {
        match self {
            Self::Empty => BodyEnd::Empty,
            Self::Read(_) => BodyEnd::Read,
            Self::Unread | Self::Ahead => BodyEnd::Close,
        }
    }
}

impl RequestedPersist {
    /// Creates it from what the client asks for.
    #[inline]
    pub(super) fn new(persist: Persist) -> Self {
        Self { persist, is_our_end: false }
    }

    /// Returns it with the server closing the connection.
    #[must_use]
    #[inline]
    pub(super) fn ended(self) -> Self {
        let is_our_end = self.is_our_end || !self.persist.ends();
        Self { persist: self.persist.ended(), is_our_end }
    }

    /// Returns how the connection goes on after a response to a request whose body ends like this.
    #[inline]
    pub(super) fn with(self, body: BodyEnd) -> Ending {
        let Self { persist, is_our_end } = self;
        match body {
            BodyEnd::Close => Ending { persist: persist.ended(), lingers: true },
            _ => Ending { persist, lingers: is_our_end },
        }
    }
}

impl Ending {
    /// Returns what the response's head announces.
    #[inline]
    pub(super) fn persist(self) -> Persist {
        self.persist
    }

    /// Returns whether the connection closes.
    #[inline]
    pub(super) fn ends(self) -> bool {
        self.persist.ends()
    }

    /// Returns whether the peer is read for a while after the end: it may still be sending, and
    /// closing on unread bytes would reset the connection and destroy the response before it was
    /// read.
    #[inline]
    pub(super) fn lingers(self) -> bool {
        self.lingers
    }

    /// Returns it with the server closing the connection.
    #[must_use]
    pub(super) fn ended(self) -> Self {
        let lingers = self.lingers || !self.persist.ends();
        Self { persist: self.persist.ended(), lingers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_on_only_after_a_body_that_ends() {
        let wanted = RequestedPersist::new(Persist::Default);
        for (pending, goes_on) in [
            (PendingBody::Empty, true),
            (PendingBody::Read(&mut WholeBody::default()), true),
            (PendingBody::Unread, false),
            (PendingBody::Ahead, false),
        ] {
            let ending = wanted.with(pending.end());
            assert_eq!(ending.ends(), !goes_on);
            assert_eq!(ending.lingers(), !goes_on, "the peer is still sending");
            let ended = wanted.ended().with(pending.end());
            assert!(ended.ends() && ended.lingers(), "the client has not asked for the end");
        }
        assert!(!wanted.with(BodyEnd::Drain).ends());
        let asked_for = RequestedPersist::new(Persist::Close).ended().with(BodyEnd::Empty);
        assert!(asked_for.ends() && !asked_for.lingers());
    }
}
