//! The client, which sends what the script says and checks what comes.

use gustnado_http::fields::FieldName;
use gustnado_http::h2::{
    ErrorCode, GlitchLimits, H2Client, H2ClientEvent, H2ClientLimits, StreamId,
};

use super::exchange::{Lines, Message, body, fields};
use super::{Exchange, Exchanges, Script};

pub struct ClientSide {
    pub core: H2Client<()>,
    pub out: Vec<u8>,
    unread: Vec<u8>,
    /// Bytes that came and were not taken.
    untaken: Vec<(StreamId, usize)>,
    takes_at_once: bool,
    pub connection_window: u32,
    pub is_leaving: bool,
}

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "HEAD"];

/// How much is sent at once in the end.
const REST_BYTES: usize = 50_000;

impl ClientSide {
    pub fn new(window_bytes: u32, has_small_window: bool) -> Self {
        let connection_window = if has_small_window { 65_535 } else { 1 << 20 };
        let limits = H2ClientLimits {
            window_bytes,
            window_bytes_max: 400_000,
            connection_window_bytes: connection_window,
            head_bytes_max: 60_000,
            // Both are honest, and talk much.
            glitches: GlitchLimits { burst: 0, per_second: 1 },
            ..H2ClientLimits::default()
        };
        let mut out = Vec::new();
        let core = H2Client::new(limits, &mut out);
        Self {
            core,
            out,
            unread: Vec::new(),
            untaken: Vec::new(),
            takes_at_once: true,
            connection_window,
            is_leaving: false,
        }
    }

    pub fn open_ids(&mut self) -> Vec<StreamId> {
        self.core.streams().map(|stream| stream.id).collect()
    }

    /// One of the streams whose request has not ended.
    fn sending(&mut self, choice: usize) -> Option<StreamId> {
        let ids: Vec<_> = self
            .core
            .streams()
            .filter(|stream| !stream.is_local_closed)
            .map(|stream| stream.id)
            .collect();
        (!ids.is_empty()).then(|| ids[choice % ids.len()])
    }

    pub fn ask(&mut self, all: &mut Exchanges, script: &mut Script<'_>) {
        if !self.core.can_open() {
            return;
        }
        let choice = script.byte();
        let method = METHODS[choice % 4];
        let path = format!("/{}", choice / 4 % 8);
        let is_end = choice & 128 != 0;
        let length = (choice & 64 != 0 && !is_end).then(|| script.size());
        let mut sent = fields(script);
        if let Some(length) = length {
            sent.push(("content-length".to_owned(), length.to_string().into_bytes()));
        }
        let ends = (method == "HEAD", is_end);
        let id = self.core.open(ends, (), &mut self.out, |encoder, out| {
            encoder.request_line((method, true), (b"x.test", path.as_bytes()), true, out);
            for (name, value) in &sent {
                encoder.field(FieldName::from(name.as_str()), value, out);
            }
        });
        let is_too_large =
            sent.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>()
                + pseudo_bytes(method, &path)
                > super::ServerSide::HEAD_BYTES_MAX;
        let request = Message { fields: sent, length, has_ended: is_end, ..Message::default() };
        all.add(id, Exchange { method, path, request, is_too_large, ..Exchange::default() });
    }

    pub fn send_body(&mut self, all: &mut Exchanges, (choice, bytes): (usize, usize)) {
        let Some(id) = self.sending(choice) else { return };
        self.send_on(all, id, bytes, choice & 128 != 0);
    }

    fn send_on(&mut self, all: &mut Exchanges, id: StreamId, bytes: usize, wants_end: bool) {
        let request = &mut all.of(id).request;
        let bytes = request.left(bytes);
        let content = body(id, request.sent, bytes);
        let is_end = match request.length {
            Some(length) => request.sent + bytes == length,
            None => wants_end,
        };
        request.sent += self.core.write_data(id, &content, is_end, &mut self.out);
        let is_closed = self.core.stream(id).is_some_and(|stream| stream.is_local_closed);
        request.has_ended = is_closed;
        self.close_if_over(id);
    }

    /// Ends a request, with trailers where nothing is left of its body.
    pub fn end(&mut self, all: &mut Exchanges, choice: usize) {
        let Some(id) = self.sending(choice) else { return };
        let request = &mut all.of(id).request;
        if choice & 128 == 0 || request.left(1) > 0 && request.length.is_some() {
            return self.send_on(all, id, 0, true);
        }
        let trailers = vec![("x-sum".to_owned(), request.sent.to_string().into_bytes())];
        let lines = trailers.iter().map(|(name, value)| (name.as_str().into(), value.as_slice()));
        self.core.write_trailers(id, lines, &mut self.out);
        (request.trailers, request.has_ended) = (Some(trailers), true);
        self.close_if_over(id);
    }

    /// Ends a stream before its time.
    pub fn cancel(&mut self, all: &mut Exchanges, choice: usize) {
        let ids = self.open_ids();
        if ids.is_empty() {
            return;
        }
        let id = ids[choice % ids.len()];
        all.of(id).is_cancelled_by_client = true;
        self.core.close(id, ErrorCode::Cancel, &mut self.out);
    }

    /// Takes what came so far; from now on, at once or not.
    pub fn take(&mut self, at_once: bool) {
        self.takes_at_once = at_once;
        for (id, bytes) in std::mem::take(&mut self.untaken) {
            self.core.take(id, bytes, &mut self.out);
        }
    }

    fn close_if_over(&mut self, id: StreamId) {
        let is_over = |stream: &mut gustnado_http::h2::ClientStream<()>| {
            stream.is_local_closed && stream.is_remote_closed
        };
        if self.core.stream(id).is_some_and(is_over) {
            self.core.close(id, ErrorCode::NoError, &mut self.out);
        }
    }

    /// Sends all that is left of each request.
    pub fn end_all(&mut self, all: &mut Exchanges) {
        for id in self.open_ids() {
            if self.core.stream(id).is_some_and(|stream| !stream.is_local_closed) {
                let left = all.of(id).request.left(REST_BYTES);
                let bytes = if all.of(id).request.length.is_some() { left } else { 0 };
                self.send_on(all, id, bytes, true);
            }
        }
    }

    pub fn read(&mut self, piece: &[u8], all: &mut Exchanges, now_ms: u64) {
        self.unread.extend_from_slice(piece);
        let unread = std::mem::take(&mut self.unread);
        let mut used = 0;
        loop {
            let next = self.core.next(&unread[used..], now_ms, &mut self.out);
            let (more, event) = next.expect("the server keeps the rules");
            used += more;
            let Some(event) = event else { break };
            if let Some(id) = self.note(event, all) {
                self.close_if_over(id);
            }
        }
        self.unread = unread[used..].to_vec();
    }

    /// Takes note of an event. Returns the stream that it may have ended.
    fn note(&mut self, event: H2ClientEvent<'_, ()>, all: &mut Exchanges) -> Option<StreamId> {
        match event {
            H2ClientEvent::Interim { id, head } => {
                assert_eq!(head.status(), 103);
                all.of(id).interim_came += 1;
                None
            }
            H2ClientEvent::Response { id, head, is_end } => {
                let exchange = all.of(id);
                assert_eq!(exchange.interim_came, exchange.interim_sent);
                assert_eq!(head.status(), exchange.status);
                let response = &mut exchange.response;
                assert!(!response.is_seen, "{id} twice");
                let seen = lines(head.on(self.core.head_bytes()).fields());
                assert_eq!(seen, response.fields, "{id}");
                response.is_seen = true;
                if is_end {
                    response.note_end();
                }
                Some(id)
            }
            H2ClientEvent::Data { id, bytes, is_end } => {
                all.of(id).response.note_came(id, bytes, is_end);
                if self.takes_at_once {
                    self.core.take(id, bytes.len(), &mut self.out);
                } else {
                    self.untaken.push((id, bytes.len()));
                }
                Some(id)
            }
            H2ClientEvent::Trailers { id } => {
                let response = &mut all.of(id).response;
                assert_eq!(response.trailers, Some(lines(self.core.trailers())));
                response.note_end();
                Some(id)
            }
            H2ClientEvent::Reset { stream, code, fault } => {
                assert_eq!(fault, None, "{stream:?}: the server keeps the rules");
                let exchange = all.of(stream.id);
                match code {
                    ErrorCode::RefusedStream => exchange.is_refused = true,
                    ErrorCode::NoError => assert!(exchange.response.is_whole, "{exchange:?}"),
                    _ => assert!(exchange.is_cancelled_by_server, "{exchange:?}"),
                }
                None
            }
            H2ClientEvent::GoAway { refused, .. } => {
                for stream in refused {
                    all.of(stream.id).is_refused = true;
                }
                None
            }
            H2ClientEvent::Window => None,
        }
    }
}

/// What the pseudo fields of a request count.
fn pseudo_bytes(method: &str, path: &str) -> usize {
    let fields =
        [(":method", method), (":scheme", "https"), (":authority", "x.test"), (":path", path)];
    fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
}

/// Fields that came.
pub fn lines<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Lines {
    fields
        .map(|(name, value)| (String::from_utf8(name.to_vec()).expect("a token"), value.to_vec()))
        .collect()
}
