//! The listing of a folder without an index.
//!
//! Made for each request, on a thread that may wait for the disk. Names that are not served are not
//! listed: hidden ones, special files, links that lead outside the root.

use std::borrow::Cow;
use std::fmt::Write;

use gustnado_http::date;
use gustnado_http::fields::HeaderId;
use gustnado_http::path::decode_into;
use gustnado_http::status::Status;
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use super::headers::FolderHeaders;
use super::resolve::{Located, Root};
use super::response::{FileContent, FileResponse};
use super::{Folder, Mounted};

/// The most names that are shown. A longer page is hard to use, and costs time and memory.
const ENTRIES_MAX: usize = 10_000;
/// The most names that are read, as most of them may be hidden.
const LOOKUPS_MAX: usize = 4 * ENTRIES_MAX;

/// The visible entries of a folder.
#[derive(Debug)]
pub(super) struct Listed {
    /// Folders first, then by name.
    entries: Vec<FolderEntry>,
    /// The folder has more entries.
    is_cut: bool,
}

#[derive(Debug)]
struct FolderEntry {
    name: Vec<u8>,
    is_folder: bool,
    bytes: u64,
    modified_secs: u64,
}

impl Listed {
    /// Reads a folder.
    ///
    /// - `relative`: its path below the root.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(
        (root, folder): (&Root, &Folder),
        located: &Located,
        relative: &[u8],
    ) -> Result<Self, Errno> {
        let mut dir = Dir::new(root.open_folder(located, relative)?)?;
        let (mut entries, mut lookups) = (Vec::new(), 0);
        while let Some(found) = dir.read() {
            let found = found?;
            let name = found.file_name().to_bytes();
            if !is_shown(name, folder.settings.hidden) {
                continue;
            }
            if entries.len() == ENTRIES_MAX || lookups == LOOKUPS_MAX {
                return Ok(Self::sorted(entries, true));
            }
            lookups += 1;
            let stat = rustix::fs::statat(dir.fd()?, found.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let stat = stat.ok().and_then(|stat| followed(root, relative, name, stat));
            entries.extend(stat.and_then(|stat| FolderEntry::of(name, &stat)));
        }
        Ok(Self::sorted(entries, false))
    }

    fn sorted(mut entries: Vec<FolderEntry>, is_cut: bool) -> Self {
        entries.sort_by_cached_key(|entry| {
            (!entry.is_folder, entry.name.to_ascii_lowercase(), entry.name.clone())
        });
        Self { entries, is_cut }
    }

    /// Returns the response with the listing.
    pub(super) fn response(&self, place: &Mounted<'_>, headers: &FolderHeaders) -> FileResponse {
        // Not cacheable: files come and go without a sign that a cache could check.
        let response = FileResponse::new(Status::OK)
            .with(HeaderId::ContentType, b"text/html; charset=utf-8")
            .with(HeaderId::CacheControl, b"no-cache");
        let content = FileContent::Bytes(self.page(place).into_bytes());
        FileResponse { content, ..response.with_headers_of_content(headers) }
    }

    fn page(&self, place: &Mounted<'_>) -> String {
        let path = shown(place.path.as_str().as_bytes());
        let mut page = format!(
            "<!doctype html><html lang=en><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width\"><title>{path}</title>\
             <style>{STYLE}</style><h1>{path}</h1>\n<table>\n\
             <tr><th>Name<th>Size<th>Changed (UTC)\n"
        );
        if place.below() != "/" {
            page.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
        }
        self.entries.iter().for_each(|entry| entry.row(&mut page));
        page.push_str("</table>\n");
        if self.is_cut {
            page.push_str("<p>There is more: only the first 10,000 names are listed.</p>\n");
        } else if self.entries.is_empty() {
            page.push_str("<p>This folder is empty.</p>\n");
        }
        page
    }
}

const STYLE: &str = "\
    :root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:60rem;\
    margin:6vh auto;padding:0 1.5rem}h1{font-size:1.5rem;overflow-wrap:anywhere}\
    table{border-collapse:collapse;width:100%}th{text-align:left;opacity:.75}\
    td{border-top:1px solid #8884;overflow-wrap:anywhere;vertical-align:top}\
    td+td,th+th{text-align:right;white-space:nowrap;padding-left:1.5rem;\
    font-variant-numeric:tabular-nums}a{color:light-dark(#a8560c,#f0a95b)}";

impl FolderEntry {
    /// Returns `None` if it is neither a file nor a folder.
    fn of(name: &[u8], stat: &Stat) -> Option<Self> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_folder = kind == FileType::Directory;
        (is_folder || kind == FileType::RegularFile).then(|| Self {
            name: name.to_vec(),
            is_folder,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified_secs: u64::try_from(stat.st_mtime).unwrap_or(0),
        })
    }

    fn row(&self, page: &mut String) {
        let slash = if self.is_folder { "/" } else { "" };
        page.push_str("<tr><td><a href=\"");
        push_link(page, &self.name);
        let name = escaped(&String::from_utf8_lossy(&self.name)).into_owned();
        let size = if self.is_folder { String::new() } else { size(self.bytes) };
        let changed = date::imf_fixdate(self.modified_secs);
        // `Sun, 06 Nov 1994 08:49:37 GMT`: the day, the month, the year, the time to the minute.
        let changed = String::from_utf8_lossy(&changed[5..22]);
        writeln!(page, "{slash}\">{name}{slash}</a><td>{size}<td>{changed}")
            .expect("a string takes all");
    }
}

/// Returns whether a name may be requested, by the rules of `path::decode`.
fn is_shown(name: &[u8], hidden: bool) -> bool {
    let is_self = name == b"." || name == b"..";
    !is_self && (hidden || !name.starts_with(b".")) && !name.contains(&b'\\')
}

/// Returns the target of a link if it lies below the root, and any other entry unchanged.
fn followed(root: &Root, relative: &[u8], name: &[u8], stat: Stat) -> Option<Stat> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Some(stat);
    }
    let path = if relative.is_empty() { name.to_vec() } else { [relative, b"/", name].concat() };
    root.locate(&path).ok().map(|located| located.stat)
}

/// Returns a decoded path, escaped for a page.
fn shown(path: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    decode_into(path, &mut bytes);
    escaped(&String::from_utf8_lossy(&bytes)).into_owned()
}

/// Escapes text for elements and attributes of a page. Characters that do not print or change the
/// direction of text are replaced by visible ones.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_harmless = |one: char| !matches!(one, '&' | '<' | '>' | '"' | '\'') && !is_odd(one);
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            one if is_odd(one) => safe.push(char::REPLACEMENT_CHARACTER),
            one => safe.push(one),
        }
    }
    Cow::Owned(safe)
}

/// Returns whether a character is a control character or sets the direction of text.
fn is_odd(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(one, '\u{2066}'..='\u{2069}')
}

/// Appends a name as a relative link. All but the unreserved characters of RFC 3986 §2.3 are
/// escaped, also a colon, which would turn the text before it into a scheme.
fn push_link(page: &mut String, name: &[u8]) {
    for byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                page.push(char::from(*byte));
            }
            _ => write!(page, "%{byte:02X}").expect("a string takes all"),
        }
    }
}

/// Returns a readable size, in powers of 1,024.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut rest, mut unit) = (bytes, 0);
    while rest >= 1024 * 1024 {
        rest /= 1024;
        unit += 1;
    }
    let (whole, tenths) = (rest / 1024, rest % 1024 * 10 / 1024);
    if whole < 10 {
        format!("{whole}.{tenths} {}", units[unit])
    } else {
        format!("{whole} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::path::CanonicalPath;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"),
            (1_048_575, "1023 KiB"),
            (1_048_576, "1.0 MiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn text_cannot_leave_its_place_in_the_page() {
        assert_eq!(escaped("a b.txt"), "a b.txt");
        assert_eq!(escaped("<b>\"&'\u{202e}\n"), "&lt;b&gt;&quot;&amp;&#39;\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_link_leads_to_its_name(name in proptest::collection::vec(1..=255_u8, 1..40)) {
            prop_assume!(!name.contains(&b'/') && is_shown(&name, true));
            let mut link = String::from("/");
            push_link(&mut link, &name);
            let path = CanonicalPath::of(link.as_bytes()).expect("a path that is served");
            prop_assert!(!path.has_stray_percent());
            let found = super::super::path::decode(path.as_str().as_bytes(), true);
            prop_assert_eq!(found.expect("a path").relative, name);
            prop_assert!(link.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
        }
    }
}
