//! What a folder tells about its certificate, and the records of dns-persist-01.

use std::fmt;

use crate::account;
use crate::attempt::run;
use crate::authority::Authority;
use crate::certificate::HeldCertificate;
use crate::error::AcmeError;
use crate::schedule::AcmeState;
use crate::settings::AcmeSettings;
use crate::store::CertificateStore;

/// What a folder tells about its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeStatus {
    names: Vec<String>,
    held: Option<HeldCertificate>,
    state: AcmeState,
    now_s: i64,
}

impl AcmeStatus {
    /// Reads it, and asks nobody.
    ///
    /// - `now_s`: seconds since 1970.
    pub fn read(settings: &AcmeSettings, now_s: i64) -> Self {
        let folder = settings.folder.clone();
        let held = HeldCertificate::read(&folder.join("certificate.pem"));
        let state = std::fs::read(folder.join("state.json")).ok();
        let state = state.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { names: settings.names.clone(), held, state: state.unwrap_or_default(), now_s }
    }

    /// Returns whether there is a certificate of an authority, for the names that are wanted.
    pub fn is_good(&self) -> bool {
        self.held.as_ref().is_some_and(|held| {
            !held.is_placeholder && held.has(&self.names) && held.not_after_s > self.now_s
        })
    }

    fn in_days(&self, at_s: i64) -> String {
        let left = at_s - self.now_s;
        match left {
            172_800.. => format!("in {} days", left / 86_400),
            7_200.. => format!("in {} hours", left / 3_600),
            120.. => format!("in {} minutes", left / 60),
            1.. => format!("in {left} s"),
            _ => "now".to_owned(),
        }
    }
}

/// A few lines.
impl fmt::Display for AcmeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "names:       {}", self.names.join(", "))?;
        match &self.held {
            None => writeln!(f, "certificate: none yet")?,
            Some(held) if held.is_placeholder => {
                writeln!(f, "certificate: none of an authority yet; one of the server stands in")?;
            }
            Some(held) if held.not_after_s <= self.now_s => {
                writeln!(f, "certificate: {}, which has ended", held.serial)?;
            }
            Some(held) => {
                let ends = self.in_days(held.not_after_s);
                writeln!(f, "certificate: {}, which ends {ends}", held.serial)?;
                if !held.has(&self.names) {
                    writeln!(f, "             it is for {}", held.names.join(", "))?;
                }
            }
        }
        let next = if self.is_good() {
            self.state.renew_at_s.max(self.state.retry_at_s)
        } else {
            self.state.retry_at_s
        };
        writeln!(f, "next:        an attempt {}", self.in_days(next))?;
        if let Some((from, to)) = self.state.advised_s {
            let (from, to) = (self.in_days(from), self.in_days(to));
            writeln!(f, "advice:      renew between {from} and {to}")?;
        }
        if let (1.., Some(error)) = (self.state.failures, &self.state.last_error) {
            let ago = (self.now_s - self.state.last_error_at_s) / 60;
            writeln!(f, "failed:      {} times; {ago} minutes ago: {error}", self.state.failures)?;
        }
        Ok(())
    }
}

/// Returns the records that prove with dns-persist-01 that names are this account's: a line of a
/// zone for each. The account is made if there is none yet.
///
/// # Errors
/// [`AcmeError`].
pub fn dns_records(settings: &AcmeSettings) -> Result<Vec<String>, AcmeError> {
    let store = CertificateStore::open(&settings.folder)?;
    let Some(_lock) = store.lock()? else { return Err(AcmeError::UnderWay) };
    let mut state: AcmeState = store.read("state.json").unwrap_or_default();
    let authority = Authority::new(settings);
    let asked = async {
        let account = account::open(settings, &store, &mut state, &authority).await?;
        let directory = authority.get(&settings.directory).await;
        let directory = directory.map_err(|error| AcmeError::Unreachable(error.to_string()))?;
        Ok((account.id().to_owned(), directory))
    };
    let (account, directory) = run(asked)?;
    store.write("state.json", &state)?;
    let directory: serde_json::Value = serde_json::from_slice(&directory)
        .map_err(|error| AcmeError::Unusable(format!("a directory: {error}")))?;
    let issuer = directory["meta"]["caaIdentities"][0].as_str();
    let issuer = issuer.ok_or_else(|| {
        AcmeError::Unusable("a directory without caaIdentities, which the record names".to_owned())
    })?;
    let hosts = settings.names.iter().filter(|name| name.parse::<std::net::IpAddr>().is_err());
    Ok(hosts.map(|name| record(name, issuer, &account)).collect())
}

/// A wildcard is proved at its domain.
fn record(name: &str, issuer: &str, account: &str) -> String {
    let (domain, policy) = match name.strip_prefix("*.") {
        Some(domain) => (domain, "; policy=wildcard"),
        None => (name, ""),
    };
    format!("_validation-persist.{domain}. IN TXT \"{issuer}; accounturi={account}{policy}\"")
}

#[cfg(test)]
mod tests {
    use super::record;

    #[test]
    fn a_record_names_the_issuer_and_the_account() {
        assert_eq!(
            record("*.a.test", "ca.test", "https://ca.test/1"),
            "_validation-persist.a.test. IN TXT \
             \"ca.test; accounturi=https://ca.test/1; policy=wildcard\""
        );
    }
}
