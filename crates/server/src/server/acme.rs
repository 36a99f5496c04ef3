//! The server's certificate from an authority: what the settings say, as the crate takes it that
//! obtains and renews it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) use gustnado_acme::KeeperHandle;
use gustnado_acme::{
    AcmeObserver, AcmeSettings, CertificateKeeper, ChallengeChoice, ExternalAccount, is_name,
};
use gustnado_app::app::ServerShared;
use gustnado_config::{AcmeChallenge, Config};
use gustnado_tls::AcmeChallenges;

use super::StartError;
use super::held_workers::say;

/// Where the folder is if nothing says so: below the state of a service, or of a user.
fn usual_folder() -> PathBuf {
    let below = |name: &str| {
        // systemd may give several, with colons between them.
        let value = std::env::var(name).ok()?;
        value.split(':').next().filter(|path| !path.is_empty()).map(PathBuf::from)
    };
    below("STATE_DIRECTORY")
        .or_else(|| Some(below("XDG_DATA_HOME")?.join("gustnado")))
        .or_else(|| Some(below("HOME")?.join(".local/share/gustnado")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/gustnado"))
        .join("acme")
}

/// Returns the folder of the certificate.
fn folder(config: &Config) -> PathBuf {
    config.acme_dir.clone().unwrap_or_else(usual_folder)
}

/// Returns what is wanted of an authority; `None` if nothing is.
///
/// - `has_plain`: a listener speaks plain HTTP, so that a challenge can be answered there.
///
/// # Errors
/// [`StartError::Acme`]: settings that do not fit each other.
pub(super) fn settings(
    config: &Config,
    has_plain: bool,
) -> Result<Option<AcmeSettings>, StartError> {
    if config.acme.is_empty() {
        return Ok(None);
    }
    let wrong = |text: String| StartError::Acme { text };
    if config.tls_cert.is_some() {
        return Err(wrong("expected --acme or --tls-cert, found both; leave one out".to_owned()));
    }
    let names: Vec<String> = config.acme.iter().map(|name| name.to_ascii_lowercase()).collect();
    for name in &names {
        if !is_name(name) {
            let text = format!("expected host names with a dot, or IP addresses, found {name:?}");
            return Err(wrong(text));
        }
        if name.starts_with("*.") && config.acme_challenge != AcmeChallenge::DnsPersist01 {
            return Err(wrong(format!(
                "{name} can be proved by its domain alone; set --acme-challenge dns-persist-01"
            )));
        }
    }
    let external = match (config.acme_eab_id.as_str(), &config.acme_eab_key) {
        ("", None) => None,
        (id, Some(key)) if !id.is_empty() => {
            Some(ExternalAccount { id: id.to_owned(), key: key.clone() })
        }
        _ => {
            let text = "expected --acme-eab-id and --acme-eab-key together, found one of them";
            return Err(wrong(text.to_owned()));
        }
    };
    let challenge = match config.acme_challenge {
        AcmeChallenge::Auto => ChallengeChoice::Auto { has_plain },
        AcmeChallenge::Http01 => ChallengeChoice::Http01,
        AcmeChallenge::TlsAlpn01 => ChallengeChoice::TlsAlpn01,
        AcmeChallenge::DnsPersist01 => ChallengeChoice::DnsPersist01,
    };
    Ok(Some(AcmeSettings {
        names,
        email: Some(config.acme_email.clone()).filter(|email| !email.is_empty()),
        directory: config.acme_directory.clone(),
        trusted: config.acme_ca.clone(),
        folder: folder(config),
        profile: config.acme_profile.clone(),
        challenge,
        external,
    }))
}

/// Opens the folder, so that there is a certificate to start with; `None` if none is wanted.
///
/// - `owner`: the user and the group that the server changes to.
pub(super) fn open(
    config: &Config,
    has_plain: bool,
    owner: Option<(u32, u32)>,
) -> Result<Option<CertificateKeeper>, StartError> {
    let Some(settings) = settings(config, has_plain)? else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| StartError::Acme { text: error.to_string() };
    let keeper = CertificateKeeper::open(settings).map_err(|error| wrong(&error))?;
    if let Some((user, group)) = owner {
        keeper.store().give_to(user, group).map_err(|error| wrong(&error))?;
    }
    Ok(Some(keeper))
}

/// Returns whether other settings want something else.
pub(super) fn changes(old: &Config, new: &Config, has_plain: bool) -> bool {
    match (settings(old, has_plain), settings(new, has_plain)) {
        (Ok(old), Ok(new)) => old != new,
        _ => true,
    }
}

/// Returns whether the certificates of the settings are there to be checked: one of an authority is
/// not before the first start.
pub(super) fn is_there(config: &Config, has_plain: bool) -> Result<bool, StartError> {
    settings(config, has_plain)?;
    Ok(certificate(config).is_none_or(|path| path.exists()))
}

/// Returns the file of the certificate, if one is wanted.
pub(super) fn certificate(config: &Config) -> Option<PathBuf> {
    (!config.acme.is_empty()).then(|| folder(config).join("certificate.pem"))
}

/// Returns the answers to challenges, if there may be some.
pub(super) fn challenges(config: &Config) -> Option<Arc<AcmeChallenges>> {
    let folder = || folder(config).join("challenges");
    (!config.acme.is_empty()).then(|| Arc::new(AcmeChallenges::new(folder())))
}

/// Keeps the certificate valid from now on.
pub(super) fn keep(
    keeper: CertificateKeeper,
    shared: &Arc<ServerShared>,
) -> Result<KeeperHandle, StartError> {
    let observer = Counting(Arc::clone(shared));
    gustnado_acme::start(keeper, observer).map_err(|error| StartError::Worker { error })
}

/// Counts attempts, and says how they ended.
struct Counting(Arc<ServerShared>);

impl AcmeObserver for Counting {
    fn obtained(&self, line: &str) {
        self.0.certificates_obtained.fetch_add(1, Ordering::Relaxed);
        say(&format!("gustnado: {line}"));
    }

    fn failed(&self, line: &str) {
        self.0.certificates_failed.fetch_add(1, Ordering::Relaxed);
        say(&format!("gustnado: {line}"));
    }
}
