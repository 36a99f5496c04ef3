//! Going at a pace: what a connection does differently where bytes or requests are paced.
//!
//! A connection that is paced from its start is served by [`serve_paced`], so that the usual loop
//! has nothing to ask. One that comes to a paced route gets its [`Pacer`] there. Every pause is a
//! timer of the connection's own task; no thread waits.

use std::fs::File;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, ready};

use gustnado_http::fields::Fields;
use gustnado_http::head::{Decoded, Head};
use gustnado_http::method::Method;
use gustnado_http::response_writer::Persist;
use gustnado_http::status::Status;
use gustnado_tasks::{
    BlockingPool, Connection, ConnectionError, Patience, Rate, RecvBuf, SendBuf, SendWatch, now,
};

use super::arrived::HeadAt;
use super::body::{Body, BodyRequest, Wish};
use super::limit::SendFailed;
use super::respond::write_short;
use super::{Conn, Next, Unread};
use crate::app::App;
use crate::error_page::error_page;
use crate::files::OpenFile;
use crate::hooks::Limit;
use crate::pace::{AnswerPace, Pace, Pacer};
use crate::stats::{Added, Fault};

/// Most bytes that are sent in one go, however fast the pace.
const STEP_BYTES_MAX: u64 = 64 << 10;
/// The same for files, which are not copied.
const FILE_STEP_BYTES_MAX: u64 = 1 << 20;

/// Serves one connection at the pace that is set for all of them, until either side closes it.
///
/// It goes through the steps of [`super::serve`], but answers one request at a time.
pub(crate) async fn serve_paced(socket: Connection, app: Arc<App>) {
    let Some(pace) = app.pace() else { return super::serve(socket, app).await };
    let mut conn = Conn::new(socket, Arc::clone(&app));
    let mut next = conn.first_step();
    if matches!(next, Next::Receive) {
        conn.set_pace(pace);
    }
    loop {
        next = match next {
            Next::Introduction => {
                let next = Box::pin(conn.introduce()).await;
                // (With whom it is to be paced was not known before.)
                conn.set_pace(pace);
                next
            }
            Next::Receive => conn.receive_paced().await,
            Next::Again => conn.answer_next().await,
            Next::Close => return,
            rare => Box::pin(conn.finish(rare)).await,
        };
        if let Some(out) = conn.socket.take_unsent() {
            if let Err(failed) = conn.send_out(out, app.times.write).await {
                conn.give_up_send(&failed);
                return;
            }
            conn.log_sent();
            conn.expect_request();
        }
    }
}

/// A request on hold, as far as it is there.
enum Held {
    /// More of its head has to come.
    Incomplete,
    /// It is against the rules.
    Refused,
    /// The first request, and the bytes behind it.
    Whole(Box<Head>, Vec<u8>, Option<Box<Unread>>),
}

impl Conn {
    /// Has it go at its pace from now on.
    fn set_pace(&mut self, pace: &Pace) {
        let mut pacer = pace.pacer(|| self.socket.peer(), self.socket.now().mono_ms);
        pacer.request_due_ms = Some(self.socket.deadline_ms());
        if pacer.has_read_pace() {
            self.socket.receive_on_demand();
        }
        self.besides.get_or_insert_default().pacer = Some(pacer);
    }

    /// What paces this connection. Made if there is none: it lets everything through.
    fn pacer(&mut self) -> &mut Pacer {
        let besides = self.besides.get_or_insert_default();
        besides.pacer.get_or_insert_with(|| Box::new(Pacer::free()))
    }

    /// What paces it, if anything does.
    fn own_pacer(&self) -> Option<&Pacer> {
        self.besides.as_ref()?.pacer.as_deref()
    }

    /// Whether anything paces it.
    pub(super) fn is_paced(&self) -> bool {
        self.own_pacer().is_some()
    }

    /// Receives more of a request, not before the pace allows it.
    async fn receive_paced(&mut self) -> Next {
        let idle = self.unread.is_none();
        let times = &self.app.times;
        let wait_ms = if idle { times.keep_alive_ms } else { times.header_ms };
        let due_ms = self.pacer().request_due_ms.unwrap_or(now().mono_ms + wait_ms);
        let received = match self.await_reading(idle).await {
            Ok(paused_ms) => {
                let due_ms = due_ms.saturating_add(paused_ms);
                self.pacer().request_due_ms = Some(due_ms);
                self.socket.set_deadline(due_ms);
                self.socket.recv(idle).await
            }
            Err(error) => Err(error),
        };
        match received {
            Ok(piece) if piece.bytes().is_empty() => Next::Close,
            Ok(piece) => {
                self.charge_read(&piece);
                self.hold(&piece);
                if idle {
                    // The first bytes of a request start its clock.
                    let due_ms = self.socket.now().mono_ms + self.app.times.header_ms;
                    self.pacer().request_due_ms = Some(due_ms);
                }
                Next::Again
            }
            Err(ConnectionError::TimedOut) => {
                let next = self.miss_request();
                // If there is more time now, the link knows until when.
                let due_ms = self.socket.deadline_ms();
                self.pacer().request_due_ms = Some(due_ms);
                next
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Answers the first request that is on hold, if all of its head is there.
    async fn answer_next(&mut self) -> Next {
        let now_ms = now().mono_ms;
        let (head, bytes, rest) = match self.first_held() {
            Held::Incomplete => return Next::Receive,
            Held::Refused => {
                return poll_fn(|context| Poll::Ready(self.answer_unread(context))).await;
            }
            Held::Whole(head, bytes, rest) => (head, bytes, rest),
        };
        self.pacer().begin_answer(now_ms);
        if let Err(wait_ms) = self.pacer().admit(now_ms) {
            self.unread = rest;
            return Box::pin(self.answer_too_many(BodyRequest::unwanted(*head, bytes), wait_ms))
                .await;
        }
        // The usual way, with this request alone; what is behind it waits here meanwhile.
        self.unread = Some(Box::new(Unread { bytes, seen: 0 }));
        let next = poll_fn(|context| Poll::Ready(self.answer_unread(context))).await;
        self.unread = rest;
        self.next_behind(next)
    }

    fn first_held(&mut self) -> Held {
        let Some(mut unread) = self.unread.take() else { return Held::Incomplete };
        match Head::decode(&unread.bytes, &mut unread.seen, &self.app.limits) {
            Ok(Decoded::NeedMore) => {
                self.unread = Some(unread);
                Held::Incomplete
            }
            Ok(Decoded::Done(head)) => {
                let behind = unread.bytes.split_off(head.len());
                let bytes = mem::replace(&mut unread.bytes, behind);
                unread.seen = 0;
                let rest = (!unread.bytes.is_empty()).then_some(unread);
                Held::Whole(Box::new(head), bytes, rest)
            }
            Err(_) => {
                self.unread = Some(unread);
                Held::Refused
            }
        }
    }

    /// What comes next, given that bytes may be on hold.
    fn next_behind(&self, next: Next) -> Next {
        match next {
            Next::Receive if self.unread.is_some() => Next::Again,
            Next::Close if self.unread.is_some() => Next::Linger,
            next => next,
        }
    }

    /// Answers a request of a client that asks too often. The connection goes on.
    async fn answer_too_many(&mut self, request: BodyRequest, wait_ms: u64) -> Next {
        let head = &request.head;
        self.requests = self.requests.saturating_add(1);
        self.log_request(Some(head), &request.bytes);
        let end = match self.read_body(&request).await {
            Ok(Body::Refused(status)) => {
                return self.refuse(status, Some(head.on(&request.bytes)));
            }
            Ok(mut body) => body.pending().end(),
            Err(error) => return self.give_up(&error),
        };
        let ending = self.wanted(head).with(end);
        let mut out = Connection::outgoing();
        let response = self.write_too_many(head, ending.persist(), wait_ms, &mut out);
        self.log_answer(&out.bytes, response, &Next::Receive);
        if let Err(failed) = self.send_out(out, self.app.times.write).await {
            return self.give_up_send(&failed);
        }
        self.log_sent();
        self.next_after(ending)
    }

    fn write_too_many(
        &self,
        head: &Head,
        persist: Persist,
        wait_ms: u64,
        out: &mut SendBuf,
    ) -> HeadAt {
        let moment = self.moment();
        let opening = &moment.common.opening;
        let after_secs = wait_ms.div_ceil(1_000).max(1).to_string();
        let response =
            error_page(Status::TOO_MANY_REQUESTS, None, (opening.lines(), &Fields::new()))
                .header("Retry-After", after_secs);
        let head_only = head.method() == Method::Head;
        let written = write_short(&response, opening, persist, head_only, &mut out.bytes);
        let fault = Some(Fault::TooManyRequests);
        let bytes_sent = out.bytes.len() as u64;
        self.app.count(&Added { status: written.status, bytes_sent, fault });
        HeadAt { written, at: 0 }
    }

    /// Has the answer that begins now go at its route's pace.
    pub(super) fn begin_route(&mut self, pace: &Arc<AnswerPace>, read_ms: u64) {
        self.pacer().begin_route(pace, read_ms);
    }

    /// That answer has been sent.
    pub(super) fn end_route(&mut self) {
        if self.is_paced() {
            self.pacer().end_route();
        }
    }

    /// Has the body that comes now come at its route's pace.
    pub(super) fn begin_route_read(&mut self, rate: Rate) {
        let received = self.unread.as_ref().map_or(0, |unread| unread.bytes.len() as u64);
        self.pacer().begin_route_read(rate, now().mono_ms, received);
        self.socket.receive_on_demand();
    }

    /// Sends bytes that have been counted: at once, or at the connection's pace.
    pub(super) async fn send_out(
        &mut self,
        out: Box<SendBuf>,
        write: Patience,
    ) -> Result<(), SendFailed> {
        if self.is_paced() {
            return Box::pin(self.send_paced(out, write)).await;
        }
        self.send_within(out, write, b"").await
    }

    async fn send_paced(
        &mut self,
        mut out: Box<SendBuf>,
        write: Patience,
    ) -> Result<(), SendFailed> {
        if out.is_empty() {
            Connection::put_back(out);
            return Ok(());
        }
        // (What follows has a turn of its own, which the kernel is not to wait for.)
        let bytes = out.take_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let left = (bytes.len() - at) as u64;
            let granted = match self.await_turn(left.min(STEP_BYTES_MAX)).await {
                Ok(granted) => granted,
                Err(error) => return Err(self.fail_paced(SendFailed { error, unsent: 0 }, left)),
            };
            let end = at + usize::try_from(granted).expect("not more than was wanted");
            let mut step = mem::take(&mut out);
            step.bytes.extend_from_slice(&bytes[at..end]);
            if let Err(failed) = self.send_step(step, granted, write).await {
                return Err(self.fail_paced(failed, left - granted));
            }
            out = Connection::outgoing();
            at = end;
        }
        Connection::put_back(out);
        Ok(())
    }

    /// A send at a pace has failed with so many bytes whose turn had not come.
    fn fail_paced(&self, failed: SendFailed, waiting: u64) -> SendFailed {
        self.app.take_back(waiting);
        SendFailed { unsent: failed.unsent + waiting, ..failed }
    }

    /// Sends bytes whose turn has come. Only the time that the peer takes counts against it.
    async fn send_step(
        &mut self,
        step: Box<SendBuf>,
        bytes: u64,
        write: Patience,
    ) -> Result<(), SendFailed> {
        let began_ms = now().mono_ms;
        let patience = self.step_patience(write, began_ms);
        self.socket.set_deadline(began_ms + patience.first_look_ms());
        self.socket.start_send(step);
        self.sent(SendWatch::new(began_ms), patience, b"").await?;
        self.pacer().note_sent(now().mono_ms - began_ms, bytes);
        Ok(())
    }

    /// Sends a part of a file at the connection's pace.
    ///
    /// - `cold`: as in [`Conn::warm`].
    pub(super) async fn send_file_paced(
        &mut self,
        file: &Arc<OpenFile>,
        (mut at, end): (u64, u64),
        cold: Option<&BlockingPool>,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        while at < end {
            let granted = self.await_turn((end - at).min(FILE_STEP_BYTES_MAX)).await?;
            // (A step is shorter than a window.)
            self.warm(file, (at, at + granted), cold, write).await?;
            let before = at;
            let sent = self.send_file_step(file, &mut at, granted, write).await;
            self.count_file(at - before);
            sent?;
        }
        Ok(())
    }

    /// Sends bytes of a file whose turn has come.
    async fn send_file_step(
        &mut self,
        file: &File,
        at: &mut u64,
        bytes: u64,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        let (began_ms, end) = (now().mono_ms, *at + bytes);
        let mut patience = self.step_patience(write, began_ms);
        loop {
            match self.socket.send_file(file, at, end, patience).await {
                Ok(()) => break,
                Err(ConnectionError::TimedOut) => {
                    let granted = self.more_time(Limit::Write, write.silence_ms, 0, b"");
                    let until_ms = granted.ok_or(ConnectionError::TimedOut)?;
                    patience.silence_ms = until_ms.saturating_sub(now().mono_ms);
                }
                Err(error) => return Err(error),
            }
        }
        self.pacer().note_sent(now().mono_ms - began_ms, bytes);
        Ok(())
    }

    /// How slow the peer may be during one step. What it has earned in earlier ones is in the
    /// silence that it may still keep.
    fn step_patience(&mut self, write: Patience, began_ms: u64) -> Patience {
        let until_ms = self.pacer().send_deadline_ms(write, began_ms);
        Patience { silence_ms: until_ms.saturating_sub(began_ms), ..write }
    }

    /// Waits until some of the wanted bytes may be sent, and the answer may begin. Returns how many
    /// may.
    async fn await_turn(&mut self, wanted: u64) -> Result<u64, ConnectionError> {
        let first_byte_at_ms = self.pacer().take_first_byte_at_ms();
        self.pause(first_byte_at_ms, false).await?;
        let grant = self.pacer().grant(now().mono_ms, wanted);
        self.pause(grant.at_ms, false).await?;
        Ok(grant.bytes)
    }

    /// Waits until something may be received. Returns how long that took, in milliseconds.
    ///
    /// - `idle`: as for [`Connection::poll_recv`].
    pub(super) async fn await_reading(&mut self, idle: bool) -> Result<u64, ConnectionError> {
        let Some(pacer) = self.own_pacer() else { return Ok(0) };
        let (at_ms, began_ms) = (pacer.read_at_ms(), now().mono_ms);
        self.pause(at_ms, idle).await?;
        Ok(now().mono_ms - began_ms)
    }

    /// Whether something may be received now; if not, the task is woken when it may.
    pub(super) fn poll_reading(&mut self) -> Poll<Result<(), ConnectionError>> {
        let Some(pacer) = self.own_pacer() else { return Poll::Ready(Ok(())) };
        let at_ms = pacer.read_at_ms();
        while now().mono_ms < at_ms {
            self.socket.set_deadline(at_ms);
            match ready!(self.socket.poll_deadline(false)) {
                ConnectionError::TimedOut => {}
                error => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Until when nothing is to be received; the end of time if something may be.
    pub(super) fn read_pause_ms(&self) -> u64 {
        let at_ms = self.own_pacer().map_or(0, Pacer::read_at_ms);
        if at_ms > 0 && now().mono_ms < at_ms { at_ms } else { u64::MAX }
    }

    /// Counts received bytes. Returns how long nothing more will be received for that: the peer's
    /// time is to be as much longer.
    pub(super) fn charge_read(&mut self, piece: &RecvBuf) -> u64 {
        let now_ms = self.socket.now().mono_ms;
        let bytes = piece.bytes().len() as u64;
        if self.is_paced() { self.pacer().charge_read(now_ms, bytes) } else { 0 }
    }

    /// Waits until then; not longer than the server lets connections be.
    async fn pause(&mut self, until_ms: u64, idle: bool) -> Result<(), ConnectionError> {
        while now().mono_ms < until_ms {
            self.socket.set_deadline(until_ms);
            match poll_fn(|_| self.socket.poll_deadline(idle)).await {
                ConnectionError::TimedOut => {}
                error => return Err(error),
            }
        }
        Ok(())
    }
}

impl BodyRequest {
    /// A request whose body is nobody's.
    fn unwanted(head: Head, bytes: Vec<u8>) -> Self {
        Self { head, bytes, wish: Wish::Nothing }
    }
}
