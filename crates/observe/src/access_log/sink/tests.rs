use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;

use super::*;

/// Longer than any operation takes that works.
const PATIENCE: Duration = Duration::from_secs(10);

fn sink(path: &Path) -> (Sink, Arc<AtomicU64>) {
    let lost = Arc::new(AtomicU64::new(0));
    (Sink::open(path, 2, Arc::clone(&lost)).expect("a file"), lost)
}

fn push(sink: &Sink, worker: usize, line: &str) {
    sink.push(worker, |buffer| buffer.extend_from_slice(line.as_bytes()));
}

/// Ends a log as a server does, and waits for its thread.
fn end(sink: Sink) {
    let shared = Arc::clone(sink.shared());
    shared.finish(Instant::now() + Duration::from_millis(100));
    drop(sink);
    shared.finish(Instant::now() + PATIENCE);
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_lies_in_a_buffer_is_written_a_moment_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let (sink, lost) = sink(&path);
    push(&sink, 0, "a\n");
    push(&sink, 7, "b\n");
    wait_until("two lines", || std::fs::read(&path).expect("the log").len() == 4);
    assert_eq!(lost.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_buffer_is_written_before_its_moment_and_the_end_writes_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let (sink, lost) = sink(&path);
    let line = format!("{}\n", "x".repeat(1023));
    for _ in 0..200 {
        push(&sink, 1, &line);
    }
    wait_until("a buffer", || std::fs::read(&path).expect("the log").len() >= 64 << 10);
    end(sink);
    assert_eq!(std::fs::read(&path).expect("the log").len(), 200 << 10);
    assert_eq!(lost.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_disk_is_counted() {
    let (sink, lost) = sink(Path::new("/dev/full"));
    push(&sink, 0, "a\n");
    push(&sink, 1, "b\n");
    assert!(sink.shared().flush());
    assert_eq!(lost.load(Ordering::Relaxed), 2);
}

#[test]
fn a_reader_that_takes_nothing_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a named pipe");
    assert!(Sink::open(&path, 1, Arc::default()).is_err(), "no reader");
    let both = std::fs::OpenOptions::new().read(true).write(true).open(&path);
    let _reader = both.expect("a reader");
    let (sink, lost) = sink(&path);
    let line = format!("{}\n", "x".repeat(1023));
    for _ in 0..3 << 10 {
        push(&sink, 0, &line);
    }
    end(sink);
    // A pipe holds 64 KiB without a reader.
    let lost = lost.load(Ordering::Relaxed);
    assert!((2900..3 << 10).contains(&lost), "{lost}");
}

/// A full pipe that is written to without checking its room: such a write blocks, as on a frozen
/// disk.
#[test]
fn a_frozen_disk_stops_the_log_and_neither_workers_nor_the_end() {
    let (mut reader, writer) = pipe().expect("a pipe");
    let output = Output::that_blocks(File::from(OwnedFd::from(writer)));
    let lost = Arc::new(AtomicU64::new(0));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let sink = Sink::over(output, &path, 2, Arc::clone(&lost)).expect("a thread");
    let line = format!("{}\n", "x".repeat(1023));
    let pushed = 20_000;
    let mut slowest = Duration::ZERO;
    for number in 0..pushed {
        let start = Instant::now();
        push(&sink, number % 2, &line);
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "a worker waited for {slowest:?}");
    let lost_so_far = lost.load(Ordering::Relaxed);
    assert!(lost_so_far > 0, "20 MB are more than may wait");
    let start = Instant::now();
    assert!(!sink.shared().flush());
    let error = sink.shared().reopen().expect_err("the disk is frozen");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    sink.shared().finish(Instant::now() + WRITER_WAIT_MAX);
    drop(sink);
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    // The disk works again: every line was written, to the old file or the new one, or counted.
    let mut written = Vec::new();
    reader.read_to_end(&mut written).expect("the old file, until it is closed");
    let lines = || {
        (written.len() as u64 >> 10)
            + (std::fs::read(&path).map_or(0, |new| new.len() as u64) >> 10)
    };
    wait_until("all lines", || lines() + lost.load(Ordering::Relaxed) == pushed as u64);
}

#[test]
fn a_file_that_was_moved_away_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, old) = (folder.path().join("access.log"), folder.path().join("old"));
    let (sink, _) = sink(&path);
    push(&sink, 0, "a\n");
    std::fs::rename(&path, &old).expect("moved");
    push(&sink, 0, "b\n");
    sink.shared().reopen().expect("opened again");
    push(&sink, 0, "c\n");
    sink.shared().flush();
    assert_eq!(std::fs::read(&old).expect("the old log"), b"a\nb\n");
    assert_eq!(std::fs::read(&path).expect("the new log"), b"c\n");
    std::fs::remove_dir_all(folder.path()).expect("removed");
    sink.shared().reopen().expect_err("no such folder");
    push(&sink, 0, "d\n");
    assert!(sink.shared().flush(), "the old file goes on");
}
