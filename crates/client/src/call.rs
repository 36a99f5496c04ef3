//! A request that is ready: which connection it takes, and whether it is sent again.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_http::limits::Limits;
use gustnado_http::method::Method;
use gustnado_tasks::{now, timeout};
use gustnado_tls::Socket;

use super::connect::{MadeConnection, RequestOrigin, connect};
use super::error::{ClientError, TimeoutPhase};
use super::exchange::{ClientExchange, HeadReader, RequestFailure, RetryRule};
use super::http2::{self, Http2Connection, Http2Exchange, Http2Head, Place};
use super::http2_use::Http2Use;
use super::response::ClientResponse;
use super::total::Total;
use super::upload::{BodyUpload, RequestContent};
use super::{ClientOptions, ClientShared, millis};

/// How often a request is sent that the server does not look at.
const TRIES_MAX: u32 = 4;

/// A request that is ready to be sent.
pub(super) struct ClientCall {
    pub(super) client: Arc<ClientShared>,
    pub(super) head: ReadyHead,
    pub(super) origin: Arc<RequestOrigin>,
    pub(super) total: Total,
    pub(super) expects_continue: bool,
    pub(super) is_alone: bool,
}

/// A request's head, for both versions.
pub(super) struct ReadyHead {
    pub(super) method: Method,
    pub(super) target: String,
    /// As HTTP/1 has it.
    pub(super) bytes: Vec<u8>,
    pub(super) fields: Vec<(String, Vec<u8>)>,
    /// The protocol that the client would rather go on in.
    pub(super) protocol: Option<String>,
}

impl ClientCall {
    /// Sends the request, and again where that does no harm.
    pub(super) async fn send(self, content: RequestContent) -> Result<ClientResponse, ClientError> {
        let (mut content, mut tries) = (content, 0);
        loop {
            let spare = content.again();
            let failed = match self.attempt(content, tries).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            tries += 1;
            let may_again = match failed.retry {
                RetryRule::Never => false,
                RetryRule::IfIdempotent => self.head.method.is_idempotent() && tries == 1,
                RetryRule::Always => tries < TRIES_MAX,
            };
            match spare.filter(|_| may_again) {
                Some(spare) => content = spare,
                None => return Err(failed.error),
            }
        }
    }

    /// Sends it once: on a kept connection the first time, else on a fresh one.
    async fn attempt(
        &self,
        content: RequestContent,
        tries: u32,
    ) -> Result<ClientResponse, RequestFailure> {
        let is_upgrade = self.head.protocol.is_some();
        let is_kept = !self.is_alone && !is_upgrade && tries == 0;
        if is_kept && let Some(connection) = self.client.pool.take(&self.origin) {
            return self.exchange(connection, content).await;
        }
        let shares = match self.client.options.http2 {
            Http2Use::Never => false,
            Http2Use::ByAlpn => {
                !is_upgrade && self.origin.is_tls && !self.client.http2.is_old(&self.origin)
            }
            Http2Use::Always => true,
        };
        if shares && !self.is_alone {
            return self.share(content).await;
        }
        let made = self.connect().await?;
        self.on_fresh(made, self.upload(content)).await
    }

    /// Sends it on a connection that others use, too, or may use.
    async fn share(&self, content: RequestContent) -> Result<ClientResponse, RequestFailure> {
        let mut upload = self.upload(content);
        loop {
            match self.client.http2.find(&self.origin) {
                Place::On(connection) => {
                    self.check_protocols(&connection).await?;
                    let opened = self.within(self.open(&connection, upload)).await?;
                    match opened {
                        Ok(exchange) => return respond(exchange, true).await,
                        Err(unsent) => upload = unsent,
                    }
                }
                Place::Wait(connecting) => {
                    self.within(connecting.wait()).await?;
                    if self.client.http2.is_old(&self.origin) {
                        let made = self.connect().await?;
                        return self.on_fresh(made, upload).await;
                    }
                }
                Place::Connect(guard) => {
                    let made = self.connect().await?;
                    if !made.is_http2 {
                        guard.is_old();
                        drop(guard);
                        return self.on_fresh(made, upload).await;
                    }
                    let connection = self.start(made)?;
                    guard.connected(&connection);
                    drop(guard);
                    return self.on_new(&connection, upload).await;
                }
            }
        }
    }

    /// Sends it on a fresh connection.
    async fn on_fresh(
        &self,
        made: MadeConnection,
        upload: BodyUpload,
    ) -> Result<ClientResponse, RequestFailure> {
        if !made.is_http2 {
            let outcome = self.exchange_by_http1(made.socket, upload.framed()).await;
            return outcome.map_err(|failed| failed.error.into());
        }
        let connection = self.start(made)?;
        if !self.is_alone {
            self.client.http2.adopt(&self.origin, &connection);
        }
        self.on_new(&connection, upload).await
    }

    /// Sends it on a connection of HTTP/2 that was made for it.
    async fn on_new(
        &self,
        connection: &Arc<Http2Connection>,
        upload: BodyUpload,
    ) -> Result<ClientResponse, RequestFailure> {
        self.check_protocols(connection).await?;
        let opened = self.within(self.open(connection, upload)).await?;
        let Ok(exchange) = opened else {
            let host = Arc::clone(&self.origin.name);
            return Err(ClientError::Closed { host, received: 0 }.into());
        };
        let options = &self.client.options;
        if self.is_alone || options.kept_per_host_max == 0 || options.kept_max == 0 {
            connection.leave();
        }
        respond(exchange, false).await
    }

    async fn connect(&self) -> Result<MadeConnection, ClientError> {
        // An upgrade is a thing of HTTP/1.1, unless nothing else is spoken.
        let is_old = self.head.protocol.is_some();
        connect(&self.client, &self.origin, &self.total, is_old).await
    }

    fn start(&self, made: MadeConnection) -> Result<Arc<Http2Connection>, ClientError> {
        http2::start(made.socket, made.received, &self.client.options)
    }

    fn upload(&self, content: RequestContent) -> BodyUpload {
        BodyUpload::new(content, self.expects_continue).unframed()
    }

    /// Checks that the server opens tunnels, if one is asked for.
    async fn check_protocols(&self, connection: &Http2Connection) -> Result<(), ClientError> {
        if self.head.protocol.is_none() {
            return Ok(());
        }
        let takes = poll_fn(|cx| connection.poll_takes_protocols(cx));
        if self.within(takes).await? {
            return Ok(());
        }
        Err(ClientError::NoProtocols { host: Arc::clone(&self.origin.name) })
    }

    async fn open(
        &self,
        connection: &Arc<Http2Connection>,
        upload: BodyUpload,
    ) -> Result<Http2Exchange, BodyUpload> {
        let head = Http2Head {
            method: self.head.method,
            is_tls: self.origin.is_tls,
            authority: &self.origin.name,
            target: &self.head.target,
            fields: &self.head.fields,
            protocol: self.head.protocol.as_deref(),
        };
        let parts = (&self.client, &self.origin);
        Http2Exchange::open(connection, head, upload, parts, self.total).await
    }

    /// Waits for a place on a connection, no longer than connecting may take.
    async fn within<T>(&self, wait: impl Future<Output = T>) -> Result<T, ClientError> {
        let options = &self.client.options;
        let left_ms = self.total.at_ms.saturating_sub(now().mono_ms);
        let most_ms = left_ms.min(millis(options.connect_timeout));
        let waited = timeout(Duration::from_millis(most_ms), wait).await;
        waited.ok_or_else(|| {
            let (waiting, after) = match self.total.timeout {
                Some(timeout) if now().mono_ms >= self.total.at_ms => {
                    (TimeoutPhase::Total, timeout)
                }
                _ => (TimeoutPhase::Connect, options.connect_timeout),
            };
            ClientError::Timeout { waiting, host: Arc::clone(&self.origin.name), after }
        })
    }

    /// Sends the request on this connection by HTTP/1, and returns its response.
    pub(super) async fn exchange(
        &self,
        connection: Socket,
        content: RequestContent,
    ) -> Result<ClientResponse, RequestFailure> {
        let upload = BodyUpload::new(content, self.expects_continue);
        self.exchange_by_http1(connection, upload).await
    }

    async fn exchange_by_http1(
        &self,
        connection: Socket,
        upload: BodyUpload,
    ) -> Result<ClientResponse, RequestFailure> {
        let limits = limits(&self.client.options);
        let bounds = (self.total, self.is_alone);
        let mut exchange =
            ClientExchange::new(connection, upload, &self.client, &self.origin, bounds);
        poll_fn(|cx| Poll::Ready(exchange.start(cx, &self.head.bytes))).await?;
        let mut reader = HeadReader::new(self.head.method, limits, self.head.protocol.is_some());
        let head = poll_fn(|cx| exchange.poll_head(cx, &mut reader)).await?;
        Ok(ClientResponse::new(head, reader, exchange, &limits))
    }
}

/// Waits for the head of a response by HTTP/2.
///
/// - `is_kept`: the connection was not made for this request, so it may have been closed before.
async fn respond(
    mut exchange: Http2Exchange,
    is_kept: bool,
) -> Result<ClientResponse, RequestFailure> {
    let head = poll_fn(|cx| exchange.poll_head(cx)).await;
    match head {
        Ok((head, interim)) => Ok(ClientResponse::of_http2(head, interim, exchange)),
        Err(failed) if failed.retry == RetryRule::IfIdempotent && !is_kept => {
            Err(failed.error.into())
        }
        Err(failed) => Err(failed),
    }
}

/// Bodies are streams: whoever reads one whole says how long it may be.
fn limits(options: &ClientOptions) -> Limits {
    Limits {
        head_bytes_max: options.head_bytes_max,
        fields_max: options.fields_max,
        body_bytes_max: u64::MAX,
        ..Limits::default()
    }
}
