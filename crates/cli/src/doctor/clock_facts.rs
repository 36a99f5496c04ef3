//! Facts about the clock. Only this file reads it.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Files that are written with the time of now, or are older.
const FILES: [&str; 3] =
    ["/var/lib/systemd/timesync/clock", "/var/lib/chrony/drift", "/etc/ld.so.cache"];
/// Services that keep the clock and say nothing about it in a file, by the files of their process.
const SERVICES: [(&str, &str); 4] = [
    ("chrony/chronyd.pid", "chronyd"),
    ("chronyd.pid", "chronyd"),
    ("ntpd.pid", "ntpd"),
    ("openntpd.pid", "openntpd"),
];

/// What is known of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockFacts {
    /// In seconds since 1970.
    pub(super) now_s: i64,
    pub(super) sync: ClockSync,
    /// The youngest of some files, in seconds since 1970.
    pub(super) file_s: Option<i64>,
}

/// Whether a service keeps the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockSync {
    /// systemd-timesyncd has set it.
    Synchronized,
    /// systemd-timesyncd runs, and has reached no server.
    NotSynchronized,
    /// This service runs.
    KeptBy(&'static str),
    Unknown,
}

impl ClockFacts {
    pub(super) fn read() -> Self {
        let own = std::env::current_exe().ok();
        let files = FILES.iter().map(Path::new).chain(own.as_deref());
        let modified = |file: &Path| file.metadata().ok()?.modified().ok();
        Self {
            now_s: seconds(SystemTime::now()),
            sync: ClockSync::read(Path::new("/run")),
            file_s: files.filter_map(modified).map(seconds).max(),
        }
    }
}

impl ClockSync {
    /// - `run`: the folder in which services leave their files.
    fn read(run: &Path) -> Self {
        let timesync = run.join("systemd/timesync");
        if timesync.join("synchronized").exists() {
            return Self::Synchronized;
        }
        let kept_by = SERVICES.iter().find(|(file, _)| run.join(file).exists());
        match kept_by {
            Some((_, service)) => Self::KeptBy(service),
            None if timesync.exists() => Self::NotSynchronized,
            None => Self::Unknown,
        }
    }
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_service_tells_by_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let (run, read) = (folder.path(), || ClockSync::read(folder.path()));
        assert_eq!(read(), ClockSync::Unknown);
        fs::create_dir_all(run.join("systemd/timesync")).expect("a folder");
        assert_eq!(read(), ClockSync::NotSynchronized);
        fs::write(run.join("chronyd.pid"), "1").expect("a file");
        assert_eq!(read(), ClockSync::KeptBy("chronyd"), "it takes the place of the other one");
        fs::write(run.join("systemd/timesync/synchronized"), "").expect("a file");
        assert_eq!(read(), ClockSync::Synchronized);
    }
}
