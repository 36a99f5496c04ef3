//! What can be wrong with a request head.

use std::error::Error;
use std::fmt;

use crate::status::Status;

/// Why a request head was refused. The connection cannot go on after any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadError {
    /// The request line does not start with a token and one space.
    MethodSyntax,
    /// A token longer than any method that exists.
    MethodUnknown,
    /// The target is in none of the four forms, or in one its method does not allow.
    Target,
    /// The target is longer than the limit.
    TargetTooLong {
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// What follows the target is not one space, a version and a line end.
    VersionSyntax,
    /// A major version other than 1.
    VersionUnknown,
    /// A field line that does not start with a token and a colon.
    FieldName,
    /// A control byte in a field value.
    FieldValue,
    /// A carriage return alone, or a line feed alone.
    LineEnd,
    /// More field lines than the limit.
    TooManyFields {
        /// The limit that was passed.
        limit: usize,
    },
    /// No head can end within the limit any more.
    TooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// HTTP/1.1 without Host.
    HostMissing,
    /// Host more than once.
    HostRepeated,
    /// Host is not a host with an optional port.
    HostSyntax,
    /// Content-Length is not one number of at most 64 bits.
    LengthSyntax,
    /// Content-Length more than once, be it the same one.
    LengthRepeated,
    /// Content-Length together with Transfer-Encoding.
    LengthWithCoding,
    /// Transfer-Encoding in HTTP/1.0.
    CodingInOldVersion,
    /// Transfer-Encoding is malformed, says chunked twice, or its last coding is not chunked.
    CodingSyntax,
    /// A transfer coding before chunked that we do not know.
    CodingUnknown,
    /// An expectation other than 100-continue.
    Expectation,
}

impl HeadError {
    /// Returns the status that tells the client.
    pub const fn status(&self) -> Status {
        match self {
            Self::MethodUnknown | Self::CodingUnknown => Status::NOT_IMPLEMENTED,
            Self::TargetTooLong { .. } => Status::URI_TOO_LONG,
            Self::VersionUnknown => Status::HTTP_VERSION_NOT_SUPPORTED,
            Self::TooManyFields { .. } | Self::TooLarge { .. } => {
                Status::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Expectation => Status::EXPECTATION_FAILED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns the label under which it is counted.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MethodSyntax => "method_syntax",
            Self::MethodUnknown => "method_unknown",
            Self::Target => "target",
            Self::TargetTooLong { .. } => "target_too_long",
            Self::VersionSyntax => "version_syntax",
            Self::VersionUnknown => "version_unknown",
            Self::FieldName => "field_name",
            Self::FieldValue => "field_value",
            Self::LineEnd => "line_end",
            Self::TooManyFields { .. } => "too_many_fields",
            Self::TooLarge { .. } => "head_too_large",
            Self::HostMissing => "host_missing",
            Self::HostRepeated => "host_repeated",
            Self::HostSyntax => "host_syntax",
            Self::LengthSyntax => "length_syntax",
            Self::LengthRepeated => "length_repeated",
            Self::LengthWithCoding => "length_with_coding",
            Self::CodingInOldVersion => "coding_in_old_version",
            Self::CodingSyntax => "coding_syntax",
            Self::CodingUnknown => "coding_unknown",
            Self::Expectation => "expectation",
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::MethodSyntax => "the request line must start with a method and one space",
            Self::MethodUnknown => "the method is longer than any that exists",
            Self::Target => "the request target is malformed or not allowed with this method",
            Self::TargetTooLong { limit_bytes } => {
                return write!(f, "the request target is longer than {limit_bytes} bytes");
            }
            Self::VersionSyntax => "the request line must end with a version",
            Self::VersionUnknown => "the version is not one of HTTP/1",
            Self::FieldName => "a field line must start with a name and a colon",
            Self::FieldValue => "a field value holds a control byte",
            Self::LineEnd => "a line must end with carriage return and line feed",
            Self::TooManyFields { limit } => return write!(f, "more than {limit} fields"),
            Self::TooLarge { limit_bytes } => {
                return write!(f, "the request head is longer than {limit_bytes} bytes");
            }
            Self::HostMissing => "the host field is missing",
            Self::HostRepeated => "the host field is repeated",
            Self::HostSyntax => "the host field is malformed",
            Self::LengthSyntax => "the content length is malformed",
            Self::LengthRepeated => "the content length is repeated",
            Self::LengthWithCoding => "both a content length and a transfer coding are given",
            Self::CodingInOldVersion => "a transfer coding is given in HTTP/1.0",
            Self::CodingSyntax => "the last transfer coding must be chunked, once",
            Self::CodingUnknown => "a transfer coding is not one this server knows",
            Self::Expectation => "the expectation is not 100-continue",
        };
        f.write_str(text)
    }
}

impl Error for HeadError {}
