//! Types that a handler may return.

use std::borrow::Cow;

use bytes::Bytes;
use gustnado_http::status::Status;

use super::Response;
use crate::request::ParamError;

/// A type that can be converted to a response.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not a response",
    note = "return text, bytes, a `Status`, a `Response`, a pair of `Status` and one of these, \
            or an `Option` or `Result` of them"
)]
pub trait IntoResponse {
    /// Converts the value to a response.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    #[inline]
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for &'static str {
    #[inline]
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for String {
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for Cow<'static, str> {
    fn into_response(self) -> Response {
        match self {
            Cow::Borrowed(text) => Response::text(text),
            Cow::Owned(text) => Response::text(text),
        }
    }
}

impl IntoResponse for &'static [u8] {
    fn into_response(self) -> Response {
        Response::bytes(self)
    }
}

impl IntoResponse for Vec<u8> {
    fn into_response(self) -> Response {
        Response::bytes(self)
    }
}

impl IntoResponse for Bytes {
    fn into_response(self) -> Response {
        Response::bytes(self)
    }
}

/// 204.
impl IntoResponse for () {
    fn into_response(self) -> Response {
        Response::new(Status::NO_CONTENT)
    }
}

/// The status page, if it is an error.
impl IntoResponse for Status {
    fn into_response(self) -> Response {
        Response::new(self)
    }
}

impl<T: IntoResponse> IntoResponse for (Status, T) {
    fn into_response(self) -> Response {
        self.1.into_response().status(self.0)
    }
}

/// 404 for `None`.
impl<T: IntoResponse> IntoResponse for Option<T> {
    fn into_response(self) -> Response {
        self.map_or_else(|| Response::new(Status::NOT_FOUND), T::into_response)
    }
}

/// Either value is a response.
impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(value) => value.into_response(),
            Err(error) => error.into_response(),
        }
    }
}

/// The status of the error.
impl IntoResponse for crate::body::BodyError {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.status());
        if self == Self::NoMemory {
            response = response.header("Retry-After", "1");
        }
        if self.ends_connection() { response.close() } else { response }
    }
}

impl Default for Response {
    fn default() -> Self {
        Self::new(Status::OK)
    }
}

impl IntoResponse for ParamError {
    fn into_response(self) -> Response {
        Response::new(self.status())
    }
}
