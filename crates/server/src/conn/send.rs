//! Sending what does not leave with the turn's buffer, and giving slow peers more time.

use gustnado_tasks::{Connection, ConnectionError, Patience, SendBuf};
use gustnado_tls::{SendFailed, Socket};

use super::Conn;
use super::limit::more_ms;
use crate::hooks::Limit;
use gustnado_files::Segment;

/// Most bytes of a file that are sent in one step at a pace.
const FILE_STEP_BYTES_MAX: u64 = 1 << 20;

/// How a send goes: by the socket's pace, whatever that is, or on with one that has begun.
enum Way {
    AtPace(Box<SendBuf>),
    AtOnce(Box<SendBuf>),
    On,
}

impl Conn {
    /// Takes over bytes to send, and sets the time by which the peer must have taken them.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    pub(super) fn start_send(&mut self, out: Box<SendBuf>) {
        self.socket.set_deadline(self.socket.now().mono_ms + self.app.times.write_look_ms);
        self.socket.start_send(out);
    }

    /// Sends what [`Conn::start_send`] took over: at once, or at the connection's pace.
    pub(super) async fn send_turn(&mut self) -> Result<(), SendFailed> {
        let write = self.app.times.write;
        // (One that only met a route with a pace sends as ever.)
        if self.app.pace().is_some()
            && let Some(out) = self.socket.take_unsent()
        {
            return self.send_out(out, write).await;
        }
        self.send_on().await
    }

    /// Goes on with a send for which the peer has needed more than its first deadline.
    pub(super) async fn send_on(&mut self) -> Result<(), SendFailed> {
        self.send(Way::On, self.app.times.write, b"").await
    }

    /// Sends bytes that have been counted: at once, or at the connection's pace.
    pub(super) async fn send_out(
        &mut self,
        out: Box<SendBuf>,
        write: Patience,
    ) -> Result<(), SendFailed> {
        self.send(Way::AtPace(out), write, b"").await
    }

    /// Sends bytes now. They have been counted.
    ///
    /// - `target`: of the request that is responded to, or empty.
    pub(super) async fn send_within(
        &mut self,
        out: Box<SendBuf>,
        patience: Patience,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        self.send(Way::AtOnce(out), patience, target).await
    }

    async fn send(
        &mut self,
        way: Way,
        patience: Patience,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        let Self { socket, app, requests, .. } = self;
        let numbers = (patience.silence_ms, 0);
        let mut more = |_| more_ms(app, *requests, Limit::Write, numbers, target);
        let sent = match way {
            Way::AtPace(out) => socket.send(out, patience, &mut more).await,
            Way::AtOnce(out) => socket.send_at_once(out, patience, &mut more).await,
            Way::On => socket.send_on(patience, &mut more).await,
        };
        if let Err(failed) = &sent {
            // What was counted when it was written, and has not left.
            app.take_back(failed.unsent);
        }
        sent
    }

    /// Sends bytes of a response, and counts them.
    ///
    /// - `content_bytes`: how many of them, from the last one on, are content.
    pub(super) async fn send_content(
        &mut self,
        out: Box<SendBuf>,
        content_bytes: u64,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        self.app.count_response(0, out.len() as u64);
        let sent = self.send_out(out, write).await;
        self.log_content(match &sent {
            Ok(()) => content_bytes,
            Err(failed) => content_bytes.saturating_sub(failed.unsent),
        });
        Ok(sent?)
    }

    /// Sends a part of a response's content.
    pub(super) async fn send_segment(
        &mut self,
        segment: Segment,
        write: Patience,
    ) -> Result<(), ConnectionError> {
        match segment {
            Segment::Bytes(bytes) => {
                let len = bytes.len() as u64;
                let mut out = Connection::outgoing();
                out.bytes = bytes;
                self.send_content(out, len, write).await?;
            }
            Segment::File { file, offset, len, cold } => {
                let (mut at, mut granted, mut patience) = (offset, offset, write);
                let end = offset.saturating_add(len);
                while at < end {
                    if at == granted {
                        granted += self.await_file_turn(end - at).await?;
                    }
                    let before = at;
                    let until = self.warm(&file, (at, granted), cold.as_ref(), patience).await?;
                    let Self { socket, app, requests, .. } = self;
                    let mut extended_ms = None;
                    let mut more = |sent| {
                        let numbers = (write.silence_ms, before - offset + sent);
                        extended_ms = more_ms(app, *requests, Limit::Write, numbers, b"");
                        extended_ms
                    };
                    let sent = socket.send_file(&file, &mut at, until, patience, &mut more).await;
                    // (What was granted holds for the rest of it.)
                    patience.silence_ms = extended_ms.unwrap_or(patience.silence_ms);
                    self.count_file(at - before);
                    sent?;
                }
            }
        }
        Ok(())
    }

    /// Waits until bytes of a file may be sent. Returns how many may.
    async fn await_file_turn(&mut self, wanted: u64) -> Result<u64, ConnectionError> {
        if !self.socket.is_paced() {
            return Ok(wanted);
        }
        Box::pin(Socket::await_turn(&mut self.socket, wanted.min(FILE_STEP_BYTES_MAX))).await
    }

    /// Counts bytes of a file that have left.
    fn count_file(&mut self, bytes: u64) {
        self.app.count_response(0, bytes);
        self.log_content(bytes);
    }
}
