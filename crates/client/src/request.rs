//! A request: put together, checked, sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::method::Method;
use gustnado_http::request_writer::{RequestWriteError, RequestWriter};
use gustnado_tasks::{Connection, Endpoint};
use gustnado_tls::Socket;

use super::ClientShared;
use super::call::{ClientCall, ReadyHead};
use super::connect::RequestOrigin;
use super::error::{ClientError, UrlError};
use super::response::ClientResponse;
use super::total::Total;
use super::upload::RequestContent;
use super::url::ParsedUrl;

/// A request, put together step by step and then [sent](ClientRequest::send). Sending returns the
/// error of a malformed one.
#[must_use = "a request does nothing before `send`"]
pub struct ClientRequest {
    client: Arc<ClientShared>,
    method: Method,
    url: String,
    fields: Vec<(String, Vec<u8>)>,
    content: RequestContent,
    expects_continue: bool,
    accepts_trailers: bool,
    is_alone: bool,
    protocol: Option<String>,
    total: Option<Duration>,
    via: Option<Endpoint>,
}

impl ClientRequest {
    pub(super) fn new(client: Arc<ClientShared>, method: Method, url: &str) -> Self {
        let total = client.options.total_timeout;
        Self {
            client,
            method,
            url: url.to_owned(),
            fields: Vec::new(),
            content: RequestContent::Nothing,
            expects_continue: false,
            accepts_trailers: false,
            is_alone: false,
            protocol: None,
            total,
            via: None,
        }
    }

    /// Adds a field line. A name may come several times.
    ///
    /// Those that frame the message or name its host are written by the client itself:
    /// Content-Length, Transfer-Encoding, Connection, Host, Expect, TE.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Gives it a body whose bytes are here.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.content = RequestContent::Whole(bytes.into());
        self
    }

    /// Gives it a body that comes piece by piece. The stream is polled only when the server has
    /// taken what came before; the response may begin before it has ended.
    ///
    /// - `length`: its bytes, if that is known: then it is sent with a Content-Length, else in
    ///   chunks. Once so many bytes were given the stream is dropped; fewer are an error, and so
    ///   are more in one item.
    pub fn stream<S, E>(mut self, length: Option<u64>, stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.content = RequestContent::Stream { source: Box::pin(stream), length };
        self
    }

    /// Sends the body only once the server has sent 100 (Continue), or has been silent for the
    /// continue time-out (RFC 9110 §10.1.1). A server that refuses is spared the body, and the
    /// connection closes.
    pub fn expect_continue(mut self) -> Self {
        self.expects_continue = true;
        self
    }

    /// Announces that trailers will be read (RFC 9110 §10.1.4).
    pub fn accept_trailers(mut self) -> Self {
        self.accepts_trailers = true;
        self
    }

    /// Sends it on a connection of its own, made for it and closed after it. For a request that
    /// must not find its connection closed by chance, and cannot be repeated.
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// Sets the longest time for the whole exchange, body of the response included, in place of the
    /// client's.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total = Some(timeout);
        self
    }

    /// Connects there, and not to the host of the URL: to a Unix socket, or past the resolver.
    pub fn via(mut self, endpoint: Endpoint) -> Self {
        self.via = Some(endpoint);
        self
    }

    /// Asks the server to go on in another protocol: by an upgrade in HTTP/1.1 (RFC 9110 §7.8), on
    /// a connection of its own, and with [`Http2Use::Always`](super::Http2Use::Always) by CONNECT
    /// on a stream (RFC 8441), whose content is then the body of this request and that of the
    /// response. No total time-out applies to that: the caller has to bound the handshake.
    #[doc(hidden)]
    pub fn upgrade(mut self, protocol: &str) -> Self {
        self.protocol = Some(protocol.to_owned());
        self.total = None;
        self
    }

    /// Sends it, and waits for the head of the response. Any status is a response; redirects are
    /// not followed.
    ///
    /// # Errors
    /// [`ClientError`]. Nothing was sent if the URL, the method or a field is wrong.
    pub async fn send(self) -> Result<ClientResponse, ClientError> {
        if gustnado_tasks::worker().is_none() {
            return Err(ClientError::NoWorker);
        }
        let (call, content) = self.prepare()?;
        call.send(content).await
    }

    /// Sends it over a connection of the caller, which ends with it.
    #[doc(hidden)]
    pub async fn send_over(self, connection: Connection) -> Result<ClientResponse, ClientError> {
        let (mut call, content) = self.prepare()?;
        call.is_alone = true;
        let socket = Socket::new(connection);
        call.exchange(socket, content).await.map_err(|failed| failed.error)
    }

    /// Checks all parts, and writes the head for HTTP/1.
    fn prepare(self) -> Result<(ClientCall, RequestContent), ClientError> {
        let has_body = !matches!(self.content, RequestContent::Nothing);
        let is_nameless = matches!(self.method, Method::Connect | Method::Other);
        if is_nameless || (self.method == Method::Trace && has_body) {
            return Err(ClientError::Method(self.method));
        }
        let url = ParsedUrl::parse(&self.url).map_err(|error| self.url_error(error))?;
        let name = url.authority();
        let mut head = Vec::with_capacity(256);
        let (target, host) = (url.target(), name.as_bytes());
        let mut writer = RequestWriter::start(&mut head, self.method, target.as_bytes(), host)
            .map_err(|e| {
                self.url_error(if e == RequestWriteError::Host {
                    UrlError::Host
                } else {
                    UrlError::Target
                })
            })?;
        let agent = self.client.options.user_agent.as_str();
        let names_agent = |field: &(String, Vec<u8>)| field.0.eq_ignore_ascii_case("user-agent");
        let agent = (!agent.is_empty() && !self.fields.iter().any(names_agent))
            .then_some(("User-Agent", agent.as_bytes()));
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        let mut fields = Vec::with_capacity(self.fields.len() + 2);
        for (name, value) in own.chain(agent) {
            writer
                .field(name, value)
                .map_err(|error| ClientError::Field { name: name.to_owned(), error })?;
            fields.push((name.to_owned(), value.to_vec()));
        }
        self.write_framing(&mut writer, &mut fields);
        if self.expects_continue && self.has_bytes() {
            writer.expect_continue();
            fields.push(("expect".to_owned(), b"100-continue".to_vec()));
        }
        if self.accepts_trailers {
            writer.accept_trailers();
            fields.push(("te".to_owned(), b"trailers".to_vec()));
        }
        if let Some(protocol) = &self.protocol {
            writer
                .upgrade(protocol)
                .map_err(|error| ClientError::Field { name: "Upgrade".to_owned(), error })?;
        } else if self.is_alone {
            writer.close();
        }
        writer.finish();
        let target = url.target();
        let ParsedUrl { host, port, is_tls, .. } = url;
        let total = Total::start(self.total);
        let Self { client, method, content, expects_continue, is_alone, protocol, via, .. } = self;
        let origin = Arc::new(RequestOrigin { name: name.into(), host, port, is_tls, via });
        let head = ReadyHead { method, target, bytes: head, fields, protocol };
        Ok((ClientCall { client, head, origin, total, expects_continue, is_alone }, content))
    }

    /// RFC 9110 §8.6: a length is said where there is a body, and where the method makes one
    /// expect it.
    fn write_framing(&self, writer: &mut RequestWriter<'_>, fields: &mut Vec<(String, Vec<u8>)>) {
        let length = match &self.content {
            RequestContent::Nothing => {
                let is_expected = matches!(self.method, Method::Post | Method::Put | Method::Patch);
                is_expected.then_some(0)
            }
            RequestContent::Whole(bytes) => Some(bytes.len() as u64),
            RequestContent::Stream { length: Some(bytes), .. } => Some(*bytes),
            RequestContent::Stream { length: None, .. } => return writer.chunked(),
        };
        if let Some(length) = length {
            writer.content_length(length);
            fields.push(("content-length".to_owned(), length.to_string().into_bytes()));
        }
    }

    /// Returns whether there may be anything in the body.
    fn has_bytes(&self) -> bool {
        match &self.content {
            RequestContent::Nothing => false,
            RequestContent::Whole(bytes) => !bytes.is_empty(),
            RequestContent::Stream { length, .. } => *length != Some(0),
        }
    }

    fn url_error(&self, error: UrlError) -> ClientError {
        let shown = match error {
            // Nothing of a password goes into a log.
            UrlError::UserInformation => self.url.rsplit('@').next().unwrap_or_default(),
            _ => &self.url,
        };
        ClientError::Url { url: shown.to_owned(), error }
    }
}

impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str().unwrap_or("?"), self.url)
    }
}
