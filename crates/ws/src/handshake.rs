//! The handshake (RFC 6455 §4.2, RFC 8441 §5).

use base64::prelude::{BASE64_STANDARD, Engine as _};
use gustnado_http::status::Status;
use gustnado_http::websocket::deflate::{DeflateAgreed, DeflateOptions};
use gustnado_observe::stats::WebSocketCount;
use gustnado_web::request::Request;
use gustnado_web::response::Response;
use sha1::{Digest, Sha1};

use crate::deflate::has_room_for_context;
use crate::options::{Origins, WebSocketOptions};

/// The name of the protocol.
pub(crate) const PROTOCOL: &str = "websocket";

/// What is put behind a client's key (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The only version.
pub(crate) const VERSION: &str = "13";

/// What was agreed on.
pub(crate) struct WebSocketHandshake {
    /// The answer to the key; none in HTTP/2.
    pub(crate) accept: Option<String>,
    pub(crate) subprotocol: Option<Box<str>>,
    pub(crate) deflate: Option<DeflateAgreed>,
}

impl WebSocketHandshake {
    /// Checks a request that asks for a WebSocket.
    ///
    /// # Errors
    /// The response to a request that gets none.
    pub(crate) fn of(request: &Request, options: &WebSocketOptions) -> Result<Self, Response> {
        if request.header("sec-websocket-version").map(str::trim) != Some(VERSION) {
            let refused = Response::new(Status::UPGRADE_REQUIRED);
            return Err(refused.header("Sec-WebSocket-Version", VERSION));
        }
        if !is_allowed(request, &options.origins) {
            options.count(WebSocketCount::OriginRefused);
            return Err(Response::new(Status::FORBIDDEN));
        }
        let accept = match request.version() {
            gustnado_http::head::Version::Http2 => None,
            _ => Some(accept_of(request).ok_or_else(|| Response::new(Status::BAD_REQUEST))?),
        };
        let extensions = request.header_values("sec-websocket-extensions");
        let wanted = options.deflate.map(|wanted| {
            let keeps_context = wanted.keeps_context && has_room_for_context();
            DeflateOptions { keeps_context, ..wanted }
        });
        let deflate = wanted.and_then(|wanted| DeflateAgreed::choose(extensions, wanted));
        Ok(Self { accept, subprotocol: subprotocol_of(request, options), deflate })
    }
}

/// Returns the answer to a client's key; `None`: it has not sent one, of 16 bytes in base64.
fn accept_of(request: &Request) -> Option<String> {
    let mut keys = request.header_values("sec-websocket-key");
    let (key, None) = (keys.next()?.trim_ascii(), keys.next()) else { return None };
    let mut bytes = [0; 18];
    if key.len() != 24 || BASE64_STANDARD.decode_slice(key, &mut bytes) != Ok(16) {
        return None;
    }
    Some(accept_of_key(key))
}

/// Returns the answer to a key (RFC 6455 §4.2.2).
pub(crate) fn accept_of_key(key: &[u8]) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    BASE64_STANDARD.encode(digest)
}

/// Returns the first subprotocol of the server's that the client offers.
fn subprotocol_of(request: &Request, options: &WebSocketOptions) -> Option<Box<str>> {
    let is_offered = |name: &&String| {
        request
            .header_values("sec-websocket-protocol")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|offered| offered.trim_ascii() == name.as_bytes())
    };
    options.subprotocols.iter().find(is_offered).map(|name| name.as_str().into())
}

/// Returns whether the page that asks may, if a browser asks.
fn is_allowed(request: &Request, origins: &Origins) -> bool {
    let Some(origin) = request.header_bytes("origin") else { return true };
    let Ok(origin) = std::str::from_utf8(origin) else { return false };
    let is_same_host = || {
        let host = request.public_host().unwrap_or_default();
        let of_page = origin.split_once("://").map(|(_, host)| host);
        !host.is_empty() && of_page.is_some_and(|of_page| of_page.eq_ignore_ascii_case(&host))
    };
    match origins {
        Origins::Any => true,
        Origins::SameHost => is_same_host(),
        Origins::Also(list) => {
            list.iter().any(|known| known.eq_ignore_ascii_case(origin)) || is_same_host()
        }
    }
}
