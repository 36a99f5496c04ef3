//! What a program or a person can do with the certificate of an authority.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado_acme::{AcmeError, AcmeObserver, AcmeSettings, AcmeStatus, CertificateKeeper};

use super::StartError;
use super::acme::settings;
use super::listeners::{self, NameLookup, has_plain};
use crate::builder::Server;

impl Server {
    /// Returns what is known of the certificate that [`acme`](crate::config::Config::acme) wants.
    /// It asks nobody.
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
        struct ObtainedLine(Mutex<String>);
        impl AcmeObserver for &ObtainedLine {
            fn obtained(&self, line: &str) {
                line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
            }

            fn failed(&self, _: &str) {}
        }
        let said = ObtainedLine(Mutex::default());
        let wrong = |error: AcmeError| StartError::Acme { text: error.to_string() };
        let keeper = CertificateKeeper::open(self.acme_settings()?).map_err(wrong)?;
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
        let has_plain = has_plain(&listeners::plans(self, NameLookup::AtStart)?);
        let none = "expected names such as --acme example.org, found none".to_owned();
        settings(&self.config, has_plain)?.ok_or(StartError::Acme { text: none })
    }
}
