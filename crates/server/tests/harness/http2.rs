//! A client that speaks HTTP/2 frame by frame. Every wait ends.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{
    self, FRAME_HEADER_BYTES, FrameHeader, PREFACE, flag, kind, setting,
};
use gustnado_http::h2::hpack::{Decoder, Strings, TABLE_BYTES};

use super::{Client, PATIENCE};

pub(crate) mod heads;

use heads::request_frame;

/// A frame as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// Whether it is of a kind.
    pub(crate) fn is(&self, kind: u8) -> bool {
        self.header.kind == kind
    }

    /// A number of its payload.
    pub(crate) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// The answer on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamAnswer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Statuses and fields of interim answers.
    pub(crate) interim: Vec<(u16, Vec<(String, String)>)>,
    /// How it was cut, if it was.
    pub(crate) reset: Option<ErrorCode>,
    /// It is over.
    pub(crate) is_whole: bool,
}

impl StreamAnswer {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }
}

/// Why and where a connection ends, as the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoAway {
    pub(crate) last: u32,
    pub(crate) code: ErrorCode,
    pub(crate) reason: String,
}

/// A connection to a server, in clear and by prior knowledge.
pub(crate) struct Http2Client {
    stream: TcpStream,
    unread: Vec<u8>,
    decoder: Decoder,
    answers: HashMap<u32, StreamAnswer>,
    /// The newest GOAWAY.
    pub(crate) goaway: Option<GoAway>,
    /// The server's settings.
    pub(crate) settings: Vec<(u16, u32)>,
    /// Whether it gives windows back as it reads.
    pub(crate) gives_window: bool,
    /// Whether it answers PING.
    pub(crate) answers_pings: bool,
    /// How much more may be sent on each stream; 0 is the connection.
    windows: HashMap<u32, i64>,
    next_id: u32,
}

impl Http2Client {
    /// Connects, and sends the preface and empty settings.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[])
    }

    /// The same with settings.
    pub(crate) fn connect_with(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::connect_silently(address);
        client.begin(settings);
        client
    }

    /// Sends the preface and settings.
    pub(crate) fn begin(&mut self, settings: &[(u16, u32)]) {
        let mut opening = PREFACE.to_vec();
        frame::write_settings(settings, &mut opening);
        self.send(&opening);
    }

    /// The address of this end.
    pub(crate) fn own_address(&self) -> SocketAddr {
        self.stream.local_addr().expect("it is connected")
    }

    /// Connects from 127.0.0.`host`, and sends the preface and empty settings.
    pub(crate) fn connect_from(host: u8, address: SocketAddr) -> Self {
        let socket = Client::socket();
        rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, host], 0))).expect("our own");
        rustix::net::connect(&socket, &address).expect("a connection");
        let mut client = Self::over(TcpStream::from(socket));
        client.begin(&[]);
        client
    }

    /// Connects, and sends nothing.
    pub(crate) fn connect_silently(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE).expect("a connection"))
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_nodelay(true).expect("TCP");
        Self {
            stream,
            unread: Vec::new(),
            decoder: Decoder::new(TABLE_BYTES),
            answers: HashMap::new(),
            goaway: None,
            settings: Vec::new(),
            gives_window: true,
            answers_pings: true,
            windows: HashMap::from([(0, 65_535)]),
            next_id: 1,
        }
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends bytes as far as the server takes them: it may have gone.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a frame.
    pub(crate) fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.send(&frame_of(kind, flags, stream, payload));
    }

    /// Sends settings.
    pub(crate) fn send_settings(&mut self, settings: &[(u16, u32)]) {
        let mut bytes = Vec::new();
        frame::write_settings(settings, &mut bytes);
        self.send(&bytes);
    }

    /// Sends bytes of a body.
    pub(crate) fn send_data(&mut self, stream: u32, bytes: &[u8], is_end: bool) {
        let bytes_sent = i64::try_from(bytes.len()).expect("a frame");
        for id in [0, stream] {
            let first = self.first_window();
            *self.windows.entry(id).or_insert(first) -= bytes_sent;
        }
        self.send_frame(kind::DATA, if is_end { flag::END_STREAM } else { 0 }, stream, bytes);
    }

    /// Lets the server send more.
    pub(crate) fn give(&mut self, stream: u32, more: u32) {
        self.send_frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    }

    /// Ends a stream.
    pub(crate) fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.send_frame(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
    }

    /// The number of a new stream.
    pub(crate) fn new_stream(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 2;
        id
    }

    /// Sends a GET for a target, and returns its stream.
    pub(crate) fn get(&mut self, target: &str) -> u32 {
        self.request("GET", target, &[], true)
    }

    /// Sends the head of a request, and returns its stream.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        is_end: bool,
    ) -> u32 {
        let id = self.new_stream();
        self.send(&request_frame(id, method, target, fields, is_end));
        id
    }

    /// The whole answer to a GET.
    pub(crate) fn ask(&mut self, target: &str) -> StreamAnswer {
        let id = self.get(target);
        self.answer(id)
    }

    /// The whole answer to a request with a body, in frames as large as may be.
    pub(crate) fn post(&mut self, target: &str, body: &[u8]) -> StreamAnswer {
        let id = self.request("POST", target, &[], false);
        for piece in body.chunks(16_384) {
            self.send_data(id, piece, false);
        }
        self.send_data(id, b"", true);
        self.answer(id)
    }

    /// The same, and never more than there is room for.
    pub(crate) fn post_within_windows(&mut self, target: &str, body: &[u8]) -> StreamAnswer {
        let id = self.request("POST", target, &[], false);
        self.upload(id, body)
    }

    /// Sends the whole body of a request, and never more than there is room for.
    pub(crate) fn upload(&mut self, id: u32, body: &[u8]) -> StreamAnswer {
        let mut left = body;
        while !left.is_empty() {
            let room = usize::try_from(self.window(id).min(self.window(0))).unwrap_or(0);
            let count = left.len().min(room).min(16_384);
            if count == 0 {
                self.next_frame().expect("more room");
                continue;
            }
            self.send_data(id, &left[..count], count == left.len());
            left = &left[count..];
        }
        self.answer(id)
    }

    /// How many bytes may be sent on a stream; 0 is the connection.
    pub(crate) fn window(&self, id: u32) -> i64 {
        self.windows.get(&id).copied().unwrap_or_else(|| self.first_window())
    }

    fn first_window(&self) -> i64 {
        self.setting(setting::INITIAL_WINDOW_SIZE).map_or(65_535, i64::from)
    }

    /// The number of the next stream.
    pub(crate) fn next_stream(&self) -> u32 {
        self.next_id
    }

    /// Whether the whole answer on a stream has come, in what was received so far.
    pub(crate) fn is_received(&mut self, id: u32) -> bool {
        while self.has_frame() {
            self.next_frame();
        }
        self.answers.get(&id).is_some_and(|answer| answer.is_whole)
    }

    fn has_frame(&self) -> bool {
        FrameHeader::read(&self.unread).is_some_and(|(header, rest)| rest.len() >= header.len)
    }

    /// Ends the connection at once.
    pub(crate) fn cut(self) {
        drop(self);
    }

    /// Sends no more.
    pub(crate) fn half_close(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("it is open");
    }

    /// Reads until the answer on a stream is over.
    pub(crate) fn answer(&mut self, id: u32) -> StreamAnswer {
        while !self.answers.get(&id).is_some_and(|answer| answer.is_whole) {
            self.next_frame().unwrap_or_else(|| panic!("{id}: no answer; {:?}", self.goaway));
        }
        self.answers.remove(&id).expect("it is here")
    }

    /// Reads until something has come on a stream, and returns what is there of its answer.
    pub(crate) fn wait_for(
        &mut self,
        id: u32,
        mut is_enough: impl FnMut(&StreamAnswer) -> bool,
    ) -> StreamAnswer {
        loop {
            if let Some(answer) = self.answers.get(&id)
                && is_enough(answer)
            {
                return answer.clone();
            }
            self.next_frame().unwrap_or_else(|| panic!("{id}: the end; {:?}", self.goaway));
        }
    }

    /// What has come on a stream so far.
    pub(crate) fn so_far(&self, id: u32) -> StreamAnswer {
        self.answers.get(&id).cloned().unwrap_or_default()
    }

    /// Reads until the server has closed the connection, and returns its last GOAWAY.
    pub(crate) fn ended(&mut self) -> Option<GoAway> {
        while self.next_frame().is_some() {}
        self.goaway.clone()
    }

    /// Asks for a sign of life, and waits for it: all that was sent before has been read.
    pub(crate) fn ping(&mut self) {
        self.send_frame(kind::PING, 0, 0, b"are here");
        loop {
            let frame = self.next_frame().unwrap_or_else(|| panic!("it ends: {:?}", self.goaway));
            if frame.is(kind::PING) && frame.payload == b"are here" {
                return;
            }
        }
    }

    /// Reads the next frame, and notes what it means; `None` once the connection has ended.
    pub(crate) fn next_frame(&mut self) -> Option<Frame> {
        let header = loop {
            if let Some((header, rest)) = FrameHeader::read(&self.unread)
                && rest.len() >= header.len
            {
                break header;
            }
            let mut piece = vec![0; 65_536];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.unread.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("the server sends nothing: {error}"),
            }
        };
        let end = FRAME_HEADER_BYTES + header.len;
        let payload = self.unread[FRAME_HEADER_BYTES..end].to_vec();
        self.unread.drain(..end);
        let frame = Frame { header, payload };
        self.note(&frame);
        Some(frame)
    }

    fn note(&mut self, frame: &Frame) {
        let Frame { header, payload } = frame;
        let is_end = header.has(flag::END_STREAM);
        match header.kind {
            kind::HEADERS => {
                assert!(header.has(flag::END_HEADERS), "{frame:?}: its heads fit into a frame");
                let fields = self.decode(payload);
                let answer = self.answers.entry(header.stream).or_default();
                assert!(!answer.is_whole, "{frame:?}: behind the end");
                note_fields(answer, fields);
                answer.is_whole = is_end;
            }
            kind::DATA => {
                let answer = self.answers.entry(header.stream).or_default();
                assert!(answer.status >= 200 && !answer.is_whole, "{header:?} {answer:?}");
                answer.body.extend_from_slice(payload);
                answer.is_whole = is_end;
                if self.gives_window && !payload.is_empty() {
                    let more = u32::try_from(payload.len()).expect("a frame");
                    let both = [window_of(0, more), window_of(header.stream, more)].concat();
                    self.try_send(if is_end { &both[..13] } else { &both });
                }
            }
            kind::RST_STREAM => {
                let answer = self.answers.entry(header.stream).or_default();
                answer.reset = Some(ErrorCode::of(frame.number(0)));
                answer.is_whole = true;
            }
            kind::SETTINGS if !header.has(flag::ACK) => {
                let each = payload.chunks_exact(6).map(|entry| {
                    let id = u16::from_be_bytes([entry[0], entry[1]]);
                    (id, u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]))
                });
                self.settings = each.collect();
                self.try_send(&frame_of(kind::SETTINGS, flag::ACK, 0, b""));
            }
            kind::WINDOW_UPDATE => {
                let first = self.first_window();
                let window = self.windows.entry(header.stream).or_insert(first);
                *window += i64::from(frame.number(0));
            }
            kind::PING if !header.has(flag::ACK) && self.answers_pings => {
                self.try_send(&frame_of(kind::PING, flag::ACK, 0, payload));
            }
            kind::GOAWAY => {
                let reason = String::from_utf8(payload[8..].to_vec()).expect("text");
                let code = ErrorCode::of(frame.number(4));
                self.goaway = Some(GoAway { last: frame.number(0), code, reason });
            }
            _ => {}
        }
    }

    fn decode(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let each = |name: &[u8], value: &[u8]| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
            fields.push((text(name), text(value)));
        };
        self.decoder.decode(block, &mut Strings::default(), each).expect("a valid block");
        fields
    }

    /// The value of a setting of the server.
    pub(crate) fn setting(&self, id: u16) -> Option<u32> {
        self.settings.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    /// How many streams the server takes at once.
    pub(crate) fn streams_max(&mut self) -> u32 {
        while self.settings.is_empty() {
            self.next_frame().expect("settings");
        }
        self.setting(setting::MAX_CONCURRENT_STREAMS).expect("it says so")
    }
}

fn note_fields(answer: &mut StreamAnswer, fields: Vec<(String, String)>) {
    let status = fields
        .first()
        .filter(|(name, _)| name == ":status")
        .map(|(_, value)| value.parse().expect("three digits"));
    match status {
        Some(status) if status < 200 => answer.interim.push((status, fields[1..].to_vec())),
        Some(status) => {
            assert_eq!(answer.status, 0, "one head for each answer");
            (answer.status, answer.fields) = (status, fields[1..].to_vec());
        }
        None => answer.trailers = fields,
    }
}

/// The bytes of a frame.
pub(crate) fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(kind, flags, stream, payload, &mut bytes);
    bytes
}

fn window_of(stream: u32, more: u32) -> Vec<u8> {
    frame_of(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}
