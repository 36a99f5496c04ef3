//! From the workers' buffers to the file.
//!
//! A worker writes its buffer itself once it is full. What lies in one for a moment is written by a
//! thread that sleeps while there is nothing. No worker ever waits for a reader: past a bound,
//! lines are lost and counted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::output::{Output, Written, count_lines};

/// How long a line may lie in a buffer.
const EVERY: Duration = Duration::from_millis(250);
/// A buffer of so many bytes is written at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Where a reader takes nothing, a buffer holds at most so much; further lines are lost.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// What the thread that writes needs of a stack, generously.
const STACK_BYTES: usize = 128 << 10;

/// A file, and a buffer of each worker.
pub(super) struct Sink {
    path: PathBuf,
    buffers: Box<[Mutex<Vec<u8>>]>,
    /// Locked before a buffer is: so lines of one worker stay in order.
    output: Mutex<Outlet>,
    lost: Arc<AtomicU64>,
    bell: Arc<Bell>,
}

/// The open file, and the buffer that is being written.
struct Outlet {
    output: Output,
    lines: Vec<u8>,
}

impl Sink {
    /// Opens a file, and starts the thread that writes.
    ///
    /// - `places`: how many buffers there are.
    pub(super) fn open(path: &Path, places: usize, lost: Arc<AtomicU64>) -> io::Result<Arc<Self>> {
        let outlet = Outlet { output: Output::open(path)?, lines: Vec::new() };
        let sink = Arc::new(Self {
            path: path.to_owned(),
            buffers: (0..places.max(1)).map(|_| Mutex::default()).collect(),
            output: Mutex::new(outlet),
            lost,
            bell: Arc::default(),
        });
        let (bell, weak) = (Arc::clone(&sink.bell), Arc::downgrade(&sink));
        thread::Builder::new()
            .name("gustnado-log".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || write_regularly(&bell, &weak))?;
        Ok(sink)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to a worker's buffer.
    pub(super) fn push(&self, worker: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let place = worker % self.buffers.len();
        let mut buffer = locked(&self.buffers[place]);
        let before = buffer.len();
        if before >= BUFFER_BYTES_MAX {
            drop(buffer);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        write(&mut buffer);
        let now = buffer.len();
        drop(buffer);
        if before == 0 {
            self.bell.ring();
        }
        if before < BUFFER_BYTES && now >= BUFFER_BYTES {
            // (Whoever holds it is writing; and the bell was rung.)
            match self.output.try_lock() {
                Ok(mut outlet) => _ = self.write(place, &mut outlet),
                Err(TryLockError::Poisoned(poisoned)) => {
                    _ = self.write(place, &mut poisoned.into_inner());
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    /// Writes all buffers. Returns whether nothing was left.
    pub(super) fn flush(&self) -> bool {
        self.flush_into(&mut locked(&self.output))
    }

    fn flush_into(&self, outlet: &mut Outlet) -> bool {
        let mut is_done = true;
        for place in 0..self.buffers.len() {
            is_done &= self.write(place, outlet);
        }
        is_done
    }

    /// Writes one buffer. Returns whether nothing was left.
    fn write(&self, place: usize, outlet: &mut Outlet) -> bool {
        let Outlet { output, lines } = outlet;
        std::mem::swap(lines, &mut locked(&self.buffers[place]));
        if lines.is_empty() && !output.is_torn() {
            return true;
        }
        match output.write(lines) {
            Written::All => true,
            Written::Lost(count) => {
                self.lost.fetch_add(count, Ordering::Relaxed);
                true
            }
            Written::Waits => {
                let mut buffer = locked(&self.buffers[place]);
                lines.append(&mut buffer);
                std::mem::swap(lines, &mut buffer);
                false
            }
        }
    }

    /// Writes all buffers, and gives a slow reader so much time for them.
    pub(super) fn finish(&self, within: Duration) {
        let until = Instant::now() + within;
        let mut outlet = locked(&self.output);
        while !self.flush_into(&mut outlet) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !outlet.output.has_room(left) {
                return;
            }
        }
    }

    /// Opens the file anew. What lies in buffers goes into the old one.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let mut outlet = locked(&self.output);
        self.flush_into(&mut outlet);
        outlet.output = Output::open(&self.path)?;
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.bell.end();
        self.flush();
        let left = self.buffers.iter().map(|buffer| count_lines(&locked(buffer))).sum();
        self.lost.fetch_add(left, Ordering::Relaxed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what lies in buffers, a moment after the first line of them.
fn write_regularly(bell: &Bell, sink: &Weak<Sink>) {
    while bell.wait() {
        let Some(sink) = sink.upgrade() else { return };
        if !sink.flush() {
            bell.ring();
        }
    }
}

/// Wakes the thread that writes.
#[derive(Default)]
struct Bell {
    state: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Default)]
struct Rung {
    is_rung: bool,
    is_over: bool,
}

impl Bell {
    fn ring(&self) {
        let mut state = locked(&self.state);
        if !state.is_rung {
            state.is_rung = true;
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        locked(&self.state).is_over = true;
        self.changed.notify_one();
    }

    /// Waits until it was rung, and then for a moment. Returns whether to go on.
    fn wait(&self) -> bool {
        let waited = |failed: PoisonError<_>| failed.into_inner();
        let is_quiet = |state: &mut Rung| !state.is_rung && !state.is_over;
        let state = self.changed.wait_while(locked(&self.state), is_quiet);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let rested = self.changed.wait_timeout_while(state, EVERY, |state| !state.is_over);
        let (mut state, _) = rested.unwrap_or_else(waited);
        state.is_rung = false;
        !state.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(path: &Path) -> (Arc<Sink>, Arc<AtomicU64>) {
        let lost = Arc::new(AtomicU64::new(0));
        (Sink::open(path, 2, Arc::clone(&lost)).expect("a file"), lost)
    }

    fn push(sink: &Sink, worker: usize, line: &str) {
        sink.push(worker, |buffer| buffer.extend_from_slice(line.as_bytes()));
    }

    #[test]
    fn what_lies_in_a_buffer_is_written_a_moment_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let (sink, lost) = sink(&path);
        push(&sink, 0, "a\n");
        push(&sink, 7, "b\n");
        let start = Instant::now();
        while std::fs::read(&path).expect("the log").len() < 4 {
            assert!(start.elapsed() < Duration::from_secs(10), "never written");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_buffer_is_written_at_once_and_the_end_writes_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let (sink, lost) = sink(&path);
        let line = format!("{}\n", "x".repeat(1023));
        for _ in 0..200 {
            push(&sink, 1, &line);
        }
        assert!(std::fs::read(&path).expect("the log").len() >= 64 << 10);
        drop(sink);
        assert_eq!(std::fs::read(&path).expect("the log").len(), 200 << 10);
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_disk_is_counted() {
        let (sink, lost) = sink(Path::new("/dev/full"));
        push(&sink, 0, "a\n");
        push(&sink, 1, "b\n");
        assert!(sink.flush());
        assert_eq!(lost.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_reader_that_takes_nothing_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a named pipe");
        assert!(Sink::open(&path, 1, Arc::default()).is_err(), "nobody reads");
        let both = std::fs::OpenOptions::new().read(true).write(true).open(&path);
        let _reader = both.expect("a reader");
        let (sink, lost) = sink(&path);
        let line = format!("{}\n", "x".repeat(1023));
        for _ in 0..3 << 10 {
            push(&sink, 0, &line);
        }
        drop(sink);
        // A pipe takes 64 KiB by itself.
        let lost = lost.load(Ordering::Relaxed);
        assert!((2900..3 << 10).contains(&lost), "{lost}");
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("access.log"), folder.path().join("old"));
        let (sink, _) = sink(&path);
        push(&sink, 0, "a\n");
        std::fs::rename(&path, &old).expect("moved");
        push(&sink, 0, "b\n");
        sink.reopen().expect("made anew");
        push(&sink, 0, "c\n");
        sink.flush();
        assert_eq!(std::fs::read(&old).expect("the old log"), b"a\nb\n");
        assert_eq!(std::fs::read(&path).expect("the new log"), b"c\n");
        std::fs::remove_dir_all(folder.path()).expect("removed");
        sink.reopen().expect_err("no such folder");
        push(&sink, 0, "d\n");
        assert!(sink.flush(), "the old file goes on");
    }
}
