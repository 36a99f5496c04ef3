//! A table that may become large and is usually small.

use std::sync::OnceLock;

const CHUNK: usize = 256;

/// A table of `limit` default values whose memory is allocated 256 entries at a time, on first use.
///
/// Entries never move, so threads may share it. It is indexed by descriptor or slot number.
pub struct LazyTable<T> {
    chunks: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Default> LazyTable<T> {
    /// A table for the indices `0..limit`, rounded up to whole chunks.
    pub fn new(limit: usize) -> Self {
        Self { chunks: (0..limit.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the entry at `index`, made on first use; `None` past the limit.
    pub fn get(&self, index: usize) -> Option<&T> {
        let chunk = self.chunks.get(index / CHUNK)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| T::default()).collect()).get(index % CHUNK)
    }
}
