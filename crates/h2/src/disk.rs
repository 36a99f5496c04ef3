//! Bodies at the disk: a task writes what is here of one, or reads all of it.

use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use gustnado_app::app::App;
use gustnado_http::h2::StreamId;
use gustnado_http::status::Status;
use gustnado_tasks::timeout;
use gustnado_web::spool::{SpoolFailure, SpooledBody};

use crate::Http2Conn;
use crate::outbox::{Delivered, DiskOutcome, StreamOutbox};
use crate::stream_body::{Gathered, StreamBody};

/// How long the disk may take for a part of a body.
const DISK_MAX: Duration = Duration::from_secs(20);

impl Http2Conn {
    /// Writes what is here of a body.
    pub(super) fn start_spill(&mut self, id: StreamId, app: &App) {
        let Some(gathered) = self.gathered(id) else { return };
        let Some(spool) = gathered.spool.clone() else { return };
        let mut body = mem::take(&mut gathered.body);
        gathered.is_at_disk = true;
        let job = |outbox: Arc<StreamOutbox>| async move {
            let written = timeout(DISK_MAX, body.spill(&spool)).await;
            let written = written.map(|result| (body, result));
            outbox.deliver(Delivered::OfDisk(Box::new(DiskOutcome::Written(written))));
        };
        self.start_task(id, job, app);
    }

    /// Makes one piece of a whole body, most of which is on the disk.
    pub(super) fn start_finish(&mut self, id: StreamId, app: &App) {
        let Some(gathered) = self.gathered(id) else { return };
        let body = mem::take(&mut gathered.body);
        gathered.is_at_disk = true;
        let job = |outbox: Arc<StreamOutbox>| async move {
            let whole = timeout(DISK_MAX, body.finish()).await.and_then(Result::ok);
            outbox.deliver(Delivered::OfDisk(Box::new(DiskOutcome::Whole(whole))));
        };
        self.start_task(id, job, app);
    }

    /// Goes on with what the disk is done with.
    pub(super) fn after_disk(
        &mut self,
        id: StreamId,
        outcome: DiskOutcome,
        app: &App,
        context: &mut Context<'_>,
    ) {
        if let DiskOutcome::Read(until) = outcome {
            return self.after_read(id, until);
        }
        let now_ms = self.socket.now().mono_ms;
        let Some(gathered) = self.gathered(id) else { return };
        gathered.is_at_disk = false;
        match outcome {
            DiskOutcome::Written(Some((body, Ok(())))) => gathered.take_back(body),
            DiskOutcome::Written(Some((body, Err(SpoolFailure::Full)))) => {
                gathered.take_back(body);
                gathered.spool = None;
            }
            DiskOutcome::Whole(Some(whole)) => {
                if let Some(stream) = self.core.stream(id) {
                    stream.state.memory.hold.settle(0, now_ms);
                }
                return self.respond_to_gathered(id, whole, context);
            }
            _ => return self.refuse_stream(id, Status::SERVICE_UNAVAILABLE, app),
        }
        if gathered.is_whole {
            self.complete(id, app, context);
        } else {
            self.admit(id, app, context);
        }
    }

    fn gathered(&mut self, id: StreamId) -> Option<&mut Gathered> {
        match &mut self.core.stream(id)?.state.incoming {
            StreamBody::Gathered(gathered) => Some(gathered),
            _ => None,
        }
    }
}

impl Gathered {
    /// Takes the body back from its task, in front of what has come meanwhile.
    fn take_back(&mut self, mut body: SpooledBody) {
        body.memory.extend_from_slice(&self.body.memory);
        self.body = body;
    }
}
