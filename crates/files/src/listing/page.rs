//! A listing as a page: without scripts, for small screens and dark ones as well.

use std::fmt::Write;
use std::ops::Range;

use gustnado_http::path::decode_into;
use rustix::fs::{FileType, Stat};

use super::names::{ATTRIBUTES_MAX, EntryKind, NamesPage};
use super::query::{Order, SortBy};
use super::text::{escaped, push_link, rfc3339, size};
use crate::content_type::ContentType;

/// What a browser may do with a page: show it, with the pictures of a README, and send its form.
/// Names and READMEs are what others have written, so no script runs, come what may.
pub(super) const POLICY: &[u8] = b"default-src 'none'; style-src 'unsafe-inline'; \
    img-src 'self'; form-action 'self'; base-uri 'none'";

const STYLE: &str = include_str!("page.css");

/// The icons, each drawn once and used by its letter. They are lines of 24 by 24.
const ICONS: &str = concat!(
    "<svg style=\"display:none\">",
    "<symbol id=d viewBox=\"0 0 24 24\"><path d=\"M3 5h7l2 3h9v11H3z\"/></symbol>",
    "<symbol id=f viewBox=\"0 0 24 24\"><path d=\"M5 2h9l5 5v15H5zm8 1v5h5z\"/></symbol>",
    "<symbol id=t viewBox=\"0 0 24 24\">",
    "<path d=\"M5 2h14v20H5zm3 4v2h8V6zm0 5v2h8v-2zm0 5v2h5v-2z\"/></symbol>",
    "<symbol id=i viewBox=\"0 0 24 24\">",
    "<path d=\"M3 4h18v16H3zm2 13h14l-5-7-4 5-2-2zM7 6v3h3V6z\"/></symbol>",
    "<symbol id=m viewBox=\"0 0 24 24\"><path d=\"M3 4h18v16H3zm6 4v8l7-4z\"/></symbol>",
    "<symbol id=z viewBox=\"0 0 24 24\">",
    "<path d=\"M4 3h16v4H4zm1 5h14v13H5zm5 2v3h4v-3z\"/></symbol>",
    "</svg>"
);

/// The folder that a page is about.
#[derive(Debug)]
pub(super) struct ListedFolder {
    /// Its canonical path.
    path: String,
    /// How many bytes of that are the mount point, without a slash at its end.
    mounted_at: usize,
}

/// What a page offers beside its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offers {
    /// Downloads of all that is in the folder, by their names in a query.
    pub(super) archives: &'static [&'static str],
    /// A form that sends files.
    pub(super) upload: bool,
}

impl ListedFolder {
    pub(super) fn new(path: &str, mounted_at: usize) -> Self {
        Self { path: path.to_owned(), mounted_at }
    }

    /// Returns its path, decoded.
    pub(super) fn decoded(&self) -> Vec<u8> {
        decoded(&self.path)
    }

    /// Returns whether it is the root of what is served.
    fn is_top(&self) -> bool {
        self.path[self.mounted_at..].trim_end_matches('/').is_empty()
    }

    /// Appends links to the folders above it.
    fn push_crumbs(&self, page: &mut String) {
        let (top, below) = self.path.split_at(self.mounted_at);
        let below: Vec<&str> = below.split('/').filter(|segment| !segment.is_empty()).collect();
        let mut above = below.len();
        let mut crumb = |name: &str| {
            let name = shown(&decoded(name));
            if above > 0 {
                let up = "../".repeat(above);
                write!(page, "<a href=\"{up}\">{name}/</a>").expect("a string takes all");
            } else {
                write!(page, "{name}/").expect("a string takes all");
            }
            above = above.saturating_sub(1);
        };
        crumb(top);
        below.into_iter().for_each(crumb);
    }
}

/// Returns the beginning of a page, up to its first entry.
pub(super) fn head(folder: &ListedFolder, names: &NamesPage, offers: Offers) -> String {
    let title = shown(&folder.decoded());
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style>{ICONS}\n<h1>"
    );
    folder.push_crumbs(&mut page);
    page.push_str("</h1>\n");
    push_bar(&mut page, names, offers);
    page.push_str("<table><thead><tr>");
    for by in SortBy::ALL {
        push_column(&mut page, names, by);
    }
    page.push_str("<tbody>\n");
    if !folder.is_top() {
        page.push_str("<tr><td><a href=\"../\"><svg><use href=#d /></svg>../</a><td><td>\n");
    }
    page
}

fn push_bar(page: &mut String, names: &NamesPage, offers: Offers) {
    if offers.archives.is_empty() && !offers.upload {
        return;
    }
    page.push_str("<div class=bar>");
    if names.total > 0 {
        for archive in offers.archives {
            write!(page, "<a href=\"?archive={archive}\" download>Download {archive}</a>")
                .expect("a string takes all");
        }
    }
    if offers.upload {
        page.push_str(
            "<form method=post enctype=multipart/form-data><input type=file name=file multiple \
             required aria-label=\"Files to upload\"><button>Upload</button></form>",
        );
    }
    page.push_str("</div>\n");
}

/// Appends the head of a column, which sorts by it.
fn push_column(page: &mut String, names: &NamesPage, by: SortBy) {
    let label = ["Name", "Size", "Changed (UTC)"][by as usize];
    let is_sortable = by == SortBy::Name || names.total <= ATTRIBUTES_MAX;
    let Some(sorted) = names.sorted.filter(|_| is_sortable) else {
        write!(page, "<th>{label}").expect("a string takes all");
        return;
    };
    let (state, order) = match sorted {
        (same, order) if same == by => {
            let state = ["ascending", "descending"][order as usize];
            (format!(" aria-sort={state}"), order.reversed())
        }
        // The largest and the newest first.
        _ if by != SortBy::Name => (String::new(), Order::Descending),
        _ => (String::new(), Order::Ascending),
    };
    let (by, order) = (by.name(), order.name());
    write!(page, "<th{state}><a href=\"?sort={by}&amp;order={order}\">{label}</a>")
        .expect("a string takes all");
}

/// Appends an entry. What is neither a file nor a folder by now is left out.
pub(super) fn push_row(page: &mut String, name: &[u8], stat: &Stat) {
    let Some(kind) = EntryKind::of(FileType::from_raw_mode(stat.st_mode)) else { return };
    let is_folder = kind == EntryKind::Folder;
    let (slash, icon) = if is_folder { ("/", 'd') } else { ("", icon(name)) };
    page.push_str("<tr><td><a href=\"");
    push_link(page, name);
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let size = if is_folder { String::new() } else { size(bytes) };
    let changed = rfc3339(u64::try_from(stat.st_mtime).unwrap_or(0));
    // `1994-11-06T08:49:37Z`: to the minute.
    let (day, time) = (&changed[..10], &changed[11..16]);
    let name = shown(name);
    writeln!(
        page,
        "{slash}\"><svg><use href=#{icon} /></svg>{name}{slash}</a><td>{size}<td>{day} {time}"
    )
    .expect("a string takes all");
}

/// Appends what follows the entries.
///
/// - `range`: places of the names on this page, counted from 1.
pub(super) fn push_end(page: &mut String, names: &NamesPage, range: &Range<usize>) {
    page.push_str("</table>\n");
    if names.total == 0 {
        page.push_str("<p>This folder is empty.</p>\n");
    }
    if names.sorted.is_none() {
        page.push_str("<p>There are too many names to be sorted.</p>\n");
    }
    if names.pages > 1 {
        let (from, to, total) = (range.start, range.end, names.total);
        write!(page, "<nav class=bar>Names {from} to {to} of {total}").expect("a string takes all");
        let mut link = |page_number: usize, text: &str| {
            page.push_str("<a href=\"?");
            if let Some((by, order)) = names.sorted {
                let (by, order) = (by.name(), order.name());
                write!(page, "sort={by}&amp;order={order}&amp;").expect("a string takes all");
            }
            write!(page, "page={page_number}\">{text}</a>").expect("a string takes all");
        };
        if names.page > 1 {
            link(names.page - 1, "Previous page");
        }
        if names.page < names.pages {
            link(names.page + 1, "Next page");
        }
        page.push_str("</nav>\n");
    }
}

/// Returns the icon of a file by its name.
fn icon(name: &[u8]) -> char {
    let of = ContentType::of(name);
    match of.essence().split_once('/') {
        Some(("image", _)) => 'i',
        Some(("audio" | "video", _)) => 'm',
        Some(("text", _) | (_, "json" | "xml" | "toml" | "x-sh" | "pdf")) => 't',
        Some((_, kind)) if ["zip", "gzip", "zstd", "x-tar", "x-xz"].contains(&kind) => 'z',
        _ => 'f',
    }
}

fn decoded(path: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    decode_into(path.as_bytes(), &mut bytes);
    bytes
}

/// Returns a name or a path, escaped for a page.
fn shown(text: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(text)).into_owned()
}
