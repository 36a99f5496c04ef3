//! The client's side of a handshake (RFC 6455 §4.1, RFC 8441 §5).

use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use gustnado_client::{Client, ClientRequest, ClientResponse, Http2Use};
use gustnado_http::websocket::Role;
use gustnado_http::websocket::deflate::{DeflateAgreed, DeflateOptions};
use gustnado_tasks::{Endpoint, ProgressTimeout, TaskMark, spawn_detached, timeout};
use gustnado_tls::Socket;
use gustnado_web::tunnel::{PipeClose, StreamPipe, Tunnel, lend};

use crate::carrier::BodyTunnel;
use crate::core::{Core, WebSocketTerms};
use crate::deflate::Deflate;
use crate::error::OpenError;
use crate::handshake::{PROTOCOL, VERSION, accept_of_key};
use crate::options::WebSocketOptions;
use crate::random;
use crate::run::SocketRun;
use crate::socket::WebSocket;

/// A WebSocket that a client asks a server for. It is put together step by step, and then
/// [opened](WebSocketRequest::open).
///
/// ```no_run
/// use gustnado::client::{Client, ClientOptions};
/// use gustnado::websocket::{CloseCode, OpenError, WebSocketRequest};
///
/// async fn ask(client: &Client) -> Result<(), OpenError> {
///     let mut socket = WebSocketRequest::new(client, "ws://127.0.0.1:3456/echo").open().await?;
///     _ = socket.send("hello").await;
///     while let Ok(Some(message)) = socket.recv().await {
///         println!("{message:?}");
///     }
///     socket.end(CloseCode::NORMAL, "").await;
///     Ok(())
/// }
///
/// let client = Client::new(ClientOptions::default());
/// # let _ = ask(&client);
/// ```
#[must_use = "nothing is asked before `open`"]
pub struct WebSocketRequest {
    client: Client,
    request: ClientRequest,
    options: WebSocketOptions,
}

/// Declares setters.
macro_rules! setters {
    ($($(#[$doc:meta])+ $name:ident: $type:ty => $field:ident = $value:expr;)+) => {
        impl WebSocketRequest {
            $(
                $(#[$doc])+
                pub fn $name(mut self, $name: $type) -> Self {
                    self.options.$field = $value;
                    self
                }
            )+
        }
    };
}

setters! {
    /// Sets how long a message may be, in bytes (16 MiB); a longer one closes with 1009. It counts
    /// after a message is inflated, too.
    message_bytes_max: u64 => message_bytes_max = message_bytes_max;
    /// Sets how long a frame may be, in bytes (1 MiB).
    frame_bytes_max: u64 => frame_bytes_max = frame_bytes_max;
    /// Sets of how many frames a message may be (1,024).
    fragments_max: u32 => fragments_max = fragments_max.max(1);
    /// Sets how many bytes may wait to be sent before senders in other tasks wait (1 MiB).
    unsent_bytes_max: usize => unsent_bytes_max = unsent_bytes_max.max(1);
    /// Sets how long the server may be silent before it is pinged (30 s). `None`: it is not pinged.
    ping: Option<Duration> => ping = ping;
    /// Sets how long the server may be silent after that (20 s).
    ping_timeout: Duration => ping_timeout = ping_timeout;
    /// Sets how long the server has to answer a close frame (5 s).
    close_timeout: Duration => close_timeout = close_timeout;
    /// Sets the subprotocols that are offered, the best one first.
    subprotocols: &[&str] => subprotocols =
        subprotocols.iter().map(|name| (*name).to_owned()).collect();
    /// Sets whether compression is offered (permessage-deflate; on), and which; `None`: it is not.
    deflate: Option<DeflateOptions> => deflate = deflate;
    /// Sets from how many bytes on a message is compressed (860).
    deflate_bytes_min: usize => deflate_bytes_min = deflate_bytes_min;
}

impl WebSocketRequest {
    /// - `url`: `ws://host[:port]/path?query` or `wss://…`, percent-encoded; `http://` and
    ///   `https://` are the same. Opening returns the error of a malformed one.
    pub fn new(client: &Client, url: &str) -> Self {
        let request = client.get(&url_of_http(url)).upgrade(PROTOCOL);
        Self { client: client.clone(), request, options: WebSocketOptions::default() }
    }

    /// Adds a field to the request, such as `Authorization`, or `Origin` (RFC 6455 §10.2).
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// Connects there, and not to the host of the URL: to a Unix socket, or past the resolver.
    pub fn via(mut self, endpoint: Endpoint) -> Self {
        self.request = self.request.via(endpoint);
        self
    }

    /// Asks the server, and opens the WebSocket: by HTTP/1.1 on a connection of its own, and on a
    /// stream of HTTP/2 if the client speaks [nothing else](Http2Use::Always).
    ///
    /// It is called in a task. The WebSocket has one of its own on the same worker, and may be used
    /// in any.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(mut self) -> Result<WebSocket, OpenError> {
        let client_options = self.client.options();
        let time = client_options.head_timeout.saturating_add(client_options.connect_timeout);
        let time = client_options.total_timeout.map_or(time, |total| total.min(time));
        let write = ProgressTimeout {
            silence_ms: u64::try_from(client_options.idle_timeout.as_millis()).unwrap_or(u64::MAX),
            rate_min: 0,
        };
        let is_http2 = client_options.http2 == Http2Use::Always;
        let key = (!is_http2).then(|| BASE64_STANDARD.encode(random::bytes::<16>()));
        self.request = with_fields(self.request, &self.options, key.as_deref());
        let mut stream = None;
        if is_http2 {
            let (tunnel, source) = BodyTunnel::new(write);
            self.request = self.request.stream(None, source);
            stream = Some(tunnel);
        }
        let response = timeout(time, self.request.send()).await.ok_or(OpenError::TimedOut)??;
        let terms = agreed(&response, &self.options, key.as_deref())?;
        let carrier = match stream {
            None => {
                let (socket, unread) = response.into_switched().ok_or(NOT_SWITCHED)?;
                ClientCarrier::Socket(socket, unread.into())
            }
            Some(stream) => {
                let pipe = stream.pipe();
                spawn_detached(stream.run(response.into_body())).map_err(|_| OpenError::Ending)?;
                ClientCarrier::Stream(Arc::clone(&pipe), CarrierGuard::Stream(pipe))
            }
        };
        let opened = Arc::<OpenedSlot>::default();
        let of_task = ClientOpening { carrier, write, terms, options: Arc::new(self.options) };
        spawn_detached(run_task(of_task, Arc::clone(&opened))).map_err(|_| OpenError::Ending)?;
        poll_fn(|context| opened.poll(context)).await
    }
}

/// What carries a WebSocket.
enum ClientCarrier {
    Socket(Socket, Vec<u8>),
    Stream(Arc<StreamPipe>, CarrierGuard),
}

/// Ends what carries a WebSocket with the task that uses it: senders in other tasks may still hold
/// what is above.
enum CarrierGuard {
    Socket(Socket),
    Stream(Arc<StreamPipe>),
}

impl Drop for CarrierGuard {
    fn drop(&mut self) {
        if let Self::Stream(pipe) = self {
            pipe.close(PipeClose::Returned);
        }
    }
}

impl ClientCarrier {
    fn tunnel(self, task: TaskMark) -> (Tunnel, CarrierGuard) {
        match self {
            Self::Socket(socket, unread) => {
                (Tunnel::over_socket(unread, task), CarrierGuard::Socket(socket))
            }
            Self::Stream(pipe, guard) => (Tunnel::over_stream(pipe, task), guard),
        }
    }
}

/// What the task of a WebSocket begins with.
struct ClientOpening {
    carrier: ClientCarrier,
    write: ProgressTimeout,
    terms: WebSocketTerms,
    options: Arc<WebSocketOptions>,
}

/// Where the task of a WebSocket leaves that for who has asked for it.
#[derive(Default)]
struct OpenedSlot(Mutex<(Option<WebSocket>, Option<Waker>)>);

impl OpenedSlot {
    fn put(&self, socket: WebSocket) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.0 = Some(socket);
        let waker = slot.1.take();
        drop(slot);
        waker.inspect(Waker::wake_by_ref);
    }

    fn poll(self: &Arc<Self>, context: &Context<'_>) -> Poll<Result<WebSocket, OpenError>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = slot.0.take() {
            return Poll::Ready(Ok(socket));
        }
        if Arc::strong_count(self) == 1 {
            // The worker has dropped the task.
            return Poll::Ready(Err(OpenError::Ending));
        }
        slot.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Runs a WebSocket, in a task of its own: it owns the connection, and others ask it.
async fn run_task(opening: ClientOpening, opened: Arc<OpenedSlot>) {
    let ClientOpening { carrier, write, terms, options } = opening;
    let task = poll_fn(|context| Poll::Ready(TaskMark::of(context.waker()))).await;
    let (tunnel, mut guard) = carrier.tunnel(task);
    let core = Core::new((tunnel, Role::Client), options, terms);
    let mut run = pin!(SocketRun::new(core, |socket| {
        // If nobody waits for it any more, it ends with the slot.
        opened.put(socket);
        ready(())
    }));
    drop(opened);
    poll_fn(|context| match &mut guard {
        CarrierGuard::Socket(socket) => lend(socket, task, write, || run.as_mut().poll(context)).0,
        CarrierGuard::Stream(_) => run.as_mut().poll(context),
    })
    .await;
}

const NOT_SWITCHED: OpenError = OpenError::Handshake("the connection was not handed over");

/// Returns what a server has agreed to, if its response is in order (RFC 6455 §4.1).
///
/// - `key`: that of the request by HTTP/1.1.
fn agreed(
    response: &ClientResponse,
    options: &WebSocketOptions,
    key: Option<&str>,
) -> Result<WebSocketTerms, OpenError> {
    let status = response.status();
    match key {
        Some(key) if status == 101 => check_switch(response, key)?,
        None if (200..300).contains(&status) => {}
        _ => return Err(OpenError::Refused { status }),
    }
    let subprotocol = subprotocol_of(response, options)?;
    let mut answers = response.header_values("sec-websocket-extensions");
    let agreed = match (answers.next(), answers.next()) {
        (Some(answer), None) if options.deflate.is_some() => DeflateAgreed::of_answer(answer).ok(),
        _ => None,
    };
    if agreed.is_none() && response.header_bytes("sec-websocket-extensions").is_some() {
        return Err(OpenError::Handshake("an extension that was not offered like this"));
    }
    let deflate = agreed
        .zip(options.deflate)
        .map(|(agreed, wanted)| Deflate::of_client(agreed, wanted, options.deflate_bytes_min));
    Ok(WebSocketTerms { subprotocol, deflate })
}
fn check_switch(response: &ClientResponse, key: &str) -> Result<(), OpenError> {
    let is = |name, wanted: &str| {
        response.header(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let is_upgrade = response
        .header_values("connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
    if !is("upgrade", PROTOCOL) || !is_upgrade {
        return Err(OpenError::Handshake("another protocol than WebSocket"));
    }
    let accept = response.header_bytes("sec-websocket-accept").map(<[u8]>::trim_ascii);
    if accept != Some(accept_of_key(key.as_bytes()).as_bytes()) {
        return Err(OpenError::Handshake("Sec-WebSocket-Accept is not that of the key"));
    }
    Ok(())
}

/// Returns the subprotocol that the server has chosen, which has to be one that was offered.
fn subprotocol_of(
    response: &ClientResponse,
    options: &WebSocketOptions,
) -> Result<Option<Box<str>>, OpenError> {
    let mut chosen = response.header_values("sec-websocket-protocol");
    let Some(name) = chosen.next() else { return Ok(None) };
    let offered = options.subprotocols.iter().find(|offered| offered.as_bytes() == name);
    match (offered, chosen.next()) {
        (Some(offered), None) => Ok(Some(offered.as_str().into())),
        _ => Err(OpenError::Handshake("a subprotocol that was not offered")),
    }
}

/// Adds the fields of the handshake.
fn with_fields(
    request: ClientRequest,
    options: &WebSocketOptions,
    key: Option<&str>,
) -> ClientRequest {
    let mut request = request.header("Sec-WebSocket-Version", VERSION);
    if let Some(key) = key {
        request = request.header("Sec-WebSocket-Key", key);
    }
    if !options.subprotocols.is_empty() {
        request = request.header("Sec-WebSocket-Protocol", options.subprotocols.join(", "));
    }
    if let Some(wanted) = options.deflate {
        request = request.header("Sec-WebSocket-Extensions", wanted.offer());
    }
    request
}

/// Returns the URL of HTTP that is asked for one of WebSocket.
fn url_of_http(url: &str) -> String {
    let of = |scheme: &str, http: &str| {
        let (first, rest) = url.split_at_checked(scheme.len())?;
        first.eq_ignore_ascii_case(scheme).then(|| format!("{http}{rest}"))
    };
    of("wss://", "https://").or_else(|| of("ws://", "http://")).unwrap_or_else(|| url.to_owned())
}

impl fmt::Debug for WebSocketRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketRequest")
            .field("request", &self.request)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::url_of_http;

    #[test]
    fn a_url_of_websocket_is_one_of_http() {
        for (url, http) in [
            ("ws://a/b", "http://a/b"),
            ("WSS://a", "https://a"),
            ("https://a", "https://a"),
            ("ws:", "ws:"),
            ("é://a", "é://a"),
        ] {
            assert_eq!(url_of_http(url), http);
        }
    }
}
