//! What this process takes: memory, processor time, descriptors. It counts the server and the
//! clients of a test together.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const PAGE_BYTES: u64 = 4096;

/// Memory of this process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let sizes = fs::read_to_string("/proc/self/statm").expect("the sizes of this process");
    let pages = sizes.split(' ').nth(1).expect("the second is the resident size");
    pages.parse::<u64>().expect("a count of pages") * PAGE_BYTES
}

/// Processor time that this process takes while the test sleeps for so long, to the nanosecond: the
/// counts in `/proc` are samples, and a busy machine takes them at bad moments.
pub(crate) fn processor_time_over(time: Duration) -> Duration {
    let before = processor_time();
    thread::sleep(time);
    processor_time().saturating_sub(before)
}

fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(spent).expect("processor time is not negative")
}

/// How many descriptors this process has open.
pub(crate) fn open_descriptors() -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("the descriptors of this process");
    open.count() - 1 // the folder itself was open while we counted
}
