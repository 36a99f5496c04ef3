//! TLS of a server: what its settings say, as the socket's crate takes it; and its files, which are
//! read again when they change.

use std::sync::Arc;

use gustnado_app::app::{AppHandle, ServerShared};
use gustnado_tasks::Endpoint;
use gustnado_tls::TlsAcceptor;

use super::StartError;
use crate::builder::Server;

#[cfg(feature = "tls-any")]
mod with_tls {
    use std::io;
    use std::sync::atomic::Ordering;
    use std::sync::{OnceLock, Weak};
    use std::thread;
    use std::time::{Duration, SystemTime};

    use gustnado_config::config_file::SiteTls;
    use gustnado_config::{Config, TlsClientAuth, TlsRecords, TlsVersionMin};
    use gustnado_observe::certificate_end::CertificateEnd;
    use gustnado_tls::{ClientSettings, TicketKeys, TlsSettings, TlsSite};

    use super::super::acme;
    use super::super::held_workers::say;
    use super::{AppHandle, Arc, Endpoint, Server, ServerShared, StartError, TlsAcceptor};

    /// How often files are looked at.
    const LOOK_EVERY: Duration = Duration::from_secs(1);

    /// Reads the certificates and keys of the settings.
    ///
    /// - `endpoint`: a listener that needs them, for the message.
    pub(in crate::server) fn acceptor(
        server: &Server,
        endpoint: &Endpoint,
    ) -> Result<Arc<TlsAcceptor>, StartError> {
        let config = &server.config;
        if config.tls_cert.is_none() && config.acme.is_empty() && server.site_tls.is_empty() {
            return Err(StartError::NoCertificate { endpoint: endpoint.clone() });
        }
        let settings = TlsSettings {
            usual: usual(config)?,
            is_strict: config.tls_strict_names,
            sites: server
                .site_tls
                .iter()
                .map(|(hosts, tls)| site(hosts.clone(), tls))
                .collect::<Result<_, _>>()?,
            needs_v13: config.tls_version_min == TlsVersionMin::V13,
            protocols: protocols(config),
            own_records: config.tls_records == TlsRecords::Own,
            handshake_ms: gustnado_config::millis(config.tls_handshake_timeout),
            handshakes_max: config.tls_handshakes,
            ticket_keys: config.tls_ticket_keys.clone(),
            challenges: acme::challenges(config),
            logs_keys: std::env::var_os("SSLKEYLOGFILE").is_some(),
        };
        let acceptor = TlsAcceptor::new(settings, ticket_keys()?, now_s());
        acceptor.map(Arc::new).map_err(StartError::Tls)
    }

    fn usual(config: &Config) -> Result<Option<TlsSite>, StartError> {
        let cert = config.tls_cert.clone().or_else(|| acme::certificate(config));
        let Some(cert) = cert else { return Ok(None) };
        let (key, client_auth) = (config.tls_key.clone(), config.tls_client_auth);
        let (client_ca, client_crl) = (config.tls_client_ca.clone(), config.tls_client_crl.clone());
        let own = SiteTls { cert, key, client_auth, client_ca, client_crl };
        site(Vec::new(), &own).map(Some)
    }

    fn site(hosts: Vec<String>, own: &SiteTls) -> Result<TlsSite, StartError> {
        let clients = match (own.client_auth, &own.client_ca) {
            (TlsClientAuth::None, _) => None,
            (_, None) => return Err(StartError::NoClientCa),
            (wanted, Some(authorities)) => Some(ClientSettings {
                is_required: wanted == TlsClientAuth::Required,
                authorities: authorities.clone(),
                revoked: own.client_crl.clone(),
            }),
        };
        // One file may hold both.
        let key = own.key.as_ref().unwrap_or(&own.cert).clone();
        Ok(TlsSite { hosts, certificates: own.cert.clone(), key, clients })
    }

    /// Returns the keys of tickets of this process: they outlive all reloads.
    fn ticket_keys() -> Result<&'static Arc<TicketKeys>, StartError> {
        static KEYS: OnceLock<Arc<TicketKeys>> = OnceLock::new();
        if let Some(keys) = KEYS.get() {
            return Ok(keys);
        }
        let none = || io::Error::other("the system gives no random bytes");
        let keys = TicketKeys::random().ok_or_else(none);
        let keys = keys.map_err(|error| StartError::Worker { error })?;
        Ok(KEYS.get_or_init(|| Arc::new(keys)))
    }

    /// Returns the seconds since 1970.
    pub(in crate::server) fn now_s() -> i64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
    }

    /// Returns what is to be said about TLS at the start.
    pub(in crate::server) fn notes(acceptor: &TlsAcceptor) -> Vec<String> {
        let now_s = now_s();
        let mut notes: Vec<String> = acceptor
            .identities()
            .iter()
            .filter_map(|identity| Some((identity, identity.ends_soon(now_s)?)))
            .map(|(identity, left_s)| {
                let names = identity.names.join(", ");
                format!("the certificate of {names} ends in {} days; renew it", left_s / 86_400)
            })
            .collect();
        notes.sort();
        notes.dedup();
        if let Some(path) = std::env::var_os("SSLKEYLOGFILE") {
            let path = path.display();
            notes.push(format!(
                "SSLKEYLOGFILE is set: THE KEYS OF ALL CONNECTIONS ARE WRITTEN TO {path}; who \
                 reads it can read them; unset it in production"
            ));
        }
        notes
    }

    /// Tells pages about the server when the certificates in force end.
    pub(in crate::server) fn tell_ends(acceptor: &TlsAcceptor, shared: &ServerShared) {
        let end = |(host, not_after_s)| CertificateEnd { host, not_after_s };
        shared.set_certificate_ends(acceptor.certificate_ends().into_iter().map(end).collect());
    }

    /// Looks at the files of certificates from now on, as long as the server runs. A pair that
    /// cannot be used leaves the last one in force.
    pub(in crate::server) fn watch_files(
        current: &Arc<AppHandle>,
        shared: &Arc<ServerShared>,
    ) -> io::Result<()> {
        // Weak: the thread ends with the server.
        let (current, shared) = (Arc::downgrade(current), Arc::downgrade(shared));
        let watching = move || {
            loop {
                thread::sleep(LOOK_EVERY);
                if !look(&current, &shared) {
                    return;
                }
            }
        };
        thread::Builder::new().name("tls-files".to_owned()).spawn(watching).map(drop)
    }

    /// Returns whether the server still runs.
    fn look(current: &Weak<AppHandle>, shared: &Weak<ServerShared>) -> bool {
        let (Some(current), Some(shared)) = (current.upgrade(), shared.upgrade()) else {
            return false;
        };
        let app = current.app();
        let Some(tls) = app.openings.tls() else { return true };
        if let Some(challenges) = tls.challenges() {
            challenges.refresh();
        }
        match tls.refresh(now_s()) {
            Ok(false) => {}
            Ok(true) => {
                tell_ends(tls, &shared);
                shared.reloads.fetch_add(1, Ordering::Relaxed);
                say("gustnado: certificates were read again; open connections keep theirs");
            }
            Err(error) => {
                shared.reloads_refused.fetch_add(1, Ordering::Relaxed);
                say(&format!("gustnado: {error}; the last valid certificates stay in force"));
            }
        }
        true
    }

    /// Returns the protocols that are offered, the first one first.
    fn protocols(config: &Config) -> Vec<Vec<u8>> {
        let offered: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];
        let last = if config.http1 { offered.len() } else { 1 };
        offered[usize::from(!config.http2)..last].iter().map(|name| name.to_vec()).collect()
    }
}

#[cfg(feature = "tls-any")]
pub(super) use with_tls::{acceptor, notes, now_s, tell_ends, watch_files};

/// Says that this build has no TLS.
#[cfg(not(feature = "tls-any"))]
pub(super) fn acceptor(_: &Server, endpoint: &Endpoint) -> Result<Arc<TlsAcceptor>, StartError> {
    Err(StartError::NoTls { endpoint: endpoint.clone() })
}

#[cfg(not(feature = "tls-any"))]
pub(super) fn notes(acceptor: &TlsAcceptor) -> Vec<String> {
    match *acceptor {}
}

#[cfg(not(feature = "tls-any"))]
pub(super) fn tell_ends(acceptor: &TlsAcceptor, _: &ServerShared) {
    match *acceptor {}
}

#[cfg(not(feature = "tls-any"))]
pub(super) fn watch_files(_: &Arc<AppHandle>, _: &Arc<ServerShared>) -> std::io::Result<()> {
    unreachable!("there is no acceptor")
}
