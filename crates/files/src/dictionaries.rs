//! Files that are dictionaries for their next version (RFC 9842): which they are, what their
//! responses say of it, and which files the hash means that a client names.
//!
//! A dictionary is a file of another release with a name of the same pattern: `main.0a1b2c3d.js`
//! for `main.9f2c1b7a.js`. So a client can name no other file than one that it could load, and a
//! server that was restarted knows what the one before it has sent.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gustnado_compress::DELTA_BYTES_MAX;
use gustnado_config::is_forbidden;
use gustnado_http::dictionary::{
    AVAILABLE_DICTIONARY, DictionaryHash, USE_AS_DICTIONARY, use_as_dictionary,
};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::status::Status;
use gustnado_tasks::Now;
use rustix::fs::{Dir, FileType};
use sha2::{Digest as _, Sha256};

use super::content_type::ContentType;
use super::hashed_name::hash_in;
use super::made::is_of_types;
use super::open_file::read_whole;
use super::path::check_segment;
use super::resolve::{Identity, Root};
use super::response::FileResponse;
use super::stamp::Stamp;
use super::{Folder, spa};

/// The most patterns whose files are known. With 17 files of each, that is less than two megabytes.
const PATTERNS_MAX: usize = 512;
/// The most files of a pattern that are known, those of the newest releases first.
const FILES_MAX: usize = 64;
/// The most names of a folder that are compared with a pattern.
const NAMES_MAX: usize = 16_384;

/// How long the files of a pattern are known without a look at the disk, in milliseconds.
const KNOWN_MS: u64 = 60_000;
/// The same where another release is served by then. During a swap, workers differ for a while.
const KNOWN_OF_OTHER_MS: u64 = 1_000;

/// The names that versions of one file have: all but for the hash is the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NamePattern {
    /// The path of their folder below the root.
    folder: Vec<u8>,
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl NamePattern {
    /// Returns the pattern of a path below the root. A name that is a hash and nothing else has
    /// none: it would be that of all such names.
    fn of(relative: &[u8]) -> Option<Self> {
        let start = memchr::memrchr(b'/', relative).map_or(0, |at| at + 1);
        let (folder, name) = relative.split_at(start);
        let hash = hash_in(name)?;
        let (before, behind) = (&name[..hash.start], &name[hash.end..]);
        before.iter().any(u8::is_ascii_alphanumeric).then(|| Self {
            folder: folder.strip_suffix(b"/").unwrap_or(folder).to_vec(),
            before: before.to_vec(),
            behind: behind.to_vec(),
        })
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        match &*self.folder {
            [] => name.to_vec(),
            folder => [folder, b"/", name].concat(),
        }
    }
}

/// What a file is for other versions of itself.
#[derive(Debug)]
pub(super) struct DictionaryUse {
    pub(super) pattern: Arc<NamePattern>,
    /// The value of `Use-As-Dictionary`, if clients may keep the file.
    announcement: Option<Vec<u8>>,
}

impl DictionaryUse {
    /// Returns what a file is; `None` if it is neither a dictionary nor sent with one.
    ///
    /// - `key`: what was looked for.
    /// - `relative`: the path of the file below the root.
    /// - `own`: the fields that it has beyond the folder's.
    pub(super) fn of(
        folder: &Folder,
        (key, relative): (&[u8], &[u8]),
        (content_type, own): (&ContentType, &Fields),
        size: u64,
    ) -> Option<Self> {
        // Its URL has to be its name, and nothing that a name takes more than one way to write.
        let is_itself = key != spa::KEY && key.strip_prefix(b"/") == Some(relative);
        let sizes = folder.settings.compress_bytes_min.max(1)..=DELTA_BYTES_MAX;
        let is_one = folder.uses_dictionaries
            && is_itself
            && sizes.contains(&size)
            && is_of_types(&folder.settings, content_type)
            && folder.immutable_folders().keep(relative);
        if !is_one {
            return None;
        }
        let pattern = NamePattern::of(relative)?;
        if folder.headers.forbid_change(key, own) {
            return None;
        }
        let announced = use_as_dictionary(&pattern.before, &pattern.behind)?;
        let announcement = may_be_kept(folder.headers.cache_control(own)).then_some(announced);
        Some(Self { pattern: Arc::new(pattern), announcement })
    }

    /// Completes a response about the file over a secure connection: it depends on the dictionary
    /// that the client has, and a whole file becomes one.
    pub(super) fn complete(&self, mut response: FileResponse) -> FileResponse {
        let fields = response.fields.to_mut();
        let mut vary: Vec<&[u8]> = fields.get_all(HeaderId::Vary).collect();
        vary.push(AVAILABLE_DICTIONARY.as_bytes());
        let vary = vary.join(b", ".as_slice());
        fields.remove(HeaderId::Vary);
        fields.add_trusted(HeaderId::Vary, &vary);
        if let Some(announcement) = &self.announcement
            && response.status == Status::OK
        {
            fields.add_trusted(USE_AS_DICTIONARY, announcement);
        }
        response
    }
}

/// Returns whether a client may use a response again without asking (RFC 9111 §5.2.2): only then it
/// is a dictionary.
///
/// - `cache_control`: the values of its `Cache-Control` fields.
fn may_be_kept<'v>(cache_control: impl IntoIterator<Item = &'v [u8]>) -> bool {
    let values = cache_control.into_iter();
    let mut members = values.flat_map(|value| value.split(|byte| *byte == b','));
    !members.any(|member| {
        let member = member.trim_ascii();
        ["no-store", "no-cache", "max-age=0"]
            .iter()
            .any(|directive| member.eq_ignore_ascii_case(directive.as_bytes()))
    })
}

/// A file that a client may have.
#[derive(Debug, Clone)]
pub(super) struct KnownDictionary {
    pub(super) hash: DictionaryHash,
    /// The root that it lies below.
    pub(super) root: Identity,
    /// Its path there.
    pub(super) relative: Vec<u8>,
    pub(super) stamp: Stamp,
}

/// The files of the patterns that clients have named dictionaries for, for all workers.
#[derive(Debug, Default)]
pub(super) struct KnownDictionaries(Mutex<DictionaryTable>);

#[derive(Debug, Default)]
struct DictionaryTable {
    patterns: HashMap<Arc<NamePattern>, KnownFiles>,
    /// In the order in which they were added.
    order: VecDeque<Arc<NamePattern>>,
}

#[derive(Debug, Default)]
struct KnownFiles {
    files: Arc<[KnownDictionary]>,
    /// The root that was current, and when.
    read: Option<(Identity, u64)>,
    is_being_read: bool,
}

/// What is known of the dictionary that a client names.
pub(super) struct FoundDictionary {
    pub(super) dictionary: Option<KnownDictionary>,
    /// The caller is the one to read the files of the pattern.
    pub(super) is_due: bool,
}

impl KnownDictionaries {
    fn table(&self) -> MutexGuard<'_, DictionaryTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known without the disk.
    ///
    /// - `root`: the one that the calling worker uses.
    pub(super) fn find(
        &self,
        pattern: &Arc<NamePattern>,
        hash: &DictionaryHash,
        root: Identity,
        now: Now,
    ) -> FoundDictionary {
        let mut table = self.table();
        let known = table.entry(pattern);
        let dictionary = known.files.iter().find(|known| known.hash == *hash).cloned();
        let is_old = known.read.is_none_or(|(of, at_ms)| {
            let age_ms = now.mono_ms.saturating_sub(at_ms);
            age_ms >= KNOWN_MS || of != root && age_ms >= KNOWN_OF_OTHER_MS
        });
        let is_due = is_old && !known.is_being_read;
        known.is_being_read |= is_due;
        FoundDictionary { dictionary, is_due }
    }

    /// Reads the files of a pattern, as [`FoundDictionary::is_due`] says. Waits for the disk.
    ///
    /// - `roots`: the one that is served, and those before it.
    pub(super) fn read(
        &self,
        pattern: &Arc<NamePattern>,
        roots: &[Arc<Root>],
        folder: &Folder,
        now: Now,
    ) -> Arc<[KnownDictionary]> {
        let before = self.table().patterns.get(pattern).map(|known| Arc::clone(&known.files));
        let before = before.unwrap_or_default();
        let mut files = Vec::new();
        for root in roots {
            files_of(pattern, root, folder, &before, &mut files);
        }
        let files: Arc<[KnownDictionary]> = files.into();
        if let Some(known) = self.table().patterns.get_mut(pattern) {
            let read = roots.first().map(|root| (root.identity(), now.mono_ms));
            *known = KnownFiles { files: Arc::clone(&files), read, is_being_read: false };
        }
        files
    }

    /// Returns the number of patterns that are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table().patterns.len()
    }

    /// Notes that the files of a pattern are not read, although the caller was the one to do so.
    pub(super) fn abandon(&self, pattern: &NamePattern) {
        if let Some(known) = self.table().patterns.get_mut(pattern) {
            known.is_being_read = false;
        }
    }
}

impl DictionaryTable {
    fn entry(&mut self, pattern: &Arc<NamePattern>) -> &mut KnownFiles {
        if !self.patterns.contains_key(pattern) {
            if self.order.len() >= PATTERNS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.patterns.remove(&oldest);
            }
            self.order.push_back(Arc::clone(pattern));
        }
        self.patterns.entry(Arc::clone(pattern)).or_default()
    }
}

/// Adds the files of a pattern in one root. What cannot be read is none.
///
/// - `before`: what was known: a file that has not changed is not read again.
fn files_of(
    pattern: &NamePattern,
    root: &Root,
    folder: &Folder,
    before: &[KnownDictionary],
    files: &mut Vec<KnownDictionary>,
) {
    let Ok(located) = root.locate(&pattern.folder) else { return };
    let opened = root.open_folder(&located, &pattern.folder);
    let Ok(entries) = opened.and_then(Dir::read_from) else { return };
    for entry in entries.take(NAMES_MAX).filter_map(Result::ok) {
        if files.len() >= FILES_MAX {
            return;
        }
        let relative = pattern.path_of(entry.file_name().to_bytes());
        if NamePattern::of(&relative).as_ref() == Some(pattern)
            && may_be_sent(folder, &relative)
            && let Some((stamp, hash)) = hashed(root, &relative, before)
        {
            files.push(KnownDictionary { hash, root: root.identity(), relative, stamp });
        }
    }
}

/// Returns whether a client could ask for a file.
fn may_be_sent(folder: &Folder, relative: &[u8]) -> bool {
    let name = memchr::memrchr(b'/', relative).map_or(relative, |at| &relative[at + 1..]);
    check_segment(name, folder.settings.hidden).is_ok()
        && !is_forbidden(&folder.settings.forbidden, relative, false)
}

fn hashed(
    root: &Root,
    relative: &[u8],
    before: &[KnownDictionary],
) -> Option<(Stamp, DictionaryHash)> {
    let located = root.locate(relative).ok()?;
    let stamp = Stamp::of(&located.stat);
    let is_one = located.kind() == FileType::RegularFile;
    if !is_one || !(1..=DELTA_BYTES_MAX).contains(&stamp.size) {
        return None;
    }
    if let Some(known) = before.iter().find(|known| known.stamp == stamp) {
        return Some((stamp, known.hash));
    }
    let (file, _) = root.open_to_read(&located, relative).ok()?;
    Some((stamp, Sha256::digest(read_whole(&file, &stamp)?).into()))
}
