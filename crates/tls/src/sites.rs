//! The sites of a server: each with its certificates, and what it wants of its clients.

use std::path::Path;
use std::sync::Arc;

use gustnado_http::hosts::HostMap;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ServerConfig};
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{KeyLog, KeyLogFile, NamedGroup};

use crate::client_policy::ClientPolicy;
use crate::clients::ClientChecks;
use crate::crypto::digest::{Context, SHA256};
use crate::identity::SiteIdentity;
use crate::settings::{TlsSettings, TlsSettingsError, TlsSite};
use crate::tickets::{SiteTickets, TicketKeys};

/// All sites, by host.
#[derive(Debug)]
pub(crate) struct Sites {
    hosts: HostMap<Arc<Site>>,
    usual: Option<Arc<Site>>,
}

/// A site as the library takes it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) config: Arc<ServerConfig>,
    /// The same for a crowd of hellos: it asks nearly every client of TLS 1.3 for another share
    /// first (RFC 8446 §4.1.4), so that one which never answers has cost little.
    pub(crate) config_of_crowd: Arc<ServerConfig>,
    pub(crate) identity: SiteIdentity,
    /// The file of the certificates.
    pub(crate) certificates: Box<Path>,
    pub(crate) policy: ClientPolicy,
    /// The first of its hosts; of its certificate's names, where it is for all other hosts.
    pub(crate) first_host: Box<str>,
}

impl Sites {
    /// Reads the files of all sites.
    ///
    /// # Errors
    /// [`TlsSettingsError`].
    pub(crate) fn read(
        settings: &TlsSettings,
        tickets: &Arc<TicketKeys>,
        now_s: i64,
    ) -> Result<Self, TlsSettingsError> {
        let provider = Arc::new(crate::crypto::provider());
        let of_crowd = Arc::new(provider_of_crowd());
        let key_log = settings.logs_keys.then(|| Arc::new(KeyLogFile::new()) as Arc<dyn KeyLog>);
        let read = |site| {
            Site::read(site, settings, (&provider, &of_crowd), tickets, key_log.as_ref(), now_s)
        };
        let usual = settings.usual.as_ref().map(read).transpose()?.map(Arc::new);
        let mut sites = Self { hosts: HostMap::default(), usual: None };
        match usual {
            Some(usual) if settings.is_strict => sites.add(&usual.identity.names, &usual),
            usual => sites.usual = usual,
        }
        for spec in &settings.sites {
            sites.add(&spec.hosts, &Arc::new(read(spec)?));
        }
        Ok(sites)
    }

    /// Adds a site; its hosts are no longer those of sites before it.
    fn add(&mut self, hosts: &[String], site: &Arc<Site>) {
        for host in hosts {
            self.hosts.set(host, Arc::clone(site));
        }
    }

    /// Returns the site of a host; that of all others where it has none of its own.
    ///
    /// - `host`: in lower case, without a port and without the root's dot.
    pub(crate) fn of_host(&self, host: &str) -> Option<&Arc<Site>> {
        self.hosts.get(host).or(self.usual.as_ref())
    }

    /// Returns the site of clients that ask for no name.
    pub(crate) fn usual(&self) -> Option<&Arc<Site>> {
        self.usual.as_ref()
    }

    /// Returns all of them; one with several hosts may come several times.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.hosts.values().chain(&self.usual)
    }
}

impl Site {
    fn read(
        site: &TlsSite,
        settings: &TlsSettings,
        (provider, of_crowd): (&Arc<CryptoProvider>, &Arc<CryptoProvider>),
        tickets: &Arc<TicketKeys>,
        key_log: Option<&Arc<dyn KeyLog>>,
        now_s: i64,
    ) -> Result<Self, TlsSettingsError> {
        let identity = SiteIdentity::read(&site.certificates, &site.key, provider, now_s)?;
        let ClientChecks { verifier, policy } =
            ClientChecks::read(site.clients.as_ref(), provider)?;
        let versions: &[_] = if settings.needs_v13 { &[&TLS13] } else { &[&TLS13, &TLS12] };
        let resolver = Arc::new(SingleCertAndKey::from(Arc::clone(&identity.key)));
        let binding = binding(&site.hosts, policy);
        let config = |provider: &Arc<CryptoProvider>| -> Result<_, TlsSettingsError> {
            let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
                .with_protocol_versions(versions)?
                .with_client_cert_verifier(Arc::clone(&verifier))
                .with_cert_resolver(Arc::clone(&resolver) as _);
            config.alpn_protocols.clone_from(&settings.protocols);
            // Sessions are in the tickets that clients keep: nothing grows here.
            // The own layer goes on with them; an alert of ours is sealed with the library's.
            config.enable_secret_extraction = true;
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.ticketer = Arc::new(SiteTickets { keys: Arc::clone(tickets), binding });
            if let Some(key_log) = key_log {
                config.key_log = Arc::clone(key_log);
            }
            Ok(Arc::new(config))
        };
        let (config, config_of_crowd) = (config(provider)?, config(of_crowd)?);
        let first_host = site.hosts.first().or(identity.names.first());
        let first_host = first_host.map_or("", String::as_str).into();
        let certificates = site.certificates.as_path().into();
        Ok(Self { config, config_of_crowd, identity, certificates, policy, first_host })
    }
}

/// Returns the ciphers for a crowd of hellos: with the groups that clients know, and send no share
/// of at first.
fn provider_of_crowd() -> CryptoProvider {
    let mut provider = crate::crypto::provider();
    provider.kx_groups.retain(|group| GROUPS_OF_CROWD.contains(&group.name()));
    provider
}

/// The groups of a crowd.
const GROUPS_OF_CROWD: [NamedGroup; 2] = [NamedGroup::secp256r1, NamedGroup::secp384r1];

impl Site {
    /// Returns the configuration for a client.
    ///
    /// - `is_crowded`: more hellos come than can be answered.
    pub(crate) fn config_for(
        &self,
        hello: &ClientHello<'_>,
        is_crowded: bool,
    ) -> &Arc<ServerConfig> {
        let knows_group = || {
            let mut groups = hello.named_groups().into_iter().flatten();
            groups.any(|group| GROUPS_OF_CROWD.contains(group))
        };
        if is_crowded && knows_group() { &self.config_of_crowd } else { &self.config }
    }
}

/// Returns what tickets of a site are bound to: its hosts, and whose certificates it wants. It is
/// the same on all machines with the same settings.
fn binding(hosts: &[String], policy: ClientPolicy) -> [u8; 32] {
    let mut digest = Context::new(&SHA256);
    for host in hosts {
        digest.update(host.as_bytes());
        digest.update(b"\n");
    }
    digest.update(&policy.to_be_bytes());
    digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}
