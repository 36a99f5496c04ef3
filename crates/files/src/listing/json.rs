//! A listing as JSON (RFC 8259).

use std::fmt::Write;

use rustix::fs::{FileType, Stat};

use super::names::{EntryKind, NamesPage};
use super::text::{push_json, push_link, rfc3339};

/// Returns the beginning of the text, up to the first entry.
///
/// - `path`: the folder's, decoded.
pub(super) fn head(path: &[u8], names: &NamesPage) -> String {
    let mut text = String::from("{\"path\":");
    push_json(&mut text, path);
    let NamesPage { page, pages, total, .. } = names;
    write!(text, ",\"page\":{page},\"pages\":{pages},\"total\":{total},\"sort\":")
        .expect("a string takes all");
    match names.sorted {
        Some((by, order)) => {
            let (by, order) = (by.name(), order.name());
            write!(text, "\"{by}\",\"order\":\"{order}\"").expect("a string takes all");
        }
        None => text.push_str("null,\"order\":null"),
    }
    text.push_str(",\"entries\":[");
    text
}

/// Appends an entry. Returns whether it is one: what is neither a file nor a folder by now is left
/// out.
///
/// - `is_first`: no entry stands before it.
pub(super) fn push_entry(text: &mut String, name: &[u8], stat: &Stat, is_first: bool) -> bool {
    let Some(kind) = EntryKind::of(FileType::from_raw_mode(stat.st_mode)) else { return false };
    text.push_str(if is_first { "\n{\"name\":" } else { ",\n{\"name\":" });
    push_json(text, name);
    text.push_str(",\"href\":\"");
    push_link(text, name);
    match kind {
        EntryKind::Folder => text.push_str("/\",\"type\":\"directory\""),
        EntryKind::File => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            write!(text, "\",\"type\":\"file\",\"size\":{size}").expect("a string takes all");
        }
    }
    let modified = rfc3339(u64::try_from(stat.st_mtime).unwrap_or(0));
    write!(text, ",\"modified\":\"{modified}\"}}").expect("a string takes all");
    true
}

/// Appends what follows the entries.
pub(super) fn push_end(text: &mut String) {
    text.push_str("\n]}\n");
}
