//! The requests of a connection whose lines are not written yet.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use gustnado_http::head::Head;
use gustnado_tasks::Endpoint;

use super::AccessLog;
use super::line::{Line, LoggedRequest};

/// The most bytes that are kept of a refused request's first line.
const FIRST_LINE_BYTES_MAX: usize = 1024;
/// How many unused pages a worker keeps, and how large each may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 << 10;

/// One connection's part of the log. Once all its requests are written it holds no page, so that
/// idle connections stay small.
#[derive(Default)]
pub struct Journal {
    /// The peer's address, once it is known.
    address: Option<Box<str>>,
    /// The buffer for its lines, that of its first worker. It stays the same, so that they stay in
    /// order even if the connection runs on other workers later.
    buffer: Option<usize>,
    /// The open requests, if there are any.
    page: Option<Box<Page>>,
}

/// Requests in the order of their arrival, and their bytes.
#[derive(Default)]
struct Page {
    entries: VecDeque<Entry>,
    /// Heads of requests, and of responses if the format needs them. Copied, as the receive and
    /// send buffers are gone by the time the line is written.
    text: Vec<u8>,
}

struct Entry {
    began: Instant,
    unix_secs: u64,
    /// The client's address, if a trusted proxy states another one than the peer's.
    client: Option<Box<str>>,
    /// `None` if the request was refused.
    head: Option<Head>,
    request: Range<usize>,
    response: Range<usize>,
    status: Option<u16>,
    /// Bytes of content that the kernel has taken.
    sent: u64,
    /// Bytes of content in the turn's buffer, not taken yet.
    pending: u64,
    /// Bytes of the head before them.
    head_bytes: u64,
    /// The response ends with the turn's buffer.
    is_whole: bool,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "they are kept as journals hold them: in 8 bytes")]
    static SPARE: RefCell<Vec<Box<Page>>> = const { RefCell::new(Vec::new()) };
}

impl Journal {
    /// Records a request, or input that was refused as one.
    ///
    /// - `bytes`: the received bytes, from the head's first one on.
    /// - `peer`: returns the connection's peer.
    /// - `client`: returns the client, if that is not the peer.
    pub fn record_request(
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
        self.buffer = self.buffer.or_else(gustnado_tasks::worker);
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
            request: start..page.text.len(),
            response: 0..0,
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

    /// Returns whether the last request has no response yet.
    pub fn awaits_response(&self) -> bool {
        let last = self.page.as_ref().and_then(|page| page.entries.back());
        last.is_some_and(|entry| entry.status.is_none() && !entry.is_whole)
    }

    /// Removes the last request, which will be parsed again.
    pub fn discard_last(&mut self) {
        if let Some(page) = &mut self.page {
            page.entries.pop_back();
        }
        self.release_page();
    }

    /// Records the last request's response.
    ///
    /// - `pending`: bytes of its content in the turn's buffer.
    /// - `is_whole`: the response ends there.
    pub fn record_response(
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
        // Most formats need no field of the response: its head is then not copied.
        if log.format.wants_response {
            let start = page.text.len();
            page.text.extend_from_slice(head);
            entry.response = start..page.text.len();
        }
    }

    /// Counts content of the last response that the kernel has taken by a send of its own.
    pub fn add_content(&mut self, bytes: u64) {
        if let Some(entry) = self.last() {
            entry.sent += bytes;
        }
    }

    /// Records that the last response is complete.
    pub fn end(&mut self, log: &AccessLog) {
        if let Some(entry) = self.last() {
            entry.is_whole = true;
        }
        self.sent(log);
    }

    /// Records that the kernel has taken the turn's buffer, and writes the lines of complete
    /// responses.
    pub fn sent(&mut self, log: &AccessLog) {
        self.write(log, false);
    }

    /// Records that so many bytes of the turn's buffer did not leave.
    pub fn subtract_unsent(&mut self, unsent: u64) {
        let (Some(page), mut unsent) = (&mut self.page, unsent) else { return };
        // From the last one back: the kernel takes bytes in order, so those that are left are the
        // last.
        for entry in page.entries.iter_mut().rev() {
            let pending = std::mem::take(&mut entry.pending);
            entry.sent += pending.saturating_sub(unsent);
            unsent = unsent.saturating_sub(pending + entry.head_bytes);
        }
    }

    /// Writes the lines of all open requests, which the connection's end has cut off.
    pub fn cut(&mut self, log: &AccessLog) {
        self.write(log, true);
    }

    fn write(&mut self, log: &AccessLog, is_cut: bool) {
        let Self { address, buffer, page: Some(page) } = self else { return };
        let Page { entries, text } = &mut **page;
        for entry in entries.iter_mut().filter(|_| !is_cut) {
            entry.sent += std::mem::take(&mut entry.pending);
        }
        // Only from the front: a response behind an incomplete one waits, so that lines keep the
        // order of the requests.
        while entries.front().is_some_and(|entry| entry.is_whole || is_cut) {
            let entry = entries.pop_front().expect("looked at just now");
            log.write(buffer.unwrap_or(0), &entry.line(address.as_deref(), text));
        }
        self.release_page();
    }

    /// Returns the page to the worker if no request is open.
    fn release_page(&mut self) {
        if let Some(page) = self.page.take_if(|page| page.entries.is_empty()) {
            page.put_back();
        }
    }
}

impl Entry {
    fn line<'a>(&'a self, address: Option<&'a str>, text: &'a [u8]) -> Line<'a> {
        let request = &text[self.request.clone()];
        Line {
            address: self.client.as_deref().or(address),
            unix_secs: self.unix_secs,
            took: self.began.elapsed(),
            request: match &self.head {
                Some(head) => LoggedRequest::Request(head.on(request)),
                None if request.is_empty() => LoggedRequest::Unknown,
                None => LoggedRequest::Refused(request),
            },
            status: self.status,
            bytes: self.sent,
            response: &text[self.response.clone()],
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
            // A thread that ends may have dropped its spare pages already.
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
        // Most peers of Unix sockets have no name, which shows as `unix:`.
        other => other.to_string().into(),
    }
}

/// Returns the first line that is not empty, if it is complete.
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
