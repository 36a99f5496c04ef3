//! When an operation that waits fails early: the server ends, others wait for its connection, or
//! its memory is needed.

use crate::exec::executor::context::{Alarm, WorkerContext};
use crate::exec::waits::WaitsOn;
use crate::exec::worker::cuts::CutDuring;
use crate::exec::worker::evictions::EvictionAnswer;
use crate::exec::worker::workers_shared::Phase;
use crate::net::connection_error::ConnectionError;

/// How an operation that waits takes it when the server ends, or others wait for its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idleness {
    /// Something is owed to the peer, or received in part.
    Busy,
    /// A drain ends it.
    Idle,
    /// Others may have the slot too.
    GivesWay,
    /// A part of a request's head is here, which is cut where heads hold too much.
    PartialHead,
}

impl Idleness {
    pub(super) fn of(idle: bool) -> Self {
        if idle { Self::Idle } else { Self::Busy }
    }

    /// The same where an idle connection may give way to others, and one that is not waits for the
    /// rest of a head.
    pub(super) fn of_request(idle: bool) -> Self {
        if idle { Self::GivesWay } else { Self::PartialHead }
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Idle | Self::GivesWay)
    }
}

/// Returns why an operation that would wait is not to.
#[cold]
pub(super) fn disturbance(
    ctx: &WorkerContext,
    (on, idle): (WaitsOn, Idleness),
    alarm: &mut Alarm,
) -> Option<ConnectionError> {
    let phase = ctx.phase();
    if phase >= Phase::Cutting || (idle.may_end() && phase >= Phase::Draining) {
        return Some(ConnectionError::Ending);
    }
    let during = match (on, idle) {
        (WaitsOn::SocketWrite, _) => Some(CutDuring::Send),
        (_, Idleness::PartialHead) => Some(CutDuring::Head),
        _ => None,
    };
    if during.is_some_and(|during| ctx.shared.take_cut(ctx.current(), during)) {
        return Some(ConnectionError::Cut);
    }
    let EvictionAnswer::Asked(question) = ctx.eviction_answer.get() else { return None };
    if idle != Idleness::GivesWay {
        return None;
    }
    let deadline_ms = alarm.move_timer(ctx);
    ctx.eviction_answer.set(EvictionAnswer::Waiting(question, deadline_ms));
    Some(ConnectionError::GiveWay)
}
