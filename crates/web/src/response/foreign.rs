//! Responses of other frameworks, through tower, WSGI or ASGI.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::fields::{FieldError, FieldName, HeaderId, check_field};
use gustnado_http::status::Status;

use super::{Content, ContentTypeId, Response, Streamed};
use gustnado_files::{OpenFile, Segment};

/// The head of a response of another framework, with any status. Fields that the server sets itself
/// are interpreted, not sent twice.
///
/// | field | becomes |
/// | --- | --- |
/// | `Content-Length` | [`ForeignHead::length`]; the bytes that are sent are counted as well |
/// | `Connection` | [`Response::close`], if it lists `close` |
/// | `Date`, `Server` | sent in place of the server's own |
/// | `Transfer-Encoding`, `Keep-Alive`, `Proxy-Connection` | nothing |
/// | `Upgrade` | nothing, except with 426 (RFC 9110 §15.5.22) |
#[derive(Debug)]
pub struct ForeignHead {
    response: Response,
    code: u16,
    length: Option<u64>,
}

impl ForeignHead {
    /// - `code`: 200 to 999; lower ones are interim responses.
    /// - `reason`: as for [`Response::code`].
    ///
    /// # Errors
    /// [`FieldError::Value`]: the code is out of range, or the phrase holds a control byte.
    pub fn new(code: u16, reason: &str) -> Result<Self, FieldError> {
        let response = Response::new(Status::OK).code(code, reason)?;
        Ok(Self { response, code, length: None })
    }

    /// Adds a field.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is added: the name is not a token, or the value has a control
    /// byte.
    pub fn field(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        let name = FieldName::from(name);
        if !self.take_own(name, value) {
            check_field(name, value)?;
            self.add(name, value);
        }
        Ok(())
    }

    /// Adds a field that has no control bytes.
    #[cfg(feature = "tower")]
    #[doc(hidden)]
    pub fn checked_field(&mut self, name: &str, value: &[u8]) {
        let name = FieldName::from(name);
        if !self.take_own(name, value) {
            self.add(name, value);
        }
    }

    /// Returns the length of the content according to the fields.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns whether the status allows content, whatever the method: 204 and 304 do not.
    pub fn may_have_content(&self) -> bool {
        self.response.status.may_have_body()
    }

    /// Returns the response with this content. An empty content is not replaced by a page.
    pub fn bytes(self, content: impl Into<Bytes>) -> Response {
        self.with(Content::Bytes(content.into()))
    }

    /// Returns the response with streamed content: of the length in the fields, if any, as
    /// [`Response::stream_of_length`], else as [`Response::stream`].
    pub fn stream<S, B, E>(self, stream: S) -> Response
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
    {
        let length = self.length;
        self.with(Content::Stream(Streamed::new(stream, length)))
    }

    /// Returns the response with a part of a file, which the kernel sends. The framework applied
    /// conditions and ranges. A file that has become shorter cuts the connection.
    ///
    /// - `file`: open for reading; its position is not used.
    /// - `length`: bytes from `offset` on.
    pub fn file(self, file: Arc<File>, offset: u64, length: u64) -> Response {
        let file = Arc::new(OpenFile::new(file, None));
        let part = Segment::File { file, offset, len: length, cold: None };
        let segments = if length > 0 { VecDeque::from([part]) } else { VecDeque::new() };
        self.with(Content::Segments { segments, length })
    }

    /// Returns the response to HEAD: the length in the fields, without the content.
    pub fn without_content(self) -> Response {
        let length = self.length;
        self.with(Content::Unsent(length))
    }

    #[doc(hidden)]
    pub fn with(mut self, content: Content) -> Response {
        self.response.content = content;
        self.response
    }

    /// Interprets a field that belongs to the server, or to the framework's own connection (RFC
    /// 9110 §7.6.1). Returns whether it was one.
    fn take_own(&mut self, name: FieldName<'_>, value: &[u8]) -> bool {
        match name.id() {
            Some(HeaderId::ContentLength) => {
                let digits = str::from_utf8(value).ok();
                self.length = digits.and_then(|digits| digits.trim().parse().ok());
            }
            Some(HeaderId::Connection) => {
                if has_member(value, b"close") {
                    self.response.extras().close = true;
                }
            }
            Some(HeaderId::Upgrade) if self.code == 426 => return false,
            Some(
                HeaderId::TransferEncoding
                | HeaderId::KeepAlive
                | HeaderId::ProxyConnection
                | HeaderId::Upgrade,
            ) => {}
            _ => return false,
        }
        true
    }

    /// Adds a field that does not belong to the server. Date and Server replace the server's.
    fn add(&mut self, name: FieldName<'_>, value: &[u8]) {
        match name.id() {
            Some(HeaderId::Date) => self.response.extras().replaced.date = true,
            Some(HeaderId::Server) => self.response.extras().replaced.server = true,
            Some(HeaderId::ContentType) if self.response.content_type.is_none() => {
                self.response.content_type = ContentTypeId::of(value);
                if self.response.content_type.is_some() {
                    return;
                }
            }
            _ => {}
        }
        self.response.fields.to_mut().add_trusted(name, value);
    }
}

/// Returns whether a list (RFC 9110 §5.6.1) has a member, whatever the case of its letters.
pub(crate) fn has_member(value: &[u8], member: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|known| known.trim_ascii().eq_ignore_ascii_case(member))
}

#[cfg(test)]
mod tests {
    use gustnado_http::fields::Fields;

    use super::super::Replaced;
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in all {
            fields.add(*name, value).expect("it is fit to be sent");
        }
        fields
    }

    fn head(code: u16, fields: &[(&str, &str)]) -> ForeignHead {
        let reason = if Status::from_code(code).is_some() { "" } else { "Odd" };
        let mut head = ForeignHead::new(code, reason).expect("it is no interim one");
        for (name, value) in fields {
            head.field(name, value.as_bytes()).expect("it is fit to be sent");
        }
        head
    }

    #[test]
    fn the_servers_own_fields_are_understood_and_not_sent() {
        let head = head(
            200,
            &[
                ("content-length", "12"),
                ("Transfer-Encoding", "chunked"),
                ("Upgrade", "h2c"),
                ("X-Own", "1"),
                ("Connection", "keep-alive, Close"),
            ],
        );
        assert_eq!(head.length(), Some(12));
        let response = head.bytes("x");
        assert_eq!(*response.fields, fields(&[("X-Own", "1")]));
        assert!(response.extras.is_some_and(|extras| extras.close));
    }

    #[test]
    fn a_date_and_a_server_of_its_own_are_kept() {
        let response = head(200, &[("date", "then"), ("SERVER", "other")]).bytes("x");
        assert_eq!(*response.fields, fields(&[("date", "then"), ("SERVER", "other")]));
        let replaced = response.extras.map(|extras| extras.replaced);
        assert_eq!(replaced, Some(Replaced { date: true, server: true }));
    }

    #[test]
    fn an_upgrade_is_named_where_one_is_asked_for() {
        let response = head(426, &[("Upgrade", "websocket")]).bytes("");
        assert_eq!(*response.fields, fields(&[("Upgrade", "websocket")]));
    }

    #[test]
    fn statuses_of_others_have_a_line_of_their_own() {
        let response = head(299, &[]).bytes("");
        assert_eq!(response.status, Status::OK);
        let line = response.extras.and_then(|extras| extras.status_line);
        assert_eq!(line.map(|line| line.text).as_deref(), Some("HTTP/1.1 299 Odd\r\n"));
        for code in [0, 100, 199, 1000] {
            assert_eq!(ForeignHead::new(code, "").err(), Some(FieldError::Value), "{code}");
        }
        assert_eq!(ForeignHead::new(299, "a\r\nb").err(), Some(FieldError::Value));
    }

    #[test]
    fn what_could_split_an_answer_is_refused() {
        let mut head = head(200, &[]);
        assert_eq!(head.field("a b", b""), Err(FieldError::Name));
        assert_eq!(head.field("a", b"1\r\nb: 2"), Err(FieldError::Value));
        assert!(head.bytes("").fields.is_empty());
    }
}
