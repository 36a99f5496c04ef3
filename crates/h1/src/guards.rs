//! What requests have to meet before they are routed: https, the policy of their site, no replay.

use gustnado_app::app::Guards;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::SendBuf;
use gustnado_tls::ClientPolicy;
use gustnado_web::response::Response;
use gustnado_web::routes::host_name;

use super::Conn;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, Responded, TurnContext};

/// Where a certificate authority looks for a proof, which it may do in plain HTTP (RFC 8555 §8.3).
const ACME: &[u8] = b"/.well-known/acme-challenge/";

impl Conn {
    /// Responds to a request that may not be routed; the connection closes behind it. Returns
    /// whether it did.
    #[cold]
    pub(super) fn is_guarded(
        &mut self,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> bool {
        let Some(guards) = self.app.guards.as_deref() else { return false };
        let view = received.view();
        received.response = if let Some(answer) = challenge_answer(guards, view) {
            self.write_answer(
                Status::OK,
                ("Content-Type", "application/octet-stream"),
                answer,
                turn,
                out,
            )
        } else if let Some(location) = self.https_location(guards, view) {
            let location = ("Location", location.as_str());
            self.write_answer(Status::PERMANENT_REDIRECT, location, Vec::new(), turn, out)
        } else if !self.meets_policy(guards, view) {
            self.write_refusal(Status::MISDIRECTED_REQUEST, Some(view), turn, out)
        } else if self.may_be_replayed(view) {
            self.write_refusal(Status::TOO_EARLY, Some(view), turn, out)
        } else {
            return false;
        };
        self.record(&out.bytes, &mut received.response, &ResponseProgress::Lingering);
        true
    }

    /// Returns the URL of https for a request that came without it, if it is to be sent there.
    fn https_location(&self, guards: &Guards, view: RequestView<'_>) -> Option<String> {
        let port = guards.https_port?;
        if self.is_secure(view) || !view.form().has_path() || view.path().starts_with(ACME) {
            return None;
        }
        // A client that names no host gets no redirect, as there is nowhere to send it.
        let host = Some(host_name(view)).filter(|host| !host.is_empty())?;
        let path = std::str::from_utf8(view.path()).ok()?;
        let query = view.query().map(std::str::from_utf8).transpose().ok()?;
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Some(format!("https://{host}{port}{path}{query}"))
    }

    /// Returns whether the client's request came by https: here, or at a trusted proxy.
    fn is_secure(&self, view: RequestView<'_>) -> bool {
        self.socket.is_sealed() || self.reported_scheme(view) == Some("https")
    }

    fn reported_scheme(&self, view: RequestView<'_>) -> Option<&'static str> {
        let proxies = self.app.trusted_proxies.as_ref()?;
        proxies.scheme(view, &self.socket.peer().ok()?)
    }

    /// Returns whether the connection has shown what a request's host wants of its clients (RFC
    /// 9110 §15.5.20).
    fn meets_policy(&self, guards: &Guards, view: RequestView<'_>) -> bool {
        let Some(sites) = &guards.policies else { return true };
        let agreed = self.socket.tls().map_or(ClientPolicy::NONE, |tls| tls.policy());
        sites.policy_of(&host_name(view)).is_met_by(agreed)
    }

    /// Returns whether a trusted proxy says that somebody may have recorded the request and sent it
    /// again (RFC 8470 §5). Methods that change nothing may be repeated.
    fn may_be_replayed(&self, view: RequestView<'_>) -> bool {
        let Some(proxies) = &self.app.trusted_proxies else { return false };
        view.field("early-data") == Some(b"1")
            && !view.method().is_safe()
            && self.socket.peer().is_ok_and(|peer| proxies.trusts(&peer))
    }

    fn write_answer(
        &self,
        status: Status,
        (name, value): (&str, &str),
        body: Vec<u8>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> Responded {
        let mut response = Response::new(status).body(body);
        // The parser has let no byte through that could split a line.
        _ = response.try_header(name, value);
        let prefix = self.app.plain_response_prefix(turn.time.unix_secs);
        self.write_last(&response, &prefix.opening, None, out)
    }
}

/// Returns the answer to a challenge of a certificate authority, if it asks for one (RFC 8555
/// §8.3).
fn challenge_answer(guards: &Guards, view: RequestView<'_>) -> Option<Vec<u8>> {
    let token = view.path().strip_prefix(ACME).filter(|_| view.form().has_path())?;
    guards.challenges.as_ref()?.of_token(token)
}
