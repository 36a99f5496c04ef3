//! Status codes and the status lines made from them (RFC 9110 §15, RFC 9112 §4).

use std::fmt;

/// A status code that this server can send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

/// Declares each status once: constant, code, reason phrase.
macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal)+) => {
        impl Status {
            $(
                #[doc = concat!($code, " ", $reason)]
                pub const $name: Self = Self($code);
            )+

            /// Every status, by code.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the reason phrase, for people; programs read only the code.
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)+
                    _ => "",
                }
            }

            /// Returns the whole status line, line end included. Every answer says HTTP/1.1 (RFC
            /// 9110 §2.5), whichever version was asked with.
            #[inline]
            pub const fn line(self) -> &'static [u8] {
                match self.0 {
                    $($code => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes(),)+
                    _ => b"HTTP/1.1 500 Internal Server Error\r\n", // no such value can be made
                }
            }
        }
    };
}

statuses! {
    CONTINUE 100 "Continue"
    SWITCHING_PROTOCOLS 101 "Switching Protocols"
    EARLY_HINTS 103 "Early Hints"
    OK 200 "OK"
    CREATED 201 "Created"
    ACCEPTED 202 "Accepted"
    NO_CONTENT 204 "No Content"
    RESET_CONTENT 205 "Reset Content"
    PARTIAL_CONTENT 206 "Partial Content"
    MULTIPLE_CHOICES 300 "Multiple Choices"
    MOVED_PERMANENTLY 301 "Moved Permanently"
    FOUND 302 "Found"
    SEE_OTHER 303 "See Other"
    NOT_MODIFIED 304 "Not Modified"
    TEMPORARY_REDIRECT 307 "Temporary Redirect"
    PERMANENT_REDIRECT 308 "Permanent Redirect"
    BAD_REQUEST 400 "Bad Request"
    UNAUTHORIZED 401 "Unauthorized"
    FORBIDDEN 403 "Forbidden"
    NOT_FOUND 404 "Not Found"
    METHOD_NOT_ALLOWED 405 "Method Not Allowed"
    NOT_ACCEPTABLE 406 "Not Acceptable"
    REQUEST_TIMEOUT 408 "Request Timeout"
    CONFLICT 409 "Conflict"
    GONE 410 "Gone"
    LENGTH_REQUIRED 411 "Length Required"
    PRECONDITION_FAILED 412 "Precondition Failed"
    CONTENT_TOO_LARGE 413 "Content Too Large"
    URI_TOO_LONG 414 "URI Too Long"
    UNSUPPORTED_MEDIA_TYPE 415 "Unsupported Media Type"
    RANGE_NOT_SATISFIABLE 416 "Range Not Satisfiable"
    EXPECTATION_FAILED 417 "Expectation Failed"
    MISDIRECTED_REQUEST 421 "Misdirected Request"
    UNPROCESSABLE_CONTENT 422 "Unprocessable Content"
    TOO_EARLY 425 "Too Early"
    UPGRADE_REQUIRED 426 "Upgrade Required"
    PRECONDITION_REQUIRED 428 "Precondition Required"
    TOO_MANY_REQUESTS 429 "Too Many Requests"
    REQUEST_HEADER_FIELDS_TOO_LARGE 431 "Request Header Fields Too Large"
    INTERNAL_SERVER_ERROR 500 "Internal Server Error"
    NOT_IMPLEMENTED 501 "Not Implemented"
    BAD_GATEWAY 502 "Bad Gateway"
    SERVICE_UNAVAILABLE 503 "Service Unavailable"
    GATEWAY_TIMEOUT 504 "Gateway Timeout"
    HTTP_VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported"
    INSUFFICIENT_STORAGE 507 "Insufficient Storage"
}

impl Status {
    /// Returns the status with this code, if it is one of [`Status::ALL`].
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.binary_search(&Self(code)).ok().map(|at| Self::ALL[at])
    }

    /// Returns the three-digit code.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// Returns whether it says that something is wrong: 400 and above.
    pub const fn is_error(self) -> bool {
        self.0 >= 400
    }

    /// Returns whether it leads to another address (RFC 9110 §15.4): 301, 302, 303, 307 and 308.
    pub const fn is_redirect(self) -> bool {
        matches!(self.0, 301 | 302 | 303 | 307 | 308)
    }

    /// Returns whether a response with it may have a body: not 1xx, 204 and 304 (RFC 9110 §6.4.1).
    /// The method can forbid one too: a response to HEAD never has a body.
    pub const fn may_have_body(self) -> bool {
        self.0 >= 200 && self.0 != 204 && self.0 != 304
    }

    /// Returns whether another response follows it (RFC 9110 §15.2), but for 101.
    pub const fn is_interim(self) -> bool {
        self.0 < 200
    }

    /// Returns whether a response with it may contain `Content-Length`: not 1xx and 204 (RFC 9110
    /// §8.6).
    pub const fn may_have_length(self) -> bool {
        self.0 >= 200 && self.0 != 204
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.reason())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn every_status_has_its_line_and_is_found_by_its_code() {
        assert!(Status::ALL.is_sorted());
        for status in Status::ALL {
            let line = format!("HTTP/1.1 {status}\r\n");
            assert_eq!(status.line(), line.as_bytes());
            assert_eq!(Status::from_code(status.code()), Some(*status));
        }
        assert_eq!(Status::from_code(299), None);
    }

    #[test]
    fn bodies_and_lengths_are_barred_where_the_rfc_bars_them() {
        let barred = |may: fn(Status) -> bool| -> Vec<u16> {
            Status::ALL.iter().filter(|status| !may(**status)).map(|s| s.code()).collect()
        };
        assert_eq!(barred(Status::may_have_body), [100, 101, 103, 204, 304]);
        assert_eq!(barred(Status::may_have_length), [100, 101, 103, 204]);
    }
}
