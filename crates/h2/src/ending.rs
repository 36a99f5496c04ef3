//! How a connection ends: at the server's wish, at the client's, by an error.

use std::sync::Arc;

use gustnado_app::app::App;
use gustnado_app::client_key::ClientKey;
use gustnado_http::h2::{ErrorCode, H2Error, Stream};
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{Connection, ConnectionError};

use crate::active::Active;
use crate::{Http2Conn, TurnOutcome};

/// How long the client has to take note that the server ends.
const LAST_CALL_MS: u64 = 200;

/// Bounds of the lingering close after an error, in time and bytes: closing on unread bytes would
/// reset the connection, and destroy what says why.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES_MAX: usize = 64 << 20;

/// The same after an end that the client was told of.
const LAST_LINGER_MS: u64 = 100;

/// The same where others wait for the connection's place.
const OTHERS_LINGER_MS: u64 = 10;

/// A connection that was idle for longer than this gives way to others.
const IDLE_MIN_MS: u64 = 1_000;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnPhase {
    Open,
    /// The client was told that it ends, and has some time to take note.
    Leaving,
    /// The client was told of the last stream that is served.
    Left,
    /// The same, to make room for others.
    GivesWay,
    /// The client sends no more.
    PeerGone,
    /// The client has broken a rule and was told. No more is read, and what it has asked for before
    /// is answered.
    Failed,
    /// GOAWAY is on its way; nothing else is done.
    Broken,
}

impl ConnPhase {
    /// Returns whether more is read.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Open | Self::Leaving | Self::Left)
    }

    /// Returns whether streams go on that need nothing more of the client.
    pub(super) fn only_responds(self) -> bool {
        matches!(self, Self::PeerGone | Self::Failed)
    }
}

impl Http2Conn {
    /// Returns the app in force, and begins to end if the server does.
    #[cold]
    pub(super) fn renewed(&mut self, app: Arc<App>) -> Arc<App> {
        if app.is_draining() {
            self.tell_end();
            return app;
        }
        match app.successor() {
            Some(successor) => {
                self.app = Arc::clone(&successor);
                successor
            }
            None => app,
        }
    }

    /// Tells the client and all tunnels, once, that the server drains.
    fn tell_end(&mut self) {
        if !std::mem::replace(&mut self.is_end_told, true) {
            self.announce_end();
            self.tell_tunnels();
        }
    }

    /// Tells the client that the connection is about to end.
    #[cold]
    pub(super) fn announce_end(&mut self) {
        if self.phase != ConnPhase::Open {
            return;
        }
        let out = self.next.get_or_insert_with(Connection::outgoing);
        self.core.announce_end(&mut out.bytes);
        self.phase = ConnPhase::Leaving;
        self.timers.end_phase_at(self.socket.now().mono_ms + LAST_CALL_MS);
    }

    /// Tells the client of the last stream that is served.
    pub(super) fn go_away(&mut self, error: H2Error) {
        let out = self.next.get_or_insert_with(Connection::outgoing);
        self.core.go_away(error, &mut out.bytes);
    }

    /// The client sends no more: it may have gone. It may also wait for what it has asked for, as
    /// far as that needs nothing more of it.
    #[cold]
    pub(super) fn lose_peer(&mut self) {
        self.phase = ConnPhase::PeerGone;
        let times = self.app.times;
        // A route may have a time of its own; the connection has the longest.
        let patience = |stream: &Stream<Box<Active>>| {
            stream.state.options.half_close_ms.map_or(times.half_close_ms, u64::from)
        };
        let longest = self.core.streams().iter().map(patience).max();
        self.respond_within(longest.unwrap_or(times.half_close_ms));
        self.end_tunnels();
    }

    /// The client has broken a rule: what else it sends means nothing. GOAWAY names the last
    /// request that was read, and up to that one they are answered, as far as that needs nothing
    /// more of the client. One that floods the server gets nothing more.
    pub(super) fn fail(&mut self, error: H2Error) {
        self.tell_error(error);
        self.phase = if error.flood.is_some() { ConnPhase::Broken } else { ConnPhase::Failed };
        self.respond_within(self.app.times.half_close_ms);
        self.end_tunnels();
    }

    /// Nothing more is read: what is under way has so long to be answered.
    fn respond_within(&mut self, time_ms: u64) {
        self.timers.frame_ms = u64::MAX;
        self.timers.end_phase_at(self.socket.now().mono_ms.saturating_add(time_ms));
    }

    /// Ends the streams that need something of a client that sends no more.
    #[cold]
    pub(super) fn end_stuck_streams(&mut self) {
        for id in self.awaiting_streams() {
            self.reset(id, ErrorCode::Cancel);
        }
    }

    /// Tells a client of the last stream that is served, once it knows that the connection ends, or
    /// has had the time to. Returns whether a send has begun.
    pub(super) fn end_last_call(&mut self) -> bool {
        let is_due = self.phase == ConnPhase::Leaving
            && (self.core.is_end_known() || self.timers.is_phase_over(self.socket.now().mono_ms));
        if !is_due {
            return false;
        }
        self.go_away(H2Error::new(ErrorCode::NoError, "the server ends"));
        self.phase = ConnPhase::Left;
        self.timers.end_phase_at(u64::MAX);
        !self.is_sending() && self.start_send()
    }

    /// Returns whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        let has_left = !self.is_sending()
            && !self.has_paced_rest()
            && self.next.as_ref().is_none_or(|next| next.is_empty());
        let is_done = self.core.open_streams() == 0 && has_left;
        match self.phase {
            ConnPhase::Open => is_done && self.core.is_peer_leaving(),
            ConnPhase::Leaving => false,
            ConnPhase::Left | ConnPhase::GivesWay | ConnPhase::PeerGone | ConnPhase::Failed => {
                is_done
            }
            ConnPhase::Broken => has_left,
        }
    }

    /// Acts on what has ended a receive.
    pub(super) fn after_failure(&mut self, error: &ConnectionError) -> TurnOutcome {
        // At the drain's deadline it comes once more.
        if matches!(error, ConnectionError::Ending) && !self.is_end_told {
            self.tell_end();
            self.set_deadline();
            return TurnOutcome::On;
        }
        match error {
            ConnectionError::GiveWay => self.give_way(),
            ConnectionError::Cut if self.has_partial() => self.cut_head(),
            error => self.give_up(error),
        }
    }

    /// Closes the connection if it was idle for a while, and no other one is in its place. A
    /// request that is on its way was not served, as its client sees by the last stream.
    #[cold]
    fn give_way(&mut self) -> TurnOutcome {
        let Self { app, socket, timers, .. } = self;
        let idle_ms = timers.idle_since_ms(app, self.requests);
        if socket.now().mono_ms > idle_ms.saturating_add(IDLE_MIN_MS)
            && socket.give_way(|| app.peer_key(socket).map(ClientKey::number))
        {
            self.socket.count_evicted();
            self.go_away(H2Error::new(ErrorCode::NoError, "others wait for the connection"));
            self.phase = ConnPhase::GivesWay;
        }
        TurnOutcome::On
    }

    /// Ends a connection whose part of a head, or frame, takes memory that is short.
    #[cold]
    fn cut_head(&mut self) -> TurnOutcome {
        self.app.count(&Added { fault: Some(Fault::HeadCut), ..Added::default() });
        self.unread = Box::default();
        self.rare().partial = None;
        let reason = "a head waits for its end, and memory for heads is short";
        self.end_by(H2Error::new(ErrorCode::EnhanceYourCalm, reason));
        TurnOutcome::On
    }

    /// Ends a connection that has failed.
    #[cold]
    pub(super) fn give_up(&mut self, error: &ConnectionError) -> TurnOutcome {
        let fault = match error {
            ConnectionError::TimedOut => Some(Fault::TooSlow),
            ConnectionError::FileTruncated => Some(Fault::FileCut),
            ConnectionError::Cut => {
                // What the kernel holds for it is memory too.
                self.socket.reset_on_drop();
                Some(Fault::SendCut)
            }
            _ => None,
        };
        if fault.is_some() {
            self.app.count(&Added { fault, ..Added::default() });
        }
        if matches!(error, ConnectionError::Ending) {
            self.cut_tunnels();
        }
        self.app.take_back(self.socket.unsent_bytes());
        self.is_lost = true;
        TurnOutcome::Ends
    }

    /// Closes the connection in order.
    pub(super) async fn close(&mut self) {
        if self.is_lost {
            return;
        }
        match self.phase {
            ConnPhase::Broken | ConnPhase::Failed => {
                self.socket.linger(LINGER_MS, LINGER_BYTES_MAX, false).await;
            }
            ConnPhase::PeerGone => self.socket.close().await,
            ConnPhase::GivesWay => {
                self.socket.linger(OTHERS_LINGER_MS, LINGER_BYTES_MAX, false).await;
            }
            _ => self.socket.linger(LAST_LINGER_MS, LINGER_BYTES_MAX, false).await,
        }
    }
}
