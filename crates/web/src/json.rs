//! Values of a program's own types: read from JSON and from the query, and written as JSON (feature
//! `json`).

use gustnado_http::media_type::MediaType;
use gustnado_http::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use thiserror::Error;

use crate::body::BodyError;
use crate::request::Request;
use crate::response::{IntoResponse, Response};

/// Error of a body that is not a value of the expected type. As a response it is one line of text.
#[derive(Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The content type is neither `application/json` nor one that ends in `+json`: 415.
    #[error("expected a body of application/json, found another type; set Content-Type")]
    WrongType,
    /// The body could not be read: the status of the [`BodyError`].
    #[error("the body could not be read")]
    Body(#[from] BodyError),
    /// The body is not JSON (RFC 8259): 400.
    #[error("the body is not JSON: {0}")]
    Malformed(#[source] serde_json::Error),
    /// The body is JSON, but not a value of the expected type: 422.
    #[error("the JSON of the body has another form than expected: {0}")]
    Unfit(#[source] serde_json::Error),
}

impl JsonError {
    /// Returns the status of the response to it.
    pub fn status(&self) -> Status {
        match self {
            Self::WrongType => Status::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(error) => error.status(),
            Self::Malformed(_) => Status::BAD_REQUEST,
            Self::Unfit(_) => Status::UNPROCESSABLE_CONTENT,
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        if error.classify() == Category::Data { Self::Unfit(error) } else { Self::Malformed(error) }
    }
}

/// The status of the error, with its text.
impl IntoResponse for JsonError {
    fn into_response(self) -> Response {
        match self {
            Self::Body(error) => error.into_response(),
            other => Response::text(other.to_string()).status(other.status()),
        }
    }
}

/// Error of a query that is not a value of the expected type. As a response it is 400 with its
/// text.
#[derive(Error)]
#[error("the query has another form than expected: {0}")]
pub struct QueryError(#[source] serde_urlencoded::de::Error);

impl IntoResponse for QueryError {
    fn into_response(self) -> Response {
        Response::text(self.to_string()).status(Status::BAD_REQUEST)
    }
}

/// Values of a program's own types (feature `json`).
impl Request {
    /// Returns the body, which is JSON, as a value. For inline and blocking handlers.
    ///
    /// # Errors
    /// [`JsonError`]: 415 for another content type, 400 if the body is not JSON, 422 if it is not a
    /// value of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        self.expect_json()?;
        Ok(serde_json::from_slice(self.whole_body()?)?)
    }

    /// Reads the body, which is JSON, and returns it as a value. For handlers that own their
    /// request.
    ///
    /// - `bytes_max`: limit of the body; a longer one is 413. The server's limit applies as well.
    ///
    /// # Errors
    /// As [`Request::json`], and [`JsonError::Body`].
    pub async fn read_json<T: DeserializeOwned>(
        &mut self,
        bytes_max: usize,
    ) -> Result<T, JsonError> {
        self.expect_json()?;
        let body = self.body_mut().bytes(bytes_max).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Returns the query as a value, whose fields have the names of its pairs.
    ///
    /// # Errors
    /// [`QueryError`], which is 400: a field is missing, or its text cannot be converted.
    pub fn query_as<T: DeserializeOwned>(&self) -> Result<T, QueryError> {
        serde_urlencoded::from_str(self.raw_query().unwrap_or_default()).map_err(QueryError)
    }

    fn expect_json(&self) -> Result<(), JsonError> {
        let kind = MediaType::of(self.header_bytes("content-type").unwrap_or(b""));
        let is_variant = kind.name().to_ascii_lowercase().ends_with(b"+json");
        if kind.is("application/json") || is_variant { Ok(()) } else { Err(JsonError::WrongType) }
    }
}

/// Values of a program's own types (feature `json`).
impl Response {
    /// Creates a response with a value as JSON. If the value has no JSON (a map whose keys are not
    /// text, or its `Serialize` fails), the response is 500 with the error.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(text) => Self::json_text(text),
            Err(error) => Self::text(format!("the value cannot be written as JSON: {error}"))
                .status(Status::INTERNAL_SERVER_ERROR),
        }
    }
}
