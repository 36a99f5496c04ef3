//! The representations of one file: its own bytes, those of the compressed files beside it, and
//! those that the server makes.
//!
//! Which of them a client gets is decided by its `Accept-Encoding` (RFC 9110 §12.5.3). Each has a
//! tag of its own, and each tells caches that others exist (`Vary`).

use std::sync::Arc;

use gustnado_compress::is_compressed_already;
use gustnado_config::Precompressed;
use gustnado_http::content_coding::{AcceptedCodings, CodingSet, ContentCoding};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Now;
use rustix::fs::FileType;

use super::Folder;
use super::cached_file::{Access, CachedFile, Representation};
use super::dictionaries::DictionaryUse;
use super::error::Failure;
use super::file_request::FileRequest;
use super::headers::FolderHeaders;
use super::made::{self, Made, MadeBy, MadeKey};
use super::resolve::{Located, Root};
use super::response::FileResponse;
use super::select::select_or_whole;
use super::stamp::{Seen, Stamp};

/// The codings of files that lie beside others, with the ending of each.
const SIBLINGS: [(ContentCoding, &[u8]); 3] = [
    (ContentCoding::Gzip, b".gz"),
    (ContentCoding::Zstd, b".zst"),
    (ContentCoding::Brotli, b".br"),
];

/// What there may be for one file: itself, and its siblings.
const COUNT: usize = 1 + SIBLINGS.len();

/// A file of which several representations exist.
#[derive(Debug)]
pub(super) struct VariantSet {
    /// The file itself first, then in the order of [`SIBLINGS`].
    files: [Option<Arc<CachedFile>>; COUNT],
    available: CodingSet,
    /// What there is, and what the server may make.
    offered: CodingSet,
    /// What the file is for, which is a part of the key of what is made of it.
    purpose: u64,
    /// What it is for other versions of itself.
    dictionary: Option<DictionaryUse>,
}

/// What a client gets of a file.
pub(super) enum ChosenVariant<'s> {
    /// A file on the disk.
    File(&'s Arc<CachedFile>),
    /// One that the server makes.
    Make(ContentCoding),
    /// It accepts none.
    Nothing,
}

/// A representation that has to be made, and what there is without it.
#[derive(Debug)]
pub(super) struct MakeVariant {
    set: Arc<VariantSet>,
    coding: ContentCoding,
}

impl MakeVariant {
    pub(super) fn new(set: &Arc<VariantSet>, coding: ContentCoding) -> Self {
        Self { set: Arc::clone(set), coding }
    }

    /// Responds by what is known of it; another thread may be making it.
    ///
    /// # Errors
    /// Nothing is known: it has to be made.
    pub(super) fn known(
        self,
        folder: &Folder,
        request: RequestView<'_>,
        now: Now,
    ) -> Result<FileResponse, Self> {
        match folder.made.get(&self.key()) {
            Some(Made::File(file)) => {
                folder.count_coding(&file);
                Ok(select_or_whole(file, &folder.headers, request, now))
            }
            Some(Made::UnderWay | Made::Nothing) => {
                Ok(self.set.respond_at_once(folder, request, now))
            }
            None => Err(self),
        }
    }

    /// Makes it, if nobody does. Waits for the disk.
    pub(super) fn run(&self, folder: &Folder, now: Now) {
        made::make(folder, self.set.original(), self.key(), now);
    }

    fn key(&self) -> MadeKey {
        self.set.key_of(MadeBy::Coding(self.coding))
    }

    /// Responds with it, or without it if it could not be made.
    pub(super) fn response(
        self,
        folder: &Folder,
        request: FileRequest<'_>,
        now: Now,
    ) -> FileResponse {
        let set = Arc::clone(&self.set);
        let without = |this: Self| this.set.respond_at_once(folder, request.view, now);
        set.completed(self.known(folder, request.view, now).unwrap_or_else(without), request)
    }

    /// Returns it for a job on another thread.
    pub(super) fn job(&self) -> Self {
        Self::new(&self.set, self.coding)
    }
}

/// The state of a file and its siblings when they were loaded, to be compared with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenVariants([Option<Seen>; COUNT]);

/// Entries on the disk beside a file, in the order of [`SIBLINGS`].
#[derive(Default)]
pub(super) struct Siblings([Option<Located>; SIBLINGS.len()]);

impl SeenVariants {
    /// Returns that of a file without siblings.
    pub(super) fn of_one(seen: Seen) -> Self {
        let mut all = [None; COUNT];
        all[0] = Some(seen);
        Self(all)
    }

    /// Returns those that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = Seen> {
        self.0.into_iter().flatten()
    }

    /// Returns whether all is certainly as it was: the same files with the same bytes.
    pub(super) fn is_unchanged(&self, located: &Located, siblings: &Siblings) -> bool {
        let others = self.0[1..].iter().zip(&siblings.0);
        self.0[0].is_some_and(|seen| seen.is_unchanged(&located.stat))
            && others.into_iter().all(|(seen, found)| match (seen, found) {
                (Some(seen), Some(found)) => seen.is_unchanged(&found.stat),
                (None, None) => true,
                _ => false,
            })
    }
}

impl Siblings {
    /// Looks for the siblings of a file.
    ///
    /// One that is older than its file is none: it was made of other bytes. Nobody compresses films
    /// and archives, so there the disk is not asked.
    ///
    /// - `located`, `relative`: the file and its path.
    ///
    /// # Errors
    /// `WouldWait`, if that is not allowed. A sibling that cannot be opened is none.
    pub(super) fn locate(
        folder: &Folder,
        (located, relative): (&Located, &[u8]),
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Self, Failure> {
        let mut found = Self::default();
        let precompressed = folder.settings.precompressed;
        let is_asked = precompressed != Precompressed::Off
            && located.kind() == FileType::RegularFile
            && !is_compressed_already(folder.headers.types.of(name_of(relative)).essence());
        if !is_asked {
            return Ok(found);
        }
        let original = Stamp::of(&located.stat);
        for (place, (_, ending)) in found.0.iter_mut().zip(SIBLINGS) {
            match locate(&[relative, ending].concat()) {
                Err(Failure::WouldWait) => return Err(Failure::WouldWait),
                Ok(sibling) if is_of(&sibling, &original, precompressed) => *place = Some(sibling),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns their codings.
    pub(super) fn codings(&self) -> impl Iterator<Item = ContentCoding> {
        let all = self.0.iter().zip(SIBLINGS);
        all.filter(|(sibling, _)| sibling.is_some()).map(|(_, (coding, _))| coding)
    }
}

/// Returns the path of the file that the one at a path would be a sibling of, by its ending.
pub(super) fn original_of(relative: &[u8]) -> Option<&[u8]> {
    SIBLINGS.iter().find_map(|(_, ending)| relative.strip_suffix(*ending))
}

/// Returns whether an entry is a compressed file that may be sent in place of the original.
fn is_of(sibling: &Located, original: &Stamp, precompressed: Precompressed) -> bool {
    let is_recent = !Stamp::of(&sibling.stat).is_older_than(original);
    sibling.kind() == FileType::RegularFile && (is_recent || precompressed == Precompressed::Always)
}

fn name_of(relative: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', relative).map_or(relative, |at| &relative[at + 1..])
}

impl VariantSet {
    /// Loads a file and its siblings.
    ///
    /// - `own`: the fields that they have beyond the folder's.
    /// - `possible`: the codings that the server may compress the file with.
    ///
    /// # Errors
    /// As [`CachedFile::load`]: what changes meanwhile is loaded again. A sibling that cannot be
    /// read is none.
    pub(super) fn load(
        (root, access): (&Root, Access),
        (located, siblings): (&Located, &Siblings),
        (relative, own, dictionary, possible): (&[u8], &Fields, Option<DictionaryUse>, CodingSet),
        folder: &Folder,
        now: Now,
    ) -> Result<Self, Failure> {
        let content_type = folder.headers.types.of(name_of(relative));
        let load = |located: &Located, relative: &[u8], coding| {
            let representation =
                Representation { content_type: content_type.clone(), coding, varies: true };
            let context = folder.load_context(own);
            let file = (located, relative, representation);
            let file = CachedFile::load((root, access), file, context, now)?;
            folder.request_digest(&file, now);
            Ok::<_, Failure>(Arc::new(file))
        };
        let mut files = [const { None }; COUNT];
        files[0] = Some(load(located, relative, ContentCoding::Identity)?);
        let found = siblings.0.iter().zip(SIBLINGS).zip(&mut files[1..]);
        for ((sibling, (coding, ending)), file) in found {
            let Some(sibling) = sibling else { continue };
            *file = match load(sibling, &[relative, ending].concat(), coding) {
                Ok(loaded) => Some(loaded),
                // A further attempt may find it.
                Err(failure) if failure.is_passing() => return Err(failure),
                Err(_) => None,
            };
        }
        let available: CodingSet = files.iter().flatten().map(|file| file.coding()).collect();
        let offered = available.and(possible);
        let is_ahead = Stamp::of(&located.stat).is_ahead(now);
        let is_settled = is_ahead || files[0].as_ref().is_none_or(|file| file.seen.is_settled);
        let unsettled_secs = (!is_settled).then_some(now.unix_secs);
        let purpose = made::purpose_of(&content_type, own, unsettled_secs);
        Ok(Self { files, available, offered, purpose, dictionary })
    }

    /// Returns the representation that a client gets.
    pub(super) fn choose(&self, request: RequestView<'_>) -> ChosenVariant<'_> {
        match accepted(request).choose(self.offered) {
            None => ChosenVariant::Nothing,
            Some(coding) => {
                self.file(coding).map_or(ChosenVariant::Make(coding), ChosenVariant::File)
            }
        }
    }

    /// Returns whether what is made of the file may be kept: other bytes cannot have its stamp.
    pub(super) fn is_settled(&self) -> bool {
        self.original().seen.is_settled
    }

    /// Returns the key of what is made of the file.
    pub(super) fn key_of(&self, how: MadeBy) -> MadeKey {
        (self.original().seen.stamp, self.purpose, how)
    }

    /// Returns what the file is for other versions of itself.
    pub(super) fn dictionary(&self) -> Option<&DictionaryUse> {
        self.dictionary.as_ref()
    }

    /// Returns whether a client wants a delta more than what else there is.
    pub(super) fn is_delta_best(&self, request: FileRequest<'_>) -> bool {
        let delta = ContentCoding::DictionaryZstd;
        accepted(request.view).choose(self.offered.with(delta)) == Some(delta)
    }

    /// Returns the size of the smallest representation that is on the disk.
    pub(super) fn bytes_min(&self) -> u64 {
        self.iter().map(|file| file.size).min().unwrap_or(0)
    }

    /// Returns a response about the file with what dictionaries add to it.
    pub(super) fn completed(
        &self,
        response: FileResponse,
        request: FileRequest<'_>,
    ) -> FileResponse {
        match &self.dictionary {
            Some(dictionary) if request.is_secure => dictionary.complete(response),
            _ => response,
        }
    }

    /// Responds with a representation that is on the disk, to a client that accepts one which the
    /// server may make. If it accepts no other, it gets the file all the same: a preference may be
    /// left out of account (RFC 9110 §12.4.1), and a 406 would come and go.
    fn respond_at_once(&self, folder: &Folder, request: RequestView<'_>, now: Now) -> FileResponse {
        let coding = accepted(request).choose(self.available);
        let file = coding.and_then(|coding| self.file(coding)).unwrap_or_else(|| self.original());
        folder.count_coding(file);
        select_or_whole(Arc::clone(file), &folder.headers, request, now)
    }

    fn file(&self, coding: ContentCoding) -> Option<&Arc<CachedFile>> {
        self.files.iter().flatten().find(|file| file.coding() == coding)
    }

    /// Returns the file itself.
    pub(super) fn original(&self) -> &Arc<CachedFile> {
        self.files[0].as_ref().expect("a set has its file")
    }

    /// Returns every representation.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<CachedFile>> {
        self.files.iter().flatten()
    }

    /// Returns what was seen of them.
    pub(super) fn seen(&self) -> SeenVariants {
        SeenVariants(self.files.each_ref().map(|file| file.as_ref().map(|file| file.seen)))
    }
}

/// Returns what a request says of codings.
fn accepted(request: RequestView<'_>) -> AcceptedCodings {
    let name = HeaderId::AcceptEncoding.name().as_bytes();
    let lines = request.fields().filter(|field| field.0.eq_ignore_ascii_case(name));
    AcceptedCodings::of(lines.map(|field| field.1))
}

/// Responds to a client that accepts no representation of a file, not even its own bytes (RFC 9110
/// §15.5.7).
pub(super) fn not_acceptable(headers: &FolderHeaders) -> FileResponse {
    let response = FileResponse::new(Status::NOT_ACCEPTABLE).with_headers(headers);
    response.with(HeaderId::Vary, HeaderId::AcceptEncoding.name().as_bytes())
}
