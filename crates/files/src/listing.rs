//! A page for a folder without an index: its files and folders, with links, or the same as JSON.
//!
//! Only entries that a request could get from the folder are listed: no hidden names, no symlinks
//! that lead outside the root, nothing that other routes respond to. The names are read and sorted
//! at once; sizes and dates are read in steps while the page is sent, so that the first byte waits
//! for the names alone.

mod json;
mod names;
mod page;
mod permit;
pub(super) mod query;
mod readme;
mod text;

use std::mem;
use std::sync::Arc;

use super::error::Failure;
use super::folders::FolderCounts;
use super::open_folder::OpenFolder;
use super::pieces::{Pieces, Produce};
use super::response::{FileContent, FileResponse};
use super::shown::ShownEntries;
use super::{Folder, Mounted};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Charge, MemoryKind};

use names::NamesPage;
use page::{ListedFolder, Offers};
use permit::ListingPermit;
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
        listed: ListedFolder::new(place.path.as_str(), place.at),
        query,
        shown: ShownEntries::of(folder),
        has_readme: folder.settings.listing_readme,
        offers: Offers {
            archives: folder.settings.archives.names(),
            upload: folder.settings.upload,
        },
        step: ListingStep::Start(opened),
        charge: Charge::new(MemoryKind::Sends),
        counts: Arc::clone(&folder.in_all),
        permit: None,
    };
    // Not cacheable: files come and go without a sign that a cache could check.
    let mut response = FileResponse::new(Status::OK)
        .with(HeaderId::ContentType, content_type)
        .with(HeaderId::CacheControl, b"no-cache")
        .with(HeaderId::Vary, b"Accept");
    if query.format == ListingFormat::Html {
        response.put(HeaderId::ContentSecurityPolicy, page::POLICY);
    }
    let content = Pieces::new(listing, folder.pool().cloned(), folder.wait);
    let content = FileContent::Pieces(Box::new(content));
    FileResponse { content, ..response.with_headers_of_content(&folder.headers, &Fields::new()) }
}

/// A listing that is being sent.
struct ListingPieces {
    listed: ListedFolder,
    query: ListingQuery,
    shown: ShownEntries,
    has_readme: bool,
    offers: Offers,
    step: ListingStep,
    charge: Charge,
    counts: Arc<FolderCounts>,
    /// Needed by one that has more than its first piece.
    permit: Option<ListingPermit>,
}

/// What comes next. The folder is open only for as long as something does.
enum ListingStep {
    Start(OpenFolder),
    /// `at` entries were written, some of which may have been left out.
    Entries {
        folder: OpenFolder,
        names: NamesPage,
        at: usize,
        is_first: bool,
    },
    Readme(OpenFolder, Vec<u8>),
    End,
}

impl Produce for ListingPieces {
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let piece = match mem::replace(&mut self.step, ListingStep::End) {
            ListingStep::Start(folder) => {
                let ListingQuery { by, order, page, format } = self.query;
                let names = NamesPage::read(&folder, &self.shown, (by, order), page)?;
                let out = match format {
                    ListingFormat::Html => page::head(&self.listed, &names, self.offers),
                    ListingFormat::Json => json::head(&self.listed.decoded(), &names),
                };
                Some(self.with_entries(out, folder, names, (0, true)))
            }
            ListingStep::Entries { folder, names, at, is_first } => {
                Some(self.with_entries(String::new(), folder, names, (at, is_first)))
            }
            ListingStep::Readme(folder, name) => readme::rendered(&folder, &name),
            ListingStep::End => None,
        };
        self.note_held(piece.as_ref().map_or(0, String::len))?;
        Ok(piece.map(String::into_bytes))
    }
}

impl ListingPieces {
    /// Appends the next entries, and at the last of them what follows.
    fn with_entries(
        &mut self,
        mut out: String,
        folder: OpenFolder,
        names: NamesPage,
        (at, mut is_first): (usize, bool),
    ) -> String {
        let end = (at + STEP_ENTRIES).min(names.len());
        for place in at..end {
            let name = names.name(place);
            // What has vanished since the names were read is left out.
            let Some(stat) = folder.stat(name) else { continue };
            match self.query.format {
                ListingFormat::Html => page::push_row(&mut out, name, &stat),
                ListingFormat::Json => {
                    is_first &= !json::push_entry(&mut out, name, &stat, is_first);
                }
            }
        }
        if end < names.len() {
            // A step has to make something, and a folder may have been emptied meanwhile.
            out.push('\n');
            self.step = ListingStep::Entries { folder, names, at: end, is_first };
            return out;
        }
        match self.query.format {
            ListingFormat::Json => json::push_end(&mut out),
            ListingFormat::Html => {
                let before = (names.page - 1) * names::PAGE_NAMES;
                page::push_end(&mut out, &names, &(before + 1..before + names.len()));
                if let Some(readme) = names.readme.filter(|_| self.has_readme) {
                    self.step = ListingStep::Readme(folder, readme);
                }
            }
        }
        out
    }

    /// Charges what is held until the client has taken a piece.
    ///
    /// # Errors
    /// Before the first piece is sent: more is to come, and as much is held for others as may be.
    fn note_held(&mut self, piece_bytes: usize) -> Result<(), Failure> {
        let names_bytes = match &self.step {
            ListingStep::Entries { names, .. } => names.heap_bytes(),
            _ => 0,
        };
        let bytes = names_bytes + piece_bytes;
        if matches!(self.step, ListingStep::End) {
            self.permit = None;
        } else if self.permit.is_none() {
            let has_room = self.charge.has_room_for(bytes);
            self.permit = ListingPermit::take(&self.counts).filter(|_| has_room);
            if self.permit.is_none() {
                return Err(Failure::TooMany);
            }
        }
        self.charge.set(bytes);
        Ok(())
    }
}
