//! Content that is at hand and takes longer than the worker's time allows: one job of the blocking
//! pool compresses all of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_compress::{BodyEncoder, CompressionCounts, Level};
use gustnado_http::content_coding::ContentCoding;
use gustnado_tasks::{BlockingPool, Charge, MemoryKind};

use super::stream::Compressing;
use crate::encoders::IdleEncoders;
use crate::response::{Content, Failed};

/// Bytes that one job compresses as a whole: some milliseconds.
pub(super) const WHOLE_BYTES_MAX: usize = 1 << 20;

/// What the content of a response is compressed by.
pub(super) struct CompressionMeans {
    pub(super) pool: BlockingPool,
    pub(super) encoders: IdleEncoders,
    pub(super) counts: Arc<CompressionCounts>,
}

/// Stream of the one piece that a job makes.
pub(super) struct CompressingWhole {
    state: WholeState,
    level: Level,
    coding: ContentCoding,
    means: CompressionMeans,
    /// Bytes that the worker may compress at once where the pool has no place.
    step_bytes_max: usize,
}

enum WholeState {
    Ready(Bytes),
    Running(Bytes, Job),
    /// The pool had no place.
    InSteps(Box<Compressing>),
    Ended,
}

/// `Err`: the pool has no place. `None`: the encoder has failed.
type Job = Pin<Box<dyn Future<Output = Result<Option<Bytes>, ()>> + Send>>;

impl CompressingWhole {
    pub(super) fn new(
        content: Bytes,
        (coding, level): (ContentCoding, Level),
        step_bytes_max: usize,
        means: CompressionMeans,
    ) -> Self {
        Self { state: WholeState::Ready(content), level, coding, means, step_bytes_max }
    }

    fn start(&self, content: &Bytes) -> Job {
        let CompressionMeans { pool, encoders, .. } = &self.means;
        let (pool, encoders, content) = (pool.clone(), encoders.clone(), content.clone());
        let (coding, level) = (self.coding, self.level);
        // Of this worker's ledger: a thread of the pool belongs to none.
        let charge = Charge::new(MemoryKind::Sends);
        Box::pin(async move {
            let call = move || encoders.encode((coding, level), &content, charge);
            pool.run(call).await.map(Option::flatten).map_err(|_| ())
        })
    }

    fn in_steps(&self, content: Bytes) -> Option<Box<Compressing>> {
        let mut charge = Charge::new(MemoryKind::Sends);
        let encoder = BodyEncoder::of_stream(self.coding, self.level).ok()?;
        charge.set(BodyEncoder::stream_bytes(self.coding, self.level));
        let rest = (self.means.pool.clone(), Arc::clone(&self.means.counts));
        let (content, step) = (Content::Bytes(content), self.step_bytes_max);
        Some(Box::new(Compressing::new(content, (encoder, charge), step, rest)))
    }
}

impl Stream for CompressingWhole {
    type Item = Result<Bytes, Failed>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            this.state = match std::mem::replace(&mut this.state, WholeState::Ended) {
                WholeState::Ready(body) => {
                    let job = this.start(&body);
                    WholeState::Running(body, job)
                }
                WholeState::Running(body, mut job) => match job.as_mut().poll(context) {
                    Poll::Pending => {
                        this.state = WholeState::Running(body, job);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(Some(piece))) => {
                        let (before, after) = (body.len() as u64, piece.len() as u64);
                        this.means.counts.add_compression(before, after);
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    Poll::Ready(Ok(None)) => return Poll::Ready(Some(Err(Failed))),
                    Poll::Ready(Err(())) => match this.in_steps(body) {
                        Some(steps) => WholeState::InSteps(steps),
                        None => return Poll::Ready(Some(Err(Failed))),
                    },
                },
                WholeState::InSteps(mut steps) => {
                    let polled = Pin::new(&mut *steps).poll_next(context);
                    this.state = WholeState::InSteps(steps);
                    return polled;
                }
                WholeState::Ended => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;
    use gustnado_tasks::block_on;

    use super::super::stream::tests::full_pool;
    use super::*;

    const GZIP: (ContentCoding, Level) = (ContentCoding::Gzip, Level { gzip: 6, zstd: 3 });

    fn content() -> Bytes {
        "a line of many\n".repeat(20_000).into()
    }

    /// Returns the content that is compressed by a pool, and how many pieces it came in.
    fn sent(pool: &BlockingPool) -> (Vec<u8>, usize) {
        let means = CompressionMeans {
            pool: pool.clone(),
            encoders: IdleEncoders::default(),
            counts: Arc::default(),
        };
        let mut stream = CompressingWhole::new(content(), GZIP, 4 << 10, means);
        let (mut body, mut pieces) = (Vec::new(), 0);
        let whole = async {
            while let Some(piece) =
                std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await
            {
                body.extend_from_slice(&piece.expect("it is encoded"));
                pieces += 1;
            }
        };
        block_on(whole).expect("a thread");
        let mut found = Vec::new();
        std::io::Read::read_to_end(&mut GzDecoder::new(&*body), &mut found).expect("gzip");
        (found, pieces)
    }

    #[test]
    fn one_job_makes_one_piece() {
        let pool = BlockingPool::new(1, 8);
        for _ in 0..3 {
            let (found, pieces) = sent(&pool);
            assert_eq!(pieces, 1);
            assert!(found == content());
        }
    }

    #[test]
    fn without_a_place_in_the_pool_it_is_compressed_in_steps() {
        let (pool, hold) = full_pool();
        assert!(sent(&pool).0 == content());
        drop(hold);
    }
}
