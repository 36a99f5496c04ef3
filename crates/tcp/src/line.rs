//! Lines: a protocol that is told of whole lines, however they were cut on their way.

use std::borrow::Cow;
use std::mem;

use super::{Protocol, Reason, Transport, WriteFlow};

#[cfg(test)]
mod tests;

/// The most bytes of a line, without its delimiter, unless [`LineReceiver::max_length`] says
/// otherwise.
pub const LINE_BYTES_MAX: usize = 16_384;

/// The callbacks of a connection that is read line by line.
pub trait LineProtocol: Send {
    /// Called when the connection is made.
    fn connection_made(&mut self, _lines: &mut Lines<'_>) {}

    /// Called with each line, without its delimiter.
    fn line_received(&mut self, lines: &mut Lines<'_>, line: &[u8]);

    /// Called with data received in raw mode: some bytes, cut anywhere.
    fn raw_data_received(&mut self, _lines: &mut Lines<'_>, _data: &[u8]) {}

    /// Called when a line is longer than the limit. `beginning` is its part up to the limit. If
    /// this does not end the connection, the rest of the line is skipped; in raw mode it is raw
    /// data.
    fn line_length_exceeded(&mut self, lines: &mut Lines<'_>, _beginning: &[u8]) {
        lines.transport.lose_connection();
    }

    /// Called when the peer sends no more. What it sent last, without a delimiter, is `rest`; in
    /// raw mode it is empty. By default the connection ends once all is written.
    fn peer_finished(&mut self, lines: &mut Lines<'_>, _rest: &[u8]) {
        lines.transport.lose_connection();
    }

    /// Called like [`Protocol::pause_producing`].
    fn pause_producing(&mut self, _lines: &mut Lines<'_>) {}

    /// Called like [`Protocol::resume_producing`].
    fn resume_producing(&mut self, _lines: &mut Lines<'_>) {}

    /// Called like [`Protocol::timed_out`].
    fn timed_out(&mut self, lines: &mut Lines<'_>) {
        lines.transport.abort_connection();
    }

    /// Called like [`Protocol::stopping`].
    fn stopping(&mut self, lines: &mut Lines<'_>) {
        lines.transport.lose_connection();
    }

    /// Called when the connection has ended.
    fn connection_lost(&mut self, _reason: Reason) {}
}

/// A connection as its [`LineProtocol`] sees it.
#[derive(Debug)]
pub struct Lines<'a> {
    /// The connection itself.
    pub transport: &'a mut Transport,
    mode: &'a mut Mode,
    delimiter: &'a [u8],
    /// The data that was just handed out in raw mode.
    raw: &'a [u8],
}

impl Lines<'_> {
    /// Writes a line and its delimiter.
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) -> WriteFlow {
        self.transport.write_sequence(&[line.as_ref(), self.delimiter])
    }

    /// Passes data, from the end of this line on, to
    /// [`raw_data_received`](LineProtocol::raw_data_received) as it comes.
    pub fn set_raw_mode(&mut self) {
        self.mode.raw = true;
    }

    /// Cuts data into lines again.
    ///
    /// - `rest`: data that was received raw and already belongs to a line. It comes first.
    pub fn set_line_mode(&mut self, rest: &[u8]) {
        self.mode.raw = false;
        // What is the end of the data just handed out is still there: copying it each time would
        // make a peer that sends small blocks expensive.
        if rest.len() <= self.raw.len() && rest.as_ptr_range().end == self.raw.as_ptr_range().end {
            self.mode.unused = rest.len();
        } else {
            self.mode.returned.extend_from_slice(rest);
        }
    }
}

#[derive(Debug, Default)]
struct Mode {
    raw: bool,
    /// How much of the end of the data just handed out was given back.
    unused: usize,
    /// Other data given back by [`Lines::set_line_mode`], to be looked at first.
    returned: Vec<u8>,
}

/// Cuts what a connection receives into lines for a [`LineProtocol`].
///
/// Lines cut anywhere read the same. Of a line that is not complete at most `max_length` bytes and
/// a delimiter are kept. While reading rests (see [`Transport`]), no line is handed out.
#[derive(Debug)]
pub struct LineReceiver<L> {
    protocol: L,
    delimiter: Box<[u8]>,
    max_length: usize,
    /// Received and not handed out yet.
    kept: Vec<u8>,
    /// How many of the kept bytes are known to begin no delimiter.
    seen: usize,
    /// The rest of a line that was too long is being skipped.
    skipping: bool,
    mode: Mode,
}

impl<L: LineProtocol> LineReceiver<L> {
    /// Lines that end with CR LF and have at most [`LINE_BYTES_MAX`] bytes.
    pub fn new(protocol: L) -> Self {
        Self {
            protocol,
            delimiter: Box::from(&b"\r\n"[..]),
            max_length: LINE_BYTES_MAX,
            kept: Vec::new(),
            seen: 0,
            skipping: false,
            mode: Mode::default(),
        }
    }

    /// Sets what ends a line: any bytes, but not none, which means LF.
    pub fn delimiter(mut self, delimiter: impl AsRef<[u8]>) -> Self {
        let delimiter = delimiter.as_ref();
        self.delimiter = Box::from(if delimiter.is_empty() { b"\n" } else { delimiter });
        self
    }

    /// Sets the most bytes of a line, without its delimiter.
    pub fn max_length(mut self, bytes: usize) -> Self {
        self.max_length = bytes;
        self
    }

    /// Begins in raw mode.
    pub fn raw(mut self) -> Self {
        self.mode.raw = true;
        self
    }

    /// Hands out what can be handed out of `input`, and keeps the rest.
    fn digest(&mut self, transport: &mut Transport, input: &[u8]) {
        let mut data = Cow::Borrowed(input);
        if !self.kept.is_empty() {
            let mut kept = mem::take(&mut self.kept);
            kept.extend_from_slice(input);
            data = Cow::Owned(kept);
        }
        let mut at = 0;
        while at < data.len() && transport.is_reading() {
            let Some(used) = self.hand_out(transport, &data[at..]) else { break };
            at += used;
            self.seen = 0;
            if !self.mode.returned.is_empty() {
                let mut returned = mem::take(&mut self.mode.returned);
                returned.extend_from_slice(&data[at..]);
                (data, at) = (Cow::Owned(returned), 0);
            }
        }
        // An idle connection holds no buffer.
        if at < data.len() && !transport.is_ending() {
            self.kept = match data {
                Cow::Borrowed(bytes) => bytes[at..].to_vec(),
                Cow::Owned(mut bytes) => {
                    bytes.drain(..at);
                    bytes
                }
            };
        }
    }

    /// Hands out one piece of `rest`, and returns how much of it that used; `None` if the next line
    /// is not complete.
    fn hand_out(&mut self, transport: &mut Transport, rest: &[u8]) -> Option<usize> {
        let Self { protocol, delimiter, max_length, seen, skipping, mode, .. } = self;
        let (delimiter, max_length) = (&**delimiter, *max_length);
        if mode.raw {
            let mut lines = Lines { transport, mode, delimiter, raw: rest };
            protocol.raw_data_received(&mut lines, rest);
            let unused = mem::take(&mut mode.unused);
            return Some(if mode.raw { rest.len() } else { rest.len() - unused });
        }
        let mut lines = Lines { transport, mode, delimiter, raw: &[] };
        // A line of the most bytes ends within this window.
        let most = max_length.saturating_add(delimiter.len());
        let window = if *skipping { rest } else { &rest[..rest.len().min(most)] };
        let straddling = delimiter.len() - 1;
        match find(window, delimiter, *seen) {
            Some(end) => {
                if !mem::take(skipping) {
                    protocol.line_received(&mut lines, &rest[..end]);
                }
                Some(end + delimiter.len())
            }
            None if *skipping => Some(rest.len().saturating_sub(straddling)).filter(|&n| n > 0),
            None if window.len() < most => {
                *seen = window.len().saturating_sub(straddling);
                None
            }
            None => {
                protocol.line_length_exceeded(&mut lines, &rest[..max_length]);
                *skipping = !lines.mode.raw;
                Some(max_length)
            }
        }
    }

    fn with_lines(
        &mut self,
        transport: &mut Transport,
        callback: impl FnOnce(&mut L, &mut Lines<'_>),
    ) {
        let Self { protocol, delimiter, mode, .. } = self;
        callback(protocol, &mut Lines { transport, mode, delimiter, raw: &[] });
    }
}

impl<L: LineProtocol> Protocol for LineReceiver<L> {
    fn connection_made(&mut self, transport: &mut Transport) {
        self.with_lines(transport, L::connection_made);
    }

    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        self.digest(transport, data);
    }

    fn reading_resumed(&mut self, transport: &mut Transport) {
        self.digest(transport, &[]);
    }

    fn pause_producing(&mut self, transport: &mut Transport) {
        self.with_lines(transport, L::pause_producing);
    }

    fn resume_producing(&mut self, transport: &mut Transport) {
        self.with_lines(transport, L::resume_producing);
    }

    fn timed_out(&mut self, transport: &mut Transport) {
        self.with_lines(transport, L::timed_out);
    }

    fn stopping(&mut self, transport: &mut Transport) {
        self.with_lines(transport, L::stopping);
    }

    fn peer_finished(&mut self, transport: &mut Transport) {
        let rest = if self.skipping { Vec::new() } else { mem::take(&mut self.kept) };
        self.with_lines(transport, |protocol, lines| protocol.peer_finished(lines, &rest));
    }

    fn connection_lost(&mut self, reason: Reason) {
        self.protocol.connection_lost(reason);
    }
}

/// Returns where the first delimiter begins, `from` there on.
fn find(bytes: &[u8], delimiter: &[u8], from: usize) -> Option<usize> {
    let last = *delimiter.last()?;
    let mut at = from + delimiter.len() - 1;
    loop {
        at += memchr::memchr(last, bytes.get(at..)?)?;
        if bytes[..=at].ends_with(delimiter) {
            return Some(at + 1 - delimiter.len());
        }
        at += 1;
    }
}
