//! Balance between processes that accept from one listening socket.
//!
//! Every connection wakes all of them, and the first to come takes it; the one that is quickest to
//! wake would end up with most. So each writes its number of open connections into a file in memory
//! that all of them hold, and one with more than its share lets the others go first.
//!
//! What lives here: the table and the rule. The supervisor of the processes makes the file, and
//! gives each process a place in it.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use gustnado_reactor::duplicate;
use rustix::io::{pread, pwrite};

/// What stands in the place of a process that does not accept.
const ABSENT: u32 = u32::MAX;
const ENTRY_BYTES: usize = size_of::<u32>();
/// What is read of the table at a time.
const READ_BYTES: usize = 64 * ENTRY_BYTES;
/// A process may have so much more than the mean: this many connections, and this part of it.
const SLACK: u64 = 1;
const SLACK_PART: u64 = 16;

/// The open connections of each process that accepts from the same sockets.
pub(crate) struct SharedLoad {
    file: OwnedFd,
    /// Where this process stands in it, in bytes.
    at: u64,
    has_left: AtomicBool,
}

impl SharedLoad {
    /// Takes a place in the table.
    ///
    /// - `number`: the descriptor of the file. It stays the caller's.
    ///
    /// # Errors
    /// What the kernel says: it is no file that can be written.
    pub(crate) fn join(number: RawFd, place: u32) -> io::Result<Self> {
        let at = u64::from(place) * ENTRY_BYTES as u64;
        let load = Self { file: duplicate(number)?, at, has_left: AtomicBool::new(false) };
        load.write(0)?;
        Ok(load)
    }

    /// Tells the others how many connections are open here.
    pub(crate) fn publish(&self, open: usize) {
        if !self.has_left.load(Ordering::Relaxed) {
            // Balance is lost if it fails, and nothing else.
            let _ = self.write(u32::try_from(open).unwrap_or(ABSENT - 1));
        }
    }

    /// Accepts no more: from now on this process does not count.
    pub(crate) fn leave(&self) {
        if !self.has_left.swap(true, Ordering::Relaxed) {
            let _ = self.write(ABSENT);
        }
    }

    /// Whether the others should accept before this process does, which has so many open.
    pub(crate) fn is_over_share(&self, open: usize) -> bool {
        let mut share = Share::default();
        let (mut bytes, mut at) = ([0; READ_BYTES], 0);
        while let Ok(len @ 1..) = pread(&self.file, &mut bytes, at) {
            share.count(&bytes[..len]);
            if len < READ_BYTES {
                break;
            }
            at += len as u64;
        }
        share.is_exceeded_by(open)
    }

    fn write(&self, entry: u32) -> io::Result<()> {
        pwrite(&self.file, &entry.to_ne_bytes(), self.at)?;
        Ok(())
    }
}

/// What processes have together.
#[derive(Default)]
struct Share {
    processes: u64,
    open: u64,
}

impl Share {
    fn count(&mut self, bytes: &[u8]) {
        let (entries, _) = bytes.as_chunks();
        for entry in entries.iter().map(|entry| u32::from_ne_bytes(*entry)) {
            if entry != ABSENT {
                self.processes += 1;
                self.open += u64::from(entry);
            }
        }
    }

    fn is_exceeded_by(&self, open: usize) -> bool {
        let mean = self.open / self.processes.max(1);
        self.processes > 1 && open as u64 > mean + mean / SLACK_PART + SLACK
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn table(entries: &[u32]) -> io::Result<OwnedFd> {
        let file = rustix::fs::memfd_create("loads", rustix::fs::MemfdFlags::CLOEXEC)?;
        let bytes: Vec<_> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        pwrite(&file, &bytes, 0)?;
        Ok(file)
    }

    fn is_over(open: u32, others: &[u32]) -> io::Result<bool> {
        let file = table(&[&[0], others].concat())?;
        let load = SharedLoad::join(file.as_raw_fd(), 0)?;
        load.publish(open as usize);
        Ok(load.is_over_share(open as usize))
    }

    #[test]
    fn the_share_is_the_mean_of_those_present_and_a_sixteenth() -> io::Result<()> {
        assert!(!is_over(500, &[])? && !is_over(500, &[ABSENT])?);
        assert!(!is_over(1, &[0])? && is_over(3, &[0])?);
        assert!(!is_over(266, &[245, 245, 244])? && is_over(267, &[245, 245, 244])?);
        // More of them than are read at a time.
        assert!(is_over(2, &[0; 200])? && !is_over(9, &[8; 200])? && is_over(10, &[8; 200])?);
        Ok(())
    }

    #[test]
    fn who_has_left_does_not_count_and_never_comes_back() -> io::Result<()> {
        let file = table(&[])?;
        let first = SharedLoad::join(file.as_raw_fd(), 0)?;
        let second = SharedLoad::join(file.as_raw_fd(), 1)?;
        first.publish(9);
        assert!(first.is_over_share(9));
        second.leave();
        second.publish(3);
        assert!(!first.is_over_share(9));
        Ok(())
    }
}
