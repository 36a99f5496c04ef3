//! How many archives are made at once, on the whole server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::folders::{FolderCounts, take_one};

/// The permission to make an archive. Dropping it gives it back.
pub(super) struct ArchivePermit(Arc<FolderCounts>);

impl ArchivePermit {
    /// Returns a permission, unless as many are in use as there may be.
    pub(super) fn take(counts: &Arc<FolderCounts>, archives_max: u64) -> Option<Self> {
        if !take_one(&counts.archives_open, archives_max) {
            counts.archives_refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        counts.archives_begun.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(counts)))
    }

    /// Counts an archive that cannot be completed.
    pub(super) fn note_failed(&self) {
        self.0.archives_failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for ArchivePermit {
    fn drop(&mut self) {
        self.0.archives_open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_comes_back() {
        let counts = Arc::<FolderCounts>::default();
        let first = ArchivePermit::take(&counts, 2);
        let second = ArchivePermit::take(&counts, 2);
        assert!(first.is_some() && second.is_some());
        assert!(ArchivePermit::take(&counts, 2).is_none());
        drop(first);
        assert!(ArchivePermit::take(&counts, 2).is_some());
        assert_eq!(counts.archives_refused.load(Ordering::Relaxed), 1);
        assert_eq!(counts.archives_begun.load(Ordering::Relaxed), 3);
        drop(second);
        assert_eq!(counts.archives_open.load(Ordering::Relaxed), 0);
    }
}
