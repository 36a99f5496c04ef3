//! Writes heads: of responses, interim ones, refusals; and content that is short.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use gustnado_app::app::App;
use gustnado_files::CachedFile;
use gustnado_http::fields::{Fields, FieldsRef, HeaderId};
use gustnado_http::h2::hpack::{Encoder, ResponseLines};
use gustnado_http::h2::{Stream, StreamId};
use gustnado_http::method::Method;
use gustnado_http::status::Status;
use gustnado_observe::exchange::SentCallbacks;
use gustnado_observe::stats::Added;
use gustnado_tasks::Connection;
use gustnado_web::prepared::prepared;
use gustnado_web::request_head::RequestHeadRef;
use gustnado_web::response::{
    Content, ContentTypeId, INLINE_BYTES_MAX, Replaced, Response, ResponseExtras, Streamed,
};
use gustnado_web::routes::RouteTable;

use crate::Http2Conn;
use crate::active::{Active, Rest};
use crate::respond::StreamReply;

/// A head, before it is encoded.
struct HeadToWrite<'h> {
    code: u16,
    content_type: Option<ContentTypeId>,
    fields: &'h Fields,
    length: Option<u64>,
    replaced: Replaced,
}

impl HeadToWrite<'_> {
    #[inline]
    fn encode(&self, lines: &ResponseLines, encoder: &mut Encoder, out: &mut Vec<u8>) {
        encoder.status(self.code, out);
        let Replaced { date, server } = self.replaced;
        if date || server {
            encoder.lines_but(lines, (date, server), out);
        } else {
            encoder.lines(lines, out);
        }
        if let Some(kind) = self.content_type {
            encoder.content_type(1 + kind as u8, kind.name().as_bytes(), out);
        }
        if !self.fields.is_empty() {
            encode_fields(self.fields, encoder, out);
        }
        if let Some(length) = self.length {
            encoder.content_length(length, out);
        }
    }
}

impl HeadToWrite<'_> {
    /// Returns the head as an access log reads it: in lines. What the response has of its own comes
    /// first, as the first line of a name is the one that is shown.
    #[cold]
    fn text(&self, lines: &ResponseLines) -> Vec<u8> {
        let mut text = format!("HTTP/2.0 {}\r\n", self.code).into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
        };
        if let Some(kind) = self.content_type {
            add(HeaderId::ContentType.name(), kind.name().as_bytes());
        }
        if let Some(length) = self.length {
            add(HeaderId::ContentLength.name(), length.to_string().as_bytes());
        }
        self.fields.iter().for_each(|(name, value)| add(name.as_str(), value));
        add(HeaderId::Date.name(), lines.date());
        lines.fixed().iter().for_each(|(name, value)| add(name.as_str(), value));
        text
    }
}

/// Encodes fields, but for those that speak of an HTTP/1 connection (RFC 9113 §8.2.2).
fn encode_fields(fields: &Fields, encoder: &mut Encoder, out: &mut Vec<u8>) {
    for (name, value) in fields.iter() {
        let is_of_connection = matches!(
            name.id(),
            Some(
                HeaderId::Connection
                    | HeaderId::KeepAlive
                    | HeaderId::ProxyConnection
                    | HeaderId::TransferEncoding
                    | HeaderId::Upgrade
            )
        );
        if !is_of_connection {
            encoder.field(name, value, out);
        }
    }
}

impl Http2Conn {
    /// Writes a handler's response, or opens the tunnel that it offers.
    pub(super) fn respond_to(
        &mut self,
        reply: &mut StreamReply<'_>,
        response: Response,
        asked: (&RequestHeadRef, &RouteTable),
        app: &App,
    ) {
        if reply.is_tunnel {
            self.respond_to_connect(reply, response, asked, app);
        } else {
            self.write_prepared(reply, response, asked, app);
        }
    }

    /// Writes a response that may lack its file or its page.
    pub(super) fn write_prepared(
        &mut self,
        reply: &mut StreamReply<'_>,
        response: Response,
        (parts, table): (&RequestHeadRef, &RouteTable),
        app: &App,
    ) {
        let now = self.socket.now();
        let prefix = app.response_prefix(now.unix_secs);
        let common = (prefix.opening.lines(), now);
        let response = prepared(response, parts, &table.pages, common, self.origin(app));
        let head_only = parts.view().method() == Method::Head;
        self.write_response(reply, response, head_only, app);
    }

    /// Writes a response: its head, its content if that is short, and opens its stream for the
    /// rest.
    pub(super) fn write_response(
        &mut self,
        reply: &mut StreamReply<'_>,
        response: Response,
        head_only: bool,
        app: &App,
    ) {
        if let Some(until_ms) = self.held_until(reply, &response) {
            return self.hold_response(reply, (response, head_only), until_ms);
        }
        let Response { status, content_type, fields, content, extras } = response;
        let extras = extras.map_or_else(ResponseExtras::default, |extras| *extras);
        let code = extras.status_line.as_ref().map_or(status.code(), |line| line.number);
        let head = HeadToWrite {
            code,
            content_type: content_type.filter(|_| status.may_have_body()),
            fields: &fields,
            length: content.length(status).filter(|_| status.may_have_length()),
            replaced: extras.replaced,
        };
        let has_content = !head_only && status.may_have_body();
        let pace = extras.pace.filter(|pace| pace.has_rate());
        let room = if pace.is_some() { 0 } else { self.room_of(reply) };
        let mut placed = match reply.has_pieces {
            _ if !has_content => Placed::Nothing,
            true => Placed::Later(Rest::Pieces),
            false => Placed::of(content, room),
        };
        if let Placed::Streamed(streamed) = placed {
            self.open(reply);
            if !self.stream_content(reply.id, streamed, extras.trailers, app) {
                return;
            }
            placed = Placed::Later(Rest::Pieces);
        }
        let lines = self.lines_of(reply, app);
        let Self { core, next, .. } = self;
        let out = &mut next.get_or_insert_with(Connection::outgoing).bytes;
        let before = out.len();
        let is_end = matches!(placed, Placed::Nothing);
        core.write_head(reply.id, is_end, out, |encoder, out| head.encode(&lines, encoder, out));
        let head_bytes = out.len() - before;
        let text = if wants_text(reply, app) { head.text(&lines) } else { Vec::new() };
        let short = placed.short();
        if !short.is_empty() {
            core.write_whole(reply.id, short, out);
        }
        app.count_response(code, (out.len() - before) as u64);
        let on_sent = SentCallbacks::boxed(extras.on_sent);
        let content_bytes = short.len() as u64;
        self.record(reply, (code, content_bytes), &text, placed.is_whole(), on_sent);
        if extras.close {
            self.announce_end();
        }
        match placed {
            Placed::Later(rest) => {
                self.open(reply);
                if let Some(stream) = self.core.stream(reply.id) {
                    stream.state.rest = Some(rest);
                }
            }
            _ => self.close_stream(reply),
        }
        if let Some(pace) = pace {
            self.begin_route(reply.id, pace, head_bytes);
        }
    }

    /// Writes 200 with a whole file from the cache.
    #[inline]
    pub(super) fn write_file(
        &mut self,
        reply: &mut StreamReply<'_>,
        file: &Arc<CachedFile>,
        head_only: bool,
        app: &App,
    ) {
        let body = file.body();
        let is_short = head_only || !body.is_empty() || file.size == 0;
        let is_short = is_short && !self.socket.is_paced();
        if !is_short || body.len() > self.room_of(reply) {
            let response = Response {
                fields: FieldsRef::Shared(Arc::clone(file.fields())),
                content: Content::File(Arc::clone(file)),
                ..Response::new(Status::OK)
            };
            return self.write_response(reply, response, head_only, app);
        }
        let lines = self.lines_of(reply, app);
        let text = if wants_text(reply, app) { text_of_file(file, &lines) } else { Vec::new() };
        let sent: &[u8] = if head_only { b"" } else { body };
        let Self { core, next, .. } = self;
        let out = &mut next.get_or_insert_with(Connection::outgoing).bytes;
        let before = out.len();
        core.write_head(reply.id, sent.is_empty(), out, |encoder, out| {
            encoder.status(200, out);
            encoder.lines(&lines, out);
            out.extend_from_slice(file.block());
        });
        if !sent.is_empty() {
            core.write_whole(reply.id, sent, out);
        }
        app.count_response(200, (out.len() - before) as u64);
        self.record(reply, (200, sent.len() as u64), &text, true, None);
        self.close_stream(reply);
    }

    /// Returns the fields that every response has.
    #[inline]
    fn lines_of(&mut self, reply: &StreamReply<'_>, app: &App) -> Rc<ResponseLines> {
        let unix_secs = self.socket.now().unix_secs;
        if app.has_hsts() && self.is_insecure(reply) {
            return app.plain_response_lines(unix_secs);
        }
        app.response_lines(unix_secs)
    }

    #[inline]
    fn is_insecure(&mut self, reply: &StreamReply<'_>) -> bool {
        let of_stream = |stream: &mut Stream<Box<Active>>| stream.state.is_insecure;
        reply.is_insecure || reply.is_open && self.core.stream(reply.id).is_some_and(of_stream)
    }

    /// Returns how much content may be sent at once.
    #[inline]
    fn room_of(&mut self, reply: &StreamReply<'_>) -> usize {
        let whole_max = self.sends.bytes_max().min(INLINE_BYTES_MAX);
        let room = self.core.first_room().min(whole_max);
        if !reply.is_open {
            return room;
        }
        let window = self.core.stream(reply.id).map_or(0, |stream| stream.window());
        self.core.room().min(window).min(whole_max)
    }

    /// Closes the stream of a response, all of which is written.
    #[inline]
    fn close_stream(&mut self, reply: &mut StreamReply<'_>) {
        if !reply.is_end {
            self.open(reply);
        }
        if reply.is_open {
            self.finish(reply.id);
        }
    }

    /// Opens the stream of a request, unless it is open.
    pub(super) fn open(&mut self, reply: &mut StreamReply<'_>) {
        if reply.is_open {
            return;
        }
        reply.is_open = true;
        let (read_ms, exchange) = (self.now_ms(), reply.exchange.take());
        let is_insecure = reply.is_insecure;
        let active = Active { exchange, read_ms, is_insecure, ..Active::default() };
        self.core.open(reply.id, (reply.asked, reply.is_end), Box::new(active));
    }

    /// Writes an interim response.
    pub(super) fn write_interim(&mut self, id: StreamId, status: Status, fields: &Fields) {
        let out = self.next.get_or_insert_with(Connection::outgoing);
        self.core.write_head(id, false, &mut out.bytes, |encoder, out| {
            encoder.status(status.code(), out);
            encode_fields(fields, encoder, out);
        });
    }

    /// Writes the refusal of a request.
    #[cold]
    pub(super) fn write_refusal(&mut self, reply: &mut StreamReply<'_>, status: Status, app: &App) {
        self.write_refusal_of(reply, (status, false), app);
    }

    /// The same for a request whose head is not known.
    ///
    /// - `is_head`: its method is HEAD.
    #[cold]
    pub(super) fn write_refusal_of(
        &mut self,
        reply: &mut StreamReply<'_>,
        (status, is_head): (Status, bool),
        app: &App,
    ) {
        let prefix = app.response_prefix(self.socket.now().unix_secs);
        let request = reply.asked.map(|(head, bytes)| head.on(bytes));
        let (response, fault) = app.refusal(status, request, prefix.opening.lines());
        app.count(&Added { fault, ..Added::default() });
        let head_only = is_head || request.is_some_and(|view| view.method() == Method::Head);
        self.write_response(reply, response, head_only, app);
    }
}

/// Returns whether a log shows fields of the response.
#[inline]
fn wants_text(reply: &StreamReply<'_>, app: &App) -> bool {
    let is_logged = reply.exchange.is_some() || reply.is_open;
    is_logged && app.access_log.as_ref().is_some_and(|log| log.wants_response())
}

/// Returns the head of a response with a file from the cache as an access log reads it.
#[cold]
fn text_of_file(file: &CachedFile, lines: &ResponseLines) -> Vec<u8> {
    let head = HeadToWrite {
        code: 200,
        content_type: None,
        fields: file.fields(),
        length: Some(file.size),
        replaced: Replaced::default(),
    };
    head.text(lines)
}

/// The content of a file, which stays where the cache has it.
struct CachedBody(Arc<CachedFile>);

impl AsRef<[u8]> for CachedBody {
    fn as_ref(&self) -> &[u8] {
        self.0.body()
    }
}

/// Where the content of a response is.
enum Placed {
    Nothing,
    /// It is sent with the head.
    Short(Bytes),
    ShortFile(Arc<CachedFile>),
    /// It is sent as windows allow.
    Later(Rest),
    /// It is made by a task.
    Streamed(Streamed),
}

impl Placed {
    /// - `room`: how much may be sent with the head.
    fn of(content: Content, room: usize) -> Self {
        match content {
            _ if content.length(Status::OK) == Some(0) => Self::Nothing,
            Content::Bytes(bytes) if bytes.len() <= room => Self::Short(bytes),
            Content::Bytes(bytes) => Self::Later(Rest::Bytes(bytes)),
            Content::File(file) => match file.segment() {
                Some(segment) => Self::Later(Rest::Segments(VecDeque::from([segment]))),
                None if file.body().len() <= room => Self::ShortFile(file),
                None => Self::Later(Rest::Bytes(Bytes::from_owner(CachedBody(file)))),
            },
            Content::Segments { segments, .. } => Self::Later(Rest::Segments(segments)),
            Content::Stream(streamed) => Self::Streamed(streamed),
            Content::Nothing | Content::Unsent(_) | Content::Path(_) => Self::Nothing,
        }
    }

    fn short(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::ShortFile(file) => file.body(),
            _ => &[],
        }
    }

    /// Returns whether nothing is left to be sent.
    fn is_whole(&self) -> bool {
        !matches!(self, Self::Later(_) | Self::Streamed(_))
    }
}
