//! From the workers' buffers to the thread that writes the file.
//!
//! A worker appends to its own buffer and wakes the thread; the thread alone makes the system calls
//! that may wait for a disk or a reader. So a frozen disk stops the thread and nothing else: past a
//! bound, lines are lost and counted. A flush or a reopen waits for the thread, for a bounded time.

mod thread;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::output::Output;

/// A buffer of this size is written at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The most bytes in a worker's buffer while the disk or the reader takes nothing; the thread holds
/// as many again, and further lines are lost. Enough for a disk that stalls for a second, as disks
/// do.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// How long a flush or a reopen waits for the thread. A slower disk counts as frozen.
const WRITER_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often a flush is repeated while a reader is slow.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// The workers' end of a log. Dropping it ends the thread once that has written the rest; the drop
/// itself does not wait.
pub(super) struct Sink {
    path: PathBuf,
    shared: Arc<Shared>,
}

/// The state that workers and the thread share. No lock is held over a system call on the file, so
/// that a worker never waits for a disk.
pub(super) struct Shared {
    buffers: Box<[Mutex<Vec<u8>>]>,
    commands: Mutex<Commands>,
    /// Wakes the thread.
    commanded: Condvar,
    /// Wakes those that wait for the end of a round.
    done: Condvar,
    lost: Arc<AtomicU64>,
}

/// The commands to the thread, and their results.
#[derive(Default)]
struct Commands {
    urgency: Urgency,
    /// The file is to be reopened.
    reopens: bool,
    /// The result of the last reopen.
    reopened: Option<io::Result<()>>,
    /// Rounds that have begun, and that have ended. Each writes every buffer once. After the last
    /// round the second is at its maximum, so that nothing waits for one that will not come.
    rounds_begun: u64,
    rounds_done: u64,
    /// The last round wrote everything.
    is_all_written: bool,
    /// No more lines will come.
    is_over: bool,
}

/// How soon the buffers are to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// All buffers are empty.
    #[default]
    Never,
    /// Some buffer has a line.
    Soon,
    /// A buffer is full, or a flush waits.
    AtOnce,
}

impl Commands {
    fn raise(&mut self, urgency: Urgency) {
        self.urgency = self.urgency.max(urgency);
    }
}

impl Sink {
    /// Opens a file, and starts the thread that writes it.
    ///
    /// - `places`: how many buffers there are.
    pub(super) fn open(path: &Path, places: usize, lost: Arc<AtomicU64>) -> io::Result<Self> {
        Self::over(Output::open(path)?, path, places, lost)
    }

    fn over(output: Output, path: &Path, places: usize, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            buffers: (0..places.max(1)).map(|_| Mutex::default()).collect(),
            commands: Mutex::default(),
            commanded: Condvar::new(),
            done: Condvar::new(),
            // Shared by all logs of a server, so that the count survives a reload.
            lost,
        });
        let path = path.to_owned();
        thread::start(Arc::clone(&shared), output, path.clone())?;
        Ok(Self { path, shared })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Adds a line to a worker's buffer. The lock is short: the thread holds it only to swap an
    /// empty buffer in.
    pub(super) fn push(&self, worker: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let shared = &*self.shared;
        let mut buffer = locked(&shared.buffers[worker % shared.buffers.len()]);
        let before = buffer.len();
        // Losing a line costs less than a worker that waits for a disk.
        if before >= BUFFER_BYTES_MAX {
            drop(buffer);
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        write(&mut buffer);
        let now = buffer.len();
        drop(buffer);
        // Only the first line of a buffer and the one that fills it wake the thread: the lines
        // between them cost no system call. Sent after the unlock, so that the two locks never
        // nest.
        if before == 0 {
            shared.command(|commands| commands.raise(Urgency::Soon));
        }
        if before < BUFFER_BYTES && now >= BUFFER_BYTES {
            shared.command(|commands| commands.raise(Urgency::AtOnce));
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.command(|commands| commands.is_over = true);
    }
}

impl Shared {
    fn command(&self, change: impl FnOnce(&mut Commands)) {
        let mut commands = locked(&self.commands);
        change(&mut commands);
        drop(commands);
        self.commanded.notify_one();
    }

    /// Writes all buffers once. Returns whether nothing was left.
    pub(super) fn flush(&self) -> bool {
        self.round(Instant::now() + WRITER_WAIT_MAX, |_| {})
            .is_some_and(|commands| commands.is_all_written)
    }

    /// Writes all buffers, and gives a slow reader until `until`.
    pub(super) fn finish(&self, until: Instant) {
        while let Some(commands) = self.round(until, |_| {})
            && !commands.is_all_written
            && Instant::now() < until
        {
            drop(commands);
            // A slow reader gives no signal that it has read, so it is polled.
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// Reopens the file. Buffered lines go to the old one.
    ///
    /// # Errors
    /// The file cannot be opened, and the old one stays in use. `TimedOut`: the disk does not
    /// respond; the file is reopened once it does.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let policy = |commands: &mut Commands| {
            commands.reopens = true;
            commands.reopened = None;
        };
        match self.round(Instant::now() + WRITER_WAIT_MAX, policy) {
            Some(mut commands) => commands.reopened.take().unwrap_or(Ok(())),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Requests a round and waits for its end, until `until` at most.
    fn round(
        &self,
        until: Instant,
        policy: impl FnOnce(&mut Commands),
    ) -> Option<MutexGuard<'_, Commands>> {
        let mut commands = locked(&self.commands);
        policy(&mut commands);
        commands.raise(Urgency::AtOnce);
        // The next round, not a running one: that may have passed a buffer already.
        let round = commands.rounds_begun + 1;
        self.commanded.notify_one();
        let left = until.saturating_duration_since(Instant::now());
        let is_missing = |commands: &mut Commands| commands.rounds_done < round;
        let waited = self.done.wait_timeout_while(commands, left, is_missing);
        let (commands, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then_some(commands)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
