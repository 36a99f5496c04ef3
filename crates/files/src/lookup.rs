//! Finds a file below its root.
//!
//! What is in memory is found on the worker at once ([`Access::Cached`]): the kernel does not wait,
//! and reports when it would have to. Then a thread does the same and may wait, see `waiting`.

use std::sync::Arc;

use gustnado_config::is_forbidden;
use gustnado_tasks::Now;
use rustix::io::Errno;

use super::cached_file::{Access, CachedFile, Representation};
use super::dictionaries::DictionaryUse;
use super::error::Failure;
use super::open_folder::OpenFolder;
use super::path::FilePath;
use super::resolve::{Identity, Root};
use super::stamp::Stamp;
use super::target::{Moved, Target, TargetFile};
use super::trace::{TracedLookup, TriedEntry};
use super::variants::{SeenVariants, Siblings, VariantSet};
use super::{Folder, made};

/// How often a lookup is repeated if the file was replaced between looking and opening.
const ATTEMPTS_MAX: usize = 4;

/// The entry at a path.
pub(super) enum FoundEntry {
    /// The cached file, which has not changed.
    Unchanged,
    /// A file that was just loaded. `may_cache`: it belongs to the root that the worker's cache is
    /// for.
    Loaded { file: Arc<CachedFile>, may_cache: bool },
    /// The same of a file that has compressed ones beside it.
    Variants { set: Arc<VariantSet>, may_cache: bool },
    /// Another path, to which the client is sent.
    Moved(Moved),
    /// A directory without an index.
    Listed(OpenFolder),
}

impl FoundEntry {
    /// Returns whether it is a file that any number of paths lead to.
    fn is_fallback(&self) -> bool {
        matches!(
            self,
            Self::Loaded { may_cache: false, .. } | Self::Variants { may_cache: false, .. }
        )
    }
}

/// Finds the file of `key`: a canonical path, or the key of an application's page.
///
/// What a former release had is found in its root, see `releases`.
///
/// - `cached`: the state of the calling worker's cached file.
pub(super) fn find(
    (root, access): (&Root, Access),
    folder: &Folder,
    key: &[u8],
    cached: Option<SeenVariants>,
    now: Now,
) -> Result<FoundEntry, Failure> {
    let outcome = find_in((root, access, false), folder, key, cached, now);
    // A page in place of what is not there is no such file either.
    let is_missing = is_missing(&outcome) || outcome.as_ref().is_ok_and(FoundEntry::is_fallback);
    if !is_missing || !folder.keeps(key) {
        return outcome;
    }
    for other in folder.releases.others(root.identity(), now) {
        match find_in((&other, access, true), folder, key, cached, now) {
            Ok(FoundEntry::Moved(_) | FoundEntry::Listed(_)) => {}
            Ok(found) if found.is_fallback() => {}
            Err(failure) if failure.is_missing() => {}
            found => return found,
        }
    }
    outcome
}

/// Returns whether nothing was found.
pub(super) fn is_missing(outcome: &Result<FoundEntry, Failure>) -> bool {
    outcome.as_ref().is_err_and(|failure| failure.is_missing())
}

/// Finds the file of `key` in one root.
///
/// - `is_former`: it is that of a former release.
fn find_in(
    (root, access, is_former): (&Root, Access, bool),
    folder: &Folder,
    key: &[u8],
    cached: Option<SeenVariants>,
    now: Now,
) -> Result<FoundEntry, Failure> {
    let traced = TracedLookup::begin(folder, root, key, is_former);
    // What is forbidden is not there, by whatever name it is looked for.
    let check = |relative: &[u8], names_directory| {
        if !is_forbidden(&folder.settings.forbidden, relative, names_directory) {
            return Ok(());
        }
        traced.left_out(relative, TriedEntry::Forbidden);
        Err(Failure::Disk(Errno::NOENT))
    };
    let check_other = |relative: &[u8]| {
        let outcome = folder.check_other(relative);
        outcome.inspect_err(|_| traced.left_out(relative, TriedEntry::OtherRoute))
    };
    let locate = |relative: &[u8]| {
        check(relative, false)?;
        let outcome = match access {
            Access::Waits => root.locate(relative).map_err(Failure::Disk),
            Access::Cached => match root.locate_cached(relative) {
                Some(located) => located.map_err(Failure::Disk),
                None => Err(Failure::WouldWait),
            },
        };
        traced.tried(relative, &outcome);
        outcome
    };
    let check_path = |path: &FilePath| check(&path.relative, path.names_directory);
    let target = folder.target(key, (check_path, check_other), locate);
    traced.target(&target);
    let file = match target? {
        Target::File(file) => file,
        Target::Moved(moved) => return Ok(FoundEntry::Moved(moved)),
        // The kernel has no way to read a directory without waiting.
        Target::Folder(..) if access == Access::Cached => return Err(Failure::WouldWait),
        Target::Folder(located, relative) => {
            return Ok(FoundEntry::Listed(OpenFolder::open(root, &located, &relative)?));
        }
    };
    let siblings = Siblings::locate(folder, (&file.located, &file.relative), locate)?;
    // Only the attributes are compared, so an unchanged file costs neither an open nor a read.
    if let Some(cached) = cached
        && cached.is_unchanged(&file.located, &siblings)
        && !cached.iter().any(|seen| folder.has_new_digest(seen, now))
    {
        return Ok(FoundEntry::Unchanged);
    }
    load((root, access), (folder, &traced), key, (&file, &siblings), now)
}

/// Loads a file that was found, with its siblings.
fn load(
    (root, access): (&Root, Access),
    (folder, traced): (&Folder, &TracedLookup<'_>),
    key: &[u8],
    (file, siblings): (&TargetFile, &Siblings),
    now: Now,
) -> Result<FoundEntry, Failure> {
    let TargetFile { located, relative, is_fallback } = file;
    // Opens the located file: if a rename has exchanged it meanwhile, this fails with `AGAIN`.
    let name = memchr::memrchr(b'/', relative).map_or(&**relative, |at| &relative[at + 1..]);
    let content_type = folder.headers.types.of(name);
    let own = folder.own_fields(key, relative);
    let size = Stamp::of(&located.stat).size;
    let possible = made::possible(folder, key, (&content_type, &own), size);
    traced.file(file, siblings, possible);
    let may_cache = !is_fallback;
    let paths = may_cache.then_some((key, &**relative));
    let dictionary =
        paths.and_then(|paths| DictionaryUse::of(folder, paths, (&content_type, &own), size));
    if !siblings.is_empty() || !possible.is_empty() || dictionary.is_some() {
        let file = (&**relative, &own, dictionary, possible);
        let set = VariantSet::load((root, access), (located, siblings), file, folder, now)?;
        return Ok(FoundEntry::Variants { set: Arc::new(set), may_cache });
    }
    let representation = Representation::of_type(content_type);
    let file = (located, &**relative, representation);
    let file = CachedFile::load((root, access), file, folder.load_context(&own), now)?;
    folder.request_digest(&file, now);
    Ok(FoundEntry::Loaded { file: Arc::new(file), may_cache })
}

/// Finds the file of `key`, and repeats that while the file is being replaced. This bound keeps a
/// file that is replaced all the time from holding a thread.
fn find_with_retries(
    root: &Root,
    folder: &Folder,
    key: &[u8],
    cached: Option<SeenVariants>,
    now: Now,
) -> Result<FoundEntry, Failure> {
    let mut outcome = Err(Failure::Disk(Errno::AGAIN));
    for _ in 0..ATTEMPTS_MAX {
        // `AGAIN`: the file changed during the read. `STALE`: a file server has replaced it.
        outcome = find((root, Access::Waits), folder, key, cached, now);
        if !matches!(outcome, Err(Failure::Disk(Errno::AGAIN | Errno::STALE))) {
            break;
        }
    }
    outcome
}

/// The outcome of a lookup that may wait for the disk.
pub(super) struct Followed {
    /// The root that was looked in.
    pub(super) root: Arc<Root>,
    /// The folder's path led to that root during the lookup.
    pub(super) is_current: bool,
    pub(super) outcome: Result<FoundEntry, Failure>,
}

/// Finds the file of `key` in `root`, or in the root that the folder's path leads to by now.
///
/// The path is looked at if that is due, and before anything counts as missing: a client may have a
/// page of the next release already, from another worker.
///
/// - `cached`: the state of the calling worker's cached file, which is of `root`.
pub(super) fn find_following(
    (root, is_due): (Arc<Root>, bool),
    folder: &Folder,
    key: &[u8],
    cached: Option<SeenVariants>,
    now: Now,
) -> Followed {
    let mut new = if is_due { new_root(&root, folder) } else { None };
    if new.is_none() {
        let outcome = find_with_retries(&root, folder, key, cached, now);
        let is_current = is_due || is_missing(&outcome);
        if !is_due && is_current {
            new = new_root(&root, folder);
        }
        if new.is_none() {
            return Followed { root, is_current, outcome };
        }
    }
    let root = new.map_or(root, Arc::new);
    // A cached file of another root proves nothing, even if its stamp is equal.
    let outcome = find_with_retries(&root, folder, key, None, now);
    Followed { root, is_current: true, outcome }
}

/// Returns the root that a folder's path leads to now, if it is another one. A path that leads
/// nowhere is probably a swap in progress, so the old root stays.
pub(super) fn new_root(root: &Root, folder: &Folder) -> Option<Root> {
    let found = Identity::at(&folder.path).ok()?;
    if found == root.identity() {
        return None;
    }
    let new = root.opened_again(&folder.path).ok()?;
    folder.releases.find_former(&folder.path, &new);
    Some(new)
}
