//! Reads a whole body: in memory while it is short, else from a file.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

use super::{Body, Inside};
use crate::body_channel::{BodyError, Collected};
use crate::spool::{SpoolFailure, SpooledBody};

impl Body {
    /// Reads the whole body. One that is longer than 1 MiB is in a temporary file, from where it is
    /// read when it is used; so is one for which the server has no memory: see
    /// [`BodyPolicy`](gustnado_config::BodyPolicy).
    ///
    /// - `bytes_max`: a longer body is an error, and its rest stays unread. The server's limit
    ///   applies as well.
    ///
    /// # Errors
    /// [`BodyError`]: the body is longer than `bytes_max`, malformed or too slow, or the client has
    /// gone; or there is no memory for it, and no disk.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, BodyError> {
        let bytes_max = bytes_max as u64;
        if self.length().is_some_and(|length| length > bytes_max) {
            return Err(BodyError::TooLarge);
        }
        self.set_spooled();
        let (mut all, mut last) = (SpooledBody::default(), Bytes::new());
        while let Some(collected) = self.collect_next().await.transpose()? {
            if !last.is_empty() {
                all.memory.extend_from_slice(&last);
            }
            match collected {
                Collected::Bytes(piece) if piece.len() as u64 > bytes_max - all.len() => {
                    return Err(BodyError::TooLarge);
                }
                Collected::Bytes(piece) => last = piece,
                Collected::Spill(spool) => {
                    last = Bytes::new();
                    match all.spill(&spool).await {
                        Ok(()) => self.set_released(all.spilled()),
                        // Then it is held, as far as there is memory.
                        Err(SpoolFailure::Full) => self.set_collected(true),
                        Err(SpoolFailure::Lost) => {
                            self.set_collected(true);
                            return Err(BodyError::NoMemory);
                        }
                    }
                }
            }
        }
        // Most bodies arrive in one piece, which needs no copy.
        if all.is_empty() {
            return Ok(last);
        }
        all.memory.extend_from_slice(&last);
        let (bytes, in_file) = (all.len(), all.spilled() > 0);
        let whole = all.finish().await.map_err(|_| BodyError::NoMemory)?;
        if in_file {
            self.set_released(bytes);
        }
        Ok(whole)
    }

    /// Notes that the reader keeps what it takes, and puts it to the disk when it is told to.
    #[doc(hidden)]
    pub fn set_spooled(&self) {
        if let Inside::Live(live) = &self.0 {
            live.parts.channel().set_spooled();
        }
    }

    /// Returns the next bytes of a body that is collected, or an order; `None` at the end.
    #[doc(hidden)]
    pub async fn collect_next(&mut self) -> Option<Result<Collected, BodyError>> {
        poll_fn(|context| self.poll_collect(context)).await
    }

    fn poll_collect(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Collected, BodyError>>> {
        let length = self.length();
        let Inside::Live(live) = &self.0 else {
            return Pin::new(self).poll_next(context).map_ok(Collected::Bytes);
        };
        let channel = live.parts.channel();
        let polled = channel.poll_collect(context);
        if let Poll::Ready(Some(Ok(Collected::Bytes(_)))) = &polled {
            channel.report_progress(length);
        }
        polled
    }
}
