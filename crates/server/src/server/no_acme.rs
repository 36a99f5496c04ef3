//! What stands for certificates from an authority in a build without them.

#[cfg(feature = "tls-any")]
use std::path::PathBuf;
use std::sync::Arc;

use gustnado_app::app::ServerShared;
use gustnado_config::Config;
#[cfg(feature = "tls-any")]
use gustnado_tls::AcmeChallenges;

use super::StartError;

/// Would keep a certificate valid.
#[derive(Clone, Copy)]
pub(super) enum CertificateKeeper {}

/// Would end that.
pub(super) enum KeeperHandle {}

pub(super) fn open(
    config: &Config,
    _: bool,
    _: Option<(u32, u32)>,
) -> Result<Option<CertificateKeeper>, StartError> {
    if config.acme.is_empty() { Ok(None) } else { Err(StartError::NoAcme) }
}

pub(super) fn changes(_: &Config, new: &Config, _: bool) -> bool {
    !new.acme.is_empty()
}

pub(super) fn is_there(config: &Config, has_plain: bool) -> Result<bool, StartError> {
    open(config, has_plain, None).map(|_| true)
}

pub(super) fn keep(
    keeper: CertificateKeeper,
    _: &Arc<ServerShared>,
) -> Result<KeeperHandle, StartError> {
    match keeper {}
}

#[cfg(feature = "tls-any")]
pub(super) fn certificate(_: &Config) -> Option<PathBuf> {
    None
}

#[cfg(feature = "tls-any")]
pub(super) fn challenges(_: &Config) -> Option<Arc<AcmeChallenges>> {
    None
}
