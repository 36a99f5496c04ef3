//! A value on cache lines of its own.

/// A value that shares its cache line with no other, so that threads which write to neighbours do
/// not slow each other down. 128 bytes: x86 fetches lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct CachePadded<T>(pub(super) T);
