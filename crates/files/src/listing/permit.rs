//! How many listings are sent at once that do not fit in one piece, on the whole server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::folders::{FolderCounts, take_one};

/// The most of them. Each holds a descriptor and a page of names for as long as its client takes;
/// the names are charged, and bounded with all else that waits for clients.
const LISTINGS_MAX: u64 = 256;

/// The permission to go on with a listing. Dropping it gives it back.
pub(super) struct ListingPermit(Arc<FolderCounts>);

impl ListingPermit {
    /// Returns a permission, unless as many are in use as there may be.
    pub(super) fn take(counts: &Arc<FolderCounts>) -> Option<Self> {
        take_one(&counts.listings_open, LISTINGS_MAX).then(|| Self(Arc::clone(counts)))
    }
}

impl Drop for ListingPermit {
    fn drop(&mut self) {
        self.0.listings_open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_and_no_more() {
        let counts = Arc::<FolderCounts>::default();
        let take = |_| ListingPermit::take(&counts).expect("there are more");
        let mut all: Vec<ListingPermit> = (0..LISTINGS_MAX).map(take).collect();
        assert!(ListingPermit::take(&counts).is_none());
        all.pop();
        assert!(ListingPermit::take(&counts).is_some());
        drop(all);
        assert_eq!(counts.listings_open.load(Ordering::Relaxed), 0);
    }
}
