//! Whether a file's bytes are in memory, and how they get there.
//!
//! A read with `RWF_NOWAIT` takes what is in the page cache and refuses to wait for the rest.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

/// The largest file that is read through to find out whether it is in memory, once a second at
/// most. Of a larger one each window is asked for when its turn comes.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// How much of a file is brought into memory at once.
pub const WINDOW_BYTES: u64 = 1 << 20;
/// Bytes of one read.
const STEP_BYTES: usize = 64 << 10;

/// Reads a small file whose bytes are in memory. Fewer bytes only where the file ends before.
/// `None` where it would have to wait, or where the file system cannot say.
pub(super) fn read_cached(file: &File, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    if bytes.is_empty() {
        return Some(bytes);
    }
    let count = read_now(file, &mut bytes, 0).ok()?;
    // A short read is the end of the file, or of what is in memory of it.
    (count == bytes.len()).then_some(bytes)
}

/// Whether a whole file can be sent without waiting for the disk.
///
/// - `is_local`: where the file system cannot say, it is taken to be so on a disk of this machine.
pub(super) fn is_warm(file: &File, size: u64, is_local: bool) -> bool {
    let mut scratch = vec![0; STEP_BYTES];
    if size > WHOLE_BYTES_MAX {
        // Only whether the file system can say: the windows are looked at when they are sent.
        return is_local && read_now(file, &mut scratch[..1], 0) == Err(Errno::OPNOTSUPP);
    }
    let mut at = 0;
    while at < size {
        match read_now(file, &mut scratch, at) {
            Ok(0) => return true, // it became shorter, which sending will find out
            Ok(count) => at += count as u64,
            Err(Errno::OPNOTSUPP) => return is_local,
            Err(_) => return false,
        }
    }
    true
}

/// Whether the first and the last byte of a window are in memory: those between them were read
/// together with them, and are dropped in that order.
pub fn is_window_warm(file: &File, at: u64, end: u64) -> bool {
    let mut byte = [0];
    [at, end.saturating_sub(1)].into_iter().all(|at| read_now(file, &mut byte, at).is_ok())
}

/// Brings a window into memory. It waits for the disk: not for a worker's thread. An error is left
/// to the sending, which will meet it too.
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
