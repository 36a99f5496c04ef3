//! What a folder does for pages that outlive a deployment: digests, rules for caches, the page of
//! an application, files of former releases.

use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::Now;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::cache_rules::{self, ImmutableFolders, cache_rule};
use super::cached_file::LoadContext;
use super::error::Failure;
use super::path::{self, FilePath};
use super::resolve::Located;
use super::response::FileResponse;
use super::shown::{is_elsewhere, is_index_elsewhere};
use super::stamp::Seen;
use super::target::{Target, TargetFile, parted};
use super::{Folder, spa};

/// The text of the 404 page where the page of an application is missing itself.
const NO_PAGE: &str = "The page of this application is not in its folder. It is named with --spa, \
    and is index.html without a name.";

impl Folder {
    /// Refuses a file by another path than its own if another route responds to that: it may be
    /// guarded there.
    pub(super) fn check_other(&self, relative: &[u8]) -> Result<(), Failure> {
        let (_, name) = parted(relative);
        let is_guarded = if self.settings.index.iter().any(|index| index.as_bytes() == name) {
            is_index_elsewhere(&self.elsewhere, relative)
        } else {
            is_elsewhere(&self.elsewhere, relative, false)
        };
        if is_guarded { Err(Failure::Disk(Errno::NOENT)) } else { Ok(()) }
    }

    /// Returns what a key leads to: a canonical path, or that of the application's page.
    ///
    /// - `check`: refuses paths that are not served.
    /// - `check_other`: refuses files at other paths than that of the request.
    /// - `locate`: finds an entry by its path below the root.
    pub(super) fn target(
        &self,
        key: &[u8],
        (check, check_other): (
            impl Fn(&FilePath) -> Result<(), Failure>,
            impl Fn(&[u8]) -> Result<(), Failure>,
        ),
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Target, Failure> {
        if key != spa::KEY {
            let path = path::decode(key, self.settings.hidden)?;
            check(&path)?;
            return self.rules.target(path, check_other, locate);
        }
        let relative = self.settings.spa.as_bytes().to_vec();
        check_other(&relative)?;
        let located = locate(&relative)?;
        if located.kind() != FileType::RegularFile {
            return Err(Failure::Disk(Errno::NOENT));
        }
        Ok(Target::File(TargetFile { located, relative, is_fallback: false }))
    }

    /// Returns the fields that a file has beyond the folder's.
    ///
    /// - `key`: what was looked for.
    /// - `relative`: the path of the file below the root.
    pub(super) fn own_fields(&self, key: &[u8], relative: &[u8]) -> Fields {
        let mut fields = Fields::new();
        let rule = cache_rule(&self.settings, relative);
        if let Some(rule) = rule.filter(|rule| self.headers.leave_cache_control(rule.is_own)) {
            fields.add_trusted(HeaderId::CacheControl, rule.value.as_bytes());
        }
        if key == spa::KEY {
            fields.add_trusted(HeaderId::Vary, spa::VARY);
        }
        fields
    }

    /// - `own`: the fields that a file has beyond the folder's.
    pub(super) fn load_context<'f>(&'f self, own: &'f Fields) -> LoadContext<'f> {
        LoadContext {
            headers: &self.headers,
            pool: self.pool(),
            open_files: &self.open_files,
            hashing: &self.hashing,
            small_bytes_max: self.settings.small_file_bytes_max,
            own,
        }
    }

    /// Returns whether the digest is known now that a cached file awaits. If it was not asked for,
    /// as too many files waited, it is asked for again.
    pub(super) fn has_new_digest(&self, cached: Seen, now: Now) -> bool {
        if !cached.awaits_digest {
            return false;
        }
        let is_known = self.hashing.digest(&cached.stamp, None).is_some();
        if !is_known && let Some(file) = self.open_files.get(&cached.stamp) {
            self.hashing.request(&file, cached.stamp, now);
        }
        is_known
    }

    pub(super) fn immutable_folders(&self) -> ImmutableFolders<'_> {
        ImmutableFolders(&self.settings.immutable_folders)
    }

    /// Returns whether the file of a key is found in former releases as well.
    pub(super) fn keeps(&self, key: &[u8]) -> bool {
        let is_kept = |path: FilePath| self.keeps_file(&path.relative);
        self.releases.is_on()
            && key != spa::KEY
            && path::decode(key, self.settings.hidden).is_ok_and(is_kept)
    }

    /// Returns the same of a path below the root.
    pub(super) fn keeps_file(&self, relative: &[u8]) -> bool {
        self.releases.is_on() && self.immutable_folders().keep(relative)
    }

    /// Returns whether a request for what is not there is for the application's page.
    ///
    /// - `below`: the canonical path below the folder's own.
    pub(super) fn has_page_for(&self, request: RequestView<'_>, below: &[u8]) -> bool {
        let folders = self.immutable_folders();
        !self.settings.spa.is_empty() && spa::is_for_page(request, below, &folders)
    }

    /// Adds what a response about a missing file has: a cache must not give it to a request that
    /// gets a page, nor after the next deployment.
    ///
    /// - `key`: what was looked for.
    pub(super) fn complete_missing(&self, key: &[u8], response: &mut FileResponse) {
        if response.status != Status::NOT_FOUND {
            return;
        }
        if !self.settings.spa.is_empty() {
            response.put(HeaderId::Vary, spa::VARY);
        }
        if cache_rules::is_on(&self.settings) && self.headers.leave_cache_control(false) {
            response.put(HeaderId::CacheControl, b"no-cache");
        }
        if key == spa::KEY {
            response.hint = Some(NO_PAGE);
        }
    }
}
