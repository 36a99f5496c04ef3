//! Requests to an authority, over the HTTP client.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gustnado_client::{Client, ClientError, ClientOptions, ConnectorSettings, Trust};
use gustnado_http::method::Method;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::settings::AcmeSettings;

/// Time for one request, its response included.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Bytes of a response: a chain of certificates is the longest.
const BYTES_MAX: usize = 1 << 20;

/// Asks an authority. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Authority {
    client: Client,
    /// When it wants to be asked again, as its last refusal says.
    patience_until_s: Arc<Mutex<Option<i64>>>,
}

impl Authority {
    pub(crate) fn new(settings: &AcmeSettings) -> Self {
        let trust = settings.trusted.clone().map_or(Trust::System, Trust::Authorities);
        let tls = ConnectorSettings { trust, ..ConnectorSettings::default() };
        let options = ClientOptions {
            tls,
            total_timeout: Some(REQUEST_TIME),
            user_agent: concat!("gustnado/", env!("CARGO_PKG_VERSION"), " instant-acme").to_owned(),
            ..ClientOptions::default()
        };
        Self { client: Client::new(options), patience_until_s: Arc::default() }
    }

    /// Returns when it wants to be asked again, in seconds since 1970.
    pub(crate) fn patience_until_s(&self) -> Option<i64> {
        *self.patience_until_s.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what it answers to a GET.
    pub(crate) async fn get(&self, url: &str) -> Result<Bytes, ClientError> {
        self.client.get(url).send().await?.bytes(BYTES_MAX).await
    }

    fn note_patience(&self, response: &Response<Bytes>) {
        let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let seconds = value.and_then(|value| value.trim().parse::<i64>().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = i64::try_from(now.as_secs()).unwrap_or(0);
        let until = seconds.map(|seconds| now_s.saturating_add(seconds));
        *self.patience_until_s.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    async fn ask(self, request: Request<Bytes>) -> Result<Response<Bytes>, RequestError> {
        let (parts, body) = request.into_parts();
        let method = match parts.method {
            http::Method::HEAD => Method::Head,
            http::Method::POST => Method::Post,
            _ => Method::Get,
        };
        let mut request = self.client.request(method, &parts.uri.to_string());
        for (name, value) in &parts.headers {
            // The client says who it is.
            if name != http::header::USER_AGENT {
                request = request.header(name.as_str(), value.as_bytes());
            }
        }
        if method == Method::Post {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(RequestError::Client)?;
        let mut built = Response::builder().status(response.status());
        for (name, value) in response.headers() {
            built = built.header(name, value);
        }
        let body = response.bytes(BYTES_MAX).await.map_err(RequestError::Client)?;
        let response = built.body(body).map_err(RequestError::Response)?;
        if !response.status().is_success() {
            self.note_patience(&response);
        }
        if response.status().is_server_error() && !has_problem(&response) {
            return Err(RequestError::Status(response.status().as_u16()));
        }
        Ok(response)
    }
}

/// Returns whether a response says in words what is wrong (RFC 9457).
fn has_problem(response: &Response<Bytes>) -> bool {
    let kind = response.headers().get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"))
}

impl HttpClient for Authority {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let failed = |error: Box<dyn StdError + Send + Sync>| Error::Other(error);
            let body = body.collect().await.map_err(|error| failed(error.into()))?.to_bytes();
            let asked = this.ask(Request::from_parts(parts, body)).await;
            let (parts, body) = asked.map_err(|error| failed(error.into()))?.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

/// Why a request has no answer.
#[derive(Debug)]
enum RequestError {
    Client(ClientError),
    Response(http::Error),
    Status(u16),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => match error.source() {
                None => write!(f, "{error}"),
                Some(source) => write!(f, "{error}: {source}"),
            },
            Self::Response(error) => write!(f, "{error}"),
            Self::Status(status) => write!(f, "it answers with status {status}"),
        }
    }
}

impl StdError for RequestError {}
