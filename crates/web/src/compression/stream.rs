//! A stream of compressed pieces, made of content or of a stream of pieces.
//!
//! The worker compresses what takes less than 100 microseconds. Small pieces are gathered, and what
//! is more goes to the blocking pool by large parts. Whatever is compressed is flushed there: an
//! encoder that keeps bytes for a whole block would leave that block to the worker. So an event is
//! at the client as soon as without compression.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use gustnado_compress::{BodyEncoder, CompressionCounts, EncodeError, Flush};
use gustnado_tasks::{BlockingPool, Charge};

use crate::response::{Content, Failed, Streamed};

/// Bytes that one job of the pool compresses.
const JOB_BYTES: usize = 256 << 10;
/// Bytes of small pieces that are compressed together.
const GATHERED_BYTES: usize = 64 << 10;
/// From which size on a piece is compressed alone, uncopied.
const LARGE_BYTES: usize = 16 << 10;
/// Compressed bytes that are sent without waiting for more.
const PIECE_BYTES: usize = 8 << 10;
/// Bytes that are compressed on the worker where the pool has no place, at any level.
const REFUSED_BYTES: usize = 256;

/// Stream of compressed pieces.
pub(super) struct Compressing {
    source: PieceSource,
    /// Bytes that the source has still to produce, if it says how many.
    left: Option<u64>,
    /// `None` while a job of the pool has it.
    encoder: Option<BodyEncoder>,
    _charge: Charge,
    job: Option<EncodingJob>,
    pool: BlockingPool,
    step_bytes_max: usize,
    /// Small pieces that are to be compressed together.
    gathered: Vec<u8>,
    /// What the pool compresses in parts.
    rest: Bytes,
    /// A piece of the source behind these.
    next: Bytes,
    out: Vec<u8>,
    /// Others get a turn before the next step.
    yields: bool,
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
        let left = match &source {
            PieceSource::Stream(streamed) => streamed.length,
            PieceSource::Ended => None,
        };
        Self {
            source,
            left,
            encoder: Some(encoder),
            _charge: charge,
            job: None,
            pool,
            step_bytes_max,
            gathered: Vec::new(),
            rest,
            next: Bytes::new(),
            out: Vec::new(),
            yields: false,
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
                self.rest.advance(input.len());
                self.bytes_in += input.len() as u64;
                Ok(())
            }
            Ok(false) => Err(EncodeError),
            // No thread is free: a little of it is done here.
            Err(()) => {
                self.counts.add_refused();
                self.yields = true;
                let step = self.step_bytes_max.max(REFUSED_BYTES);
                let here = self.rest.split_to(step.min(self.rest.len()));
                self.encode(&here, Flush::Now)
            }
        })
    }

    fn encode(&mut self, input: &[u8], flush: Flush) -> Result<(), EncodeError> {
        let encoder = self.encoder.as_mut().ok_or(EncodeError)?;
        encoder.encode(input, flush, &mut self.out)?;
        self.bytes_in += input.len() as u64;
        Ok(())
    }

    /// Has the pool compress the next part of `rest`.
    fn start_job(&mut self) {
        let Some(encoder) = self.encoder.take() else { return };
        let input = self.rest.slice(..JOB_BYTES.min(self.rest.len()));
        let job = (encoder, input, std::mem::take(&mut self.out));
        let shared: SharedEncoder = Arc::new(Mutex::new(Some(job)));
        let (pool, own) = (self.pool.clone(), Arc::clone(&shared));
        let running = Box::pin(async move {
            let call = move || {
                let mut given = own.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((encoder, input, out)) = &mut *given else { return false };
                encoder.encode(input, Flush::Now, out).is_ok()
            };
            pool.run(call).await.map(|done| done == Some(true)).map_err(|_| ())
        });
        self.job = Some(EncodingJob { shared, running });
    }

    /// Compresses the gathered pieces, or leaves them to the pool.
    fn compress_gathered(&mut self, flush: Flush) -> Result<(), EncodeError> {
        let input = std::mem::take(&mut self.gathered);
        if input.len() > self.step_bytes_max {
            self.rest = input.into();
            return Ok(());
        }
        self.encode(&input, flush)
    }

    /// Takes a piece of the source.
    fn take_in(&mut self, piece: Bytes) -> Result<(), EncodeError> {
        let is_large = piece.len() > self.step_bytes_max.max(LARGE_BYTES);
        if !is_large && self.gathered.len() + piece.len() <= GATHERED_BYTES {
            self.gathered.extend_from_slice(&piece);
            return Ok(());
        }
        if self.gathered.is_empty() {
            self.rest = piece;
            return Ok(());
        }
        self.next = piece;
        self.compress_gathered(Flush::Now)
    }

    /// Ends the content, unless gathered pieces take the pool first.
    fn end(&mut self) -> Result<(), EncodeError> {
        self.source = PieceSource::Ended;
        if self.left.is_some_and(|left| left > 0) {
            return Err(EncodeError);
        }
        self.compress_gathered(Flush::End)?;
        self.has_ended = self.rest.is_empty();
        Ok(())
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

    /// Returns the next piece of the content. Where it has said how long it is, bytes beyond that
    /// are a failure.
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        if !self.next.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.next))));
        }
        let PieceSource::Stream(streamed) = &mut self.source else { return Poll::Ready(None) };
        let polled = ready!(streamed.poll_next(context));
        if let (Some(Ok(piece)), Some(left)) = (&polled, &mut self.left) {
            let Some(rest) = left.checked_sub(piece.len() as u64) else {
                return Poll::Ready(Some(Err(Failed)));
            };
            *left = rest;
        }
        Poll::Ready(polled)
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
                Ok(()) if std::mem::take(&mut this.yields) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ok(()) if this.out.len() >= PIECE_BYTES => return this.take_out(),
                Ok(()) if this.has_ended && this.out.is_empty() => return Poll::Ready(None),
                Ok(()) if this.has_ended => return this.take_out(),
                Ok(()) => {}
            }
            if !this.rest.is_empty() {
                this.start_job();
                continue;
            }
            let done = match this.poll_source(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    spent += piece.len();
                    this.yields = spent > LARGE_BYTES && piece.len() <= LARGE_BYTES;
                    this.take_in(piece)
                }
                Poll::Ready(Some(Err(_))) => Err(EncodeError),
                Poll::Ready(None) => this.end(),
                Poll::Pending if !this.gathered.is_empty() => this.compress_gathered(Flush::Now),
                Poll::Pending if this.out.is_empty() => return Poll::Pending,
                Poll::Pending => return this.take_out(),
            };
            if done.is_err() {
                return this.fail();
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;
    use std::io::Read;
    use std::sync::mpsc;
    use std::task::Waker;
    use std::time::Duration;

    use flate2::read::GzDecoder;
    use gustnado_compress::Level;
    use gustnado_http::content_coding::ContentCoding;
    use gustnado_tasks::MemoryKind;

    use super::*;

    /// Returns a pool without a place for another job, and what ends its jobs when it is dropped.
    pub(in super::super) fn full_pool() -> (BlockingPool, mpsc::Sender<()>) {
        let pool = BlockingPool::new(1, 2);
        let (hold, end) = mpsc::channel::<()>();
        let waits = Arc::new(Mutex::new(end));
        let fill = || {
            let waits = Arc::clone(&waits);
            pool.start(move || {
                // An error when the test ends.
                let _ = waits.lock().unwrap_or_else(PoisonError::into_inner).recv();
            })
        };
        // The thread takes one of them, which leaves a place for another one.
        for _ in 0..2 {
            while fill().is_ok() {}
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(fill().is_err());
        (pool, hold)
    }

    /// A stream of these items, each of which is ready.
    struct Items(VecDeque<Bytes>);

    impl Stream for Items {
        type Item = Bytes;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            Poll::Ready(self.0.pop_front())
        }
    }

    /// Content that comes in pieces of this size.
    fn pieces(content: &[u8], size: usize, length: Option<u64>) -> Content {
        let items = Items(content.chunks(size).map(Bytes::copy_from_slice).collect());
        Content::Stream(Streamed::mapped(items, length, Some))
    }

    fn compressing(
        content: Content,
        (coding, step): (ContentCoding, usize),
        pool: BlockingPool,
    ) -> Compressing {
        let encoder = BodyEncoder::of_stream(coding, Level::default()).expect("an encoder");
        let encoder = (encoder, Charge::new(MemoryKind::Sends));
        Compressing::new(content, encoder, step, (pool, Arc::default()))
    }

    /// Polls to the end, and returns what came and the most bytes that were compressed at a time.
    fn driven(stream: &mut Compressing) -> Result<(Vec<u8>, u64), Failed> {
        let mut context = Context::from_waker(Waker::noop());
        let (mut body, mut most) = (Vec::new(), 0);
        loop {
            let before = stream.bytes_in;
            let polled = Pin::new(&mut *stream).poll_next(&mut context);
            most = most.max(stream.bytes_in - before);
            match polled {
                Poll::Ready(Some(piece)) => body.extend_from_slice(&piece?),
                Poll::Ready(None) => return Ok((body, most)),
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn without_a_place_in_the_pool_each_turn_is_one_step() {
        let (pool, hold) = full_pool();
        let content = "a line of many\n".repeat(200_000).into_bytes();
        let step = 4 << 10;
        for size in [1_000, 100_000, usize::MAX] {
            for coding in [ContentCoding::Gzip, ContentCoding::Zstd] {
                let source = match size {
                    usize::MAX => Content::Bytes(content.clone().into()),
                    size => pieces(&content, size, None),
                };
                let mut stream = compressing(source, (coding, step), pool.clone());
                let (body, most) = driven(&mut stream).expect("it is encoded");
                assert!((1..=step as u64).contains(&most), "{coding:?} {most}");
                assert!(stream.counts.refused() > 100, "{coding:?}");
                if coding == ContentCoding::Gzip {
                    let mut found = Vec::new();
                    GzDecoder::new(&*body).read_to_end(&mut found).expect("gzip");
                    assert!(found == content);
                }
            }
        }
        drop(hold);
    }

    #[test]
    fn a_stream_has_as_many_bytes_as_it_says() {
        let pool = BlockingPool::new(1, 8);
        let content = vec![7; 50_000];
        for size in [100, 30_000, 50_000] {
            for (length, is_whole) in
                [(None, true), (Some(50_000), true), (Some(50_001), false), (Some(49_999), false)]
            {
                let source = pieces(&content, size, length);
                let gzip = (ContentCoding::Gzip, 4 << 10);
                let outcome = driven(&mut compressing(source, gzip, pool.clone()));
                assert_eq!(outcome.is_ok(), is_whole, "{size} {length:?}");
            }
        }
    }
}
