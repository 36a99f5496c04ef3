//! Tables that are not what they become: a page has one of three keys, a scenario several points.

use super::{BodySpec, ScenarioSpec};

/// The keys of a page.
#[derive(Debug, Default)]
pub(super) struct PageDraft {
    pub(super) bytes: Option<u64>,
    pub(super) file: Option<String>,
    pub(super) path: Option<String>,
}

/// The keys of a scenario.
#[derive(Debug, Default)]
pub(super) struct ScenarioDraft {
    /// What all its points have in common.
    pub(super) spec: ScenarioSpec,
    /// The connections of each point.
    pub(super) sweep: Vec<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) path: Option<String>,
    /// Whether messages over a `WebSocket` are sent to all.
    pub(super) websocket: Option<bool>,
    pub(super) send: Option<BodySpec>,
    pub(super) accept_status: Option<String>,
}
