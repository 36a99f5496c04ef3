//! HTML forms: pairs ([`Form`]), parts as they arrive ([`Multipart`]), and all parts together with
//! their files ([`FormData`]).
//!
//! | the form | in inline and blocking handlers | in task handlers |
//! | --- | --- | --- |
//! | `application/x-www-form-urlencoded` | [`Request::form`] | [`Request::read_form`] |
//! | `multipart/form-data`, all of it | [`Request::form_data`] | [`Request::read_form_data`] |
//! | `multipart/form-data`, part by part | | [`Request::multipart`] |
//!
//! Everything has a limit ([`FormLimits`]), in addition to the server's limits on bodies. A
//! client's mistake is a [`FormError`], which a handler can return as the response.

mod collected;
mod multipart;
mod spill;
mod upload;
mod urlencoded;

use std::io;
use std::path::PathBuf;

use gustnado_http::media_type::MediaType;
use gustnado_http::multipart::{MultipartDecoder, MultipartLimits};
use gustnado_http::status::Status;
use thiserror::Error;

use crate::body::BodyError;
use crate::request::Request;
use crate::response::{IntoResponse, Response};

pub use collected::FormData;
pub use gustnado_http::multipart::MultipartError;
pub use multipart::{Multipart, Part, safe_file_name};
pub use upload::Upload;
pub use urlencoded::Form;

/// Limits of a form. The server's limit of bodies applies as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormLimits {
    /// Pairs, or parts. Default: 1,000.
    pub fields_max: usize,
    /// Bytes of all names and values together, without files. Default: 1 MiB.
    pub value_bytes_max: usize,
    /// Bytes of one file. By default only the limit of the body applies.
    pub file_bytes_max: u64,
    /// Bytes of files that a form holds in memory; further files go to the disk. If the body has
    /// been read for the handler, it stays in memory. Default: 100,000.
    pub memory_bytes_max: usize,
    /// Bytes of a form's files on the disk together. Default: 1 GiB.
    pub disk_bytes_max: u64,
    /// Bytes of one part's head. Default: 8 KiB.
    pub part_head_bytes_max: usize,
    /// The folder, which must exist, for files that do not stay in memory. Default: `None`, the
    /// system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl Default for FormLimits {
    fn default() -> Self {
        Self {
            fields_max: 1_000,
            value_bytes_max: 1 << 20,
            file_bytes_max: u64::MAX,
            memory_bytes_max: 100_000,
            disk_bytes_max: 1 << 30,
            part_head_bytes_max: 8 << 10,
            folder: None,
        }
    }
}

const URLENCODED: &str = "application/x-www-form-urlencoded";
const FORM_DATA: &str = "multipart/form-data";

/// Returns the content type of a request's body, if it is the expected one.
fn expect_type<'r>(
    request: &'r Request,
    expected: &'static str,
) -> Result<MediaType<'r>, FormError> {
    let kind = MediaType::of(request.header_bytes("content-type").unwrap_or(b""));
    if kind.is(expected) { Ok(kind) } else { Err(FormError::WrongType { expected }) }
}

/// Returns the decoder for a request whose body is `multipart/form-data`.
fn decoder(request: &Request, limits: &FormLimits) -> Result<MultipartDecoder, FormError> {
    let kind = expect_type(request, FORM_DATA)?;
    let boundary = kind.parameter("boundary").unwrap_or_default();
    let limits = MultipartLimits {
        parts_max: limits.fields_max,
        head_bytes_max: limits.part_head_bytes_max,
    };
    Ok(MultipartDecoder::new(&boundary, limits)?)
}

/// Error of a form that was not read.
#[derive(Error)]
#[non_exhaustive]
pub enum FormError {
    /// The body is something else: 415.
    #[error("expected a body of {expected}, found another type; set Content-Type")]
    WrongType {
        /// The content type that was expected.
        expected: &'static str,
    },
    /// The body could not be read: the status of the [`BodyError`].
    #[error("the body of the form could not be read")]
    Body(#[from] BodyError),
    /// The body is not well-formed `multipart/form-data`: 400, or 413 past a limit.
    #[error("the form is malformed")]
    Multipart(#[from] MultipartError),
    /// The body ended before the form did: 400.
    #[error("the body ended before the form")]
    Truncated,
    /// More pairs than [`FormLimits::fields_max`]: 413.
    #[error("expected at most {limit} fields, found more; raise fields_max")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// More bytes of values than [`FormLimits::value_bytes_max`], or than the caller allows for a
    /// part: 413.
    #[error("expected at most {limit_bytes} bytes of values, found more; raise value_bytes_max")]
    ValueTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// A file with more bytes than [`FormLimits::file_bytes_max`]: 413.
    #[error("expected at most {limit_bytes} bytes in a file, found more; raise file_bytes_max")]
    FileTooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// More bytes of files than [`FormLimits::disk_bytes_max`]: 413.
    #[error("expected at most {limit_bytes} bytes on the disk, found more; raise disk_bytes_max")]
    TooMuchForDisk {
        /// The limit.
        limit_bytes: u64,
    },
    /// A file cannot be written: 507 if the disk is full, else 500.
    #[error("a file could not be written")]
    Disk(#[from] io::Error),
    /// The queue of the thread pool, which writes files, was full for a second: 503.
    #[error("no thread was free to write files for a second; raise blocking-threads")]
    Busy,
}

impl FormError {
    /// Returns the status of the response to it.
    pub fn status(&self) -> Status {
        match self {
            Self::WrongType { .. } => Status::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(error) => error.status(),
            Self::Multipart(
                MultipartError::HeadTooLarge { .. } | MultipartError::TooManyParts { .. },
            )
            | Self::TooManyFields { .. }
            | Self::ValueTooLarge { .. }
            | Self::FileTooLarge { .. }
            | Self::TooMuchForDisk { .. } => Status::CONTENT_TOO_LARGE,
            Self::Multipart(_) | Self::Truncated => Status::BAD_REQUEST,
            Self::Disk(error) if error.kind() == io::ErrorKind::StorageFull => {
                Status::INSUFFICIENT_STORAGE
            }
            Self::Disk(_) => Status::INTERNAL_SERVER_ERROR,
            Self::Busy => Status::SERVICE_UNAVAILABLE,
        }
    }
}

/// The status of the error.
impl IntoResponse for FormError {
    fn into_response(self) -> Response {
        match self {
            Self::Body(error) => error.into_response(),
            Self::Busy => Response::new(self.status()).header("Retry-After", "1"),
            other => Response::new(other.status()),
        }
    }
}
