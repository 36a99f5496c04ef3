//! What this process takes: memory, processor time, descriptors. Read from `/proc`, so it counts
//! the server and the clients of a test together.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

const PAGE_BYTES: u64 = 4096;
const TICK: Duration = Duration::from_millis(10);

/// Memory of this process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let sizes = fs::read_to_string("/proc/self/statm").expect("the sizes of this process");
    let pages = sizes.split(' ').nth(1).expect("the second is the resident size");
    pages.parse::<u64>().expect("a count of pages") * PAGE_BYTES
}

/// Reads the processor time of this process. It is opened before it is needed: a test may be about
/// a process that can open nothing more.
pub(crate) struct ProcessorClock(File);

impl ProcessorClock {
    /// A clock to be read later.
    pub(crate) fn new() -> Self {
        Self(File::open("/proc/self/stat").expect("the state of this process"))
    }

    /// Processor time that this process takes while the test sleeps for so long.
    pub(crate) fn time_over(&self, time: Duration) -> Duration {
        let before = self.now();
        thread::sleep(time);
        self.now().saturating_sub(before)
    }

    /// User and system time together, in steps of 10 ms.
    fn now(&self) -> Duration {
        let mut text = [0; 1_024];
        let count = self.0.read_at(&mut text, 0).expect("the state of this process");
        let stat = str::from_utf8(&text[..count]).expect("a state is text");
        let (_, after_name) = stat.rsplit_once(") ").expect("the name stands in brackets");
        let ticks = after_name.split(' ').skip(11).take(2);
        TICK * ticks.map(|count| count.parse::<u32>().expect("a count of ticks")).sum()
    }
}

/// How many descriptors this process has open.
pub(crate) fn open_descriptors() -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("the descriptors of this process");
    open.count() - 1 // the folder itself was open while we counted
}
