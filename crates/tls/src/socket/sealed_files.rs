//! Files over TLS: their bytes have to be read to be sealed.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use gustnado_tasks::{
    Connection, ConnectionError, ProgressTimeout, SendWatch, send_step, yield_now,
};

use super::Socket;
use super::sealed::{SealedSend, broken, charged};
use super::sending::MoreTime;
use crate::records::CONTENT_BYTES_MAX;

/// A reader that takes longer for a step gets the next ones as single records.
const SLOW_MS: u64 = 100;

thread_local! {
    /// What this worker reads files into.
    static STEP: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Socket {
    /// Reads and seals bytes of a file, and starts to send them. Returns how many.
    fn start_file_step(
        &mut self,
        file: &File,
        at: u64,
        step: usize,
    ) -> Result<usize, ConnectionError> {
        STEP.with_borrow_mut(|bytes| {
            bytes.resize(bytes.len().max(step), 0);
            let read = file.read_at(&mut bytes[..step], at).map_err(ConnectionError::Broken)?;
            if read == 0 {
                return Err(ConnectionError::FileTruncated);
            }
            let (connection, sealed) = self.sealed();
            let now_ms = connection.now().mono_ms;
            let mut out = Connection::outgoing_for_step();
            out.bytes.extend_from_slice(&sealed.held.take_records());
            let record_bytes = sealed.sizes.next(now_ms, step);
            sealed.session.seal(&bytes[..read], record_bytes, &mut out.bytes).map_err(broken)?;
            charged(&mut out);
            sealed.sends = SealedSend::Records;
            connection.start_send(out);
            Ok(read)
        })
    }

    /// Sends bytes of a file, step by step: they have to be read to be sealed.
    pub(super) async fn send_file_sealed(
        &mut self,
        file: &File,
        at: &mut u64,
        end: u64,
        patience: ProgressTimeout,
        more: MoreTime<'_>,
    ) -> Result<(), ConnectionError> {
        let mut is_slow = false;
        while *at < end {
            let left = usize::try_from(end - *at).unwrap_or(usize::MAX);
            let step = if is_slow { left.min(CONTENT_BYTES_MAX) } else { send_step(left) };
            let read = self.start_file_step(file, *at, step)?;
            self.refresh_now();
            let began_ms = self.now().mono_ms;
            self.set_deadline(began_ms.saturating_add(patience.first_look_ms()));
            self.sent(SendWatch::new(began_ms), patience, &mut *more).await?;
            *at += read as u64;
            // What a slow reader has not taken yet is held here, and not in the kernel's cache.
            is_slow = self.now().mono_ms.saturating_sub(began_ms) > SLOW_MS;
            if *at < end {
                yield_now().await;
            }
        }
        Ok(())
    }
}
