//! What was asked, what was responded, and how much of it the other side has seen.

use std::collections::BTreeMap;

use super::Script;
use super::server_side::ServerSide;

/// The fields of a message.
pub type Lines = Vec<(String, Vec<u8>)>;

/// One direction of a stream.
#[derive(Debug, Default)]
pub struct Message {
    pub fields: Lines,
    /// How long the body is, where Content-Length says so.
    pub length: Option<usize>,
    pub sent: usize,
    pub has_ended: bool,
    /// It ends with these.
    pub trailers: Option<Lines>,
    /// What has come of it.
    pub is_seen: bool,
    pub came: usize,
    pub is_whole: bool,
}

impl Message {
    /// Takes the next bytes of the body on their way in.
    pub fn note_came(&mut self, id: u32, bytes: &[u8], is_end: bool) {
        assert!(self.is_seen && !self.is_whole, "{id}: it is over");
        let wanted = body(id, self.came, bytes.len());
        assert!(bytes == wanted, "{id}: other bytes at {}", self.came);
        self.came += bytes.len();
        assert!(self.came <= self.sent);
        if is_end {
            self.note_end();
        }
    }

    pub fn note_end(&mut self) {
        assert!(self.has_ended && self.came == self.sent, "{self:?}");
        self.is_whole = true;
    }

    /// How much of so many bytes may still be sent.
    pub fn left(&self, bytes: usize) -> usize {
        self.length.map_or(bytes, |length| bytes.min(length - self.sent))
    }
}

/// A request and its response.
#[derive(Debug, Default)]
pub struct Exchange {
    pub method: &'static str,
    pub path: String,
    pub request: Message,
    pub response: Message,
    pub status: u16,
    /// Interim responses, on both ends.
    pub interim_sent: usize,
    pub interim_came: usize,
    /// The head is larger than the server takes.
    pub is_too_large: bool,
    /// The client was told that it was not looked at.
    pub is_refused: bool,
    /// Either side has ended it before its time.
    pub is_cancelled_by_client: bool,
    pub is_cancelled_by_server: bool,
}

#[derive(Debug, Default)]
pub struct Exchanges(BTreeMap<u32, Exchange>);

impl Exchanges {
    pub fn add(&mut self, id: u32, exchange: Exchange) {
        assert!(self.0.insert(id, exchange).is_none(), "{id} twice");
    }

    pub fn of(&mut self, id: u32) -> &mut Exchange {
        self.0.get_mut(&id).expect("it was asked for")
    }

    /// Checks what has come of each.
    pub fn check_ends(&self, server: &ServerSide) {
        for (id, exchange) in &self.0 {
            let Exchange { request, response, .. } = exchange;
            if exchange.is_refused || server.last_served.is_some_and(|last| *id > last) {
                assert!(!request.is_seen, "{id} was refused, and seen: {exchange:?}");
                continue;
            }
            assert!(request.is_seen, "{id} was not seen: {exchange:?}");
            if exchange.is_cancelled_by_client || exchange.is_cancelled_by_server {
                continue;
            }
            // A response may be whole before its request is; then the server reads no more.
            assert!(response.is_seen && response.is_whole, "{id}: {exchange:?}");
            assert_eq!(exchange.interim_sent, exchange.interim_came);
        }
    }
}

/// Bytes of a body.
pub fn body(id: u32, from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at as u32).wrapping_mul(31).wrapping_add(id) as u8).collect()
}

/// Fields of the script: of few names, so that tables are of use, and now and then large.
pub fn fields(script: &mut Script<'_>) -> Lines {
    const NAMES: [&str; 8] =
        ["x-a", "accept", "user-agent", "x-long-name-of-a-field", "etag", "x-b", "x-c", "link"];
    let count = script.byte() % 6;
    let field = |_| {
        let choice = script.byte();
        let len = match choice / 8 {
            0 => script.size() / 12,
            short => short,
        };
        let letter = b'a' + (choice % 23) as u8;
        let value = (0..len).map(|at| letter + (at % 3) as u8).collect();
        (NAMES[choice % 8].to_owned(), value)
    };
    (0..count).map(field).collect()
}
