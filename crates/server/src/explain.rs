//! Why a request gets its response: the server that a configuration describes is asked inside this
//! process, and tells what it has done.

mod asked;

use std::path::PathBuf;
use std::sync::Arc;

use gustnado_access::{AccessCounts, Refusal};
use gustnado_app::app::App;
use gustnado_config::AccessSettings;
use gustnado_files::{LookupStep, LookupTrace};
use gustnado_http::head::{Decoded, Head};
use gustnado_tasks::block_on;
use gustnado_tls::TlsAcceptor;
use gustnado_web::routes::{DescribedRoute, host_name};
use thiserror::Error;

use crate::builder::Server;
use crate::server::{AskedApp, StartError};
use crate::test::{TestClient, TestError};

pub use asked::{AskError, AskedRequest};

/// What a server does with a request, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The host of the site, as configured; `None`: no site has the request's host, and it is
    /// served as all others are.
    pub site: Option<String>,
    /// The request came in clear, and is sent to https before its route is found.
    pub goes_to_https: bool,
    /// The target that takes the place of the request's.
    pub rewritten: Option<String>,
    /// The path of the route, as configured; `None`: no route has the path.
    pub route: Option<String>,
    /// What lookups of files have done.
    pub steps: Vec<LookupStep>,
    /// What the route asks of its clients; `None` is nothing.
    pub access: Option<AccessSettings>,
    /// Why the client may not have what it asks for.
    pub refusal: Option<RefusalReason>,
    /// The status of the response.
    pub status: u16,
    /// The header fields of the response, in order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Whether a listener takes connections by TLS.
    pub has_tls: bool,
    /// What is presented to a client that asks for the host by TLS; `None` is nothing.
    pub certificate: Option<PresentedCertificate>,
}

impl Explanation {
    /// Returns the first value of a header field of the response, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// A certificate that clients are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentedCertificate {
    /// Its file.
    pub file: PathBuf,
    /// The names that it is for.
    pub names: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub not_after_s: i64,
}

/// Why a client may not have what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Its address: `allow` and `deny`.
    Address,
    /// It has sent too many requests: `rate-limit`.
    Rate,
    /// It has sent no user and password, or wrong ones: `basic-auth`.
    Password,
    /// Its URL has no signature, or a wrong one: `signed-urls`.
    Signature,
    /// Its URL is no longer valid: `signed-urls`.
    Expired,
    /// A page of another origin may not send it: `cors`.
    Origin,
}

impl RefusalReason {
    /// Returns the reason that a server has counted.
    fn of(counts: &AccessCounts) -> Option<Self> {
        let all = [
            (Refusal::Address, Self::Address),
            (Refusal::Rate, Self::Rate),
            (Refusal::Password, Self::Password),
            (Refusal::Signature, Self::Signature),
            (Refusal::Expired, Self::Expired),
            (Refusal::Origin, Self::Origin),
        ];
        all.into_iter().find(|(counted, _)| counts.of(*counted) > 0).map(|(_, reason)| reason)
    }
}

/// Why a request cannot be explained.
#[derive(Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The server could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The request is not one that a server reads.
    #[error(
        "expected a request that a server reads, found one that is malformed or too large; \
             leave fields out"
    )]
    Malformed,
    /// There was no response.
    #[error("there was no response: {0}")]
    NoResponse(#[source] TestError),
}

gustnado_tasks::debug_as_display!(ExplainError);

impl Server {
    /// Asks the server inside this process, without listening and without a network, and returns
    /// what it does with a request and why. Handlers run, as they do for a client.
    ///
    /// ```
    /// use gustnado::{AskedRequest, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new().get("/hello/{name}", |_: &gustnado::Request| "Hello!");
    /// let asked = AskedRequest::parse("GET http://example.org/hello/Ann")?;
    /// let explanation = server.explain(&asked)?;
    /// assert_eq!(explanation.route.as_deref(), Some("/hello/{name}"));
    /// assert_eq!(explanation.status, 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ExplainError`]: the server could not start, or there was no response.
    pub fn explain(&self, asked: &AskedRequest) -> Result<Explanation, ExplainError> {
        let trace = LookupTrace::default();
        let AskedApp { app, tls } = AskedApp::new(self, &trace)?;
        let text = asked.head();
        let limits = gustnado_http::limits::Limits::default();
        let Ok(Decoded::Done(head)) = Head::decode(&text, &mut 0, &limits) else {
            return Err(ExplainError::Malformed);
        };
        let view = head.on(&text);
        let DescribedRoute { host: site, rewritten, route, access } = app.tables.describe(view);
        let (status, fields) = ask(&app, asked)?;
        let certificate = tls.as_deref().and_then(|tls| presented(tls, &host_name(view)));
        let redirects = app.guards.as_ref().is_some_and(|guards| guards.https_port.is_some());
        let mut explanation = Explanation {
            site,
            goes_to_https: false,
            rewritten,
            route,
            steps: trace.steps(),
            access,
            refusal: RefusalReason::of(app.tables.build.limits.access()),
            status,
            fields,
            has_tls: tls.is_some(),
            certificate,
        };
        let location = explanation.header("Location");
        explanation.goes_to_https = redirects
            && !asked.is_https()
            && explanation.status == 308
            && location.is_some_and(|to| to.starts_with("https://"));
        Ok(explanation)
    }
}

/// Names of fields with their values.
type ResponseFields = Vec<(String, Vec<u8>)>;

/// Asks, and returns status and fields of the response. Its content is not waited for.
fn ask(app: &Arc<App>, asked: &AskedRequest) -> Result<(u16, ResponseFields), ExplainError> {
    let client = TestClient::through_proxy(app, asked.proxy_header());
    let mut request = client.request(asked.method(), asked.target()).host(asked.host());
    for (name, value) in asked.fields() {
        request = request.header(name, value);
    }
    let answered = block_on(async {
        let outcome = request.open().await;
        gustnado_app::app::forget();
        outcome
    });
    let response = match answered {
        Ok(outcome) => outcome.map_err(ExplainError::NoResponse)?,
        Err(error) => return Err(ExplainError::NoResponse(TestError::Thread(error.to_string()))),
    };
    let field = |(name, value): (&str, &[u8])| (name.to_owned(), value.to_vec());
    Ok((response.status(), response.headers().map(field).collect()))
}

#[cfg(feature = "tls-any")]
fn presented(tls: &TlsAcceptor, host: &str) -> Option<PresentedCertificate> {
    let (file, identity) = tls.presented_to(host)?;
    let (names, not_after_s) = (identity.names, identity.not_after_s);
    Some(PresentedCertificate { file, names, not_after_s })
}

#[cfg(not(feature = "tls-any"))]
fn presented(tls: &TlsAcceptor, _: &str) -> Option<PresentedCertificate> {
    match *tls {}
}
