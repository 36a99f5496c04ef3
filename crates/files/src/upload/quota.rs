//! How many bytes the files of a folder may have together, if there is a bound.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gustnado_tasks::Now;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::UploadFailure;
use crate::path::PART_NAME;
use crate::resolve::{Identity, Root};

/// After how long the files are counted again: others may write to the folder, and delete there.
const RECOUNT_MS: u64 = 60_000;
/// How long an upload waits for the first count, which another one makes.
const COUNT_WAIT: Duration = Duration::from_millis(500);
/// The most entries that are counted. A folder with more is as good as full.
const ENTRIES_MAX: usize = 1_000_000;
/// The most folders within each other.
const DEPTH_MAX: usize = 256;

/// The quotas of the folders that files are sent to, by their roots: however many routes lead to
/// one, and whatever a reload changes, its bytes are counted once.
#[derive(Debug, Default)]
pub(crate) struct UploadQuotas(Mutex<HashMap<Identity, Arc<UploadQuota>>>);

impl UploadQuotas {
    /// Returns that of a root.
    pub(super) fn of(&self, root: Identity, now: Now) -> Arc<UploadQuota> {
        let mut quotas = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = quotas.get(&root) {
            return Arc::clone(known);
        }
        // What no upload uses and what would be counted again anyway is forgotten.
        quotas.retain(|_, quota| Arc::strong_count(quota) > 1 || !quota.state().is_due(now));
        Arc::clone(quotas.entry(root).or_default())
    }
}

/// The bytes of a folder's files.
#[derive(Debug, Default)]
pub(crate) struct UploadQuota {
    state: Mutex<QuotaState>,
    /// Rung when a count has ended.
    counted: Condvar,
    /// Held while a file is put in its place, so that a condition is not overtaken by another
    /// upload.
    pub(super) commits: Mutex<()>,
}

/// Files under way have no name, so no count of the folder finds them: they are held apart.
#[derive(Debug, Default)]
struct QuotaState {
    /// The bytes of the files that have their names.
    on_disk: u64,
    /// Those of the files that are being sent.
    open: u64,
    /// Those that got their names while the files are counted. The count may have found them or
    /// not; until the next one they count as if it had not.
    put_meanwhile: u64,
    is_counting: bool,
    count: CountState,
}

#[derive(Clone, Copy, Debug, Default)]
enum CountState {
    #[default]
    Never,
    /// When that was.
    At(u64),
    /// There were too many entries. They are not looked through again for each upload.
    TooMany(u64),
}

/// What one upload takes of the quota. Dropping it gives that back.
#[derive(Debug)]
pub(super) struct QuotaShare {
    quota: Arc<UploadQuota>,
    bytes_max: u64,
    taken: u64,
}

impl QuotaState {
    fn is_due(&self, now: Now) -> bool {
        match self.count {
            CountState::Never => true,
            CountState::At(at) | CountState::TooMany(at) => {
                now.mono_ms.saturating_sub(at) >= RECOUNT_MS
            }
        }
    }

    fn used(&self) -> u64 {
        self.on_disk.saturating_add(self.open)
    }
}

impl UploadQuota {
    /// Begins an upload. Counts the files of the folder if that was not done lately.
    ///
    /// - `bytes_max`: the bound; 0 is none, and nothing is counted.
    pub(super) fn begin(
        self: &Arc<Self>,
        root: &Root,
        bytes_max: u64,
        now: Now,
    ) -> Result<QuotaShare, UploadFailure> {
        if bytes_max > 0 {
            self.count_if_due(now, || used_bytes(root, ENTRIES_MAX))?;
        }
        Ok(QuotaShare { quota: Arc::clone(self), bytes_max, taken: 0 })
    }

    /// Counts the files if that is due. Others go on by the former count meanwhile.
    ///
    /// - `count`: returns the bytes of all files; `None` if they are too many.
    fn count_if_due(
        &self,
        now: Now,
        count: impl FnOnce() -> Result<Option<u64>, Errno>,
    ) -> Result<(), UploadFailure> {
        let mut state = self.state();
        if state.is_counting && matches!(state.count, CountState::Never) {
            let is_waiting = |state: &mut QuotaState| state.is_counting;
            let waited = self.counted.wait_timeout_while(state, COUNT_WAIT, is_waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if matches!(state.count, CountState::Never) {
                return Err(UploadFailure::Busy);
            }
        }
        if state.is_due(now) && !state.is_counting {
            (state.is_counting, state.put_meanwhile) = (true, 0);
            drop(state);
            let counted = count();
            state = self.state();
            state.is_counting = false;
            self.counted.notify_all();
            match counted? {
                Some(bytes) => {
                    state.on_disk = bytes.saturating_add(state.put_meanwhile);
                    state.count = CountState::At(now.mono_ms);
                }
                None => state.count = CountState::TooMany(now.mono_ms),
            }
        }
        match state.count {
            CountState::TooMany(_) => Err(UploadFailure::Quota),
            CountState::Never | CountState::At(_) => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaShare {
    /// Takes more bytes. Returns whether there was room for them.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let mut state = self.quota.state();
        state.open = state.open.saturating_add(bytes);
        self.taken += bytes;
        self.bytes_max == 0 || state.used() <= self.bytes_max
    }

    /// Returns whether there is room for so many bytes now.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let used = self.quota.state().used();
        self.bytes_max == 0 || used.saturating_add(bytes) <= self.bytes_max
    }

    /// Makes what was taken the bytes of a file that has its name now.
    ///
    /// - `replaced`: the bytes of the one that it has taken the place of.
    pub(super) fn keep(&mut self, replaced: u64) {
        let taken = std::mem::take(&mut self.taken);
        let mut state = self.quota.state();
        state.open = state.open.saturating_sub(taken);
        state.on_disk = state.on_disk.saturating_add(taken).saturating_sub(replaced);
        state.put_meanwhile = state.put_meanwhile.saturating_add(taken);
    }

    /// Returns the quota that it is of.
    pub(super) fn quota(&self) -> Arc<UploadQuota> {
        Arc::clone(&self.quota)
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let mut state = self.quota.state();
        state.open = state.open.saturating_sub(self.taken);
    }
}

/// Returns the bytes of all files below a root; `None` if there are too many entries. Symlinks are
/// not followed.
fn used_bytes(root: &Root, entries_max: usize) -> Result<Option<u64>, Errno> {
    let (mut folders, mut entries, mut bytes) = (vec![Vec::new()], 0, 0_u64);
    while let Some(relative) = folders.pop() {
        let directory = match root.open_directory(&relative) {
            Ok(directory) => directory,
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(errno),
            // It is gone by now, or nobody may look into it.
            Err(_) => continue,
        };
        let mut dir = Dir::read_from(&directory)?;
        while let Some(found) = dir.read() {
            let found = found?;
            let name = found.file_name().to_bytes();
            // (Files that are being sent are held apart.)
            if name == b"." || name == b".." || name.starts_with(PART_NAME.as_bytes()) {
                continue;
            }
            entries += 1;
            if entries > entries_max {
                return Ok(None);
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let Ok(stat) = rustix::fs::statat(&directory, name, flags) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
                }
                FileType::Directory if is_shallow(&relative) => {
                    let slash: &[u8] = if relative.is_empty() { b"" } else { b"/" };
                    folders.push([&relative, slash, name].concat());
                }
                _ => {}
            }
        }
    }
    Ok(Some(bytes))
}

fn is_shallow(relative: &[u8]) -> bool {
    memchr::memchr_iter(b'/', relative).count() < DEPTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn at(secs: u64) -> Now {
        Now { mono_ms: secs * 1_000, unix_secs: 0 }
    }

    fn folder_of(bytes: usize) -> (TempDir, Root) {
        let place = TempDir::new().expect("a temporary folder");
        fs::create_dir(place.path().join("sub")).expect("a folder");
        fs::write(place.path().join("sub/old"), vec![0; bytes]).expect("a file");
        let root = Root::open(place.path()).expect("it is there");
        (place, root)
    }

    #[test]
    fn files_under_way_count_whenever_the_folder_is_counted() {
        let (place, root) = folder_of(10);
        let quota = Arc::<UploadQuota>::default();
        let begin = |secs| quota.begin(&root, 100, at(secs)).expect("it is counted");
        let mut first = begin(0);
        assert!(first.take(60) && !first.has_room(31));
        let mut second = begin(60);
        assert!(!second.has_room(31), "the first is under way still");
        assert!(!second.take(31));
        // What was never in the count is not taken from it.
        drop(second);
        assert!(first.has_room(30) && !first.has_room(31));
        fs::write(place.path().join("new"), [0; 60]).expect("a file");
        first.keep(0);
        assert!(!begin(61).has_room(31) && !begin(121).has_room(31));
        fs::remove_file(place.path().join("new")).expect("it is there");
        assert!(!begin(122).has_room(31) && begin(181).has_room(90));
    }

    #[test]
    fn what_is_put_while_the_folder_is_counted_is_not_forgotten() {
        let (_place, root) = folder_of(10);
        let quota = Arc::<UploadQuota>::default();
        let mut other = quota.begin(&root, 100, at(0)).expect("it is counted");
        assert!(other.take(50));
        let count = || {
            other.keep(0);
            Ok(Some(10))
        };
        quota.count_if_due(at(60), count).expect("it is counted");
        let share = quota.begin(&root, 100, at(61)).expect("it is counted");
        assert!(share.has_room(40) && !share.has_room(41));
    }

    #[test]
    fn a_folder_of_too_many_files_is_not_looked_through_for_each_upload() {
        let (_place, root) = folder_of(10);
        assert_eq!(used_bytes(&root, 2), Ok(Some(10)));
        assert_eq!(used_bytes(&root, 1), Ok(None));
        let quota = UploadQuota::default();
        let mut counts = 0;
        for secs in [0, 1, 59, 60, 61] {
            let count = || {
                counts += 1;
                Ok(None)
            };
            assert_eq!(quota.count_if_due(at(secs), count), Err(UploadFailure::Quota));
        }
        assert_eq!(counts, 2);
        assert_eq!(quota.count_if_due(at(120), || Ok(Some(7))), Ok(()));
        // A disk that fails is asked again.
        assert_eq!(quota.count_if_due(at(180), || Err(Errno::IO)), Err(Errno::IO.into()));
        assert_eq!(quota.count_if_due(at(180), || Ok(Some(7))), Ok(()));
    }

    #[test]
    fn one_that_is_unused_is_forgotten_after_a_minute() {
        let (quotas, root) = (UploadQuotas::default(), Identity::new(1, 2));
        let quota = quotas.of(root, at(0));
        assert!(Arc::ptr_eq(&quota, &quotas.of(root, at(0))));
        quota.count_if_due(at(0), || Ok(Some(7))).expect("it is counted");
        drop(quota);
        let known = |secs| {
            drop(quotas.of(Identity::new(2, secs), at(secs)));
            quotas.0.lock().expect("no test has failed").len()
        };
        assert_eq!((known(59), known(120)), (2, 1));
    }
}
