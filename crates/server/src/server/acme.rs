//! The server's certificate from an authority: what the settings say, as the crate takes it that
//! obtains and renews it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) use gustnado_acme::KeeperHandle;
use gustnado_acme::{
    AcmeError, AcmeObserver, AcmeSettings, AcmeStatus, ChallengeChoice, ExternalAccount, Keeper,
    is_name,
};
use gustnado_app::app::ServerShared;
use gustnado_config::{AcmeChallenge, Config};
use gustnado_tls::AcmeChallenges;

use super::StartError;
use super::held_workers::say;
use super::listeners::{self, ListenerPlan};
use crate::builder::Server;

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
/// # Errors
/// [`StartError::Acme`]: settings that do not fit each other.
fn settings(config: &Config, plans: &[ListenerPlan]) -> Result<Option<AcmeSettings>, StartError> {
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
        AcmeChallenge::Auto => {
            ChallengeChoice::Auto { has_plain: plans.iter().any(|plan| !plan.has_tls) }
        }
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
    plans: &[ListenerPlan],
    owner: Option<(u32, u32)>,
) -> Result<Option<Keeper>, StartError> {
    let Some(settings) = settings(config, plans)? else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| StartError::Acme { text: error.to_string() };
    let keeper = Keeper::open(settings).map_err(|error| wrong(&error))?;
    if let Some((user, group)) = owner {
        keeper.store().give_to(user, group).map_err(|error| wrong(&error))?;
    }
    Ok(Some(keeper))
}

/// Opens it again if its settings have changed. `None`: they have not.
pub(super) fn open_changed(
    old: &Config,
    new: &Config,
    plans: &[ListenerPlan],
) -> Result<Option<Option<Keeper>>, StartError> {
    let wanted = settings(new, plans)?;
    if settings(old, plans).is_ok_and(|old| old == wanted) {
        return Ok(None);
    }
    open(new, plans, None).map(Some)
}

/// Returns whether the certificates of the settings are there to be checked: one of an authority is
/// not before the first start.
pub(super) fn is_there(config: &Config, plans: &[ListenerPlan]) -> Result<bool, StartError> {
    settings(config, plans)?;
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
pub(super) fn keep(keeper: Keeper, shared: &Arc<ServerShared>) -> Result<KeeperHandle, StartError> {
    let observer = Counting(Arc::clone(shared));
    gustnado_acme::start(keeper, observer).map_err(|error| StartError::Worker { error })
}

impl Server {
    /// Returns what is known of the certificate that [`acme`](Config::acme) wants. It asks nobody.
    ///
    /// # Errors
    /// [`StartError::Acme`]: no certificate is wanted, or the settings do not fit each other.
    pub fn acme_status(&self) -> Result<AcmeStatus, StartError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        self.acme_settings().map(|settings| AcmeStatus::read(&settings, now_s))
    }

    /// Obtains a certificate now, whatever is due: it blocks for some seconds. Challenges are
    /// answered by a server that runs with the same folder. Returns a line about the certificate.
    ///
    /// # Errors
    /// [`StartError::Acme`], with the authority's own words.
    pub fn acme_renew(&self) -> Result<String, StartError> {
        struct Line(Mutex<String>);
        impl AcmeObserver for &Line {
            fn obtained(&self, line: &str) {
                line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
            }

            fn failed(&self, _: &str) {}
        }
        let said = Line(Mutex::default());
        let wrong = |error: AcmeError| StartError::Acme { text: error.to_string() };
        let keeper = Keeper::open(self.acme_settings()?).map_err(wrong)?;
        keeper.renew(&&said).map_err(wrong)?;
        Ok(said.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the DNS records that prove with dns-persist-01 that the names are this account's: a
    /// line of a zone for each.
    ///
    /// # Errors
    /// As [`Server::acme_renew`].
    pub fn acme_dns(&self) -> Result<Vec<String>, StartError> {
        let wrong = |error: AcmeError| StartError::Acme { text: error.to_string() };
        gustnado_acme::dns_records(&self.acme_settings()?).map_err(wrong)
    }

    fn acme_settings(&self) -> Result<AcmeSettings, StartError> {
        let plans = listeners::plans(self)?;
        let none = "expected names such as --acme example.org, found none".to_owned();
        settings(&self.config, &plans)?.ok_or(StartError::Acme { text: none })
    }
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
