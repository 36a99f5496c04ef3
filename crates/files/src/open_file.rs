//! Open files that responses are sent from.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gustnado_tasks::BlockingPool;

use super::resolve::Identity;
use super::stamp::Stamp;

/// Entries at which closed files are first forgotten.
const SWEEP_AT: usize = 64;

/// An open file. If closing it may wait for a server, as NFS and FUSE do, a thread closes it.
#[derive(Debug)]
pub struct OpenFile {
    /// `None` only during drop.
    file: Option<Arc<File>>,
    closed_by: Option<BlockingPool>,
}

impl OpenFile {
    /// - `closed_by`: the pool that closes it, if closing may wait.
    pub fn new(file: Arc<File>, closed_by: Option<BlockingPool>) -> Self {
        Self { file: Some(file), closed_by }
    }
}

impl Deref for OpenFile {
    type Target = File;

    #[inline]
    fn deref(&self) -> &File {
        self.file.as_ref().expect("only the drop takes it")
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let (Some(pool), Some(file)) = (&self.closed_by, self.file.take()) {
            // If the pool is full, it is closed here: a descriptor must not leak.
            _ = pool.start(move || drop(file));
        }
    }
}

/// Reads a whole file; `None` if it is not the file of `stamp`, or cannot be read. Waits for the
/// disk.
pub(super) fn read_whole(file: &File, stamp: &Stamp) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(stamp.size).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let stat = rustix::fs::fstat(file).ok()?;
    (Stamp::of(&stat) == *stamp).then_some(bytes)
}

/// The files of a folder that are open now, by device and inode: however many names a file has, and
/// however many clients read it, it takes one descriptor.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<OpenTable>);

#[derive(Debug, Default)]
struct OpenTable {
    files: HashMap<Identity, (Stamp, Weak<OpenFile>)>,
    /// The number of entries at which closed files are forgotten.
    sweep_at: usize,
}

impl OpenFiles {
    /// Returns a file that is open and has not changed since: neither its bytes nor who may read
    /// them.
    pub(super) fn get(&self, stamp: &Stamp) -> Option<Arc<OpenFile>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (opened, file) = table.files.get(&stamp.identity())?;
        file.upgrade().filter(|_| opened == stamp)
    }

    /// Adds a file that was just opened.
    pub(super) fn add(&self, stamp: Stamp, file: &Arc<OpenFile>) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.files.len() >= table.sweep_at.max(SWEEP_AT) {
            table.files.retain(|_, (_, file)| file.strong_count() > 0);
            table.sweep_at = 2 * table.files.len();
        }
        table.files.insert(stamp.identity(), (stamp, Arc::downgrade(file)));
    }
}
