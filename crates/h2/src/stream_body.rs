//! The body of a stream's request, as far as it is here.

use std::sync::Arc;

use bytes::BytesMut;
use gustnado_app::app::App;
use gustnado_http::head::Head;
use gustnado_web::spool::{Spool, SpooledBody};
use gustnado_web::trailers::RequestTrailers;
use gustnado_web::tunnel::{PipeLoss, StreamPipe};

/// The body of a stream's request.
#[derive(Default)]
pub(super) enum StreamBody {
    /// There is none, or all of it was handed on.
    #[default]
    None,
    /// It is gathered, and the handler is called once it is whole.
    Gathered(Box<Gathered>),
    /// A task reads it.
    Read(Box<Queued>),
    /// There is none: these are bytes for a tunnel that is not open yet.
    Early(Vec<u8>),
    /// There is none: a tunnel takes what comes.
    Tunnel(TunnelGuard),
}

/// A request that waits for its body.
pub(super) struct Gathered {
    /// In force when the request came: it is served by those routes, whose gate let it through.
    pub(super) app: Arc<App>,
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
    /// What has come; while a task has that at the disk, what has come since.
    pub(super) body: SpooledBody,
    /// Where it may go; `None` if it has to stay in memory.
    pub(super) spool: Option<Arc<Spool>>,
    pub(super) received: u64,
    pub(super) trailers: Option<RequestTrailers>,
    pub(super) bytes_max: u64,
    pub(super) is_whole: bool,
    /// A task writes it to the disk, or reads it from there.
    pub(super) is_at_disk: bool,
}

/// What a task has not asked for yet.
#[derive(Default)]
pub(super) struct Queued {
    pub(super) bytes: BytesMut,
    pub(super) received: u64,
    pub(super) bytes_max: u64,
    pub(super) is_whole: bool,
    /// The reader waits for bytes, and there are none.
    pub(super) is_awaited: bool,
    /// The client sends none before it is told to go on (RFC 9110 §10.1.1).
    pub(super) expects_continue: bool,
}

impl Gathered {
    /// - `spool`: where the body may go, if it may.
    pub(super) fn new(
        app: Arc<App>,
        head: &Head,
        bytes: &[u8],
        bytes_max: u64,
        spool: Option<Arc<Spool>>,
    ) -> Self {
        Self {
            app,
            head: *head,
            bytes: bytes[..head.len()].to_vec(),
            body: SpooledBody::default(),
            spool,
            received: 0,
            trailers: None,
            bytes_max,
            is_whole: false,
            is_at_disk: false,
        }
    }
}

impl Queued {
    pub(super) fn new(bytes_max: u64, expects_continue: bool) -> Self {
        Self { bytes_max, expects_continue, ..Self::default() }
    }
}

/// The connection's end of a tunnel. Dropping it tells the function that the stream is gone.
pub(super) struct TunnelGuard(Arc<StreamPipe>);

impl TunnelGuard {
    pub(super) fn new(pipe: Arc<StreamPipe>) -> Self {
        Self(pipe)
    }

    pub(super) fn pipe(&self) -> &StreamPipe {
        &self.0
    }

    pub(super) fn shared(&self) -> Arc<StreamPipe> {
        Arc::clone(&self.0)
    }
}

impl Drop for TunnelGuard {
    fn drop(&mut self) {
        self.0.lose(PipeLoss::Gone);
    }
}
