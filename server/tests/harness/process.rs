//! What this process takes: memory, processor time, descriptors. Read from `/proc`, so it counts
//! the server and the clients of a test together.

use std::fs;
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

/// Processor time of this process, user and system together, in steps of 10 ms.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("the state of this process");
    let (_, after_name) = stat.rsplit_once(") ").expect("the name stands in brackets");
    let ticks = after_name.split(' ').skip(11).take(2);
    TICK * ticks.map(|count| count.parse::<u32>().expect("a count of ticks")).sum()
}

/// Processor time that this process takes while the test sleeps for so long.
pub(crate) fn processor_time_over(time: Duration) -> Duration {
    let before = processor_time();
    thread::sleep(time);
    processor_time().saturating_sub(before)
}

/// How many descriptors this process has open.
pub(crate) fn open_descriptors() -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("the descriptors of this process");
    open.count() - 1 // the folder itself was open while we counted
}
