//! Bodies that do not stay in memory: each is in a file without a name, on a disk with a bound.
//!
//! Threads of the spool write the files, so no worker waits for the disk. What was written is read
//! as a map of the file: its memory is the kernel's, which takes it back when it needs it.

mod spooled_body;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, fmt, mem};

use gustnado_config::Config;
use gustnado_tasks::{BlockingPool, PrivateFile};
use rustix::process::{Resource, getrlimit};

pub use spooled_body::{MEMORY_BYTES_MAX, SpooledBody, is_due};

/// Threads that write bodies, and jobs that may wait for them.
const THREADS: usize = 4;
const JOBS_MAX: usize = 1 << 14;
/// Of how many descriptors one may be a body's file: the others are for connections.
const DESCRIPTORS_PART: u64 = 8;
/// The folder where there is no other: unlike `/tmp` it is on a disk on most machines.
const USUAL_FOLDER: &str = "/var/tmp";

/// The disk that a server's bodies may take. A reload may change its settings.
pub struct Spool {
    settings: Mutex<SpoolSettings>,
    pool: BlockingPool,
    bytes: AtomicU64,
    files: AtomicUsize,
    bodies: AtomicU64,
    failed: AtomicU64,
    /// The last write has failed: that is reported once, until one succeeds.
    is_failing: AtomicBool,
}

#[derive(Clone, Debug)]
struct SpoolSettings {
    folder: PathBuf,
    bytes_max: u64,
}

impl SpoolSettings {
    fn of(config: &Config) -> Self {
        Self { folder: Spool::folder_of(config), bytes_max: config.body_spool_bytes }
    }
}

/// Returns the folder where none is set.
fn usual_folder() -> PathBuf {
    let own = env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    own.map_or_else(|| USUAL_FOLDER.into(), PathBuf::from)
}

/// Why a body, or a part of it, is not on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpoolFailure {
    /// The spool is used up, or its folder cannot be written to. The body is in memory as before.
    Full,
    /// Writing failed after a part of the body had been written. The body is lost.
    Lost,
}

/// What is counted of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolCounts {
    /// Bytes that bodies take now.
    pub bytes: u64,
    /// Bodies that were written, whole or in part.
    pub bodies: u64,
    /// Bodies that could not be written.
    pub failed: u64,
}

impl Spool {
    /// Creates a spool with the settings of a server.
    pub fn new(config: &Config) -> Self {
        Self {
            settings: Mutex::new(SpoolSettings::of(config)),
            pool: BlockingPool::new(THREADS, JOBS_MAX),
            bytes: AtomicU64::new(0),
            files: AtomicUsize::new(0),
            bodies: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Returns the folder that settings name, or the usual one.
    pub fn folder_of(config: &Config) -> PathBuf {
        config.body_spool.clone().unwrap_or_else(usual_folder)
    }

    /// Sets folder and bound. Files that exist stay where they are.
    pub fn set(&self, config: &Config) {
        *self.settings() = SpoolSettings::of(config);
    }

    /// Checks whether a file can be made in the folder of the settings, if they name one.
    ///
    /// # Errors
    /// It cannot, for this reason.
    pub fn check(config: &Config) -> Result<(), (PathBuf, io::Error)> {
        let Some(folder) = &config.body_spool else { return Ok(()) };
        PrivateFile::create(folder).map(drop).map_err(|error| (folder.clone(), error))
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> SpoolCounts {
        SpoolCounts {
            bytes: self.bytes.load(Ordering::Relaxed),
            bodies: self.bodies.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Returns the folder in which files are made.
    pub fn folder(&self) -> PathBuf {
        self.settings().folder.clone()
    }

    /// Returns the bytes that all bodies may take.
    pub fn bytes_max(&self) -> u64 {
        self.settings().bytes_max
    }

    fn settings(&self) -> MutexGuard<'_, SpoolSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a body that could not be written, and reports the first of several. Not for workers:
    /// standard error may have to be waited for.
    pub fn note_failure(&self, error: &dyn fmt::Display) {
        self.count_failure();
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            let folder = self.folder();
            let folder = folder.display();
            // Standard error may be closed; there is nowhere else to report it.
            _ = writeln!(
                io::stderr(),
                "gustnado: a request body could not be written to {folder} ({error}); name a \
                 folder with free space by --body-spool, or keep bodies in memory by \
                 --body-policy memory"
            );
        }
    }

    /// Counts a body that could not be written.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a body that is being written.
    pub fn count_body(&self) {
        self.bodies.fetch_add(1, Ordering::Relaxed);
    }

    fn note_success(&self, is_first: bool) {
        self.is_failing.store(false, Ordering::Relaxed);
        if is_first {
            self.count_body();
        }
    }

    /// Runs `call` on a thread of the spool, and does not wait for it.
    fn start(&self, call: impl FnOnce() + Send + 'static) {
        // If the queue is full, `call` is dropped here, and what it holds.
        _ = self.pool.start(call);
    }
}

impl Default for Spool {
    fn default() -> Self {
        Self::new(&Config::default())
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// What one body takes of the spool: a file, and its bytes. Dropping it releases that.
#[derive(Debug)]
pub struct SpoolShare {
    spool: Arc<Spool>,
    bytes: u64,
    is_open: bool,
}

impl SpoolShare {
    /// Takes a file's place; `None` if there is none.
    pub fn open(spool: &Arc<Spool>) -> Option<Self> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        let files_max = usize::try_from(limit / DESCRIPTORS_PART).unwrap_or(usize::MAX);
        let before = spool.files.fetch_add(1, Ordering::Relaxed);
        // Dropped if it is one too many, which gives the place back.
        let share = Self { spool: Arc::clone(spool), bytes: 0, is_open: true };
        (before < files_max).then_some(share)
    }

    /// Takes more bytes. Returns whether there was room for them.
    pub fn take(&mut self, bytes: u64) -> bool {
        let bytes_max = self.spool.bytes_max();
        let before = self.spool.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > bytes_max {
            self.spool.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Returns the bytes taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the spool.
    pub fn spool(&self) -> &Arc<Spool> {
        &self.spool
    }

    /// Notes that the file's descriptor is closed.
    fn close(&mut self) {
        if mem::take(&mut self.is_open) {
            self.spool.files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for SpoolShare {
    fn drop(&mut self) {
        self.close();
        self.spool.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_into_the_bound_and_are_released() {
        let spool = Arc::new(Spool::new(&Config { body_spool_bytes: 100, ..Config::default() }));
        let mut first = SpoolShare::open(&spool).expect("there is a place");
        assert!(first.take(60) && !first.take(41) && first.take(40) && !first.take(1));
        let mut second = SpoolShare::open(&spool).expect("there is a place");
        assert!(!second.take(1));
        drop(first);
        assert!(second.take(100));
        assert_eq!((spool.counts().bytes, second.bytes()), (100, 100));
        spool.set(&Config { body_spool_bytes: 200, ..Config::default() });
        assert!(second.take(100) && !second.take(1));
        drop(second);
        assert_eq!((spool.counts().bytes, spool.files.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn only_so_many_files_are_open_at_a_time() {
        let spool = Arc::new(Spool::default());
        let mut shares = Vec::new();
        while let Some(share) = SpoolShare::open(&spool) {
            shares.push(share);
        }
        let all = shares.len();
        assert_eq!(spool.files.load(Ordering::Relaxed), all);
        shares[0].close();
        assert!(SpoolShare::open(&spool).is_some(), "a map needs no descriptor");
        drop(shares);
        assert_eq!(spool.files.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_folder_is_checked_if_one_is_set() {
        assert!(Spool::check(&Config::default()).is_ok());
        let nowhere = Config { body_spool: Some("/nowhere/at/all".into()), ..Config::default() };
        let (folder, error) = Spool::check(&nowhere).expect_err("there is none");
        assert_eq!((folder, error.kind()), ("/nowhere/at/all".into(), io::ErrorKind::NotFound));
        let here = Config { body_spool: Some(env::temp_dir()), ..Config::default() };
        assert!(Spool::check(&here).is_ok());
    }
}
