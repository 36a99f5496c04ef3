//! Writes a file to the disk on the thread pool, in steps, so that no worker waits for the disk.

use std::io::{self, Write};
use std::mem;
use std::path::Path;

use bytes::Bytes;
use gustnado_tasks::yield_now;
use tempfile::NamedTempFile;

use super::FormError;
use crate::disk_job::{JobFailure, run_on};
use crate::route_cache::RouteCache;

/// Bytes that are gathered before they are written.
const STEP_BYTES: usize = 256 << 10;

/// A temporary file that is being written. Dropping it deletes the file.
pub(super) struct Spill {
    file: Option<NamedTempFile>,
    gathered: Vec<Bytes>,
    bytes: usize,
}

impl Spill {
    /// Creates the file for the bytes that were gathered so far.
    pub(super) async fn start(
        folder: Option<&Path>,
        gathered: Vec<Bytes>,
    ) -> Result<Self, FormError> {
        let folder = folder.map(Path::to_path_buf);
        let made = on_pool(move || match folder {
            Some(folder) => tempfile::Builder::new().prefix("upload-").tempfile_in(folder),
            None => tempfile::Builder::new().prefix("upload-").tempfile(),
        });
        let file = Some(made.await??);
        let bytes = gathered.iter().map(Bytes::len).sum();
        Ok(Self { file, gathered, bytes })
    }

    /// Returns how many bytes are in memory.
    pub(super) fn gathered(&self) -> usize {
        self.bytes
    }

    /// Adds bytes, and writes once there are enough.
    pub(super) async fn push(&mut self, bytes: Bytes) -> Result<(), FormError> {
        self.bytes += bytes.len();
        self.gathered.push(bytes);
        if self.bytes >= STEP_BYTES { self.write().await } else { Ok(()) }
    }

    /// Writes the remaining bytes, and returns the file.
    pub(super) async fn finish(mut self) -> Result<NamedTempFile, FormError> {
        self.write().await?;
        Ok(self.file.expect("it is taken only while it is written"))
    }

    async fn write(&mut self) -> Result<(), FormError> {
        let mut file = self.file.take().expect("it is taken only while it is written");
        let pieces = mem::take(&mut self.gathered);
        self.bytes = 0;
        let written = on_pool(move || {
            pieces.iter().try_for_each(|piece| file.write_all(piece))?;
            Ok::<_, io::Error>(file)
        });
        self.file = Some(written.await??);
        Ok(())
    }
}

/// Runs `call`, which may wait for the disk, on the server's thread pool. On a thread without a
/// server it runs here, and then yields to other tasks.
pub(super) async fn on_pool<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FormError> {
    let Some(pool) = RouteCache::pool() else {
        let done = call();
        yield_now().await;
        return Ok(done);
    };
    run_on(&pool, call).await.map_err(|failure| match failure {
        JobFailure::Busy => FormError::Busy,
        JobFailure::Panicked => io::Error::other("writing a file panicked").into(),
    })
}
