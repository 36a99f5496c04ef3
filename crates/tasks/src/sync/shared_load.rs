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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gustnado_reactor::duplicate;
use rustix::io::{pread, pwrite};

/// What stands in the place of a process that does not accept.
const ABSENT: u32 = u32::MAX;
const ENTRY_BYTES: usize = size_of::<u32>();
/// What is read of the table at a time.
const READ_BYTES: usize = 64 * ENTRY_BYTES;
/// A process may have so much more than the mean: this many connections, and this part of it. Where
/// connections come and go with each request, who has a few more is soon rid of them.
const SLACK: u64 = 4;
/// Others are told of a change by so many connections.
const NEWS: usize = 3;
const SLACK_PART: u64 = 16;

/// The open connections of each process that accepts from the same sockets.
pub(crate) struct SharedLoad {
    file: OwnedFd,
    /// Where this process stands in it, in bytes.
    at: u64,
    /// What the others were told last.
    published: AtomicUsize,
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
        let (published, has_left) = (AtomicUsize::new(0), AtomicBool::new(false));
        let load = Self { file: duplicate(number)?, at, published, has_left };
        load.write(0)?;
        Ok(load)
    }

    /// Tells the others how many connections are open here, if that is news: where each request has
    /// a connection of its own, it would else cost two system calls each time.
    pub(crate) fn publish(&self, open: usize) {
        let is_news = open.abs_diff(self.published.load(Ordering::Relaxed)) >= NEWS;
        if is_news && !self.has_left.load(Ordering::Relaxed) {
            self.published.store(open, Ordering::Relaxed);
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

    /// Returns whether the others should accept before this process does, which has so many open.
    pub(crate) fn is_over_share(&self, open: usize) -> bool {
        if open as u64 <= SLACK {
            return false;
        }
        let mut share = LoadShare::default();
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

/// Connections of all processes together.
#[derive(Default)]
struct LoadShare {
    processes: u64,
    open: u64,
}

impl LoadShare {
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
        load.write(open)?;
        Ok(load.is_over_share(open as usize))
    }

    #[test]
    fn the_share_is_the_mean_of_those_present_and_a_little() -> io::Result<()> {
        assert!(!is_over(500, &[])? && !is_over(500, &[ABSENT])?);
        assert!(!is_over(4, &[0])? && is_over(9, &[0])?);
        assert!(!is_over(269, &[244, 244, 243])? && is_over(270, &[244, 243, 243])?);
        // More of them than are read at a time.
        assert!(is_over(5, &[0; 200])? && !is_over(12, &[8; 200])? && is_over(13, &[8; 200])?);
        Ok(())
    }

    #[test]
    fn the_others_are_told_of_what_is_news() -> io::Result<()> {
        let file = table(&[])?;
        let load = SharedLoad::join(file.as_raw_fd(), 0)?;
        for (open, told) in [(2, 0), (3, 3), (1, 3), (5, 3), (6, 6), (0, 0)] {
            load.publish(open);
            let mut bytes = [0; ENTRY_BYTES];
            pread(&file, &mut bytes, 0)?;
            assert_eq!(u32::from_ne_bytes(bytes), told, "{open}");
        }
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
