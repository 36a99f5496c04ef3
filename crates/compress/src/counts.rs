//! Counts of what a server compresses, and of what it sends compressed.

use std::sync::atomic::{AtomicU64, Ordering};

use gustnado_http::content_coding::ContentCoding;

/// Cells that workers share. A response of a cached file is quick, so that all workers at one cell
/// would wait for each other.
const SHARDS: usize = 16;

/// The counts of a server, for its whole life.
#[derive(Debug, Default)]
pub struct CompressionCounts {
    responses: [Shard; SHARDS],
    compressions: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    refused: AtomicU64,
    variants: AtomicU64,
    variant_bytes: AtomicU64,
}

/// Responses by coding, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard([AtomicU64; ContentCoding::COUNT]);

impl CompressionCounts {
    /// Counts a response whose content has a coding.
    ///
    /// - `worker`: the worker that sends it.
    pub fn add_response(&self, coding: ContentCoding, worker: usize) {
        self.responses[worker % SHARDS].0[coding as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts content that was compressed, by its bytes before and after.
    pub fn add_compression(&self, bytes_in: u64, bytes_out: u64) {
        self.compressions.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    /// Counts content that was to be compressed, and for which no thread or memory was free.
    pub fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A cache keeps so many more bytes, and files that the server has compressed.
    pub fn add_variants(&self, files: u64, bytes: u64) {
        self.variants.fetch_add(files, Ordering::Relaxed);
        self.variant_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A cache keeps so many fewer.
    pub fn remove_variants(&self, files: u64, bytes: u64) {
        self.variants.fetch_sub(files, Ordering::Relaxed);
        self.variant_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the responses with a coding.
    pub fn responses(&self, coding: ContentCoding) -> u64 {
        let of = |shard: &Shard| shard.0[coding as usize].load(Ordering::Relaxed);
        self.responses.iter().map(of).sum()
    }

    /// Returns how often content was compressed, and its bytes before and after.
    pub fn compressions(&self) -> (u64, u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.compressions), read(&self.bytes_in), read(&self.bytes_out))
    }

    /// Returns how often content was not compressed because no thread or memory was free.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the compressed files that are kept, and the bytes that they take.
    pub fn variants(&self) -> (u64, u64) {
        (self.variants.load(Ordering::Relaxed), self.variant_bytes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_all_workers_add_up() {
        let counts = CompressionCounts::default();
        for worker in 0..40 {
            counts.add_response(ContentCoding::Zstd, worker);
        }
        counts.add_response(ContentCoding::Gzip, 3);
        let of = |coding| counts.responses(coding);
        assert_eq!((of(ContentCoding::Zstd), of(ContentCoding::Gzip)), (40, 1));
        assert_eq!(of(ContentCoding::Brotli), 0);
        counts.add_variants(2, 900);
        counts.remove_variants(1, 400);
        assert_eq!(counts.variants(), (1, 500));
    }
}
