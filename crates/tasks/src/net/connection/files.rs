//! Sends files: by the kernel, in steps between which other tasks have their turn.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::task::Poll;

use super::Connection;
use crate::exec::task::yield_now;
use crate::exec::waits::WaitsOn;
use crate::net::connection_error::ConnectionError;
use crate::net::idleness::Idleness;
use crate::net::progress_timeout::ProgressTimeout;
use crate::net::send_step::send_step;
use crate::net::send_watch::SendWatch;

impl Connection {
    /// Sends the bytes of `file` from `offset` to `end`, never holding more than a step of them.
    ///
    /// - `offset`: moves along, so that a send that was too slow can be taken up again.
    ///
    /// # Errors
    /// [`ConnectionError`]; `FileTruncated` if the file ends before that.
    pub async fn send_file(
        &mut self,
        file: &File,
        offset: &mut u64,
        end: u64,
        patience: ProgressTimeout,
    ) -> Result<(), ConnectionError> {
        let start = *offset;
        let mut watch = SendWatch::new(self.now.mono_ms);
        self.expect_file_step(&watch, patience, 0);
        while *offset < end {
            let step = send_step(usize::try_from(end - *offset).unwrap_or(usize::MAX));
            let sent = poll_fn(|_| {
                self.attempt(WaitsOn::SocketWrite, Idleness::Busy, |reactor, io, _, ctx| {
                    if !ctx.may_operate() {
                        return Poll::Pending;
                    }
                    let sent = reactor.sendfile(io, file.as_fd(), offset, step, ctx.token());
                    if let Poll::Ready(Ok(bytes)) = &sent {
                        ctx.charge_bytes(*bytes);
                    }
                    if *offset >= end {
                        reactor.file_sent(io);
                    }
                    sent
                })
            })
            .await;
            match sent {
                Ok(0) => return Err(ConnectionError::FileTruncated),
                Ok(_) => {}
                Err(ConnectionError::TimedOut) => {
                    let of_file = Some((end - start, end - *offset));
                    if !self.look_at_send(&mut watch, patience, of_file) {
                        return Err(ConnectionError::TimedOut);
                    }
                    continue;
                }
                Err(ConnectionError::Broken(error))
                    if error.kind() == io::ErrorKind::Unsupported =>
                {
                    *offset += self.copy_file(file, *offset, step, patience).await?;
                }
                Err(error) => return Err(error),
            }
            if *offset < end {
                watch.note_progress(self.now.mono_ms);
                self.expect_file_step(&watch, patience, *offset - start);
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Sets when a step of a file is looked at, should it take long.
    fn expect_file_step(&mut self, watch: &SendWatch, patience: ProgressTimeout, sent: u64) {
        let now_ms = self.now.mono_ms;
        let until_ms = patience.deadline_ms(watch.began_ms(), now_ms, sent);
        self.set_deadline(until_ms.min(now_ms + patience.first_look_ms()));
    }

    /// Reads a step of a file and sends it.
    async fn copy_file(
        &mut self,
        file: &File,
        at: u64,
        step: usize,
        patience: ProgressTimeout,
    ) -> Result<u64, ConnectionError> {
        let mut out = Self::outgoing();
        out.bytes.resize(step, 0);
        let read = file.read_at(&mut out.bytes, at).map_err(ConnectionError::Broken)?;
        out.bytes.truncate(read);
        if read == 0 {
            return Err(ConnectionError::FileTruncated);
        }
        self.start_send(out);
        let mut watch = SendWatch::new(self.now.mono_ms);
        self.set_deadline(self.now.mono_ms + patience.first_look_ms());
        loop {
            match poll_fn(|_| self.poll_sent()).await {
                Ok(()) => return Ok(read as u64),
                Err(ConnectionError::TimedOut) if self.look_at_send(&mut watch, patience, None) => {
                }
                Err(error) => return Err(error),
            }
        }
    }
}
