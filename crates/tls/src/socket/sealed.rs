//! Operations of a socket whose bytes travel in records of TLS.
//!
//! Content is sealed when it is about to be sent, and not when it is handed over: until then it can
//! be taken back. Sealed once, it belongs to the connection's send buffer, which alone sends it on:
//! no path leads back to the content, so no record is sealed twice.

mod closing;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use gustnado_tasks::{
    Charge, Connection, ConnectionError, MemoryKind, OpenedRoom, RecvBuf, SendBuf, SendGuard,
    send_step,
};

use super::record_sizes::RecordSizes;
use super::transient_bytes::TransientBytes;
use super::{More, Socket};
use crate::handshake::TlsInfo;
use crate::records::{CONTENT_BYTES_MAX, Opened, RecordError, record_bytes};
use crate::session::Session;

/// How long the rest of a record may take where no request is under way.
const RECORD_MS: u64 = 10_000;

thread_local! {
    /// What this worker opens records into.
    static ROOM: RefCell<OpenedRoom> = RefCell::default();
}

/// What a sealed connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealedSend {
    /// Nothing, or content that is not sealed yet.
    Content,
    Records,
    /// Records whose last try has failed: nothing that followed them could be read.
    Failed,
}

/// The TLS side of a socket.
pub(super) struct Sealed {
    pub(super) session: Session,
    info: Arc<TlsInfo>,
    /// What it holds besides, which one that waits does not.
    pub(super) held: TransientBytes,
    /// What is left of content, while the connection sends the records of its beginning.
    out: Option<Box<SendBuf>>,
    pub(super) sends: SealedSend,
    /// The peer has ended its direction in order.
    has_ended: bool,
    /// This end has done so.
    is_closed: bool,
    pub(super) sizes: RecordSizes,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Sealed {
    pub(super) fn new(session: Session, info: Arc<TlsInfo>) -> Self {
        Self {
            session,
            info,
            held: TransientBytes::default(),
            out: None,
            sends: SealedSend::Content,
            has_ended: false,
            is_closed: false,
            sizes: RecordSizes::default(),
        }
    }

    /// Opens the whole records among the bytes that are here. The piece is empty if there is no
    /// content in them.
    pub(super) fn open(&mut self, received: &[u8], now_ms: u64) -> Result<RecvBuf, RecordError> {
        ROOM.with_borrow_mut(|room| {
            // All of it fits, so that no whole record is left for later.
            let mut partial = self.held.take_partial();
            let opened_into = room.bytes(partial.len() + received.len());
            let (mut rest, mut content) = (received, 0);
            if !partial.is_empty() {
                rest = complete(&mut partial, received)?;
                let opened = self.session.open(&partial, opened_into, now_ms)?;
                content = self.note(opened);
                partial.drain(..opened.taken);
            }
            if partial.is_empty() && !rest.is_empty() && !self.has_ended {
                let opened = self.session.open(rest, &mut opened_into[content..], now_ms)?;
                content += self.note(opened);
                rest = &rest[opened.taken..];
            }
            partial.extend_from_slice(rest);
            if self.has_ended {
                partial = Vec::new();
            }
            self.held.add_records(self.session.owed());
            self.held.keep_partial(partial);
            Ok(room.opened(content))
        })
    }

    fn note(&mut self, opened: Opened) -> usize {
        self.has_ended |= opened.is_end;
        opened.content
    }

    /// Seals the next step of what is to be sent. `None`: there is nothing.
    fn seal_next(&mut self, now_ms: u64) -> Result<Option<Box<SendBuf>>, RecordError> {
        let records = self.held.take_records();
        if records.is_empty() && self.out.is_none() {
            return Ok(None);
        }
        let is_long = self.left() > CONTENT_BYTES_MAX / 2;
        let mut sealed =
            if is_long { Connection::outgoing_for_step() } else { Connection::outgoing() };
        sealed.bytes.extend_from_slice(&records);
        if let Some(mut out) = self.out.take() {
            // Earlier steps have left.
            out.note_blocked();
            let left_already = out.len() - out.left();
            self.seal_step(&mut out, &mut sealed.bytes, now_ms)?;
            if out.left() > 0 {
                charged(&mut sealed);
                self.out = Some(out);
            } else {
                match out.take_guard() {
                    Some(guard) => guarded(&mut sealed, guard, left_already),
                    None => charged(&mut sealed),
                }
                if out.ends() {
                    _ = self.session.close(&mut sealed.bytes);
                    self.is_closed = true;
                    sealed.expect_end();
                }
                Connection::put_back(out);
            }
        }
        Ok(Some(sealed))
    }

    fn seal_step(
        &mut self,
        out: &mut SendBuf,
        sealed: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<(), RecordError> {
        let mut left = send_step(out.left());
        let record_bytes = self.sizes.next(now_ms, out.left());
        let mut joined = Vec::new();
        while left > 0 {
            let part = out.next_part();
            let wanted = left.min(record_bytes);
            if part.len() >= wanted {
                // All whole records of this place at once: the cipher is set up once for them.
                let bytes =
                    if part.len() >= left { left } else { part.len() - part.len() % wanted };
                self.session.seal(&part[..bytes], record_bytes, sealed)?;
                out.advance(bytes);
                left -= bytes;
                continue;
            }
            // A head and the beginning of its content leave in one record.
            joined.clear();
            while joined.len() < wanted {
                let part = out.next_part();
                let bytes = part.len().min(wanted - joined.len());
                joined.extend_from_slice(&part[..bytes]);
                out.advance(bytes);
            }
            self.session.seal(&joined, record_bytes, sealed)?;
            left -= wanted;
        }
        Ok(())
    }

    /// Sends records without content, as far as the kernel takes them now. What it leaves is sent
    /// by the next [`Socket::poll_sent`].
    pub(super) fn flush(&mut self, connection: &mut Connection) {
        // Content that waits for more is not overtaken.
        if connection.is_sending() || connection.holds_back() || self.has_failed() {
            return;
        }
        let records = self.held.take_records();
        if records.is_empty() {
            return;
        }
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(&records);
        connection.start_send(out);
        // Those of a failed send stay: the next send finds the failure, and does not pass them by.
        _ = self.poll_records(connection);
    }

    fn poll_records(&mut self, connection: &mut Connection) -> Poll<Result<(), ConnectionError>> {
        let sent = connection.poll_sent();
        self.sends = match sent {
            Poll::Ready(Ok(())) => SealedSend::Content,
            Poll::Ready(Err(_)) => SealedSend::Failed,
            Poll::Pending => SealedSend::Records,
        };
        sent
    }

    fn sends_records(&self) -> bool {
        self.sends != SealedSend::Content
    }

    fn has_failed(&self) -> bool {
        self.sends == SealedSend::Failed
    }

    /// Returns how many bytes of content are not sealed.
    pub(super) fn left(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.left())
    }
}

/// Charges a long send for as long as its bytes are held.
pub(super) fn charged(out: &mut SendBuf) {
    if out.is_large() {
        let mut charge = Charge::new(MemoryKind::Sends);
        charge.set(out.bytes.capacity());
        out.keep_with(Box::new(HeldStep { charge }));
    }
}

/// Passes the guard of content on to its last records: where memory is short, the connection that
/// holds them may be cut as one that holds the content.
fn guarded(out: &mut SendBuf, mut guard: Box<dyn SendGuard>, left_already: usize) {
    if out.is_large() {
        guard.note_moved(out.bytes.capacity());
        out.keep_with(Box::new(LastStep { guard, left_already }));
    }
}

/// The memory of a step that is sent.
#[derive(Debug)]
struct HeldStep {
    charge: Charge,
}

impl SendGuard for HeldStep {
    fn note_blocked(&self, _: usize) {}

    fn note_moved(&mut self, bytes: usize) {
        self.charge.set(bytes);
    }
}

/// The memory of the last step of some content.
#[derive(Debug)]
struct LastStep {
    guard: Box<dyn SendGuard>,
    /// Content that has left in earlier steps.
    left_already: usize,
}

impl SendGuard for LastStep {
    fn note_blocked(&self, left_already: usize) {
        self.guard.note_blocked(self.left_already + left_already);
    }

    fn note_moved(&mut self, bytes: usize) {
        self.guard.note_moved(bytes);
    }
}

/// Moves as many received bytes as its first record lacks behind a partial one. Returns the others.
fn complete<'a>(partial: &mut Vec<u8>, received: &'a [u8]) -> Result<&'a [u8], RecordError> {
    let mut rest = received;
    loop {
        let missing = match record_bytes(partial)? {
            Some(bytes) => bytes.saturating_sub(partial.len()),
            // Its head is not whole.
            None => 1,
        };
        let (more, behind) = rest.split_at(missing.min(rest.len()));
        partial.extend_from_slice(more);
        rest = behind;
        if more.is_empty() {
            return Ok(rest);
        }
    }
}

/// An error of records as one of the connection.
pub(super) fn broken(error: RecordError) -> ConnectionError {
    ConnectionError::Broken(io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Socket {
    /// Returns whether bytes travel by TLS.
    #[inline]
    pub fn is_sealed(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.sealed.is_some())
    }

    /// Returns what the handshake has agreed on.
    #[inline]
    pub fn tls(&self) -> Option<&Arc<TlsInfo>> {
        self.more.as_ref()?.sealed.as_ref().map(|sealed| &sealed.info)
    }

    /// Splits off the TLS side.
    ///
    /// # Panics
    /// There is none.
    pub(super) fn sealed(&mut self) -> (&mut Connection, &mut Sealed) {
        let More { sealed, .. } = &mut **self.more.as_mut().expect("it is sealed");
        (&mut self.connection, sealed.as_mut().expect("it is sealed"))
    }

    /// Returns whether the peer has ended its direction in order. Otherwise the end of its bytes
    /// may be a cut (RFC 9112 §9.8).
    pub fn has_ended(&self) -> bool {
        !self.is_sealed() || self.has_closed()
    }

    /// Returns whether the peer has said by TLS that nothing follows. Its end of the connection
    /// itself may come late, or never.
    pub fn has_closed(&self) -> bool {
        self.more.as_ref().and_then(|more| more.sealed.as_ref()).is_some_and(|it| it.has_ended)
    }

    /// Takes over content. Records that are on their way leave before it.
    #[inline(never)] // It would take registers from the way of plain connections.
    pub(super) fn start_send_sealed(&mut self, out: Box<SendBuf>) {
        let (connection, sealed) = self.sealed();
        if sealed.sends_records() {
            // Content that is given to the connection now would leave as if it were sealed.
            debug_assert!(sealed.out.is_none(), "one send at a time");
            connection.resume_send();
            sealed.out = Some(out);
        } else {
            connection.start_send(out);
        }
    }

    /// Opens what was received, and receives by `poll` until there is content.
    ///
    /// - `idle`: as for [`Socket::poll_recv`].
    pub(super) fn open(
        &mut self,
        mut received: Poll<Result<RecvBuf, ConnectionError>>,
        idle: bool,
        mut poll: impl FnMut(&mut Connection) -> Poll<Result<RecvBuf, ConnectionError>>,
    ) -> Poll<Result<RecvBuf, ConnectionError>> {
        if self.sealed().1.has_ended {
            // It came with the last content; the end of the connection itself may never come.
            return Poll::Ready(Ok(RecvBuf::end()));
        }
        loop {
            let piece = ready!(received)?;
            if piece.bytes().is_empty() {
                return Poll::Ready(Ok(piece));
            }
            match self.open_bytes(piece.bytes(), idle) {
                Ok(Some(content)) => return Poll::Ready(Ok(content)),
                Ok(None) => received = poll(&mut self.connection),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Opens received bytes. `None`: there is no content in them, and more has to be received.
    ///
    /// - `idle`: no request is under way, so that the rest of a record has a time of its own.
    ///
    /// # Errors
    /// [`ConnectionError::Broken`]: the peer was told.
    pub fn open_bytes(
        &mut self,
        received: &[u8],
        idle: bool,
    ) -> Result<Option<RecvBuf>, ConnectionError> {
        let (connection, sealed) = self.sealed();
        let now_ms = connection.now().mono_ms;
        let was_whole = !sealed.held.has_partial();
        let opened = sealed.open(received, now_ms);
        let is_whole = !sealed.held.has_partial();
        if was_whole && !is_whole && idle {
            // A request's time-outs begin with its first byte, which is not opened yet.
            let due_ms = connection.deadline_ms();
            sealed.held.set_due(due_ms);
            connection.set_deadline(due_ms.min(now_ms + RECORD_MS));
        }
        match opened {
            Ok(content) if !content.bytes().is_empty() => {
                // From here on the request has its own time.
                _ = sealed.held.take_due();
                // Half a request has no response that an alert of the library could leave with.
                if sealed.session.is_of_library() {
                    sealed.flush(connection);
                }
                Ok(Some(content))
            }
            Ok(_) => {
                if is_whole && let Some(due_ms) = sealed.held.take_due() {
                    connection.set_deadline(due_ms);
                }
                // What the library owes, which no response follows.
                sealed.flush(connection);
                Ok(sealed.has_ended.then(RecvBuf::end))
            }
            Err(error) => {
                self.tell(error);
                Err(broken(error))
            }
        }
    }

    /// Tells the peer of an error, if the kernel takes it at once.
    pub(super) fn tell(&mut self, error: RecordError) {
        let (connection, sealed) = self.sealed();
        sealed.is_closed = true;
        let mut records = Vec::new();
        if sealed.session.alert(error, &mut records).is_ok() {
            sealed.held.add_records(records);
            sealed.flush(connection);
        }
    }

    #[inline(never)] // It would take registers from the way of plain connections.
    pub(super) fn take_unsent_sealed(&mut self) -> Option<Box<SendBuf>> {
        let (connection, sealed) = self.sealed();
        if sealed.sends_records() { None } else { connection.take_unsent() }
    }

    /// Returns how much of a send has not left: content, and records on their way.
    #[inline(never)] // It would take registers from the way of plain connections.
    pub(super) fn left_sealed(&self) -> u64 {
        let sealed = self.more.as_ref().and_then(|more| more.sealed.as_ref());
        let content = sealed.map_or(0, |sealed| sealed.left());
        content as u64 + self.connection.unsent_bytes()
    }

    /// Seals and sends what was taken over, step by step.
    #[inline(never)] // It would take registers from the way of plain connections.
    pub(super) fn poll_sent_sealed(&mut self) -> Poll<Result<(), ConnectionError>> {
        let (connection, sealed) = self.sealed();
        loop {
            if sealed.sends_records() {
                ready!(sealed.poll_records(connection))?;
            } else if connection.waits_for_more() {
                return connection.poll_sent();
            } else if let Some(content) = connection.take_to_seal() {
                sealed.out = Some(content);
            }
            match sealed.seal_next(connection.now().mono_ms) {
                Ok(Some(records)) => {
                    sealed.sends = SealedSend::Records;
                    connection.start_send(records);
                }
                Ok(None) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(broken(error))),
            }
        }
    }
}
