//! Responses to paths that are not fresh in a worker's cache: the file is looked up first.

use std::sync::Arc;

use gustnado_http::path::CanonicalPath;
use gustnado_http::request::RequestView;
use gustnado_tasks::Now;

use super::file_request::FileRequest;
use super::lookup::{FoundEntry, is_missing};
use super::outcome::{failure, respond_by_coding, respond_with};
use super::path::FilePathError;
use super::select::select_or_whole;
use super::target::Moved;
use super::variants::MakeVariant;
use super::waiting::Lookup;
use super::worker::Worker;
use super::{Files, FolderResponse, Mounted, spa};

/// Responds to a path that has no fresh cache entry as it was sent.
#[cold]
#[inline(never)]
pub(super) fn respond_slowly(
    worker: &mut Worker,
    files: &Files,
    place: Option<&Mounted<'_>>,
    view: RequestView<'_>,
    is_secure: impl Fn() -> bool,
    now: Now,
) -> FolderResponse {
    let is_secure = files.folder.uses_dictionaries && is_secure();
    respond_to(worker, files, place, FileRequest { view, is_secure }, now)
}

fn respond_to(
    worker: &mut Worker,
    files: &Files,
    place: Option<&Mounted<'_>>,
    request: FileRequest<'_>,
    now: Now,
) -> FolderResponse {
    let (folder, view) = (&files.folder, request.view);
    let ready = |response| FolderResponse::Ready(Box::new(response));
    let whole = match place {
        Some(_) => None,
        None => CanonicalPath::of(view.path()).ok().map(|path| Mounted { path, at: 0 }),
    };
    let place = place.or(whole.as_ref()).filter(|place| !place.path.has_stray_percent());
    let Some(place) = place else {
        return ready(failure((folder, view.path()), FilePathError::Malformed.into()));
    };
    let key = place.below().as_bytes();
    // Another spelling of a cached path: found under its canonical key, without a look at the disk.
    if !place.path.is_as_sent()
        && let Some(file) = worker.cache.fresh_by_call(key, now.mono_ms)
    {
        return ready(select_or_whole(Arc::clone(file), &folder.headers, view, now));
    }
    if let Some(set) = worker.cache.fresh_set(key, now.mono_ms).cloned() {
        let responded = respond_by_coding((folder, &worker.root()), &set, request, now);
        return responded.map_or_else(|make| variant(files, place, request, make, now), ready);
    }
    let found = match key {
        // Without the slash, relative links in the page would resolve one level too high.
        [] => Some(Ok(FoundEntry::Moved(Moved::WithSlash))),
        key => worker.find_cached(folder, key, now),
    };
    let found = match found {
        Some(found) => found,
        None if folder.threads == 0 => worker.find(folder, key, now),
        None => return FolderResponse::Wait(Box::new(Lookup::new(files, request, place))),
    };
    if is_missing(&found) && folder.has_page_for(view, key) {
        return respond_with_page(worker, files, place, request, now);
    }
    let responded = respond_with(worker, (folder, place, key), found, request, now);
    responded.map_or_else(|make| variant(files, place, request, make, now), ready)
}

/// Responds with the page of an application to a request for one of its own paths.
fn respond_with_page(
    worker: &mut Worker,
    files: &Files,
    place: &Mounted<'_>,
    request: FileRequest<'_>,
    now: Now,
) -> FolderResponse {
    let folder = &files.folder;
    let ready = |response| FolderResponse::Ready(Box::new(response));
    if let Some(file) = worker.cache.fresh_by_call(spa::KEY, now.mono_ms) {
        return ready(select_or_whole(Arc::clone(file), &folder.headers, request.view, now));
    }
    if let Some(set) = worker.cache.fresh_set(spa::KEY, now.mono_ms).cloned() {
        let responded = respond_by_coding((folder, &worker.root()), &set, request, now);
        return responded.map_or_else(|make| variant(files, place, request, make, now), ready);
    }
    let found = match worker.find_cached(folder, spa::KEY, now) {
        Some(found) => found,
        None if folder.threads == 0 => worker.find(folder, spa::KEY, now),
        None => {
            let lookup = Lookup::new(files, request, place).for_page();
            return FolderResponse::Wait(Box::new(lookup));
        }
    };
    let responded = respond_with(worker, (folder, place, spa::KEY), found, request, now);
    responded.map_or_else(|make| variant(files, place, request, make, now), ready)
}

/// Responds with a representation that has to be made first.
fn variant(
    files: &Files,
    place: &Mounted<'_>,
    request: FileRequest<'_>,
    make: MakeVariant,
    now: Now,
) -> FolderResponse {
    if files.folder.threads > 0 {
        return FolderResponse::Wait(Box::new(Lookup::of_making(files, request, place, make)));
    }
    make.run(&files.folder, now);
    FolderResponse::Ready(Box::new(make.response(&files.folder, request, now)))
}
