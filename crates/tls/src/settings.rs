//! What a program says about TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::challenges::AcmeChallenges;
use crate::clients::{ClientSettings, ClientsError};
use crate::identity::IdentityError;
use crate::tickets::TicketKeysError;

/// The settings of TLS.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct TlsSettings {
    /// Presented where no other site has the name that a client asks for, and to clients that ask
    /// for none. `None` refuses those (`unrecognized_name`).
    pub usual: Option<TlsSite>,
    /// Whether the usual one is for the names of its certificate alone.
    pub is_strict: bool,
    /// Of the hosts that have one of their own.
    pub sites: Vec<TlsSite>,
    /// Whether clients without TLS 1.3 are refused.
    pub needs_v13: bool,
    /// The protocols that are offered by ALPN (RFC 7301), the best one first.
    pub protocols: Vec<Vec<u8>>,
    /// Whether the own layer seals and opens records, or rustls does.
    pub own_records: bool,
    /// How long a handshake may take, in milliseconds.
    pub handshake_ms: u64,
    /// How many handshakes may be under way; beyond it, the oldest one ends.
    pub handshakes_max: usize,
    /// The keys of session tickets, for servers on several machines; `None` for some of the
    /// process.
    pub ticket_keys: Option<PathBuf>,
    /// Answers to the challenges of certificate authorities.
    pub challenges: Option<Arc<AcmeChallenges>>,
    /// Whether secrets are written to the file that `SSLKEYLOGFILE` names.
    pub logs_keys: bool,
}

impl TlsSettings {
    /// Returns all files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let sites = self.sites.iter().chain(&self.usual);
        let of_sites = sites.flat_map(|site| {
            let clients = site.clients.as_ref();
            let authorities = clients.map(|clients| clients.authorities.as_path());
            let revoked = clients.and_then(|clients| clients.revoked.as_deref());
            let own = [site.certificates.as_path(), site.key.as_path()];
            own.into_iter().chain(authorities).chain(revoked)
        });
        of_sites.chain(self.ticket_keys.as_deref())
    }
}

/// What a site presents, and what it wants of its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSite {
    /// Host names in lower case; `*.example.org` is all below it.
    pub hosts: Vec<String>,
    /// The chain, the site's own certificate first, in PEM.
    pub certificates: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Whether certificates of clients are wanted, and whose.
    pub clients: Option<ClientSettings>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsSettingsError {
    /// The certificates or the key are of no use.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Certificates of clients cannot be checked.
    #[error(transparent)]
    Clients(#[from] ClientsError),
    /// The keys of tickets are of no use.
    #[error(transparent)]
    TicketKeys(#[from] TicketKeysError),
    /// The library refuses the settings.
    #[error("TLS: {0}")]
    Library(#[from] rustls::Error),
}
