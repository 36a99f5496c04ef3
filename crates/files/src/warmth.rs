//! Checks whether a file's bytes are in the page cache, and reads them into it.
//!
//! A read with `RWF_NOWAIT` returns bytes in the page cache and fails if it would have to wait.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

/// The largest file that is read through to check it, once a second at most. Larger files are
/// checked window by window while they are sent.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// How much of a file is read into memory at once. The window just sent may be dropped again by the
/// time the last one is read, so a large file is never read whole in advance.
pub const WINDOW_BYTES: u64 = 1 << 20;
/// Bytes of one read.
const STEP_BYTES: usize = 64 << 10;

/// Reads a small file from memory, fewer bytes only if the file ends earlier. Returns `None` if
/// that would wait, or if the file system cannot tell.
pub(super) fn read_cached(file: &File, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    if bytes.is_empty() {
        return Some(bytes);
    }
    // A short read may be the end of the file or of its part in memory; they cannot be told apart.
    read_if_cached(file, &mut bytes, 0).then_some(bytes)
}

/// Returns whether a whole file can be sent without waiting for the disk.
///
/// - `is_local`: a file system of this machine that cannot tell is taken as fast enough.
pub(super) fn is_warm(file: &File, size: u64, is_local: bool) -> bool {
    let mut scratch = vec![0; STEP_BYTES];
    if size > WHOLE_BYTES_MAX {
        // Only whether the file system can tell: windows are checked when they are sent.
        return is_local && read_now(file, &mut scratch[..1], 0) == Err(Errno::OPNOTSUPP);
    }
    let mut at = 0;
    while at < size {
        match read_now(file, &mut scratch, at) {
            Ok(0) => return true, // the file became shorter, which the send detects
            Ok(count) => at += count as u64,
            Err(Errno::OPNOTSUPP) => return is_local,
            Err(_) => return false,
        }
    }
    true
}

/// Returns whether the first and the last byte of a window are in memory. The bytes between them
/// are read together with them, and are evicted in the same order.
pub fn is_window_warm(file: &File, at: u64, end: u64) -> bool {
    let mut byte = [0];
    [at, end.saturating_sub(1)].into_iter().all(|at| read_now(file, &mut byte, at).is_ok())
}

/// Reads bytes of a file that are in memory. Returns whether all of them were; if not, what it has
/// read is of no use.
pub fn read_if_cached(file: &File, into: &mut [u8], at: u64) -> bool {
    read_now(file, into, at) == Ok(into.len())
}

/// Reads a window into memory. Waits for the disk, so it must not run on a worker's thread. Errors
/// are left to the send, which meets them too.
pub fn warm(file: &File, at: u64, end: u64) {
    let (mut at, mut scratch) = (at, vec![0; STEP_BYTES]);
    while at < end {
        match file.read_at(&mut scratch, at) {
            Ok(count) if count > 0 => at += count as u64,
            _ => return,
        }
    }
}

fn read_now(file: &File, bytes: &mut [u8], at: u64) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() {
        let file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..=199).cycle().take(200_000).collect();
        file.write_all_at(&bytes, 0).expect("written");
        assert!(is_warm(&file, bytes.len() as u64, true));
        if read_now(&file, &mut [0], 0) == Err(Errno::OPNOTSUPP) {
            assert!(!is_warm(&file, bytes.len() as u64, false));
            return;
        }
        assert_eq!(read_cached(&file, 5_000).as_deref(), Some(&bytes[..5_000]));
        assert_eq!(read_cached(&file, 200_001), None, "the file ends before");
        assert!(is_window_warm(&file, 0, 200_000));
    }
}
