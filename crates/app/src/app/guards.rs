//! What requests have to meet before they are routed.

use std::sync::Arc;

use gustnado_config::Config;
use gustnado_http::head::Version;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Endpoint;
use gustnado_tls::{AcmeChallenges, ClientPolicy, Socket, TlsAcceptor};
use gustnado_web::response::Response;
use gustnado_web::routes::host_name;

use super::{App, Openings};

/// The port of https where no listener tells another one.
const HTTPS_PORT: u16 = 443;

/// What requests have to meet before they are routed. Few servers want anything.
#[derive(Clone, Debug)]
pub struct Guards {
    /// The port of https that plain requests are sent to, if they are.
    pub https_port: Option<u16>,
    /// Knows what hosts want of their clients' certificates, if any host wants one.
    pub policies: Option<Arc<TlsAcceptor>>,
    /// Answers to the challenges of a certificate authority.
    pub challenges: Option<Arc<AcmeChallenges>>,
    /// Requests have to come by HTTP/2.
    pub is_http2_only: bool,
}

impl Guards {
    /// Returns what the settings want; `None`: nothing.
    ///
    /// - `has_proxies`: proxies are trusted, so they may report that a request came early.
    pub(super) fn of(config: &Config, openings: &Openings, has_proxies: bool) -> Option<Arc<Self>> {
        let https_port = config.https_redirect.then(|| https_port(openings));
        let policies = openings.tls().filter(|tls| tls.has_policies()).cloned();
        let challenges = openings.tls().and_then(|tls| tls.challenges()).cloned();
        let is_http2_only = !config.http1;
        let is_wanted = https_port.is_some()
            || policies.is_some()
            || challenges.is_some()
            || has_proxies
            || is_http2_only;
        is_wanted.then(|| Arc::new(Self { https_port, policies, challenges, is_http2_only }))
    }
}

/// What becomes of a request that may not be routed.
#[derive(Debug)]
pub enum GuardVerdict {
    /// It asks for the proof that a certificate authority wants (RFC 8555 §8.3).
    Proof(Vec<u8>),
    /// It is sent to this URL of https.
    ToHttps(String),
    /// It is refused.
    Refused(Status),
}

impl GuardVerdict {
    /// Returns the response, with the fields of the server.
    ///
    /// # Errors
    /// The status of a refusal.
    pub fn response(self, app: &App) -> Result<Response, Status> {
        let (status, (name, value), body) = match self {
            Self::Proof(proof) => {
                (Status::OK, ("Content-Type", "application/octet-stream".to_owned()), proof)
            }
            Self::ToHttps(location) => {
                (Status::PERMANENT_REDIRECT, ("Location", location), Vec::new())
            }
            Self::Refused(status) => return Err(status),
        };
        let mut response = Response::new(status).body(body);
        // The decoder has let no byte through that could split a field.
        _ = response.try_header(name, value);
        app.add_overridden(&mut response);
        Ok(response)
    }
}

/// Where a certificate authority looks for a proof, which it may do in plain HTTP (RFC 8555 §8.3).
const ACME: &[u8] = b"/.well-known/acme-challenge/";

impl App {
    /// Returns what becomes of a request that may not be routed; `None` if it may.
    #[cold]
    pub fn guarded(&self, view: RequestView<'_>, socket: &Socket) -> Option<GuardVerdict> {
        let guards = self.guards.as_deref()?;
        if let Some(proof) = guards.proof(view) {
            return Some(GuardVerdict::Proof(proof));
        }
        if guards.is_http2_only && view.version() != Version::Http2 {
            return Some(GuardVerdict::Refused(Status::HTTP_VERSION_NOT_SUPPORTED));
        }
        if let Some(location) = self.https_location(guards, view, socket) {
            return Some(GuardVerdict::ToHttps(location));
        }
        if !guards.is_policy_met(view, socket) {
            return Some(GuardVerdict::Refused(Status::MISDIRECTED_REQUEST));
        }
        self.may_be_replayed(view, socket).then_some(GuardVerdict::Refused(Status::TOO_EARLY))
    }

    /// Returns the URL of https for a request that came without it, if it is to be sent there.
    fn https_location(
        &self,
        guards: &Guards,
        view: RequestView<'_>,
        socket: &Socket,
    ) -> Option<String> {
        let port = guards.https_port?;
        if self.is_secure(view, socket) || !view.form().has_path() || view.path().starts_with(ACME)
        {
            return None;
        }
        // A client that names no host gets no redirect, as there is nowhere to send it.
        let host = Some(host_name(view)).filter(|host| !host.is_empty())?;
        let path = std::str::from_utf8(view.path()).ok()?;
        let query = view.query().map(std::str::from_utf8).transpose().ok()?;
        let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Some(format!("https://{host}{port}{path}{query}"))
    }

    /// Returns whether the client's request came by https: here, or at a trusted proxy.
    pub fn is_secure(&self, view: RequestView<'_>, socket: &Socket) -> bool {
        let reported = || self.trusted_proxies.as_ref()?.scheme(view, &socket.peer().ok()?);
        is_secure_connection(socket) || reported() == Some("https")
    }

    /// Returns whether a trusted proxy says that somebody may have recorded the request and sent it
    /// again (RFC 8470 §5). Methods that change nothing may be repeated.
    fn may_be_replayed(&self, view: RequestView<'_>, socket: &Socket) -> bool {
        let Some(proxies) = &self.trusted_proxies else { return false };
        view.field("early-data") == Some(b"1")
            && !view.method().is_safe()
            && socket.peer().is_ok_and(|peer| proxies.trusts(&peer))
    }
}

/// Returns whether all requests of a connection came by https: here, or at a proxy whose PROXY
/// header says so.
pub fn is_secure_connection(socket: &Socket) -> bool {
    socket.is_sealed() || socket.proxy_info().is_some_and(|info| info.tls.is_some())
}

impl Guards {
    /// Returns the answer to a challenge of a certificate authority, if a request asks for one.
    fn proof(&self, view: RequestView<'_>) -> Option<Vec<u8>> {
        let token = view.path().strip_prefix(ACME).filter(|_| view.form().has_path())?;
        self.challenges.as_ref()?.of_token(token)
    }

    /// Returns whether the connection has shown what a request's host wants of its clients (RFC
    /// 9110 §15.5.20).
    fn is_policy_met(&self, view: RequestView<'_>, socket: &Socket) -> bool {
        let Some(sites) = &self.policies else { return true };
        let agreed = socket.tls().map_or(ClientPolicy::NONE, |tls| tls.policy());
        sites.policy_of(&host_name(view)).is_met_by(agreed)
    }
}

/// Returns the port of the first listener with TLS. Another process may have port 443.
fn https_port(openings: &Openings) -> u16 {
    let of_tls = openings.own.iter().filter(|(_, opening)| opening.tls.is_some());
    let ports = of_tls.filter_map(|((endpoint, _), _)| match endpoint {
        Endpoint::Tcp(address) if address.port() > 0 => Some(address.port()),
        _ => None,
    });
    ports.min_by_key(|port| *port != HTTPS_PORT).unwrap_or(HTTPS_PORT)
}
