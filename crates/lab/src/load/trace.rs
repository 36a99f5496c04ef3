//! The trace: a line for each request, in the columns of `ab -g`.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Requests that are kept at most, on all threads: a quarter of a gigabyte.
pub(super) const ENTRIES_MAX: usize = 10_000_000;

/// One request. Times are microseconds, capped at 71 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand last, and these have the same")]
pub(super) struct TraceEntry {
    /// When it began, since 1970-01-01.
    pub(super) start_us: u64,
    /// Time to connect; 0 on an existing connection.
    pub(super) connect_us: u32,
    /// Total time.
    pub(super) total_us: u32,
    /// From sending to the first byte.
    pub(super) wait_us: u32,
}

/// The requests of one thread, up to its share.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) entries: Vec<TraceEntry>,
    capacity: usize,
    /// Requests beyond the share.
    pub(super) cut: u64,
}

impl Trace {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: Vec::new(), capacity, cut: 0 }
    }

    pub(super) fn note(&mut self, entry: TraceEntry) {
        if self.entries.len() < self.capacity {
            self.entries.push(entry);
        } else {
            self.cut += 1;
        }
    }
}

/// Converts nanoseconds to the unit of an entry.
pub(super) fn micros(nanos: u64) -> u32 {
    u32::try_from((nanos + 500) / 1000).unwrap_or(u32::MAX)
}

/// Writes all entries, shortest first as ab does. Times are milliseconds with three decimals; those
/// of ab have none.
pub(super) fn write(file: File, mut entries: Vec<TraceEntry>) -> io::Result<()> {
    entries.sort_unstable_by_key(|entry| (entry.total_us, entry.start_us));
    let mut file = BufWriter::new(file);
    file.write_all(b"starttime\tseconds\tctime\tdtime\tttime\twait\n")?;
    for entry in &entries {
        let seconds = entry.start_us / 1_000_000;
        writeln!(
            file,
            "{}\t{seconds}\t{}\t{}\t{}\t{}",
            calendar(seconds),
            millis(entry.connect_us),
            millis(entry.total_us.saturating_sub(entry.connect_us)),
            millis(entry.total_us),
            millis(entry.wait_us),
        )?;
    }
    file.flush()
}

fn millis(micros: u32) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// `Sun Nov  6 08:49:37 1994`, in UTC, in asctime form (RFC 9110 §5.6.7).
fn calendar(unix_secs: u64) -> String {
    // Sun, 06 Nov 1994 08:49:37 GMT
    let date = gustnado_http::date::imf_fixdate(unix_secs);
    let text = String::from_utf8_lossy(&date).into_owned();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let day = part(5, 7).trim_start_matches('0');
    format!("{} {} {day:>2} {} {}", part(0, 3), part(8, 11), part(17, 25), part(12, 16))
}

#[cfg(test)]
mod tests {
    use super::{Trace, TraceEntry, calendar, micros, write};
    use std::fs::File;

    #[test]
    fn moments_are_written_as_asctime_has_them() {
        assert_eq!(calendar(784_111_777), "Sun Nov  6 08:49:37 1994");
        assert_eq!(micros(1_499), 1);
        assert_eq!(micros(u64::MAX >> 1), u32::MAX);
    }

    #[test]
    fn entries_are_written_shortest_first() {
        let entry = |total_us| TraceEntry {
            start_us: 784_111_777_000_000,
            connect_us: 20,
            total_us,
            wait_us: 5,
        };
        let path = std::env::temp_dir().join(format!("trace-{}", std::process::id()));
        let file = File::create(&path).expect("a temporary file");
        write(file, vec![entry(1500), entry(120)]).expect("a temporary file can be written");
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it was written");
        let want = "starttime\tseconds\tctime\tdtime\tttime\twait\n\
            Sun Nov  6 08:49:37 1994\t784111777\t0.020\t0.100\t0.120\t0.005\n\
            Sun Nov  6 08:49:37 1994\t784111777\t0.020\t1.480\t1.500\t0.005\n";
        assert_eq!(text, want);
    }

    #[test]
    fn what_is_past_the_share_is_counted() {
        let mut trace = Trace::new(1);
        let entry = TraceEntry { start_us: 0, connect_us: 0, total_us: 0, wait_us: 0 };
        trace.note(entry);
        trace.note(entry);
        assert_eq!((trace.entries.len(), trace.cut), (1, 1));
    }
}
