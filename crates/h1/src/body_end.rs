//! What becomes of a request's body: settled before a response is written.
//!
//! Bytes of a body that are left unread would be parsed as the next request. So a connection goes
//! on only after a body that is known to end: [`Wanted`] turns into an [`Ending`], which every
//! response is written with, by a [`BodyEnd`] alone, and that comes from the pending body.

use gustnado_http::response_writer::Persist;

/// A request's body before the response.
pub(super) enum PendingBody<'a> {
    /// The request has none.
    Empty,
    /// It was read to its end; empty if nobody wanted it.
    Read(&'a mut Vec<u8>),
    /// It will not be read.
    Unread,
    /// It is still to come.
    Ahead,
}

/// How the body of a request ends, as seen from its response.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// There is none.
    Empty,
    /// It was read to its end.
    Read,
    /// It is read to its end once the response has been sent, within bounds. If it goes beyond
    /// them, the connection is closed after all.
    Drain,
    /// It is left unread: the connection ends with the response, which says so.
    Close,
}

/// Whether a connection would go on after a response, were it not for the request's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    persist: Persist,
    /// It ends, and the client has not asked for that.
    is_our_end: bool,
}

/// Whether a connection goes on after a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    persist: Persist,
    lingers: bool,
}

impl PendingBody<'_> {
    /// The body of a request that was just decoded.
    #[inline]
    pub(super) fn new(has_body: bool) -> Self {
        if has_body { Self::Ahead } else { Self::Empty }
    }

    /// How it ends if a response is written now.
    #[inline]
    pub(super) fn end(&self) -> BodyEnd {
        match self {
            Self::Empty => BodyEnd::Empty,
            Self::Read(_) => BodyEnd::Read,
            Self::Unread | Self::Ahead => BodyEnd::Close,
        }
    }
}

impl Wanted {
    /// What the client asks for.
    #[inline]
    pub(super) fn new(persist: Persist) -> Self {
        Self { persist, is_our_end: false }
    }

    /// The same, but the server wants it to end.
    #[must_use]
    #[inline]
    pub(super) fn ended(self) -> Self {
        let is_our_end = self.is_our_end || !self.persist.ends();
        Self { persist: self.persist.ended(), is_our_end }
    }

    /// How the connection goes on after a response to a request whose body ends like this.
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
    /// What the response says of it.
    #[inline]
    pub(super) fn persist(self) -> Persist {
        self.persist
    }

    /// Whether the connection ends.
    #[inline]
    pub(super) fn ends(self) -> bool {
        self.persist.ends()
    }

    /// Whether the peer is listened to for a while after the end: it may be sending, and closing
    /// on what it sends would reset the connection, and destroy the response before it was read.
    #[inline]
    pub(super) fn lingers(self) -> bool {
        self.lingers
    }

    /// The same, but the server wants it to end.
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
        let wanted = Wanted::new(Persist::Default);
        for (pending, goes_on) in [
            (PendingBody::Empty, true),
            (PendingBody::Read(&mut Vec::new()), true),
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
        let asked_for = Wanted::new(Persist::Close).ended().with(BodyEnd::Empty);
        assert!(asked_for.ends() && !asked_for.lingers());
    }
}
