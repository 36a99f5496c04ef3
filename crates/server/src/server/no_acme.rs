//! What stands for certificates from an authority in a build without them.

#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::sync::Arc;

use gustnado_app::app::ServerShared;
use gustnado_config::Config;
#[cfg(feature = "tls")]
use gustnado_tls::AcmeChallenges;

use super::StartError;
use super::listeners::ListenerPlan;

/// Would keep a certificate valid.
pub(super) enum Keeper {}

/// Would end that.
pub(super) enum KeeperHandle {}

pub(super) fn open(
    config: &Config,
    _: &[ListenerPlan],
    _: Option<(u32, u32)>,
) -> Result<Option<Keeper>, StartError> {
    if config.acme.is_empty() { Ok(None) } else { Err(StartError::NoAcme) }
}

pub(super) fn open_changed(
    _: &Config,
    new: &Config,
    plans: &[ListenerPlan],
) -> Result<Option<Option<Keeper>>, StartError> {
    open(new, plans, None).map(|_| None)
}

pub(super) fn is_there(config: &Config, plans: &[ListenerPlan]) -> Result<bool, StartError> {
    open(config, plans, None).map(|_| true)
}

pub(super) fn keep(keeper: Keeper, _: &Arc<ServerShared>) -> Result<KeeperHandle, StartError> {
    match keeper {}
}

#[cfg(feature = "tls")]
pub(super) fn certificate(_: &Config) -> Option<PathBuf> {
    None
}

#[cfg(feature = "tls")]
pub(super) fn challenges(_: &Config) -> Option<Arc<AcmeChallenges>> {
    None
}
