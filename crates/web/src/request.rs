//! A request as handlers see it.

mod content;
mod cookies;
mod kept;
mod peer;
mod query;
mod typed;

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::task::Waker;

use bytes::Bytes;

use gustnado_http::fields::{FieldError, Fields};
use gustnado_http::head::{Head, Version};
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;

use crate::body::{Body, BodyError};

use crate::request_head::{RequestHead, RequestHeadRef, as_text};
use crate::trailers::RequestTrailers;
pub use cookies::Cookies;
pub use kept::KeptRequest;
pub use peer::{RequestPeer, RequestSource};
pub use query::{Pairs, percent_decoded};
pub use typed::ParamError;

/// A request: its head, the parts of its path that the route names, and its body.
///
/// An inline handler borrows it; a task or blocking handler owns it. The head was checked when it
/// was read. The body is read on demand ([`Request::into_body`]); inline and blocking handlers get
/// it whole ([`Request::bytes`]).
pub struct Request {
    parts: RequestHeadRef,
    body: Body,
    peer: RequestPeer,
    extensions: Option<Box<Extensions>>,
}

/// What a request takes in a queue: its place, its timer, the handler's future.
const WAITING_BYTES: usize = 1 << 10;

type Extensions = HashMap<TypeId, Box<dyn Any + Send + Sync>>;

impl Request {
    #[doc(hidden)]
    pub fn new(parts: RequestHeadRef, body: Body, peer: RequestPeer) -> Self {
        Self { parts, body, peer, extensions: None }
    }

    /// Creates a request whose body, if any, has not been read.
    ///
    /// - `used`: a request to be reused, which saves the allocation.
    #[expect(clippy::inline_always, reason = "a call each way would be 30 instructions more")]
    #[inline(always)]
    #[doc(hidden)]
    pub fn bare(
        used: &Cell<Option<Box<Self>>>,
        head: &Head,
        bytes: &[u8],
        origin: RequestSource<'_>,
    ) -> Box<Self> {
        if let Some(mut used) = used.take()
            && let Some(parts) = used.parts.get_mut()
        {
            parts.refill(head, bytes);
            used.peer.lend(origin);
            return used;
        }
        // A reused request is of the same app: see `RouteCache`.
        let peer = RequestPeer::lent(origin);
        Box::new(Self::new(RequestHead::take(head, bytes), Body::empty(), peer))
    }

    /// Keeps the request for reuse after its response.
    #[expect(clippy::inline_always, reason = "as for `bare`")]
    #[inline(always)]
    #[doc(hidden)]
    pub fn put_back(mut self: Box<Self>, used: &Cell<Option<Box<Self>>>) {
        if self.extensions.is_some() {
            self.extensions = None;
        }
        if self.body.whole().is_empty() {
            used.set(Some(self));
        }
    }

    /// Returns the head, which may outlive the request.
    #[doc(hidden)]
    pub fn parts(&self) -> &RequestHeadRef {
        &self.parts
    }

    /// Returns the head while it has no other owner.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> &mut RequestHead {
        self.parts.get_mut().expect("it was just made and has no other owner")
    }

    /// Returns about how many bytes it holds, its body excepted: what waits for a handler.
    #[doc(hidden)]
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.parts.held_bytes() + WAITING_BYTES
    }

    /// Returns a view of the head.
    #[doc(hidden)]
    pub fn view(&self) -> RequestView<'_> {
        self.parts.view()
    }

    /// Returns the method (RFC 9110 §9). [`Method::Other`] is every one without a name of its own;
    /// [`Request::method_str`] distinguishes them.
    pub fn method(&self) -> Method {
        self.view().method()
    }

    /// Returns the method as it was sent: `GET`, `PROPFIND`.
    pub fn method_str(&self) -> &str {
        as_text(self.view().method_token())
    }

    /// Returns the version of HTTP (RFC 9110 §2.5).
    pub fn version(&self) -> Version {
        self.view().version()
    }

    /// Returns the request target as it was sent, still percent-encoded (RFC 9112 §3.2).
    pub fn target(&self) -> &str {
        as_text(self.view().target())
    }

    /// Returns the path as it was sent, percent-encoded, without the query. It starts with `/`;
    /// that of `OPTIONS *` is `*`.
    pub fn raw_path(&self) -> &str {
        as_text(self.view().path())
    }

    /// Returns the path that routes and folders compare, percent-decoded. It has no empty segments
    /// and none that are `.`; a slash at the end stays. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// A `/`, `\\` or NUL that was sent escaped is not a separator, and stays escaped: `%2F`,
    /// `%5C`, `%00`. So a condition on segments holds for every spelling of a path: see also
    /// [`Request::is_under`]. The path as it was sent is [`Request::raw_path`].
    pub fn path(&self) -> Cow<'_, str> {
        match self.parts.path() {
            Ok(path) => path.into_decoded(),
            Err(_) => percent_decoded(self.raw_path()),
        }
    }

    /// Returns whether the path is `base` or beneath it, segment by segment: `/a` and `//a/./%62`
    /// are beneath `/a`, while `/ab` and `/a%2Fb` are not. For conditions such as those of
    /// [`Middleware::only_if`](crate::Middleware::only_if).
    ///
    /// - `base`: percent-encoded, beginning with `/`; otherwise nothing is beneath it.
    pub fn is_under(&self, base: &str) -> bool {
        match (self.parts.path(), CanonicalPath::of(base.as_bytes())) {
            (Ok(path), Ok(base)) => path.is_under(&base),
            _ => false,
        }
    }

    /// Returns the part after the first `?`, percent-encoded.
    pub fn raw_query(&self) -> Option<&str> {
        self.view().query().map(as_text)
    }

    /// Returns the pairs of the query in order, decoded (`+` is a space).
    pub fn query(&self) -> Pairs<'_> {
        Pairs::new(self.view().query().unwrap_or(b""))
    }

    /// Returns the first value of a name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        self.query().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the part of the path that a `{name}` of the route matches, decoded; empty if the
    /// route has no such part.
    pub fn param(&self, name: &str) -> Cow<'_, str> {
        self.parts.param(name).map_or(Cow::Borrowed(""), decoded)
    }

    /// Returns the same part as it was sent, percent-encoded.
    #[doc(hidden)]
    pub fn raw_param(&self, name: &str) -> String {
        self.parts.param_as_sent(name).unwrap_or_default()
    }

    /// Returns all parts of the path that the route names, in order: name and decoded value.
    pub fn params(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.parts.params().map(|(name, value)| (name, decoded(value)))
    }

    /// Returns the host with its port (RFC 9110 §7.2) as they were sent: of the target if that is
    /// absolute, else of Host. HTTP/1.1 requires it.
    pub fn host(&self) -> Option<&str> {
        self.view().host().map(as_text)
    }

    /// Returns whether the client offers to go on in another protocol. In HTTP/1.1 its Upgrade
    /// field names that, and its Connection field lists `upgrade` (RFC 9110 §7.8); in HTTP/2 it is
    /// a CONNECT with `:protocol` (RFC 8441 §4), which routes take for the GET that it would be in
    /// HTTP/1.1.
    pub fn wants_upgrade(&self) -> bool {
        self.view().head().wants_upgrade()
    }

    /// Returns the protocols that the client offers to go on in, the one that it likes best first;
    /// none if it wants to stay with HTTP. In HTTP/2 it is one at most.
    ///
    /// ```
    /// use gustnado::{Request, Response, Routes, Tunnel};
    ///
    /// async fn echo(mut tunnel: Tunnel) {
    ///     while let Ok(bytes) = tunnel.recv().await {
    ///         if bytes.is_empty() || tunnel.send(bytes).await.is_err() {
    ///             return;
    ///         }
    ///     }
    /// }
    ///
    /// // By `Upgrade: echo` in HTTP/1.1, and by `:protocol: echo` in HTTP/2.
    /// let routes = Routes::new().get("/", |request: &Request| {
    ///     match request.upgrade_protocols().next() {
    ///         Some("echo") => Response::upgrade("echo", echo),
    ///         _ => Response::text("use a client that speaks echo"),
    ///     }
    /// });
    /// ```
    pub fn upgrade_protocols(&self) -> impl Iterator<Item = &str> {
        self.view().upgrade_protocols().filter_map(|name| std::str::from_utf8(name).ok())
    }

    /// Returns whether a protocol is among them; case does not matter.
    pub fn wants_protocol(&self, protocol: &str) -> bool {
        self.view().wants_protocol(protocol)
    }

    /// Returns the first value of a header field; the case of the name does not matter. `None` also
    /// for a value that is not UTF-8: see [`Request::header_bytes`].
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.header_bytes(name)?).ok()
    }

    /// Returns the first value of a header field as its bytes.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.view().field(name)
    }

    /// Returns all values of a header field in order; the case of the name does not matter.
    pub fn header_values<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r [u8]> {
        let same = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.view().fields().filter(same).map(|field| field.1)
    }

    /// Returns all header fields in order: the name as it was sent, and the value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.view().fields().map(|(name, value)| (as_text(name), value))
    }

    /// Returns the cookies in order, as they were sent (RFC 6265 §4.2).
    pub fn cookies(&self) -> Cookies<'_> {
        Cookies::new(self.view())
    }

    /// Returns the first value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the whole body if it has been read, as in inline and blocking handlers; otherwise
    /// nothing.
    pub fn bytes(&self) -> &[u8] {
        self.body.whole()
    }

    /// Returns the trailer fields that came behind the body, once that was read to its end; `None`
    /// before, and if there are none. Also while [`Body`] is elsewhere.
    ///
    /// ```
    /// use gustnado::{Request, Response, Status};
    ///
    /// async fn upload(mut request: Request) -> Response {
    ///     let Ok(body) = request.body_mut().bytes(1 << 20).await else {
    ///         return Response::new(Status::BAD_REQUEST);
    ///     };
    ///     match request.trailers().as_ref().and_then(|trailers| trailers.get("body-length")) {
    ///         Some(told) if told != body.len().to_string() => Response::new(Status::BAD_REQUEST),
    ///         _ => Response::text("whole"),
    ///     }
    /// }
    /// ```
    pub fn trailers(&self) -> Option<RequestTrailers> {
        self.parts.channel().trailers()
    }

    /// Gives the request its body, which was read, and the trailer fields behind it.
    #[doc(hidden)]
    pub fn set_whole_body(&mut self, body: Bytes, trailers: Option<RequestTrailers>) {
        self.body = Body::from_whole(body);
        self.parts.set_trailers(trailers);
    }

    /// Sends the client an interim response (103, RFC 8297), e.g. with `Link` fields, from handlers
    /// that take time. Nothing is sent together with the response, nor from an inline handler,
    /// whose response is ready at once. Of clients of HTTP/1.1 only browsers that navigate get
    /// them, unless the setting `early-hints` says otherwise.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is sent, if a field could split the response.
    pub fn early_hints(&self, fields: &[(&str, &str)]) -> Result<(), FieldError> {
        let mut hints = Fields::new();
        for (name, value) in fields {
            hints.add(*name, value.as_bytes())?;
        }
        if self.version() != Version::Http10 {
            self.parts.channel().send_interim(Status::EARLY_HINTS, hints);
        }
        Ok(())
    }

    /// Returns the body, to be read.
    pub fn into_body(mut self) -> Body {
        self.take_body()
    }

    /// Takes the body out, together with a reference to its head.
    #[doc(hidden)]
    pub fn take_body(&mut self) -> Body {
        let body = std::mem::replace(&mut self.body, Body::empty());
        body.of_head(&self.parts)
    }

    /// Returns the body, to be read while the head remains available.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Reads the whole body; [`Request::bytes`] returns it then.
    #[doc(hidden)]
    pub async fn read_whole(&mut self) -> Result<(), BodyError> {
        let whole = self.body.bytes(usize::MAX).await?;
        self.body = Body::from_whole(whole);
        Ok(())
    }

    /// Returns the same request with the body that the connection has still to receive.
    #[doc(hidden)]
    pub fn live(&self) -> Self {
        let framing = self.parts.head().framing();
        Self::new(self.parts.clone(), Body::live(self.parts.clone(), framing), self.peer.clone())
    }

    /// Binds the request to the connection's task: its owner may take it anywhere from now on.
    #[inline]
    #[doc(hidden)]
    pub fn give_to(&mut self, waker: &Waker) {
        self.peer.give_to(waker);
    }

    /// Returns the same request with its body, which arrived with the head, and the trailer fields
    /// behind it.
    #[doc(hidden)]
    pub fn with_body(&self, body: Bytes, trailers: Option<RequestTrailers>) -> Self {
        self.parts.set_trailers(trailers);
        let body = Body::at_hand(body, self.parts.clone());
        Self::new(self.parts.clone(), body, self.peer.clone())
    }

    /// Returns the same request without its body and without the values kept with it.
    #[inline]
    #[doc(hidden)]
    pub fn head_only(&self) -> Self {
        Self::new(self.parts.clone(), Body::empty(), self.peer.clone())
    }

    /// Keeps a value with the request, from middleware for a handler. There is one of each type.
    /// Returns the value that it replaces.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) -> Option<T> {
        let old =
            self.extensions.get_or_insert_default().insert(TypeId::of::<T>(), Box::new(value));
        Some(*old?.downcast().expect("kept under its type"))
    }

    /// Returns the value of a type that [`Request::insert`] has kept.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extensions.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

fn decoded(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => percent_decoded(text),
        Cow::Owned(text) => Cow::Owned(percent_decoded(&text).into_owned()),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use gustnado_http::head::{Decoded, Head};
    use gustnado_http::limits::Limits;

    #[doc(hidden)]
    pub fn of(text: &str) -> Request {
        let head = match Head::decode(text.as_bytes(), &mut 0, &Limits::default()) {
            Ok(Decoded::Done(head)) => head,
            other => panic!("expected a head, got {other:?}"),
        };
        let parts = RequestHead::take(&head, text.as_bytes());
        let origin = RequestSource { socket: None, trusted_proxies: None };
        Request::new(parts, Body::empty(), RequestPeer::lent(origin))
    }

    #[test]
    fn the_head_is_read_in_all_its_parts() {
        let request = of("POST /a%20b/c?x=1&y=a+b%21&x=2 HTTP/1.1\r\nHost: h:1\r\nX-One: a\r\n\
                          x-one: b\r\nCookie: k=v; other=w\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(request.method(), Method::Post);
        assert_eq!(request.version(), Version::Http11);
        assert_eq!(request.target(), "/a%20b/c?x=1&y=a+b%21&x=2");
        assert_eq!((request.raw_path(), &*request.path()), ("/a%20b/c", "/a b/c"));
        assert_eq!(request.query_value("y").as_deref(), Some("a b!"));
        let all: Vec<_> = request.query().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(all, ["x=1", "y=a b!", "x=2"]);
        assert_eq!(request.host(), Some("h:1"));
        assert_eq!(request.header("X-ONE"), Some("a"));
        assert_eq!(request.header_values("x-one").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!((request.cookie("other"), request.cookie("none")), (Some("w"), None));
        assert_eq!(request.bytes(), b"");
    }

    #[test]
    fn a_value_of_each_type_can_be_kept() {
        let mut request = of("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(request.insert(7_u32), None);
        assert_eq!(request.insert(8_u32), Some(7));
        request.insert("text");
        assert_eq!((request.get::<u32>(), request.get::<&str>()), (Some(&8), Some(&"text")));
        assert_eq!(request.get::<u64>(), None);
    }
}
