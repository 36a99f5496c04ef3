//! How a server takes connections by TLS: what it presents to clients, by the name they ask for.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use gustnado_tasks::ConnectionError;
use rustls::server::ClientHello;

use crate::challenges::AcmeChallenges;
use crate::client_policy::ClientPolicy;
use crate::handshake::{ChooseConfig, Chosen, HandshakeError};
use crate::handshake_failure::HandshakeFailure;
use crate::identity::SiteIdentity;
use crate::in_flight::{HandshakesUnderWay, is_crowded};
use crate::settings::{TlsSettings, TlsSettingsError};
use crate::shared_infos::SharedInfos;
use crate::sites::{Site, Sites};
use crate::stamps::FileStamps;
use crate::tickets::TicketKeys;

/// Why a connection has not got through its handshake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// What the client sent.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The connection is lost, or the time is over.
    #[error("the connection ended in its handshake: {0}")]
    Lost(ConnectionError),
    /// The client has closed before the end of the handshake.
    #[error("the client closed in its handshake")]
    Closed,
    /// Too many handshakes were under way, and this was the oldest one.
    #[error("the handshake gave way to newer ones")]
    Evicted,
}

impl AcceptError {
    /// Returns how it failed, as it is counted.
    pub fn failure(&self) -> HandshakeFailure {
        match self {
            Self::Handshake(HandshakeError::PlainHttp) => HandshakeFailure::Plain,
            Self::Handshake(error) => HandshakeFailure::Refused(error.refusal()),
            Self::Lost(ConnectionError::TimedOut) => HandshakeFailure::Slow,
            Self::Lost(_) | Self::Closed => HandshakeFailure::Lost,
            Self::Evicted => HandshakeFailure::Evicted,
        }
    }
}

/// Takes connections by TLS. One serves all listeners and workers.
#[derive(Debug)]
pub struct TlsAcceptor {
    pub(crate) settings: TlsSettings,
    tickets: Arc<TicketKeys>,
    current: RwLock<Current>,
    pub(crate) in_flight: HandshakesUnderWay,
    pub(crate) infos: SharedInfos,
}

/// What was last read from files.
#[derive(Debug)]
struct Current {
    sites: Arc<Sites>,
    /// The files as they were before they were read.
    stamps: FileStamps,
    /// They could not be used as they were.
    refused: Option<RefusedFiles>,
}

/// Files that could not be used. What was wrong may pass without a change of theirs: a certificate
/// that is not valid yet, no descriptor left, a file system that fails for a moment.
#[derive(Clone, Copy, Debug)]
struct RefusedFiles {
    at_s: i64,
    /// They are read again after so many seconds.
    wait_s: i64,
}

/// The longest such wait.
const WAIT_S_MAX: i64 = 60;

impl RefusedFiles {
    fn new(now_s: i64, before: Option<Self>) -> Self {
        let wait_s = before.map_or(1, |before| (before.wait_s * 2).min(WAIT_S_MAX));
        Self { at_s: now_s, wait_s }
    }

    /// Returns whether they are to be read again. The clock may have been set back.
    fn is_due(self, now_s: i64) -> bool {
        !(self.at_s..self.at_s + self.wait_s).contains(&now_s)
    }
}

impl TlsAcceptor {
    /// Reads the certificates, keys and authorities.
    ///
    /// - `tickets`: the keys of tickets of the process, so that a reload ends no session; keys of a
    ///   file take their place.
    /// - `now_s`: seconds since 1970, for the validity of the certificates.
    ///
    /// # Errors
    /// [`TlsSettingsError`].
    pub fn new(
        settings: TlsSettings,
        tickets: &Arc<TicketKeys>,
        now_s: i64,
    ) -> Result<Self, TlsSettingsError> {
        let tickets = match &settings.ticket_keys {
            Some(path) => Arc::new(TicketKeys::read(path)?),
            None => Arc::clone(tickets),
        };
        let stamps = FileStamps::of(settings.files());
        let sites = Arc::new(Sites::read(&settings, &tickets, now_s)?);
        let current = RwLock::new(Current { sites, stamps, refused: None });
        let in_flight = HandshakesUnderWay::new(settings.handshakes_max);
        let infos = SharedInfos::default();
        Ok(Self { settings, tickets, current, in_flight, infos })
    }

    /// Reads all files again if one of them has changed since the last call, and from time to time
    /// while they cannot be used. Connections keep what they have; what cannot be read leaves
    /// everything as it is. Returns whether it was replaced.
    ///
    /// # Errors
    /// [`TlsSettingsError`]: each change is reported once.
    pub fn refresh(&self, now_s: i64) -> Result<bool, TlsSettingsError> {
        let stamps = FileStamps::of(self.settings.files());
        let refused = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            match current.refused {
                _ if current.stamps != stamps => {
                    current.stamps = stamps;
                    None
                }
                Some(refused) if refused.is_due(now_s) => Some(refused),
                _ => return Ok(false),
            }
        };
        let read = self.read(now_s);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok((sites, keys)) => {
                if let Some(keys) = keys {
                    self.tickets.replace(keys);
                }
                (current.sites, current.refused) = (sites, None);
                Ok(true)
            }
            Err(error) => {
                current.refused = Some(RefusedFiles::new(now_s, refused));
                if refused.is_some() { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Reads what is presented, and the keys of tickets, if those are in a file.
    fn read(&self, now_s: i64) -> Result<(Arc<Sites>, Option<TicketKeys>), TlsSettingsError> {
        let keys = self.settings.ticket_keys.as_deref().map(TicketKeys::read).transpose()?;
        Ok((Arc::new(Sites::read(&self.settings, &self.tickets, now_s)?), keys))
    }

    /// Returns what is presented to clients, of each site.
    pub fn identities(&self) -> Vec<SiteIdentity> {
        self.sites().all().map(|site| site.identity.clone()).collect()
    }

    /// Returns the first host of each site, and when its certificate ends, in seconds since 1970.
    pub fn certificate_ends(&self) -> Vec<(String, i64)> {
        let end = |site: &Arc<Site>| (site.first_host.to_string(), site.identity.not_after_s);
        let mut ends: Vec<_> = self.sites().all().map(end).collect();
        // A site comes once for each of its hosts.
        ends.sort();
        ends.dedup();
        ends
    }

    /// Returns what clients are shown that ask for a host, and its file; `None`: their handshakes
    /// are refused.
    ///
    /// - `host`: in lower case, without a port.
    pub fn presented_to(&self, host: &str) -> Option<(PathBuf, SiteIdentity)> {
        let sites = self.sites();
        let site = sites.of_host(host)?;
        Some((site.certificates.to_path_buf(), site.identity.clone()))
    }

    /// Returns what a host wants of its clients' certificates.
    ///
    /// - `host`: in lower case, without a port.
    pub fn policy_of(&self, host: &str) -> ClientPolicy {
        self.sites().of_host(host).map_or(ClientPolicy::NONE, |site| site.policy)
    }

    /// Returns the answers to challenges of certificate authorities, if there may be some.
    pub fn challenges(&self) -> Option<&Arc<AcmeChallenges>> {
        self.settings.challenges.as_ref()
    }

    /// Returns whether a host wants certificates of its clients at all.
    pub fn has_policies(&self) -> bool {
        self.sites().all().any(|site| site.policy != ClientPolicy::NONE)
    }

    fn sites(&self) -> Arc<Sites> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).sites)
    }
}

impl ChooseConfig for TlsAcceptor {
    fn choose(&self, hello: &ClientHello<'_>) -> Option<Chosen> {
        if let Some(config) = self.challenges().and_then(|all| all.of_hello(hello)) {
            let certificate = Arc::from("");
            return Some(Chosen { config, certificate, policy: ClientPolicy::NONE });
        }
        let sites = self.sites();
        let site: &Arc<Site> = match hello.server_name() {
            Some(name) => sites.of_host(&name.to_ascii_lowercase())?,
            None => sites.usual()?,
        };
        let config = Arc::clone(site.config_for(hello, is_crowded()));
        let certificate = Arc::clone(&site.identity.pem);
        Some(Chosen { config, certificate, policy: site.policy })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd, generate_simple_self_signed};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, HandshakeKind};

    use super::*;
    use crate::connector::{ConnectorSettings, TlsConnector, Trust};
    use crate::handshake::{Handshake, HandshakeProgress};
    use crate::in_flight::WaitingHello;
    use crate::settings::TlsSite;

    const NOW_S: i64 = 1_900_000_000;

    fn acceptor(folder: &std::path::Path) -> TlsAcceptor {
        let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let file = folder.join("pair.pem");
        let pem = made.signing_key.serialize_pem() + &made.cert.pem();
        std::fs::write(&file, pem).expect("a file");
        let (certificates, key) = (file.clone(), file);
        let settings = TlsSettings {
            usual: Some(TlsSite { hosts: Vec::new(), certificates, key, clients: None }),
            is_strict: false,
            sites: Vec::new(),
            needs_v13: false,
            protocols: Vec::new(),
            own_records: true,
            handshake_ms: 1_000,
            handshakes_max: 10,
            ticket_keys: None,
            challenges: None,
            logs_keys: false,
        };
        let tickets = Arc::new(TicketKeys::random().expect("random bytes"));
        TlsAcceptor::new(settings, &tickets, NOW_S).expect("a pair")
    }

    /// Makes a connection. Returns how it went, and what was sent before the client's answer.
    fn shaken(acceptor: &TlsAcceptor, config: &ClientConfig) -> (HandshakeKind, usize) {
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(Arc::new(config.clone()), name).expect("a client");
        let (mut handshake, mut first) = (Handshake::default(), None);
        for _ in 0..5 {
            let (mut sent, mut out) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut sent).expect("memory does not fail");
            }
            handshake.push(&sent);
            let progress = handshake.advance(acceptor, true, &mut out).expect("a good client");
            first = first.or(Some(out.len()));
            let mut rest = &out[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).expect("memory does not fail");
                client.process_new_packets().expect("a good server");
            }
            if matches!(progress, HandshakeProgress::Done(_)) {
                break;
            }
        }
        (client.handshake_kind().expect("it is over"), first.unwrap_or_default())
    }

    #[test]
    fn files_that_cannot_be_used_are_read_again_without_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let acceptor = acceptor(folder.path());
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2040, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let made = params.self_signed(&key).expect("a certificate");
        let pem = key.serialize_pem() + &made.pem();
        std::fs::write(folder.path().join("pair.pem"), pem).expect("a file");
        acceptor.refresh(NOW_S).expect_err("it is not valid yet");
        for second in 0..100 {
            assert!(!acceptor.refresh(NOW_S + second).expect("it was told once"));
        }
        let valid_s = 2_209_000_000;
        assert!(acceptor.refresh(valid_s).expect("now it is"));
        assert!(!acceptor.refresh(valid_s + 100).expect("nothing is new"));
    }

    #[test]
    fn refused_files_are_read_less_often_with_time() {
        let mut refused = RefusedFiles::new(NOW_S, None);
        assert!(!refused.is_due(NOW_S) && refused.is_due(NOW_S + 1));
        for _ in 0..10 {
            refused = RefusedFiles::new(NOW_S, Some(refused));
        }
        assert!(!refused.is_due(NOW_S + 59) && refused.is_due(NOW_S + 60));
        assert!(refused.is_due(NOW_S - 1), "the clock was set back");
    }

    #[test]
    fn clients_of_a_crowd_are_asked_again_before_they_cost_much() {
        let folder = tempfile::tempdir().expect("a folder");
        let acceptor = acceptor(folder.path());
        let settings = ConnectorSettings { trust: Trust::Anyone, ..ConnectorSettings::default() };
        let connector = TlsConnector::new(&settings, NOW_S).expect("settings");
        let (kind, sent) = shaken(&acceptor, &connector.config);
        assert!(kind == HandshakeKind::Full && sent > 500, "{kind:?} {sent}");
        let crowd: Vec<WaitingHello> = (0..100).map(|_| WaitingHello::new()).collect();
        // (The session of before would be resumed.)
        let fresh = ConnectorSettings { is_fresh: true, ..settings };
        let fresh = TlsConnector::new(&fresh, NOW_S).expect("settings");
        let (kind, sent) = shaken(&acceptor, &fresh.config);
        assert!(kind == HandshakeKind::FullWithHelloRetryRequest && sent < 200, "{kind:?} {sent}");
        drop(crowd);
        assert_eq!(shaken(&acceptor, &fresh.config).0, HandshakeKind::Full);
    }
}
