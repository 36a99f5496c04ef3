//! HTML forms: pairs ([`Form`]), parts as they come ([`Multipart`]), and all parts together with
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

use std::fmt;
use std::io;
use std::path::PathBuf;

use gustnado_http::media_type::MediaType;
use gustnado_http::multipart::{MultipartDecoder, MultipartLimits};
use gustnado_http::status::Status;

use crate::body::BodyError;
use crate::request::Request;
use crate::response::{IntoResponse, Response};

pub use collected::FormData;
pub use gustnado_http::multipart::MultipartError;
pub use multipart::{Multipart, Part, safe_file_name};
pub use upload::Upload;
pub use urlencoded::Form;

/// Limits of a form. The server's limit on bodies applies as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormLimits {
    /// Pairs, or parts. Default: 1,000.
    pub fields_max: usize,
    /// Bytes of all names and values that are no files, together. Default: 1 MiB.
    pub value_bytes_max: usize,
    /// Bytes of one file. Default: no limit but that on the body.
    pub file_bytes_max: u64,
    /// Bytes of files that a form holds in memory. What is more goes to the disk, file by file. (In
    /// a handler that finds the body whole, it is in memory already and stays there.) Default:
    /// 100,000.
    pub memory_bytes_max: usize,
    /// Bytes of a form's files on the disk, together. Default: 1 GiB.
    pub disk_bytes_max: u64,
    /// Bytes of one part's head. Default: 8 KiB.
    pub part_head_bytes_max: usize,
    /// Folder for the files that are not kept in memory; it must exist. `None` is the system's
    /// folder for temporary files, which is the default.
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

/// Whether a request's body is what is expected.
fn expect_type<'r>(
    request: &'r Request,
    expected: &'static str,
) -> Result<MediaType<'r>, FormError> {
    let kind = MediaType::of(request.header_bytes("content-type").unwrap_or(b""));
    if kind.is(expected) { Ok(kind) } else { Err(FormError::WrongType { expected }) }
}

/// The decoder for a request whose body is `multipart/form-data`.
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
#[non_exhaustive]
pub enum FormError {
    /// The body is something else: 415.
    WrongType {
        /// The content type that was expected.
        expected: &'static str,
    },
    /// The body did not come to its end, or is past the server's limit: its own status.
    Body(BodyError),
    /// It is against the rules of forms: 400, or 413 where it is past a limit.
    Multipart(MultipartError),
    /// The body ended before the form did: 400.
    Truncated,
    /// More pairs than [`FormLimits::fields_max`]: 413.
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// More bytes of values than [`FormLimits::value_bytes_max`], or than the caller's limit of a
    /// part: 413.
    ValueTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// A file with more bytes than [`FormLimits::file_bytes_max`]: 413.
    FileTooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// More bytes of files than [`FormLimits::disk_bytes_max`]: 413.
    TooMuchForDisk {
        /// The limit.
        limit_bytes: u64,
    },
    /// A file cannot be kept: 507 where the disk is full, else 500.
    Disk(io::Error),
    /// The thread pool has no room for writing files, and had none for a second: 503.
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

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType { expected } => write!(f, "the body must be {expected}"),
            Self::Body(_) => f.write_str("the form's body could not be read"),
            Self::Multipart(_) => f.write_str("the form is malformed"),
            Self::Truncated => f.write_str("the form has no end"),
            Self::TooManyFields { limit } => write!(f, "the form has more than {limit} fields"),
            Self::ValueTooLarge { limit_bytes } => {
                write!(f, "the form's values have more than {limit_bytes} bytes")
            }
            Self::FileTooLarge { limit_bytes } => {
                write!(f, "a file has more than {limit_bytes} bytes")
            }
            Self::TooMuchForDisk { limit_bytes } => {
                write!(f, "the files have more than {limit_bytes} bytes together")
            }
            Self::Disk(_) => f.write_str("a file could not be kept"),
            Self::Busy => f.write_str("no thread is free to write files"),
        }
    }
}

impl std::error::Error for FormError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Body(error) => Some(error),
            Self::Multipart(error) => Some(error),
            Self::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BodyError> for FormError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl From<MultipartError> for FormError {
    fn from(error: MultipartError) -> Self {
        Self::Multipart(error)
    }
}

impl From<io::Error> for FormError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// The status that says what was wrong.
impl IntoResponse for FormError {
    fn into_response(self) -> Response {
        match self {
            Self::Body(error) => error.into_response(),
            Self::Busy => Response::new(self.status()).header("Retry-After", "1"),
            other => Response::new(other.status()),
        }
    }
}
