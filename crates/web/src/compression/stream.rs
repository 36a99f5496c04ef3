//! Content that is compressed while it is sent.
//!
//! Each step takes less than 100 microseconds of the worker's time, and longer pieces are
//! compressed by the blocking pool. What a stream has produced is flushed when it has nothing more
//! at the moment: an event is at the client as soon as without compression.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_compress::{BodyEncoder, CompressionCounts, EncodeError, Flush};
use gustnado_tasks::{BlockingPool, Charge};

use crate::response::{Content, Failed, Streamed};

/// Bytes that one job of the pool compresses.
const JOB_BYTES: usize = 256 << 10;
/// Compressed bytes that are sent without waiting for more.
const PIECE_BYTES: usize = 8 << 10;
/// Bytes that are compressed on the worker where the pool has no place.
const REFUSED_BYTES: usize = 512;

/// Stream of compressed pieces.
pub(super) struct Compressing {
    source: PieceSource,
    /// `None` while a job of the pool has it.
    encoder: Option<BodyEncoder>,
    _charge: Charge,
    job: Option<EncodingJob>,
    pool: BlockingPool,
    step_bytes_max: usize,
    /// The rest of a piece that is compressed in parts.
    rest: Bytes,
    out: Vec<u8>,
    /// The encoder holds bytes that the client could use.
    is_unflushed: bool,
    has_ended: bool,
    counts: Arc<CompressionCounts>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Drop for Compressing {
    fn drop(&mut self) {
        self.counts.add_compression(self.bytes_in, self.bytes_out);
    }
}

/// Content before it is compressed.
enum PieceSource {
    Stream(Streamed),
    /// It was taken over by `rest`.
    Ended,
}

/// An encoder with its input, which a job takes and gives back with the output.
type SharedEncoder = Arc<Mutex<Option<(BodyEncoder, Bytes, Vec<u8>)>>>;

struct EncodingJob {
    shared: SharedEncoder,
    running: Pin<Box<dyn Future<Output = Result<bool, ()>> + Send>>,
}

impl Compressing {
    /// - `content`: bytes or a stream.
    /// - `step_bytes_max`: bytes that the worker may compress at once.
    pub(super) fn new(
        content: Content,
        (encoder, charge): (BodyEncoder, Charge),
        step_bytes_max: usize,
        (pool, counts): (BlockingPool, Arc<CompressionCounts>),
    ) -> Self {
        let (source, rest) = match content {
            Content::Stream(streamed) => (PieceSource::Stream(streamed), Bytes::new()),
            Content::Bytes(bytes) => (PieceSource::Ended, bytes),
            _ => (PieceSource::Ended, Bytes::new()),
        };
        Self {
            source,
            encoder: Some(encoder),
            _charge: charge,
            job: None,
            pool,
            step_bytes_max,
            rest,
            out: Vec::new(),
            is_unflushed: false,
            has_ended: false,
            counts,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Waits for the job of the pool, if there is one.
    fn poll_job(&mut self, context: &mut Context<'_>) -> Poll<Result<(), EncodeError>> {
        let Some(job) = &mut self.job else { return Poll::Ready(Ok(())) };
        let outcome = ready!(job.running.as_mut().poll(context));
        let given = job.shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.job = None;
        let Some((encoder, input, out)) = given else { return Poll::Ready(Err(EncodeError)) };
        self.encoder = Some(encoder);
        self.out = out;
        Poll::Ready(match outcome {
            Ok(true) => {
                self.bytes_in += input.len() as u64;
                Ok(())
            }
            Ok(false) => Err(EncodeError),
            // No thread is free: a little of it is done here.
            Err(()) => {
                self.counts.add_refused();
                let mut whole = input;
                let here = whole.split_to(REFUSED_BYTES.min(whole.len()));
                self.rest = [&*whole, &*self.rest].concat().into();
                self.encode(&here, Flush::No)
            }
        })
    }

    fn encode(&mut self, input: &[u8], flush: Flush) -> Result<(), EncodeError> {
        let encoder = self.encoder.as_mut().ok_or(EncodeError)?;
        encoder.encode(input, flush, &mut self.out)?;
        self.bytes_in += input.len() as u64;
        self.is_unflushed = flush == Flush::No;
        Ok(())
    }

    /// Has the pool compress the next part of `rest`.
    fn start_job(&mut self) {
        let Some(encoder) = self.encoder.take() else { return };
        let input = self.rest.split_to(JOB_BYTES.min(self.rest.len()));
        let job = (encoder, input, std::mem::take(&mut self.out));
        let shared: SharedEncoder = Arc::new(Mutex::new(Some(job)));
        let (pool, own) = (self.pool.clone(), Arc::clone(&shared));
        let running = Box::pin(async move {
            let call = move || {
                let mut given = own.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((encoder, input, out)) = &mut *given else { return false };
                encoder.encode(input, Flush::No, out).is_ok()
            };
            pool.run(call).await.map(|done| done == Some(true)).map_err(|_| ())
        });
        self.is_unflushed = true;
        self.job = Some(EncodingJob { shared, running });
    }

    /// Returns the compressed bytes that are ready.
    fn take_out(&mut self) -> Poll<Option<Result<Bytes, Failed>>> {
        self.bytes_out += self.out.len() as u64;
        Poll::Ready(Some(Ok(std::mem::take(&mut self.out).into())))
    }

    fn fail(&mut self) -> Poll<Option<Result<Bytes, Failed>>> {
        self.has_ended = true;
        self.out = Vec::new();
        Poll::Ready(Some(Err(Failed)))
    }

    /// Returns the next piece of the content.
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        match &mut self.source {
            _ if !self.rest.is_empty() => Poll::Ready(Some(Ok(std::mem::take(&mut self.rest)))),
            PieceSource::Stream(streamed) => streamed.poll_next(context),
            PieceSource::Ended => Poll::Ready(None),
        }
    }
}

impl Stream for Compressing {
    type Item = Result<Bytes, Failed>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut spent = 0;
        loop {
            match ready!(this.poll_job(context)) {
                Err(_) => return this.fail(),
                Ok(()) if this.out.len() >= PIECE_BYTES => return this.take_out(),
                Ok(()) if this.has_ended && this.out.is_empty() => return Poll::Ready(None),
                Ok(()) if this.has_ended => return this.take_out(),
                Ok(()) => {}
            }
            let piece = match this.poll_source(context) {
                Poll::Ready(Some(Ok(piece))) => piece,
                Poll::Ready(Some(Err(_))) => return this.fail(),
                Poll::Ready(None) => {
                    this.has_ended = true;
                    this.source = PieceSource::Ended;
                    if this.encode(b"", Flush::End).is_err() {
                        return this.fail();
                    }
                    continue;
                }
                Poll::Pending => {
                    if this.is_unflushed && this.encode(b"", Flush::Now).is_err() {
                        return this.fail();
                    }
                    return if this.out.is_empty() { Poll::Pending } else { this.take_out() };
                }
            };
            spent += piece.len();
            if piece.len() > this.step_bytes_max {
                this.rest = piece;
                this.start_job();
            } else if spent > this.step_bytes_max && spent > piece.len() {
                // Others get a turn before this piece.
                this.rest = piece;
                context.waker().wake_by_ref();
                return if this.out.is_empty() { Poll::Pending } else { this.take_out() };
            } else if this.encode(&piece, Flush::No).is_err() {
                return this.fail();
            }
        }
    }
}
