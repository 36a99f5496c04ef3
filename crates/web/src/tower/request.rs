//! Conversion of a request to one of the crate `http`.

use bytes::Bytes;
use gustnado_http::head::Version;
use gustnado_http::method::Method;
use gustnado_http::request::{RequestView, TargetForm};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::response::{RequestTraits, TrailersPlace};
use crate::body::Body;
use crate::request::Request;
use crate::request_head::RequestHeadRef;
use crate::response::has_member;

/// Converts a request to the type that a service takes. `None` if the crate `http` refuses its
/// target; it is stricter than RFC 3986.
pub(super) fn convert(request: Request) -> Option<(http::Request<Body>, RequestTraits)> {
    let mut converted = http::Request::new(Body::empty());
    let shared = Bytes::from_owner(HeadBytes(request.parts().clone()));
    let view = request.view();
    *converted.uri_mut() = uri(view.form(), shared.slice_ref(view.target()))?;
    *converted.method_mut() = method(view)?;
    *converted.version_mut() = match view.version() {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
        Version::Http2 => http::Version::HTTP_2,
    };
    #[expect(clippy::naive_bytecount, reason = "heads are short")]
    let lines = request.parts().bytes().iter().filter(|byte| **byte == b'\n').count();
    let mut fields = HeaderMap::with_capacity(lines.saturating_sub(2));
    let method = view.method();
    let (is_head, is_connect) = (method == Method::Head, method == Method::Connect);
    let mut trailers = match view.version() {
        Version::Http2 => TrailersPlace::Anywhere,
        _ => TrailersPlace::Nowhere,
    };
    for (name, value) in view.fields() {
        if name.len() == 2 && name.eq_ignore_ascii_case(b"te") {
            // RFC 9110 §10.1.4.
            if has_member(value, b"trailers") && view.version() == Version::Http11 {
                trailers = TrailersPlace::BehindChunks;
            }
        }
        let name = HeaderName::from_bytes(name).ok()?;
        // The values are slices of the one head, which lives for as long as one of them does.
        let value = HeaderValue::from_maybe_shared(shared.slice_ref(value)).ok()?;
        fields.append(name, value);
    }
    *converted.headers_mut() = fields;
    *converted.body_mut() = request.into_body();
    Some((converted, RequestTraits { is_head, is_connect, trailers }))
}

fn uri(form: TargetForm, target: Bytes) -> Option<Uri> {
    // The part after a double slash is a path (RFC 9112 §3.2.1), not the host.
    let uri = Uri::from_maybe_shared(target).ok()?;
    let is_path = form == TargetForm::Origin && uri.authority().is_none();
    (is_path || form != TargetForm::Origin).then_some(uri)
}

/// Converts the method. `None` for a token that the crate `http` refuses; today it takes all.
fn method(view: RequestView<'_>) -> Option<http::Method> {
    Some(match view.method() {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Delete => http::Method::DELETE,
        Method::Connect => http::Method::CONNECT,
        Method::Options => http::Method::OPTIONS,
        Method::Trace => http::Method::TRACE,
        Method::Patch => http::Method::PATCH,
        Method::Other => http::Method::from_bytes(view.method_token()).ok()?,
    })
}

/// A head's bytes, which live as long as any slice of them.
struct HeadBytes(RequestHeadRef);

impl AsRef<[u8]> for HeadBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}
