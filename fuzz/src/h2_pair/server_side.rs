//! The server, which responds as the script says and checks what comes.

use gustnado_http::fields::{FieldName, Fields};
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::h2::{
    ErrorCode, GlitchLimits, H2Connection, H2Error, H2Event, H2Limits, H2Scratch, Step, StreamId,
};
use gustnado_http::limits::Limits;

use super::Script;
use super::client_side::lines;
use super::exchange::{Exchange, Exchanges, Message, body, fields};

pub struct ServerSide {
    pub core: H2Connection<()>,
    pub out: Vec<u8>,
    unread: Vec<u8>,
    scratch: H2Scratch,
    h2: H2Limits,
    limits: Limits,
    /// Requests that are to be answered within the turn, and are not opened.
    at_once: Vec<StreamId>,
    untaken: Vec<(StreamId, usize)>,
    takes_at_once: bool,
    /// What the last GOAWAY says.
    pub last_served: Option<StreamId>,
}

const STATUSES: [u16; 6] = [200, 200, 404, 500, 204, 304];

/// How much is sent at once in the end.
const REST_BYTES: usize = 50_000;

impl ServerSide {
    pub const HEAD_BYTES_MAX: usize = 20_000;
    /// What the core gives a connection.
    pub const CONNECTION_WINDOW: u32 = 1 << 20;

    pub fn new(window_bytes: u32, streams_max: u32) -> Self {
        let h2 = H2Limits {
            streams_max,
            window_bytes,
            window_bytes_max: 300_000,
            // Both are honest, and talk much.
            glitches: GlitchLimits { burst: 0, per_second: 1 },
        };
        let limits = Limits { head_bytes_max: Self::HEAD_BYTES_MAX, ..Limits::default() };
        let (mut scratch, mut out) = (H2Scratch::default(), Vec::new());
        let mut step =
            Step { scratch: &mut scratch, h2: &h2, limits: &limits, now_ms: 0, out: &mut out };
        let core = H2Connection::new(&mut step);
        Self {
            core,
            out,
            unread: Vec::new(),
            scratch,
            h2,
            limits,
            at_once: Vec::new(),
            untaken: Vec::new(),
            takes_at_once: true,
            last_served: None,
        }
    }

    /// One of the open streams that meet a condition.
    fn stream(
        &mut self,
        all: &mut Exchanges,
        choice: usize,
        is_wanted: impl Fn(&Exchange) -> bool,
    ) -> Option<StreamId> {
        let ids: Vec<_> = self.core.streams().iter().map(|stream| stream.id).collect();
        let ids: Vec<_> = ids.into_iter().filter(|id| is_wanted(all.of(*id))).collect();
        (!ids.is_empty()).then(|| ids[choice % ids.len()])
    }

    pub fn respond(&mut self, all: &mut Exchanges, script: &mut Script<'_>) {
        let choice = script.byte();
        let Some(id) = self.stream(all, choice, |exchange| exchange.status == 0) else { return };
        let (kind, head) = (script.byte(), fields(script));
        if kind & 128 != 0 {
            all.of(id).interim_sent += 1;
            self.core.write_head(id, false, &mut self.out, |encoder, out| {
                encoder.status(103, out);
                encoder.field("link".into(), b"</style.css>; rel=preload", out);
            });
            return;
        }
        let length = (kind & 64 != 0).then(|| script.size());
        self.respond_on(all, id, (STATUSES[kind % 6], kind & 32 != 0, length), head);
    }

    /// Writes a head.
    ///
    /// - `of`: the status; whether it ends the response; the length that is announced.
    fn respond_on(
        &mut self,
        all: &mut Exchanges,
        id: StreamId,
        (status, is_end, length): (u16, bool, Option<usize>),
        mut head: super::exchange::Lines,
    ) {
        let exchange = all.of(id);
        let has_none = exchange.method == "HEAD" || status == 204 || status == 304;
        let is_end = is_end || has_none;
        let length = length.filter(|_| !is_end);
        if let Some(length) = length {
            head.push(("content-length".to_owned(), length.to_string().into_bytes()));
        }
        self.core.write_head(id, is_end, &mut self.out, |encoder, out| {
            encoder.status(status, out);
            encode(&head, encoder, out);
        });
        exchange.status = status;
        exchange.response =
            Message { fields: head, length, has_ended: is_end, ..Message::default() };
        if is_end {
            self.core.finish(id, &mut self.out);
        }
    }

    pub fn send_body(&mut self, all: &mut Exchanges, (choice, bytes): (usize, usize)) {
        let Some(id) = self.stream(all, choice, |exchange| exchange.status > 0) else { return };
        self.send_on(all, id, bytes, choice & 128 != 0);
    }

    fn send_on(&mut self, all: &mut Exchanges, id: StreamId, bytes: usize, wants_end: bool) {
        let response = &mut all.of(id).response;
        let room = self.core.room().min(self.core.frame_bytes_max());
        let window = self.core.stream(id).map_or(0, |stream| stream.window());
        let wanted = response.left(bytes);
        let count = wanted.min(room).min(window);
        let is_end = match response.length {
            Some(length) => response.sent + count == length,
            None => wants_end && count == wanted,
        };
        if count == 0 && !is_end {
            return;
        }
        self.core.write_data_header(id, count, is_end, &mut self.out);
        self.out.extend_from_slice(&body(id, response.sent, count));
        response.sent += count;
        if is_end {
            response.has_ended = true;
            self.core.finish(id, &mut self.out);
        }
    }

    /// Ends a response, with trailers where nothing is left of its body.
    pub fn end(&mut self, all: &mut Exchanges, choice: usize) {
        let Some(id) = self.stream(all, choice, |exchange| exchange.status > 0) else { return };
        let response = &mut all.of(id).response;
        if choice & 128 == 0 || response.length.is_some_and(|length| response.sent < length) {
            return self.send_on(all, id, 0, true);
        }
        let trailers = vec![("x-sum".to_owned(), response.sent.to_string().into_bytes())];
        let mut checked = Fields::new();
        checked.add("x-sum", &trailers[0].1).expect("a field");
        self.core.write_trailers(id, &checked, &mut self.out);
        (response.trailers, response.has_ended) = (Some(trailers), true);
        self.core.finish(id, &mut self.out);
    }

    /// Ends a stream before its time.
    pub fn cancel(&mut self, all: &mut Exchanges, choice: usize) {
        let Some(id) = self.stream(all, choice, |_| true) else { return };
        all.of(id).is_cancelled_by_server = true;
        self.core.reset(id, ErrorCode::InternalError, &mut self.out);
    }

    /// Takes what came so far; from now on, at once or not.
    pub fn take(&mut self, at_once: bool, now_ms: u64) {
        self.takes_at_once = at_once;
        for (id, bytes) in std::mem::take(&mut self.untaken) {
            self.take_bytes(id, bytes, now_ms);
        }
    }

    fn take_bytes(&mut self, id: StreamId, bytes: usize, now_ms: u64) {
        let Self { core, scratch, h2, limits, out, .. } = self;
        // The windows of some streams grow.
        let window_max = if id % 4 == 1 { u32::MAX } else { 0 };
        core.take(id, bytes, window_max, &mut Step { scratch, h2, limits, now_ms, out });
    }

    /// Serves nothing that has not come.
    pub fn go_away(&mut self) {
        self.core.go_away(H2Error::new(ErrorCode::NoError, "the end"), &mut self.out);
        self.last_served.get_or_insert(self.core.last_stream());
    }

    /// Sends all that is left of each response.
    pub fn end_all(&mut self, all: &mut Exchanges) {
        let ids: Vec<_> = self.core.streams().iter().map(|stream| stream.id).collect();
        for id in ids {
            if all.of(id).status == 0 {
                self.respond_on(all, id, (200, false, Some(10)), Vec::new());
            } else {
                let has_length = all.of(id).response.length.is_some();
                self.send_on(all, id, if has_length { REST_BYTES } else { 0 }, true);
            }
        }
    }

    pub fn read(&mut self, piece: &[u8], all: &mut Exchanges, now_ms: u64) {
        self.unread.extend_from_slice(piece);
        let unread = std::mem::take(&mut self.unread);
        let mut used = 0;
        loop {
            let Self { core, scratch, h2, limits, out, .. } = self;
            let mut step = Step { scratch, h2, limits, now_ms, out };
            let next = core.next(&unread[used..], &mut step);
            let (more, event) = next.expect("the client keeps the rules");
            used += more;
            let Some(event) = event else { break };
            self.note(event, all, now_ms);
        }
        self.unread = unread[used..].to_vec();
        // Behind all that has come, as its windows are known then.
        for id in std::mem::take(&mut self.at_once) {
            self.respond_at_once(all, id);
        }
    }

    fn note(&mut self, event: H2Event<'_, ()>, all: &mut Exchanges, now_ms: u64) {
        match event {
            H2Event::Request { id, head, is_end } => {
                let exchange = all.of(id);
                let bytes = self.scratch.head_bytes();
                let view = head.on(bytes);
                assert!(!exchange.request.is_seen && !exchange.is_too_large, "{exchange:?}");
                assert_eq!(view.method_token(), exchange.method.as_bytes());
                assert_eq!(view.target(), exchange.path.as_bytes());
                let mut wanted = vec![("host".to_owned(), b"x.test".to_vec())];
                wanted.extend(exchange.request.fields.iter().cloned());
                assert_eq!(lines(view.fields()), wanted, "{id}");
                exchange.request.is_seen = true;
                if is_end {
                    exchange.request.note_end();
                }
                if is_end && exchange.path == "/1" {
                    self.at_once.push(id);
                } else {
                    self.core.open(id, (Some((&head, bytes)), is_end), ());
                }
            }
            H2Event::Refused { id, status, is_end, .. } => {
                let exchange = all.of(id);
                assert!(exchange.is_too_large, "{status:?} {exchange:?}");
                exchange.request.is_seen = true;
                if !is_end {
                    self.core.open(id, (None, is_end), ());
                }
                self.respond_on(all, id, (status.code(), true, None), Vec::new());
            }
            H2Event::Data { id, bytes, is_end } => {
                let request = &mut all.of(id).request;
                request.note_came(id, bytes, is_end);
                if self.takes_at_once {
                    self.take_bytes(id, bytes.len(), now_ms);
                } else {
                    self.untaken.push((id, bytes.len()));
                }
            }
            H2Event::Trailers { id } => all.of(id).request.note_came(id, b"", true),
            H2Event::Reset { stream, code, by_peer: true } => {
                assert!(code == ErrorCode::Cancel || stream.is_none(), "{code:?}");
                if let Some(stream) = stream {
                    assert!(all.of(stream.id).is_cancelled_by_client);
                }
            }
            H2Event::Reset { stream, code, .. } => {
                assert!(code == ErrorCode::RefusedStream && stream.is_none(), "{code:?}");
                let exchange = all.of(self.core.last_stream());
                assert!(!exchange.request.is_seen);
                exchange.is_refused = true;
            }
            H2Event::Window => {}
        }
    }

    /// Responds as inline handlers do: the stream is never opened.
    fn respond_at_once(&mut self, all: &mut Exchanges, id: StreamId) {
        let content = body(id, 0, 300.min(self.core.first_room()));
        let exchange = all.of(id);
        let is_end = exchange.method == "HEAD";
        self.core.write_head(id, is_end, &mut self.out, |encoder, out| encoder.status(200, out));
        let sent = if is_end { 0 } else { content.len() };
        if !is_end {
            self.core.write_whole(id, &content, &mut self.out);
        }
        exchange.status = 200;
        exchange.response = Message { sent, has_ended: true, ..Message::default() };
    }
}

fn encode(head: &super::exchange::Lines, encoder: &mut Encoder, out: &mut Vec<u8>) {
    for (name, value) in head {
        encoder.field(FieldName::from(name.as_str()), value, out);
    }
}
