//! Sends what does not leave with the turn's buffer, and extends the time of slow peers.

use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, SendBuf};
use gustnado_tls::{SendFailed, Socket};

use super::{Conn, NextStep};
use gustnado_app::hooks::Limit;
use gustnado_files::Segment;

/// The most bytes of a file in one step at a pace.
const FILE_STEP_BYTES_MAX: u64 = 1 << 20;

/// How bytes are sent: at the socket's pace, at once, or by continuing a send that has begun.
enum SendMode {
    AtPace(Box<SendBuf>),
    AtOnce(Box<SendBuf>),
    Continue,
}

impl Conn {
    /// Takes over bytes to send, and sets the deadline of the peer's first progress.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    pub(super) fn start_send(&mut self, mut out: Box<SendBuf>) {
        self.socket.set_deadline(self.socket.now().mono_ms + self.app.times.write_look_ms);
        if out.is_large() {
            self.charge(&mut out);
        }
        self.socket.start_send(out);
    }

    /// Returns what comes next after a failed send: a first deadline is extended as long as the
    /// peer makes progress, anything else closes.
    #[cold]
    pub(super) fn after_failed_send(&mut self, error: ConnectionError) -> NextStep {
        match error {
            ConnectionError::TimedOut => NextStep::SendOn,
            error => {
                self.take_back(self.socket.unsent_bytes());
                self.give_up(&error)
            }
        }
    }

    /// Sends what [`Conn::start_send`] took over, at the connection's pace if it has one.
    pub(super) async fn send_turn(&mut self) -> Result<(), SendFailed> {
        let write = self.app.times.write;
        // A socket that only had a route with a pace sends its other responses at once.
        if self.app.pace().is_some()
            && let Some(out) = self.socket.take_unsent()
        {
            return self.send_out(out, write).await;
        }
        self.send_on().await
    }

    /// Continues a send that has passed its first deadline.
    pub(super) async fn send_on(&mut self) -> Result<(), SendFailed> {
        self.send(SendMode::Continue, self.app.times.write, b"").await
    }

    /// Sends bytes that were already counted, at the connection's pace if it has one.
    pub(super) async fn send_out(
        &mut self,
        mut out: Box<SendBuf>,
        write: ProgressTimeout,
    ) -> Result<(), SendFailed> {
        if out.is_large() {
            self.charge(&mut out);
        }
        self.send(SendMode::AtPace(out), write, b"").await
    }

    /// Sends bytes at once that were already counted.
    ///
    /// - `target`: of the request, or empty.
    pub(super) async fn send_within(
        &mut self,
        out: Box<SendBuf>,
        patience: ProgressTimeout,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        self.send(SendMode::AtOnce(out), patience, target).await
    }

    async fn send(
        &mut self,
        mode: SendMode,
        patience: ProgressTimeout,
        target: &[u8],
    ) -> Result<(), SendFailed> {
        let Self { socket, app, requests, .. } = self;
        let numbers = (patience.silence_ms, 0);
        let mut extend = |_| app.more_ms(*requests, Limit::Write, numbers, target);
        let sent = match mode {
            SendMode::AtPace(out) => socket.send(out, patience, &mut extend).await,
            SendMode::AtOnce(out) => socket.send_at_once(out, patience, &mut extend).await,
            SendMode::Continue => socket.send_on(patience, &mut extend).await,
        };
        match &sent {
            Ok(()) => self.record_sent(),
            Err(failed) => self.take_back(failed.unsent),
        }
        sent
    }

    /// Sends bytes of a response, and counts them.
    ///
    /// - `content_bytes`: how many of the last bytes are content.
    pub(super) async fn send_content(
        &mut self,
        out: Box<SendBuf>,
        content_bytes: u64,
        write: ProgressTimeout,
    ) -> Result<(), ConnectionError> {
        self.count_more(out.len() as u64, content_bytes);
        Ok(self.send_out(out, write).await?)
    }

    /// Sends a part of a response's content.
    pub(super) async fn send_segment(
        &mut self,
        segment: Segment,
        write: ProgressTimeout,
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
                        extended_ms = app.more_ms(*requests, Limit::Write, numbers, b"");
                        extended_ms
                    };
                    let sent = socket.send_file(&file, &mut at, until, patience, &mut more).await;
                    // Granted time holds for the rest of the file: the hook is not called for each
                    // window.
                    patience.silence_ms = extended_ms.unwrap_or(patience.silence_ms);
                    self.count_more(at - before, at - before);
                    sent?;
                }
            }
        }
        Ok(())
    }

    /// Waits until bytes of a file may be sent. Returns how many.
    async fn await_file_turn(&mut self, wanted: u64) -> Result<u64, ConnectionError> {
        if !self.socket.is_paced() {
            return Ok(wanted);
        }
        Box::pin(Socket::await_turn(&mut self.socket, wanted.min(FILE_STEP_BYTES_MAX))).await
    }

    /// Charges a send for as long as its bytes are held. Where sends hold much, it may be cut.
    #[cold]
    #[inline(never)]
    fn charge(&self, out: &mut SendBuf) {
        self.app.charge_send(out, &self.socket);
    }
}
