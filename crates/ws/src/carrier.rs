//! A stream of HTTP/2 that carries a client's WebSocket.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_client::ClientResponseBody;
use gustnado_tasks::ProgressTimeout;
use gustnado_web::tunnel::{PipeConnection, PipeLoss, PipeOutput, StreamPipe};

/// Received bytes of a stream that wait for their reader. The window of the stream bounds the rest.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// A stream of HTTP/2 as a tunnel: the bodies of a request and of its response.
pub(crate) struct BodyTunnel {
    pipe: Arc<StreamPipe>,
    pump: Arc<PumpState>,
}

/// What wakes the task that carries the bytes of a stream.
#[derive(Default)]
struct PumpState {
    waker: Mutex<Option<Waker>>,
    /// Nothing more is sent: the tunnel was closed or cut.
    is_over: AtomicBool,
}

impl PipeConnection for PumpState {
    fn wake(&self, _stream: u32) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.inspect(Waker::wake_by_ref);
    }
}

impl PumpState {
    fn wait(&self, context: &Context<'_>) {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }
}

/// What a tunnel sends, as the body of a request.
pub(crate) struct TunnelSource(BodyTunnel);

impl BodyTunnel {
    /// Returns it with the body of the request that opens it.
    ///
    /// - `write`: how slowly the server may take bytes.
    pub(crate) fn new(write: ProgressTimeout) -> (Self, TunnelSource) {
        let pump = Arc::<PumpState>::default();
        let connection: Arc<dyn PipeConnection> = Arc::<PumpState>::clone(&pump);
        let pipe = StreamPipe::new(None, WAITING_BYTES_MAX / 2, (connection, 0), write);
        let source = TunnelSource(Self { pipe: Arc::clone(&pipe), pump: Arc::clone(&pump) });
        (Self { pipe, pump }, source)
    }

    /// Returns the tunnel's end of it.
    pub(crate) fn pipe(&self) -> Arc<StreamPipe> {
        Arc::clone(&self.pipe)
    }

    /// Carries bytes until the tunnel is closed, or the stream is over.
    pub(crate) async fn run(self, mut body: ClientResponseBody) {
        let (mut waiting, mut is_finished) = (0, false);
        std::future::poll_fn(|context| {
            self.pump.wait(context);
            loop {
                waiting -= self.pipe.take_taken().min(waiting);
                if is_finished {
                    break self.poll_discard();
                }
                if self.pump.is_over.load(Ordering::Relaxed) {
                    // What was sent before still leaves.
                    break body.poll_sent(context).map(drop);
                }
                let polled = if waiting < WAITING_BYTES_MAX {
                    Pin::new(&mut body).poll_next(context)
                } else if let Poll::Ready(Err(error)) = body.poll_sent(context) {
                    Poll::Ready(Some(Err(error)))
                } else {
                    Poll::Pending
                };
                match polled {
                    Poll::Ready(Some(Ok(bytes))) => {
                        waiting += bytes.len();
                        self.pipe.put(&bytes);
                    }
                    Poll::Ready(None) => {
                        is_finished = true;
                        self.pipe.finish();
                    }
                    Poll::Ready(Some(Err(_))) => {
                        self.pipe.lose(PipeLoss::Gone);
                        break Poll::Ready(());
                    }
                    Poll::Pending if self.pump.is_over.load(Ordering::Relaxed) => {}
                    Poll::Pending => break Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Drops what is sent behind the end of the stream. It is ready when the tunnel is closed.
    fn poll_discard(&self) -> Poll<()> {
        loop {
            match self.pipe.output(usize::MAX) {
                PipeOutput::Bytes(_) | PipeOutput::Shut => {}
                PipeOutput::Nothing => return Poll::Pending,
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl Stream for TunnelSource {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let BodyTunnel { pipe, pump } = &self.0;
        pump.wait(context);
        match pipe.output(usize::MAX) {
            PipeOutput::Bytes(bytes) => Poll::Ready(Some(Ok(bytes))),
            PipeOutput::Nothing => Poll::Pending,
            PipeOutput::Shut => Poll::Ready(None),
            PipeOutput::Close { .. } => {
                pump.is_over.store(true, Ordering::Relaxed);
                Poll::Ready(None)
            }
            PipeOutput::Cut | PipeOutput::Failed => {
                pump.is_over.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
        }
    }
}
