//! The response to what a lookup has found.

use std::sync::Arc;

use gustnado_http::fields::HeaderId;
use gustnado_http::status::Status;
use gustnado_tasks::Now;

use super::archive::ArchiveForm;
use super::error::Failure;
use super::file_request::FileRequest;
use super::lookup::FoundEntry;
use super::resolve::Root;
use super::response::{FileContent, FileResponse};
use super::select::select_or_whole;
use super::variants::{self, ChosenVariant, MakeVariant, VariantSet};
use super::worker::Worker;
use super::{Folder, Mounted, archive, deltas, listing, location};

/// The text of the 404 page for a folder without an index.
const NO_INDEX: &str = "This folder has no index.html. The server lists what is in a folder if it \
    is started with --listing.";

/// The same where the index has another name.
const NO_OWN_INDEX: &str = "This folder has no index. The server lists what is in a folder if it \
    is started with --listing.";

/// Responds with the outcome of a lookup, and caches a loaded file.
///
/// - `key`: what was looked up.
///
/// # Errors
/// A representation has to be made first.
pub(super) fn respond_with(
    worker: &mut Worker,
    (folder, place, key): (&Arc<Folder>, &Mounted<'_>, &[u8]),
    found: Result<FoundEntry, Failure>,
    request: FileRequest<'_>,
    now: Now,
) -> Result<FileResponse, MakeVariant> {
    match found {
        Ok(FoundEntry::Unchanged) => {
            if let Some(set) = worker.cache.any_set(key) {
                return respond_by_coding((folder, &worker.root()), &Arc::clone(set), request, now);
            }
            let file = worker.cache.any_age(key).expect("what was just found in the cache");
            Ok(select_or_whole(Arc::clone(file), &folder.headers, request.view, now))
        }
        Ok(FoundEntry::Variants { set, may_cache }) => {
            if may_cache {
                worker.cache.insert_set(key, Arc::clone(&set), now.mono_ms);
            }
            respond_by_coding((folder, &worker.root()), &set, request, now)
        }
        Ok(FoundEntry::Loaded { file, may_cache }) => {
            if may_cache {
                worker.cache.insert(key, Arc::clone(&file), now.mono_ms);
            }
            Ok(select_or_whole(file, &folder.headers, request.view, now))
        }
        Ok(FoundEntry::Moved(moved)) => {
            let location = location::of(&place.path, request.view.query(), moved);
            let response = FileResponse::new(Status::MOVED_PERMANENTLY);
            Ok(response.with(HeaderId::Location, &location).with_headers(&folder.headers))
        }
        Ok(FoundEntry::Listed(opened)) => {
            let view = request.view;
            let mut response = match ArchiveForm::wanted(folder, view) {
                Some(form) => archive::respond(form, opened, folder, place),
                None => listing::respond(opened, folder, place, view),
            };
            if let FileContent::Pieces(pieces) = &mut response.content
                && let Err(failed) = pieces.begin_here()
            {
                return Ok(failure((folder, key), failed));
            }
            Ok(response)
        }
        Err(error) => Ok(failure((folder, key), error)),
    }
}

/// Responds with the representation of a file that the client wants most.
///
/// - `root`: the one that the worker uses.
///
/// # Errors
/// It has to be made first.
pub(super) fn respond_by_coding(
    (folder, root): (&Arc<Folder>, &Arc<Root>),
    set: &Arc<VariantSet>,
    request: FileRequest<'_>,
    now: Now,
) -> Result<FileResponse, MakeVariant> {
    let view = request.view;
    let response = match deltas::respond((folder, root), set, request, now) {
        Some(response) => response,
        None => match set.choose(view) {
            ChosenVariant::Make(coding) => {
                MakeVariant::new(set, coding).known(folder, view, now)?
            }
            ChosenVariant::File(file) => {
                folder.count_coding(file);
                select_or_whole(Arc::clone(file), &folder.headers, view, now)
            }
            ChosenVariant::Nothing => variants::not_acceptable(&folder.headers),
        },
    };
    Ok(set.completed(response, request))
}

pub(super) fn failure((folder, key): (&Folder, &[u8]), failure: Failure) -> FileResponse {
    folder.count(failure);
    let mut response = FileResponse::new(failure.status()).with_headers(&folder.headers);
    if response.status == Status::SERVICE_UNAVAILABLE {
        response.put(HeaderId::RetryAfter, b"1");
    }
    if failure == Failure::NoIndex {
        let is_usual = folder.settings.index == ["index.html"];
        response.hint = Some(if is_usual { NO_INDEX } else { NO_OWN_INDEX });
    }
    if failure == Failure::TooLarge {
        response.hint = Some("This folder is larger than an archive may be.");
    }
    folder.complete_missing(key, &mut response);
    response
}
