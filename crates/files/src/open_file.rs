//! A file that answers are sent from.

use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use gustnado_tasks::BlockingPool;

/// An open file. Where closing it may wait for a server (NFS and FUSE are told of it), a thread
/// closes it.
#[derive(Debug)]
pub struct OpenFile {
    /// Always there, but while it is dropped.
    file: Option<Arc<File>>,
    closed_by: Option<BlockingPool>,
}

impl OpenFile {
    /// - `closed_by`: the threads that close it, if that may have to be waited for.
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
            // (If too many wait already, it is closed here: a descriptor must not be lost.)
            _ = pool.start(move || drop(file));
        }
    }
}
