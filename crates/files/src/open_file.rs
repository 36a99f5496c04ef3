//! An open file that responses are sent from.

use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use gustnado_tasks::BlockingPool;

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
