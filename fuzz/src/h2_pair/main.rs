//! Both sides of HTTP/2 against each other: our client's core and our server's, and a model of what
//! they have promised.
//!
//! The input says what either side does next, and how its bytes are cut on their way. Both sides
//! keep the rules, so that whatever happens
//!
//! - no side finds an error of the connection or of a stream in what the other one sends;
//! - every request that is not refused is seen once, with the same fields and the same body, and
//!   every response likewise;
//! - the windows that a side believes in are those that a third party reads off the wire;
//! - in the end nothing waits, and no window has leaked.
#![no_main]

mod client_side;
mod exchange;
mod referee;
mod server_side;

use gustnado_http::h2::frame::{self, kind, setting};
use gustnado_http::h2::{ErrorCode, H2Error};
use libfuzzer_sys::fuzz_target;

use client_side::ClientSide;
use exchange::{Exchange, Exchanges};
use referee::Wire;
use server_side::ServerSide;

fuzz_target!(|input: &[u8]| {
    let mut script = Script(input);
    let mut pair = Pair::new(&mut script);
    while !script.0.is_empty() {
        pair.act(&mut script);
        pair.check();
    }
    pair.come_to_rest();
});

/// What is left of the input.
struct Script<'i>(&'i [u8]);

impl Script<'_> {
    fn byte(&mut self) -> usize {
        let [first, rest @ ..] = self.0 else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    /// A number that is small as a rule, and up to 64 KiB.
    fn size(&mut self) -> usize {
        let byte = self.byte();
        if byte < 128 { byte } else { (byte - 128) << 9 | self.byte() }
    }
}

/// The settings that a side sends at first, and comes back to in the end.
#[derive(Clone, Copy)]
struct FirstSettings {
    window: u32,
    streams: u32,
}

struct Pair {
    client: ClientSide,
    server: ServerSide,
    to_server: Wire,
    to_client: Wire,
    all: Exchanges,
    now_ms: u64,
    first: [FirstSettings; 2],
}

/// The table of fields that both sides begin with.
const TABLE_BYTES: u32 = 4096;

impl Pair {
    fn new(script: &mut Script<'_>) -> Self {
        const WINDOWS: [u32; 4] = [16_384, 20_000, 65_535, 200_000];
        let choice = script.byte();
        let (of_client, of_server) = (WINDOWS[choice % 4], WINDOWS[choice / 4 % 4]);
        let streams = if choice & 16 == 0 { 4 } else { 100 };
        let mut pair = Self {
            client: ClientSide::new(of_client, choice & 32 == 0),
            server: ServerSide::new(of_server, streams),
            to_server: Wire::to_server(),
            to_client: Wire::to_client(),
            all: Exchanges::default(),
            now_ms: 1_000,
            first: [
                FirstSettings { window: of_client, streams: 100 },
                FirstSettings { window: of_server, streams },
            ],
        };
        pair.take_written();
        pair
    }

    /// Does what the script says next.
    fn act(&mut self, script: &mut Script<'_>) {
        let Self { client, server, all, .. } = self;
        match script.byte() % 20 {
            0 | 1 => client.ask(all, script),
            2 | 3 => client.send_body(all, (script.byte(), script.size())),
            4 => client.end(all, script.byte()),
            5 => client.cancel(all, script.byte()),
            6 | 7 => server.respond(all, script),
            8 | 9 => server.send_body(all, (script.byte(), script.size())),
            10 => server.end(all, script.byte()),
            11 => server.cancel(all, script.byte()),
            12 => client.take(script.byte() % 2 == 0),
            13 => server.take(script.byte() % 2 == 0, self.now_ms),
            14 => self.act_on_connection(script),
            15 | 16 => {
                let bytes = script.size() * 3;
                self.carry_to_server(bytes);
            }
            17 | 18 => {
                let bytes = script.size() * 3;
                self.carry_to_client(bytes);
            }
            _ => self.now_ms += script.size() as u64,
        }
        self.take_written();
    }

    /// What concerns no request.
    fn act_on_connection(&mut self, script: &mut Script<'_>) {
        let choice = script.byte();
        let (of_client, part) = (choice % 2 == 0, script.byte());
        let first = self.first[usize::from(!of_client)];
        let wire_out = if of_client { &mut self.client.out } else { &mut self.server.out };
        let part = u32::try_from(part).expect("a byte");
        match choice / 2 % 8 {
            0 => frame::write(kind::PING, 0, 0, b"whatever", wire_out),
            // Never more than at first: that is what the core, which does not know of these, takes.
            1 => {
                let window = first.window / 256 * part;
                frame::write_settings(&[(setting::INITIAL_WINDOW_SIZE, window)], wire_out);
            }
            2 => frame::write_settings(&[(setting::HEADER_TABLE_SIZE, part * 20)], wire_out),
            3 if !of_client => {
                let streams = first.streams.min(part);
                frame::write_settings(&[(setting::MAX_CONCURRENT_STREAMS, streams)], wire_out);
            }
            3 if of_client => {
                let id = part * 2 + 1;
                let payload = [&id.to_be_bytes()[..], b"u=2, i"].concat();
                frame::write(kind::PRIORITY_UPDATE, 0, 0, &payload, wire_out);
            }
            4 if part < 16 && of_client => {
                self.client.core.go_away(H2Error::new(ErrorCode::NoError, "enough"), wire_out);
                self.client.is_leaving = true;
            }
            4 if part < 16 && self.server.last_served.is_none() => {
                self.server.core.announce_end(wire_out);
            }
            5 if part < 16 && !of_client => self.server.go_away(),
            // Unknown ones are ignored.
            6 => frame::write(99, 0, part, b"?", wire_out),
            7 => frame::write_settings(&[(99, part)], wire_out),
            _ => {}
        }
    }

    /// Puts on the wire what either side has written.
    fn take_written(&mut self) {
        self.to_server.send(&mut self.client.out);
        self.to_client.send(&mut self.server.out);
    }

    fn carry_to_server(&mut self, bytes: usize) {
        let piece = self.to_server.carry(bytes, &mut self.to_client.sender);
        self.server.read(&piece, &mut self.all, self.now_ms);
    }

    fn carry_to_client(&mut self, bytes: usize) {
        let piece = self.to_client.carry(bytes, &mut self.to_server.sender);
        self.client.read(&piece, &mut self.all, self.now_ms);
    }

    /// Checks that both sides believe in the windows that the wire says.
    fn check(&mut self) {
        let sender = &self.to_server.sender;
        for id in self.client.open_ids() {
            let window = sender.window(id).min(sender.connection).max(0);
            assert_eq!(self.client.core.sendable(id) as i64, window, "{id}, of the client");
        }
        let sender = &self.to_client.sender;
        assert_eq!(self.server.core.room() as i64, sender.connection.max(0));
        for stream in self.server.core.streams() {
            let window = sender.window(stream.id).max(0);
            assert_eq!(stream.window() as i64, window, "{}, of the server", stream.id);
        }
    }

    /// Takes back what settings have changed, and ends all that is open. Then nothing may wait.
    fn come_to_rest(&mut self) {
        for (first, out) in self.first.iter().zip([&mut self.client.out, &mut self.server.out]) {
            let settings = [
                (setting::INITIAL_WINDOW_SIZE, first.window),
                (setting::HEADER_TABLE_SIZE, TABLE_BYTES),
            ];
            frame::write_settings(&settings, out);
        }
        self.carry_all();
        self.check_open_windows();
        let mut rounds = 0;
        while !self.is_at_rest() {
            self.client.end_all(&mut self.all);
            self.server.end_all(&mut self.all);
            self.carry_all();
            rounds += 1;
            assert!(rounds < 1_000, "something waits for ever: {:?}", self.all);
        }
        self.all.check_ends(&self.server);
        assert_eq!(self.server.core.open_streams(), 0);
        assert_eq!(self.client.core.open_streams(), 0);
        self.to_server.check_answers(&self.to_client);
        self.to_client.check_answers(&self.to_server);
        // Each side gives the connection's window back once half of it is used.
        assert!(self.to_client.sender.connection >= i64::from(self.client.connection_window / 2));
        assert!(self.to_server.sender.connection >= i64::from(ServerSide::CONNECTION_WINDOW / 2));
    }

    fn is_at_rest(&mut self) -> bool {
        let is_open = self.client.core.open_streams() + self.server.core.open_streams() > 0;
        !is_open && self.to_server.is_empty() && self.to_client.is_empty()
    }

    /// Carries and takes everything until nothing moves.
    fn carry_all(&mut self) {
        loop {
            self.client.take(true);
            self.server.take(true, self.now_ms);
            self.take_written();
            if self.to_server.is_empty() && self.to_client.is_empty() {
                break;
            }
            self.carry_to_server(usize::MAX);
            self.take_written();
            self.carry_to_client(usize::MAX);
            self.take_written();
        }
        self.check();
    }

    /// Checks that no window of an open stream has leaked: all that came was taken.
    fn check_open_windows(&mut self) {
        let [of_client, of_server] = self.first.map(|first| i64::from(first.window / 2));
        for stream in self.server.core.streams() {
            let window = self.to_client.sender.window(stream.id);
            assert!(window >= of_client, "{}: {window}, of the server", stream.id);
            if !stream.is_remote_closed {
                let window = self.to_server.sender.window(stream.id);
                assert!(window >= of_server, "{}: {window}, of the client", stream.id);
            }
        }
    }
}
