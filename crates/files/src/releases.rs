//! Former roots of a folder whose path is swapped with each release: for a while, pages that were
//! loaded before still find their files.
//!
//! A root is known from the moment that the first worker uses it, so all workers find what any
//! response of this server has named. Those of before the start are found next to the current one,
//! see `release_folders`.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gustnado_tasks::Now;

use super::release_folders::former_releases;
use super::resolve::{Identity, Root};

/// The most former roots that are known, each by an open descriptor.
const FORMER_MAX: usize = 16;

/// The roots of a folder, shared by all workers. The lock is taken when a hashed name is not found
/// and when the root is swapped.
#[derive(Debug)]
pub(super) struct Releases {
    /// How long former roots are used; zero is never.
    keep: Duration,
    /// The newest first; the first is current.
    roots: Mutex<Vec<KnownRoot>>,
}

#[derive(Debug)]
struct KnownRoot {
    root: Arc<Root>,
    /// When another one took its place, in seconds since 1970; `None` is the current one.
    retired_secs: Option<u64>,
}

impl Releases {
    pub(super) fn new(keep: Duration, root: &Arc<Root>) -> Self {
        let current = KnownRoot { root: Arc::clone(root), retired_secs: None };
        Self { keep, roots: Mutex::new(vec![current]) }
    }

    /// Returns whether former roots are used.
    pub(super) fn is_on(&self) -> bool {
        !self.keep.is_zero()
    }

    fn roots(&self) -> MutexGuard<'_, Vec<KnownRoot>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a worker uses a root from now on, before it responds from that.
    pub(super) fn adopt(&self, root: &Arc<Root>, now: Now) {
        if !self.is_on() {
            return;
        }
        let mut roots = self.roots();
        roots.retain(|known| known.root.identity() != root.identity());
        for known in &mut *roots {
            known.retired_secs.get_or_insert(now.unix_secs);
        }
        roots.retain(|known| self.is_kept(known, now));
        roots.insert(0, KnownRoot { root: Arc::clone(root), retired_secs: None });
        roots.truncate(1 + FORMER_MAX);
    }

    /// Looks for former releases next to the current one, by their names. Reads the disk.
    ///
    /// - `path`: the folder's path, with the symlink that is swapped.
    pub(super) fn find_former(&self, path: &Path, current: &Root) {
        if !self.is_on() {
            return;
        }
        for (found, retired_secs) in former_releases(path, FORMER_MAX) {
            let Ok(root) = current.opened_again(&found) else { continue };
            let mut roots = self.roots();
            let is_known = |known: &KnownRoot| known.root.identity() == root.identity();
            let is_new = root.identity() != current.identity() && !roots.iter().any(is_known);
            if is_new && roots.len() <= FORMER_MAX {
                let retired_secs = Some(retired_secs);
                roots.push(KnownRoot { root: Arc::new(root), retired_secs });
            }
        }
    }

    /// Takes over the roots that another one knows for the same path.
    pub(super) fn learn_from(&self, other: &Self) {
        if !self.is_on() {
            return;
        }
        let all: Vec<(Arc<Root>, Option<u64>)> = other
            .roots()
            .iter()
            .map(|known| (Arc::clone(&known.root), known.retired_secs))
            .collect();
        let mut roots = self.roots();
        for (root, retired_secs) in all {
            let is_known = |known: &KnownRoot| known.root.identity() == root.identity();
            if roots.len() <= FORMER_MAX && !roots.iter().any(is_known) {
                roots.push(KnownRoot { root, retired_secs });
            }
        }
    }

    /// Returns the roots that a file may be in if it is not in the one that a worker uses.
    pub(super) fn others(&self, used: Identity, now: Now) -> Vec<Arc<Root>> {
        let mut roots = self.roots();
        for known in roots.iter_mut().skip(1) {
            known.retired_secs.get_or_insert(now.unix_secs);
        }
        let others = roots.iter().filter(|known| known.root.identity() != used);
        others
            .filter(|known| self.is_kept(known, now))
            .map(|known| Arc::clone(&known.root))
            .collect()
    }

    fn is_kept(&self, known: &KnownRoot, now: Now) -> bool {
        let ends = |retired: u64| retired.saturating_add(self.keep.as_secs());
        known.retired_secs.is_none_or(|retired| now.unix_secs < ends(retired))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(count: usize) -> (tempfile::TempDir, Vec<Arc<Root>>) {
        let place = tempfile::TempDir::new().expect("a temporary folder");
        let open = |at: usize| {
            let path = place.path().join(at.to_string());
            std::fs::create_dir(&path).expect("a folder");
            Arc::new(Root::open(&path).expect("the folder opens"))
        };
        let roots = (0..count).map(open).collect();
        (place, roots)
    }

    fn others(releases: &Releases, used: &Root, unix_secs: u64) -> Vec<Identity> {
        let now = Now { unix_secs, mono_ms: 0 };
        releases.others(used.identity(), now).iter().map(|root| root.identity()).collect()
    }

    fn adopt(releases: &Releases, root: &Arc<Root>, unix_secs: u64) {
        releases.adopt(root, Now { unix_secs, mono_ms: 0 });
    }

    #[test]
    fn a_former_root_is_known_for_as_long_as_it_is_kept() {
        let (_place, all) = roots(3);
        let id = |at: usize| all[at].identity();
        let releases = Releases::new(Duration::from_mins(1), &all[0]);
        adopt(&releases, &all[1], 1_000);
        adopt(&releases, &all[2], 1_030);
        assert_eq!(others(&releases, &all[2], 1_059), [id(1), id(0)]);
        assert_eq!(others(&releases, &all[2], 1_060), [id(1)]);
        assert_eq!(others(&releases, &all[2], 1_090), []);
        // A worker that is behind finds what others have moved on to.
        assert_eq!(others(&releases, &all[0], 1_031), [id(2), id(1)]);
        // Another worker that follows later does not postpone the end.
        adopt(&releases, &all[2], 1_050);
        assert_eq!(others(&releases, &all[2], 1_060), [id(1)]);
    }

    #[test]
    fn a_root_that_comes_back_is_current_again() {
        let (_place, all) = roots(2);
        let releases = Releases::new(Duration::from_mins(1), &all[0]);
        adopt(&releases, &all[1], 1_000);
        adopt(&releases, &all[0], 1_010);
        assert_eq!(others(&releases, &all[1], 9_999), [all[0].identity()]);
        assert_eq!(others(&releases, &all[0], 1_069), [all[1].identity()]);
        assert_eq!(others(&releases, &all[0], 1_070), []);
    }

    #[test]
    fn former_roots_are_bounded_and_unused_without_a_time() {
        let (_place, all) = roots(40);
        let releases = Releases::new(Duration::from_mins(1), &all[0]);
        let off = Releases::new(Duration::ZERO, &all[0]);
        for root in &all[1..] {
            adopt(&releases, root, 1_000);
            adopt(&off, root, 1_000);
        }
        let newest: Vec<Identity> = all[23..39].iter().rev().map(|root| root.identity()).collect();
        assert_eq!(others(&releases, &all[39], 1_001), newest);
        assert!(!off.is_on() && off.roots().len() == 1);
    }
}
