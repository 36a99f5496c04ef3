//! What a connection keeps of the requests whose lines are still to be written.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use gustnado_http::head::Head;
use gustnado_tasks::Endpoint;

use super::AccessLog;
use super::line::{Line, LoggedRequest};

/// Most bytes of a refused request's first line that are kept.
const FIRST_LINE_BYTES_MAX: usize = 1024;
/// Unused pages that a worker keeps, and how large each may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 << 10;

/// One connection's part in the log. A connection whose requests are all written holds no buffer.
#[derive(Default)]
pub struct Journal {
    /// The peer's address, once it is known.
    address: Option<Box<str>>,
    /// The buffer that its lines go into: always the same one, so that they stay in order wherever
    /// the connection runs. (It is that of its first worker.)
    place: Option<usize>,
    /// The open requests, if there are any.
    page: Option<Box<Page>>,
}

/// Requests in the order in which they came, and their bytes.
#[derive(Default)]
struct Page {
    entries: VecDeque<Entry>,
    /// Heads of requests, and of answers if the format wants them.
    text: Vec<u8>,
}

struct Entry {
    began: Instant,
    unix_secs: u64,
    /// The client's address, if a proxy has said another one than the peer's.
    client: Option<Box<str>>,
    /// `None`: it was refused.
    head: Option<Head>,
    asked: Range<usize>,
    answer: Range<usize>,
    status: Option<u16>,
    /// Bytes of content that were handed to the kernel.
    sent: u64,
    /// The same that lie in the turn's buffer.
    pending: u64,
    /// Bytes of the head before them.
    head_bytes: u64,
    /// Nothing follows what lies in that buffer.
    is_whole: bool,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "they are kept as journals hold them: in 8 bytes")]
    static SPARE: RefCell<Vec<Box<Page>>> = const { RefCell::new(Vec::new()) };
}

impl Journal {
    /// Takes down a request, or what was refused in place of one.
    ///
    /// - `bytes`: from the head's first byte on.
    /// - `peer`: asks for the connection's peer.
    /// - `client`: asks for the client, where that is not the peer.
    pub fn begin(
        &mut self,
        log: &AccessLog,
        (head, bytes): (Option<&Head>, &[u8]),
        unix_secs: u64,
        peer: impl Fn() -> Option<Endpoint>,
        client: impl FnOnce() -> Option<Endpoint>,
    ) {
        let wants_address = log.format.wants_address;
        if wants_address && self.address.is_none() {
            self.address = peer().as_ref().map(address_of);
        }
        let client = if wants_address { client().as_ref().map(address_of) } else { None };
        self.place = self.place.or_else(gustnado_tasks::worker);
        let page = self.page.get_or_insert_with(Page::take);
        let start = page.text.len();
        match head {
            Some(head) => page.text.extend_from_slice(&bytes[..head.len()]),
            None => page.text.extend_from_slice(first_line(bytes)),
        }
        page.entries.push_back(Entry {
            began: Instant::now(),
            unix_secs,
            client,
            head: head.copied(),
            asked: start..page.text.len(),
            answer: 0..0,
            status: None,
            sent: 0,
            pending: 0,
            head_bytes: 0,
            is_whole: false,
        });
    }

    fn last(&mut self) -> Option<&mut Entry> {
        self.page.as_mut()?.entries.back_mut()
    }

    /// Whether the last request waits for its answer.
    pub fn is_asked(&self) -> bool {
        let last = self.page.as_ref().and_then(|page| page.entries.back());
        last.is_some_and(|entry| entry.status.is_none() && !entry.is_whole)
    }

    /// Forgets the last request, which will be read once more.
    pub fn take_back(&mut self) {
        if let Some(page) = &mut self.page {
            page.entries.pop_back();
        }
        self.rest();
    }

    /// Takes down the last request's answer.
    ///
    /// - `pending`: bytes of its content that wait in the turn's buffer.
    /// - `is_whole`: nothing else follows.
    pub fn answer(
        &mut self,
        log: &AccessLog,
        (status, head): (u16, &[u8]),
        pending: u64,
        is_whole: bool,
    ) {
        let Some(page) = &mut self.page else { return };
        let Some(entry) = page.entries.back_mut() else { return };
        entry.status = Some(status).filter(|status| *status > 0);
        entry.pending = pending;
        entry.head_bytes = head.len() as u64;
        entry.is_whole = is_whole;
        if log.format.wants_answer {
            let start = page.text.len();
            page.text.extend_from_slice(head);
            entry.answer = start..page.text.len();
        }
    }

    /// Counts content of the last answer that was handed to the kernel by itself.
    pub fn add(&mut self, bytes: u64) {
        if let Some(entry) = self.last() {
            entry.sent += bytes;
        }
    }

    /// The last answer has left whole.
    pub fn end(&mut self, log: &AccessLog) {
        if let Some(entry) = self.last() {
            entry.is_whole = true;
        }
        self.sent(log);
    }

    /// The turn's buffer was handed to the kernel: answers that lay in it whole are written down.
    pub fn sent(&mut self, log: &AccessLog) {
        self.write(log, false);
    }

    /// Of the turn's buffer, so many bytes have not left: those of its last answers.
    pub fn lose(&mut self, unsent: u64) {
        let (Some(page), mut unsent) = (&mut self.page, unsent) else { return };
        for entry in page.entries.iter_mut().rev() {
            let pending = std::mem::take(&mut entry.pending);
            entry.sent += pending.saturating_sub(unsent);
            unsent = unsent.saturating_sub(pending + entry.head_bytes);
        }
    }

    /// The connection ends: whatever is open was cut.
    pub fn cut(&mut self, log: &AccessLog) {
        self.write(log, true);
    }

    fn write(&mut self, log: &AccessLog, is_cut: bool) {
        let Self { address, place, page: Some(page) } = self else { return };
        let Page { entries, text } = &mut **page;
        for entry in entries.iter_mut().filter(|_| !is_cut) {
            entry.sent += std::mem::take(&mut entry.pending);
        }
        while entries.front().is_some_and(|entry| entry.is_whole || is_cut) {
            let entry = entries.pop_front().expect("looked at just now");
            log.write(place.unwrap_or(0), &entry.line(address.as_deref(), text));
        }
        self.rest();
    }

    /// Gives the page back if nothing is open.
    fn rest(&mut self) {
        if let Some(page) = self.page.take_if(|page| page.entries.is_empty()) {
            page.put_back();
        }
    }
}

impl Entry {
    fn line<'a>(&'a self, address: Option<&'a str>, text: &'a [u8]) -> Line<'a> {
        let asked = &text[self.asked.clone()];
        Line {
            address: self.client.as_deref().or(address),
            unix_secs: self.unix_secs,
            took: self.began.elapsed(),
            asked: match &self.head {
                Some(head) => LoggedRequest::Request(head.on(asked)),
                None if asked.is_empty() => LoggedRequest::Unknown,
                None => LoggedRequest::Refused(asked),
            },
            status: self.status,
            bytes: self.sent,
            answer: &text[self.answer.clone()],
        }
    }
}

impl Page {
    #[expect(clippy::unnecessary_box_returns, reason = "kept boxed, see above")]
    fn take() -> Box<Self> {
        SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default()
    }

    fn put_back(mut self: Box<Self>) {
        self.text.clear();
        if self.text.capacity() <= SPARE_BYTES_MAX && self.entries.capacity() <= SPARE_MAX {
            // (A thread that ends may keep none any more.)
            _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_MAX {
                    spare.push(self);
                }
            });
        }
    }
}

fn address_of(peer: &Endpoint) -> Box<str> {
    match peer {
        Endpoint::Tcp(address) => address.ip().to_canonical().to_string().into(),
        // (Most peers of Unix sockets have no name: that is `unix:`.)
        other => other.to_string().into(),
    }
}

/// The first line that is not empty, if all of it has come.
fn first_line(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let bytes = &bytes[start.unwrap_or(bytes.len())..];
    let searched = &bytes[..bytes.len().min(FIRST_LINE_BYTES_MAX)];
    match searched.iter().position(|byte| *byte == b'\n') {
        Some(end) => searched[..end].strip_suffix(b"\r").unwrap_or(&searched[..end]),
        None if searched.len() == FIRST_LINE_BYTES_MAX => searched,
        None => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_that_which_has_come_whole() {
        assert_eq!(first_line(b"\r\nGET / HTTP/1.1\r\nHo"), b"GET / HTTP/1.1");
        assert_eq!(first_line(b"abc\nd"), b"abc");
        assert_eq!(first_line(b"GET /"), b"");
        assert_eq!(first_line(b""), b"");
        assert_eq!(first_line(&[b'a'; 2000]).len(), FIRST_LINE_BYTES_MAX);
    }
}
