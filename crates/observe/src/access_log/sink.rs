//! From the workers' buffers to the thread that writes the file.
//!
//! A worker appends to its own buffer and wakes the thread; the thread alone makes the system calls
//! that may wait for a disk or for a reader. So a frozen disk stops the thread and nothing else:
//! past a bound, lines are lost and counted. Whoever asks for a flush or for the file to be opened
//! again waits for the thread, for a bounded time.

mod thread;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::output::Output;

/// A buffer of so many bytes is written at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Where the disk or a reader takes nothing, a worker's buffer holds at most so much, and the
/// thread as much again; further lines are lost. It is large enough for a disk that stalls for a
/// second, as disks do.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// How long is waited for the thread where it has to be. A disk that takes longer is frozen.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// How often a flush is asked for again while a reader is slow.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// The workers' end of a log. Dropping it ends the thread once that has written what there is;
/// nothing waits for that.
pub(super) struct Sink {
    path: PathBuf,
    shared: Arc<Shared>,
}

/// What the workers and the thread share. Neither lock is held over a system call on the file.
pub(super) struct Shared {
    buffers: Box<[Mutex<Vec<u8>>]>,
    orders: Mutex<Orders>,
    /// The thread waits here for orders.
    ordered: Condvar,
    /// Others wait here for the end of a round.
    done: Condvar,
    lost: Arc<AtomicU64>,
}

/// What the thread is asked to do, and what came of it.
#[derive(Default)]
struct Orders {
    wanted: Wanted,
    /// The file is to be opened again.
    reopens: bool,
    /// What came of that last time.
    reopened: Option<io::Result<()>>,
    /// Rounds that have begun, and that have ended. In one, every buffer is written once. After the
    /// last one, all have ended that will ever be asked for.
    rounds_begun: u64,
    rounds_done: u64,
    /// The last round left nothing behind.
    is_all_written: bool,
    /// No more lines will come.
    is_over: bool,
}

/// How soon the buffers are to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    /// They are empty.
    #[default]
    Never,
    /// Some buffer has a line.
    Soon,
    /// A buffer is full, or someone waits.
    AtOnce,
}

impl Orders {
    fn want(&mut self, wanted: Wanted) {
        self.wanted = self.wanted.max(wanted);
    }
}

impl Sink {
    /// Opens a file, and starts the thread that writes.
    ///
    /// - `places`: how many buffers there are.
    pub(super) fn open(path: &Path, places: usize, lost: Arc<AtomicU64>) -> io::Result<Self> {
        Self::over(Output::open(path)?, path, places, lost)
    }

    fn over(output: Output, path: &Path, places: usize, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            buffers: (0..places.max(1)).map(|_| Mutex::default()).collect(),
            orders: Mutex::default(),
            ordered: Condvar::new(),
            done: Condvar::new(),
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

    /// Adds a line to a worker's buffer. It waits for nobody: the thread holds the buffer's lock
    /// only while it puts an empty one in its place.
    pub(super) fn push(&self, worker: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let shared = &*self.shared;
        let mut buffer = locked(&shared.buffers[worker % shared.buffers.len()]);
        let before = buffer.len();
        if before >= BUFFER_BYTES_MAX {
            drop(buffer);
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        write(&mut buffer);
        let now = buffer.len();
        drop(buffer);
        if before == 0 {
            shared.order(|orders| orders.want(Wanted::Soon));
        }
        if before < BUFFER_BYTES && now >= BUFFER_BYTES {
            shared.order(|orders| orders.want(Wanted::AtOnce));
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.order(|orders| orders.is_over = true);
    }
}

impl Shared {
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = locked(&self.orders);
        change(&mut orders);
        drop(orders);
        self.ordered.notify_one();
    }

    /// Has all buffers written once. Returns whether nothing was left.
    pub(super) fn flush(&self) -> bool {
        self.round(Instant::now() + ANSWER_WITHIN, |_| {})
            .is_some_and(|orders| orders.is_all_written)
    }

    /// Has all buffers written, and gives a slow reader until then for them.
    pub(super) fn finish(&self, until: Instant) {
        while let Some(orders) = self.round(until, |_| {})
            && !orders.is_all_written
            && Instant::now() < until
        {
            drop(orders);
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// Has the file opened again. What lies in buffers goes into the old one.
    ///
    /// # Errors
    /// The file cannot be opened, and the old one is written on. `TimedOut`: the disk does not
    /// answer; the file is opened again once it does.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let policy = |orders: &mut Orders| {
            orders.reopens = true;
            orders.reopened = None;
        };
        match self.round(Instant::now() + ANSWER_WITHIN, policy) {
            Some(mut orders) => orders.reopened.take().unwrap_or(Ok(())),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Asks for a round and waits for its end, for so long at most.
    fn round(
        &self,
        until: Instant,
        policy: impl FnOnce(&mut Orders),
    ) -> Option<MutexGuard<'_, Orders>> {
        let mut orders = locked(&self.orders);
        policy(&mut orders);
        orders.want(Wanted::AtOnce);
        // (One that has begun may have passed a buffer already.)
        let round = orders.rounds_begun + 1;
        self.ordered.notify_one();
        let left = until.saturating_duration_since(Instant::now());
        let is_missing = |orders: &mut Orders| orders.rounds_done < round;
        let waited = self.done.wait_timeout_while(orders, left, is_missing);
        let (orders, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then_some(orders)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
