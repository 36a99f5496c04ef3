//! Content of files that may not be in memory: a thread of the folder's pool reads it, while the
//! connection serves its other streams.

use std::sync::Arc;
use std::time::Duration;

use gustnado_files::warmth::{WINDOW_BYTES, warm};
use gustnado_files::{OpenFile, Segment};
use gustnado_http::h2::{ErrorCode, StreamId};
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{BlockingPool, sleep, timeout};

use crate::Http2Conn;
use crate::active::Rest;
use crate::outbox::{Delivered, DiskOutcome, StreamOutbox};

/// How long to wait before the pool is tried again after it was full.
const RETRY: Duration = Duration::from_millis(10);

impl Http2Conn {
    /// Has a task bring the next bytes of a stream's file into memory. The disk may be as slow as a
    /// client.
    pub(super) fn await_disk(&mut self, id: StreamId) {
        let app = Arc::clone(&self.app);
        let Some(stream) = self.core.stream(id) else { return };
        let active = &mut *stream.state;
        let Some(Rest::Segments(segments)) = &active.rest else { return };
        let Some(Segment::File { file, offset, len, cold: Some(pool) }) = segments.front() else {
            return;
        };
        let (file, pool, at) = (Arc::clone(file), pool.clone(), *offset);
        let until = at.saturating_add((*len).min(WINDOW_BYTES));
        let patience = active.write_timeout(app.times.write);
        let wait = Duration::from_millis(patience.silence_ms);
        active.is_cold = true;
        let job = |outbox: Arc<StreamOutbox>| async move {
            let is_read = timeout(wait, is_read_by(&pool, &file, (at, until))).await;
            let until = is_read.filter(|is_read| *is_read).map(|_| until);
            outbox.deliver(Delivered::OfDisk(Box::new(DiskOutcome::Read(until))));
        };
        self.start_task(id, job, &app);
    }

    /// Goes on with a file that the disk is done with.
    ///
    /// - `until`: up to where it was read; `None`: the disk did not respond in time.
    pub(super) fn after_read(&mut self, id: StreamId, until: Option<u64>) {
        let Some(stream) = self.core.stream(id) else { return };
        stream.state.is_cold = false;
        if let Some(until) = until {
            stream.state.read_until = until;
            return;
        }
        let fault = Some(Fault::FileCut);
        self.app.count(&Added { fault, ..Added::default() });
        self.reset(id, ErrorCode::InternalError);
    }
}

/// Reads a window of a file on a thread of the pool, once there is one. Returns whether it did.
async fn is_read_by(pool: &BlockingPool, file: &Arc<OpenFile>, (at, until): (u64, u64)) -> bool {
    loop {
        let file = Arc::clone(file);
        match pool.run(move || warm(&file, at, until)).await {
            // A call that panicked has already reported why.
            Ok(done) => return done.is_some(),
            Err(_) => sleep(RETRY).await,
        }
    }
}
