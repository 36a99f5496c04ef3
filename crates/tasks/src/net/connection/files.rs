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
use crate::net::send_watch::SendWatch;

/// Most bytes handed to one `sendfile`, after which other tasks have their turn: whole pages within
/// one packet of loopback. More of them at once let a reader of many connections run dry and sleep,
/// and each packet wakes it: four times the CPU for 256 KB (docs/results/large-files.md).
const FILE_STEP: usize = 60 << 10;
/// What is left after a step goes with it if it is less than this.
const FILE_REST: usize = 8 << 10;
/// Most bytes read at once where `sendfile` cannot be used.
const COPY_STEP: usize = 64 << 10;

/// The bytes of the next step, of those that are left.
fn step_of(left: u64) -> usize {
    usize::try_from(left).ok().filter(|left| *left < FILE_STEP + FILE_REST).unwrap_or(FILE_STEP)
}

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
            let step = step_of(end - *offset);
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
                    let step = step.min(COPY_STEP);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_is_much_larger_than_a_packet_and_no_last_one_is_small() {
        for left in [1, 4_096, 61_440, 65_536, 69_631] {
            assert_eq!(step_of(left) as u64, left, "all of {left}");
        }
        for left in [69_632, 262_144, 1 << 20, u64::MAX] {
            assert_eq!(step_of(left), 61_440, "of {left}");
            assert!(left - 61_440 >= 8_192, "of {left}");
        }
    }
}
