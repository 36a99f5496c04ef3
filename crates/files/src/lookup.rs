//! Finding a file below its root.
//!
//! What is in memory is found on the worker at once ([`Access::Cached`]): the kernel is asked not
//! to wait, and says so when it would have to. Then a thread does the same and may wait: see
//! `waiting`.

use std::sync::Arc;

use gustnado_tasks::Now;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::cached_file::{Access, CachedFile, Seen};
use super::error::Failure;
use super::listing::Listed;
use super::resolve::{Identity, Located, Root};
use super::{Folder, path};

/// How often a file is looked up again that was replaced between looking and opening.
const ATTEMPTS_MAX: usize = 4;

/// What a directory is answered with.
const INDEX: &[u8] = b"index.html";

/// What stands at a path.
pub(super) enum Found {
    /// What the cache holds for it, which is still good.
    Held,
    /// A file, just loaded; `may_hold` when it is of the root that the worker's cache is for.
    Loaded { file: Arc<CachedFile>, may_hold: bool },
    /// A directory whose path did not end with a slash.
    Directory,
    /// A directory without an index.
    Listed(Listed),
}

/// Finds what `key` names, a canonical path.
///
/// - `held`: what the asking worker's cache has for it.
pub(super) fn look(
    (root, access): (&Root, Access),
    folder: &Folder,
    key: &[u8],
    held: Option<Seen>,
    now: Now,
) -> Result<Found, Failure> {
    let locate = |relative: &[u8]| match access {
        Access::Waits => root.locate(relative).map_err(Failure::Disk),
        Access::Cached => match root.locate_cached(relative) {
            Some(located) => located.map_err(Failure::Disk),
            None => Err(Failure::WouldWait),
        },
    };
    let path = path::decode(key, folder.hidden)?;
    let mut relative = path.relative;
    let mut located = locate(&relative)?;
    if located.kind() == FileType::Directory {
        if !path.names_directory {
            return Ok(Found::Directory);
        }
        let (above, folder_bytes) = (located, relative.len());
        if !relative.is_empty() {
            relative.push(b'/');
        }
        relative.extend_from_slice(INDEX);
        located = match locate(&relative) {
            Err(Failure::Disk(Errno::NOENT)) => {
                let place = (&above, &relative[..folder_bytes]);
                return without_index((root, access), folder, place);
            }
            located => located?,
        };
    } else if path.names_directory {
        return Err(Failure::Disk(Errno::NOTDIR));
    }
    if held.is_some_and(|held| held.is_still(&located.stat)) {
        return Ok(Found::Held);
    }
    let with = (&folder.headers, folder.pool());
    let file = Arc::new(CachedFile::load((root, access), &located, &relative, with, now)?);
    Ok(Found::Loaded { file, may_hold: true })
}

/// What a directory is answered with that has no index.
fn without_index(
    (root, access): (&Root, Access),
    folder: &Folder,
    (located, relative): (&Located, &[u8]),
) -> Result<Found, Failure> {
    match access {
        _ if !folder.listing => Err(Failure::NoIndex),
        // (Reading a directory has no way of not waiting.)
        Access::Cached => Err(Failure::WouldWait),
        Access::Waits => Ok(Found::Listed(Listed::read((root, folder), located, relative)?)),
    }
}

/// The same as often as it takes: a file may be replaced between looking and opening.
pub(super) fn look_again(
    root: &Root,
    folder: &Folder,
    key: &[u8],
    held: Option<Seen>,
    now: Now,
) -> Result<Found, Failure> {
    let mut outcome = Err(Failure::Disk(Errno::AGAIN));
    for _ in 0..ATTEMPTS_MAX {
        outcome = look((root, Access::Waits), folder, key, held, now);
        if !matches!(outcome, Err(Failure::Disk(Errno::AGAIN | Errno::STALE))) {
            break;
        }
    }
    outcome
}

/// The root that a folder's path leads to by now, if it is another one. A path that leads nowhere
/// for a moment is a swap in the making: the old root stays.
pub(super) fn new_root(root: &Root, folder: &Folder) -> Option<Root> {
    let found = Identity::at(&folder.path).ok()?;
    if found == root.identity() { None } else { root.opened_again(&folder.path).ok() }
}
