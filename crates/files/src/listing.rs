//! A page for a folder without an index: its files and folders, with links, or the same as JSON.
//!
//! Only entries that a request could reach are listed: no hidden names, no symlinks that lead
//! outside the root. The names are read and sorted at once; sizes and dates are read in steps while
//! the page is sent, so that the first byte waits for the names alone.

mod json;
mod names;
mod page;
pub(super) mod query;
mod readme;
mod text;

use std::mem;

use super::error::Failure;
use super::open_folder::OpenFolder;
use super::pieces::{Pieces, Produce};
use super::response::{FileContent, FileResponse};
use super::{Folder, Mounted};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;

use names::{NamesPage, ShownNames};
use page::{ListedFolder, Offers};
use query::{ListingFormat, ListingQuery};

/// Entries whose sizes and dates are read in one step: less than a millisecond, if the disk is not
/// waited for.
const STEP_ENTRIES: usize = 500;

/// Returns the response with the listing of a folder.
pub(super) fn respond(
    opened: OpenFolder,
    folder: &Folder,
    place: &Mounted<'_>,
    request: RequestView<'_>,
) -> FileResponse {
    let query = ListingQuery::of(request);
    let content_type: &[u8] = match query.format {
        ListingFormat::Html => b"text/html; charset=utf-8",
        ListingFormat::Json => b"application/json",
    };
    let listing = ListingPieces {
        folder: opened,
        listed: ListedFolder::new(place.path.as_str(), place.at),
        query,
        shown: ShownNames {
            hidden: folder.settings.hidden,
            forbidden: folder.settings.forbidden.clone(),
        },
        has_readme: folder.settings.listing_readme,
        offers: Offers {
            archives: folder.settings.archives.names(),
            upload: folder.settings.upload,
        },
        step: ListingStep::Start,
    };
    // Not cacheable: files come and go without a sign that a cache could check.
    let response = FileResponse::new(Status::OK)
        .with(HeaderId::ContentType, content_type)
        .with(HeaderId::CacheControl, b"no-cache")
        .with(HeaderId::Vary, b"Accept");
    let content = Pieces::new(listing, folder.pool().cloned(), folder.wait);
    let content = FileContent::Pieces(Box::new(content));
    FileResponse { content, ..response.with_headers_of_content(&folder.headers, &Fields::new()) }
}

/// A listing that is being sent.
struct ListingPieces {
    folder: OpenFolder,
    listed: ListedFolder,
    query: ListingQuery,
    shown: ShownNames,
    has_readme: bool,
    offers: Offers,
    step: ListingStep,
}

enum ListingStep {
    Start,
    /// `at` entries were written, some of which may have been left out.
    Entries {
        names: NamesPage,
        at: usize,
        is_first: bool,
    },
    Readme(Vec<u8>),
    End,
}

impl Produce for ListingPieces {
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let (names, at, is_first, mut out) = match mem::replace(&mut self.step, ListingStep::End) {
            ListingStep::Start => {
                let ListingQuery { by, order, page, format } = self.query;
                let names = NamesPage::read(&self.folder, &self.shown, (by, order), page)?;
                let out = match format {
                    ListingFormat::Html => page::head(&self.listed, &names, self.offers),
                    ListingFormat::Json => json::head(&self.listed.decoded(), &names),
                };
                (names, 0, true, out)
            }
            ListingStep::Entries { names, at, is_first } => (names, at, is_first, String::new()),
            ListingStep::Readme(name) => {
                return Ok(readme::rendered(&self.folder, &name).map(String::into_bytes));
            }
            ListingStep::End => return Ok(None),
        };
        self.push_entries(&mut out, names, at, is_first);
        Ok(Some(out.into_bytes()))
    }
}

impl ListingPieces {
    /// Appends the next entries, and at the last of them what follows.
    fn push_entries(&mut self, out: &mut String, names: NamesPage, at: usize, mut is_first: bool) {
        let end = (at + STEP_ENTRIES).min(names.len());
        for place in at..end {
            let name = names.name(place);
            // What has vanished since the names were read is left out.
            let Some(stat) = self.folder.stat(name) else { continue };
            match self.query.format {
                ListingFormat::Html => page::push_row(out, name, &stat),
                ListingFormat::Json => is_first &= !json::push_entry(out, name, &stat, is_first),
            }
        }
        if end < names.len() {
            // A step has to make something, and a folder may have been emptied meanwhile.
            out.push('\n');
            self.step = ListingStep::Entries { names, at: end, is_first };
            return;
        }
        match self.query.format {
            ListingFormat::Json => json::push_end(out),
            ListingFormat::Html => {
                let before = (names.page - 1) * names::PAGE_NAMES;
                page::push_end(out, &names, &(before + 1..before + names.len()));
                if let Some(readme) = names.readme.filter(|_| self.has_readme) {
                    self.step = ListingStep::Readme(readme);
                }
            }
        }
    }
}
