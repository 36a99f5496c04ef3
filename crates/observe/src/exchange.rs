//! The exchanges of a connection: its requests whose responses have not left yet.
//!
//! There is one record for each, made only where something reads it: an access log, or a callback
//! of the response. It is finished once, when the response's last byte has left or the connection
//! ends: then its line is written and its callbacks are called.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use gustnado_http::head::Head;
use gustnado_http::proxy::ProxyInfo;
use gustnado_tasks::{Endpoint, contained};
use gustnado_tls::{Socket, TlsInfo};

use crate::access_log::AccessLog;
use crate::access_log::line::{Line, LoggedRequest};

/// The most bytes that are kept of a refused request's first line.
const FIRST_LINE_BYTES_MAX: usize = 1024;
/// How many unused pages a worker keeps, and how large each may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 << 10;

/// Outcome of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel has taken its last byte.
    Whole,
    /// The connection was lost, or cut, before that.
    Lost,
}

/// A callback that is called once with the outcome of a response.
pub type OnSent = Box<dyn FnOnce(Sent) + Send>;

/// Callbacks of a response, called with [`Sent::Lost`] on drop unless they were called before.
pub struct SentCallbacks(Vec<OnSent>);

impl SentCallbacks {
    /// Returns the callbacks of a response, if it has some.
    pub fn boxed(callbacks: Vec<OnSent>) -> Option<Box<Self>> {
        (!callbacks.is_empty()).then(|| Box::new(Self(callbacks)))
    }

    fn call(&mut self, sent: Sent) {
        for callback in mem::take(&mut self.0) {
            // A callback that panics must not end the connection's task.
            _ = contained(|| callback(sent));
        }
    }
}

impl Drop for SentCallbacks {
    fn drop(&mut self) {
        self.call(Sent::Lost);
    }
}

/// The open exchanges of a connection. While there is none it holds no page, so that idle
/// connections stay small. Dropping it finishes all of them as cut off.
#[derive(Default)]
pub struct Exchanges {
    /// The log of the open exchanges, if there is one. A reload may put another one in force, which
    /// applies from the next request on.
    log: Option<Arc<AccessLog>>,
    /// The peer's address, once it is known.
    address: Option<Box<str>>,
    /// What the handshake has agreed on, if a log has asked for it.
    tls: Option<Arc<TlsInfo>>,
    /// What a PROXY header says besides addresses, if a log has asked for it.
    proxy_info: Option<Arc<ProxyInfo>>,
    /// The log's buffer for its lines, that of its first worker. It stays the same, so that they
    /// stay in order even if the connection runs on other workers later.
    buffer: Option<usize>,
    /// The open exchanges, if there are any.
    page: Option<Box<Page>>,
}

/// Exchanges in the order of their requests' arrival, and their bytes.
#[derive(Default)]
struct Page {
    exchanges: VecDeque<Exchange>,
    /// Heads of requests, and of responses if the log's format needs them. Copied, as the receive
    /// and send buffers are gone by the time the line is written.
    text: Vec<u8>,
}

/// One request and what has left of its response.
#[derive(Default)]
struct Exchange {
    /// The request, if it is logged.
    request: Option<RequestRecord>,
    /// `None` before there is a response.
    status: Option<u16>,
    /// The response's head in the page, if the log's format needs it.
    response: Range<usize>,
    /// Bytes of content that were handed over to be sent, less those that did not leave.
    content_bytes: u64,
    /// How many of them are in the send that is under way, and bytes of the head before them.
    sending_bytes: u64,
    head_bytes: u64,
    /// No content follows.
    is_whole: bool,
    on_sent: Option<Box<SentCallbacks>>,
}

/// What all lines of a connection share.
#[derive(Clone, Copy)]
struct OfConnection<'a> {
    address: Option<&'a str>,
    tls: Option<&'a TlsInfo>,
    proxy_info: Option<&'a ProxyInfo>,
}

/// A request, as the log shows it.
struct RequestRecord {
    began: Instant,
    unix_secs: u64,
    /// The client's address, if a trusted proxy states another one than the peer's.
    client: Option<Box<str>>,
    /// `None` if the request was refused.
    head: Option<Head>,
    /// Its bytes in the page.
    bytes: Range<usize>,
}

/// What an exchange records of a response that was written, or begun.
pub struct ResponseRecord<'a> {
    pub status: u16,
    pub head: &'a [u8],
    /// Bytes of content that are sent together with the head.
    pub content_bytes: u64,
    /// No content follows.
    pub is_whole: bool,
    pub on_sent: Option<Box<SentCallbacks>>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "they are kept as connections hold them: in 8 bytes")]
    static SPARE: RefCell<Vec<Box<Page>>> = const { RefCell::new(Vec::new()) };
}

impl Exchanges {
    /// Those of one stream, whose lines are in the order of its connection's.
    ///
    /// - `buffer`: the log's buffer for them, that of the connection's first worker.
    pub fn in_buffer(buffer: Option<usize>) -> Self {
        let mut exchanges = Self::default();
        exchanges.buffer = buffer;
        exchanges
    }

    /// Opens an exchange with a request, or with input that was refused as one.
    ///
    /// - `bytes`: the received bytes, from the head's first one on.
    /// - `socket`: the connection, whose peer and whose handshake a log may ask for.
    /// - `client`: returns the client, if that is not the peer.
    pub fn open(
        &mut self,
        log: &Arc<AccessLog>,
        (head, bytes): (Option<&Head>, &[u8]),
        socket: &Socket,
        client: impl FnOnce() -> Option<Endpoint>,
    ) {
        if self.page.is_none() && !self.log.as_ref().is_some_and(|old| Arc::ptr_eq(old, log)) {
            self.log = Some(Arc::clone(log));
        }
        let wants_address = log.wants_address();
        if wants_address && self.address.is_none() {
            self.address = socket.peer().ok().as_ref().map(address_of);
        }
        let client = if wants_address { client().as_ref().map(address_of) } else { None };
        if log.wants_tls() && self.tls.is_none() {
            self.tls = socket.tls().cloned();
        }
        if log.wants_proxy_info() && self.proxy_info.is_none() {
            self.proxy_info = socket.proxy_info().cloned();
        }
        self.buffer = self.buffer.or_else(gustnado_tasks::worker);
        let page = self.page.get_or_insert_with(Page::take);
        let start = page.text.len();
        match head {
            Some(head) => page.text.extend_from_slice(&bytes[..head.len()]),
            None => page.text.extend_from_slice(first_line(bytes)),
        }
        let request = Some(RequestRecord {
            began: Instant::now(),
            unix_secs: socket.now().unix_secs,
            client,
            head: head.copied(),
            bytes: start..page.text.len(),
        });
        page.exchanges.push_back(Exchange { request, ..Exchange::default() });
    }

    fn last(&mut self) -> Option<&mut Exchange> {
        self.page.as_mut()?.exchanges.back_mut()
    }

    /// Returns whether the last request has no response yet.
    pub fn awaits_response(&self) -> bool {
        let last = self.page.as_ref().and_then(|page| page.exchanges.back());
        last.is_some_and(Exchange::awaits_response)
    }

    /// Records the last request's response. Where there is no log, this opens its exchange.
    pub fn respond(&mut self, response: ResponseRecord<'_>) {
        let ResponseRecord { status, head, content_bytes, is_whole, on_sent } = response;
        let is_open = self.awaits_response();
        let page = self.page.get_or_insert_with(Page::take);
        if !is_open {
            page.exchanges.push_back(Exchange::default());
        }
        let Some(exchange) = page.exchanges.back_mut() else { return };
        exchange.status = Some(status).filter(|status| *status > 0);
        exchange.content_bytes = content_bytes;
        exchange.sending_bytes = content_bytes;
        exchange.head_bytes = head.len() as u64;
        exchange.is_whole = is_whole;
        exchange.on_sent = on_sent;
        // Most formats need no field of the response: its head is then not copied.
        if self.log.as_ref().is_some_and(|log| log.wants_response()) {
            let start = page.text.len();
            page.text.extend_from_slice(head);
            exchange.response = start..page.text.len();
        }
    }

    /// Counts more content of the last response, which is sent now.
    pub fn add_content(&mut self, bytes: u64) {
        if let Some(exchange) = self.last() {
            exchange.content_bytes += bytes;
            exchange.sending_bytes += bytes;
        }
    }

    /// Records that the last send has left, and finishes the exchanges that are whole.
    pub fn sent(&mut self) {
        if let Some(exchange) = self.last() {
            (exchange.sending_bytes, exchange.head_bytes) = (0, 0);
        }
        // Only from the front: a response behind an incomplete one waits, so that lines keep the
        // order of the requests.
        self.finish(Sent::Whole, |exchange| exchange.is_whole);
    }

    /// Records that so many bytes of the last send did not leave.
    pub fn take_back(&mut self, unsent: u64) {
        let (Some(page), mut unsent) = (&mut self.page, unsent) else { return };
        // From the last one back: the kernel takes bytes in order, so those that are left are the
        // last.
        for exchange in page.exchanges.iter_mut().rev() {
            let sending = mem::take(&mut exchange.sending_bytes);
            exchange.content_bytes -= sending.min(unsent);
            unsent = unsent.saturating_sub(sending + exchange.head_bytes);
        }
    }

    /// Records that no content of the last response follows.
    pub fn end_last(&mut self) {
        if let Some(exchange) = self.last() {
            exchange.is_whole = true;
        }
    }

    /// Calls the callbacks of the last response: it is complete, and what follows is a tunnel,
    /// whose bytes the exchange still counts.
    pub fn end_before_tunnel(&mut self) {
        let last = self.last().and_then(|exchange| exchange.on_sent.take());
        if let Some(mut on_sent) = last {
            on_sent.call(Sent::Whole);
        }
    }

    /// Returns whether there is neither an open exchange nor a log that will have more.
    pub fn is_unused(&self) -> bool {
        self.page.is_none() && self.log.is_none()
    }

    /// Finishes exchanges from the first one on, as long as they are ready for it.
    fn finish(&mut self, sent: Sent, is_ready: impl Fn(&Exchange) -> bool) {
        let Self { log, address, tls, proxy_info, buffer, page: Some(page) } = self else {
            return;
        };
        let of_connection = OfConnection {
            address: address.as_deref(),
            tls: tls.as_deref(),
            proxy_info: proxy_info.as_deref(),
        };
        let Page { exchanges, text } = &mut **page;
        while let Some(mut exchange) = exchanges.pop_front_if(|exchange| is_ready(exchange)) {
            if let (Some(log), Some(request)) = (log.as_deref(), &exchange.request) {
                let line = exchange.line(request, of_connection, text);
                log.write(buffer.unwrap_or(0), &line);
            }
            if let Some(on_sent) = &mut exchange.on_sent {
                on_sent.call(sent);
            }
        }
        self.release_page();
    }

    /// Returns the page to the worker if no exchange is open.
    fn release_page(&mut self) {
        if let Some(page) = self.page.take_if(|page| page.exchanges.is_empty()) {
            page.put_back();
        }
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        self.finish(Sent::Lost, |_| true);
    }
}

impl Exchange {
    fn awaits_response(&self) -> bool {
        self.status.is_none() && !self.is_whole
    }

    fn line<'a>(
        &self,
        request: &'a RequestRecord,
        of_connection: OfConnection<'a>,
        text: &'a [u8],
    ) -> Line<'a> {
        let OfConnection { address, tls, proxy_info } = of_connection;
        let bytes = &text[request.bytes.clone()];
        Line {
            address: request.client.as_deref().or(address),
            unix_secs: request.unix_secs,
            took: request.began.elapsed(),
            request: match &request.head {
                Some(head) => LoggedRequest::Request(head.on(bytes)),
                None if bytes.is_empty() => LoggedRequest::Unknown,
                None => LoggedRequest::Refused(bytes),
            },
            status: self.status,
            bytes: self.content_bytes,
            response: &text[self.response.clone()],
            tls,
            proxy_info,
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
        if self.text.capacity() <= SPARE_BYTES_MAX && self.exchanges.capacity() <= SPARE_MAX {
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
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Records a response with a callback that sends its name and outcome.
    fn respond(
        exchanges: &mut Exchanges,
        told: &Sender<(u16, Sent)>,
        status: u16,
        content_bytes: u64,
        is_whole: bool,
    ) {
        let told = told.clone();
        let on_sent = SentCallbacks::boxed(vec![Box::new(move |sent| {
            told.send((status, sent)).expect("the test listens");
        })]);
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        exchanges.respond(ResponseRecord { status, head, content_bytes, is_whole, on_sent });
    }

    fn outcomes(told: &Receiver<(u16, Sent)>) -> Vec<(u16, Sent)> {
        told.try_iter().collect()
    }

    fn content_bytes(exchanges: &Exchanges) -> Vec<u64> {
        let page = exchanges.page.as_ref();
        page.map_or_else(Vec::new, |page| {
            page.exchanges.iter().map(|exchange| exchange.content_bytes).collect()
        })
    }

    #[test]
    fn each_exchange_is_finished_once_and_in_order() {
        let (tell, told) = channel();
        let mut exchanges = Exchanges::default();
        respond(&mut exchanges, &tell, 200, 5, true);
        respond(&mut exchanges, &tell, 404, 9, true);
        respond(&mut exchanges, &tell, 206, 7, false);
        assert_eq!(outcomes(&told), [], "nothing has left yet");
        exchanges.sent();
        assert_eq!(outcomes(&told), [(200, Sent::Whole), (404, Sent::Whole)]);
        exchanges.add_content(100);
        exchanges.sent();
        assert_eq!((outcomes(&told), content_bytes(&exchanges)), (vec![], vec![107]));
        exchanges.end_last();
        exchanges.sent();
        assert_eq!(outcomes(&told), [(206, Sent::Whole)]);
        assert!(exchanges.is_unused());
        drop(exchanges);
        assert_eq!(outcomes(&told), []);
    }

    #[test]
    fn what_the_end_of_a_connection_cuts_off_is_lost() {
        let (tell, told) = channel();
        let mut exchanges = Exchanges::default();
        respond(&mut exchanges, &tell, 200, 5, true);
        respond(&mut exchanges, &tell, 206, 7, false);
        drop(exchanges);
        assert_eq!(outcomes(&told), [(200, Sent::Lost), (206, Sent::Lost)]);
    }

    #[test]
    fn a_callback_that_panics_keeps_no_other_from_its_call() {
        let (tell, told) = channel();
        let mut callbacks: Vec<OnSent> = vec![Box::new(|_| panic!("a fault of the program"))];
        callbacks.push(Box::new(move |sent| tell.send(sent).expect("the test listens")));
        drop(SentCallbacks::boxed(callbacks));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [Sent::Lost]);
    }

    #[test]
    fn bytes_that_did_not_leave_are_taken_back_from_the_last_response_on() {
        let (tell, _told) = channel();
        let mut exchanges = Exchanges::default();
        respond(&mut exchanges, &tell, 200, 100, true);
        respond(&mut exchanges, &tell, 200, 50, true);
        // All of the second response, its head of 19 bytes, and 30 bytes of the first one.
        exchanges.take_back(50 + 19 + 30);
        assert_eq!(content_bytes(&exchanges), [70, 0]);
    }

    #[test]
    fn what_an_earlier_send_has_brought_is_not_taken_back() {
        let (tell, _told) = channel();
        let mut exchanges = Exchanges::default();
        respond(&mut exchanges, &tell, 200, 100, false);
        exchanges.sent();
        exchanges.add_content(1_000);
        // More than its content: framing is sent as well.
        exchanges.take_back(1_010);
        assert_eq!(content_bytes(&exchanges), [100]);
    }

    #[test]
    fn the_first_line_is_that_which_has_come_whole() {
        assert_eq!(first_line(b"\r\nGET / HTTP/1.1\r\nHo"), b"GET / HTTP/1.1");
        assert_eq!(first_line(b"abc\nd"), b"abc");
        assert_eq!(first_line(b"GET /"), b"");
        assert_eq!(first_line(b""), b"");
        assert_eq!(first_line(&[b'a'; 2000]).len(), FIRST_LINE_BYTES_MAX);
    }
}
