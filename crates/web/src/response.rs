//! A response as handlers build it.

mod appender;
mod content;
mod events;
mod file;
mod foreign;
mod into_response;
mod later;
mod prefix;
#[cfg(test)]
mod tests;
mod upgrade;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::fields::{FieldError, FieldName, FieldsRef, HeaderId, check_field};
use gustnado_http::response_writer::{Opening, Persist, ResponseWriter, WrittenHead};
use gustnado_http::status::Status;
use gustnado_tls::ResponsePace;

pub use appender::{AppendError, Appender};
pub use content::{Content, Failed, Streamed, Trailers};
pub use events::Event;
pub use foreign::ForeignHead;
#[cfg(feature = "tower")]
pub(crate) use foreign::has_member;
#[doc(inline)]
pub use gustnado_observe::exchange::{OnSent, Sent};
pub use into_response::IntoResponse;
pub use later::{Replier, Reply, reply_later};
pub use prefix::ResponsePrefix;
pub use upgrade::{OnUpgrade, Upgrade};

/// A frequent content type. A response with one begins with bytes that are prepared once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentTypeId {
    Text,
    Html,
    Json,
    Octets,
    Events,
}

impl ContentTypeId {
    pub const COUNT: usize = 5;
    pub const ALL: [Self; Self::COUNT] =
        [Self::Text, Self::Html, Self::Json, Self::Octets, Self::Events];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Octets => "application/octet-stream",
            Self::Events => "text/event-stream",
        }
    }

    /// Returns the frequent type of this name, if it is one.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// A response: status, header fields, content.
///
/// `Server`, `Date`, `Connection`, `Content-Length` and `Transfer-Encoding` are set by the server.
/// A status of 400 and above without content gets the page for that status.
pub struct Response {
    #[doc(hidden)]
    pub status: Status,
    /// The content type, if it is a frequent one; others are among the fields.
    #[doc(hidden)]
    pub content_type: Option<ContentTypeId>,
    #[doc(hidden)]
    pub fields: FieldsRef,
    #[doc(hidden)]
    pub content: Content,
    /// State that few responses need.
    #[doc(hidden)]
    pub extras: Option<Box<ResponseExtras>>,
}

/// Content up to this size is copied behind its head and sent with it.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// State that few responses need; boxed to keep [`Response`] small.
#[derive(Default)]
pub struct ResponseExtras {
    pub on_sent: Vec<OnSent>,
    pub trailers: Option<Trailers>,
    pub close: bool,
    /// The status line, if it is not the usual one.
    pub status_line: Option<StatusLine>,
    /// The upgrade that it offers.
    pub upgrade: Option<Box<Upgrade>>,
    /// The pace of its route.
    pub pace: Option<Arc<ResponsePace>>,
    pub replaced: Replaced,
    /// The text of the status page in place of its standard sentence.
    pub hint: Option<&'static str>,
}

/// A status line set by the application.
#[derive(Debug, PartialEq, Eq)]
pub struct StatusLine {
    pub number: u16,
    /// All of it, with its line end.
    pub text: String,
}

/// Fields of the server that a response replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    pub date: bool,
    pub server: bool,
}

impl Replaced {
    /// Begins a response without them.
    pub fn start<'a>(
        self,
        out: &'a mut Vec<u8>,
        status: Status,
        usual: &Opening,
        persist: Persist,
    ) -> ResponseWriter<'a> {
        if self.date || self.server {
            return ResponseWriter::start(out, status, &self.without(usual), persist);
        }
        ResponseWriter::start(out, status, usual, persist)
    }

    #[cold]
    fn without(self, usual: &Opening) -> Opening {
        let is = |line: &[u8], name: &[u8]| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        };
        let lines = usual.lines().split_inclusive(|byte| *byte == b'\n');
        let kept = lines.filter(|line| {
            !(self.date && is(line, b"date:") || self.server && is(line, b"server:"))
        });
        Opening::new(&kept.collect::<Vec<_>>().concat())
    }
}

impl Response {
    /// Creates a response without content.
    #[inline]
    pub fn new(status: Status) -> Self {
        Self {
            status,
            content_type: None,
            fields: FieldsRef::new(),
            content: Content::Nothing,
            extras: None,
        }
    }

    #[inline]
    fn of_kind(kind: ContentTypeId, content: Content) -> Self {
        Self { content_type: Some(kind), content, ..Self::new(Status::OK) }
    }

    /// Creates a response with plain text in UTF-8.
    #[inline]
    pub fn text(text: impl Into<Bytes>) -> Self {
        Self::of_kind(ContentTypeId::Text, Content::Bytes(text.into()))
    }

    /// Creates a response with HTML in UTF-8.
    pub fn html(text: impl Into<Bytes>) -> Self {
        Self::of_kind(ContentTypeId::Html, Content::Bytes(text.into()))
    }

    /// Creates a response with the text of a JSON value, `application/json` (RFC 8259).
    pub fn json_text(text: impl Into<Bytes>) -> Self {
        Self::of_kind(ContentTypeId::Json, Content::Bytes(text.into()))
    }

    /// Creates a response with bytes, `application/octet-stream`. Shared [`Bytes`] are not copied.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::of_kind(ContentTypeId::Octets, Content::Bytes(bytes.into()))
    }

    /// Creates a response with a file, sent by the kernel, with its content type, entity tag
    /// (RFC 9110 §8.8.3), conditions (§13) and ranges (§14).
    ///
    /// `path` is used as it is, so it must not be made of client input; a route to a folder does
    /// that safely. A missing file gives 404.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { content: Content::Path(path.into()), ..Self::new(Status::OK) }
    }

    /// Creates a response with a stream of unknown length: chunked in HTTP/1.1 (RFC 9112 §7.1),
    /// up to the end of the connection in HTTP/1.0. An error in the stream cuts the connection,
    /// which tells the client.
    pub fn stream<S, B, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
    {
        Self::of_kind(ContentTypeId::Octets, Content::Stream(Streamed::new(stream, None)))
    }

    /// Creates a response with a stream of known length. If it has fewer or more bytes, the
    /// connection is cut.
    pub fn stream_of_length<S, B, E>(stream: S, length: u64) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: Into<Bytes>,
    {
        Self::of_kind(ContentTypeId::Octets, Content::Stream(Streamed::new(stream, Some(length))))
    }

    /// Creates a response that another task or thread writes over time, and its writer.
    ///
    /// The response ends when the writer and all its clones are dropped.
    ///
    /// - `pieces_max`: the most pieces that wait to be sent, at least 1.
    pub fn append(pieces_max: usize) -> (Appender, Self) {
        let (appender, pieces) = Appender::new(pieces_max);
        let content = Content::Stream(Streamed::mapped(pieces, None, Some));
        (appender, Self::of_kind(ContentTypeId::Text, content))
    }

    /// Creates a response of server-sent events (WHATWG HTML §9.2), each sent as soon as it comes.
    pub fn events<S>(events: S) -> Self
    where
        S: Stream<Item = Event> + Send + 'static,
    {
        let lines = Streamed::mapped(events, None, |event| Some(event.into_bytes()));
        let response = Self::of_kind(ContentTypeId::Events, Content::Stream(lines));
        response.header("Cache-Control", "no-cache")
    }

    /// Creates a redirect (RFC 9110 §15.4), with 301, 302, 303, 307 or 308.
    ///
    /// # Panics
    /// If `location` could split the response. The server contains the panic: the client gets 500.
    pub fn redirect(status: Status, location: &str) -> Self {
        debug_assert!(status.is_redirect(), "{status:?} is no redirect");
        Self::new(status).header("Location", location)
    }

    /// Sets the pace of its route.
    #[doc(hidden)]
    pub fn set_pace(&mut self, pace: Arc<ResponsePace>) {
        self.extras.get_or_insert_default().pace = Some(pace);
    }

    /// Sets the status (RFC 9110 §15).
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = status;
        if let Some(extras) = &mut self.extras {
            extras.status_line = None;
        }
        self
    }

    /// Sets the status by its number, also one that [`Status`] does not have; its class then
    /// decides how it is handled (RFC 9110 §15).
    ///
    /// - `code`: 200 to 999; lower ones are interim responses.
    /// - `reason`: the reason phrase; if empty, the standard one, if [`Status`] has the code.
    ///
    /// # Errors
    /// [`FieldError::Value`]: the code is out of range, or the phrase holds a control byte.
    pub fn code(mut self, code: u16, reason: &str) -> Result<Self, FieldError> {
        if !(200..=999).contains(&code) {
            return Err(FieldError::Value);
        }
        let known = Status::from_code(code);
        if let Some(known) = known.filter(|known| reason.is_empty() || known.reason() == reason) {
            return Ok(self.status(known));
        }
        check_field("Status", reason.as_bytes())?;
        self.status = known.unwrap_or(match code / 100 {
            2 => Status::OK,
            3 => Status::MULTIPLE_CHOICES,
            4 => Status::BAD_REQUEST,
            _ => Status::INTERNAL_SERVER_ERROR,
        });
        let text = format!("HTTP/1.1 {code} {reason}\r\n");
        self.extras().status_line = Some(StatusLine { number: code, text });
        Ok(self)
    }

    /// Adds a header field.
    ///
    /// # Panics
    /// If the field could split the response, or belongs to the server: see
    /// [`Response::try_header`]. The server contains the panic: the client gets 500.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Err(error) = self.try_header(name, value) {
            panic!("the header field {name:?} cannot be sent: {error}");
        }
        self
    }

    /// Adds a header field. A content type replaces the earlier one.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is added: the name is not a token, the value has a control byte,
    /// or the field belongs to the server.
    pub fn try_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), FieldError> {
        let name = FieldName::from(name);
        if name.id() != Some(HeaderId::ContentType) {
            return self.fields.to_mut().add(name, value);
        }
        self.fields.to_mut().set(name, value)?;
        self.content_type = None;
        Ok(())
    }

    /// Removes all header fields of a name.
    pub fn remove_header(&mut self, name: &str) {
        let name = FieldName::from(name);
        if name.id() == Some(HeaderId::ContentType) {
            self.content_type = None;
        }
        self.fields.to_mut().remove(name);
    }

    /// Returns the first value of a header field that was added; the case of the name does not
    /// matter.
    pub fn header_value(&self, name: &str) -> Option<&[u8]> {
        let name = FieldName::from(name);
        match self.content_type {
            Some(kind) if name.id() == Some(HeaderId::ContentType) => Some(kind.name().as_bytes()),
            _ => self.fields.get(name),
        }
    }

    /// Sets the content type.
    ///
    /// # Panics
    /// As [`Response::header`].
    #[must_use]
    pub fn content_type(self, kind: &str) -> Self {
        self.header("Content-Type", kind)
    }

    /// Replaces the content, and keeps status and fields.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.content = Content::Bytes(bytes.into());
        self
    }

    /// Returns the status.
    pub fn status_code(&self) -> Status {
        self.status
    }

    /// Returns the number of the status, which may be one that [`Status`] does not have.
    pub fn status_number(&self) -> u16 {
        let line = self.extras.as_ref().and_then(|extras| extras.status_line.as_ref());
        line.map_or_else(|| self.status.code(), |line| line.number)
    }

    /// Returns the content, if it is bytes in memory.
    pub fn content(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Sends trailer fields behind the content of a stream (RFC 9110 §6.5), to a client of HTTP/1.1
    /// or HTTP/2.
    ///
    /// - `make`: called after the content. Fields that could split the response are dropped.
    #[must_use]
    pub fn trailers<F>(mut self, make: F) -> Self
    where
        F: FnOnce() -> Vec<(String, String)> + Send + 'static,
    {
        self.extras().trailers = Some(Box::new(make));
        self
    }

    /// Calls `call` when the last byte was sent, or the connection is lost.
    #[must_use]
    pub fn on_sent(mut self, call: impl FnOnce(Sent) + Send + 'static) -> Self {
        self.extras().on_sent.push(Box::new(call));
        self
    }

    /// Closes the connection after this response (RFC 9112 §9.6).
    #[must_use]
    pub fn close(mut self) -> Self {
        self.extras().close = true;
        self
    }

    /// Sends this response separately, not in one send with other responses.
    #[doc(hidden)]
    pub fn on_its_own(mut self) -> Self {
        self.extras();
        self
    }

    fn extras(&mut self) -> &mut ResponseExtras {
        self.extras.get_or_insert_default()
    }

    /// Returns whether the whole response can be written in one step: a 200 with short content in
    /// memory, of a frequent type, without extras.
    #[inline]
    #[doc(hidden)]
    pub fn is_ready(&self) -> bool {
        let is_short =
            matches!(&self.content, Content::Bytes(all) if all.len() <= INLINE_BYTES_MAX);
        is_short
            && self.content_type.is_some()
            && self.extras.is_none()
            && self.status == Status::OK
    }

    /// Writes the whole response. To be called only if it [is ready](Response::is_ready).
    #[inline]
    #[doc(hidden)]
    pub fn write_ready(
        self,
        common: &ResponsePrefix,
        persist: Persist,
        head_only: bool,
        out: &mut Vec<u8>,
    ) -> WrittenHead {
        let (Content::Bytes(content), Some(kind)) = (&self.content, self.content_type) else {
            unreachable!("checked by `is_ready`");
        };
        let sent: &[u8] = if head_only { &[] } else { content };
        let prefix = &common.by_type[kind as usize];
        let before = out.len();
        ResponseWriter::sized(out, prefix, persist, &self.fields, content.len() as u64, sent);
        let written = WrittenHead::new(Status::OK, out.len() - before, sent.len());
        // It is `None`: forgetting it saves the check of a drop.
        std::mem::forget(self.extras);
        written
    }

    /// Returns whether its content is the status page.
    #[doc(hidden)]
    pub fn wants_page(&self) -> bool {
        matches!(self.content, Content::Nothing) && self.status.is_error()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {}", self.status, self.fields, self.content)
    }
}
